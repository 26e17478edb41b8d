"""The sum of the content hashes of rows, in two halves, because a sum of 64 bits would overflow."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import Column
from pyspark.sql import functions as F

_HIGH, _LOW = "high", "low"
_LOW_BITS = 0xFFFFFFFF


def hash_halves(content: Column) -> dict[str, Column]:
    """Return the aggregates of the two halves by name; NULL is ignored."""
    return {_HIGH: F.sum(F.shiftright(content, 32)), _LOW: F.sum(content.bitwiseAND(F.lit(_LOW_BITS)))}


def hash_sum(halves: Mapping[str, int | None]) -> int:
    """Return the sum from values of `hash_halves`; 0 without rows."""
    return (int(halves[_HIGH] or 0) << 32) + int(halves[_LOW] or 0)
