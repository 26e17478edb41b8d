"""The component that turns declarations into assets, by one line of YAML."""

from __future__ import annotations

from pathlib import Path

import dagster as dg
from pydantic import Field

from scd_pipeline.components.assets import dimension_assets
from scd_pipeline.spec import load_dimensions


class ScdDimension(dg.Component, dg.Model, dg.Resolvable):
    """Slowly changing dimensions from their declarations: for each its change log and its table, loaded together."""

    declaration: str = Field(
        default=".",
        description=(
            "A declaration's file, or a folder of them; a relative path starts at the folder of this defs.yaml. "
            "Empty: there is none."
        ),
    )

    def build_defs(self, context: dg.ComponentLoadContext) -> dg.Definitions:
        """One multi-asset for each declared dimension.

        Errors: DeclarationError with file, line and field of every fault, when the definitions load (S28).
        """
        if not self.declaration:
            return dg.Definitions()
        dimensions = load_dimensions(Path(context.path) / self.declaration)
        return dg.Definitions(assets=[dimension_assets(dimension) for dimension in dimensions])
