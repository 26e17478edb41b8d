"""The use-cases: plan what some deliveries would do, and load them. Everything that can stop a batch is decided in
the plan, before anything is written; a load applies the plan with one commit per table and tells what it did."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from scd_pipeline.columns import as_texts
from scd_pipeline.deliveries import Delivery
from scd_pipeline.delta.commits import OwnCommit
from scd_pipeline.errors import BatchStopped, ConflictError, RetriesExhausted
from scd_pipeline.history.actions import ACTION, REMOVE
from scd_pipeline.plan import BatchResult, Extension, LoadPlan, make_plan
from scd_pipeline.spec import Dimension
from scd_pipeline.warehouse import Warehouse

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
    """What a load did. `rows` counts dimension rows by action; `table_version` is Delta's, of the dimension.

    `examples` are some of those rows as text, with their action and without personal attributes.
    """

    dimension: str
    batches: tuple[BatchResult, ...]
    rows: dict[str, int]
    table_version: int
    log_version: int
    seconds: float
    examples: tuple[Mapping[str, str | None], ...] = ()

    @property
    def stopped(self) -> tuple[BatchResult, ...]:
        return tuple(batch for batch in self.batches if batch.outcome == "stopped")

    def raise_if_stopped(self) -> None:
        """Errors: BatchStopped for the first batch that was left out, with the number of the others."""
        if self.stopped:
            first = self.stopped[0]
            others = f" ({len(self.stopped) - 1} more stopped too)" if len(self.stopped) > 1 else ""
            raise BatchStopped(first.batch_id, first.rule, f"{first.error}{others}", first.remedy)


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
) -> LoadResult:
    """Take the deliveries into the change log and bring the dimension up to it; several go in as one pass.

    Without deliveries it only brings the dimension up to its log, which is how a killed run is continued (S17).
    A batch that is stopped is left out and named in the result; the others go in. `extension` is asked at each
    attempt for what rows get beside what the log says.
    Errors: RetriesExhausted when rivals were faster as often as `retry` allows; KeyCollision, InvariantBroken,
    UnsupportedDelta, DeclarationError and SetupError before anything is written.
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
        )
        log = commit_log(warehouse, made, progress)
        told.append(made.results)
        done = commit_dimension(warehouse, made, log, progress)
        shown = _examples(made, examples) if examples and made.has_actions else ()
        seconds = clock() - began
        return LoadResult(
            dimension.name, told[0], dict(made.rows), done.table_version, log.table_version, seconds, shown
        )

    return with_retries(dimension.name, attempt, retry or Retry(), progress)


def with_retries(table: str, attempt: Callable[[], Done], retry: Retry, progress: Progress) -> Done:
    """What the attempt returns; it is made anew when a rival was faster, as often as `retry` allows.

    Errors: RetriesExhausted.
    """
    for number in range(retry.attempts):
        try:
            return attempt()
        except ConflictError as error:
            if number == retry.attempts - 1:
                raise RetriesExhausted(
                    f"{table}: {retry.attempts} attempts lost against another writer, the last because: "
                    f"{error}; run the load again once the other writer is done"
                ) from error
            progress(f"another writer was faster, attempt {number + 2} of {retry.attempts}")
            retry.wait(number)
    raise AssertionError("the loop returns or raises")


def _examples(made: LoadPlan, limit: int) -> tuple[Mapping[str, str | None], ...]:
    return tuple(row.asDict() for row in as_texts(made.examples(limit)).collect())


def commit_log(warehouse: Warehouse, made: LoadPlan, progress: Progress = silent) -> OwnCommit:
    """Write the plan's batches and statements; with none there is no commit.  Out: the log's last own commit."""
    made.prepare(warehouse)
    if not made.batches:
        return made.log_commit
    stands_for = made.log_commit.number + 1 if not made.has_actions else made.dimension_took
    took = {"dimension_commit": made.dimension_commit.number, "dimension_log": stands_for}
    commit = made.log_commit.next(took=took, batches=tuple(batch.id for batch in made.batches), run_id=made.run_id)
    done = made.log_to_write(warehouse).append(made.batches, made.statements, commit)
    progress(f"{done.table}: commit {done.number}")
    return done


def commit_dimension(warehouse: Warehouse, made: LoadPlan, log: OwnCommit, progress: Progress = silent) -> OwnCommit:
    """Write the plan's row actions; with none there is no commit (S15).  Out: the dimension's last own commit.

    A fact that was held against newer dimensions, and has all its keys already, tells so in a commit without rows.
    """
    if not (made.has_actions or made.has_looked):
        return made.dimension_commit
    table = warehouse.writable(made.dimension.name)
    commit = made.dimension_commit.next(took={"log": log.number, **made.took}, batches=log.batches, run_id=made.run_id)
    key = made.dimension.surrogate_key
    if not made.has_actions:
        done = table.mark(commit)
    elif table.replaces and not made.rows.get(REMOVE):
        done = table.replace(made.actions.drop(ACTION), commit, key=key)
    else:
        done = table.merge(made.actions, commit, key=key, removes=f"s.{ACTION} = '{REMOVE}'")
    progress(f"{made.dimension.name}: commit {commit.number}, {sum(made.rows.values())} rows")
    return done


__all__ = ["BatchResult", "Delivery", "LoadPlan", "LoadResult", "Retry", "load", "plan"]
