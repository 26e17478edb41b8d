"""Exit codes of `scd`; each class of `ScdError` has one of them."""

from __future__ import annotations

from enum import IntEnum


class ExitCode(IntEnum):
    """What the exit code of a command means."""

    def __new__(cls, value: int, meaning: str) -> ExitCode:
        code = int.__new__(cls, value)
        code._value_ = value
        code.meaning = meaning
        return code

    meaning: str

    DONE = 0, "the command succeeded"
    INTERNAL = 1, "internal error with a traceback; please report it"
    USAGE = 2, "invalid argument, declaration or query"
    REJECTED = 3, "a delivery was rejected or cannot be read"
    FAILED = 4, "a load, a check or a checklist failed, or a table is damaged"
    NOT_SET_UP = 5, "software, a server, a table or a setting is missing"
    INTERRUPTED = 130, "interrupted (Ctrl-C)"
