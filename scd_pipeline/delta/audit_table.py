"""The audit table of a dimension: the transitions of each entity with their reason and their system time (S21, S22)."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from scd_pipeline.declaration import Dimension
from scd_pipeline.declaration.types import parse_type
from scd_pipeline.delta.schema import renamed_columns
from scd_pipeline.expressions import col, key_text, to_current_names
from scd_pipeline.history.transitions import (
    AUDIT_ACTOR,
    AUDIT_REASON,
    CHANGE_TS,
    CHANGE_TYPE,
    CHANGED_COLUMNS,
    NEW_VALUES,
    OLD_VALUES,
    SOURCE_BATCH,
    WITHDRAWN,
    transition_schema,
)

AUDIT_ID, RECORDED_AT, RECORDED_VERSION, WITHDRAWS = "audit_id", "recorded_at", "recorded_version", "withdraws"
APPEND_ONLY = {"delta.appendOnly": "true"}
_CONTENT = "_content"
_NO_LONGER = "no_longer_true"


def audit_schema(dimension: Dimension) -> list[tuple[str, str, bool]]:
    """Return name, type and nullability of the audit's columns, in order."""
    not_null = {CHANGE_TYPE, CHANGE_TS, AUDIT_ACTOR}
    return [
        (AUDIT_ID, "bigint", False),
        *[(key.name, parse_type(key.type).ddl(), False) for key in dimension.business_key],
        *[(name, ddl, name not in not_null) for name, ddl in transition_schema(dimension)],
        (RECORDED_AT, "timestamp", False),
        (RECORDED_VERSION, "bigint", True),
        (WITHDRAWS, "bigint", True),
    ]


def current_transitions(audit: DataFrame, dimension: Dimension) -> DataFrame:
    """Return the audit rows that were not withdrawn, under the current names of the attributes.

    Returns:
        `audit_id`, the business key and `transition_schema`, `recorded_at`, `recorded_version`.
    """
    keys = list(dimension.key_names)
    withdrawn = audit.where(F.col(CHANGE_TYPE) == WITHDRAWN).select(
        *[col(k) for k in keys], F.col(WITHDRAWS).alias(AUDIT_ID)
    )
    transitions = audit.where(F.col(CHANGE_TYPE) != WITHDRAWN).drop(WITHDRAWS)
    return _with_current_names(transitions.join(withdrawn, [*keys, AUDIT_ID], "left_anti"), dimension)


def recorded_until(audit: DataFrame, moment: Column) -> DataFrame:
    """Return the audit rows that were recorded up to a system time."""
    return audit.where(F.col(RECORDED_AT) <= moment)


def audit_rows(
    recorded: DataFrame,
    current: DataFrame,
    causes: DataFrame,
    dimension: Dimension,
    *,
    step: int,
    at: Column,
    version: Column,
) -> DataFrame:
    """Return the rows to append to the audit, so that its transitions become the current ones.

    Args:
        recorded: The transitions in the audit that are not withdrawn: `audit_id`, business key, `transition_schema`.
        current: The transitions of the present history: business key, `transition_schema`.
        causes: For each business key the batch that changed its history (`source_batch_id`).
        dimension: The declaration.
        step: The number of the commit that records the rows.
        at: The system time.
        version: The version of the dimension's table that has the current history.

    Returns:
        `audit_schema`, with a WITHDRAWN row for each recorded transition that is not current.
    """
    keys = [col(name) for name in dimension.key_names]
    transition_columns = [col(name) for name, _ in transition_schema(dimension)]
    before = recorded.select(*keys, AUDIT_ID, CHANGE_TS, _content(dimension).alias(_CONTENT))
    after = current.select(*keys, *transition_columns, _content(dimension).alias(_CONTENT))
    joint = [*dimension.key_names, _CONTENT]
    new = after.join(before.select(*keys, _CONTENT), joint, "left_anti").withColumn(
        WITHDRAWS, F.lit(None).cast("bigint")
    )
    outdated = before.join(after.select(*keys, _CONTENT), joint, "left_anti").join(
        causes, list(dimension.key_names), "left"
    )
    values = {
        CHANGE_TYPE: F.lit(WITHDRAWN),
        AUDIT_ACTOR: F.lit(f"pipeline:{dimension.name}"),
        AUDIT_REASON: F.lit(_NO_LONGER),
        CHANGE_TS: F.col(CHANGE_TS),
        SOURCE_BATCH: F.col(SOURCE_BATCH),
    }
    withdrawn = outdated.select(
        *keys,
        *[values.get(name, F.lit(None)).cast(ddl).alias(name) for name, ddl in transition_schema(dimension)],
        _CONTENT,
        F.col(AUDIT_ID).alias(WITHDRAWS),
    )
    rows = new.select(*withdrawn.columns).unionByName(withdrawn)
    number = F.xxhash64(key_text(dimension.key_names), F.lit(step), F.col(CHANGE_TYPE), F.col(_CONTENT))
    numbered = rows.withColumns({AUDIT_ID: number, RECORDED_AT: at, RECORDED_VERSION: version.cast("bigint")})
    return numbered.select(*[col(name) for name, _, _ in audit_schema(dimension)])


def _content(dimension: Dimension) -> Column:
    """Return a 64-bit hash of a transition that does not depend on the declared order of attributes."""
    columns = [_order_independent(name, ddl).alias(name) for name, ddl in transition_schema(dimension)]
    return F.xxhash64(F.to_json(F.struct(*columns)))


def _order_independent(name: str, ddl: str) -> Column:
    """Return a column for JSON: times in microseconds, which JSON would cut off, and names of attributes sorted."""
    if ddl == "timestamp":
        return F.unix_micros(name)
    if ddl.startswith("map<"):
        return F.array_sort(F.map_entries(name))
    return F.array_sort(name) if ddl.startswith("array<") else col(name)


def _with_current_names(rows: DataFrame, dimension: Dimension) -> DataFrame:
    """Return the rows with the values of a renamed attribute under its current name (S20)."""
    renamed = renamed_columns(dimension.attributes, generated=False)
    renamed |= {f"current_{former}": f"current_{name}" for former, name in renamed.items()}
    if not renamed:
        return rows
    new_name = to_current_names(renamed)
    return rows.withColumns(
        {
            CHANGED_COLUMNS: F.transform(CHANGED_COLUMNS, new_name),
            OLD_VALUES: F.transform_keys(OLD_VALUES, lambda name, _: new_name(name)),
            NEW_VALUES: F.transform_keys(NEW_VALUES, lambda name, _: new_name(name)),
        }
    )
