"""Times, sequences and deletes that a channel computes from the columns of its deliveries (S4, S5, S18, S26)."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable
from datetime import datetime
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from scd_pipeline.declaration import Attribute, Column, Dimension, Feed, Source, parse_declarations
from scd_pipeline.deliveries.accept import accept
from scd_pipeline.deliveries.delivery import Delivery
from scd_pipeline.deliveries.early_times import early_time_warnings
from scd_pipeline.delta.warehouse import Warehouse
from scd_pipeline.load.retry import ignore_progress
from scd_pipeline.load.run import LoadResult, ingest_and_apply, plan
from scd_pipeline_tests.semantics.specification import rule
from scd_pipeline_tests.text_tables import assert_same_rows

Loaded = tuple[Warehouse, LoadResult]
Load = Callable[[tuple[str, str]], Loaded]

BINLOG = (
    """
    dimension: dim_item
    business_key: {id: bigint}
    sources:
      mysql:
        bad_row_limit: 0.5
        feed: {format: csv, effective_at: ts, sequence: [file, pos], deletes: "op = 'd'"}
    attributes: {title: 2}
    """,
    """
    id,title,op,ts,file,pos
    1,A,c,2024-01-01 10:00:00,bin.000009,900
    1,B,u,2024-01-01 10:00:00,bin.000010,4
    2,P,c,2024-01-01 10:00:00,bin.999999,700
    2,,d,2024-01-01 10:00:00,bin.1000000,4
    3,early,c,2024-01-01 10:00:00,,5
    3,late,u,2024-01-01 10:00:00,0,
    4,far,c,2024-01-01 10:00:00,1,4294967295
    """,
)
COMPUTED = (
    """
    dimension: dim_price
    business_key: {id: bigint}
    sources:
      sap:
        feed:
          format: json
          effective_at: {expression: "coalesce(concat(changed.day, changed.time), created)"}
          effective_at_format: yyyyMMddHHmmss
          sequence: [{expression: "changed.step * 10"}, source.lsn]
          rows: "id is not null and coalesce(image, '') <> 'before'"
          deletes: "upper(op) = 'D'"
          actor: source.user
    attributes: {price: 2}
    """,
    """
    {"id":1,"price":"a","created":"20240101080000","source":{"lsn":1,"user":"ann"}}
    {"id":1,"price":"b","changed":{"day":"20240201","time":"120000","step":2},"source":{"lsn":8}}
    {"id":1,"price":"c","changed":{"day":"20240201","time":"120000","step":2},"source":{"lsn":9}}
    {"id":1,"price":"d","changed":{"day":"20240201","time":"120000","step":1},"source":{"lsn":99}}
    {"id":2,"price":"x","created":"20240102080000","source":{"lsn":1}}
    {"id":2,"op":"d","changed":{"day":"20240301","time":"000000","step":1},"source":{"lsn":3}}
    null
    {"id":2,"image":"before","created":"no time"}
    """,
)
DEBEZIUM = (
    """
    dimension: dim_person
    business_key: {id: bigint}
    sources:
      pg: {feed: {format: debezium}}
    attributes: {name: 2, born: {scd: 1, type: int}}
    """,
    """
    {"op":"r","before":null,"after":{"id":1,"name":"Ann","born":7425},"source":{"lsn":1},"ts_ms":1704067200000}
    {"op":"c","before":null,"after":{"id":2,"name":"Bob","born":7426},"source":{"lsn":2},"ts_ms":1704067200000}
    {"op":"d","before":{"id":1,"name":"Ann","born":7425},"after":null,"source":{"lsn":3},"ts_ms":1706745600000}
    null
    {"op":"c","before":null,"after":{"id":3,"name":"Ann","born":7425},"source":{"lsn":4},"ts_ms":1706745600000}
    {"op":"d","before":{"id":2,"name":"Bob","born":7426},"after":null,"source":{"lsn":5},"ts_ms":1709251200000}
    null
    {"op":"c","before":null,"after":{"id":2,"name":"Bob","born":7426},"source":{"lsn":6},"ts_ms":1709251200000}
    {"op":"m","message":{"prefix":"audit","content":"x"},"source":{"lsn":7},"ts_ms":1709251200000}
    """,
)
WRAPPED = (
    """
    dimension: dim_binlog
    business_key: {id: bigint}
    sources:
      mysql: {feed: {format: debezium}}
    attributes: {name: 2}
    """,
    """
    {"schema":{"type":"struct"},"payload":{"op":"u","before":{"id":1,"name":"A"},"after":{"id":1,"name":"C"},"source":{"ts_ms":1704067200000,"file":"bin.1000000","pos":4,"row":0},"ts_ms":1704067299000}}
    {"schema":{"type":"struct"},"payload":{"op":"c","before":null,"after":{"id":1,"name":"A"},"source":{"ts_ms":1704067200000,"file":"bin.999999","pos":700,"row":0},"ts_ms":1704067299000}}
    {"schema":{"type":"struct"},"payload":{"op":"u","before":{"id":1,"name":"C"},"after":{"id":1,"name":"D"},"source":{"ts_ms":1704067200000,"file":"bin.1000000","pos":4,"row":1},"ts_ms":1704067299000}}
    {"schema":null,"payload":null}
    {"schema":null,"payload":{"op":"u","after":{"id":1,"name":"__debezium_unavailable_value"},"source":{"file":"bin.1000001","pos":4},"ts_ms":1706745600000}}
    {"schema":null,"payload":{"op":"u","after":{"id":1,"name":null},"source":{"file":"bin.1000002","pos":4},"ts_ms":1709251200000}}
    """,
)
UNAVAILABLE = (
    """
    dimension: dim_author
    business_key: {id: bigint}
    sources:
      pg:
        bad_row_limit: 0.5
        feed: {format: debezium}
        columns:
          shout: {expression: upper(bio)}
          size: {expression: cast(size as int)}
          tag: {expression: "concat(tags[0], '!')"}
          name: {from: info.name}
    attributes: {city: 2, shout: 1, size: 1, photo: 1, scan: 1, tag: 1, tags: 1, numbers: 1, info: 1, name: 1}
    """,
    """
    {"op":"c","after":{"id":1,"city":"Graz","bio":"long","size":"7","photo":"qg==","scan":"aa","tags":["x"],"numbers":[1],"info":{"name":"Ann"}},"source":{"lsn":1},"ts_ms":1704067200000}
    {"op":"u","after":{"id":1,"city":"Linz","bio":@,"size":@,"photo":"X19kZWJleml1bV91bmF2YWlsYWJsZV92YWx1ZQ==","scan":"5f5f646562657a69756d5f756e617661696c61626c655f76616c7565","tags":[@],"numbers":[95,95,100,101,98,101,122,105,117,109,95,117,110,97,118,97,105,108,97,98,108,101,95,118,97,108,117,101],"info":{@:@}},"source":{"lsn":2},"ts_ms":1706745600000}
    """.replace("@", '"__debezium_unavailable_value"'),
)
FACT = """
dimension: dim_player
business_key: player
sources: {club: {feed: {}}}
attributes: {tier: 2}
---
fact: fct_play
grain: {play: bigint}
event_time: at
dimensions: {player: dim_player}
sources: {floor: {feed: {}, columns: {at: {unit: s}}}}
"""
MIXED_UNITS = (
    """
    dimension: dim_unit
    business_key: {id: bigint}
    sources:
      app: {bad_row_limit: 0.5, feed: {format: json, effective_at: ts, effective_at_unit: ms}}
    attributes: {v: 2}
    """,
    """
    {"id":1,"v":"a","ts":1704067200000}
    {"id":1,"v":"b","ts":1706745600}
    {"id":1,"v":"c","ts":1709251200000000}
    """,
)
FAILING = (
    """
    dimension: dim_failing
    business_key: {id: bigint}
    sources:
      app:
        bad_row_limit: 0.9
        feed:
          format: csv
          effective_at: {expression: "to_date(at, 'yyyyMMdd')"}
          sequence: {expression: "cast(n as int) * 2 + cast(n as int)"}
          deletes: cast(gone as boolean)
          rows: "cast(x as int) > 0"
        columns:
          city: {expression: "element_at(split(city, '-'), cast(part as int))"}
          size: {expression: "cast(size as int)", default: 7}
    attributes: {city: 2, size: {scd: 1, type: int, on_bad_value: null}}
    """,
    """
    id,at,n,gone,x,city,part,size
    1,20240101,1,false,1,a-b,1,5
    2,20240931,1,false,1,a-b,1,5
    3,20240101,one,false,1,a-b,1,5
    4,20240101,1,maybe,1,a-b,1,5
    5,20240101,1,false,ja,a-b,1,5
    6,20240101,1,false,1,a-b,x,5
    7,20240101,1,false,1,a-b,2,xx
    8,20240101,1,true,1,a-b,x,xx
    9,20240931,one,maybe,0,a-b,x,xx
    10,20240101,1,false,1,a-b,2,
    """,
)


def _text(indented: str) -> str:
    return "\n".join(line.strip() for line in indented.strip().splitlines()) + "\n"


@pytest.fixture(scope="module")
def load(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Load:
    folder = tmp_path_factory.mktemp("channels")
    loaded: dict[str, Loaded] = {}

    def load(case: tuple[str, str]) -> Loaded:
        (dimension,) = parse_declarations(case[0]).dimensions
        if dimension.name not in loaded:
            (source,), path = dimension.sources, folder / dimension.name
            path.write_text(_text(case[1]))
            warehouse = Warehouse(spark, folder / "warehouse")
            delivery = Delivery(source.name, "1", channel="feed", path=str(path), at=datetime(2024, 6, 1))
            loaded[dimension.name] = warehouse, ingest_and_apply(warehouse, dimension, [delivery])
        return loaded[dimension.name]

    return load


def versions(loaded: Loaded, *names: str) -> list[dict[str, object]]:
    warehouse, result = loaded
    rows = warehouse.table(result.table).read().where("version > 0")
    return rows.select(*names, "effective_from", "effective_to").toArrow().to_pylist()


def bad_rows(loaded: Loaded) -> list[str]:
    warehouse, result = loaded
    log = warehouse.table(f"{result.table}_changes").read()
    return sorted(row[0] for row in log.where("_kind = 'bad'").select("_bad_reason").collect())


@rule("S5")
@pytest.mark.slow
def test_several_columns_order_changes_of_equal_time_and_a_log_file_by_its_number(load: Load) -> None:
    """The delete of 2 has the greater file, though the smaller text; NULL comes first."""
    loaded = load(BINLOG)
    assert_same_rows(
        """
        | id | title | effective_from      | effective_to |
        | 1  | B     | 2024-01-01 10:00:00 | OPEN         |
        | 3  | late  | 2024-01-01 10:00:00 | OPEN         |
        """,
        versions(loaded, "id", "title"),
    )


@rule("S26")
def test_a_sequence_that_does_not_fit_makes_a_bad_row(load: Load) -> None:
    assert bad_rows(load(BINLOG)) == ["sequence: column 2 is not between 0 and 4294967294"]


@pytest.mark.slow(3)
@rule("S4")
@rule("S18")
def test_time_sequence_and_deletes_are_computed_from_several_and_nested_columns(load: Load) -> None:
    assert_same_rows(
        """
        | id | price | effective_from      | effective_to        |
        | 1  | a     | 2024-01-01 08:00:00 | 2024-02-01 12:00:00 |
        | 1  | c     | 2024-02-01 12:00:00 | OPEN                |
        | 2  | x     | 2024-01-02 08:00:00 | 2024-03-01          |
        """,
        versions(load(COMPUTED), "id", "price"),
    )


def test_a_nested_field_names_the_actor(load: Load) -> None:
    warehouse, result = load(COMPUTED)
    log = warehouse.table(f"{result.table}_changes").read()
    assert log.where("_actor = 'ann'").select("_sequence").count() == 1


@rule("S26")
def test_filtered_rows_are_counted_and_have_no_other_effect(load: Load) -> None:
    """A tombstone and an image from before the change, whose time is bad, are neither bad rows nor counted as rows."""
    (result,) = load(COMPUTED)[1].results
    assert (result.outcome, result.rows, result.filtered_rows, result.bad_rows) == ("accepted", 6, 2, 0)
    assert "2 filtered" in str(result)
    assert result.undeclared == ()


@rule("S5")
@rule("S18")
def test_the_events_of_debezium_become_history_by_their_format_alone(load: Load) -> None:
    """The key of Ann changes from 1 to 3; 2 is deleted and inserted again in one millisecond."""
    loaded = load(DEBEZIUM)
    assert_same_rows(
        """
        | id | name | born | effective_from | effective_to |
        | 1  | Ann  | 7425 | 2024-01-01     | 2024-02-01   |
        | 2  | Bob  | 7426 | 2024-01-01     | OPEN         |
        | 3  | Ann  | 7425 | 2024-02-01     | OPEN         |
        """,
        versions(loaded, "id", "name", "born"),
    )
    (result,) = loaded[1].results
    assert (result.rows, result.filtered_rows, result.bad_rows, result.undeclared) == (6, 3, 0, ())


@pytest.mark.slow
@rule("S5")
def test_wrapped_events_are_ordered_by_file_position_and_row_of_the_binary_log(load: Load) -> None:
    """Their time is that of the commit, not that of the connector. A value that is not available did not change."""
    loaded = load(WRAPPED)
    expected = """
        | id | name | effective_from | effective_to |
        | 1  | D    | 2024-01-01     | 2024-03-01   |
        | 1  | NULL | 2024-03-01     | OPEN         |
        """
    assert_same_rows(expected, versions(loaded, "id", "name"))
    assert loaded[1].results[0].filtered_rows == 1


@pytest.mark.slow
@rule("S30")
def test_placeholders_of_debezium_in_any_form_and_read_by_an_expression_change_nothing(
    spark: SparkSession, tmp_path: Path
) -> None:
    """The second file has a row for which an expression fails."""
    (dimension,) = parse_declarations(UNAVAILABLE[0]).dimensions
    first, second = _text(UNAVAILABLE[1]).splitlines()
    failing = first.replace('"id":1', '"id":2').replace('"size":"7"', '"size":"xx"')
    (tmp_path / "1").write_text(f"{first}\n{second}\n")
    (tmp_path / "2").write_text(f"{second}\n{failing}\n")
    deliveries = [Delivery("pg", name, path=str(tmp_path / name), at=datetime(2024, 6, 1)) for name in "12"]
    intake = accept(spark, dimension, deliveries, [], run_id="", progress=ignore_progress)
    assert [(result.problem, result.bad_rows) for result in intake.results] == [("", 0), ("", 1)]
    names = [attribute.name for attribute in dimension.attributes]
    rows = {(row["_batch"].split("/")[2], row["_sequence"], row["id"]): row for row in intake.rows.collect()}
    assert rows["2", None, 2]["_bad_reason"] == "size: the expression fails for the row"
    complete = rows["1", 1, 1]
    values = (complete["shout"][0], complete["size"][0], complete["tag"][0], complete["name"][0])
    assert ([name for name in names if complete[name] is None], values) == ([], ("LONG", "7", "x!", "Ann"))
    for row in (rows["1", 2, 1], rows["2", 2, 1]):
        provided = {name: row[name][0] for name in names if row[name] is not None}
        assert (row["_bad_reason"], provided) == (None, {"city": "Linz"})


@pytest.mark.slow(3)
@rule("S26")
def test_an_expression_that_fails_for_a_row_makes_a_bad_row_that_names_the_column(load: Load) -> None:
    """A failing expression of an attribute does not matter in a delete, and none does in a filtered row."""
    loaded = load(FAILING)
    names = ("city", "deletes", "effective_at", "rows", "sequence")
    reasons = [f"{name}: the expression fails for the row" for name in names]
    assert [reason.partition(";")[0] for reason in bad_rows(loaded)] == reasons
    assert_same_rows(
        """
        | id | city | size | effective_from | effective_to |
        | 1  | a    | 5    | 2024-01-01     | OPEN         |
        | 7  | b    | NULL | 2024-01-01     | OPEN         |
        | 10 | b    | 7    | 2024-01-01     | OPEN         |
        """,
        versions(loaded, "id", "city", "size"),
    )
    (result,) = loaded[1].results
    assert (result.bad_rows, result.filtered_rows, result.nulled_values) == (5, 1, 1)


@pytest.mark.slow
@rule("S4")
def test_times_before_1990_by_a_declared_unit_are_reported(load: Load) -> None:
    """Seconds that are read as milliseconds are in January 1970; microseconds are a bad row."""
    _, result = load(MIXED_UNITS)
    (warning,) = result.warnings
    assert (warning.code, warning.location) == ("EARLY_TIMES", "dim_unit: app/feed/1/0")
    assert warning.details == {"earliest": "1970-01-20", "option": "effective_at_unit: ms"}
    assert load(COMPUTED)[1].warnings == ()


@rule("S23")
def test_event_times_of_a_fact_before_1990_are_reported(spark: SparkSession) -> None:
    """Its event time is the only required column of a fact."""
    declared = parse_declarations(FACT)
    dimension = declared.facts[0].as_dimension()
    deliveries = [
        Delivery("floor", day, frame=pa.table({"play": [1, 2], "player": ["a", "a"], "at": [1706745600, seconds]}))
        for day, seconds in (("2024-02-01", 1706745601), ("2024-02-02", 1706745))
    ]
    intake = accept(spark, dimension, deliveries, [], run_id="", progress=ignore_progress)
    (warning,) = early_time_warnings(dimension, intake.decisions.accepted)
    assert warning.location == "fct_play: floor/feed/2024-02-02/0"
    assert warning.details == {"earliest": "1970-01-20", "option": "columns.at.unit: s"}


@rule("S4")
def test_early_times_of_attributes_are_neither_reported_nor_shown(spark: SparkSession) -> None:
    """A birthday before 1990 is usual. One of a personal attribute is not shown as the time of its row either."""
    app = Source(
        "app",
        feed=Feed(effective_at="at", effective_at_unit="s"),
        columns={"born": Column(unit="s")},
        existence=True,
    )
    old = Source("old", feed=Feed(effective_at="born", effective_at_unit="s"), columns={"birth": "born"})
    attributes = {
        "born": Attribute(1, type="timestamp", required=True, personal=True, source="app"),
        "birth": Attribute(1, personal=True, source="old"),
    }
    dimension, sources = Dimension("dim_guest", "id", attributes, [app, old]), [app, old]
    rows = pa.table({"id": ["a"], "born": [-86400], "at": [1706745]})
    deliveries = [Delivery(source.name, "1", frame=rows) for source in sources]
    intake = accept(spark, dimension, deliveries, [], run_id="", progress=ignore_progress)
    assert len(intake.decisions.accepted) == len(sources)
    (warning,) = early_time_warnings(dimension, intake.decisions.accepted)
    assert (warning.location, warning.details["option"]) == ("dim_guest: app/feed/1/0", "effective_at_unit: s")


@rule("S26")
def test_events_without_a_row_are_neither_lost_nor_an_error(spark: SparkSession, tmp_path: Path) -> None:
    """A file may have tombstones alone. A truncation cannot be applied, so it is a bad row. Events may be frames."""
    (dimension,) = parse_declarations(DEBEZIUM[0]).dimensions
    delete = {"op": "d", "before": {"id": 2, "name": "B", "born": 2}, "after": None, "ts_ms": 1709251200000}
    (tmp_path / "tombstones").write_text("null\n\nnull\n")
    (tmp_path / "truncation").write_text(
        '{"op":"t","ts_ms":1709251200000,"after":{"id":null,"name":null,"born":null}}\n'
    )
    (tmp_path / "rows").write_text('{"id":1,"name":"A","born":2}\n')
    deliveries = [
        Delivery("pg", name, channel="feed", path=str(tmp_path / name)) for name in ("tombstones", "truncation")
    ]
    deliveries += [Delivery("pg", "rows", channel="feed", path=str(tmp_path / "rows"))]
    deliveries += [Delivery("pg", "frame", channel="feed", frame=pa.Table.from_pylist([delete]))]
    results = plan(Warehouse(spark, tmp_path / "warehouse"), dimension, deliveries).results
    assert_same_rows(
        """
        | delivery   | outcome  | code           | rows |
        | tombstones | accepted | ''             | 0    |
        | truncation | rejected | BAD_ROWS       | 1    |
        | rows       | rejected | COLUMN_MISSING | 0    |
        | frame      | accepted | ''             | 1    |
        """,
        [{name: getattr(each, name) for name in ("delivery", "outcome", "code", "rows")} for each in results],
    )


@rule("S27")
def test_a_snapshot_covers_the_scope_of_flagged_rows_but_not_that_of_filtered_rows(spark: SparkSession) -> None:
    """The vendors of shop B are all deleted. Shop C is not part of the extract."""
    text = """
        dimension: dim_vendor
        business_key: [shop, id]
        sources: {crm: {snapshot: {scope: shop, rows: "shop <> 'C'", deletes: "flag = 'x'"}}}
        attributes: {name: 2}
        """
    (dimension,) = parse_declarations(_text(text)).dimensions
    rows = pa.table({"shop": ["A", "B", "C"], "id": ["1", "1", "1"], "name": ["a", "b", "c"], "flag": ["", "x", "x"]})
    intake = accept(
        spark, dimension, [Delivery("crm", "2024-01-01", frame=rows)], [], run_id="", progress=ignore_progress
    )
    (batch,) = intake.accepted
    assert (batch.scope, batch.rows, batch.entities) == (("1:A", "1:B"), 2, 1)
    assert [row["shop"] for row in intake.rows.select("shop").collect()] == ["A"]


@rule("S5")
@pytest.mark.parametrize("bits", [(31, 32), (20, 32, 11)], ids=len)
def test_the_stored_number_of_a_sequence_sorts_as_its_columns_do(spark: SparkSession, bits: tuple[int, ...]) -> None:
    """NULL is before 0. The greatest values are those that fit; if all columns are NULL, there is no sequence."""
    draw = random.Random(7)
    values = [[None, 0, 1, 2 ** (width - 1), 2**width - 2, draw.randrange(2**width - 1)] for width in bits]
    keys = list(itertools.product(*values))
    names = [f"s{number}" for number in range(len(bits))]
    feed = Feed(effective_at="at", sequence=names)
    dimension = Dimension("dim_order", {"id": "int"}, {"city": 2}, Source("crm", feed=feed))
    rows = [
        {"id": number, "at": "2024-01-01", "city": "Bonn", **dict(zip(names, key, strict=True))}
        for number, key in enumerate(keys)
    ]
    deliveries = [Delivery("crm", "1", frame=pa.Table.from_pylist(rows))]
    intake = accept(spark, dimension, deliveries, [], run_id="", progress=ignore_progress)
    stored = intake.rows.select("id", "_sequence").toArrow().to_pylist()
    numbers = {keys[row["id"]]: row["_sequence"] for row in stored}
    assert {key for key, number in numbers.items() if number is None} == {(None,) * len(bits)}
    by_columns = sorted(keys, key=lambda key: [-1 if part is None else part for part in key])
    assert sorted(keys, key=lambda key: numbers[key] or 0) == by_columns
    assert len(set(numbers.values())) == len(keys)


EVENT = {"source": {"lsn": 1}, "ts_ms": 1704067200000}
BEFORE = {"id": 1, "note": None, "price": 1}
SIDES: dict[str, tuple[str, list[dict[str, object]] | str, list[tuple[object, ...]]]] = {
    "types of a frame": (
        "{note: 2, price: {scd: 2, type: double}}",
        [
            {**EVENT, "op": "u", "before": BEFORE, "after": {"id": 1, "note": "vip", "price": 1.5}},
        ],
        [(1, "vip", 1.5)],
    ),
    "fields of objects": (
        "{note: 2, price: {scd: 2, type: double}}",
        """
        {"op":"c","before":null,"after":{"id":1,"a":{"note":"new","zip":"8010"},"price":2},"source":{"lsn":1},"ts_ms":1704067200000}
        {"op":"d","before":{"id":2,"a":{"note":"old"},"price":1},"after":null,"source":{"lsn":2},"ts_ms":1704067200000}
        """,
        [(1, "new", 2.0)],
    ),
}


@pytest.mark.rule("S26", "S30")
@pytest.mark.parametrize("case", SIDES)
def test_both_sides_of_an_event_have_their_values_whatever_types_are_inferred(
    spark: SparkSession, warehouse: Path, tmp_path: Path, case: str
) -> None:
    attributes, events, expected = SIDES[case]
    note = "note: a.note" if isinstance(events, str) else "note: note"
    (dimension,) = parse_declarations(
        "dimension: dim_c\nbusiness_key: {id: bigint}\n"
        f"sources: {{pg: {{feed: {{format: debezium}}, columns: {{{note}}}}}}}\nattributes: {attributes}\n"
    ).dimensions
    delivery = Delivery("pg", "1", frame=events) if isinstance(events, list) else None
    if delivery is None:
        lines = [line.strip() for line in str(events).strip().splitlines()]
        (tmp_path / "1.json").write_text("\n".join(lines), encoding="utf-8")
        delivery = Delivery("pg", "1", path=str(tmp_path / "1.json"))
    opened = Warehouse(spark, warehouse)
    ingest_and_apply(opened, dimension, [delivery]).results[0]
    rows = opened.table("dim_c").read().select("id", "note", "price").collect()
    assert [tuple(row) for row in rows] == expected
