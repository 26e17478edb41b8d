"""S39: a cursor reads the rows that were not loaded before; its state is in the batch, in the commit of its rows."""

from __future__ import annotations

import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from scd_pipeline import BatchRejected, Delivery, Dimension, Fact, Feed, Pipeline, Source, UsageError
from scd_pipeline.components.delivery_selection import resolve_partitions
from scd_pipeline.deliveries.cursors import CursorProblem, new_rows
from scd_pipeline.deliveries.partitions import EVERYTHING
from scd_pipeline.deliveries.table_states import table_states
from scd_pipeline.delta.warehouse import Warehouse
from scd_pipeline.history.batch import CursorState
from scd_pipeline_tests.semantics.specification import requirement
from scd_pipeline_tests.storage.test_crash import killed_before
from scd_pipeline_tests.text_tables import assert_same_rows

FEED = Feed(cursor="created_at", start="1970-01-01T00:00:00Z")
EVENT = Dimension("dim_event", "id", {"name": 2}, Source("api", feed=FEED))
VERSIONS = """
| id | name | effective_from      | version |
| 1  | a    | 2024-01-01 12:00:00 | 1       |
| 2  | b    | 2024-01-02 12:00:00 | 1       |
| 3  | c    | 2024-01-02 12:00:00 | 1       |
"""
"""The history after both pages."""

SCRIPT = """
import os, signal, sys
from scd_pipeline import Pipeline
from scd_pipeline.load import run as loading
from scd_pipeline.spark import session
from scd_pipeline_tests.storage.test_cursors import EVENT, FIRST

loading.commit_table = lambda *args: os.kill(os.getpid(), signal.SIGKILL)
Pipeline(sys.argv[2], spark=session.connect_spark(sys.argv[1])).load(EVENT, FIRST)
"""
"""The log has the batch and the state of its cursor, and the dimension does not exist yet."""


def page(*rows: str) -> list[dict[str, str]]:
    """Return records of an API; each is written as its id, its name and its day."""
    fields = [row.split() for row in rows]
    return [{"id": id, "name": name, "created_at": f"2024-01-{day}T12:00:00Z"} for id, name, day in fields]


FIRST = page("1 a 01", "2 b 02")
SECOND = page("2 b 02", "3 c 02", "4 d 01")
"""The second page overlaps the first, and has a row at the highest value of the first, and one below it."""


def versions(pipeline: Pipeline, table: Dimension = EVENT) -> list[dict[str, Any]]:
    """Return the history of the events; the id is a number, so that the text table is short."""
    rows = pipeline.history(table).selectExpr("int(id) AS id", "name", "effective_from", "version").collect()
    return [row.asDict() for row in rows]


def counts(pipeline: Pipeline, table: Dimension | Fact = EVENT) -> list[tuple[str, int]]:
    """Return name and number of rows of each batch, by the name."""
    return sorted((batch["delivery"], batch["rows"]) for batch in pipeline.batches(table).collect())


@requirement("D12")
@pytest.mark.rule("S39")
def test_older_rows_are_skipped_and_equal_ones_are_neither_lost_nor_doubled(
    spark: SparkSession, warehouse: Path
) -> None:
    """Each load is one of another process: the state is in the tables alone."""
    for each in (FIRST, SECOND):
        Pipeline(warehouse, spark=spark).load(EVENT, each)
    pipeline = Pipeline(warehouse, spark=spark)
    assert counts(pipeline) == [("1", 2), ("2", 1)]
    assert_same_rows(VERSIONS, versions(pipeline))


@pytest.mark.slow
@pytest.mark.rule("S39")
def test_a_load_without_new_rows_writes_nothing(spark: SparkSession, warehouse: Path) -> None:
    pipeline = Pipeline(warehouse, spark=spark)
    before = pipeline.load(EVENT, FIRST)
    after = pipeline.load(EVENT, FIRST)
    assert [(batch.delivery, batch.outcome) for batch in after.results] == [("2", "unchanged")]
    assert (after.table_version, after.log_version) == (before.table_version, before.log_version)


def test_rows_at_the_highest_value_are_counted(spark: SparkSession) -> None:
    """A source without keys may have equal rows: as many are new as there are more than before."""
    rows = spark.createDataFrame([(1, "a"), (1, "a"), (2, "b"), (2, "b"), (2, "c")], "n int, name string")
    feed = Feed(cursor="n", start=0, effective_at="at")
    selected = new_rows(rows.where("n = 1 OR name = 'b'").limit(3), feed, CursorState("0"))
    assert selected is not None
    loaded, state = selected
    assert (sorted(map(tuple, loaded.collect())), state.value, len(state.rows)) == (
        [(1, "a"), (1, "a"), (2, "b")],
        "2",
        1,
    )
    selected = new_rows(rows, feed, state)
    assert selected is not None
    more, after = selected
    assert sorted(map(tuple, more.collect())) == [(2, "b"), (2, "c")]
    assert set(state.rows) < set(after.rows)
    assert len(after.rows) == 3
    assert new_rows(rows, feed, after) is None


@pytest.mark.parametrize(
    ("values", "start", "code"),
    [
        ("named_struct('id', 1)", 0, "CURSOR_TYPE"),
        ("named_struct('n', 1.5D)", 0, "CURSOR_TYPE"),
        ("named_struct('n', 1)", "2024-01-01", "CURSOR_TYPE"),
        ("named_struct('n', current_date())", 0, "CURSOR_TYPE"),
        ("named_struct('n', CAST(NULL AS INT))", 0, "CURSOR_MISSING"),
        ("named_struct('n', 'yesterday')", "2024-01-01", "CURSOR_MISSING"),
    ],
)
def test_a_cursor_that_cannot_select_every_row_is_a_problem(
    spark: SparkSession, values: str, start: str | int, code: str
) -> None:
    rows = spark.range(1).selectExpr(f"inline(array({values}))")
    with pytest.raises(CursorProblem) as problem:
        new_rows(rows, Feed(cursor="n", start=start), CursorState(str(start)))
    assert problem.value.code == code


def test_a_frame_without_rows_has_no_new_ones(spark: SparkSession) -> None:
    assert new_rows(spark.createDataFrame([], "created_at void"), FEED, CursorState(str(FEED.start))) is None


def test_the_arrival_sensor_sees_each_commit_of_a_delta_table(tmp_path: Path) -> None:
    log = tmp_path / "events" / "_delta_log"
    log.mkdir(parents=True)
    feed = Feed(str(log.parent), format="delta", cursor="created_at", start="1970-01-01")
    states = []
    for version in range(2):
        (log / f"{version:020}.json").touch()
        states += table_states(Dimension("dim_event", "id", {"name": 2}, Source("api", feed=feed))).values()
    assert [state.text.partition(" of ")[0] for state in states] == ["version 0", "version 1"]


def test_a_run_of_the_arrival_sensor_reads_the_table_by_its_cursor(
    spark: SparkSession, warehouse: Path, tmp_path: Path
) -> None:
    """The sensor names files that a run may read; what a cursor reads is none of them."""
    feed = Feed(str(tmp_path / "events"), format="delta", cursor="created_at", start="1970-01-01")
    event = replace(EVENT, sources=Source("api", feed=feed))
    selection = resolve_partitions(Warehouse(spark, warehouse), event, [EVERYTHING], files={})
    assert list(selection.deliveries) == ["1"]
    assert selection.file_versions() == {}


@pytest.mark.slow
@pytest.mark.rule("S26", "S39")
def test_a_row_without_a_value_rejects_the_delivery_and_keeps_the_state(spark: SparkSession, warehouse: Path) -> None:
    pipeline = Pipeline(warehouse, spark=spark)
    pipeline.load(EVENT, FIRST)
    with pytest.raises(BatchRejected) as rejection:
        pipeline.load(EVENT, [*SECOND, {"id": "5", "name": "e", "created_at": None}])
    assert (rejection.value.code, rejection.value.details) == (
        "CURSOR_MISSING",
        {"rows": "1 row", "column": "created_at"},
    )
    pipeline.load(EVENT, SECOND)
    assert_same_rows(VERSIONS, versions(pipeline))


@requirement("D12")
@pytest.mark.slow(60)
@pytest.mark.rule("S14", "S17", "S39")
@pytest.mark.parametrize("before", ["commit_log", "commit_table"])
def test_a_killed_load_is_continued_and_each_row_is_loaded_once(
    spark: SparkSession, warehouse: Path, monkeypatch: pytest.MonkeyPatch, before: str
) -> None:
    """Rows were added meanwhile: before the log has the batch they are part of it, afterwards of the next one."""
    pipeline = Pipeline(warehouse, spark=spark)
    pipeline.load(EVENT, page("1 a 01"))
    with killed_before(before, monkeypatch):
        pipeline.load(EVENT, FIRST)
    pipeline.load(EVENT, page("1 a 01", "2 b 02", "3 c 02"))
    expected = [("1", 1), ("2", 2)] if before == "commit_log" else [("1", 1), ("2", 1), ("3", 1)]
    assert counts(pipeline) == expected
    assert_same_rows(VERSIONS, versions(pipeline))


@pytest.mark.slow(40)
@pytest.mark.rule("S16", "S39")
def test_a_load_from_the_state_before_another_one_doubles_nothing(spark: SparkSession, warehouse: Path) -> None:
    pipeline = Pipeline(warehouse, spark=spark)
    _, second = pipeline._select(EVENT, {}, FIRST, None, None, None, None, None, ())
    pipeline.load(EVENT, FIRST)
    result = pipeline.load(EVENT, second.deliveries)
    assert [(batch.delivery, batch.outcome) for batch in result.results] == [("1", "unchanged")]
    assert counts(pipeline) == [("1", 2)]


@pytest.mark.slow(40)
@pytest.mark.rule("S34", "S39")
def test_a_withdrawn_delivery_is_not_read_again(spark: SparkSession, warehouse: Path) -> None:
    pipeline = Pipeline(warehouse, spark=spark)
    pipeline.load(EVENT, FIRST)
    pipeline.load(EVENT, Delivery("api", "1", withdrawn=True))
    pipeline.load(EVENT, SECOND)
    assert [row["id"] for row in versions(pipeline)] == [3]


@pytest.mark.slow(60)
@pytest.mark.rule("S23", "S39")
def test_a_fact_reads_a_delta_table_by_a_cursor(spark: SparkSession, warehouse: Path, tmp_path: Path) -> None:
    """A later row replaces the row of its key, however the rows are divided among the loads."""
    table = str(tmp_path / "sales")
    sale = Fact(
        "fct_sale",
        grain={"sale": "int"},
        event_time="at",
        dimensions={"event": EVENT},
        source=Source("shop", feed=Feed(table, format="delta", cursor="at", start="2024-01-02")),
        measures={"amount": "int"},
    )
    pipeline = Pipeline(warehouse, spark=spark)
    for rows in ("(1, 1), (2, 2), (3, 3)", "(2, 4), (3, 3), (4, 4)"):
        sales = spark.sql(f"SELECT * FROM VALUES {rows} AS sales(sale, amount)")
        at = "timestampadd(DAY, amount, TIMESTAMP '2023-12-31') AS at"
        sales.selectExpr("*", "'1' AS id", at).write.format("delta").mode("append").save(table)
        pipeline.load(sale)
    assert counts(pipeline, sale) == [("1", 2), ("2", 3)]
    assert_same_rows(
        """
        | sale | amount |
        | 2    | 4      |
        | 3    | 3      |
        | 4    | 4      |
        """,
        [row.asDict() for row in pipeline.current(sale).select("sale", "amount").collect()],
    )


@pytest.mark.parametrize(("arguments", "named"), [({"name": 7}, "name"), ({"at": "2024-01-31"}, "at")])
def test_rows_for_a_cursor_have_no_name(
    spark: SparkSession, warehouse: Path, arguments: dict[str, Any], named: str
) -> None:
    with pytest.raises(UsageError) as error:
        Pipeline(warehouse, spark=spark).load(EVENT, FIRST, **arguments)
    assert (error.value.code, error.value.details["arguments"]) == ("DELIVERY_BY_CURSOR", named)


@pytest.mark.slow(40)
@pytest.mark.rule("S39")
def test_a_cursor_that_is_declared_later_continues_the_numbers_of_the_deliveries(
    spark: SparkSession, warehouse: Path
) -> None:
    """Otherwise its first delivery would have the name of a loaded one, and its rows would never be read."""
    pipeline = Pipeline(warehouse, spark=spark)
    before = replace(EVENT, sources=Source("api", feed=Feed(effective_at="created_at")))
    pipeline.load(before, FIRST, name=1)
    pipeline.load(EVENT, SECOND)
    assert counts(pipeline) == [("1", 2), ("2", 3)]


@requirement("D12")
@pytest.mark.slow(40)
@pytest.mark.rule("S17", "S39")
def test_a_cursor_continues_after_a_real_killed_process(remote: str, spark: SparkSession, warehouse: Path) -> None:
    if not remote:
        pytest.skip("an embedded session dies with its process; the same kill is tried above in this process")
    arguments = [sys.executable, "-c", SCRIPT, remote, str(warehouse)]
    ended = subprocess.run(arguments, capture_output=True, text=True, timeout=300, check=False)
    assert ended.returncode == -signal.SIGKILL, ended.stderr
    pipeline = Pipeline(warehouse, spark=spark)
    pipeline.load(EVENT, SECOND)
    assert counts(pipeline) == [("1", 2), ("2", 1)]
    assert_same_rows(VERSIONS, versions(pipeline))


@pytest.mark.rule("S39")
def test_rows_that_differ_by_microseconds_are_other_rows(spark: SparkSession) -> None:
    columns = "cast(day AS date) AS day, name, cast(at AS timestamp) AS at"
    text = "VALUES ('2024-05-01', 'x', '2024-05-01 10:00:00.000100'), ('2024-05-01', 'x', '2024-05-01 10:00:00.000900')"
    rows = spark.sql(f"SELECT {columns} FROM {text} AS t(day, name, at)").orderBy("at")
    feed = Feed(cursor="day", start="2024-01-01", effective_at="at")
    first = new_rows(rows.where("at > '2024-05-01 10:00:00.0005'"), feed, CursorState("2024-01-01"))
    assert first is not None
    second = new_rows(rows, feed, first[1])
    assert second is not None
    assert [row["at"].microsecond for row in second[0].collect()] == [100]
    assert new_rows(rows, feed, second[1]) is None
