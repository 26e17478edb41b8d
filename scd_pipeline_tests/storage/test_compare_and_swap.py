from __future__ import annotations

import os
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
from pyspark.sql import DataFrame

from scd_pipeline.components.failures import as_dagster_failure
from scd_pipeline.declaration import Attribute
from scd_pipeline.delta import capabilities
from scd_pipeline.delta.commits import PipelineCommit
from scd_pipeline.delta.table import Table
from scd_pipeline.delta.warehouse import Warehouse
from scd_pipeline.errors import ConflictError, PipelineCommitMissing, RetriesExhausted, UnsupportedDelta
from scd_pipeline.load import load_plan
from scd_pipeline.load.log import read_log
from scd_pipeline.load.retry import Retry
from scd_pipeline.load.run import commit_log, commit_table, ingest_and_apply, plan
from scd_pipeline_tests.orchestration.test_sensors import alert_for_a_run_that_fails_with, webhook
from scd_pipeline_tests.semantics.specification import requirement
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
    """One customer in Rome since January, written by replaceUsing or by MERGE (S32)."""
    in_rome.capabilities = replace(in_rome.capabilities, replaces=request.param == "replaceUsing")
    return in_rome


@pytest.mark.slow
def test_a_log_write_planned_before_another_writers_commit_is_a_conflict(loaded: Warehouse) -> None:
    outdated_plan = plan(loaded, CUSTOMER, [feed("one", ("a", 2, "Oslo"))])
    ingest_and_apply(loaded, CUSTOMER, [feed("two", ("a", 3, "Paris"))])
    with pytest.raises(ConflictError, match="WRITE_CONFLICT"):
        commit_log(loaded, outdated_plan)
    ingest_and_apply(loaded, CUSTOMER, [feed("one", ("a", 2, "Oslo"))])
    assert_same_rows(BOTH_CHANGES, history(loaded))


@requirement("F29", "F49", "F64")
def test_a_dimension_write_planned_before_another_writers_commit_is_a_conflict(loaded: Warehouse) -> None:
    """The lost update: without compare-and-swap this write would leave two current versions."""
    outdated_plan = plan(loaded, CUSTOMER, [feed("one", ("a", 2, "Oslo"))])
    log = commit_log(loaded, outdated_plan)
    ingest_and_apply(loaded, CUSTOMER, [feed("two", ("a", 3, "Paris"))])
    with pytest.raises(ConflictError):
        commit_table(loaded, outdated_plan, log)
    assert_same_rows(BOTH_CHANGES, history(loaded))


@pytest.mark.slow
@pytest.mark.rule("S14", "S17")
def test_a_dimension_write_of_a_delivery_that_another_writer_withdrew_is_a_conflict(loaded: Warehouse) -> None:
    """Both deliveries together change no row, so the second load has only to prevent the write of the first."""
    outdated_plan = plan(loaded, CUSTOMER, [feed("one", ("a", 2, "Oslo"))])
    log = commit_log(loaded, outdated_plan)
    before = history(loaded)
    assert ingest_and_apply(loaded, CUSTOMER, [feed("one", revision=2, withdrawn=True)]).row_counts == {}
    with pytest.raises(ConflictError):
        commit_table(loaded, outdated_plan, log)
    assert_same_rows(before, history(loaded))
    newest = loaded.table(CUSTOMER.name).newest_version()
    assert ingest_and_apply(loaded, CUSTOMER).row_counts == {}
    assert loaded.table(CUSTOMER.name).newest_version() == newest


@pytest.mark.slow
@pytest.mark.rule("S20")
def test_a_schema_step_that_another_writer_executed_first_is_a_conflict(loaded: Warehouse) -> None:
    """A new plan has no schema step, as the columns exist."""
    town = Attribute(2, former_names=("city",), missing="not_provided")
    renamed, more = {"email": 1, "town": town}, {"email": 1, "town": town, "tier": Attribute(2, missing="not_provided")}
    for attributes, month in ((renamed, 2), (more, 3)):
        changed = replace(CUSTOMER, attributes=attributes)
        outdated_plan = plan(loaded, changed, [feed("one", ("a", month, "Oslo"))])
        plan(loaded, changed, [feed("two", ("b", month, "Paris"))]).prepare(loaded)
        with pytest.raises(ConflictError, match="SCHEMA_CONFLICT"):
            outdated_plan.prepare(loaded)
        assert plan(loaded, changed, [feed("one", ("a", month, "Oslo"))]).schema_steps == ()


@pytest.mark.slow
@pytest.mark.parametrize("is_concurrent", [False, True], ids=["one writer", "concurrent writer"])
def test_an_optimize_between_plan_and_write_is_not_a_conflict(loaded: Warehouse, is_concurrent: bool) -> None:
    """It makes no pipeline commit. The commit of a concurrent writer is still a conflict."""
    ingest_and_apply(loaded, CUSTOMER, [feed("zero", ("b", 1, "Bonn"))])
    first_plan = plan(loaded, CUSTOMER, [feed("one", ("a", 2, "Oslo"))])
    for name in (CUSTOMER.name, f"{CUSTOMER.name}_changes"):
        before = _delta_version(loaded, name)
        loaded.table(name).compact()
        assert _delta_version(loaded, name) == before + 1
    if is_concurrent:
        ingest_and_apply(loaded, CUSTOMER, [feed("two", ("a", 3, "Paris"))])
        with pytest.raises(ConflictError):
            commit_log(loaded, first_plan)
        ingest_and_apply(loaded, CUSTOMER, [feed("one", ("a", 2, "Oslo"))])
    else:
        commit_table(loaded, first_plan, commit_log(loaded, first_plan))
        ingest_and_apply(loaded, CUSTOMER, [feed("two", ("a", 3, "Paris"))])
    assert_same_rows(BOTH_CHANGES, [row for row in history(loaded) if row["id"] == "a"])


def _delta_version(warehouse: Warehouse, name: str) -> int:
    rows = warehouse.spark.sql(f"DESCRIBE HISTORY {warehouse.table(name).identifier} LIMIT 1").collect()
    return int(rows[0]["version"])


def test_a_commit_that_another_commit_follows_is_not_a_conflict(
    loaded: Warehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    table, original = loaded.table(CUSTOMER.name), Table._save
    commit = table.last_commit().next(high_water_marks={}, batches=(), run_id="")
    next_commits = [commit.next(high_water_marks={}, batches=(), run_id="")]

    def followed(self: Table, rows: DataFrame, mode: str, options: dict[str, str], first: PipelineCommit) -> None:
        original(self, rows, mode, options, first)
        original(self, rows, mode, options, next_commits.pop())

    monkeypatch.setattr(Table, "_save", followed)
    done = table.commit_empty(commit)
    assert (done.token, done.newest) == (commit.token, done.table_version + 1)


@pytest.mark.slow
def test_a_plan_reads_every_table_at_one_version(loaded: Warehouse, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another writer commits to both tables while the plan is computed; its write is then a conflict."""
    late = feed("one", ("a", 2, "Oslo"))
    expected_plan, log = plan(loaded, CUSTOMER, [late]), read_log(loaded, CUSTOMER)
    original = load_plan.accept

    def after_another_writer(*args: Any, **more: Any) -> Any:
        monkeypatch.setattr(load_plan, "accept", original)
        ingest_and_apply(loaded, CUSTOMER, [feed("two", ("a", 3, "Paris"))])
        return original(*args, **more)

    monkeypatch.setattr(load_plan, "accept", after_another_writer)
    outdated_plan = plan(loaded, CUSTOMER, [late])
    assert_same_rows(outdated_plan.changed_rows.toArrow().to_pylist(), expected_plan.changed_rows.toArrow().to_pylist())
    assert [batch.delivery for batch in log.batches()] == ["2024-01-01"]
    assert log.rows().count() == 1
    with pytest.raises(ConflictError, match="WRITE_CONFLICT"):
        commit_log(loaded, outdated_plan)


@pytest.mark.slow
@pytest.mark.rule("S32")
@pytest.mark.usefixtures("each_warehouse_probes")
@pytest.mark.parametrize("continued", [False, True], ids=["a load", "a run that continues a killed one"])
def test_capabilities_that_a_server_with_another_delta_stored_are_not_used(
    in_rome: Warehouse, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, continued: bool
) -> None:
    """A Delta before 4.3 on the class path of the same Spark ignores replaceUsing and overwrites the whole table."""
    shutil.copytree(in_rome.path, tmp_path / "copy", ignore=shutil.ignore_patterns("_scd_capabilities"))
    this = in_rome.capabilities
    answers = [replace(this, engine="another Delta", replaces=True), replace(this, replaces=False, merges=True)]
    monkeypatch.setattr(capabilities, "probe", lambda *_: answers.pop(0))
    stored = Warehouse(in_rome.spark, tmp_path / "copy")
    assert stored.capabilities.engine == "another Delta"
    monkeypatch.setattr(Table, "replace", None)
    late = [feed("one", ("a", 2, "Oslo"))]
    if continued:
        commit_log(stored, plan(stored, CUSTOMER, late))
    for _ in range(2):  # the probed capabilities are stored in addition to the others
        opened = Warehouse(in_rome.spark, tmp_path / "copy")
        ingest_and_apply(opened, CUSTOMER, [] if continued else late)
        late = [feed("two", ("a", 3, "Paris"))]
        continued = False
    assert (answers, opened.capabilities.engine) == ([], this.engine)
    assert_same_rows(BOTH_CHANGES, history(opened))


# One of two writers: it plans, waits until the other has planned too, commits, and prints its waits.
WRITER = """
import sys
import time
from dataclasses import replace
from pathlib import Path

from scd_pipeline.delta.warehouse import Warehouse
from scd_pipeline.load import run
from scd_pipeline.load.retry import Retry
from scd_pipeline.spark.session import connect_spark
from scd_pipeline_tests.storage.customers import CUSTOMER, feed

url, folder, gate, name, month, city, writes = sys.argv[1:]
commit_log = run.commit_log


def commit_when_both_have_planned(*arguments):
    run.commit_log = commit_log
    (Path(gate) / name).touch()
    deadline = time.monotonic() + 300
    while len(list(Path(gate).iterdir())) < 2 and time.monotonic() < deadline:
        time.sleep(0.01)
    return commit_log(*arguments)


run.commit_log = commit_when_both_have_planned
warehouse = Warehouse(connect_spark(url), folder)
warehouse.capabilities = replace(warehouse.capabilities, replaces=writes == "replaceUsing")
waits = []
run.ingest_and_apply(warehouse, CUSTOMER, [feed(name, ("a", int(month), city))], retry=Retry(sleep=waits.append))
print(len(waits))
"""


@requirement("F29", "F49")
@pytest.mark.slow(20)
def test_two_writers_that_conflict_both_load_their_changes(
    loaded: Warehouse, remote: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """Two processes plan on the same tables: one of them has conflicts, and both changes are in the history."""
    if not remote:
        pytest.skip("the tests have no server")
    gate = tmp_path / "planned"
    gate.mkdir()
    writes = "replaceUsing" if loaded.capabilities.replaces else "MERGE"
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", WRITER, remote, str(loaded.path), str(gate), name, month, city, writes],
            env={name: text for name, text in os.environ.items() if not name.startswith("SPARK_")},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for name, month, city in (("one", "2", "Oslo"), ("two", "3", "Paris"))
    ]
    outputs = [process.communicate(timeout=600) for process in processes]
    assert [process.returncode for process in processes] == [0, 0], outputs
    assert {path.name for path in gate.iterdir()} == {"one", "two"}
    assert sum(int(output) for output, _ in outputs) >= 1, "the second writer to commit had to plan again"
    assert_same_rows(BOTH_CHANGES, history(Warehouse(loaded.spark, loaded.path)))


class ConcurrentWriter:
    """Commits to the log before the first attempts of a load, so that each of them is a write conflict."""

    def __init__(self, warehouse: Warehouse, conflicts: int) -> None:
        self.warehouse, self.conflicts = warehouse, conflicts
        self.waits: list[float] = []

    def commit(self, number: int) -> None:
        if number < self.conflicts:
            ingest_and_apply(self.warehouse, CUSTOMER, [feed(f"concurrent {number}", ("z", number + 1, "Bonn"))])

    def sleep(self, seconds: float) -> None:
        self.waits.append(seconds)


@pytest.fixture
def add_writer(loaded: Warehouse, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Let another writer commit to the log between plan and write of the next loads, `conflicts` times."""

    def with_conflicts(conflicts: int) -> ConcurrentWriter:
        writer, original = ConcurrentWriter(loaded, conflicts), commit_log
        count = iter(range(100))

        def commit_second(*args: Any) -> PipelineCommit:
            monkeypatch.setattr("scd_pipeline.load.run.commit_log", original)
            writer.commit(next(count))
            monkeypatch.setattr("scd_pipeline.load.run.commit_log", commit_second)
            return original(*args)

        monkeypatch.setattr("scd_pipeline.load.run.commit_log", commit_second)
        return writer

    return with_conflicts


@requirement("F50")
@pytest.mark.slow
def test_a_load_with_write_conflicts_is_retried_after_growing_waits(loaded: Warehouse, add_writer: Any) -> None:
    """It waits 1.0, 2.1 and 4.2 seconds, then it commits."""
    writer = add_writer(3)
    ingest_and_apply(
        loaded, CUSTOMER, [feed("one", ("a", 2, "Oslo"))], retry=Retry(sleep=writer.sleep, random=lambda: 0.0)
    )
    assert writer.waits == [1.0, 2.1, 4.2]
    rows = [row for row in history(loaded) if row["id"] == "a"]
    assert {row["city"] for row in rows} == {"Rome", "Oslo"}


@requirement("F51")
def test_conflicts_of_the_dimension_leave_the_deliveries_in_the_log_and_send_an_alert(
    loaded: Warehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another writer commits to the dimension before each attempt; the next run applies the deliveries."""
    table = loaded.table(CUSTOMER.name)

    def commit_second(*arguments: Any, **options: Any) -> PipelineCommit:
        table.commit_empty(next_commit(table))
        return commit_table(*arguments, **options)

    def run() -> None:
        changes, retry = [feed("one", ("a", 2, "Oslo"))], Retry(attempts=2, sleep=lambda _: None)
        with as_dagster_failure():
            ingest_and_apply(loaded, CUSTOMER, changes, retry=retry)

    before = table.newest_version()
    with monkeypatch.context() as patched:
        patched.setattr("scd_pipeline.load.run.commit_table", commit_second)
        with pytest.raises(dg.Failure) as failure:
            run()
    assert isinstance(failure.value.__cause__, RetriesExhausted)
    with webhook() as (hook, posted):
        monkeypatch.setenv("SCD_ALERT_WEBHOOK", hook)
        alert_for_a_run_that_fails_with(failure.value)
    (payload,) = posted
    assert "RETRIES_EXHAUSTED" in payload["text"]
    assert f"table {CUSTOMER.name}" in payload["text"]
    assert table.newest_version() == before + 2
    assert "Oslo" not in {row["city"] for row in history(loaded)}
    assert "one" in {batch.delivery for batch in read_log(loaded, CUSTOMER).batches()}
    ingest_and_apply(loaded, CUSTOMER)
    assert "Oslo" in {row["city"] for row in history(loaded)}


def next_commit(table: Table) -> PipelineCommit:
    """The next commit of a table, by another run that has applied the same commits of the log."""
    return table.last_commit().next(run_id="another run")


@requirement("F51")
@pytest.mark.slow
def test_exhausted_retries_fail_the_run_and_write_nothing(loaded: Warehouse, add_writer: Any) -> None:
    """Nothing of its batch is stored, and the next run loads it."""
    writer = add_writer(5)
    with pytest.raises(RetriesExhausted, match="RETRIES_EXHAUSTED"):
        ingest_and_apply(loaded, CUSTOMER, [feed("one", ("a", 2, "Oslo"))], retry=Retry(sleep=writer.sleep))
    assert "one" not in {batch.delivery for batch in read_log(loaded, CUSTOMER).batches()}
    assert "Oslo" not in {row["city"] for row in history(loaded)}
    ingest_and_apply(loaded, CUSTOMER, [feed("one", ("a", 2, "Oslo"))])
    assert "Oslo" in {row["city"] for row in history(loaded)}


@pytest.mark.slow
def test_a_table_without_deletion_vectors_is_rejected(loaded: Warehouse) -> None:
    if not loaded.capabilities.replaces:
        pytest.skip("MERGE needs no deletion vectors")
    table = loaded.table(CUSTOMER.name).identifier
    loaded.spark.sql(f"ALTER TABLE {table} SET TBLPROPERTIES ('delta.enableDeletionVectors' = 'false')")
    with pytest.raises(UnsupportedDelta, match="DELETION_VECTORS_OFF"):
        ingest_and_apply(loaded, CUSTOMER, [feed("one", ("a", 2, "Oslo"))])
    assert len(history(loaded)) == 1


def test_a_missing_pipeline_commit_is_an_error(loaded: Warehouse, monkeypatch: pytest.MonkeyPatch) -> None:
    """The history no longer has one. If numbers began at 1 again, Delta would skip every write."""
    monkeypatch.setattr("scd_pipeline.delta.commits._PAGES", (1,))
    loaded.spark.sql(f"OPTIMIZE {loaded.table(CUSTOMER.name).identifier}")
    table = loaded.table(CUSTOMER.name)
    loaded.spark.sql(f"ALTER TABLE {table.identifier} SET TBLPROPERTIES ('a' = 'b')")
    with pytest.raises(PipelineCommitMissing, match="PIPELINE_COMMIT_MISSING"):
        table.last_commit()
