"""Guess the types of columns from sample values, and how their text is read."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime
from itertools import product

_INTEGER = re.compile(r"-?(0|[1-9]\d{0,17})")
# A number with leading zeros may be a code, so it is text.
_DECIMAL = re.compile(r"-?(0|[1-9]\d{0,19})(?:\.(\d{1,18}))?")
_SHORT_DECIMAL, _LONG_DECIMAL = 18, 38
"""Precisions of decimals: Spark computes with at most 18 digits faster, and 38 are the most that it can represent."""
_SPARE_DIGITS = 4
"""How many digits before the point a short decimal must have in addition to those of the sample."""
_INT_LIMIT = 2**31
_PATTERNS = {
    "boolean": re.compile(r"true|false", re.IGNORECASE),
    "date": re.compile(r"\d{4}-\d{2}-\d{2}"),
    # Spark's times have microseconds.
    "timestamp": re.compile(r"\d{4}-\d{2}-\d{2}[ T]\d{2}:\d{2}(:\d{2}(\.\d{1,6}0*)?)?(Z|[+-]\d{2}:?\d{2})?"),
}
_DAYS = (
    *("dd.MM.yyyy", "dd/MM/yyyy", "MM/dd/yyyy", "dd-MM-yyyy", "MM-dd-yyyy"),
    *("yyyy/MM/dd", "yyyy.MM.dd", "yyyyMMdd"),
    *("d.M.yyyy", "d/M/yyyy", "M/d/yyyy"),
)
_CLOCKS = ("", " HH:mm", " HH:mm:ss", "'T'HH:mm:ss")
_FORMATS = tuple(day + clock for day, clock in product(_DAYS, _CLOCKS))
"""Spark's patterns of dates and times that need a declared format, the stricter ones first."""
_LETTERS = re.compile(r"'(?P<text>[^']*)'|(?P<letter>[yMdHms])(?P=letter)*|.")
IDENTIFIER = re.compile(
    r"(?i:(?:^|[\W_])(?:id|key|no|number|nr|num|nummer|code|uuid)\W*$|[^\W\d_](?:nr|num|nummer|number|code)\W*$)"
    r"|[a-z0-9](?:I[dD]|Key|No|U[uU][iI][dD])$|(?i:[bcdfghjkmnprstvwxz](?:id|no|key)$)"
)
"""Names of columns that identify something: `id`, `event_id`, `eventId` and `custid`, but not `paid`."""
_YEARS_OF_DIGITS = (*range(1900, 2100), 9999)
"""The years of dates without separators, which could also be numbers."""


_GROUPINGS = {".": ("", ",", "'", "’", " ", "\xa0", "\u202f"), ",": ("", ".", "'", "’", " ", "\xa0", "\u202f")}
"""The characters between groups of digits, by the decimal separator."""
_ENGLISH_FLAGS = (("y", "n"), ("yes", "no"))
_FLAGS = (*_ENGLISH_FLAGS, ("j", "n"), ("ja", "nein"))


@dataclass(frozen=True, slots=True)
class GuessedType:
    """A type that represents all values of a column.

    Attributes:
        name: The name of the type; empty for text.
        options: The options of a column with which the values are read, such as `format`.
    """

    name: str = ""
    options: tuple[tuple[str, str | tuple[str, ...]], ...] = ()


_TEXT = GuessedType()


@dataclass(frozen=True, slots=True)
class _NumberForm:
    """The separators of numbers in text."""

    decimal: str = "."
    grouping: str = ""

    def reads(self, values: Sequence[str]) -> bool:
        """Return whether all values are numbers in this form; one with leading zeros may be a code."""
        groups = rf"[1-9]\d{{0,2}}(?:{re.escape(self.grouping)}\d{{3}})+|" if self.grouping else ""
        number = re.compile(rf"-?(?:{groups}0|[1-9]\d*)(?:{re.escape(self.decimal)}\d+)?")
        return all(number.fullmatch(value) for value in values)

    def plain(self, value: str) -> str:
        """Return a number in the form of SQL."""
        return (value.replace(self.grouping, "") if self.grouping else value).replace(self.decimal, ".")

    @property
    def options(self) -> tuple[tuple[str, str], ...]:
        """The options of a column with such numbers."""
        options = (("decimal", self.decimal if self.decimal != "." else ""), ("grouping", self.grouping))
        return tuple((name, value) for name, value in options if value)


_PLAIN = _NumberForm()


def guess_types(values: Mapping[str, Sequence[str]]) -> dict[str, GuessedType]:
    """Return the type of each column by the values that it has in a sample.

    The other columns of a sample decide whether 1.234 is more than a thousand. In an identifier, points and commas are
    text.
    """
    forms = {column: [] if IDENTIFIER.search(column) else _number_forms(texts) for column, texts in values.items()}
    certain = {form.decimal for each in forms.values() if len({form.decimal for form in each}) == 1 for form in each}
    decimal = certain.pop() if len(certain) == 1 else ""
    return {column: _guess_type(column, texts, forms[column], decimal) for column, texts in values.items()}


def _guess_type(column: str, values: Sequence[str], forms: Sequence[_NumberForm], decimal: str) -> GuessedType:
    """Return the first type that fits all values of a column; the digits of an identifier are not a date."""
    guesses = (
        None if IDENTIFIER.search(column) else _declared_time(values),
        _integer(values),
        _number(values, forms, decimal),
        _flag(values),
        _undeclared(values),
    )
    return next((guess for guess in guesses if guess is not None), _TEXT) if values else _TEXT


def _integer(values: Sequence[str]) -> GuessedType | None:
    if not all(_INTEGER.fullmatch(value) for value in values):
        return None
    return GuessedType("int" if all(abs(int(value)) < _INT_LIMIT for value in values) else "bigint")


def _number_forms(values: Sequence[str]) -> list[_NumberForm]:
    """Return the forms in which all values are numbers; none if there are no values."""
    all_forms = (_NumberForm(decimal, grouping) for decimal in _GROUPINGS for grouping in _GROUPINGS[decimal])
    return [form for form in all_forms if values and form.reads(values)]


def _number(values: Sequence[str], forms: Sequence[_NumberForm], decimal: str) -> GuessedType | None:
    """Return the type of numbers with a decimal separator or groups of digits.

    Args:
        values: The values.
        forms: The forms in which all of them are numbers.
        decimal: The decimal separator of the sample; empty if it is not certain. Then only plain numbers are guessed.
    """
    decimals = {form.decimal for form in forms}
    if len(decimals) > 1:
        forms = [form for form in forms if form.decimal == decimal] if decimal else [_PLAIN] * (_PLAIN in forms)
    if not forms:
        return None
    form = next((form for form in forms if form.grouping and form.grouping in "".join(values)), forms[0])
    if form.decimal == "," and not form.grouping and not any(re.match(r"-?\d{4}", value) for value in values):
        form = _NumberForm(",", ".")  # larger numbers in later files probably have groups
    plain = [form.plain(value) for value in values]
    guessed = _integer(plain) or _decimal(plain)
    return guessed and replace(guessed, options=form.options)


def _flag(values: Sequence[str]) -> GuessedType | None:
    """Return the type of flags of which both values occur; those in English need no options."""
    texts = {value.casefold() for value in values}
    flags = next((flags for flags in _FLAGS if texts == set(flags)), None)
    if flags is None:
        return None
    if flags in _ENGLISH_FLAGS:
        return GuessedType("boolean")
    spellings = [tuple(sorted({value for value in values if value.casefold() == flag})) for flag in flags]
    return GuessedType("boolean", tuple(zip(("true_values", "false_values"), spellings, strict=True)))


def _undeclared(values: Sequence[str]) -> GuessedType | None:
    """Return the type of values in a form that needs no options: true, false, and times in ISO 8601."""
    names = (name for name in _PATTERNS if all(_fits(name, value) for value in values))
    return next(map(GuessedType, names), None)


def _fits(data_type: str, value: str) -> bool:
    """Return whether the type has the value: also a date of the calendar, unlike 0000-00-00."""
    if not _PATTERNS[data_type].fullmatch(value):
        return False
    try:
        return data_type == "boolean" or bool(date.fromisoformat(value[:10]))
    except ValueError:
        return False


def _decimal(values: Sequence[str]) -> GuessedType | None:
    """Return the decimal type that fits all values; None if a value is not a number, or none has a point."""
    matches = [_DECIMAL.fullmatch(value) for value in values]
    numbers = [(len(match[1]), len(match[2] or "")) for match in matches if match]
    whole, scale = (max(digits) for digits in zip(*numbers, strict=True)) if numbers else (0, 0)
    if len(numbers) < len(values) or not scale:
        return None
    precision = _SHORT_DECIMAL if whole + _SPARE_DIGITS + scale <= _SHORT_DECIMAL else _LONG_DECIMAL
    return GuessedType(f"decimal({precision},{scale})")


def _declared_time(values: Sequence[str]) -> GuessedType | None:
    """Return the date or the timestamp whose format reads all values; None if day and month could be exchanged."""
    formats = [pattern for pattern in _FORMATS if all(_reads(pattern, value) for value in values)]
    if len({re.sub(r"(.)\1+", r"\1", pattern) for pattern in formats}) != 1:
        return None
    return GuessedType("timestamp" if "H" in formats[0] else "date", (("format", formats[0]),))


def _reads(pattern: str, value: str) -> bool:
    """Return whether a pattern reads a value as a date or a time of the calendar."""
    match = re.fullmatch(_LETTERS.sub(_expression, pattern), value)
    fields = {unit: int(digits) for unit, digits in match.groupdict().items()} if match else {}
    if not fields or (value.isdecimal() and fields["y"] not in _YEARS_OF_DIGITS):
        return False
    try:
        return bool(datetime(*(fields.get(unit, 0) for unit in "yMdHms")))  # type: ignore[arg-type]
    except ValueError:
        return False


def _expression(match: re.Match[str]) -> str:
    """Return the regular expression of one piece of a pattern."""
    letter, digits = match["letter"], len(match[0])
    if letter is None:
        return re.escape(match[0] if match["text"] is None else match["text"])
    return rf"(?P<{letter}>[0-9]{{{digits if digits > 1 else '1,2'}}})"
