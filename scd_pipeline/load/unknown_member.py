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
from scd_pipeline.delta.commits import PipelineCommit
from scd_pipeline.delta.generated_columns import to_stored_columns
from scd_pipeline.delta.schema import require_pipeline_tables
from scd_pipeline.delta.upstream import damage, log_mark, raise_first
from scd_pipeline.delta.warehouse import Warehouse
from scd_pipeline.expressions import col
from scd_pipeline.history.keys import UNKNOWN_KEY
from scd_pipeline.history.schema import beginning, dimension_schema
from scd_pipeline.load.log import log_high_water_mark, read_log
from scd_pipeline.load.retry import Retry, ignore_progress, with_retries


def add_unknown_member(
    warehouse: Warehouse, dimension: Dimension, *, run_id: str = "", retry: Retry | None = None
) -> PipelineCommit | None:
    """Add the unknown member to the dimension, so that an inner join keeps every fact (S23).

    Returns:
        The commit that added it; None if it exists, or if the dimension has no table.

    Raises:
        SetupError: This package did not create the table.
        ForeignCommitError: Another program changed the rows of the dimension or its change log.
        HighWaterMarkError: The change log was lost.
    """

    def attempt() -> PipelineCommit | None:
        require_pipeline_tables(warehouse.table(dimension.name))
        table = warehouse.writable(dimension.name)
        last = table.last_commit_or_zero()
        if last.reserved_member and last.foreign is None:
            return None
        newest = table.newest(last)
        if newest is None or not newest.rows.where(col(dimension.surrogate_key) == UNKNOWN_KEY).isEmpty():
            return None
        commit, log = newest.commit, read_log(warehouse, dimension).commit
        raise_first(damage(log, [commit]))
        marks = {**commit.high_water_marks, **log_mark(log, log_high_water_mark(log, commit))}
        # A column that was declared later comes with the schema steps of the dimension's own load.
        columns, member = newest.columns(), to_stored_columns(unknown_member(warehouse, dimension), dimension)
        member = member.select(*[col(name) for name in member.columns if name in columns])
        following = commit.next(high_water_marks=marks, run_id=run_id)
        return table.append(member, replace(following, reserved_member=True))

    return with_retries(dimension.name, lambda number: attempt(), retry or Retry(), ignore_progress)


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
