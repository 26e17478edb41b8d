"""Rows as text: of a Spark DataFrame or of a report.

Spark turns every value into text, in UTC: no time zone of this process changes it, and the sentinel of an open window,
which some zones could not collect as a time, can be shown. Arrays, maps and structs become JSON.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import DataType

Kind = Literal["text", "number", "boolean", "instant", "json"]
"""What the text of a value represents; an `instant` is a time in UTC."""

_NESTED = ("array", "map", "struct", "variant")
_JSON_START = '{"v":'
_JSON_OPTIONS = {"ignoreNullFields": "false", "timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX"}


@dataclass(frozen=True, slots=True)
class Rows:
    """Rows of texts, None for NULL. Two columns may have the same name.

    Attributes:
        names: The names of the columns.
        kinds: What the texts of each column represent.
        values: The rows.
        has_more: Whether a limit cut rows off.
    """

    names: tuple[str, ...]
    kinds: tuple[Kind, ...]
    values: tuple[tuple[str | None, ...], ...]
    has_more: bool = False

    @classmethod
    def from_records(cls, columns: Mapping[str, Kind], records: Iterable[Sequence[object]]) -> Rows:
        """Return the rows of a report, one record per row."""
        kinds = tuple(columns.values())
        values = tuple(
            tuple(_text(value, kind) for value, kind in zip(record, kinds, strict=True)) for record in records
        )
        return cls(tuple(columns), kinds, values)

    def select(self, names: Iterable[str]) -> Rows:
        """Return the rows with some of the columns."""
        positions = [self.names.index(name) for name in names]
        return replace(
            self,
            names=tuple(self.names[n] for n in positions),
            kinds=tuple(self.kinds[n] for n in positions),
            values=tuple(tuple(row[n] for n in positions) for row in self.values),
        )

    def column(self, name: str) -> list[str | None]:
        """Return the values of one column."""
        position = self.names.index(name)
        return [row[position] for row in self.values]

    def differing(self) -> list[str]:
        """Return the names of the columns that do not have one value in all rows; of a single row all."""
        if len(self.values) == 1:
            return list(self.names)
        return [name for name in self.names if len(set(self.column(name))) > 1]


def of_kind(kind: Kind, *names: str) -> dict[str, Kind]:
    """Return columns of a report that have one kind."""
    return dict.fromkeys(names, kind)


def _text(value: object, kind: Kind) -> str | None:
    if value is None:
        return None
    if kind == "json":
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, datetime):
        return f"{value:%Y-%m-%d %H:%M:%S}"
    return str(value).lower() if isinstance(value, bool) else str(value)


def collect(frame: DataFrame, limit: int = 0) -> Rows:
    """Return the rows of a frame, at most `limit` of them (0: all)."""
    fields = frame.schema.fields
    plain = frame.toDF(*[f"c{number}" for number in range(len(fields))])
    texts = plain.select(*[_as_text(f"c{number}", field.dataType) for number, field in enumerate(fields)])
    values = [tuple(row) for row in (texts.limit(limit + 1) if limit else texts).collect()]
    has_more = bool(limit) and len(values) > limit
    kinds = tuple(_kind(field.dataType) for field in fields)
    return Rows(tuple(frame.columns), kinds, tuple(values[:limit] if has_more else values), has_more)


def _as_text(name: str, data_type: DataType) -> Column:
    """Return a column as text; a nested value as JSON, binary as hexadecimal digits."""
    from pyspark.sql import functions as F

    value = F.col(name)
    if _kind(data_type) == "json":
        # A struct around the value lets Spark write arrays and values of the type variant too.
        text = F.to_json(F.struct(value.alias("v")), _JSON_OPTIONS)
        inner = text.substr(F.lit(len(_JSON_START) + 1), F.length(text) - len(_JSON_START) - 1)
        return F.when(value.isNotNull(), inner).alias(name)
    return (F.hex(value) if data_type.typeName() == "binary" else value.cast("string")).alias(name)


def _kind(data_type: DataType) -> Kind:
    from pyspark.sql import types as T

    if isinstance(data_type, T.NumericType):
        return "number"
    if isinstance(data_type, T.BooleanType):
        return "boolean"
    if isinstance(data_type, T.TimestampType):
        return "instant"
    return "json" if data_type.typeName() in _NESTED else "text"


def to_json_object(names: Sequence[str], kinds: Sequence[Kind], row: Sequence[str | None]) -> str:
    """Return a row as a JSON object; numbers keep all of their digits."""
    fields = (f"{json.dumps(n)}: {_json(v, k)}" for n, k, v in zip(names, kinds, row, strict=True))
    return "{" + ", ".join(fields) + "}"


def _json(value: str | None, kind: Kind) -> str:
    if value is None:
        return "null"
    if kind in ("json", "boolean") or (kind == "number" and _is_finite(value)):
        return value
    if kind == "instant" and " " in value:
        value = f"{value.replace(' ', 'T', 1)}Z"
    return json.dumps(value, ensure_ascii=False)


def _is_finite(number: str) -> bool:
    from decimal import Decimal

    return Decimal(number).is_finite()
