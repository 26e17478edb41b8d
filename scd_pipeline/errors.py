"""Every error a caller may meet, and the exit code of the command that meets it.

All of them are shown without a traceback: the message says what was wrong, where, what was
expected and what to do.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from scd_pipeline.conditions import CONDITIONS

OVERRIDABLE_RULES = ("bad_rows", "retire_guard")
"""The rules that can be let through, as `Delivery.allow` names them (S26, S27)."""


class ScdError(Exception):
    """An error of this package, with the stable code of its condition (`conditions.CONDITIONS`).

    Args:
        code: The code of the condition, as `RETIRE_GUARD`.
        location: Where the problem is: file and line, or table, batch, column and key.
        details: Values of the placeholders in the texts of the condition; `fix` replaces the condition's own fix.
    """

    exit_code: ClassVar[int] = 1

    def __init__(self, code: str, location: str = "", **details: object) -> None:
        super().__init__(code, location)
        self.code = code
        self.location = location
        self.details = details

    @property
    def problem(self) -> str:
        """What is wrong, and what was expected."""
        condition = CONDITIONS.get(self.code)
        return condition.problem.format_map(self.details) if condition else self.code

    @property
    def fix(self) -> str:
        """What a user does about it."""
        condition = CONDITIONS.get(self.code)
        return str(self.details.get("fix") or condition.fix.format_map(self.details)) if condition else ""

    def __str__(self) -> str:
        if self.code not in CONDITIONS:  # until every error has its condition
            return self.code
        location = f"{self.location}: " if self.location else ""
        return f"[{self.code}] {location}{self.problem}; {self.fix}"

    def __reduce__(self) -> tuple[Callable[..., object], tuple[object, ...]]:
        return _restore, (type(self), dict(self.__dict__))


def _restore(kind: type[ScdError], state: Mapping[str, Any]) -> ScdError:
    """Return a copy of an error that was sent from another process."""
    error = kind.__new__(kind)
    error.__dict__.update(state)
    return error


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing that is wrong in a declaration, and what would be right (S28)."""

    where: str
    field: str
    wrong: str
    right: str

    def __str__(self) -> str:
        return f"{self.where}: {self.field}: {self.wrong}; {self.right}"


class DeclarationError(ScdError):
    """A declaration is wrong; carries all of its faults, and shows one per line (S28)."""

    exit_code = 2

    def __init__(self, faults: Iterable[Fault]) -> None:
        self.faults: tuple[Fault, ...] = tuple(faults)
        super().__init__("INVALID_DECLARATION")

    def __str__(self) -> str:
        return "\n".join(str(fault) for fault in self.faults)


class SourceDataError(ScdError):
    """A delivery cannot be taken; the message names source, delivery and keys."""

    exit_code = 3


_LET_THROUGH = (
    'let it through by allow "{}": `scd load --allow`, `allow` in Dagster\'s run configuration, or of the Delivery'
)
# What a steward does about a stopped batch, where the rule alone decides it.
_REMEDIES = {
    "bad_rows": f"mend the rows and deliver a higher revision, or {_LET_THROUGH.format('bad_rows')}",
    "retire_guard": f"deliver the whole snapshot again, or {_LET_THROUGH.format('retire_guard')}",
    "unordered changes": (
        "declare a `sequence` column that orders the changes, or `ties` that decide between them, or deliver one "
        "change per key"
    ),
    "row order": "deliver one file, or a pandas or Arrow frame; or declare a `sequence` column in place of `last_row`",
    "no time": "deliver it under a date, as 2024-01-31, or as a feed whose rows have times of their own",
    "open end": "deliver it under the time that it is of, or declare a later `open_end`",
    "revision": "give a revision higher than the standing one, or withdraw the delivery first",
    "unreadable": "deliver it whole under a higher revision, or withdraw it",
    "missing": "deliver it again, or leave it: the next load no longer finds it",
    "lower revision": "if it is the corrected one, deliver it under a higher revision",
    "other type": "deliver the column as the declared type, or as text; or give an `expression` that makes it one",
    "repeated column": "deliver each column under a name of its own",
    "expression": "mend the row, or write the expression so that it bears such a value, as with try_cast",
    "missing column": "deliver the column; an attribute that may lack it is declared `missing: not_provided` or `null`",
}


class BatchRejected(SourceDataError):
    """A batch was stopped by a rule before anything was written (S4, S5, S20, S26, S27, S29, S34)."""

    def __init__(self, batch: str, rule: str, wrong: str, remedy: str = "") -> None:
        self.batch = batch
        self.rule = rule
        self.wrong = wrong
        self.remedy = remedy or _REMEDIES.get(rule, "mend the delivery and load it again")
        super().__init__("BATCH_REJECTED", batch)

    def __str__(self) -> str:
        return f"{self.batch}: stopped ({self.rule}): {self.wrong}; {self.remedy}"


class LoadError(ScdError):
    """The load failed, by our fault or by the store's."""

    exit_code = 4


class ConflictError(LoadError):
    """A rival committed first: plan anew from the table as it is now, and try again."""


class RetriesExhausted(LoadError):
    """Rivals kept committing first, or the store kept failing, for as many tries as were allowed."""


class KeyCollision(LoadError):
    """Two versions hash to one surrogate key; nothing was written; declare a `key_salt` (S14)."""


class InvariantBroken(LoadError):
    """A result would break a promise of the tables (S2, S3); nothing was written."""


class UnsupportedDelta(LoadError):
    """This server's Delta can write neither in the fast nor in the slow way (S32)."""


class CommitStateUnknown(LoadError):
    """It is not known whether a commit was made; look at the table before running again."""


class ForeignCommitError(LoadError):
    """A commit of another program changed the rows of a table; nothing was written on top of it."""


class HighWaterMarkError(LoadError):
    """A table has applied commits that its upstream table does not have: the upstream was lost or replaced."""


class PipelineCommitMissing(LoadError):
    """A commit that the log says was made is not in the table: it was restored or rewritten."""


class UsageError(ScdError):
    """What was asked for cannot be done; the message says what can."""

    exit_code = 2


class SetupError(ScdError):
    """Java, jars, a session or a setting is missing or names what is not ours; the message says what to do."""

    exit_code = 5


def first_line(error: BaseException) -> str:
    """What an error says first, as Spark's go on for pages; its kind where it says nothing."""
    return next((line for line in str(error).splitlines() if line.strip()), type(error).__name__)


_VALUE_ERROR = re.compile(r"\[(?P<name>[A-Z0-9_.]+)\].*?SQLSTATE: (?:22|23|P0)", re.DOTALL)
"""Of Spark's errors those of values: data exceptions, broken constraints, and errors that an expression raised."""


def value_error_name(error: BaseException) -> str | None:
    """Return the name of an error of Spark whose message repeats values of rows (S31); None for any other error."""
    found = _VALUE_ERROR.search(str(error))
    return found["name"] if found else None


def exit_code(error: BaseException) -> int:
    """The exit code of a command that ends with this error: 1 for any that is not ours."""
    return error.exit_code if isinstance(error, ScdError) else 1
