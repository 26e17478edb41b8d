"""What a load of a fact replaces: the rows that change, the scopes that have such rows, or the whole table.

The choice changes how the rows are written, and never which rows the fact has. `python -m benchmarks.fact_strategies`
measures the strategies; the constants follow from it.
"""

from __future__ import annotations

from dataclasses import dataclass

from scd_pipeline.declaration.fact import Fact, WriteStrategy

WHOLE_BELOW = 200_000
"""Below this number of stored rows it is cheaper to replace the whole table than to look up the rows that change."""
SCOPE_FROM = 1_000_000
"""From this number of stored rows on it is cheaper to replace scopes than to merge into most of their rows."""
MOST = 0.5
"""The share of the rows of a part that have to change, so that it is cheaper to replace all of them."""


@dataclass(frozen=True, slots=True)
class FactSizes:
    """The numbers of rows that a load of a fact concerns.

    Attributes:
        stored: The rows before the load, or more; None if unknown.
        opened: The rows that are added.
        overwritten: The stored rows whose values change.
        removed: The stored rows that are deleted.
        in_scopes: The stored rows of the scopes that the load delivers, about; None if it delivers others too.
    """

    stored: int | None
    opened: int = 0
    overwritten: int = 0
    removed: int = 0
    in_scopes: int | None = None

    @property
    def replaced(self) -> int:
        """The stored rows that change."""
        return self.overwritten + self.removed

    @property
    def after(self) -> int | None:
        """The rows after the load, or more; None if unknown."""
        return None if self.stored is None else self.stored + self.opened - self.removed


@dataclass(frozen=True, slots=True)
class WritePlan:
    """How a load writes the rows of a table that change.

    Attributes:
        strategy: What it replaces, if stored rows change.
        scope: The columns of the scopes of a fact.
        sizes: The numbers of rows of a fact; unknown for any other table.
    """

    strategy: WriteStrategy = "increments"
    scope: tuple[str, ...] = ()
    sizes: FactSizes = FactSizes(None)


BY_KEY = WritePlan()
"""How the rows of any other table than a fact are written."""


def choose_strategy(fact: Fact, sizes: FactSizes) -> WriteStrategy:
    """Return the declared strategy of a fact, or by default the one that writes these numbers of rows the fastest.

    By default, scopes are replaced only if rows are removed, for which the increments need a MERGE.
    """
    if fact.strategy != "by_size":
        return fact.strategy
    if sizes.stored is None:
        return "increments"
    if not fact.scope:
        is_cheaper = sizes.stored < WHOLE_BELOW or sizes.replaced >= MOST * sizes.stored
        return "whole" if is_cheaper else "increments"
    if sizes.in_scopes is None or sizes.stored < SCOPE_FROM or not sizes.removed:
        return "increments"
    return "scope" if sizes.replaced >= MOST * sizes.in_scopes else "increments"
