"""S20: a declared type that is wider than the stored one."""

import pytest

from scd_pipeline import queries
from scd_pipeline.deliveries.delivery import Delivery
from scd_pipeline.errors import DeclarationError
from scd_pipeline.load.run import load, plan
from scd_pipeline.operations.check import check_table
from scd_pipeline_tests.semantics.engine import OwnTables, records
from scd_pipeline_tests.semantics.specification import by_files, declare, requirement, rule, snapshots
from scd_pipeline_tests.text_tables import assert_same_rows

NARROW, WIDE, OTHER = (
    declare(
        f"""
        dimension: dim_shop
        business_key: {{id: int}}
        history_table: true
        column_names: {{row_hash: row_hash}}
        sources:
          pos: {{snapshot: {{}}}}
        attributes:
          visits: {{scd: 6, type: {visits}, previous: true}}
          rent: {{scd: 2, type: "{rent}"}}
        """
    ).dimension
    for visits, rent in (("int", "decimal(6,2)"), ("bigint", "decimal(9,2)"), ("string", "decimal(9,4)"))
)
FIRST = snapshots(
    """
    | delivery | at         | id | visits | rent |
    | 1        | 2024-01-01 | 1  | 10     | 1.50 |
    | 1        | 2024-01-01 | 2  | 20     | 2.50 |
    | 3        | 2024-03-01 | 1  | 10     | 1.50 |
    | 3        | 2024-03-01 | 2  | 21     | 2.50 |
    """,
    source="pos",
)
LARGE = snapshots(
    """
    | delivery | at         | id | visits     | rent       |
    | 2        | 2024-02-01 | 1  | 10         | 1.50       |
    | 2        | 2024-02-01 | 2  | 5000000000 | 1000000.25 |
    """,
    source="pos",
)


@pytest.mark.slow(40)
@rule("S20")
def test_a_wider_type_changes_no_stored_value_and_no_key(own_tables: OwnTables) -> None:
    """The late delivery has values that the narrower types do not have; the columns are altered in place."""
    warehouse, narrow, wide = own_tables.warehouse, by_files(NARROW), by_files(WIDE)
    load(warehouse, narrow, own_tables.deliveries(NARROW, FIRST)).raise_if_rejected()
    names = ("id", "shop_key", "row_hash", "effective_from")
    before = {tuple(row[name] for name in names) for row in records(queries.history(warehouse, narrow))}

    load(warehouse, wide, own_tables.deliveries(WIDE, LARGE)).raise_if_rejected()
    assert_same_rows(
        """
        | id | visits     | current_visits | previous_visits | rent       | effective_from | effective_to |
        | 1  | 10         | 10             | NULL            | 1.50       | 2024-01-01     | NULL         |
        | 2  | 20         | 21             | NULL            | 2.50       | 2024-01-01     | 2024-02-01   |
        | 2  | 5000000000 | 21             | 20              | 1000000.25 | 2024-02-01     | 2024-03-01   |
        | 2  | 21         | 21             | 5000000000      | 2.50       | 2024-03-01     | NULL         |
        """,
        records(queries.history(warehouse, wide)),
    )
    assert before <= {tuple(row[name] for name in names) for row in records(queries.history(warehouse, wide))}
    assert all(result.passed for result in check_table(warehouse, wide))
    assert plan(warehouse, wide).schema_steps == ()
    history = warehouse.spark.sql(f"DESCRIBE HISTORY {warehouse.table('dim_shop_changes').identifier}")
    operations = {row["operation"] for row in records(history.select("operation"))}
    assert operations == {"CREATE TABLE", "WRITE", "SET TBLPROPERTIES", "CHANGE COLUMN"}


@rule("S20")
@requirement("H26")
def test_a_wider_type_is_a_schema_step_and_another_one_is_rejected_with_both_types(own_tables: OwnTables) -> None:
    """Of the stored rows, the plan changes only those after the late delivery."""
    own_tables.load(NARROW, FIRST).raise_if_rejected()
    planned = plan(own_tables.warehouse, by_files(WIDE), own_tables.deliveries(WIDE, LARGE))
    assert [str(step) for step in planned.schema_steps if step.table == "dim_shop"] == [
        "widen column in dim_shop: visits from int to bigint",
        "widen column in dim_shop: current_visits from int to bigint",
        "widen column in dim_shop: previous_visits from int to bigint",
        "widen column in dim_shop: rent from decimal(6,2) to decimal(9,2)",
    ]
    becomes = """
        | id | visits     | rent       | effective_from | effective_to |
        | 2  | 20         | 2.50       | 2024-01-01     | 2024-02-01   |
        | 2  | 5000000000 | 1000000.25 | 2024-02-01     | 2024-03-01   |
        | 2  | 21         | 2.50       | 2024-03-01     | OPEN         |
    """
    assert_same_rows(becomes, records(planned.changed_rows))
    with pytest.raises(DeclarationError) as error:
        plan(own_tables.warehouse, by_files(OTHER))
    problems = {(each.code, each.field): each.problem for each in error.value.errors}
    types = {"visits": ("type int", "type string"), "rent": ("type decimal(6,2)", "type decimal(9,4)")}
    assert problems.keys() == {("TABLE_DIFFERS", f"attributes.{name}") for name in types}
    assert all(each in problems["TABLE_DIFFERS", f"attributes.{name}"] for name in types for each in types[name])


BEFORE, AFTER, MOVED = (
    declare(
        f"""
        dimension: dim_shop
        business_key: {{id: int}}
        sources:
          pos: {{feed: {{}}}}
        attributes:
          address: {{scd: 2, type: "{address}"}}
          hours: {{scd: 2, type: "map<string,{hours}>"}}
        """
    ).dimension
    for address, hours in (
        ("struct<town:string>", "int"),
        ("struct<town:string,streets:array<string>>", "bigint"),
        ("struct<streets:array<string>,town:string>", "bigint"),
    )
)


@pytest.mark.slow(10)
@rule("S20")
def test_a_struct_gets_fields_at_its_end_and_a_map_wider_values(own_tables: OwnTables) -> None:
    warehouse = own_tables.warehouse
    first = {"id": 1, "address": {"town": "Bonn"}, "hours": {"mon": 8}}
    second = {"id": 1, "address": {"town": "Bonn", "streets": None}, "hours": {"mon": 8}}
    third = {"id": 1, "address": {"town": "Bonn", "streets": ["Markt"]}, "hours": {"mon": 5_000_000_000}}
    load(warehouse, BEFORE, [Delivery("pos", "1", "feed", at="2024-01-01", frame=[first])]).raise_if_rejected()
    with pytest.raises(DeclarationError, match="type struct<streets:array<string>,town:string>"):
        plan(warehouse, MOVED)
    deliveries = [
        Delivery("pos", str(day), "feed", at=f"2024-01-0{day}", frame=[row]) for day, row in ((2, second), (3, third))
    ]
    load(warehouse, AFTER, deliveries).raise_if_rejected()
    history = records(queries.history(warehouse, AFTER).orderBy("effective_from"))
    assert [(row["effective_from"].day, row["address"], dict(row["hours"])) for row in history] == [
        (1, second["address"], second["hours"]),
        (3, third["address"], third["hours"]),
    ]
    assert plan(warehouse, AFTER).schema_steps == ()
    assert [result for result in check_table(warehouse, AFTER) if not result.passed] == []
