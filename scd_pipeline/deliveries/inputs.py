"""Accept the fields of a delivery in any of their forms, and reject all other values."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from datetime import date, datetime
from decimal import Decimal, InvalidOperation
from typing import Any, Protocol

from scd_pipeline.deliveries.arrow import from_arrow_data
from scd_pipeline.deliveries.paths import absolute_path
from scd_pipeline.errors import SourceDataError
from scd_pipeline.instants import to_instant
from scd_pipeline.texts import short_repr


def to_name(value: Any) -> str:
    """Return the name of a delivery: a text as it is, a whole number or a date as text.

    Raises:
        SourceDataError: DELIVERY_NAME for any other value.
    """
    if isinstance(value, date) and not isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    if not isinstance(value, str) or not value.strip():
        raise SourceDataError("DELIVERY_NAME", "delivery", value=short_repr(value))
    return value


def to_time(location: str, value: Any) -> datetime | None:
    """Return the time of a delivery in UTC, None for None.

    Raises:
        SourceDataError: DELIVERY_TIME for a value that is not a time.
    """
    time = to_instant(value)
    if time is None and value is not None:
        raise SourceDataError("DELIVERY_TIME", location, value=short_repr(value))
    return time


def to_revision(location: str, value: Any) -> str | int | datetime:
    """Return the revision: a text, a number or a datetime; a date is the time at its beginning.

    Raises:
        SourceDataError: DELIVERY_REVISION for any other value, a negative number, and a text that is empty or has `/`.
    """
    if isinstance(value, date) and not isinstance(value, datetime):
        return datetime(value.year, value.month, value.day)
    is_number = isinstance(value, int) and not isinstance(value, bool) and value >= 0
    is_text = isinstance(value, str) and bool(value) and "/" not in value
    if is_number or is_text or isinstance(value, datetime):
        return value  # type: ignore[no-any-return]
    raise SourceDataError("DELIVERY_REVISION", location, value=short_repr(value))


def to_path(location: str, value: Any) -> str | None:
    """Return a path as text, None for None; a relative one starts from the current folder of this process.

    A Spark server, whose current folder is another one, reads it too.

    Raises:
        SourceDataError: DELIVERY_PATH for any other value.
    """
    if value is None:
        return None
    path = os.fspath(value) if isinstance(value, (str, os.PathLike)) else None
    if not isinstance(path, str) or not path:
        raise SourceDataError("DELIVERY_PATH", location, value=short_repr(value))
    return absolute_path(path)


def to_names(location: str, value: Any) -> frozenset[str]:
    """Return the name of a rule, or several, as a set; a hyphen, as the command line has it, is an underscore.

    Raises:
        SourceDataError: DELIVERY_ALLOW for a value that is neither.
    """
    names = [value] if isinstance(value, str) else value
    if not isinstance(names, Iterable) or isinstance(names, Mapping):
        raise SourceDataError("DELIVERY_ALLOW", location, value=short_repr(value))
    names = list(names)
    if not all(isinstance(name, str) for name in names):
        raise SourceDataError("DELIVERY_ALLOW", location, value=short_repr(value))
    return frozenset(name.replace("-", "_") for name in names)


def to_totals(location: str, value: Any) -> dict[str, str] | None:
    """Return control totals as texts of exact numbers by name, None for None.

    Raises:
        SourceDataError: DELIVERY_TOTALS for anything else, such as a floating-point number, which may not be exact.
    """
    if value is None:
        return None
    if not isinstance(value, Mapping) or not all(isinstance(name, str) for name in value):
        raise SourceDataError("DELIVERY_TOTALS", location, value=short_repr(value))
    for total in value.values():
        is_exact = isinstance(total, (str, int, Decimal)) and not isinstance(total, bool)
        if not is_exact or exact_number(str(total)) is None:
            raise SourceDataError("DELIVERY_TOTALS", location, value=short_repr(total))
    return {name: str(total) for name, total in value.items()}


def exact_number(text: str) -> Decimal | None:
    """Return the number that a text is, None if it is not a finite one."""
    try:
        number = Decimal(text)
    except InvalidOperation:
        return None
    return number if number.is_finite() else None


def check_texts(location: str, fields: Mapping[str, Any]) -> None:
    """Check fields that are texts or None.

    Raises:
        SourceDataError: DELIVERY_TEXT for any other value.
    """
    for name, value in fields.items():
        if value is not None and not isinstance(value, str):
            raise SourceDataError("DELIVERY_TEXT", location, field=name, value=short_repr(value))


def to_frame(location: str, frame: Any) -> Any:
    """Return the rows of a delivery as a Spark or pandas DataFrame, a pyarrow Table, or a list of dicts; None for None.

    Raises:
        SourceDataError: DELIVERY_FRAME for rows of no known kind.
    """
    rows = to_known_rows(frame)
    if rows is not None and not (is_frame(rows) or is_rows(rows)):
        raise SourceDataError("DELIVERY_FRAME", location, type=type(frame).__name__)
    return rows


class ArrowStream(Protocol):
    """Rows in the memory of another library, by Arrow's PyCapsule interface."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Return a capsule with a pointer to the rows."""


def to_known_rows(value: Any) -> Any:
    """Return rows of other libraries as a pyarrow Table, and those of an iterator as a list; any other value unchanged.

    Polars, DuckDB and pyarrow's readers have Arrow's PyCapsule interface.
    """
    if is_frame(value):
        return value
    if not (hasattr(value, "__arrow_c_stream__") or hasattr(value, "__arrow_c_array__")):
        return list(value) if isinstance(value, Iterator) else value
    import pyarrow

    try:
        return from_arrow_data(value)
    except (pyarrow.ArrowException, TypeError):  # a single column
        return value


def is_frame(value: object) -> bool:
    """Return whether the value is a Spark or pandas DataFrame, or a pyarrow Table."""
    kinds = {f"{kind.__module__.partition('.')[0]}.{kind.__name__}" for kind in type(value).__mro__}
    return not kinds.isdisjoint({"pyspark.DataFrame", "pandas.DataFrame", "pyarrow.Table"})


def is_rows(value: object) -> bool:
    """Return whether the value is a list of dicts, each from column names to values."""
    if not isinstance(value, (list, tuple)):
        return False
    return all(isinstance(row, Mapping) and all(isinstance(name, str) for name in row) for row in value)
