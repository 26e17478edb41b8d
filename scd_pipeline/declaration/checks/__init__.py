"""Checks of declarations, which collect all validation errors and raise them together (S28)."""
