"""H1 to H7, H13, H33: the history of an existing table, in the profile of elevata."""

from __future__ import annotations

import shutil
from dataclasses import replace
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from scd_pipeline.declaration import Attribute, Dimension, Mirror, Snapshot, Source, history_of
from scd_pipeline.deliveries.discovery import discover
from scd_pipeline.delta.warehouse import Warehouse
from scd_pipeline.load.run import ingest_and_apply, plan
from scd_pipeline.operations.repair import repair
from scd_pipeline_tests.semantics.engine import OwnTables, Records, records
from scd_pipeline_tests.semantics.specification import declare, requirement, rule, snapshots
from scd_pipeline_tests.text_tables import assert_same_rows

PRODUCT = declare(
    """
    history_of: rc_product
    business_key: rc_product_key
    attributes: {price: {scd: 2, type: int}}
    """
).dimension
FIRST_RUN = """
| delivery | at         | rc_product_key | price |
| 1        | 2024-01-01 | A              | 1     |
| 1        | 2024-01-01 | B              | 1     |
| 1        | 2024-01-01 | C              | 1     |
"""
SECOND_RUN = """
| delivery | at         | rc_product_key | price |
| 2        | 2024-02-01 | A              | 2     |
| 2        | 2024-02-01 | B              | 1     |
| 2        | 2024-02-01 | D              | 1     |
"""
SAME_BASE = """
| delivery | at         | rc_product_key | price |
| 3        | 2024-03-01 | A              | 2     |
| 3        | 2024-03-01 | B              | 1     |
| 3        | 2024-03-01 | D              | 1     |
"""
RETURN = """
| delivery | at         | rc_product_key | price |
| 4        | 2024-04-01 | A              | 2     |
| 4        | 2024-04-01 | B              | 1     |
| 4        | 2024-04-01 | C              | 1     |
| 4        | 2024-04-01 | D              | 1     |
"""
AFTER_TWO_RUNS = """
| rc_product_key | price | version_started_at | version_ended_at | version_state | load_run_id           |
| A              | 1     | 2024-01-01         | 2024-02-01       | changed       | rc_product/snapshot/1 |
| A              | 2     | 2024-02-01         | NULL             | changed       | rc_product/snapshot/2 |
| B              | 1     | 2024-01-01         | NULL             | new           | rc_product/snapshot/1 |
| C              | 1     | 2024-01-01         | 2024-02-01       | deleted       | rc_product/snapshot/1 |
| D              | 1     | 2024-02-01         | NULL             | new           | rc_product/snapshot/2 |
"""
RETURNED = """
| C              | 1     | 2024-04-01         | NULL             | new           | rc_product/snapshot/4 |
"""


KEYS = {
    ("A", "2024-01-01"): -6364732104908547333,
    ("A", "2024-02-01"): 4687493470316077212,
    ("B", "2024-01-01"): 1214606363836531585,
    ("C", "2024-01-01"): 8265990838051730767,
    ("C", "2024-04-01"): 2330950849505192610,
    ("D", "2024-02-01"): 242486105860890917,
}
"""The surrogate key of each version, by its business key and the day of its start."""

NOW = datetime(2024, 5, 1, tzinfo=timezone.utc)


def keys(rows: Records) -> dict[tuple[str, str], int]:
    """The surrogate keys of rows, as in `KEYS`."""
    return {(row["rc_product_key"], str(row["version_started_at"].date())): row["rc_product_hist_key"] for row in rows}


def runs(table: str) -> Any:
    """Deliveries of the base."""
    return snapshots(table, "rc_product")


@requirement("H5", "H6", "H7")
@rule("S13", "S18")
def test_a_run_without_a_change_writes_nothing_and_a_product_that_returns_is_new(own_tables: OwnTables) -> None:
    """A closed version is changed or deleted. The versions before the return stay as they are."""
    own_tables.load(PRODUCT, runs(FIRST_RUN), runs(SECOND_RUN))
    assert_same_rows(AFTER_TWO_RUNS, own_tables.rows(PRODUCT))
    before = own_tables.warehouse.table(PRODUCT.name).last_commit()
    own_tables.load(PRODUCT, runs(SAME_BASE))
    assert own_tables.warehouse.table(PRODUCT.name).last_commit() == before
    own_tables.load(PRODUCT, runs(RETURN))
    assert_same_rows(AFTER_TWO_RUNS + RETURNED.lstrip(), own_tables.rows(PRODUCT))
    assert keys(own_tables.rows(PRODUCT)) == KEYS


@pytest.mark.slow(6)
@requirement("H3", "H33")
@rule("S14")
def test_a_late_run_gives_the_same_keys_and_states_with_declared_labels(own_tables: OwnTables) -> None:
    """Before the second run arrives, C is in force without a gap, and the product A is changed later."""
    labels = {"INSERT": "N", "UPDATE": "C", "LOGICAL_DELETE": "D"}
    dimension = replace(PRODUCT, change_types=labels)
    own_tables.load(dimension, runs(FIRST_RUN), runs(RETURN))
    assert_same_rows(
        """
        | rc_product_key | price | version_started_at | version_ended_at | version_state |
        | A              | 1     | 2024-01-01         | 2024-04-01       | C             |
        | A              | 2     | 2024-04-01         | NULL             | C             |
        | B              | 1     | 2024-01-01         | NULL             | N             |
        | C              | 1     | 2024-01-01         | NULL             | N             |
        | D              | 1     | 2024-04-01         | NULL             | N             |
        """,
        own_tables.rows(dimension),
    )
    own_tables.load(dimension, runs(SECOND_RUN))
    assert_same_rows(
        """
        | rc_product_key | price | version_started_at | version_ended_at | version_state |
        | A              | 1     | 2024-01-01         | 2024-02-01       | C             |
        | A              | 2     | 2024-02-01         | NULL             | C             |
        | B              | 1     | 2024-01-01         | NULL             | N             |
        | C              | 1     | 2024-01-01         | 2024-02-01       | D             |
        | C              | 1     | 2024-04-01         | NULL             | N             |
        | D              | 1     | 2024-02-01         | NULL             | N             |
        """,
        own_tables.rows(dimension),
    )
    assert keys(own_tables.rows(dimension)) == KEYS


def base_versions(spark: SparkSession, path: Path, *versions: str) -> list[Any]:
    """Write the rows of each version to a Delta table; return the times of its versions."""
    for rows in versions:
        frame = spark.sql(f"SELECT * FROM VALUES {rows}")
        frame.write.format("delta").mode("overwrite").option("overwriteSchema", "true").save(str(path))
    history = spark.sql(f"DESCRIBE HISTORY delta.`{path}`").select("version", "timestamp")
    return [row["timestamp"] for row in sorted(records(history), key=lambda row: row["version"])]


@pytest.mark.slow(6)
@requirement("H1", "H2", "H4")
def test_the_versions_of_two_tables_become_histories_with_all_of_their_columns(
    spark: SparkSession, warehouse: Path, tmp_path: Path
) -> None:
    """The second one has a time as the open end. The columns that the bases add themselves are not declared."""
    opened = Warehouse(spark, warehouse)
    columns = "AS t(rc_product_key, sku, price, loaded_by)"
    r1, r2 = base_versions(
        spark,
        tmp_path / "rc_product",
        f"('h1', 'A', 1.50BD, 'x'), ('h2', 'B', 1.50BD, 'x'), ('h3', 'C', 1.50BD, 'x') {columns}",
        f"('h1', 'A', 2.50BD, 'y'), ('h2', 'B', 1.50BD, 'y'), ('h4', 'D', 1.50BD, 'y') {columns}",
    )
    product = history(tmp_path, "rc_product", {"sku": 2, "price": Attribute(2, "decimal(10,2)")})
    rows = load_versions(opened, product)
    assert_same_rows(
        """
        | sku | price | started | ended | version_state | load_run_id           |
        | A   | 1.50  | r1      | r2    | changed       | rc_product/snapshot/0 |
        | A   | 2.50  | r2      | NULL  | changed       | rc_product/snapshot/1 |
        | B   | 1.50  | r1      | NULL  | new           | rc_product/snapshot/0 |
        | C   | 1.50  | r1      | r2    | deleted       | rc_product/snapshot/0 |
        | D   | 1.50  | r2      | NULL  | new           | rc_product/snapshot/1 |
        """,
        [with_runs(row, {r1: "r1", r2: "r2", None: None}) for row in rows],
    )
    assert {field.name: field.dataType.simpleString() for field in opened.table(product.name).read().schema} == {
        "rc_product_hist_key": "bigint",
        "rc_product_key": "string",
        "sku": "string",
        "price": "decimal(10,2)",
        "version_started_at": "timestamp",
        "version_ended_at": "timestamp",
        "version": "int",
        "version_state": "string",
        "change_reason": "string",
        "change_source": "string",
        "load_run_id": "string",
        "loaded_at": "timestamp",
        "row_hash": "string",
    }
    base_versions(spark, tmp_path / "rc_customer", "('k1', 'Bonn') AS t(rc_customer_key, city)")
    customer = replace(history(tmp_path, "rc_customer", {"city": 2}), open_end="9999-12-31 23:59:59")
    assert_same_rows(
        """
        | rc_customer_key | city | version_ended_at | version_state |
        | k1              | Bonn | OPEN             | new           |
        """,
        load_versions(opened, customer),
    )


@requirement("H2", "H13")
@rule("S36")
def test_the_technical_columns_of_a_base_are_reported_and_do_not_open_versions(
    spark: SparkSession, warehouse: Path, tmp_path: Path
) -> None:
    """The base has its own hash, and other load times and runs in each version; nothing but its name is declared."""
    columns = "AS t(rc_product_key, name, row_hash, load_run_id, loaded_at)"
    base_versions(
        spark,
        tmp_path / "rc_product",
        f"('h1', 'Tea', 'f00d', 'run1', TIMESTAMP '2024-01-01') {columns}",
        f"('h1', 'Tea', 'f00d', 'run2', TIMESTAMP '2024-02-01') {columns}",
        f"('h1', 'Rum', 'beef', 'run3', TIMESTAMP '2024-03-01') {columns}",
    )
    product = history(tmp_path, "rc_product")
    planned = plan(Warehouse(spark, warehouse), product, discover(product, spark))
    assert [(each.outcome, each.undeclared) for each in planned.results] == [
        ("accepted", ("load_run_id", "loaded_at"))
    ] * 3
    assert_same_rows(
        """
        | name | row_hash | load_run_id           |
        | Tea  | f00d     | rc_product/snapshot/0 |
        | Rum  | beef     | rc_product/snapshot/2 |
        """,
        records(planned.changed_rows),
    )


def history(folder: Path, table: str, attributes: dict[str, Any] | str = "mirror") -> Dimension:
    """The history of a Delta table in a folder."""
    source = Source(table, Snapshot(str(folder / table), versions=True))
    return history_of(table, f"{table}_key", attributes, sources=source)


def load_versions(opened: Warehouse, dimension: Dimension) -> Records:
    """Load all versions of the base, and return the rows of the history."""
    ingest_and_apply(opened, dimension, discover(dimension, opened.spark)).raise_if_rejected()
    return records(opened.table(dimension.name).read())


def with_runs(row: dict[str, Any], names: dict[Any, str | None]) -> dict[str, Any]:
    """The row with the names of the runs that opened and closed it."""
    return {**row, "started": names[row["version_started_at"]], "ended": names[row["version_ended_at"]]}


@requirement("H13")
@rule("S8")
def test_the_hash_of_the_base_decides_what_opens_a_version(own_tables: OwnTables) -> None:
    """The name of the second run comes with the hash of the first one."""
    attributes = {
        "row_hash": Attribute(2, required=True),
        "name": Attribute(1, untracked="at_open"),
        "price": Attribute(1, "int", untracked="at_open"),
    }
    dimension = history_of("rc_product", "rc_product_key", attributes)
    own_tables.load(
        dimension,
        runs(
            """
            | delivery | at         | rc_product_key | row_hash | name | price |
            | 1        | 2024-01-01 | A              | f00d     | Tea  | 1     |
            | 2        | 2024-02-01 | A              | f00d     | TEA  | 1     |
            | 3        | 2024-03-01 | A              | beef     | TEA  | 2     |
            """
        ),
    )
    assert_same_rows(
        """
        | row_hash | name | price | version_started_at | version_ended_at | version_state |
        | f00d     | Tea  | 1     | 2024-01-01         | 2024-03-01       | changed       |
        | beef     | TEA  | 2     | 2024-03-01         | NULL             | changed       |
        """,
        own_tables.rows(dimension),
    )


@pytest.mark.slow
@requirement("H13")
@rule("S8", "S20")
def test_a_new_column_without_values_opens_no_version_and_changes_no_hash(own_tables: OwnTables) -> None:
    own_tables.load(PRODUCT, runs(FIRST_RUN), runs(SECOND_RUN))
    before = {row["rc_product_hist_key"]: row["row_hash"] for row in own_tables.rows(PRODUCT)}
    extended = replace(PRODUCT, attributes=(*PRODUCT.attributes, Attribute(2, name="color")))
    own_tables.load(
        extended,
        runs(
            """
            | delivery | at         | rc_product_key | price | color |
            | 3        | 2024-03-01 | A              | 2     | NULL  |
            | 3        | 2024-03-01 | B              | 1     | NULL  |
            | 3        | 2024-03-01 | D              | 3     | NULL  |
            """
        ),
    )
    after = {row["rc_product_hist_key"]: row["row_hash"] for row in own_tables.rows(extended)}
    assert len(after) == len(before) + 1, "only D has a new version, with another price"
    assert before.items() <= after.items()


@pytest.mark.slow(30)
@requirement("H13", "H17", "H29")
@rule("S14", "S20", "S36")
def test_a_column_that_is_renamed_twice_changes_no_hash_and_opens_no_version(own_tables: OwnTables) -> None:
    """The history lacks the hash of its base. A load that rebuilds the dropped table computes the same hashes."""
    header = "| delivery | at         | rc_product_key | {} | base_hash |"
    lines = "| {0} | 2024-0{0}-01 | A | Tea | {1} |\n| {0} | 2024-0{0}-01 | B | {2} | {1} |"
    former = ((), ("name",), ("title", "name"))
    hashes = []
    for run, (column, names) in enumerate(zip(("name", "title", "label"), former, strict=True), 1):
        mirror = Mirror(technical="base_hash", former_names={column: names} if names else {})
        dimension = history_of("rc_product", "rc_product_key", mirror=mirror)
        text = "\n".join([header.format(column), lines.format(run, "f00d", "Rum" if run == 3 else "Gin")])
        own_tables.load(dimension, runs(text))
        hashes.append({row["rc_product_hist_key"]: row["row_hash"] for row in own_tables.rows(dimension)})
    assert hashes[0] == hashes[1]
    assert hashes[1].items() < hashes[2].items()
    assert_same_rows(
        """
        | rc_product_key | label | version_started_at | version_ended_at | version_state |
        | A              | Tea   | 2024-01-01         | NULL             | new           |
        | B              | Gin   | 2024-01-01         | 2024-03-01       | changed       |
        | B              | Rum   | 2024-03-01         | NULL             | changed       |
        """,
        own_tables.rows(dimension),
    )
    assert not repair(own_tables.warehouse, dimension, now=NOW, actor="x", dry_run=True).has_differences
    shutil.rmtree(str(own_tables.warehouse.table(dimension.name).path))
    own_tables.load(dimension)
    assert {row["rc_product_hist_key"]: row["row_hash"] for row in own_tables.rows(dimension)} == hashes[2]


@pytest.mark.slow(8)
@requirement("H13")
@rule("S36")
def test_a_mirrored_hash_of_the_base_is_the_hash_of_the_history(own_tables: OwnTables) -> None:
    dimension = history_of("rc_product", "rc_product_key")
    own_tables.load(
        dimension,
        runs(
            """
            | delivery | at         | rc_product_key | name | row_hash |
            | 1        | 2024-01-01 | A              | Tea  | f00d     |
            | 2        | 2024-02-01 | A              | Rum  | beef     |
            """
        ),
    )
    rows = own_tables.rows(dimension)
    assert [(row["name"], row["row_hash"]) for row in sorted(rows, key=lambda row: row["version"])] == [
        ("Tea", "f00d"),
        ("Rum", "beef"),
    ]


@pytest.mark.slow
@requirement("H13")
@rule("S36")
def test_a_hash_that_the_base_has_later_is_rejected(own_tables: OwnTables) -> None:
    """The rows have the computed hash in the column of this name."""
    dimension = history_of("rc_product", "rc_product_key")
    own_tables.load(dimension, runs("| delivery | at | rc_product_key | name |\n| 1 | 2024-01-01 | A | Tea |"))
    later = """
        | delivery | at         | rc_product_key | name | row_hash |
        | 2        | 2024-02-01 | A              | Tea  | f00d     |
    """
    (rejected,) = own_tables.load(dimension, runs(later)).results
    assert (rejected.code, rejected.details) == ("COLUMN_NOT_MIRRORED", {"columns": "row_hash"})
    accepted = own_tables.load(replace(dimension, mirror=Mirror(technical="row_hash")), runs(later))
    assert (accepted.rejected, dict(accepted.row_counts)) == ((), {})
