"""Tests of timed tables."""
