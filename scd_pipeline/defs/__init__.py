"""The definitions of this package's code location; Dagster loads each module and each defs.yaml in this folder."""
