"""A small dimension and its deliveries, for tests of how tables are written."""

from __future__ import annotations

from datetime import datetime, timezone
from typing import Any

import pyarrow as pa

from scd_pipeline.declaration import Dimension, Feed, Snapshot, Source
from scd_pipeline.deliveries.delivery import Delivery
from scd_pipeline.delta.warehouse import Warehouse

CUSTOMER = Dimension(
    "dim_customer",
    "id",
    {"email": 1, "city": 2},
    Source("crm", Snapshot(format="parquet"), Feed(format="parquet", effective_at="at", deletes="op = 'D'")),
)
DAY = "2024-0{}-01"


def snapshot(month: int, cities: dict[str, str], **more: Any) -> Delivery:
    """All customers as they are on the first of a month of 2024, each with a mail address of its city."""
    rows = [{"id": key, "email": f"{key}@{city}", "city": city} for key, city in cities.items()]
    schema = pa.schema([("id", pa.string()), ("email", pa.string()), ("city", pa.string())])
    return Delivery(
        "crm",
        DAY.format(month),
        channel="snapshot",
        at=datetime(2024, month, 1, tzinfo=timezone.utc),
        frame=pa.Table.from_pylist(rows, schema),
        **more,
    )


def feed(name: str, *changes: tuple[str, int, str | None], **more: Any) -> Delivery:
    """Changes as (key, month of 2024, city); no city is a delete."""
    rows = [
        {"id": key, "at": DAY.format(month), "op": "D" if city is None else "U", "email": f"{key}@{city}", "city": city}
        for key, month, city in changes
    ]
    names = ("id", "at", "op", "email", "city")
    table = pa.Table.from_pylist(rows, pa.schema([(name, pa.string()) for name in names]))
    return Delivery("crm", name, channel="feed", frame=table, **more)


def history(warehouse: Warehouse, dimension: Dimension = CUSTOMER) -> list[dict[str, Any]]:
    """The versions, with windows as dates; the open end is NULL."""
    rows = warehouse.table(dimension.name).read().toArrow().to_pylist()
    return [
        {
            "id": row["id"],
            "city": row["city"],
            "from": row["effective_from"].replace(tzinfo=None),
            "to": None if row["current_flag"] else row["effective_to"].replace(tzinfo=None),
            "version": row["version"],
        }
        for row in rows
    ]
