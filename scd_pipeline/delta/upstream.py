"""Checks that a table fits its upstream: it has applied no more commits than the upstream has.

Each commit of a table records its high-water marks: up to which pipeline commit it has applied each upstream table. If
the upstream has fewer commits, or was recreated, rows are lost, and a load would treat them as deleted.
Read the downstream table before its upstream: a load that commits to both in between only moves the upstream ahead.
"""

from __future__ import annotations

from collections.abc import Sequence

from scd_pipeline.delta.commits import HighWaterMark, PipelineCommit, foreign_commit_error
from scd_pipeline.delta.repair_instructions import log_repair_instructions
from scd_pipeline.errors import ForeignCommitError, HighWaterMarkError, LoadError


def log_mark(log: PipelineCommit, applied: int) -> dict[str, HighWaterMark]:
    """Return the high-water mark of a table that has applied its change log up to the commit `applied`."""
    return {log.table: HighWaterMark(applied, log.table_id)}


def table_mark(table: PipelineCommit) -> dict[str, HighWaterMark]:
    """Return the high-water mark of a table that has applied `table` up to this commit."""
    return {table.table: HighWaterMark(table.number, table.table_id, table.table_version)}


def damage(log: PipelineCommit, downstream: Sequence[PipelineCommit]) -> list[LoadError]:
    """Return the damage of a change log and of the tables that apply it; none if a load may continue.

    Args:
        log: The last commit of the log, number 0 if the log does not exist.
        downstream: The last commits of the tables that apply it, read before the log.
    """
    errors: list[LoadError] = [*foreign_commit_errors([log, *downstream])]
    errors += [error for commit in downstream if (error := log_error(commit, log)) is not None]
    return errors


def foreign_commit_errors(commits: Sequence[PipelineCommit]) -> list[ForeignCommitError]:
    """Return an error for each table that another program changed after its last pipeline commit."""
    return [foreign_commit_error(commit, commit.foreign) for commit in commits if commit.foreign is not None]


def log_error(downstream: PipelineCommit, log: PipelineCommit) -> HighWaterMarkError | None:
    """Return the error if a table has applied commits that its change log does not have."""
    mark, location = downstream.applied(log.table), f"table {downstream.table}"
    details = {
        "applied": mark.commit,
        "log": log.table,
        "last": log.number,
        "repair": log_repair_instructions(log.table),
    }
    if mark.commit > log.number:
        return HighWaterMarkError("LOG_COMMITS_LOST" if log.exists else "LOG_LOST", location, **details)
    if mark.commit and is_other_table(mark.table_id, log.table_id):
        return HighWaterMarkError("LOG_REPLACED", location, **details)
    return None


def is_other_table(applied: int, current: int) -> bool:
    """Return whether two table ids differ; 0 is unknown and differs from none."""
    return 0 not in (applied, current) and applied != current


def raise_first(errors: Sequence[LoadError]) -> None:
    """Raise the first of the errors, if any."""
    if errors:
        raise errors[0]
