"""Declarations in YAML files."""
