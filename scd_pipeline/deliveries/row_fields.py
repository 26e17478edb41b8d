"""The fields of each row, where rows of one delivery may have different ones: of JSON, and of a list of dicts (S30).

A file, a table or a frame with columns has them in each row. In JSON and in a list of dicts a field that a row lacks is
different from NULL. The column `_scd_fields` shows which fields a row has, and of JSON also the tokens of its values.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql import types as T

from scd_pipeline.deliveries import json_text
from scd_pipeline.deliveries.row_columns import FIELDS
from scd_pipeline.expressions import all_of, col


@dataclass(frozen=True, slots=True)
class RowFields:
    """The fields that rows may lack, by their names in lower case; every row has all other columns."""

    fields: Mapping[str, T.StructField] = field(default_factory=dict)

    @classmethod
    def from_columns(cls, columns: Sequence[T.StructField]) -> RowFields:
        """Return those of a delivery with these columns."""
        structs = [column.dataType for column in columns if column.name == FIELDS]
        return cls({each.name.lower(): each for struct in structs for each in getattr(struct, "fields", ())})

    def lacks(self, name: str) -> bool:
        """Return whether a row may lack the field."""
        return name.lower() in self.fields

    def token(self, name: str) -> Column | None:
        """Return the JSON token of a field, NULL if the row lacks it; None if the delivery is not JSON."""
        entry = self.fields.get(name.lower())
        return F.col(FIELDS)[entry.name] if entry and isinstance(entry.dataType, T.StringType) else None

    def tokens(self, names: Sequence[str]) -> list[Column]:
        """Return the JSON tokens of those fields that have one."""
        return [token for name in names if (token := self.token(name)) is not None]

    def text(self, name: str, data_type: T.DataType) -> Column:
        """Return the text of a field as delivered; that of a nested value is JSON.

        A column of text has the texts of its tokens.
        """
        token = None if isinstance(data_type, T.StringType) else self.token(name)
        return value_text(col(name), data_type) if token is None else json_text.to_text(token)

    def has(self, name: str) -> Column:
        """Return whether a row has the field."""
        entry = self.fields.get(name.lower())
        return F.col(FIELDS)[entry.name].isNotNull() if entry else F.lit(True)

    def has_all(self, names: Sequence[str]) -> Column:
        """Return whether a row has all of the fields."""
        return all_of([self.has(name) for name in names if self.lacks(name)])

    def has_path(self, path: Sequence[str], data_type: T.DataType) -> Column | None:
        """Return whether objects and maps at a path have the next name in it; None if they always have.

        An object that is NULL lacks nothing. A column of text or of no type has no objects: only its NULLs lack
        nothing. A path into an array is that of the values of all its objects, NULL for one that lacks the name.

        Args:
            path: A column, and the names inside of it.
            data_type: The type of the column.
        """
        token, value, conditions = self.token(path[0]), col(path[0]), []
        if isinstance(data_type, T.StringType | T.NullType):
            return value.isNull() if token is None else json_text.is_null(token)
        for name in path[1:]:
            if isinstance(data_type, T.ArrayType):
                break
            key = _field_name(data_type, name)
            if token is not None:
                inner = F.from_json(token, T.StructType([T.StructField(key, T.StringType())]))[key]
                conditions.append(json_text.is_null(token) | inner.isNotNull())
                token = inner
            elif isinstance(data_type, T.MapType):
                conditions.append(value.isNull() | F.map_contains_key(value, F.lit(key).cast(data_type.keyType)))
            value, data_type = value[key], inner_type(data_type, name) or T.NullType()
        return F.coalesce(all_of(conditions), F.lit(False)) if conditions else None


def value_text(value: Column, data_type: T.DataType) -> Column:
    """Return the text of a value; that of a nested one is JSON."""
    is_nested = isinstance(data_type, T.StructType | T.ArrayType | T.MapType)
    return F.to_json(value) if is_nested else value.cast("string")


def inner_type(data_type: T.DataType, name: str) -> T.DataType | None:
    """Return the type of a field of a struct, or of the values of a map of texts; None if there is no such value."""
    if isinstance(data_type, T.MapType) and isinstance(data_type.keyType, T.StringType):
        return data_type.valueType
    inner = data_type.fields if isinstance(data_type, T.StructType) else []
    return next((field.dataType for field in inner if field.name.lower() == name.lower()), None)


def _field_name(data_type: T.DataType, name: str) -> str:
    """Return a name as the struct spells it."""
    inner = data_type.fields if isinstance(data_type, T.StructType) else []
    return next((field.name for field in inner if field.name.lower() == name.lower()), name)
