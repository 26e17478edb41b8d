"""Guess a declaration from sample rows: the business key, and the type and SCD type of each attribute."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, islice

from scd_pipeline.cli.type_inference import IDENTIFIER, GuessedType, guess_types
from scd_pipeline.declaration.checks.dimension import TECHNICAL_COLUMNS
from scd_pipeline.declaration.names import default_surrogate_key, is_table_name
from scd_pipeline.declaration.path_times import FORMS, has_time_of_day, suggested_form
from scd_pipeline.deliveries.separator_line import declared_separator
from scd_pipeline.errors import UsageError
from scd_pipeline.texts import pluralize

_SAMPLE_ROWS = 10_000
_SEPARATORS = (",", ";", "\t", "|")
_CONTACT = re.compile(r"e?mail|phone|telefon|mobile|fax", re.IGNORECASE)
"""Names of attributes whose latest value alone is of use, and which are personal."""
_POST_CODE = re.compile(r"(?:^|[\W_])(?:plz|zip)(?:$|[\W_])|post(?:al)?[\W_]?code|postleitzahl", re.IGNORECASE)
"""Names of post codes: one that is not the first column describes an entity, even if it is unique in a sample."""
_MEASURED = ("boolean", "decimal", "date", "timestamp")
"""Types of columns that rarely identify an entity, even if their values are unique in a sample."""
_LEADING_COLUMNS = 2
"""The number of columns, from the first one, that most likely identify an entity."""
_SHOWN_CANDIDATES = 5
_NAME = re.compile(r"[^\W_][\w-]*")
"""Names that a declaration accepts unchanged."""
_RESERVED = frozenset(TECHNICAL_COLUMNS)
"""Names of columns that the package adds."""
_SINGLE_TYPE = "single_scd_type: true # as guessed; remove the line when you give an attribute another type"
_ATTRIBUTES = "attributes: # scd 1: the latest value in every version; scd 2: another value opens a version"


@dataclass(frozen=True, slots=True)
class Sample:
    """The rows of a sample file.

    Attributes:
        name: The name of what it describes, such as `customers`.
        date: The date at the end of its file name, as it is written there; empty without one.
        placeholder: The placeholder of such a date in a path, with its form.
        encoding: The encoding of the file; empty for UTF-8.
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
    encoding: str = ""

    @property
    def table(self) -> str:
        """The name of the dimension or the fact; the suffixes of other tables are reserved."""
        name = self.name if self.name.startswith("dim_") or self.is_fact else f"dim_{self.name}"
        return name if is_table_name(name) else f"{name}_"

    @property
    def is_fact(self) -> bool:
        """Whether its rows are those of a fact, by its name."""
        return self.name.startswith("fct_")


def parse_sample(file: str, text: str, encoding: str = "") -> Sample:
    """Return the first rows of a CSV file; blanks around names and values belong to neither.

    Args:
        file: The name of the file.
        text: Its text; a line may end with CR, LF or both.
        encoding: Its encoding; empty for UTF-8.

    Raises:
        UsageError: The file is not CSV with a header of unique names and at least one row.
    """
    if text.lstrip()[:1] in ("{", "["):
        raise UsageError("SAMPLE_NOT_READABLE", file, reason="the file is JSON")
    text = io.StringIO(text, newline=None).read()
    first, _, rest = text.partition("\n")
    declared = declared_separator(first)
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
    return Sample(name, day, tuple(header), rows, separator, trims, placeholder, encoding)


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
    guessed, names = data_types(sample), declared_names(sample.columns)
    candidates = _key_candidates(sample, guessed)
    if not candidates:
        raise UsageError("BUSINESS_KEY_NOT_GUESSED", sample.name)
    key = candidates[0]
    types = {names[column]: data_type.name for column, data_type in guessed.items()}
    comment = "each file lists every entity; an entity that is missing in it is deleted"
    described = [column for column in sample.columns if column not in key]
    attributes = [_attribute(names[column], guessed[column].name) for column in described]
    is_single_type = len(described) > 1 and not any(_is_contact(names[column]) for column in described)
    lines = [
        "# Guessed from a sample: check the business key, the types and the SCD types before you load real data.",
        f"dimension: {sample.table}",
        *_candidate_lines(sample, candidates),
        *_surrogate_key_lines(sample.table, names),
        f"business_key: {{{typed_names([names[column] for column in key], types)}}}",
        *channel_lines(sample, "snapshot", path, comment, names, guessed),
        *([_SINGLE_TYPE] if is_single_type else []),
        *([_ATTRIBUTES] if attributes else []),
    ]
    return "\n".join([*lines, *attributes, ""])


def _surrogate_key_lines(table: str, names: Mapping[str, str]) -> list[str]:
    """Return the line with another name of the surrogate key, if a column has the default one."""
    in_use = {name.casefold() for name in names.values()}
    default = default_surrogate_key(table)
    if default.casefold() not in in_use:
        return []
    name = f"{default.removesuffix('_key')}_sk"
    while name.casefold() in in_use:
        name += "_"
    return [f"surrogate_key: {quoted(name)} # the file has a column {default}"]


def _candidate_lines(sample: Sample, candidates: Sequence[Sequence[str]]) -> list[str]:
    """Return the columns that could be the business key, each with the number of its distinct values, as comments."""
    likeliest = candidates[:_SHOWN_CANDIDATES]
    counts = {column: len(set(_values(sample, column))) for names in likeliest for column in names}
    return [
        f"# Unique in {pluralize(len(sample.rows), 'row')} (with the number of distinct values of each column):",
        *(f"#   {', '.join(f'{quoted(column)} ({counts[column]})' for column in names)}" for names in likeliest),
    ]


def data_types(sample: Sample) -> dict[str, GuessedType]:
    """Return the type of each column."""
    return guess_types({column: _values(sample, column) for column in sample.columns})


def typed_names(names: Sequence[str], types: Mapping[str, str]) -> str:
    """Return names with their types as entries of YAML."""
    return ", ".join(f"{quoted(name)}: {quoted(types[name] or 'string')}" for name in names)


def channel_lines(
    sample: Sample,
    channel: str,
    path: str,
    comment: str,
    names: Mapping[str, str],
    types: Mapping[str, GuessedType],
) -> list[str]:
    """Return the lines of the source of a sample, with its one channel.

    Args:
        names: The declared name of each column.
        types: The type of each column whose values are read with options.
    """
    delivered = quoted(path)
    options = {"sep": sample.separator} if sample.separator != "," else {}
    options |= {"encoding": sample.encoding} if sample.encoding else {}
    options |= dict.fromkeys(sample.trims, "true")
    if options:
        declared = ", ".join(f"{name}: {_in_quotes(value)}" for name, value in options.items())
        delivered = f"{{path: {delivered}, options: {{{declared}}}}}"
    columns = {name: _column_options(name, column, types.get(column)) for column, name in names.items()}
    return [
        "sources:",
        f"  {quoted(sample.name)}:",
        f"    {channel}: {delivered} # {comment}",
        *(
            ["    columns: # the source's names if they differ, and how values are read"]
            if any(columns.values())
            else []
        ),
        *(f"      {quoted(name)}: {{{options}}}" for name, options in columns.items() if options),
    ]


def _column_options(name: str, column: str, guessed: GuessedType | None) -> str:
    """Return how a column of the source is read, as entries of YAML; empty if it is read by its name alone."""
    options = {"from": _in_quotes(column)} if name != column else {}
    options |= {option: _texts(value) for option, value in (guessed.options if guessed else ())}
    return ", ".join(f"{option}: {value}" for option, value in options.items())


def _texts(value: str | tuple[str, ...]) -> str:
    """Return a text, or several ones as a list, as YAML."""
    texts = [value] if isinstance(value, str) else value
    return _in_quotes(texts[0]) if len(texts) == 1 else f"[{', '.join(map(_in_quotes, texts))}]"


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
    is_contact = _is_contact(name)
    options = ["scd: 1" if is_contact else "scd: 2"]
    options += [f"type: {quoted(data_type)}"] if data_type else []
    options += ["personal: true"] if is_contact else []
    return f"  {quoted(name)}: {{{', '.join(options)}}}"


def _is_contact(name: str) -> bool:
    return _CONTACT.search(name) is not None


def _key_candidates(sample: Sample, types: Mapping[str, GuessedType]) -> list[tuple[str, ...]]:
    """Return the columns, and the pairs of other columns, with unique values in every row; the likeliest first."""
    columns = sorted(sample.columns, key=lambda name: types[name].name == "boolean")
    single = [(column,) for column in columns if is_unique(sample, (column,))]
    others = [column for column in columns if (column,) not in single]
    pairs = [names for names in combinations(others, 2) if is_unique(sample, names)]
    return sorted([*single, *pairs], key=lambda names: _key_rank(names, columns, types))


def _key_rank(names: Sequence[str], columns: Sequence[str], types: Mapping[str, GuessedType]) -> tuple[object, ...]:
    """Return the rank of columns as a business key: a lower one is likelier."""
    positions = [columns.index(name) for name in names]
    is_measured = any(types[name].name.startswith(_MEASURED) for name in names)
    is_described = any(_CONTACT.search(name) or _POST_CODE.search(name) for name in names if name != columns[0])
    is_named = any(IDENTIFIER.search(name) for name in names)
    distance = positions[-1] - positions[0]
    return (
        is_measured or is_described,
        not is_named,
        positions[-1] >= _LEADING_COLUMNS,
        len(names),
        distance,
        positions,
    )


def is_unique(sample: Sample, columns: Sequence[str]) -> bool:
    """Return whether columns together have a unique value, without an empty one, in every row."""
    keys: set[tuple[str | None, ...]] = set()
    for row in sample.rows:
        key = tuple(row.get(column) for column in columns)
        if None in key or key in keys:
            return False
        keys.add(key)
    return True


def _values(sample: Sample, name: str) -> list[str]:
    return [value for row in sample.rows if (value := row.get(name)) is not None]


def quoted(name: str) -> str:
    """Return a name as YAML, quoted if it could mean something else."""
    is_plain = re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name) and not _is_keyword(name)
    return name if is_plain else _in_quotes(name)


def _in_quotes(text: str) -> str:
    """Return text as a quoted scalar of YAML, in which only characters that are not printed are escaped."""
    return json.dumps(text, ensure_ascii=not text.isprintable())


def _is_keyword(name: str) -> bool:
    return name.lower() in ("y", "n", "yes", "no", "on", "off", "true", "false", "null")
