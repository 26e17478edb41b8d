"""Names of generated columns: declared one by one, or by a profile."""

from __future__ import annotations

from typing import Any

import pytest

from scd_pipeline.declaration import Attribute, Dimension, Source, describe, parse
from scd_pipeline.declaration.profiles import PROFILES
from scd_pipeline.declaration.source import Snapshot
from scd_pipeline.declaration.times import canonical_time
from scd_pipeline.errors import DeclarationError
from scd_pipeline.history.schema import stored_schema
from scd_pipeline_tests.semantics.specification import requirement

TYPES = {"city": Attribute(2), "manager": Attribute(3), "status": Attribute(6, previous=True)}


def customer(attributes: Any = None, **options: Any) -> Dimension:
    """A dimension with windows, unless its attributes are given."""
    return Dimension("dim_customer", "id", attributes or TYPES, Source("crm", Snapshot()), **options)


def columns(dimension: Dimension) -> list[str]:
    """The columns of the table."""
    return [name for name, _, _ in stored_schema(dimension)]


def codes(**options: Any) -> dict[str, str]:
    """The code of each error by its field."""
    with pytest.raises(DeclarationError) as caught:
        customer(**options)
    return {error.field: error.code for error in caught.value.errors}


def test_the_default_names() -> None:
    window = ["effective_from", "effective_to", "current_flag", "version"]
    origin = ["change_reason", "change_source", "load_run_id", "last_updated"]
    added = ["manager", "previous_manager", "manager_changed_at", "status", "current_status", "previous_status"]
    assert columns(customer()) == ["customer_key", "id", "city", *added, *window, *origin]


@requirement("X2", "X3", "X4")
def test_declared_names_replace_the_default_ones() -> None:
    names = {"effective_from": "valid_from", "effective_to": "valid_to", "current_flag": False, "row_hash": "_hash"}
    attributes = {
        "manager": Attribute(3, column_names={"previous": "manager_before", "changed_at": "manager_since"}),
        "status": Attribute(6, previous=True, column_names={"current": "status_now", "previous": "status_before"}),
    }
    dimension = customer(attributes, column_names=names)
    assert columns(dimension)[2:] == [
        *("manager", "manager_before", "manager_since", "status", "status_now", "status_before"),
        *("valid_from", "valid_to", "version", "change_reason", "change_source", "load_run_id", "last_updated"),
        "_hash",
    ]


@requirement("X5")
def test_type_6_needs_no_column_of_the_latest_value() -> None:
    attributes = {"status": Attribute(6, previous=True, column_names={"current": False})}
    assert columns(customer(attributes))[:5] == ["customer_key", "id", "status", "previous_status", "effective_from"]


@requirement("X1")
@pytest.mark.parametrize(("open_end", "nullable"), [(None, True), ("null", True), ("9999-12-31", False)])
def test_the_end_of_a_window_can_be_null(open_end: str | None, nullable: bool) -> None:
    dimension = customer(open_end=open_end)
    assert ("effective_to", "timestamp", nullable) in stored_schema(dimension)
    assert dimension.column_layout.has_null_end is nullable
    assert parse(describe(dimension)) == (dimension,)


@pytest.mark.parametrize("profile", PROFILES)
def test_a_profile_has_valid_names_and_single_ones_can_be_changed(profile: str) -> None:
    dimension = customer(profile=profile, column_names={"version": "number"}, deleted_rows="new_version")
    names = set(PROFILES[profile].column_names.values()) - {False}
    assert {*names, "number"} <= set(columns(dimension))
    assert parse(describe(dimension)) == (dimension,)


WINDOW_COLUMNS = {
    "default": [
        ("effective_from", "timestamp", False),
        ("effective_to", "timestamp", False),
        ("current_flag", "boolean", False),
        ("last_updated", "timestamp", False),
        ("load_run_id", "string", True),
    ],
    "dbt": [
        ("dbt_valid_from", "timestamp", False),
        ("dbt_valid_to", "timestamp", True),
        ("dbt_updated_at", "timestamp", False),
        ("load_run_id", "string", True),
    ],
    "dlt": [
        ("_dlt_valid_from", "timestamp", False),
        ("_dlt_valid_to", "timestamp", True),
        ("last_updated", "timestamp", False),
        ("_dlt_load_id", "string", True),
        ("_dlt_id", "string", True),
    ],
    "auto_cdc": [
        ("__START_AT", "timestamp", False),
        ("__END_AT", "timestamp", True),
        ("last_updated", "timestamp", False),
        ("load_run_id", "string", True),
    ],
    "elevata": [
        ("version_started_at", "timestamp", False),
        ("version_ended_at", "timestamp", True),
        ("loaded_at", "timestamp", False),
        ("load_run_id", "string", True),
        ("row_hash", "string", True),
        ("version_state", "string", True),
    ],
}
"""Name, type and nullability of the columns whose names or existence depend on the profile, in any order."""


@requirement("X1", "X2", "X3")
@pytest.mark.parametrize("profile", PROFILES)
def test_a_profile_names_the_limits_of_a_window_and_decides_whether_an_end_can_be_null(profile: str) -> None:
    independent = {"customer_key", "id", "city", "version", "change_reason", "change_source"}
    dimension = Dimension("dim_customer", "id", {"city": Attribute(2)}, Source("crm", Snapshot()), profile=profile)
    stored = [column for column in stored_schema(dimension) if column[0] not in independent]
    assert sorted(stored) == sorted(WINDOW_COLUMNS[profile])


@requirement("H13")
@pytest.mark.parametrize("name", ["row_hash", "ROW_HASH"])
def test_a_hash_of_the_source_replaces_that_of_a_profile(name: str) -> None:
    dimension = customer({name: 2, "city": Attribute(1, untracked="at_open")}, profile="elevata")
    names = [column.casefold() for column in columns(dimension)]
    assert names.count("row_hash") == 1
    assert names.index("row_hash") < names.index("version_started_at")
    assert parse(describe(dimension)) == (dimension,)


def test_a_profile_leaves_a_table_without_windows_unchanged() -> None:
    attributes = {"name": Attribute(1)}
    assert columns(customer(attributes, profile="dlt")) == columns(customer(attributes))


@requirement("X1")
def test_a_declared_open_end_replaces_that_of_the_profile() -> None:
    """Also if it is the default open end of a table without a profile."""
    for open_end in ("9999-12-31", "9999-12-31 23:59:59"):
        dimension = customer(profile="dlt", open_end=open_end)
        assert ("_dlt_valid_to", "timestamp", False) in stored_schema(dimension)
        assert f"open_end: '{canonical_time(open_end)}'" in describe(dimension)
    assert ("_dlt_valid_to", "timestamp", True) in stored_schema(customer(profile="dlt"))


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"column_names": {"valid_from": "x"}}, {"column_names.valid_from": "UNKNOWN_NAME"}),
        ({"column_names": {"version": False}}, {"column_names.version": "NOT_ALLOWED"}),
        ({"column_names": {"version": "a b"}}, {"column_names.version": "INVALID_NAME"}),
        ({"column_names": {"version": 1}}, {"column_names.version": "INVALID_NAME"}),
        ({"column_names": {"version": "_change_type"}}, {"column_names.version": "NAME_IN_USE"}),
        ({"column_names": {"version": "City"}}, {"column_names.version": "NAME_IN_USE"}),
        (
            {"attributes": {"row_hash": 2}, "column_names": {"row_hash": "row_hash"}},
            {"column_names.row_hash": "NAME_IN_USE"},
        ),
        (
            {"attributes": {"row_hash": 2}, "profile": "elevata", "column_names": {"row_hash": "row_hash"}},
            {"column_names.row_hash": "NAME_IN_USE"},
        ),
        ({"surrogate_key": "version_state", "profile": "elevata"}, {"surrogate_key": "NAME_IN_USE"}),
        (
            {"attributes": {"version_state": 2}, "column_names": {"version_state": "state"}},
            {"attributes.version_state": "NAME_IN_USE"},
        ),
        ({"column_names": {"version": "number", "row_hash": "number"}}, {"column_names.row_hash": "NAME_IN_USE"}),
        ({"column_names": {"effective_from": "effective_to"}}, {"column_names.effective_from": "NAME_IN_USE"}),
        ({"column_names": {"deleted_at": "gone_at"}}, {"column_names.deleted_at": "NOT_APPLICABLE"}),
        ({"column_names": 3}, {"column_names": "INVALID_KIND"}),
        ({"profile": "dlq"}, {"profile": "NOT_ALLOWED"}),
        (
            {"attributes": {"name": Attribute(1)}, "column_names": {"version": "number"}},
            {"column_names.version": "NOT_APPLICABLE"},
        ),
        (
            {"attributes": {"city": Attribute(2, column_names={"previous": "city_before"})}},
            {"attributes.city.column_names.previous": "NOT_APPLICABLE"},
        ),
    ],
)
def test_an_invalid_name_is_reported(options: dict[str, Any], expected: dict[str, str]) -> None:
    assert codes(**options) == expected


@requirement("F9", "F63")
@pytest.mark.parametrize("scd", [0, 1, 3, 6])
@pytest.mark.parametrize("whole", [True, False])
def test_each_value_of_a_regulated_attribute_stays_in_the_history(scd: int, whole: bool) -> None:
    attributes = {"limit": Attribute(scd, regulated=not whole), "since": Attribute(2)}
    assert codes(attributes=attributes, regulated=whole) == {"attributes.limit.scd": "INVALID_SCD_TYPE"}
    assert customer({"limit": Attribute(2, regulated=True)}).attribute("limit").regulated


@requirement("F31")
@pytest.mark.parametrize(
    ("strategy", "problem", "fix"),
    [
        (
            "monotonically_increasing_id",
            "monotonically_increasing_id gives other keys at each load, and keys that are assigned already",
            "write hash, or remove it",
        ),
        (
            "row_number",
            "row_number gives other keys when deliveries arrive in another order",
            "write hash, or remove it",
        ),
        (
            "identity",
            "identity gives other keys after a rebuild, so facts would store keys that no longer exist",
            "write hash, or remove it",
        ),
        ("uuid", "'uuid' is not allowed", "allowed: hash"),
    ],
)
def test_surrogate_keys_are_hashes(strategy: str, problem: str, fix: str) -> None:
    assert customer(surrogate="hash") == customer()
    with pytest.raises(DeclarationError) as caught:
        customer(surrogate=strategy)
    (error,) = caught.value.errors
    assert (error.code, error.field, error.problem, error.fix) == ("NOT_ALLOWED", "surrogate", problem, fix)
