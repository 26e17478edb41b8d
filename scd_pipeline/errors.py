"""The errors of this package, each with the exit code of a command that fails with it.

Commands print them without a traceback: the message contains the location, the problem, the expectation and the fix.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from scd_pipeline.conditions import CONDITIONS, DECLARATION_RULES, DECLARATION_WARNINGS
from scd_pipeline.exit_codes import ExitCode

OVERRIDABLE_RULES = ("bad_rows", "retire_guard", "control_totals", "withdrawn")
"""The rules that `Delivery.allow` can override: those by which batches are rejected (S26, S27, S41), and that a
withdrawn delivery remains so (S34)."""


class ScdError(Exception):
    """An error of this package, with the stable code of its condition (`conditions.CONDITIONS`).

    Args:
        code: The code of the condition, such as `RETIRE_GUARD`.
        location: Where the problem is: file and line, or table, batch, column and key.
        details: Values of the placeholders in the texts of the condition; `fix` replaces the condition's own fix.

    Raises:
        KeyError: The code has no condition.
    """

    exit_code: ClassVar[ExitCode] = ExitCode.INTERNAL

    def __init__(self, code: str, location: str = "", **details: object) -> None:
        super().__init__(code, location)
        self.condition = CONDITIONS[code]
        self.code = code
        self.location = location
        self.details = details

    @property
    def problem(self) -> str:
        """What is wrong, and what was expected."""
        return self.condition.problem.format_map(self.details)

    @property
    def fix(self) -> str:
        """How to fix it."""
        return str(self.details.get("fix") or self.condition.fix.format_map(self.details))

    def __str__(self) -> str:
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
class _DeclarationProblem:
    """A field of a declaration, its problem, and the fix; `code` is one of `_CODES`."""

    _CODES: ClassVar[Mapping[str, str]]

    code: str
    location: str
    field: str
    problem: str
    fix: str

    def __post_init__(self) -> None:
        if self.code not in self._CODES:
            raise KeyError(self.code)

    def __str__(self) -> str:
        return f"{self.location}: {self.field}: {self.problem}; {self.fix}"


class ValidationError(_DeclarationProblem):
    """One problem in a declaration, with the stable code of its rule, and how to fix it (S28).

    Raises:
        KeyError: The code is not one of `conditions.DECLARATION_RULES`.
    """

    __slots__ = ()
    _CODES = DECLARATION_RULES


class DeclarationWarning(_DeclarationProblem):
    """One part of a valid declaration that is rarely intended, and how to change or confirm it.

    Raises:
        KeyError: The code is not one of `conditions.DECLARATION_WARNINGS`.
    """

    __slots__ = ()
    _CODES = DECLARATION_WARNINGS

    def __str__(self) -> str:
        return f"[{self.code}] {super().__str__()}"


class DeclarationError(ScdError):
    """An invalid declaration, with all of its errors; the message has one line for each (S28)."""

    exit_code = ExitCode.USAGE

    def __init__(self, errors: Iterable[ValidationError]) -> None:
        self.errors: tuple[ValidationError, ...] = tuple(errors)
        super().__init__("INVALID_DECLARATION", count=len(self.errors))

    def __str__(self) -> str:
        return "\n".join(str(error) for error in self.errors)


@dataclass(frozen=True, slots=True)
class LoadWarning:
    """A warning of a complete load about what is rarely intended, with the stable code of its condition.

    Attributes:
        code: The code of the condition, such as `RAPID_CHANGE`.
        location: The table, the attribute and the batch.
        details: Values of the placeholders in the texts of the condition.

    Raises:
        KeyError: The code has no condition.
    """

    code: str
    location: str
    details: Mapping[str, object]

    def __post_init__(self) -> None:
        if self.code not in CONDITIONS:
            raise KeyError(self.code)

    @property
    def problem(self) -> str:
        """What is unusual, and what was expected."""
        return CONDITIONS[self.code].problem.format_map(self.details)

    @property
    def fix(self) -> str:
        """How to fix it."""
        return CONDITIONS[self.code].fix.format_map(self.details)

    def __str__(self) -> str:
        return f"[{self.code}] {self.location}: {self.problem}; {self.fix}"


class SourceDataError(ScdError):
    """A delivery cannot be loaded."""

    exit_code = ExitCode.REJECTED


class BatchRejected(SourceDataError):
    """A batch is rejected before anything of it is written (S4, S5, S20, S26, S27, S29, S34); `location` is its id."""

    def __init__(self, code: str, batch: str, **details: object) -> None:
        super().__init__(code, batch, **details)
        self.batch = batch
        self.others = 0

    def __str__(self) -> str:
        return f"{super().__str__()} (other rejected batches: {self.others})" if self.others else super().__str__()


class LoadError(ScdError):
    """A load failed, because of this package or of the storage."""

    exit_code = ExitCode.FAILED


class ConflictError(LoadError):
    """Another writer committed first; a load recomputes its plan from the new state of the table."""


class RetriesExhausted(LoadError):
    """Each attempt met a write conflict, lost computed rows or read an expired table version."""


class DeadlineExceeded(LoadError):
    """The time of a load was over before its next step; the next load continues from its commits."""


class KeyCollision(LoadError):
    """Two versions have the same surrogate key, or a version has a reserved one (S14)."""


class InvariantViolated(LoadError):
    """A result would violate an invariant of the tables (S2, S3)."""


class UnsupportedDelta(LoadError):
    """A table or the server's Delta does not support a required way to write rows (S32)."""


class ForeignCommitError(LoadError):
    """Another program changed the rows of a table."""


class HighWaterMarkError(LoadError):
    """A table has applied commits that its upstream table does not have: the upstream was lost or replaced."""


class DataFilesLost(LoadError):
    """Data files that a table needs do not exist."""


class PipelineCommitMissing(LoadError):
    """The history of a table has no pipeline commit left."""


class UsageError(ScdError):
    """A command or a call has an invalid argument."""

    exit_code = ExitCode.USAGE


class SetupError(ScdError):
    """Software, a session, a setting or a table is missing or invalid."""

    exit_code = ExitCode.NOT_SET_UP


_PY4J_PREFIX = re.compile(r"An error occurred while calling \S+\.\n: ")
"""Matches what py4j writes before the message of an error of Java."""


def message_text(error: BaseException) -> str:
    """Return the message of an error; if it is an error of Java, without the text that py4j puts before it."""
    return _PY4J_PREFIX.sub("", str(error), count=1)


def first_line(error: BaseException) -> str:
    """Return the first line of an error's message, as Spark's have many; the name of its class if it has no message."""
    return next((line for line in message_text(error).splitlines() if line.strip()), type(error).__name__)


_VALUE_ERROR = re.compile(r"\[(?P<name>[A-Z0-9_.]+)\].*?SQLSTATE: (?:22|23|P0)", re.DOTALL)
"""Matches Spark's errors about values: data exceptions, broken constraints, and errors raised by an expression."""


def value_error_name(error: BaseException) -> str | None:
    """Return the name of an error of Spark whose message repeats values of rows (S31); None for any other error."""
    match = _VALUE_ERROR.search(str(error))
    return match["name"] if match else None


def value_error_text(name: str) -> str:
    """Return the text that replaces the message of such an error."""
    return f"[{name}] Spark cannot process a value of a row (the value is not shown, as it may be personal)"
