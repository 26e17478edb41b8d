"""S11: a history table that has the values that versions have in common only once; readers fill in the others."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from scd_pipeline import Pipeline, queries
from scd_pipeline.declaration import Attribute, Dimension, Feed, Source
from scd_pipeline.deliveries.delivery import Delivery
from scd_pipeline.delta.table import Table
from scd_pipeline.delta.warehouse import Warehouse
from scd_pipeline.errors import DeclarationError
from scd_pipeline.load.run import ingest_and_apply, load
from scd_pipeline.operations.check import check_table
from scd_pipeline.operations.repair import repair
from scd_pipeline_tests.semantics.specification import requirement, rule
from scd_pipeline_tests.text_tables import assert_same_rows, parse

SOURCE = Source("floor", feed=Feed(format="parquet", effective_at="at", deletes="op = 'D'"))
MACHINE = Dimension(
    "dim_machine",
    "machine_id",
    {"serial": 0, "maker": 1, "vendor": 3, "cabinet": Attribute(6), "game": 2},
    SOURCE,
    history_table=True,
    history_columns="changing",
)
HISTORY = "dim_machine_history"
COMMON = ("serial", "maker", "vendor", "previous_vendor", "current_cabinet")
TWO_GAMES = """
| machine_id | at         | op | serial | maker | vendor | cabinet | game |
| M1         | 2024-01-01 | U  | s11    | IGT   | North  | wood    | G1   |
| M1         | 2024-02-01 | U  | s11    | Bally | South  | steel   | G2   |
| M2         | 2024-01-01 | U  | s22    | IGT   | North  | wood    | G1   |
"""


def changes(name: str, table: str, **more: Any) -> Delivery:
    rows = [{key: None if value is None else str(value) for key, value in row.items()} for row in parse(table)]
    return Delivery("floor", name, channel="feed", frame=rows, **more)


def change(name: str, machine: str, at: str, op: str, maker: str, game: str, **more: Any) -> Delivery:
    cells = f"| {machine} | {at} | {op} | s11 | {maker} | North | wood | {game} |"
    return changes(name, f"| machine_id | at | op | serial | maker | vendor | cabinet | game |\n{cells}", **more)


WALK = (
    [changes("1", TWO_GAMES)],
    [change("maker", "M1", "2024-03-01", "U", "Aruze", "G2")],
    [change("gone", "M1", "2024-04-01", "D", "Aruze", "G2")],
    [change("late", "M1", "2024-01-15", "U", "IGT", "G7")],
    [change("back", "M1", "2024-05-01", "U", "Aruze", "G3"), change("again", "M1", "2024-06-01", "D", "Aruze", "G3")],
    [changes(name, TWO_GAMES, revision=2, withdrawn=True) for name in ("back", "again")],
    [change("both", "M2", "2024-06-01", "D", "IGT", "G1"), change("M3", "M3", "2024-06-01", "U", "IGT", "G9")],
)
"""Changes, a delete, a late change, a version that is opened, closed and withdrawn again, and a further delete."""


@pytest.fixture
def opened(spark: SparkSession, warehouse: Path) -> Warehouse:
    """An empty warehouse."""
    return Warehouse(spark, warehouse)


def violations(warehouse: Warehouse, dimension: Dimension) -> list[str]:
    return [str(result) for result in check_table(warehouse, dimension) if not result.passed]


@pytest.mark.slow
@requirement("F38")
@rule("S11")
def test_only_the_last_version_of_an_entity_has_its_common_values(opened: Warehouse) -> None:
    load(opened, MACHINE, [changes("1", TWO_GAMES)])
    load(opened, MACHINE, [change("gone", "M2", "2024-03-01", "D", "IGT", "G1")])
    stored = opened.table(HISTORY).read().select("machine_id", "game", *COMMON)
    assert_same_rows(
        """
        | machine_id | game | serial | maker | vendor | previous_vendor | current_cabinet |
        | M1         | G1   | NULL   | NULL  | NULL   | NULL            | NULL            |
        | M2         | G1   | s22    | IGT   | North  | NULL            | wood            |
        """,
        stored.toArrow().to_pylist(),
    )
    assert_same_rows(
        """
        | machine_id | game | cabinet | serial | maker | vendor | previous_vendor | current_cabinet |
        | M1         | G1   | wood    | s11    | Bally | South  | North           | steel           |
        | M1         | G2   | steel   | s11    | Bally | South  | North           | steel           |
        | M2         | G1   | wood    | s22    | IGT   | North  | NULL            | wood            |
        """,
        queries.history(opened, MACHINE).toArrow().to_pylist(),
    )


FIFTY = {f"a{number}": Attribute(2 if number < 5 else 1) for number in range(50)}
"""Of 50 attributes, 5 open versions."""


def rows_of_month(month: int, entities: int) -> list[dict[str, Any]]:
    """Rows of entities whose first five values are those of the month."""
    return [
        {
            "id": str(entity),
            "at": f"2024-0{month}-01",
            "op": "U",
            **{f"a{number}": f"{number} {entity}" for number in range(5, 50)},
            **{f"a{number}": f"{number} {month}" for number in range(5)},
        }
        for entity in range(entities)
    ]


@requirement("F38")
@rule("S11")
def test_the_history_of_fifty_columns_has_the_values_of_the_five_that_change(opened: Warehouse) -> None:
    dimension = Dimension("dim_narrow", "id", FIFTY, SOURCE, history_table=True, history_columns="changing")
    rows = rows_of_month(1, 2) + rows_of_month(2, 2)
    ingest_and_apply(opened, dimension, [Delivery("floor", "1", channel="feed", frame=rows)])
    stored = opened.table("dim_narrow_history").read().select("id", *FIFTY).toArrow().to_pylist()
    changing = list(FIFTY)[:5]
    expected = [{**dict.fromkeys(FIFTY), **{name: row[name] for name in ("id", *changing)}} for row in rows[:2]]
    assert_same_rows(expected, stored)
    assert_same_rows(rows, queries.history(opened, dimension).toArrow().to_pylist(), ("id", *FIFTY))


@pytest.mark.slow(50)
@requirement("F38")
@rule("S11")
def test_rows_with_fifty_columns_of_which_five_change_are_those_of_one_table(opened: Warehouse) -> None:
    """The history of the changing columns is smaller, and no reader sees a difference."""
    names = {"changing": "dim_narrow", "all": "dim_wide"}
    for columns, name in names.items():
        dimension = Dimension(name, "id", FIFTY, SOURCE, history_table=True, history_columns=columns)  # type: ignore[arg-type]
        for month in range(1, 4):
            rows = rows_of_month(month, 200)
            load(opened, dimension, [Delivery("floor", str(month), channel="feed", frame=rows)])
    narrow, wide = (queries.history(opened, name).drop("narrow_key", "wide_key") for name in names.values())
    assert narrow.count() == 600
    assert narrow.exceptAll(wide).isEmpty() and wide.exceptAll(narrow).isEmpty()
    sizes = {
        columns: opened.spark.sql(f"DESCRIBE DETAIL {opened.table(f'{name}_history').identifier}")
        .select("sizeInBytes")
        .first()["sizeInBytes"]  # type: ignore[index]
        for columns, name in names.items()
    }
    assert sizes["changing"] < sizes["all"] / 2


@pytest.mark.slow
@requirement("F39")
@rule("S11")
def test_each_load_gives_the_rows_of_one_table(spark: SparkSession, tmp_path: Path) -> None:
    """The last version of an entity is withdrawn too, so that the one before has to have its common values again."""
    changing, whole = (Warehouse(spark, tmp_path / name) for name in ("changing", "whole"))
    one_table = replace(MACHINE, history_table=False, history_columns="all")
    for deliveries in WALK:
        for warehouse, dimension in ((changing, MACHINE), (whole, one_table)):
            load(warehouse, dimension, deliveries).raise_if_rejected()
        expected, rows = (
            sorted(map(str, queries.history(*pair).collect())) for pair in ((whole, one_table), (changing, MACHINE))
        )
        assert rows == expected
    assert violations(changing, MACHINE) == []
    queries.register(changing, query="dim_machine_versions dim_machine_as_of")
    queries.register(whole, query="dim_machine_as_of")
    in_sql = changing.spark.sql("SELECT machine_id, game, maker, previous_vendor FROM dim_machine_versions")
    names = ("machine_id", "game", "maker", "previous_vendor")
    expected_rows = queries.history(whole, one_table).select(*names)
    assert sorted(map(str, in_sql.collect())) == sorted(map(str, expected_rows.collect()))
    day = datetime(2024, 1, 20, tzinfo=timezone.utc)
    as_of, expected_as_of = (
        queries.as_of(warehouse, dimension, day) for warehouse, dimension in ((changing, MACHINE), (whole, one_table))
    )
    assert sorted(map(str, as_of.collect())) == sorted(map(str, expected_as_of.collect()))


class Killed(BaseException):
    """Represents the end of the process."""


@pytest.mark.slow
@rule("S20")
@pytest.mark.parametrize("killed_at", ["nowhere", "dim_machine", HISTORY])
def test_common_columns_are_renamed_and_added(
    opened: Warehouse, monkeypatch: pytest.MonkeyPatch, killed_at: str
) -> None:
    """Readers of tables that a killed load has altered see the values under both names."""
    load(opened, MACHINE, [changes("1", TWO_GAMES)])
    attributes = {
        **{attribute.name: attribute for attribute in MACHINE.attributes if attribute.name not in ("maker", "vendor")},
        "producer": Attribute(1, former_names="maker"),
        "seller": Attribute(3, former_names="vendor"),
        "colour": Attribute(1, missing="not_provided"),
    }
    source = replace(SOURCE, columns={"producer": "maker", "seller": "vendor"})
    renamed = replace(MACHINE, attributes=attributes, sources=source)
    delivery = change("2", "M1", "2024-03-01", "U", "Aruze", "G4")
    if killed_at != "nowhere":
        rename = Table.rename_column

        def killed(table: Table, old: str, new: str) -> None:
            rename(table, old, new)
            if table.name == killed_at:
                raise Killed

        with monkeypatch.context() as patched:
            patched.setattr(Table, "rename_column", killed)
            with pytest.raises(Killed):
                load(opened, renamed, [delivery])
        for dimension in (MACHINE.name, renamed):
            rows = queries.history(opened, dimension).toArrow().to_pylist()
            makers = sorted(row.get("maker") or row.get("producer") for row in rows)
            assert makers == ["Bally", "Bally", "IGT"]
        view = Pipeline(opened.path, spark=opened.spark).sql("SELECT * FROM dim_machine_versions").toArrow().to_pylist()
        assert sorted(row.get("maker") or row.get("producer") for row in view) == ["Bally", "Bally", "IGT"]
    load(opened, renamed, [delivery]).raise_if_rejected()
    rows = queries.history(opened, renamed).select("machine_id", "producer", "seller", "previous_seller", "colour")
    assert_same_rows(
        """
        | machine_id | producer | seller | previous_seller | colour |
        | M1         | Aruze    | North  | South           | NULL   |
        | M1         | Aruze    | North  | South           | NULL   |
        | M1         | Aruze    | North  | South           | NULL   |
        | M2         | IGT      | North  | NULL            | NULL   |
        """,
        rows.toArrow().to_pylist(),
    )
    assert violations(opened, renamed) == []


@pytest.mark.slow
@rule("S21")
def test_a_history_of_changing_columns_is_repaired(opened: Warehouse) -> None:
    for deliveries in WALK[:3]:
        load(opened, MACHINE, deliveries)
    before = sorted(map(str, queries.history(opened, MACHINE).collect()))
    now = datetime(2024, 7, 1, tzinfo=timezone.utc)
    assert not repair(opened, MACHINE, now=now, actor="ann", dry_run=True).has_differences
    for name in ("dim_machine", HISTORY):
        opened.spark.sql(f"UPDATE {opened.table(name).identifier} SET maker = 'Atari'").collect()
    assert repair(opened, MACHINE, now=now, actor="ann").has_differences
    assert sorted(map(str, queries.history(opened, MACHINE).collect())) == before
    assert opened.table(HISTORY).read().where("maker IS NOT NULL").count() == 1
    load(opened, MACHINE, WALK[3][0:1]).raise_if_rejected()
    assert violations(opened, MACHINE) == []


@pytest.mark.slow
@rule("S20")
def test_a_repair_after_a_renaming_keeps_common_values(opened: Warehouse) -> None:
    """The declaration in the table has both names as soon as a column is renamed."""
    load(opened, MACHINE, [changes("1", TWO_GAMES)])
    attributes = {a.name: a for a in MACHINE.attributes if a.name != "maker"}
    producer = Attribute(1, former_names="maker")
    source = replace(SOURCE, columns={"producer": "maker"})
    renamed = replace(MACHINE, attributes={**attributes, "producer": producer}, sources=source)
    opened.spark.sql(f"UPDATE {opened.table('dim_machine').identifier} SET game = 'G0'").collect()
    repair(opened, renamed, now=datetime(2024, 7, 1, tzinfo=timezone.utc), actor="ann")
    producers = [row["producer"] for row in queries.history(opened, renamed).collect()]
    assert sorted(producers) == ["Bally", "Bally", "IGT"]


@pytest.mark.slow
@rule("S20")
def test_a_repair_by_another_declaration_is_rejected(opened: Warehouse) -> None:
    whole = replace(MACHINE, history_columns="all")
    load(opened, whole, [changes("1", TWO_GAMES)])
    for call in (
        lambda: repair(opened, MACHINE, now=datetime(2024, 7, 1, tzinfo=timezone.utc), actor="ann"),
        lambda: load(opened, MACHINE),
    ):
        with pytest.raises(DeclarationError) as caught:
            call()
        assert [(error.code, error.field) for error in caught.value.errors] == [("TABLE_DIFFERS", "history_columns")]
    assert queries.history(opened, whole).where("maker IS NULL").isEmpty()


@pytest.mark.slow
@rule("S11", "S17")
def test_a_load_that_is_killed_between_the_commits_loses_no_common_value(
    opened: Warehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A deleted machine returns: its last closed version gives up its common values in the commit of the history."""
    for deliveries in WALK[:3]:
        load(opened, MACHINE, deliveries)
    before = sorted(map(str, queries.history(opened, MACHINE).collect()))

    def unless_machine(write: Callable[..., Any]) -> Callable[..., Any]:
        def call(table: Table, *arguments: Any, **options: Any) -> Any:
            if table.name == MACHINE.name:
                raise Killed
            return write(table, *arguments, **options)

        return call

    back = change("back", "M1", "2024-05-01", "U", "Aruze", "G3")
    with monkeypatch.context() as patched:
        for name in ("append", "merge"):
            patched.setattr(Table, name, unless_machine(getattr(Table, name)))
        with pytest.raises(Killed):
            load(opened, MACHINE, [back])
    assert sorted(map(str, queries.history(opened, MACHINE).collect())) == before
    load(opened, MACHINE, [back]).raise_if_rejected()
    assert violations(opened, MACHINE) == []
    rows = queries.history(opened, MACHINE).where("machine_id = 'M1'").toArrow().to_pylist()
    assert {row["maker"] for row in rows} == {"Aruze"}
