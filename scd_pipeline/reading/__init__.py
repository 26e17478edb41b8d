"""Reading what was loaded: current rows, history, the rows of any time, joins with facts, and all of it in SQL.

What is returned can be collected, and turned into pandas, in every time zone: a window without an end ends in NULL,
not in the sentinel of year 9999, and a beginning on 0001-01-01 is NULL too. (pandas has nanoseconds, and so no times
before 1677 or after 2262: collect a history that goes there, or turn it into Arrow.) A dimension is given by its
declaration, or by the name of its table, which then tells by itself what it was made by.
"""

from __future__ import annotations

from scd_pipeline.reading.dimension import (
    BATCHES_SUFFIX,
    QUARANTINE_SUFFIX,
    as_of,
    audit,
    batches,
    current,
    history,
    in_force,
    key_names,
    known,
    quarantine,
    shape_of,
)
from scd_pipeline.reading.joins import as_of_join, overlap, with_dimensions
from scd_pipeline.reading.views import create_views, register, views

__all__ = [
    "BATCHES_SUFFIX",
    "QUARANTINE_SUFFIX",
    "as_of",
    "as_of_join",
    "audit",
    "batches",
    "create_views",
    "current",
    "history",
    "in_force",
    "key_names",
    "known",
    "overlap",
    "quarantine",
    "register",
    "shape_of",
    "views",
    "with_dimensions",
]
