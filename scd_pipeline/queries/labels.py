"""Unique column names for queries that join several tables."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection

from scd_pipeline.declaration import Dimension, Fact

LabelledColumn = tuple[str, str]
"""The label of a role or a dimension, and the name of one of its columns."""


def unique_names(columns: Collection[LabelledColumn], used_names: Collection[str]) -> dict[LabelledColumn, str]:
    """Return the name `<label>_<column>` of each column, with more underscores in between where names would collide.

    Args:
        columns: The columns to name.
        used_names: The names of the other columns of the query, which do not change. Case is ignored, as in Spark.
    """
    names: dict[LabelledColumn, str] = {}
    separator = "_"
    while len(names) < len(set(columns)):
        candidates = {column: separator.join(column) for column in columns if column not in names}
        counts = Counter(name.casefold() for name in (*used_names, *names.values(), *candidates.values()))
        names |= {column: name for column, name in candidates.items() if counts[name.casefold()] == 1}
        separator += "_"
    return {column: names[column] for column in columns}


def overlap_labels(left: str, right: str) -> tuple[str, str]:
    """Return the labels of two dimensions in their overlap: their names, without `dim_` if they differ without it.

    If the names differ only in case, as for one dimension and itself, the labels are "left" and "right".
    """
    for labels in ((left.removeprefix("dim_"), right.removeprefix("dim_")), (left, right)):
        if labels[0].casefold() != labels[1].casefold():
            return labels
    return "left", "right"


def attribute_columns(dimension: Dimension) -> list[str]:
    """Return the columns of all attributes, including those that types 3 and 6 add (S9, S10)."""
    return [column for a in dimension.attributes for column in (a.name, *a.generated_columns)]


def labelled_columns(dimension: Dimension, label: str) -> list[LabelledColumn]:
    """Return the attribute columns of a dimension, each with the label."""
    return [(label, name) for name in attribute_columns(dimension)]


def role_column_names(fact: Fact, used_names: Collection[str]) -> dict[LabelledColumn, str]:
    """Return the names of the attribute columns of a fact's dimensions, each with the label of its role."""
    columns = [column for name, role in fact.roles for column in labelled_columns(role.dimension, name)]
    return unique_names(columns, used_names)
