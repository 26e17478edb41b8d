"""Operation: what people need when something fails, and for how long the audit is retained."""

from __future__ import annotations

from scd_pipeline.declaration.tables import AUDIT_SUFFIX
from scd_pipeline.delta.schema import APPEND_ONLY_PROPERTY
from scd_pipeline.operations.checklist.items import (
    Item,
    Result,
    code_location_missing,
    failed,
    passed,
    table_missing,
)
from scd_pipeline.operations.checklist.pages import PAGES, REBUILD, REPAIR
from scd_pipeline.operations.checklist.state import DimensionState
from scd_pipeline.texts import join_names, pluralize

_ENVIRONMENT_SENSOR = "alerts"
"""The sensor of this package that sends alerts by the transports that the environment configures."""


def _repair_runbook(state: DimensionState) -> Result:
    return _runbook(state, REPAIR)


def _rebuild_runbook(state: DimensionState) -> Result:
    return _runbook(state, REBUILD)


def _runbook(state: DimensionState, topic: str) -> Result:
    page = state.pages.get(topic)
    if page is None:
        fix = "set SCD_DOCS_URL to the URL of documentation that contains it"
        return failed(f"{PAGES[topic]}: no runbook for {topic}; {fix}")
    return passed(f"{page}: {topic}")


def _audit_retention(state: DimensionState) -> Result:
    audit, years = state.table(AUDIT_SUFFIX), state.dimension.audit_retention_years
    location = state.field("audit_retention_years")
    if years is None:
        return failed(f"{location} is missing; write the number of years, such as 7")
    if audit is None:
        return table_missing(state, AUDIT_SUFFIX)
    if audit.properties.get(APPEND_ONLY_PROPERTY) != "true":
        name = state.dimension.name + AUDIT_SUFFIX
        return failed(
            f"table property {APPEND_ONLY_PROPERTY} of {name} is not true; set it, so that no row can be deleted"
        )
    return passed(f"{location}: {pluralize(years, 'year')}; table property {APPEND_ONLY_PROPERTY}: true")


def _alerts(state: DimensionState) -> Result:
    location = state.code_location
    if location is None:
        return code_location_missing(state)
    if not location.alert_sensors:
        return failed(f"{location.name}: no sensor watches failed runs; define `alert_sensor()`")
    others = [name for name in location.alert_sensors if name != _ENVIRONMENT_SENSOR]
    if others:
        return passed(f"sensor {join_names(others)}")
    if not state.alert_transports:
        return failed(
            f"sensor {_ENVIRONMENT_SENSOR}: no transport is configured; set SCD_ALERT_WEBHOOK, or SCD_ALERT_MAIL_TO "
            "and SCD_ALERT_SMTP"
        )
    return passed(f"sensor {_ENVIRONMENT_SENSOR} by {join_names(state.alert_transports)}")


def _product_card(state: DimensionState) -> Result:
    location, card = state.field("product_card"), state.dimension.product_card
    return passed(f"{location}: {card}") if card else failed(f"{location} is missing; write the address of the page")


ITEMS = (
    Item("repair_has_a_runbook", "A runbook describes the repair of duplicates", _repair_runbook),
    Item("rebuild_has_a_runbook", "A runbook describes backfill and rebuild", _rebuild_runbook),
    Item("audit_is_retained", "The retention of the audit is declared, and the audit is append-only", _audit_retention),
    Item("alerts_are_sent", "Failed runs send alerts, also if their retries are exhausted", _alerts),
    Item("product_card_is_linked", "The dimension has a product card", _product_card),
)
