"""What the commands of `scd` do: each takes its arguments and the settings, and shows what came of it.

Spark and Dagster are imported by the commands that need them, so that the others answer at once.
"""

from __future__ import annotations

import contextlib
import logging
import re
import socket
import sys
from argparse import Namespace
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from scd_pipeline.errors import SetupError, UsageError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from scd_pipeline.deliveries import Delivery
    from scd_pipeline.load import LoadResult
    from scd_pipeline.spec import Dimension, Fact
    from scd_pipeline.texts import Texts
    from scd_pipeline.warehouse import Warehouse

FORMATS = ("table", "csv", "json")
CODE_LOCATION = "scd_pipeline.definitions"
_STOPPED, _NOT_SET_UP = 3, 5


@dataclass(frozen=True)
class Settings:
    """What holds for every command. `terminal_width` is None where no terminal shows the results."""

    environ: Mapping[str, str]
    warehouse: str
    remote: str
    declarations: Path | None
    program: str
    terminal_width: int | None

    @property
    def folder(self) -> Path | None:
        """The warehouse's folder, if it is one of this machine."""
        return None if "://" in self.warehouse else Path(self.warehouse).absolute()

    @property
    def warehouse_path(self) -> str:
        """The warehouse's folder or address, in full."""
        return str(self.folder or self.warehouse)

    @contextlib.contextmanager
    def open(self, *, quick: bool = True) -> Iterator[Warehouse]:
        """The warehouse, on an embedded Spark or on the server that is named; `quick` compiles less.

        Errors: SetupError.
        """
        from scd_pipeline import session
        from scd_pipeline import setup as installation
        from scd_pipeline.landing import schemas
        from scd_pipeline.warehouse import Warehouse

        _silence_query_logs()
        if not self.remote:
            found = installation.find(self.environ)
            scratch = installation.cache_folder(self.environ) / "spark-warehouse"
            # It ends with this process, whose one session it is.
            spark = session.local_spark(scratch, jars=found.jars, java_home=found.java_home, quick=quick)
            yield Warehouse(spark, self.warehouse_path, **schemas(self.environ))
            return
        _expect_server(self.remote)
        spark = session.connect_spark(self.remote)
        try:
            yield Warehouse(spark, self.warehouse_path, **schemas(self.environ))
        finally:
            with contextlib.suppress(Exception):
                spark.stop()


Command = Callable[[Namespace, Settings], "int | None"]


def say(message: str) -> None:
    """Tell the user how it goes; results do not come this way."""
    print(message, file=sys.stderr, flush=True)


def _expect_server(url: str) -> None:
    """Ask at once whether anybody listens; Spark itself would try for minutes.  Errors: SetupError."""
    address = urlsplit(url)
    if address.scheme != "sc" or not address.hostname:
        raise SetupError(f"--remote {url}: this is no Spark Connect server; expected sc://host:port")
    try:
        socket.create_connection((address.hostname, address.port or 15002), timeout=10).close()
    except OSError as error:
        raise SetupError(
            f"no Spark Connect server answers at {url} ({error.strerror or error}); start one (`scd dev`), or leave "
            f"--remote and SCD_REMOTE out for an embedded Spark"
        ) from error


def _silence_query_logs() -> None:
    """PySpark writes each failed query to the standard error as JSON, whoever handles the error."""
    from pyspark.logger import PySparkLogger

    for name in ("SQLQueryContextLogger", "DataFrameQueryContextLogger"):
        PySparkLogger.getLogger(name).setLevel(logging.CRITICAL + 1)


# -- the machine


def setup(options: Namespace, settings: Settings) -> None:
    """`scd setup`"""
    from scd_pipeline import setup as installation

    installation.run(settings.environ, progress=say, ivy_settings=options.ivy_settings)
    print("ready")


def doctor(options: Namespace, settings: Settings) -> int:
    """`scd doctor`"""
    from scd_pipeline import doctor as examination

    with contextlib.ExitStack() as stack:
        found = examination.report(
            settings.environ,
            warehouse=settings.folder,
            capabilities=(lambda: stack.enter_context(settings.open()).capabilities) if options.spark else None,
        )
    print(examination.render(found))
    return 0 if all(finding.ok for finding in found) else _NOT_SET_UP


def demo(_options: Namespace, settings: Settings) -> None:
    """`scd demo`"""
    from scd_pipeline import demo as play

    declared = play.example()
    play.introduce(declared, settings.warehouse_path, play.to_stdout)
    with play.progress(play.to_stdout) as tell:
        tell("starting Dagster")
        # By its name, as Dagster itself finds it; this module lies below the definitions.
        definitions = import_module(CODE_LOCATION).defs
        for job in play.jobs(declared):
            play.run_job(definitions, job, settings.warehouse_path, settings.remote, tell)
        tell("done")
    with settings.open(quick=False) as warehouse:
        play.show(warehouse, declared, play.to_stdout)
    play.suggest(settings.program, play.to_stdout)


def dev(options: Namespace, settings: Settings) -> int:
    """`scd dev`"""
    from scd_pipeline import dev as interface

    return interface.run(settings, port=options.port, code_location=CODE_LOCATION, say=say)


# -- loads


def load(options: Namespace, settings: Settings) -> int:
    """`scd load`"""
    from scd_pipeline.facts import load_fact
    from scd_pipeline.record import load_and_record
    from scd_pipeline.spec import Dimension

    code = 0
    declared = declared_of(options.what, settings)
    found = [_deliveries(of, options) for of in declared]
    with settings.open(quick=False) as warehouse:
        for of, lying in zip(declared, found, strict=True):
            say(f"{of.name}: {len(lying)} deliveries")
            if isinstance(of, Dimension):
                result, _ = load_and_record(warehouse, of, lying, progress=say)
            else:
                result = load_fact(warehouse, of, lying, progress=say)
            print(_result_text(result))
            for batch in result.stopped:
                say(f"error: {batch}")
                code = _STOPPED
    return code


def _deliveries(of: Dimension | Fact, options: Namespace) -> list[Delivery]:
    from scd_pipeline.landing import deliveries
    from scd_pipeline.spec import Dimension

    shape = of if isinstance(of, Dimension) else of.as_dimension()
    return deliveries(shape, names=options.delivery, allow=options.allow)


def plan(options: Namespace, settings: Settings) -> int:
    """`scd plan`"""
    from scd_pipeline import texts
    from scd_pipeline.facts import plan_fact
    from scd_pipeline.load import plan as plan_load
    from scd_pipeline.spec import Dimension

    stopped = False
    declared = declared_of(options.what, settings)
    found = [_deliveries(of, options) for of in declared]
    with settings.open(quick=False) as warehouse:
        for of, lying in zip(declared, found, strict=True):
            made = plan_load(warehouse, of, lying) if isinstance(of, Dimension) else plan_fact(warehouse, of, lying)
            print(made.explain())
            if made.has_actions:
                print(f"  for example:\n{_examples_text(texts.collected(made.examples()), made.dimension)}")
            stopped = stopped or any(result.outcome == "stopped" for result in made.results)
    return _STOPPED if stopped else 0


def _examples_text(rows: Texts, dimension: Dimension) -> str:
    """Some planned rows, by the columns that tell what they are about: keys, windows, and what opens versions."""
    from scd_pipeline import texts

    attributes = [attribute for attribute in dimension.attributes if attribute.opens_versions]
    names = {attribute.name for attribute in attributes or dimension.attributes}
    telling = {"_action", "version", "effective_from", "effective_to", *dimension.key_names, *names}
    return texts.table(rows.of([name for name in rows.names if name in telling]), "    ")


def declared_of(what: str | None, settings: Settings) -> list[Dimension | Fact]:
    """The declared dimensions, and then the facts, that an argument means.  Errors: UsageError, DeclarationError."""
    from scd_pipeline.spec import load_declarations

    if what is not None and Path(what).exists():
        found = load_declarations(what)
        return [*found.dimensions, *found.facts]
    if settings.declarations is None:
        named = f"{what} is no file or folder" if what else "no declaration is named"
        raise UsageError(f"{named}; name a declaration's file or folder, here, by --declarations or SCD_DECLARATIONS")
    found = load_declarations(settings.declarations)
    declared: list[Dimension | Fact] = [*found.dimensions, *found.facts]
    chosen = [of for of in declared if what in (None, of.name)]
    if not chosen:
        names = ", ".join(of.name for of in declared)
        raise UsageError(
            f"{what}: neither a file or folder, nor a dimension or fact of {settings.declarations} ({names})"
        )
    return chosen


def _result_text(result: LoadResult) -> str:
    """What a load did: the batches that are not as before, and the sums."""
    from scd_pipeline import texts

    counts = ("rows", "new", "changed", "closed", "bad_rows")
    news = [batch for batch in result.batches if batch.outcome != "unchanged"]
    rows = [(b.delivery, b.outcome, *(str(getattr(b, name)) for name in counts)) for b in news]
    kinds = ("text", "text", *("number" for _ in counts))
    lines = [texts.table(texts.Texts(("delivery", "outcome", *counts), kinds, tuple(rows)), "  ")] if rows else []
    undeclared = sorted({name for batch in news for name in batch.undeclared})
    lines += [f"  columns that nobody declared: {', '.join(undeclared)}"] if undeclared else []
    return "\n".join([*lines, texts.summary(result)])


# -- readings


def sql(options: Namespace, settings: Settings) -> None:
    """`scd sql`"""
    from scd_pipeline import reading

    facts = _declared_facts(settings)
    with settings.open() as warehouse:
        names = reading.views(warehouse, facts)
        if not options.query:
            print("\n".join(names) or f"no table is in {warehouse.path} yet")
            return
        query = options.query.casefold()
        reading.register(warehouse, [name for name in names if name.casefold() in query], facts)
        with _query_errors(names):
            _show(warehouse.spark.sql(options.query), options, settings)


def _declared_facts(settings: Settings) -> tuple[Fact, ...]:
    """The facts whose tables can be joined with their dimensions, as far as declarations are at hand."""
    from scd_pipeline.spec import load_declarations

    return load_declarations(settings.declarations).facts if settings.declarations else ()


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
        rows = reading.as_of(warehouse, of, time, known_at=known)
        _show(_where(rows, options.where), options, settings)


def _join_as_of(options: Namespace, settings: Settings, known: datetime | None) -> None:
    """The rows of a file, each with the entity as it was at the row's own time."""
    from scd_pipeline import reading
    from scd_pipeline.deliveries import read_path
    from scd_pipeline.spec import Snapshot

    dimension = _declared_dimension(options.dimension, settings)
    path = str(Path(options.join).absolute())
    with settings.open() as warehouse:
        rows = read_path(warehouse.spark, Snapshot(path), [path])
        for name in (options.time, *(keys := options.key or list(dimension.key_names))):
            if name not in rows.columns:
                raise UsageError(
                    f"{options.join}: there is no column {name}; expected the column of each row's time, and by --key "
                    f"those that name its entity; there is {', '.join(rows.columns)}"
                )
        joined = reading.as_of_join(warehouse, rows, dimension, time=options.time, keys=keys, known_at=known)
        _show(_where(joined, options.where), options, settings)


def _declared_dimension(name: str, settings: Settings) -> Dimension:
    """Errors: UsageError if no dimension of that name is declared."""
    from scd_pipeline.spec import Dimension

    (declared,) = declared_of(name, settings)
    if not isinstance(declared, Dimension):
        raise UsageError(f"{name}: this is a fact; expected a dimension")
    return declared


def audit(options: Namespace, settings: Settings) -> None:
    """`scd audit`"""
    from scd_pipeline import reading

    with settings.open() as warehouse:
        rows = _where(reading.audit(warehouse, options.dimension), options.where)
        _show(rows.orderBy("recorded_at", "change_ts", "audit_id"), options, settings)


def history(options: Namespace, settings: Settings) -> None:
    """`scd history`"""
    from scd_pipeline import reading, texts

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
def _query_errors(names: Sequence[str]) -> Iterator[None]:
    """Turn what Spark says of a query into a UsageError without a stack trace."""
    from pyspark.errors import PySparkException

    try:
        yield
    except PySparkException as error:
        told = spark_message(error) or str(error)
        if "TABLE_OR_VIEW_NOT_FOUND" in told:
            told += f"\nthere is: {', '.join(names) or 'no table yet'}"
        raise UsageError(told) from error


def spark_message(error: BaseException) -> str | None:
    """What Spark says, without plans and stack traces; None for an error that is not Spark's."""
    if not type(error).__module__.startswith(("pyspark.", "py4j.")):
        return None
    text = str(error).split("JVM stacktrace:")[0].split("\n\tat ")[0].strip()
    if "== SQL" in text:
        return text
    return re.split(r";?\n(?='|\+-|:|[A-Z]\w+ )", text)[0].strip()


def _time(text: str) -> datetime:
    try:
        return datetime.fromisoformat(text.strip().replace("Z", "+00:00"))
    except ValueError:
        raise UsageError(f"{text} is no time; expected one as 2016-01-01 or 2016-01-01T12:00:00+01:00") from None


def _where(rows: DataFrame, conditions: Sequence[str]) -> DataFrame:
    """The rows with the given values, told as COLUMN=VALUE and compared as text.  Errors: UsageError."""
    from scd_pipeline.columns import col

    for condition in conditions:
        name, equals, value = condition.partition("=")
        if not equals or name not in rows.columns:
            raise UsageError(
                f"{condition}: expected COLUMN=VALUE with a column of the table: {', '.join(rows.columns)}"
            )
        rows = rows.where(col(name).cast("string") == value)
    return rows


def _show(rows: DataFrame, options: Namespace, settings: Settings) -> None:
    from scd_pipeline import texts

    _print(texts.collected(rows, options.limit), options.format, settings)


def _print(found: Texts, form: str, settings: Settings) -> None:
    """Show rows; on a terminal those that are too wide for a table come one value to a line."""
    from scd_pipeline import texts

    if form == "csv":
        print(texts.comma_separated(found))
    elif form == "json":
        print(texts.json_lines(found))
    elif found.names:
        wide = settings.terminal_width is not None and texts.table_width(found) > settings.terminal_width
        print(texts.records(found) if wide else texts.table(found))
        say(f"{len(found.rows)} row{'' if len(found.rows) == 1 else 's'}")
    if found.more:
        say(f"these are the first {len(found.rows)} rows; --limit 0 shows all")
