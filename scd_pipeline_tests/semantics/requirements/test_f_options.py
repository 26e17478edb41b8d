"""X1 to X23: an option rejects values that it does not have.

Names of columns and another open end leave the history and its keys unchanged.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from scd_pipeline.declaration import Dimension, parse
from scd_pipeline.errors import DeclarationError
from scd_pipeline_tests.semantics.engine import OwnTables
from scd_pipeline_tests.semantics.specification import by_files, declare, feed, requirement
from scd_pipeline_tests.text_tables import assert_same_rows

DECLARATION = """
dimension: dim_player
business_key: player_id
sources: {{loyalty: {source}}}
attributes: {attributes}
{option}
"""
PREVIOUS = "attributes.tier.column_names.previous"


def errors(
    option: str = "", *, attributes: str = "{tier: 2, email: 1}", source: str = "{feed: {effective_at: time}}"
) -> dict[str, str]:
    """The codes of the errors of a declaration by their fields; none if it is valid."""
    try:
        parse(DECLARATION.format(option=option, attributes=attributes, source=source))
    except DeclarationError as error:
        return {each.field: each.code for each in error.errors}
    return {}


def feed_with(option: str) -> str:
    """A source with an option of its feed."""
    return f"{{feed: {{effective_at: time, {option}}}}}"


@requirement("X1", "X2", "X3")
@pytest.mark.parametrize(
    ("option", "rejected"),
    [
        ("open_end: 9999-12-31 23:59:59", {}),
        ("open_end: null", {}),
        ("open_end: 2999-12-31", {}),
        ("open_end: soon", {"open_end": "NO_ISO_TIME"}),
        ("open_end: false", {"open_end": "UNQUOTED_TEXT"}),
        ("column_names: {current_flag: is_current}", {}),
        ("column_names: {current_flag: false}", {}),
        ("column_names: {current_flag: true}", {"column_names.current_flag": "INVALID_KIND"}),
        ("column_names: {current_flag: tier}", {"column_names.current_flag": "NAME_IN_USE"}),
        ("column_names: {effective_from: valid_from, effective_to: valid_to}", {}),
        ("column_names: {effective_from: false}", {"column_names.effective_from": "NOT_ALLOWED"}),
        ("column_names: {effective_to: effective_from}", {"column_names.effective_to": "NAME_IN_USE"}),
        ("column_names: {valid_from: since}", {"column_names.valid_from": "UNKNOWN_OPTION"}),
    ],
)
def test_an_open_end_a_flag_and_a_window_have_no_other_values(option: str, rejected: Mapping[str, str]) -> None:
    assert errors(option) == rejected


@requirement("X4", "X5", "X6")
@pytest.mark.parametrize(
    ("attribute", "rejected"),
    [
        ("{scd: 3}", {}),
        ("{scd: 3, column_names: {previous: tier_before, changed_at: tier_since}}", {}),
        ("{scd: 3, column_names: {previous: false}}", {PREVIOUS: "NOT_ALLOWED"}),
        ("{scd: 3, column_names: {before: tier_before}}", {"attributes.tier.column_names.before": "UNKNOWN_OPTION"}),
        ("{scd: 2, column_names: {previous: tier_before}}", {PREVIOUS: "NOT_APPLICABLE"}),
        ("{scd: 6}", {}),
        ("{scd: 6, column_names: {current: false}}, current_tier: 1", {}),
        ("{scd: 6, column_names: {current: true}}", {"attributes.tier.column_names.current": "INVALID_KIND"}),
        ("{scd: 6}, current_tier: 1", {"attributes.tier": "NAME_IN_USE"}),
        ("{scd: 6, previous: version_before}", {}),
        ("{scd: 6, previous: last_different_value}", {}),
        ("{scd: 6, previous: any}", {"attributes.tier.previous": "NOT_ALLOWED"}),
        ("{scd: 2, previous: true}", {"attributes.tier.previous": "NOT_APPLICABLE"}),
    ],
)
def test_columns_of_types_3_and_6_have_no_other_values(attribute: str, rejected: Mapping[str, str]) -> None:
    assert errors(attributes=f"{{tier: {attribute}}}") == rejected


@requirement("X7", "X8")
@pytest.mark.parametrize(
    ("declared", "rejected"),
    [
        ({"source": "{feed: {effective_at: time}}"}, {}),
        ({"source": "{feed: {}}"}, {}),
        ({"source": "{feed: {effective_at: true}}"}, {"sources.loyalty.feed.effective_at": "UNQUOTED_TEXT"}),
        ({"source": "{feed: {clock: true}}"}, {"sources.loyalty.feed.clock": "UNKNOWN_OPTION"}),
        ({"option": "surrogate: hash"}, {}),
        ({"option": "surrogate: identity"}, {"surrogate": "NOT_ALLOWED"}),
        ({"option": "key_salt: 3"}, {"key_salt": "UNQUOTED_TEXT"}),
        ({"attributes": "{row_hash: {scd: 2, required: true}, email: {scd: 1, untracked: at_open}}"}, {}),
        (
            {"attributes": "{row_hash: {scd: 2, required: maybe}}"},
            {"attributes.row_hash.required": "INVALID_KIND"},
        ),
        ({"attributes": "{tier: {scd: 4}}"}, {"attributes.tier.scd": "INVALID_SCD_TYPE"}),
    ],
)
def test_times_and_keys_have_no_other_values(declared: Mapping[str, str], rejected: Mapping[str, str]) -> None:
    assert errors(**declared) == rejected


@requirement("X10", "X11", "X12")
@pytest.mark.parametrize(
    ("declared", "rejected"),
    [
        ({"attributes": "{tier: 2, email: {scd: 1, untracked: at_open}}"}, {}),
        ({"attributes": "{tier: 2, email: {scd: 1, untracked: maybe}}"}, {"attributes.email.untracked": "NOT_ALLOWED"}),
        ({"source": "{snapshot: {}}"}, {}),
        ({"source": "{snapshot: {scope: player_id}}"}, {}),
        ({"source": "{snapshot: {scope: country}}"}, {"sources.loyalty.snapshot.scope": "UNKNOWN_NAME"}),
        ({"source": "{}"}, {"sources.loyalty": "MISSING_VALUE"}),
        ({"option": "deleted_rows: keep"}, {}),
        ({"option": "deleted_rows: new_version"}, {}),
        ({"option": "deleted_rows: new_version", "attributes": "{email: 1}"}, {"deleted_rows": "NOT_APPLICABLE"}),
        ({"option": "deleted_rows: remove", "attributes": "{email: 1}"}, {}),
        ({"option": "deleted_rows: remove"}, {"deleted_rows": "NOT_APPLICABLE"}),
        ({"option": "deleted_rows: drop", "attributes": "{email: 1}"}, {"deleted_rows": "NOT_ALLOWED"}),
    ],
)
def test_overwrites_absences_and_deletes_have_no_other_values(
    declared: Mapping[str, str], rejected: Mapping[str, str]
) -> None:
    assert errors(**declared) == rejected


@requirement("X15", "X16", "X17")
@pytest.mark.parametrize(
    ("declared", "rejected"),
    [
        ({"source": feed_with("ties: last_row")}, {}),
        ({"source": feed_with("ties: first_row")}, {}),
        ({"source": feed_with("ties: reject")}, {}),
        ({"source": feed_with("ties: delete_wins, deletes: is_deleted")}, {}),
        ({"source": feed_with("ties: any")}, {"sources.loyalty.feed.ties": "NOT_ALLOWED"}),
        ({"source": feed_with("ties: delete_wins")}, {"sources.loyalty.feed.ties": "NOT_APPLICABLE"}),
        ({"option": "change_types: {INSERT: new, UPDATE: changed, LOGICAL_DELETE: deleted}"}, {}),
        ({"option": "change_types: {MERGE: new}"}, {"change_types.MERGE": "UNKNOWN_OPTION"}),
        ({"option": "change_types: {INSERT: new, UPDATE: new}"}, {"change_types.UPDATE": "NAME_IN_USE"}),
        ({"option": "column_names: {load_run_id: _dlt_load_id}"}, {}),
        ({"option": "column_names: {load_run_id: false}"}, {"column_names.load_run_id": "NOT_ALLOWED"}),
    ],
)
def test_ties_change_types_and_the_opening_delivery_have_no_other_values(
    declared: Mapping[str, str], rejected: Mapping[str, str]
) -> None:
    assert errors(**declared) == rejected


@requirement("X21", "X23")
@pytest.mark.parametrize(
    ("declared", "rejected"),
    [
        ({"source": "{feed: {effective_at: time}, timezone: Europe/Oslo}"}, {}),
        ({"source": "{feed: {effective_at: time}, timezone: Mars}"}, {"sources.loyalty.timezone": "INVALID_TIME_ZONE"}),
        ({"option": "history_table: true"}, {}),
        ({"option": "history_table: false"}, {}),
        ({"option": "history_table: dim_player_old"}, {"history_table": "INVALID_KIND"}),
        ({"option": "history_table: true", "attributes": "{email: 1}"}, {"history_table": "NOT_APPLICABLE"}),
    ],
)
def test_zones_and_history_tables_have_no_other_values(
    declared: Mapping[str, str], rejected: Mapping[str, str]
) -> None:
    assert errors(**declared) == rejected


def test_type_7_of_an_attribute_is_rejected() -> None:
    with pytest.raises(DeclarationError) as caught:
        parse(DECLARATION.format(option="", attributes="{tier: {scd: 7}}", source="{feed: {}}"))
    (error,) = caught.value.errors
    assert (error.code, error.field) == ("INVALID_SCD_TYPE", "attributes.tier.scd")
    assert error.fix == "write 2 or 6, and query the dimension as of a time"


PLAYER = by_files(
    declare(
        """
        dimension: dim_player
        business_key: player_id
        surrogate_key: player_key
        sources: {loyalty: {feed: {effective_at: time, deletes: "op = 'D'"}}}
        attributes:
          tier: 2
          home_property: 2
          risk_score: {scd: 2, type: int}
          email: 1
          phone: 1
          account_manager: 3
        """
    ).dimension
)
CHANGES = feed(
    """
    | delivery | player_id | time       | op | tier   | home_property | risk_score | email | phone | account_manager |
    | 1        | P1        | 2024-01-01 |    | Bronze | North         | 10         | a     | 1     | m1              |
    | 2        | P1        | 2024-06-01 |    | Silver | North         | 10         | a     | 1     | m1              |
    | 3        | P1        | 2024-07-01 |    | Silver | North         | 10         | b     | 2     | m2              |
    | 4        | P1        | 2024-09-01 | D  |        |               |            |       |       |                 |
    | 5        | P1        | 2024-11-01 |    | Silver | South         | 20         | b     | 2     | m2              |
    """,
    "loyalty",
)
HISTORIES = {
    "default": """
    | tier   | risk_score | email | phone | effective_from | effective_to | current_flag | version | last_updated |
    | Bronze | 10         | b     | '2'   | 2024-01-01     | 2024-06-01   | false        | 1       | 2024-07-01   |
    | Silver | 10         | b     | '2'   | 2024-06-01     | 2024-09-01   | false        | 2       | 2024-07-01   |
    | Silver | 20         | b     | '2'   | 2024-11-01     | OPEN         | true         | 3       | 2024-11-01   |
    """,
    "dlt": """
    | tier   | risk_score | email | phone | _dlt_valid_from | _dlt_valid_to | version | _dlt_load_id   | last_updated |
    | Bronze | 10         | b     | '2'   | 2024-01-01      | 2024-06-01    | 1       | loyalty/feed/1 | 2024-07-01   |
    | Silver | 10         | b     | '2'   | 2024-06-01      | 2024-09-01    | 2       | loyalty/feed/2 | 2024-07-01   |
    | Silver | 20         | b     | '2'   | 2024-11-01      | NULL          | 3       | loyalty/feed/5 | 2024-11-01   |
    """,
    "elevata": """
    | tier   | risk_score | version_started_at | version_ended_at | version | version_state | loaded_at  |
    | Bronze | 10         | 2024-01-01         | 2024-06-01       | 1       | changed       | 2024-07-01 |
    | Silver | 10         | 2024-06-01         | 2024-09-01       | 2       | deleted       | 2024-07-01 |
    | Silver | 20         | 2024-11-01         | NULL             | 3       | new           | 2024-11-01 |
    """,
}
"""The same history in the columns of each profile."""
KEYS = [2863801750658671787, 1847123905435109121, 2991303255453491109]
"""The surrogate keys of the versions in order, as in `test_f_keys`: those of the same player and the same times."""
DECLARED_NAMES = {"effective_from": "valid_from", "effective_to": "valid_to", "current_flag": "is_current"}
MANAGER_NAMES = {"previous": "manager_before", "changed_at": "manager_since"}


def variants() -> dict[str, Dimension]:
    """The player in each profile, and with declared names and another open end."""
    attributes = tuple(replace(a, column_names=MANAGER_NAMES if int(a.scd) == 3 else {}) for a in PLAYER.attributes)
    declared = replace(PLAYER, attributes=attributes, column_names=DECLARED_NAMES, open_end="2999-12-31")
    named = {profile: replace(PLAYER, profile=profile) for profile in ("default", "dlt", "elevata")} | {
        "declared": declared
    }
    return {name: replace(dimension, name=f"dim_player_{name}") for name, dimension in named.items()}


def load_variant(own_tables: OwnTables, name: str) -> list[dict[str, Any]]:
    """Load one variant, and return the rows of its table in order of their versions."""
    own_tables.load(variants()[name], CHANGES)
    return sorted(own_tables.rows(variants()[name]), key=lambda row: row["version"])


@pytest.mark.slow
@requirement("X3", "X8")
@pytest.mark.parametrize("profile", ["default", "dlt", "elevata"])
def test_a_player_has_the_same_history_and_keys_in_each_profile(own_tables: OwnTables, profile: str) -> None:
    rows = load_variant(own_tables, profile)
    assert_same_rows(inspect.cleandoc(HISTORIES[profile]), rows)
    managers = [(row["account_manager"], row["previous_account_manager"]) for row in rows]
    assert managers == [("m2", "m1")] * 3
    assert [row["player_key"] for row in rows] == KEYS


@requirement("X1", "X2", "X4")
def test_a_player_has_the_same_history_with_declared_names_and_another_open_end(own_tables: OwnTables) -> None:
    expected = """
    | tier   | account_manager | manager_before | manager_since | valid_from | valid_to   | is_current | version |
    | Bronze | m2              | m1             | 2024-07-01    | 2024-01-01 | 2024-06-01 | false      | 1       |
    | Silver | m2              | m1             | 2024-07-01    | 2024-06-01 | 2024-09-01 | false      | 2       |
    | Silver | m2              | m1             | 2024-07-01    | 2024-11-01 | 2999-12-31 | true       | 3       |
    """
    rows = load_variant(own_tables, "declared")
    assert_same_rows(inspect.cleandoc(expected), rows)
    assert {"effective_from", "current_flag", "previous_account_manager"}.isdisjoint(rows[0])
    assert [row["player_key"] for row in rows] == KEYS
