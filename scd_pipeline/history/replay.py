"""The other way round: transitions that stand become the versions that they made (S22)."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from scd_pipeline.columns import EFFECTIVE_AT, attribute_types
from scd_pipeline.declaration import Attribute, Dimension, ScdType
from scd_pipeline.expressions import col
from scd_pipeline.history.keys import KeyHash, hash_64
from scd_pipeline.history.lossless import told_of
from scd_pipeline.history.timeline import EXISTS, OPENER, VISIBLE, by_time, versions_of, visible
from scd_pipeline.history.transitions import (
    CHANGE_TS,
    CHANGE_TYPE,
    CORRELATION,
    INSERT,
    LOGICAL_DELETE,
    NEW_VALUES,
    REFUSED,
    SOURCE_BATCH,
    TOLD_ACTOR,
    TOLD_REASON,
    UPDATE,
)


def build_versions(transitions: DataFrame, dimension: Dimension, *, key_hash: KeyHash = hash_64) -> DataFrame:
    """The dimension's rows, as of `build_timeline`, that the transitions of some entities tell of.

    In: the business key and `transition_schema`, of each entity all transitions that stand. An attribute's former
    names are known.
    """
    window = by_time(dimension)
    told = transitions.where(F.col(CHANGE_TYPE) != REFUSED)
    happened = told.groupBy(*[col(n) for n in dimension.key_names], F.col(CHANGE_TS).alias(EFFECTIVE_AT)).agg(
        F.max(_exists()).alias(EXISTS),
        F.max(F.when(_exists().isNotNull(), _opener())).alias(OPENER),
        *[F.first(_value(a, dimension), ignorenulls=True).alias(a.name) for a in dimension.attributes],
    )
    running = {name: F.last(col(name), ignorenulls=True).over(window) for name in dimension.attribute_names}
    moments = happened.withColumns(
        {
            EXISTS: F.coalesce(F.last(EXISTS, ignorenulls=True).over(window), F.lit(False)),
            OPENER: F.last(OPENER, ignorenulls=True).over(window),
            **running,
        }
    )
    return versions_of(moments.withColumn(VISIBLE, visible(dimension)), dimension, key_hash=key_hash)


def _exists() -> Column:
    kind = F.col(CHANGE_TYPE)
    return F.when(kind.isin(INSERT, UPDATE), True).when(kind == LOGICAL_DELETE, False)


def _opener() -> Column:
    return F.struct(
        F.col(SOURCE_BATCH).alias("delivery"),
        F.element_at(F.split(SOURCE_BATCH, "/"), 1).alias("source"),
        F.col(TOLD_REASON).alias("reason"),
        F.col(TOLD_ACTOR).alias("actor"),
        F.col(CORRELATION).alias("correlation_id"),
    )


def _value(attribute: Attribute, dimension: Dimension) -> Column:
    """What a transition says that the attribute is from then on, wrapped; NULL if it says nothing of it."""
    names = [attribute.name, *attribute.former_names]
    if attribute.scd is ScdType.HYBRID:
        names += [f"current_{name}" for name in names]
    data_type = attribute_types(dimension)[attribute.name]
    return F.coalesce(*[told_of(F.col(NEW_VALUES), name, data_type) for name in names])
