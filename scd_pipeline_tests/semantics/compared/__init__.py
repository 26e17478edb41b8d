"""Comparison with other tools: the same histories in dlt, in dbt snapshots and here."""
