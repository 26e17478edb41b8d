"""The options that `format: debezium` stands for.

An event of Debezium has an operation (`op`: c, r, u or d), the row before and after it, and its position in the log of
the database. The reader provides the columns of the row under their own names (`before` of a delete, `after` of any
other event), and the event itself as the struct `_envelope`. All else is what these options say.
"""

from __future__ import annotations

import json
from base64 import b64encode
from hashlib import md5
from typing import Any
from uuid import UUID

ENVELOPE = "_envelope"
"""The column with the event."""
ENVELOPE_FIELDS = ("op", "ts_ms", "before", "after", "source")
"""The fields that every envelope has: NULL if the file lacks them."""
SOURCE_FIELDS = ("ts_ms", "lsn", "file", "pos", "row", "scn")
"""The fields of its `source` that the options use: the time of the commit, and its position by kind of database."""
_UNAVAILABLE = "__debezium_unavailable_value"


def _unavailable_values() -> tuple[str, ...]:
    """Return the placeholders as texts: an array or a map as its JSON text."""
    content = _UNAVAILABLE.encode()
    binary = (b64encode(content).decode(), content.hex())
    element_of_uuids = str(UUID(bytes=md5(content, usedforsecurity=False).digest(), version=3))
    arrays: list[Any] = [[element] for element in (_UNAVAILABLE, *binary, element_of_uuids)]
    numbers = [list(content), [str(byte) for byte in content]]  # a reader may have the numbers as texts
    nested = [*arrays, *numbers, {_UNAVAILABLE: _UNAVAILABLE}]
    return (_UNAVAILABLE, *binary, content.hex().upper(), *(json.dumps(each, separators=(",", ":")) for each in nested))


UNAVAILABLE_VALUES = _unavailable_values()
"""The values in place of a large value that a change leaves as it is: such an attribute is not provided.

The connector writes the same placeholder for each type of PostgreSQL: as a text, as binary data, which an event has in
Base64 or in hexadecimal digits, as the element of an array or as its numbers, and as an entry of a map.
"""

_TIME = f"coalesce(nullif(cast({ENVELOPE}.source.ts_ms as string), '0'), cast({ENVELOPE}.ts_ms as string))"
# The position in a binary log is the number of the file (20 bits), the offset (32) and the row at that offset (11).
_BINARY_LOG = (
    f"try_cast(regexp_extract({ENVELOPE}.source.file, '([0-9]+)$', 1) as bigint) * {2**43}"
    f" + cast({ENVELOPE}.source.pos as bigint) * {2**11}"
    f" + least(coalesce(cast({ENVELOPE}.source.row as bigint), 0), 2047)"
)
_POSITION = f"coalesce(cast({ENVELOPE}.source.lsn as bigint), {_BINARY_LOG}, cast({ENVELOPE}.source.scn as bigint))"
OPTIONS = {
    "rows": f"{ENVELOPE} IS NOT NULL AND coalesce({ENVELOPE}.op, '') <> 'm'",
    "deletes": f"{ENVELOPE}.op = 'd'",
    "effective_at": {"expression": _TIME},
    "effective_at_unit": "ms",
    "sequence": {"expression": _POSITION},
}
"""The options, by name: tombstones and messages are no rows, and the time is that of the commit."""


def debezium_options(declared: dict[str, Any]) -> dict[str, Any]:
    """Return the options that are not declared; a declared time is read as declared."""
    missing = {option for option in OPTIONS if declared.get(option) is None}
    if "effective_at" not in missing:
        missing.discard("effective_at_unit")
    return {option: value for option, value in OPTIONS.items() if option in missing}
