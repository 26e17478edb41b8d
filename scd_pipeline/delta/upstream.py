"""Whether a table still fits its upstream: no more was applied than the upstream has.

A table commits, for each upstream, up to which pipeline commit it has applied it, and which table that was. Where the
upstream has fewer commits, or is another table, its rows are lost: a load would take their absence for deletions.
Read the downstream table before its upstream: a load that commits both in between only moves the upstream ahead.
"""

from __future__ import annotations

from collections.abc import Sequence

from scd_pipeline.delta.commits import PipelineCommit, foreign_commit_error
from scd_pipeline.delta.repair import log_repair_instructions
from scd_pipeline.errors import ForeignCommitError, HighWaterMarkError, LoadError

LOG_MARK, LOG_ID = "log", "log_id"
"""In the high-water marks of a commit: the last applied commit of the change log, and which table that log is."""


def log_marks(log: PipelineCommit, applied: int) -> dict[str, int]:
    """Return the high-water marks of a table that has applied its log up to the commit `applied`."""
    return {LOG_MARK: applied, LOG_ID: log.table_id}


def damage(log: PipelineCommit, downstream: Sequence[PipelineCommit]) -> list[LoadError]:
    """Return what keeps a change log, and tables that apply it, from being loaded; none if all are sound.

    Args:
        log: The last commit of the log, number 0 if the log does not exist.
        downstream: The last commits of the tables that apply it, as they were read before the log.
    """
    found: list[LoadError] = [*foreign_problems([log, *downstream])]
    found += [problem for commit in downstream if (problem := log_problem(commit, log)) is not None]
    return found


def foreign_problems(commits: Sequence[PipelineCommit]) -> list[ForeignCommitError]:
    """Return an error for each table that another program changed after its last pipeline commit."""
    return [foreign_commit_error(commit, commit.foreign) for commit in commits if commit.foreign is not None]


def log_problem(downstream: PipelineCommit, log: PipelineCommit) -> HighWaterMarkError | None:
    """Return the error if a table has applied commits that its change log does not have."""
    applied = downstream.high_water_marks.get(LOG_MARK, 0)
    if applied > log.number:
        last = f"whose last commit is {log.number}" if log.exists else "which does not exist"
        problem = f"it has applied commit {applied} of {log.table}, {last}"
    elif applied and is_other_table(downstream.high_water_marks.get(LOG_ID, 0), log.table_id):
        problem = (
            f"it has applied commit {applied} of a table {log.table} that was dropped since; the last commit of the "
            f"table that has this name now is {log.number}"
        )
    else:
        return None
    return HighWaterMarkError(
        f"table {downstream.table}: {problem}; expected a log with every commit that was applied; nothing was "
        f"written; {log_repair_instructions(log.table)}"
    )


def is_other_table(applied: int, now: int) -> bool:
    """Return whether two table ids are of different tables; 0 is an id that is not known."""
    return 0 not in (applied, now) and applied != now


def require_sound(log: PipelineCommit, downstream: Sequence[PipelineCommit]) -> None:
    """Raise the first error of `damage`, if any.

    Raises:
        ForeignCommitError: Another program changed the rows of one of the tables.
        HighWaterMarkError: A table has applied commits that the log does not have.
    """
    for error in damage(log, downstream):
        raise error


def require_unchanged(commits: Sequence[PipelineCommit]) -> None:
    """Raise the first error of `foreign_problems`, if any.

    Raises:
        ForeignCommitError: Another program changed the rows of one of the tables.
    """
    for error in foreign_problems(commits):
        raise error
