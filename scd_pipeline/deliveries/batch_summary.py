"""Summarize the rows of deliveries in the query that computes them: what each batch contains, and the range of keys.

Few batches are summarized by aggregates of that query, many batches by a query of their own.
Rows of one entity at one position are found by another query, unless there are so few rows that the aggregates list all
positions.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from scd_pipeline.columns import BAD, BAD_REASON, BATCH, CHANNEL, DELETE, EFFECTIVE_AT, KIND, SOURCE
from scd_pipeline.declaration import Dimension
from scd_pipeline.deliveries.control_totals import control_figures, observed_sums, observed_totals
from scd_pipeline.deliveries.early_times import event_time_unit
from scd_pipeline.deliveries.hash_sums import hash_halves, hash_sum
from scd_pipeline.deliveries.pending import BatchContent, PendingDelivery
from scd_pipeline.deliveries.row_columns import (
    ABSENT,
    FILTERED,
    HASH,
    KEY_READABLE,
    NULLED,
    OUTSIDE_SCOPE,
    ROW_ORDER,
)
from scd_pipeline.deliveries.ties import tie_columns
from scd_pipeline.expressions import all_of, any_of, col, text_of_parts
from scd_pipeline.frames import checkpoint_observed, number_in_task, observe_numbered, repeated_numbers, task_number
from scd_pipeline.history.key_ranges import is_in_range, range_figures
from scd_pipeline.instants import from_micros_or_none

MAX_SCOPE_VALUES = 10_000
"""Every load reads the scopes of all stored snapshots to the driver."""
_MAX_OBSERVED_BATCHES = 4
"""The largest number of batches that are summarized by the query that computes their rows; each needs 14 aggregates."""
_LISTED_POSITIONS, _LISTED_KEYS, _LISTED_TASKS = 5_000, 11, 16
"""How many rows of each task, and of how many tasks, the aggregates list, so that their size is limited."""
_UNASSIGNED, _GOOD, _DISTINCT = "unassigned", "good", "distinct"


@dataclass(frozen=True, slots=True)
class Summary:
    """The figures of rows that were computed together.

    Attributes:
        contents: The content of each batch by its row tag, as if no good rows had ties.
        unassigned: The number of rows of no batch.
        may_have_ties: Whether good rows may have ties; False if it is known that none have.
        key_range: A condition on the business key that holds for every row with a readable key (`key_ranges`).
    """

    contents: Mapping[str, BatchContent]
    unassigned: int
    may_have_ties: bool
    key_range: Column


def checkpoint_with_summary(
    rows: DataFrame, deliveries: Sequence[PendingDelivery], dimension: Dimension, constants: Collection[str] = ()
) -> tuple[DataFrame, Summary]:
    """Compute the conformed rows of deliveries, without some columns that are constant, and summarize them."""
    observed_deliveries = deliveries if len(deliveries) <= _MAX_OBSERVED_BATCHES else ()
    figures = {**position_figures(dimension), **content_figures(observed_deliveries, dimension)}
    observed_rows, observed = observe_numbered(rows, figures)
    computed, (values,) = checkpoint_observed(observed_rows.drop(*constants), observed)
    summary = summary_of(values, observed_deliveries, dimension)
    if not observed_deliveries:
        summary = replace(summary, contents=_queried_contents(computed, deliveries, dimension))
    return computed, summary


def summary_of(values: Mapping[str, Any], deliveries: Sequence[PendingDelivery], dimension: Dimension) -> Summary:
    """Return the summary of rows with these values of `position_figures` and `content_figures`."""
    return Summary(
        {each.row_tag: _content(values, f"{number} ", each) for number, each in enumerate(deliveries)},
        unassigned=values[_UNASSIGNED] or 0,
        may_have_ties=(values[_DISTINCT] or 0) < (values[_GOOD] or 0),
        key_range=is_in_range(values, dimension),
    )


def combined(summaries: Sequence[Summary]) -> Summary:
    """Return the summary of the rows of all summaries."""
    return Summary(
        {tag: content for each in summaries for tag, content in each.contents.items()},
        sum(each.unassigned for each in summaries),
        any(each.may_have_ties for each in summaries),
        any_of([each.key_range for each in summaries]),
    )


def position_figures(dimension: Dimension) -> dict[str, Column]:
    """Return aggregates by name that list keys and positions of the first rows of each task (`observe_numbered`)."""
    number, is_first_task = number_in_task(), task_number() < _LISTED_TASKS
    position = F.when(_is_good() & is_first_task & (number < _LISTED_POSITIONS), F.xxhash64(*tie_columns(dimension)))
    return {
        _GOOD: F.count_if(_is_good()),
        _DISTINCT: F.size(F.collect_set(position)),
        **range_figures(_has_effect(), is_first_task & (number < _LISTED_KEYS), dimension),
    }


def content_figures(
    deliveries: Sequence[PendingDelivery], dimension: Dimension, is_delivered: Column | None = None
) -> dict[str, Column]:
    """Return the aggregates over conformed rows that `summary_of` needs, by name.

    Args:
        deliveries: The deliveries, whose rows have their row tags.
        dimension: The declaration.
        is_delivered: Whether a row is one of them; by default all are.
    """
    is_delivered = F.lit(True) if is_delivered is None else is_delivered
    figures = {_UNASSIGNED: F.count_if(is_delivered & F.col(BATCH).isNull())}
    for number, delivery in enumerate(deliveries):
        is_of_batch = is_delivered & (F.col(BATCH) == delivery.row_tag)
        totals = _totals(is_of_batch, [delivery], dimension)
        figures |= {f"{number} {name}": total for name, total in totals.items()}
    return figures


def with_exact_ties(
    contents: Mapping[str, BatchContent], rows: DataFrame, in_file_order: Sequence[str], dimension: Dimension
) -> dict[str, BatchContent]:
    """Return the contents of batches whose good rows may have ties.

    The cost is a shuffle of a hash of each row's key and time. Only if two of these hashes are equal, the rows are
    grouped by the key and the time themselves.

    The hash of a batch does not depend on the order of the rows, except among rows whose ties their order decides:
    their order is part of what they assert (S5, S34).

    Args:
        contents: The contents as if no good rows had ties.
        rows: Conformed rows: at least all that have ties.
        in_file_order: The channels (source/channel) in which the order of a file's rows decides ties.
        dimension: The declaration.
    """
    exact = dict(contents)
    hashes = rows.where(_is_good()).select(F.xxhash64(*tie_columns(dimension)).alias("n"))
    if not repeated_numbers(hashes).count():
        return exact
    for row in _ties(rows, in_file_order, dimension).collect():
        content = exact[row[BATCH]]
        exact[row[BATCH]] = replace(
            content,
            entities=content.entities - int(row["surplus"]),
            repeated=int(row["repeated"]),
            hash=content.hash + int(row["hash_difference"]),
        )
    return exact


def _queried_contents(
    rows: DataFrame, deliveries: Sequence[PendingDelivery], dimension: Dimension
) -> dict[str, BatchContent]:
    """Return the contents of many deliveries by one query."""
    totals = _totals(F.lit(True), deliveries, dimension)
    counted = rows.groupBy(BATCH).agg(*[total.alias(name) for name, total in totals.items()])
    values = {row[BATCH]: row.asDict() for row in counted.collect()}
    return {each.row_tag: _content(values[each.row_tag], "", each) for each in deliveries if each.row_tag in values}


def _scopes_to_list(deliveries: Iterable[PendingDelivery]) -> list[tuple[str, ...]]:
    """Return the columns of each scope whose values among the rows of a delivery are listed."""
    return sorted({each.batch.scope_columns for each in deliveries if _lists_scope(each)})


def _lists_scope(delivery: PendingDelivery) -> bool:
    """Return whether the scope values of its rows are what it covers, or are compared with what it covers."""
    return bool(delivery.batch.scope_columns) and (delivery.derives_scope or delivery.rejects_empty_scope)


def _scope_name(columns: Sequence[str]) -> str:
    return f"scope {' '.join(columns)}"


def _scope_text(names: Sequence[str], dimension: Dimension) -> Column:
    """Return the scope value of a row; NULL in a row that provides no value of an attribute."""
    attributes = [name for name in names if name not in dimension.key_names]
    values = [col(name)["v"] if name in attributes else col(name) for name in names]
    return F.when(all_of([col(name)["v"].isNotNull() for name in attributes]), text_of_parts(values))


def _totals(is_of_batch: Column, deliveries: Sequence[PendingDelivery], dimension: Dimension) -> dict[str, Column]:
    """Return the aggregates over the rows of a batch, which is that of one of the deliveries."""
    is_filtered = F.col(KIND) == FILTERED
    is_counted, is_good = is_of_batch & ~is_filtered, is_of_batch & _is_good()
    is_bad = is_of_batch & (F.col(KIND) == BAD)
    is_unreadable = is_bad & ~F.col(KEY_READABLE)
    is_outside = F.coalesce(F.col(BAD_REASON).contains(OUTSIDE_SCOPE), F.lit(False))
    # Times are collected as microseconds, which the time zone of this process cannot change.
    time = F.when(is_good, F.unix_micros(EFFECTIVE_AT))
    # A row that deletes by its key belongs to no scope.
    in_scope = is_counted & F.col(KEY_READABLE) & ~is_outside & (F.col(KIND) != DELETE)
    scope_values = {
        _scope_name(names): F.slice(
            F.collect_set(F.when(in_scope, _scope_text(names, dimension))),
            1,
            MAX_SCOPE_VALUES + 1,  # enough to reject it, whatever its size is
        )
        for names in _scopes_to_list(deliveries)
    }
    return {
        "rows": F.count_if(is_counted),
        "filtered": F.count_if(is_of_batch & is_filtered),
        "entities": F.count_if(is_good),
        "deletes": F.count_if(is_of_batch & (F.col(KIND) == DELETE)),
        "bad_rows": F.count_if(is_bad),
        "nulled": F.sum(F.when(is_good, F.col(NULLED))),
        "unreadable": F.count_if(is_unreadable),
        **hash_halves(F.when(is_counted, F.col(HASH))),
        "bad_reason": F.min(F.when(is_bad, F.col(BAD_REASON))),
        "unreadable_reason": F.min(F.when(is_unreadable, F.col(BAD_REASON))),
        "earliest": F.min(time),
        "latest": F.max(time),
        "earliest_event": F.min(F.when(is_good, _event_time(dimension))),
        **scope_values,
        **control_figures(deliveries, is_of_batch, is_good, dimension),
    }


def _event_time(dimension: Dimension) -> Column:
    """Return the event time of a row that a declared unit reads, in microseconds; NULL without one."""
    event_time = event_time_unit(dimension)
    return F.unix_micros(col(event_time[0])["v"]) if event_time else F.lit(None).cast("bigint")


def _is_good() -> Column:
    """Return whether a row asserts something about its entity: it is not bad, filtered or absent."""
    return ~F.col(KIND).isin(BAD, FILTERED, ABSENT)


def _has_effect() -> Column:
    """Return whether later steps see a row; also true without a kind, as of an entity that a snapshot omits."""
    return ~F.coalesce(F.col(KIND).isin(FILTERED, ABSENT), F.lit(False))


def _content(values: Mapping[str, Any], prefix: str, delivery: PendingDelivery) -> BatchContent:
    """Return the content of a delivery, whose values of `_totals` have names with a prefix."""
    of_batch = {name.removeprefix(prefix): value for name, value in values.items() if name.startswith(prefix)}
    scope = of_batch[_scope_name(delivery.batch.scope_columns)] if _lists_scope(delivery) else None
    return BatchContent(
        rows=of_batch["rows"] or 0,
        filtered=of_batch["filtered"] or 0,
        bad_rows=of_batch["bad_rows"] or 0,
        nulled=of_batch["nulled"] or 0,
        unreadable=of_batch["unreadable"] or 0,
        entities=of_batch["entities"] or 0,
        deletes=of_batch["deletes"] or 0,
        hash=hash_sum(of_batch),
        bad_reason=of_batch["bad_reason"] or "",
        unreadable_reason=of_batch["unreadable_reason"] or "",
        earliest=from_micros_or_none(of_batch["earliest"]),
        latest=from_micros_or_none(of_batch["latest"]),
        earliest_event=from_micros_or_none(of_batch["earliest_event"]),
        scope=tuple(sorted(scope or ())),
        sums=observed_sums(of_batch, delivery),
        totals=observed_totals(of_batch, delivery),
    )


def _ties(rows: DataFrame, in_file_order: Sequence[str], dimension: Dimension) -> DataFrame:
    """Return by how much ties change the contents of the batches that have some.

    Returns:
        `_batch`, `repeated` (the number of positions with ties), `surplus` (of the rows in addition to one of each) and
        `hash_difference` (by how much the order of rows changes the sum of the content hashes).
    """
    groups = rows.where(_is_good()).groupBy(*tie_columns(dimension), SOURCE, CHANNEL)
    difference = _hash_difference() if in_file_order else F.lit(0)
    ties = groups.agg(F.count(F.lit(1)).alias("_n"), difference.alias("_difference")).where(F.col("_n") > 1)
    is_in_order = F.concat_ws("/", SOURCE, CHANNEL).isin(list(in_file_order))
    return ties.groupBy(BATCH).agg(
        F.count(F.lit(1)).alias("repeated"),
        F.sum(F.col("_n") - 1).alias("surplus"),
        F.sum(F.when(is_in_order, F.col("_difference")).otherwise(0)).cast("string").alias("hash_difference"),
    )


def _hash_difference() -> Column:
    """Return the hash of the rows at one position in their order, minus the sum of their hashes."""
    hashes = F.array_sort(F.collect_list(F.struct(ROW_ORDER, HASH)))
    in_order = F.xxhash64(F.transform(hashes, lambda row: row[HASH])).cast("decimal(38,0)")
    return in_order - F.sum(F.col(HASH).cast("decimal(38,0)"))
