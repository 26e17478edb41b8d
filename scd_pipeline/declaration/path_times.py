"""Dates and times in paths and in the values of partitions, and the forms in which they are written (S4).

A form is text with directives of `strftime`, such as `%Y%m%d`. Each directive has a fixed number of digits, so that a
time has exactly one text in a form.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime, time

from scd_pipeline.texts import short_repr

FORMS = {"date": "%Y-%m-%d", "datetime": "%Y-%m-%dT%H-%M-%S"}
"""The form of each placeholder of a path that declares none."""
_DIGITS = {"Y": 4, "y": 2, "m": 2, "d": 2, "H": 2, "M": 2, "S": 2}
_DATE_DIRECTIVES, _TIME_DIRECTIVES = ("%Y", "%y", "%m", "%d"), ("%H", "%M", "%S")
_DIRECTIVE = re.compile(r"%(.?)", re.DOTALL)
_CENTURY = 2000
"""The century of the two digits of `%y`."""
_TIME_OF_DAY = re.compile(r"\d{2}:\d{2}(:\d{2})?", re.ASCII)
# Letters of Spark's patterns and of other tools; the longer ones come first.
_LETTERS = {"yyyy": "%Y", "YYYY": "%Y", "yy": "%y", "YY": "%y", "MM": "%m", "dd": "%d", "DD": "%d", "HH": "%H"}
_LETTERS |= {"mm": "%M", "ss": "%S", "SS": "%S", "'": ""}
_DAYS = [gap.join(parts) for gap in ("", "-", "_", ".", " ") for parts in (("%Y", "%m", "%d"), ("%d", "%m", "%Y"))]
_DAYS += [gap.join(parts) for gap in ("", "-", "_", ".") for parts in (("%m", "%d", "%Y"), ("%y", "%m", "%d"))]
_DAYS += ["%d%m%y", "%m%d%y", "%d-%m-%y", "%d.%m.%y"]
_CLOCKS = ["%H%M%S", "%H-%M-%S", "%H:%M:%S", "%H_%M_%S", "%H.%M.%S", "%H%M", "%H-%M", "%H:%M", "%H"]
_COMMON_FORMS = [
    *_DAYS,
    *(f"{day}{gap}{clock}" for day in _DAYS for gap in ("T", "_", "-", " ", "") for clock in _CLOCKS),
]


@dataclass(frozen=True, slots=True)
class PathTime:
    """A date or a time that was read from a path or a partition.

    Attributes:
        name: The text of the time in the default form, by which the delivery is named, whatever the declared form is.
        time: The time without a zone; None if it does not exist in the calendar.
        is_date: Whether it has no time of day.
    """

    name: str
    time: datetime | None
    is_date: bool


def form_expression(form: str) -> str:
    """Return the regular expression of texts in a valid form; each directive is a group of its own."""
    pieces = re.split(r"%([YymdHMS])", form)
    return "".join(rf"(?P<{p}>[0-9]{{{_DIGITS[p]}}})" if i % 2 else re.escape(p) for i, p in enumerate(pieces))


def has_time_of_day(form: str) -> bool:
    """Return whether a form has a time of day."""
    return any(directive in form for directive in _TIME_DIRECTIVES)


def path_time(match: re.Match[str]) -> PathTime:
    """Return the time in a match of `form_expression`."""
    fields = match.groupdict()
    year = fields.get("Y") or str(_CENTURY + int(fields["y"]))
    day = f"{year}-{fields['m']}-{fields['d']}"
    is_date = "H" not in fields
    clock = ":".join(fields.get(field) or "00" for field in "HMS")
    try:
        local = datetime.fromisoformat(f"{day}T{clock}")
    except ValueError:
        local = None
    return PathTime(day if is_date else f"{day}T{clock.replace(':', '-')}", local, is_date)


def read_path_time(form: str, text: str) -> PathTime | None:
    """Return the time that a text has in a valid form; None if it is not of this form."""
    match = re.fullmatch(form_expression(form), text)
    return path_time(match) if match else None


def parse_time_of_day(text: str) -> time | None:
    """Return a time of day such as 23:59 or 23:59:59; None if the text is not one."""
    try:
        return time.fromisoformat(text) if _TIME_OF_DAY.fullmatch(text) else None
    except ValueError:
        return None


def suggested_form(texts: list[str]) -> str | None:
    """Return the form in which all texts are dates; None if there is no such form, or several."""
    forms = [form for form in _COMMON_FORMS if texts and all(_exists(form, text) for text in texts)]
    return forms[0] if len(forms) == 1 else None


def _exists(form: str, text: str) -> bool:
    if len(text) != len(form) + form.count("%Y") * 2:  # each directive has two digits, %Y four
        return False
    read = read_path_time(form, text)
    return read is not None and read.time is not None and 1900 <= read.time.year < 2100


def form_problem(form: str, *, has_time: bool | None) -> tuple[str, str] | None:
    """Return the problem of a form and its fix; None if it is valid.

    Args:
        form: The form.
        has_time: Whether it has a time of day; None if it may have one.
    """
    problem = _form_problem(form, has_time=has_time)
    if problem is None:
        return None
    candidate = form
    for letters, directive in _LETTERS.items():
        candidate = candidate.replace(letters, directive)
    if candidate != form and _form_problem(candidate, has_time=has_time) is None:
        return problem, f"did you mean {candidate}?"
    example = "%Y%m%dT%H%M%S" if has_time else "%Y%m%d"
    return problem, f"write it with {', '.join(_allowed(has_time))}, such as {example}"


def _allowed(has_time: bool | None) -> tuple[str, ...]:
    return _DATE_DIRECTIVES if has_time is False else (*_DATE_DIRECTIVES, *_TIME_DIRECTIVES)


def _form_problem(form: str, *, has_time: bool | None) -> str | None:
    directives, text = [f"%{letter}" for letter in _DIRECTIVE.findall(form)], short_repr(form)
    for directive in directives:
        if directive in _TIME_DIRECTIVES and has_time is False:
            return f"{text} has {directive}, a time of day, which only {{datetime}} has"
        if directive not in (*_DATE_DIRECTIVES, *_TIME_DIRECTIVES):
            return f"{text} has {directive}, which is not read here"
        if directives.count(directive) > 1:
            return f"{text} has {directive} twice"
    needed = {"year": ("%Y", "%y"), "month": ("%m",), "day": ("%d",), **({"hour": ("%H",)} if has_time else {})}
    if missing := [part for part, options in needed.items() if sum(directives.count(each) for each in options) != 1]:
        return f"{text} does not have exactly one {missing[0]}"
    units = [directive in directives for directive in _TIME_DIRECTIVES]
    if units != sorted(units, reverse=True):
        return f"{text} has a smaller unit of time without the larger one"
    return None
