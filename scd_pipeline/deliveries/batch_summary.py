"""Summarize the conformed rows of each batch: its counts, its content hash, its times and its scope."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from pyspark.sql import Column, DataFrame, Row
from pyspark.sql import functions as F

from scd_pipeline.columns import BAD_REASON, BATCH, CHANNEL, EFFECTIVE_AT, KIND, SOURCE
from scd_pipeline.declaration import Dimension
from scd_pipeline.deliveries.narrowed import RepeatedRows
from scd_pipeline.deliveries.row_columns import HASH, KEY_READABLE, NULLED, ROW_ORDER
from scd_pipeline.deliveries.ties import tie_columns
from scd_pipeline.expressions import key_text
from scd_pipeline.instants import from_micros_or_none

_TIMES = ("earliest", "latest")


@dataclass(frozen=True, slots=True)
class BatchContent:
    """What the rows of a batch contain.

    Attributes:
        rows: The number of rows.
        bad_rows: The number of bad rows.
        nulled: The number of values of good rows that are NULL because they do not cast.
        unreadable: The number of bad rows without a key.
        entities: The number of distinct keys and times of good rows.
        repeated: How many of these occur more than once.
        hash: The sum of the content hashes.
        bad_reason: The reason of one bad row; empty if there is none.
        earliest, latest: The earliest and the latest time of good rows.
        scopes: For each scope of `summarize_batches` the distinct encoded values.
    """

    rows: int = 0
    bad_rows: int = 0
    nulled: int = 0
    unreadable: int = 0
    entities: int = 0
    repeated: int = 0
    hash: int = 0
    bad_reason: str = ""
    earliest: datetime | None = None
    latest: datetime | None = None
    scopes: tuple[frozenset[str], ...] = ()

    def with_repeated_rows(self, repeated: RepeatedRows, at: datetime | None) -> BatchContent:
        """Return the content with the rows that a narrowed snapshot of time `at` has in addition to the counted ones.

        Each of them is the only row of its entity.
        """
        if not repeated.rows:
            return self
        return replace(
            self,
            rows=self.rows + repeated.rows,
            entities=self.entities + repeated.rows,
            nulled=self.nulled + repeated.nulled,
            hash=self.hash + repeated.hash,
            earliest=at,
            latest=at,
        )


def batch_contents(summary: DataFrame, scopes: int) -> dict[str | None, BatchContent]:
    """Collect a summary (`summarize_batches`) with this number of scopes: the content of each batch, by its tag."""
    # Times are collected as microseconds, which the time zone of this process cannot change.
    micros = [F.unix_micros(name).alias(name) for name in _TIMES]
    others = [name for name in summary.columns if name not in _TIMES]
    rows = summary.select(*others, *micros).collect()
    return {row[BATCH]: _content(row, scopes) for row in rows}


def _content(row: Row, scopes: int) -> BatchContent:
    return BatchContent(
        rows=int(row["rows"]),
        bad_rows=int(row["bad_rows"] or 0),
        nulled=int(row["nulled"] or 0),
        unreadable=int(row["unreadable"] or 0),
        entities=int(row["entities"] or 0),
        repeated=int(row["repeated"] or 0),
        hash=int(row["hash"] or 0),
        bad_reason=row["bad_reason"] or "",
        earliest=from_micros_or_none(row["earliest"]),
        latest=from_micros_or_none(row["latest"]),
        scopes=tuple(frozenset(row[f"scope_{number}"] or ()) for number in range(scopes)),
    )


def summarize_batches(
    rows: DataFrame, scopes: Mapping[str, Sequence[str]], in_file_order: Sequence[str], dimension: Dimension
) -> DataFrame:
    """Summarize each batch in one row.

    The hash does not depend on the order of the rows, except among rows whose ties the last row of a file decides:
    their order is part of what they assert (S5, S34).

    Args:
        rows: Conformed rows.
        scopes: The scope columns of channels (source/channel) whose deliveries cover what they contain.
        in_file_order: The channels (source/channel) in which the last row of a file decides ties.
        dimension: The declaration.

    Returns:
        `_batch`, `rows`, `bad_rows`, `nulled` (values of good rows that are NULL because they do not cast),
        `unreadable` (bad rows without a key), `entities` (distinct keys and times of good rows), `repeated` (how many
        of these occur more than once), `hash`, `bad_reason`, `earliest` and `latest` (times of good rows), and
        `scope_<n>` for the n-th of `scopes`: the distinct encoded values of rows whose key can be read. A bad row among
        them counts as present (S26), so its delivery covers its scope.
    """
    is_good = F.col(KIND) != "bad"
    groups = rows.groupBy(
        *tie_columns(dimension), is_good.alias("_good"), F.col(KEY_READABLE), F.col(CHANNEL), F.col(SOURCE)
    ).agg(
        F.count(F.lit(1)).alias("_n"),
        F.sum(NULLED).alias("_nulled"),
        _group_hash(in_file_order).alias("_h"),
        F.min(BAD_REASON).alias("_reason"),
    )
    good_groups = F.when(F.col("_good"), F.lit(1)).otherwise(0)
    scope_values = {
        f"scope_{number}": F.collect_set(
            F.when(F.col(KEY_READABLE) & (F.concat_ws("/", SOURCE, CHANNEL) == channel), key_text(names))
        )
        for number, (channel, names) in enumerate(scopes.items())
    }
    return groups.groupBy(BATCH).agg(
        F.sum("_n").alias("rows"),
        F.sum(F.when(~F.col("_good"), F.col("_n")).otherwise(0)).alias("bad_rows"),
        F.sum(F.when(F.col("_good"), F.col("_nulled")).otherwise(0)).alias("nulled"),
        F.sum(F.when(~F.col(KEY_READABLE), F.col("_n")).otherwise(0)).alias("unreadable"),
        F.sum(good_groups).alias("entities"),
        F.sum(F.when(F.col("_good") & (F.col("_n") > 1), 1).otherwise(0)).alias("repeated"),
        F.sum("_h").cast("string").alias("hash"),
        F.min("_reason").alias("bad_reason"),
        F.min(F.when(F.col("_good"), F.col(EFFECTIVE_AT))).alias("earliest"),
        F.max(F.when(F.col("_good"), F.col(EFFECTIVE_AT))).alias("latest"),
        *[value.alias(name) for name, value in scope_values.items()],
    )


def _group_hash(in_file_order: Sequence[str]) -> Column:
    """Return the hash of the rows with one position."""
    unordered = F.sum(F.col(HASH).cast("decimal(38,0)"))
    if not in_file_order:
        return unordered
    is_tie = F.concat_ws("/", SOURCE, CHANNEL).isin(list(in_file_order)) & (F.col(KIND) != "bad")
    hashes = F.array_sort(F.collect_list(F.when(is_tie, F.struct(ROW_ORDER, HASH))))
    in_order = F.xxhash64(F.transform(hashes, lambda row: row[HASH])).cast("decimal(38,0)")
    return F.when(F.size(hashes) > 1, in_order).otherwise(unordered)
