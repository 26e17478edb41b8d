"""How the readings of several tables call their columns, so that each name is there once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection

from scd_pipeline.declaration import Dimension, Fact

Labelled = tuple[str, str]
"""A column, after the label of what it is of: a role of a fact, or a dimension."""


def labelled(columns: Collection[Labelled], taken: Collection[str]) -> dict[Labelled, str]:
    """`<label>_<column>` of each, with more underscores between the two where something else has that name.

    In: `taken` are the names of columns beside them, which stay as they are. Spark tells no names apart by case.
    """
    found: dict[Labelled, str] = {}
    between = "_"
    while len(found) < len(set(columns)):
        told = {column: between.join(column) for column in columns if column not in found}
        times = Counter(name.casefold() for name in (*taken, *found.values(), *told.values()))
        found |= {column: name for column, name in told.items() if times[name.casefold()] == 1}
        between += "_"
    return {column: found[column] for column in columns}


def labels_of(left: str, right: str) -> tuple[str, str]:
    """The labels of two dimensions in their overlap: their names, without `dim_` where they differ without it.

    Where they differ in case alone, as those of one dimension with itself: left and right.
    """
    for labels in ((left.removeprefix("dim_"), right.removeprefix("dim_")), (left, right)):
        if labels[0].casefold() != labels[1].casefold():
            return labels
    return "left", "right"


def attribute_columns(dimension: Dimension) -> list[str]:
    """The columns of the attributes, with those that are kept beside them (S9, S10)."""
    return [column for a in dimension.attributes for column in (a.name, *a.generated_columns)]


def labelled_attributes(dimension: Dimension, label: str) -> list[Labelled]:
    """The attributes' columns under a label."""
    return [(label, name) for name in attribute_columns(dimension)]


def labelled_roles(fact: Fact, taken: Collection[str]) -> dict[Labelled, str]:
    """The names of the attributes of a fact's dimensions, each under its role, beside those that are `taken`."""
    told = [column for name, role in fact.roles for column in labelled_attributes(role.dimension, name)]
    return labelled(told, taken)
