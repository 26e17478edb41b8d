"""Describe the columns that a delivery lacks: which others it has, and how to declare those inside of others (S20)."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence, Set

from pyspark.sql import types as T

from scd_pipeline.declaration import Feed, Snapshot, Source
from scd_pipeline.deliveries.column_mapping import ColumnMapping
from scd_pipeline.deliveries.expressions import channel_columns, column_label
from scd_pipeline.texts import join_names, may_be_value, name_columns, pluralize

_TRIM = 'declare `options: {ignoreLeadingWhiteSpace: "true", ignoreTrailingWhiteSpace: "true"}` in the channel'
_SEPARATE = "declare `options: {{sep: {}}}` in the channel"
_SEPARATORS = ",;\t|"
_PLAIN = re.compile(r"[\w -]+")
_Path = tuple[str, ...]


def describe_existing_columns(mapping: ColumnMapping, file_format: str | None) -> str:
    """Return the names of the delivered columns that the declaration has too, and the number of the others.

    The names of the others may be values: the first row of a CSV file without a header (S31). Other formats name their
    columns. `file_format` is None for a frame, which may have been read from any file.
    """
    if file_format not in (None, "csv"):
        return name_columns([field.name for field in mapping.fields]) or "none"
    missing = {_folded(name) for name in mapping.missing.values()}
    names = [field.name for field in mapping.fields]
    declared = [name for name in names if name not in mapping.undeclared or _folded(name) in missing]
    others = len(names) - len(declared)
    if file_format == "csv" and len(names) == 1 and (separator := _separator_in(names[0], missing)):
        return f"one column, as its header has the separator {separator!r}; {_SEPARATE.format(json.dumps(separator))}"
    if file_format == "csv" and any(name != name.strip() for name in names):
        return f"{len(names)} columns, some with blanks around their names; {_TRIM}"
    if not others:
        return ", ".join(names) or "none"
    if not declared:
        header = "; a CSV file needs a header" if file_format == "csv" else ""
        return f"none of the declared columns and {pluralize(others, 'other')}{header}"
    return f"{', '.join(declared)} and {others} more"


def _separator_in(header: str, missing: Set[str]) -> str:
    """Return the separator between the names of a header that is one column, one of which is missing; else empty."""
    divided = (each for each in _SEPARATORS if each in header)
    return next((each for each in divided if not missing.isdisjoint(map(_folded, header.split(each)))), "")


def _folded(name: str) -> str:
    return re.sub(r"[\W_]", "", name).casefold()


def nested_columns_fix(
    missing: Sequence[str], fields: Sequence[T.StructField], source: Source, channel: Snapshot | Feed
) -> str:
    """Return how to read missing columns that are inside of others, as the beginning of a fix; empty if none is.

    Args:
        missing: The key columns, attributes and columns of the channel whose columns a delivery lacks.
        fields: The columns of the delivery.
        source: The source.
        channel: The channel.
    """
    options = channel_columns(channel)
    needed = {name: (options.get(name) or source.column(name)).from_ for name in missing}
    values = list(_values(T.StructType(list(fields))))
    paths = {name: path for name, names in needed.items() if (path := _nested_path(names, values))}
    if channel.format == "json" and _are_events(list(paths.values()), values):
        return "declare `format: debezium` in the channel, as the rows are events of Debezium; or "
    if paths:
        return f"declare {_declarations(paths, options)}, as these columns are inside of others; or "
    arrays = {array for names in needed.values() for array in _arrays(names, values)}
    if len(arrays) == 1 and channel.format == "json":
        return f"declare `record_path: {join_names(arrays)}` in the channel, as its objects are the rows; or "
    if arrays:
        return f"deliver each object of the array {join_names(sorted(arrays))} as a row; or "
    return ""


def _values(data_type: T.StructType, path: _Path = (), array: _Path = ()) -> Iterator[tuple[_Path, _Path]]:
    """Yield the path of each value, and that of the outermost array which it is inside of; an empty one if none is.

    A path that a declaration cannot have, or that may contain a value (S31), is omitted.
    """
    for field in data_type.fields:
        names, inner, in_array = (*path, *field.name.split(".")), field.dataType, array
        if not all(_PLAIN.fullmatch(name) and not may_be_value(name) for name in names):
            continue
        yield names, array
        if isinstance(inner, T.ArrayType):
            inner, in_array = inner.elementType, array or names
        if isinstance(inner, T.StructType):
            yield from _values(inner, names, in_array)


def _nested_path(names: Sequence[str], values: Sequence[tuple[_Path, _Path]]) -> _Path | None:
    """Return the shortest path that ends with one of the names and is not in an array."""
    paths = [path for path, array in values if not array and any(_ends_with(path, name) for name in names)]
    return min(paths, key=lambda path: (len(path), path), default=None)


def _arrays(names: Sequence[str], values: Sequence[tuple[_Path, _Path]]) -> list[str]:
    return [".".join(array) for path, array in values if array and any(_ends_with(path, name) for name in names)]


def _ends_with(path: _Path, name: str) -> bool:
    return f".{'.'.join(path)}".lower().endswith(f".{name.lower()}")


def _are_events(paths: Sequence[_Path], values: Sequence[tuple[_Path, _Path]]) -> bool:
    """Return whether rows look like events of Debezium: an operation, and the columns in the row after it."""
    return any(path[-2:-1] == ("after",) for path in paths) and any(path[-1] == "op" for path, _ in values)


def _declarations(paths: Mapping[str, _Path], options: Mapping[str, object]) -> str:
    """Return the options that read columns at these paths, and where to declare them."""
    texts = {name: ".".join(path) for name, path in paths.items()}
    columns = ", ".join(f"{name}: {text}" for name, text in texts.items() if name not in options)
    in_channel = [f"`{column_label(name)}: {text}`" for name, text in texts.items() if name in options]
    in_source = [f"`columns: {{{columns}}}` in the source"] if columns else []
    return join_names([*in_source, *([f"{join_names(in_channel)} in the channel"] if in_channel else [])])
