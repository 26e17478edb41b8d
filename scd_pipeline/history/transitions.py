"""Statements of some entities become the transitions of their histories: what happened to whom, when, by whom (S21).

A transition is where the state after all statements of one time differs from the state before it:

- INSERT, UPDATE, LOGICAL_DELETE: an entity appears (also again), a version follows another, an entity goes;
- OVERWRITE: a value that every version shows becomes another (types 0, 1 and 3; type 6 while the entity is not there);
- REFUSED: a type 0 attribute is stated otherwise than it stays (S6).

Each is told of the last statement after which its values were other than before, so that statements which repeat what
holds never tell anything, and differences alone can be stored (S14).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from operator import or_

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from scd_pipeline.columns import DEFAULT_REASON, EFFECTIVE_AT, EFFECTIVE_FROM, VERSION, attribute_types
from scd_pipeline.declaration import Attribute, Dimension, ScdType, Source
from scd_pipeline.declaration.types import DataType
from scd_pipeline.expressions import col, to_comparable, with_columns
from scd_pipeline.history.keys import KeyHash, hash_64, surrogate_key
from scd_pipeline.history.lossless import as_map, entry
from scd_pipeline.history.timeline import (
    BEGINNING,
    EXISTS,
    OPENER,
    VISIBLE,
    at_the_end_of_each_time,
    author,
    by_time,
    declared_begin,
    effective_statements,
    first_begin,
    in_order,
    running_state,
    whole,
)

INSERT, UPDATE, OVERWRITE = "INSERT", "UPDATE", "OVERWRITE"
LOGICAL_DELETE, REFUSED, WITHDRAWN = "LOGICAL_DELETE", "REFUSED", "WITHDRAWN"
CHANGE_TYPES = (INSERT, UPDATE, OVERWRITE, LOGICAL_DELETE, REFUSED, WITHDRAWN)

CHANGE_TYPE, CHANGE_TS = "change_type", "change_ts"
CHANGED_COLUMNS, OLD_VALUES, NEW_VALUES = "changed_columns", "old_values", "new_values"
TOLD_ACTOR, TOLD_REASON, SOURCE_BATCH, CORRELATION = "actor", "reason", "source_batch_id", "correlation_id"

_KIND, _KEY = "_transition", "_key"
_LATEST = (ScdType.OVERWRITE, ScdType.ADD_ATTRIBUTE, ScdType.HYBRID)


def key_columns(dimension: Dimension) -> tuple[str, str]:
    """The names of the surrogate key before and after a transition."""
    return f"{dimension.surrogate_key}_old", f"{dimension.surrogate_key}_new"


def transition_schema(dimension: Dimension) -> list[tuple[str, str]]:
    """Name and type of what a transition says, the business key left out."""
    old, new = key_columns(dimension)
    return [
        (old, "bigint"),
        (new, "bigint"),
        (CHANGE_TYPE, "string"),
        (CHANGED_COLUMNS, "array<string>"),
        (OLD_VALUES, "map<string,string>"),
        (NEW_VALUES, "map<string,string>"),
        (CHANGE_TS, "timestamp"),
        (TOLD_ACTOR, "string"),
        (TOLD_REASON, "string"),
        (SOURCE_BATCH, "string"),
        (CORRELATION, "string"),
    ]


def build_transitions(
    statements: DataFrame, dimension: Dimension, *, row_timed: bool, key_hash: KeyHash = hash_64
) -> DataFrame:
    """The transitions of every entity in `statements` that ever existed.

    In: as for `build_timeline`.  Out: the business key, `transition_schema`, and `effective_from`, the beginning of
    the version that the new key names. A delivery is named without its revision; `actor` is the pipeline where no
    person is told. Values that were not stated are in no map.
    """
    states = running_state(effective_statements(statements, dimension, row_timed=row_timed), dimension)
    states = with_columns(states, _authors(dimension))
    moments = _compared(at_the_end_of_each_time(states, dimension), dimension)
    moments = _keyed(moments, dimension, key_hash)
    told: list[Column | None] = [_of_row(dimension)]
    for source in dimension.sources:
        told += [_overwritten(dimension, source, _latest(dimension, source), "latest")]
        told += [_overwritten(dimension, source, _once(dimension, source), "once"), _refused(dimension, source)]
    happened = F.explode(F.array_compact(F.array(*[one for one in told if one is not None])))
    keys = [col(name) for name in dimension.key_names]
    began = F.col(EFFECTIVE_FROM)
    return moments.select(*keys, began, happened.alias("_told")).select(*keys, "_told.*", EFFECTIVE_FROM)


def assigned_keys(transitions: DataFrame, dimension: Dimension, *, key_hash: KeyHash = hash_64) -> DataFrame:
    """Return the surrogate keys that transitions assigned, and the version that each one names.

    A transition has the time of its change; the version may begin at the declared begin (S29). The key itself is the
    hash of its version, so it decides between the two.

    Args:
        transitions: The business key and `transition_schema`; withdrawn transitions count too.

    Returns:
        The surrogate key, the business key, and `effective_from`; one row for each key.
    """
    begins = [F.col(CHANGE_TS)]
    if not dimension.has_windows:
        begins = [F.lit(BEGINNING).cast("timestamp")]
    elif dimension.begin is not None:
        begins.append(declared_begin(dimension.begin))
    names = [col(name) for name in dimension.key_names]
    new_key = col(key_columns(dimension)[1]).alias(dimension.surrogate_key)
    opened = transitions.where(F.col(CHANGE_TYPE).isin(INSERT, UPDATE))
    candidates = opened.select(new_key, *names, F.explode(F.array(*begins)).alias(EFFECTIVE_FROM))
    is_hash = col(dimension.surrogate_key) == surrogate_key(dimension, key_hash)
    return candidates.where(is_hash).dropDuplicates([dimension.surrogate_key])


def _latest(dimension: Dimension, source: Source) -> list[Attribute]:
    """The attributes of a source whose latest value every version shows."""
    return [a for a in dimension.attributes_of(source.name) if a.scd in _LATEST]


def _once(dimension: Dimension, source: Source) -> list[Attribute]:
    """The attributes of a source that are set once (S6)."""
    return [a for a in dimension.attributes_of(source.name) if a.scd is ScdType.RETAIN_ORIGINAL]


def _author(what: str, source: Source) -> str:
    return f"_{what}_by_{source.name}"


def _authors(dimension: Dimension) -> dict[str, Column]:
    """For each source the last statement that changed what is latest, and the last that changed what is set once."""
    window = in_order(dimension)
    found: dict[str, Column] = {}
    for source in dimension.sources:
        for what, attributes in (("latest", _latest(dimension, source)), ("once", _once(dimension, source))):
            changes = [_differs(a, dimension, F.lag(col(a.name)).over(window)) for a in attributes]
            if changes:
                changed = reduce(or_, changes)
                found[_author(what, source)] = F.last(F.when(changed, author()), ignorenulls=True).over(window)
    return found


def _differs(attribute: Attribute, dimension: Dimension, before: Column) -> Column:
    """Whether the attribute, wrapped, shows something else than before in every version."""
    data_type = attribute_types(dimension)[attribute.name]
    now = col(attribute.name)
    differs = ~to_comparable(now["v"], data_type).eqNullSafe(to_comparable(before["v"], data_type))
    if attribute.scd is ScdType.ADD_ATTRIBUTE:  # a first statement begins a run, be it of NULL (S9)
        return differs | (now.isNotNull() & before.isNull())
    return differs & ~F.col(EXISTS) if attribute.scd is ScdType.HYBRID else differs


def _was(name: str) -> str:
    return f"_was_{name}"


def _kept(name: str) -> str:
    return f"_kept_{name}"


def _changed(name: str) -> str:
    return f"_changed_{name}"


def _compared(moments: DataFrame, dimension: Dimension) -> DataFrame:
    """Add to each moment what was so before it, whether that differs, and what happened to the entity."""
    window = by_time(dimension)
    before = {_was(n): F.lag(col(n)).over(window) for n in (EXISTS, VISIBLE, *dimension.attribute_names)}
    once = [a.name for s in dimension.sources for a in _once(dimension, s)]
    kept = {_kept(n): F.first(F.when(col(n)["v"].isNotNull(), col(n)), ignorenulls=True).over(window) for n in once}
    moments = moments.withColumns({**before, **kept})
    moments = with_columns(moments, {_was(_kept(n)): F.lag(col(_kept(n))).over(window) for n in once})
    changed = {_changed(a.name): _differs(a, dimension, col(_was(a.name))) for a in dimension.attributes}
    existed_before = F.coalesce(col(_was(EXISTS)), F.lit(False))
    kind = (
        F.when(F.col(EXISTS) & ~existed_before, INSERT)
        .when(existed_before & ~F.col(EXISTS), LOGICAL_DELETE)
        .when(F.col(EXISTS) & ~F.col(VISIBLE).eqNullSafe(col(_was(VISIBLE))), UPDATE)
    )
    existed = F.max(EXISTS).over(whole(window))
    return moments.withColumns({**changed, _KIND: kind, "_existed": existed}).where("_existed")


def _keyed(moments: DataFrame, dimension: Dimension, key_hash: KeyHash) -> DataFrame:
    """Add the surrogate key of the version that began last, and the one before this moment (S14, S29, S33)."""
    window = by_time(dimension)
    opens = F.col(_KIND).isin(INSERT, UPDATE)
    numbered = moments.withColumn(VERSION, F.sum(opens.cast("int")).over(window))
    began = first_begin(F.col(EFFECTIVE_AT), dimension)
    if not dimension.has_windows:
        began = F.lit(BEGINNING).cast("timestamp")
    keyed = numbered.withColumn(EFFECTIVE_FROM, began)
    key = F.last(F.when(opens, surrogate_key(dimension, key_hash)), ignorenulls=True).over(window)
    keyed = keyed.withColumn(_KEY, key)
    return keyed.withColumn(_was(_KEY), F.lag(_KEY).over(window))


def _transition(kind: Column, keys: tuple[Column, Column], values: _Values, by: Column, dimension: Dimension) -> Column:
    """One transition, in the order of `transition_schema`."""
    old, new = keys
    names = [name for name, _ in transition_schema(dimension)]
    reason = F.coalesce(by["reason"], F.lit(DEFAULT_REASON))
    actor = F.coalesce(by["actor"], F.lit(f"pipeline:{dimension.name}"))
    told = [old, new, kind, values.changed, values.old, values.new, F.col(EFFECTIVE_AT), actor, reason]
    told += [by["delivery"], by["correlation_id"]]
    return F.struct(*[value.alias(name) for value, name in zip(told, names, strict=True)])


@dataclass(frozen=True, slots=True)
class _Values:
    """The columns that a transition tells of, with what they were and what they are."""

    changed: Column
    old: Column
    new: Column

    @staticmethod
    def of(parts: Sequence[_Part]) -> _Values:
        names = [F.when(part.told, F.lit(part.name)) for part in parts]
        olds = [entry(p.name, p.old["v"], p.type, p.told & p.old.isNotNull()) for p in parts if p.old is not None]
        news = [entry(p.name, p.new["v"], p.type, p.told & p.new.isNotNull()) for p in parts if p.new is not None]
        changed = F.array_compact(F.array(*names)) if names else F.array()
        return _Values(changed.cast("array<string>"), as_map(olds), as_map(news))


@dataclass(frozen=True, slots=True)
class _Part:
    """One attribute in a transition: wrapped values before and after, and whether it is told at all."""

    name: str
    type: DataType
    told: Column
    old: Column | None
    new: Column | None


def _of_row(dimension: Dimension) -> Column:
    """An entity appears with all that was stated of it, goes with all that held, or is another version."""
    kind, key, was = F.col(_KIND), F.col(_KEY), col(_was(_KEY))
    types = attribute_types(dimension)
    once = {a.name for s in dimension.sources for a in _once(dimension, s)}
    everything = [a.name for a in dimension.attributes]
    now = {n: F.coalesce(col(_kept(n)), col(n)) if n in once else col(n) for n in everything}
    then = {n: F.coalesce(col(_was(_kept(n))), col(_was(n))) if n in once else col(_was(n)) for n in everything}
    appears = _Values.of([_Part(n, types[n], now[n].isNotNull(), None, now[n]) for n in everything])
    goes = _Values.of([_Part(n, types[n], then[n].isNotNull(), then[n], None) for n in everything])
    versioned = [a.name for a in dimension.of_type(ScdType.ADD_ROW, ScdType.HYBRID)]
    differ = {
        n: ~to_comparable(col(n)["v"], types[n]).eqNullSafe(to_comparable(col(_was(n))["v"], types[n]))
        for n in versioned
    }
    follows = _Values.of([_Part(n, types[n], differ[n], col(_was(n)), col(n)) for n in versioned])
    none = F.lit(None).cast("bigint")
    by = F.col(OPENER)
    return (
        F.when(kind == INSERT, _transition(kind, (none, key), appears, by, dimension))
        .when(kind == UPDATE, _transition(kind, (was, key), follows, by, dimension))
        .when(kind == LOGICAL_DELETE, _transition(kind, (key, none), goes, by, dimension))
    )


def _overwritten(dimension: Dimension, source: Source, attributes: Sequence[Attribute], what: str) -> Column | None:
    """What every version shows becomes another; a first INSERT tells it itself."""
    if not attributes:
        return None
    types = attribute_types(dimension)
    parts = []
    for attribute in attributes:
        name = attribute.name
        now, then, told = col(name), col(_was(name)), col(_changed(name))
        if what == "once":
            now, then = col(_kept(name)), col(_was(_kept(name)))
            told = now.isNotNull() & then.isNull()
        shown = f"current_{name}" if attribute.scd is ScdType.HYBRID else name
        parts.append(_Part(shown, types[name], told, then, now))
    first = (F.col(_KIND) == INSERT) & (F.col(VERSION) == 1)
    happens = reduce(or_, [part.told for part in parts]) & ~F.coalesce(first, F.lit(False))
    keys = (F.col(_KEY), F.col(_KEY))
    by = col(_author(what, source))
    return F.when(happens, _transition(F.lit(OVERWRITE), keys, _Values.of(parts), by, dimension))


def _refused(dimension: Dimension, source: Source) -> Column | None:
    """S6: another value than the one that stays was stated, once for each time that it changes."""
    attributes = _once(dimension, source)
    if not attributes:
        return None
    types = attribute_types(dimension)
    parts = []
    for name in [attribute.name for attribute in attributes]:
        same = to_comparable(col(name)["v"], types[name]).eqNullSafe(to_comparable(col(_kept(name))["v"], types[name]))
        told = col(_changed(name)) & col(_kept(name)).isNotNull() & ~same
        parts.append(_Part(name, types[name], told, col(_kept(name)), col(name)))
    keys = (F.col(_KEY), F.col(_KEY))
    by = col(_author("once", source))
    transition = _transition(F.lit(REFUSED), keys, _Values.of(parts), by, dimension)
    return F.when(reduce(or_, [part.told for part in parts]), transition)
