"""Own commits: every write of this package is a compare and swap on its table's number of own commits.

Delta's transaction begins inside a write, so a frame computed from an older version would overwrite a rival's rows
unseen. Each of our commits therefore carries the table's name as `txnAppId` and 1 + the number of the own commit
that it was computed from as `txnVersion`: Delta skips it when a rival took that number, and reading the last own
commit back tells whose it is. A foreign commit in between, such as OPTIMIZE, takes no number and does no harm.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from pyspark.sql import Row, SparkSession
from pyspark.sql import functions as F

from scd_pipeline.batch import from_micros
from scd_pipeline.errors import OwnCommitMissing

MARK = "scd_pipeline"
_PAGES = (3, 50, 1000, 1_000_000)
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
    "REORG",
}
"""Operations in a Delta table's history that change none of its rows."""


@dataclass(frozen=True, slots=True)
class OwnCommit:
    """A commit of ours: its number, what the table had taken in by then, and a token that tells it from a rival's.

    `at` is when it was made, by the server's clock; `newest` is the table's version when the commit was
    looked for: the same rows, also where an OPTIMIZE or a VACUUM came after it.
    """

    table: str
    number: int
    took: Mapping[str, int] = field(default_factory=dict)
    token: str = ""
    batches: tuple[str, ...] = ()
    run_id: str = ""
    table_version: int = -1
    at: datetime | None = None
    newest: int = -1

    def next(self, *, took: Mapping[str, int], batches: tuple[str, ...], run_id: str) -> OwnCommit:
        """The commit that follows this one, with a token of its own."""
        return OwnCommit(self.table, self.number + 1, dict(took), uuid.uuid4().hex, batches, run_id)

    def metadata(self) -> str:
        """The `userMetadata` of the commit."""
        return json.dumps(
            {
                MARK: 1,
                "table": self.table,
                "own": self.number,
                "took": dict(self.took),
                "token": self.token,
                "batches": list(self.batches[:100]),
                "run_id": self.run_id,
            }
        )


def last_own_commit(spark: SparkSession, table: str, identifier: str) -> OwnCommit:
    """The table's last own commit, number 0 right after its creation; reads no more of the history than it must.

    Errors: OwnCommitMissing where the history no longer reaches back to an own commit (its log's retention has
    passed, or the table is not ours): starting at 1 again would let Delta skip every write.
    """
    return own_commits_since(spark, table, identifier, None)[-1]


def own_commits_since(spark: SparkSession, table: str, identifier: str, number: int | None) -> list[OwnCommit]:
    """The own commits after that number, in order; the last one alone for None.  Errors: as of `last_own_commit`.

    Where the history no longer reaches back so far, those that are left.
    """
    found: list[OwnCommit] = []
    for page in _PAGES:
        history = spark.sql(f"DESCRIBE HISTORY {identifier} LIMIT {page}").select(
            "version", "userMetadata", F.unix_micros("timestamp").alias("micros")
        )
        rows = history.collect()
        found = [commit for row in rows if (commit := _own(row, table)) is not None]
        if any(row["version"] == 0 for row in rows):
            found = found or [OwnCommit(table, 0, table_version=0)]
            break
        if found and (number is None or found[-1].number <= number):
            break
        if len(rows) < page:
            break
    if not found:
        raise OwnCommitMissing(
            f"table {table}: no commit of this package is left in its history, so its next number is unknown; "
            f"expected the last one to be within the log's retention; restore the table's `_delta_log`, or rebuild "
            f"the table"
        )
    newest = max(row["version"] for row in rows)
    in_order = [replace(commit, newest=newest) for commit in sorted(found, key=lambda commit: commit.number)]
    return in_order[-1:] if number is None else [commit for commit in in_order if commit.number > number]


def foreign_commits(spark: SparkSession, table: str, identifier: str) -> list[str]:
    """The commits in the table's history that changed rows and are not ours: `version 7: DELETE`, newest first."""
    history = spark.sql(f"DESCRIBE HISTORY {identifier}").select("version", "operation", "userMetadata", "timestamp")
    rows = history.withColumn("micros", F.unix_micros("timestamp")).collect()
    return [
        f"version {row['version']}: {row['operation']}"
        for row in rows
        if row["operation"] not in CHANGES_NO_ROW and _own(row, table) is None
    ]


def _own(row: Row, table: str) -> OwnCommit | None:
    try:
        told: dict[str, Any] = json.loads(row["userMetadata"] or "{}")
    except ValueError:
        return None
    if not isinstance(told, dict) or told.get(MARK) != 1 or told.get("table") != table:
        return None
    return OwnCommit(
        table,
        int(told["own"]),
        {name: int(number) for name, number in told["took"].items()},
        told["token"],
        tuple(told.get("batches", ())),
        told.get("run_id", ""),
        int(row["version"]),
        from_micros(row["micros"]),
    )
