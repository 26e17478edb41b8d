"""Control totals: how many rows a delivery has, and their sums, as its source declares them (S41)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any

from scd_pipeline.declaration.frozen import FrozenMapping, checked_arguments, frozen_mapping, set_frozen_fields
from scd_pipeline.declaration.types import INTEGERS, DataType, Decimal, Primitive

if TYPE_CHECKING:
    from scd_pipeline.declaration.dimension import Dimension

ROW_COUNT = "rows"
"""The name of the number of rows among the control totals of a delivery."""
CONTROL_FILE_SUFFIXES = (".csv", ".json")


@checked_arguments
@dataclass(frozen=True, slots=True, init=False)
class ControlTotals:
    """Where a source declares the control totals of each delivery.

    - `rows`: the column with the number of delivered rows
    - `sums`: for each summed column of the table, the column with its sum
    - `path`: a file for each delivery, with the placeholder of the channel's path, whose one row has these columns;
      without it they are columns of the delivery, and have one value in it
    """

    rows: str | None = None
    sums: FrozenMapping[str] = field(default_factory=lambda: FrozenMapping({}))
    path: str | None = None

    def __init__(self, rows: str | None = None, sums: Mapping[str, str] | None = None, path: str | None = None) -> None:
        set_frozen_fields(self, rows=rows, sums=frozen_mapping(sums), path=path)

    @property
    def columns(self) -> dict[str, str]:
        """The column of each control total, by its name: `rows`, or the summed column."""
        return {**({ROW_COUNT: self.rows} if self.rows else {}), **self.sums}

    @property
    def delivered_columns(self) -> dict[str, str]:
        """The columns of the delivery that have control totals, by the names of these; none if a file has them."""
        return {} if self.path else self.columns


def as_control_totals(declared: Any) -> Any:
    """Return a mapping of options as ControlTotals; anything else unchanged, for the checks to reject."""
    names = {each.name for each in fields(ControlTotals)}
    is_built = isinstance(declared, Mapping) and names.issuperset(declared)
    return ControlTotals(**declared) if is_built else declared


def summable_scales(dimension: Dimension, source: str) -> dict[str, int]:
    """Return the columns of a source that can be summed exactly, each with its digits after the decimal point."""
    types = {key.name: key.data_type for key in dimension.delivered_key}
    types |= {each.name: each.data_type for each in dimension.source_attributes(source) if each.is_delivered}
    scales = {name: _exact_scale(data_type) for name, data_type in types.items()}
    return {name: scale for name, scale in scales.items() if scale is not None}


def _exact_scale(data_type: DataType) -> int | None:
    """Return the digits after the decimal point of an exact number, None for any other type."""
    if isinstance(data_type, Decimal):
        return data_type.scale
    return 0 if isinstance(data_type, Primitive) and data_type.name in INTEGERS else None
