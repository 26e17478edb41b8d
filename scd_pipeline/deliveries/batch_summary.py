"""Summarize the conformed rows of each batch: its counts, its content hash, its times and its scope."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from pyspark.sql import Column, DataFrame, Row
from pyspark.sql import functions as F

from scd_pipeline.columns import BAD, BAD_REASON, BATCH, CHANNEL, EFFECTIVE_AT, KIND, SOURCE
from scd_pipeline.declaration import Dimension
from scd_pipeline.deliveries.early_times import event_time_unit
from scd_pipeline.deliveries.hash_sums import hash_halves, hash_sum
from scd_pipeline.deliveries.narrowed import RepeatedRows
from scd_pipeline.deliveries.row_columns import ABSENT, FILTERED, HASH, KEY_READABLE, NULLED, ROW_ORDER
from scd_pipeline.deliveries.ties import tie_columns
from scd_pipeline.expressions import all_of, col, text_of_parts
from scd_pipeline.frames import repeated_numbers
from scd_pipeline.instants import from_micros_or_none

MAX_SCOPE_VALUES = 10_000
"""Every load reads the scopes of all stored snapshots to the driver."""


@dataclass(frozen=True, slots=True)
class BatchContent:
    """What the rows of a batch contain.

    Attributes:
        rows: The number of rows, without filtered ones.
        filtered: The number of rows that the channel's condition excludes.
        bad_rows: The number of bad rows.
        nulled: The number of values of good rows that are NULL because they do not cast.
        unreadable: The number of bad rows without a key.
        entities: The number of distinct keys and times of good rows.
        repeated: How many of these occur more than once.
        hash: The sum of the content hashes.
        bad_reason: The reason of one bad row; empty if there is none.
        unreadable_reason: The reason of one bad row without a key; empty if there is none.
        earliest, latest: The earliest and the latest time of good rows.
        earliest_event: The earliest event time of a fact, if a declared unit reads it.
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
    unreadable_reason: str = ""
    earliest: datetime | None = None
    latest: datetime | None = None
    scopes: tuple[frozenset[str], ...] = ()
    filtered: int = 0
    earliest_event: datetime | None = None

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


def summarize_batches(
    rows: DataFrame, scopes: Mapping[str, Sequence[str]], in_file_order: Sequence[str], dimension: Dimension
) -> dict[str | None, BatchContent]:
    """Return the content of each batch by its tag.

    The hash does not depend on the order of the rows, except among rows whose ties their order decides:
    their order is part of what they assert (S5, S34).

    The cost is one pass, and a shuffle of a hash of each row's key and time. Only if two of these hashes are equal, the
    rows are grouped by the key and the time themselves.

    Args:
        rows: Conformed rows.
        scopes: The scope columns of channels (source/channel) whose deliveries cover what they contain.
        in_file_order: The channels (source/channel) in which the order of a file's rows decides ties.
        dimension: The declaration.
    """
    contents, may_have_ties = _counted(rows, scopes, dimension)
    if may_have_ties:
        for row in _ties(rows, in_file_order, dimension).collect():
            content = contents[row[BATCH]]
            contents[row[BATCH]] = replace(content, entities=int(row["entities"]), repeated=int(row["repeated"]))
            if in_file_order:
                contents[row[BATCH]] = replace(contents[row[BATCH]], hash=int(row["hash"]))
    if any(content.bad_rows for content in contents.values()):
        unreadable = F.when(~F.col(KEY_READABLE), F.col(BAD_REASON))
        reasons = {"bad_reason": F.min(BAD_REASON), "unreadable_reason": F.min(unreadable)}
        bad = rows.where(F.col(KIND) == BAD)
        for row in bad.groupBy(BATCH).agg(*[reason.alias(name) for name, reason in reasons.items()]).collect():
            bad_reason, unreadable_reason = (row[name] or "" for name in reasons)
            content = replace(contents[row[BATCH]], bad_reason=bad_reason, unreadable_reason=unreadable_reason)
            contents[row[BATCH]] = content
    return contents


def _scope_text(names: Sequence[str], dimension: Dimension) -> Column:
    """Return the scope value of a row; NULL in a row that provides no value of an attribute."""
    attributes = [name for name in names if name not in dimension.key_names]
    values = [col(name)["v"] if name in attributes else col(name) for name in names]
    return F.when(all_of([col(name)["v"].isNotNull() for name in attributes]), text_of_parts(values))


def _counted(
    rows: DataFrame, scopes: Mapping[str, Sequence[str]], dimension: Dimension
) -> tuple[dict[str | None, BatchContent], bool]:
    """Return by one query the contents as if no good rows had ties, and whether some may have."""
    is_good = _is_good()
    # Times are collected as microseconds, which the time zone of this process cannot change.
    time = F.when(is_good, F.unix_micros(EFFECTIVE_AT))
    scope_values = {
        f"scope_{number}": F.slice(
            F.collect_set(
                F.when(
                    F.col(KEY_READABLE) & (F.concat_ws("/", SOURCE, CHANNEL) == channel), _scope_text(names, dimension)
                )
            ),
            1,
            MAX_SCOPE_VALUES + 1,  # enough to reject it, whatever its size is
        )
        for number, (channel, names) in enumerate(scopes.items())
    }
    totals = {
        "rows": F.count(F.lit(1)),
        "good_rows": F.count_if(is_good),
        "bad_rows": F.count_if(F.col(KIND) == BAD),
        "nulled": F.sum(F.when(is_good, F.col(NULLED))),
        "unreadable": F.count_if(~F.col(KEY_READABLE)),
        **hash_halves(F.col(HASH)),
        "earliest": F.min(time),
        "latest": F.max(time),
        "earliest_event": F.min(F.when(is_good, _event_time(dimension))),
        **scope_values,
    }
    ties = repeated_numbers(rows.where(is_good).select(F.xxhash64(*tie_columns(dimension)).alias("n")))
    is_repeated = ties.agg((F.count(F.lit(1)) > 0).alias("is_repeated"))
    by_batch = rows.groupBy(BATCH, (F.col(KIND) == FILTERED).alias(FILTERED))
    counted = by_batch.agg(*[value.alias(name) for name, value in totals.items()])
    collected = counted.unionByName(is_repeated, allowMissingColumns=True).collect()
    contents = {row[BATCH]: _content(row, len(scopes)) for row in collected if row["rows"] and not row[FILTERED]}
    for row in (row for row in collected if row[FILTERED]):
        content = contents.get(row[BATCH], BatchContent(scopes=(frozenset(),) * len(scopes)))
        contents[row[BATCH]] = replace(content, filtered=int(row["rows"]))
    return contents, any(row["is_repeated"] for row in collected)


def _event_time(dimension: Dimension) -> Column:
    """Return the event time of a row that a declared unit reads, in microseconds; NULL without one."""
    event_time = event_time_unit(dimension)
    return F.unix_micros(col(event_time[0])["v"]) if event_time else F.lit(None).cast("bigint")


def _is_good() -> Column:
    """Return whether a row asserts something about its entity: it is not bad, filtered or absent."""
    return ~F.col(KIND).isin(BAD, FILTERED, ABSENT)


def _content(row: Row, scopes: int) -> BatchContent:
    return BatchContent(
        rows=int(row["rows"]),
        bad_rows=int(row["bad_rows"]),
        entities=int(row["good_rows"]),
        nulled=int(row["nulled"] or 0),
        unreadable=int(row["unreadable"]),
        hash=hash_sum(row),
        earliest=from_micros_or_none(row["earliest"]),
        latest=from_micros_or_none(row["latest"]),
        scopes=tuple(frozenset(row[f"scope_{number}"] or ()) for number in range(scopes)),
        earliest_event=from_micros_or_none(row["earliest_event"]),
    )


def _ties(rows: DataFrame, in_file_order: Sequence[str], dimension: Dimension) -> DataFrame:
    """Return `_batch`, `entities`, `repeated` and, if a channel is in file order, `hash` (`BatchContent`)."""
    is_good = _is_good().alias("_good")
    rows = rows.where(F.col(KIND) != FILTERED)
    hashes = [_group_hash(in_file_order).alias("_h")] if in_file_order else []
    groups = rows.groupBy(*tie_columns(dimension), is_good, SOURCE, CHANNEL).agg(F.count(F.lit(1)).alias("_n"), *hashes)
    sums = [F.sum("_h").cast("string").alias("hash")] if in_file_order else []
    return groups.groupBy(BATCH).agg(
        F.count_if("_good").alias("entities"), F.count_if(F.col("_good") & (F.col("_n") > 1)).alias("repeated"), *sums
    )


def _group_hash(in_file_order: Sequence[str]) -> Column:
    """Return the hash of the rows with one position."""
    unordered = F.sum(F.col(HASH).cast("decimal(38,0)"))
    is_tie = F.concat_ws("/", SOURCE, CHANNEL).isin(list(in_file_order)) & _is_good()
    hashes = F.array_sort(F.collect_list(F.when(is_tie, F.struct(ROW_ORDER, HASH))))
    in_order = F.xxhash64(F.transform(hashes, lambda row: row[HASH])).cast("decimal(38,0)")
    return F.when(F.size(hashes) > 1, in_order).otherwise(unordered)
