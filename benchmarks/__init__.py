"""Measures loads, queries and whole processes against other ways to keep the same history."""
