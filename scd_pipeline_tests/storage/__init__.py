"""Real Delta tables: compare and swap, rivals, crashes, the slower way of writing, tables that do not fit."""
