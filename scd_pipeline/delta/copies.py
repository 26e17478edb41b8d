"""Copies of the tables of a history that has got another name: each copy continues the commits of the former table.

The commit of a copy has the number, the token and the table id of the former table's commit, so that commits of the
other copies and of the next loads refer to it as they did to the former one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from pyspark.sql.types import StructField

from scd_pipeline.declaration import Dimension
from scd_pipeline.declaration.tables import LOG_SUFFIX, SUFFIXES
from scd_pipeline.delta.commits import PipelineCommit, find_commit
from scd_pipeline.delta.table import sql_literal
from scd_pipeline.delta.warehouse import Warehouse
from scd_pipeline.errors import HighWaterMarkError
from scd_pipeline.frames import type_text

_ASSIGNED_BY_DELTA = ("delta.columnMapping.", "delta.rowTracking.materialized", "delta.inCommitTimestampEnablement")
"""How the names of the properties begin that Delta assigns to each table, and that a copy does not need."""


@dataclass(frozen=True, slots=True)
class TableCopy:
    """A table to copy.

    Attributes:
        former: The name of the former table.
        table_version: The version of the former table that has the rows.
        commit: The commit of the copy.
    """

    former: str
    table_version: int
    commit: PipelineCommit

    def __str__(self) -> str:
        return f"copy {self.former} to {self.commit.table}"

    def exists(self, warehouse: Warehouse) -> bool:
        """Return whether the copy exists.

        Raises:
            HighWaterMarkError: The table has other commits.
        """
        table = warehouse.table(self.commit.table)
        if not table.last_commit_or_zero().number:
            return False
        if find_commit(warehouse.spark, self.commit, table.identifier) is None:
            details = {"former": self.former, "number": self.commit.number}
            raise HighWaterMarkError("NOT_A_COPY", f"table {table.name}", **details)
        return True

    def write(self, warehouse: Warehouse, dimension: Dimension) -> PipelineCommit:
        """Create the table with the columns, the comments and the properties of the former one, and append its rows.

        Args:
            warehouse: The warehouse.
            dimension: The declaration, whose name replaces the former one in the description.

        Raises:
            ConflictError: Another writer committed first.
        """
        former, table = warehouse.table(self.former), warehouse.writable(self.commit.table)
        # The details have the values that Spark hides in a list of the properties.
        rows, details = former.read(self.table_version), former.details()
        columns = [(field.name, _column_type(field), field.nullable) for field in rows.schema.fields]
        description = (details["description"] or "").replace(dimension.former_name, dimension.name)
        table.create(columns, _copied_properties(details["properties"]), description)
        return table.append(rows, self.commit)


def _column_type(field: StructField) -> str:
    """Return the type of a column with its comment, as SQL."""
    ddl, comment = type_text(field.dataType), field.metadata.get("comment")
    return f"{ddl} COMMENT {sql_literal(comment)}" if comment else ddl


def _copied_properties(properties: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in properties.items() if not name.startswith(_ASSIGNED_BY_DELTA)}


def former_dimension(warehouse: Warehouse, dimension: Dimension) -> Dimension | None:
    """Return the declaration under its former name if a load has to copy the tables; otherwise None.

    Without a former name this needs no query.
    """
    if not dimension.former_name or warehouse.table(dimension.name + LOG_SUFFIX).last_commit_or_zero().number:
        return None
    former = replace(dimension, name=dimension.former_name, former_name="")
    return former if any(warehouse.table(name).exists() for name in former.table_names) else None


def new_names(dimension: Dimension) -> Mapping[str, str]:
    """Return the name of each table of a dimension by its name under the former name of the dimension."""
    return {dimension.former_name + suffix: dimension.name + suffix for suffix in ("", *SUFFIXES)}


def renamed_commit(commit: PipelineCommit, names: Mapping[str, str]) -> PipelineCommit:
    """Return the commit as one of the copy, with its high-water marks under the new names of the tables.

    The copies have other table versions, so that the marks record none.
    """
    marks = {
        names.get(name, name): replace(mark, table_version=-1) if name in names else mark
        for name, mark in commit.high_water_marks.items()
    }
    return replace(commit, table=names[commit.table], high_water_marks=marks, is_of_copy=True)
