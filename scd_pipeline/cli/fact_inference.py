"""Guess the declaration of a fact from sample rows: grain, event time, dimensions, and all others as measures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from scd_pipeline.cli.inference import (
    Sample,
    channel_lines,
    data_types,
    declared_names,
    is_unique,
    quoted,
    typed_names,
)
from scd_pipeline.cli.type_inference import IDENTIFIER
from scd_pipeline.declaration import Dimension
from scd_pipeline.errors import UsageError

_TIME_TYPES = ("timestamp", "date")
"""The types of an event time; the first column of the first of them is guessed."""
_WIDER_TYPES = {"int": ("bigint", "string")}
"""The types of business keys that contain all values of a type of a fact's column; others are contained in text."""


def guess_fact(sample: Sample, path: str, dimensions: Sequence[Dimension]) -> str:
    """Return the YAML of a fact for a sample.

    Args:
        path: The path of the feed, relative to the declaration.
        dimensions: The dimensions that the fact may reference: those whose business key its columns contain.

    Raises:
        UsageError: The columns contain no business key of a dimension, or no grain can be guessed.
    """
    guessed, names = data_types(sample), declared_names(sample.columns)
    types = {column: data_type.name for column, data_type in guessed.items()}
    types_by_name = {names[column]: data_type or "string" for column, data_type in types.items()}
    roles = _roles(types_by_name, dimensions)
    if not roles:
        raise _dimension_not_guessed(sample, types_by_name, dimensions)
    keys = {key.name: key.type for dimension in roles for key in dimension.business_key}
    time = next((c for data_type in _TIME_TYPES for c in sample.columns if types[c] == data_type), None)
    grain = _grain(sample, types, [column for column in sample.columns if names[column] in keys], time)
    types_by_name |= keys
    read_as = {column: guessed[column] for column, name in names.items() if types_by_name[name] == types[column]}
    comment = "a row with the same grain in a later file replaces the earlier one"
    measures = [c for c in sample.columns if c not in (*grain, time) and names[c] not in keys]
    lines = [
        "# Guessed from a sample: check the grain, the event time and the types before you load real data.",
        f"fact: {sample.table}",
        f"grain: {{{typed_names([names[column] for column in grain], types_by_name)}}}",
        *_event_time(names, time),
        "dimensions: # the fact stores the surrogate key of each",
        *[f"  {quoted(dimension.name.removeprefix('dim_'))}: {quoted(dimension.name)}" for dimension in roles],
        *(["measures: # all other columns"] if measures else []),
        *[f"  {typed_names([names[column]], types_by_name)}" for column in measures],
        *channel_lines(sample, "feed", path, comment, names, read_as),
    ]
    return "\n".join([*lines, ""])


def _dimension_not_guessed(sample: Sample, types: Mapping[str, str], dimensions: Sequence[Dimension]) -> UsageError:
    """Return the error that names the types of the columns and of the business keys."""
    columns = ", ".join(f"{name} ({data_type})" for name, data_type in types.items())
    keys = [f"{d.name} ({', '.join(f'{key.name} {key.type}' for key in d.business_key)})" for d in dimensions]
    return UsageError("DIMENSION_NOT_GUESSED", sample.name, columns=columns, keys=", ".join(keys) or "none")


def _roles(types: Mapping[str, str], dimensions: Sequence[Dimension]) -> list[Dimension]:
    """Return the dimensions whose business keys can have all values of a fact's columns.

    If two dimensions have different types of a key, the one with the type of the fact's column is preferred.
    """
    matches = [
        (any(types[key.name] != key.type for key in dimension.business_key), dimension)
        for dimension in dimensions
        if all(key.name in types and _fits(types[key.name], key.type) for key in dimension.business_key)
    ]
    roles: list[Dimension] = []
    keys: dict[str, str] = {}
    for _, dimension in sorted(matches, key=lambda match: match[0]):
        if all(keys.get(key.name, key.type) == key.type for key in dimension.business_key):
            roles.append(dimension)
            keys |= {key.name: key.type for key in dimension.business_key}
    return roles


def _fits(data_type: str, key_type: str) -> bool:
    """Return whether a business key of a type can have all values of a column."""
    return key_type in (data_type, *_WIDER_TYPES.get(data_type, ("string",)))


def _grain(sample: Sample, types: Mapping[str, str], keys: Sequence[str], time: str | None) -> tuple[str, ...]:
    """Return a unique identifier, or the keys of the dimensions, the event time and as few identifiers as needed.

    Numbers without the name of an identifier are measures: two facts may have equal ones.

    Raises:
        UsageError: These columns are not unique.
    """
    others = [column for column in sample.columns if column not in (*keys, time)]
    named = [c for c in others if types[c] in ("", "int", "bigint") and IDENTIFIER.search(c)]
    identifiers = [*named, *(column for column in others if not types[column] and column not in named)]
    base = (*keys, time) if time is not None and time not in keys else tuple(keys)
    combined = [(*base, *identifiers[:count]) for count in range(len(identifiers) + 1)]
    for columns in (*((column,) for column in identifiers), *combined):
        if is_unique(sample, columns):
            return columns
    raise UsageError("GRAIN_NOT_GUESSED", sample.name)


def _event_time(names: Mapping[str, str], column: str | None) -> list[str]:
    """Return the lines of the event time: a column, or the time of the delivery if no column is a time."""
    if column is not None:
        return [f"event_time: {quoted(names[column])}"]
    name = "delivered_at"
    while name in names.values():
        name += "_"
    return [f"event_time: {name}", "event_at: delivery # no column is a time"]
