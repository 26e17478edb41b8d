"""Names and types of the columns that the package generates.

The names of internal columns begin with an underscore. A declaration cannot use such names.
"""

from __future__ import annotations

from scd_pipeline.declaration import Dimension, column_names
from scd_pipeline.declaration.types import DataType, parse_type

# Columns of a dimension.
EFFECTIVE_FROM = "effective_from"
EFFECTIVE_TO = "effective_to"
CURRENT_FLAG = "current_flag"
VERSION = "version"
IS_DELETED = column_names.IS_DELETED
VERSION_STATE = column_names.VERSION_STATE
CHANGE_REASON = "change_reason"
CHANGE_SOURCE = "change_source"
LAST_UPDATED = "last_updated"
LOAD_RUN_ID = "load_run_id"
DELETED_AT = "deleted_at"

DEFAULT_REASON = "source_load"
"""The `change_reason` of a change for which its source gives none."""
DEFAULT_DELETE_REASON = "deleted_in_source"
"""The reason of a delete for which its source gives none: in the audit, and in a version that a delete opens."""

# Columns of the change log and of change records.
KIND = "_kind"
COMMIT = "_commit"
BATCH = "_batch"
SOURCE = "_source"
CHANNEL = "_channel"
DELIVERY_RANK = "_delivery_rank"
REVISION_RANK = "_revision_rank"
EFFECTIVE_AT = "_effective_at"
SEQUENCE = "_sequence"
ASSERTED_AT = "_asserted_at"
PROVIDED = "_provided"
REASON = "_reason"
ACTOR = "_actor"
CORRELATION_ID = "_correlation_id"
BAD_REASON = "_bad_reason"
BAD_ROW = "_bad_row"
INFO = "_info"
CURSOR = "_cursor"

# The values of `_kind`: those of change records, and that of a row with the properties of a batch.
UPSERT = "upsert"
DELETE = "delete"
NO_OP = "no_op"
"""The record of an entity that a snapshot omits and does not delete."""
PRESENCE = "presence"
"""A row that is computed, not stored: its snapshot asserts that the entity exists (S4)."""
BAD = "bad"
BATCH_ROW = "batch"

# Columns of the rows by which a row-timed snapshot asserts presence: position of the row with the values (S4).
ROW_AT = "_row_at"
ROW_SEQUENCE = "_row_sequence"

CHANGE_RECORD_TYPES = {
    SOURCE: "string",
    CHANNEL: "string",
    BATCH: "string",
    DELIVERY_RANK: "string",
    REVISION_RANK: "string",
    EFFECTIVE_AT: "timestamp",
    SEQUENCE: "bigint",
    ASSERTED_AT: "timestamp",
    KIND: "string",
    REASON: "string",
    ACTOR: "string",
    CORRELATION_ID: "string",
    BAD_REASON: "string",
    BAD_ROW: "string",
}
"""Spark type of each column of a change record, in order, without the business key and the attributes."""


def change_record_columns(dimension: Dimension) -> tuple[str, ...]:
    """Return the names of the columns of a change record: business key, `CHANGE_RECORD_TYPES` and attributes."""
    return (*dimension.key_names, *CHANGE_RECORD_TYPES, *dimension.attribute_names)


def attribute_types(dimension: Dimension) -> dict[str, DataType]:
    """Return the type of each attribute by name, in declared order."""
    return {attribute.name: parse_type(attribute.type) for attribute in dimension.attributes}
