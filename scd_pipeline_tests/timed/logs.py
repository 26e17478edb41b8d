"""What tests of logs share: the columns of a table, and its parsed log."""

from __future__ import annotations

from collections.abc import Mapping

from scd_pipeline.declaration.types import DataType, parse_type
from scd_pipeline.timed.log import LogText
from scd_pipeline.timed.statements import Statement, parse_log

DOCTORS = {"number": "int", "first_name": "string", "last_name": "string", "extra_field": "string"}
EVERY_TYPE = {
    "number": "int",
    "name": "string",
    "born": "date",
    "seen": "timestamp",
    "fee": "decimal(5,2)",
    "weight": "double",
    "active": "boolean",
    "photo": "binary",
    "address": "struct<city:string,geo:struct<latitude:double>>",
    "order": "int",
    "given name": "string",
}


def typed(columns: Mapping[str, str]) -> dict[str, DataType]:
    """Return the types of columns."""
    return {name: parse_type(data_type) for name, data_type in columns.items()}


def parsed(text: str, columns: Mapping[str, str] = DOCTORS, zone: str = "UTC") -> list[Statement]:
    """Return the statements of a log in a file `.updates`."""
    return parse_log([LogText(".updates", text)], typed(columns), zone)
