"""Which errors are write conflicts, and how a load is retried after them."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from scd_pipeline.delta.table import is_conflict
from scd_pipeline.errors import ConflictError, RetriesExhausted
from scd_pipeline.load.retry import Retry, ignore_progress, with_retries
from scd_pipeline_tests.semantics.specification import requirement


def conflict(_: str) -> Exception:
    return ConflictError("WRITE_CONFLICT", "table dim_x", number=7, previous=6)


class FailingAttempt:
    """An attempt that fails `failures` times; `waits` are the seconds between its tries."""

    def __init__(self, failures: int, error: Callable[[str], Exception] | None = None) -> None:
        self.failures, self.error, self.tries = failures, error or conflict, 0
        self.waits: list[float] = []

    def __call__(self, number: int) -> str:
        assert number == self.tries
        self.tries += 1
        if self.tries <= self.failures:
            raise self.error("another writer committed first")
        return "done"

    def run(self, share: float = 0.0) -> str:
        return with_retries("dim_x", self, Retry(sleep=self.waits.append, random=lambda: share), ignore_progress)


@requirement("F50", "F65")
@pytest.mark.parametrize(
    ("failures", "waits"),
    [(0, []), (1, [1.0]), (2, [1.0, 2.1]), (3, [1.0, 2.1, 4.2]), (4, [1.0, 2.1, 4.2, 8.3])],
)
def test_waits_grow_with_each_conflict(failures: int, waits: list[float]) -> None:
    attempt = FailingAttempt(failures)
    assert attempt.run() == "done"
    assert [round(wait, 3) for wait in attempt.waits] == waits


@requirement("F50")
def test_a_wait_is_longer_by_up_to_a_quarter() -> None:
    """So that two writers do not conflict again."""
    attempt = FailingAttempt(2)
    attempt.run(share=1.0)
    assert [round(wait, 3) for wait in attempt.waits] == [1.25, 2.625]
    assert len({Retry().random() for _ in range(9)}) > 1


@requirement("F50", "F51")
def test_the_load_fails_after_five_conflicts() -> None:
    attempt = FailingAttempt(5)
    with pytest.raises(RetriesExhausted) as raised:
        attempt.run()
    assert raised.value.details["attempts"] == 5 and "WRITE_CONFLICT" in str(raised.value.details["last"])
    assert [round(wait, 3) for wait in attempt.waits] == [1.0, 2.1, 4.2, 8.3]
    assert attempt.tries == 5


class Superseded(Exception):
    """What Delta raises for a version that another writer replaced after the retention of its files had passed."""

    def __init__(self, message: str) -> None:
        super().__init__(f"[DELTA_UNSUPPORTED_TIME_TRAVEL_BEYOND_DELETED_FILE_RETENTION_DURATION] {message}\nJVM stack")


@requirement("F50")
def test_a_read_of_a_version_that_another_writer_replaced_is_retried() -> None:
    attempt = FailingAttempt(1, Superseded)
    assert attempt.run() == "done"
    with pytest.raises(RetriesExhausted) as raised:
        FailingAttempt(5, Superseded).run()
    assert "RETENTION_DURATION" in raised.value.details["last"]


class ExecutorLost(Exception):
    """What Spark raises for the rows of a local checkpoint whose executor was lost."""

    def __init__(self, message: str) -> None:
        super().__init__(f"[CHECKPOINT_RDD_BLOCK_ID_NOT_FOUND] Checkpoint block rdd_7_0 not found! {message}")


@requirement("F50")
def test_a_load_that_lost_an_executor_is_retried() -> None:
    attempt, messages = FailingAttempt(1, ExecutorLost), list[str]()
    assert with_retries("dim_x", attempt, Retry(sleep=attempt.waits.append), messages.append) == "done"
    assert messages == ["dim_x: computed rows lost with their executor, retrying (attempt 2 of 5)"]


def test_a_load_that_loses_an_executor_at_each_attempt_fails() -> None:
    """The message has the cause, and what to do about it."""
    attempt = FailingAttempt(5, ExecutorLost)
    with pytest.raises(RetriesExhausted) as raised:
        attempt.run()
    assert raised.value.details["attempts"] == attempt.tries == 5
    message = str(raised.value)
    assert "dim_x" in message and "lost computed rows" in message
    assert "[CHECKPOINT_RDD_BLOCK_ID_NOT_FOUND] Checkpoint block rdd_7_0 not found!" in message
    assert "repeat the operation when" in message and "the cluster loses no executors" in message


@requirement("F50")
def test_other_errors_are_not_retried() -> None:
    attempt = FailingAttempt(1, ValueError)
    with pytest.raises(ValueError, match="another writer committed first"):
        attempt.run()
    assert (attempt.tries, attempt.waits) == (1, [])


@requirement("F50")
@pytest.mark.parametrize(
    ("text", "conflict"),
    [
        ("[DELTA_CONCURRENT_APPEND.WITHOUT_HINT] Transaction conflict detected.", True),
        ("[DELTA_CONCURRENT_DELETE_READ] This transaction attempted to read files that were deleted", True),
        ("[DELTA_CONCURRENT_DELETE_DELETE] This transaction attempted to delete files that were deleted", True),
        ("[DELTA_CONCURRENT_TRANSACTION] This error occurs when multiple streaming queries are using one check", True),
        ("[DELTA_METADATA_CHANGED] The metadata of the Delta table has been changed by a concurrent update.", True),
        ("[DELTA_PROTOCOL_CHANGED] The protocol version has been changed by a concurrent update.", True),
        ("(io.delta.exceptions.ConcurrentTransactionException) This error occurs when multiple streams", True),
        ("io.delta.exceptions.ConcurrentWriteException: A concurrent transaction has written new data", True),
        ("[DELTA_TABLE_NOT_FOUND] Delta table `dim_x` doesn't exist.", False),
        ("[UNRESOLVED_COLUMN.WITH_SUGGESTION] A column `concurrent` cannot be resolved.", False),
        ("java.io.IOException: No space left on device", False),
    ],
)
def test_conflicts_are_distinguished_from_other_errors(text: str, conflict: bool) -> None:
    """By Delta's message, as Connect passes nothing else."""
    assert is_conflict(RuntimeError(text)) is conflict
