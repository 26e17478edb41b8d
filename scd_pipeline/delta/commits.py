"""Pipeline commits: every write of this package is a compare-and-swap on its table's last commit number.

Delta's transaction begins inside a write, so a frame computed from an older version could overwrite the rows of a
concurrent writer unnoticed. Each pipeline commit therefore carries the table's name as `txnAppId` and, as `txnVersion`,
1 + the number of the commit that it was computed from. Delta skips the write if another writer has used that number;
the token of the stored commit identifies its writer. A foreign commit in between, such as OPTIMIZE, uses
no number and does no harm. A foreign commit that changed rows is damage: no pipeline commit follows it.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from pyspark.sql.utils import is_remote

from scd_pipeline.declaration.child_tables import is_child_name
from scd_pipeline.declaration.tables import LOG_SUFFIX
from scd_pipeline.delta.repair_instructions import folded_base_instructions, repair_instructions
from scd_pipeline.delta_operations import CHANGES_NO_ROW
from scd_pipeline.errors import ForeignCommitError, PipelineCommitMissing
from scd_pipeline.instants import from_micros, to_micros

METADATA_KEY = "scd_pipeline"
_FORMAT = 1
_MAX_LISTED_BATCHES = 100
_PAGES = (1, 20, 1000, 1_000_000)
"""The numbers of history rows to read, one after the other until they reach back far enough.

The newest commit is usually the one that is searched for, and Delta reads the file of each commit.
"""
_RESTORE = "RESTORE"


@dataclass(frozen=True, slots=True)
class ForeignCommit:
    """A commit of another program that changed rows after the last pipeline commit.

    Attributes:
        table_version: Its table version.
        operation: Delta's name of its operation.
        identifier: The table's name in SQL.
        restore_to: The table version of the last pipeline commit.
    """

    table_version: int
    operation: str
    identifier: str
    restore_to: int

    def restore_statement(self) -> str:
        """Return the SQL that restores the rows of the last pipeline commit."""
        return f"RESTORE TABLE {self.identifier} TO VERSION AS OF {self.restore_to}"


@dataclass(frozen=True, slots=True)
class HighWaterMark:
    """How far a table has applied an upstream table.

    Attributes:
        commit: The number of the last pipeline commit of the upstream table that was applied.
        table_id: The id of the upstream table, 0 if unknown.
        table_version: The table version of that commit, -1 if it was not recorded.
    """

    commit: int = 0
    table_id: int = 0
    table_version: int = -1


@dataclass(frozen=True, slots=True)
class UnchangedDimension:
    """Records in a log commit that the dimension at `dimension_commit` equals the log up to `log_commit`.

    A log commit that changes no row of its dimension needs no commit of the dimension.
    """

    dimension_commit: int
    log_commit: int


@dataclass(frozen=True, slots=True)
class StoredRead:
    """Records in a commit which rows of a timed table it contains: those of a read at a time.

    Attributes:
        until: The time of the read, in milliseconds since 1970: the rows contain the statements up to it.
        statements: The number of statements of the log up to that time.
        checksum: Their checksum.
        base: The state of the declared base from which the rows were computed.
        at: The time of the write, in milliseconds since 1970.
        author: The person or program that wrote the rows.
        reason: The reason.
    """

    until: int
    statements: int
    checksum: str
    base: str
    at: int
    author: str
    reason: str


@dataclass(frozen=True, slots=True)
class Archiving:
    """Records in a commit of a dimension that it has moved versions to the archive, which changes no version (S42).

    Attributes:
        closed_before: The time, as ISO text, before which the moved versions ended.
        by: The person or program that moved them.
        reason: The reason.
    """

    closed_before: str
    by: str
    reason: str


@dataclass(frozen=True, slots=True)
class PipelineCommit:
    """A commit of this package in a table.

    Attributes:
        table: The name of the table.
        number: The commit number, 1 for the first; 0 for a table without commits.
        high_water_marks: How far the table has applied each upstream table, by the names of those tables.
        unchanged: In a change log, up to which commit its dimension needs no change.
        roles_checksum: In a fact, a checksum of the roles whose keys its rows have; 0 elsewhere.
        token: A random text that identifies the commit.
        batches: The ids of the batches that the commit brings, the first hundred of them.
        run_id: The id of the run.
        table_version: The table version of the commit.
        at: The time of the commit, by the server's clock.
        newest: The newest table version when the history was read, -1 if the table does not exist. Its rows are those
            of the commit: only OPTIMIZE, VACUUM and the like may follow it.
        table_id: The id of the table, which its first commit chooses and each later one repeats. A table that was
            dropped and recreated has another one. 0 if unknown.
        engine: Delta's `engineInfo`: the versions of Spark and Delta that wrote the commit.
        foreign: A foreign commit that changed rows after this commit, if any.
        records: In a change log, the number of change records in the table after this commit, or more; in a fact, that
            of its rows; None if unknown, and elsewhere.
        repairs: Whether the rows of foreign commits before it were compared with the change log, and repaired.
        reserved_member: In a dimension, whether its rows contain the unknown member (S23).
        is_of_copy: Whether the table was copied, so that its commit numbers continue those of another table (`copies`).
        stored_read: In a table with rows of a timed table, the read that returned them.
        archiving: In a dimension, which versions the commit has moved to the archive, if it did.
    """

    table: str
    number: int
    high_water_marks: Mapping[str, HighWaterMark] = field(default_factory=dict)
    token: str = ""
    batches: tuple[str, ...] = ()
    run_id: str = ""
    table_version: int = -1
    at: datetime | None = None
    newest: int = -1
    table_id: int = 0
    engine: str = ""
    foreign: ForeignCommit | None = None
    unchanged: UnchangedDimension | None = None
    roles_checksum: int = 0
    records: int | None = None
    repairs: bool = False
    reserved_member: bool = False
    is_of_copy: bool = False
    stored_read: StoredRead | None = None
    archiving: Archiving | None = None

    @property
    def exists(self) -> bool:
        """Whether the table exists."""
        return self.newest >= 0

    @property
    def lacks_creation(self) -> bool:
        """Whether a plain write seems to have created the table, which then has no properties: its first commit."""
        return self.number > self.table_version >= 0 and not self.is_of_copy

    @property
    def root(self) -> str:
        """The dimension of a child table, whose change log it has applied (S40); otherwise the name of the table."""
        logs = [name for name in self.high_water_marks if name.endswith(LOG_SUFFIX)]
        roots = [name.removesuffix(LOG_SUFFIX) for name in logs]
        return next((name for name in roots if is_child_name(self.table, name)), self.table)

    def applied(self, upstream: str) -> HighWaterMark:
        """Return how far the table has applied an upstream table; commit 0 if it has not."""
        return self.high_water_marks.get(upstream, HighWaterMark())

    @property
    def stored_records(self) -> int | None:
        """An upper bound of the number of change records of a change log, or of rows of a fact; None if unknown."""
        return self.records if self.number else 0

    def next(
        self,
        *,
        high_water_marks: Mapping[str, HighWaterMark] | None = None,
        unchanged: UnchangedDimension | None = None,
        roles_checksum: int = 0,
        batches: tuple[str, ...] = (),
        run_id: str = "",
        records: int | None = None,
        stored_read: StoredRead | None = None,
    ) -> PipelineCommit:
        """Return the commit that follows this one, with a new token.

        Raises:
            ForeignCommitError: A foreign commit follows this one; a pipeline commit would hide it.
        """
        if self.foreign is not None:
            raise foreign_commit_error(self, self.foreign)
        return PipelineCommit(
            self.table,
            self.number + 1,
            dict(high_water_marks or {}),
            token=uuid.uuid4().hex,
            batches=batches,
            run_id=run_id,
            table_id=self.table_id or uuid.uuid4().int >> 66,
            unchanged=unchanged,
            roles_checksum=roles_checksum,
            records=records,
            reserved_member=self.reserved_member,
            is_of_copy=self.is_of_copy,
            stored_read=stored_read,
        )

    def next_repair(self, *, high_water_marks: Mapping[str, HighWaterMark], run_id: str = "") -> PipelineCommit:
        """Return the commit that follows this one, and the foreign commits after it, whose rows it repairs."""
        following = replace(self, foreign=None).next(high_water_marks=high_water_marks, run_id=run_id)
        return replace(following, repairs=True, reserved_member=False)

    def metadata(self) -> str:
        """Return the `userMetadata` of the commit, as JSON."""
        values: dict[str, Any] = {
            METADATA_KEY: _FORMAT,
            "table": self.table,
            "table_id": self.table_id,
            "commit": self.number,
            "high_water_marks": {name: asdict(mark) for name, mark in self.high_water_marks.items()},
            "token": self.token,
            "batches": list(self.batches[:_MAX_LISTED_BATCHES]),
            "run_id": self.run_id,
        }
        if self.unchanged is not None:
            values["unchanged"] = asdict(self.unchanged)
        if self.archiving is not None:
            values["archiving"] = asdict(self.archiving)
        if self.roles_checksum:
            values["roles"] = self.roles_checksum
        if self.records is not None:
            values["records"] = self.records
        if self.stored_read is not None:
            values["stored_read"] = asdict(self.stored_read)
        values |= {name: True for name in ("repairs", "reserved_member", "is_of_copy") if getattr(self, name)}
        return json.dumps(values)


def foreign_commit_error(commit: PipelineCommit, foreign: ForeignCommit) -> ForeignCommitError:
    """Return the error of a table that another program changed after `commit`."""
    return ForeignCommitError(
        "FOREIGN_COMMIT",
        f"table {commit.table}",
        version=foreign.table_version,
        operation=foreign.operation,
        commit=commit.number,
        commit_version=foreign.restore_to,
        repair=_repair_instructions(commit, foreign.restore_statement()),
    )


def _repair_instructions(commit: PipelineCommit, restore_statement: str) -> str:
    if commit.stored_read is not None:
        return folded_base_instructions(restore_statement)
    return repair_instructions(commit.root, restore_statement, is_fact=commit.roles_checksum != 0)


def last_pipeline_commit(spark: SparkSession, table: str, identifier: str) -> PipelineCommit:
    """Return the table's last pipeline commit, number 0 right after the table was created.

    Reads no more of the history than is needed.

    Raises:
        PipelineCommitMissing: The history does not reach back to a pipeline commit: the retention of the Delta log has
            passed, or this package did not create the table. To start at 1 again would let Delta skip every write.
    """
    return pipeline_commits_since(spark, table, identifier, None)[-1]


def pipeline_commits_since(
    spark: SparkSession, table: str, identifier: str, number: int | None
) -> list[PipelineCommit]:
    """Return the pipeline commits after `number` in order, only the last one for None.

    If the history does not reach back to `number`, those that it has.

    Raises:
        PipelineCommitMissing: The history has no pipeline commit.
    """

    def reaches_back(commits: Sequence[PipelineCommit]) -> bool:
        return number is None or commits[-1].number <= number

    pages = _PAGES if number is None else _PAGES[1:]
    commits = _newest_commits(spark, table, identifier, reaches_back, pages)
    return commits[-1:] if number is None else [commit for commit in commits if commit.number > number]


def find_commit(spark: SparkSession, commit: PipelineCommit, identifier: str) -> PipelineCommit | None:
    """Return `commit` as the table's history has it, None if another writer used its number.

    Another writer may have committed after it.
    """

    def reaches_back(commits: Sequence[PipelineCommit]) -> bool:
        return any(c.token == commit.token for c in commits) or commits[-1].number < commit.number

    commits = _newest_commits(spark, commit.table, identifier, reaches_back, _PAGES)
    return next((c for c in commits if c.token == commit.token), None)


def _newest_commits(
    spark: SparkSession,
    table: str,
    identifier: str,
    is_complete: Callable[[Sequence[PipelineCommit]], bool],
    pages: Sequence[int],
) -> list[PipelineCommit]:
    """Return the newest pipeline commits in order, as many as `is_complete` needs; it gets them newest first."""
    commits: list[PipelineCommit] = []
    for page in pages:
        rows = _history_rows(spark, identifier, page)
        commits = [commit for row in rows if (commit := _parse_commit(row, table)) is not None]
        if any(row["version"] == 0 for row in rows):
            commits = commits or [PipelineCommit(table, 0, table_version=0)]
            break
        if commits and is_complete(commits):
            break
        if len(rows) < page:
            break
    if not commits:
        raise PipelineCommitMissing("PIPELINE_COMMIT_MISSING", f"table {table}")
    newest = max(row["version"] for row in rows)
    in_order = [replace(commit, newest=newest) for commit in sorted(commits, key=lambda commit: commit.number)]
    in_order[-1] = replace(in_order[-1], foreign=_foreign_after(rows, in_order[-1], identifier))
    return in_order


def _history_rows(spark: SparkSession, identifier: str, limit: int | None = None) -> list[dict[str, Any]]:
    """Return the newest rows of a table's history, by default all, newest first.

    Embedded, a query on the rows of the command would be a job of its own, and `collect` returns local times of which
    `fold` distinguishes the repeated hour. Over Spark Connect `collect` loses it, and a query on the rows is free.
    """
    history = spark.sql(f"DESCRIBE HISTORY {identifier}{'' if limit is None else f' LIMIT {limit}'}")
    if is_remote():
        history = history.withColumn("timestamp", F.unix_micros("timestamp"))
    return [_history_row(row.asDict()) for row in history.collect()]


def _history_row(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return what identifies a commit, of a row of DESCRIBE HISTORY with a local time or one in microseconds."""
    time, restored = row["timestamp"], None
    if row["operation"] == _RESTORE:
        restored = row["operationParameters"].get("version")
    return {
        "version": int(row["version"]),
        "userMetadata": row["userMetadata"],
        "micros": time if isinstance(time, int) else to_micros(time.astimezone()),
        "operation": "CREATE TABLE" if _is_creation(row) else row["operation"],
        "restored": None if restored is None else int(restored),
        "engineInfo": row["engineInfo"],
    }


def _is_creation(row: Mapping[str, Any]) -> bool:
    """Return whether a commit created an empty table as a clone, as `Table.create` may do."""
    is_first_clone = row["operation"] == "CLONE" and row["version"] == 0
    return is_first_clone and (row["operationMetrics"] or {}).get("sourceNumOfFiles") == "0"


def _foreign_after(rows: Sequence[Mapping[str, Any]], last: PipelineCommit, identifier: str) -> ForeignCommit | None:
    """Return the newest foreign commit after the last pipeline commit that determines the table's rows, if any.

    A RESTORE to a version at or after the pipeline commit undoes the commits between. One to an earlier version, or
    to a time, is a foreign commit.
    """
    by_version = {row["version"]: row for row in rows}
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
    """Return the foreign commits in the table's history that changed rows, such as `version 7: DELETE`, newest first.

    Commits before the last repair are skipped, commits that a RESTORE undid, and a RESTORE that undid no pipeline
    commit.
    """
    by_version = {row["version"]: row for row in _history_rows(spark, identifier)}
    parsed = {version: _parse_commit(row, table) for version, row in by_version.items()}
    pipeline_versions = {version for version, commit in parsed.items() if commit is not None}
    commits = []
    version = max(by_version)
    while version in by_version and not ((commit := parsed[version]) is not None and commit.repairs):
        row, target = by_version[version], by_version[version]["restored"]
        undone = range(version if target is None else int(target) + 1, version)
        if target is not None and pipeline_versions.isdisjoint(undone):
            version = int(target)
            continue
        if row["operation"] not in CHANGES_NO_ROW and version not in pipeline_versions:
            commits.append(f"version {version}: {row['operation']}")
        version -= 1
    return commits


def _parse_commit(row: Mapping[str, Any], table: str) -> PipelineCommit | None:
    """Return the pipeline commit in a row of a table's history; None for a foreign commit."""
    try:
        values: Any = json.loads(row["userMetadata"] or "{}")
    except ValueError:
        return None
    if not isinstance(values, dict) or values.get(METADATA_KEY) != _FORMAT or values.get("table") != table:
        return None
    unchanged, stored_read, archiving = (values.get(name) for name in ("unchanged", "stored_read", "archiving"))
    return PipelineCommit(
        table,
        int(values["commit"]),
        {name: HighWaterMark(**mark) for name, mark in values["high_water_marks"].items()},
        values["token"],
        tuple(values["batches"]),
        values["run_id"],
        int(row["version"]),
        from_micros(row["micros"]),
        table_id=int(values["table_id"]),
        engine=row["engineInfo"] or "",
        unchanged=UnchangedDimension(**unchanged) if unchanged else None,
        roles_checksum=int(values.get("roles", 0)),
        records=values.get("records"),
        repairs=bool(values.get("repairs")),
        reserved_member=bool(values.get("reserved_member")),
        is_of_copy=bool(values.get("is_of_copy")),
        stored_read=StoredRead(**stored_read) if stored_read else None,
        archiving=Archiving(**archiving) if archiving else None,
    )
