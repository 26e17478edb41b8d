"""The pipeline loads and queries in few lines, and accepts input as people write it."""

from __future__ import annotations

import inspect
import re
import textwrap
from datetime import date, datetime, timedelta, timezone
from pathlib import Path

import pandas
import pyarrow
import pytest
from pyspark.sql import SparkSession

import scd_pipeline
from scd_pipeline import BatchRejected, Begin, Delivery, Dimension, Feed, Pipeline, Snapshot, Source
from scd_pipeline import pipeline as entry_point

CUSTOMER = Dimension("dim_customer", "id", {"city": 2}, Source("crm", snapshot={}))


@pytest.fixture
def pipeline(spark: SparkSession, warehouse: Path) -> Pipeline:
    return Pipeline(warehouse, spark=spark)


def rows(id: str = "7", city: str = "Rome") -> list[dict[str, str]]:
    return [{"id": id, "city": city}]


def test_the_example_has_at_most_12_lines_and_runs(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    example = textwrap.dedent(inspect.cleandoc(str(Pipeline.__doc__)).partition("Example:\n")[2])
    assert len(example.splitlines()) <= 12
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(entry_point, "_start", lambda: (spark, None))
    exec(example, {})
    assert "Rome" in capsys.readouterr().out
    assert (tmp_path / "warehouse" / "dim_customer_audit").is_dir()


@pytest.mark.slow
def test_each_form_of_rows_and_of_times_is_accepted(spark: SparkSession, pipeline: Pipeline, tmp_path: Path) -> None:
    file = tmp_path / "customers.csv"
    file.write_text("id,city\n7,Bonn\n", encoding="utf-8")
    offset, names = timezone(timedelta(hours=1)), ["id", "city"]
    deliveries = [
        Delivery("crm", 1, at="2024-01-01", frame=rows(city="Rome")),
        Delivery("crm", "2", at=date(2024, 1, 2), frame=pandas.DataFrame(rows(city="Oslo"))),
        Delivery("crm", date(2024, 1, 3), at=datetime(2024, 1, 3), frame=pyarrow.Table.from_pylist(rows(city="Bern"))),
        Delivery("crm", 4, at="2024-01-04T01:00:00+01:00", frame=spark.createDataFrame([("7", "Graz")], names)),
        Delivery("crm", 5, at=datetime(2024, 1, 5, 1, tzinfo=offset), path=file),
    ]  # fmt: skip
    result = pipeline.load(CUSTOMER, deliveries)
    assert [batch.outcome for batch in result.results] == ["accepted"] * 5
    versions = pipeline.history("dim_customer").orderBy("version").collect()
    assert [(v.city, v.effective_from.day) for v in versions] == [
        ("Rome", 1), ("Oslo", 2), ("Bern", 3), ("Graz", 4), ("Bonn", 5)
    ]  # fmt: skip
    for time in ("2024-01-02", date(2024, 1, 2), datetime(2024, 1, 2, 23), "2024-01-03T00:30:00+01:00"):
        assert [row.city for row in pipeline.as_of(CUSTOMER, time).collect()] == ["Oslo"]
    assert pipeline.as_of(CUSTOMER, "2024-01-02", known_at="2024-01-02").isEmpty()  # nothing was recorded then
    retry = pipeline.load(CUSTOMER, rows(city="Oslo"), name=2, at="2024-01-02")
    assert [batch.outcome for batch in retry.results] == ["unchanged"]
    assert all(result.passed for result in pipeline.check(CUSTOMER))
    assert pipeline.batches(CUSTOMER).count() == 5
    assert pipeline.audit(CUSTOMER).count() == 5
    assert pipeline.quarantine(CUSTOMER).isEmpty()
    assert pipeline.sql("SELECT city FROM dim_customer_current").collect()[0].city == "Bonn"
    events = spark.createDataFrame([("7", "2024-01-02")], "id string, day string")
    assert pipeline.join_as_of(events, CUSTOMER, time="day").collect()[0].customer_city == "Oslo"
    week_later = spark.createDataFrame([("7", "2024-01-12")], "id string, day string")
    for days, city in ((7, "Bonn"), (6, None)):  # the version in Bonn began on 5 January
        joined = pipeline.join_as_of(week_later, CUSTOMER, time="day", tolerance=timedelta(days=days))
        assert joined.collect()[0].customer_city == city
    assert pipeline.status(CUSTOMER, now="2024-01-06").sources[0].age == timedelta(days=1)


@pytest.mark.slow
def test_a_rejected_delivery_raises_after_the_others_are_loaded(pipeline: Pipeline) -> None:
    good = Delivery("crm", 1, at="2024-01-01", frame=rows())
    bad = Delivery("crm", 2, at="2024-01-02", frame=[{"id": "7"}])
    with pytest.raises(BatchRejected):
        pipeline.load(CUSTOMER, [bad, good])
    assert [row.city for row in pipeline.current(CUSTOMER).collect()] == ["Rome"]
    result = pipeline.load(CUSTOMER, [bad, good], raise_on_rejection=False)
    assert [batch.outcome for batch in result.results] == ["rejected", "unchanged"]


@pytest.mark.slow
def test_a_dimension_may_have_keys_alone(pipeline: Pipeline) -> None:
    country = Dimension("dim_country", "code", sources=Source("iso", snapshot=Snapshot()))
    pipeline.load(country, [{"code": "NO"}, {"code": "IT"}], at="2024-01-01")
    pipeline.load(country, [{"code": "NO"}, {"code": "AT"}], at="2024-02-01")
    assert {row.code for row in pipeline.current(country).collect()} == {"NO", "IT", "AT"}
    assert all(result.passed for result in pipeline.check(country))


def test_begin_accepts_a_single_time() -> None:
    assert Begin("1970-01-01") == Begin(date(1970, 1, 1), datetime(9999, 12, 31, 23, 59, 59))


def test_a_mapping_declares_a_channel() -> None:
    source = Source("crm", snapshot={"path": "in/{date}.csv", "options": {"sep": ";"}}, feed={"effective_at": "ts"})
    assert source.snapshot == Snapshot("in/{date}.csv", options={"sep": ";"})
    assert source.feed == Feed(effective_at="ts")


def test_a_session_is_stopped_only_if_the_pipeline_has_started_it(
    spark: SparkSession, warehouse: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stopped: list[bool] = []
    monkeypatch.setattr(entry_point, "_start", lambda: (spark, lambda: stopped.append(True)))
    with Pipeline(warehouse, spark=spark):
        pass
    assert not stopped
    with Pipeline(warehouse) as started:
        assert started.spark is spark
    started.close()
    assert stopped == [True]


def test_everything_public_can_be_imported_and_has_help() -> None:
    for name in scd_pipeline.__all__:
        assert inspect.getdoc(getattr(scd_pipeline, name)), name
    methods = [method for name, method in inspect.getmembers(Pipeline, inspect.isfunction) if name[0] != "_"]
    for method in methods:
        arguments = [name for name in inspect.signature(method).parameters if name != "self"]
        documented = re.findall(r"\w+", str(method.__doc__))
        assert set(arguments) <= set(documented), method.__name__
