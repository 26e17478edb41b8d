"""Tests of the set-up: Java, jars, sessions, doctor, packaging."""
