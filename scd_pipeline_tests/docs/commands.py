"""Write the references that are generated from the code into the pages: `python -m scd_pipeline_tests.docs.commands`.

The only module of the documentation's tests that depends on the library of the command line.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import click

from scd_pipeline.cli import app
from scd_pipeline.conditions import CONDITIONS, DECLARATION_RULES, DECLARATION_WARNINGS
from scd_pipeline.environment import Environment
from scd_pipeline.exit_codes import ExitCode
from scd_pipeline_tests.docs.blocks import ROOT

WIDTH = 80
_SPECIAL = re.compile(r"`[^`]*`|<")
"""A span of code, or the beginning of an HTML tag outside of one."""


def run(arguments: Sequence[str]) -> int:
    """Run `scd` with arguments, and return its exit code."""
    return app.main(arguments)


def accepts(line: str) -> bool:
    """Return whether the command line `scd ...` parses."""
    context = app.scd.make_context("scd", shlex.split(line)[1:], obj={}, resilient_parsing=False)
    try:
        while isinstance(context.command, click.Group):
            name, command, arguments = context.command.resolve_command(
                context, [*context._protected_args, *context.args]
            )
            assert name is not None and command is not None
            context = command.make_context(name, arguments, parent=context)
    except click.UsageError:
        return False
    return True


def names() -> list[str]:
    """Return the names of all commands."""
    return list(app.scd.commands)


def reference() -> str:
    """Return the help texts of all commands as Markdown."""
    contexts = [each for name, command in app.scd.commands.items() for each in _contexts(name, command, _root())]
    return "\n\n".join(f"### {each.command_path}\n\n```text\n{each.get_help()}\n```" for each in contexts)


def errors() -> str:
    """Return the codes of all errors, with problem and fix, and those of the rules of declarations, as Markdown."""
    conditions = [
        f"## {code}\n\n{escape(condition.problem)}.\n\nFix: {escape(condition.fix)}."
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


REFERENCES: Mapping[str, tuple[str, Callable[[], str]]] = {
    "commands": ("cli.md", reference),
    "environment": ("cli.md", environment),
    "exit codes": ("cli.md", exit_codes),
    "errors": ("errors.md", errors),
}
"""For each reference its page in `docs/reference`, and the function that generates it."""


def page_text(name: str) -> str:
    """Return the text of the page with a reference."""
    return _page(name).read_text(encoding="utf-8")


def reference_block(name: str) -> str:
    """Return a reference between the comments around it in its page."""
    _, generate = REFERENCES[name]
    return f"<!-- generated: {name} -->\n\n{generate()}\n\n<!-- end of {name} -->"


def write() -> None:
    """Replace each reference in its page."""
    for name in REFERENCES:
        pattern = re.compile(rf"<!-- generated: {name} -->.*?<!-- end of {name} -->", re.DOTALL)
        text = reference_block(name)
        _page(name).write_text(pattern.sub(lambda _, text=text: text, page_text(name)), encoding="utf-8")


def _page(name: str) -> Path:
    page, _ = REFERENCES[name]
    return ROOT / "docs" / "reference" / page


def escape(text: str) -> str:
    """Return a text whose `<` outside of code begin no HTML tag."""
    return _SPECIAL.sub(lambda match: "&lt;" if match[0] == "<" else match[0], text)


def _root() -> click.Context:
    return click.Context(app.scd, info_name="scd", **app.scd.context_settings)


def _contexts(name: str, command: click.Command, parent: click.Context) -> list[click.Context]:
    """Return the context of a command, or those of the commands in a group."""
    context = click.Context(command, parent=parent, info_name=name, terminal_width=WIDTH)
    if not isinstance(command, click.Group):
        return [context]
    return [each for inner, part in command.commands.items() for each in _contexts(inner, part, context)]


if __name__ == "__main__":
    write()
