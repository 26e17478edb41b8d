"""How maintenance arranges the rows of a dimension, by the size of its table."""

from __future__ import annotations

from dataclasses import replace

import pytest

from scd_pipeline.declaration import Dimension, Feed, Source
from scd_pipeline.operations.z_order import z_order_columns
from scd_pipeline_tests.semantics.specification import requirement

MACHINE = Dimension("dim_machine", {"site": "int", "machine_id": "string"}, {"title": 2}, Source("s", feed=Feed()))
KEY = ("site", "machine_id")


@requirement("F46")
@pytest.mark.parametrize(
    ("rows", "columns"),
    [(0, ()), (999_999, ()), (1_000_000, KEY), (1_000_001, KEY), (100_000_000, KEY), (100_000_001, KEY)],
)
def test_rows_are_arranged_by_the_business_key_from_a_million_rows_on(rows: int, columns: tuple[str, ...]) -> None:
    """Below 1 M rows nothing; from 1 M, and above 100 M, Z-order by the business key; no table is partitioned."""
    assert z_order_columns(MACHINE, rows) == columns


@requirement("F46")
@pytest.mark.parametrize("rows", [0, 999_999, 1_000_000])
def test_a_declaration_overrides_the_arrangement_at_any_size(rows: int) -> None:
    assert z_order_columns(replace(MACHINE, z_order="always"), rows) == KEY
    assert z_order_columns(replace(MACHINE, z_order="never"), rows) == ()


def test_only_columns_with_statistics_arrange_rows() -> None:
    """A query cannot skip files by other columns, and Delta rejects them."""
    keys = {"token": "binary", "amount": "decimal(12,2)"}
    machine = Dimension("dim_machine", keys, {"title": 2}, Source("s", feed=Feed()), z_order="always")
    assert z_order_columns(machine, 7) == ("amount",)
