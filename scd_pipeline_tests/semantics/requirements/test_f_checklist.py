"""F72 to F76: the checklist of both reference warehouses, and of copies in which one item of it is broken.

The tables are those that a load creates, without Spark: their columns and properties follow from the declarations.
"""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import date
from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from scd_pipeline.components import ScdDimension, WarehouseResource, alert_sensor
from scd_pipeline.components.code_location import describe_code_location
from scd_pipeline.declaration import Declarations, read_declarations
from scd_pipeline.operations.check import CheckResult
from scd_pipeline.operations.checklist.evaluate import ChecklistResult, evaluate
from scd_pipeline.operations.checklist.pages import LATE_FACTS, REBUILD, REPAIR, documentation_pages
from scd_pipeline.operations.checklist.state import CodeLocation, DimensionState, StoredTable
from scd_pipeline_tests.semantics.specification import requirement

EXAMPLES = Path(__file__).parents[3] / "examples"
WAREHOUSES = ("casino", "federal")
SIGN_OFF = "  business: {by: Grants office, date: 2023-09-01}\n"


@dataclass(frozen=True)
class Broken:
    """A part of a declaration, what replaces it, and the item of the checklist that then fails."""

    warehouse: str
    dimension: str
    old: str
    new: str
    line: str


DESIGN = (
    Broken("casino", "dim_machine", ", description: Game on the machine", "", "attributes_are_documented"),
    Broken(
        "casino",
        "dim_compliance_threshold",
        "  compliance: {by: Compliance officer, date: 2026-11-09}\n",
        "",
        "compliance_has_signed_off",
    ),
    Broken("casino", "dim_player", "group: casino", "group: casino\nopen_end: null", "open_end_is_a_sentinel"),
    Broken("federal", "dim_program", f"sign_offs:\n{SIGN_OFF}", "", "business_has_signed_off"),
)
BUILD = (
    Broken("casino", "dim_account", "      deletes: \"operation = 'delete'\"", "", "deletes_are_handled"),
    Broken("federal", "dim_program", "\"operation = 'delete'\"", '"false"', "deletes_are_handled"),
    Broken("federal", "dim_grant_recipient", "owner: team:demo\n", "", "owner_is_declared"),
)
PERFORMANCE = (
    Broken(
        "casino",
        "dim_player",
        "table_properties:\n",
        "table_properties:\n  delta.parquet.vorder.enabled: true\n",
        "v_order_is_set",
    ),
)
QUALITY = (
    Broken(
        "federal",
        "dim_program",
        "expected_values:\n  sunset_programs_at_first: "
        "{as_of: 2023-10-02, expression: count_if(program_status = 'sunset'), value: 0}\n",
        "",
        "history_is_compared",
    ),
)
OPERATION = (
    Broken("casino", "dim_country", "audit_retention_years: 7\n", "", "audit_is_retained"),
    Broken(
        "federal",
        "dim_program",
        "product_card: https://example.com/grants/dim_program\n",
        "",
        "product_card_is_linked",
    ),
)


def copy(warehouse: str, folder: Path, *broken: Broken) -> Declarations:
    """The declarations of a copy of a warehouse, with parts of them broken."""
    target = folder / warehouse
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(EXAMPLES / warehouse / "declarations", target)
    for each in (each for each in broken if each.warehouse == warehouse):
        file = target / f"{each.dimension}.yaml"
        text = file.read_text(encoding="utf-8")
        assert text.count(each.old) == 1, each
        file.write_text(text.replace(each.old, each.new), encoding="utf-8")
    return read_declarations(target)


def code_location(declared: Declarations, **options: Any) -> CodeLocation:
    """The code location of the declarations, as the component builds it."""
    shared = dg.Definitions(sensors=[alert_sensor()], resources={"warehouse": WarehouseResource(path="/x")})
    definitions = dg.Definitions.merge(ScdDimension(**options).definitions(declared), shared)
    return describe_code_location(definitions.get_repository_def(), "warehouse")


WINDOW = {"effective_from": "timestamp", "effective_to": "timestamp", "current_flag": "boolean", "version": "int"}
COLUMNS = {
    "dim_account": {"account_key": "bigint"},
    "dim_compliance_threshold": {"compliance_threshold_key": "bigint", **WINDOW},
    "dim_country": {"country_key": "bigint"},
    "dim_machine": {"machine_key": "bigint", **WINDOW},
    "dim_player": {"player_key": "bigint", **WINDOW, "_hash": "string"},
    "dim_grant_recipient": {"grant_recipient_key": "bigint", **WINDOW},
    "dim_program": {"program_key": "bigint", **WINDOW},
}
"""The columns on which the checklist depends, as a load creates them: the demos evaluate the loaded tables."""
LOG = {"delta.appendOnly": "true"}


def stored_tables(dimension: str) -> dict[str, StoredTable]:
    """The tables of a dimension as a load creates them, but V-Order, which no platform here has."""
    return {
        dimension: StoredTable(COLUMNS[dimension], {}),
        f"{dimension}_changes": StoredTable({}, LOG),
        f"{dimension}_audit": StoredTable({"actor": "string", "reason": "string"}, LOG),
    }


def states(declared: Declarations, location: CodeLocation) -> list[DimensionState]:
    """What is declared, stored and scheduled for each dimension."""
    return [
        DimensionState(
            dimension,
            tables=stored_tables(dimension.name),
            rows=50_000,
            foreign_commits=CheckResult(dimension.name, "no_foreign_commits", 0, ()),
            code_location=location,
            facts=tuple(fact.name for fact in declared.facts if dimension in fact.dimensions),
            alert_transports=("webhook",),
            pages=documentation_pages(),
        )
        for dimension in declared.dimensions
    ]


def failing(states: Sequence[DimensionState], section: str = "") -> set[tuple[str, str]]:
    """Dimension and name of each line that fails, of one section or all."""
    results = [result for state in states for result in evaluate(state)]
    return {(each.table, each.item) for each in results if each.failed and section in ("", each.section)}


def results(state: DimensionState) -> dict[str, ChecklistResult]:
    """The results of a dimension by line."""
    return {result.item: result for result in evaluate(state)}


def assert_broken(folder: Path, *broken: Broken) -> None:
    """Check that a copy of each warehouse fails exactly the lines that are broken in it, and the original none."""
    for warehouse in WAREHOUSES:
        original = copy(warehouse, folder)
        assert failing(states(original, code_location(original))) == set()
        declared = copy(warehouse, folder, *broken)
        expected = {(each.dimension, each.line) for each in broken if each.warehouse == warehouse}
        assert failing(states(declared, code_location(declared))) == expected


@pytest.fixture(scope="module")
def casino() -> tuple[Declarations, CodeLocation]:
    """The declarations of the casino and their code location."""
    declared = read_declarations(EXAMPLES / "casino" / "declarations")
    return declared, code_location(declared)


def test_all_broken_lines_together_fail_exactly_these_lines(tmp_path: Path) -> None:
    assert_broken(tmp_path, *DESIGN, *BUILD, *PERFORMANCE, *QUALITY, *OPERATION)


@requirement("F72")
def test_design_types_sign_offs_surrogate_and_sentinel(
    tmp_path: Path, casino: tuple[Declarations, CodeLocation]
) -> None:
    """Types documented, business and compliance sign-off, surrogate strategy, and sentinel, each good and bad."""
    assert_broken(tmp_path, *DESIGN)
    threshold = next(state for state in states(*casino) if state.dimension.regulated)
    evidence = {line: result.evidence.rpartition(".yaml:2: ")[2] for line, result in results(threshold).items()}
    assert evidence["attributes_are_documented"] == "attributes: 2 attributes of SCD types 2 with descriptions"
    without_attributes = replace(threshold, dimension=replace(threshold.dimension, attributes=()))
    assert results(without_attributes)["attributes_are_documented"].evidence.endswith("attributes: none")
    assert evidence["business_has_signed_off"] == "sign_offs.business: Head of the cage, 2026-11-02"
    assert evidence["compliance_has_signed_off"] == "sign_offs.compliance: Compliance officer, 2026-11-09"
    assert evidence["open_end_is_a_sentinel"] == "open_end: 9999-12-31 23:59:59"
    keys = dict.fromkeys(threshold.tables["dim_compliance_threshold"].columns, "string")
    broken = {**threshold.tables, "dim_compliance_threshold": StoredTable(keys)}
    assert failing([replace(threshold, tables=broken)]) == {
        ("dim_compliance_threshold", "surrogate_keys_are_deterministic")
    }


@requirement("F73")
def test_build_columns_hash_retry_owner_audit_and_deletes(
    tmp_path: Path, casino: tuple[Declarations, CodeLocation]
) -> None:
    """SCD2 columns, hash, retry, one owner and writer, audit with actor and reason, and deletes, each good and bad."""
    assert_broken(tmp_path, *BUILD)
    player = next(state for state in states(*casino) if state.dimension.name == "dim_player")
    good = results(player)
    assert player.code_location is not None
    columns = "columns effective_from, effective_to, current_flag and version"
    assert good["version_columns_exist"].evidence == f"table dim_player: {columns}"
    assert good["changes_are_detected"].evidence.startswith("table dim_player: column _hash;")
    assert good["loads_are_retried"].evidence.startswith("op load_dim_player: 5 attempts;")
    assert "waits 1.0, 2.1, 4.2, 8.3 seconds" in good["loads_are_retried"].evidence
    assert good["audit_has_actor_and_reason"].evidence == "table dim_player_audit: columns actor and reason"
    deletes = "sources.loyalty.feed.deletes: operation = 'delete'"
    assert good["deletes_are_handled"].evidence.endswith(f"{deletes}; no deletion was loaded yet")
    deleted = results(replace(player, last_delete=date(2024, 9, 1)))
    assert deleted["deletes_are_handled"].evidence.endswith(f"{deletes}; a deletion was loaded on 2024-09-01")
    foreign = CheckResult("dim_player", "no_foreign_commits", 1, ("dim_player version 7: DELETE",))

    def without(table: str, column: str) -> DimensionState:
        stored = player.tables[table]
        columns = {name: ddl for name, ddl in stored.columns.items() if name != column}
        return replace(player, tables={**player.tables, table: replace(stored, columns=columns)})

    broken = {
        "one_writer": replace(player, foreign_commits=foreign),
        "loads_are_retried": replace(player, code_location=replace(player.code_location, load_attempts={})),
        "version_columns_exist": without("dim_player", "version"),
        "changes_are_detected": without("dim_player", "_hash"),
        "audit_has_actor_and_reason": without("dim_player_audit", "actor"),
    }
    assert [failing([state]) for state in broken.values()] == [{("dim_player", line)} for line in broken]


@requirement("F74", "F48", "F45")
def test_performance_z_order_optimize_vacuum_partitions_and_v_order(
    tmp_path: Path, casino: tuple[Declarations, CodeLocation]
) -> None:
    """OPTIMIZE weekly, VACUUM with 168 hours and in the pool of loads, fitting partitions; V-Order is not applicable.

    V-Order that is declared is reported absent if the table does not have it.
    """
    assert_broken(tmp_path, *PERFORMANCE)
    declared, _ = casino
    player = next(state for state in states(*casino) if state.dimension.name == "dim_player")
    good = results(player)
    assert good["v_order_is_set"].outcome == "not applicable"
    schedule = "schedule maintain_dim_player_schedule (0 3 * * 0)"
    assert good["optimize_is_scheduled"].evidence == schedule
    assert good["vacuum_is_scheduled"].evidence == (
        f"schedule maintain_dim_player_logs_schedule (0 4 1 * *) and {schedule}; "
        "pool delta/dim_player of loads and maintenance; "
        "delta.deletedFileRetentionDuration: interval 168 hours"
    )
    table = player.tables["dim_player"]
    monthly = code_location(declared, maintenance_cron="0 3 1 * *")
    without_pool = replace(player.code_location or monthly, pools={"load_dim_player": "delta/dim_player"})
    retention = {**table.properties, "delta.deletedFileRetentionDuration": "interval 167 hours"}

    def with_table(**changes: Any) -> DimensionState:
        return replace(player, tables={**player.tables, "dim_player": replace(table, **changes)})

    broken = {
        "rows_are_clustered": replace(player, rows=100_000_000),
        "optimize_is_scheduled": replace(player, code_location=monthly),
        "vacuum_is_scheduled": replace(player, code_location=without_pool),
        "partitions_fit": with_table(partition_columns=("current_flag",)),
    }
    assert [failing([state]) for state in broken.values()] == [{("dim_player", line)} for line in broken]
    assert failing([with_table(properties=retention)]) == {("dim_player", "vacuum_is_scheduled")}
    large = {key: replace(with_table(clustered_by=(key,)), rows=100_000_000) for key in ("player_id", "tier")}
    assert failing([large["player_id"]]) == set()
    assert failing([large["tier"]]) == {("dim_player", "rows_are_clustered")}


@requirement("F75")
def test_quality_daily_checks_late_facts_and_known_values(
    tmp_path: Path, casino: tuple[Declarations, CodeLocation]
) -> None:
    """Duplicates, NULL ends and overlaps daily; the page of late facts; an as-of query against a known KPI."""
    assert_broken(tmp_path, *QUALITY)
    declared, location = casino
    daily = "schedule check_dim_player_schedule (0 7 * * *)"
    player = next(state for state in states(declared, location) if state.dimension.name == "dim_player")
    evidence = {line: result.evidence for line, result in results(player).items() if result.section == "quality"}
    assert evidence == {
        "duplicates_are_checked": f"check one_current_version; {daily}",
        "ends_are_checked": f"check windows_have_both_ends; {daily}",
        "overlaps_are_checked": f"check windows_do_not_overlap; {daily}",
        "late_facts_are_rekeyed": "sensor fct_cash_transactions_rekey and fct_slot_play_rekey; docs/how-to/facts.md",
        "history_is_compared": f"check expected_values_are_reproduced; {daily}",
    }
    weekly = code_location(declared, check_cron="0 7 * * 1")
    checks = set(evidence) - {"late_facts_are_rekeyed"}
    assert failing([replace(player, code_location=weekly)]) == {("dim_player", line) for line in checks}
    no_sensor = replace(location, sensors=("alerts",))
    assert failing([replace(player, code_location=no_sensor)]) == {("dim_player", "late_facts_are_rekeyed")}


@requirement("F76", "F55")
def test_operation_runbooks_audit_retention_alerts_and_product_card(
    tmp_path: Path, casino: tuple[Declarations, CodeLocation]
) -> None:
    """Runbooks of repair and rebuild; the audit is append-only for 7 (casino) or 10 years (federal); alerts; a card."""
    assert_broken(tmp_path, *OPERATION)
    (player,) = (state for state in states(*casino) if state.dimension.name == "dim_player")
    good = results(player)
    assert good["repair_has_a_runbook"].evidence == "docs/how-to/runbooks.md#repair-duplicates: repair of duplicates"
    assert good["rebuild_has_a_runbook"].evidence == "docs/how-to/runbooks.md#backfill: backfill and rebuild"
    assert good["audit_is_retained"].evidence.endswith("7 years; table property delta.appendOnly: true")
    assert good["alerts_are_sent"].evidence == "sensor alerts by webhook"
    assert good["product_card_is_linked"].evidence.endswith("https://example.com/casino/dim_player")
    federal = read_declarations(EXAMPLES / "federal" / "declarations")
    assert {dimension.audit_retention_years for dimension in federal.dimensions} == {10}
    audit = {**player.tables, "dim_player_audit": replace(player.tables["dim_player_audit"], properties={})}

    def without_page(topic: str) -> DimensionState:
        return replace(player, pages={each: page for each, page in player.pages.items() if each != topic})

    broken = {
        "repair_has_a_runbook": without_page(REPAIR),
        "rebuild_has_a_runbook": without_page(REBUILD),
        "late_facts_are_rekeyed": without_page(LATE_FACTS),
        "alerts_are_sent": replace(player, alert_transports=()),
        "audit_is_retained": replace(player, tables=audit),
    }
    assert [failing([state]) for state in broken.values()] == [{("dim_player", line)} for line in broken]
