"""S36: all columns of a source as attributes, which it gains, loses, renames and widens."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from scd_pipeline import queries
from scd_pipeline.declaration import Attribute, Dimension, Fact, Mirror, Role, Source, parse
from scd_pipeline.deliveries.delivery import Delivery
from scd_pipeline.deliveries.discovery import discover
from scd_pipeline.delta.stored_declaration import stored_declaration
from scd_pipeline.delta.warehouse import Warehouse
from scd_pipeline.errors import DeclarationError
from scd_pipeline.load.run import LoadResult, ingest_and_apply, load, plan
from scd_pipeline.operations.check import check_table
from scd_pipeline_tests.semantics.engine import OwnTables, records
from scd_pipeline_tests.semantics.specification import declare, expected, requirement, rule, snapshots
from scd_pipeline_tests.text_tables import assert_same_rows, header

SHOP, RENAMED_SHOP = (
    declare(
        f"""
        dimension: dim_shop
        business_key: {{id: int}}
        sources:
          pos: {{snapshot: {{}}}}
        attributes: {{phone: 1}}
        mirror: {{technical: loaded_at{former_names}}}
        """
    ).dimension
    for former_names in ("", ", former_names: {city: town}")
)
LIFE = {
    "gains nothing": """
        | delivery | at         | id | town | visits | phone | loaded_at |
        | 1        | 2024-01-01 | 1  | Bonn | 10     | a     | x         |
        | 1        | 2024-01-01 | 2  | Ulm  | 20     | c     | x         |
        """,
    "gains tier": """
        | delivery | at         | id | town | visits | phone | tier | loaded_at |
        | 2        | 2024-02-01 | 1  | Bonn | 10     | a     | Gold | y         |
        | 2        | 2024-02-01 | 2  | Ulm  | 20     | c     | NULL | y         |
        """,
    "loses visits": """
        | delivery | at         | id | town | phone | tier |
        | 3        | 2024-03-01 | 1  | Bonn | a     | Gold |
        | 3        | 2024-03-01 | 2  | Ulm  | c     | NULL |
        """,
    "renames town": """
        | delivery | at         | id | city | phone | tier |
        | 4        | 2024-04-01 | 1  | Bonn | b     | Gold |
        | 4        | 2024-04-01 | 2  | Ulm  | c     | NULL |
        """,
    "visits return": """
        | delivery | at         | id | city | phone | tier | visits     |
        | 5        | 2024-05-01 | 1  | Bonn | b     | Gold | 10         |
        | 5        | 2024-05-01 | 2  | Ulm  | c     | NULL | 5000000000 |
        """,
}
BECOMES = """
    | id | city | visits     | tier | phone | effective_from | effective_to | load_run_id    |
    | 1  | Bonn | 10         | NULL | b     | 2024-01-01     | 2024-02-01   | pos/snapshot/1 |
    | 1  | Bonn | 10         | Gold | b     | 2024-02-01     | OPEN         | pos/snapshot/2 |
    | 2  | Ulm  | 20         | NULL | c     | 2024-01-01     | 2024-05-01   | pos/snapshot/1 |
    | 2  | Ulm  | 5000000000 | NULL | c     | 2024-05-01     | OPEN         | pos/snapshot/5 |
"""
NARROW = {"visits": pa.int32()}
TYPES = {"visits return": {"visits": pa.int64()}}


def delivered(table: str, types: Mapping[str, pa.DataType] | None = None) -> list[Delivery]:
    """The batches of a table as pyarrow Tables; columns without a type have text."""
    deliveries = []
    for batch in snapshots(table, source="pos").batches(SHOP):
        schema = pa.schema([(name, pa.string()) for name in batch.columns])
        frame = pa.Table.from_pylist([dict(row) for row in batch.rows], schema)
        columns = [frame[name].cast((types or {}).get(name, pa.string())) for name in batch.columns]
        frame = pa.Table.from_arrays(columns, list(batch.columns))
        deliveries.append(Delivery("pos", batch.delivery, at=batch.at, frame=frame))
    return deliveries


def life(*steps: str) -> list[Delivery]:
    """The deliveries of these steps, in this order."""
    return [each for step in steps for each in delivered(LIFE[step], TYPES.get(step, NARROW))]


def changes(result: LoadResult) -> list[str]:
    return [str(change) for change in result.attribute_changes]


def assert_becomes(own_tables: OwnTables, dimension: Dimension = SHOP) -> None:
    assert_same_rows(expected(BECOMES), own_tables.rows(dimension), header(BECOMES))


@rule("S36")
@requirement("H17", "H19", "H20")
def test_the_columns_of_all_deliveries_are_attributes_and_the_last_one_retires(own_tables: OwnTables) -> None:
    """The first plan ends where visits is lost, the second one where it is back."""
    first = plan(own_tables.warehouse, SHOP, life("gains nothing", "gains tier", "loses visits"))
    assert {a.name: a.retired_at for a in first.dimension.attributes if a.retired_at} == {
        "visits": "2024-03-01 00:00:00"
    }
    assert [str(change) for change in first.attribute_changes] == ["attribute visits: retired at 2024-03-01 00:00:00"]
    second = plan(own_tables.warehouse, RENAMED_SHOP, life(*LIFE))
    assert_same_rows(expected(BECOMES), records(second.changed_rows), header(BECOMES))
    assert not any(attribute.retired_at for attribute in second.dimension.attributes)


@pytest.mark.slow(90)
@rule("S36", "S20")
def test_a_mirrored_dimension_follows_the_columns_of_its_source(own_tables: OwnTables) -> None:
    """The NULL of a new column opens no version, its values do. A lost column keeps its values and comes back."""
    warehouse = own_tables.warehouse
    reported = {}
    for step in LIFE:
        dimension = SHOP if step in ("gains nothing", "gains tier", "loses visits") else RENAMED_SHOP
        result = load(warehouse, dimension, life(step))
        result.raise_if_rejected()
        reported[step] = changes(result)
        if step == "loses visits":
            stored = stored_declaration(warehouse, "dim_shop")
            assert stored is not None and stored.retired_at == {"visits": "2024-03-01 00:00:00"}
            assert comments(own_tables) == {"visits": "Retired at 2024-03-01 00:00:00: no longer provided"}
    assert reported == {
        "gains nothing": [],
        "gains tier": ["attribute tier: added as string"],
        "loses visits": ["attribute visits: retired at 2024-03-01 00:00:00"],
        "renames town": ["attribute city: renamed from town"],
        "visits return": ["attribute visits: widened from int to bigint", "attribute visits: provided again"],
    }
    assert_becomes(own_tables)
    assert comments(own_tables) == {}
    row = own_tables.rows(SHOP)[0]
    assert "loaded_at" not in row and "town" not in row
    assert all(result.passed for result in check_table(warehouse, RENAMED_SHOP))
    assert plan(warehouse, RENAMED_SHOP).schema_steps == ()


def comments(own_tables: OwnTables) -> dict[str, str]:
    """The comments of the columns that have one, as a reader of the table sees them."""
    described = own_tables.warehouse.spark.sql(f"DESCRIBE TABLE {own_tables.warehouse.table('dim_shop').identifier}")
    return {row["col_name"]: row["comment"] for row in records(described) if row["comment"]}


@pytest.mark.slow(40)
@rule("S36", "S14")
def test_an_old_delivery_without_a_column_does_not_retire_it(own_tables: OwnTables) -> None:
    """The rows are those of the deliveries in order; the late deliveries lack visits, and one has the former town."""
    warehouse = own_tables.warehouse
    first = ingest_and_apply(warehouse, RENAMED_SHOP, life("visits return", "gains nothing", "gains tier"))
    late = ingest_and_apply(warehouse, RENAMED_SHOP, life("renames town", "loses visits"))
    for result in (first, late):
        result.raise_if_rejected()
        assert changes(result) == []
    assert_becomes(own_tables, RENAMED_SHOP)
    stored = stored_declaration(warehouse, "dim_shop")
    assert stored is not None and stored.retired_at == {} and stored.attributes["visits"].type == "bigint"


@rule("S36")
@requirement("H18", "H21")
def test_a_renamed_column_without_former_names_is_a_retired_and_a_new_one(own_tables: OwnTables) -> None:
    """So is a column that refers to another table: it stays as it is, and the new one has the values from then on."""
    warehouse = own_tables.warehouse
    first = """
        | delivery | at         | id | region_key | town |
        | 1        | 2024-01-01 | 1  | r7         | Bonn |
    """
    second = """
        | delivery | at         | id | region_id | town |
        | 2        | 2024-02-01 | 1  | n7        | Bonn |
    """
    ingest_and_apply(warehouse, SHOP, delivered(first)).raise_if_rejected()
    planned = plan(warehouse, SHOP, delivered(second))
    assert sorted(map(str, planned.attribute_changes)) == [
        "attribute region_id: added as string",
        "attribute region_key: retired at 2024-02-01 00:00:00",
    ]
    becomes = """
        | id | region_key | region_id | town | effective_from | effective_to |
        | 1  | r7         | NULL      | Bonn | 2024-01-01     | 2024-02-01   |
        | 1  | r7         | n7        | Bonn | 2024-02-01     | OPEN         |
    """
    assert_same_rows(expected(becomes), records(planned.changed_rows), header(becomes))


@rule("S36", "S20")
@requirement("H22")
def test_deliveries_that_cannot_be_mirrored_are_rejected_and_add_no_attribute(own_tables: OwnTables) -> None:
    """Another type is rejected with both types, and so are a delivery without its key and names that no column has."""
    tables = (
        """
        | delivery | at         | id | visits |
        | 1        | 2024-01-01 | 1  | 10     |
        """,
        """
        | delivery | at         | id | visits | note |
        | 2        | 2024-02-01 | 1  | many   | new  |
        """,
        """
        | delivery | at         | id | visits | colour |
        | 3        | 2024-03-01 | 1  | 10     | red    |
        """,
        """
        | delivery | at         | id | current_flag | size |
        | 4        | 2024-04-01 | 1  | yes          | XL   |
        """,
    )
    types = ({"visits": pa.int64()}, {}, {}, {})
    deliveries = [each for table, columns in zip(tables, types, strict=True) for each in delivered(table, columns)]
    deliveries[2] = replace(deliveries[2], frame=deliveries[2].frame.drop_columns(["id"]))
    planned = plan(own_tables.warehouse, SHOP, deliveries)
    assert [(batch.outcome, batch.code) for batch in planned.results] == [
        ("accepted", ""),
        ("rejected", "TYPE_CHANGED"),
        ("rejected", "COLUMN_MISSING"),
        ("rejected", "COLUMN_NOT_MIRRORED"),
    ]
    assert planned.results[1].details == {"changes": "visits from bigint to string"}
    assert planned.results[3].details == {"columns": "current_flag"}
    assert planned.dimension.attribute_names == ("visits",)


@rule("S36")
def test_a_rejected_delivery_adds_no_attribute(own_tables: OwnTables) -> None:
    """Its column has a type that fits, and its rows are bad."""
    bad = """
        | delivery | at         | id | town | colour |
        | 2        | 2024-02-01 | x  | Bonn | red    |
    """
    good = """
        | delivery | at         | id | town |
        | 1        | 2024-01-01 | 1  | Bonn |
    """
    planned = plan(own_tables.warehouse, SHOP, [*delivered(bad), *delivered(good)])
    assert [(batch.outcome, batch.code) for batch in planned.results] == [("rejected", "BAD_ROWS"), ("accepted", "")]
    assert planned.dimension.attribute_names == ("town",)
    assert [row["reason"] for row in records(planned.bad_rows())] != []


@pytest.mark.slow
@rule("S36", "S20")
def test_a_mirrored_attribute_can_be_retired_while_its_source_has_the_column(own_tables: OwnTables) -> None:
    """The column is not read any more, whatever its type; it cannot become technical, as it has values."""
    ingest_and_apply(own_tables.warehouse, SHOP, life("gains nothing")).raise_if_rejected()
    technical = replace(SHOP, mirror=Mirror(technical=("loaded_at", "visits")))
    with pytest.raises(DeclarationError) as caught:
        plan(own_tables.warehouse, technical)
    assert [(error.code, error.field) for error in caught.value.errors] == [("NAME_IN_USE", "mirror.technical")]
    retired = Dimension(
        "dim_shop",
        {"id": "int"},
        {"phone": 1, "visits": Attribute(2, retired=True)},
        SHOP.sources,
        mirror=Mirror(technical="loaded_at"),
    )
    later = """
        | delivery | at         | id | town | visits | phone |
        | 2        | 2024-02-01 | 1  | Bonn | many   | a     |
        | 2        | 2024-02-01 | 2  | Ulm  | few    | d     |
    """
    planned = plan(own_tables.warehouse, retired, delivered(later))
    assert [(batch.outcome, batch.undeclared) for batch in planned.results] == [("accepted", ())]
    assert [str(change) for change in planned.attribute_changes] == ["attribute visits: retired at 2024-02-01 00:00:00"]
    becomes = """
        | id | town | visits | phone | effective_from | effective_to |
        | 2  | Ulm  | 20     | d     | 2024-01-01     | OPEN         |
    """
    assert_same_rows(expected(becomes), records(planned.changed_rows), header(becomes))


@pytest.mark.slow
@rule("S36")
def test_the_type_of_a_rejected_delivery_does_not_reject_later_ones(own_tables: OwnTables) -> None:
    bad = """
        | delivery | at         | id | visits |
        | 1        | 2024-01-01 | x  | many   |
    """
    good = """
        | delivery | at         | id | visits |
        | 2        | 2024-02-01 | 1  | 10     |
    """
    planned = plan(own_tables.warehouse, SHOP, [*delivered(bad), *delivered(good, NARROW)])
    assert [(batch.outcome, batch.code) for batch in planned.results] == [("rejected", "BAD_ROWS"), ("accepted", "")]
    assert [(each.name, each.type) for each in planned.dimension.attributes] == [("visits", "int")]


@pytest.mark.slow
@rule("S36", "S33")
def test_a_table_has_windows_before_its_source_has_the_column_that_opens_versions(own_tables: OwnTables) -> None:
    dimension = Dimension("dim_shop", {"id": "int"}, {"tier": 2}, SHOP.sources, mirror=Mirror(1, "loaded_at"))
    steps = life("gains nothing", "gains tier")
    ingest_and_apply(own_tables.warehouse, dimension, steps[:1]).raise_if_rejected()
    planned = plan(own_tables.warehouse, dimension, steps[1:])
    becomes = """
        | id | town | tier | effective_from | effective_to |
        | 1  | Bonn | NULL | 2024-01-01     | 2024-02-01   |
        | 1  | Bonn | Gold | 2024-02-01     | OPEN         |
    """
    assert_same_rows(expected(becomes), records(planned.changed_rows), header(becomes))


@rule("S36", "S20")
@requirement("H17")
def test_columns_that_are_not_read_because_of_another_column_are_reported(own_tables: OwnTables) -> None:
    """The key and the phone are read from other columns, and the town from that with its present name."""
    (dimension,) = parse(
        """
        dimension: dim_shop
        business_key: {id: int}
        sources: {pos: {snapshot: {}, columns: {id: shop_no, phone: contact}}}
        attributes: {phone: 1}
        mirror: {technical: loaded_at, former_names: {city: town}}
        """
    )
    table = """
        | delivery | at         | shop_no | id | contact | phone | city | town | loaded_at |
        | 1        | 2024-01-01 | 7       | x1 | a       | b     | Bonn | Kiel | t         |
    """
    planned = plan(own_tables.warehouse, dimension, delivered(table))
    assert [(batch.outcome, batch.undeclared) for batch in planned.results] == [("accepted", ("id", "phone", "town"))]
    becomes = """
        | id | phone | city |
        | 7  | a     | Bonn |
    """
    assert_same_rows(expected(becomes), records(planned.changed_rows), header(becomes))


@pytest.mark.slow(40)
@rule("S36")
def test_the_versions_of_a_delta_table_are_mirrored(spark: SparkSession, tmp_path: Path) -> None:
    """A base that gains, loses, renames and widens columns; a float is a double, which has all of its values."""
    base = str(tmp_path / "shops")
    for columns in (
        "1 AS id, 'Bonn' AS town, 1 AS visits, 1.1F AS rent, 'h1' AS row_digest",
        "1 AS id, 'Bonn' AS town, 1 AS visits, 1.1F AS rent, CAST(NULL AS STRING) AS tier, 'h2' AS row_digest",
        "1 AS id, 'Bonn' AS city, 1 AS visits, CAST(1.1F AS DOUBLE) AS rent, CAST(NULL AS STRING) AS tier",
        "1 AS id, 'Bonn' AS city, 1L AS visits, CAST(1.1F AS DOUBLE) AS rent, 'Gold' AS tier",
        "1 AS id, 'Bonn' AS city, 1L AS visits, 'Gold' AS tier",
    ):
        frame = spark.sql(f"SELECT {columns}")
        frame.write.format("delta").mode("overwrite").option("overwriteSchema", "true").save(base)
    (dimension,) = parse(
        f"""
        dimension: dim_shop
        business_key: {{id: int}}
        sources: {{pos: {{snapshot: {{path: {base}, format: delta, versions: true}}}}}}
        mirror: {{technical: row_digest, former_names: {{city: town}}}}
        """
    )
    warehouse = Warehouse(spark, tmp_path / "warehouse")
    deliveries = discover(dimension, spark)
    ingest_and_apply(warehouse, dimension, deliveries[:3]).raise_if_rejected()
    result = ingest_and_apply(warehouse, dimension, deliveries[3:])
    result.raise_if_rejected()
    assert "attribute visits: widened from int to bigint" in changes(result)
    rows = warehouse.table("dim_shop").read()
    assert dict(rows.dtypes) | {"city": "string", "visits": "bigint", "rent": "double", "tier": "string"} == dict(
        rows.dtypes
    )
    becomes = """
        | id | city | visits | tier | load_run_id    |
        | 1  | Bonn | 1      | NULL | pos/snapshot/0 |
        | 1  | Bonn | 1      | Gold | pos/snapshot/3 |
    """
    assert_same_rows(expected(becomes), records(rows), header(becomes))
    stored = stored_declaration(warehouse, "dim_shop")
    assert stored is not None and list(stored.retired_at) == ["rent"]


@pytest.mark.slow(3)
@rule("S36")
def test_mirrored_columns_of_csv_files_are_text_unless_declared(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "shops_2024-01-01.csv").write_text("id,town,visits\n1,Bonn,10\n")
    (tmp_path / "shops_2024-02-01.csv").write_text("id,town,visits,tier\n1,Kiel,010,Gold\n")
    (dimension,) = parse(
        f"""
        dimension: dim_shop
        business_key: {{id: int}}
        sources: {{pos: {{snapshot: "{tmp_path}/shops_{{date}}.csv"}}}}
        attributes: {{visits: {{scd: 2, type: int}}}}
        mirror: {{}}
        """
    )
    planned = plan(Warehouse(spark, tmp_path / "warehouse"), dimension, discover(dimension, spark))
    assert {attribute.name: attribute.type for attribute in planned.dimension.attributes} == {
        "visits": "int",
        "town": "string",
        "tier": "string",
    }
    becomes = """
        | id | town | visits | tier | effective_from | effective_to |
        | 1  | Bonn | 10     | NULL | 2024-01-01     | 2024-02-01   |
        | 1  | Kiel | 10     | Gold | 2024-02-01     | OPEN         |
    """
    assert_same_rows(expected(becomes), records(planned.changed_rows), header(becomes))


@pytest.mark.slow(6)
@rule("S36", "S20")
def test_columns_with_blanks_in_their_names_are_mirrored(spark: SparkSession, tmp_path: Path) -> None:
    """`_` stands for what Delta forbids, also in former and technical names; two columns may not have one name."""
    (tmp_path / "shops_2024-01-01.csv").write_text("Shop No.,Old town,E-Mail (work),Loaded at\n1,Bonn,a,x\n")
    (tmp_path / "shops_2024-02-01.csv").write_text("Shop No.,Town / city,E-Mail (work),Loaded at\n1,Kiel,a,y\n")
    (tmp_path / "shops_2024-03-01.csv").write_text("Shop No.,E-Mail_work,E-Mail (work),Loaded at\n1,b,c,z\n")
    (dimension,) = parse(
        f"""
        dimension: dim_shop
        business_key: {{Shop_No: int}}
        sources: {{pos: {{snapshot: "{tmp_path}/shops_{{date}}.csv"}}}}
        mirror: {{technical: Loaded_at, former_names: {{Town_/_city: Old_town}}}}
        """
    )
    warehouse = Warehouse(spark, tmp_path / "warehouse")
    first, second, third = discover(dimension, spark)
    for delivery in (first, second):
        result = ingest_and_apply(warehouse, dimension, [delivery])
        assert [(batch.outcome, batch.undeclared) for batch in result.results] == [("accepted", ())]
    (rejected,) = ingest_and_apply(warehouse, dimension, [third]).results
    assert (rejected.code, rejected.details) == ("COLUMN_NOT_MIRRORED", {"columns": "E-Mail (work)"})
    becomes = """
        | Shop_No | Town_/_city | E-Mail_work | effective_from | effective_to |
        | 1       | Bonn        | a           | 2024-01-01     | 2024-02-01   |
        | 1       | Kiel        | a           | 2024-02-01     | OPEN         |
    """
    assert_same_rows(expected(becomes), records(warehouse.table("dim_shop").read()), header(becomes))


@pytest.mark.slow(60)
@rule("S36", "S17")
def test_facts_and_a_rebuild_have_the_mirrored_attributes(own_tables: OwnTables) -> None:
    """A dropped table is rebuilt with the columns of the change log; facts are joined with the stored attributes."""
    warehouse, sale = own_tables.warehouse, {"sale": 1, "id": 1, "at": "2024-02-15"}
    load(warehouse, SHOP, life("gains nothing", "gains tier", "loses visits")).raise_if_rejected()
    before = own_tables.rows(SHOP)
    fact = Fact("fct_sale", {"sale": "int"}, "at", {"shop": Role(SHOP)}, Source("till", feed={}))
    load(warehouse, fact, [Delivery("till", "2024-02-16", frame=[sale])]).raise_if_rejected()
    (joined,) = records(queries.with_dimensions(warehouse, fact))
    assert (joined["shop_town"], joined["shop_tier"], joined["shop_visits"]) == ("Bonn", "Gold", 10)

    shutil.rmtree(str(warehouse.table("dim_shop").path))
    ingest_and_apply(warehouse, SHOP).raise_if_rejected()
    assert_same_rows(before, own_tables.rows(SHOP), list(before[0]))
    stored = stored_declaration(warehouse, "dim_shop")
    assert stored is not None and stored.retired_at == {"visits": "2024-03-01 00:00:00"}
