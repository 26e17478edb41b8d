"""The items of the checklist: what each section needs of a dimension, and what shows it.

An item returns the evidence for it: a field, table property, check, schedule, sensor, variable or file.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from scd_pipeline.columns import CURRENT_FLAG, EFFECTIVE_FROM, EFFECTIVE_TO, VERSION
from scd_pipeline.declaration.column_names import ROW_HASH
from scd_pipeline.declaration.governance import BUSINESS, COMPLIANCE
from scd_pipeline.declaration.table_properties import FILE_RETENTION, MIN_HOURS, V_ORDER, hours_interval, interval_hours
from scd_pipeline.declaration.tables import AUDIT_SUFFIX, LOG_SUFFIX
from scd_pipeline.delta.schema import APPEND_ONLY_PROPERTY
from scd_pipeline.history.transitions import AUDIT_ACTOR, AUDIT_REASON
from scd_pipeline.invariants.check_descriptions import (
    EXPECTED_VALUES_ARE_REPRODUCED,
    NO_FOREIGN_COMMITS,
    ONE_CURRENT_VERSION,
    WINDOWS_DO_NOT_OVERLAP,
    WINDOWS_HAVE_BOTH_ENDS,
)
from scd_pipeline.load.retry import shortest_wait
from scd_pipeline.operations.checklist.pages import LATE_FACTS, PAGES, REBUILD, REPAIR
from scd_pipeline.operations.checklist.state import DimensionState, Failed, NotApplicable, Schedule
from scd_pipeline.operations.dagster_names import (
    automation_sensor_name,
    load_op_name,
    maintenance_job_name,
    maintenance_op_name,
    rekey_sensor_name,
)
from scd_pipeline.operations.z_order import LARGE_TABLE_ROWS, z_order_columns
from scd_pipeline.texts import join_names, pluralize

_MAX_WEEKLY_GAP_HOURS, _MAX_DAILY_GAP_HOURS = 7 * 24 + 1, 25
"""A week and an hour, and a day and an hour, because clocks may change in them."""
_ENVIRONMENT_SENSOR = "alerts"
"""The sensor of this package that sends alerts by the transports that the environment configures."""
_STRING = re.compile(r"'(?:[^'\\]|\\.)*'" r'|"(?:[^"\\]|\\.)*"')
_NAME = re.compile(r"`[^`]+`|[a-z_]\w*", re.IGNORECASE)
_CONSTANTS = frozenset({"true", "false", "null", "not", "and", "or", "is", "in", "between", "like"})
"""The words of a condition that refer to no column."""


@dataclass(frozen=True, slots=True)
class Item:
    """An item of the checklist: its name, a sentence that is true if it passes, and its evaluation.

    The evaluation returns the evidence, or raises `Failed` or `NotApplicable`.
    """

    name: str
    sentence: str
    evaluate: Callable[[DimensionState], str]


# Design: what people decide and approve before a dimension is built.


def _attributes(state: DimensionState) -> str:
    attributes = [attribute for attribute in state.dimension.attributes if not attribute.retired]
    missing = [attribute.name for attribute in attributes if not attribute.description.strip()]
    location = state.field("attributes")
    if missing:
        raise Failed(f"{location}: no description of {join_names(missing)}; add `description`, which defines them")
    if not attributes:
        return f"{location}: none"
    types = sorted({int(attribute.scd) for attribute in attributes})
    count = pluralize(len(attributes), "attribute")
    return f"{location}: {count} of SCD types {join_names(map(str, types))} with descriptions"


def _compliance(state: DimensionState) -> str:
    if not state.dimension.has_regulated_attributes:
        raise NotApplicable(f"{state.field('regulated')}: no attribute is regulated")
    return _sign_off(state, COMPLIANCE)


def _sign_off(state: DimensionState, role: str) -> str:
    sign_off = state.dimension.sign_offs.get(role)
    value = f"{sign_off.by}, {sign_off.date}" if sign_off else None
    return _declared(state, f"sign_offs.{role}", value, fix=f"write `{role}: {{by: NAME, date: 2024-01-31}}`")


def _declared(state: DimensionState, field: str, value: str | None, *, fix: str) -> str:
    """Return a declared value with its field."""
    if not value:
        raise Failed(f"{state.field(field)} is missing; {fix}")
    return f"{state.field(field)}: {value}"


def _surrogate_keys(state: DimensionState) -> str:
    dimension, stored = state.dimension, state.table().columns.get(state.dimension.surrogate_key)
    if stored != "bigint":
        raise Failed(
            f"table {dimension.name}: {dimension.surrogate_key} is {stored or 'missing'}; expected bigint; load the "
            "dimension into a new table"
        )
    strategy = f"{state.field('surrogate')}: {dimension.surrogate}"
    return f"{strategy} of the business key and the start of the version; {dimension.surrogate_key} is bigint"


def _open_end(state: DimensionState) -> str:
    _require_windows(state)
    location, layout = state.field("open_end"), state.dimension.column_layout
    if layout.has_null_end:
        column = layout.required_name(EFFECTIVE_TO)
        raise Failed(f"{location}: {column} of a current version is NULL; declare a time")
    return f"{location}: {layout.open_end}"


def _require_windows(state: DimensionState) -> None:
    if not state.dimension.has_windows:
        raise NotApplicable("the table has no validity windows")


# Build: what the tables of a dimension need before facts refer to them.


def _version_columns(state: DimensionState) -> str:
    layout = state.dimension.column_layout
    if not state.dimension.has_windows:
        raise NotApplicable("no attribute has type 2 or 6")
    names = [layout.name(column) for column in (EFFECTIVE_FROM, EFFECTIVE_TO, CURRENT_FLAG, VERSION)]
    expected = [name for name in names if name]
    _require_columns(state, "", expected, fix="load the dimension into a new table")
    return f"table {state.dimension.name}: columns {join_names(expected)}"


def _require_columns(state: DimensionState, suffix: str, expected: Sequence[str], *, fix: str) -> None:
    missing = [name for name in expected if name not in state.table(suffix).columns]
    if missing:
        raise Failed(f"table {state.dimension.name}{suffix}: no column {join_names(missing)}; {fix}")


def _change_detection(state: DimensionState) -> str:
    name, column = state.dimension.name, state.dimension.column_layout.name(ROW_HASH)
    if column is None:
        return "each load compares the values of all attributes (S13); no hash column is declared"
    if column not in state.table().columns:
        location = state.field(f"column_names.{ROW_HASH}")
        raise Failed(f"{location}: table {name} has no column {column}; load the dimension into a new table")
    return f"table {name}: column {column}; each load compares the values of all attributes (S13)"


def _retry(state: DimensionState) -> str:
    # A load by another op than the component's has no retries, or has those of its own code, which nothing here can
    # verify. The component's op has the number of attempts that its option declares.
    location, op = state.location, load_op_name(state.dimension.name)
    attempts = location.load_attempts.get(op, 0)
    if not attempts:
        problem = f"op {op} has no retries, because it is not an op of this package"
        raise Failed(f"{location.name}: {problem}; define the dimension by the component")
    if attempts == 1:
        raise Failed(f"{location.name}: op {op} has 1 attempt; set the component's `attempts` to at least 2")
    waits = ", ".join(f"{shortest_wait(number):.1f}" for number in range(attempts - 1))
    times = pluralize(attempts, "attempt")
    return f"op {op}: {times}; after a write conflict it waits {waits} seconds, with jitter"


def _single_writer(state: DimensionState) -> str:
    state.table(LOG_SUFFIX)
    if state.foreign_commits is None:
        raise state.table_missing()
    if not state.foreign_commits.passed:
        fix = f"run `scd repair {state.dimension.name}`, for another table run the command that `scd status` prints"
        raise Failed(f"check {NO_FOREIGN_COMMITS}: {'; '.join(state.foreign_commits.keys)}; {fix}")
    return f"change log {state.dimension.name}{LOG_SUFFIX}; check {NO_FOREIGN_COMMITS}"


def _owner(state: DimensionState) -> str:
    return _declared(state, "owner", state.dimension.owner, fix="name the team")


def _audit(state: DimensionState) -> str:
    _require_columns(state, AUDIT_SUFFIX, [AUDIT_ACTOR, AUDIT_REASON], fix="drop the table, a load rebuilds it")
    return f"table {state.dimension.name}{AUDIT_SUFFIX}: columns {AUDIT_ACTOR} and {AUDIT_REASON}"


def _deletes(state: DimensionState) -> str:
    source = state.dimension.existence_source
    path, day = f"sources.{source.name}", state.last_delete
    loaded = f"a deletion was loaded on {day}" if day else "no deletion was loaded yet"
    if source.snapshot is not None:
        return f"{state.field(f'{path}.snapshot')}: an entity that a snapshot omits is deleted (S18); {loaded}"
    deletes = source.feed.deletes if source.feed else None
    location, fix = state.field(f"{path}.feed.deletes"), "write the condition by which a row is a delete"
    if deletes is None:
        raise Failed(f"{location} is missing, so no entity is ever deleted; {fix}")
    if _is_constant(deletes):
        raise Failed(f"{location}: {deletes} is the same for every row, so it cannot identify deletes; {fix}")
    return f"{location}: {deletes}; {loaded}"


def _is_constant(condition: str) -> bool:
    """Return whether a condition refers to no column."""
    return _CONSTANTS.issuperset(name.lower() for name in _NAME.findall(_STRING.sub("''", condition)))


# Performance: how the files of the tables are arranged and maintained.


def _clustering(state: DimensionState) -> str:
    stored, name = state.table().clustered_by, state.dimension.name
    columns = z_order_columns(state.dimension, state.rows)
    if not columns:
        location = state.field(f"z_order: {state.dimension.z_order}")
        return f"{location}; table {name}: {state.rows:,} rows need no clustering"
    if set(map(str.casefold, columns)) <= set(map(str.casefold, stored)):
        return f"table {name}: {state.rows:,} rows, clustered by {join_names(stored)}"
    problem, fix = f"not clustered by {join_names(columns)}", f"run the job {maintenance_job_name(name)}"
    if stored:
        problem = f"clustered by {join_names(stored)}, {problem}"
        fix = f"{fix}, or alter the table if its columns are those of CLUSTER BY"
    raise Failed(f"table {name}: {state.rows:,} rows, {problem}; {fix}")


def _optimize(state: DimensionState) -> str:
    op = maintenance_op_name(state.dimension.name)
    schedules, problem = state.schedules_of_op(op), f"{state.location.name}: {{}} for op {op}"
    fix = "schedule its job weekly (`maintenance_cron`)"
    return str(_frequent(schedules, _MAX_WEEKLY_GAP_HOURS, f"{problem}; {fix}"))


def _frequent(schedules: Sequence[Schedule], max_gap_hours: int, problem: str) -> Schedule:
    """Return the first schedule without a longer gap; the problem has a placeholder for those that have one."""
    frequent = [schedule for schedule in schedules if schedule.gap_hours <= max_gap_hours]
    if not frequent:
        raise Failed(problem.format(f"only {join_names(map(str, schedules))}" if schedules else "no schedule"))
    return frequent[0]


def _vacuum(state: DimensionState) -> str:
    location, op = state.location, maintenance_op_name(state.dimension.name)
    short = [name for name, table in state.tables.items() if interval_hours(_retention(table.properties)) < MIN_HOURS]
    if short:
        raise Failed(f"table property {FILE_RETENTION} of {join_names(short)} is less than {MIN_HOURS} hours; raise it")
    schedules = state.schedules_of_op(op)
    if not schedules:
        raise Failed(f"{location.name}: no schedule for op {op}; schedule its job")
    load = load_op_name(state.dimension.name)
    pool, load_pool = location.pools.get(op), location.pools.get(load)
    if pool is None or pool != load_pool:
        raise Failed(
            f"op {op} is in {_pool_text(pool)} and op {load} in {_pool_text(load_pool)}; expected one pool for both; "
            "set `pool` on both ops"
        )
    retentions = {_retention(table.properties) for table in state.tables.values()} or {_retention({})}
    retained = f"{FILE_RETENTION}: {join_names(sorted(retentions))}"
    return f"{join_names(map(str, schedules))}; pool {pool} of loads and maintenance; {retained}"


def _pool_text(pool: str | None) -> str:
    return f"pool {pool}" if pool is not None else "no pool"


def _retention(properties: Mapping[str, str]) -> str:
    return properties.get(FILE_RETENTION, hours_interval(MIN_HOURS))


def _partitions(state: DimensionState) -> str:
    columns, name = state.table().partition_columns, state.dimension.name
    if not columns:
        return f"table {name}: not partitioned"
    partitioned = f"table {name}: {state.rows:,} rows, partitioned by {join_names(columns)}"
    if state.rows < LARGE_TABLE_ROWS:
        raise Failed(f"{partitioned}, so its files are small; load the dimension into a new table")
    return partitioned


def _v_order(state: DimensionState) -> str:
    declared, location = state.dimension.table_properties.get(V_ORDER), state.field(f"table_properties.{V_ORDER}")
    if declared is None:
        raise NotApplicable(f"{location} is not declared; only Microsoft Fabric has V-Order")
    stored = state.table().properties.get(V_ORDER)
    if stored != declared:
        raise Failed(
            f"{location}: {declared}; the table property is {stored or 'missing'}; load a delivery, which sets it"
        )
    return f"table property {V_ORDER}: {stored}; only Microsoft Fabric uses it"


# Quality: which checks of the tables are scheduled, and how late facts are handled.


def _daily_check(state: DimensionState, check: str) -> str:
    _require_windows(state)
    schedules, fix = state.schedules_of_check(check), "schedule it daily (`check_cron`)"
    return f"check {check}; {_frequent(schedules, _MAX_DAILY_GAP_HOURS, f'check {check}: {{}}; {fix}')}"


def _late_facts(state: DimensionState) -> str:
    if not state.facts:
        raise NotApplicable("no fact refers to the dimension")
    sensors = {fact: _rekey_sensor(fact, state.location.sensors) for fact in state.facts}
    missing = [fact for fact, sensor in sensors.items() if sensor is None]
    if missing:
        raise Failed(f"no sensor re-keys {join_names(missing)} after a late change; define the facts by the component")
    page = _page(state, LATE_FACTS, "no such page")
    return f"sensor {join_names([sensor for sensor in sensors.values() if sensor])}; {page}"


def _rekey_sensor(fact: str, sensors: tuple[str, ...]) -> str | None:
    """Return the sensor that loads a fact after its dimensions, None if it has none."""
    return next((name for name in (rekey_sensor_name(fact), automation_sensor_name(fact)) if name in sensors), None)


def _page(state: DimensionState, topic: str, problem: str) -> str:
    """Return the page of a topic in the documentation."""
    if topic not in state.pages:
        fix = "set SCD_DOCS_URL to the URL of documentation that contains it"
        raise Failed(f"{PAGES[topic]}: {problem}; {fix}")
    return state.pages[topic]


def _expected_values(state: DimensionState) -> str:
    if state.dimension.has_windows and not state.dimension.expected_values:
        raise Failed(
            f"{state.field('expected_values')} is missing; write a key figure that was published, with its time and an "
            "expression"
        )
    return _daily_check(state, EXPECTED_VALUES_ARE_REPRODUCED)


# Operation: what people need when something fails, and for how long the audit is retained.


def _runbook(state: DimensionState, topic: str) -> str:
    return f"{_page(state, topic, f'no runbook for {topic}')}: {topic}"


def _audit_retention(state: DimensionState) -> str:
    years = state.dimension.audit_retention_years
    text = None if years is None else pluralize(years, "year")
    declared = _declared(state, "audit_retention_years", text, fix="write the number of years, such as 7")
    if state.table(AUDIT_SUFFIX).properties.get(APPEND_ONLY_PROPERTY) != "true":
        name = state.dimension.name + AUDIT_SUFFIX
        raise Failed(
            f"table property {APPEND_ONLY_PROPERTY} of {name} is not true; set it, so that no row can be deleted"
        )
    return f"{declared}; table property {APPEND_ONLY_PROPERTY}: true"


def _alerts(state: DimensionState) -> str:
    location = state.location
    if not location.alert_sensors:
        raise Failed(f"{location.name}: no sensor watches failed runs; define `alert_sensor()`")
    others = [name for name in location.alert_sensors if name != _ENVIRONMENT_SENSOR]
    if others:
        return f"sensor {join_names(others)}"
    if not state.alert_transports:
        raise Failed(
            f"sensor {_ENVIRONMENT_SENSOR}: no transport is configured; set SCD_ALERT_WEBHOOK, or SCD_ALERT_MAIL_TO "
            "and SCD_ALERT_SMTP"
        )
    return f"sensor {_ENVIRONMENT_SENSOR} by {join_names(state.alert_transports)}"


def _product_card(state: DimensionState) -> str:
    return _declared(state, "product_card", state.dimension.product_card, fix="write the address of the page")


SECTIONS: Mapping[str, tuple[Item, ...]] = {
    "design": (
        Item("attributes_are_documented", "Each attribute has an SCD type and a description", _attributes),
        Item("business_has_signed_off", "The business has approved the declaration", partial(_sign_off, role=BUSINESS)),
        Item("compliance_has_signed_off", "Compliance has approved the regulated attributes", _compliance),
        Item("surrogate_keys_are_deterministic", "Surrogate keys are deterministic BIGINT", _surrogate_keys),
        Item("open_end_is_a_sentinel", "The end of a current version is a time, not NULL", _open_end),
    ),
    "build": (
        Item("version_columns_exist", "The table has the columns of validity windows", _version_columns),
        Item(
            "changes_are_detected", "Changes are detected by comparison, and a declared hash exists", _change_detection
        ),
        Item("loads_are_retried", "Loads are retried after write conflicts", _retry),
        Item("one_writer", "Only this package has changed rows, and the change log exists", _single_writer),
        Item("owner_is_declared", "The dimension has an owner", _owner),
        Item("audit_has_actor_and_reason", "The audit has the actor and the reason of each change", _audit),
        Item("deletes_are_handled", "It is declared how the source deletes entities", _deletes),
    ),
    "performance": (
        Item("rows_are_clustered", "Queries on the business key can skip files of a large table", _clustering),
        Item("optimize_is_scheduled", "A weekly OPTIMIZE is scheduled", _optimize),
        Item(
            "vacuum_is_scheduled",
            "VACUUM is scheduled in the pool of the loads, and retains files for a week",
            _vacuum,
        ),
        Item("partitions_fit", "The table is not split into small partitions", _partitions),
        Item("v_order_is_set", "V-Order is set where it is declared", _v_order),
    ),
    "quality": (
        Item(
            "duplicates_are_checked",
            "A daily check for several current versions of an entity is scheduled",
            partial(_daily_check, check=ONE_CURRENT_VERSION),
        ),
        Item(
            "ends_are_checked",
            "A daily check for windows without an end is scheduled",
            partial(_daily_check, check=WINDOWS_HAVE_BOTH_ENDS),
        ),
        Item(
            "overlaps_are_checked",
            "A daily check for overlapping windows is scheduled",
            partial(_daily_check, check=WINDOWS_DO_NOT_OVERLAP),
        ),
        Item("late_facts_are_rekeyed", "Facts are re-keyed after late changes", _late_facts),
        Item(
            "history_is_compared",
            "A daily check that compares the history with published values is scheduled",
            _expected_values,
        ),
    ),
    "operation": (
        Item("repair_has_a_runbook", "A runbook describes the repair of duplicates", partial(_runbook, topic=REPAIR)),
        Item("rebuild_has_a_runbook", "A runbook describes backfill and rebuild", partial(_runbook, topic=REBUILD)),
        Item(
            "audit_is_retained",
            "The retention of the audit is declared, and the audit is append-only",
            _audit_retention,
        ),
        Item("alerts_are_sent", "Failed runs send alerts, also if their retries are exhausted", _alerts),
        Item("product_card_is_linked", "The dimension has a product card", _product_card),
    ),
}
"""The items of the checklist by section."""
