"""Folds of a log into a new base, on real tables and files (S12)."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timezone
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING, Any

import pytest

from scd_pipeline import Base, BaseColumn, Pipeline, ScdError, TimedTable
from scd_pipeline.timed.folded_base import read_folds
from scd_pipeline.timed.present import PresentDifferences, compare_present, store_present
from scd_pipeline.timed.times import to_millis
from scd_pipeline_tests.semantics.specification import requirement
from scd_pipeline_tests.timed.files import hashes

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LOG = """
UPDATE marks SET points = points + 1;
-- time=2014-01-01
UPDATE marks SET points = points * 2 WHERE `given name` <> 'Ada';
-- time=2015-01-01
DELETE FROM marks WHERE points > 40;
-- time=2016-01-01
UPDATE marks SET points = points + 100;
"""
"""Statements that change a row again if they are applied twice."""
TIMES = ("2015-01-01", "2015-06-01", "2016-01-01", "")
BEFORE = ("raw", "2013-01-01", "2014-01-01")
SCRIPT = """
import os, signal, sys
from scd_pipeline import Pipeline
from scd_pipeline.delta.table import Table
from scd_pipeline.spark import session
from scd_pipeline_tests.timed.test_folds import marks
from pathlib import Path

def die(*args):
    os.kill(os.getpid(), signal.SIGKILL)

Table.overwrite = die
Pipeline(sys.argv[2], spark=session.connect_spark(sys.argv[1])).fold_log(
    marks(Path(sys.argv[3]), "parquet"), until="2015-01-01", author="Ada")
"""


@pytest.fixture
def pipeline(spark: SparkSession, warehouse: Path) -> Pipeline:
    return Pipeline(warehouse, spark=spark)


def marks(folder: Path, file_format: str, **options: Any) -> TimedTable:
    columns = {"given name": "string", "points": "int"} if file_format in ("csv", "json") else None
    return TimedTable("marks", Base(str(folder / "marks"), columns, file_format), **options)


@pytest.fixture
def write(pipeline: Pipeline, tmp_path: Path) -> Callable[..., TimedTable]:
    """Return a function that writes the base and the log in a format, and returns the timed table."""

    def written(file_format: str = "parquet", **options: Any) -> TimedTable:
        rows = pipeline.spark.createDataFrame(
            [("Ada", 10), ("Ben", 15), ("Cleo", 20)], "`given name` string, points int"
        )
        writer = rows.coalesce(1).write.format(file_format).option("header", "true")
        writer.option("delta.columnMapping.mode", "name").save(str(tmp_path / "marks"))
        (tmp_path / "marks" / ".updates").write_text(LOG, encoding="utf-8")
        return marks(tmp_path, file_format, **options)

    return written


def rows_at(pipeline: Pipeline, table: TimedTable, *times: str) -> Mapping[str, list[tuple[Any, ...]]]:
    return {time: sorted(tuple(row) for row in pipeline.read(table, at=time).collect()) for time in times}


def code(action: Callable[[], object]) -> str:
    with pytest.raises(ScdError) as caught:
        action()
    return caught.value.code


@requirement("V25")
@pytest.mark.parametrize(
    "file_format", ["parquet", *(pytest.param(each, marks=pytest.mark.slow) for each in ("csv", "delta"))]
)
def test_reads_from_the_fold_on_are_equal_and_earlier_ones_rejected(
    pipeline: Pipeline, tmp_path: Path, write: Callable[..., TimedTable], file_format: str
) -> None:
    table = write(file_format)
    expected, files = rows_at(pipeline, table, *TIMES, "2015-01-01T00:00:00Z"), hashes(tmp_path / "marks")
    assert expected["2015-06-01"] == [("Ada", 11), ("Ben", 32)]
    assert pipeline.fold_log(table, until="2015-01-01", author="Ada", reason="closed year") == 3
    assert rows_at(pipeline, table, *expected) == expected
    assert rows_at(pipeline, table, "raw")["raw"] == expected["2015-01-01"]
    for time in BEFORE[1:]:
        assert code(lambda time=time: pipeline.read(table, at=time)) == "READ_BEFORE_FOLD"
    assert hashes(tmp_path / "marks") == files
    assert [each.rows for each in pipeline.log_hits(table)] == [2]
    assert pipeline.sql("SELECT sum(points) FROM marks", timed_tables=[table]).collect()[0][0] == 243
    at = "SELECT (SELECT count(*) FROM marks_at('{}'))"
    assert pipeline.sql(at.format("2015-01-01"), timed_tables=[table]).collect()[0][0] == 2
    with pytest.raises(Exception, match="before 2015-01-01, up to which the log is folded"):
        pipeline.sql(at.format("2014-01-01"), timed_tables=[table]).collect()


@pytest.mark.slow(10)
@requirement("V25")
def test_a_log_is_folded_again_and_nothing_is_written_without_statements(
    pipeline: Pipeline, write: Callable[..., TimedTable]
) -> None:
    table = write()
    expected, base = rows_at(pipeline, table, "2016-01-01", ""), pipeline.warehouse.table("marks_base")
    assert pipeline.fold_log(table, until=-5, author="Ada") == 0
    assert not base.exists()
    assert pipeline.fold_log(table, until="2014-06-01", author="Ada", reason="closed year") == 2
    assert pipeline.fold_log(table, until="2014-12-31", author="Ada") == 0
    assert pipeline.fold_log(table, until="2014-01-01", author="Ada") == 0
    assert pipeline.fold_log(table, until="2016-01-01", author="Ben") == 2
    assert rows_at(pipeline, table, "2016-01-01", "", "raw") == {**expected, "raw": expected[""]}
    assert base.last_commit().table_version == 2
    folds = [(each.until, each.statements, each.author, each.reason) for each in read_folds(pipeline.warehouse, table)]
    assert folds == [(1401580800000, 2, "Ada", "closed year"), (1451606400000, 4, "Ben", "")]
    assert code(lambda: pipeline.fold_log(table, until="2999-01-01", author="Ada")) == "FOLD_TIME"
    assert code(lambda: pipeline.fold_log(table, until="2016-01-01", author=" ")) == "LOG_AUTHOR_MISSING"


@pytest.mark.slow
@requirement("V25")
def test_a_killed_fold_changes_no_read_and_the_next_one_completes_it(
    remote: str, pipeline: Pipeline, tmp_path: Path, write: Callable[..., TimedTable]
) -> None:
    if not remote:
        pytest.skip("an embedded session dies with its process")
    table = write()
    expected = rows_at(pipeline, table, *BEFORE, *TIMES)
    arguments = [sys.executable, "-c", SCRIPT, remote, pipeline.warehouse.path, str(tmp_path)]
    ended = subprocess.run(arguments, capture_output=True, text=True, timeout=300)
    assert ended.returncode == -signal.SIGKILL, ended.stderr
    assert pipeline.warehouse.table("marks_base").exists()
    assert rows_at(pipeline, table, *expected) == expected
    assert pipeline.fold_log(table, until="2015-01-01", author="Ada") == 3
    assert rows_at(pipeline, table, *TIMES) == {time: expected[time] for time in TIMES}


@pytest.mark.slow
@requirement("V25")
def test_a_reader_sees_the_old_base_and_log_or_the_new_ones(
    pipeline: Pipeline, write: Callable[..., TimedTable]
) -> None:
    """Statements that are applied to a base which contains them change its rows again."""
    table, ended, reads = write(), Event(), []
    (expected,) = rows_at(pipeline, table, "2016-01-01").values()

    def read_in_a_loop() -> None:
        while not ended.is_set():
            reads.append(rows_at(pipeline, table, "2016-01-01")["2016-01-01"])

    with ThreadPoolExecutor() as pool:
        reader = pool.submit(read_in_a_loop)
        try:
            for until in ("2013-01-01", "2014-01-01", "2015-01-01", "2016-01-01"):
                assert pipeline.fold_log(table, until=until, author="Ada") == 1
        finally:
            ended.set()
        reader.result()
    assert reads
    assert reads == [expected] * len(reads)


@pytest.mark.slow
def test_a_log_in_a_table_rejects_statements_before_the_fold(
    pipeline: Pipeline, write: Callable[..., TimedTable]
) -> None:
    table = write(log="table")
    pipeline.append_to_log(table, "UPDATE marks SET points = points + 1", at=0, author="Ada")
    pipeline.append_to_log(table, "UPDATE marks SET points = points * 2", at="2014-01-01", author="Ada")
    expected = rows_at(pipeline, table, "2014-01-01", "")
    assert pipeline.fold_log(table, until="2013-01-01", author="Ada") == 1
    assert rows_at(pipeline, table, *expected) == expected
    statement = "DELETE FROM marks"
    append = pipeline.append_to_log
    assert code(lambda: append(table, statement, at="2013-01-01", author="Ada")) == "STATEMENT_FOLDED"
    assert rows_at(pipeline, table, *expected) == expected
    append(table, "UPDATE marks SET points = 0", at="2013-01-02", author="Ada")
    assert rows_at(pipeline, table, "2013-01-02", "2014-01-01") == {
        "2013-01-02": [("Ada", 0), ("Ben", 0), ("Cleo", 0)],
        "2014-01-01": [("Ada", 0), ("Ben", 0), ("Cleo", 0)],
    }


@pytest.mark.slow(3)
def test_what_a_fold_contains_may_be_removed_but_not_changed(
    pipeline: Pipeline, tmp_path: Path, write: Callable[..., TimedTable]
) -> None:
    table, log = write(), tmp_path / "marks" / ".updates"
    expected = rows_at(pipeline, table, *TIMES)
    pipeline.fold_log(table, until="2015-01-01", author="Ada")
    log.write_text(f"DELETE FROM marks;{LOG}", encoding="utf-8")
    assert code(lambda: pipeline.read(table)) == "LOG_CHANGED_AFTER_FOLD"
    log.write_text(LOG, encoding="utf-8")
    (file,) = (tmp_path / "marks").glob("*.parquet")
    (tmp_path / "marks" / "more.parquet").write_bytes(file.read_bytes())
    assert code(lambda: pipeline.read(table)) == "BASE_CHANGED_AFTER_FOLD"
    (tmp_path / "marks" / "more.parquet").unlink()
    assert rows_at(pipeline, table, *expected) == expected
    log.write_text(LOG[LOG.index("-- time=2016") :], encoding="utf-8")
    file.unlink()
    assert rows_at(pipeline, table, *expected) == expected


@pytest.mark.slow
def test_a_table_of_deltas_own_maintenance_is_not_changed_and_another_program_is_reported(
    pipeline: Pipeline, write: Callable[..., TimedTable]
) -> None:
    table, spark = write("delta"), pipeline.spark
    expected = rows_at(pipeline, table, *TIMES)
    pipeline.fold_log(table, until="2015-01-01", author="Ada")
    spark.sql(f"OPTIMIZE delta.`{table.base.path}`").collect()
    spark.sql(f"ALTER TABLE delta.`{table.base.path}` SET TBLPROPERTIES ('a' = 'b')").collect()
    base = pipeline.warehouse.table("marks_base")
    base.compact()
    assert rows_at(pipeline, table, *expected) == expected
    spark.sql(f"DELETE FROM {base.identifier}").collect()
    assert code(lambda: pipeline.read(table)) == "FOREIGN_COMMIT"
    spark.sql(f"RESTORE TABLE {base.identifier} TO VERSION AS OF 1").collect()
    assert rows_at(pipeline, table, *expected) == expected
    spark.sql(f"DELETE FROM delta.`{table.base.path}` WHERE points = 10").collect()
    assert code(lambda: pipeline.read(table)) == "BASE_CHANGED_AFTER_FOLD"


def test_a_table_that_no_fold_wrote_is_not_overwritten(pipeline: Pipeline, write: Callable[..., TimedTable]) -> None:
    table, path = write(), pipeline.warehouse.table("marks_base").path
    pipeline.spark.range(1).write.format("delta").save(path)
    assert code(lambda: pipeline.fold_log(table, until="2015-01-01", author="Ada")) == "STORED_TABLE_IN_USE"
    assert pipeline.read(table).count() == 2


@pytest.mark.slow(6)
def test_a_column_that_is_declared_after_the_fold_has_its_default(
    pipeline: Pipeline, write: Callable[..., TimedTable]
) -> None:
    table = write("csv")
    pipeline.fold_log(table, until="2015-01-01", author="Ada")
    columns = {**table.base.columns, "points": "bigint", "grade": BaseColumn("string", "none")}
    later = TimedTable("marks", Base(table.base.path, columns, "csv"))
    expected = [("Ada", 111, "none"), ("Ben", 132, "none")]
    assert rows_at(pipeline, later, "")[""] == expected
    assert pipeline.fold_log(later, until="2016-01-01", author="Ada") == 1
    assert rows_at(pipeline, later, "raw")["raw"] == expected


@pytest.mark.slow(10)
def test_rows_that_were_stored_before_a_fold_are_compared_with_a_read_at_its_time(
    pipeline: Pipeline, write: Callable[..., TimedTable]
) -> None:
    table = write()
    store_present(pipeline.warehouse, table, now=datetime(2015, 6, 1, tzinfo=timezone.utc))
    for until, differing in (("2015-12-01", 0), ("2016-01-01", 2)):
        pipeline.fold_log(table, until=until, author="Ada")
        millis = to_millis(datetime.fromisoformat(until), "UTC")
        expected = PresentDifferences(millis, missing=differing, additional=differing)
        assert compare_present(pipeline.warehouse, table) == expected
