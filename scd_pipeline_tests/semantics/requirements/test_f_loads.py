"""F12, F15, F43, F62: what loads refuse, leave unchanged, ignore, and look up."""

from __future__ import annotations

from dataclasses import replace
from datetime import date, datetime, timezone

import pyarrow as pa
import pytest

from scd_pipeline import queries
from scd_pipeline.declaration import Dimension, Fact, Feed, Role, Source, parse
from scd_pipeline.deliveries.delivery import Delivery
from scd_pipeline.load.run import load
from scd_pipeline_tests.semantics.engine import OwnTables, records
from scd_pipeline_tests.semantics.requirements.test_f_schemas import THRESHOLD
from scd_pipeline_tests.semantics.requirements.test_f_types import PLAYER, WALK, walk
from scd_pipeline_tests.semantics.specification import by_files, declare, feed, requirement
from scd_pipeline_tests.text_tables import assert_same_rows

DIMENSION = by_files(PLAYER.dimension)
MEMBER = by_files(
    declare(
        """
        dimension: dim_member
        business_key: member_id
        sources: {loyalty: {feed: {effective_at: time, deletes: "op = 'D'"}}}
        attributes:
          birth_date: {scd: 0, type: date}
          email: 1
          tier: 2
          marketing_consent: 3
          status: {scd: 6, previous: true}
        """
    ).dimension
)
WITHOUT_WINDOWS = replace(MEMBER, attributes=tuple(a for a in MEMBER.attributes if int(a.scd) in (0, 1, 3)))
MEMBERS = feed(
    """
    | delivery | member_id | time       | op | birth_date | email | tier   | marketing_consent | status |
    | 1        | P1        | 2024-01-01 |    | 1990-01-01 | a     | Bronze | yes               | new    |
    | 1        | P1        | 2024-06-01 |    | 1991-02-02 | b     | Silver | no                | known  |
    | 1        | P2        | 2024-01-01 |    | 1990-01-01 | a     | Bronze | yes               | new    |
    | 1        | P2        | 2024-06-01 | D  |            |       |        |                   |        |
    """,
    "loyalty",
)


@pytest.mark.slow
@requirement("F12")
def test_a_second_date_of_birth_is_refused_with_both_values(own_tables: OwnTables) -> None:
    """Also for P2, whose date of birth was unknown at first and was filled once."""
    changes = feed(
        """
        | delivery | player_id | time       | birth_date |
        | 1        | P1        | 2024-01-01 | 1990-01-01 |
        | 2        | P1        | 2024-02-01 | 1991-02-02 |
        | 3        | P2        | 2024-01-01 | NULL       |
        | 4        | P2        | 2024-02-01 | 1990-01-01 |
        | 5        | P2        | 2024-03-01 | 1991-02-02 |
        """,
        "loyalty",
    )
    load(own_tables.warehouse, DIMENSION, own_tables.deliveries(DIMENSION, changes))
    refused = records(queries.audit(own_tables.warehouse, DIMENSION).where("change_type = 'REFUSED'"))
    values = {
        row["player_id"]: (f"{row['change_ts']:%m-%d}", dict(row["old_values"]), dict(row["new_values"]))
        for row in refused
    }
    old, new = {"birth_date": "1990-01-01"}, {"birth_date": "1991-02-02"}
    assert values == {"P1": ("02-01", old, new), "P2": ("03-01", old, new)}
    rows = records(queries.history(own_tables.warehouse, DIMENSION))
    assert {row["player_id"]: row["birth_date"] for row in rows} == dict.fromkeys(("P1", "P2"), date(1990, 1, 1))


@pytest.mark.slow
@requirement("F15")
@pytest.mark.parametrize(
    "dimension",
    [replace(MEMBER, history_table=True), pytest.param(WITHOUT_WINDOWS, marks=pytest.mark.slow)],
    ids=["two tables with types 0 to 6", "without windows"],
)
def test_the_same_delivery_makes_no_commit_of_any_table(own_tables: OwnTables, dimension: Dimension) -> None:
    warehouse = own_tables.warehouse

    def newest_versions() -> dict[str, int]:
        return {name: warehouse.table(name).newest_version() for name in warehouse.tables()}

    load(warehouse, dimension, own_tables.deliveries(dimension, MEMBERS))
    before = newest_versions()
    assert set(dimension.table_names) <= set(before)
    result = load(warehouse, dimension, own_tables.deliveries(dimension, MEMBERS))
    assert [batch.outcome for batch in result.results] == ["unchanged"]
    assert newest_versions() == before


@pytest.mark.slow(10)
@requirement("F43")
def test_a_new_column_changes_no_table_and_no_answer_even_if_delta_merges_schemas(own_tables: OwnTables) -> None:
    warehouse = own_tables.warehouse
    load(warehouse, DIMENSION, own_tables.deliveries(DIMENSION, walk(*WALK[:2])))
    march = datetime(2024, 3, 5, tzinfo=timezone.utc)

    def columns() -> dict[str, list[str]]:
        return {name: warehouse.table(name).read().columns for name in DIMENSION.table_names}

    before, answer = columns(), records(queries.as_of(warehouse, DIMENSION, march))
    changed = feed(
        """
        | delivery | player_id | time       | tier | home_property | risk_score | email | vip |
        | 3        | P1        | 2024-08-01 | Gold | North         | 10         | a     | yes |
        """,
        "loyalty",
    )
    merge_schema = "spark.databricks.delta.schema.autoMerge.enabled"
    warehouse.spark.conf.set(merge_schema, "true")
    try:
        result = load(warehouse, DIMENSION, own_tables.deliveries(DIMENSION, changed))
    finally:
        warehouse.spark.conf.unset(merge_schema)
    assert [batch.undeclared for batch in result.results] == [("vip",)]
    assert columns() == before
    assert records(queries.as_of(warehouse, DIMENSION, march)) == answer
    assert [row["tier"] for row in answer] == ["Bronze"]
    assert [row["tier"] for row in records(queries.current(warehouse, DIMENSION))] == ["Gold"]


@requirement("F9", "F62")
def test_the_threshold_in_force_decides_which_transactions_are_reported(own_tables: OwnTables) -> None:
    """10,000 until 2026-12-31, 12,000 from 2027-01-01 on; thresholds of other types have no effect."""
    (threshold,) = map(by_files, parse(THRESHOLD))
    role = {"threshold": Role(threshold)}
    cash = Fact("fct_cash", {"event_id": "int"}, "event_ts", role, Source("cage", feed=Feed()), {"cash_in": "int"})
    thresholds = feed(
        """
        | delivery | threshold_type | in_force_from | ctr_threshold | window_hours |
        | 1        | CTR            | 2020-01-01    | 10000         | 24           |
        | 1        | SAR            | 2020-01-01    | 5000          | 24           |
        | 1        | W-2G           | 2020-01-01    | 1200          | 24           |
        | 2        | CTR            | 2027-01-01    | 12000         | 24           |
        """,
        "regulator",
    )
    warehouse = own_tables.warehouse
    own_tables.load(threshold, thresholds)
    expected = """
    | event_id | event_ts            | threshold_type | cash_in | threshold_ctr_threshold | reported |
    | 1        | 2026-12-31 23:59:59 | CTR            | 11000   | 10000                   | 1        |
    | 2        | 2026-12-31 00:00:00 | CTR            | 10000   | 10000                   | 1        |
    | 3        | 2027-01-01 00:00:00 | CTR            | 11000   | 12000                   | 0        |
    | 4        | 2027-01-01 00:00:00 | CTR            | 12000   | 12000                   | 1        |
    | 5        | 2027-01-01 00:00:00 | SAR            | 6000    | 5000                    | 1        |
    | 6        | 2026-12-31 00:00:00 | W-2G           | 1100    | 1200                    | 0        |
    """
    columns = ("event_id", "event_ts", "threshold_type", "cash_in")
    cells = [[text.strip() for text in line.split("|")[1:5]] for line in expected.strip().splitlines()[1:]]
    rows = pa.table({name: list(values) for name, values in zip(columns, zip(*cells, strict=True), strict=True)})
    load(warehouse, cash, [Delivery("cage", "2027-01-02", "feed", frame=rows)])
    joined = queries.with_dimensions(warehouse, cash)
    reported = joined.selectExpr(
        *columns, "threshold_ctr_threshold", "int(cash_in >= threshold_ctr_threshold) reported"
    )
    assert_same_rows(expected, records(reported))
