"""The changes of a timed table by business key, which a dimension loads as the deliveries of a feed (S12)."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from scd_pipeline.declaration.source import TIMED_DELETE, TIMED_DELIVERY
from scd_pipeline.expressions import all_of, col
from scd_pipeline.timed.evaluate import FROM, TO
from scd_pipeline.timed.program import PREFIX

_AT = f"{PREFIX}at"


def changes_by_key(states: DataFrame, columns: Sequence[str], key: Sequence[str], start: int) -> DataFrame:
    """Return the rows of each business key at each time at which a row of it begins or ends.

    Two rows of one business key at one time are two changes, which nothing orders.

    Args:
        states: The states of the rows of the table, as `evaluate.all_rows`.
        columns: The columns of the table.
        key: Those of its business key.
        start: The time at which the base begins, in milliseconds since 1970. States that end before it are omitted.

    Returns:
        The columns of the table; TIMED_DELIVERY, the microseconds of the time as text; TIMED_DELETE, whether the
        business key has no row at the time: the other columns are then NULL. A row whose business key has a NULL is
        only at the time at which it begins.
    """
    states = states.withColumn(FROM, F.greatest(FROM, F.expr(f"timestamp_millis({start}L)")))
    states = states.where(F.coalesce(F.col(FROM) < F.col(TO), F.lit(True)))
    has_key = all_of([col(name).isNotNull() for name in key])
    times = F.explode(F.array_compact(F.array(FROM, TO)))
    keys = {f"{PREFIX}key_{number}": col(name) for number, name in enumerate(key)}
    boundaries = states.where(has_key).select(*[each.alias(name) for name, each in keys.items()], times.alias(_AT))
    is_same_key = all_of([F.col(name) == each for name, each in keys.items()])
    is_in_force = (F.col(FROM) <= F.col(_AT)) & F.coalesce(F.col(_AT) < F.col(TO), F.lit(True))
    keyed = boundaries.distinct().join(states, is_same_key & is_in_force, "left")
    key_columns = dict(zip(key, keys, strict=True))
    values = [col(key_columns.get(name, name)).alias(name) for name in columns]
    changes = keyed.select(*values, _AT, F.col(FROM).isNull().alias(TIMED_DELETE))
    without_key = states.where(~has_key).select(
        *map(col, columns), F.col(FROM).alias(_AT), F.lit(False).alias(TIMED_DELETE)
    )
    delivery = F.unix_micros(_AT).cast("string").alias(TIMED_DELIVERY)
    return changes.union(without_key).select(*map(col, columns), delivery, TIMED_DELETE)
