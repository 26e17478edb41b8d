"""The command `scd`: its commands, and the exit code of each outcome.

Results go to the standard output, everything else to the standard error. Modules of commands import Spark, Dagster and
pandas only inside the commands that need them, so that the others answer at once.
"""

from __future__ import annotations

import io
import logging
import os
import sys
from collections.abc import Sequence

import click

from scd_pipeline.cli import checklist, health, loads, machine, project, queries, timed
from scd_pipeline.cli.console import error as print_error
from scd_pipeline.cli.console import report
from scd_pipeline.cli.context import common_options
from scd_pipeline.cli.spark_errors import failure_message
from scd_pipeline.errors import ScdError
from scd_pipeline.exit_codes import ExitCode

_SECTIONS: dict[str, tuple[click.Command, ...]] = {
    "Load": (loads.load, loads.plan, loads.withdraw),
    "Query": (queries.as_of, queries.history, queries.audit, queries.bad_rows, queries.sql, timed.log),
    "Operate": (
        health.status,
        health.check,
        checklist.checklist,
        health.repair,
        health.archive,
        machine.dev,
        machine.server,
    ),
    "Set up": (machine.setup, machine.doctor, project.init, project.json_schema, project.completion, project.version),
}


class _SectionedGroup(click.Group):
    """A group that lists its commands in sections, and the exit codes."""

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002 (click's)
        """Write a section for each group of commands."""
        limit = formatter.width - 6 - max(len(name) for name in self.commands)
        for title, commands in _SECTIONS.items():
            with formatter.section(title):
                formatter.write_dl([(str(c.name), c.get_short_help_str(limit)) for c in commands])

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002 (click's)
        """Write the table of exit codes."""
        with formatter.section("Exit codes"):
            formatter.write_dl([(str(code.value), code.meaning) for code in ExitCode])


@click.group(cls=_SectionedGroup, context_settings={"help_option_names": ["-h", "--help"]})
@common_options
def scd() -> None:
    """Load, query and check slowly changing dimensions on Spark and Delta Lake."""


for _commands in _SECTIONS.values():
    for _command in _commands:
        scd.add_command(_command)


def _is_not_from_py4j(record: logging.LogRecord) -> bool:
    """Return whether a record is not from py4j, which logs its errors in addition to raising them, as at Ctrl-C."""
    return record.module != "java_gateway"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run `scd` and return its exit code."""
    options: dict[str, object] = {}
    logging.getLogger().addFilter(_is_not_from_py4j)
    for stream in (sys.stdout, sys.stderr):  # the encoding of a terminal may lack characters of the rows
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    try:
        return int(scd.main(arguments, prog_name="scd", standalone_mode=False, obj=options) or ExitCode.DONE)
    except ScdError as error:
        print_error(str(error))
        return error.exit_code
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except click.Abort:
        report("interrupted; uncommitted changes were discarded; run the same command again to continue")
        return ExitCode.INTERRUPTED
    except BrokenPipeError:  # the reader of the results has closed the pipe
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return ExitCode.DONE
    except Exception as error:
        message = None if options.get("debug") else _message(error)
        if message is None:
            raise
        print_error(message)
        return ExitCode.NOT_SET_UP if isinstance(error, OSError) else ExitCode.FAILED


def _message(error: Exception) -> str | None:
    """Return the message of an error about a file, or of Spark; None for any other error."""
    if isinstance(error, OSError) and error.filename is not None:
        return f"{error.filename}: {error.strerror}; expected access to it; check its path and permissions"
    return failure_message(error)
