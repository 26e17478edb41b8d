"""Spark's errors as messages for users: without plans, stack traces and values of rows."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterator, Sequence

from scd_pipeline.cli.read_only import AS_QUERY
from scd_pipeline.errors import UsageError, message_text, value_error_name, value_error_text
from scd_pipeline.texts import did_you_mean

_NO_TEXT = "`QUERY` cannot be found"
"""If the text is a single name or empty, Spark reads the word before it as a table."""
_TABLE_NOT_FOUND = re.compile(r"TABLE_OR_VIEW_NOT_FOUND\].*?`(?P<name>[^`]+)` cannot be found", re.DOTALL)


def spark_message(error: BaseException) -> str | None:
    """Return Spark's message without plans and stack traces; None for an error that is not Spark's."""
    if not type(error).__module__.startswith(("pyspark.", "py4j.")):
        return None
    text = message_text(error).split("JVM stacktrace:")[0].split("\n\tat ")[0].strip()
    if "== SQL" in text:
        return text
    return re.split(r";?\n(?='|\+-|:|[A-Z]\w+ )", text)[0].strip()


def failure_message(error: BaseException) -> str | None:
    """Return Spark's message about a command that failed, without values of rows; None for another error."""
    if (message := spark_message(error)) is None:
        return None
    name = value_error_name(error)
    return f"{value_error_text(name)}; run the command with --debug to see Spark's message" if name else message


@contextlib.contextmanager
def query_errors(names: Callable[[], Sequence[str]], *, location: str = "query", check: bool = False) -> Iterator[None]:
    """Turn Spark's errors about a query, or about the rows of a file, into a UsageError without a stack trace.

    Args:
        names: Returns the names of the tables that a query can read.
        location: The query or the file.
        check: Whether the query is checked by `read_only.require_query`, which puts a line before it.
    """
    from pyspark.errors import ParseException, PySparkException

    try:
        yield
    except PySparkException as error:
        message = spark_message(error) or str(error)
        message = _without_first_line(message) if check else message
        if check and (isinstance(error, ParseException) or _NO_TEXT in message):
            raise UsageError("QUERY_EXPECTED", location, message=message) from error
        raise UsageError("QUERY_FAILED", location, message=message + _hint(message, names)) from error


def _hint(message: str, names: Callable[[], Sequence[str]]) -> str:
    missing = _TABLE_NOT_FOUND.search(message)
    return f"\n{did_you_mean(missing['name'], names())}" if missing else ""


def _without_first_line(message: str) -> str:
    """Return Spark's message about a text as it would be without the line that was put before it."""
    numbered = re.sub(r"\bline (\d+)(?=,? pos)", lambda match: f"line {int(match[1]) - 1}", message)
    return numbered.replace(AS_QUERY, "")
