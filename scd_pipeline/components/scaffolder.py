"""What `dg scaffold defs scd_pipeline.components.ScdDimension <name>` writes: a dimension that loads as it is.

The command belongs to the package `dagster-dg-cli`, which this one does not need otherwise.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import dagster as dg
from pydantic import BaseModel, Field

from scd_pipeline.components.assets import plain
from scd_pipeline.errors import UsageError

_DECLARATION = """\
# A sample to edit: what identifies an entity, how each attribute changes, and how the source delivers.
dimension: {dimension}
description: One sentence for its readers
business_key: id
sources:
  sample:
    snapshot: landing/{name}_{{date}}.csv # each file lists every entity; one that is missing in it is deleted
attributes:
  name: {{scd: 1, personal: true}} # 1: the latest value, in every version
  city: 2 # 2: another value opens a version
"""
_SAMPLE = "id,name,city\n1,First sample,Graz\n2,Second sample,Wien\n"
_RESOURCE = '''\
"""The warehouse of the components ScdDimension."""

import dagster as dg

from scd_pipeline.components import WarehouseResource


@dg.definitions
def resources() -> dg.Definitions:
    """SCD_WAREHOUSE names the folder (else `warehouse`), SCD_REMOTE a Spark Connect server (else Spark is embedded)."""
    return dg.Definitions(resources={"warehouse": WarehouseResource.from_env()})
'''


class SampleParams(BaseModel):
    """The options of the command."""

    dimension: str = Field(default="", description="The dimension's name; dim_ and the name of the folder by default.")


class DimensionScaffolder(dg.Scaffolder[SampleParams]):
    """Writes a component with its declaration and a delivery, and the resource `warehouse` if no file defines one."""

    @classmethod
    def get_scaffold_params(cls) -> type[SampleParams]:
        """Return the options of the command."""
        return SampleParams

    def scaffold(self, request: dg.ScaffoldRequest[SampleParams]) -> None:
        """Write the files.

        Raises UsageError if the declaration exists, or if the format is not YAML.
        """
        if request.scaffold_format != "yaml":
            raise UsageError(f"{request.target_path}: the format is {request.scaffold_format}; expected yaml")
        folder = request.target_path.parent if request.append else request.target_path
        name = plain(folder.name.lower())
        dimension = request.params.dimension or (name if name.startswith("dim_") else f"dim_{name}")
        declaration, delivery = folder / f"{dimension}.yaml", folder / "landing" / f"{name}_2024-01-01.csv"
        if declaration.exists():
            raise UsageError(f"{declaration}: the file exists; expected a new one; name another by --dimension")
        attributes: dict[str, Any] = {"declaration": declaration.name}
        dg.scaffold_component(request, attributes)
        declaration.write_text(_DECLARATION.format(dimension=dimension, name=name), encoding="utf-8")
        delivery.parent.mkdir(exist_ok=True)
        if not delivery.exists():
            delivery.write_text(_SAMPLE, encoding="utf-8")
        defs = _defs_folder(folder)
        if not _has_warehouse(defs):
            (defs / "warehouse.py").write_text(_RESOURCE, encoding="utf-8")


def _defs_folder(folder: Path) -> Path:
    """Return the folder of all components: the nearest one above that is called `defs`, else the one above."""
    return next((parent for parent in folder.parents if parent.name == "defs"), folder.parent)


def _has_warehouse(defs: Path) -> bool:
    """Return whether a Python file of the project's package mentions the resource."""
    files = sorted((defs.parent if defs.name == "defs" else defs).rglob("*.py"))
    return (defs / "warehouse.py").exists() or any(
        "WarehouseResource" in file.read_text(encoding="utf-8", errors="replace") for file in files
    )
