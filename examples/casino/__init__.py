"""A generated casino."""
