"""The schema steps of a load: tables to create, columns to rename and to add."""

from __future__ import annotations

from collections.abc import Mapping

from scd_pipeline.declaration import Dimension
from scd_pipeline.delta.audit_table import APPEND_ONLY
from scd_pipeline.delta.change_log import ChangeLog, log_schema
from scd_pipeline.delta.schema import FORMAT, SchemaStep, properties, renames, steps
from scd_pipeline.delta.warehouse import Warehouse
from scd_pipeline.history.timeline import dimension_schema


def schema_steps(dimension: Dimension, log: ChangeLog, there: Mapping[str, str]) -> list[SchemaStep]:
    """What has to be done to the log and the dimension before rows of this declaration fit into them (S20)."""
    log_there = dict.fromkeys(log.columns, "")
    wanted = [(name, ddl) for name, ddl, _ in dimension_schema(dimension)]
    return [
        *steps(log.table.name, log_there, log_schema(dimension), renames(dimension.attributes, generated=False)),
        *steps(dimension.name, there, wanted, renames(dimension.attributes, generated=True)),
    ]


def carry_out(step: SchemaStep, warehouse: Warehouse, dimension: Dimension) -> None:
    """Take one of these steps.

    Errors: ConflictError if a rival was faster, also with the same step; planned anew, what is done is no step.
    """
    table = warehouse.writable(step.table)
    if step.action.startswith("create"):
        if step.table == dimension.name:
            table.create(dimension_schema(dimension), properties(dimension), dimension.description)
        else:
            log_columns = [(name, ddl, True) for name, ddl in log_schema(dimension)]
            table.create(
                log_columns, {FORMAT: "1", **APPEND_ONLY}, f"What was stated of {dimension.name}, and by which batches"
            )
        return
    if step.action.startswith("rename"):
        table.rename_column(*step.column)
    else:
        table.add_columns([step.column])
