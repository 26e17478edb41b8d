"""The hash of a version's values, for readers who compare rows with those of another system."""

from __future__ import annotations

from collections.abc import Iterable

from pyspark.sql import Column
from pyspark.sql import functions as F

from scd_pipeline.columns import attribute_types
from scd_pipeline.declaration import Attribute, Dimension
from scd_pipeline.declaration.types import DataType
from scd_pipeline.expressions import col
from scd_pipeline.history.lossless import to_text


def row_hash(dimension: Dimension) -> Column:
    """Return the SHA-256 hash, in hexadecimal digits, of the attributes of a version that open versions (S8, S10).

    Equal versions have equal hashes, in whichever order the attributes are declared. The hashed text is a JSON object
    of the values as lossless text, by the first names of the attributes and without NULL: so NULL differs from the
    empty text, and neither a renamed attribute nor one that is NULL in all rows changes a hash.
    """
    return hash_of_values([each for each in dimension.attributes if each.opens_versions], dimension)


def hash_of_values(attributes: Iterable[Attribute], dimension: Dimension) -> Column:
    """Return the hash of these attributes, as `row_hash`."""
    types = attribute_types(dimension)
    names = {each.hash_name or each.name: each.name for each in attributes}
    texts = [
        to_text(_without_negative_zero(col(name), types[name]), types[name]).alias(hash_name)
        for hash_name, name in sorted(names.items())
    ]
    return F.sha2(F.to_json(F.struct(*texts)), 256)


def _without_negative_zero(value: Column, data_type: DataType) -> Column:
    """Return the value, and 0.0 for -0.0, which equals it."""
    if data_type.ddl() not in ("float", "double"):
        return value
    return F.when(value == 0, F.lit(0).cast(data_type.ddl())).otherwise(value)
