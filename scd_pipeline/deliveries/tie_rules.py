"""How the deliveries of a load decide between rows of one entity at one position (S5)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from scd_pipeline.columns import BAD, BATCH, KIND
from scd_pipeline.declaration import Dimension
from scd_pipeline.deliveries.pending import PendingDelivery
from scd_pipeline.deliveries.ties import drop_deleted_ties, find_conflicts, merge_ties, merge_ties_by_row_order
from scd_pipeline.frames import union_all

_SHOWN_KEYS = 10


def by_tie_rule(deliveries: Iterable[tuple[str, PendingDelivery]]) -> dict[str, list[str]]:
    """Return the given ids of deliveries with tied rows, by the rule that decides between such rows (S5)."""
    ids: dict[str, list[str]] = {}
    for delivery_id, delivery in deliveries:
        if delivery.content.repeated:
            ids.setdefault(delivery.channel.ties, []).append(delivery_id)
    return ids


def _merge_without_deleted(rows: DataFrame, dimension: Dimension) -> DataFrame:
    return merge_ties(drop_deleted_ties(rows, dimension), dimension)


MERGE_BY_TIE_RULE = {
    "reject": merge_ties,
    "delete_wins": _merge_without_deleted,
    "first_row": merge_ties_by_row_order,
    "last_row": merge_ties_by_row_order,
}
"""The function that makes one row of tied rows, by tie rule."""


def unordered_keys(rows: DataFrame, measured: Sequence[PendingDelivery], dimension: Dimension) -> dict[str, str]:
    """Return, by row tag, the keys that have several values at one position without an order, as text (S5)."""
    by_rule = by_tie_rule((delivery.row_tag, delivery) for delivery in measured)
    candidates = [rows.where(F.col(BATCH).isin(ids)) for rule, ids in by_rule.items() if rule == "reject"]
    if "delete_wins" in by_rule:
        good = rows.where(F.col(BATCH).isin(by_rule["delete_wins"]) & (F.col(KIND) != BAD))
        candidates.append(drop_deleted_ties(good, dimension))
    if not candidates:
        return {}
    keys_by_tag: dict[str, list[str]] = {}
    for row in find_conflicts(union_all(candidates), dimension, _SHOWN_KEYS + 1).collect():
        keys_by_tag.setdefault(row[BATCH], []).append(row["key"])
    return {
        tag: "; ".join(sorted(keys)[:_SHOWN_KEYS]) + (" and more" if len(keys) > _SHOWN_KEYS else "")
        for tag, keys in keys_by_tag.items()
    }
