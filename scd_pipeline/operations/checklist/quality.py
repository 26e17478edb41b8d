"""Quality: which checks of the tables are scheduled, and how late facts are handled."""

from __future__ import annotations

from scd_pipeline.invariants.check_descriptions import (
    EXPECTED_VALUES_ARE_REPRODUCED,
    ONE_CURRENT_VERSION,
    WINDOWS_DO_NOT_OVERLAP,
    WINDOWS_HAVE_BOTH_ENDS,
)
from scd_pipeline.operations.checklist.items import (
    Item,
    Result,
    code_location_missing,
    failed,
    not_applicable,
    passed,
)
from scd_pipeline.operations.checklist.pages import LATE_FACTS, PAGES
from scd_pipeline.operations.checklist.state import DimensionState
from scd_pipeline.operations.dagster_names import automation_sensor_name, rekey_sensor_name
from scd_pipeline.texts import join_names

_MAX_DAILY_GAP_HOURS = 25
"""A day and an hour, because clocks may change in it."""


def _duplicates(state: DimensionState) -> Result:
    return _daily_check(state, ONE_CURRENT_VERSION)


def _ends(state: DimensionState) -> Result:
    return _daily_check(state, WINDOWS_HAVE_BOTH_ENDS)


def _overlaps(state: DimensionState) -> Result:
    return _daily_check(state, WINDOWS_DO_NOT_OVERLAP)


def _expected_values(state: DimensionState) -> Result:
    if state.dimension.has_windows and not state.dimension.expected_values:
        return failed(
            f"{state.field('expected_values')} is missing; write a key figure that was published, with its time and an "
            "expression"
        )
    return _daily_check(state, EXPECTED_VALUES_ARE_REPRODUCED)


def _daily_check(state: DimensionState, check: str) -> Result:
    if not state.dimension.has_windows:
        return not_applicable("the table has no validity windows")
    if state.code_location is None:
        return code_location_missing(state)
    schedules = state.schedules_of_check(check)
    daily = [schedule for schedule in schedules if schedule.gap_hours <= _MAX_DAILY_GAP_HOURS]
    if daily:
        return passed(f"check {check}; {daily[0]}")
    others = f"only {join_names(map(str, schedules))}" if schedules else "no schedule"
    return failed(f"check {check}: {others}; schedule it daily (`check_cron`)")


def _late_facts(state: DimensionState) -> Result:
    location = state.code_location
    if not state.facts:
        return not_applicable("no fact refers to the dimension")
    if location is None:
        return code_location_missing(state)
    sensors = {fact: _rekey_sensor(fact, location.sensors) for fact in state.facts}
    missing = [fact for fact, sensor in sensors.items() if sensor is None]
    if missing:
        return failed(f"no sensor re-keys {join_names(missing)} after a late change; define the facts by the component")
    page = state.pages.get(LATE_FACTS)
    if page is None:
        return failed(
            f"{PAGES[LATE_FACTS]}: no such page; set SCD_DOCS_URL to the URL of documentation that contains it"
        )
    return passed(f"sensor {join_names([sensor for sensor in sensors.values() if sensor])}; {page}")


def _rekey_sensor(fact: str, sensors: tuple[str, ...]) -> str | None:
    """Return the sensor that loads a fact after its dimensions, None if it has none."""
    return next((name for name in (rekey_sensor_name(fact), automation_sensor_name(fact)) if name in sensors), None)


ITEMS = (
    Item("duplicates_are_checked", "A daily check for several current versions of an entity is scheduled", _duplicates),
    Item("ends_are_checked", "A daily check for windows without an end is scheduled", _ends),
    Item("overlaps_are_checked", "A daily check for overlapping windows is scheduled", _overlaps),
    Item("late_facts_are_rekeyed", "Facts are re-keyed after late changes", _late_facts),
    Item(
        "history_is_compared",
        "A daily check that compares the history with published values is scheduled",
        _expected_values,
    ),
)
