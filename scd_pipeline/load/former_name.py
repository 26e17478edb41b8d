"""Another name of a history: a load copies the tables that it has under its former name, before anything else.

The former tables do not change. The change log is copied last: as long as its copy has no commit, no load has used the
copies, and the next load completes them. From then on nothing is copied, even if a table is dropped to be rebuilt.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from scd_pipeline.declaration import Dimension
from scd_pipeline.delta.commits import PipelineCommit
from scd_pipeline.delta.copies import TableCopy, former_dimension, new_names, renamed_commit
from scd_pipeline.delta.data_files import missing_files_reported
from scd_pipeline.delta.history_table import closed_marks, recorded_version
from scd_pipeline.delta.warehouse import Warehouse
from scd_pipeline.load.audit import audit_commit
from scd_pipeline.load.retry import Progress
from scd_pipeline.load.state import StoredState, read_state


def table_copies(warehouse: Warehouse, dimension: Dimension, former: Dimension) -> list[TableCopy]:
    """Return the tables that are not copied yet, in the order in which they have to be.

    Args:
        warehouse: The warehouse.
        dimension: The declaration.
        former: The declaration under its former name (`former_dimension`).

    Raises:
        HighWaterMarkError: A table of the new name has commits of its own.
        ScdError: As `read_state`, if a load under the former name could not continue.
    """
    audit = audit_commit(warehouse, former)
    state = read_state(warehouse, former, [audit])
    commits = [(audit, audit.newest), *_closed_versions(warehouse, state)]
    commits += [(commit, commit.newest) for commit in (state.commit, state.log.commit)]
    names = new_names(dimension)
    copies = [
        TableCopy(commit.table, version, renamed_commit(commit, names)) for commit, version in commits if commit.number
    ]
    return [copy for copy in copies if not copy.exists(warehouse)]


def _closed_versions(warehouse: Warehouse, state: StoredState) -> Iterator[tuple[PipelineCommit, int]]:
    """Yield the commit of a history table or an archive that the dimension's table records, and its table version.

    The table itself can be ahead, by the commit of a load that was killed (`delta.history_table`).
    """
    for name, mark in closed_marks(state.commit).items():
        marks = {other: each for other, each in state.commit.high_water_marks.items() if other != name}
        commit = replace(state.commit, table=name, number=mark.commit, table_id=mark.table_id, high_water_marks=marks)
        yield commit, recorded_version(warehouse, state.commit, state.history_commit)


def copy_former_tables(warehouse: Warehouse, dimension: Dimension, progress: Progress) -> None:
    """Copy the tables that a dimension has under its former name, if it has no change log with a commit.

    Raises:
        ConflictError: Another writer committed first.
        ScdError: As `table_copies`.
    """
    former = former_dimension(warehouse, dimension)
    if former is None:
        return
    with missing_files_reported(warehouse, former.table_names):
        for copy in table_copies(warehouse, dimension, former):
            copy.write(warehouse, dimension)
            progress(f"{copy.commit.table}: copied {copy.former}")
