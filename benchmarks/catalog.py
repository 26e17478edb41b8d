"""All work items by name."""

from __future__ import annotations

from collections.abc import Callable

from benchmarks import customers, sales
from benchmarks.work import Work

WORK: dict[str, Callable[[int, int], Work]] = {
    "first": customers.first_load,
    "a": customers.snapshot,
    "c": customers.feed,
    "d": customers.late_feed,
    "e": customers.backfill,
    "e1": customers.one_of_many,
    "f": sales.sales,
    "f-versions": sales.sales_of_many_versions,
    "f-skew": sales.sales_of_large_key,
    "f-second": sales.second_sales,
    "g": sales.rekeyed_sales,
    "h": customers.unchanged,
    "i": customers.batches,
    "i-after": customers.after_many,
    "j": sales.joined_sales,
}
"""Builds each work item from its size and its number of changes; 0 changes is the number that the item has by itself.

(b) is (a) at a larger size.
"""
