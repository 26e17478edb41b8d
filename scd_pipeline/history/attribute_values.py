"""Values of attributes in the versions of an entity, according to their SCD types (S6 to S10).

Types 2 and 6 show in each version the value that was in force when it began. The other types show one value in all
versions of an entity: the first value (type 0) or the latest one (types 1 and 3). Type 3 also shows the value before
it and the time of that change; type 6 also shows the latest value, and on request the value of the preceding version or
the last value before that differs.
An untracked attribute of type 1 shows in each version its value at the start, or the latest one before the end.

States are rows of one entity, one per time, with each attribute wrapped, as of that time; versions are the states that
open one.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from scd_pipeline.columns import EFFECTIVE_AT, attribute_types
from scd_pipeline.declaration import Attribute, Dimension, ScdType
from scd_pipeline.expressions import col, null_safe_equal, to_comparable, with_columns
from scd_pipeline.history.row_windows import RowWindow, RowWindows

LAST_CHANGE = "_last_change"
_LATEST, _LATEST_BEFORE, _LATEST_OF_ALL = "_latest", "_latest_before", "_latest_of_all"
"""The values of attributes that are `latest_in_version`: of a state, of the one before it, and of the last one."""


def with_entity_values(states: DataFrame, dimension: Dimension, windows: RowWindows) -> DataFrame:
    """Add the values that all versions of an entity have in common.

    Returns:
        The states with `_common_<attribute>` for types 0, 1, 3 and 6 (if the table has its latest value), with
        `_value_before_<attribute>` for type 3 (the time of the last change and the value before it), and with
        `_last_change`: the time at which any of these values last changed, NULL if all are NULL and always were.
    """
    window = windows.by_time()
    types = attribute_types(dimension)
    values: dict[str, Column] = {}
    for attribute in dimension.attributes:
        comparable = to_comparable(col(attribute.name)["v"], types[attribute.name])
        values.update(_common_values(attribute, comparable, window))
    states = with_columns(_with_last_change(states, dimension, window), values)
    names = [_value_before(a.name) for a in dimension.of_type(ScdType.ADD_ATTRIBUTE)]
    return with_columns(states, {name: window.whole().last(col(name)) for name in names})


def version_values(dimension: Dimension, window: RowWindow) -> dict[str, Column]:
    """Return the attribute columns of a version; needs the columns of `with_entity_values` and `value_changes`.

    Args:
        dimension: The declaration.
        window: The window of an entity's versions in order of time.
    """
    values: dict[str, Column] = {}
    for attribute in dimension.attributes:
        name = attribute.name
        if attribute.opens_versions or attribute.untracked == "at_open":
            values[name] = col(name)["v"]
        elif attribute.untracked is not None:
            values[name] = F.col(_LATEST)[name]
        else:
            values[name] = col(_common(name))
        if attribute.current_column:
            values[attribute.current_column] = col(_common(name))
        if attribute.previous_column:
            values[attribute.previous_column] = _previous_value(attribute, window)["v"]
        if attribute.changed_at_column:
            values[attribute.changed_at_column] = col(_value_before(name))["at"]
    return values


def value_changes(dimension: Dimension, window: RowWindow) -> dict[str, Column]:
    """Return for each version the value before it of type 6 attributes with `previous: last_different_value`.

    Args:
        dimension: The declaration.
        window: The window of an entity's versions in order of time.

    Returns:
        `_value_before_<attribute>`: the value of the preceding version as a struct, NULL if the version has the same
        value.
    """
    types = attribute_types(dimension)
    changes: dict[str, Column] = {}
    for attribute in dimension.of_type(ScdType.HYBRID):
        if attribute.has_last_different_value:
            value = to_comparable(col(attribute.name)["v"], types[attribute.name])
            before = F.struct(window.lag(col(attribute.name))["v"].alias("v"))
            changes[_value_before(attribute.name)] = F.when(~value.eqNullSafe(window.lag(value)), before)
    return changes


def _previous_value(attribute: Attribute, window: RowWindow) -> Column:
    """Return the value before that of a version, as a struct (S9, S10)."""
    if attribute.scd is ScdType.ADD_ATTRIBUTE:
        return col(_value_before(attribute.name))
    if attribute.has_last_different_value:
        return window.last(col(_value_before(attribute.name)))
    return window.lag(col(attribute.name))


def has_latest_in_version(dimension: Dimension) -> bool:
    """Return whether any attribute of a dimension is `latest_in_version`: it may change within a window."""
    return bool(_latest_in_version(dimension))


def _latest_in_version(dimension: Dimension) -> list[Attribute]:
    return [attribute for attribute in dimension.attributes if attribute.untracked == "latest_in_version"]


def with_latest_in_version(states: DataFrame, dimension: Dimension, windows: RowWindows) -> DataFrame:
    """Add the values that versions have until they end, for `values_before_end`.

    Returns:
        The states with `_latest`, `_latest_before` and `_latest_of_all`: structs with the values of the
        `latest_in_version` attributes, and with `_changed_at`, the time at which any of them last changed.
    """
    window, types = windows.by_time(), attribute_types(dimension)
    attributes = _latest_in_version(dimension)
    comparable = [to_comparable(col(a.name)["v"], types[a.name]).alias(f"v{i}") for i, a in enumerate(attributes)]
    states = states.withColumn("_comparable", F.struct(*comparable))
    changed_at = window.last(F.when(_differs_from_before("_comparable", len(attributes), window), F.col(EFFECTIVE_AT)))
    states = states.withColumn("_changed_at", changed_at)
    values = F.struct(*[col(a.name)["v"].alias(a.name) for a in attributes], F.col("_changed_at"))
    states = states.withColumn(_LATEST, values)
    latest = window.whole().last(F.col(_LATEST), ignore_nulls=False)
    return states.withColumns({_LATEST_BEFORE: window.lag(F.col(_LATEST)), _LATEST_OF_ALL: latest})


def values_before_end(is_current: Column, window: RowWindow) -> dict[str, Column]:
    """Return the values that each version has at its end, and the time at which any of them last changed.

    Args:
        is_current: Whether the version has no end.
        window: The window of an entity's versions and deletions in order of time.
    """
    before_end = F.when(is_current, F.col(_LATEST_OF_ALL)).otherwise(window.lead(F.col(_LATEST_BEFORE)))
    return {_LATEST: before_end}


def last_change_in_version() -> Column:
    """Return the time of the last change of the values of a version; needs `values_before_end`."""
    return F.col(_LATEST)["_changed_at"]


def _differs_from_before(name: str, fields: int, window: RowWindow) -> Column:
    """Return whether a struct with the fields v0, v1 and so on differs from that of the preceding state."""
    before = window.lag(F.col(name))
    numbers = [f"v{number}" for number in range(fields)]
    return ~null_safe_equal([F.col(name)[n] for n in numbers], [before[n] for n in numbers])


def _common(name: str) -> str:
    return f"_common_{name}"


def _value_before(name: str) -> str:
    return f"_value_before_{name}"


def _common_values(attribute: Attribute, comparable: Column, window: RowWindow) -> dict[str, Column]:
    """Return the columns that an attribute adds to all states.

    None unless all versions have a value of it in common.
    """
    if not attribute.is_common:
        return {}
    match attribute.scd:
        case ScdType.RETAIN_ORIGINAL:
            return _first_value(attribute, window)
        case ScdType.ADD_ATTRIBUTE:
            return _latest_and_previous(attribute, comparable, window)
        case _:
            return _latest_value(attribute, window)


def _first_value(attribute: Attribute, window: RowWindow) -> dict[str, Column]:
    """Return the first value that is not NULL, in business time (S6)."""
    value = F.when(col(attribute.name)["v"].isNotNull(), col(attribute.name))
    return {_common(attribute.name): window.whole().first(value)["v"]}


def _latest_value(attribute: Attribute, window: RowWindow) -> dict[str, Column]:
    """Return the latest value (S7), which is also the current value of type 6 (S10)."""
    latest = window.whole().last(col(attribute.name), ignore_nulls=False)
    return {_common(attribute.name): latest["v"]}


def _latest_and_previous(attribute: Attribute, comparable: Column, window: RowWindow) -> dict[str, Column]:
    """Return the latest value, and for each change its time and the value before it (S9)."""
    name = attribute.name
    before = window.lag(col(name))
    comparable_before = window.lag(comparable)
    changes = col(name).isNotNull() & (before.isNull() | ~comparable.eqNullSafe(comparable_before))
    return {
        _common(name): window.whole().last(col(name), ignore_nulls=False)["v"],
        _value_before(name): F.when(changes, F.struct(F.col(EFFECTIVE_AT).alias("at"), before["v"].alias("v"))),
    }


def _with_last_change(states: DataFrame, dimension: Dimension, window: RowWindow) -> DataFrame:
    """Add `_last_change`: the last time at which any value that all versions have in common changed."""
    types = attribute_types(dimension)
    running: list[Column] = []
    for attribute in dimension.attributes:
        value = col(attribute.name)["v"]
        if not attribute.is_common:
            continue
        if attribute.scd is ScdType.RETAIN_ORIGINAL:
            value = window.first(value)
        running.append(to_comparable(value, types[attribute.name]).alias(f"v{len(running)}"))
    if not running:
        return states.withColumn(LAST_CHANGE, F.lit(None).cast("timestamp"))
    states = states.withColumn("_running", F.struct(*running))
    changed = _differs_from_before("_running", len(running), window)
    return states.withColumn("_change_at", F.when(changed, F.col(EFFECTIVE_AT))).withColumn(
        LAST_CHANGE, window.whole().max(F.col("_change_at"))
    )
