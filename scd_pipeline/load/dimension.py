"""The use-cases: plan what some deliveries would do, and load them. Everything that can stop a batch is decided in
the plan, before anything is written; a load applies the plan with one commit per table and tells what it did."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from scd_pipeline.declaration import Dimension
from scd_pipeline.deliveries.delivery import Delivery
from scd_pipeline.deliveries.read import BatchResult
from scd_pipeline.delta.commits import PipelineCommit
from scd_pipeline.delta.table import is_superseded
from scd_pipeline.delta.upstream import log_marks
from scd_pipeline.delta.warehouse import Warehouse
from scd_pipeline.errors import BatchRejected, ConflictError, RetriesExhausted, first_line
from scd_pipeline.expressions import as_text_columns
from scd_pipeline.history.actions import ACTION, REMOVE
from scd_pipeline.load.load_plan import LoadPlan, make_plan
from scd_pipeline.load.rows import Extension

Progress = Callable[[str], None]
Done = TypeVar("Done")


def silent(message: str) -> None:
    """Tell nobody."""


@dataclass(frozen=True, slots=True)
class Retry:
    """How often a load that lost against a rival is computed anew, and how long it waits before.

    The n-th wait, counted from 0, is 2^n + 0.1 n seconds, plus up to `jitter` of that by `random`.
    """

    attempts: int = 5
    jitter: float = 0.25
    sleep: Callable[[float], None] = time.sleep
    random: Callable[[], float] = random.random

    def wait(self, attempt: int) -> None:
        seconds: float = 2**attempt + 0.1 * attempt
        self.sleep(seconds * (1 + self.jitter * self.random()))


@dataclass(frozen=True, slots=True)
class LoadResult:
    """What a load did. `rows` counts dimension rows by action; `table_version` is Delta's newest of the dimension,
    `log_version` that of its log.

    `examples` are some of those rows as text, with their action and without personal attributes. `commit` and
    `log_commit` are the last pipeline commits of both tables.
    """

    dimension: str
    batches: tuple[BatchResult, ...]
    rows: dict[str, int]
    table_version: int
    log_version: int
    seconds: float
    examples: tuple[Mapping[str, str | None], ...] = ()
    commit: PipelineCommit | None = None
    log_commit: PipelineCommit | None = None

    @property
    def rejected(self) -> tuple[BatchResult, ...]:
        return tuple(batch for batch in self.batches if batch.outcome == "rejected")

    def raise_if_rejected(self) -> None:
        """Errors: BatchRejected for the first batch that was left out, with the number of the others."""
        if self.rejected:
            first = self.rejected[0]
            others = f" ({len(self.rejected) - 1} more stopped too)" if len(self.rejected) > 1 else ""
            raise BatchRejected(first.batch_id, first.rule, f"{first.error}{others}", first.remedy)


def plan(warehouse: Warehouse, dimension: Dimension, deliveries: Sequence[Delivery]) -> LoadPlan:
    """What a load of these deliveries would do; writes nothing."""
    return make_plan(warehouse, dimension, deliveries, run_id="")


def load(
    warehouse: Warehouse,
    dimension: Dimension,
    deliveries: Sequence[Delivery] = (),
    *,
    run_id: str = "",
    retry: Retry | None = None,
    progress: Progress = silent,
    clock: Callable[[], float] = time.monotonic,
    extension: Callable[[], Extension] | None = None,
    examples: int = 0,
    downstream: Sequence[PipelineCommit] = (),
) -> LoadResult:
    """Take the deliveries into the change log and bring the dimension up to it; several go in as one pass.

    Without deliveries it only brings the dimension up to its log, which is how a killed run is continued (S17).
    A batch that is stopped is left out and named in the result; the others go in. `extension` is asked at each
    attempt for what rows get beside what the log says. `downstream` are the last commits of other tables that apply the
    log: it has to have what they have applied.
    Errors: RetriesExhausted when rivals were faster as often as `retry` allows; KeyCollision, InvariantBroken,
    UnsupportedDelta, DeclarationError, SetupError, and ForeignCommitError and HighWaterMarkError for damaged tables,
    before anything is written.
    """
    began = clock()
    told: list[tuple[BatchResult, ...]] = []

    def attempt() -> LoadResult:
        made = make_plan(
            warehouse,
            dimension,
            () if told else deliveries,
            run_id=run_id,
            progress=progress,
            extension=extension() if extension else None,
            downstream=downstream,
        )
        log = commit_log(warehouse, made, progress)
        told.append(made.results)
        done = commit_dimension(warehouse, made, log, progress)
        shown = _examples(made, examples) if examples and made.has_actions else ()
        seconds = clock() - began
        return LoadResult(dimension.name, told[0], dict(made.rows), done.newest, log.newest, seconds, shown, done, log)

    return with_retries(dimension.name, attempt, retry or Retry(), progress)


def with_retries(table: str, attempt: Callable[[], Done], retry: Retry, progress: Progress) -> Done:
    """What the attempt returns; it is made anew when a rival was faster, as often as `retry` allows.

    A version that the attempt reads may have been replaced so long after its files' retention that Delta refuses it.

    Errors: RetriesExhausted.
    """
    for number in range(retry.attempts):
        try:
            return attempt()
        except Exception as error:
            if not (isinstance(error, ConflictError) or is_superseded(error)):
                raise
            if number == retry.attempts - 1:
                raise RetriesExhausted(
                    f"{table}: {retry.attempts} attempts lost against another writer, the last because: "
                    f"{first_line(error)}; run the load again once the other writer is done"
                ) from error
            progress(f"another writer was faster, attempt {number + 2} of {retry.attempts}")
            retry.wait(number)
    raise AssertionError("the loop returns or raises")


def _examples(made: LoadPlan, limit: int) -> tuple[Mapping[str, str | None], ...]:
    return tuple(row.asDict() for row in as_text_columns(made.examples(limit)).collect())


def commit_log(warehouse: Warehouse, made: LoadPlan, progress: Progress = silent) -> PipelineCommit:
    """Write the plan's batches and statements; with none there is no commit.  Out: the log's last pipeline commit."""
    made.prepare(warehouse)
    if not made.batches:
        return made.log_commit
    stands_for = made.log_commit.number + 1 if not made.has_actions else made.dimension_high_water_mark
    high_water_marks = {"dimension_commit": made.dimension_commit.number, "dimension_log": stands_for}
    commit = made.log_commit.next(
        high_water_marks=high_water_marks, batches=tuple(batch.id for batch in made.batches), run_id=made.run_id
    )
    done = made.log_to_write(warehouse).append(made.batches, made.statements, commit)
    progress(f"{done.table}: commit {done.number}")
    return done


def commit_dimension(
    warehouse: Warehouse, made: LoadPlan, log: PipelineCommit, progress: Progress = silent
) -> PipelineCommit:
    """Write the plan's row actions; with none there is no commit (S15).  Out: the dimension's last pipeline commit.

    A fact that was held against newer dimensions, and has all its keys already, tells so in a commit without rows.
    """
    if not (made.has_actions or made.has_looked):
        # The schema steps of a load that writes its log have created the table.
        created = replace(made.dimension_commit, newest=0)
        return created if made.batches and not made.dimension_commit.exists else made.dimension_commit
    marks = {**log_marks(log, log.number), **made.high_water_marks}
    commit = made.dimension_commit.next(high_water_marks=marks, batches=log.batches, run_id=made.run_id)
    if made.has_actions:
        done = _write_actions(warehouse, made, commit, log.engine if made.batches else "")
    else:
        done = warehouse.writable(made.dimension.name).mark(commit)
    progress(f"{made.dimension.name}: commit {commit.number}, {sum(made.rows.values())} rows")
    return done


def _write_actions(warehouse: Warehouse, made: LoadPlan, commit: PipelineCommit, engine: str) -> PipelineCommit:
    table, key = warehouse.writable_by(made.dimension.name, engine), made.dimension.surrogate_key
    if table.replaces and not made.rows.get(REMOVE):
        return table.replace(made.actions.drop(ACTION), commit, key=key)
    return table.merge(made.actions, commit, key=key, removes=f"s.{ACTION} = '{REMOVE}'")


__all__ = ["BatchResult", "Delivery", "LoadPlan", "LoadResult", "Retry", "load", "plan"]
