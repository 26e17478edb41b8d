"""A column of the business key."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from scd_pipeline.declaration.frozen import set_frozen_fields
from scd_pipeline.declaration.types import DataType, parse_type
from scd_pipeline.errors import DeclarationError

WHOLE_ROW = "whole_row"
"""The value of `business_key` that makes the row itself the entity."""


@dataclass(frozen=True, slots=True)
class KeyColumn:
    """A column of the business key, which identifies an entity; it is never NULL (S26).

    - `derived`: how its value is computed if it is not read from deliveries: the hash of all attributes of the row
      (S37), the number of the row among equal rows, or its delivery (S38)
    """

    name: str
    type: str = "string"
    derived: Literal["row_hash", "row_number", "delivery"] | None = None

    def __post_init__(self) -> None:
        try:
            set_frozen_fields(self, type=parse_type(self.type).ddl())
        except DeclarationError:  # the checks report it with its location
            return

    @property
    def data_type(self) -> DataType:
        """The column type as a tree."""
        return parse_type(self.type)
