"""The properties that checks verify: the one table of their names, descriptions and rules.

Library, command line and Dagster use these names. A check is named by the property that it verifies, and its
description is that property as a sentence, so that both fit a check that passes and one that fails.
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
KEY_LIST_IS_COMPLETE = "key_list_is_complete"
NO_FOREIGN_COMMITS = "no_foreign_commits"
UPSTREAM_HAS_APPLIED_COMMITS = "upstream_has_applied_commits"
TABLES_ARE_APPEND_ONLY = "tables_are_append_only"
GRAIN_IS_UNIQUE = "grain_is_unique"
SURROGATE_KEYS_EXIST = "surrogate_keys_exist"
SURROGATE_KEYS_FIT_EVENT_TIME = "surrogate_keys_fit_event_time"
SOURCES_ARE_ON_TIME = "sources_are_on_time"


@dataclass(frozen=True, slots=True)
class Property:
    """A property of tables: a sentence that is true where its check passes, and the rules that demand it."""

    sentence: str
    rules: tuple[str, ...] = ()

    @property
    def description(self) -> str:
        """The sentence with the numbers of its rules in brackets."""
        return f"{self.sentence} ({', '.join(self.rules)})." if self.rules else f"{self.sentence}."


PROPERTIES: Mapping[str, Property] = {
    ONE_CURRENT_VERSION: Property("At most one version of an entity is current", ("S3",)),
    WINDOWS_DO_NOT_OVERLAP: Property("The validity windows of one entity do not overlap", ("S2",)),
    WINDOWS_HAVE_BOTH_ENDS: Property(
        "Every validity window has a start and an end; a window without an end has the declared open end", ("S2",)
    ),
    WINDOWS_ARE_NOT_EMPTY: Property("Every validity window ends after it starts", ("S2",)),
    CURRENT_VERSIONS_ARE_OPEN: Property("A version is current exactly if its window has the open end", ("S2", "S3")),
    VERSION_NUMBERS_ARE_CONSECUTIVE: Property(
        "The versions of one entity are numbered from 1, consecutively in order of time", ("S3",)
    ),
    SURROGATE_KEYS_ARE_UNIQUE: Property("A surrogate key identifies one version", ("S14",)),
    SURROGATE_KEYS_ARE_NOT_RESERVED: Property("No version has the surrogate key of a reserved member", ("S14", "S23")),
    AUDIT_REBUILDS_DIMENSION: Property("The dimension equals the one rebuilt from the audit", ("S22",)),
    KEY_LIST_IS_COMPLETE: Property(
        "The key list has every surrogate key that the audit has recorded as assigned", ("S14", "S24")
    ),
    NO_FOREIGN_COMMITS: Property(
        "All commits of the tables are pipeline commits, and no table that other tables depend on is missing",
        ("S17",),
    ),
    UPSTREAM_HAS_APPLIED_COMMITS: Property(
        "Every table that another one is derived from has all the commits that this one has applied", ("S17",)
    ),
    TABLES_ARE_APPEND_ONLY: Property(
        "Change log, audit and key list are append-only: delta.appendOnly is set", ("S22",)
    ),
    GRAIN_IS_UNIQUE: Property("The grain of a fact identifies one row", ("S23",)),
    SURROGATE_KEYS_EXIST: Property("Every surrogate key that a fact stores exists in its dimension", ("S24",)),
    SURROGATE_KEYS_FIT_EVENT_TIME: Property(
        "Every fact stores the surrogate key of the version in force at its event time, and -1 if none is",
        ("S23", "S24"),
    ),
    SOURCES_ARE_ON_TIME: Property("Every source has delivered within the time that it is allowed"),
}
"""Each check's property, by the check's name."""
