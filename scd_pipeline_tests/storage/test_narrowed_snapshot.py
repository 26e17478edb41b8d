"""A snapshot that is read together with the current rows keeps only the rows that may change something."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timezone

import pytest
from pyspark.sql import SparkSession

from scd_pipeline.declaration import Attribute, Dimension, Snapshot, Source
from scd_pipeline.deliveries import narrowed as narrowed_module
from scd_pipeline.deliveries.delivery import Delivery
from scd_pipeline.deliveries.narrowed import AppliedState, NarrowedSnapshot, can_read_narrowed, narrow_snapshot
from scd_pipeline.deliveries.pending import BatchContent, PendingDelivery
from scd_pipeline.history.batch import Batch
from scd_pipeline.history.narrowing import current_rows

DIMENSION = Dimension("dim_city", "id", {"name": Attribute(2)}, Source("crm", snapshot=Snapshot(path="crm/{date}.csv")))
STORED = Batch("crm", "snapshot", "1", "0", datetime(2024, 1, 1, tzinfo=timezone.utc), columns=("name",))
BATCH = Batch("crm", "snapshot", "2", "0", datetime(2024, 1, 2, tzinfo=timezone.utc), columns=("name",))
CURRENT = "VALUES ('a', 'Bonn', true), ('b', 'Kiel', true), ('c', 'Ulm', true), ('d', 'Jena', false)"
CHANGED = "('b', 'Köln', 'upsert', 7, 0), ('e', 'Hof', 'upsert', 8, 0), (NULL, NULL, 'bad', 9, 0)"
HIGH, LOW = 2**62 + 1, -(2**62) - 3


def state(spark: SparkSession, current: str = CURRENT) -> AppliedState:
    rows = spark.sql(f"SELECT *, 5L AS city_key, 1 AS version FROM {current} AS t(id, name, current_flag)")
    return AppliedState(rows, spark.range(0), (STORED,))


def narrowed(
    spark: SparkSession, delivered: str, applied: AppliedState, batch: Batch = BATCH
) -> NarrowedSnapshot | None:
    """Read a snapshot whose rows have id, name, kind, content hash, and the number of values set to NULL."""
    rows = spark.sql(
        "SELECT id, IF(kind = 'upsert', struct(name AS v), NULL) AS name, kind AS _kind, 'crm' AS _source,"
        " 'snapshot' AS _channel, 'crm/snapshot/2/0' AS _batch, 'i2' AS _delivery_rank, 'i0' AS _revision_rank,"
        " timestamp'2024-01-02' AS _effective_at, CAST(NULL AS STRING) AS _reason, CAST(NULL AS STRING) AS _actor,"
        " CAST(NULL AS STRING) AS _correlation_id, CAST(hash AS BIGINT) AS _scd_hash, nulled AS _scd_nulled,"
        " id IS NOT NULL AS _key_readable, CAST(NULL AS BIGINT) AS _sequence, IF(kind = 'bad', 'no key', NULL) AS"
        " _bad_reason"
        f" FROM {delivered} AS t(id, name, kind, hash, nulled)"
    )
    delivery = PendingDelivery.create(0, Delivery("crm", "2", at=batch.at), DIMENSION, "")
    return narrow_snapshot(rows, replace(delivery, batch=batch), applied, DIMENSION)


def content(result: NarrowedSnapshot) -> BatchContent:
    """What all rows of the snapshot contain."""
    return result.summary.contents[BATCH.id]


def test_repeated_rows_are_counted_and_dropped(spark: SparkSession) -> None:
    repeated = f"('a', 'Bonn', 'upsert', {HIGH}, 1), ('c', 'Ulm', 'upsert', {LOW}, 0)"
    result = narrowed(spark, f"VALUES {repeated}, {CHANGED}", state(spark))
    assert result is not None
    assert (content(result).rows, content(result).hash, content(result).nulled) == (5, HIGH + LOW + 7 + 8 + 9, 1)
    assert (content(result).bad_rows, content(result).unreadable_reason, content(result).latest) == (
        1,
        "no key",
        BATCH.at,
    )
    rows = [(row["id"], row["_kind"], row["_batch"], row["_scd_hash"]) for row in result.rows.collect()]
    batch = "crm/snapshot/2/0"
    assert sorted(rows, key=repr) == [
        ("b", "upsert", batch, 7),
        ("e", "upsert", batch, 8),
        (None, "bad", batch, 9),
    ]
    assert result.omitted.collect() == []
    assert result.row_limit == 3


def test_omitted_entities_are_those_that_exist(spark: SparkSession) -> None:
    result = narrowed(spark, "VALUES ('a', 'Bonn', 'upsert', 1, 0)", state(spark))
    assert result is not None
    assert sorted(row["id"] for row in result.omitted.collect()) == ["b", "c"]
    assert result.rows.collect() == []


def test_an_empty_snapshot_of_an_empty_scope_is_read(spark: SparkSession) -> None:
    """Spark knows without a query that no row remains."""
    batch = replace(BATCH, scope_columns=("id",), scope=())
    result = narrowed(spark, "(SELECT * FROM VALUES ('a', 'Bonn', 'upsert', 1, 0) WHERE false)", state(spark), batch)
    assert result is not None
    assert (result.rows.count(), result.omitted.count()) == (0, 0)


def test_an_entity_exists_although_its_key_is_nan(spark: SparkSession) -> None:
    dimension = Dimension("dim_city", {"id": "double"}, {"name": Attribute(2)}, Source("crm", snapshot=Snapshot()))
    values = "VALUES (double('NaN'), 'Bonn', true), (NULL, 'Kiel', true)"
    rows = spark.sql(f"SELECT *, 5L AS city_key, 1 AS version FROM {values} AS t(id, name, current_flag)")
    assert [str(row["id"]) for row in current_rows(rows, dimension).collect()] == ["nan"]


@pytest.mark.rule("S23", "S14")
def test_the_first_delivery_of_an_inferred_member_is_new_although_it_has_no_values(spark: SparkSession) -> None:
    columns = "id, name, current_flag, city_key, version"
    rows = spark.sql(f"SELECT * FROM VALUES ('x', NULL, true, 7L, 0), ('a', 'Bonn', true, 8L, 1) AS t({columns})")
    delivered = "VALUES ('x', CAST(NULL AS STRING), 'upsert', 1, 0), ('a', 'Bonn', 'upsert', 2, 0)"
    result = narrowed(spark, delivered, AppliedState(rows, spark.range(0), (STORED,)))
    assert result is not None
    assert [row["id"] for row in result.rows.collect()] == ["x"]


@pytest.mark.parametrize(
    "rows",
    [
        "('a', 'Bonn', 'upsert', 1, 0), ('a', 'Bonn', 'upsert', 1, 0)",
        "('a', 'Bonn', 'upsert', 1, 0), ('a', '', 'bad', 2, 0)",
    ],
)
def test_several_rows_of_one_entity_are_compared_as_a_whole(spark: SparkSession, rows: str) -> None:
    assert narrowed(spark, f"VALUES {rows}", state(spark)) is None


@pytest.mark.parametrize(
    ("tasks", "matched", "are_matched_once"),
    [(2, 3, True), (2, 4, False), (3, 3, False)],
    ids=["sound", "a row twice", "a task that was repeated"],
)
def test_current_rows_are_compared_by_exact_counts_only(tasks: int, matched: int, are_matched_once: bool) -> None:
    """Spark counts the rows of a task twice if it repeats the task, which may hide a row that is delivered twice."""
    of_current = {"current": 5, "tasks": tasks, "distinct": 2}
    assert narrowed_module._are_matched_once(of_current, {"matched": matched, "omitted": 2}) is are_matched_once


def test_an_empty_snapshot_omits_all_entities(spark: SparkSession) -> None:
    nothing = "(SELECT * FROM VALUES ('a', '', 'upsert', 1, 0) WHERE false)"
    result = narrowed(spark, nothing, state(spark))
    assert result is not None
    assert (content(result).rows, result.omitted.count(), result.rows.count()) == (0, 3, 0)


def test_an_empty_dimension_has_no_entity_to_compare_with(spark: SparkSession) -> None:
    empty = "(SELECT * FROM VALUES ('a', '', true) WHERE false)"
    result = narrowed(spark, "VALUES ('a', 'Bonn', 'upsert', 1, 0)", state(spark, empty))
    assert result is not None
    assert (content(result).rows, result.omitted.count(), result.rows.count()) == (1, 0, 1)


def test_a_snapshot_is_not_narrowed_if_it_replaces_one_or_its_scope_is_unknown(spark: SparkSession) -> None:
    applied = state(spark)
    assert can_read_narrowed(BATCH, [STORED], applied, DIMENSION)
    assert not can_read_narrowed(BATCH, [STORED, replace(BATCH, revision="-1")], applied, DIMENSION)
    assert not can_read_narrowed(replace(BATCH, scope_columns=("id",)), [STORED], applied, DIMENSION)
