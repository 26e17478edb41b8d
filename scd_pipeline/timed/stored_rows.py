"""Rows of a timed table that are stored in a Delta table of the warehouse, with a record of their read (S12)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from scd_pipeline.delta.commits import PipelineCommit, StoredRead
from scd_pipeline.delta.schema import FORMAT
from scd_pipeline.delta.table import Table
from scd_pipeline.errors import SetupError
from scd_pipeline.timed.read import TimedState

_PROPERTIES = {FORMAT: "1", "delta.columnMapping.mode": "name"}
"""Names of columns may have blanks, which the column mapping allows."""


def write_read(
    stored: Table,
    state: TimedState,
    read: StoredRead,
    *,
    comment: str,
    properties: Mapping[str, str] | None = None,
    run_id: str = "",
) -> PipelineCommit:
    """Replace the rows of a table by the rows of a read, with its record, by one commit.

    Args:
        stored: The table, which is created if it does not exist.
        state: The base and the log.
        read: The record of the read.
        comment: The description of the table.
        properties: Properties of the table.
        run_id: The id of the run.

    Raises:
        SetupError: The table has rows that are not of a timed table.
        ConflictError: Another process wrote the table at the same time.
    """
    all_properties = {**_PROPERTIES, **(properties or {})}
    columns = [(name, each.ddl(), True) for name, each in state.columns.items()]
    is_new = stored.create(columns, all_properties, comment)
    last = stored.last_commit()
    if not is_new and last.stored_read is None and not stored.read().isEmpty():
        raise SetupError("STORED_TABLE_IN_USE", f"table {stored.name}", table=stored.identifier)
    # All rows are replaced, also those of a foreign commit.
    commit = replace(last, foreign=None).next(run_id=run_id, stored_read=read)
    return stored.overwrite(state.rows(read.until), commit, all_properties)
