"""Rebuild the versions of a dimension from the transitions in its audit (S22)."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from scd_pipeline.columns import EFFECTIVE_AT, attribute_types
from scd_pipeline.declaration import Attribute, Dimension
from scd_pipeline.declaration.change_types import INSERT, LOGICAL_DELETE, REFUSED, UPDATE
from scd_pipeline.expressions import col
from scd_pipeline.history.keys import KeyHash, hash_64
from scd_pipeline.history.lossless import wrapped_value
from scd_pipeline.history.row_windows import RowWindows, business_key
from scd_pipeline.history.timeline import EXISTS, OPENED_BY, VISIBLE, build_versions, visible_state
from scd_pipeline.history.transitions import (
    AUDIT_ACTOR,
    AUDIT_REASON,
    CHANGE_TS,
    CHANGE_TYPE,
    CORRELATION,
    NEW_VALUES,
    SOURCE_BATCH,
)


def rebuild_versions(transitions: DataFrame, dimension: Dimension, *, key_hash: KeyHash = hash_64) -> DataFrame:
    """Return the versions that transitions describe.

    Args:
        transitions: The business key and `transition_schema`: of each entity all transitions that are not withdrawn,
            under the current names of the attributes.
        dimension: The declaration.
        key_hash: The hash of surrogate keys.

    Returns:
        The rows of the dimension, as `build_timeline` does.
    """
    windows = RowWindows(dimension)
    window = windows.by_time()
    effective = transitions.where(F.col(CHANGE_TYPE) != REFUSED)
    changes = effective.groupBy(*business_key(dimension), F.col(CHANGE_TS).alias(EFFECTIVE_AT)).agg(
        F.max(_exists()).alias(EXISTS),
        F.max(F.when(_exists().isNotNull(), _origin())).alias(OPENED_BY),
        *[F.first(_new_value(a, dimension), ignorenulls=True).alias(a.name) for a in dimension.attributes],
    )
    running = {name: window.last(col(name)) for name in dimension.attribute_names}
    states = changes.withColumns(
        {
            EXISTS: F.coalesce(window.last(F.col(EXISTS)), F.lit(False)),
            OPENED_BY: window.last(F.col(OPENED_BY)),
            **running,
        }
    )
    visible = states.withColumn(VISIBLE, visible_state(dimension))
    return build_versions(visible, dimension, windows, key_hash=key_hash)


def _exists() -> Column:
    """Return whether the entity exists after the transition; NULL if the transition does not change that."""
    kind = F.col(CHANGE_TYPE)
    return F.when(kind.isin(INSERT, UPDATE), True).when(kind == LOGICAL_DELETE, False)


def _origin() -> Column:
    """Return the same struct as `timeline.record_origin`."""
    return F.struct(
        F.col(SOURCE_BATCH).alias("delivery"),
        F.element_at(F.split(SOURCE_BATCH, "/"), 1).alias("source"),
        F.col(AUDIT_REASON).alias("reason"),
        F.col(AUDIT_ACTOR).alias("actor"),
        F.col(CORRELATION).alias("correlation_id"),
    )


def _new_value(attribute: Attribute, dimension: Dimension) -> Column:
    """Return the attribute's wrapped value after the transition; NULL if the transition does not contain it."""
    names = [attribute.name, *([attribute.current_column] if attribute.current_column else [])]
    data_type = attribute_types(dimension)[attribute.name]
    return F.coalesce(*[wrapped_value(F.col(NEW_VALUES), name, data_type) for name in names])
