"""Statements of some entities become their versions. Late, doubled, deleted and returning rows need no branch.

`build_timeline` is a chain of small steps over one window order. In: statements (differences.py) of every source,
all of them for each entity that occurs.  Out: the rows of the dimension for those entities.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from pyspark.sql import Column, DataFrame, Window, WindowSpec
from pyspark.sql import functions as F

from scd_pipeline.columns import (
    ACTOR,
    BATCH,
    CHANGE_REASON,
    CHANGE_SOURCE,
    CORRELATION_ID,
    CURRENT_FLAG,
    DEFAULT_REASON,
    DELETED_AT,
    EFFECTIVE_AT,
    EFFECTIVE_FROM,
    EFFECTIVE_TO,
    KIND,
    LAST_UPDATED,
    LOAD_RUN_ID,
    REASON,
    ROW_AT,
    ROW_SEQUENCE,
    SOURCE,
    VERSION,
    attribute_types,
)
from scd_pipeline.declaration import Attribute, Begin, Dimension, ScdType
from scd_pipeline.declaration.types import parse_type
from scd_pipeline.expressions import col, delivery_id, null_safe_equal, position_order, to_comparable, with_columns
from scd_pipeline.history.differences import (
    ASSERTED_BEFORE,
    EXISTED_BEFORE,
    deletes,
    presence,
    rows_before,
    with_existence,
)
from scd_pipeline.history.keys import KeyHash, hash_64, surrogate_key

BEGINNING = "0001-01-01 00:00:00"
EXISTS = "_alive"
OPENER = "_opener"
VISIBLE = "_visible"
_ENDS = "_ends"


def build_timeline(
    statements: DataFrame, dimension: Dimension, *, row_timed: bool, key_hash: KeyHash = hash_64
) -> DataFrame:
    """The versions of every entity in `statements`: columns of `dimension_columns`, in that order.

    `row_timed` says that some statements assert presence at a time of their own (S4). NULL in a type 2 attribute is
    a value like any other (S8). Entities that never existed have no row.
    """
    states = running_state(effective_statements(statements, dimension, row_timed=row_timed), dimension)
    return versions_of(at_the_end_of_each_time(states, dimension), dimension, key_hash=key_hash)


def effective_statements(statements: DataFrame, dimension: Dimension, *, row_timed: bool) -> DataFrame:
    """The statements that make history: values and gone, presence resolved."""
    rows = statements.where(F.col(KIND).isin("upsert", "delete"))
    return _resolve_presence(rows, dimension) if row_timed else rows


def versions_of(moments: DataFrame, dimension: Dimension, *, key_hash: KeyHash = hash_64) -> DataFrame:
    """The versions that the states at some moments make.

    In: one row per entity and time at which anything may differ: `_effective_at`, `_alive`, `_visible`, `_opener`,
    and each attribute, wrapped, as it holds then.  Out: as of `build_timeline`.
    """
    versions = open_and_close(remember(moments, dimension), dimension)
    if not dimension.has_windows:
        versions = without_windows(versions, dimension)
    keyed = versions.withColumn(dimension.surrogate_key, surrogate_key(dimension, key_hash))
    return keyed.select(*[col(name) for name in dimension_columns(dimension)])


def entity(dimension: Dimension) -> list[Column]:
    return [col(name) for name in dimension.key_names]


def in_order(dimension: Dimension) -> WindowSpec:
    """One entity's statements of all sources."""
    return Window.partitionBy(*entity(dimension)).orderBy(*position_order())


def by_time(dimension: Dimension) -> WindowSpec:
    return Window.partitionBy(*entity(dimension)).orderBy(F.col(EFFECTIVE_AT).asc())


def whole(window: WindowSpec) -> WindowSpec:
    return window.rowsBetween(Window.unboundedPreceding, Window.unboundedFollowing)


def _resolve_presence(rows: DataFrame, dimension: Dimension) -> DataFrame:
    """Resolve what row-timed snapshots assert at their own time (S4).

    An entity that is present but would be deleted returns with its row's values; an absence of an entity whose
    existence was not asserted before it is dropped.
    """
    rows = presence(rows.withColumns({ROW_AT: F.lit(None).cast("timestamp"), ROW_SEQUENCE: F.lit(None).cast("bigint")}))
    states = with_existence(rows, rows_before(dimension), F.lit(True))
    returns = (F.col(KIND) == "presence") & ~F.col(EXISTED_BEFORE)
    return (
        states.where((F.col(KIND) == "upsert") | returns | deletes())
        .withColumn(KIND, F.when(returns, "upsert").otherwise(F.col(KIND)))
        .drop(EXISTED_BEFORE, ASSERTED_BEFORE, ROW_AT, ROW_SEQUENCE)
    )


def running_state(rows: DataFrame, dimension: Dimension) -> DataFrame:
    """After each statement: `_alive`, each attribute as last stated (S18), and the statement that changed what shows.

    Only the source that decides existence makes an entity alive or gone (S30). `_opener` is the last statement after
    which what is visible differed from before it; redundant statements never are, so storing differences is safe.
    """
    window = in_order(dimension)
    decides = F.col(SOURCE) == dimension.existence_source.name
    exists = F.when(decides, F.col(KIND) == "upsert")
    states = rows.withColumns(
        {
            EXISTS: F.coalesce(F.last(exists, ignorenulls=True).over(window), F.lit(False)),
            **{n: F.last(F.when(F.col(KIND) == "upsert", col(n)), True).over(window) for n in _names(dimension)},
        }
    ).withColumn(VISIBLE, visible(dimension))
    changed = ~F.col(VISIBLE).eqNullSafe(F.lag(VISIBLE).over(window))
    return states.withColumn("_changed", changed).withColumn(
        OPENER, F.last(F.when(F.col("_changed"), author()), ignorenulls=True).over(window)
    )


def author() -> Column:
    """Who made the statement of a row, and why; of the batch the delivery alone.

    An equal edition of a delivery must change no row (S13, S14, S34).
    """
    return F.struct(
        delivery_id(BATCH).alias("delivery"),
        F.col(SOURCE).alias("source"),
        F.col(REASON).alias("reason"),
        F.col(ACTOR).alias("actor"),
        F.col(CORRELATION_ID).alias("correlation_id"),
    )


def _names(dimension: Dimension) -> list[str]:
    return [attribute.name for attribute in dimension.attributes]


def visible(dimension: Dimension) -> Column:
    """What opens a version when it differs: the versioned values while the entity is alive, else NULL."""
    types = attribute_types(dimension)
    versioned = dimension.of_type(ScdType.ADD_ROW, ScdType.HYBRID)
    values = [to_comparable(col(a.name)["v"], types[a.name]).alias(f"v{i}") for i, a in enumerate(versioned)]
    return F.when(F.col(EXISTS), F.struct(F.lit(True).alias("alive"), *values))


def at_the_end_of_each_time(states: DataFrame, dimension: Dimension) -> DataFrame:
    """Keep the state after all statements of one time; what held in between is not visible (S5)."""
    next_time = F.lead(EFFECTIVE_AT).over(in_order(dimension))
    return states.withColumn("_next", next_time).where(F.col("_next").isNull() | (F.col("_next") > F.col(EFFECTIVE_AT)))


def remember(moments: DataFrame, dimension: Dimension) -> DataFrame:
    """Add what every version of an entity shows: the values of types 0, 1, 3 and the current ones of type 6.

    Also `_last_change`: when the last of them became what it is; NULL if all are NULL and always were.
    """
    window = by_time(dimension)
    types = attribute_types(dimension)
    shown: dict[str, Column] = {}
    for attribute in dimension.attributes:
        shown.update(
            _REMEMBERED[attribute.scd](
                attribute, to_comparable(col(attribute.name)["v"], types[attribute.name]), window
            )
        )
    return with_columns(_with_last_change(moments, dimension, window), shown)


def _retained(attribute: Attribute, value: Column, window: WindowSpec) -> dict[str, Column]:
    """S6: the first value that is not NULL, in business time."""
    first = F.when(col(attribute.name)["v"].isNotNull(), col(attribute.name))
    return {f"_shown_{attribute.name}": F.first(first, ignorenulls=True).over(whole(window))["v"]}


def _overwritten(attribute: Attribute, value: Column, window: WindowSpec) -> dict[str, Column]:
    """S7, and the current value of S10: the latest."""
    return {f"_shown_{attribute.name}": F.last(col(attribute.name)).over(whole(window))["v"]}


def _versioned(attribute: Attribute, value: Column, window: WindowSpec) -> dict[str, Column]:
    """S8: nothing beside the version's own value."""
    return {}


def _with_previous(attribute: Attribute, value: Column, window: WindowSpec) -> dict[str, Column]:
    """S9: the latest value, the one before it, and since when."""
    name = attribute.name
    before = F.lag(col(name)).over(window)
    equal_before = F.lag(value).over(window)
    begins = col(name).isNotNull() & (before.isNull() | ~value.eqNullSafe(equal_before))
    return {
        f"_shown_{name}": F.last(col(name)).over(whole(window))["v"],
        f"_run_{name}": F.when(begins, F.struct(F.col(EFFECTIVE_AT).alias("at"), before["v"].alias("v"))),
    }


_REMEMBERED = {
    ScdType.RETAIN_ORIGINAL: _retained,
    ScdType.OVERWRITE: _overwritten,
    ScdType.ADD_ROW: _versioned,
    ScdType.ADD_ATTRIBUTE: _with_previous,
    ScdType.HYBRID: _overwritten,
}


def _with_last_change(moments: DataFrame, dimension: Dimension, window: WindowSpec) -> DataFrame:
    """`_last_change`: the last time at which the values shown in every version were other than just before."""
    types = attribute_types(dimension)
    running: list[Column] = []
    for attribute in dimension.attributes:
        value = col(attribute.name)["v"]
        if attribute.scd is ScdType.ADD_ROW:
            continue
        if attribute.scd is ScdType.RETAIN_ORIGINAL:
            value = F.first(F.when(value.isNotNull(), value), ignorenulls=True).over(window)
        running.append(to_comparable(value, types[attribute.name]).alias(f"v{len(running)}"))
    if not running:
        return moments.withColumn("_last_change", F.lit(None).cast("timestamp"))
    moments = moments.withColumn("_running", F.struct(*running))
    pairs = [(F.col("_running")[f"v{i}"], F.lag("_running").over(window)[f"v{i}"]) for i in range(len(running))]
    changed = ~null_safe_equal([now for now, _ in pairs], [before for _, before in pairs])
    return moments.withColumn("_change_at", F.when(changed, F.col(EFFECTIVE_AT))).withColumn(
        "_last_change", F.max("_change_at").over(whole(window))
    )


def open_and_close(moments: DataFrame, dimension: Dimension) -> DataFrame:
    """Versions with half-open windows (S2), numbered; gaps where the entity did not exist (S18)."""
    window = by_time(dimension)
    boundary = ~F.col(VISIBLE).eqNullSafe(F.lag(VISIBLE).over(window))
    runs = _type_3(moments, dimension, window)
    bounded = runs.withColumn("_boundary", boundary).where(F.col("_boundary"))
    opened = bounded.withColumn(_ENDS, F.lead(EFFECTIVE_AT).over(window)).where(F.col(EXISTS))
    numbered = opened.withColumn(VERSION, F.row_number().over(window).cast("int"))
    began = F.col(EFFECTIVE_AT)
    return numbered.withColumns(
        {
            EFFECTIVE_FROM: first_begin(began, dimension),
            EFFECTIVE_TO: F.coalesce(F.col(_ENDS), open_end(dimension)),
            CURRENT_FLAG: F.col(_ENDS).isNull(),
            CHANGE_REASON: F.coalesce(F.col(OPENER)["reason"], F.lit(DEFAULT_REASON)),
            CHANGE_SOURCE: F.col(OPENER)["source"],
            LOAD_RUN_ID: F.col(OPENER)["delivery"],
            LAST_UPDATED: F.greatest(began, F.col("_last_change")),
            **_shown(dimension, window),
        }
    )


def _type_3(moments: DataFrame, dimension: Dimension, window: WindowSpec) -> DataFrame:
    """The last run of each type 3 attribute, in every row."""
    return with_columns(
        moments,
        {
            f"_run_{a.name}": F.last(f"`_run_{a.name}`", ignorenulls=True).over(whole(window))
            for a in dimension.of_type(ScdType.ADD_ATTRIBUTE)
        },
    )


def first_begin(began: Column, dimension: Dimension) -> Column:
    """S29: an entity whose first change is early enough begins at the declared time."""
    if dimension.begin is None:
        return began
    early = (F.col(VERSION) == 1) & (began <= _instant(dimension.begin.for_first_changes_until))
    return F.when(early, declared_begin(dimension.begin)).otherwise(began)


def declared_begin(begin: Begin) -> Column:
    """Return the time at which the first version of an early entity begins (S29)."""
    return _instant(begin.at)


def open_end(dimension: Dimension) -> Column:
    """The declared open end as a timestamp."""
    return _instant(dimension.open_end)


def _instant(text: str | datetime) -> Column:
    return F.lit(str(text)).cast("timestamp")


def _shown(dimension: Dimension, window: WindowSpec) -> dict[str, Column]:
    """The attribute columns of a version, in terms of the running values and of what is remembered."""
    shown: dict[str, Column] = {}
    for attribute in dimension.attributes:
        name, run = attribute.name, f"_run_{attribute.name}"
        if attribute.scd in (ScdType.ADD_ROW, ScdType.HYBRID):
            shown[name] = col(name)["v"]
        else:
            shown[name] = col(f"_shown_{name}")
        if attribute.scd is ScdType.HYBRID:
            shown[f"current_{name}"] = col(f"_shown_{name}")
            if attribute.previous:
                shown[f"previous_{name}"] = F.lag(col(name)).over(window)["v"]
        if attribute.scd is ScdType.ADD_ATTRIBUTE:
            shown[f"previous_{name}"] = col(run)["v"]
            shown[f"{name}_changed_at"] = col(run)["at"]
    return shown


def without_windows(versions: DataFrame, dimension: Dimension) -> DataFrame:
    """S33: one row per entity, opened by what first made it exist; its first and last version tell the rest."""
    window = Window.partitionBy(*entity(dimension)).orderBy(F.col(VERSION).asc())
    first_opening = F.first(EFFECTIVE_AT).over(whole(window))
    rows = versions.withColumns(
        {
            EFFECTIVE_FROM: _instant(BEGINNING),
            DELETED_AT: F.last(F.struct(_ENDS)).over(whole(window))[_ENDS],
            LAST_UPDATED: F.greatest(first_opening, F.col("_last_change")),
        }
    ).where(F.col(VERSION) == 1)
    return rows.where(F.col(DELETED_AT).isNull()) if dimension.deleted_rows == "remove" else rows


def dimension_schema(dimension: Dimension) -> list[tuple[str, str, bool]]:
    """Name, Spark type and nullability of the dimension's columns, in order."""
    columns = [(dimension.surrogate_key, "bigint", False)]
    # NULL in the row of the unknown member alone (S23): a row that lacks a key is a bad one (S26).
    columns += [(key.name, parse_key_type(key.type), True) for key in dimension.business_key]
    for attribute, data_type in zip(dimension.attributes, attribute_types(dimension).values(), strict=True):
        columns += [(name, ddl, True) for name, ddl in _attribute_columns(attribute, data_type.ddl())]
    if dimension.has_windows:
        columns += [
            (EFFECTIVE_FROM, "timestamp", False),
            (EFFECTIVE_TO, "timestamp", False),
            (CURRENT_FLAG, "boolean", False),
            (VERSION, "int", False),
        ]
    elif dimension.deleted_at:
        columns.append((DELETED_AT, "timestamp", True))
    texts = [CHANGE_REASON, CHANGE_SOURCE, LOAD_RUN_ID]
    return [*columns, *[(name, "string", True) for name in texts], (LAST_UPDATED, "timestamp", False)]


def parse_key_type(ddl: str) -> str:
    """The key's type in Spark's own spelling."""
    return parse_type(ddl).ddl()


def _attribute_columns(attribute: Attribute, ddl: str) -> list[tuple[str, str]]:
    name = attribute.name
    columns = [(name, ddl)]
    if attribute.scd is ScdType.HYBRID:
        columns.append((f"current_{name}", ddl))
    if attribute.scd is ScdType.ADD_ATTRIBUTE or attribute.previous:
        columns.append((f"previous_{name}", ddl))
    if attribute.scd is ScdType.ADD_ATTRIBUTE:
        columns.append((f"{name}_changed_at", "timestamp"))
    return columns


def dimension_columns(dimension: Dimension) -> Sequence[str]:
    """The names of the dimension's columns, in order."""
    return [name for name, _, _ in dimension_schema(dimension)]
