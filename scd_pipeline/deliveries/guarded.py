"""Evaluate the expressions of a declaration so that one that fails for a row makes it a bad row (S26)."""

from __future__ import annotations

from dataclasses import replace

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from scd_pipeline.declaration import Feed, Snapshot
from scd_pipeline.deliveries.column_mapping import ColumnMapping
from scd_pipeline.deliveries.expressions import channel_conditions, guard


def with_guarded_expressions(
    frame: DataFrame, mapping: ColumnMapping, channel: Snapshot | Feed
) -> tuple[DataFrame, ColumnMapping]:
    """Add the value of each expression, NULL where it fails, and whether it fails; and read them in its place.

    The cost is a second evaluation of each expression. So this is for deliveries in which one is known to fail.
    """
    texts = {name: text for name, (declared, _) in mapping.columns.items() if (text := declared.expression)}
    texts |= channel_conditions(channel)
    guarded = {name: (f"_scd_value_{index}", f"_scd_fails_{index}") for index, name in enumerate(texts)}
    replaced = {name: mapping.is_replaced(name) for name in texts}
    is_read = {name: F.lit(True) if each is None else ~each for name, each in replaced.items()}
    frame = frame.withColumns({guarded[name][1]: guard(text) & is_read[name] for name, text in texts.items()})
    values = {
        value: F.when(~F.col(fails) & is_read[name], F.expr(texts[name])) for name, (value, fails) in guarded.items()
    }
    columns = dict(mapping.columns)
    for name in (name for name in texts if name in columns):
        declared, data_type = columns[name]
        columns[name] = (replace(declared, expression=guarded[name][0]), data_type)
    return frame.withColumns(values), replace(mapping, columns=columns, guarded=guarded)
