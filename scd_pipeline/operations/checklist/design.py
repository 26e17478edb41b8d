"""Design: what people decide and approve before a dimension is built."""

from __future__ import annotations

from scd_pipeline.columns import EFFECTIVE_TO
from scd_pipeline.declaration.governance import BUSINESS, COMPLIANCE
from scd_pipeline.operations.checklist.items import Item, Result, failed, not_applicable, passed, table_missing
from scd_pipeline.operations.checklist.state import DimensionState
from scd_pipeline.texts import join_names, pluralize


def _attributes(state: DimensionState) -> Result:
    attributes = [attribute for attribute in state.dimension.attributes if not attribute.retired]
    missing = [attribute.name for attribute in attributes if not attribute.description.strip()]
    location = state.field("attributes")
    if missing:
        return failed(f"{location}: no description of {join_names(missing)}; add `description`, which defines them")
    if not attributes:
        return passed(f"{location}: none")
    types = sorted({int(attribute.scd) for attribute in attributes})
    count = pluralize(len(attributes), "attribute")
    return passed(f"{location}: {count} of SCD types {join_names(map(str, types))} with descriptions")


def _business(state: DimensionState) -> Result:
    return _sign_off(state, BUSINESS)


def _compliance(state: DimensionState) -> Result:
    if not state.dimension.has_regulated_attributes:
        return not_applicable(f"{state.field('regulated')}: no attribute is regulated")
    return _sign_off(state, COMPLIANCE)


def _sign_off(state: DimensionState, role: str) -> Result:
    location = state.field(f"sign_offs.{role}")
    sign_off = state.dimension.sign_offs.get(role)
    if sign_off is None:
        return failed(f"{location} is missing; write `{role}: {{by: NAME, date: 2024-01-31}}`")
    return passed(f"{location}: {sign_off.by}, {sign_off.date}")


def _surrogate_keys(state: DimensionState) -> Result:
    dimension, table = state.dimension, state.table()
    if table is None:
        return table_missing(state)
    stored = table.columns.get(dimension.surrogate_key)
    if stored != "bigint":
        return failed(
            f"table {dimension.name}: {dimension.surrogate_key} is {stored or 'missing'}; expected bigint; load the "
            "dimension into a new table"
        )
    strategy = f"{state.field('surrogate')}: {dimension.surrogate}"
    return passed(f"{strategy} of the business key and the start of the version; {dimension.surrogate_key} is bigint")


def _open_end(state: DimensionState) -> Result:
    dimension = state.dimension
    if not dimension.has_windows:
        return not_applicable("the table has no validity windows")
    location, layout = state.field("open_end"), dimension.column_layout
    if layout.has_null_end:
        column = layout.required_name(EFFECTIVE_TO)
        return failed(f"{location}: {column} of a current version is NULL; declare a time")
    return passed(f"{location}: {layout.open_end}")


ITEMS = (
    Item("attributes_are_documented", "Each attribute has an SCD type and a description", _attributes),
    Item("business_has_signed_off", "The business has approved the declaration", _business),
    Item("compliance_has_signed_off", "Compliance has approved the regulated attributes", _compliance),
    Item("surrogate_keys_are_deterministic", "Surrogate keys are deterministic BIGINT", _surrogate_keys),
    Item("open_end_is_a_sentinel", "The end of a current version is a time, not NULL", _open_end),
)
