"""Worlds compared: what the oracle says in order of position, and what the engine makes in order of delivery."""
