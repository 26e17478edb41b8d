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
        decimal: The decimal separator of numbers in text.
        grouping: The character between groups of three digits of numbers in text; empty for none.
        true_values, false_values: The texts of flags; if there are none, those that Spark reads.
    """

    zone: str = "UTC"
    pattern: str | None = None
    unit: str | None = None
    is_rounded: bool = False
    decimal: str = "."
    grouping: str = ""
    true_values: tuple[str, ...] = ()
    false_values: tuple[str, ...] = ()

    @property
    def has_separators(self) -> bool:
        """Whether numbers in text have other separators than those of SQL."""
        return self.decimal != "." or bool(self.grouping)
