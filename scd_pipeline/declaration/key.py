"""A column of the business key."""

from __future__ import annotations

from dataclasses import dataclass

from scd_pipeline.declaration.frozen import set_frozen_fields
from scd_pipeline.declaration.types import DataType, parse_type
from scd_pipeline.errors import DeclarationError

WHOLE_ROW = "whole_row"
"""The value of `business_key` that makes the row itself the entity."""


@dataclass(frozen=True, slots=True)
class KeyColumn:
    """A column of the business key, which identifies an entity; it is never NULL (S26).

    - `is_row_hash`: whether its value is computed: the hash of all attributes of the delivered row (S37)
    """

    name: str
    type: str = "string"
    is_row_hash: bool = False

    def __post_init__(self) -> None:
        try:
            set_frozen_fields(self, type=parse_type(self.type).ddl())
        except DeclarationError:  # the checks report it with its location
            return

    @property
    def data_type(self) -> DataType:
        """The column type as a tree."""
        return parse_type(self.type)
