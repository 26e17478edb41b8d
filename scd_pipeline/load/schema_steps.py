"""The schema steps of a load: tables to create, columns to rename and to add."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from scd_pipeline.declaration import Dimension
from scd_pipeline.declaration.tables import HISTORY_SUFFIX
from scd_pipeline.delta.change_log import ChangeLog, log_properties, log_schema
from scd_pipeline.delta.history_table import history_properties
from scd_pipeline.delta.schema import (
    FORMAT,
    AddColumn,
    CreateTable,
    RenameColumn,
    SchemaStep,
    column_steps,
    declaration_properties,
    renamed_columns,
)
from scd_pipeline.delta.warehouse import Warehouse
from scd_pipeline.history.schema import stored_schema


def schema_steps(
    dimension: Dimension, log: ChangeLog, existing: Collection[str], history: Collection[str] = ()
) -> list[SchemaStep]:
    """Return the steps that the log and the dimension need before they can store rows of this declaration (S20).

    The table of the current versions is altered before that of the closed ones, as their readers expect.

    Args:
        dimension: The declaration.
        log: Its change log.
        existing: The columns of the dimension's table; none if the table does not exist.
        history: The columns of its history table; none if the table does not exist.
    """
    return [
        *_log_steps(dimension, log),
        *_dimension_steps(dimension, existing),
        *_history_steps(dimension, history),
    ]


def _log_steps(dimension: Dimension, log: ChangeLog) -> list[SchemaStep]:
    name, columns = log.table.name, log_schema(dimension)
    if log.columns:
        return column_steps(name, log.columns, columns, renamed_columns(dimension.attributes, generated=False))
    nullable = tuple((column, ddl, True) for column, ddl in columns)
    description = f"The change records of {dimension.name}, and the batches that they came with"
    return [CreateTable(name, nullable, {FORMAT: "1", **log_properties(dimension)}, description)]


def _dimension_steps(dimension: Dimension, existing: Collection[str]) -> list[SchemaStep]:
    return _version_steps(dimension, dimension.name, existing, declaration_properties(dimension), dimension.description)


def _history_steps(dimension: Dimension, existing: Collection[str]) -> list[SchemaStep]:
    if not dimension.history_table:
        return []
    properties, description = history_properties(dimension), f"The closed versions of {dimension.name}"
    return _version_steps(dimension, dimension.name + HISTORY_SUFFIX, existing, properties, description)


def _version_steps(
    dimension: Dimension, table: str, existing: Collection[str], properties: Mapping[str, str], description: str
) -> list[SchemaStep]:
    """Return the steps of a table that stores versions."""
    columns = stored_schema(dimension)
    if not existing:
        return [CreateTable(table, tuple(columns), properties, description)]
    expected = [(name, ddl) for name, ddl, _ in columns]
    return column_steps(table, existing, expected, renamed_columns(dimension.attributes, generated=True))


def execute(step: SchemaStep, warehouse: Warehouse) -> None:
    """Execute a schema step.

    Raises:
        ConflictError: Another writer committed first, maybe the same step; a new plan then omits it.
    """
    table = warehouse.writable(step.table)
    match step:
        case CreateTable():
            table.create(step.columns, step.properties, step.description)
        case AddColumn():
            table.add_columns([(step.name, step.type)])
        case RenameColumn():
            table.rename_column(step.old, step.new)
