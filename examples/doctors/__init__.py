"""A timed table: the actors of a television series, and a log of two statements."""
