"""Surrogate keys, which are hashes of what they identify and never come from a sequence (S14)."""

from __future__ import annotations

from collections.abc import Callable

from pyspark.sql import Column
from pyspark.sql import functions as F

from scd_pipeline.columns import EFFECTIVE_FROM
from scd_pipeline.declaration import Dimension
from scd_pipeline.expressions import key_text

UNKNOWN_KEY = -1
"""The key of the unknown member, which facts store if no version is in force (S23)."""

NOT_APPLICABLE_KEY = -2
"""The key of the member for rows to which a role does not apply, by a declared condition (S23)."""

INVALID_KEY = -3
"""The key of the member for rows whose business key is not valid, by a declared condition (S23)."""

RESERVED_KEYS = (UNKNOWN_KEY, NOT_APPLICABLE_KEY, INVALID_KEY)
"""The keys of reserved members (S23). No version may have one of them."""

KeyHash = Callable[[Column], Column]
"""A hash of a text to a BIGINT."""


def hash_64(text: Column) -> Column:
    """Return a hash of 64 bits as BIGINT."""
    return F.xxhash64(text)


def surrogate_key(dimension: Dimension, key_hash: KeyHash = hash_64) -> Column:
    """Return the surrogate key of (business key, `effective_from`), salted with the declared `key_salt`; never NULL.

    The hashed text has the length of the salt and of each part of the business key in front of it, and the time as
    microseconds since 1970. It is therefore the same in every session, and no two versions share it.
    """
    salt = dimension.key_salt
    parts = [F.lit(f"{len(salt)}:{salt}"), key_text(dimension.key_names), F.unix_micros(EFFECTIVE_FROM).cast("string")]
    return key_hash(F.concat(*parts))
