"""The scaffolder of `dg scaffold defs scd_pipeline.components.ScdDimension <name>`.

It writes a dimension with a sample delivery that loads without edits. The command is part of the package
`dagster-dg-cli`, which scd_pipeline does not require otherwise.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import dagster as dg
from pydantic import BaseModel, Field

from scd_pipeline.errors import UsageError
from scd_pipeline.operations.dagster_names import dagster_name

_DECLARATION = """\
# A sample to edit: the business key, the SCD type of each attribute, and the deliveries of the source.
dimension: {dimension}
description: One sentence about the entities
business_key: id
sources:
  sample:
    snapshot: landing/{name}_{{date}}.csv # a full extract: an entity that it omits is deleted
attributes:
  name: {{scd: 1, personal: true}} # type 1: every version has the latest value
  city: 2 # type 2: a different value opens a version
"""
_SAMPLE = "id,name,city\n1,First sample,Graz\n2,Second sample,Wien\n"
_RESOURCE = Path(__file__).parents[1] / "defs" / "resources.py"
"""The definition of the resource `warehouse`, which ScdDimension components require."""


class SampleParams(BaseModel):
    """The options of the command."""

    dimension: str = Field(default="", description="Name of the dimension; default: dim_ and the name of the folder.")


class DimensionScaffolder(dg.Scaffolder[SampleParams]):
    """Scaffolds a component with its declaration and a delivery, and the resource `warehouse` if no file defines it."""

    @classmethod
    def get_scaffold_params(cls) -> type[SampleParams]:
        """Return the options of the command."""
        return SampleParams

    def scaffold(self, request: dg.ScaffoldRequest[SampleParams]) -> None:
        """Write the files.

        Raises UsageError if the declaration exists, or if the format is not YAML.
        """
        if request.scaffold_format != "yaml":
            raise UsageError("SCAFFOLD_FORMAT", str(request.target_path), format=request.scaffold_format)
        folder = request.target_path.parent if request.append else request.target_path
        name = dagster_name(folder.name.lower())
        dimension = request.params.dimension or (name if name.startswith("dim_") else f"dim_{name}")
        declaration, delivery = folder / f"{dimension}.yaml", folder / "landing" / f"{name}_2024-01-01.csv"
        if declaration.exists():
            raise UsageError("DECLARATION_FILE_EXISTS", str(declaration))
        attributes: dict[str, Any] = {"declaration": declaration.name}
        dg.scaffold_component(request, attributes)
        declaration.write_text(_DECLARATION.format(dimension=dimension, name=name), encoding="utf-8")
        delivery.parent.mkdir(exist_ok=True)
        if not delivery.exists():
            delivery.write_text(_SAMPLE, encoding="utf-8")
        defs = _defs_folder(folder)
        if not _has_warehouse(defs):
            shutil.copyfile(_RESOURCE, defs / "warehouse.py")


def _defs_folder(folder: Path) -> Path:
    """Return the folder of all definitions: the nearest parent named `defs`, or else the parent."""
    return next((parent for parent in folder.parents if parent.name == "defs"), folder.parent)


def _has_warehouse(defs: Path) -> bool:
    """Return whether a Python file of the project's package mentions the resource."""
    files = sorted((defs.parent if defs.name == "defs" else defs).rglob("*.py"))
    return (defs / "warehouse.py").exists() or any(
        "WarehouseResource" in file.read_text(encoding="utf-8", errors="replace") for file in files
    )
