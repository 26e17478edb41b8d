"""D22 to D40: the strategy `scd2` of dlt, with the rows and the columns that its tables have."""

from __future__ import annotations

import datetime as dt
import hashlib
from collections.abc import Callable
from typing import Any

import pytest

from scd_pipeline.declaration import Dimension, Snapshot, Source
from scd_pipeline.deliveries.delivery import Delivery
from scd_pipeline.errors import DeclarationError, SourceDataError
from scd_pipeline_tests.semantics.declarations import CUSTOMER
from scd_pipeline_tests.semantics.engine import SharedTables
from scd_pipeline_tests.semantics.specification import Case, Declaration, case, declare, feed, requirement, snapshots

EXTRACT = declare(
    """
    dimension: dim_extract
    business_key: whole_row
    surrogate_key: row_key
    profile: dlt
    sources:
      shop: {snapshot: {}, feed: {effective_at: time}}
    attributes:
      customer_key: {scd: 2, type: int}
      c1: 2
      c2: {scd: 2, type: int}
      c3: {scd: 2, missing: not_provided}
    """
)
INCREMENT = declare(
    """
    dimension: dim_increment
    business_key: whole_row
    surrogate_key: row_key
    profile: dlt
    sources:
      shop: {snapshot: {scope: customer_key}}      # the natural key
    attributes:
      customer_key: {scd: 2, type: int}
      c1: 2
      c2: {scd: 2, type: int}
    """,
    by_increments=False,
)
PARTITION = declare(
    """
    dimension: dim_partition
    business_key: whole_row
    profile: dlt
    sources:
      shop: {snapshot: {scope: date}}
    attributes:
      date: {scd: 2, type: date}
      name: 2
    """
)
COMPOUND = declare(
    """
    dimension: dim_compound
    business_key: whole_row
    profile: dlt
    sources:
      shop: {snapshot: {scope: [date, shop]}}
    attributes:
      date: {scd: 2, type: date}
      shop: 2
      name: 2
    """,
    by_increments=False,
)
VERSION = declare(
    """
    dimension: dim_version
    business_key: row_hash
    row_version: true
    surrogate_key: row_key
    profile: dlt
    sources:
      shop: {snapshot: {}, bad_row_limit: 0.5}
    attributes:
      customer_key: {scd: 0, type: int}
      c1: 0
    """,
    by_increments=False,
)
NAMED = declare(
    """
    dimension: dim_named
    business_key: whole_row
    profile: dlt
    column_names: {effective_from: from, effective_to: to}
    open_end: 9999-12-31
    sources:
      shop: {snapshot: {}}
    attributes: {name: 2}
    """,
    by_increments=False,
)

FIRST, SECOND, THIRD = "2024-04-09 18:27:53.734235", "2024-04-09 22:13:07.943703", "2024-04-10 06:45:22.847403"
RUNS = (
    f"| 1 | {FIRST}  | 1 | foo         | 1 |",
    f"| 1 | {FIRST}  | 2 | bar         | 2 |",
    f"| 2 | {SECOND} | 1 | foo_updated | 1 |",
    f"| 2 | {SECOND} | 2 | bar         | 2 |",
    f"| 3 | {THIRD}  | 1 | foo_updated | 1 |",
)


def extracts(*lines: str) -> Any:
    """The deliveries of a table with these lines."""
    return snapshots("\n".join(["| delivery | at | customer_key | c1 | c2 |", *lines]), "shop")


def becomes(*lines: str) -> str:
    """The expected rows as a table."""
    return "\n".join(["| _dlt_valid_from | _dlt_valid_to | customer_key | c1 | c2 |", *lines])


@requirement("D23")
@case
def test_the_first_extract_opens_a_window_for_each_row() -> Case:
    return Case(
        EXTRACT,
        extracts(*RUNS[:2]),
        becomes=becomes(
            f"| {FIRST} | NULL | 1 | foo | 1 |",
            f"| {FIRST} | NULL | 2 | bar | 2 |",
        ),
    )


@requirement("D23")
@case
def test_the_second_extract_closes_the_former_row_of_a_customer_and_opens_the_new_one() -> Case:
    return Case(
        EXTRACT,
        extracts(*RUNS[:4]),
        becomes=becomes(
            f"| {FIRST}  | {SECOND} | 1 | foo         | 1 |",
            f"| {FIRST}  | NULL     | 2 | bar         | 2 |",
            f"| {SECOND} | NULL     | 1 | foo_updated | 1 |",
        ),
    )


@requirement("D23")
@case
def test_the_third_extract_closes_the_row_that_it_omits() -> Case:
    return Case(
        EXTRACT,
        extracts(*RUNS),
        becomes=becomes(
            f"| {FIRST}  | {SECOND} | 1 | foo         | 1 |",
            f"| {FIRST}  | {THIRD}  | 2 | bar         | 2 |",
            f"| {SECOND} | NULL     | 1 | foo_updated | 1 |",
        ),
    )


@requirement("D24")
@case
def test_a_row_that_is_deleted_and_inserted_again_has_two_windows() -> Case:
    return Case(
        EXTRACT,
        extracts(
            "| 1 | 2024-01-01 | 1 | foo | 1 |",
            "| 1 | 2024-01-01 | 2 | bar | 2 |",
            "| 2 | 2024-01-02 | 2 | bar | 2 |",
            "| 3 | 2024-01-03 | 1 | foo | 1 |",
            "| 3 | 2024-01-03 | 2 | bar | 2 |",
        ),
        becomes=becomes(
            "| 2024-01-01 | 2024-01-02 | 1 | foo | 1 |",
            "| 2024-01-03 | NULL       | 1 | foo | 1 |",
            "| 2024-01-01 | NULL       | 2 | bar | 2 |",
        ),
    )


@requirement("D22", "D24")
def test_the_table_has_the_columns_of_dlt_and_a_key_that_identifies_one_window(
    shared_tables: Callable[[Declaration], SharedTables],
) -> None:
    """The hash of a row is the same in its two windows; hash and start, and the surrogate key, identify one of them."""
    tables = shared_tables(EXTRACT)
    types = dict(tables.warehouse.table("dim_extract").read().dtypes)
    own = {"_dlt_valid_from": "timestamp", "_dlt_valid_to": "timestamp", "_dlt_id": "string", "row_key": "bigint"}
    source = {"customer_key": "int", "c1": "string", "c2": "int", "c3": "string"}
    assert {name: types[name] for name in (*own, *source)} == {**own, **source}
    assert {"effective_from", "effective_to", "current_flag", "row_hash"}.isdisjoint(types)
    rows = tables.case_rows("dimension", test_a_row_that_is_deleted_and_inserted_again_has_two_windows.case)
    of_foo = [row for row in rows if row["c1"] == "foo"]
    assert len({row["_dlt_id"] for row in of_foo}) == 1
    assert len({row["_dlt_id"] for row in rows}) == 2
    assert len({(row["_dlt_id"], row["_dlt_valid_from"]) for row in rows}) == len(rows)
    assert len({row["row_key"] for row in rows}) == len(rows)


@requirement("D25")
@case
def test_with_the_natural_key_as_the_scope_an_absent_customer_is_not_retired() -> Case:
    return Case(
        INCREMENT,
        extracts(*RUNS[:3]),
        becomes=becomes(
            f"| {FIRST}  | {SECOND} | 1 | foo         | 1 |",
            f"| {FIRST}  | NULL     | 2 | bar         | 2 |",
            f"| {SECOND} | NULL     | 1 | foo_updated | 1 |",
        ),
    )


P1, P2, P3 = "2024-01-02 03:03:35.854305", "2024-01-03 03:01:11.943703", "2024-01-03 10:30:05.750356"
PARTITIONS = (
    f"| 1 | {P1} | | 2024-01-01 | a  |",
    f"| 1 | {P1} | | 2024-01-01 | b  |",
    f"| 2 | {P2} | | 2024-01-02 | c  |",
    f"| 2 | {P2} | | 2024-01-02 | d  |",
    f"| 3 | {P3} | | 2024-01-01 | a  |",
    f"| 3 | {P3} | | 2024-01-01 | bb |",
)


def partitions(*lines: str) -> Any:
    """The deliveries of a table with these lines."""
    return snapshots("\n".join(["| delivery | at | scope | date | name |", *lines]), "shop")


def some_data(*lines: str) -> str:
    """The expected rows as a table."""
    return "\n".join(["| _dlt_valid_from | _dlt_valid_to | date | name |", *lines])


@requirement("D27")
@case
def test_the_second_partition_does_not_touch_the_rows_of_the_first() -> Case:
    return Case(
        PARTITION,
        partitions(*PARTITIONS[:4]),
        becomes=some_data(
            f"| {P1} | NULL | 2024-01-01 | a |",
            f"| {P1} | NULL | 2024-01-01 | b |",
            f"| {P2} | NULL | 2024-01-02 | c |",
            f"| {P2} | NULL | 2024-01-02 | d |",
        ),
    )


@requirement("D27")
@case
def test_a_reloaded_partition_closes_only_its_own_row() -> Case:
    return Case(
        PARTITION,
        partitions(*PARTITIONS),
        becomes=some_data(
            f"| {P1} | NULL | 2024-01-01 | a  |",
            f"| {P1} | {P3} | 2024-01-01 | b  |",
            f"| {P2} | NULL | 2024-01-02 | c  |",
            f"| {P2} | NULL | 2024-01-02 | d  |",
            f"| {P3} | NULL | 2024-01-01 | bb |",
        ),
    )


@requirement("D28")
@case
def test_an_emptied_partition_that_the_delivery_names_closes_its_rows() -> Case:
    return Case(
        PARTITION,
        partitions(*PARTITIONS, "| 4 | 2024-01-04 | 2024-01-01 | | no row |"),
        becomes=some_data(
            f"| {P1} | 2024-01-04 | 2024-01-01 | a  |",
            f"| {P1} | {P3}       | 2024-01-01 | b  |",
            f"| {P2} | NULL       | 2024-01-02 | c  |",
            f"| {P2} | NULL       | 2024-01-02 | d  |",
            f"| {P3} | 2024-01-04 | 2024-01-01 | bb |",
        ),
    )


@requirement("D29")
@case
def test_a_compound_scope_is_compared_column_by_column() -> Case:
    """The second delivery covers the first day of shop b alone."""
    return Case(
        COMPOUND,
        snapshots(
            """
            | delivery | at         | date       | shop | name |
            | 1        | 2024-01-02 | 2024-01-01 | a    | x    |
            | 1        | 2024-01-02 | 2024-01-01 | b    | x    |
            | 1        | 2024-01-02 | 2024-01-02 | b    | x    |
            | 2        | 2024-01-03 | 2024-01-01 | b    | y    |
            """,
            "shop",
        ),
        becomes="""
        | _dlt_valid_from | _dlt_valid_to | date       | shop | name |
        | 2024-01-02      | NULL          | 2024-01-01 | a    | x    |
        | 2024-01-02      | 2024-01-03    | 2024-01-01 | b    | x    |
        | 2024-01-02      | NULL          | 2024-01-02 | b    | x    |
        | 2024-01-03      | NULL          | 2024-01-01 | b    | y    |
        """,
    )


@requirement("D30", "D31")
@case
def test_the_window_has_the_names_of_sql_keywords_and_a_date_as_its_open_end() -> Case:
    return Case(
        NAMED,
        snapshots(
            """
            | delivery | at         | name |
            | 1        | 2024-01-01 | a    |
            | 2        | 2024-01-02 | b    |
            """,
            "shop",
        ),
        becomes="""
        | from       | to         | name |
        | 2024-01-01 | 2024-01-02 | a    |
        | 2024-01-02 | 9999-12-31 | b    |
        """,
    )


def row_dimension(**options: Any) -> Dimension:
    """A dimension of whole rows with dlt's columns."""
    source = Source("shop", snapshot=Snapshot())
    return Dimension("dim_row", "whole_row", {"name": 2}, source, profile="dlt", **options)


@requirement("D30")
@pytest.mark.parametrize(
    ("names", "field"),
    [
        ({"effective_from": "valid", "effective_to": "valid"}, "column_names.effective_to"),
        ({"effective_to": "name"}, "column_names.effective_to"),
        ({"effective_to": "_dlt_id"}, "column_names.effective_to"),
    ],
    ids=["equal names", "name of a column", "name of the hash"],
)
def test_a_window_needs_two_names_that_no_other_column_has(names: dict[str, str], field: str) -> None:
    with pytest.raises(DeclarationError) as caught:
        row_dimension(column_names=names)
    assert [(error.code, error.field) for error in caught.value.errors] == [("NAME_IN_USE", field)]


@requirement("D31")
@pytest.mark.parametrize(
    ("open_end", "stored"),
    [
        ("profile", "null"),
        (None, "null"),
        ("9999-12-31", "9999-12-31 00:00:00"),
        (dt.date(9999, 12, 31), "9999-12-31 00:00:00"),
        (dt.datetime(9999, 12, 31), "9999-12-31 00:00:00"),
        (dt.datetime(9999, 12, 31, tzinfo=dt.timezone.utc), "9999-12-31 00:00:00"),
    ],
    ids=["omitted", "None", "text", "date", "datetime", "datetime with a zone"],
)
def test_each_form_of_an_open_end_is_the_same_time(open_end: Any, stored: str) -> None:
    assert row_dimension(open_end=open_end).column_layout.open_end == stored


@requirement("D32")
@pytest.mark.parametrize(
    ("at", "time"),
    [
        ("2024-08-21T12:15:00+00:00", dt.datetime(2024, 8, 21, 12, 15)),
        ("2024-08-21T14:15:00+02:00", dt.datetime(2024, 8, 21, 12, 15)),
        ("2024-08-21", dt.datetime(2024, 8, 21)),
        (dt.date(2024, 8, 21), dt.datetime(2024, 8, 21)),
        (dt.datetime(2024, 8, 21, 12, 15), dt.datetime(2024, 8, 21, 12, 15)),
    ],
    ids=["text", "another zone", "date as text", "date", "datetime"],
)
def test_each_form_of_a_boundary_is_the_time_of_the_delivery(at: Any, time: dt.datetime) -> None:
    batch = Delivery("shop", "1", at=at, frame=[{"name": "a"}]).batch(row_dimension())
    assert batch.at == time.replace(tzinfo=dt.timezone.utc)


@requirement("D32")
def test_a_delivery_without_a_boundary_has_the_date_of_its_name_or_is_rejected() -> None:
    """The clock is never read (S4)."""
    batch = Delivery("shop", "2024-08-21", frame=[{"name": "a"}]).batch(row_dimension())
    assert batch.at == dt.datetime(2024, 8, 21, tzinfo=dt.timezone.utc)
    with pytest.raises(SourceDataError) as caught:
        Delivery("shop", "first", frame=[{"name": "a"}]).batch(row_dimension())
    assert caught.value.code == "NO_TIME"


@requirement("D32")
@case
def test_the_boundary_starts_new_rows_and_ends_retired_ones_also_before_an_open_start() -> Case:
    """The third delivery is earlier than the start of (2, bar): it is woven in."""
    return Case(
        EXTRACT,
        extracts(
            "| 1 | 2024-08-20          | 1 | foo | 1 |",
            "| 2 | 2024-08-21 12:15:00 | 2 | bar | 2 |",
            "| 3 | 2024-08-20 06:00:00 | 3 | baz | 3 |",
        ),
        becomes=becomes(
            "| 2024-08-20          | 2024-08-20 06:00:00 | 1 | foo | 1 |",
            "| 2024-08-20 06:00:00 | 2024-08-21 12:15:00 | 3 | baz | 3 |",
            "| 2024-08-21 12:15:00 | NULL                | 2 | bar | 2 |",
        ),
    )


@requirement("D33")
@case
def test_a_row_version_decides_and_other_columns_open_nothing() -> Case:
    """Customer 1 has another c1 with the same hash. The row without a hash is rejected; its extract retires none."""
    return Case(
        VERSION,
        snapshots(
            """
            | delivery | at         | row_hash | customer_key | c1  |
            | 1        | 2024-01-01 | h1       | 1            | foo |
            | 1        | 2024-01-01 | h2       | 2            | bar |
            | 2        | 2024-01-02 | h1       | 1            | FOO |
            | 2        | 2024-01-02 | h3       | 2            | baz |
            | 3        | 2024-01-03 | h1       | 1            | FOO |
            | 3        | 2024-01-03 | NULL     | 3            | new |
            """,
            "shop",
        ),
        becomes="""
        | _dlt_valid_from | _dlt_valid_to | row_hash | customer_key | c1  |
        | 2024-01-01      | NULL          | h1       | 1            | foo |
        | 2024-01-01      | 2024-01-02    | h2       | 2            | bar |
        | 2024-01-02      | NULL          | h3       | 2            | baz |
        """,
        quarantine="""
        | batch             | key           | reason                                     |
        | shop/snapshot/3/1 | row_hash=NULL | the business key is NULL or cannot be read |
        """,
    )


@requirement("D33")
@case
def test_a_delivery_without_the_row_version_is_rejected() -> Case:
    return Case(
        VERSION,
        snapshots("| delivery | at | customer_key | c1 |\n| 1 | 2024-01-01 | 1 | foo |", "shop"),
        becomes="| row_hash |",
        results="""
        | arrives | batch             | outcome  | code           |
        | 1       | shop/snapshot/1/1 | rejected | COLUMN_MISSING |
        """,
    )


@requirement("D33")
@pytest.mark.slow(6)
def test_the_hash_follows_from_the_row_version_alone(
    shared_tables: Callable[[Declaration], SharedTables],
) -> None:
    case = test_a_row_version_decides_and_other_columns_open_nothing.case
    tables = shared_tables(VERSION)
    hashes = {row["row_hash"]: row["_dlt_id"] for row in tables.case_rows("dimension", case)}
    texts = {each: f'{{"case":"{tables.number(case)}","row_hash":"{each}"}}' for each in ("h1", "h2", "h3")}
    assert hashes == {each: hashlib.sha256(text.encode()).hexdigest() for each, text in texts.items()}


@requirement("D34")
@case
def test_the_order_of_columns_and_an_added_column_of_nulls_change_no_row() -> Case:
    """The values of c3 in the last delivery do."""
    return Case(
        EXTRACT,
        extracts("| 1 | 2024-01-01 | 1 | foo | 1 |", "| 1 | 2024-01-01 | 2 | bar | 2 |"),
        snapshots(
            """
            | delivery | at         | c2 | c1  | customer_key |
            | 2        | 2024-01-02 | 1  | foo | 1            |
            | 2        | 2024-01-02 | 2  | bar | 2            |
            """,
            "shop",
        ),
        snapshots(
            """
            | delivery | at         | c3   | customer_key | c1  | c2 |
            | 3        | 2024-01-03 | NULL | 1            | foo | 1  |
            | 3        | 2024-01-03 | NULL | 2            | bar | 2  |
            | 4        | 2024-01-04 | NULL | 1            | foo | 1  |
            | 4        | 2024-01-04 | x    | 2            | bar | 2  |
            """,
            "shop",
        ),
        becomes="""
        | _dlt_valid_from | _dlt_valid_to | customer_key | c1  | c2 | c3   |
        | 2024-01-01      | NULL          | 1            | foo | 1  | NULL |
        | 2024-01-01      | 2024-01-04    | 2            | bar | 2  | NULL |
        | 2024-01-04      | NULL          | 2            | bar | 2  | x    |
        """,
    )


@requirement("D38")
@case
def test_the_time_and_the_number_of_a_change_order_the_changes_of_a_key() -> Case:
    """The extract of a source with `updated_at` and a version number, here `time` and `seq`, in any order of rows."""
    return Case(
        CUSTOMER,
        feed(
            """
            | delivery | id | time                | seq | city |
            | 1        | 1  | 2024-01-02 10:00:00 | 3   | Kiel |
            | 1        | 1  | 2024-01-01 09:30:00 | 1   | Bonn |
            | 1        | 1  | 2024-01-02 10:00:00 | 2   | Ulm  |
            """
        ),
        becomes="""
        | id | city | effective_from      | effective_to        |
        | 1  | Bonn | 2024-01-01 09:30:00 | 2024-01-02 10:00:00 |
        | 1  | Kiel | 2024-01-02 10:00:00 | OPEN                |
        """,
    )


@requirement("D40")
@case
def test_identical_rows_of_an_extract_are_one_row() -> Case:
    return Case(
        EXTRACT,
        extracts(
            "| 1 | 2024-01-01 | 1 | foo | 1 |",
            "| 1 | 2024-01-01 | 1 | foo | 1 |",
            "| 1 | 2024-01-01 | 1 | bar | 1 |",
        ),
        becomes=becomes("| 2024-01-01 | NULL | 1 | foo | 1 |", "| 2024-01-01 | NULL | 1 | bar | 1 |"),
    )


@requirement("D40")
@case
def test_different_rows_with_one_business_key_reject_the_extract() -> Case:
    return Case(
        CUSTOMER,
        snapshots(
            """
            | delivery | at         | id | city |
            | 1        | 2024-01-01 | 1  | Bonn |
            | 1        | 2024-01-01 | 1  | Kiel |
            """
        ),
        becomes="| id |",
        results="""
        | arrives | batch            | outcome  | code              | keys |
        | 1       | crm/snapshot/1/1 | rejected | UNORDERED_CHANGES | id=1 |
        """,
    )
