"""Queries of loaded tables: current rows, history, rows as of a time, joins with facts, and all of them in SQL.

The results can be collected, and converted to pandas, in every time zone: `effective_to` is NULL instead of the open
end, and `effective_from` is NULL instead of 0001-01-01. pandas itself has no times before 1677 or after 2262; collect
such a history, or convert it to Arrow.

A dimension is passed as its declaration, or as the name of its table, which stores what these queries need.
"""

from __future__ import annotations

from scd_pipeline.queries.child_tables import child_table
from scd_pipeline.queries.dimension import (
    BATCHES_SUFFIX,
    QUARANTINE_SUFFIX,
    as_of,
    audit,
    batches,
    current,
    history,
    quarantine,
    queried_table,
)
from scd_pipeline.queries.dimension_versions import DIMENSION_VERSIONS_SUFFIX, dimension_versions
from scd_pipeline.queries.joins import join_as_of, overlap, with_dimensions
from scd_pipeline.queries.timed_tables import (
    parse_read_time,
    parse_statement_time,
    register_timed_tables,
    timed_view_names,
)
from scd_pipeline.queries.views import create_views, register, view_names

__all__ = [
    "BATCHES_SUFFIX",
    "DIMENSION_VERSIONS_SUFFIX",
    "QUARANTINE_SUFFIX",
    "as_of",
    "audit",
    "batches",
    "child_table",
    "create_views",
    "current",
    "dimension_versions",
    "history",
    "join_as_of",
    "overlap",
    "parse_read_time",
    "parse_statement_time",
    "quarantine",
    "queried_table",
    "register",
    "register_timed_tables",
    "timed_view_names",
    "view_names",
    "with_dimensions",
]
