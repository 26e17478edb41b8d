"""What defs.yaml asks of the environment."""

from __future__ import annotations

import os

import dagster as dg

from scd_pipeline.environment import declarations_folder
from scd_pipeline.errors import SetupError


@dg.template_var
def declarations() -> str:
    """The declarations' folder or file: $SCD_DECLARATIONS, else the example's in a clone, else none."""
    return str(declarations_folder(os.environ) or "")


@dg.template_var
def overdue_after_hours() -> float | None:
    """$SCD_OVERDUE_HOURS, after which a source or a table is overdue; none if it is not set.  Errors: SetupError."""
    hours = os.environ.get("SCD_OVERDUE_HOURS")
    try:
        return float(hours) if hours else None
    except ValueError:
        raise SetupError(f"SCD_OVERDUE_HOURS={hours}: this is no number; expected hours, as 26 or 0.5") from None


@dg.template_var
def docs_url() -> str:
    """$SCD_DOCS_URL, the address at which the folder `docs` is served; empty if it is not set."""
    return os.environ.get("SCD_DOCS_URL", "")
