"""Histories of existing tables: dimensions whose options follow from the name of the table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from scd_pipeline.declaration.attribute import Attribute, ScdType
from scd_pipeline.declaration.dimension import Dimension
from scd_pipeline.declaration.key import KeyColumn
from scd_pipeline.declaration.mirror import MIRROR
from scd_pipeline.declaration.source import Snapshot, Source
from scd_pipeline.declaration.tables import HIST_SUFFIX


def history_of(
    table: str,
    business_key: str | Sequence[str | KeyColumn] | Mapping[str, str],
    attributes: Mapping[str, Attribute | ScdType | int] | Sequence[Attribute] | str = MIRROR,
    **options: Any,
) -> Dimension:
    """Return the dimension with the history of an existing table, such as `rc_product_hist` of `rc_product`.

    Args:
        table: The name of the existing table.
        business_key: The business key, as for `Dimension`.
        attributes: The columns of the table that the history has, as for `Dimension`; by default all that its
            deliveries have (S36).
        options: Other arguments of `Dimension`, which replace those that follow from the name: `name`
            (`<table>_hist`), `surrogate_key` (`<table>_hist_key`), `profile` ("elevata") and `sources` (a source with
            the name of the table that delivers it by snapshot).

    Raises:
        DeclarationError: With every error of the declaration (S28).
    """
    return Dimension(**{**history_options(table), "business_key": business_key, "attributes": attributes, **options})


def history_options(table: str) -> dict[str, Any]:
    """Return the arguments of `Dimension` that the history of a table has unless others are declared."""
    name = f"{table}{HIST_SUFFIX}"
    return {
        "name": name,
        "surrogate_key": f"{name}_key",
        "profile": "elevata",
        "sources": Source(table, Snapshot()),
    }
