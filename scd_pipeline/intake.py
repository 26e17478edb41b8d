"""Deliveries become batches: read, told apart from retries, and stopped by what can be seen in themselves.

What stops a batch here: a missing column (S20), too many bad rows (S26), changes without an order (S5), other content
under a known revision (S34). The retire guard (S27) needs what came before and is asked later, batch by batch.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow.parquet
from pyspark.errors import AnalysisException, IllegalArgumentException
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F

from scd_pipeline.batch import Batch, rank, standing
from scd_pipeline.columns import BATCH, KIND, attribute_types, col, key_text
from scd_pipeline.deliveries import Delivery, as_frame, epoch, marked, read_delta, read_path
from scd_pipeline.errors import BatchStopped, SourceDataError
from scd_pipeline.frames import no_rows, settled, small_frame, united
from scd_pipeline.history.statements import (
    HASH,
    KEY_READABLE,
    STATEMENT_TYPES,
    Reading,
    batch_counts,
    collapse,
    conflicts,
    conform,
    content_hash,
    reading,
)
from scd_pipeline.spec import Dimension, Feed, Snapshot

_UNKNOWN_COLUMN = ("UNRESOLVED_COLUMN.WITH_SUGGESTION", "UNRESOLVED_COLUMN.WITHOUT_SUGGESTION", "FIELD_NOT_FOUND")
_OTHER_TYPE = ("other type", "a column does not fit the declaration")
_SHOWN_KEYS = 10
GUARDED_FROM = 20
"""The retire guard is asked where at least so many entities are alive (S27)."""


@dataclass(frozen=True, slots=True)
class BatchResult:
    """What became of one delivery: accepted, unchanged (a retry), superseded (a higher revision stands) or stopped.

    Of an accepted one: rows read and put aside; entities new, changed and closed, and versions opened and closed, each
    as its own source had stated them just before.
    """

    batch_id: str
    source: str
    delivery: str
    outcome: str
    rows: int = 0
    bad_rows: int = 0
    new: int = 0
    changed: int = 0
    closed: int = 0
    versions_opened: int = 0
    versions_closed: int = 0
    undeclared: tuple[str, ...] = ()
    rule: str = ""
    error: str = ""
    remedy: str = ""

    def __str__(self) -> str:
        text = f"{self.batch_id}: {self.outcome}"
        if self.outcome == "accepted":
            text += f", {self.rows} rows: {self.new} new, {self.changed} changed, {self.closed} closed"
            text += f", {self.bad_rows} to the quarantine" if self.bad_rows else ""
        if self.undeclared:
            text += f"; columns that nobody declared: {', '.join(self.undeclared)}"
        return f"{text} ({self.rule}): {self.error}; {self.remedy}" if self.rule else text


@dataclass(frozen=True, slots=True)
class _Entry:
    """A delivery on its way in."""

    delivery: Delivery
    batch: Batch
    channel: Snapshot | Feed
    reading: Reading | None = None
    repeated: int = 0
    time: int = 0

    @property
    def mark(self) -> str:
        """What tells its rows from those of other entries: the batch's id, unless one run is given it again."""
        return f"{self.batch.id}#{self.time}" if self.time else self.batch.id

    def result(self, outcome: str, stop: BatchStopped | None = None) -> BatchResult:
        b = self.batch
        undeclared = self.reading.undeclared if self.reading else ()
        told = BatchResult(
            b.id,
            b.source,
            b.delivery,
            outcome,
            b.rows,
            b.bad_rows,
            b.new,
            b.changed,
            b.closed,
            undeclared=undeclared,
        )
        if stop is None:
            return told
        return replace(told, rule=stop.rule, error=stop.wrong, remedy=stop.remedy)


@dataclass(frozen=True, slots=True)
class Taken:
    """What a run takes in. `rows` are the conformed rows of everything read; `results` are in order of delivery.

    `decide` says what is taken in once some batches, given with what stops them, are left out.
    """

    old: tuple[Batch, ...]
    entries: tuple[_Entry, ...]
    recorded: tuple[_Entry, ...]
    results: tuple[BatchResult, ...]
    rows: DataFrame
    dimension: Dimension
    counts: Mapping[str, Mapping[str, int]]
    stops: Mapping[str, BatchStopped]
    decide: Callable[[Mapping[str, BatchStopped]], _Decided]

    @property
    def accepted(self) -> tuple[Batch, ...]:
        """Batches whose statements come in."""
        return tuple(entry.batch for entry in self.entries)

    @property
    def removed(self) -> tuple[Batch, ...]:
        """Batches that stood and are replaced, or withdrawn, by those that come in."""
        stands = standing(list(self.old))
        replaced = [stands.get(batch.lineage) for batch in self.accepted]
        return tuple(batch for batch in replaced if batch is not None and not batch.withdrawn)

    @property
    def to_write(self) -> tuple[Batch, ...]:
        """Batch rows for the log: those that come in, and higher revisions that repeat what stands."""
        return tuple(entry.batch for entry in (*self.entries, *self.recorded))

    def size(self) -> int:
        """How many rows were read; an upper bound for the entities concerned but for those left out."""
        return sum(batch.rows for batch in self.accepted)

    def statements(self) -> DataFrame | None:
        """The statements of the batches that come in, bad rows with a readable key included; one per key and time."""
        mine = self._mine()
        if mine is None:
            return None
        mine = mine.where(F.col(KEY_READABLE))
        repeated = [entry.batch.id for entry in self.entries if entry.repeated]
        if not repeated:
            return mine.drop(HASH, KEY_READABLE)
        collapses = F.col(BATCH).isin(repeated) & (F.col(KIND) != "bad")
        single = collapse(mine.where(collapses), self.dimension)
        return mine.where(~collapses).unionByName(single).drop(HASH, KEY_READABLE)

    def unreadable(self) -> DataFrame:
        """Bad rows whose key cannot be read."""
        mine = self._mine()
        rows = self.rows.limit(0) if mine is None else mine.where(~F.col(KEY_READABLE))
        return rows.drop(HASH, KEY_READABLE)

    def _mine(self) -> DataFrame | None:
        ids = [batch.id for batch in self.accepted if not batch.withdrawn]
        return self.rows.where(F.col(BATCH).isin(ids)) if ids else None

    def with_counts(self, counts: Mapping[str, Mapping[str, int]]) -> Taken:
        """The same with what each batch changes, as told by its kept statements."""
        entries = tuple(replace(e, batch=_counted(e.batch, counts.get(e.batch.id, {}))) for e in self.entries)
        told = {e.batch.id: _with_versions(e.result("accepted"), counts.get(e.batch.id, {})) for e in entries}
        results = tuple(told.get(r.batch_id, r) if r.outcome == "accepted" else r for r in self.results)
        return replace(self, entries=entries, results=results, counts=counts)

    def first_guarded(self, dimension: Dimension) -> BatchStopped | None:
        """By position the first snapshot that retires too large a share, if any (S27)."""
        snapshots = [e for e in self.entries if e.batch.is_snapshot and e.batch.retires and not e.batch.withdrawn]
        for entry in sorted(snapshots, key=lambda e: e.batch.position):
            if stop := self._guard(entry, dimension.source(entry.batch.source).retire_guard):
                return stop
        return None

    def _guard(self, entry: _Entry, share: float) -> BatchStopped | None:
        counts = self.counts.get(entry.batch.id, {})
        retired = counts.get("retired", 0)
        known = entry.batch.entities - counts.get("new", 0)
        there = counts.get("present_alive", 0) if entry.batch.row_times else known
        alive = retired + there + counts.get("bad_alive", 0)
        if alive < GUARDED_FROM or retired <= share * alive or "retire guard" in entry.delivery.allow:
            return None
        wrong = (
            f"it would retire {retired} of {alive} entities that its source had stated alive; at most {share:.0%} may"
        )
        return BatchStopped(entry.batch.id, "retire guard", wrong)

    def without(self, stop: BatchStopped) -> Taken:
        """The same without the batch that was stopped; a lower revision that it had displaced stands again (S34)."""
        stops = {**self.stops, stop.batch: stop}
        made = self.decide(stops)
        return replace(self, entries=made.entries, recorded=made.recorded, results=made.results, stops=stops)


def _with_versions(result: BatchResult, counts: Mapping[str, int]) -> BatchResult:
    again = counts.get("reopened", 0)
    return replace(result, versions_opened=result.new + again, versions_closed=result.closed + again)


def _counted(batch: Batch, counts: Mapping[str, int]) -> Batch:
    new, changed, closed = (counts.get(name, 0) for name in ("new", "changed", "closed"))
    return replace(batch, new=new, changed=changed, closed=closed)


def take(
    spark: SparkSession,
    dimension: Dimension,
    deliveries: Sequence[Delivery],
    old: Sequence[Batch],
    *,
    run_id: str,
    progress: Callable[[str], None],
) -> Taken:
    """Read the deliveries, and decide of each what becomes of it; a sealed one that is known is not read.

    Errors: SourceDataError for a malformed one.
    """
    entries = _numbered([_entry(delivery, dimension, run_id) for delivery in deliveries])
    scoped = _encoded_scopes(spark, dimension, entries)
    results = _known(scoped, old)
    groups = _groups(spark, scoped, results, dimension)
    rows, groups = _rows(spark, groups, results, dimension)
    read = [entry for group in groups for entry in group.entries]
    if read:
        progress(f"reading {len(read)} deliveries")
    measured = _measured(rows, read, dimension) if read else []
    measured += [(number, entry) for number, entry in enumerate(scoped) if entry.batch.withdrawn]
    unordered = _unordered(rows, measured, dimension)

    def decide(stops: Mapping[str, BatchStopped]) -> _Decided:
        return _decided(measured, results, old, unordered, stops, dimension)

    made = decide({})
    return Taken(tuple(old), made.entries, made.recorded, made.results, rows, dimension, {}, {}, decide)


def _known(entries: Sequence[_Entry], old: Sequence[Batch]) -> dict[int, BatchResult]:
    """By its number what becomes of each sealed delivery that was accepted before: nothing."""
    ids, stands = {batch.id for batch in old}, standing(list(old))
    found = {}
    for number, entry in enumerate(entries):
        if entry.delivery.sealed and entry.batch.id in ids:
            below = rank(entry.batch.revision) < rank(stands[entry.batch.lineage].revision)
            found[number] = entry.result("superseded" if below else "unchanged")
    return found


def _numbered(entries: Sequence[_Entry]) -> list[_Entry]:
    """Tell the entries of one and the same batch apart."""
    times: dict[str, int] = {}
    numbered = []
    for entry in entries:
        time = times[entry.batch.id] = times.get(entry.batch.id, -1) + 1
        numbered.append(replace(entry, time=time))
    return numbered


def _entry(delivery: Delivery, dimension: Dimension, run_id: str) -> _Entry:
    batch = replace(delivery.batch(dimension), run_id=run_id)
    return _Entry(delivery, batch, delivery.channel_of(dimension))


def _encoded_scopes(spark: SparkSession, dimension: Dimension, entries: Sequence[_Entry]) -> list[_Entry]:
    """Write declared scope values as the key columns' types write them, so that they compare with keys."""
    asked = [(n, e) for n, e in enumerate(entries) if e.delivery.scope is not None]
    types = {key.name: key.type for key in dimension.business_key}
    found = list(entries)
    for number, entry in asked:
        names = entry.batch.scope_columns
        rows = [tuple(None if v is None else str(v) for v in values) for values in entry.delivery.scope or ()]
        texts: list[str] = []
        if rows:
            frame = small_frame(spark, rows, ", ".join(f"`{name}` string" for name in names))
            typed = frame.select(*[col(name).cast(types[name]).alias(name) for name in names])
            texts = [row[0] for row in typed.select(key_text(names)).collect()]
        found[number] = replace(entry, batch=replace(entry.batch, scope=tuple(sorted(set(texts)))))
    return found


@dataclass(frozen=True, slots=True)
class _Group:
    """Deliveries of one channel with the same columns, read as one frame."""

    frame: DataFrame
    entries: list[tuple[int, _Entry]]


def _groups(
    spark: SparkSession, entries: Sequence[_Entry], results: dict[int, BatchResult], dimension: Dimension
) -> list[_Group]:
    """Read the deliveries; one that lacks a column is stopped here, in `results` under its number."""
    together: dict[tuple[str, ...], list[tuple[int, _Entry]]] = {}
    for number, entry in enumerate(entries):
        if entry.batch.withdrawn or number in results:
            continue
        try:
            together.setdefault(_signature(spark, number, entry), []).append((number, entry))
        except _Unfit as unfit:
            results[number] = _stopped(entry, unfit)
    groups = []
    for members in together.values():
        try:
            groups.append(_group(spark, members, dimension))
        except _Unfit as unfit:
            results.update({number: _stopped(entry, unfit) for number, entry in members})
    return groups


def _stopped(entry: _Entry, unfit: _Unfit) -> BatchResult:
    return entry.result("stopped", BatchStopped(entry.batch.id, unfit.rule, str(unfit)))


def _rows(
    spark: SparkSession, groups: Sequence[_Group], results: dict[int, BatchResult], dimension: Dimension
) -> tuple[DataFrame, list[_Group]]:
    """The conformed rows of the groups, read once, and the groups whose columns can be cast at all.

    Spark may refuse a cast, or an expression, only here; then each group is asked for itself.
    """
    if not groups:
        return _no_rows(spark, dimension), []
    try:
        return settled(united([group.frame for group in groups])), list(groups)
    except AnalysisException:
        fit = [group for group in groups if _fits(group, results)]
        if len(fit) == len(groups):
            raise
        return _rows(spark, fit, results, dimension)


def _fits(group: _Group, results: dict[int, BatchResult]) -> bool:
    try:
        with _unfit(*_OTHER_TYPE):
            return bool(group.frame.schema)
    except _Unfit as unfit:
        results.update({number: _stopped(entry, unfit) for number, entry in group.entries})
        return False


class _Unfit(Exception):
    """Deliveries that cannot be read as they are declared, by which rule."""

    def __init__(self, rule: str, wrong: str) -> None:
        self.rule = rule
        super().__init__(wrong)


def _group(spark: SparkSession, members: list[tuple[int, _Entry]], dimension: Dimension) -> _Group:
    """Deliveries of the same columns as one frame.  Errors: _Unfit."""
    first = members[0][1]
    source = dimension.source(first.batch.source)
    with _unfit("unreadable", "it cannot be read"):
        frame, by_file = _frame(spark, first, [entry for _, entry in members])
        fields = [field for field in frame.schema.fields if field.name != "_scd_file"]
    names = [field.name for field in fields]
    read = reading(names, source, first.channel, dimension)
    if read.missing:
        raise _Unfit("missing column", f"it lacks {', '.join(read.missing)}; it has {', '.join(names)}")
    marks = [(entry.delivery, entry.batch, entry.mark) for _, entry in members]
    hashed = content_hash(marked(frame, marks, F.col("_scd_file") if by_file else None).drop("_scd_file"), fields)
    with _unfit(*_OTHER_TYPE):
        conformed = conform(hashed, fields, read, source, first.channel, dimension)
    entered = [(n, replace(e, reading=read, batch=replace(e.batch, columns=read.stated))) for n, e in members]
    return _Group(conformed, entered)


@contextmanager
def _unfit(rule: str, wrong: str) -> Iterator[None]:
    """What Spark or Arrow refuses as a fault of the deliveries; nothing but their schema has been looked at."""
    try:
        yield
    except (AnalysisException, IllegalArgumentException, pyarrow.ArrowException, OSError) as error:
        told = next((line for line in str(error).splitlines() if line), type(error).__name__)
        if isinstance(error, AnalysisException) and error.getCondition() in _UNKNOWN_COLUMN:
            named = f"an expression of the declaration names what it has not: {told}"
            raise _Unfit("missing column", named) from error
        raise _Unfit(rule, f"{wrong}: {told}") from error


def _signature(spark: SparkSession, number: int, entry: _Entry) -> tuple[str, ...]:
    """What deliveries have to share so that one frame can read them: channel, and the columns of their files.

    Rows are told apart by their files. So a file that is given twice is read twice, each time by a frame of its own,
    and so is a folder.
    """
    lineage = (entry.batch.source, entry.batch.channel, str(entry.time))
    alone = entry.delivery.frame is not None or entry.delivery.path is None or entry.channel.format == "delta"
    if alone or entry.delivery.partition is not None:
        return (*lineage, str(number))
    path = str(entry.delivery.path)
    if Path(path).is_dir():
        return (*lineage, str(number))
    with _unfit("unreadable", f"{path} cannot be read"):
        if entry.channel.format == "parquet" and Path(path).is_file():
            schema = pyarrow.parquet.read_schema(path)
            return (*lineage, json.dumps([[f.name, str(f.type)] for f in schema]))
        return (*lineage, read_path(spark, entry.channel, [path]).schema.json())


def _frame(spark: SparkSession, first: _Entry, members: Sequence[_Entry]) -> tuple[DataFrame, bool]:
    """The rows of the members, and whether a column `_scd_file` tells them apart."""
    delivery = first.delivery
    if delivery.frame is not None:
        return as_frame(spark, delivery.frame), False
    if delivery.path is None or first.channel.format == "delta" or delivery.partition is not None:
        return read_delta(spark, first.channel, delivery), False
    frame = read_path(spark, first.channel, [str(entry.delivery.path) for entry in members])
    if len(members) == 1:
        return frame, False
    return frame.select("*", F.col("_metadata.file_path").alias("_scd_file")), True


def _no_rows(spark: SparkSession, dimension: Dimension) -> DataFrame:
    """A frame of conformed rows without any."""
    types = {name: f"struct<v:{data_type.ddl()}>" for name, data_type in attribute_types(dimension).items()}
    keys = {key.name: key.type for key in dimension.business_key}
    columns = {**keys, **STATEMENT_TYPES, **types, HASH: "bigint", KEY_READABLE: "boolean"}
    return no_rows(spark, columns)


def _measured(rows: DataFrame, read: Sequence[tuple[int, _Entry]], dimension: Dimension) -> list[tuple[int, _Entry]]:
    """The entries with the counts, the content and the times of their batches; one job for all of them."""
    scopes = {
        f"{e.batch.source}/{e.batch.channel}": e.batch.scope_columns
        for _, e in read
        if e.batch.scope_columns and e.batch.scope is None
    }
    micros = [F.unix_micros(name).alias(name) for name in ("earliest", "latest")]
    counted = batch_counts(rows, scopes, dimension)
    plain = [c for c in counted.columns if c not in ("earliest", "latest")]
    found = {row[BATCH]: row for row in counted.select(*plain, *micros).collect()}
    if None in found:
        raise SourceDataError(
            f"{dimension.name}: {found[None]['rows']} rows lie in files that no delivery names; expected the paths "
            f"that were given; nothing was written; give each file by a plain path"
        )
    numbers = {lineage: number for number, lineage in enumerate(scopes)}
    return [(number, _with_content(entry, found.get(entry.mark), numbers, dimension)) for number, entry in read]


def _with_content(entry: _Entry, row: Row | None, scopes: Mapping[str, int], dimension: Dimension) -> _Entry:
    batch, told = entry.batch, (row.asDict() if row is not None else {})
    scope = batch.scope
    if batch.scope_columns and scope is None:
        values = told.get(f"scope_{scopes[f'{batch.source}/{batch.channel}']}") or []
        scope = tuple(sorted(set(values)))
    decides = batch.source == dimension.deciding_source.name
    lenient = isinstance(entry.channel, Snapshot) and entry.channel.unreadable_keys == "retire"
    retires = batch.is_snapshot and decides and (lenient or not told.get("unreadable"))
    filled = replace(
        batch,
        scope=scope,
        retires=retires,
        rows=int(told.get("rows") or 0),
        bad_rows=int(told.get("bad_rows") or 0),
        entities=int(told.get("entities") or 0),
        fingerprint=f"{told.get('rows') or 0}:{told.get('hash') or 0}",
        earliest=_moment(told.get("earliest")),
        latest=_moment(told.get("latest")),
    )
    return replace(entry, batch=filled, repeated=int(told.get("repeated") or 0))


def _moment(micros: int | None) -> Any:
    return None if micros is None else epoch() + timedelta(microseconds=micros)


def _unordered(rows: DataFrame, measured: Sequence[tuple[int, _Entry]], dimension: Dimension) -> dict[str, str]:
    """Of batches in which a key comes twice at one time: the keys whose values nothing orders, as text (S5)."""
    ids = [entry.mark for _, entry in measured if entry.repeated]
    if not ids:
        return {}
    found: dict[str, list[str]] = {}
    for row in conflicts(rows.where(F.col(BATCH).isin(ids)), dimension, _SHOWN_KEYS + 1).collect():
        found.setdefault(row[BATCH], []).append(row["key"])
    return {
        batch: "; ".join(sorted(keys)[:_SHOWN_KEYS]) + (" and more" if len(keys) > _SHOWN_KEYS else "")
        for batch, keys in found.items()
    }


@dataclass(frozen=True, slots=True)
class _Decided:
    """What comes in, which higher revisions repeat what stands, and what became of each delivery, in their order."""

    entries: tuple[_Entry, ...]
    recorded: tuple[_Entry, ...]
    results: tuple[BatchResult, ...]


_Lineages = dict[tuple[str, str, str], _Entry]


def _decided(
    measured: Sequence[tuple[int, _Entry]],
    known: Mapping[int, BatchResult],
    old: Sequence[Batch],
    unordered: Mapping[str, str],
    stops: Mapping[str, BatchStopped],
    dimension: Dimension,
) -> _Decided:
    """What becomes of all deliveries; `known` has the results of those that were not read.

    They are asked by rising revision: a higher one that is not stopped takes a lower one's place (S34).
    """
    results, numbers = dict(known), {entry.mark: number for number, entry in measured}
    stood, coming, recorded = standing(list(old)), _Lineages(), _Lineages()
    for number, entry in sorted(measured, key=lambda pair: rank(pair[1].batch.revision)):
        lineage = entry.batch.lineage
        displaced = coming.get(lineage)
        rival = recorded.get(lineage) or displaced
        stands = rival.batch if rival else stood.get(lineage)
        stop = stops.get(entry.batch.id) or _stops(entry, unordered.get(entry.mark, ""), dimension)
        results[number] = _decide(entry, stands, stop)
        if results[number].outcome == "accepted":
            coming[lineage] = entry
            recorded.pop(lineage, None)
            if displaced is not None:
                results[numbers[displaced.mark]] = displaced.result("superseded")
        elif stands is not None and _repeats(entry.batch, stands, results[number]):
            again = replace(stands, revision=entry.batch.revision, content_of=stands.statements_of)
            recorded[lineage] = replace(entry, batch=again)
    ordered = tuple(results[number] for number in sorted(results))
    return _Decided(tuple(coming.values()), tuple(recorded.values()), ordered)


def _repeats(batch: Batch, stands: Batch, result: BatchResult) -> bool:
    """Whether it is a higher revision of the same content: the log remembers it, for its position."""
    return result.outcome == "unchanged" and rank(batch.revision) > rank(stands.revision)


def _decide(entry: _Entry, stands: Batch | None, stop: BatchStopped | None) -> BatchResult:
    """What becomes of a delivery beside the edition that stands, if one does; `stop` is what would stop it."""
    batch = entry.batch
    if stands is not None and rank(batch.revision) < rank(stands.revision):
        return entry.result("superseded")
    same = stands is not None and _content(batch) == _content(stands)
    if stands is not None and rank(batch.revision) == rank(stands.revision):
        return entry.result("unchanged") if same else entry.result("stopped", _other_content(entry))
    if stop is not None:
        return entry.result("stopped", stop)
    if entry.time:
        return entry.result("stopped", _other_content(entry))
    return entry.result("unchanged" if same else "accepted")


def _content(batch: Batch) -> tuple[object, ...]:
    if batch.withdrawn:
        return ("withdrawn",)
    return (batch.fingerprint, batch.at, batch.scope)


def _other_content(entry: _Entry) -> BatchStopped:
    wrong = f"revision {entry.batch.revision} of this delivery was accepted with other content, time or scope"
    return BatchStopped(entry.batch.id, "revision", wrong)


def _stops(entry: _Entry, unordered: str, dimension: Dimension) -> BatchStopped | None:
    batch = entry.batch
    if unordered:
        wrong = f"nothing orders different changes of {unordered}"
        return BatchStopped(batch.id, "unordered changes", wrong)
    limit = dimension.source(batch.source).bad_row_limit
    if batch.rows and batch.bad_rows > limit * batch.rows and "bad rows" not in entry.delivery.allow:
        wrong = f"{batch.bad_rows} of {batch.rows} rows cannot be taken; at most {limit:.0%} may be bad"
        return BatchStopped(batch.id, "bad rows", wrong)
    return None
