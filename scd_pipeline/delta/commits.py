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
from dataclasses import dataclass, field
from typing import Any

from pyspark.sql import Row, SparkSession

from scd_pipeline.errors import OwnCommitMissing

MARK = "scd_pipeline"
_PAGES = (3, 50, 1000, 1_000_000)


@dataclass(frozen=True, slots=True)
class OwnCommit:
    """A commit of ours: its number, what the table had taken in by then, and a token that tells it from a rival's."""

    table: str
    number: int
    took: Mapping[str, int] = field(default_factory=dict)
    token: str = ""
    batches: tuple[str, ...] = ()
    run_id: str = ""
    table_version: int = -1

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
    for page in _PAGES:
        history = spark.sql(f"DESCRIBE HISTORY {identifier} LIMIT {page}").select(
            "version", "operation", "userMetadata"
        )
        rows = history.collect()
        for row in rows:
            found = _own(row, table)
            if found is not None:
                return found
        if any(row["version"] == 0 for row in rows):
            return OwnCommit(table, 0, table_version=max(row["version"] for row in rows))
        if len(rows) < page:
            break
    raise OwnCommitMissing(
        f"table {table}: no commit of this package is left in its history, so its next number is unknown; expected "
        f"the last one to be within the log's retention; restore the table's `_delta_log`, or rebuild the table"
    )


def _own(row: Row, table: str) -> OwnCommit | None:
    try:
        told: dict[str, Any] = json.loads(row["userMetadata"] or "{}")
    except ValueError:
        return None
    if not isinstance(told, dict) or told.get(MARK) != 1 or told.get("table") != table:
        return None
    took = {name: int(number) for name, number in told["took"].items()}
    batches = tuple(told.get("batches", ()))
    return OwnCommit(table, int(told["own"]), took, told["token"], batches, told.get("run_id", ""), int(row["version"]))
