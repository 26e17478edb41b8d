"""Names, descriptions and rules of all checks, for the library, the command line and Dagster.

A check is named after the property that it verifies, and its description states that property, so that both fit a check
that passes and a check that fails. The queries of the properties of rows are in `dimensions` and `facts`; the others
need several tables and are in `operations.check`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

ONE_CURRENT_VERSION = "one_current_version"
WINDOWS_DO_NOT_OVERLAP = "windows_do_not_overlap"
WINDOWS_HAVE_BOTH_ENDS = "windows_have_both_ends"
WINDOWS_ARE_NOT_EMPTY = "windows_are_not_empty"
CURRENT_VERSIONS_ARE_OPEN = "current_versions_are_open"
VERSION_NUMBERS_ARE_CONSECUTIVE = "version_numbers_are_consecutive"
SURROGATE_KEYS_ARE_UNIQUE = "surrogate_keys_are_unique"
SURROGATE_KEYS_ARE_NOT_RESERVED = "surrogate_keys_are_not_reserved"
AUDIT_REBUILDS_DIMENSION = "audit_rebuilds_dimension"
NO_FOREIGN_COMMITS = "no_foreign_commits"
UPSTREAM_HAS_APPLIED_COMMITS = "upstream_has_applied_commits"
TABLES_ARE_APPEND_ONLY = "tables_are_append_only"
NO_UNUSED_TABLES = "no_unused_tables"
CHILD_TABLES_HAVE_ALL_ELEMENTS = "child_tables_have_all_elements"
DATA_FILES_EXIST = "data_files_exist"
GRAIN_IS_UNIQUE = "grain_is_unique"
SURROGATE_KEYS_EXIST = "surrogate_keys_exist"
SURROGATE_KEYS_FIT_EVENT_TIME = "surrogate_keys_fit_event_time"
UNKNOWN_SHARES_ARE_WITHIN_LIMITS = "unknown_shares_are_within_limits"
DELIVERIES_ACCEPTED = "deliveries_accepted"
SOURCES_ARE_ON_TIME = "sources_are_on_time"
EXPECTED_VALUES_ARE_REPRODUCED = "expected_values_are_reproduced"
DELETES_ARE_IN_EFFECT = "deletes_are_in_effect"
CHECKLIST_IS_COMPLETE = "checklist_is_complete"
STORED_ROWS_EQUAL_READ = "stored_rows_equal_read"


@dataclass(frozen=True, slots=True)
class CheckDescription:
    """The description of a check: a sentence that is true if the check passes, and the rules that it verifies."""

    name: str
    sentence: str
    rules: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """The sentence with the numbers of its rules in brackets."""
        return f"{self.sentence} ({', '.join(self.rules)})." if self.rules else f"{self.sentence}."


_DESCRIPTIONS = (
    CheckDescription(ONE_CURRENT_VERSION, "At most one version of an entity is current", ("S3",)),
    CheckDescription(WINDOWS_DO_NOT_OVERLAP, "The validity windows of one entity do not overlap", ("S2",)),
    CheckDescription(
        WINDOWS_HAVE_BOTH_ENDS,
        "Every validity window has a start and an end; a window without an end has the declared open end",
        ("S2",),
    ),
    CheckDescription(WINDOWS_ARE_NOT_EMPTY, "Every validity window ends after it starts", ("S2",)),
    CheckDescription(
        CURRENT_VERSIONS_ARE_OPEN, "A version is current exactly if its window has the open end", ("S2", "S3")
    ),
    CheckDescription(
        VERSION_NUMBERS_ARE_CONSECUTIVE,
        "The versions of one entity are numbered from 1, consecutively in order of time",
        ("S3",),
    ),
    CheckDescription(SURROGATE_KEYS_ARE_UNIQUE, "A surrogate key identifies one version", ("S14",)),
    CheckDescription(
        SURROGATE_KEYS_ARE_NOT_RESERVED, "No version has the surrogate key of a reserved member", ("S14", "S23")
    ),
    CheckDescription(AUDIT_REBUILDS_DIMENSION, "The dimension equals the one rebuilt from the audit", ("S22",)),
    CheckDescription(
        NO_FOREIGN_COMMITS,
        "All commits that changed rows are pipeline commits, and no table that other tables depend on is missing",
        ("S17",),
    ),
    CheckDescription(
        UPSTREAM_HAS_APPLIED_COMMITS,
        "Every upstream table has all commits that its downstream tables have applied",
        ("S17",),
    ),
    CheckDescription(TABLES_ARE_APPEND_ONLY, "Change log and audit are append-only: delta.appendOnly is set", ("S22",)),
    CheckDescription(
        NO_UNUSED_TABLES, "No table of an earlier release or declaration is left that loads do not use any more"
    ),
    CheckDescription(
        CHILD_TABLES_HAVE_ALL_ELEMENTS,
        "Each child table has a row for every element of the arrays of all versions, and no other row",
        ("S40",),
    ),
    CheckDescription(DATA_FILES_EXIST, "Every data file of the newest version of each table exists", ("S17",)),
    CheckDescription(GRAIN_IS_UNIQUE, "The grain of a fact identifies one row", ("S23",)),
    CheckDescription(SURROGATE_KEYS_EXIST, "Every surrogate key that a fact stores exists in its dimension", ("S24",)),
    CheckDescription(
        SURROGATE_KEYS_FIT_EVENT_TIME,
        "Every fact stores the surrogate key of the version in force at its event time, and -1 if none is",
        ("S23", "S24"),
    ),
    CheckDescription(
        UNKNOWN_SHARES_ARE_WITHIN_LIMITS,
        "In each role that declares `unknown_limit`, the share of rows with the key -1 or -3 is within this limit",
        ("S23",),
    ),
    CheckDescription(DELIVERIES_ACCEPTED, "No available delivery is rejected", ("S26", "S27")),
    CheckDescription(SOURCES_ARE_ON_TIME, "Every source has delivered on time"),
    CheckDescription(EXPECTED_VALUES_ARE_REPRODUCED, "The history has the expected values that its declaration lists"),
    CheckDescription(
        DELETES_ARE_IN_EFFECT, "The last snapshot of the existence source deletes the entities that it omits", ("S27",)
    ),
    CheckDescription(CHECKLIST_IS_COMPLETE, "No item of the checklist of the dimension fails"),
    CheckDescription(
        STORED_ROWS_EQUAL_READ, "The stored rows of a timed table equal the rows of a read at the same time", ("S12",)
    ),
)

CHECK_DESCRIPTIONS: Mapping[str, CheckDescription] = {check.name: check for check in _DESCRIPTIONS}
"""The description of each check, by the name of the check."""

WARNING_CHECKS = frozenset({DELETES_ARE_IN_EFFECT, NO_UNUSED_TABLES})
"""The checks of tables whose violation is a warning: the tables are as the deliveries and the declaration say."""
