"""Template variables of defs.yaml, from the environment."""

from __future__ import annotations

import os

import dagster as dg

from scd_pipeline.environment import declarations_folder
from scd_pipeline.errors import SetupError


@dg.template_var
def declarations() -> str:
    """Return SCD_DECLARATIONS, a file or folder of declarations; default: the example of a clone, or empty."""
    return str(declarations_folder(os.environ) or "")


@dg.template_var
def overdue_after_hours() -> float | None:
    """Return SCD_OVERDUE_HOURS, after which a source or a table is overdue; None if it is not set.

    Raises SetupError if it is not a number.
    """
    hours = os.environ.get("SCD_OVERDUE_HOURS")
    try:
        return float(hours) if hours else None
    except ValueError:
        raise SetupError("OVERDUE_HOURS", "SCD_OVERDUE_HOURS", value=hours) from None


@dg.template_var
def docs_url() -> str:
    """Return SCD_DOCS_URL, the address at which the folder `docs` is served; empty if it is not set."""
    return os.environ.get("SCD_DOCS_URL", "")
