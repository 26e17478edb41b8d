"""Options for casting delivered values."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class CastOptions:
    """Options for casting values.

    Attributes:
        zone: The zone of times that have none.
        pattern: The pattern of times in text.
        unit: The unit of numbers that represent times since 1970.
        is_rounded: Whether values are rounded instead of being bad.
    """

    zone: str = "UTC"
    pattern: str | None = None
    unit: str | None = None
    is_rounded: bool = False
