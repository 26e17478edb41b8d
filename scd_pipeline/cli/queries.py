"""The commands that read: sql, as-of, audit, history and bad-rows."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from scd_pipeline.cli.console import report, warn
from scd_pipeline.cli.context import Settings, complete_tables, limit_option, with_output, with_settings
from scd_pipeline.cli.read_only import require_query
from scd_pipeline.cli.render import Output
from scd_pipeline.cli.rows import collect
from scd_pipeline.cli.spark_errors import query_errors
from scd_pipeline.declaration import Declarations, Snapshot, read_declarations
from scd_pipeline.declaration.declared import as_dimension
from scd_pipeline.declaration.source import FORMAT_SUFFIXES
from scd_pipeline.errors import SetupError, UsageError
from scd_pipeline.instants import to_instant
from scd_pipeline.texts import did_you_mean, join_names, nearest, pluralize

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from scd_pipeline.delta.warehouse import Warehouse

_BATCH_COLUMNS = ("load_run_id", "last_updated")
"""Columns that differ in every version and do not describe the entity."""
_MAX_DAYS = 9999 * 366
"""The largest tolerance: more days than from the first to the last year of a window."""
_WINDOW_COLUMNS = ("version", "effective_from", "effective_to")
_VERSION_COLUMNS = ("current_flag", "change_reason", "change_source", "row_hash")
"""Columns that do not describe the entity; shown only if they differ between versions."""


def row_options(function: Any) -> Any:
    """Add the conditions on rows, and the options of commands that write rows."""
    where = click.argument("conditions", nargs=-1, metavar="[COLUMN=VALUE]...")
    return where(limit_option(with_settings(with_output(function))))


dimension_argument = click.argument("dimension", metavar="DIMENSION", shell_complete=complete_tables)


@click.command()
@click.argument("query", required=False, default="", metavar="[QUERY]")
@click.option(
    "--time",
    default=None,
    metavar="TIME",
    help="Time of the rows of timed tables; `raw` for their bases  [env: SCD_TIME; default: now].",
)
@limit_option
@with_settings
@with_output
def sql(settings: Settings, *, query: str, time: str | None, output: Output) -> None:
    """Query the tables and views of the warehouse, and timed tables, in SQL.

    Without QUERY, the names of the tables and views are shown. A file in it, such as csv.`/data/orders.csv`, has an
    absolute path.
    """
    from scd_pipeline import queries

    declared = read_declarations(settings.declarations) if settings.declarations else Declarations(())
    facts, timed = declared.facts, declared.timed_tables
    names = [name for table in declared.tables for name in (table.name, *as_dimension(table).child_names)]
    now = datetime.now(timezone.utc)
    with settings.open(declared=names) as warehouse:

        def view_names() -> list[str]:
            return sorted([*queries.view_names(warehouse, facts), *queries.timed_view_names(timed)])

        if not query:
            print("\n".join(view_names()) or f"no table is in {warehouse.location} yet")
            return
        queries.register(warehouse, facts=facts, query=query)
        queries.register_timed_tables(warehouse, timed, query=query, at=settings.time(time), now=now)
        with query_errors(view_names, check=True):
            require_query(warehouse.spark, query)
        with query_errors(view_names):
            _write(warehouse.spark.sql(query), output)


@click.command()
@dimension_argument
@click.argument("time", metavar="TIME")
@click.option(
    "--known-at",
    metavar="TIME",
    help="System time to query; the dimension is rebuilt from the audit  [default: now].",
)
@click.option(
    "--join",
    "file",
    metavar="FILE",
    type=click.Path(),
    help="File to join with the dimension, each row as of its own time; TIME is then the column with that time.",
)
@click.option(
    "--key",
    "keys",
    multiple=True,
    metavar="COLUMN",
    help="Column of the file with the business key; repeatable  [default: the names of the business key].",
)
@click.option(
    "--tolerance",
    "days",
    metavar="DAYS",
    type=click.FloatRange(min=0, max=_MAX_DAYS),
    help="With --join, the largest age of a version at the time of a row  [default: any].",
)
@row_options
def as_of(
    settings: Settings,
    *,
    dimension: str,
    time: str,
    known_at: str | None,
    file: str | None,
    keys: Sequence[str],
    days: float | None,
    conditions: Sequence[str],
    output: Output,
) -> None:
    """Show the versions in force at a time.

    TIME is written as 2016-01-01 or 2016-01-01T12:00:00+01:00; without a zone it is UTC.
    """
    from scd_pipeline import queries

    system_time = _parse_time(known_at) if known_at else None
    if not file and (keys or days is not None):
        raise click.UsageError("--key and --tolerance need --join")
    if file:
        _join_as_of(settings, dimension, time, file, keys, system_time, _tolerance(days), conditions, output)
        return
    business_time = _parse_time(time)
    declared = dimension if system_time is None else settings.declared_dimension(dimension)
    with settings.open() as warehouse, _suggested_tables(warehouse, dimension):
        if not queries.queried_table(warehouse, declared).has_windows:
            warn(f"{dimension} has no validity windows: its rows are the same at every time, also at {time}")
        rows = queries.as_of(warehouse, declared, business_time, known_at=system_time)
        _write(_filter(rows, conditions), output)


def _tolerance(days: float | None) -> timedelta | None:
    if days is None:
        return None
    try:
        return timedelta(days=days)
    except ValueError:  # click lets NaN pass
        raise click.BadParameter(f"{days}: expected a number of days", param_hint="--tolerance") from None


def _join_as_of(
    settings: Settings,
    name: str,
    time: str,
    file: str,
    keys: Sequence[str],
    known_at: datetime | None,
    tolerance: timedelta | None,
    conditions: Sequence[str],
    output: Output,
) -> None:
    """Show the rows of a file, each with its entity as of the row's own time."""
    from scd_pipeline import queries

    dimension = settings.declared_dimension(name)
    with settings.open() as warehouse:
        rows = _read_file(warehouse.spark, file)
        key_columns = list(keys or dimension.key_names)
        for column in (time, *key_columns):
            _require_column(column, rows.columns, file)
        joined = queries.join_as_of(
            warehouse, rows, dimension, time=time, keys=key_columns, known_at=known_at, tolerance=tolerance
        )
        with query_errors(lambda: (), location=file):
            _write(_filter(joined, conditions), output)


def _read_file(spark: SparkSession, file: str) -> DataFrame:
    """Return the rows of a file; warn of malformed lines, which become rows of NULLs.

    Raises:
        UsageError: The file does not exist, or its suffix names no format.
    """
    from scd_pipeline.deliveries.readers import read_path
    from scd_pipeline.deliveries.row_columns import FILE, LINE, PROBLEM, ROW_ORDER
    from scd_pipeline.expressions import col
    from scd_pipeline.frames import checkpoint

    path = str(Path(file).absolute())
    channel = Snapshot(path)
    if channel.format is None:
        raise UsageError("FILE_FORMAT_UNKNOWN", file, suffixes=join_names(FORMAT_SUFFIXES))
    if not Path(path).exists():
        raise UsageError("FILE_NOT_FOUND", file)
    rows = read_path(spark, channel, [path])
    if LINE not in rows.columns:
        return rows
    rows = checkpoint(rows)  # Spark does not read only the malformed lines of a file
    if malformed := rows.where(col(LINE).isNotNull()).count():
        warn(f"{file}: {malformed} of its lines are not rows of its columns; they are shown as rows of NULLs")
    return rows.drop(LINE, PROBLEM, FILE, ROW_ORDER)


@click.command()
@dimension_argument
@row_options
def audit(settings: Settings, *, dimension: str, conditions: Sequence[str], output: Output) -> None:
    """Show the transitions of entities, with their time, delivery and reason."""
    from scd_pipeline import queries

    with settings.open() as warehouse, _suggested_tables(warehouse, dimension):
        rows = _filter(queries.audit(warehouse, dimension), conditions)
        _write(rows.orderBy("recorded_at", "change_ts", "audit_id"), output)


@click.command()
@dimension_argument
@click.option("--all", "all_columns", is_flag=True, help="Also show columns that have the same value in all versions.")
@row_options
def history(
    settings: Settings, *, dimension: str, all_columns: bool, conditions: Sequence[str], output: Output
) -> None:
    """Show all versions of an entity, with the columns in which they differ; of a single version all columns."""
    from scd_pipeline import queries
    from scd_pipeline.expressions import col

    with settings.open() as warehouse, _suggested_tables(warehouse, dimension):
        rows = _filter(queries.history(warehouse, dimension), conditions)
        table = queries.queried_table(warehouse, dimension)
        keys, layout = table.key_names, table.column_layout
        order = [name for name in (*keys, layout.name("effective_from")) if name in rows.columns]
        rows = rows.orderBy(*[f"`{name}`" for name in order])
        if all_columns:
            _write(rows, output)
            return
        versions = collect(rows, output.limit)
        identifying = [*keys, *(n for n in map(layout.name, _WINDOW_COLUMNS) if n in versions.names)]
        hidden = _BATCH_COLUMNS if len(versions.values) > 1 else (*_BATCH_COLUMNS, *_VERSION_COLUMNS)
        excluded = {*identifying, *map(layout.name, hidden)}
        others = [name for name in versions.differing() if name not in excluded]
        selected = [*identifying, *others]
        output.write_collected(rows.select(*map(col, selected)), versions.select(selected))
        _report_count(len(versions.values), output)


@click.command()
@click.argument("table", metavar="TABLE", shell_complete=complete_tables)
@row_options
def bad_rows(settings: Settings, *, table: str, conditions: Sequence[str], output: Output) -> None:
    """Show the bad rows of accepted deliveries, with their reasons.

    Those of rejected deliveries are in no table: `scd plan --bad-rows` shows them.
    """
    from scd_pipeline import queries

    with settings.open() as warehouse, _suggested_tables(warehouse, table):
        _write(_filter(queries.quarantine(warehouse, table), conditions), output)


@contextlib.contextmanager
def _suggested_tables(warehouse: Warehouse, name: str) -> Iterator[None]:
    """Add the nearest name to the error about a table that does not exist."""
    from scd_pipeline import queries

    try:
        yield
    except SetupError as error:
        tables = queries.view_names(warehouse) if warehouse.is_listed else []
        near = None if name in tables else nearest(name, tables)
        if near is None:
            raise
        raise UsageError("TABLE_NOT_FOUND", name, warehouse=warehouse.location, nearest=near) from error


def _parse_time(text: str) -> datetime:
    time = to_instant(text)
    if time is None:
        raise UsageError("INVALID_TIME", text)
    return time


def _filter(rows: DataFrame, conditions: Sequence[str]) -> DataFrame:
    """Return the rows with the values of the conditions, written as COLUMN=VALUE and compared as text.

    Raises:
        UsageError: A condition has another form, or names another column.
    """
    from scd_pipeline.expressions import text_column

    for condition in conditions:
        name, equals, value = condition.partition("=")
        if not equals:
            raise UsageError("INVALID_CONDITION", condition, columns=", ".join(rows.columns))
        _require_column(name, rows.columns, condition)
        rows = rows.where(text_column(rows, name) == value)
    return rows


def _require_column(name: str, columns: Sequence[str], location: str) -> None:
    if name not in columns:
        raise UsageError("COLUMN_NOT_FOUND", location, column=name, hint=did_you_mean(name, columns))


def _write(rows: DataFrame, output: Output) -> None:
    if output.is_table:
        collected = collect(rows, output.limit)
        output.write(collected)
        if collected.names:
            _report_count(len(collected.values), output)
    else:
        output.write_frame(rows)


def _report_count(count: int, output: Output) -> None:
    if output.is_table:
        report(pluralize(count, "row"))
