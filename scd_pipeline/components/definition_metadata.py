"""Descriptions and metadata of the asset definitions: columns, lineage, owner and declaration."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import dagster as dg

from scd_pipeline.columns import EFFECTIVE_FROM
from scd_pipeline.components import column_descriptions
from scd_pipeline.declaration import Dimension, Fact, TimedTable
from scd_pipeline.declaration.tables import AUDIT_SUFFIX, LOG_SUFFIX
from scd_pipeline.delta.audit_table import audit_schema
from scd_pipeline.delta.change_log import log_schema
from scd_pipeline.history.schema import dimension_schema, stored_schema
from scd_pipeline.history.transitions import NEW_VALUES, OLD_VALUES

_PARTITIONS = "Each partition is one delivery; materialize the partition `everything` to load all deliveries."


# -- descriptions


def log_description(dimension: Dimension) -> str:
    """Return the description of a change log."""
    sources = ", ".join(source.name for source in dimension.sources)
    return (
        f"Change log of {dimension.name}: one row for each change record, and one for each batch and each bad row. It "
        f"is append-only; all other tables are derived from it.\n\nSources: {sources}. {_PARTITIONS}"
    )


def table_description(dimension: Dimension) -> str:
    """Return the description of a dimension or a landing table: the declared text, its grain and its partitions."""
    if dimension.landing is not None:
        text = dimension.description or f"The landing table {dimension.name}."
        return f"{text}\n\nThe rows that its deliveries leave, without history. {_PARTITIONS}"
    text = dimension.description or f"The dimension {dimension.name}."
    return f"{text}\n\nOne row for each version of a `{', '.join(dimension.key_names)}`. {_PARTITIONS}"


def audit_description(dimension: Dimension) -> str:
    """Return the description of an audit."""
    return (
        f"Audit of {dimension.name}: one row for each transition of an entity, with its business time, actor, reason "
        f"and delivery, and the system time of its commit. It is append-only; the dimension as known at any past time "
        f"can be rebuilt from it.\n\n{_PARTITIONS}"
    )


def fact_description(fact: Fact) -> str:
    """Return the description of a fact: the declared text, its grain and its partitions."""
    text = fact.description or f"The fact {fact.name}."
    grain = ", ".join(column.name for column in fact.grain)
    return (
        f"{text}\n\nOne row for each `{grain}`, with the surrogate keys of the versions in force at "
        f"`{fact.event_time}`. {_PARTITIONS}"
    )


def timed_table_description(table: TimedTable) -> str:
    """Return the description of the stored rows of a timed table."""
    text = table.description or f"The timed table {table.name}."
    log = table.log_table if table.log == "table" else table.updates or "`.updates` beside the base"
    return (
        f"{text}\n\nThe rows of {table.name} at the time of the last run, as the Delta table `{table.present_table}`: "
        f"its base `{table.base.path}` after the statements of its log ({log}). The run configuration can append a "
        "statement to the log."
    )


# -- metadata


def owners(dimension: Dimension | TimedTable) -> list[str]:
    """Return the declared owner if Dagster accepts it: `team:` and a name, or an email address."""
    try:
        return list(dg.AssetSpec(dimension.name, owners=[dimension.owner]).owners) if dimension.owner else []
    except dg.DagsterInvalidDefinitionError:
        return []


def declaration(dimension: Dimension | TimedTable) -> dict[str, Any]:
    """Return the file and line of the declaration, as text and as a link, and an owner that Dagster does not accept."""
    metadata: dict[str, Any] = {"declaration": dimension.origin or "Python"}
    if dimension.owner and not owners(dimension):
        metadata["owner"] = dimension.owner
    file, _, line = dimension.origin.rpartition(":")
    if file and line.isdecimal():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", dg.BetaWarning)  # Dagster itself adds such links to its components
            reference = dg.LocalFileCodeReference(file_path=file, line_number=int(line), label="declaration")
            links = dg.CodeReferencesMetadataValue(code_references=[reference])
        metadata["dagster/code_references"] = links
    return metadata


def timed_table(table: TimedTable) -> dict[str, Any]:
    """Return the metadata of the stored rows of a timed table."""
    columns = [(name, data_type.ddl(), True) for name, data_type in table.base.types.items()]
    return {
        "dagster/table_name": table.present_table,
        **({"dagster/column_schema": column_schema(columns, {})} if columns else {}),
        **declaration(table),
    }


def log_table(dimension: Dimension) -> dict[str, Any]:
    """Return the metadata of the change log of a dimension or a fact."""
    columns = [(name, ddl, True) for name, ddl in log_schema(dimension)]
    return {
        "dagster/table_name": dimension.name + LOG_SUFFIX,
        "dagster/column_schema": column_schema(columns, column_descriptions.log_columns(dimension)),
        **declaration(dimension),
    }


def audit_table(dimension: Dimension) -> dict[str, Any]:
    """Return the metadata of the audit of a dimension."""
    log = dimension.name + LOG_SUFFIX
    values = [dg.TableColumnDep(log, attribute.name) for attribute in dimension.attributes]
    lineage: dict[str, Sequence[dg.TableColumnDep]] = {n: [dg.TableColumnDep(log, n)] for n in dimension.key_names}
    lineage |= {OLD_VALUES: values, NEW_VALUES: values}
    columns = audit_schema(dimension)
    return {
        "dagster/table_name": dimension.name + AUDIT_SUFFIX,
        "dagster/column_schema": column_schema(columns, column_descriptions.audit_columns(dimension)),
        "dagster/column_lineage": dg.TableColumnLineage(lineage),
        **declaration(dimension),
    }


def dimension_table(dimension: Dimension) -> dict[str, Any]:
    """Return the metadata of the table of a dimension."""
    return {
        "dagster/table_name": dimension.name,
        "dagster/column_schema": dimension_columns(dimension),
        "dagster/column_lineage": _lineage(dimension, dimension.name + LOG_SUFFIX),
        "business_key": ", ".join(dimension.key_names),
        "surrogate_key": dimension.surrogate_key,
        **({"child_tables": ", ".join(dimension.child_names)} if dimension.child_names else {}),
        **({"product_card": dg.MetadataValue.url(dimension.product_card)} if dimension.product_card else {}),
        **declaration(dimension),
        **_warnings(dimension),
    }


def dimension_columns(dimension: Dimension) -> dg.TableSchema:
    """Return the columns of the table of a dimension; those of retired attributes say so."""
    return column_schema(stored_schema(dimension), column_descriptions.dimension_columns(dimension))


def _warnings(dimension: Dimension) -> dict[str, str]:
    """Return the warnings of the declaration as text; no metadata if it has none."""
    texts = [str(warning) for warning in dimension.warnings]
    return {"declaration_warnings": "\n".join(texts)} if texts else {}


def fact_table(fact: Fact) -> dict[str, Any]:
    """Return the metadata of the table of a fact."""
    row_dimension = fact.as_dimension()
    lineage = dict(_lineage(row_dimension, fact.name + LOG_SUFFIX).deps_by_column)
    for _, key, role in fact.keyed_roles:
        start = role.dimension.column_layout.required_name(EFFECTIVE_FROM)
        columns = (role.dimension.surrogate_key, *role.dimension.key_names, start)
        lineage[key] = [dg.TableColumnDep(role.dimension.name, column) for column in columns]
    return {
        "dagster/table_name": fact.name,
        "dagster/column_schema": column_schema(dimension_schema(row_dimension), column_descriptions.fact_columns(fact)),
        "dagster/column_lineage": dg.TableColumnLineage(lineage),
        "grain": ", ".join(column.name for column in fact.grain),
        "event_time": fact.event_time,
        **declaration(row_dimension),
    }


def _lineage(dimension: Dimension, log: str) -> dg.TableColumnLineage:
    """Return the columns of the change log from which business key and attributes are derived."""
    lineage: dict[str, Sequence[dg.TableColumnDep]] = {n: [dg.TableColumnDep(log, n)] for n in dimension.key_names}
    for attribute in dimension.attributes:
        for column in (attribute.name, *attribute.generated_columns):
            lineage[column] = [dg.TableColumnDep(log, attribute.name)]
    return dg.TableColumnLineage(lineage)


def column_schema(columns: Sequence[tuple[str, str, bool]], descriptions: Mapping[str, str]) -> dg.TableSchema:
    """Return columns (name, type, nullable) with their descriptions as a table schema."""
    return dg.TableSchema(
        [
            dg.TableColumn(name, ddl, descriptions.get(name), dg.TableColumnConstraints(nullable=nullable))
            for name, ddl, nullable in columns
        ]
    )
