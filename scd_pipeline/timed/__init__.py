"""Timed tables: a base, and a log of timed UPDATE and DELETE statements that a read applies up to a time (S12)."""
