"""What the environment of the process sets."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from scd_pipeline.declaration.tables import KINDS

EXAMPLE = Path(__file__).parent.parent / "examples" / "congress"
"""The example of a clone; an installed wheel has none."""


def declarations_folder(environ: Mapping[str, str]) -> Path | None:
    """The folder or file of declarations that nobody named: $SCD_DECLARATIONS, else the example in a clone."""
    named = environ.get("SCD_DECLARATIONS")
    if named:
        return Path(named).absolute()
    return EXAMPLE if EXAMPLE.is_dir() else None


def schemas(environ: Mapping[str, str]) -> dict[str, Any]:
    """Where a shared catalog has the tables, as a Warehouse takes it; nothing where they lie in the warehouse's folder.

    $SCD_SCHEMA is `schema` or `catalog.schema`; $SCD_SCHEMA_CHANGES and the like name another for a kind of table.
    """
    kinds = {kind: environ.get(f"SCD_SCHEMA_{kind.upper()}", "") for kind in KINDS}
    return {
        "schema": environ.get("SCD_SCHEMA") or None,
        "schemas": {kind: schema for kind, schema in kinds.items() if schema},
    }
