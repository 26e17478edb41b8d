"""Summarize the conformed rows of each batch: its counts, its content hash, its times and its scope."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from scd_pipeline.columns import BAD_REASON, BATCH, CHANNEL, EFFECTIVE_AT, KIND, SOURCE
from scd_pipeline.declaration import Dimension
from scd_pipeline.deliveries.row_columns import HASH, KEY_READABLE, NULLED, ROW_ORDER
from scd_pipeline.deliveries.ties import tie_columns
from scd_pipeline.expressions import key_text


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
