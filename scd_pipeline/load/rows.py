"""What a load does to which row: affected timelines built anew, held against the rows that stand, and checked."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from scd_pipeline.columns import COMMIT, EFFECTIVE_FROM, KIND
from scd_pipeline.declaration import Dimension
from scd_pipeline.declaration.tables import AUDIT_SUFFIX, KEYS_SUFFIX
from scd_pipeline.deliveries.accept import Taken
from scd_pipeline.delta.change_log import ChangeLog
from scd_pipeline.delta.schema import to_declared_columns
from scd_pipeline.delta.warehouse import Warehouse
from scd_pipeline.errors import HighWaterMarkError, InvariantBroken, KeyCollision
from scd_pipeline.expressions import col
from scd_pipeline.frames import checkpoint, empty_frame, union_all
from scd_pipeline.history.actions import ACTION, OPEN, row_actions
from scd_pipeline.history.batch import batches_in_effect
from scd_pipeline.history.differences import affected_keys
from scd_pipeline.history.schema import BEGINNING, dimension_schema
from scd_pipeline.history.timeline import build_timeline
from scd_pipeline.invariants.dimensions import KEY, RULE, collisions, violations
from scd_pipeline.invariants.properties import SURROGATE_KEYS_ARE_NOT_RESERVED, SURROGATE_KEYS_ARE_UNIQUE
from scd_pipeline.load.log import of_batches, records_in_effect

_BROADCAST_KEYS = 2_000_000
_COLLISIONS = (SURROGATE_KEYS_ARE_UNIQUE, SURROGATE_KEYS_ARE_NOT_RESERVED)
"""What a result violates whose surrogate keys are not all distinct."""


@dataclass(frozen=True, slots=True)
class Extension:
    """What the rows of a table get beside what its own log says, as a fact's rows get their keys (S23, S24).

    `again` picks, of the rows that stand, those that have to be looked at again though nothing was stated of them;
    `finish` sets the columns; `broken` gives the rule and the key of those that may not be written as they are; `took`
    is told in the commit.
    """

    again: Callable[[DataFrame], DataFrame | None]
    finish: Callable[[DataFrame], DataFrame]
    broken: Callable[[DataFrame], DataFrame]
    high_water_marks: Mapping[str, int]


def actions_of(
    warehouse: Warehouse,
    log: ChangeLog,
    taken: Taken,
    kept: DataFrame | None,
    dimension: Dimension,
    stored: DataFrame | None,
    high_water_marks: int,
    extension: Extension | None,
) -> tuple[DataFrame, dict[str, int]]:
    """The dimension rows that differ once the affected entities' timelines are built anew, checked, with counts.

    `stored` are the rows of the dimension's table at one version; None if it does not exist.
    """
    before = _dimension_rows(warehouse, dimension, stored)
    keys = _affected(log, taken, kept, dimension, high_water_marks)
    again = extension.again(before) if extension and stored is not None else None
    if keys is None and again is None:
        return before.withColumn(ACTION, F.lit("")).limit(0), {}
    names = list(dimension.key_names)
    affected, after = before.limit(0), before.limit(0)
    if keys is not None:
        affected = before.join(keys, names, "left_semi") if stored is not None else before
        after = _versions(warehouse, log, taken, kept, dimension, keys)
    if again is not None:
        others = again if keys is None else again.join(keys, names, "left_anti")
        others = checkpoint(others)
        affected, after = affected.unionByName(others), after.unionByName(others)
    after = checkpoint(extension.finish(after) if extension else after)
    actions = checkpoint(row_actions(affected, after, dimension))
    rows = {row[ACTION]: int(row["count"]) for row in actions.groupBy(ACTION).count().collect()}
    known = _known_keys(warehouse, before, dimension) if stored is not None else None
    _check(after, actions, known, dimension, extension)
    return actions, rows


def _versions(
    warehouse: Warehouse, log: ChangeLog, taken: Taken, kept: DataFrame | None, dimension: Dimension, keys: DataFrame
) -> DataFrame:
    """The versions of the affected entities, by everything that counts of what was stated of them."""
    stored = records_in_effect(log, [*taken.old, *taken.to_write]).drop(COMMIT)
    if log.is_there:
        statements = stored.join(keys, list(dimension.key_names), "left_semi")
        if kept is not None:
            statements = statements.unionByName(_plain(kept, statements))
    else:
        statements = _plain(kept, stored) if kept is not None else stored
    row_timed = any(batch.row_times for batch in (*taken.old, *taken.to_write))
    return build_timeline(statements, dimension, row_timed=row_timed, key_hash=warehouse.key_hash)


def _known_keys(warehouse: Warehouse, stored: DataFrame, dimension: Dimension) -> DataFrame:
    """Every surrogate key that stands or was ever given, with the version that it names (S14)."""
    names = [dimension.surrogate_key, *dimension.key_names, EFFECTIVE_FROM]
    if not dimension.has_windows:
        return stored.withColumn(EFFECTIVE_FROM, F.lit(BEGINNING).cast("timestamp")).select(*[col(n) for n in names])
    keys = warehouse.table(dimension.name + KEYS_SUFFIX)
    standing = stored.select(*[col(name) for name in names])
    if keys.exists():
        return standing.unionByName(keys.read().select(*[col(n) for n in names]))
    audit = warehouse.table(dimension.name + AUDIT_SUFFIX)
    if audit.exists() and audit.last_commit().number > 0:
        raise HighWaterMarkError(
            f"table {keys.name}: it does not exist, and {audit.name} has recorded that surrogate keys were assigned; "
            f"expected the list of them; nothing was written; load by load_and_record, which rebuilds it from the audit"
        )
    return standing


def _plain(kept: DataFrame, like: DataFrame) -> DataFrame:
    return kept.where(~F.col(KIND).isin("presence", "bad")).select(*[col(name) for name in like.columns])


def _affected(
    log: ChangeLog, taken: Taken, kept: DataFrame | None, dimension: Dimension, high_water_marks: int
) -> DataFrame | None:
    """The entities to build anew: those of the run, and those of log commits that the dimension has not taken in."""
    keys = [col(name) for name in dimension.key_names]
    frames = []
    if kept is not None:
        removed = of_batches(log.rows(), {batch.records_batch_id for batch in taken.removed})
        frames.append(affected_keys(kept, removed, dimension))
    if high_water_marks < log.commit.number:
        lagging = log.rows().where(F.col(COMMIT) > high_water_marks)
        frames.append(lagging.select(*keys))
        replaced = {b.records_batch_id for b in taken.old} - {
            b.records_batch_id for b in batches_in_effect(list(taken.old))
        }
        frames.append(of_batches(log.rows(), replaced).select(*keys))
    if not frames:
        return None
    distinct = union_all(frames).distinct()
    return F.broadcast(distinct) if taken.size() < _BROADCAST_KEYS else distinct


def _dimension_rows(warehouse: Warehouse, dimension: Dimension, stored: DataFrame | None) -> DataFrame:
    """The dimension's rows with the columns that it should have; no rows if there is no table yet."""
    if stored is None:
        return empty_frame(warehouse.spark, {name: ddl for name, ddl, _ in dimension_schema(dimension)})
    return to_declared_columns(stored, dimension)


def _check(
    after: DataFrame,
    actions: DataFrame,
    stored: DataFrame | None,
    dimension: Dimension,
    extension: Extension | None,
) -> None:
    """Errors: InvariantBroken, KeyCollision; before anything is written."""
    broken = violations(after, dimension)
    if extension is not None:
        broken = broken.unionByName(extension.broken(after))
    if stored is not None:
        broken = broken.unionByName(collisions(actions.where(F.col(ACTION) == OPEN), stored, dimension))
    rows = broken.limit(20).collect()
    if not rows:
        return
    keys = [f"{row[RULE]}: {row[KEY]}" for row in rows]
    if any(row[RULE] in _COLLISIONS for row in rows):
        raise KeyCollision(
            f"{dimension.name}: two versions have one surrogate key ({'; '.join(sorted(set(keys)))}); expected a key "
            f"of its own for each; declare another `key_salt`; nothing was written"
        )
    raise InvariantBroken(
        f"{dimension.name}: the result would violate {'; '.join(sorted(set(keys)))}; expected none; nothing was "
        f"written; please report it with the declaration and the deliveries"
    )
