"""How the rows of deliveries become the entities of a landing table (S38)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from scd_pipeline.declaration.key import KeyColumn

Disposition = Literal["append", "replace", "merge"]
Strategy = Literal["delete_insert", "upsert"]
SortOrder = Literal["asc", "desc"]
DISPOSITIONS: tuple[str, ...] = get_args(Disposition)
STRATEGIES: tuple[str, ...] = get_args(Strategy)
SORT_ORDERS: tuple[str, ...] = get_args(SortOrder)

ROW_DELIVERY = KeyColumn("scd_delivery", derived="delivery")
"""Source, channel and name of the delivery of a row, as in `load_run_id`."""
ROW_HASH = KeyColumn("scd_row_hash", derived="row_hash")
"""A hash of the values of a row."""
ROW_NUMBER = KeyColumn("scd_row_number", "int", derived="row_number")
"""The number of a row among the equal rows of its delivery, from 1."""
ROW_COLUMNS = (ROW_DELIVERY, ROW_HASH, ROW_NUMBER)
"""The columns by which a landing table without a primary key identifies its rows."""


@dataclass(frozen=True, slots=True)
class LandingRows:
    """What a landing table declares about the rows of a delivery, as its dimension has it.

    - `dedup_sort`: the column by which one of the rows of a primary key remains, and its order; None without one
    - `hard_delete`: the attribute by which a row deletes: true if it is boolean, else any value; None without one
    - `options`: the options that the table stores, as JSON (`LandingTable.options`)
    """

    dedup_sort: tuple[str, SortOrder] | None = None
    hard_delete: str | None = None
    options: str = ""
