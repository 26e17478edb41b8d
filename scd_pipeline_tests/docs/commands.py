"""What the documentation takes from the code: `python -m scd_pipeline_tests.docs.commands commands|errors|environment`.

The only module of the documentation's tests that knows by which library the command line is parsed.
"""

from __future__ import annotations

import argparse
import shlex
import sys
from collections.abc import Sequence

from scd_pipeline.cli import app
from scd_pipeline.conditions import CONDITIONS
from scd_pipeline.environment import Environment

WIDTH = 80


def run(arguments: Sequence[str]) -> int:
    """Run `scd` with arguments, and return its exit code."""
    return app.main(arguments)


def accepts(line: str) -> bool:
    """Return whether the command line `scd ...` parses."""
    try:
        return bool(app.parsed(shlex.split(line)[1:]).run)
    except SystemExit:
        return False


def names() -> list[str]:
    """Return the names of all commands."""
    return list(_parsers())


def reference() -> str:
    """Return the help texts of all commands as Markdown."""
    return "\n".join(f"## scd {name}\n\n```text\n{_help(parser)}```\n" for name, parser in _parsers().items())


def errors() -> str:
    """Return the codes of all errors, with problem and fix, as Markdown."""
    return "\n\n".join(
        f"## {code}\n\n{_text(found.problem)}.\n\nFix: {_text(found.fix)}."
        for code, found in sorted(CONDITIONS.items())
    )


def environment() -> str:
    """Return the table of the environment variables as Markdown."""
    rows = [f"| `{each.name}` | {each.meaning} | {each.unset} |" for each in Environment.documented().values()]
    return "\n".join(["| variable | meaning | if it is not set |", "| --- | --- | --- |", *rows])


def _text(text: str) -> str:
    return text.replace("<", "&lt;")


def _parsers() -> dict[str, argparse.ArgumentParser]:
    (commands,) = (action for action in app.parser()._actions if isinstance(action, argparse._SubParsersAction))
    return dict(commands.choices)


def _help(parser: argparse.ArgumentParser) -> str:
    parser.formatter_class = lambda prog: argparse.HelpFormatter(prog, width=WIDTH)  # type: ignore[assignment]
    return parser.format_help()


if __name__ == "__main__":
    print({"commands": reference, "errors": errors, "environment": environment}[sys.argv[1]]())
