"""Query of the table versions of its dimensions that each load of a fact has used."""

from __future__ import annotations

from pyspark.sql import DataFrame

from scd_pipeline.declaration import Fact
from scd_pipeline.delta.warehouse import Warehouse
from scd_pipeline.errors import SetupError
from scd_pipeline.frames import local_frame

DIMENSION_VERSIONS_SUFFIX = "_dimension_versions"
_COLUMNS = (
    "table_version bigint, loaded_at timestamp, run_id string, batches array<string>, dimension string, "
    "dimension_version bigint, dimension_commit bigint"
)


def dimension_versions(warehouse: Warehouse, fact: Fact) -> DataFrame:
    """Return the version of each dimension from which each load of a fact has its surrogate keys (S24).

    The commits of the fact record them, so that the result reaches back as far as Delta retains the history of the
    table (`delta.logRetentionDuration`).

    Args:
        warehouse: The warehouse.
        fact: The declaration.

    Returns:
        `table_version` of the fact, the time of this commit (`loaded_at`), its `run_id`, its `batches` (the first
        hundred), the `dimension`, the table version of the dimension (`dimension_version`; NULL if it had no table),
        and the number of its pipeline commit (`dimension_commit`).

    Raises:
        SetupError: The fact does not exist.
    """
    table = warehouse.table(fact.name)
    if not table.exists():
        raise SetupError("TABLE_NOT_LOADED", fact.name, table=fact.name, warehouse=warehouse.location)
    rows = [
        (
            commit.table_version,
            commit.at,
            commit.run_id,
            list(commit.batches),
            dimension.name,
            mark.table_version if mark.commit else None,
            mark.commit,
        )
        for commit in table.commits_since(0)
        for dimension in fact.dimensions
        if (mark := commit.high_water_marks.get(dimension.name)) is not None
    ]
    return local_frame(warehouse.spark, rows, _COLUMNS)
