"""Checks of existing tables: declarations that fit them, foreign tables, and the capabilities of their server."""

import os
import shutil
from dataclasses import replace
from datetime import datetime, timezone
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from scd_pipeline.declaration import Attribute, Dimension
from scd_pipeline.delta.capabilities import Capabilities, probe
from scd_pipeline.delta.schema import renamed_columns, require_same_declaration
from scd_pipeline.delta.stored_declaration import StoredDeclaration
from scd_pipeline.delta.warehouse import Warehouse
from scd_pipeline.errors import DeclarationError, SetupError, UnsupportedDelta
from scd_pipeline.load.facts import pin
from scd_pipeline.load.reserved_members import with_reserved_members
from scd_pipeline.load.run import ingest_and_apply, plan
from scd_pipeline.operations.maintenance import maintain
from scd_pipeline_tests.storage.customers import CUSTOMER, feed, history, snapshot


def declared(**attributes: Attribute | int) -> Dimension:
    return Dimension("dim_customer", "id", attributes, CUSTOMER.sources)


def test_a_declaration_that_does_not_fit_the_table_is_rejected(in_rome: Warehouse) -> None:
    """S35: nothing is read before, and all problems are reported at once."""
    with pytest.raises(DeclarationError) as error:
        ingest_and_apply(in_rome, declared(email=Attribute(2)), [snapshot(2, {"a": "Oslo"})])
    assert [(e.code, e.field) for e in error.value.errors] == [
        ("TABLE_HAS_ATTRIBUTE", "attributes.city"),
        ("TABLE_DIFFERS", "attributes.email"),
    ]


@pytest.mark.slow
def test_a_foreign_table_is_not_changed(spark: SparkSession, warehouse: Path) -> None:
    """Whichever table of a dimension or a fact it is: nothing is written, and no other table is created."""
    opened, columns = Warehouse(spark, warehouse), "'a' AS id, 'Rome' AS city, CAST(1 AS BIGINT) AS customer_key"
    customer = replace(CUSTOMER, history_table=True)
    uses = [
        lambda: ingest_and_apply(opened, customer, [snapshot(1, {"a": "Oslo"})]),
        lambda: with_reserved_members(opened, pin(opened, customer)),
        lambda: maintain(opened, [CUSTOMER.name], now=datetime(2024, 1, 1, tzinfo=timezone.utc)),
    ]
    for name, selected in [(name, uses[:1]) for name in customer.table_names[1:]] + [(CUSTOMER.name, uses)]:
        table = opened.table(name)
        spark.sql(f"CREATE TABLE {table.identifier} USING delta AS SELECT {columns}").collect()
        for use in selected:
            with pytest.raises(SetupError) as error:
                use()
            assert (error.value.code, error.value.location) == ("FOREIGN_TABLE", f"table {name}")
        assert spark.sql(f"DESCRIBE HISTORY {table.identifier}").count() == 1
        assert [path.name for path in warehouse.iterdir()] == [name]
        shutil.rmtree(warehouse / name)


@pytest.mark.slow
def test_a_plan_reports_its_schema_steps_and_executes_none(in_rome: Warehouse) -> None:
    """S20: a new attribute, and one that was renamed."""
    changed = declared(
        email=1,
        town=Attribute(2, former_names=("city",), missing="not_provided"),
        tier=Attribute(2, missing="not_provided"),
    )
    steps = [str(step) for step in plan(in_rome, changed, [snapshot(2, {"a": "Oslo"})]).schema_steps]
    assert steps == [
        "rename column in dim_customer_changes: city to town",
        "add column to dim_customer_changes: tier string",
        "rename column in dim_customer: city to town",
        "add column to dim_customer: tier string",
    ]
    assert "town" not in in_rome.table("dim_customer").columns()


@pytest.mark.slow
def test_a_renamed_column_keeps_its_history(in_rome: Warehouse) -> None:
    sources = [
        type(CUSTOMER.sources[0])(
            "crm", CUSTOMER.sources[0].snapshot, CUSTOMER.sources[0].feed, columns={"town": "city"}
        )
    ]
    renamed = Dimension("dim_customer", "id", {"email": 1, "town": Attribute(2, former_names=("city",))}, sources)
    ingest_and_apply(in_rome, renamed, [feed("one", ("a", 2, "Rome"), ("a", 3, "Oslo"))])
    rows = in_rome.table("dim_customer").read().orderBy("version").select("town", "version").collect()
    assert [tuple(row) for row in rows] == [("Rome", 1), ("Oslo", 2)]


@pytest.mark.rule("S20")
def test_a_column_of_any_type_can_be_added(spark: SparkSession, warehouse: Path) -> None:
    """An existing table needs a table feature before it can have times without a zone."""
    table = Warehouse(spark, warehouse).table("dim_customer")
    table.create([("id", "string", True)], {}, "")
    added = {"seen": "timestamp_ntz", "visits": "array<struct<at:timestamp_ntz>>"}
    for column in added.items():
        table.add_columns([((column[0],), column[1])])
    assert table.columns() == {"id": "string", **added}


@pytest.mark.rule("S20")
def test_two_attributes_do_not_become_one() -> None:
    """The values of one of them would be read from the column of the other."""
    with pytest.raises(DeclarationError) as error:
        require_same_declaration(
            declared(email=Attribute(1), city=Attribute(2, former_names=("town",))),
            StoredDeclaration.from_dimension(declared(email=1, city=2, town=2)),
        )
    assert [(e.code, e.field) for e in error.value.errors] == [("TABLE_HAS_BOTH", "attributes.city")]


@pytest.mark.rule("S33")
def test_a_new_attribute_does_not_add_windows_to_a_table() -> None:
    """Entities that no delivery covers would have neither window nor version."""
    flat = StoredDeclaration.from_dimension(declared(email=1))
    with pytest.raises(DeclarationError) as error:
        require_same_declaration(declared(email=1, city=2, tier=Attribute(6, retired=True), born=0), flat)
    assert [(e.code, e.field) for e in error.value.errors] == [
        ("TABLE_WITHOUT_WINDOWS", "attributes.city"),
        ("TABLE_WITHOUT_WINDOWS", "attributes.tier"),
    ]
    require_same_declaration(declared(mail=Attribute(1, former_names=("email",)), born=0), flat)
    require_same_declaration(
        declared(email=1, city=2, tier=6), StoredDeclaration.from_dimension(declared(email=1, city=2))
    )


def test_generated_columns_are_renamed_with_their_attribute() -> None:
    """S20: also where one name is part of the other."""
    rent = Attribute(6, name="rent", former_names=("monthly_rent",), previous=True)
    rev = Attribute(3, name="rev", former_names=("revision",))
    assert renamed_columns([rent, rev], generated=True) == {
        "monthly_rent": "rent",
        "current_monthly_rent": "current_rent",
        "previous_monthly_rent": "previous_rent",
        "revision": "rev",
        "previous_revision": "previous_rev",
        "revision_changed_at": "rev_changed_at",
    }


@pytest.mark.usefixtures("each_warehouse_probes")
def test_the_capabilities_of_delta_are_probed_once_and_stored(spark: SparkSession, warehouse: Path) -> None:
    """S32: MERGE is probed only if rows cannot be replaced, as in a run that disables that."""
    capabilities = Warehouse(spark, warehouse).capabilities
    replaces = os.environ.get("SCD_TEST_WRITES", "replace") == "replace"
    assert (capabilities.replaces, capabilities.merges) == (replaces, not replaces)
    assert "Delta" in capabilities.engine
    table = Warehouse(spark, warehouse).table("_scd_capabilities")
    before = table.last_commit()
    assert before.newest == 0, "created with them"
    assert Warehouse(spark, warehouse).capabilities == capabilities
    assert table.last_commit() == before


@pytest.mark.slow
def test_a_delta_without_a_way_of_writing_is_rejected(
    spark: SparkSession, warehouse: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """S32: as an older Delta does, replaceUsing overwrites the whole table here, so that MERGE is probed."""

    def overwrite(self: object, rows: object, mode: str, options: dict[str, str], commit: object) -> None:
        original(self, rows, mode, {}, commit)

    from scd_pipeline.delta.table import Table

    original = Table._save
    monkeypatch.setattr(Table, "_save", overwrite)
    probed = probe(spark, "old", str(warehouse / "s"))
    assert (probed.replaces, probed.merges) == (False, True)
    with pytest.raises(UnsupportedDelta, match="NO_WAY_TO_WRITE"):
        Capabilities("old", "Delta-Lake/2.0", replaces=False, merges=False).require_way_to_write()


def test_a_session_in_another_time_zone_is_rejected(spark: SparkSession, warehouse: Path) -> None:
    spark.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
    try:
        with pytest.raises(SetupError, match="SESSION_TIME_ZONE"):
            Warehouse(spark, warehouse)
    finally:
        spark.conf.set("spark.sql.session.timeZone", "UTC")


@pytest.mark.slow
def test_plan_writes_nothing(spark: SparkSession, warehouse: Path) -> None:
    opened = Warehouse(spark, warehouse)
    load_plan = plan(opened, CUSTOMER, [snapshot(1, {"a": "Rome", "b": "Oslo"})])
    assert load_plan.row_counts == {"open": 2}
    assert "create dim_customer" in load_plan.explain()
    assert not any(warehouse.iterdir())
    ingest_and_apply(opened, CUSTOMER, [snapshot(1, {"a": "Rome", "b": "Oslo"})])
    assert len(history(opened)) == 2
