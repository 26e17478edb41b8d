"""F1 to F11, F63 to F71: the tables of the reference warehouses, and the declarations that they exclude.

Their tables also show the options X5, X8 and X23.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from scd_pipeline.declaration import Dimension, Fact, parse, read_declarations
from scd_pipeline.delta.audit_table import audit_schema
from scd_pipeline.delta.schema import declaration_properties
from scd_pipeline.errors import DeclarationError, ValidationError
from scd_pipeline.history.schema import stored_schema
from scd_pipeline.load.audit import ensure_audit
from scd_pipeline.load.run import plan
from scd_pipeline.load.schema_steps import execute_steps
from scd_pipeline_tests.semantics.engine import OwnTables
from scd_pipeline_tests.semantics.specification import requirement

EXAMPLES = Path(__file__).parents[3] / "examples"
SHARED = (
    "effective_from timestamp not null, effective_to timestamp not null, current_flag boolean not null, "
    "version int not null"
)
ORIGIN = "change_reason string, change_source string, load_run_id string, last_updated timestamp not null"
THRESHOLD = """
dimension: dim_compliance_threshold
business_key: threshold_type
regulated: true
sources: {regulator: {feed: {effective_at: in_force_from}}}
attributes:
  ctr_threshold: {scd: 2, type: int}
  window_hours: {scd: 2, type: int}
"""


def declared(warehouse: str, name: str) -> Dimension:
    """A table of a reference warehouse; a fact as the dimension whose rules it follows."""
    example = read_declarations(EXAMPLES / warehouse / "declarations")
    table = next(table for table in example.tables if table.name == name)
    return table.as_dimension() if isinstance(table, Fact) else table


def columns(warehouse: str, name: str) -> str:
    """The columns of a table, as in SQL."""
    schema = stored_schema(declared(warehouse, name))
    return ", ".join(f"{column} {ddl}{'' if nullable else ' not null'}" for column, ddl, nullable in schema)


def scd_types(dimension: Dimension) -> dict[str, int]:
    """The type of each attribute."""
    return {attribute.name: int(attribute.scd) for attribute in dimension.attributes}


@requirement("F1", "F4")
def test_tables_without_windows_have_their_attributes_and_last_updated() -> None:
    country = "country_key bigint not null, country_code string, country_name string, region string"
    assert columns("casino", "dim_country") == f"{country}, {ORIGIN}"
    account = "account_key bigint not null, account_id string, account_manager string"
    manager = "previous_manager string, manager_change_ts timestamp"
    assert columns("casino", "dim_account") == f"{account}, {manager}, {ORIGIN}"


@requirement("F2", "F3", "X8")
def test_a_player_has_attributes_of_four_types_a_window_and_a_hash() -> None:
    key = "player_key bigint not null, player_id string, birth_date date, email string, phone string"
    versioned = "tier string, home_property string, risk_score int"
    consent = "marketing_consent string, previous_marketing_consent string, marketing_consent_changed_at timestamp"
    expected = f"{key}, {versioned}, {consent}, {SHARED}, {ORIGIN}, _hash string"
    assert columns("casino", "dim_player") == expected


@requirement("F5", "F6", "X23")
def test_a_machine_has_its_current_versions_and_its_closed_ones_in_two_tables() -> None:
    machine = declared("casino", "dim_machine")
    assert machine.history_table
    assert {"dim_machine", "dim_machine_history"} < set(machine.table_names)
    assert scd_types(machine) == {
        "game_title": 2,
        "denomination": 2,
        "location": 2,
        "manufacturer": 1,
        "serial_number": 0,
    }
    key = "machine_key bigint not null, machine_id string"
    games = "game_title string, denomination decimal(10,2), location string"
    makers = "manufacturer string, serial_number string"
    assert columns("casino", "dim_machine") == f"{key}, {games}, {makers}, {SHARED}, {ORIGIN}"


@requirement("F2")
def test_a_player_has_the_properties_of_its_table() -> None:
    player = declared("casino", "dim_player")
    assert player.table_properties == {
        "delta.autoOptimize.optimizeWrite": "true",
        "delta.autoOptimize.autoCompact": "true",
        "delta.enableChangeDataFeed": "true",
    }
    assert player.table_properties.items() <= declaration_properties(player).items()


@requirement("F7", "X5")
def test_a_program_has_its_previous_threshold_and_its_current_name() -> None:
    threshold = "eligibility_threshold decimal(18,2), previous_eligibility_threshold decimal(18,2)"
    cap = "funding_cap_usd decimal(18,2), current_funding_cap_usd decimal(18,2)"
    names = "program_status string, current_program_name string, current_admin_agency string"
    key = "program_key bigint not null, program_id string"
    assert columns("federal", "dim_program") == f"{key}, {threshold}, {cap}, {names}, {SHARED}, {ORIGIN}"
    assert scd_types(declared("federal", "dim_program")) == {
        "eligibility_threshold": 6,
        "funding_cap_usd": 6,
        "program_status": 2,
        "current_program_name": 1,
        "current_admin_agency": 1,
    }


@requirement("F8", "F11")
def test_recipients_and_plays_have_the_keys_and_values_of_their_domain() -> None:
    key = "grant_recipient_key bigint not null, recipient_id string"
    versioned = "legal_name string, parent_org string, status string, address string, risk_tier string"
    assert columns("federal", "dim_grant_recipient") == f"{key}, {versioned}, {SHARED}, {ORIGIN}"
    assert set(scd_types(declared("federal", "dim_grant_recipient")).values()) == {2}
    play = {"event_id string", "event_ts timestamp", "player_id string", "player_key bigint"}
    play |= {"coin_in decimal(12,2)", "coin_out decimal(12,2)"}
    cash = {"event_ts timestamp", "cash_in_amount decimal(12,2)"}
    for fact, expected in (("fct_slot_play", play), ("fct_cash_transactions", cash)):
        stored = columns("casino", fact).replace("decimal(12,2)", "decimal(12;2)").split(", ")
        assert expected < {column.removesuffix(" not null").replace(";", ",") for column in stored}


@requirement("F2", "F5", "F10")
def test_created_tables_have_the_columns_of_their_declarations_and_no_partitions(own_tables: OwnTables) -> None:
    """Also Delta's NOT NULL."""
    warehouse = own_tables.warehouse
    for name in ("dim_player", "dim_machine"):
        dimension = declared("casino", name)
        execute_steps(warehouse, dimension, plan(warehouse, dimension).schema_steps, {})
        audit = ensure_audit(warehouse, dimension, warehouse.table(f"{name}_audit").last_commit_or_zero())
        expected = {
            table: stored_schema(dimension) for table in (name, f"{name}_history") if table in warehouse.tables()
        }
        expected[audit.name] = audit_schema(dimension)
        for table, declared_columns in expected.items():
            schema = warehouse.table(table).read().schema
            assert [(field.name, field.dataType.simpleString(), field.nullable) for field in schema] == list(
                declared_columns
            )
            assert warehouse.table(table).details()["partitionColumns"] == []
    assert {"dim_player", "dim_machine", "dim_machine_history"} <= set(warehouse.tables())


@requirement("F10")
def test_an_audit_row_has_both_keys_actor_and_reason() -> None:
    player = declared("casino", "dim_player")
    schema = {column: (ddl, nullable) for column, ddl, nullable in audit_schema(player)}
    required = {
        "audit_id": "bigint",
        "player_id": "string",
        "change_type": "string",
        "change_ts": "timestamp",
        "actor": "string",
        "recorded_at": "timestamp",
    }
    optional = {
        "player_key_old": "bigint",
        "player_key_new": "bigint",
        "changed_columns": "array<string>",
        "old_values": "map<string,string>",
        "new_values": "map<string,string>",
        "reason": "string",
        "source_batch_id": "string",
        "correlation_id": "string",
        "recorded_version": "bigint",
        "withdraws": "bigint",
    }
    assert {name: ddl for name, (ddl, nullable) in schema.items() if not nullable} == required
    assert optional.items() <= {name: ddl for name, (ddl, nullable) in schema.items() if nullable}.items()


@requirement("F9")
def test_a_threshold_has_its_amount_and_its_window() -> None:
    key = "compliance_threshold_key bigint not null, threshold_type string"
    threshold = declared("casino", "dim_compliance_threshold")
    values = "ctr_threshold decimal(12,2), window_hours int"
    assert columns("casino", "dim_compliance_threshold") == f"{key}, {values}, {SHARED}, {ORIGIN}"
    assert (threshold.regulated, scd_types(threshold)) == (True, {"ctr_threshold": 2, "window_hours": 2})


@requirement("F9", "F63")
@pytest.mark.parametrize("scd", [0, 1, 3, 5, 6])
def test_a_threshold_is_of_a_type_that_keeps_every_value(scd: int) -> None:
    assert parse(THRESHOLD)[0].regulated
    with pytest.raises(DeclarationError) as caught:
        parse(THRESHOLD.replace("ctr_threshold: {scd: 2", f"ctr_threshold: {{scd: {scd}"))
    (error,) = caught.value.errors
    assert (error.code, error.field) == ("INVALID_SCD_TYPE", "attributes.ctr_threshold.scd")


def the_error_with(option: str) -> ValidationError:
    """The only error of the declaration of the thresholds with an option added."""
    with pytest.raises(DeclarationError) as caught:
        parse(f"{THRESHOLD}{option}\n")
    (error,) = caught.value.errors
    return error


@pytest.mark.parametrize(
    ("option", "code", "fix"),
    [
        ("surrogate_key: ''", "INVALID_NAME", "a name does not begin with `_`"),
        ("surrogate_key: null", "MISSING_VALUE", "write text, or remove the option"),
        ("surrogate_key: threshold_type", "NAME_IN_USE", "choose another name"),
        ("surrogate: none", "NOT_ALLOWED", "allowed: hash"),
    ],
)
def test_no_version_lacks_a_surrogate_key(option: str, code: str, fix: str) -> None:
    error = the_error_with(option)
    assert (error.code, error.field) == (code, option.partition(":")[0])
    assert fix in str(error)


def test_no_version_of_a_deleted_entity_is_removed() -> None:
    error = the_error_with("deleted_rows: remove")
    assert (error.code, error.field) == ("NOT_APPLICABLE", "deleted_rows")
    assert "attributes of type 2 or 6 closes the version of a deleted entity" in error.problem
    assert error.fix == "remove it: it is for tables with types 0, 1 and 3 only"


@pytest.mark.parametrize("value", ["false", "true", "none"])
def test_no_audit_is_omitted(value: str) -> None:
    """No option switches the audit off, and a dimension has its table among those that each load writes."""
    error = the_error_with(f"audit: {value}")
    assert (error.code, error.field) == ("UNKNOWN_OPTION", "audit")
    assert "audit_retention_years" in str(error)
    (threshold,) = parse(THRESHOLD)
    assert "dim_compliance_threshold_audit" in threshold.table_names


@requirement("F71")
@pytest.mark.parametrize(
    "option", ["partition_by", "partition_cols", "partition_columns", "partitioned_by", "partitions"]
)
def test_a_table_that_is_partitioned_by_date_is_rejected(option: str) -> None:
    """A dimension of 50,000 rows would have a small file for each date."""
    with pytest.raises(DeclarationError) as caught:
        parse(f"{THRESHOLD}{option}: effective_from\n")
    (error,) = caught.value.errors
    assert (error.code, error.field) == ("UNKNOWN_OPTION", option)
    assert "tables are not partitioned" in error.fix
