"""Own commits: every write of this package is a compare and swap on its table's number of pipeline commits.

Delta's transaction begins inside a write, so a frame computed from an older version would overwrite a rival's rows
unseen. Each of our commits therefore carries the table's name as `txnAppId` and 1 + the number of the pipeline commit
that it was computed from as `txnVersion`: Delta skips it when a rival took that number, and reading the last own
commit back tells whose it is. A foreign commit in between, such as OPTIMIZE, takes no number and does no harm.
A foreign commit that left other rows is damage: no commit of this package follows it.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from pyspark.sql import Column, Row, SparkSession
from pyspark.sql import functions as F

from scd_pipeline.delta.repair import repair_instructions
from scd_pipeline.errors import ForeignCommitError, PipelineCommitMissing
from scd_pipeline.instants import from_micros

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
    "DOMAIN METADATA CLEANUP",
    "OPTIMIZE CHECKPOINT",
    "REMOVE COLUMN MAPPING",
    "REORG",
    "REORG TABLE UPGRADE UNIFORM",
    "ROW TRACKING BACKFILL",
    "ROW TRACKING UNBACKFILL",
}
"""Operations in a Delta table's history that change none of its rows."""
_RESTORE = "RESTORE"


@dataclass(frozen=True, slots=True)
class ForeignCommit:
    """A commit that another program made and that left other rows than the last pipeline commit.

    `identifier` is the table's name in SQL, `restore_to` the version of the last pipeline commit.
    """

    version: int
    operation: str
    identifier: str
    restore_to: int

    def __str__(self) -> str:
        return f"version {self.version}: {self.operation}"

    def restore_statement(self) -> str:
        """Return the SQL that restores the rows of the last pipeline commit."""
        return f"RESTORE TABLE {self.identifier} TO VERSION AS OF {self.restore_to}"


@dataclass(frozen=True, slots=True)
class PipelineCommit:
    """A commit of ours: its number, what the table had taken in by then, and a token that tells it from a rival's.

    `at` is when it was made, by the server's clock; `newest` is the table's version when the commit was
    looked for: the same rows, also where an OPTIMIZE or a VACUUM came after it. `table_id` identifies the table: its
    first pipeline commit chooses it and each later one repeats it, so a table that was dropped and recreated has
    another (0: not known). `engine` is Delta's `engineInfo`, the Spark and the Delta that made the commit. `foreign` is
    a foreign commit after the last pipeline commit that left other rows.
    """

    table: str
    number: int
    high_water_marks: Mapping[str, int] = field(default_factory=dict)
    token: str = ""
    batches: tuple[str, ...] = ()
    run_id: str = ""
    table_version: int = -1
    at: datetime | None = None
    newest: int = -1
    table_id: int = 0
    engine: str = ""
    foreign: ForeignCommit | None = None

    @property
    def exists(self) -> bool:
        """Whether the commit is of a table that exists; one that does not is at number 0."""
        return self.newest >= 0

    def next(self, *, high_water_marks: Mapping[str, int], batches: tuple[str, ...], run_id: str) -> PipelineCommit:
        """Return the commit that follows this one, with a token of its own.

        Raises:
            ForeignCommitError: A foreign commit follows this one; a pipeline commit would hide it.
        """
        if self.foreign is not None:
            raise foreign_commit_error(self, self.foreign)
        table_id = self.table_id or uuid.uuid4().int >> 66
        token = uuid.uuid4().hex
        return PipelineCommit(
            self.table, self.number + 1, dict(high_water_marks), token, batches, run_id, table_id=table_id
        )

    def metadata(self) -> str:
        """The `userMetadata` of the commit."""
        return json.dumps(
            {
                MARK: 1,
                "table": self.table,
                "table_id": self.table_id,
                "own": self.number,
                "took": dict(self.high_water_marks),
                "token": self.token,
                "batches": list(self.batches[:100]),
                "run_id": self.run_id,
            }
        )


def foreign_commit_error(commit: PipelineCommit, foreign: ForeignCommit) -> ForeignCommitError:
    """Return the error of a table that another program changed after `commit`."""
    return ForeignCommitError(
        f"table {commit.table}: version {foreign.version} ({foreign.operation}) is a foreign commit: it changed rows "
        f"after commit {commit.number} (version {foreign.restore_to}); expected that only this package writes the "
        f"table; nothing was written to it; `scd check` lists the damage; "
        f"{repair_instructions(commit.table, foreign.restore_statement())}"
    )


def last_own_commit(spark: SparkSession, table: str, identifier: str) -> PipelineCommit:
    """The table's last pipeline commit, number 0 right after its creation; reads no more of the history than it must.

    Errors: OwnCommitMissing where the history no longer reaches back to a pipeline commit (its log's retention has
    passed, or the table is not ours): starting at 1 again would let Delta skip every write.
    """
    return own_commits_since(spark, table, identifier, None)[-1]


def own_commits_since(spark: SparkSession, table: str, identifier: str, number: int | None) -> list[PipelineCommit]:
    """The pipeline commits after that number, in order; the last one alone for None.  Errors: as of `last_own_commit`.

    Where the history no longer reaches back so far, those that are left.
    """

    def reaches_back(commits: Sequence[PipelineCommit]) -> bool:
        return number is None or commits[-1].number <= number

    commits = _newest_commits(spark, table, identifier, reaches_back)
    return commits[-1:] if number is None else [commit for commit in commits if commit.number > number]


def own_commit_again(spark: SparkSession, commit: PipelineCommit, identifier: str) -> PipelineCommit | None:
    """Return `commit` as the table's history has it, None if another writer used its number.

    Another writer may have committed after it.
    """

    def reaches_back(commits: Sequence[PipelineCommit]) -> bool:
        return any(c.token == commit.token for c in commits) or commits[-1].number < commit.number

    commits = _newest_commits(spark, commit.table, identifier, reaches_back)
    return next((c for c in commits if c.token == commit.token), None)


def _newest_commits(
    spark: SparkSession, table: str, identifier: str, is_complete: Callable[[Sequence[PipelineCommit]], bool]
) -> list[PipelineCommit]:
    """Return the newest pipeline commits, in order, at least as many as `is_complete` wants, given newest first."""
    found: list[PipelineCommit] = []
    for page in _PAGES:
        history = spark.sql(f"DESCRIBE HISTORY {identifier} LIMIT {page}").select(*_history_columns())
        rows = history.collect()
        found = [commit for row in rows if (commit := _own(row, table)) is not None]
        if any(row["version"] == 0 for row in rows):
            found = found or [PipelineCommit(table, 0, table_version=0)]
            break
        if found and is_complete(found):
            break
        if len(rows) < page:
            break
    if not found:
        raise PipelineCommitMissing(
            f"table {table}: no commit of this package is left in its history, so its next number is unknown; "
            f"expected the last one to be within the log's retention; restore the table's `_delta_log`, or rebuild "
            f"the table"
        )
    newest = max(row["version"] for row in rows)
    in_order = [replace(commit, newest=newest) for commit in sorted(found, key=lambda commit: commit.number)]
    in_order[-1] = replace(in_order[-1], foreign=_foreign_after(rows, in_order[-1], identifier))
    return in_order


def _history_columns() -> list[Column]:
    restored = F.when(F.col("operation") == _RESTORE, F.col("operationParameters")["version"])
    return [
        F.col("version"),
        F.col("userMetadata"),
        F.unix_micros("timestamp").alias("micros"),
        F.col("operation"),
        restored.cast("bigint").alias("restored"),
        F.col("engineInfo"),
    ]


def _foreign_after(rows: Sequence[Row], last: PipelineCommit, identifier: str) -> ForeignCommit | None:
    """Return the newest foreign commit after the last own one that determines the table's rows, if any does.

    A RESTORE to a version at or after the pipeline commit undoes the commits between. One to an earlier version, or
    to a time, is a foreign commit.
    """
    by_version = {int(row["version"]): row for row in rows}
    version = max(by_version)
    while version > last.table_version:
        row = by_version[version]
        target = row["restored"]
        if target is not None and target >= last.table_version:
            version = int(target)
        elif row["operation"] in CHANGES_NO_ROW:
            version -= 1
        else:
            operation = f"RESTORE to version {target}" if target is not None else row["operation"]
            return ForeignCommit(version, operation, identifier, last.table_version)
    return None


def foreign_commits(spark: SparkSession, table: str, identifier: str) -> list[str]:
    """The commits in the table's history that changed rows and are not ours: `version 7: DELETE`, newest first.

    Commits that a RESTORE has undone are left out, and so is a RESTORE that undid no commit of ours.
    """
    history = spark.sql(f"DESCRIBE HISTORY {identifier}").select(*_history_columns())
    by_version = {int(row["version"]): row for row in history.collect()}
    own = {version for version, row in by_version.items() if _own(row, table) is not None}
    found = []
    version = max(by_version)
    while version in by_version:
        row, target = by_version[version], by_version[version]["restored"]
        undone = range(version if target is None else int(target) + 1, version)
        if target is not None and own.isdisjoint(undone):
            version = int(target)
            continue
        if row["operation"] not in CHANGES_NO_ROW and version not in own:
            found.append(f"version {version}: {row['operation']}")
        version -= 1
    return found


def _own(row: Row, table: str) -> PipelineCommit | None:
    try:
        told: dict[str, Any] = json.loads(row["userMetadata"] or "{}")
    except ValueError:
        return None
    if not isinstance(told, dict) or told.get(MARK) != 1 or told.get("table") != table:
        return None
    return PipelineCommit(
        table,
        int(told["own"]),
        {name: int(number) for name, number in told["took"].items()},
        told["token"],
        tuple(told.get("batches", ())),
        told.get("run_id", ""),
        int(row["version"]),
        from_micros(row["micros"]),
        table_id=int(told.get("table_id", 0)),
        engine=row["engineInfo"] or "",
    )
