"""Error conditions: for each stable code the problem and its fix, as text with placeholders.

A message reads `[CODE] <location>: <problem>; <fix>`. The problem ends with what was expected. The details of an error
fill the placeholders; no detail holds a personal value (S31). The meaning of a code never changes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Condition:
    """What is wrong, with what was expected, and how to fix it."""

    problem: str
    fix: str


CONDITIONS: Mapping[str, Condition] = {
    # Declarations
    # Deliveries
    # Tables
    # Loads
    # Queries
    # Spark and set-up
    # Command line
}
