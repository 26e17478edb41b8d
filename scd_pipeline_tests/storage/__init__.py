"""Real Delta tables: compare-and-swap, concurrent writers, crashes, writes by MERGE, tables that do not fit."""
