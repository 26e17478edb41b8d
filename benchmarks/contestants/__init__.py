"""Contestants: ways to keep the same history, and floors that no way can beat."""
