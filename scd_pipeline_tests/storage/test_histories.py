"""Which commit determines the rows of a table, by its history: the last pipeline commit, or a foreign one."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from datetime import datetime
from typing import Any

import pytest

from scd_pipeline.delta.commits import METADATA_KEY, HighWaterMark, PipelineCommit, _foreign_after, _history_row
from scd_pipeline.delta.repair_instructions import repair_instructions
from scd_pipeline.delta.upstream import log_error
from scd_pipeline.delta_operations import ENFORCE_TIME_TRAVEL_RETENTION
from scd_pipeline.instants import from_micros

PIPELINE = "PIPELINE"
RESTORE = (
    f"`R` (if Delta refuses a version of more than a week ago, first `SET {ENFORCE_TIME_TRAVEL_RETENTION} = false`)"
)


@pytest.mark.parametrize(
    ("history", "foreign"),
    [
        ("PIPELINE", None),
        ("PIPELINE, OPTIMIZE, VACUUM START, VACUUM END, SET TBLPROPERTIES, ADD COLUMNS", None),
        ("PIPELINE, DELETE", "version 1: DELETE"),
        ("PIPELINE, UPDATE, OPTIMIZE", "version 1: UPDATE"),
        ("PIPELINE, DROP COLUMNS", "version 1: DROP COLUMNS"),
        ("PIPELINE, WRITE, MERGE", "version 2: MERGE"),
        ("PIPELINE, DELETE, PIPELINE", None),
        ("PIPELINE, DELETE, RESTORE 0", None),
        ("PIPELINE, OPTIMIZE, DELETE, RESTORE 1", None),
        ("PIPELINE, DELETE, RESTORE 0, RESTORE 2, VACUUM START", None),
        ("PIPELINE, DELETE, UPDATE, RESTORE 1", "version 1: DELETE"),
        ("PIPELINE, DELETE, RESTORE 0, DELETE", "version 3: DELETE"),
        ("PIPELINE, PIPELINE, RESTORE 0", "version 2: RESTORE to version 0"),
        ("PIPELINE, PIPELINE, DELETE, RESTORE 1, RESTORE 0", "version 4: RESTORE to version 0"),
        ("PIPELINE, RESTORE", "version 1: RESTORE"),
    ],
)
def test_a_foreign_commit_is_one_that_determines_the_rows(history: str, foreign: str | None) -> None:
    """A number is the version that was restored; a RESTORE without one is to a time."""
    rows = [_row(version, operation.strip()) for version, operation in enumerate(history.split(","))]
    last = max(row["version"] for row in rows if row["operation"] == PIPELINE)
    commit = _foreign_after(list(reversed(rows)), PipelineCommit("dim_x", 1, table_version=last), "delta.`/dim_x`")
    text = f"version {commit.table_version}: {commit.operation}" if commit else None
    assert text == foreign
    if commit:
        assert commit.restore_statement() == f"RESTORE TABLE delta.`/dim_x` TO VERSION AS OF {last}"


def _row(version: int, operation: str) -> dict[str, Any]:
    name, _, target = operation.partition(" ")
    restored = int(target) if name == "RESTORE" and target else None
    return {"version": version, "operation": name if name == "RESTORE" else operation, "restored": restored}


@pytest.fixture
def in_berlin(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The process in a time zone in which an hour of each autumn is repeated."""
    with monkeypatch.context() as patched:
        patched.setenv("TZ", "Europe/Berlin")
        time.tzset()
        yield
    time.tzset()


@pytest.mark.usefixtures("in_berlin")
def test_both_times_of_a_repeated_hour_are_read_from_a_history() -> None:
    """PySpark collects the time of a commit as a local time, embedded, and the pipeline as microseconds otherwise."""
    row = {"version": 1, "userMetadata": None, "operation": "WRITE", "operationParameters": {}, "engineInfo": None}
    seconds = [1_792_886_400 + 3600 * hour for hour in range(3)]  # 2:00, again 2:00 and 3:00 in Berlin
    for second in seconds:
        times = (datetime.fromtimestamp(second), second * 1_000_000)
        assert [_history_row(row | {"timestamp": at})["micros"] for at in times] == [second * 1_000_000] * 2
    assert len({datetime.fromtimestamp(second).replace(fold=0) for second in seconds}) == 2
    assert from_micros(seconds[0] * 1_000_000).isoformat() == "2026-10-25T00:00:00+00:00"


@pytest.mark.parametrize(
    ("applied", "applied_id", "number", "log_id", "code"),
    [
        (0, 0, 0, 0, None),
        (5, 7, 5, 7, None),
        (5, 7, 6, 7, None),
        (5, 0, 5, 7, None),
        (5, 7, 5, 0, None),
        (5, 7, 4, 7, "LOG_COMMITS_LOST"),
        (5, 0, 4, 0, "LOG_COMMITS_LOST"),
        (5, 7, 9, 8, "LOG_REPLACED"),
    ],
)
def test_a_log_without_its_applied_commits_is_a_problem(
    applied: int, applied_id: int, number: int, log_id: int, code: str | None
) -> None:
    """By numbers, and by the identity of the log where both are known."""
    log = PipelineCommit("dim_x_changes", number, newest=number, table_id=log_id)
    error = log_error(PipelineCommit("dim_x", 3, {log.table: HighWaterMark(applied, applied_id)}), log)
    assert (None if error is None else error.code) == code
    assert error is None or (error.location, error.details["applied"]) == ("table dim_x", 5)


def test_a_table_keeps_its_identity_in_each_commit() -> None:
    first = PipelineCommit("dim_x", 0).next()
    second = first.next()
    assert first.table_id == second.table_id != 0
    assert json.loads(second.metadata())["table_id"] == second.table_id
    assert METADATA_KEY in json.loads(second.metadata())
    assert PipelineCommit("dim_x", 0).next().table_id != first.table_id


@pytest.mark.parametrize(
    ("table", "instructions"),
    [
        ("dim_x", "run `scd repair dim_x`, or `R`"),
        ("dim_x_history", "run `scd repair dim_x`, or `R`"),
        ("dim_x_changes", "run `R`; no other table can rebuild it; restore the files that it had"),
        (
            "dim_x_audit",
            "run `R`, or drop the table: a load rebuilds it from the change log, without withdrawn transitions, "
            "repairs and keys of removed versions",
        ),
    ],
)
def test_repair_instructions_name_the_source_of_a_rebuild(table: str, instructions: str) -> None:
    assert repair_instructions(table, "R") == instructions.replace("`R`", RESTORE)


def test_a_fact_is_rebuilt_by_a_load() -> None:
    instructions = repair_instructions("fct_y", "R", is_fact=True)
    assert instructions == f"run {RESTORE}, or drop the table: a load rebuilds it from its change log"
