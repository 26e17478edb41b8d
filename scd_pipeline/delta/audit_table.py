"""The audit of a dimension as a table: what happened to whom, why, and since when that is known (S21, S22)."""

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
    """Name, type and nullability of the audit's columns, in order."""
    needed = {CHANGE_TYPE, CHANGE_TS, AUDIT_ACTOR}
    return [
        (AUDIT_ID, "bigint", False),
        *[(key.name, parse_type(key.type).ddl(), False) for key in dimension.business_key],
        *[(name, ddl, name not in needed) for name, ddl in transition_schema(dimension)],
        (RECORDED_AT, "timestamp", False),
        (RECORDED_VERSION, "bigint", True),
        (WITHDRAWS, "bigint", True),
    ]


def current_transitions(audit: DataFrame, dimension: Dimension) -> DataFrame:
    """Of audit rows those that were not withdrawn, in the names that the attributes have now.

    Out: `audit_id`, the business key and `transition_schema`, `recorded_at`, `recorded_version`.
    """
    keys = list(dimension.key_names)
    gone = audit.where(F.col(CHANGE_TYPE) == WITHDRAWN).select(
        *[col(k) for k in keys], F.col(WITHDRAWS).alias(AUDIT_ID)
    )
    told = audit.where(F.col(CHANGE_TYPE) != WITHDRAWN).drop(WITHDRAWS)
    return _in_new_names(told.join(gone, [*keys, AUDIT_ID], "left_anti"), dimension)


def recorded_until(audit: DataFrame, moment: Column) -> DataFrame:
    """The audit rows that were recorded up to a moment."""
    return audit.where(F.col(RECORDED_AT) <= moment)


def audit_rows(
    standing: DataFrame,
    now: DataFrame,
    causes: DataFrame,
    dimension: Dimension,
    *,
    step: int,
    at: Column,
    version: Column,
) -> DataFrame:
    """What the audit has to add so that the transitions that stand are those of now.

    In: both with the business key and `transition_schema`, `standing` with `audit_id`; `causes`, per business key the
    delivery that made its history another (`source_batch_id`); the step that recorded it, when, and the version of
    the dimension's table that shows it. Out: `audit_schema`; a WITHDRAWN row for each that stands no more.
    """
    keys = [col(name) for name in dimension.key_names]
    told = [col(name) for name, _ in transition_schema(dimension)]
    before = standing.select(*keys, AUDIT_ID, CHANGE_TS, _content(dimension).alias(_CONTENT))
    after = now.select(*keys, *told, _content(dimension).alias(_CONTENT))
    joint = [*dimension.key_names, _CONTENT]
    new = after.join(before.select(*keys, _CONTENT), joint, "left_anti").withColumn(
        WITHDRAWS, F.lit(None).cast("bigint")
    )
    gone = before.join(after.select(*keys, _CONTENT), joint, "left_anti").join(
        causes, list(dimension.key_names), "left"
    )
    values = {
        CHANGE_TYPE: F.lit(WITHDRAWN),
        AUDIT_ACTOR: F.lit(f"pipeline:{dimension.name}"),
        AUDIT_REASON: F.lit(_NO_LONGER),
        CHANGE_TS: F.col(CHANGE_TS),
        SOURCE_BATCH: F.col(SOURCE_BATCH),
    }
    withdrawn = gone.select(
        *keys,
        *[values.get(name, F.lit(None)).cast(ddl).alias(name) for name, ddl in transition_schema(dimension)],
        _CONTENT,
        F.col(AUDIT_ID).alias(WITHDRAWS),
    )
    rows = new.select(*withdrawn.columns).unionByName(withdrawn)
    number = F.xxhash64(key_text(dimension.key_names), F.lit(step), F.col(CHANGE_TYPE), F.col(_CONTENT))
    recorded = rows.withColumns({AUDIT_ID: number, RECORDED_AT: at, RECORDED_VERSION: version.cast("bigint")})
    return recorded.select(*[col(name) for name, _, _ in audit_schema(dimension)])


def _content(dimension: Dimension) -> Column:
    """64 bits of all that a transition says, in whatever order its attributes are declared."""
    parts = [_orderless(name, ddl).alias(name) for name, ddl in transition_schema(dimension)]
    return F.xxhash64(F.to_json(F.struct(*parts)))


def _orderless(name: str, ddl: str) -> Column:
    """A column as JSON may tell it: times in microseconds, which it would cut, names of attributes sorted."""
    if ddl == "timestamp":
        return F.unix_micros(name)
    if ddl.startswith("map<"):
        return F.array_sort(F.map_entries(name))
    return F.array_sort(name) if ddl.startswith("array<") else col(name)


def _in_new_names(rows: DataFrame, dimension: Dimension) -> DataFrame:
    """Values of a renamed attribute are found under its new name (S20)."""
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
