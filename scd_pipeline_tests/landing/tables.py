"""Landing tables as text: declarations, deliveries and the stored rows."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from textwrap import dedent
from typing import Any

from scd_pipeline.declaration import LandingTable, parse_declarations
from scd_pipeline.deliveries.delivery import Delivery
from scd_pipeline.delta.warehouse import Warehouse
from scd_pipeline.load.retry import Retry
from scd_pipeline.load.run import LoadResult, load
from scd_pipeline_tests.text_tables import assert_same_rows, header, parse


def landing_table(text: str, *, bad_row_limit: float = 0.05, guard: str = "") -> LandingTable:
    """Return the landing table that a text declares; its source passes frames, and a snapshot has the retire guard."""
    channel = "snapshot" if "replace" in text or "merge_key" in text else "feed"
    retire_guard = f", retire_guard: {guard}" if guard and channel == "snapshot" else ""
    source = f"{{{channel}: {{}}, bad_row_limit: {bad_row_limit}{retire_guard}}}"
    declaration = f"landing_table: raw\n{dedent(text)}\nsources: {{api: {source}}}\n"
    (table,) = parse_declarations(declaration).landing_tables
    return table


def deliveries(table: str, *, revision: int = 0) -> list[Delivery]:
    """Return a delivery for each value of `delivery`, which is its name and its date, with the other columns."""
    rows = parse(table)
    names = list(dict.fromkeys(row["delivery"] for row in rows))
    return [_delivery(name, [row for row in rows if row["delivery"] == name], revision) for name in names]


def _delivery(name: dt.date, rows: Sequence[dict[str, Any]], revision: int) -> Delivery:
    frame = [{column: value for column, value in row.items() if column != "delivery"} for row in rows]
    return Delivery("api", name=str(name), at=name, revision=revision, frame=frame)


def load_rows(warehouse: Warehouse, declared: LandingTable, delivered: str, *, revision: int = 0) -> LoadResult:
    """Load the deliveries of a table in one load; none is rejected."""
    result = load(warehouse, declared, deliveries(delivered, revision=revision), retry=Retry(attempts=1))
    result.raise_if_rejected()
    return result


def stored_rows(warehouse: Warehouse) -> list[dict[str, Any]]:
    """Return the rows of the landing table."""
    return list(warehouse.table("raw").read().toArrow().to_pylist())


def assert_stored(warehouse: Warehouse, expected: str) -> None:
    """Fail unless the landing table has these rows."""
    assert_same_rows(expected, stored_rows(warehouse), header(expected))
