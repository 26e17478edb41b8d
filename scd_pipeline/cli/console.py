"""Messages and progress on the standard error; results never go there.

On a terminal messages have colours and progress is a spinner or a bar. Elsewhere, such as in a pipe or a log, every
message is one plain line. NO_COLOR switches colours off.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console

Report = Callable[[str], None]


def report(message: str) -> None:
    """Print a message to the standard error."""
    _print(message)


def warn(message: str) -> None:
    """Print a warning: the command continues."""
    _print(message, prefix="warning: ", style="yellow")


def error(message: str) -> None:
    """Print an error: the command, or a part of it, failed."""
    _print(message, prefix="error: ", style="bold red")


@contextmanager
def progress(description: str, step: int = 1, steps: int = 1) -> Iterator[Report]:
    """Show that work continues: on a terminal a spinner with the last message, and a bar if there are several steps.

    Args:
        description: The work, such as "loading dim_customer".
        step: The number of this step, from 1.
        steps: The number of steps.

    Yields:
        A function that reports what the work does; elsewhere than on a terminal it prints a line.
    """
    if not sys.stderr.isatty():
        yield report
        return
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    bar = (BarColumn(bar_width=20), MofNCompleteColumn()) if steps > 1 else ()
    columns = (SpinnerColumn(), TextColumn("{task.description}", markup=False), *bar, TimeElapsedColumn())
    # The standard output may be a pipe that must not get what belongs to the terminal, and the reverse.
    with Progress(*columns, console=_terminal(), transient=True, redirect_stdout=False) as bars:
        task = bars.add_task(description, total=steps, completed=step - 1)
        yield lambda message: bars.update(task, description=f"{description}: {message}")


def _print(message: str, *, prefix: str = "", style: str = "") -> None:
    if not sys.stderr.isatty():
        print(f"{prefix}{message}", file=sys.stderr, flush=True)
        return
    from rich.text import Text

    _terminal().print(Text.assemble((prefix, style), message), soft_wrap=True)


@cache
def _terminal() -> Console:
    from rich.console import Console

    return Console(stderr=True, highlight=False)
