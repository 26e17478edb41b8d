"""The unknown member of a dimension: the row whose key facts store if no version is in force (S23)."""

from __future__ import annotations

from dataclasses import replace

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from scd_pipeline.columns import (
    CHANGE_REASON,
    CHANGE_SOURCE,
    CURRENT_FLAG,
    EFFECTIVE_FROM,
    EFFECTIVE_TO,
    IS_DELETED,
    LAST_UPDATED,
    LOAD_RUN_ID,
    VERSION,
)
from scd_pipeline.declaration import Dimension
from scd_pipeline.delta.generated_columns import to_stored_columns
from scd_pipeline.delta.schema import require_pipeline_tables
from scd_pipeline.delta.upstream import log_mark
from scd_pipeline.delta.warehouse import Warehouse
from scd_pipeline.expressions import col
from scd_pipeline.history.keys import UNKNOWN_KEY
from scd_pipeline.history.schema import beginning, dimension_schema
from scd_pipeline.load.facts import PinnedDimension
from scd_pipeline.load.log import log_high_water_mark


def with_unknown_member(warehouse: Warehouse, pinned: PinnedDimension, run_id: str = "") -> PinnedDimension:
    """Return a dimension that a fact references with the unknown member, so that an inner join keeps every fact (S23).

    The dimension's own load writes it. This function adds it to a table whose loads have not done so, because they did
    not know of the fact; the last commit of any other records that it is there.

    Raises:
        SetupError: This package did not create the table.
        ConflictError: Another writer committed first.
    """
    commit, dimension = pinned.commit, pinned.dimension
    if pinned.rows is None or commit.reserved_member:
        return pinned
    require_pipeline_tables(warehouse.table(commit.table))
    if not pinned.rows.where(col(dimension.surrogate_key) == UNKNOWN_KEY).isEmpty():
        return pinned
    marks = {**commit.high_water_marks, **log_mark(pinned.log, log_high_water_mark(pinned.log, commit))}
    table = warehouse.writable(commit.table)
    # A column that was declared later comes with the schema steps of the dimension's own load.
    columns, member = table.columns(), to_stored_columns(unknown_member(warehouse, dimension), dimension)
    member = member.select(*[col(name) for name in member.columns if name in columns])
    following = commit.next(high_water_marks=marks, run_id=run_id)
    return replace(pinned, commit=table.append(member, replace(following, reserved_member=True)))


def unknown_member(warehouse: Warehouse, dimension: Dimension) -> DataFrame:
    """Return the row of the unknown member: key -1, `version` 0, not current, an empty window, attributes NULL."""
    values = {
        dimension.surrogate_key: F.lit(UNKNOWN_KEY),
        EFFECTIVE_FROM: beginning(),
        EFFECTIVE_TO: beginning(),
        CURRENT_FLAG: F.lit(False),
        VERSION: F.lit(0),
        IS_DELETED: F.lit(False),
        CHANGE_REASON: F.lit("reserved_member"),
        CHANGE_SOURCE: F.lit(""),
        LOAD_RUN_ID: F.lit(""),
        LAST_UPDATED: beginning(),
    }
    columns = [values.get(name, F.lit(None)).cast(ddl).alias(name) for name, ddl, _ in dimension_schema(dimension)]
    return warehouse.spark.range(1).select(*columns)
