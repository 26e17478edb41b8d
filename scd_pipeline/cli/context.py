"""What all commands share: the settings, their options, and the declared tables that an argument names."""

from __future__ import annotations

import contextlib
import functools
import os
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.shell_completion import CompletionItem

from scd_pipeline.cli.console import progress, report
from scd_pipeline.cli.render import FORMATS, Output, resolve_format
from scd_pipeline.declaration import Declarations, DeclaredTable, Dimension, Fact, TimedTable, read_declarations
from scd_pipeline.declaration.source import is_address
from scd_pipeline.environment import DEFAULT_WAREHOUSE, Environment
from scd_pipeline.errors import DeclarationError, ScdError, SetupError, UsageError
from scd_pipeline.spark.remote import BACKGROUND
from scd_pipeline.texts import did_you_mean

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from scd_pipeline.delta.warehouse import Warehouse

CODE_LOCATION = "scd_pipeline.definitions"
_PROJECT_DECLARATIONS = "declarations"
"""The folder of declarations that `scd init` creates."""


@dataclass(frozen=True)
class Settings:
    """The settings of every command.

    Attributes:
        environment: The environment variables.
        warehouse: The folder or address of the warehouse.
        remote: The address of a Spark Connect server; empty for an embedded Spark.
        declarations: The folder or file of the declarations, if one is configured.
        program: The command line that runs this program.
        terminal_width: The width of the terminal that shows the results; None without one.
    """

    environment: Environment
    warehouse: str
    remote: str
    declarations: Path | None
    program: str
    terminal_width: int | None

    @classmethod
    def resolve(cls, options: Mapping[str, Any], environment: Environment) -> Settings:
        """Return the settings: options first, then the environment, then the current folder, then defaults."""
        declarations = options.get("declarations") or _own_declarations(environment)
        remote = options.get("remote")
        return cls(
            environment=environment,
            warehouse=options.get("warehouse") or environment.warehouse or DEFAULT_WAREHOUSE,
            remote=environment.remote if remote is None else remote,
            declarations=Path(declarations).absolute() if declarations else environment.declarations,
            program=_program(Path(sys.argv[0])),
            terminal_width=shutil.get_terminal_size().columns if sys.stdout.isatty() else None,
        )

    @property
    def folder(self) -> Path | None:
        """The folder of the warehouse, if it is on this machine."""
        return None if is_address(self.warehouse) else Path(self.warehouse).absolute()

    @property
    def warehouse_path(self) -> str:
        """The absolute folder or the address of the warehouse."""
        return str(self.folder or self.warehouse)

    @contextlib.contextmanager
    def open(self, *, quick: bool = True, declared: Sequence[str] = ()) -> Iterator[Warehouse]:
        """Open the warehouse, on the configured server, or on the one in the background, or on an embedded Spark.

        Args:
            quick: Compile less, for commands with few queries.
            declared: The names of dimensions and facts whose tables may exist.

        Raises:
            SetupError: Java, jars or the server is missing.
        """
        from scd_pipeline.spark import session

        spark = self._open_spark(quick=quick)
        try:
            yield self._warehouse(spark, declared)
        finally:
            session.disconnect(spark)  # an embedded session ends with this process

    def _open_spark(self, *, quick: bool) -> SparkSession:
        """Return a session at the configured server, else at the server in the background, else an embedded one."""
        from scd_pipeline.spark import session

        lines: list[str] = []
        is_own_choice = not self.remote and self.environment.has_background_server
        try:
            with progress("connecting to Spark"):
                remote = BACKGROUND if is_own_choice else self.remote
                return session.open_spark(remote, self.environment, quick=quick, report=lines.append)
        except (SetupError, OSError) as error:
            if not is_own_choice:
                raise
            lines = [f"an embedded Spark is used, not a Spark Connect server in the background: {error}"]
            with progress("starting Spark"):
                return session.open_spark("", self.environment, quick=quick)
        finally:
            for line in lines:
                report(line)

    def _warehouse(self, spark: SparkSession, declared: Sequence[str]) -> Warehouse:
        from scd_pipeline.delta.warehouse import Warehouse

        environment = self.environment
        return Warehouse(
            spark,
            self.warehouse_path,
            schema=environment.schema,
            schemas=environment.schemas,
            declared=declared,
            load_cores=environment.load_cores,
        )

    def declared_tables(self, requested: str | None = None) -> list[DeclaredTable]:
        """Return the declared tables that an argument names, in the order of their loads: all of them for None.

        Args:
            requested: The name of a dimension or a fact, or a file or folder of declarations.

        Raises:
            UsageError: No declaration has that name.
            DeclarationError: A declaration is invalid.
        """
        if requested is not None and is_path(requested):
            return list(_read_path(str(requested)).tables)
        if self.declarations is None:
            raise UsageError("NO_DECLARATIONS", requested or "")
        declared = read_declarations(self.declarations).tables
        tables = [table for table in declared if requested in (None, table.name)]
        if not tables:
            hint = did_you_mean(requested, [table.name for table in declared])
            raise UsageError("TABLE_NOT_DECLARED", str(requested), declarations=self.declarations, hint=hint)
        return tables

    def declared_table(self, requested: str) -> DeclaredTable:
        """Return the one table that an argument names.

        Raises:
            UsageError: The argument names no table or several.
        """
        tables = self.declared_tables(requested)
        if len(tables) != 1:
            raise UsageError("ONE_TABLE_EXPECTED", requested, tables=", ".join(table.name for table in tables))
        return tables[0]

    def declared_facts(self, requested: str | None = None) -> list[Fact]:
        """Return all facts that are declared with the tables that an argument names.

        Args:
            requested: As in `declared_tables`.

        Raises:
            DeclarationError: A declaration is invalid.
        """
        tables = self.declared_tables(requested if is_path(requested) else None)
        return [table for table in tables if isinstance(table, Fact)]

    def declared_timed_table(self, requested: str) -> TimedTable:
        """Return the timed table of a name.

        Raises:
            UsageError: No declaration has that name.
            DeclarationError: A declaration is invalid.
        """
        if self.declarations is None:
            raise UsageError("NO_DECLARATIONS", requested)
        declared = read_declarations(self.declarations).timed_tables
        table = next((table for table in declared if table.name == requested), None)
        if table is None:
            hint = did_you_mean(requested, [table.name for table in declared])
            raise UsageError("TIMED_TABLE_NOT_DECLARED", requested, declarations=self.declarations, hint=hint)
        return table

    def time(self, option: str | None) -> str:
        """Return the time of a read of timed tables: that of the option, else that of the environment."""
        return self.environment.time if option is None else option

    def declared_dimension(self, requested: str) -> Dimension:
        """Return the one dimension that an argument names.

        Raises:
            UsageError: The argument names no dimension or several.
        """
        tables = self.declared_tables(requested)
        dimensions = [table for table in tables if isinstance(table, Dimension)]
        if len(dimensions) != 1:
            raise UsageError("ONE_DIMENSION_EXPECTED", requested, tables=", ".join(table.name for table in tables))
        return dimensions[0]


def _read_path(path: str) -> Declarations:
    """Return what a file or folder declares; a fact in a file may reference dimensions of other files of its folder."""
    try:
        return read_declarations(path)
    except DeclarationError as error:
        if Path(path).is_dir() or not any(each.code == "UNKNOWN_NAME" for each in error.errors):
            raise
        return read_declarations(path, dimension_paths=[Path(path).parent])


def is_path(requested: str | None) -> bool:
    """Return whether an argument names a file or folder, and not a table."""
    return requested is not None and Path(requested).exists()


def _own_declarations(environment: Environment) -> str:
    """Return the folder of declarations in the current folder; empty without one, or if a variable names another."""
    is_own = not environment.variables.get("SCD_DECLARATIONS") and Path(_PROJECT_DECLARATIONS).is_dir()
    return _PROJECT_DECLARATIONS if is_own else ""


def _program(started: Path) -> str:
    """Return the command line by which the user can call this program again."""
    if started.name != "scd":
        return "python -m scd_pipeline"
    relative = os.path.relpath(started)
    return "scd" if shutil.which("scd") else str(started.absolute()) if relative.startswith("..") else relative


def _store(context: click.Context, parameter: click.Parameter, value: object) -> None:
    """Store a common option for `Settings`; one after the command replaces one before it."""
    options: dict[str, Any] = context.ensure_object(dict)
    if value is not None and parameter.name:
        options[parameter.name] = value


_common_option = functools.partial(click.option, expose_value=False, callback=_store)
_COMMON = (
    _common_option("--debug/--no-debug", default=None, help="Show tracebacks of Spark's errors."),
    _common_option(
        "--declarations",
        metavar="PATH",
        help="Folder or file of the declarations  [env: SCD_DECLARATIONS; default: ./declarations, or the example of a "
        "clone].",
    ),
    _common_option(
        "--remote",
        metavar="URL",
        help="Spark Connect server, sc://host:port  [env: SCD_REMOTE; default: one in the background].",
    ),
    _common_option(
        "--warehouse",
        metavar="FOLDER",
        help="Folder or address of the tables  [env: SCD_WAREHOUSE; default: ./warehouse].",
    ),
)


def common_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options of every command, which are valid before and after its name."""
    for option in _COMMON:
        command = option(command)
    return command


def with_settings(function: Callable[..., int | None]) -> Callable[..., int | None]:
    """Add the common options to a command, and pass it the settings as its first argument."""

    @functools.wraps(function)
    @click.pass_context
    def wrapper(context: click.Context, /, **arguments: Any) -> int | None:
        return function(Settings.resolve(context.obj, Environment.from_env()), **arguments)

    return common_options(wrapper)


def with_output(function: Callable[..., int | None]) -> Callable[..., int | None]:
    """Add the options of commands that write rows, and pass the `Output` as `output`; after `with_settings`."""

    @functools.wraps(function)
    def wrapper(
        settings: Settings, *, output_format: str | None, output: Path | None, limit: int = 0, **arguments: Any
    ) -> int | None:
        destination = Output(resolve_format(output_format, output), output, limit, settings.terminal_width)
        return function(settings, output=destination, **arguments)

    form = click.option(
        "--format",
        "output_format",
        type=click.Choice(FORMATS),
        help="Format of the rows; parquet needs --output  [default: that of the suffix of --output, else table].",
    )
    file = click.option(
        "--output", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE", help="File to write the rows to."
    )
    return form(file(wrapper))


limit_option = click.option(
    "--limit",
    type=click.IntRange(min=0),
    default=1000,
    show_default=True,
    metavar="ROWS",
    help="Largest number of rows to show; 0 for all.",
)


def complete_tables(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:  # noqa: ARG001 (click passes all three)
    """Complete the name of a declared table, else a path."""
    try:
        tables = Settings.resolve(context.ensure_object(dict), Environment.from_env()).declared_tables()
    except ScdError:
        return []
    matches = [CompletionItem(table.name) for table in tables if table.name.startswith(incomplete)]
    return matches or [CompletionItem(incomplete, type="file")]
