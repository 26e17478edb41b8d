"""S41: control totals of an argument, of columns or of a file decide whether a delivery is accepted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from pyspark.sql import SparkSession

from scd_pipeline.declaration import (
    Attribute,
    ControlTotals,
    Dimension,
    Fact,
    Feed,
    LandingTable,
    Role,
    Snapshot,
    Source,
)
from scd_pipeline.deliveries.accept import accept
from scd_pipeline.deliveries.delivery import Delivery
from scd_pipeline.deliveries.discovery import discover
from scd_pipeline.delta.warehouse import Warehouse
from scd_pipeline.errors import SourceDataError
from scd_pipeline.load.retry import ignore_progress
from scd_pipeline.load.run import load
from scd_pipeline_tests.semantics.specification import requirement, rule
from scd_pipeline_tests.text_tables import parse

CUSTOMER = Dimension("dim_customer", "id", {"city": 2}, Source("crm", Snapshot()))


def sales(feed: Feed) -> Fact:
    return Fact(
        "fct_sale",
        grain={"sale": "int"},
        event_time="at",
        dimensions={"customer": Role(CUSTOMER, "customer_id")},
        measures={"amount": "decimal(12,2)", "items": "int"},
        source=Source("till", feed=feed, bad_row_limit=1.0),
    )


SALES = [
    {"sale": "1", "at": "2024-03-01", "customer_id": "a", "amount": "0.10", "items": "1"},
    {"sale": "2", "at": "2024-03-01", "customer_id": "a", "amount": "0.20", "items": "2"},
]
BAD = {"sale": "3", "at": None, "customer_id": "a", "amount": "5.00", "items": "9"}


def judged(spark: SparkSession, table: Dimension, deliveries: Sequence[Delivery]) -> dict[str, str]:
    """Return, by delivery, the problem of those that a first load would reject, and the outcome of the others."""
    intake = accept(spark, table, deliveries, (), run_id="", progress=ignore_progress)
    return {each.delivery: each.problem or each.outcome for each in intake.results}


ARGUMENTS: dict[str, tuple[Mapping[str, Any], str]] = {
    "equal": ({"rows": 2, "amount": "0.3", "items": Decimal(3)}, "accepted"),
    "rows": ({"rows": 3}, "2 rows delivered, and the control total is 3"),
    "sum": ({"amount": "0.31"}, "amount is 0.30 (2 rows delivered), and the control total is 0.31"),
    "two": (
        {"rows": 1, "items": 4},
        "2 rows delivered, and the control total is 1; items is 3 (2 rows delivered), and the control total is 4",
    ),
    "key": ({"sale": 3}, "accepted"),
    "empty": ({"rows": 0, "amount": 0}, "accepted"),
}


@requirement("L13")
@pytest.mark.parametrize("names", [["equal", "sum"], list(ARGUMENTS)], ids=["observed", "queried"])
@rule("S27", "S41")
def test_control_totals_of_an_argument_are_exact(spark: SparkSession, names: list[str]) -> None:
    """Two deliveries are summarized by the query that computes their rows, six by another one.

    They replace those that the channel declares.
    """
    at = datetime(2024, 3, 2)
    rows = {"empty": pd.DataFrame([], columns=[*SALES[0]])}
    deliveries = [
        Delivery("till", name, at=at, frame=rows.get(name, SALES), totals=ARGUMENTS[name][0]) for name in names
    ]
    expected = {name: _problem(ARGUMENTS[name][1]) for name in names}
    feed = Feed(control_totals=ControlTotals("items"))
    assert judged(spark, sales(feed).as_dimension(), deliveries) == expected


def _problem(text: str) -> str:
    return text if text == "accepted" else f"{text}; expected equal numbers; nothing of it was written"


@rule("S26", "S27")
def test_bad_rows_are_rows_and_have_no_values(spark: SparkSession) -> None:
    at, rows = datetime(2024, 3, 2), [*SALES, BAD]
    deliveries = [
        Delivery("till", "rows", at=at, frame=rows, totals={"rows": 3}),
        Delivery("till", "sum", at=at, frame=rows, totals={"rows": 3, "amount": "5.30"}),
        Delivery("till", "allowed", at=at, frame=rows, totals={"amount": "5.30"}, allow="control_totals"),
    ]
    assert judged(spark, sales(Feed()).as_dimension(), deliveries) == {
        "rows": "accepted",
        "sum": _problem("amount is 0.30 (3 rows delivered, 1 of them bad), and the control total is 5.30"),
        "allowed": "accepted",
    }


COLUMNS = """
| delivery | kind | sale | amount | row_count | total | expected |
| trailer  | row  | 1    | 0.10   | NULL      | NULL  | accepted |
| trailer  | row  | 2    | 0.20   | NULL      | NULL  |          |
| trailer  | end  | NULL | NULL   | 2         | 0.300 |          |
| repeated | row  | 1    | 0.10   | 2         | 0.3   | accepted |
| repeated | row  | 2    | 0.20   | 2         | 0.3   |          |
| none     | row  | 1    | 0.10   | 1         | NULL  | amount is 0.10 (1 row delivered), and no control total |
| several  | row  | 1    | 0.10   | 1         | 0.10  | 2 rows delivered, and several control totals |
| several  | row  | 2    | 0.00   | 2         | 0.10  |          |
| text     | row  | 1    | 0.10   | one       | 0.10  | 1 row delivered, and the control total is not a number |
"""


@requirement("L13")
@rule("S27", "S41")
def test_control_totals_are_in_a_trailer_or_in_each_row(spark: SparkSession) -> None:
    """A trailer that the condition `rows` excludes is not counted."""
    totals = ControlTotals(rows="row_count", sums={"amount": "total"})
    table = sales(Feed(rows="kind = 'row'", control_totals=totals)).as_dimension()
    rows, expected = parse(COLUMNS), {}
    for row in rows:
        expected.setdefault(row["delivery"], _problem(str(row["expected"])))
    deliveries = [
        Delivery("till", name, at=datetime(2024, 3, 2), frame=pd.DataFrame(_texts(rows, name))) for name in expected
    ]
    assert judged(spark, table, deliveries) == expected


def _texts(rows: Sequence[Mapping[str, Any]], delivery: str) -> list[dict[str, str | None]]:
    names = ("kind", "sale", "amount", "row_count", "total")
    texts = [{n: None if row[n] is None else str(row[n]) for n in names} for row in rows if row["delivery"] == delivery]
    return [{**text, "at": "2024-03-01", "customer_id": "a", "items": "1"} for text in texts]


@requirement("L13")
@rule("S27", "S41")
def test_control_totals_are_in_a_file_of_each_delivery(spark: SparkSession, tmp_path: Path) -> None:
    """A snapshot of a dimension that has no file yet is rejected until it has one."""
    totals = ControlTotals("n", path=f"{tmp_path}/{{date:%Y%m%d}}.json")
    source = Source("crm", Snapshot(f"{tmp_path}/customers_{{date}}.csv", control_totals=totals))
    table = Dimension("dim_customer", "id", {"city": 2}, source)
    for month, rows in ((1, 1), (2, 2), (3, 1)):
        (tmp_path / f"customers_2024-0{month}-01.csv").write_text("id,city\n1,Rome\n", encoding="utf-8")
        if month < 3:
            (tmp_path / f"20240{month}01.json").write_text(f'{{"n": {rows}}}', encoding="utf-8")
    assert judged(spark, table, discover(table, None)) == {
        "2024-01-01": "accepted",
        "2024-02-01": _problem("1 row delivered, and the control total is 2"),
        "2024-03-01": _problem("1 row delivered, and no control total"),
    }
    (tmp_path / "20240301.json").write_text('{"n": 1}', encoding="utf-8")
    assert judged(spark, table, discover(table, None)[2:]) == {"2024-03-01": "accepted"}


@rule("S27", "S41")
@pytest.mark.slow(16)
def test_a_snapshot_that_is_compared_while_it_is_read_has_its_control_totals(
    spark: SparkSession, warehouse: Path
) -> None:
    """The rows that repeat what is stored are counted and summed too."""
    totals = ControlTotals(rows="n", sums={"stock": "total"})
    table = Dimension("dim_item", "id", {"stock": Attribute(2, "int")}, Source("erp", Snapshot(control_totals=totals)))
    opened = Warehouse(spark, warehouse)
    for day, total, outcome in ((1, 3, "accepted"), (2, 3, "rejected"), (3, 4, "accepted")):
        stocks = (1, 2) if day == 1 else (1, 3)
        rows = [{"id": str(stock), "stock": stock, "n": 2, "total": total} for stock in stocks]
        (result,) = load(opened, table, [Delivery("erp", f"2024-03-0{day}", frame=rows)]).results
        assert (day, result.outcome) == (day, outcome)


@rule("S27", "S41")
def test_a_delivery_that_differs_from_its_control_totals_writes_nothing(spark: SparkSession, warehouse: Path) -> None:
    """Also into a landing table; the correct delivery can be loaded under the same name."""
    raw = LandingTable("raw_sale", "append", {"amount": "decimal(12,2)"}, Source("till", feed=Feed()))
    opened = Warehouse(spark, warehouse)
    first = Delivery("till", "2024-03-02", frame=[{"amount": "0.10"}], totals={"rows": 2})
    (result,) = load(opened, raw, [first]).results
    assert (result.outcome, result.code) == ("rejected", "CONTROL_TOTALS")
    assert not opened.table(raw.name).exists()
    complete = Delivery("till", "2024-03-02", frame=[{"amount": "0.10"}, {"amount": "0.10"}], totals={"rows": 2})
    assert [each.outcome for each in load(opened, raw, [complete]).results] == ["accepted"]


@pytest.mark.parametrize(
    ("totals", "code"),
    [({"amount": 0.3}, "DELIVERY_TOTALS"), ({"rows": "x"}, "DELIVERY_TOTALS"), ({"at": 1}, "UNKNOWN_TOTAL")],
)
def test_an_invalid_control_total_is_an_error(totals: Any, code: str) -> None:
    with pytest.raises(SourceDataError) as caught:
        Delivery("till", "1", at=datetime(2024, 3, 2), frame=SALES, totals=totals).batch(sales(Feed()).as_dimension())
    assert caught.value.code == code
