"""Invariants of tables, each with a query for the rows that violate it."""
