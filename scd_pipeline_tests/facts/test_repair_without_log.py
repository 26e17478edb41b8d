"""A history table of another program is repaired: the latest version remains, and each other one ends before it."""

from __future__ import annotations

import json
import shutil
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from scd_pipeline import queries
from scd_pipeline.declaration import Dimension, parse
from scd_pipeline.delta.warehouse import Warehouse
from scd_pipeline.errors import ConflictError, SetupError, UsageError
from scd_pipeline.load.run import load
from scd_pipeline.operations import repair_without_log as repair_without_log_module
from scd_pipeline.operations.repair import repair
from scd_pipeline.operations.repair_without_log import repair_without_log
from scd_pipeline_tests.facts.players import PLAYER, W, players
from scd_pipeline_tests.semantics.specification import requirement
from scd_pipeline_tests.text_tables import assert_same_rows

NOW = datetime(2024, 5, 1, tzinfo=timezone.utc)
OPEN = "9999-12-31 23:59:59"
CUSTOMER = """
dimension: dim_customer
business_key: id
sources: {crm: {snapshot: {}}}
attributes: {city: 2}
"""
COLUMNS = "customer_key bigint, id string, city string, effective_from timestamp, effective_to timestamp, "
STORED = f"""
    -- two writers have left two current versions
    (1, 'a', 'Bonn', '2024-01-01', '{OPEN}', true, 1, '2024-01-01', 'x'),
    (1, 'a', 'Kiel', '2024-03-01', '{OPEN}', true, 2, '2024-03-01', 'y'),
    -- a closed version that overlaps the next one, before a gap
    (3, 'b', 'Bonn', '2024-01-01', '2024-04-01', false, 1, '2024-01-01', 'x'),
    (4, 'b', 'Kiel', '2024-02-01', '2024-05-01', false, 2, '2024-02-01', 'x'),
    (5, 'b', 'Ulm', '2024-06-01', NULL, false, 3, '2024-06-01', 'x'),
    -- two versions with one start
    (6, 'c', 'Bonn', '2024-01-01', '{OPEN}', true, 1, '2024-01-02', 'x'),
    (7, 'c', 'Kiel', '2024-01-01', '{OPEN}', true, 1, '2024-01-01', 'x'),
    -- a row twice
    (8, 'd', 'Bonn', '2024-01-01', '2024-02-01', false, 1, '2024-01-01', 'x'),
    (8, 'd', 'Bonn', '2024-01-01', '2024-02-01', false, 1, '2024-01-01', 'x'),
    -- a deleted entity, and the unknown member
    (9, 'e', 'Bonn', '2024-01-01', '2024-02-01', false, 1, '2024-01-01', 'x'),
    (-1, NULL, NULL, '0001-01-01', '0001-01-01', false, 0, '0001-01-01', NULL)
"""
"""Rows of a table of another program, in which the surrogate key does not identify a version, with a column `note`."""

REPAIRED = """
| customer_key | id   | city | effective_from | effective_to | current_flag | version | note |
| 1            | a    | Bonn | 2024-01-01     | 2024-03-01   | false        | 1       | x    |
| 1            | a    | Kiel | 2024-03-01     | OPEN         | true         | 2       | y    |
| 3            | b    | Bonn | 2024-01-01     | 2024-02-01   | false        | 1       | x    |
| 4            | b    | Kiel | 2024-02-01     | 2024-05-01   | false        | 2       | x    |
| 5            | b    | Ulm  | 2024-06-01     | OPEN         | true         | 3       | x    |
| 6            | c    | Bonn | 2024-01-01     | OPEN         | true         | 1       | x    |
| 8            | d    | Bonn | 2024-01-01     | 2024-02-01   | false        | 1       | x    |
| 9            | e    | Bonn | 2024-01-01     | 2024-02-01   | false        | 1       | x    |
| -1           | NULL | NULL | 0001-01-01     | 0001-01-01   | false        | 0       | NULL |
"""


def customer(option: str = "") -> Dimension:
    """The declaration of the table."""
    return parse(f"{CUSTOMER}{option}\n")[0]


@pytest.fixture(scope="module")
def _adopted(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("adopted")
    table = Warehouse(spark, folder).table("dim_customer").identifier
    others = "current_flag boolean, version int, last_updated timestamp, note string"
    spark.sql(f"CREATE TABLE {table} ({COLUMNS}{others}) USING delta")
    spark.sql(f"INSERT INTO {table} VALUES {STORED}")
    return folder


@pytest.fixture
def adopted(opened: Warehouse, _adopted: Path) -> Warehouse:
    """A warehouse with a history table of another program."""
    shutil.copytree(_adopted, opened.path, dirs_exist_ok=True)
    return opened


def stored(warehouse: Warehouse) -> list[dict[str, Any]]:
    """The rows of the table."""
    return warehouse.table("dim_customer").read().toArrow().to_pylist()


@pytest.mark.slow
@requirement("F30")
def test_the_version_with_the_latest_start_remains_current(adopted: Warehouse) -> None:
    """In one commit; the audit has the old and the new values."""
    table = adopted.table("dim_customer")
    plan = repair_without_log(adopted, customer(), now=NOW, actor="ann", dry_run=True)
    assert (dict(plan.row_counts), plan.table_version) == ({"close": 1, "overwrite": 2, "remove": 2}, None)
    assert table.newest_version() == 1
    result = repair_without_log(adopted, customer(), now=NOW, actor="ann", reason="two writers")
    assert result.table_version == table.newest_version() == 2
    assert_same_rows(REPAIRED, stored(adopted))
    entries = queries.audit(adopted, "dim_customer").collect()
    assert {(row["change_type"], row["actor"], row["reason"]) for row in entries} == {
        ("REPAIRED", "ann", "two writers")
    }
    changes = {(row["id"], row["customer_key_old"]): (row["old_values"], row["new_values"]) for row in entries}
    old, new = changes["a", 1]
    assert (old["effective_to"], new["effective_to"]) == (OPEN, "2024-03-01 00:00:00")
    old, new = changes["c", 7]
    assert (old["city"], new) == ("Kiel", None)
    history = adopted.spark.sql(f"DESCRIBE HISTORY {table.identifier} LIMIT 1").collect()[0]
    assert json.loads(history["userMetadata"])["actor"] == "ann"
    repeated = repair_without_log(adopted, customer(), now=NOW, actor="ann")
    assert (dict(repeated.row_counts), repeated.table_version) == ({}, None)


@pytest.mark.slow
def test_a_table_with_another_open_end_than_declared_is_not_repaired(adopted: Warehouse) -> None:
    """Otherwise no version would remain current."""
    table = adopted.table("dim_customer")
    adopted.spark.sql(f"UPDATE {table.identifier} SET effective_to = '2999-12-31' WHERE current_flag")
    adopted.spark.sql(f"DELETE FROM {table.identifier} WHERE effective_to IS NULL")
    with pytest.raises(SetupError) as error:
        repair_without_log(adopted, customer(), now=NOW, actor="ann")
    assert error.value.code == "OPEN_END_DIFFERS"
    result = repair_without_log(adopted, customer("open_end: 2999-12-31"), now=NOW, actor="ann", dry_run=True)
    assert dict(result.row_counts) == {"close": 1, "overwrite": 1, "remove": 2}


def test_a_table_with_several_open_ends_is_not_repaired(adopted: Warehouse) -> None:
    """Otherwise the correct version with the other end would no longer be current."""
    table = adopted.table("dim_customer")
    adopted.spark.sql(
        f"INSERT INTO {table.identifier} VALUES (10, 'f', 'Bonn', '2024-01-01', '9999-12-31', true, 1, "
        "'2024-01-01', 'x')"
    )
    with pytest.raises(SetupError, match=r"\[OPEN_END_DIFFERS\] .* ends at 9999-12-31 00:00:00"):
        repair_without_log(adopted, customer(), now=NOW, actor="ann")


@pytest.mark.slow
@pytest.mark.parametrize("moment", ["plan_repair", "repair_rows"], ids=["before the audit", "before the commit"])
def test_a_commit_of_another_program_during_the_repair_is_reported(
    adopted: Warehouse, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    """Before anything is written, or with the statement that restores its rows."""
    table, original = adopted.table("dim_customer"), getattr(repair_without_log_module, moment)

    def interrupted(*arguments: Any, **options: Any) -> Any:
        result = original(*arguments, **options)
        adopted.spark.sql(f"UPDATE {table.identifier} SET city = 'Wien' WHERE id = 'a' AND version = 2")
        return result

    monkeypatch.setattr(repair_without_log_module, moment, interrupted)
    with pytest.raises(ConflictError, match=r"\[CHANGED_DURING_REPAIR\] .* version 2 ") as error:
        repair_without_log(adopted, customer(), now=NOW, actor="ann")
    statement = f"RESTORE TABLE {table.identifier} TO VERSION AS OF 2"
    if moment == "plan_repair":
        assert "no row was changed" in str(error.value)
        assert table.newest_version() == 2
    else:
        assert f"`{statement}`" in str(error.value)
        adopted.spark.sql(statement)
    assert [row["city"] for row in stored(adopted) if row["id"] == "a"] == ["Bonn", "Wien"]


def test_a_flag_that_is_not_boolean_is_rejected(opened: Warehouse) -> None:
    table = opened.table("dim_customer").identifier
    opened.spark.sql(f"CREATE TABLE {table} ({COLUMNS}current_flag string) USING delta")
    with pytest.raises(SetupError) as error:
        repair_without_log(opened, customer(), now=NOW, actor="ann")
    assert (error.value.code, error.value.details) == ("FLAG_NOT_BOOLEAN", {"column": "current_flag", "type": "string"})


@pytest.mark.slow
def test_a_table_may_have_a_text_as_its_key(adopted: Warehouse) -> None:
    """As the snapshots of dbt do. The audit has it among the old values."""
    table, path = adopted.table("dim_customer").identifier, f"{adopted.path}/dim_customer"
    rows = adopted.spark.sql(f"SELECT *, concat('k', customer_key) AS dbt_scd_id FROM {table} WHERE id = 'a'")
    rows.drop("customer_key").write.format("delta").mode("overwrite").option("overwriteSchema", "true").save(path)
    repair_without_log(adopted, customer("surrogate_key: dbt_scd_id"), now=NOW, actor="ann")
    ends = {row["city"]: row["effective_to"].isoformat()[:10] for row in stored(adopted)}
    assert ends == {"Bonn": "2024-03-01", "Kiel": OPEN[:10]}
    (entry,) = queries.audit(adopted, "dim_customer").collect()
    assert (entry["dbt_scd_id_old"], entry["old_values"]["dbt_scd_id"]) == (None, "k1")


@pytest.mark.slow
def test_a_table_with_null_as_the_open_end_has_its_own_columns(adopted: Warehouse) -> None:
    table = adopted.table("dim_customer").identifier
    names = "column_names: {effective_from: valid_from, effective_to: valid_to, current_flag: false}\nopen_end: null"
    renamed = "effective_from AS valid_from, nullif(effective_to, timestamp'9999-12-31 23:59:59') AS valid_to"
    rows = adopted.spark.sql(f"SELECT customer_key, id, city, {renamed} FROM {table} WHERE id = 'a'")
    rows.write.format("delta").mode("overwrite").option("overwriteSchema", "true").save(f"{adopted.path}/dim_customer")
    repair_without_log(adopted, customer(names), now=NOW, actor="ann")
    assert_same_rows(
        """
        | customer_key | id | city | valid_from | valid_to   |
        | 1            | a  | Bonn | 2024-01-01 | 2024-03-01 |
        | 1            | a  | Kiel | 2024-03-01 | NULL       |
        """,
        stored(adopted),
    )


def test_a_table_without_windows_is_rejected(adopted: Warehouse) -> None:
    with pytest.raises(
        SetupError, match=r"\[WINDOW_COLUMNS_MISSING\] table dim_customer: it has no columns valid_from"
    ):
        repair_without_log(adopted, customer("column_names: {effective_from: valid_from}"), now=NOW, actor="ann")


@pytest.mark.slow
def test_the_log_decides_if_the_table_has_one(adopted: Warehouse) -> None:
    load(adopted, PLAYER, [players("1", W)])
    with pytest.raises(UsageError, match=r"\[LOG_EXISTS\] table dim_player"):
        repair_without_log(adopted, PLAYER, now=NOW, actor="ann")
    with pytest.raises(SetupError, match=r"\[TABLE_WITHOUT_LOG\] table dim_customer.*--without-log"):
        repair(adopted, customer(), now=NOW, actor="ann")
