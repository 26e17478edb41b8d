"""The hash of a version's values, for readers who compare rows with those of another system."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from pyspark.sql import Column
from pyspark.sql import functions as F

from scd_pipeline.declaration import Attribute, Dimension, KeyColumn
from scd_pipeline.declaration.types import DataType
from scd_pipeline.expressions import col
from scd_pipeline.history.lossless import to_text


def row_hash(dimension: Dimension) -> Column:
    """Return the SHA-256 hash, in hexadecimal digits, of the values that open a version.

    These are the attributes of types 2 and 6 (S8, S10), and the business key if it identifies a version of a row (S37).
    Equal versions have equal hashes, in whichever order the attributes are declared. The hashed text is a JSON object
    of the values as lossless text, by the first names of the attributes and without NULL: so NULL differs from the
    empty text, and neither a renamed attribute nor one that is NULL in all rows changes a hash.
    """
    key = {column.name: column for column in dimension.business_key if dimension.row_version}
    return _hash({**key, **_by_hash_name(each for each in dimension.attributes if each.opens_versions)})


def whole_row_hash(dimension: Dimension, delivered: Collection[str]) -> Column:
    """Return the hash of the delivered attributes of a row, as `row_hash` (S37)."""
    return _hash(_by_hash_name(each for each in dimension.attributes if each.name in delivered))


def _by_hash_name(attributes: Iterable[Attribute]) -> dict[str, Attribute]:
    return {each.hash_name or each.name: each for each in attributes}


def _hash(columns: Mapping[str, Attribute | KeyColumn]) -> Column:
    texts = [_value_text(col(each.name), each.data_type).alias(name) for name, each in sorted(columns.items())]
    return F.sha2(F.to_json(F.struct(*texts)), 256)


def _value_text(value: Column, data_type: DataType) -> Column:
    return to_text(_without_negative_zero(value, data_type), data_type)


def _without_negative_zero(value: Column, data_type: DataType) -> Column:
    """Return the value, and 0.0 for -0.0, which equals it."""
    if data_type.ddl() not in ("float", "double"):
        return value
    return F.when(value == 0, F.lit(0).cast(data_type.ddl())).otherwise(value)
