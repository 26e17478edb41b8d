"""Tests of the oracle itself, of the scenarios that it is asked about, and of the text tables. No Spark."""
