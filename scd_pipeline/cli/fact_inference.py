"""Guess the declaration of a fact from sample rows: grain, event time, dimensions, and all others as measures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from scd_pipeline.cli.inference import (
    Sample,
    business_key,
    channel_lines,
    data_types,
    declared_names,
    quoted,
    typed_names,
)
from scd_pipeline.declaration import Dimension
from scd_pipeline.errors import UsageError

_TIME_TYPES = ("timestamp", "date")
"""The types of an event time; the first column of the first of them is guessed."""


def guess_fact(sample: Sample, path: str, dimensions: Sequence[Dimension]) -> str:
    """Return the YAML of a fact for a sample.

    Args:
        sample: The sample rows.
        path: The path of the feed, relative to the declaration.
        dimensions: The dimensions that the fact may reference: those whose business key its columns contain.

    Raises:
        UsageError: The columns contain no business key of a dimension, or neither one column nor two columns together
            have a unique value in every row.
    """
    types, names = data_types(sample), declared_names(sample.columns)
    roles = [dimension for dimension in dimensions if set(dimension.key_names) <= set(names.values())]
    if not roles:
        raise UsageError("DIMENSION_NOT_GUESSED", sample.name, columns=", ".join(names.values()))
    keys = {key.name: key.type for dimension in roles for key in dimension.business_key}
    time = next((c for data_type in _TIME_TYPES for c in sample.columns if types[c] == data_type), None)
    amounts = [column for column, data_type in types.items() if data_type.startswith("decimal")]
    unlikely = [column for column in sample.columns if column in (time, *amounts) or names[column] in keys]
    grain = business_key(sample, types, unlikely=unlikely)
    types_by_name = {names[column]: data_type for column, data_type in types.items()} | keys
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
        *channel_lines(sample, "feed", path, comment, names),
    ]
    return "\n".join([*lines, ""])


def _event_time(names: Mapping[str, str], column: str | None) -> list[str]:
    """Return the lines of the event time: a column, or the time of the delivery if no column is a time."""
    if column is not None:
        return [f"event_time: {quoted(names[column])}"]
    name = "delivered_at"
    while name in names.values():
        name += "_"
    return [f"event_time: {name}", "event_at: delivery # no column is a time"]
