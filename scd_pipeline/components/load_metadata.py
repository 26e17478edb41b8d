"""Metadata of the materializations of a load: counts, changed rows and plots.

Counts without a prefix are the effect of the delivery that the partition represents; those with the prefix `load/`
are of the whole load.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from functools import reduce
from operator import and_
from typing import Any

import dagster as dg
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import DateType, IntegralType

from scd_pipeline import queries
from scd_pipeline.columns import EFFECTIVE_FROM, EFFECTIVE_TO, VERSION
from scd_pipeline.components import plots
from scd_pipeline.components.definition_metadata import dimension_columns
from scd_pipeline.declaration import Dimension
from scd_pipeline.declaration.change_types import CHANGE_TYPES, REFUSED
from scd_pipeline.declaration.change_types import OVERWRITE as OVERWRITTEN
from scd_pipeline.declaration.tables import AUDIT_SUFFIX, LOG_SUFFIX, SUFFIXES
from scd_pipeline.declaration.times import to_datetime
from scd_pipeline.deliveries.result import OUTCOMES, BatchResult
from scd_pipeline.delta.table import Table
from scd_pipeline.delta.warehouse import Warehouse
from scd_pipeline.expressions import col, text_column
from scd_pipeline.history.actions import ACTION, CLOSE, OPEN, OVERWRITE, REMOVE
from scd_pipeline.load.audit import AuditResult
from scd_pipeline.load.audit_changes import TransitionCounts
from scd_pipeline.load.run import LoadResult
from scd_pipeline.operations.summary import summary_columns

TableMetadata = dict[str, dict[str, Any]]
"""Metadata by the suffix of a table."""

_MAX_ITEMS = 20
"""Number of deliveries or versions that a table or a plot contains."""
_ROW_COUNTS = {
    "rows_read": "rows",
    "rows_filtered": "filtered_rows",
    "rows_quarantined": "bad_rows",
    "values_set_to_null": "nulled_values",
}
"""Metadata keys of a delivery's rows and bad values, and the fields of its batch."""
_PLOTTED_COLUMNS = (VERSION, EFFECTIVE_FROM, EFFECTIVE_TO)
_VERSION_COUNTS = ("versions_opened", "versions_closed")
_ROW_ACTIONS = {OPEN: "rows_opened", CLOSE: "rows_closed", OVERWRITE: "rows_overwritten", REMOVE: "rows_removed"}
"""Metadata keys of the row actions."""
_LOAD_PREFIX = "load/"
_ROWS, _COLUMNS = "dagster/row_count", "dagster/column_schema"
FILE = "file"
"""Metadata key of the time and size of the file that a load read."""
ROW_ACTION_COUNTS = tuple(f"{_LOAD_PREFIX}{name}" for name in _ROW_ACTIONS.values())
"""Metadata keys of the rows that a load changed in a table, by row action. All are 0 if it changed none."""
ACCEPTED_COUNT = f"{_LOAD_PREFIX}deliveries_accepted"
"""Metadata key of the deliveries that a load added to a change log."""


def with_load_prefix(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """Return metadata of a whole load under keys that distinguish it from that of one delivery."""
    return {f"{_LOAD_PREFIX}{name}": value for name, value in metadata.items()}


# -- counts


def delivery_counts(
    batch: BatchResult, audit: AuditResult | None = None, *, entities: str = "entities"
) -> TableMetadata:
    """Return the effect of one delivery on the change log, the table and its audit.

    Args:
        batch: The result of the delivery.
        audit: The result of recording the audit, if the table has one.
        entities: What a row of the table identifies, for the names of the counts.
    """
    outcome = {"outcome": batch.outcome}
    log = {**outcome, **_batch_counts([batch], entities)}
    if audit is None:
        return {LOG_SUFFIX: log, "": {**outcome, **_batch_counts([batch], entities)}}
    counts = audit.delivery_counts(batch)
    table = {**outcome, **_table_effect(counts)}
    return {LOG_SUFFIX: log, "": table, AUDIT_SUFFIX: _transition_counts(counts)}


def log_counts(result: LoadResult, *, entities: str = "entities") -> dict[str, Any]:
    """Return deliveries by outcome, and the rows read, quarantined, new, changed and deleted of the accepted ones."""
    outcomes = [batch.outcome for batch in result.results]
    accepted = [batch for batch in result.results if batch.outcome == "accepted"]
    counts = {f"deliveries_{outcome}": outcomes.count(outcome) for outcome in OUTCOMES}
    return {**counts, **_batch_counts(accepted, entities)}


def table_counts(result: LoadResult, audit: AuditResult | None = None) -> dict[str, Any]:
    """Return the rows that a load changed in the table, by row action, and its effect according to the audit.

    For a fact also the written rows with the key of the unknown member, by role.
    """
    counts: dict[str, Any] = {name: result.row_counts.get(action, 0) for action, name in _ROW_ACTIONS.items()}
    counts |= {f"unknown_members_{role}": count for role, count in result.unknown_members.items()}
    return {**counts, **(_table_effect(audit.counts) if audit else {})}


def audit_counts(result: AuditResult) -> dict[str, Any]:
    """Return the transitions that a load recorded, by change type."""
    return dict(_transition_counts(result.counts))


def sizes(warehouse: Warehouse, table: str, versions: Mapping[str, int]) -> TableMetadata:
    """Return the number of rows and the Delta version of each table, by its suffix; both come from Delta's metadata.

    The reserved member of a dimension is excluded from all counts (S23).

    Args:
        warehouse: The warehouse of the tables.
        table: The dimension or the fact.
        versions: The Delta versions by suffix; the version of a table that does not exist is negative.
    """
    existing = {suffix: warehouse.table(table + suffix) for suffix, version in versions.items() if version >= 0}
    with ThreadPoolExecutor() as pool:  # each waits for several small answers of Spark
        rows = dict(zip(existing, pool.map(_count_rows, existing.values()), strict=True))
    return {
        suffix: {_ROWS: rows[suffix], "delta_version": version} if suffix in rows else {}
        for suffix, version in versions.items()
    }


def _count_rows(table: Table) -> int:
    """Return the number of rows without the reserved member."""
    may_have_reserved_member = not table.name.endswith(SUFFIXES)
    reserved = int(may_have_reserved_member and table.last_commit().reserved_member)
    return table.read().count() - reserved


def _transition_counts(counts: TransitionCounts) -> dict[str, int]:
    transitions = counts.transitions
    return {"transitions": transitions.total(), **{f"transitions_{t.lower()}": transitions[t] for t in CHANGE_TYPES}}


def _table_effect(counts: TransitionCounts) -> dict[str, int]:
    """Return the effect of transitions on the table.

    The audit is used because a batch counts its effect on its own source alone, which differs if there are several.
    """
    overwrites, refusals = counts.transitions[OVERWRITTEN], counts.transitions[REFUSED]
    versions = dict(zip(_VERSION_COUNTS, (counts.opened, counts.closed), strict=True))
    return {**versions, "overwrites": overwrites, "refusals": refusals}


def _batch_counts(batches: Sequence[BatchResult], entities: str) -> dict[str, int]:
    fields = {
        **_ROW_COUNTS,
        f"{entities}_new": "new",
        f"{entities}_changed": "changed",
        f"{entities}_deleted": "deleted",
    }
    if entities == "entities":
        fields |= {name: name for name in _VERSION_COUNTS}
    return {name: sum(getattr(batch, field) for batch in batches) for name, field in fields.items()}


# -- tables
#
# The pages of Dagster clip a table that is too wide, and wrap the text of its cells: so the tables have few columns.


def last_deliveries(result: LoadResult) -> dict[str, Any]:
    """Return the last deliveries of a load that had an effect or were rejected, as a table."""
    last = [batch for batch in result.results if batch.outcome != "unchanged"][-_MAX_ITEMS:]
    return {"last_deliveries": dg.MetadataValue.table([_delivery_record(batch) for batch in last])} if last else {}


def _delivery_record(batch: BatchResult) -> dg.TableRecord:
    rows = {"quarantined": batch.bad_rows, "filtered": batch.filtered_rows, "values set to NULL": batch.nulled_values}
    entities = {"new": batch.new, "changed": batch.changed, "deleted": batch.deleted}
    return dg.TableRecord(
        {
            "delivery": f"{batch.source} {batch.delivery}",
            "outcome": batch.outcome,
            "rows": _counts_text({"read": batch.rows, **{name: count for name, count in rows.items() if count}}),
            "changes": _counts_text(entities),
            "code": batch.code,
        }
    )


def _counts_text(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{count} {name}" for name, count in counts.items())


def warnings(result: LoadResult) -> dict[str, str]:
    """Return the warnings of a load as text; no metadata if it has none."""
    texts = [str(warning) for warning in result.warnings]
    return {"warnings": "\n".join(texts)} if texts else {}


def attributes(result: LoadResult) -> dict[str, str]:
    """Return how a load changes the attributes, as text; no metadata if it does not."""
    texts = [str(change) for change in result.attribute_changes]
    return {"attribute_changes": "\n".join(texts)} if texts else {}


def columns(result: LoadResult) -> dict[str, Any]:
    """Return the columns of a mirrored dimension after a load, which its definition does not know (S36)."""
    dimension = result.dimension
    return {_COLUMNS: dimension_columns(dimension)} if dimension is not None and dimension.mirror is not None else {}


def examples(result: LoadResult, dimension: Dimension, audit: AuditResult | None = None) -> dict[str, Any]:
    """Return some changed rows as a table, and a plot of the versions that each delivery opened and closed.

    A table without windows, such as that of a fact, has no versions to plot (S33).
    """
    metadata: dict[str, Any] = {}
    if result.examples:
        metadata["examples"] = dg.MetadataValue.table([_example_record(row, dimension) for row in result.examples])
    accepted = [batch for batch in result.results if batch.outcome == "accepted"][-_MAX_ITEMS:]
    if accepted and dimension.has_windows:
        bars = [
            (label, *_version_counts(batch, audit))
            for label, batch in zip(_delivery_labels(accepted), accepted, strict=True)
        ]
        plot = plots.versions_per_delivery(dimension.name, bars)
        markdown = plots.as_markdown(plot, "versions opened and closed per delivery")
        metadata["versions_per_delivery"] = dg.MetadataValue.md(markdown)
    return metadata


def _delivery_labels(batches: Sequence[BatchResult]) -> list[str]:
    """Return the names of deliveries, with source and channel if two of them have the same name."""
    names = Counter(batch.delivery for batch in batches)
    return [b.delivery if names[b.delivery] == 1 else ".".join(b.delivery_key) for b in batches]


def _version_counts(batch: BatchResult, audit: AuditResult | None) -> tuple[int, int]:
    if audit is None:
        return batch.versions_opened, batch.versions_closed
    counts = audit.delivery_counts(batch)
    return counts.opened, counts.closed


def _example_record(row: Mapping[str, str | None], dimension: Dimension) -> dg.TableRecord:
    """Return a row as a record: row action, business key, window (if the table has windows) and attributes."""
    names = summary_columns(list(row), dimension)
    own = {ACTION, *_PLOTTED_COLUMNS, *dimension.key_names}
    keys = [name for name in names if name in dimension.key_names or name == VERSION]
    start, end = _value_text(row.get(EFFECTIVE_FROM)), _value_text(row.get(EFFECTIVE_TO))
    window = {"window": f"{start} to {end}"} if dimension.has_windows else {}
    return dg.TableRecord(
        {
            "action": row[ACTION] or "",
            "row": _values_text(row, keys),
            **window,
            "values": _values_text(row, [name for name in names if name not in own]),
        }
    )


def _values_text(row: Mapping[str, str | None], names: Sequence[str]) -> str:
    return ", ".join(f"{name}: {_value_text(row[name])}" for name in names)


def _value_text(value: str | None) -> str:
    return "NULL" if value is None else value


# -- the history of one entity


def entity_history(warehouse: Warehouse, dimension: Dimension, result: LoadResult) -> dict[str, Any]:
    """Return a plot of the history of one entity that the load changed: of the examples, the one with most versions."""
    if not (result.examples and dimension.has_windows):
        return {}
    example = max(result.examples, key=lambda row: int(row[VERSION] or 0))
    history = queries.history(warehouse, dimension)
    is_entity = reduce(and_, [_has_text(history, name, example[name]) for name in dimension.key_names])
    plotted = [a.name for a in dimension.attributes if a.opens_versions and not a.personal]
    texts = [text_column(history, name).alias(name) for name in plotted]
    window = [col(dimension.column_layout.required_name(name)).alias(name) for name in _PLOTTED_COLUMNS]
    rows = history.where(is_entity).select(*window, *texts).orderBy(VERSION)
    versions = [plotted_version(row, plotted, dimension) for row in rows.toArrow().to_pylist()[-_MAX_ITEMS:]]
    if not versions:
        return {}
    title = f"{dimension.name}: history of {', '.join(f'{name} {example[name]}' for name in dimension.key_names)}"
    has_personal = any(a.opens_versions and a.personal for a in dimension.attributes)
    plot = plots.timeline(title, versions, "Personal attributes are not shown." if has_personal else "")
    return {"history_of_one_entity": dg.MetadataValue.md(plots.as_markdown(plot, title))}


def _has_text(rows: DataFrame, name: str, text: str | None) -> Column:
    """Return whether a column has a value of this text; whole numbers and dates so that files can be skipped."""
    data_type = rows.schema[name].dataType
    if isinstance(data_type, IntegralType | DateType):
        return col(name).eqNullSafe(F.lit(text).cast(data_type))
    return text_column(rows, name).eqNullSafe(F.lit(text))


def plotted_version(row: Mapping[str, Any], names: Sequence[str], dimension: Dimension) -> plots.Version:
    """Return a version for the plot; a window that begins at the declared beginning of history has no start (S29)."""
    start: datetime | None = row[EFFECTIVE_FROM]
    if dimension.begin is not None and start == to_datetime(dimension.earliest_time):
        start = None
    return plots.Version(row[VERSION], start, row[EFFECTIVE_TO], {name: row[name] for name in names})
