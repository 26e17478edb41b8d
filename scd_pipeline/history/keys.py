"""Surrogate keys that come from what they name, never from a sequence (S14)."""

from __future__ import annotations

from collections.abc import Callable

from pyspark.sql import Column
from pyspark.sql import functions as F

from scd_pipeline.columns import EFFECTIVE_FROM
from scd_pipeline.declaration import Dimension
from scd_pipeline.expressions import key_text

UNKNOWN_KEY = -1
"""The key of the unknown member, which facts store where no version held (S23)."""

RESERVED_KEYS = (UNKNOWN_KEY, -2, -3)
"""Keys of reserved members (S23); a version may never hash to one."""

KeyHash = Callable[[Column], Column]


def hash_64(text: Column) -> Column:
    """64 bits of a text as BIGINT."""
    return F.xxhash64(text)


def surrogate_key(dimension: Dimension, key_hash: KeyHash = hash_64) -> Column:
    """The key of (business key, `effective_from`), salted by the declaration; NOT NULL.

    The text that is hashed gives each part of the key with its length, and the time in microseconds since 1970, so
    that it is the same in every session and no two versions share it.
    """
    salt = dimension.key_salt
    parts = [F.lit(f"{len(salt)}:{salt}"), key_text(dimension.key_names), F.unix_micros(EFFECTIVE_FROM).cast("string")]
    return key_hash(F.concat(*parts))
