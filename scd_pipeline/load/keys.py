"""The key list of a dimension: every surrogate key that was ever assigned, with its version (S14).

The audit records up to which commit it has used the key list. A key list that lost commits is rebuilt from the audit.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from pyspark.sql import DataFrame

from scd_pipeline.columns import EFFECTIVE_FROM
from scd_pipeline.declaration import Dimension
from scd_pipeline.declaration.tables import AUDIT_SUFFIX, KEYS_SUFFIX
from scd_pipeline.declaration.types import parse_type
from scd_pipeline.delta.audit_table import with_change_types
from scd_pipeline.delta.commits import HighWaterMark, PipelineCommit
from scd_pipeline.delta.schema import APPEND_ONLY_PROPERTIES, FORMAT, ensure_table, require_pipeline_tables
from scd_pipeline.delta.table import Table
from scd_pipeline.delta.upstream import foreign_commit_errors, is_other_table, raise_first
from scd_pipeline.delta.warehouse import Warehouse
from scd_pipeline.errors import HighWaterMarkError, LoadError
from scd_pipeline.expressions import col
from scd_pipeline.frames import checkpoint, with_broadcast
from scd_pipeline.history.transitions import assigned_keys
from scd_pipeline.load.retry import Progress
from scd_pipeline.texts import pluralize


@dataclass(frozen=True, slots=True)
class RecordedCommits:
    """The last commits of a dimension's audit and of its key list; number 0 for a table that does not exist."""

    audit: PipelineCommit
    keys: PipelineCommit

    @property
    def applied_keys(self) -> HighWaterMark:
        """The high-water mark of the key list in the audit."""
        return self.audit.applied(self.keys.table)

    def has_lost_keys(self) -> bool:
        """Return whether the key list lacks commits that the audit has used."""
        applied = self.applied_keys
        return self.keys.number < applied.commit or is_other_table(applied.table_id, self.keys.table_id)

    def damage(self) -> list[LoadError]:
        """Return the damage of the key list; none if it is sound."""
        foreign = foreign_commit_errors([self.keys])
        if foreign or not self.has_lost_keys():
            return [*foreign]
        return [HighWaterMarkError("KEYS_LOST", f"table {self.keys.table}", audit=self.audit.table)]


def recorded_commits(warehouse: Warehouse, dimension: Dimension) -> RecordedCommits:
    """Return the last commits of the audit and of the key list; the audit is read first, as it is downstream."""
    audit, keys = (warehouse.table(dimension.name + suffix) for suffix in (AUDIT_SUFFIX, KEYS_SUFFIX))
    return RecordedCommits(audit.last_commit_or_zero(), keys.last_commit_or_zero())


def restore_keys(warehouse: Warehouse, dimension: Dimension, run_id: str, progress: Progress) -> RecordedCommits:
    """Rebuild surrogate keys that the key list has lost, if any, and return the last commits of audit and key list.

    Raises:
        SetupError: One of the tables was not created by this package.
        ForeignCommitError: Another program changed the rows of one of them.
    """
    recorded = recorded_commits(warehouse, dimension)
    audit, keys = warehouse.table(recorded.audit.table), warehouse.table(recorded.keys.table)
    if any(commit.foreign is not None and commit.number == 0 for commit in (recorded.audit, recorded.keys)):
        require_pipeline_tables(audit, keys)
    raise_first(foreign_commit_errors([recorded.audit, recorded.keys]))
    if not recorded.has_lost_keys():
        return recorded
    stored = keys.read(recorded.keys.newest) if recorded.keys.exists else None
    missing = checkpoint(missing_keys(warehouse, dimension, audit.read(recorded.audit.newest), stored))
    rebuilt = _append_missing(warehouse, dimension, missing, recorded, run_id)
    progress(f"{keys.name}: rebuilt from {audit.name} ({pluralize(missing.count(), 'key')})")
    return RecordedCommits(recorded.audit, rebuilt)


def missing_keys(warehouse: Warehouse, dimension: Dimension, audit: DataFrame, keys: DataFrame | None) -> DataFrame:
    """Return the surrogate keys that the audit records as assigned and that the key list lacks.

    Args:
        audit: The rows of the audit.
        keys: The rows of the key list, None if it does not exist.

    Returns:
        The columns of `keys_schema`, one row for each key.
    """
    assigned = assigned_keys(with_change_types(audit, dimension), dimension, key_hash=warehouse.key_hash)
    if keys is None:
        return assigned
    return assigned.join(keys.select(col(dimension.surrogate_key)), dimension.surrogate_key, "left_anti")


def _append_missing(
    warehouse: Warehouse, dimension: Dimension, missing: DataFrame, recorded: RecordedCommits, run_id: str
) -> PipelineCommit:
    """Append the missing keys with the commit number and the table id that the audit records."""
    keys, last, applied = ensure_key_list(warehouse, dimension, recorded.keys), recorded.keys, recorded.applied_keys
    base = replace(last, number=max(last.number, applied.commit), table_id=applied.table_id or last.table_id)
    return keys.append(missing.select(*[col(name) for name, _ in keys_schema(dimension)]), base.next(run_id=run_id))


def keys_to_append(
    keys: Table, last: PipelineCommit, assigned: DataFrame, row_limit: int, dimension: Dimension
) -> tuple[DataFrame, int]:
    """Return the assigned keys that the key list lacks, and an upper bound of their number that is 0 if there are none.

    The cost is a scan of one column of a key list that has commits.

    Args:
        keys: The key list.
        last: Its last commit.
        assigned: The columns of `keys_schema`, one row for each key.
        row_limit: An upper bound of the number of its rows.
        dimension: The declaration.
    """
    if not last.number:
        return assigned, row_limit
    names = [dimension.surrogate_key]
    stored = keys.read(last.newest).select(col(dimension.surrogate_key))
    existing = with_broadcast(stored.join(with_broadcast(assigned, row_limit), names, "left_semi"), row_limit)
    new = checkpoint(assigned.join(existing, names, "left_anti"))
    return new, new.count()


def append_keys(
    keys: Table, last: PipelineCommit, new: DataFrame, dimension: Dimension, run_id: str, *, count: int
) -> PipelineCommit:
    """Append keys that the key list lacks, and return its last commit.

    This precedes the commit of the audit, so that a step of a killed run is repeated (S14).

    Args:
        new: The columns of `keys_schema`, one row for each key.
        count: The number of its rows or more; 0 if it has none.
    """
    if not count:
        return last
    return keys.append(new.select(*[col(name) for name, _ in keys_schema(dimension)]), last.next(run_id=run_id))


def ensure_key_list(warehouse: Warehouse, dimension: Dimension, last: PipelineCommit) -> Table:
    """Return the key list, created if it does not exist."""
    keys = warehouse.writable(dimension.name + KEYS_SUFFIX)
    columns = [(name, ddl, False) for name, ddl in keys_schema(dimension)]
    comment = f"Every surrogate key that was ever assigned in {dimension.name}"
    ensure_table(keys, last, columns, {FORMAT: "1", **APPEND_ONLY_PROPERTIES}, comment)
    return keys


def keys_schema(dimension: Dimension) -> list[tuple[str, str]]:
    """Return name and type of the columns of `<dimension>_keys`."""
    names = [(key.name, parse_type(key.type).ddl()) for key in dimension.business_key]
    return [(dimension.surrogate_key, "bigint"), *names, (EFFECTIVE_FROM, "timestamp")]
