"""Descriptions of the columns of change logs, dimensions, audits and facts, for the pages of their assets."""

from __future__ import annotations

from collections.abc import Mapping

from scd_pipeline import columns as c
from scd_pipeline.declaration import Attribute, Dimension, Fact, ScdType, landing_rows
from scd_pipeline.declaration.change_types import CHANGE_TYPES, WITHDRAWN
from scd_pipeline.declaration.column_names import ROW_HASH
from scd_pipeline.delta import audit_table as a
from scd_pipeline.history import transitions as t
from scd_pipeline.history.transitions import key_columns

_TYPES = {
    ScdType.RETAIN_ORIGINAL: "Type 0: the first value is kept",
    ScdType.OVERWRITE: "Type 1: every version has the latest value",
    ScdType.ADD_ROW: "Type 2: a different value opens a version",
    ScdType.ADD_ATTRIBUTE: "Type 3: every version has the latest and the previous value",
    ScdType.HYBRID: "Type 6: a different value opens a version, and every version also has the latest value",
}
_UNTRACKED = {
    "at_open": "Type 1, untracked: a version has the value at its start",
    "latest_in_version": "Type 1, untracked: a version has the latest value before its end",
}
_KEY = "Business key: identifies an entity in its sources."
_ROW_HASH = "Business key: SHA-256 hash of the attributes of a row, which is an entity."
_SHARED = {
    c.CHANGE_REASON: "Reason of the change that opened this row, as delivered.",
    c.CHANGE_SOURCE: "Source of the change that opened this row.",
    c.LOAD_RUN_ID: "Delivery (source/channel/name) of the change that opened this row.",
    c.LAST_UPDATED: "Business time of the last change of this row.",
}
_ROW_KEY = "Row key: permanent identifier of one row."
_ROW_COLUMNS = {
    landing_rows.ROW_DELIVERY: "Delivery (source/channel/name) of the row.",
    landing_rows.ROW_HASH: "SHA-256 hash of the values of the row; it identifies a row without a primary key.",
    landing_rows.ROW_NUMBER: "Number of the row among equal rows of its delivery, from 1.",
}
_DIMENSION = {
    **_SHARED,
    c.EFFECTIVE_FROM: "Start of the validity window in UTC, inclusive.",
    c.EFFECTIVE_TO: "End of the validity window in UTC, exclusive; the open end for a current version.",
    c.CURRENT_FLAG: "Whether this is the current version: its validity window has no end.",
    c.VERSION: "Number of the version within its entity, counted from 1 in order of time.",
    c.IS_DELETED: "Whether a delete opened this version.",
    c.VERSION_STATE: "Last transition that opened or closed this version.",
    c.DELETED_AT: "Business time at which the entity was deleted; NULL while it exists.",
    ROW_HASH: "SHA-256 hash of the values that open versions (types 2 and 6, and the key of a row version).",
}
_LOG = {
    c.KIND: "Kind of the row: a batch, a change record (`upsert`, `delete` or `no_op`), or a bad row.",
    c.COMMIT: "Number of the pipeline commit that added the row.",
    c.EFFECTIVE_AT: "Business time of the change.",
    c.BATCH: "Batch (source/channel/delivery/revision) to which the row belongs.",
    c.SOURCE: "Source that delivered the row.",
    c.CHANNEL: "Channel of the source: snapshot or feed.",
    "_delivery": "Name of the delivery.",
    "_revision": "Revision of the delivery.",
    c.DELIVERY_RANK: "Sort key of the name of the delivery.",
    c.REVISION_RANK: "Sort key of the revision.",
    c.SEQUENCE: "Order of changes with equal business times, if the source declares a sequence.",
    c.ASSERTED_AT: "Business time at which the source asserted the change.",
    c.PROVIDED: "Attributes that the change record provides; the values of all other attributes have no meaning.",
    c.REASON: "Reason of the change, as delivered.",
    c.ACTOR: "Person or system that made the change, as delivered.",
    c.CORRELATION_ID: "Correlation id, as delivered.",
    c.BAD_REASON: "Reason for which the row is quarantined; NULL for a valid row.",
    c.BAD_ROW: "The quarantined row as text; NULL for a valid row.",
    c.INFO: "Properties of the batch: times, columns, scope, counts, fingerprint, run; NULL for a change record.",
    c.CURSOR: "State of the cursor after the batch: highest value, and hashes of its rows; NULL for any other row.",
}
_AUDIT = {
    a.AUDIT_ID: "Identifier of the audit row.",
    t.CHANGED_COLUMNS: "Attributes whose values the transition changes.",
    t.OLD_VALUES: "Values before the transition, as text, by attribute; without an entry if none was provided.",
    t.NEW_VALUES: "Values after the transition, as text, by attribute; without an entry if none was provided.",
    t.CHANGE_TS: "Business time of the transition.",
    t.AUDIT_ACTOR: "Person or system that made the change, as delivered; otherwise the pipeline.",
    t.AUDIT_REASON: "Reason of the change, as delivered.",
    t.SOURCE_BATCH: "Delivery (source/channel/name) that caused the transition.",
    t.CORRELATION: "Correlation id, as delivered.",
    a.RECORDED_AT: "System time: the time of the commit that made the transition visible.",
    a.RECORDED_VERSION: "First Delta version of the dimension that contains the transition.",
    c.EFFECTIVE_FROM: "Start of the version in force after the transition; NULL if there is none.",
}


def log_columns(dimension: Dimension) -> dict[str, str]:
    """Return the descriptions of a change log's columns, by column."""
    attributes = {attribute.name: _value(attribute) for attribute in dimension.attributes}
    return {**attributes, **_business_key(dimension), **_LOG}


def audit_columns(dimension: Dimension) -> dict[str, str]:
    """Return the descriptions of an audit's columns, by column."""
    old, new = key_columns(dimension)
    keys = {
        old: "Surrogate key of the version that the transition closes or changes; NULL if there is none.",
        new: "Surrogate key of the version in force after the transition; NULL if there is none.",
    }
    labelled = {
        t.CHANGE_TYPE: f"Kind of the transition: {', '.join(map(dimension.audit_label, CHANGE_TYPES))}.",
        a.WITHDRAWS: f"For {dimension.audit_label(WITHDRAWN)}: `audit_id` of the transition that is withdrawn.",
    }
    return {**_business_key(dimension), **_AUDIT, **labelled, **keys}


def dimension_columns(dimension: Dimension) -> dict[str, str]:
    """Return the descriptions of the columns of a dimension or a landing table, by column."""
    if dimension.landing is not None:
        return _landing_columns(dimension)
    texts = {name: text for column, text in _DIMENSION.items() if (name := dimension.column_layout.name(column))}
    for attribute in dimension.attributes:
        texts |= _generated(attribute)
        text = _UNTRACKED[attribute.untracked] if attribute.untracked else _TYPES[attribute.scd]
        retired = f". Retired at {attribute.retired_at}: no longer provided" if attribute.retired_at else ""
        texts[attribute.name] = _described(attribute, text + retired)
    surrogate_key = "Surrogate key: permanent identifier of one version, stored in facts."
    return {**texts, **_business_key(dimension), dimension.surrogate_key: surrogate_key}


def _landing_columns(dimension: Dimension) -> dict[str, str]:
    """Return the descriptions of a landing table's columns, by column; those of the source have none."""
    names = set(dimension.key_names)
    derived = {column.name: text for column, text in _ROW_COLUMNS.items() if column.name in names}
    return {**_SHARED, **derived, dimension.surrogate_key: _ROW_KEY}


def fact_columns(fact: Fact) -> dict[str, str]:
    """Return the descriptions of a fact's columns, by column; one column may have several roles."""
    texts: dict[str, list[str]] = {}
    for column in fact.grain:
        texts.setdefault(column.name, []).append("Grain: identifies a row of the fact")
    texts.setdefault(fact.event_time, []).append("Event time: business time of the event")
    for role_name, key, role in fact.keyed_roles:
        dimension = role.dimension.name
        text = f"Surrogate key of the version of {dimension} in force at `{fact.event_time}`, or -1 if none is"
        texts.setdefault(key, []).append(text)
        for name in role.key:
            texts.setdefault(name, []).append(f"Business key of {dimension}, in the role {role_name}")
    for name, _ in fact.measures:
        texts.setdefault(name, []).append("Measure")
    row_key = {fact.row_key: _ROW_KEY}
    return {**_SHARED, **{name: f"{'. '.join(parts)}." for name, parts in texts.items()}, **row_key}


def _business_key(dimension: Dimension) -> Mapping[str, str]:
    return {key.name: _ROW_HASH if key.derived else _KEY for key in dimension.business_key}


def _generated(attribute: Attribute) -> dict[str, str]:
    name = attribute.name
    texts = {
        attribute.current_column: f"Latest value of `{name}`, the same in every version.",
        attribute.previous_column: f"Value of `{name}` before its value in this row.",
        attribute.changed_at_column: f"Business time of the last change of `{name}`.",
    }
    return {column: text for column, text in texts.items() if column is not None}


def _value(attribute: Attribute) -> str:
    return _described(attribute, f"Value of `{attribute.name}` in the change record")


def _described(attribute: Attribute, text: str) -> str:
    return f"{attribute.description.rstrip('.')}. {text}." if attribute.description else f"{text}."
