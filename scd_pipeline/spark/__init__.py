"""Spark sessions and what they need: Java, Delta's jars, a server that stays warm."""
