"""Statements that always hold of a dimension, each written once as a query for the rows that break it."""
