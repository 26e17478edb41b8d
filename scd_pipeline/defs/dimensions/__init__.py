"""The declared dimensions."""
