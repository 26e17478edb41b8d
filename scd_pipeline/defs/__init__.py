"""The definitions of this project's code location; each module and each defs.yaml adds its own."""
