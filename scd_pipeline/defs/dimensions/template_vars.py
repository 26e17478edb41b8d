"""Template variables of defs.yaml, from the environment."""

from __future__ import annotations

import dagster as dg

from scd_pipeline.environment import Environment


@dg.template_var
def declarations() -> str:
    """Return SCD_DECLARATIONS, a file or folder of declarations; default: in the folder of a clone its example."""
    return str(Environment.from_env().declarations or "")


@dg.template_var
def overdue_after_hours() -> float | None:
    """Return SCD_OVERDUE_HOURS, after which a source or a table is overdue; None if it is not set.

    Raises SetupError if it is not a number.
    """
    return Environment.from_env().overdue_after_hours


@dg.template_var
def docs_url() -> str:
    """Return SCD_DOCS_URL, the address at which the folder `docs` is served; empty if it is not set."""
    return Environment.from_env().docs_url
