"""Existence of entities according to the change records of one source (S4).

A plain snapshot asserts at one time which entities exist and which values they have. The rows of a row-timed snapshot
have their own times instead: each row asserts values at its time, and the snapshot asserts at its own, later time which
entities are present. This module therefore adds a row of kind "presence" at the snapshot's time for each of its rows.

Example: a snapshot of 1 March has a row of entity 1 dated 5 January. The row becomes an upsert on 5 January and a
presence on 1 March. If a delete of 1 February arrives late, the presence makes the entity return on 1 March.

An absence deletes an entity only if its existence was asserted before: by presence, by a plain snapshot or by a feed.
The values of a row-timed row make the entity exist, but they do not assert existence. A delete that a feed delivers, or
a snapshot whose scope is an attribute (S38), has its effect in any case.

A row dated after its snapshot asserts nothing before its own time: its presence has no effect, and the row itself
asserts existence. Its presence row only shows the retire guard that the snapshot does not omit the entity.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from scd_pipeline.columns import (
    ASSERTED_AT,
    CHANNEL,
    DELETE,
    EFFECTIVE_AT,
    KIND,
    PRESENCE,
    ROW_AT,
    ROW_SEQUENCE,
    SEQUENCE,
    UPSERT,
)
from scd_pipeline.declaration import Dimension
from scd_pipeline.history.attribute_scopes import IN_SCOPE_BEFORE, AttributeScopes
from scd_pipeline.history.batch import Batch
from scd_pipeline.history.row_windows import RowWindow

EXISTED_BEFORE = "_existed_before"
ASSERTED_BEFORE = "_asserted_before"


def with_presence(records: DataFrame, *, has_row_times: bool) -> DataFrame:
    """Add a "presence" row at `_asserted_at` for each upsert that has one.

    Args:
        records: Change records.
        has_row_times: Whether there may be upserts with `_asserted_at`; otherwise only the columns are added.

    Returns:
        The records and the presence rows. `_row_at` and `_row_sequence` contain the position of the row that a
        presence row comes from, and NULL in other rows.
    """
    records = records.withColumns(
        {ROW_AT: F.lit(None).cast("timestamp"), ROW_SEQUENCE: F.lit(None).cast("bigint")},
    )
    if not has_row_times:
        return records
    presence = records.where(F.col(ASSERTED_AT).isNotNull() & (F.col(KIND) == UPSERT)).withColumns(
        {
            KIND: F.lit(PRESENCE),
            ROW_AT: F.col(EFFECTIVE_AT),
            ROW_SEQUENCE: F.col(SEQUENCE),
            EFFECTIVE_AT: F.col(ASSERTED_AT),
            SEQUENCE: F.lit(None).cast("bigint"),
        }
    )
    return records.unionByName(presence)


@dataclass(frozen=True, slots=True)
class SnapshotKinds:
    """What the snapshots of a dimension have apart from plain ones.

    Attributes:
        has_row_times: Whether rows of any snapshot have times of their own (S4).
        scopes: The scopes that are attributes.
    """

    has_row_times: bool = False
    scopes: AttributeScopes = field(default_factory=AttributeScopes)

    @classmethod
    def from_batches(cls, batches: Iterable[Batch], dimension: Dimension) -> SnapshotKinds:
        """Return the kinds of the snapshots among some batches."""
        batches = list(batches)
        return cls(any(b.has_row_times for b in batches), AttributeScopes.from_batches(batches, dimension))

    @property
    def are_plain(self) -> bool:
        """Whether an absence always deletes, and every record asserts existence or its end."""
        return not self.has_row_times and not self.scopes.scopes


def with_existence(rows: DataFrame, before: RowWindow, in_effect: Column) -> DataFrame:
    """Add whether the existence of the entity had been asserted just before each row, and whether the entity existed.

    Args:
        rows: Change records with their presence rows (`with_presence`) and `_in_scope_before`.
        before: The window of the rows before each row (`RowWindows.rows_before`).
        in_effect: Condition of the rows to consider.

    Returns:
        The rows with `_asserted_before` and `_existed_before`, which are never NULL. Rows of a snapshot whose scope
        the entity did not belong to have `_asserted_before` false: the snapshot does not decide about the entity.
    """
    asserts = is_presence() | ((F.col(KIND) == UPSERT) & ~_is_dated_before_snapshot())
    # An absence from the snapshot of another scope asserts nothing.
    deletes = is_delivered_delete() | ((F.col(KIND) == DELETE) & F.col(IN_SCOPE_BEFORE))
    asserted = F.when(in_effect & asserts, True).when(in_effect & deletes, False)
    rows = rows.withColumn(ASSERTED_BEFORE, last_flag(asserted, before) & F.col(IN_SCOPE_BEFORE))
    is_existing = is_presence() | (F.col(KIND) == UPSERT)
    exists = F.when(in_effect & is_existing, True).when(in_effect & is_deletion(), False)
    return rows.withColumn(EXISTED_BEFORE, last_flag(exists, before))


def is_presence() -> Column:
    """Return whether a row is the presence of a row dated up to its snapshot's time, which alone has an effect (S4)."""
    return (F.col(KIND) == PRESENCE) & (F.col(ROW_AT) <= F.col(EFFECTIVE_AT))


def _is_dated_before_snapshot() -> Column:
    """Return whether the row's existence is asserted by its presence; false for rows that are not row-timed."""
    return F.coalesce(F.col(EFFECTIVE_AT) <= F.col(ASSERTED_AT), F.lit(False))


def is_deletion() -> Column:
    """Return whether a row deletes its entity; needs `_asserted_before`.

    A delivered delete always does. An absence does if the entity's existence had been asserted before (S4).
    """
    return is_delivered_delete() | ((F.col(KIND) == DELETE) & F.col(ASSERTED_BEFORE))


def is_delivered_delete() -> Column:
    """Return whether a row is a delete that a feed or a snapshot has delivered, and not an absence from a snapshot."""
    return (F.col(KIND) == DELETE) & ((F.col(CHANNEL) != "snapshot") | F.col(ASSERTED_AT).isNotNull())


def last_flag(flag: Column, window: RowWindow) -> Column:
    """Return the last value of the flag that is not NULL, or false if there is none."""
    return F.coalesce(window.last(flag), F.lit(False))
