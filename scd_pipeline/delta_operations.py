"""Names of Delta's operations, as the history of a table has them, and of its settings."""

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

ENFORCE_TIME_TRAVEL_RETENTION = "spark.databricks.delta.vacuum.enforceTimeTravelWithinDeletedFileRetentionDuration"
"""Whether Delta refuses a version that is not the newest one and was written before the retention of files, by default
a week. Its files may exist: a VACUUM deletes them once the version has been replaced for that time."""
