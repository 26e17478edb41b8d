"""Which statements of new batches the change log has to keep, so that it still says everything that was stated.

A plain snapshot states every entity of its scope, but only what differs from the state that its own source had
at that position is stored; what it says of the others can be read off the log ("implied"). So whenever statements
come in, or go, before a stored snapshot, that snapshot is asked again what it says of the entities concerned, and
what is implied no longer is stored (S14, S19, S34). `changes` does all of it at once, for any set of batches.

A frame of statements has: the business key; `_source`, `_channel`, `_batch`, `_delivery_rank`, `_revision_rank`,
`_effective_at`, `_sequence`, `_asserted_at`; `_kind` (values, gone, nothing, bad); `_reason`, `_actor`,
`_correlation_id`, `_bad_reason`, `_bad_row`; and every attribute wrapped (expressions.wrap).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from pyspark.sql import Column, DataFrame, SparkSession, Window, WindowSpec
from pyspark.sql import functions as F

from scd_pipeline.columns import (
    ACTOR,
    ASSERTED_AT,
    BAD_REASON,
    BAD_ROW,
    BATCH,
    CHANNEL,
    CORRELATION_ID,
    EFFECTIVE_AT,
    KIND,
    REASON,
    ROW_AT,
    ROW_SEQUENCE,
    SEQUENCE,
    SOURCE,
    attribute_types,
)
from scd_pipeline.declaration import Dimension
from scd_pipeline.declaration.types import DataType
from scd_pipeline.expressions import col, key_text, position_order, quote_name, to_comparable
from scd_pipeline.frames import local_frame
from scd_pipeline.history.batch import Batch, rank
from scd_pipeline.instants import to_utc

ORIGIN = "_origin"
EXISTED_BEFORE = "_alive_before"
ASSERTED_BEFORE = "_asserted_before"
DIFFERS = "_differs"
VERSION_DIFFERS = "_version_differs"
_BESIDE_A_BAD_ROW = "_beside_a_bad_row"


@dataclass(frozen=True, slots=True)
class Intake:
    """The batches that a run is about: new ones, those that count no more, and the snapshots that stand."""

    new: tuple[Batch, ...]
    removed: tuple[Batch, ...]
    stored_snapshots: tuple[Batch, ...]

    @property
    def new_snapshots(self) -> tuple[Batch, ...]:
        return tuple(batch for batch in self.new if batch.is_snapshot and not batch.withdrawn)

    @property
    def row_timed(self) -> bool:
        return any(batch.row_times for batch in (*self.new, *self.stored_snapshots))


def changes(
    spark: SparkSession,
    stored: DataFrame,
    raw: DataFrame,
    intake: Intake,
    dimension: Dimension,
    set_frozen_fields: Callable[[DataFrame], DataFrame] = lambda frame: frame,
) -> DataFrame:
    """The statements to append, with what stood before each of them.

    In: `stored`, the log's counted statements of every key concerned, those of removed batches included; `raw`,
    the statements of the new batches, one per (batch, key, time, sequence).
    Out: statements, with `_origin` (raw, absent, probe), and as the source stood just before `_alive_before`,
    `_asserted_before` (of which the rows of the record's own row-timed snapshot are no part), `_differs` and
    `_version_differs` (in a value that opens versions). Rows with `_kind` "presence" are there for counting and are
    never stored. `settle` may materialize a frame that several branches of the plan start from.
    """
    removed = [batch.records_batch_id for batch in intake.removed]
    origin = F.when(F.col(BATCH).isin(removed), "removed").otherwise("stored") if removed else F.lit("stored")
    old = _with_presence(stored.withColumn(ORIGIN, origin), intake)
    new = _with_presence(raw.withColumn(ORIGIN, F.lit("raw")), intake)
    known = old.unionByName(new)
    if intake.new_snapshots:
        known = known.unionByName(_absences(spark, known, intake.new_snapshots, dimension))
    asked = _snapshots_to_ask(intake)
    if not asked:
        return _kept(known, intake, dimension)
    known = set_frozen_fields(known)
    affected = set_frozen_fields(_affected(known, intake, dimension))
    known = known.join(F.broadcast(affected), [SOURCE, *dimension.key_names], "left_semi")
    probes = _probes(spark, known, asked, dimension)
    resolved = _resolved(known.withColumns(_no_probe()).unionByName(probes), intake, dimension)
    return _kept(set_frozen_fields(resolved), intake, dimension)


def affected_keys(kept: DataFrame, removed: DataFrame, dimension: Dimension) -> DataFrame:
    """The business keys whose statements change: those with a statement to append or one that counts no more."""
    keys = [col(name) for name in dimension.key_names]
    return kept.select(*keys).unionByName(removed.select(*keys)).distinct()


def _with_presence(frame: DataFrame, intake: Intake) -> DataFrame:
    """Add what row-timed snapshots say at their own time: that each entity in them is there (S4)."""
    frame = frame.withColumns({ROW_AT: F.lit(None).cast("timestamp"), ROW_SEQUENCE: F.lit(None).cast("bigint")})
    return presence(frame) if intake.row_timed else frame


def presence(frame: DataFrame) -> DataFrame:
    """The frame, and a "presence" row at `_asserted_at` for each row of values that has one."""
    asserted = frame.where(F.col(ASSERTED_AT).isNotNull() & (F.col(KIND) == "upsert")).withColumns(
        {
            KIND: F.lit("presence"),
            ROW_AT: F.col(EFFECTIVE_AT),
            ROW_SEQUENCE: F.col(SEQUENCE),
            EFFECTIVE_AT: F.col(ASSERTED_AT),
            SEQUENCE: F.lit(None).cast("bigint"),
        }
    )
    return frame.unionByName(asserted)


_SNAPSHOT_SCHEMA = (
    "_source string, _channel string, _batch string, _delivery_rank string, _revision_rank string, "
    "_at timestamp, _bound timestamp, _retires boolean, _columns array<string>, "
    "_reason string, _actor string, _correlation_id string, _place string"
)
_PLACE = "_place"
_EVERYWHERE = ""


def _snapshot_frame(
    spark: SparkSession, snapshots: Sequence[Batch], bounds: Sequence[datetime | None]
) -> tuple[DataFrame, Column]:
    """The snapshots as a small frame, with a row for each place in their scopes, and the places of a key.

    A snapshot covers a key if they share a place, and they share one at most.
    """
    scopes = sorted({b.scope_columns for b in snapshots if b.scope is not None})
    rows = [
        (
            b.source,
            b.channel,
            b.records_batch_id,
            rank(b.delivery),
            rank(b.revision),
            b.at,
            bound,
            b.retires,
            list(b.columns),
            *_told(b),
            place,
        )
        for b, bound in zip(snapshots, bounds, strict=True)
        for place in _places(b, scopes)
    ]
    places = [F.concat(F.lit(f"{number}/"), key_text(names)) for number, names in enumerate(scopes)]
    return F.broadcast(local_frame(spark, rows, _SNAPSHOT_SCHEMA)), F.explode(F.array(F.lit(_EVERYWHERE), *places))


def _places(snapshot: Batch, scopes: Sequence[tuple[str, ...]]) -> list[str]:
    """The places that a snapshot covers: everywhere, or what the columns of its scope hold."""
    if snapshot.scope is None:
        return [_EVERYWHERE]
    return [f"{scopes.index(snapshot.scope_columns)}/{text}" for text in snapshot.scope]


def _statement_of(snapshot_rows: DataFrame, origin: str, kind: Column, dimension: Dimension) -> DataFrame:
    """Give rows of (key, snapshot) the columns of a statement at the snapshot's own position, told as all of it is."""
    types = attribute_types(dimension)
    texts = [BAD_REASON, BAD_ROW]
    return snapshot_rows.withColumns(
        {
            EFFECTIVE_AT: F.col("_at"),
            SEQUENCE: F.lit(None).cast("bigint"),
            ASSERTED_AT: F.lit(None).cast("timestamp"),
            KIND: kind,
            **{name: F.lit(None).cast("string") for name in texts},
            **{name: F.lit(None).cast(f"struct<v:{t.ddl()}>") for name, t in types.items()},
            ORIGIN: F.lit(origin),
            ROW_AT: F.lit(None).cast("timestamp"),
            ROW_SEQUENCE: F.lit(None).cast("bigint"),
        }
    )


def _absences(spark: SparkSession, known: DataFrame, snapshots: Sequence[Batch], dimension: Dimension) -> DataFrame:
    """What new snapshots say of the entities that they cover and leave out: gone, or nothing (S27, S30)."""
    frame, places = _snapshot_frame(spark, snapshots, [None] * len(snapshots))
    spoken = known.groupBy(SOURCE, *[col(n) for n in dimension.key_names]).agg(F.collect_set(BATCH).alias("_spoken"))
    covered = spoken.withColumn(_PLACE, places).join(frame, [SOURCE, _PLACE])
    left_out = covered.where(~F.array_contains("_spoken", F.col(BATCH)))
    kind = F.when(F.col("_retires"), "delete").otherwise("no_op")
    return _statement_of(left_out, "absent", kind, dimension).select(*known.columns)


def _kept(known: DataFrame, intake: Intake, dimension: Dimension) -> DataFrame:
    """Drop what is implied: a plain snapshot's statement that repeats what its source had stated before it.

    Of an entity whose existence is not asserted, a snapshot with no record of it asserts absence, and nothing of that
    is stored. Where the entity exists all the same, by a row dated earlier than its snapshot, values are stored (S4).
    """
    counts = F.col(ORIGIN) != "removed"
    state = _before(known, counts, intake, dimension)
    types = attribute_types(dimension)
    differs = _differs(types)
    opening = {a.name: types[a.name] for a in dimension.attributes if a.opens_versions}
    repeats = F.col(ASSERTED_BEFORE) & ~differs
    readable_again = _told_as_its_snapshot(intake, dimension) & ~F.col(_BESIDE_A_BAD_ROW)
    implied = (
        F.when(F.col(ORIGIN).isin("stored", "removed"), True)
        .when(F.col(KIND) == "bad", False)
        .when((F.col(ORIGIN) == "raw") & ~readable_again, False)
        .when(F.col(KIND) == "upsert", repeats)
        .otherwise(~F.col(ASSERTED_BEFORE))
    )
    told = {
        DIFFERS: _differs(types, as_null=True),
        VERSION_DIFFERS: _differs(opening, as_null=True),
        _BESIDE_A_BAD_ROW: _beside_a_bad_row(intake, dimension),
    }
    before = [_before_name(name) for name in types]
    return state.withColumns(told).where(~implied).drop(_BESIDE_A_BAD_ROW, *before)


def _told(batch: Batch) -> tuple[str | None, str | None, str | None]:
    """What is told of everything that a batch states, for the audit."""
    return (batch.reason, batch.actor, batch.correlation_id)


def _told_as_its_snapshot(intake: Intake, dimension: Dimension) -> Column:
    """Whether a row is of a plain new snapshot, and nothing is told of it that is not told of all of that snapshot.

    Only such a row can be read off the log again; one with a reason or an actor of its own is kept.
    """
    found = F.lit(False)
    plain = [b for b in intake.new_snapshots if not b.row_times]
    for told in sorted({_told(b) for b in plain}, key=repr):
        mine = [b for b in plain if _told(b) == told]
        same = F.col(BATCH).isin([b.records_batch_id for b in mine])
        channels = [dimension.source(b.source).channel(b.channel) for b in mine]
        if any(c.reason or c.actor or c.correlation_id for c in channels):
            for name, text in zip((REASON, ACTOR, CORRELATION_ID), told, strict=True):
                same = same & F.col(name).eqNullSafe(F.lit(text))
        found = found | same
    return found


def _beside_a_bad_row(intake: Intake, dimension: Dimension) -> Column:
    """Whether a row's snapshot has a bad row of the same entity too.

    That one is kept, so the snapshot counts as having spoken of the entity, and is not asked of it again.
    """
    if not any(batch.bad_rows for batch in intake.new_snapshots):
        return F.lit(False)
    together = Window.partitionBy(SOURCE, *[col(name) for name in dimension.key_names], BATCH)
    return F.coalesce(F.max(F.col(KIND) == "bad").over(together), F.lit(False))


def _affected(known: DataFrame, intake: Intake, dimension: Dimension) -> DataFrame:
    """Source and key of the entities of which a new batch says something new, or a removed one spoke."""
    names = [SOURCE, *[quote_name(n) for n in dimension.key_names]]
    kept = _kept(known, intake, dimension).select(*names)
    return kept.unionByName(known.where(F.col(ORIGIN) == "removed").select(*names)).distinct()


def _before_name(attribute: str) -> str:
    return f"_before_{attribute}"


def _before(known: DataFrame, counts: Column, intake: Intake, dimension: Dimension) -> DataFrame:
    """Add what each row's source had asserted up to just before it.

    Out: `_asserted_before`, `_alive_before` and `_before_<attribute>`. Only rows for which `counts` holds are taken
    into account. A "presence" row gives its values only where the entity was not alive (S4).
    """
    window = rows_before(dimension)
    if intake.row_timed:
        known = with_existence(known, window, counts)
    else:
        exists = F.when(counts & (F.col(KIND) == "upsert"), True).when(counts & (F.col(KIND) == "delete"), False)
        known = known.withColumn(EXISTED_BEFORE, _last_of(exists, window))
        known = known.withColumn(ASSERTED_BEFORE, F.col(EXISTED_BEFORE))
    sets = counts & (F.col(KIND) == "upsert")
    if intake.row_timed:
        sets = sets | (counts & (F.col(KIND) == "presence") & ~F.col(EXISTED_BEFORE))
    return known.withColumns(
        {
            _before_name(name): F.last(F.when(sets, col(name)), ignorenulls=True).over(window)
            for name in attribute_types(dimension)
        }
    )


def with_existence(rows: DataFrame, before: WindowSpec, counts: Column) -> DataFrame:
    """Add whether an entity's existence was asserted just before each row, and whether the entity existed (S4).

    The values of a row-timed snapshot make an entity exist from the row's time, but its existence is asserted only by
    presence at the snapshot's own time. An absence deletes only where existence was asserted.

    Args:
        rows: records of which row-timed ones have a "presence" row each (`presence`).
        before: the window of an entity's rows before the row (`rows_before`).
        counts: which rows are taken into account.

    Returns: the rows with `_asserted_before` and `_alive_before`, neither of them NULL.
    """
    asserts = (F.col(KIND) == "presence") | ((F.col(KIND) == "upsert") & F.col(ASSERTED_AT).isNull())
    asserted = F.when(counts & asserts, True).when(counts & (F.col(KIND) == "delete"), False)
    rows = rows.withColumn(ASSERTED_BEFORE, _last_of(asserted, before))
    exists = F.when(counts & F.col(KIND).isin("upsert", "presence"), True).when(counts & deletes(), False)
    return rows.withColumn(EXISTED_BEFORE, _last_of(exists, before))


def deletes() -> Column:
    """Whether a row deletes its entity: a feed's delete, or an absence where existence was asserted before it (S4)."""
    return (F.col(KIND) == "delete") & (F.col(ASSERTED_BEFORE) | (F.col(CHANNEL) != "snapshot"))


def _last_of(flag: Column, window: WindowSpec) -> Column:
    """The last value of the flag that is not NULL; false where there is none."""
    return F.coalesce(F.last(flag, ignorenulls=True).over(window), F.lit(False))


def rows_before(dimension: Dimension) -> WindowSpec:
    """What one source said of one entity before the row; presence included, as `presence` adds it."""
    window = Window.partitionBy(SOURCE, *[col(n) for n in dimension.key_names])
    return window.orderBy(*position_order(with_presence=True)).rowsBetween(Window.unboundedPreceding, -1)


def _differs(types: Mapping[str, DataType], *, as_null: bool = False) -> Column:
    """Whether the row provides, of these attributes, a value other than the one that held before it (S8).

    Not provided differs from NULL, as the log distinguishes them. With `as_null` it does not: what was not provided
    is NULL in the dimension, so that the first NULL changes nothing there.
    """
    differs = F.lit(False)
    for name, data_type in types.items():
        before = col(_before_name(name))
        equal = to_comparable(col(name)["v"], data_type).eqNullSafe(to_comparable(before["v"], data_type))
        other = ~equal if as_null else before.isNull() | ~equal
        differs = differs | (col(name).isNotNull() & other)
    return differs


def _snapshots_to_ask(intake: Intake) -> list[tuple[Batch, datetime | None]]:
    """Stored snapshots that may have to say again what is implied, each with its bound.

    A change before the bound cannot reach the snapshot: an earlier stored snapshot, which retires and states all
    that the source states, lies in between and settles the state of every entity that this one covers. Where rows have
    times of their own no snapshot does: whether an absence deletes depends on what was asserted before it (S4).
    """
    everything: dict[str, set[str]] = {}
    for batch in (*intake.stored_snapshots, *intake.new, *intake.removed):
        everything.setdefault(batch.source, set()).update(batch.columns)
    asked: list[tuple[Batch, datetime | None]] = []
    spans = [(b.source, *_span(b)) for b in (*intake.new, *intake.removed)]
    row_timed = {batch.source for batch in (*intake.stored_snapshots, *intake.new, *intake.removed) if batch.row_times}
    for source in {span[0] for span in spans}:
        ordered = sorted((b for b in intake.stored_snapshots if b.source == source), key=lambda b: b.position)
        settling: dict[tuple[tuple[str, ...], tuple[str, ...] | None], Batch] = {}
        for snapshot in ordered:
            bound = _latest_settling(settling.values(), snapshot)
            reached = any(
                s == source and first <= _at(snapshot) and (bound is None or last >= bound) for s, first, last in spans
            )
            if reached:
                asked.append((snapshot, bound))
            if source not in row_timed and _settles(snapshot, everything[source]):
                settling[(snapshot.scope_columns, snapshot.scope)] = snapshot
    return asked


def _settles(snapshot: Batch, columns: set[str]) -> bool:
    """Whether it says of every entity that it covers all that its source can: of those of its bad rows it does not."""
    return snapshot.retires and not snapshot.bad_rows and columns <= set(snapshot.columns)


def _latest_settling(candidates: Iterable[Batch], snapshot: Batch) -> datetime | None:
    times = [_at(candidate) for candidate in candidates if candidate.covers(snapshot)]
    return max(times, default=None)


def _at(batch: Batch) -> datetime:
    return to_utc(batch.position[0])


def _span(batch: Batch) -> tuple[datetime, datetime]:
    """The earliest and the latest time that the batch speaks of."""
    times = [to_utc(t) for t in (batch.at, batch.earliest, batch.latest) if t is not None]
    if not times:
        return (datetime.max.replace(tzinfo=to_utc(datetime.max).tzinfo), to_utc(datetime.min))
    return (min(times), max(times))


def _no_probe() -> dict[str, Column]:
    return {"_probe_retires": F.lit(None).cast("boolean"), "_probe_columns": F.lit(None).cast("array<string>")}


def _probes(
    spark: SparkSession, known: DataFrame, asked: Sequence[tuple[Batch, datetime | None]], dimension: Dimension
) -> DataFrame:
    """A row for each (key, stored snapshot) that a change may reach and of which nothing is stored."""
    frame, places = _snapshot_frame(spark, [b for b, _ in asked], [bound for _, bound in asked])
    changed = F.when(F.col(ORIGIN) != "stored", F.col(EFFECTIVE_AT))
    keys = known.groupBy(SOURCE, *[col(n) for n in dimension.key_names]).agg(
        F.collect_set(BATCH).alias("_spoken"), F.collect_set(changed).alias("_changed_at")
    )
    reached = F.exists(
        "_changed_at", lambda t: (t <= F.col("_at")) & (F.col("_bound").isNull() | (t >= F.col("_bound")))
    )
    covered = keys.withColumn(_PLACE, places).join(frame, [SOURCE, _PLACE])
    rows = covered.where(reached & ~F.array_contains("_spoken", F.col(BATCH)))
    statements = _statement_of(rows, "probe", F.lit("no_op"), dimension)
    return statements.withColumns({"_probe_retires": F.col("_retires"), "_probe_columns": F.col("_columns")}).select(
        *known.columns, "_probe_retires", "_probe_columns"
    )


def _resolved(known: DataFrame, intake: Intake, dimension: Dimension) -> DataFrame:
    """Let each probe say what its snapshot said, read off the log as it was before this run."""
    state = _before(known, F.col(ORIGIN).isin("stored", "removed"), intake, dimension)
    probe = F.col(ORIGIN) == "probe"
    said = F.when(F.col(ASSERTED_BEFORE), "upsert").when(F.col("_probe_retires"), "delete").otherwise("no_op")
    resolved = {KIND: F.when(probe, said).otherwise(F.col(KIND))}
    for name in attribute_types(dimension):
        restated = probe & F.col(ASSERTED_BEFORE) & F.array_contains("_probe_columns", name)
        resolved[name] = F.when(restated, col(_before_name(name))).otherwise(col(name))
    before = [_before_name(name) for name in attribute_types(dimension)]
    return state.withColumns(resolved).drop(
        *before, EXISTED_BEFORE, ASSERTED_BEFORE, "_probe_retires", "_probe_columns"
    )
