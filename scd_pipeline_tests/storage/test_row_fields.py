"""Fields that a row lacks, inside of objects and maps, and under one of several names (S30)."""

from __future__ import annotations

import contextlib
import io
import json
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from scd_pipeline.declaration import Attribute, Dimension, Snapshot, Source, parse_declarations
from scd_pipeline.deliveries.accept import accept
from scd_pipeline.deliveries.delivery import Delivery
from scd_pipeline.deliveries.pending import PendingDelivery
from scd_pipeline.deliveries.read import open_deliveries
from scd_pipeline.delta.warehouse import Warehouse
from scd_pipeline.load.log import read_log
from scd_pipeline.load.retry import ignore_progress
from scd_pipeline.load.run import ingest_and_apply
from scd_pipeline_tests.text_tables import assert_same_rows

DECLARATION = """
dimension: dim_c
business_key: {id: bigint}
sources:
  crm:
    feed: {format: json, effective_at: ts, updates: partial}
    columns:
      city: {expression: "data['city']"}
      name: {from: data.name}
      zip: {from: [postcode, zip]}
attributes: {city: 2, name: 2, zip: 2}
"""
EVENTS: list[dict[str, Any]] = [
    {"ts": "2024-01-01", "data": {"city": "Bonn", "name": "Ann"}, "postcode": "1"},
    {"ts": "2024-02-01", "data": {"city": "Kiel"}, "zip": "2"},
    {"ts": "2024-03-01", "data": {"name": "Bea", "city": None}},
    {"ts": "2024-04-01", "zip": None},
]
BECOMES = """
    | city | name | zip  | effective_from | effective_to |
    | Bonn | Ann  | '1'  | 2024-01-01     | 2024-02-01   |
    | Kiel | Ann  | '2'  | 2024-02-01     | 2024-03-01   |
    | NULL | Bea  | '2'  | 2024-03-01     | 2024-04-01   |
    | NULL | Bea  | NULL | 2024-04-01     | OPEN         |
    """
OF_MAPS = """
    | city | name | effective_from | effective_to |
    | Bonn | Ann  | 2024-01-01     | 2024-02-01   |
    | Kiel | Ann  | 2024-02-01     | 2024-03-01   |
    | NULL | Bea  | 2024-03-01     | OPEN         |
    """


@pytest.mark.slow
@pytest.mark.rule("S30", "S14")
def test_history_does_not_depend_on_how_events_are_batched(spark: SparkSession, tmp_path: Path) -> None:
    """Entity 1 has one file, 2 one for each event, and 3 an Arrow table whose objects are maps."""
    (dimension,) = parse_declarations(DECLARATION).dimensions
    together = [{"id": 1.0, **event} for event in EVENTS]
    files = {"1": together, **{f"2 {number}": [{"id": "2", **event}] for number, event in enumerate(EVENTS)}}
    for name, events in files.items():
        (tmp_path / name).write_text("".join(f"{json.dumps(event)}\n" for event in events))
    deliveries = [Delivery("crm", name, path=str(tmp_path / name)) for name in files]
    mapped = [{"id": 3, "data": list(event["data"].items()), "ts": event["ts"]} for event in EVENTS[:3]]
    types = {"id": pa.int64(), "data": pa.map_(pa.string(), pa.string()), "ts": pa.string()}
    deliveries.append(Delivery("crm", "3", frame=pa.Table.from_pylist(mapped, pa.schema(list(types.items())))))
    warehouse = Warehouse(spark, tmp_path / "warehouse")
    results = ingest_and_apply(warehouse, dimension, deliveries).results
    assert [batch.problem for batch in results if batch.problem] == []
    rows = warehouse.table("dim_c").read().where("version > 0").toArrow().to_pylist()
    for key, expected in ((1, BECOMES), (2, BECOMES), (3, OF_MAPS)):
        assert_same_rows(expected, [row for row in rows if row["id"] == key])


@pytest.mark.slow
@pytest.mark.rule("S19", "S30")
def test_an_attribute_may_have_a_name_that_ends_with_a_question_mark(spark: SparkSession, tmp_path: Path) -> None:
    """The log marks the attributes that some rows lack, and what a stored snapshot implied follows from them."""
    source = Source("crm", Snapshot(format="json"))
    dimension = Dimension("dim_c", "id", {"vip?": 2, "tier": Attribute(2, missing="not_provided")}, source)
    warehouse = Warehouse(spark, tmp_path / "warehouse")

    def deliver(*days: tuple[int, str]) -> None:
        rows = {day: [{"id": "1", "vip?": value}, {"id": "2", "vip?": "x", "tier": "y"}] for day, value in days}
        at = {day: datetime(2024, 1, day, tzinfo=timezone.utc) for day in rows}
        deliveries = [Delivery("crm", f"{day}", at=at[day], frame=rows[day], channel="snapshot") for day in rows]
        ingest_and_apply(warehouse, dimension, deliveries)

    deliver((1, "a"), (3, "a"))
    deliver((2, "b"))
    (batch, *_) = read_log(warehouse, dimension).batches()
    assert (batch.columns, batch.sparse_columns) == (("vip?", "tier"), ("tier",))
    becomes = """
    | vip? | tier | effective_from | effective_to |
    | a    | NULL | 2024-01-01     | 2024-01-02   |
    | b    | NULL | 2024-01-02     | 2024-01-03   |
    | a    | NULL | 2024-01-03     | OPEN         |
    """
    rows = warehouse.table("dim_c").read().where("id = 1").toArrow().to_pylist()
    assert_same_rows(becomes, rows)


NULLS = """
dimension: dim_c
business_key: {id: bigint}
sources:
  crm:
    feed: {effective_at: ts, updates: partial}
    columns: {name: {from: data.name}, zip: {from: [postcode, zip]}, town: {from: [town, data.town]}}
attributes: {name: 2, zip: 2, town: 2}
"""


@pytest.mark.rule("S34")
def test_the_same_rows_have_the_same_content_in_each_form(spark: SparkSession) -> None:
    """So a retry of a data frame may be a list of dicts; rows that lack a field have other content than with NULL."""
    dimension = Dimension("dim_c", "id", {"name": 2, "city": 2}, Source("crm", snapshot={}))
    full = [{"id": "1", "name": "Ann", "city": None}, {"id": "2", "name": "Bea", "city": "Bonn"}]
    forms = {
        "list": full,
        "arrow": pa.Table.from_pylist(full),
        "pandas": pa.Table.from_pylist(full).to_pandas(),
        "spark": spark.createDataFrame([tuple(row.values()) for row in full], list(full[0])),
        "lacking": [{"id": "1", "name": "Ann"}, full[1]],
    }
    deliveries = [Delivery("crm", name, at="2024-01-01", frame=rows) for name, rows in forms.items()]
    intake = accept(spark, dimension, deliveries, [], run_id="", progress=ignore_progress)
    hashes = {each.batch.delivery: each.batch.fingerprint for each in intake.measured}
    assert set(hashes) == set(forms)
    assert len({hashes[name] for name in forms if name != "lacking"}) == 1
    assert hashes["lacking"] != hashes["list"]


@pytest.mark.rule("S30", "S14")
@pytest.mark.parametrize("is_file", [True, False], ids=["files", "dicts"])
def test_a_row_is_read_alike_alone_and_among_others(spark: SparkSession, tmp_path: Path, is_file: bool) -> None:
    """A field that is null in all rows has no type: it may be an object, and another column may have the values."""
    (dimension,) = parse_declarations(NULLS).dimensions
    events: list[dict[str, Any]] = [
        {"id": 1, "ts": "2024-01-01", "data": None, "postcode": None},
        {"id": 2, "ts": "2024-01-01", "zip": 5},
        {"id": 3, "ts": "2024-01-01", "data": {"name": "Ann", "town": "Bonn"}},
        {"id": 4, "ts": "2024-01-01", "postcode": None, "zip": 6, "town": "Kiel"},
    ]
    batches = {
        "all": events,
        "some": events[:2],
        "others": [events[0], events[3]],
        **{f"{event['id']} alone": [event] for event in events},
    }
    deliveries = [Delivery("crm", name, frame=rows) for name, rows in batches.items()]
    if is_file:
        for name, rows in batches.items():
            (tmp_path / f"{name}.json").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
        deliveries = [Delivery("crm", name, path=str(tmp_path / f"{name}.json")) for name in batches]
    intake = accept(spark, dimension, deliveries, [], run_id="", progress=ignore_progress)
    assert [result.problem for result in intake.results if result.problem] == []
    values = {
        "1": ((None,), (None,), (None,)),
        "2": (None, ("5",), None),
        "3": (("Ann",), None, ("Bonn",)),
        "4": (None, (None,), ("Kiel",)),
    }
    expected = sorted((name, row["id"], *values[str(row["id"])]) for name, rows in batches.items() for row in rows)
    read = [
        (
            row["_batch"].split("/")[2],
            row["id"],
            *(each and tuple(each) for each in (row["name"], row["zip"], row["town"])),
        )
        for row in intake.rows.collect()
    ]
    assert sorted(read) == expected


@pytest.mark.rule("S26")
def test_lines_that_are_not_json_are_rejected_if_only_expressions_are_read(spark: SparkSession, tmp_path: Path) -> None:
    text = NULLS.replace(
        "zip: {from: [postcode, zip]}", "id: {expression: data.id}, zip: {expression: data.zip}"
    ).replace("town: {from: [town, data.town]}", "town: {expression: data.town}")
    text = text.replace("{from: data.name}", "{expression: data.name}").replace("effective_at: ts, ", "")
    (dimension,) = parse_declarations(text).dimensions
    (tmp_path / "1.json").write_text("no JSON\nno JSON\n")
    deliveries = [Delivery("crm", "2024-01-01", path=str(tmp_path / "1.json"))]
    (result,) = accept(spark, dimension, deliveries, [], run_id="", progress=ignore_progress).results
    assert (result.outcome, result.code) == ("rejected", "COLUMN_MISSING")


@pytest.mark.rule("S30")
def test_each_text_is_parsed_and_each_value_converted_once(spark: SparkSession, tmp_path: Path) -> None:
    """Spark computes an expression once for each use, unless it is a column of a step of the plan."""
    (dimension,) = parse_declarations(DECLARATION).dimensions
    (tmp_path / "1.json").write_text(json.dumps({"id": 1.0, **EVENTS[0], "zip": 2}))
    pending = PendingDelivery.create(0, Delivery("crm", "1", path=str(tmp_path / "1.json")), dimension, "")
    (group,) = open_deliveries(spark, [pending], dimension).groups
    plan = io.StringIO()
    with contextlib.redirect_stdout(plan):
        group.rows.explain("extended")
    optimized = plan.getvalue().split("== Optimized Logical Plan ==")[1].split("== Physical Plan ==")[0]
    of_lines = optimized[optimized.index("+- Generate posexplode") :]
    assert of_lines.count("from_json") == 3  # one object, an array of them, and a bracket that closes early
    texts = [line.count("\ufffd") for line in optimized.splitlines() if "\ufffd" in line]
    assert texts == [4]  # that of each field except the nested one


FACT = """
dimension: dim_c
business_key: {id: bigint}
sources: {crm: {feed: {effective_at: ts}}}
attributes: {name: 2}
---
fact: fct_order
grain: {order_id: bigint}
event_time: ordered_at
dimensions: {customer: {dimension: dim_c, key: id}}
sources:
  shop:
    bad_row_limit: 1
    feed: {format: json}
"""


@pytest.mark.rule("S23", "S26")
@pytest.mark.parametrize("is_repaired", [False, True], ids=["as_declared", "by_the_advice"])
def test_a_fact_that_lacks_its_event_time_has_advice_for_facts(
    spark: SparkSession, tmp_path: Path, is_repaired: bool
) -> None:
    text = FACT
    if is_repaired:
        text = text.replace("{format: json}", "{format: json, rows: order_id < 3}")
        text += "    columns: {ordered_at: {from: [ordered_at, paid_at]}}\n"
    (fact,) = parse_declarations(text).facts
    rows = [{"order_id": 1, "id": 1, "ordered_at": "2024-01-01"}, {"order_id": 2, "id": 1, "paid_at": "2024-01-02"}]
    lines = "".join(f"{json.dumps(row)}\n" for row in [*rows, {"order_id": 3, "id": 1}])
    (tmp_path / "1.json").write_text(lines)
    deliveries = [Delivery("shop", "2024-01-03", path=str(tmp_path / "1.json"))]
    intake = accept(spark, fact.as_dimension(), deliveries, [], run_id="", progress=ignore_progress)
    advice = "name a further column in `from` of the column, or exclude such rows by `rows` of the feed"
    reasons = {row["order_id"]: row["_bad_reason"] for row in intake.rows.collect() if row["_kind"] != "filtered"}
    lacks = f"ordered_at is missing; {advice}"
    assert reasons == ({1: None, 2: None} if is_repaired else {1: None, 2: lacks, 3: lacks})


OBJECTS = """
dimension: dim_c
business_key: {id: bigint}
sources:
  crm:
    feed: {effective_at: ts, updates: partial}
    columns: {city: {expression: "p['q']"}, zip: {expression: "coalesce(p.r.s, 'none')"}}
attributes: {city: 2, zip: 2}
"""


@pytest.mark.rule("S30")
@pytest.mark.parametrize("is_file", [True, False], ids=["file", "dicts"])
def test_an_expression_reads_null_inside_of_an_object_that_all_rows_have_as_null(
    spark: SparkSession, tmp_path: Path, is_file: bool
) -> None:
    """No row shows the fields of such an object. A text is no object."""
    (dimension,) = parse_declarations(OBJECTS).dimensions
    deliveries = []
    for name, value in {"null": None, "text": "t"}.items():
        rows = [{"id": 1, "ts": "2024-01-01", "p": value}, {"id": 2, "ts": "2024-01-01"}]
        (tmp_path / f"{name}.json").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
        data: dict[str, Any] = {"path": str(tmp_path / f"{name}.json")} if is_file else {"frame": rows}
        deliveries.append(Delivery("crm", name, **data))
    intake = accept(spark, dimension, deliveries, [], run_id="", progress=ignore_progress)
    assert [result.code for result in intake.results] == ["", "COLUMN_TYPE"]
    values = [(row["id"], row["city"], row["zip"]) for row in intake.rows.sort("id").collect()]
    assert values == [(1, (None,), ("none",)), (2, None, None)]


EXPRESSIONS = """
dimension: dim_c
business_key: {id: bigint}
sources:
  crm:
    feed: {effective_at: ts, updates: partial, deletes: "op = 'd'"}
    columns:
      day: {expression: 'cast(concat(ts, "date") as string)'}
      late: {expression: "case when name = 'x' then 'late' else upper(name) end"}
      tags: {expression: items.name}
      parts: {expression: "order.items['name']"}
      texts: {expression: "concat_ws(' ', transform(items, x -> x.name))"}
attributes: {day: 2, late: 2, texts: 2, tags: {scd: 2, type: array<string>}, parts: {scd: 2, type: array<string>}}
"""


@pytest.mark.rule("S30", "S14")
def test_a_row_lacks_only_columns_that_an_expression_names(spark: SparkSession, tmp_path: Path) -> None:
    """Types, keywords, texts and parameters are not columns, and each object of an array has fields of its own."""
    (dimension,) = parse_declarations(EXPRESSIONS).dimensions
    items = [{"name": "a"}, {"name": "b"}, {"other": "c"}]
    rows: list[dict[str, Any]] = [
        {"id": 1, "ts": "2024-01-01", "name": "Ann", "op": "u"},
        {"id": 2, "ts": "2024-01-01", "date": "x", "string": "x", "end": "x", "upper": "x", "x": "x", "d": "x"},
        {"id": 3, "ts": "2024-01-01", "items": items, "order": {"items": items, "size": 1}},
        {"id": 4, "ts": "2024-01-01", "items": items[:1], "order": {"size": 1}},
    ]
    day, names = ("2024-01-01date",), ["a", "b", None]
    values = {
        1: (day, ("ANN",), None, None, None),
        2: (day, None, None, None, None),
        3: (day, None, ("a b",), (names,), (names,)),
        4: (day, None, ("a",), (["a"],), None),
    }
    (tmp_path / "1.json").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    (tmp_path / "2.json").write_text(json.dumps(rows[0]))
    deliveries = [Delivery("crm", name, path=str(tmp_path / f"{name}.json")) for name in "12"]
    deliveries.append(Delivery("crm", "3", frame=rows))
    intake = accept(spark, dimension, deliveries, [], run_id="", progress=ignore_progress)
    assert [result.problem for result in intake.results if result.problem] == []
    read: dict[str, dict[int, object]] = {"1": {}, "2": {}, "3": {}}
    for row in intake.rows.collect():
        provided = tuple(row[name] and tuple(row[name]) for name in ("day", "late", "texts", "tags", "parts"))
        read[row["_batch"].split("/")[2]][row["id"]] = provided
    of_dicts = {**values, 4: (*values[4][:4], (None,))}  # only rows lack fields, not objects in them
    assert read == {"1": values, "2": {1: values[1]}, "3": of_dicts}


@pytest.mark.rule("S30")
def test_a_map_with_numbers_as_keys_may_lack_one(spark: SparkSession) -> None:
    text = EXPRESSIONS.partition("      day:")[0] + "      day: {expression: \"m['7']\"}\nattributes: {day: 2}\n"
    (dimension,) = parse_declarations(text.replace(", deletes: \"op = 'd'\"", "")).dimensions
    rows = [{"id": number, "ts": "2024-01-01", "m": [(key, "x")]} for number, key in enumerate((7, 8))]
    types = {"id": pa.int64(), "ts": pa.string(), "m": pa.map_(pa.int32(), pa.string())}
    deliveries = [Delivery("crm", "1", frame=pa.Table.from_pylist(rows, pa.schema(list(types.items()))))]
    intake = accept(spark, dimension, deliveries, [], run_id="", progress=ignore_progress)
    assert [result.problem for result in intake.results] == [""]
    assert [(row["id"], row["day"]) for row in intake.rows.sort("id").collect()] == [(0, ("x",)), (1, None)]
