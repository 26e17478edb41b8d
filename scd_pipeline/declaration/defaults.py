"""Checks of default values against the types of their columns."""

from __future__ import annotations

import decimal
import math
from typing import Any

from scd_pipeline.declaration.times import parse_time
from scd_pipeline.declaration.types import DataType, Decimal, Primitive

_INTEGER_BITS = {"tinyint": 8, "smallint": 16, "int": 32, "bigint": 64}


def expected_default(data_type: DataType, value: Any) -> str | None:
    """Return which default values the type accepts, None if the value is one of them."""
    if isinstance(data_type, Decimal):
        integer_digits, scale = data_type.precision - data_type.scale, data_type.scale
        fits = _is_number(value, 10**integer_digits) and _digits_after_point(value) <= scale
        return None if fits else f"a number that fits {data_type.ddl()}"
    if not isinstance(data_type, Primitive) or data_type.name == "binary":
        return "nothing: this type allows no default"
    name = data_type.name
    if name in _INTEGER_BITS:
        return None if _is_integer(value, _INTEGER_BITS[name]) else f"a whole number that fits {name}"
    fits, expected = {
        "string": (isinstance(value, str), "text, in quotes where YAML reads it as something else"),
        "boolean": (isinstance(value, bool), "true or false"),
        "double": (_is_number(value) and _is_exact(value, 2**53), "a number"),
        "float": (_is_number(value, 2.0**128) and _is_exact(value, 2**24), "a number"),
        "date": (parse_time(value) is not None and len(value) == 10, "a date such as 2024-01-31"),
    }.get(name, (parse_time(value) is not None, "a UTC time such as 2024-01-31 23:59:59"))
    return None if fits else expected


def _is_integer(value: Any, bits: int) -> bool:
    whole = isinstance(value, int) and not isinstance(value, bool)
    return whole and -(2 ** (bits - 1)) <= value < 2 ** (bits - 1)


def _digits_after_point(number: float) -> int:
    exponent = decimal.Decimal(str(number)).normalize().as_tuple().exponent
    return max(0, -int(exponent))


def _is_exact(number: float, bound: int) -> bool:
    """Return whether a floating type whose whole numbers are exact up to `bound` represents the number exactly."""
    return not isinstance(number, int) or abs(number) <= bound


def _is_number(value: Any, bound: float = math.inf) -> bool:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return False
    try:
        return math.isfinite(float(value)) and abs(value) < bound
    except OverflowError:
        return False
