"""Profiles: sets of column names, open end and labels of change types, such as those that other tools have."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from scd_pipeline.declaration.change_types import VERSION_STATES
from scd_pipeline.declaration.column_names import ColumnName
from scd_pipeline.declaration.times import NULL_OPEN_END, OPEN_END

DEFAULT_PROFILE = "default"


@dataclass(frozen=True, slots=True)
class Profile:
    """How a table with windows has its generated columns, and its audit the change types.

    Attributes:
        column_names: Names of the generated columns, by their default names.
        open_end: The open end.
        change_types: Labels of change types, by change type.
        technical: Columns that the tool adds to the source of a table too, and that are not mirrored (S36).
    """

    column_names: Mapping[str, ColumnName] = field(default_factory=dict)
    open_end: str = OPEN_END
    change_types: Mapping[str, str] = field(default_factory=dict)
    technical: tuple[str, ...] = ()


PROFILES: Mapping[str, Profile] = {
    DEFAULT_PROFILE: Profile(),
    "dbt": Profile(
        {
            "effective_from": "dbt_valid_from",
            "effective_to": "dbt_valid_to",
            "current_flag": False,
            "last_updated": "dbt_updated_at",
            "is_deleted": "dbt_is_deleted",
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
            "version_state": "version_state",
        },
        NULL_OPEN_END,
        VERSION_STATES,
        ("load_run_id", "loaded_at"),
    ),
}
"""The profiles by name. A declaration can give other names to single columns."""
