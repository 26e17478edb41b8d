"""References generated from the code: `python -m scd_pipeline_tests.docs.commands commands|errors|environment`.

The only module of the documentation's tests that depends on the library of the command line.
"""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence

import click

from scd_pipeline.cli import app
from scd_pipeline.conditions import CONDITIONS, DECLARATION_RULES, DECLARATION_WARNINGS
from scd_pipeline.environment import Environment
from scd_pipeline.exit_codes import ExitCode

WIDTH = 80


def run(arguments: Sequence[str]) -> int:
    """Run `scd` with arguments, and return its exit code."""
    return app.main(arguments)


def accepts(line: str) -> bool:
    """Return whether the command line `scd ...` parses."""
    root = app.scd.make_context("scd", shlex.split(line)[1:], obj={}, resilient_parsing=False)
    try:
        name, command, arguments = app.scd.resolve_command(root, [*root._protected_args, *root.args])
        assert name is not None and command is not None
        return bool(command.make_context(name, arguments, parent=root))
    except click.UsageError:
        return False


def names() -> list[str]:
    """Return the names of all commands."""
    return list(app.scd.commands)


def reference() -> str:
    """Return the help texts of all commands as Markdown."""
    return "\n".join(f"## scd {name}\n\n```text\n{_help(name)}\n```\n" for name in names())


def errors() -> str:
    """Return the codes of all errors, with problem and fix, and those of the rules of declarations, as Markdown."""
    conditions = [
        f"## {code}\n\n{_text(condition.problem)}.\n\nFix: {_text(condition.fix)}."
        for code, condition in sorted(CONDITIONS.items())
    ]
    rules = [f"| `{code}` | {rule} |" for code, rule in sorted(DECLARATION_RULES.items())]
    table = ["| code | rule |", "| --- | --- |", *rules]
    heading = (
        "## Rules of declarations\n\nEach error of an INVALID_DECLARATION (`DeclarationError.errors`) has the code of "
        "the rule that it violates."
    )
    warnings = [f"| `{code}` | {advice} |" for code, advice in sorted(DECLARATION_WARNINGS.items())]
    warning_table = ["## Warnings of declarations", "\n".join(["| code | advice |", "| --- | --- |", *warnings])]
    return "\n\n".join([*conditions, heading, "\n".join(table), *warning_table])


def environment() -> str:
    """Return the table of the environment variables as Markdown."""
    rows = [f"| `{each.name}` | {each.meaning} | {each.unset} |" for each in Environment.documented().values()]
    return "\n".join(["| variable | meaning | if it is not set |", "| --- | --- | --- |", *rows])


def exit_codes() -> str:
    """Return the table of the exit codes as Markdown."""
    rows = [f"| {code.value} | {code.meaning} |" for code in ExitCode]
    return "\n".join(["| code | meaning |", "| --- | --- |", *rows])


def _text(text: str) -> str:
    return text.replace("<", "&lt;")


def _help(name: str) -> str:
    root = click.Context(app.scd, info_name="scd")
    return click.Context(app.scd.commands[name], parent=root, info_name=name, max_content_width=WIDTH).get_help()


if __name__ == "__main__":
    print({"commands": reference, "errors": errors, "environment": environment}[sys.argv[1]]())
