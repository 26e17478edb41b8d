"""Each item of the checklist: a dimension that passes all of them, and for each item a copy that fails only that item.

A copy has three lines: the name of the item that fails, the change as `TEXT | old text | new text`, and the evidence.
DECLARATION and STATE are the texts of the dimension that passes.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from scd_pipeline.declaration import parse
from scd_pipeline.operations.check import CheckResult
from scd_pipeline.operations.checklist.evaluate import ChecklistResult, evaluate
from scd_pipeline.operations.checklist.items import SECTIONS
from scd_pipeline.operations.checklist.pages import PAGES, documentation_pages
from scd_pipeline.operations.checklist.state import CodeLocation, DimensionState, Schedule, StoredTable

DECLARATION = """\
dimension: dim_limit
owner: team:risk
business_key: limit_type
regulated: true
column_names: {row_hash: _hash}
sign_offs:
  business: {by: Ann Lee, date: 2024-01-31}
  compliance: {by: Audit team, date: 2024-02-15}
audit_retention_years: 7
product_card: https://wiki.example.com/limits
expected_values:
  limit_of_2024: {as_of: 2024-12-31, expression: max(amount), value: 10000}
table_properties: {delta.parquet.vorder.enabled: true}
sources:
  regulator: {feed: {path: "limits_{date}.csv", effective_at: in_force_from, deletes: "op = 'D'"}}
attributes:
  amount: {scd: 2, type: int, description: Amount from which cash is reported}
"""
EXPECTED_VALUES = """\
expected_values:
  limit_of_2024: {as_of: 2024-12-31, expression: max(amount), value: 10000}
"""
STATE = """\
rows: 3
foreign_commits: []
alert_transports: [webhook]
facts: [fct_cash]
pages: {repair of duplicates: docs/runbooks.md, backfill and rebuild: docs/runbooks.md, late facts: docs/facts.md}
tables:
  dim_limit:
    partition_columns: []
    clustered_by: []
    columns:
      {limit_key: bigint, effective_from: timestamp, effective_to: timestamp, current_flag: boolean, version: int,
      _hash: string}
    properties: {delta.parquet.vorder.enabled: "true"}
  dim_limit_changes: {columns: {_kind: string}, properties: {}}
  dim_limit_audit: {columns: {actor: string, reason: string}, properties: {delta.appendOnly: "true"}}
code_location:
  name: shop
  schedules:
    - {name: check_dim_limit_schedule, cron: 0 7 * * *, gap_hours: 24, ops: [check_dim_limit], checks: [
        "dim_limit:one_current_version", "dim_limit:windows_have_both_ends", "dim_limit:windows_do_not_overlap",
        "dim_limit:expected_values_are_reproduced"]}
    - {name: maintain_dim_limit_schedule, cron: 0 3 * * 0, gap_hours: 168, ops: [maintain_dim_limit]}
  sensors: [alerts, fct_cash_rekey]
  alert_sensors: [alerts]
  pools: {load_dim_limit: delta/dim_limit, maintain_dim_limit: delta/dim_limit}
  load_attempts: {load_dim_limit: 5}
"""
BROKEN_COPIES = """
# attributes_are_documented
DECLARATION | , description: Amount from which cash is reported | <nothing>
dim_limit.yaml:1: attributes: no description of amount; add `description`, which defines them

# business_has_signed_off
DECLARATION | <line>  business: {by: Ann Lee, date: 2024-01-31} | <nothing>
dim_limit.yaml:1: sign_offs.business is missing; write `business: {by: NAME, date: 2024-01-31}`

# compliance_has_signed_off
DECLARATION | <line>  compliance: {by: Audit team, date: 2024-02-15} | <nothing>
dim_limit.yaml:1: sign_offs.compliance is missing; write `compliance: {by: NAME, date: 2024-01-31}`

# surrogate_keys_are_deterministic
STATE | limit_key: bigint | limit_key: string
table dim_limit: limit_key is string; expected bigint; load the dimension into a new table

# open_end_is_a_sentinel
DECLARATION | regulated: true | regulated: true\\nopen_end: null
dim_limit.yaml:1: open_end: effective_to of a current version is NULL; declare a time

# version_columns_exist
STATE | current_flag: boolean, version: int, | <nothing>
table dim_limit: no column current_flag and version; load the dimension into a new table

# changes_are_detected
STATE | _hash: string | other: string
dim_limit.yaml:1: column_names.row_hash: table dim_limit has no column _hash; load the dimension into a new table

# loads_are_retried
STATE | {load_dim_limit: 5} | {load_dim_limit: 1}
shop: op load_dim_limit has 1 attempt; set the component's `attempts` to at least 2

# loads_are_retried (another op)
STATE | {load_dim_limit: 5} | {load_dim_other: 5}
shop: op load_dim_limit has no retries, because it is not an op of this package; define the dimension by the component

# one_writer
STATE | foreign_commits: [] | foreign_commits: ["dim_limit version 3: DELETE"]
check no_foreign_commits: dim_limit version 3: DELETE; run `scd repair dim_limit`, for another table run
  the command that `scd status` prints

# owner_is_declared
DECLARATION | <line>owner: team:risk | <nothing>
dim_limit.yaml:1: owner is missing; name the team

# audit_has_actor_and_reason
STATE | {actor: string, reason: string} | {reason: string}
table dim_limit_audit: no column actor; drop the table, a load rebuilds it

# deletes_are_handled
DECLARATION | , deletes: "op = 'D'" | <nothing>
dim_limit.yaml:1: sources.regulator.feed.deletes is missing, so no entity is ever deleted; write the
  condition by which a row is a delete

# deletes_are_handled (a constant)
DECLARATION | "op = 'D'" | "'D' = 'op' AND NOT false"
dim_limit.yaml:1: sources.regulator.feed.deletes: 'D' = 'op' AND NOT false is the same for every row, so it
  cannot identify deletes; write the condition by which a row is a delete

# rows_are_clustered
STATE | rows: 3 | rows: 1000000
table dim_limit: 1,000,000 rows, not clustered by limit_type; run the job maintain_dim_limit_job

# optimize_is_scheduled
STATE | cron: 0 3 * * 0, gap_hours: 168 | cron: 0 3 1 * *, gap_hours: 744
shop: only schedule maintain_dim_limit_schedule (0 3 1 * *) for op maintain_dim_limit; schedule its job weekly
  (`maintenance_cron`)

# vacuum_is_scheduled
STATE | {_kind: string}, properties: {} | {_kind: string}, properties: {delta.deletedFileRetentionDuration: 167 hours}
table property delta.deletedFileRetentionDuration of dim_limit_changes is less than 168 hours; raise it

# vacuum_is_scheduled (beside a load)
STATE | maintain_dim_limit: delta/dim_limit} | maintain_dim_limit: delta/others}
op maintain_dim_limit is in pool delta/others and op load_dim_limit in pool delta/dim_limit; expected one pool for
  both; set `pool` on both ops

# partitions_fit
STATE | partition_columns: [] | partition_columns: [day]
table dim_limit: 3 rows, partitioned by day, so its files are small; load the dimension into a new table

# v_order_is_set
STATE | <line>    properties: {delta.parquet.vorder.enabled: "true"} | <nothing>
dim_limit.yaml:1: table_properties.delta.parquet.vorder.enabled: true; the table property is missing; load a delivery,
  which sets it

# duplicates_are_checked
STATE | "dim_limit:one_current_version", | <nothing>
check one_current_version: no schedule; schedule it daily (`check_cron`)

# ends_are_checked
STATE | "dim_limit:windows_have_both_ends", | <nothing>
check windows_have_both_ends: no schedule; schedule it daily (`check_cron`)

# overlaps_are_checked
STATE | "dim_limit:windows_do_not_overlap", | <nothing>
check windows_do_not_overlap: no schedule; schedule it daily (`check_cron`)

# late_facts_are_rekeyed
STATE | fct_cash_rekey | others
no sensor re-keys fct_cash after a late change; define the facts by the component

# late_facts_are_rekeyed (no page)
STATE | , late facts: docs/facts.md | <nothing>
how-to/facts.md: no such page; set SCD_DOCS_URL to the URL of documentation that contains it

# history_is_compared
DECLARATION | <expected values> | <nothing>
dim_limit.yaml:1: expected_values is missing; write a key figure that was published, with its time and an expression

# repair_has_a_runbook
STATE | repair of duplicates: docs/runbooks.md, | <nothing>
how-to/runbooks.md#repair-duplicates: no runbook for repair of duplicates; set SCD_DOCS_URL to the URL of
  documentation that contains it

# rebuild_has_a_runbook
STATE | , backfill and rebuild: docs/runbooks.md | <nothing>
how-to/runbooks.md#backfill: no runbook for backfill and rebuild; set SCD_DOCS_URL to the URL of
  documentation that contains it

# audit_is_retained
DECLARATION | <line>audit_retention_years: 7 | <nothing>
dim_limit.yaml:1: audit_retention_years is missing; write the number of years, such as 7

# audit_is_retained (not append-only)
STATE | reason: string}, properties: {delta.appendOnly: "true"} | reason: string}
table property delta.appendOnly of dim_limit_audit is not true; set it, so that no row can be deleted

# alerts_are_sent
STATE | alert_transports: [webhook] | alert_transports: []
sensor alerts: no transport is configured; set SCD_ALERT_WEBHOOK, or SCD_ALERT_MAIL_TO and SCD_ALERT_SMTP

# alerts_are_sent (no sensor)
STATE | alert_sensors: [alerts] | alert_sensors: []
shop: no sensor watches failed runs; define `alert_sensor()`

# product_card_is_linked
DECLARATION | <line>product_card: https://wiki.example.com/limits | <nothing>
dim_limit.yaml:1: product_card is missing; write the address of the page
"""
PASSED = {
    "attributes_are_documented": "dim_limit.yaml:1: attributes: 1 attribute of SCD types 2 with descriptions",
    "business_has_signed_off": "dim_limit.yaml:1: sign_offs.business: Ann Lee, 2024-01-31",
    "rows_are_clustered": "dim_limit.yaml:1: z_order: automatic; table dim_limit: 3 rows need no clustering",
    "loads_are_retried": "op load_dim_limit: 5 attempts; after a write conflict it waits 1.0, 2.1, 4.2, 8.3 seconds, "
    "with jitter",
    "optimize_is_scheduled": "schedule maintain_dim_limit_schedule (0 3 * * 0)",
    "vacuum_is_scheduled": "schedule maintain_dim_limit_schedule (0 3 * * 0); pool delta/dim_limit of loads and "
    "maintenance; delta.deletedFileRetentionDuration: interval 168 hours",
    "ends_are_checked": "check windows_have_both_ends; schedule check_dim_limit_schedule (0 7 * * *)",
    "late_facts_are_rekeyed": "sensor fct_cash_rekey; docs/facts.md",
    "repair_has_a_runbook": "docs/runbooks.md: repair of duplicates",
    "audit_is_retained": "dim_limit.yaml:1: audit_retention_years: 7 years; table property delta.appendOnly: true",
    "alerts_are_sent": "sensor alerts by webhook",
}
FOR_WINDOWS = ("regulated: true\ncolumn_names: {row_hash: _hash}\n", EXPECTED_VALUES)
"""The parts of the declaration that a table without windows cannot have."""
DOCS = Path(__file__).parents[2] / "docs"
ITEMS = [item.name for items in SECTIONS.values() for item in items]


def state(declaration: str, text: str) -> DimensionState:
    """The dimension with the state that the text describes."""
    (dimension,) = parse(declaration, "dim_limit.yaml")
    values: dict[str, Any] = yaml.safe_load(text)
    location = values["code_location"]
    foreign = tuple(values["foreign_commits"])
    return DimensionState(
        dimension,
        tables={name: stored_table(table) for name, table in (values["tables"] or {}).items()},
        rows=values["rows"],
        foreign_commits=CheckResult(dimension.name, "no_foreign_commits", len(foreign), foreign),
        code_location=code_location(location) if location else "shop: No module named 'shop'",
        facts=tuple(values["facts"]),
        alert_transports=tuple(values["alert_transports"]),
        pages=values["pages"],
    )


def stored_table(values: dict[str, Any]) -> StoredTable:
    """A table as the text describes it."""
    lists = ("partition_columns", "clustered_by")
    return StoredTable(**{name: tuple(value) if name in lists else value for name, value in values.items()})


def code_location(values: dict[str, Any]) -> CodeLocation:
    """A code location as the text describes it, which a process of its own has written and this one has read."""
    schedules = tuple(Schedule(**schedule) for schedule in values["schedules"])
    return CodeLocation.from_json(CodeLocation(**{**values, "schedules": schedules}).to_json())


def broken_copies() -> list[Any]:
    """The cases of the table: the item that fails, the texts, and the evidence."""
    return [_broken_copy(*block.split("\n")) for block in BROKEN_COPIES.strip().split("\n\n")]


def _broken_copy(name: str, change: str, *evidence: str) -> Any:
    title = name.removeprefix("# ")
    text, old, new = change.split(" | ")
    texts = {"DECLARATION": DECLARATION, "STATE": STATE}
    removed = f"{old.removeprefix('<line>')}\n" if old.startswith("<line>") else old
    before = removed.replace("<expected values>", EXPECTED_VALUES)
    after = new.replace("<nothing>", "").replace("\\n", "\n")
    assert texts[text].count(before) == 1, title
    texts[text] = texts[text].replace(before, after)
    expected = " ".join(line.strip() for line in evidence)
    return pytest.param(title.partition(" ")[0], texts["DECLARATION"], texts["STATE"], expected, id=title)


def failing(results: tuple[ChecklistResult, ...]) -> dict[str, str]:
    """The evidence of each item that fails."""
    return {result.item: result.evidence for result in results if result.failed}


def test_a_complete_dimension_passes_every_line() -> None:
    results = evaluate(state(DECLARATION, STATE))
    assert [result.item for result in results] == ITEMS
    assert {result.outcome for result in results} == {"passed"}
    evidence = {result.item: result.evidence for result in results}
    assert {item: evidence[item] for item in PASSED} == PASSED


@pytest.mark.parametrize(("item", "declaration", "text", "evidence"), broken_copies())
def test_a_broken_copy_fails_exactly_one_item(item: str, declaration: str, text: str, evidence: str) -> None:
    assert failing(evaluate(state(declaration, text))) == {item: evidence}


def test_every_item_has_a_broken_copy() -> None:
    assert {case.values[0] for case in broken_copies()} == set(ITEMS)


def test_the_page_lists_every_item() -> None:
    page = (DOCS / "how-to" / "checklist.md").read_text(encoding="utf-8")
    rows = [f"| `{item.name}` | {item.sentence} |" for items in SECTIONS.values() for item in items]
    assert re.findall(r"^\| `.*\|$", page, flags=re.MULTILINE) == rows


def test_an_item_is_a_sentence_that_is_true_where_it_passes() -> None:
    for item in (item for items in SECTIONS.values() for item in items):
        assert item.sentence[0].isupper() and not item.sentence.endswith("."), item.name


def test_lines_that_do_not_concern_a_dimension_are_not_applicable() -> None:
    """Without windows, regulated attributes, facts and V-Order."""
    declaration = DECLARATION.replace("scd: 2", "scd: 1")
    for part in (*FOR_WINDOWS, "table_properties: {delta.parquet.vorder.enabled: true}\n"):
        declaration = declaration.replace(part, "")
    results = evaluate(state(declaration, STATE.replace("[fct_cash]", "[]")))
    assert failing(results) == {}
    assert [result.item for result in results if result.outcome == "not applicable"] == [
        "compliance_has_signed_off",
        "open_end_is_a_sentinel",
        "version_columns_exist",
        "v_order_is_set",
        "duplicates_are_checked",
        "ends_are_checked",
        "overlaps_are_checked",
        "late_facts_are_rekeyed",
        "history_is_compared",
    ]


def _without(name: str) -> Callable[[dict[str, Any]], dict[str, Any]]:
    return lambda values: {**values, name: None}


@pytest.mark.parametrize(
    ("part", "evidence", "items"),
    [
        (
            "tables",
            "does not exist; load the dimension",
            {
                "surrogate_keys_are_deterministic",
                "version_columns_exist",
                "changes_are_detected",
                "one_writer",
                "audit_has_actor_and_reason",
                "rows_are_clustered",
                "partitions_fit",
                "v_order_is_set",
                "audit_is_retained",
            },
        ),
        (
            "code_location",
            "no Dagster definitions: shop: No module named 'shop'; name their module with --code-location",
            {
                "loads_are_retried",
                "optimize_is_scheduled",
                "vacuum_is_scheduled",
                "duplicates_are_checked",
                "ends_are_checked",
                "overlaps_are_checked",
                "late_facts_are_rekeyed",
                "history_is_compared",
                "alerts_are_sent",
            },
        ),
    ],
)
def test_missing_evidence_fails_the_items_that_need_it(part: str, evidence: str, items: set[str]) -> None:
    text = yaml.safe_dump(_without(part)(yaml.safe_load(STATE)))
    failed = failing(evaluate(state(DECLARATION, text)))
    assert failed.keys() == items
    assert all(each.endswith(evidence) for each in failed.values())


def test_a_large_table_that_is_clustered_passes() -> None:
    text = STATE.replace("rows: 3", "rows: 2000000").replace("clustered_by: []", "clustered_by: [limit_type]")
    results = {result.item: result for result in evaluate(state(DECLARATION, text))}
    assert results["rows_are_clustered"].evidence == "table dim_limit: 2,000,000 rows, clustered by limit_type"


def test_a_large_table_that_is_clustered_by_another_column_fails() -> None:
    """Queries on the business key can skip no file of it."""
    text = STATE.replace("rows: 3", "rows: 2000000").replace("clustered_by: []", "clustered_by: [version]")
    assert failing(evaluate(state(DECLARATION, text))) == {
        "rows_are_clustered": "table dim_limit: 2,000,000 rows, clustered by version, not clustered by limit_type; "
        "run the job maintain_dim_limit_job, or alter the table if its columns are those of CLUSTER BY"
    }


def test_a_sensor_of_the_project_that_watches_failed_runs_needs_no_transport() -> None:
    text = STATE.replace("alert_sensors: [alerts]", "alert_sensors: [chat]").replace("[webhook]", "[]")
    assert failing(evaluate(state(DECLARATION, text))) == {}


def test_the_pages_of_a_clone_exist() -> None:
    assert documentation_pages() == {topic: f"docs/{page}" for topic, page in PAGES.items()}


def test_a_page_or_section_that_does_not_exist_is_missing(tmp_path: Path) -> None:
    """A folder is read; an installed package without documentation has no page."""
    page = tmp_path / "how-to" / "runbooks.md"
    page.parent.mkdir()
    page.write_text("# Runbooks\n\n## Repair duplicates\n\nBackfill is described elsewhere.\n", encoding="utf-8")
    pages = {"repair of duplicates": f"{tmp_path}/how-to/runbooks.md#repair-duplicates"}
    assert documentation_pages(f"{tmp_path}/") == pages
    assert documentation_pages("", clone=tmp_path).keys() == pages.keys()
    assert documentation_pages("", clone=tmp_path / "missing") == {}


def test_pages_at_a_url_are_not_requested() -> None:
    pages = documentation_pages("https://docs.example.com/scd/")
    assert pages == {topic: f"https://docs.example.com/scd/{page}" for topic, page in PAGES.items()}


@pytest.mark.parametrize("condition", ["op = 'delete'", "`null`", "is_deleted", "NOT (op IN ('I', 'U'))"])
def test_a_condition_of_a_column_is_one_for_deletes(condition: str) -> None:
    assert "deletes_are_handled" not in failing(evaluate(state(_with_deletes(condition), STATE)))


@pytest.mark.parametrize("condition", ["false", "1 = 0", "'op' = 'D'", "NULL", "NOT TRUE"])
def test_a_constant_condition_distinguishes_no_delete(condition: str) -> None:
    assert "deletes_are_handled" in failing(evaluate(state(_with_deletes(condition), STATE)))


def _with_deletes(condition: str) -> str:
    return DECLARATION.replace("\"op = 'D'\"", f'"{condition}"')
