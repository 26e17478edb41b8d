"""The stored state that a plan starts from: each table at the version of its last commit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from pyspark.sql import DataFrame

from scd_pipeline.declaration import Dimension
from scd_pipeline.declaration.tables import AUDIT_SUFFIX, LOG_SUFFIX
from scd_pipeline.delta.change_log import ChangeLog
from scd_pipeline.delta.commits import PipelineCommit
from scd_pipeline.delta.history_table import newest_versions
from scd_pipeline.delta.schema import (
    require_declared_attributes,
    require_pipeline_tables,
    require_same_declaration,
    with_stored_attributes,
    with_stored_names,
    with_widened_columns,
)
from scd_pipeline.delta.stored_declaration import StoredDeclaration
from scd_pipeline.delta.upstream import damage, raise_first
from scd_pipeline.delta.warehouse import Warehouse
from scd_pipeline.history.batch import Batch
from scd_pipeline.history.narrowing import has_few_records
from scd_pipeline.load.log import build_log, log_high_water_mark, may_have_removed_versions
from scd_pipeline.load.session_settings import RunningLoad


@dataclass(frozen=True, slots=True)
class StoredState:
    """A dimension's table and its change log, each at one version.

    Attributes:
        dimension: The declaration, with every name that its attributes ever had.
        commit: The last commit of the table, number 0 if it does not exist.
        columns: The types of the table's columns by name; empty if it does not exist.
        rows: The rows of the table, and those of its history table or archive; None if it does not exist.
        table_rows: The rows of the table alone, which has the current versions.
        history_commit: The last commit of its history table or archive, number 0 if that does not exist.
        columns_of_history: The types of the columns of its history table or archive; empty if that does not exist.
        log: The change log.
        committed_batches: Every batch of the log, each with the number of its commit.
        applied: The last log commit that the table has applied.
        properties: The properties of the table; none if it does not exist.
        may_lack_versions: Whether an earlier load may have removed a version from `rows`.
    """

    dimension: Dimension
    commit: PipelineCommit
    columns: Mapping[str, str]
    rows: DataFrame | None
    table_rows: DataFrame | None
    history_commit: PipelineCommit
    columns_of_history: Mapping[str, str]
    log: ChangeLog
    committed_batches: tuple[tuple[int, Batch], ...]
    applied: int
    properties: Mapping[str, str]
    may_lack_versions: bool

    @property
    def batches(self) -> tuple[Batch, ...]:
        """Every batch of the log."""
        return tuple(batch for _, batch in self.committed_batches)

    @property
    def has_pending_commits(self) -> bool:
        """Whether the table has not applied every commit of the log."""
        return self.applied < self.log.commit.number

    def with_dimension(self, dimension: Dimension) -> StoredState:
        """Return the state with the attributes that a mirrored dimension gets from its deliveries (S36)."""
        dimension = with_stored_names(dimension, StoredDeclaration.from_properties(self.properties))
        return replace(self, dimension=dimension, log=replace(self.log, dimension=dimension)).with_declared_types()

    def with_declared_types(self) -> StoredState:
        """Return the state with the rows as the next load will have them, after it has widened columns."""
        rows, table_rows = (
            None if frame is None else with_widened_columns(frame, self.columns, self.dimension)
            for frame in (self.rows, self.table_rows)
        )
        return replace(self, rows=rows, table_rows=table_rows)

    def at_step(self, after: int, upto: int) -> StoredState:
        """Return the state in which the log ends with the commit `upto`, and the table has applied it up to `after`."""
        batches = tuple((number, batch) for number, batch in self.committed_batches if number <= upto)
        return replace(self, log=self.log.until(upto), committed_batches=batches, applied=after)


def read_state(
    warehouse: Warehouse,
    dimension: Dimension,
    downstream: Sequence[PipelineCommit] = (),
    commit: PipelineCommit | None = None,
    running: RunningLoad | None = None,
) -> StoredState:
    """Read the state of a dimension's tables, and check that a load can continue from it.

    Args:
        downstream: The last commits of other tables that apply the change log, read before this call.
        commit: The last commit of the table, if it was read already; the state is then that of this commit.
        running: The load that reads the state, and that has read no delivery yet.

    Raises:
        SetupError: One of the tables was not created by this package.
        DeclarationError: The tables were created by another declaration.
        ForeignCommitError: Another program changed the rows of one of them.
        HighWaterMarkError: The change log was lost or replaced.
    """
    table = warehouse.table(dimension.name)
    properties = table.properties()
    stored = StoredDeclaration.from_properties(properties)
    if stored is not None:
        require_same_declaration(with_stored_attributes(dimension, stored), stored)
    else:
        downstream = [*downstream, *_audit_commit(warehouse, dimension, downstream)]
        if properties:
            require_pipeline_tables(table, warehouse.table(dimension.name + LOG_SUFFIX))
    newest = newest_versions(warehouse, dimension.name, stored, commit) if properties else None
    commit = newest.commit if newest else PipelineCommit(dimension.name, 0)
    history = warehouse.table(dimension.name + dimension.closed_suffix) if dimension.closed_suffix else None
    history_commit = newest.history if newest else None
    if history_commit is None:
        history_commit = history.last_commit_or_zero() if history else PipelineCommit(dimension.name, 0)
    log = build_log(warehouse, dimension, stored)
    if stored is None:
        # Without a pipeline commit, a table may be one of another program.
        others = [each for each in (history_commit, log.commit, *downstream) if each.exists and not each.number]
        require_pipeline_tables(*[warehouse.table(each.table) for each in others])
    if running is not None:
        running.expect_records(read=log.commit.records, shuffled=log.commit.records)
    if has_few_records(log.commit.records):
        log = log.with_checkpoint()
    raise_first(damage(log.commit, [commit, history_commit, *downstream]))
    committed = log.committed_batches()
    require_declared_attributes(log.dimension, (name for _, batch in committed for name in batch.columns))
    state = StoredState(
        dimension=log.dimension,
        commit=commit,
        columns=newest.columns() if newest else {},
        rows=newest.rows if newest else None,
        table_rows=newest.table_rows if newest else None,
        history_commit=history_commit,
        columns_of_history=history.columns() if history else {},
        log=log,
        committed_batches=tuple(committed),
        applied=log_high_water_mark(log.commit, commit),
        properties=properties,
        may_lack_versions=dimension.has_audit and may_have_removed_versions(committed, dimension),
    )
    return state.with_declared_types()


def _audit_commit(
    warehouse: Warehouse, dimension: Dimension, downstream: Sequence[PipelineCommit]
) -> list[PipelineCommit]:
    """Return the last commit of a dimension's audit, unless it was read: it proves that the dimension had a log."""
    audit = dimension.name + AUDIT_SUFFIX
    if not dimension.has_audit or any(commit.table == audit for commit in downstream):
        return []
    return [warehouse.table(audit).last_commit_or_zero()]
