"""Guess a declaration from sample rows: the business key, and the type and SCD type of each attribute."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from itertools import combinations, islice

from scd_pipeline.declaration.checks.dimension import TECHNICAL_COLUMNS
from scd_pipeline.declaration.names import is_table_name
from scd_pipeline.declaration.path_times import FORMS, has_time_of_day, suggested_form
from scd_pipeline.deliveries.separator_line import declared_separator
from scd_pipeline.errors import UsageError

_SAMPLE_ROWS = 10_000
_SEPARATORS = (",", ";", "\t", "|")
_INTEGER = re.compile(r"-?(0|[1-9]\d{0,17})")
# A number with leading zeros may be a code, so it is text.
_DECIMAL = re.compile(r"-?(0|[1-9]\d{0,19})(?:\.(\d{1,18}))?")
_SHORT_DECIMAL, _LONG_DECIMAL = 18, 38
"""Precisions of decimals: Spark computes with at most 18 digits faster, and 38 are the most that it can represent."""
_SPARE_DIGITS = 4
"""How many digits before the point a short decimal must have in addition to those of the sample."""
_PATTERNS = {
    "boolean": re.compile(r"true|false", re.IGNORECASE),
    "date": re.compile(r"\d{4}-\d{2}-\d{2}"),
    # Spark's times have microseconds.
    "timestamp": re.compile(r"\d{4}-\d{2}-\d{2}[ T]\d{2}:\d{2}:\d{2}(\.\d{1,6}0*)?(Z|[+-]\d{2}:?\d{2})?"),
}
_CONTACT = re.compile(r"e?mail|phone|mobile|fax", re.IGNORECASE)
"""Names of attributes whose latest value alone is of use, and which are personal."""
_NAME = re.compile(r"[^\W_][\w-]*")
"""Names that a declaration accepts unchanged."""
_RESERVED = frozenset(TECHNICAL_COLUMNS)
"""Names of columns that the package adds."""
_INT_LIMIT = 2**31
_ATTRIBUTES = "attributes: # scd 1: the latest value in every version; scd 2: another value opens a version"


@dataclass(frozen=True, slots=True)
class Sample:
    """The rows of a sample file.

    Attributes:
        name: The name of what it describes, such as `customers`.
        date: The date at the end of its file name, as it is written there; empty without one.
        placeholder: The placeholder of such a date in a path, with its form.
        columns: The names of its columns.
        rows: One dict per row, None for an empty value.
        separator: The character between two values.
        trims: The options of Spark's reader that remove blanks before or behind values, if the sample has such blanks.
    """

    name: str
    date: str
    columns: tuple[str, ...]
    rows: tuple[dict[str, str | None], ...]
    separator: str = ","
    trims: tuple[str, ...] = ()
    placeholder: str = "{date}"

    @property
    def table(self) -> str:
        """The name of the dimension or the fact; the suffixes of other tables are reserved."""
        name = self.name if self.name.startswith("dim_") or self.is_fact else f"dim_{self.name}"
        return name if is_table_name(name) else f"{name}_"

    @property
    def is_fact(self) -> bool:
        """Whether its rows are those of a fact, by its name."""
        return self.name.startswith("fct_")


def parse_sample(file: str, text: str) -> Sample:
    """Return the first rows of a CSV file; blanks around names and values belong to neither.

    Raises:
        UsageError: The file is not CSV with a header of unique names and at least one row.
    """
    if text.lstrip()[:1] in ("{", "["):
        raise UsageError("SAMPLE_NOT_READABLE", file, reason="the file is JSON")
    first, _, rest = text.partition("\n")
    declared = declared_separator(first.rstrip("\r"))
    text = rest if declared else text
    separator = declared or _separator(text)
    try:
        trims = _trims(_records(text, separator))
        header, *lines = _records(text, separator, is_trimmed=bool(trims)) or [[]]
    except csv.Error as error:
        raise UsageError("SAMPLE_NOT_READABLE", file, reason=f"cannot read the file ({error})") from error
    if not lines or len(set(header)) < len(header) or not all(header):
        raise UsageError("SAMPLE_NOT_READABLE", file, reason="no rows, or columns without a unique name")
    rows = tuple({name: value or None for name, value in zip(header, line, strict=False)} for line in lines)
    stem = file.rpartition(".")[0] or file
    day, placeholder = _date_suffix(stem)
    name = re.sub(r"[^a-z0-9]+", "_", stem.removesuffix(day).lower()).strip("_") or "sample"
    return Sample(name, day, tuple(header), rows, separator, trims, placeholder)


def _date_suffix(stem: str) -> tuple[str, str]:
    """Return the date at the end of a file name, if only one form reads it as a date, and its placeholder in a path."""
    starts = [match.start() for match in re.finditer(r"(?<![0-9])[0-9]", stem)]
    for text in (stem[start:] for start in starts):
        form = suggested_form([text])
        if form is not None and not has_time_of_day(form):
            return text, "{date}" if form == FORMS["date"] else f"{{date:{form}}}"
    return "", "{date}"


def _records(text: str, separator: str, *, is_trimmed: bool = False) -> list[list[str]]:
    """Return the first records, the header included.

    Raises:
        csv.Error: The text is not CSV.
    """
    reader = csv.reader(io.StringIO(text), delimiter=separator, skipinitialspace=is_trimmed)
    records = [record for record in islice(reader, _SAMPLE_ROWS + 1) if record]
    return [[value.strip(" ") for value in record] for record in records] if is_trimmed else records


def _trims(records: Sequence[Sequence[str]]) -> tuple[str, ...]:
    values = [value for record in records for value in record if value.strip(" ")]
    leading = ("ignoreLeadingWhiteSpace",) if any(value.startswith(" ") for value in values) else ()
    return (*leading, *(("ignoreTrailingWhiteSpace",) if any(value.endswith(" ") for value in values) else ()))


def _separator(text: str) -> str:
    """Return the separator that divides the header into the most columns; a comma if none does."""
    header = next((line for line in text.splitlines() if line.strip()), "")
    return max(_SEPARATORS, key=lambda separator: len(next(csv.reader([header], delimiter=separator), [])))


def guess_declaration(sample: Sample, path: str) -> str:
    """Return the YAML of a dimension for a sample.

    Args:
        path: The path of the snapshots, relative to the declaration.

    Raises:
        UsageError: Neither one column nor two columns together have a unique value in every row.
    """
    types, names = data_types(sample), declared_names(sample.columns)
    key = _business_key(sample, types)
    types_by_name = {names[column]: data_type for column, data_type in types.items()}
    comment = "each file lists every entity; an entity that is missing in it is deleted"
    attributes = [_attribute(names[column], types[column]) for column in sample.columns if column not in key]
    lines = [
        "# Guessed from a sample: check the business key, the types and the SCD types before you load real data.",
        f"dimension: {sample.table}",
        f"business_key: {{{typed_names([names[column] for column in key], types_by_name)}}}",
        *channel_lines(sample, "snapshot", path, comment, names),
        *([_ATTRIBUTES] if attributes else []),
    ]
    return "\n".join([*lines, *attributes, ""])


def data_types(sample: Sample) -> dict[str, str]:
    """Return the type of each column, empty for text."""
    return {column: _data_type(_values(sample, column)) for column in sample.columns}


def typed_names(names: Sequence[str], types: Mapping[str, str]) -> str:
    """Return names with their types as entries of YAML."""
    return ", ".join(f"{quoted(name)}: {quoted(types[name] or 'string')}" for name in names)


def channel_lines(sample: Sample, channel: str, path: str, comment: str, names: Mapping[str, str]) -> list[str]:
    """Return the lines of the source of a sample, with its one channel and the columns that have other names."""
    renamed = ", ".join(f"{quoted(name)}: {json.dumps(column)}" for column, name in names.items() if name != column)
    delivered = quoted(path)
    options = {"sep": sample.separator} if sample.separator != "," else {}
    options |= dict.fromkeys(sample.trims, "true")
    if options:
        declared = ", ".join(f"{name}: {json.dumps(value)}" for name, value in options.items())
        delivered = f"{{path: {delivered}, options: {{{declared}}}}}"
    return [
        "sources:",
        f"  {quoted(sample.name)}:",
        f"    {channel}: {delivered} # {comment}",
        *([f"    columns: {{{renamed}}} # names that a declaration cannot use"] if renamed else []),
    ]


def declared_names(columns: Sequence[str]) -> dict[str, str]:
    """Return a valid and unique name for each column: its own if that is valid."""
    names: dict[str, str] = {}
    for column in columns:
        name = column if _NAME.fullmatch(column) else re.sub(r"\W+", "_", column.lower()).strip("_") or "column"
        while name.casefold() in _RESERVED or name in names.values() or (name != column and name in columns):
            name += "_"
        names[column] = name
    return names


def _attribute(name: str, data_type: str) -> str:
    is_contact = _CONTACT.search(name) is not None
    options = ["scd: 1" if is_contact else "scd: 2"]
    options += [f"type: {quoted(data_type)}"] if data_type else []
    options += ["personal: true"] if is_contact else []
    return f"  {quoted(name)}: {{{', '.join(options)}}}"


def _business_key(sample: Sample, types: Mapping[str, str]) -> tuple[str, ...]:
    """Return the first column, or the first two columns, with unique values; flags only without other choice.

    Raises:
        UsageError: Neither one column nor two columns together have a unique value in every row.
    """
    columns = sorted(sample.columns, key=lambda name: types[name] == "boolean")
    for size in (1, 2):
        for names in combinations(columns, size):
            if is_unique(sample, names):
                return names
    raise UsageError("BUSINESS_KEY_NOT_GUESSED", sample.name)


def is_unique(sample: Sample, columns: Sequence[str]) -> bool:
    """Return whether columns together have a unique value, without an empty one, in every row."""
    keys = [tuple(row.get(column) for column in columns) for row in sample.rows]
    return len(set(keys)) == len(keys) and all(None not in key for key in keys)


def _values(sample: Sample, name: str) -> list[str]:
    return [value for row in sample.rows if (value := row.get(name)) is not None]


def _data_type(values: Sequence[str]) -> str:
    """Return the type that fits all values; empty for text."""
    if not values:
        return ""
    if all(_INTEGER.fullmatch(value) for value in values):
        return "int" if all(abs(int(value)) < _INT_LIMIT for value in values) else "bigint"
    matching = (name for name in _PATTERNS if all(_fits(name, value) for value in values))
    return _decimal_type(values) or next(matching, "")


def _fits(data_type: str, value: str) -> bool:
    """Return whether the type has the value: also a date of the calendar, unlike 0000-00-00."""
    if not _PATTERNS[data_type].fullmatch(value):
        return False
    try:
        return data_type == "boolean" or bool(date.fromisoformat(value[:10]))
    except ValueError:
        return False


def _decimal_type(values: Sequence[str]) -> str:
    """Return the decimal type that fits all values; empty if a value is not a number, or none has a point."""
    matches = [_DECIMAL.fullmatch(value) for value in values]
    numbers = [(len(match[1]), len(match[2] or "")) for match in matches if match]
    whole, scale = (max(digits) for digits in zip(*numbers, strict=True)) if numbers else (0, 0)
    if len(numbers) < len(values) or not scale:
        return ""
    precision = _SHORT_DECIMAL if whole + _SPARE_DIGITS + scale <= _SHORT_DECIMAL else _LONG_DECIMAL
    return f"decimal({precision},{scale})"


def quoted(name: str) -> str:
    """Return a name as YAML, quoted if it could mean something else."""
    return name if re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name) and not _is_keyword(name) else json.dumps(name)


def _is_keyword(name: str) -> bool:
    return name.lower() in ("y", "n", "yes", "no", "on", "off", "true", "false", "null")
