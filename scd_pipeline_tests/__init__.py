"""Tests of scd_pipeline."""
