"""The commands of `scd` that set up, load and serve, and what all commands share.

Each takes its arguments and the settings, and shows what came of it. Spark and Dagster are imported by the commands
that need them, so that the others answer at once.
"""

from __future__ import annotations

import contextlib
import os
import re
import sys
from argparse import Namespace
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from scd_pipeline.environment import DEFAULT_WAREHOUSE, EXAMPLE, Environment
from scd_pipeline.errors import UsageError, value_error_name

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from scd_pipeline.declaration import Dimension, Fact
    from scd_pipeline.deliveries.delivery import Delivery
    from scd_pipeline.delta.warehouse import Warehouse
    from scd_pipeline.load.run import LoadResult
    from scd_pipeline.operations.texts import Texts

CODE_LOCATION = "scd_pipeline.definitions"
_STOPPED, _NOT_SET_UP = 3, 5


@dataclass(frozen=True)
class Settings:
    """What holds for every command. `terminal_width` is None where no terminal shows the results."""

    environment: Environment
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

    @property
    def again(self) -> str:
        """How the user may call this program again, on the same tables."""
        usual = Path(self.environment.warehouse or DEFAULT_WAREHOUSE).absolute()
        return self.program if self.folder == usual else f"{self.program} --warehouse {self.warehouse}"

    @contextlib.contextmanager
    def open(self, *, quick: bool = True, declared: Sequence[str] = ()) -> Iterator[Warehouse]:
        """The warehouse, on an embedded Spark or on the server that is named; `quick` compiles less.

        `declared` are names of dimensions and facts whose tables may be there.
        Errors: SetupError.
        """
        from scd_pipeline.spark import session
        from scd_pipeline.spark.installation import find_installation

        if not self.remote:
            found = find_installation(self.environment)
            scratch = self.environment.cache_folder / "spark-warehouse"
            # It ends with this process, whose one session it is.
            spark = session.local_spark(scratch, jars=found.jars, java_home=found.java_home, quick=quick)
            yield self._warehouse(spark, declared)
            return
        spark = session.connect_spark(self.remote)
        try:
            yield self._warehouse(spark, declared)
        finally:
            with contextlib.suppress(Exception):
                spark.stop()

    def _warehouse(self, spark: SparkSession, declared: Sequence[str]) -> Warehouse:
        from scd_pipeline.delta.warehouse import Warehouse

        schema, schemas = self.environment.schema, self.environment.schemas
        return Warehouse(spark, self.warehouse_path, schema=schema, schemas=schemas, declared=declared)


Command = Callable[[Namespace, Settings], "int | None"]


def say(message: str) -> None:
    """Tell the user how it goes; results do not come this way."""
    print(message, file=sys.stderr, flush=True)


def warn(message: str) -> None:
    """Tell the user what went wrong beside what was asked for, which is done."""
    say(f"warning: {message}")


def spark_message(error: BaseException) -> str | None:
    """What Spark says, without plans and stack traces; None for an error that is not Spark's."""
    if not type(error).__module__.startswith(("pyspark.", "py4j.")):
        return None
    text = str(error).split("JVM stacktrace:")[0].split("\n\tat ")[0].strip()
    if "== SQL" in text:
        return text
    return re.split(r";?\n(?='|\+-|:|[A-Z]\w+ )", text)[0].strip()


def failure_message(error: BaseException) -> str | None:
    """Return Spark's message about a command that failed, without values of rows; None for another error."""
    if (message := spark_message(error)) is None:
        return None
    name = value_error_name(error)
    return f"{name}: a value of a row (not shown; --debug shows Spark's whole message)" if name else message


# -- the machine


def setup(options: Namespace, settings: Settings) -> None:
    """`scd setup`"""
    from scd_pipeline.spark.installation import install

    install(settings.environment, progress=say, repository=options.repository)
    print("ready")


def doctor(options: Namespace, settings: Settings) -> int:
    """`scd doctor`"""
    from scd_pipeline.spark.doctor import diagnose, render

    with contextlib.ExitStack() as stack:
        diagnoses = diagnose(
            settings.environment,
            warehouse=settings.folder or settings.warehouse,
            capabilities=(lambda: stack.enter_context(settings.open()).capabilities) if options.spark else None,
        )
    print(render(diagnoses))
    return 0 if all(diagnosis.is_ok for diagnosis in diagnoses) else _NOT_SET_UP


def demo(_options: Namespace, settings: Settings) -> None:
    """`scd demo`"""
    from scd_pipeline.cli import demo as play
    from scd_pipeline.cli.dev import dagster_home, location_of

    declared = play.example()
    if settings.declarations != EXAMPLE:
        raise UsageError(
            f"the demo loads the example, and {settings.declarations} is what the declarations are to be read from; "
            "unset SCD_DECLARATIONS and leave --declarations out, or load your own: `scd load`"
        )
    home = dagster_home(settings.environment.variables, Path.cwd())
    play.introduce(declared, settings.warehouse_path, play.to_stdout)
    with play.progress(play.to_stdout) as tell, play.dagster_instance(home) as instance:
        tell("starting Dagster")
        # The resource of the definitions reads the environment; an address in a run's configuration would be stored.
        os.environ["SCD_REMOTE"] = settings.remote
        # By its name, as Dagster itself finds it; this module lies below the definitions.
        definitions = import_module(CODE_LOCATION).defs
        location = location_of(Path.cwd(), CODE_LOCATION)
        for job in play.jobs(declared):
            play.run_job(definitions, job, settings.warehouse_path, tell, instance, location=location)
        tell("done")
    with settings.open(quick=False) as warehouse:
        play.show(warehouse, declared, play.to_stdout)
    play.suggest(settings.again, play.to_stdout)


def dev(options: Namespace, settings: Settings) -> int:
    """`scd dev`"""
    from scd_pipeline.cli import dev as interface

    return interface.run(settings, port=options.port, code_location=CODE_LOCATION, say=say)


# -- loads


def load(options: Namespace, settings: Settings) -> int:
    """`scd load`"""
    from scd_pipeline.declaration import Dimension
    from scd_pipeline.deliveries.partitions import partition_key
    from scd_pipeline.load.run import load as load_table
    from scd_pipeline.reading import create_views

    code = 0
    declared = declared_of(options.what, settings)
    with settings.open(quick=False) as warehouse:
        for of, lying in _deliveries(declared, warehouse, options):
            say(f"{of.name}: {len(lying)} deliveries")
            if isinstance(of, Dimension):
                result = load_table(warehouse, of, lying, progress=say)
                create_views(warehouse, [of.name], failed=warn)
            else:
                result = load_table(warehouse, of, lying, progress=say)
                create_views(warehouse, [of.name], [of], failed=warn)
            print(_result_text(result, [partition_key(delivery, _shape(of)) for delivery in lying]))
            for batch in result.batches:
                if batch.code and batch.outcome != "rejected":
                    warn(str(batch))
            for batch in result.rejected:
                say(f"error: {batch}")
                code = _STOPPED
    return code


def _deliveries(
    declared: Sequence[Dimension | Fact], warehouse: Warehouse, options: Namespace
) -> list[tuple[Dimension | Fact, list[Delivery]]]:
    """The declared tables, each with what lies there for it; of named deliveries those that have any.

    Errors: SourceDataError for a name that none of them has.
    """
    from scd_pipeline.deliveries.discovery import select_deliveries_by_table

    shapes = [_shape(of) for of in declared]
    found = select_deliveries_by_table(shapes, warehouse.spark, names=options.delivery, allow=options.allow)
    return [(of, lying) for of, lying in zip(declared, found, strict=True) if lying or not options.delivery]


def _shape(of: Dimension | Fact) -> Dimension:
    from scd_pipeline.declaration import Dimension

    return of if isinstance(of, Dimension) else of.as_dimension()


def plan(options: Namespace, settings: Settings) -> int:
    """`scd plan`"""
    from scd_pipeline.load.run import plan as plan_load
    from scd_pipeline.operations import texts

    rejected = False
    declared = declared_of(options.what, settings)
    with settings.open(quick=False) as warehouse:
        for of, lying in _deliveries(declared, warehouse, options):
            made = plan_load(warehouse, of, lying)
            print(made.explain())
            if made.has_actions:
                print(f"  for example:\n{_examples_text(texts.collected(made.examples()), made.dimension)}")
            rejected = rejected or any(result.outcome == "rejected" for result in made.results)
    return _STOPPED if rejected else 0


def _examples_text(rows: Texts, dimension: Dimension) -> str:
    from scd_pipeline.operations import texts

    return texts.table(rows.of(texts.telling(rows.names, dimension)), "    ")


def declared_of(what: str | None, settings: Settings) -> list[Dimension | Fact]:
    """The declared dimensions, and then the facts, that an argument means.  Errors: UsageError, DeclarationError."""
    from scd_pipeline.declaration import load_declarations

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
            f"{what}: neither a file or folder, nor a dimension or fact of {settings.declarations} ({names}); "
            "name the file or folder that declares it by --declarations or SCD_DECLARATIONS"
        )
    return chosen


def _result_text(result: LoadResult, names: Sequence[str]) -> str:
    """What a load did: the batches that are not as before, by the names that tell one from another, and the sums."""
    from scd_pipeline.operations import texts

    counts = ("rows", "new", "changed", "closed", "bad_rows")
    named = zip(names, result.batches, strict=True)
    news = [(name, batch) for name, batch in named if batch.outcome != "unchanged"]
    rows = [(name, b.outcome, *(str(getattr(b, count)) for count in counts)) for name, b in news]
    kinds = ("text", "text", *("number" for _ in counts))
    lines = [texts.table(texts.Texts(("delivery", "outcome", *counts), kinds, tuple(rows)), "  ")] if rows else []
    undeclared = sorted({name for _, batch in news for name in batch.undeclared})
    lines += [f"  columns that nobody declared: {', '.join(undeclared)}"] if undeclared else []
    return "\n".join([*lines, texts.summary(result)])
