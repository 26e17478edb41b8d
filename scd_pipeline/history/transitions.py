"""Build the transitions of entities from change records: what changed, when, why and by whom (S21).

A transition is a difference between the state before one time and the state after all change records of that time:

- INSERT: the entity begins to exist or returns; LOGICAL_DELETE: it is deleted; UPDATE: a version follows another one;
- OVERWRITE: a value that all versions show changes (types 0, 1 and 3, and type 6 while the entity does not exist), or
  one that the version in force shows (an untracked attribute that is `latest_in_version`);
- REFUSED: a value of a type 0 attribute differs from the one that is kept permanently (S6).

Example: an entity with `city` (type 2) and `phone` (type 1).

    1 Jan  upsert  city=Bonn, phone=1   INSERT          new values: city=Bonn, phone=1
    3 Jan  upsert  city=Kiel, phone=2   UPDATE          city: Bonn to Kiel
                                        OVERWRITE       phone: 1 to 2
    4 Jan  delete                       LOGICAL_DELETE  old values: city=Kiel, phone=2

A transition has the reason, actor and batch of the last record that changed its values. Records that repeat the state
cause no transition and appear in none, so that the result is the same whether or not the log stores them (S14).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from scd_pipeline.columns import (
    DEFAULT_DELETE_REASON,
    DEFAULT_REASON,
    EFFECTIVE_AT,
    EFFECTIVE_FROM,
    VERSION,
    attribute_types,
)
from scd_pipeline.declaration import Attribute, Dimension, ScdType, Source
from scd_pipeline.declaration.change_types import INSERT, LOGICAL_DELETE, OVERWRITE, REFUSED, UPDATE
from scd_pipeline.declaration.types import DataType
from scd_pipeline.expressions import any_of, array_where, col, constant_time, values_differ, with_columns
from scd_pipeline.history.existence import SnapshotKinds
from scd_pipeline.history.keys import KeyHash, hash_64, surrogate_key
from scd_pipeline.history.lossless import map_entry, map_of_entries
from scd_pipeline.history.row_windows import RowWindows, business_key
from scd_pipeline.history.schema import beginning, version_start, with_begin_value
from scd_pipeline.history.timeline import (
    EXISTS,
    OPENED_BY,
    VISIBLE,
    effective_records,
    last_state_per_time,
    record_origin,
    with_running_state,
)

CHANGE_TYPE, CHANGE_TS = "change_type", "change_ts"
CHANGED_COLUMNS, OLD_VALUES, NEW_VALUES = "changed_columns", "old_values", "new_values"
AUDIT_ACTOR, AUDIT_REASON, SOURCE_BATCH, CORRELATION = "actor", "reason", "source_batch_id", "correlation_id"

_ROW_CHANGE, _KEY = "_row_change", "_key"


def key_columns(dimension: Dimension) -> tuple[str, str]:
    """Return the names of the columns with the surrogate key before and after a transition."""
    return f"{dimension.surrogate_key}_old", f"{dimension.surrogate_key}_new"


def opening_change_types(dimension: Dimension) -> tuple[str, ...]:
    """Return the types of the changes that open a version (S18)."""
    return (INSERT, UPDATE, LOGICAL_DELETE) if dimension.has_deleted_versions else (INSERT, UPDATE)


def transition_schema(dimension: Dimension) -> list[tuple[str, str]]:
    """Return name and type of each column of a transition, without the business key."""
    old, new = key_columns(dimension)
    return [
        (old, "bigint"),
        (new, "bigint"),
        (CHANGE_TYPE, "string"),
        (CHANGED_COLUMNS, "array<string>"),
        (OLD_VALUES, "map<string,string>"),
        (NEW_VALUES, "map<string,string>"),
        (CHANGE_TS, "timestamp"),
        (AUDIT_ACTOR, "string"),
        (AUDIT_REASON, "string"),
        (SOURCE_BATCH, "string"),
        (CORRELATION, "string"),
    ]


def build_transitions(
    records: DataFrame,
    dimension: Dimension,
    *,
    kinds: SnapshotKinds,
    has_one_record_per_entity: bool = False,
    key_hash: KeyHash = hash_64,
    since: datetime | None = None,
) -> DataFrame:
    """Return the transitions of every entity in `records` that ever existed.

    Args:
        records: As for `build_timeline`.
        dimension: The declaration.
        kinds: The kinds of the snapshots that they are of.
        has_one_record_per_entity: Whether every entity has exactly one of them.
        key_hash: The hash of surrogate keys.
        since: The time before which no transition is returned.

    Returns:
        The business key, `transition_schema`, and `effective_from` of the version that the new key identifies, NULL
        without one. The batch is named without its revision. Without a declared actor, `actor` is the pipeline. The
        maps of old and new values do not contain attributes that were not provided.
    """
    windows = RowWindows(dimension, has_one_record_per_entity=has_one_record_per_entity)
    states = with_running_state(effective_records(records, dimension, windows, kinds), dimension, windows)
    states = with_columns(states, _value_origins(dimension, windows))
    states = _with_changes(last_state_per_time(states, windows), dimension, windows)
    states = _with_keys(states, dimension, windows, key_hash)
    if since is not None:
        states = states.where(F.col(EFFECTIVE_AT) >= constant_time(since, F.col(OPENED_BY)["correlation_id"]))
    keys = business_key(dimension)
    if has_one_record_per_entity:
        # An entity that exists after its only record has begun to exist, and has not changed.
        transitions = states.select(*keys, EFFECTIVE_FROM, _insert(dimension).alias("_transition"))
    else:
        transitions = _occurring_transitions(states, dimension)
    start = F.when(F.col("_transition")[key_columns(dimension)[1]].isNotNull(), F.col(EFFECTIVE_FROM))
    return transitions.select(*keys, "_transition.*", start.alias(EFFECTIVE_FROM))


def _occurring_transitions(states: DataFrame, dimension: Dimension) -> DataFrame:
    """Return the business key, `effective_from` and `_transition`, a row for each transition of each moment."""
    keys = business_key(dimension)
    candidates: list[Column | None] = [_row_transition(dimension)]
    for source in dimension.sources:
        candidates += [_latest_overwrite(dimension, source), _first_value_overwrite(dimension, source)]
        candidates += [_refusal(dimension, source)]
    transitions = F.array(*[c for c in candidates if c is not None])
    # Spark generates no code for what is inside of `explode`, so the array is a column before.
    computed = states.select(*keys, F.col(EFFECTIVE_FROM), transitions.alias("_transitions"))
    exploded = computed.select(*keys, EFFECTIVE_FROM, F.explode("_transitions").alias("_transition"))
    return exploded.where(F.col("_transition").isNotNull())


def _attributes_of(dimension: Dimension, source: Source) -> list[Attribute]:
    """Return the attributes of a source; the existence source also has retired ones that no source provides any more.

    Their values stay, and so do the transitions that have changed them (S20, S21).
    """
    own = dimension.source_attributes(source.name)
    if source.name != dimension.existence_source.name:
        return list(own)
    provided = {a.name for each in dimension.sources for a in dimension.source_attributes(each.name)}
    return [a for a in dimension.attributes if a in own or a.name not in provided]


def _latest_value_attributes(dimension: Dimension, source: Source) -> list[Attribute]:
    """Return the attributes of a source whose latest value all versions, or the version in force, show."""
    attributes = _attributes_of(dimension, source)
    latest = [a for a in attributes if a.is_common or a.untracked == "latest_in_version"]
    return [a for a in latest if a.scd is not ScdType.RETAIN_ORIGINAL]


def _opening(name: str) -> str:
    return f"_opening_{name}"


def _type_0_attributes(dimension: Dimension, source: Source) -> list[Attribute]:
    """Return the attributes of a source whose first value is kept permanently (S6)."""
    return [a for a in _attributes_of(dimension, source) if a.scd is ScdType.RETAIN_ORIGINAL]


def _type_0_names(dimension: Dimension) -> list[str]:
    """Return the names of the attributes whose first value is kept permanently."""
    return [attribute.name for source in dimension.sources for attribute in _type_0_attributes(dimension, source)]


def _origin(group: str, source: Source) -> str:
    return f"_{group}_origin_{source.name}"


def _value_origins(dimension: Dimension, windows: RowWindows) -> dict[str, Column]:
    """Return for each source the origin of the last record that changed a latest value, or a type 0 attribute."""
    window = windows.by_position()
    origins: dict[str, Column] = {}
    for source in dimension.sources:
        for group, attributes in (
            ("latest", _latest_value_attributes(dimension, source)),
            ("type_0", _type_0_attributes(dimension, source)),
        ):
            changes = [_differs(a, dimension, window.lag(col(a.name))) for a in attributes]
            if changes:
                changed = F.when(any_of(changes), record_origin())
                origins[_origin(group, source)] = window.last(changed)
    return origins


def _differs(attribute: Attribute, dimension: Dimension, before: Column) -> Column:
    """Return whether an attribute's wrapped value differs from the one before.

    For type 6 only while the entity does not exist: otherwise the change is in the UPDATE.
    """
    data_type = attribute_types(dimension)[attribute.name]
    now = col(attribute.name)
    differs = values_differ(now["v"], before["v"], data_type)
    if attribute.scd is ScdType.ADD_ATTRIBUTE:  # the first value that is provided is a change, even if it is NULL (S9)
        return differs | (now.isNotNull() & before.isNull())
    return differs & ~F.col(EXISTS) if attribute.scd is ScdType.HYBRID else differs


def _before(name: str) -> str:
    return f"_before_{name}"


def _first(name: str) -> str:
    return f"_first_{name}"


def _changed(name: str) -> str:
    return f"_changed_{name}"


def _with_changes(states: DataFrame, dimension: Dimension, windows: RowWindows) -> DataFrame:
    """Add the state before each moment, what differs from it, and how the row of the entity changes.

    Returns:
        The states of entities that ever existed, with `_before_<name>`, `_changed_<attribute>`, `_row_change` (INSERT,
        UPDATE, LOGICAL_DELETE or NULL), and for type 0 `_first_<attribute>`: the first value that is not NULL.
    """
    window = windows.by_time()
    before = {_before(n): window.lag(col(n)) for n in (EXISTS, VISIBLE, *dimension.attribute_names)}
    type_0 = _type_0_names(dimension)
    first = {_first(n): window.first(F.when(col(n)["v"].isNotNull(), col(n))) for n in type_0}
    states = states.withColumns({**before, **first})
    states = with_columns(states, {_before(_first(n)): window.lag(col(_first(n))) for n in type_0})
    changed = {_changed(a.name): _differs(a, dimension, col(_before(a.name))) for a in dimension.attributes}
    existed_before = F.coalesce(col(_before(EXISTS)), F.lit(False))
    row_change = (
        F.when(F.col(EXISTS) & ~existed_before, INSERT)
        .when(existed_before & ~F.col(EXISTS), LOGICAL_DELETE)
        .when(F.col(EXISTS) & ~F.col(VISIBLE).eqNullSafe(col(_before(VISIBLE))), UPDATE)
    )
    ever_existed = window.whole().max(F.col(EXISTS))
    return states.withColumns({**changed, _ROW_CHANGE: row_change, "_ever_existed": ever_existed}).where(
        "_ever_existed"
    )


def _with_keys(states: DataFrame, dimension: Dimension, windows: RowWindows, key_hash: KeyHash) -> DataFrame:
    """Add the surrogate key of the version that began last, and of the one before this moment (S14, S29, S33).

    `effective_from` is the start of the version that began last. Likewise the value of each attribute that is
    `at_open`, in `_opening_<name>`.
    """
    window = windows.by_time()
    opens = F.col(_ROW_CHANGE).isin(*opening_change_types(dimension))
    numbered = with_begin_value(states, dimension, window).withColumn(VERSION, window.sum(opens.cast("int")))
    start = version_start(F.col(EFFECTIVE_AT), dimension)
    if not dimension.has_windows:
        start = beginning()
    keyed = numbered.withColumn(EFFECTIVE_FROM, start)
    key = window.last(F.when(opens, surrogate_key(dimension, key_hash)))
    at_open = [a.name for a in dimension.attributes if a.untracked == "at_open"]
    openings = {_opening(n): window.last(F.when(opens, F.struct(col(n).alias("value")))) for n in at_open}
    last_start = window.last(F.when(opens, F.col(EFFECTIVE_FROM)))
    keyed = with_columns(keyed.withColumns({_KEY: key, EFFECTIVE_FROM: last_start}), openings)
    return keyed.withColumns({_before(n): window.lag(col(n)) for n in (_KEY, *openings)})


@dataclass(frozen=True, slots=True)
class _ValueChange:
    """One attribute in a transition: its wrapped values, and the condition under which the transition contains it."""

    name: str
    type: DataType
    condition: Column
    old: Column | None
    new: Column | None


def _transition(
    kind: Column,
    keys: tuple[Column, Column],
    values: Sequence[_ValueChange],
    origin: Column,
    dimension: Dimension,
    *,
    sides: tuple[Column, Column] | None = None,
) -> Column:
    """Return one transition as a struct, in the order of `transition_schema`.

    `sides` are the conditions under which it has old and new values; without them it has those that are given.
    """
    names = [name for name, _ in transition_schema(dimension)]
    changed, *maps = _changed_values(values)
    if sides is not None:
        maps = [F.when(condition, values_by_name) for condition, values_by_name in zip(sides, maps, strict=True)]
    columns = [
        *keys,
        kind,
        changed,
        *maps,
        F.col(EFFECTIVE_AT),
        F.coalesce(origin["actor"], F.lit(f"pipeline:{dimension.name}")),
        F.coalesce(origin["reason"], F.when(kind == LOGICAL_DELETE, DEFAULT_DELETE_REASON), F.lit(DEFAULT_REASON)),
        origin["delivery"],
        origin["correlation_id"],
    ]
    return F.struct(*[value.alias(name) for value, name in zip(columns, names, strict=True)])


def _changed_values(values: Sequence[_ValueChange]) -> tuple[Column, Column, Column]:
    """Return the names of the changed columns, their old values, and their new values."""
    changed = array_where([(v.condition, F.lit(v.name)) for v in values], "string")
    old = [(v, v.old) for v in values if v.old is not None]
    new = [(v, v.new) for v in values if v.new is not None]
    old_values, new_values = (
        map_of_entries([(v.condition & side.isNotNull(), map_entry(v.name, side["v"], v.type)) for v, side in sides])
        for sides in (old, new)
    )
    return changed, old_values, new_values


def _insert(dimension: Dimension) -> Column:
    """Return the INSERT with all values."""
    types, values = attribute_types(dimension), _values_after(dimension)
    inserted = [_ValueChange(n, types[n], value.isNotNull(), None, value) for n, value in values.items()]
    key_before = col(_before(_KEY)) if dimension.has_deleted_versions else F.lit(None).cast("bigint")
    keys = (key_before, F.col(_KEY))
    return _transition(F.lit(INSERT), keys, inserted, F.col(OPENED_BY), dimension)


def _values_after(dimension: Dimension) -> dict[str, Column]:
    """Return the wrapped values that a version has from a moment on, by attribute: those of type 0 are the first."""
    type_0 = _type_0_names(dimension)
    return {n: F.coalesce(col(_first(n)), col(n)) if n in type_0 else col(n) for n in dimension.attribute_names}


def _row_transition(dimension: Dimension) -> Column:
    """Return the INSERT, the LOGICAL_DELETE with all values, or the UPDATE with those that differ.

    A LOGICAL_DELETE that opens a version has its key and values too, and the INSERT after it the key before. They are
    one expression with the conditions in it, because Spark compiles code for each expression of a query.
    """
    row_change, key, key_before = F.col(_ROW_CHANGE), F.col(_KEY), col(_before(_KEY))
    is_update, is_deleted = row_change == UPDATE, row_change == LOGICAL_DELETE
    types, before, after = attribute_types(dimension), _values_before(dimension), _values_after(dimension)
    versioned = {a.name for a in dimension.attributes if a.opens_versions or a.untracked is not None}
    shows_before, shows_after = row_change != INSERT, ~is_deleted
    keys = (F.when(is_update, key_before).when(is_deleted, key), F.when(~is_deleted, key))
    if dimension.has_deleted_versions:
        shows_after, keys = F.lit(True), (key_before, key)
    values = []
    for name in dimension.attribute_names:
        old, new = before[name], after[name]
        differs = values_differ(new["v"], old["v"], types[name]) if name in versioned else F.lit(False)
        is_shown = (shows_before & old.isNotNull()) | (shows_after & new.isNotNull())
        values.append(_ValueChange(name, types[name], F.when(is_update, differs).otherwise(is_shown), old, new))
    sides = (shows_before, shows_after)
    transition = _transition(row_change, keys, values, F.col(OPENED_BY), dimension, sides=sides)
    return F.when(row_change.isNotNull(), transition)


def _values_before(dimension: Dimension) -> dict[str, Column]:
    """Return the wrapped value of each attribute in the version before a moment; for type 0 the first value."""
    before = {name: col(_before(name)) for name in dimension.attribute_names}
    before |= {name: F.coalesce(col(_before(_first(name))), before[name]) for name in _type_0_names(dimension)}
    at_open = [a.name for a in dimension.attributes if a.untracked == "at_open"]
    return before | {name: col(_before(_opening(name)))["value"] for name in at_open}


def _latest_overwrite(dimension: Dimension, source: Source) -> Column | None:
    """Return the OVERWRITE of a source's values of which all versions show the latest one."""
    types = attribute_types(dimension)
    values = []
    for attribute in _latest_value_attributes(dimension, source):
        name = attribute.name
        column = attribute.current_column or name
        condition = col(_changed(name))
        if attribute.untracked is not None:  # a version that opens at this moment has the value already
            condition = condition & _has_version(dimension) & F.col(_ROW_CHANGE).isNull()
        values.append(_ValueChange(column, types[name], condition, col(_before(name)), col(name)))
    return _overwrite(values, "latest", dimension, source)


def _has_version(dimension: Dimension) -> Column:
    """Return whether a version of an entity that ever existed is in force from this moment on."""
    return F.col(_KEY).isNotNull() if dimension.has_deleted_versions else F.col(EXISTS)


def _first_value_overwrite(dimension: Dimension, source: Source) -> Column | None:
    """Return the OVERWRITE of a source's type 0 attributes that have their first value at this moment (S6)."""
    types = attribute_types(dimension)
    values = []
    for name in [attribute.name for attribute in _type_0_attributes(dimension, source)]:
        new, old = col(_first(name)), col(_before(_first(name)))
        values.append(_ValueChange(name, types[name], new.isNotNull() & old.isNull(), old, new))
    return _overwrite(values, "type_0", dimension, source)


def _overwrite(values: Sequence[_ValueChange], group: str, dimension: Dimension, source: Source) -> Column | None:
    """Return the OVERWRITE if any value changes; the first INSERT of an entity contains its values already."""
    if not values:
        return None
    is_first_insert = (F.col(_ROW_CHANGE) == INSERT) & (F.col(VERSION) == 1)
    occurs = any_of([value.condition for value in values]) & ~F.coalesce(is_first_insert, F.lit(False))
    keys = (F.col(_KEY), F.col(_KEY))
    return F.when(occurs, _transition(F.lit(OVERWRITE), keys, values, col(_origin(group, source)), dimension))


def _refusal(dimension: Dimension, source: Source) -> Column | None:
    """Return the REFUSED transition of a source's type 0 attributes, once for each change of the refused value (S6)."""
    types = attribute_types(dimension)
    values = []
    for name in [attribute.name for attribute in _type_0_attributes(dimension, source)]:
        first = col(_first(name))
        differs = values_differ(col(name)["v"], first["v"], types[name])
        is_refused = col(_changed(name)) & first.isNotNull() & differs
        values.append(_ValueChange(name, types[name], is_refused, first, col(name)))
    if not values:
        return None
    keys = (F.col(_KEY), F.col(_KEY))
    transition = _transition(F.lit(REFUSED), keys, values, col(_origin("type_0", source)), dimension)
    return F.when(any_of([value.condition for value in values]), transition)
