"""Statistics of columns and CHECK constraints of the tables, which Delta stores in their transaction logs."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timezone
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from scd_pipeline.declaration import Attribute, Dimension, Feed, Snapshot, Source
from scd_pipeline.deliveries.delivery import Delivery
from scd_pipeline.delta import schema
from scd_pipeline.delta.warehouse import Warehouse
from scd_pipeline.expressions import without_blanks
from scd_pipeline.load import schema_steps
from scd_pipeline.load.facts import pin
from scd_pipeline.load.reserved_members import with_reserved_members
from scd_pipeline.load.run import load, plan
from scd_pipeline_tests.semantics.specification import requirement
from scd_pipeline_tests.storage.customers import CUSTOMER, history, snapshot

STATISTICS, CONSTRAINT = "delta.dataSkippingStatsColumns", "delta.constraints.scd_business_key"
GUEST = Dimension(
    "dim_guest",
    "id",
    {
        "city": 2,
        "email": Attribute(1, personal=True),
        "name": Attribute(3, personal=True),
        "phone": Attribute(6, personal=True, previous=True),
        "address": Attribute(2, type="struct<street:string>", personal=True),
        "points": Attribute(2, type="int"),
    },
    Source("hotel", feed=Feed(format="parquet", effective_at="at"), bad_row_limit=1),
    history_table=True,
)
PERSONAL = ("@mail", "Ann", "+43", "Street")


def stay(number: int, **more: object) -> Delivery:
    """Two guests with personal values of this number, and a bad row."""
    guests = [
        {
            "id": key,
            "at": datetime(2024, number, 1, tzinfo=timezone.utc),
            "city": "Vienna",
            "email": f"{key}{number}@mail",
            "name": f"Ann{number}",
            "phone": f"+43{number}",
            "address": {"street": f"Street{number}"},
            "points": points,
            **more,
        }
        for key, points in (("a", "1"), ("b", "2"), ("c", "Ann"))
    ]
    return Delivery("hotel", str(number), frame=pa.Table.from_pylist(guests))


def logged_values(warehouse: Warehouse, values: tuple[str, ...], *, after: int = -1) -> set[str]:
    """Those of the values that commits after this table version, or checksums of them, contain."""
    logs = [
        path.read_bytes()
        for suffix in ("json", "crc")
        for path in Path(warehouse.path).glob(f"dim_*/_delta_log/*.{suffix}")
        if path.stem.isdigit() and int(path.stem) > after
    ]
    assert logs
    return {value for value in values if any(value.encode() in text for text in logs)}


@pytest.mark.slow(15)
def test_personal_values_are_in_no_transaction_log(spark: SparkSession, warehouse: Path) -> None:
    """Also not in that of a table that was created before the attribute was personal."""
    opened = Warehouse(spark, warehouse)
    load(opened, GUEST, [stay(1), stay(2)])
    assert opened.table("dim_guest_history").read().count() == 2
    assert logged_values(opened, (*PERSONAL, "Vienna")) == {"Vienna"}

    added = {"nick": Attribute(2, personal=True), "home": Attribute(2, type="struct<town:string>")}
    more = replace(
        GUEST,
        attributes={**{a.name: a for a in GUEST.attributes}, **added},
        history_table_properties={STATISTICS: "id, `home`.town,address.street, Nick"},
    )
    load(opened, more, [stay(3, nick="Nick3", home={"town": "Linz"})])
    assert logged_values(opened, (*PERSONAL, "Nick3")) == set()
    listed = opened.table("dim_guest").properties()[STATISTICS]
    assert {"`city`", "`points`", "`id`", "`effective_from`"} < set(listed.split(","))
    assert opened.table("dim_guest_history").properties()[STATISTICS] == "id,`home`.town"


@pytest.mark.slow(15)
def test_existing_tables_get_the_constraint_and_the_statistics_of_new_ones(
    spark: SparkSession, warehouse: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened, tables = Warehouse(spark, warehouse), ("dim_guest", "dim_guest_history")
    with monkeypatch.context() as patched:
        for module in (schema, schema_steps):
            patched.setattr(module, "statistics_properties", lambda *arguments: {})
        patched.setattr(schema_steps, "history_statistics", lambda dimension: {})
        patched.setattr(schema_steps, "key_constraint", lambda dimension: {})
        load(opened, GUEST, [stay(1), stay(2)])
    assert logged_values(opened, PERSONAL) == {"@mail", "Ann", "+43", "Street"}
    before = max(opened.table(name).newest_version() for name in tables)

    planned = plan(opened, GUEST, [stay(3)])
    assert [str(step).partition(":")[0] for step in planned.schema_steps] == [
        "add constraint to dim_guest_history",
        "add constraint to dim_guest",
        "set properties of dim_guest_history",
        "set properties of dim_guest",
    ]
    load(opened, GUEST, [stay(3)])
    for name in tables:
        assert {STATISTICS, CONSTRAINT} < opened.table(name).properties().keys()
    newest = [path for name in tables for path in (warehouse / name / "_delta_log").glob("*.json")]
    added = [path.read_text() for path in newest if int(path.stem) > before]
    assert added
    assert not [text for text in added if any(f"{value}3" in text for value in ("Ann", "+43", "Street"))]
    assert plan(opened, GUEST, [stay(4)]).schema_steps == ()


@pytest.mark.slow(15)
def test_properties_that_spark_hides_are_set_once(spark: SparkSession, warehouse: Path) -> None:
    """SHOW TBLPROPERTIES hides the list of columns because of `hourly_rate`, which contains "url"."""
    store, attributes = Warehouse(spark, warehouse), {"email": Attribute(2, personal=True), "hourly_rate": 2}
    dimension = Dimension("dim_staff", "id", attributes, Source("hr", Snapshot(format="parquet")), history_table=True)
    dimension = replace(dimension, table_properties={"docs": "url A"})
    tables = [store.table(name) for name in ("dim_staff", "dim_staff_history")]

    def hired(day: int) -> Delivery:
        rows = pa.Table.from_pylist([{"id": "a", "email": f"{day}@mail", "hourly_rate": f"{day}"}])
        return Delivery("hr", f"2024-01-{day:02}", at=datetime(2024, 1, day, tzinfo=timezone.utc), frame=rows)

    def new_versions(declared: Dimension, delivery: Delivery) -> list[int]:
        before = [table.newest_version() for table in tables]
        load(store, declared, [delivery])
        return [table.newest_version() - version for table, version in zip(tables, before, strict=True)]

    load(store, dimension, [hired(1), hired(2)])
    assert {table.properties()[name] for table in tables for name in (STATISTICS, "docs")} == {schema.HIDDEN_VALUE}
    assert plan(store, dimension, [hired(3)]).schema_steps == ()
    assert new_versions(dimension, hired(3)) == [1, 1]

    changed = replace(dimension, table_properties={"docs": "url B"})
    for table in tables:  # as if it had been created without the fingerprint of the list
        statement = f"ALTER TABLE {table.identifier} UNSET TBLPROPERTIES ('scd_pipeline.statistics')"
        spark.sql(statement).collect()
    assert len(plan(store, changed, [hired(4)]).schema_steps) == len(tables)
    assert [count > 1 for count in new_versions(changed, hired(4))] == [True, True]
    assert logged_values(store, ("url B",)) == {"url B"}
    assert plan(store, changed, [hired(5)]).schema_steps == ()


@pytest.mark.slow
@requirement("F1", "F2", "F9")
def test_only_reserved_members_have_no_business_key(in_rome: Warehouse) -> None:
    """A load replaces the constraint of an earlier release, which allows the unknown member alone."""
    table, expected = in_rome.table("dim_customer"), "(`id` IS NOT NULL) OR `customer_key` IN (-1, -2, -3)"
    assert table.properties()[CONSTRAINT] == expected
    in_rome.spark.sql(f"ALTER TABLE {table.identifier} DROP CONSTRAINT scd_business_key")
    earlier = "(`id` IS NOT NULL) OR `customer_key` = -1"
    in_rome.spark.sql(f"ALTER TABLE {table.identifier} ADD CONSTRAINT scd_business_key CHECK ({earlier})")
    rows = table.read()
    with pytest.raises(Exception, match=r"DELTA_VIOLATE_CONSTRAINT.*CHECK constraint scd_business_key"):
        rows.selectExpr("* EXCEPT (id)", "CAST(NULL AS STRING) AS id").write.format("delta").mode("append").save(
            str(table.path)
        )
    assert with_reserved_members(in_rome, pin(in_rome, CUSTOMER)).commit.number == 2
    load(in_rome, CUSTOMER, [snapshot(2, {"a": "Oslo"})])
    assert without_blanks(table.properties()[CONSTRAINT]) == without_blanks(expected)
    assert plan(in_rome, CUSTOMER).schema_steps == ()
    assert sorted(str(row["id"]) for row in history(in_rome)) == ["None", "a", "a"]
