"""Short descriptions of loads, for the command line and for Dagster."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from scd_pipeline.deliveries.result import OUTCOMES
from scd_pipeline.load.load_plan import unknown_members_summary

if TYPE_CHECKING:
    from scd_pipeline.declaration import Dimension
    from scd_pipeline.load.run import LoadResult

_ACTIONS = {"open": "opened", "close": "closed", "overwrite": "overwritten", "remove": "removed"}


def row_summary(rows: Mapping[str, int]) -> str:
    """Return how many rows had each row action, such as "2 opened, 1 closed"; empty without rows."""
    return ", ".join(f"{count} {_ACTIONS.get(action, action)}" for action, count in rows.items() if count)


def load_summary(result: LoadResult) -> str:
    """Return the outcomes and row actions of a load in one line."""
    outcomes = [batch.outcome for batch in result.results]
    deliveries = [f"{outcomes.count(outcome)} {outcome}" for outcome in OUTCOMES if outcome in outcomes]
    parts = [
        f"deliveries: {', '.join(deliveries) or 'none'}",
        f"rows: {row_summary(result.row_counts) or 'none changed'}",
        unknown_members_summary(result.unknown_members),
        f"table version {result.table_version}" if result.table_version >= 0 else "no table yet",
        f"{result.seconds:.1f} s",
    ]
    return f"{result.table}: {'; '.join(part for part in parts if part)}"


def summary_columns(names: Sequence[str], dimension: Dimension) -> list[str]:
    """Return the columns that show what happened to a row: key, action, window, and attributes that open versions."""
    attributes = [attribute for attribute in dimension.attributes if attribute.opens_versions]
    included = {attribute.name for attribute in attributes or dimension.attributes}
    included |= {"_action", "version", "effective_from", "effective_to", *dimension.key_names}
    return [name for name in names if name in included]
