"""What the assets' pages say: of the tables before they are loaded, and of each load in numbers, rows and pictures."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import reduce
from operator import and_
from typing import Any

import dagster as dg
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from scd_pipeline import reading
from scd_pipeline.columns import EFFECTIVE_FROM, EFFECTIVE_TO, VERSION
from scd_pipeline.components import descriptions, pictures
from scd_pipeline.declaration import Dimension, Fact
from scd_pipeline.declaration.tables import AUDIT_SUFFIX, LOG_SUFFIX
from scd_pipeline.delta.audit_table import audit_schema
from scd_pipeline.delta.change_log import log_schema
from scd_pipeline.delta.warehouse import Warehouse
from scd_pipeline.expressions import text_column
from scd_pipeline.history.actions import ACTION, CLOSE, OPEN, OVERWRITE, REMOVE
from scd_pipeline.history.timeline import dimension_schema
from scd_pipeline.history.transitions import CHANGE_TYPES, NEW_VALUES, OLD_VALUES, REFUSED
from scd_pipeline.history.transitions import OVERWRITE as OVERWRITTEN
from scd_pipeline.load.audit import AuditResult, versions
from scd_pipeline.load.dimension import BatchResult, LoadResult
from scd_pipeline.operations.texts import telling

_SHOWN_BATCHES = 20
_OUTCOMES = {
    **{name: name for name in ("accepted", "unchanged", "superseded", "missing")},
    "rejected": "rejected",
}
"""The outcome of a delivery in a result, and its name in metadata."""
_READ = {"rows_read": "rows", "rows_quarantined": "bad_rows"}
_VERSIONS = {"versions_opened": "versions_opened", "versions_closed": "versions_closed"}
_ACTIONS = {OPEN: "rows_opened", CLOSE: "rows_closed", OVERWRITE: "rows_overwritten", REMOVE: "rows_removed"}
"""The row actions, and their names in metadata."""
_OF_LOAD = "load/"
"""Prefix of the figures of a whole load; those without it are of the partition's delivery alone."""
FILE = "file"
"""Name of the time and size of the file that a load read, as `landing.mark` returns them."""
ROW_COUNTS = tuple(f"{_OF_LOAD}{name}" for name in _ACTIONS.values())
"""Names of the rows of a table that a load changed, by row action; all of them are 0 where it changed none."""


# -- before anything is loaded


def owners(dimension: Dimension) -> list[str]:
    """The owner, as far as Dagster takes it for one: `team:` and a name, or an address by a narrow pattern."""
    try:
        return list(dg.AssetSpec(dimension.name, owners=[dimension.owner]).owners) if dimension.owner else []
    except dg.DagsterInvalidDefinitionError:
        return []


def declaration(dimension: Dimension) -> dict[str, Any]:
    """Where it is declared: shown, and as a link; and whose it is, where Dagster takes that for no owner."""
    told: dict[str, Any] = {"declaration": dimension.origin or "Python"}
    if dimension.owner and not owners(dimension):
        told["owner"] = dimension.owner
    file, _, line = dimension.origin.rpartition(":")
    if file and line.isdecimal():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", dg.BetaWarning)  # such links are what Dagster itself gives its components
            place = dg.LocalFileCodeReference(file_path=file, line_number=int(line), label="declaration")
            told["dagster/code_references"] = dg.CodeReferencesMetadataValue(code_references=[place])
    return told


_ALL = "Partitions are deliveries; materialize the partition `everything` to load all of them."


def log_description(dimension: Dimension) -> str:
    sources = ", ".join(source.name for source in dimension.sources)
    return (
        f"Change log of {dimension.name}: what each batch asserts about each entity, append-only. All other tables are "
        f"derived from it.\n\nSources: {sources}. {_ALL}"
    )


def audit_description(dimension: Dimension) -> str:
    return (
        f"Audit of {dimension.name}: each transition of an entity with its time, actor, reason and delivery, and when "
        f"it was recorded. The dimension as it was known at any past time is rebuilt from it alone.\n\n{_ALL}"
    )


def table_description(dimension: Dimension) -> str:
    text = dimension.description or f"The dimension {dimension.name}."
    return f"{text}\n\nOne row for each version of a `{', '.join(dimension.key_names)}`. {_ALL}"


def fact_description(fact: Fact) -> str:
    text = fact.description or f"The fact {fact.name}."
    grain = ", ".join(column.name for column in fact.grain)
    return (
        f"{text}\n\nOne row for each `{grain}`, with the surrogate keys of the versions in force at "
        f"`{fact.event_time}`. {_ALL}"
    )


def log_table(dimension: Dimension) -> dict[str, Any]:
    """Of the change log of a dimension or a fact: its columns."""
    columns = [(name, ddl, True) for name, ddl in log_schema(dimension)]
    return _plain_table(dimension, LOG_SUFFIX, columns, descriptions.log_columns(dimension))


def audit_table(dimension: Dimension) -> dict[str, Any]:
    """Of the audit of a dimension: its columns, and where those of attributes come from."""
    log = dimension.name + LOG_SUFFIX
    values = [dg.TableColumnDep(log, attribute.name) for attribute in dimension.attributes]
    deps: dict[str, Sequence[dg.TableColumnDep]] = {n: [dg.TableColumnDep(log, n)] for n in dimension.key_names}
    deps |= {OLD_VALUES: values, NEW_VALUES: values}
    lineage = {"dagster/column_lineage": dg.TableColumnLineage(deps)}
    return {
        **_plain_table(dimension, AUDIT_SUFFIX, audit_schema(dimension), descriptions.audit_columns(dimension)),
        **lineage,
    }


def _plain_table(
    dimension: Dimension, suffix: str, columns: Sequence[tuple[str, str, bool]], texts: Mapping[str, str]
) -> dict[str, Any]:
    return {
        "dagster/table_name": dimension.name + suffix,
        "dagster/column_schema": column_schema(columns, texts),
        **declaration(dimension),
    }


def dimension_table(dimension: Dimension) -> dict[str, Any]:
    """Of the table of a dimension: its columns, and where each comes from."""
    return {
        "dagster/table_name": dimension.name,
        "dagster/column_schema": column_schema(dimension_schema(dimension), descriptions.dimension_columns(dimension)),
        "dagster/column_lineage": _lineage(dimension, dimension.name + LOG_SUFFIX),
        "business_key": ", ".join(dimension.key_names),
        "surrogate_key": dimension.surrogate_key,
        **declaration(dimension),
    }


def fact_table(fact: Fact) -> dict[str, Any]:
    """Of the table of a fact: its columns, and where each comes from."""
    shape = fact.as_dimension()
    lineage = dict(_lineage(shape, fact.name + LOG_SUFFIX).deps_by_column)
    for _, key, role in fact.keyed_roles:
        of = role.dimension
        sources = [dg.TableColumnDep(of.name, column) for column in (of.surrogate_key, *of.key_names, EFFECTIVE_FROM)]
        lineage[key] = sources
    return {
        "dagster/table_name": fact.name,
        "dagster/column_schema": column_schema(dimension_schema(shape), descriptions.fact_columns(fact)),
        "dagster/column_lineage": dg.TableColumnLineage(lineage),
        "grain": ", ".join(column.name for column in fact.grain),
        "event_time": fact.event_time,
        **declaration(shape),
    }


def _lineage(dimension: Dimension, log: str) -> dg.TableColumnLineage:
    deps: dict[str, Sequence[dg.TableColumnDep]] = {n: [dg.TableColumnDep(log, n)] for n in dimension.key_names}
    for attribute in dimension.attributes:
        for column in (attribute.name, *attribute.generated_columns):
            deps[column] = [dg.TableColumnDep(log, attribute.name)]
    return dg.TableColumnLineage(deps)


def column_schema(columns: Sequence[tuple[str, str, bool]], texts: Mapping[str, str]) -> dg.TableSchema:
    """Return columns (name, type, nullable) with their descriptions."""
    return dg.TableSchema(
        [
            dg.TableColumn(name, ddl, texts.get(name), dg.TableColumnConstraints(nullable=nullable))
            for name, ddl, nullable in columns
        ]
    )


# -- of each load


Figures = dict[str, dict[str, Any]]
"""Metadata by the suffix of a table."""


def of_delivery(batch: BatchResult, audit: AuditResult | None = None, *, entities: str = "entities") -> Figures:
    """Return the effect of one delivery: on the change log, the table and its audit.

    Args:
        entities: What a row of the table identifies, for the names of the counts.
    """
    outcome = {"outcome": _OUTCOMES[batch.outcome]}
    figures: Figures = {LOG_SUFFIX: {**outcome, **_counts([batch], entities)}}
    if audit is None:
        return {**figures, "": {**outcome, **_counts([batch], entities)}}
    transitions = audit.of_batch(batch)
    figures[AUDIT_SUFFIX] = _transitions(transitions)
    return {**figures, "": {**outcome, **_effect(transitions)}}


def _transitions(counts: Counter[str]) -> dict[str, int]:
    return {"transitions": sum(counts.values()), **{f"transitions_{t.lower()}": counts[t] for t in CHANGE_TYPES}}


def _effect(transitions: Counter[str]) -> dict[str, int]:
    """Return the effect on the table by its audit; with several sources, a batch knows only that of its own."""
    opened, closed = versions(transitions)
    overwrites, refusals = transitions[OVERWRITTEN], transitions[REFUSED]
    return {"versions_opened": opened, "versions_closed": closed, "overwrites": overwrites, "refusals": refusals}


def _counts(batches: Sequence[BatchResult], entities: str) -> dict[str, int]:
    changes = {f"{entities}_new": "new", f"{entities}_changed": "changed", f"{entities}_deleted": "closed"}
    names = {**_READ, **changes, **(_VERSIONS if entities == "entities" else {})}
    return {name: sum(getattr(batch, field) for batch in batches) for name, field in names.items()}


def of_load(figures: Mapping[str, Any]) -> dict[str, Any]:
    """Return figures of a whole load under names that distinguish them from those of one delivery."""
    return {f"{_OF_LOAD}{name}": value for name, value in figures.items()}


def of_log(result: LoadResult, *, entities: str = "entities") -> dict[str, Any]:
    """Return deliveries by outcome, and the rows read, quarantined, new, changed and deleted of the accepted ones."""
    outcomes = [batch.outcome for batch in result.batches]
    accepted = [batch for batch in result.batches if batch.outcome == "accepted"]
    counts = {f"deliveries_{name}": outcomes.count(outcome) for outcome, name in _OUTCOMES.items()}
    return {**counts, **_counts(accepted, entities), "seconds": round(result.seconds, 1)}


def last_deliveries(result: LoadResult) -> dict[str, Any]:
    """Return the last deliveries of a load that had an effect or were rejected, as a table."""
    shown = [batch for batch in result.batches if batch.outcome != "unchanged"][-_SHOWN_BATCHES:]
    return {"last_deliveries": dg.MetadataValue.table([_record(batch) for batch in shown])} if shown else {}


def sizes(opened: Warehouse, versions: Mapping[str, int]) -> dict[str, dict[str, int]]:
    """Return the number of rows and Delta's version of each table, by its name; one query counts all rows.

    Args:
        versions: The versions by the tables' names; a table that does not exist has a negative one.
    """
    existing = {name: version for name, version in versions.items() if version >= 0}
    if not existing:
        return {name: {} for name in versions}
    counted = [opened.table(name).read().agg(F.lit(name).alias("name"), F.count("*").alias("n")) for name in existing]
    rows = {row["name"]: int(row["n"]) for row in reduce(DataFrame.unionAll, counted).collect()}
    found = {name: {"dagster/row_count": rows[name], "delta_version": at} for name, at in existing.items()}
    return {name: found.get(name, {}) for name in versions}


def _record(batch: BatchResult) -> dg.TableRecord:
    names = {**_READ, "new": "new", "changed": "changed", "deleted": "closed", "rule": "rule"}
    figures = {name: getattr(batch, field) for name, field in names.items()}
    return dg.TableRecord(
        {"source": batch.source, "delivery": batch.delivery, "outcome": _OUTCOMES[batch.outcome], **figures}
    )


def of_table(result: LoadResult, audit: AuditResult | None = None) -> dict[str, Any]:
    """Return the rows of the table that a load changed, by row action, and the effect by its audit."""
    figures: dict[str, Any] = {name: result.rows.get(action, 0) for action, name in _ACTIONS.items()}
    return {**figures, **(_effect(audit.rows) if audit else {}), "seconds": round(result.seconds, 1)}


def examples(result: LoadResult, dimension: Dimension, audit: AuditResult | None = None) -> dict[str, Any]:
    """Return some changed rows as a table, and a plot of the versions that each delivery opened and closed.

    A table without windows, as that of a fact, has no versions to plot (S33).
    """
    accepted = [batch for batch in result.batches if batch.outcome == "accepted"]
    told: dict[str, Any] = {}
    if result.examples:
        told["examples"] = dg.MetadataValue.table([_example(row, dimension) for row in result.examples])
    shown = accepted[-_SHOWN_BATCHES:]
    bars = [(label, *_versions(batch, audit)) for label, batch in zip(_labels(shown), shown, strict=True)]
    if bars and dimension.has_windows:
        plot = pictures.versions_per_delivery(dimension.name, bars)
        told["versions_per_delivery"] = dg.MetadataValue.md(
            pictures.as_markdown(plot, "versions opened and closed per delivery")
        )
    return told


def _labels(batches: Sequence[BatchResult]) -> list[str]:
    """The names of deliveries, with source and channel where two of them have one name."""
    names = Counter(batch.delivery for batch in batches)
    return [b.delivery if names[b.delivery] == 1 else ".".join(b.batch_id.split("/")[:3]) for b in batches]


def _versions(batch: BatchResult, audit: AuditResult | None) -> tuple[int, int]:
    return versions(audit.of_batch(batch)) if audit else (batch.versions_opened, batch.versions_closed)


def _example(row: Mapping[str, str | None], dimension: Dimension) -> dg.TableRecord:
    names = telling(list(row), dimension)
    return dg.TableRecord({("action" if name == ACTION else name): row[name] or "" for name in names})


def of_audit(result: AuditResult, seconds: float) -> dict[str, Any]:
    """Return the transitions that a load recorded, by kind; the seconds are those of the whole load."""
    return {**_transitions(result.rows), "seconds": round(seconds, 1)}


def member(opened: Warehouse, dimension: Dimension, result: LoadResult) -> dict[str, Any]:
    """The timeline of one entity that the load changed, as a picture: of the examples the one with most versions."""
    if not (result.examples and dimension.has_windows):
        return {}
    example = max(result.examples, key=lambda row: int(row[VERSION] or 0))
    history = reading.history(opened, dimension)
    same = [text_column(history, name).eqNullSafe(F.lit(example[name])) for name in dimension.key_names]
    shown = [a.name for a in dimension.attributes if a.opens_versions and not a.personal]
    texts = [text_column(history, name).alias(name) for name in shown]
    rows = history.where(reduce(and_, same)).orderBy(VERSION).select(VERSION, EFFECTIVE_FROM, EFFECTIVE_TO, *texts)
    versions = [_plotted(row, shown, dimension) for row in rows.toArrow().to_pylist()[-_SHOWN_BATCHES:]]
    if not versions:
        return {}
    title = f"{dimension.name}: history of {', '.join(f'{name} {example[name]}' for name in dimension.key_names)}"
    has_personal = any(a.opens_versions and a.personal for a in dimension.attributes)
    plot = pictures.timeline(title, versions, "Personal attributes are not shown." if has_personal else "")
    return {"history_of_one_entity": dg.MetadataValue.md(pictures.as_markdown(plot, title))}


def _plotted(row: Mapping[str, Any], names: Sequence[str], dimension: Dimension) -> pictures.Version:
    """Return a version for the plot; one that begins at the declared beginning of history has no known one (S29)."""
    start: datetime | None = row[EFFECTIVE_FROM]
    if dimension.begin is not None and start == dimension.begin.at_time:
        start = None
    return pictures.Version(row[VERSION], start, row[EFFECTIVE_TO], {name: row[name] for name in names})
