"""Everything that a load brings up to date: dimensions, facts and landing tables."""

from __future__ import annotations

from typing import TypeAlias

from scd_pipeline.declaration.dimension import Dimension
from scd_pipeline.declaration.fact import Fact
from scd_pipeline.declaration.landing_table import LandingTable

DeclaredTable: TypeAlias = Dimension | Fact | LandingTable


def as_dimension(table: DeclaredTable) -> Dimension:
    """Return a dimension as it is, and a fact or a landing table as the dimension of its rows."""
    return table if isinstance(table, Dimension) else table.as_dimension()


def referenced_dimensions(table: DeclaredTable) -> tuple[Dimension, ...]:
    """Return the dimensions whose surrogate keys a fact stores; none for any other table."""
    return table.dimensions if isinstance(table, Fact) else ()
