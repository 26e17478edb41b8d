"""What people approve and verify about a dimension: sign-offs and expected values."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from typing import TypeAlias

from scd_pipeline.declaration.frozen import checked_arguments, set_frozen_fields
from scd_pipeline.declaration.times import canonical_time, to_datetime

Scalar: TypeAlias = str | int | float | bool

BUSINESS, COMPLIANCE = "business", "compliance"
SIGN_OFF_ROLES = (BUSINESS, COMPLIANCE)
"""The roles that approve a dimension; compliance approves one with regulated attributes."""


@checked_arguments
@dataclass(frozen=True, slots=True, init=False)
class SignOff:
    """An approval of the declaration.

    Args:
        by: The person or the team that approved it.
        date: The day of the approval, as ISO text or date.
    """

    by: str
    date: str

    def __init__(self, by: str, date: str | dt.date) -> None:
        day = date.isoformat() if isinstance(date, dt.date) and not isinstance(date, dt.datetime) else date
        set_frozen_fields(self, by=by, date=day)


@checked_arguments
@dataclass(frozen=True, slots=True, init=False)
class ExpectedValue:
    """A value that the history must have as of a time, such as a key figure of a published report.

    Args:
        as_of: The business time, as ISO text in UTC, date or datetime.
        expression: An aggregate in SQL over the versions in force at that time, such as `count_if(tier = 'Gold')`.
        value: The value of the expression.
    """

    as_of: str
    expression: str
    value: Scalar

    def __init__(self, as_of: str | dt.date, expression: str, value: Scalar) -> None:
        set_frozen_fields(self, as_of=canonical_time(as_of), expression=expression, value=value)

    @property
    def time(self) -> dt.datetime:
        """Return `as_of` as a time in UTC."""
        return to_datetime(self.as_of)
