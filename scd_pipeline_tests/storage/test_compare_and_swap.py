from __future__ import annotations

import threading
from dataclasses import replace
from typing import Any

import pytest

from scd_pipeline.delta.commits import OwnCommit
from scd_pipeline.errors import ConflictError, OwnCommitMissing, RetriesExhausted, UnsupportedDelta
from scd_pipeline.load import Retry, commit_dimension, commit_log, load, plan
from scd_pipeline.spec import Attribute
from scd_pipeline.warehouse import Warehouse
from scd_pipeline_tests.storage.customers import CUSTOMER, feed, history
from scd_pipeline_tests.text_tables import assert_same_rows

BOTH_CHANGES = """
| id | city  | from       | to         | version |
| a  | Rome  | 2024-01-01 | 2024-02-01 | 1       |
| a  | Oslo  | 2024-02-01 | 2024-03-01 | 2       |
| a  | Paris | 2024-03-01 |            | 3       |
"""


@pytest.fixture(params=["replaceUsing", pytest.param("MERGE", marks=pytest.mark.slow)])
def loaded(request: pytest.FixtureRequest, in_rome: Warehouse) -> Warehouse:
    """One customer in Rome since January, to be written in the fast way or in the slow one (S32)."""
    in_rome.capabilities = replace(in_rome.capabilities, replaces=request.param == "replaceUsing")
    return in_rome


def test_a_log_write_computed_before_a_rivals_commit_is_refused(loaded: Warehouse) -> None:
    made = plan(loaded, CUSTOMER, [feed("one", ("a", 2, "Oslo"))])
    load(loaded, CUSTOMER, [feed("two", ("a", 3, "Paris"))])
    with pytest.raises(ConflictError, match="another writer made commit 2 first"):
        commit_log(loaded, made)
    load(loaded, CUSTOMER, [feed("one", ("a", 2, "Oslo"))])
    assert_same_rows(BOTH_CHANGES, history(loaded))


def test_a_dimension_write_computed_before_a_rivals_commit_is_refused(loaded: Warehouse) -> None:
    """The lost update: without the swap the frame below would leave two current rows."""
    made = plan(loaded, CUSTOMER, [feed("one", ("a", 2, "Oslo"))])
    log = commit_log(loaded, made)
    load(loaded, CUSTOMER, [feed("two", ("a", 3, "Paris"))])
    with pytest.raises(ConflictError):
        commit_dimension(loaded, made, log)
    assert_same_rows(BOTH_CHANGES, history(loaded))


@pytest.mark.slow
@pytest.mark.rule("S20")
def test_a_schema_step_that_a_rival_took_first_is_planned_anew(loaded: Warehouse) -> None:
    """By the columns as they are then, it is no step any more."""
    town = Attribute(2, former_names=("city",), missing="not_provided")
    renamed, more = {"email": 1, "town": town}, {"email": 1, "town": town, "tier": Attribute(2, missing="not_provided")}
    for attributes, month in ((renamed, 2), (more, 3)):
        changed = replace(CUSTOMER, attributes=attributes)
        made = plan(loaded, changed, [feed("one", ("a", month, "Oslo"))])
        plan(loaded, changed, [feed("two", ("b", month, "Paris"))]).prepare(loaded)
        with pytest.raises(ConflictError, match="another writer was faster than ALTER"):
            made.prepare(loaded)
        assert plan(loaded, changed, [feed("one", ("a", month, "Oslo"))]).schema_steps == ()


@pytest.mark.parametrize("rival", [False, pytest.param(True, marks=pytest.mark.slow)], ids=["alone", "beside a rival"])
def test_an_optimize_in_between_does_no_harm(loaded: Warehouse, rival: bool) -> None:
    """It makes a commit of Delta's that is none of ours: alone the write goes on, and a rival's is still seen."""
    load(loaded, CUSTOMER, [feed("zero", ("b", 1, "Bonn"))])
    made = plan(loaded, CUSTOMER, [feed("one", ("a", 2, "Oslo"))])
    for name in (CUSTOMER.name, f"{CUSTOMER.name}_changes"):
        before = _delta_version(loaded, name)
        loaded.table(name).compact()
        assert _delta_version(loaded, name) == before + 1
    if rival:
        load(loaded, CUSTOMER, [feed("two", ("a", 3, "Paris"))])
        with pytest.raises(ConflictError):
            commit_log(loaded, made)
        load(loaded, CUSTOMER, [feed("one", ("a", 2, "Oslo"))])
    else:
        commit_dimension(loaded, made, commit_log(loaded, made))
        load(loaded, CUSTOMER, [feed("two", ("a", 3, "Paris"))])
    assert_same_rows(BOTH_CHANGES, [row for row in history(loaded) if row["id"] == "a"])


def _delta_version(warehouse: Warehouse, name: str) -> int:
    rows = warehouse.spark.sql(f"DESCRIBE HISTORY {warehouse.table(name).identifier} LIMIT 1").collect()
    return int(rows[0]["version"])


def test_two_runs_at_once_both_end_in_history(loaded: Warehouse) -> None:
    """Both changes are in history, with one current row."""
    failures: list[BaseException] = []
    gate = threading.Barrier(2)

    def run(name: str, month: int, city: str) -> None:
        try:
            gate.wait()
            load(loaded, CUSTOMER, [feed(name, ("a", month, city))], retry=Retry(sleep=lambda s: None))
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=run, args=args) for args in (("one", 2, "Oslo"), ("two", 3, "Paris"))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    assert_same_rows(BOTH_CHANGES, history(loaded))


class Rival:
    """Commits to the log whenever a load is about to wait: the load always loses."""

    def __init__(self, warehouse: Warehouse, wins: int) -> None:
        self.warehouse, self.wins = warehouse, wins
        self.waits: list[float] = []

    def meddle(self, number: int) -> None:
        if number < self.wins:
            load(self.warehouse, CUSTOMER, [feed(f"rival {number}", ("z", number + 1, "Bonn"))])

    def sleep(self, seconds: float) -> None:
        self.waits.append(seconds)


@pytest.fixture
def rivalled(loaded: Warehouse, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Make a rival commit to the log between plan and write of the next loads, `wins` times."""

    def with_wins(wins: int) -> Rival:
        rival, original = Rival(loaded, wins), commit_log
        count = iter(range(100))

        def after_a_rival(*args: Any) -> OwnCommit:
            monkeypatch.setattr("scd_pipeline.load.commit_log", original)
            rival.meddle(next(count))
            monkeypatch.setattr("scd_pipeline.load.commit_log", after_a_rival)
            return original(*args)

        monkeypatch.setattr("scd_pipeline.load.commit_log", after_a_rival)
        return rival

    return with_wins


@pytest.mark.slow
def test_a_load_that_lost_is_computed_anew_with_growing_waits(loaded: Warehouse, rivalled: Any) -> None:
    """1.0, 2.1, 4.2 seconds, then it wins."""
    rival = rivalled(3)
    load(loaded, CUSTOMER, [feed("one", ("a", 2, "Oslo"))], retry=Retry(sleep=rival.sleep, random=lambda: 0.0))
    assert rival.waits == [1.0, 2.1, 4.2]
    rows = [row for row in history(loaded) if row["id"] == "a"]
    assert {row["city"] for row in rows} == {"Rome", "Oslo"}


@pytest.mark.slow
def test_exhausted_retries_leave_the_table_and_say_so(loaded: Warehouse, rivalled: Any) -> None:
    """The run fails, its batch is nowhere, and the next run goes on."""
    rival = rivalled(2)
    with pytest.raises(RetriesExhausted, match=r"2 attempts lost against another writer.*run the load again"):
        load(loaded, CUSTOMER, [feed("one", ("a", 2, "Oslo"))], retry=Retry(attempts=2, sleep=rival.sleep))
    assert "Oslo" not in {row["city"] for row in history(loaded)}
    load(loaded, CUSTOMER, [feed("one", ("a", 2, "Oslo"))])
    assert "Oslo" in {row["city"] for row in history(loaded)}


def test_a_table_without_deletion_vectors_is_refused(loaded: Warehouse) -> None:
    if not loaded.capabilities.replaces:
        return
    table = loaded.table(CUSTOMER.name).identifier
    loaded.spark.sql(f"ALTER TABLE {table} SET TBLPROPERTIES ('delta.enableDeletionVectors' = 'false')")
    with pytest.raises(UnsupportedDelta, match="deletion vectors are off"):
        load(loaded, CUSTOMER, [feed("one", ("a", 2, "Oslo"))])
    assert len(history(loaded)) == 1


def test_an_own_commit_that_cannot_be_found_is_an_error(loaded: Warehouse, monkeypatch: pytest.MonkeyPatch) -> None:
    """A history that no longer reaches back to one: numbering from 1 again would let Delta skip every write."""
    monkeypatch.setattr("scd_pipeline.delta.commits._PAGES", (1,))
    loaded.spark.sql(f"OPTIMIZE {loaded.table(CUSTOMER.name).identifier}")
    table = loaded.table(CUSTOMER.name)
    loaded.spark.sql(f"ALTER TABLE {table.identifier} SET TBLPROPERTIES ('a' = 'b')")
    with pytest.raises(OwnCommitMissing, match="no commit of this package is left in its history"):
        table.last_commit()
