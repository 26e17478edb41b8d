"""The command `scd`: reads arguments and environment, and turns what happens into an exit code.

Results go to the standard output, everything else to the standard error.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from scd_pipeline.cli import commands
from scd_pipeline.cli import progress as watching
from scd_pipeline.cli import queries as asking
from scd_pipeline.environment import DEFAULT_WAREHOUSE, Environment
from scd_pipeline.errors import OVERRIDABLE_RULES, ScdError

INTERRUPTED = 130
_EXIT_CODES = """exit codes:
  0 done; 1 a fault of this program; 2 a wrong declaration, argument or query; 3 a delivery that was stopped;
  4 a load or a check that failed; 5 something that is not set up; 130 interrupted"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run `scd`; the only place that reads the environment.  Out: the exit code."""
    options = parsed(arguments)
    try:
        return int(options.run(options, settings(options, os.environ)) or 0)
    except ScdError as error:
        commands.say(f"error: {error}")
        return error.exit_code
    except KeyboardInterrupt:
        commands.say("interrupted; what was not committed is not there, and the same command goes on from here")
        return INTERRUPTED
    except BrokenPipeError:  # whoever reads the results has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except Exception as error:
        message = commands.failure_message(error)
        if message is None or options.debug:
            raise
        commands.say(f"error: {message}")
        return 4


def parsed(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """The arguments as options; conditions may stand before and after options.

    Of what comes in several places argparse takes only the first for a list that may be empty.
    """
    made = parser()
    options, others = made.parse_known_args(arguments)
    if others and not (hasattr(options, "where") and all(_is_condition(one) for one in others)):
        made.error(f"unrecognized arguments: {' '.join(others)}")
    if others:
        options.where = [*options.where, *others]
    return options


def _is_condition(argument: str) -> bool:
    return "=" in argument and not argument.startswith("-")


def settings(options: argparse.Namespace, environ: Mapping[str, str]) -> commands.Settings:
    """What holds for every command: options first, then the environment, then what is usual."""
    environment = Environment.from_env(environ)
    declarations = options.declarations and Path(options.declarations).absolute()
    return commands.Settings(
        environment=environment,
        warehouse=options.warehouse or environment.warehouse or DEFAULT_WAREHOUSE,
        remote=environment.remote if options.remote is None else options.remote,
        declarations=declarations or environment.declarations,
        program=_program(Path(sys.argv[0])),
        terminal_width=shutil.get_terminal_size().columns if sys.stdout.isatty() else None,
    )


def _program(started: Path) -> str:
    """How the user may call this program again."""
    if started.name != "scd":
        return "python -m scd_pipeline"
    near = os.path.relpath(started)
    return "scd" if shutil.which("scd") else str(started.absolute()) if near.startswith("..") else near


def parser() -> argparse.ArgumentParser:
    """The command line: `run` in what it parses is the command's function."""
    made = argparse.ArgumentParser(
        prog="scd",
        description="Slowly changing dimensions on Spark and Delta Lake: exact history from deliveries in any order.",
        epilog=_EXIT_CODES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    _add_common(made, top=True)
    _Commands(made).add_all()
    return made


def _count(text: str) -> int:
    number = int(text)
    if number < 0:
        raise argparse.ArgumentTypeError(f"{text} is below 0; expected how many rows to show, 0 for all")
    return number


def _add_common(parser: argparse.ArgumentParser, *, top: bool) -> None:
    """Options of every command, taken before its name and after it; only those given there replace the former."""
    default = None if top else argparse.SUPPRESS
    group = parser.add_argument_group("where to work")
    group.add_argument(
        "--warehouse", metavar="FOLDER", default=default, help="the tables' folder; else $SCD_WAREHOUSE, ./warehouse"
    )
    group.add_argument(
        "--remote",
        metavar="URL",
        default=default,
        help="a Spark Connect server, sc://host:port; else $SCD_REMOTE, an embedded Spark",
    )
    group.add_argument(
        "--declarations",
        metavar="FOLDER",
        default=default,
        help="the declarations' folder or file; else $SCD_DECLARATIONS, in a clone examples/congress",
    )
    group.add_argument(
        "--debug", action="store_true", default=False if top else default, help="show tracebacks of Spark's errors"
    )


class _Commands:
    """The commands with their arguments."""

    def __init__(self, parser: argparse.ArgumentParser) -> None:
        self._commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)

    def add_all(self) -> None:
        setup = self._add("setup", commands.setup, "fetch what Spark needs besides Python packages, once")
        setup.add_argument(
            "--repository", metavar="URL", help="Maven repository [SCD_MAVEN_REPOSITORY, else Spark's default]"
        )
        doctor = self._add("doctor", commands.doctor, "say what is installed, what is missing, and what to do")
        doctor.add_argument(
            "--spark",
            action=argparse.BooleanOptionalAction,
            default=True,
            help="start Spark, and try how Delta can write (it takes some seconds)",
        )
        self._add("demo", commands.demo, "load a real example by Dagster, and show what came of it")
        self._add_loads()
        self._add_readings()
        check = self._add("check", watching.check, "ask every invariant of the tables, and name what breaks one")
        check.add_argument("what", nargs="?", metavar="TABLE", help="a dimension or a fact; else all that is declared")
        self._add("status", watching.status, "where everything stands: last deliveries, what waits, what is behind")
        dev = self._add("dev", commands.dev, "Dagster's web interface, beside a Spark that stays warm")
        dev.add_argument("--port", type=int, default=3000, help="of the web interface (%(default)s)")

    def _add_loads(self) -> None:
        for name, run, text in (
            ("load", commands.load, "take in what was delivered"),
            ("plan", commands.plan, "say what a load would do, and write nothing"),
        ):
            parser = self._add(name, run, text)
            parser.add_argument(
                "what",
                nargs="?",
                metavar="DIMENSION",
                help="a dimension or fact, or a declaration's file or folder; else everything that is declared",
            )
            parser.add_argument(
                "--delivery",
                action="append",
                default=[],
                metavar="NAME",
                help="only this one, as 2024-01-31, or crm.snapshot.2024-01-31 of one channel alone; may be repeated",
            )
            parser.add_argument(
                "--allow",
                action="append",
                default=[],
                choices=OVERRIDABLE_RULES,
                metavar="RULE",
                help=f"let the deliveries through a rule that stops them: {' or '.join(OVERRIDABLE_RULES)}",
            )

    def _add_readings(self) -> None:
        sql = self._add("sql", asking.sql, "run a query over the tables of the warehouse, by their names")
        sql.add_argument("query", nargs="?", default="", metavar="QUERY", help="else the names of the tables are shown")
        as_of = self._add("as-of", asking.as_of, "the rows that held at a time")
        as_of.add_argument("dimension", metavar="DIMENSION")
        as_of.add_argument("time", metavar="TIME", help="2016-01-01 or 2016-01-01T12:00:00+01:00; UTC without a zone")
        as_of.add_argument("--known-at", metavar="TIME", help="as it was known then, which the audit tells")
        as_of.add_argument(
            "--join",
            metavar="FILE",
            help="the rows of a file, each with what held at its own time; TIME is then the file's column of times",
        )
        as_of.add_argument(
            "--key", action="append", metavar="COLUMN", help="that names a row's entity; else the business key"
        )
        audit = self._add("audit", asking.audit, "what happened to whom, when, by whom and why")
        audit.add_argument("dimension", metavar="DIMENSION")
        history = self._add("history", asking.history, "every version of an entity, with what differs")
        history.add_argument("dimension", metavar="DIMENSION")
        history.add_argument("--all", action="store_true", help="also the columns that are the same in every version")
        for parser in (as_of, history, audit):
            parser.add_argument("where", nargs="*", metavar="COLUMN=VALUE", help="only rows with these values")
        for parser in (sql, as_of, history, audit):
            parser.add_argument("--format", choices=asking.FORMATS, default="table", help="(%(default)s)")
            parser.add_argument(
                "--limit", type=_count, default=1000, metavar="N", help="rows to show, 0 for all (%(default)s)"
            )

    def _add(self, name: str, run: commands.Command, text: str) -> argparse.ArgumentParser:
        parser = self._commands.add_parser(name, help=text, description=text[0].upper() + text[1:] + ".")
        _add_common(parser, top=False)
        parser.set_defaults(run=run)
        return parser
