"""Profiles: named sets of column names and an open end, such as those that the tables of other tools have."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from scd_pipeline.declaration.column_names import ColumnName
from scd_pipeline.declaration.times import NULL_OPEN_END, OPEN_END

DEFAULT_PROFILE = "default"


@dataclass(frozen=True, slots=True)
class Profile:
    """Names of the generated columns of a table with windows, by their default names, and its open end."""

    column_names: Mapping[str, ColumnName] = field(default_factory=dict)
    open_end: str = OPEN_END


PROFILES: Mapping[str, Profile] = {
    DEFAULT_PROFILE: Profile(),
    "dbt": Profile(
        {
            "effective_from": "dbt_valid_from",
            "effective_to": "dbt_valid_to",
            "current_flag": False,
            "last_updated": "dbt_updated_at",
        },
        NULL_OPEN_END,
    ),
    "dlt": Profile(
        {
            "effective_from": "_dlt_valid_from",
            "effective_to": "_dlt_valid_to",
            "current_flag": False,
            "load_run_id": "_dlt_load_id",
            "row_hash": "_dlt_id",
        },
        NULL_OPEN_END,
    ),
    "auto_cdc": Profile(
        {"effective_from": "__START_AT", "effective_to": "__END_AT", "current_flag": False},
        NULL_OPEN_END,
    ),
    "elevata": Profile(
        {
            "effective_from": "version_started_at",
            "effective_to": "version_ended_at",
            "current_flag": False,
            "last_updated": "loaded_at",
            "row_hash": "row_hash",
        },
        NULL_OPEN_END,
    ),
}
"""The profiles by name. A declaration can give other names to single columns."""
