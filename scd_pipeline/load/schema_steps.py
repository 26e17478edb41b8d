"""The schema steps of a load: tables to create, columns to rename and to add."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from types import MappingProxyType

from scd_pipeline.declaration import Dimension
from scd_pipeline.delta.change_log import ChangeLog, log_properties, log_schema
from scd_pipeline.delta.history_table import history_properties, history_statistics, set_history_properties
from scd_pipeline.delta.schema import (
    FORMAT,
    AddColumn,
    AddConstraint,
    CommentColumn,
    CreateTable,
    RenameColumn,
    SchemaStep,
    SetProperties,
    WidenColumn,
    column_steps,
    declaration_properties,
    has_properties,
    key_constraint,
    lacks_properties,
    missing_constraint,
    renamed_columns,
    retirement_times,
    statistics_properties,
)
from scd_pipeline.delta.stored_declaration import StoredDeclaration
from scd_pipeline.delta.warehouse import Warehouse
from scd_pipeline.errors import ConflictError
from scd_pipeline.history.schema import stored_schema


def schema_steps(
    dimension: Dimension,
    log: ChangeLog,
    existing: Mapping[str, str],
    history: Mapping[str, str] = MappingProxyType({}),
    properties: Mapping[str, str] | None = None,
) -> list[SchemaStep]:
    """Return the steps that the log and the dimension need before they can store rows of this declaration (S20).

    The table of the current versions is altered before that of the closed ones, as their readers expect.

    Args:
        dimension: The declaration.
        log: Its change log.
        existing: The types of the columns of the dimension's table by name; none if the table does not exist.
        history: The types of the columns of its history table or archive; none if the table does not exist.
        properties: The properties of the dimension's table; without them, only columns are adapted.
    """
    return [
        *_log_steps(dimension, log),
        *_dimension_steps(dimension, existing),
        *_history_steps(dimension, history),
        *_comment_steps(dimension, existing, history, properties or {}),
        *(_steps_of_older_tables(dimension, history, properties) if properties else ()),
    ]


def _log_steps(dimension: Dimension, log: ChangeLog) -> list[SchemaStep]:
    name, columns = log.table.name, log_schema(dimension)
    properties = {FORMAT: "1", **log_properties(dimension)}
    if log.columns:
        steps = column_steps(name, log.columns, columns, renamed_columns(dimension.attributes, generated=False))
        is_incomplete = lacks_properties(log.table, log.commit, properties)
        return [*steps, SetProperties(name, properties)] if is_incomplete else steps
    nullable = tuple((column, ddl, True) for column, ddl in columns)
    description = f"The change records of {dimension.name}, and the batches that they came with"
    return [CreateTable(name, nullable, properties, description)]


def _steps_of_older_tables(
    dimension: Dimension, history: Collection[str], properties: Mapping[str, str]
) -> list[SchemaStep]:
    """Return the steps that give existing tables the constraint and the statistics that new tables have.

    The dimension's table is altered last, so that its properties show that both tables have them.
    """
    steps: list[SchemaStep] = []
    tables = [dimension.name + dimension.closed_suffix, dimension.name] if history else [dimension.name]
    for table in tables:
        steps += missing_constraint(table, dimension, properties)
    if not has_properties(properties, _statistics(dimension)):
        steps += [SetProperties(name, history_statistics(dimension)) for name in tables[:-1]]
        steps.append(SetProperties(dimension.name, _statistics(dimension)))
    return steps


def _statistics(dimension: Dimension) -> dict[str, str]:
    return statistics_properties(dimension, dimension.table_properties)


def _dimension_steps(dimension: Dimension, existing: Mapping[str, str]) -> list[SchemaStep]:
    properties = {**declaration_properties(dimension), **_statistics(dimension)}
    return _version_steps(dimension, dimension.name, existing, properties, dimension.description)


def _history_steps(dimension: Dimension, existing: Mapping[str, str]) -> list[SchemaStep]:
    if dimension.history_table:
        return _closed_table_steps(dimension, existing, f"The closed versions of {dimension.name}")
    return archive_steps(dimension, existing) if existing else []


def archive_steps(dimension: Dimension, existing: Mapping[str, str]) -> list[SchemaStep]:
    """Return the steps of the archive, which the first archive run creates: it may have no row for years."""
    return _closed_table_steps(dimension, existing, f"The archived versions of {dimension.name}")


def _closed_table_steps(dimension: Dimension, existing: Mapping[str, str], description: str) -> list[SchemaStep]:
    properties = {**history_properties(dimension), **history_statistics(dimension)}
    return _version_steps(dimension, dimension.name + dimension.closed_suffix, existing, properties, description)


def _comment_steps(
    dimension: Dimension, existing: Collection[str], history: Collection[str], properties: Mapping[str, str]
) -> list[SchemaStep]:
    """Return the steps that show readers of existing tables which columns are retired, where that has changed."""
    before = retirement_times(dimension, StoredDeclaration.from_properties(properties))
    changed = {a.name: a.retired_at for a in dimension.attributes if a.retired_at != before.get(a.name, "")}
    columns = ((dimension.name, existing), (dimension.name + dimension.closed_suffix, history))
    return [step for table, names in columns if names for step in _comments(table, changed)]


def _comments(table: str, retired_at: Mapping[str, str]) -> list[SchemaStep]:
    """Return the steps that set the comment of each column: since when it is retired, or none if the time is empty."""
    comments = {name: f"Retired at {time}: no longer provided" if time else "" for name, time in retired_at.items()}
    return [CommentColumn(table, name, comment) for name, comment in comments.items()]


def _version_steps(
    dimension: Dimension, table: str, existing: Mapping[str, str], properties: Mapping[str, str], description: str
) -> list[SchemaStep]:
    """Return the steps of a table that stores versions."""
    columns = stored_schema(dimension)
    if not existing:
        retired_at = {a.name: a.retired_at for a in dimension.attributes if a.retired_at}
        create = CreateTable(table, tuple(columns), {**properties, **key_constraint(dimension)}, description)
        return [create, *_comments(table, retired_at)]
    expected = [(name, ddl) for name, ddl, _ in columns]
    return column_steps(table, existing, expected, renamed_columns(dimension.attributes, generated=True))


def execute_steps(
    warehouse: Warehouse, dimension: Dimension, steps: Sequence[SchemaStep], properties: Mapping[str, str]
) -> None:
    """Execute schema steps, and set the declared properties of the tables and those with the declaration.

    They change metadata only. The declaration is stored before columns are altered: readers of tables that a killed
    load has altered in part find a column by its present and its former names. Whether Delta can widen columns is
    known before.

    Args:
        warehouse: The warehouse.
        dimension: The declaration.
        steps: The steps.
        properties: The properties of the dimension's table when the steps were planned; none if it did not exist.

    Raises:
        ConflictError: Another writer changed a table first, maybe by the same steps; a new plan then omits them.
        UnsupportedDelta: A column becomes wider, and the Delta of this server cannot do that.
        UsageError: Delta does not know a declared property.
    """
    table, expected = warehouse.writable(dimension.name), declaration_properties(dimension)
    creations = [step for step in steps if isinstance(step, CreateTable)]
    created = {step.table: step.properties for step in creations if execute(step, warehouse)}
    if steps:
        planned, properties = properties, created.get(dimension.name) or table.properties()
        if planned and StoredDeclaration.from_properties(planned) != StoredDeclaration.from_properties(properties):
            raise ConflictError("SCHEMA_CONFLICT", f"table {table.name}", operation="ALTER")
    for name in dict.fromkeys(step.table for step in steps if isinstance(step, WidenColumn) and step.widened):
        warehouse.writable(name).allow_widening()
    if not has_properties(properties, expected):
        table.set_properties(expected)
    for step in steps:
        if not isinstance(step, CreateTable):
            execute(step, warehouse)
    if dimension.closed_suffix and (dimension.table_properties or dimension.history_table_properties):
        # Not only if the dimension's table lacks them: it can have had them before the history table.
        set_history_properties(warehouse, dimension)


def execute(step: SchemaStep, warehouse: Warehouse) -> bool:
    """Execute a schema step.

    Returns:
        Whether it changed anything; False if the table to create exists.

    Raises:
        ConflictError: Another writer committed first, maybe the same step; a new plan then omits it.
    """
    table = warehouse.writable(step.table)
    match step:
        case CreateTable():
            return table.create(step.columns, step.properties, step.description)
        case AddColumn():
            table.add_columns([((step.name,), step.type)])
        case RenameColumn():
            table.rename_column(step.old, step.new)
        case WidenColumn():
            for path, data_type in step.widened.items():
                table.widen_column(path, data_type)
            if step.added:
                table.add_columns(list(step.added.items()))
        case CommentColumn():
            table.comment_column(step.name, step.comment)
        case AddConstraint():
            table.add_constraint(step.name, step.condition)
        case SetProperties():
            table.set_properties(step.properties)
    return True
