"""JSON documents that have their records inside of an object, as the responses of an API have."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from scd_pipeline import Attribute, Column, Delivery, Dimension, Feed, Source
from scd_pipeline.delta.warehouse import Warehouse
from scd_pipeline.load.load_plan import LoadPlan
from scd_pipeline.load.run import plan

DOCUMENTS = {
    "2024-01-01": r"""
        {"next": "p2", "data": [
          {"id": 1, "price": 1.50, "user": {"name": "ann, \"x\""}, "tags": ["a", 2.0]},
          {"id": 2, "price": 12345678901234567.89, "user": {"name": "bob"}, "note": null, "rate": NaN}
        ]}
        """,
    "2024-01-02": '{"error": "too many requests"}',
    "2024-01-03": '{"data": [{"id": 4, "price": 4}]} and more',
    "2024-01-04": '{"data": [{"id": 5, "price": 5}, 6]}',
    "2024-01-05": '{"data": "none"}',
}
NO_RECORDS = "the line is not a JSON object with an object or an array of objects at data"
TYPES = {"price": "decimal(19,2)", "user": "string", "note": "string", "tags": "string"}


def planned(spark: SparkSession, folder: Path, files: Mapping[str, str], feed: Feed) -> LoadPlan:
    for name, text in files.items():
        (folder / f"{name}.json").write_text(text)
    columns = {"user": Column(expression="user.name"), "tags": Column(expression="tags[1]")}
    attributes = {name: Attribute(1, type=each, missing="null") for name, each in TYPES.items()}
    source = Source("api", feed=feed, columns=columns, bad_row_limit=1.0)
    deliveries = [Delivery("api", name, path=str(folder / f"{name}.json")) for name in files]
    return plan(
        Warehouse(spark, folder / "warehouse"), Dimension("dim_item", {"id": "int"}, attributes, source), deliveries
    )


def rows(load_plan: LoadPlan) -> dict[int, tuple[object, ...]]:
    changed = load_plan.changed_rows.select("id", *TYPES).toArrow().to_pylist()
    return {row["id"]: tuple(row[name] for name in TYPES) for row in changed}


@pytest.mark.rule("S26")
def test_the_records_of_a_document_are_rows(spark: SparkSession, tmp_path: Path) -> None:
    """Numbers keep their digits, and a document without records is a bad row."""
    feed = Feed(format="json", record_path="data", options={"multiLine": "true"})
    load_plan = planned(spark, tmp_path, DOCUMENTS, feed)
    assert rows(load_plan) == {
        1: (Decimal("1.50"), 'ann, "x"', None, "2.0"),
        2: (Decimal("12345678901234567.89"), "bob", None, None),
    }
    bad_rows = load_plan.bad_rows().toArrow().to_pylist()
    assert {row["reason"] for row in bad_rows} == {NO_RECORDS}
    assert sorted(row["row"] for row in bad_rows) == sorted(list(DOCUMENTS.values())[1:])


@pytest.mark.slow(4)
@pytest.mark.rule("S26")
def test_each_line_may_be_a_document(spark: SparkSession, tmp_path: Path) -> None:
    lines = ['{"hits": {"hits": []}}', '{"hits": {"hits": null}}', '{"hits": {"hits": {"id": 3, "price": 3}}}']
    files = {"2024-01-01": "\n".join(lines), "2024-01-02": lines[0]}
    load_plan = planned(spark, tmp_path, files, Feed(format="json", record_path="hits.hits"))
    assert [(each.outcome, each.problem) for each in load_plan.results] == [("accepted", "")] * 2
    assert rows(load_plan) == {3: (Decimal(3), None, None, None)}
