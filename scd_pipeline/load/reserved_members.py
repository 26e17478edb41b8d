"""The reserved members of a dimension: the rows whose keys facts store if no version is referenced (S23)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from pyspark.sql import Column, DataFrame
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
from scd_pipeline.declaration.names import quote_name
from scd_pipeline.delta.generated_columns import to_stored_columns
from scd_pipeline.delta.schema import require_pipeline_tables
from scd_pipeline.delta.upstream import log_mark
from scd_pipeline.delta.warehouse import Warehouse
from scd_pipeline.expressions import col
from scd_pipeline.frames import local_frame
from scd_pipeline.history.keys import UNKNOWN_KEY
from scd_pipeline.history.schema import beginning, dimension_schema
from scd_pipeline.load.facts import PinnedDimension
from scd_pipeline.load.log import log_high_water_mark


def with_reserved_members(
    warehouse: Warehouse, pinned: PinnedDimension, run_id: str = "", keys: Sequence[int] = (UNKNOWN_KEY,)
) -> PinnedDimension:
    """Return a dimension with the reserved members that a fact needs, so that an inner join keeps all of its rows.

    The dimension's own load writes the unknown member (S23). This function adds it to a table whose loads have not done
    so, because they did not know of the fact, and the members of the conditions that roles declare. The last commit of
    any other table records that it has the unknown member.

    Raises:
        SetupError: This package did not create the table.
        ConflictError: Another writer committed first.
    """
    commit, dimension = pinned.commit, pinned.dimension
    if pinned.rows is None or (commit.reserved_member and set(keys) == {UNKNOWN_KEY}):
        return pinned
    require_pipeline_tables(warehouse.table(commit.table))
    key = col(dimension.surrogate_key)
    stored = [row[0] for row in pinned.rows.where(key.isin(list(keys))).select(key).collect()]
    missing = [each for each in keys if each not in stored]
    if not missing:
        return pinned
    members = reserved_members(warehouse, dimension, missing)
    return append_members(warehouse, pinned, members, run_id=run_id, reserved_member=True)


def append_members(
    warehouse: Warehouse, pinned: PinnedDimension, members: DataFrame, *, run_id: str, reserved_member: bool
) -> PinnedDimension:
    """Append members to the table of a dimension, and return the dimension at this commit.

    Args:
        warehouse: The warehouse.
        pinned: The dimension, whose last commit is the expected one.
        members: Rows with the columns of `dimension_schema`.
        run_id: The id of the load.
        reserved_member: Whether the table has the unknown member afterwards.

    Raises:
        ConflictError: Another writer committed first.
    """
    commit, dimension = pinned.commit, pinned.dimension
    marks = {**commit.high_water_marks, **log_mark(pinned.log, log_high_water_mark(pinned.log, commit))}
    table = warehouse.writable(commit.table)
    # A column that was declared later comes with the schema steps of the dimension's own load.
    columns, stored = table.columns(), to_stored_columns(members, dimension)
    stored = stored.select(*[col(name) for name in stored.columns if name in columns])
    following = commit.next(high_water_marks=marks, run_id=run_id)
    return replace(pinned, commit=table.append(stored, replace(following, reserved_member=reserved_member)))


def reserved_members(warehouse: Warehouse, dimension: Dimension, keys: Sequence[int] = (UNKNOWN_KEY,)) -> DataFrame:
    """Return the rows of reserved members: `version` 0, not current, an empty window, all other columns NULL."""
    numbers = local_frame(warehouse.spark, [(key,) for key in keys], f"{quote_name(dimension.surrogate_key)} bigint")
    limits = {EFFECTIVE_FROM: beginning(), EFFECTIVE_TO: beginning(), CURRENT_FLAG: F.lit(False)}
    values = {**limits, CHANGE_REASON: F.lit("reserved_member"), dimension.surrogate_key: col(dimension.surrogate_key)}
    return with_member_columns(numbers, values, dimension)


def with_member_columns(rows: DataFrame, own: Mapping[str, Column], dimension: Dimension) -> DataFrame:
    """Return rows that no delivery provides with all columns of a dimension: `version` 0, no attributes.

    Args:
        rows: The rows.
        own: The surrogate key, and the other columns that are not NULL and not the same in every such row.
        dimension: The declaration.
    """
    values = {
        VERSION: F.lit(0),
        **({IS_DELETED: F.lit(False)} if dimension.has_deleted_versions else {}),
        CHANGE_SOURCE: F.lit(""),
        LOAD_RUN_ID: F.lit(""),
        LAST_UPDATED: beginning(),
        **own,
    }
    columns = [values.get(name, F.lit(None)).cast(ddl).alias(name) for name, ddl, _ in dimension_schema(dimension)]
    return rows.select(*columns)
