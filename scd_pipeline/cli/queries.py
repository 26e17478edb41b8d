"""The commands of `scd` that read: sql, as-of, audit and history."""

from __future__ import annotations

import contextlib
import re
from argparse import Namespace
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from scd_pipeline.cli.commands import Settings, declared_of, say, spark_message, warn
from scd_pipeline.errors import UsageError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from scd_pipeline.declaration import Dimension
    from scd_pipeline.operations.texts import Texts

FORMATS = ("table", "csv", "json")

_AS_QUERY = "DESCRIBE QUERY\n"
_NO_TEXT = "`QUERY` cannot be found"
"""Of a name alone, or of no text, Spark takes the word before it for a table."""
_ONLY_QUERIES = (
    "expected a query (SELECT, WITH, VALUES, FROM, TABLE), SHOW, DESCRIBE, or EXPLAIN of a query; "
    "tables are written by `scd load`; nothing was run"
)
_SHOW = re.compile(r"\s*(SHOW|DESCRIBE|DESC)\b", re.IGNORECASE)
"""No statement of Spark or Delta that begins with one of these words writes anything."""
_EXPLAIN = re.compile(r"\s*EXPLAIN\b(\s+(EXTENDED|CODEGEN|COST|FORMATTED)\b)?", re.IGNORECASE)
_PLANNED_ONLY = {
    # This rule computes rows of a query while it plans the query.
    "spark.sql.optimizer.excludedRules": "org.apache.spark.sql.catalyst.optimizer.ConvertToLocalRelation",
    "spark.sql.debug.maxToStringFields": "1000000",
}
_OUTSIDE_SQL = re.compile(r"\b((try_)?reflect|java_method)\(|\bScriptTransformation\b")
"""How Spark's plans show what runs methods of Java, and programs."""


def sql(options: Namespace, settings: Settings) -> None:
    """`scd sql`"""
    from scd_pipeline import reading
    from scd_pipeline.declaration import Declarations, load_declarations

    declared = load_declarations(settings.declarations) if settings.declarations else Declarations(())
    facts = declared.facts
    names = [*(dimension.name for dimension in declared.dimensions), *(fact.name for fact in facts)]
    with settings.open(declared=names) as warehouse:
        if not options.query:
            print("\n".join(reading.views(warehouse, facts)) or f"no table is in {warehouse.place} yet")
            return
        reading.register(warehouse, facts=facts, query=options.query)
        with _query_errors(lambda: reading.views(warehouse, facts), before=_AS_QUERY):
            expect_query(warehouse.spark, options.query)
        with _query_errors(lambda: reading.views(warehouse, facts)):
            _show(warehouse.spark.sql(options.query), options, settings)


def expect_query(spark: SparkSession, text: str) -> None:
    """Check that the text only reads, without running it.

    Spark itself parses it in a place where its grammar allows a query and nothing else, to the end of the text.

    Raises:
        UsageError: The query calls methods of Java or a program.
        PySparkException: Spark does not parse the text as a query, or cannot resolve its names.
    """
    if _SHOW.match(text):
        return
    query = _EXPLAIN.sub("", text, count=1) if _EXPLAIN.match(text) else text
    spark.sql(_AS_QUERY + query).collect()
    with _set(spark, _PLANNED_ONLY):
        plan = str(spark.sql(f"EXPLAIN EXTENDED {query}").collect()[0][0])
    if _OUTSIDE_SQL.search(plan):
        raise UsageError(
            "query: it calls reflect, java_method or a script, which can do more than read; expected functions of SQL "
            "alone; nothing was run"
        )


@contextlib.contextmanager
def _set(spark: SparkSession, settings: Mapping[str, str]) -> Iterator[None]:
    """Change settings of the session for a while."""
    before = {name: spark.conf.get(name, None) for name in settings}
    try:
        for name, value in settings.items():
            spark.conf.set(name, value)
        yield
    finally:
        for name, former in before.items():
            if former is None:
                spark.conf.unset(name)
            else:
                spark.conf.set(name, former)


def as_of(options: Namespace, settings: Settings) -> None:
    """`scd as-of`"""
    from scd_pipeline import reading

    known = _time(options.known_at) if options.known_at else None
    if options.join:
        _join_as_of(options, settings, known)
        return
    time = _time(options.time)
    of = options.dimension if known is None else _declared_dimension(options.dimension, settings)
    with settings.open() as warehouse:
        if not reading.shape_of(warehouse, of).has_windows:
            warn(f"{options.dimension} remembers no windows: what it holds is told of every time, also of {time}")
        rows = reading.as_of(warehouse, of, time, known_at=known)
        _show(_where(rows, options.where), options, settings)


def _join_as_of(options: Namespace, settings: Settings, known: datetime | None) -> None:
    """The rows of a file, each with the entity as it was at the row's own time."""
    from scd_pipeline import reading

    dimension = _declared_dimension(options.dimension, settings)
    with settings.open() as warehouse:
        rows = _rows_of_file(warehouse.spark, options.join)
        keys = options.key or list(dimension.key_names)
        for name in (options.time, *keys):
            if name not in rows.columns:
                raise UsageError(
                    f"{options.join}: there is no column {name}; expected the column of each row's time, and by --key "
                    f"those that name its entity; there is {', '.join(rows.columns)}"
                )
        joined = reading.as_of_join(warehouse, rows, dimension, time=options.time, keys=keys, known_at=known)
        with _query_errors(lambda: (), of=options.join):
            _show(_where(joined, options.where), options, settings)


def _rows_of_file(spark: SparkSession, file: str) -> DataFrame:
    """The rows of a file; lines that are none are told, as they are rows of NULLs.  Errors: UsageError."""
    from scd_pipeline.declaration import Snapshot
    from scd_pipeline.deliveries.readers import read_path
    from scd_pipeline.deliveries.row_columns import FILE, LINE, PROBLEM, ROW_ORDER
    from scd_pipeline.expressions import col
    from scd_pipeline.frames import checkpoint

    path = str(Path(file).absolute())
    channel = Snapshot(path)
    if channel.format is None:
        raise UsageError(f"{file}: its ending tells no format; expected a file that ends in .csv, .json or .parquet")
    if not Path(path).exists():
        raise UsageError(f"{file}: there is no such file; expected rows with a time and a key, to join with")
    rows = read_path(spark, channel, [path])
    if LINE not in rows.columns:
        return rows
    rows = checkpoint(rows)  # Spark does not ask a file for its torn lines alone
    if torn := rows.where(col(LINE).isNotNull()).count():
        warn(f"{file}: {torn} of its lines are no rows of its columns; they are shown as rows of NULLs")
    return rows.drop(LINE, PROBLEM, FILE, ROW_ORDER)


def _declared_dimension(name: str, settings: Settings) -> Dimension:
    """Errors: UsageError unless the name, or the file, means one dimension."""
    from scd_pipeline.declaration import Dimension

    declared = declared_of(name, settings)
    dimensions = [of for of in declared if isinstance(of, Dimension)]
    if len(dimensions) != 1:
        raise UsageError(f"{name}: this means {', '.join(of.name for of in declared)}; expected one dimension")
    return dimensions[0]


def audit(options: Namespace, settings: Settings) -> None:
    """`scd audit`"""
    from scd_pipeline import reading

    with settings.open() as warehouse:
        rows = _where(reading.audit(warehouse, options.dimension), options.where)
        _show(rows.orderBy("recorded_at", "change_ts", "audit_id"), options, settings)


def history(options: Namespace, settings: Settings) -> None:
    """`scd history`"""
    from scd_pipeline import reading
    from scd_pipeline.operations import texts

    with settings.open() as warehouse:
        rows = _where(reading.history(warehouse, options.dimension), options.where)
        keys = reading.key_names(warehouse, options.dimension)
        order = [name for name in (*keys, "effective_from") if name in rows.columns]
        found = texts.collected(rows.orderBy(*[f"`{name}`" for name in order]), options.limit)
        if not options.all:
            shown = [*keys, *(n for n in ("version", "effective_from", "effective_to") if n in found.names)]
            differing = [name for name in texts.differing(found) if name not in shown]
            found = found.of([*shown, *(name for name in differing if name not in ("load_run_id", "last_updated"))])
        _print(found, options.format, settings)


@contextlib.contextmanager
def _query_errors(names: Callable[[], Sequence[str]], *, of: str = "", before: str = "") -> Iterator[None]:
    """Turn what Spark says of a query, or of the rows of a file, into a UsageError without a stack trace.

    `before` is a line that was put before the query to check that it is one.
    """
    from pyspark.errors import ParseException, PySparkException

    try:
        yield
    except PySparkException as error:
        told = _without_line(spark_message(error) or str(error), before)
        if before and (isinstance(error, ParseException) or _NO_TEXT in told):
            told = f"query: Spark does not parse it as a query; {_ONLY_QUERIES}\n{told}"
        told = f"{of}: {told}" if of else told
        if "TABLE_OR_VIEW_NOT_FOUND" in told:
            told += f"\nthere is: {', '.join(names()) or 'no table yet'}"
        raise UsageError(told) from error


def _without_line(message: str, line: str) -> str:
    """Return Spark's message about a text as it would be without the text's first line."""
    if not line:
        return message
    counted = re.sub(r"\bline (\d+)(?=,? pos)", lambda found: f"line {int(found[1]) - 1}", message)
    return counted.replace(line, "")


def _time(text: str) -> datetime:
    try:
        return datetime.fromisoformat(text.strip().replace("Z", "+00:00"))
    except ValueError:
        raise UsageError(f"{text} is no time; expected one as 2016-01-01 or 2016-01-01T12:00:00+01:00") from None


def _where(rows: DataFrame, conditions: Sequence[str]) -> DataFrame:
    """The rows with the given values, told as COLUMN=VALUE and compared as text.  Errors: UsageError."""
    from scd_pipeline.expressions import text_column

    for condition in conditions:
        name, equals, value = condition.partition("=")
        if not equals or name not in rows.columns:
            raise UsageError(
                f"{condition}: expected COLUMN=VALUE with a column of the table: {', '.join(rows.columns)}"
            )
        rows = rows.where(text_column(rows, name) == value)
    return rows


def _show(rows: DataFrame, options: Namespace, settings: Settings) -> None:
    from scd_pipeline.operations import texts

    _print(texts.collected(rows, options.limit), options.format, settings)


def _print(found: Texts, form: str, settings: Settings) -> None:
    """Show rows; on a terminal those that are too wide for a table come one value to a line."""
    from scd_pipeline.operations import texts

    if form == "csv":
        print(texts.comma_separated(found))
    elif form == "json" and found.rows:
        print(texts.json_lines(found))
    elif found.names and form == "table":
        wide = settings.terminal_width is not None and texts.table_width(found) > settings.terminal_width
        print(texts.records(found) if wide else texts.table(found))
        say(f"{len(found.rows)} row{'' if len(found.rows) == 1 else 's'}")
    if found.more:
        say(f"these are the first {len(found.rows)} rows; --limit 0 shows all")
