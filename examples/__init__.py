"""Examples of declarations, each with a demo."""
