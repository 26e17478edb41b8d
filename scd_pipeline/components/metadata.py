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
from pyspark.sql import functions as F

from scd_pipeline import reading
from scd_pipeline.columns import EFFECTIVE_FROM, EFFECTIVE_TO, VERSION, text_of
from scd_pipeline.components import pictures
from scd_pipeline.delta.audit_table import AUDIT_SUFFIX, audit_schema
from scd_pipeline.delta.change_log import log_schema
from scd_pipeline.history.actions import ACTION, CLOSE, OPEN, OVERWRITE, REMOVE
from scd_pipeline.history.timeline import dimension_schema
from scd_pipeline.history.transitions import CHANGE_TYPES, NEW_VALUES, OLD_VALUES, REFUSED
from scd_pipeline.load import BatchResult, LoadResult
from scd_pipeline.reading import LOG_SUFFIX
from scd_pipeline.record import AuditResult, versions
from scd_pipeline.spec import Attribute, Dimension, Fact, ScdType
from scd_pipeline.texts import telling
from scd_pipeline.warehouse import Warehouse

_SHOWN_BATCHES = 20
_TYPES = {
    ScdType.RETAIN_ORIGINAL: "type 0: the first value stays",
    ScdType.OVERWRITE: "type 1: the latest value, in every version",
    ScdType.ADD_ROW: "type 2: a different value opens a version",
    ScdType.ADD_ATTRIBUTE: "type 3: the latest value, and the one before it",
    ScdType.HYBRID: "type 6: a different value opens a version, and every version has the latest",
}
_OUTCOMES = ("accepted", "unchanged", "superseded", "stopped")
_COUNTS = {
    "rows_read": "rows",
    "rows_quarantined": "bad_rows",
    "rows_new": "new",
    "rows_changed": "changed",
    "rows_closed": "closed",
    "versions_opened": "versions_opened",
    "versions_closed": "versions_closed",
}
"""What is told of a batch, and the name that it has in its result."""
_ACTIONS = {
    OPEN: "table_rows_opened",
    CLOSE: "table_rows_closed",
    OVERWRITE: "table_rows_overwritten",
    REMOVE: "table_rows_removed",
}
ROWS_TOLD = tuple(_ACTIONS.values())
"""What a materialization of a table tells of its rows; all of them are 0 where the load changed none."""


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


def log_description(dimension: Dimension) -> str:
    sources = ", ".join(source.name for source in dimension.sources)
    return (
        f"What was stated of {dimension.name}, and by which batches: the canonical source, append-only. "
        f"Sources: {sources}."
    )


def audit_description(dimension: Dimension) -> str:
    return (
        f"What happened to whom in {dimension.name}, when, by whom and why, and since when that is known. From it "
        f"alone the dimension is rebuilt as it was known at any past moment."
    )


def table_description(dimension: Dimension) -> str:
    text = dimension.description or f"The dimension {dimension.name}."
    return f"{text}\n\nOne row for each version of a `{', '.join(dimension.key_names)}`."


def fact_description(fact: Fact) -> str:
    text = fact.description or f"The fact {fact.name}."
    grain = ", ".join(column.name for column in fact.grain)
    return f"{text}\n\nOne row for each `{grain}`, with the keys of the versions that held at `{fact.event_time}`."


def log_table(dimension: Dimension) -> dict[str, Any]:
    """Of the change log of a dimension or a fact: its columns."""
    return _plain_table(dimension, LOG_SUFFIX, log_schema(dimension))


def audit_table(dimension: Dimension) -> dict[str, Any]:
    """Of the audit of a dimension: its columns, and where those of attributes come from."""
    log = dimension.name + LOG_SUFFIX
    values = [dg.TableColumnDep(log, attribute.name) for attribute in dimension.attributes]
    deps: dict[str, Sequence[dg.TableColumnDep]] = {n: [dg.TableColumnDep(log, n)] for n in dimension.key_names}
    deps |= {OLD_VALUES: values, NEW_VALUES: values}
    columns = [(name, ddl) for name, ddl, _ in audit_schema(dimension)]
    lineage = {"dagster/column_lineage": dg.TableColumnLineage(deps)}
    return {**_plain_table(dimension, AUDIT_SUFFIX, columns), **lineage}


def _plain_table(dimension: Dimension, suffix: str, columns: Sequence[tuple[str, str]]) -> dict[str, Any]:
    schema = dg.TableSchema([dg.TableColumn(name, ddl) for name, ddl in columns])
    return {
        "dagster/table_name": dimension.name + suffix,
        "dagster/column_schema": schema,
        **declaration(dimension),
    }


def dimension_table(dimension: Dimension) -> dict[str, Any]:
    """Of the table of a dimension: its columns, and where each comes from."""
    return {
        "dagster/table_name": dimension.name,
        "dagster/column_schema": column_schema(dimension, _dimension_texts(dimension)),
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
        "dagster/column_schema": column_schema(shape, _fact_texts(fact)),
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


def column_schema(dimension: Dimension, told: Mapping[str, str]) -> dg.TableSchema:
    """The table's columns, with what is told of them, for the asset's page."""
    columns = [
        dg.TableColumn(name, ddl, description=told.get(name), constraints=dg.TableColumnConstraints(nullable=nullable))
        for name, ddl, nullable in dimension_schema(dimension)
    ]
    return dg.TableSchema(columns)


def _dimension_texts(dimension: Dimension) -> dict[str, str]:
    """What each column of a dimension is, and what the type of an attribute does."""
    told = {attribute.name: _describe(attribute) for attribute in dimension.attributes}
    told |= {key.name: "business key" for key in dimension.business_key}
    told[dimension.surrogate_key] = "surrogate key: names one version for ever; what facts store"
    return told


def _fact_texts(fact: Fact) -> dict[str, str]:
    """What each column of a fact is; one may be several things, as an event time that is of the grain."""
    told: dict[str, list[str]] = {}
    for column in fact.grain:
        told.setdefault(column.name, []).append("grain: identifies a row")
    told.setdefault(fact.event_time, []).append("event time: when it happened")
    for role_name, key, role in fact.keyed_roles:
        of = role.dimension.name
        told.setdefault(key, []).append(f"key of the version of {of} that held at `{fact.event_time}`")
        for name in role.key:
            told.setdefault(name, []).append(f"business key of {of}, as {role_name}")
    for name, _ in fact.measures:
        told.setdefault(name, []).append("measure")
    told[fact.row_key] = ["row key: names one row for ever"]
    return {name: "; ".join(texts) for name, texts in told.items()}


def _describe(attribute: Attribute) -> str:
    return ". ".join(part for part in (attribute.description, _TYPES[attribute.scd]) if part)


# -- of each load


def of_delivery(batch: BatchResult, audit: AuditResult | None = None) -> dict[str, dict[str, Any]]:
    """What is told of one delivery alone, by the asset's suffix: for the change log, the table, and its audit."""
    outcomes = {f"batches_{name}": int(batch.outcome == name) for name in _OUTCOMES}
    told = {LOG_SUFFIX: {**_sums([batch]), **outcomes}, "": _sums([batch])}
    if audit is not None:
        rows = audit.of_batch(batch)
        told[AUDIT_SUFFIX] = _recorded(rows)
        told[""] |= _done(rows)
    return told


def _recorded(rows: Counter[str]) -> dict[str, int]:
    return {"rows_recorded": sum(rows.values()), **{f"rows_{kind.lower()}": rows[kind] for kind in CHANGE_TYPES}}


def _done(rows: Counter[str]) -> dict[str, int]:
    """What audit rows tell of the table itself; where there are several sources, a batch knows of its own only."""
    opened, closed = versions(rows)
    return {"versions_opened": opened, "versions_closed": closed, "rows_refused": rows[REFUSED]}


def _sums(batches: Sequence[BatchResult]) -> dict[str, int]:
    return {told: sum(getattr(batch, name) for batch in batches) for told, name in _COUNTS.items()}


def of_log(result: LoadResult) -> dict[str, Any]:
    """Batches by outcome, rows read, new, changed, closed and put aside; the last batches as a table."""
    outcomes = [batch.outcome for batch in result.batches]
    accepted = [batch for batch in result.batches if batch.outcome == "accepted"]
    counts = {f"batches_{name}": outcomes.count(name) for name in _OUTCOMES}
    shown = [batch for batch in result.batches if batch.outcome != "unchanged"][-_SHOWN_BATCHES:]
    told: dict[str, Any] = {**counts, **_sums(accepted)}
    told |= {"delta_version": result.log_version, "seconds": round(result.seconds, 1)}
    if shown:
        told["last_batches"] = dg.MetadataValue.table([_record(batch) for batch in shown])
    return told


def _record(batch: BatchResult) -> dg.TableRecord:
    names = ("source", "delivery", "outcome", "rows", "bad_rows", "new", "changed", "closed", "rule")
    return dg.TableRecord({name: getattr(batch, name) for name in names})


def of_table(result: LoadResult, dimension: Dimension, audit: AuditResult | None = None) -> dict[str, Any]:
    """The same numbers, rows by action, some of them as examples, and versions per batch as a picture."""
    accepted = [batch for batch in result.batches if batch.outcome == "accepted"]
    told: dict[str, Any] = {name: result.rows.get(action, 0) for action, name in _ACTIONS.items()}
    told |= {**_sums(accepted), **(_done(audit.rows) if audit else {})}
    told |= {"delta_version": result.table_version, "seconds": round(result.seconds, 1)}
    if result.examples:
        told["examples"] = dg.MetadataValue.table([_example(row, dimension) for row in result.examples])
    shown = accepted[-_SHOWN_BATCHES:]
    bars = [(label, *_versions(batch, audit)) for label, batch in zip(_labels(shown), shown, strict=True)]
    if bars:
        plot = pictures.versions_per_delivery(dimension.name, bars)
        told["per_batch"] = dg.MetadataValue.md(pictures.as_markdown(plot, "versions opened and closed per delivery"))
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
    """Audit rows by kind of change; the seconds are those of the whole load."""
    return {**_recorded(result.rows), "delta_version": result.table_version, "seconds": round(seconds, 1)}


def member(opened: Warehouse, dimension: Dimension, result: LoadResult) -> dict[str, Any]:
    """The timeline of one entity that the load changed, as a picture: of the examples the one with most versions."""
    if not (result.examples and dimension.has_windows):
        return {}
    example = max(result.examples, key=lambda row: int(row[VERSION] or 0))
    history = reading.history(opened, dimension)
    same = [text_of(history, name).eqNullSafe(F.lit(example[name])) for name in dimension.key_names]
    shown = [a.name for a in dimension.attributes if a.opens_versions and not a.personal]
    texts = [text_of(history, name).alias(name) for name in shown]
    rows = history.where(reduce(and_, same)).orderBy(VERSION).select(VERSION, EFFECTIVE_FROM, EFFECTIVE_TO, *texts)
    versions = [_plotted(row, shown, dimension) for row in rows.toArrow().to_pylist()[-_SHOWN_BATCHES:]]
    if not versions:
        return {}
    title = f"{dimension.name}: history of {', '.join(f'{name} {example[name]}' for name in dimension.key_names)}"
    has_personal = any(a.opens_versions and a.personal for a in dimension.attributes)
    plot = pictures.timeline(title, versions, "Personal attributes are not shown." if has_personal else "")
    return {"one_member": dg.MetadataValue.md(pictures.as_markdown(plot, title))}


def _plotted(row: Mapping[str, Any], names: Sequence[str], dimension: Dimension) -> pictures.Version:
    """Return a version for the plot; one that begins at the declared beginning of history has no known one (S29)."""
    start: datetime | None = row[EFFECTIVE_FROM]
    if dimension.begin is not None and start == dimension.begin.at_time:
        start = None
    return pictures.Version(row[VERSION], start, row[EFFECTIVE_TO], {name: row[name] for name in names})
