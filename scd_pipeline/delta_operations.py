"""Names of Delta's operations, as the history of a table has them."""

from __future__ import annotations

CHANGES_NO_ROW = {
    "CREATE TABLE",
    "OPTIMIZE",
    "VACUUM START",
    "VACUUM END",
    "SET TBLPROPERTIES",
    "UNSET TBLPROPERTIES",
    "ADD COLUMNS",
    "RENAME COLUMN",
    "CHANGE COLUMN",
    "CHANGE COLUMNS",
    "ADD CONSTRAINT",
    "DROP CONSTRAINT",
    "CLUSTER BY",
    "UPGRADE PROTOCOL",
    "DROP FEATURE",
    "COMPUTE STATS",
    "DOMAIN METADATA CLEANUP",
    "OPTIMIZE CHECKPOINT",
    "REMOVE COLUMN MAPPING",
    "REORG",
    "REORG TABLE UPGRADE UNIFORM",
    "ROW TRACKING BACKFILL",
    "ROW TRACKING UNBACKFILL",
}
"""Operations in a Delta table's history that change none of its rows."""
