"""Run the blocks of a page in order, as a reader would.

A block with a title is written to that file, a block of shell is executed, and a block of text after it is the output
that the commands are expected to print. With SCD_UPDATE_DOCS=1 the actual output is written into the page.
"""

from __future__ import annotations

import contextlib
import os
import re
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from io import StringIO
from pathlib import Path
from unittest import mock

from scd_pipeline_tests.docs import commands
from scd_pipeline_tests.docs.blocks import Block, blocks

INHERITED = ("SCD_HOME", "SCD_SERVER")
"""Variables of this package that a page's commands get from the test's environment."""

NOT_RUN = ("make", "pip", "mkdir", "cd")
NOT_RUN_NOTE = "not run"
"""The note of a block whose commands do not end by themselves, such as `scd dev`."""

OUTPUT = "output of: "
"""The note of a block that shows the output of a command before the page comes to the command."""

VARYING = (
    (re.compile(r"; \d+\.\d s$", flags=re.MULTILINE), ""),
    (re.compile(r"\b1[78]\d{14}\b"), "1706745600000000"),
)
"""Patterns of what differs from run to run, with their replacements: durations and times of files."""


Run = Callable[[Sequence[str]], int]
"""Runs `scd` with arguments, prints what it prints, and returns its exit code."""


def run_page(
    page: Path,
    folder: Path,
    remote: str,
    events: Mapping[str, Callable[[Path], None]] | None = None,
    run: Run = commands.run,
) -> None:
    """Run all blocks of a page in a folder, and compare the output with that on the page.

    Args:
        page: Page to run.
        folder: Empty folder in which the commands run.
        remote: Address of a Spark Connect server; empty for an embedded Spark.
        events: What happens before the first command of a section, by its heading: a function of the folder.
        run: How a command of this package is run, by default in this process.
    """
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("SCD_") or name in INHERITED}
    environ = {**inherited, "SCD_REMOTE": remote, "PWD": str(folder)}
    with _in_folder(folder), mock.patch.dict(os.environ, environ, clear=True):
        differences = _run(page, folder, dict(events or {}), run)
    if os.environ.get("SCD_UPDATE_DOCS"):
        _update(page, differences)
    else:
        assert [(block.text, output) for block, output in differences] == []


def _run(page: Path, folder: Path, events: dict[str, Callable[[Path], None]], run: Run) -> list[tuple[Block, str]]:
    differences = []
    output: str | None = None
    ahead = [block for block in blocks(page) if block.note.startswith(OUTPUT)]
    for block in blocks(page):
        if block.title:
            path = folder / block.title
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(block.text, encoding="utf-8")
        elif block.language == "sh" and block.note != NOT_RUN_NOTE:
            if event := events.pop(block.section, None):
                event(folder)
            outputs = [(command, _execute(command, block, folder, run)) for command in block.commands]
            output = "".join(text for _, text in outputs)
            for command, text in outputs:
                if first := next((each for each in ahead if each.note == OUTPUT + command), None):
                    ahead.remove(first)
                    differences += [(first, text)] if first.text != text else []
        elif block.language == "text" and output is not None:
            differences += [(block, output)] if block.text != output else []
            output = None
    assert not events, f"{page}: no section of these names has commands: {', '.join(events)}"
    assert not ahead, f"{page}: no command has these outputs: {', '.join(block.note for block in ahead)}"
    return sorted(differences, key=lambda difference: difference[0].start)


def _execute(command: str, block: Block, folder: Path, run: Run) -> str:
    program, *arguments = shlex.split(command)
    if program in NOT_RUN:
        return ""
    if program == "export":
        name, _, value = arguments[0].partition("=")
        os.environ[name] = os.path.expandvars(value)
        return ""
    out, errors = StringIO(), StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(errors):
        code = run(arguments)
    expected = int(block.note.removeprefix("exit code: ")) if block.note else 0
    assert code == expected, f"{block.name}: {command}: exit code {code}\n{out.getvalue()}{errors.getvalue()}"
    _, error, message = errors.getvalue().partition("error:")
    return _stable(out.getvalue() + (error + message if code else ""), folder)


def _stable(text: str, folder: Path) -> str:
    text = text.replace(f"{folder}/", "")
    for pattern, value in VARYING:
        text = pattern.sub(value, text)
    return "".join(f"{line.rstrip()}\n" for line in text.splitlines())


def _update(page: Path, differences: list[tuple[Block, str]]) -> None:
    text = page.read_text(encoding="utf-8")
    for block, output in reversed(differences):
        text = text[: block.start] + output + text[block.start + len(block.text) :]
    page.write_text(text, encoding="utf-8")


@contextlib.contextmanager
def _in_folder(folder: Path) -> Iterator[None]:
    before = Path.cwd()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)
