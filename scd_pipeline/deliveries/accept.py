"""Deliveries become batches: read, told apart from retries, and stopped by what can be seen in themselves.

What stops a batch here: no time (S4), a snapshot at the open end (S29), too many bad rows (S26), changes without an
order (S5), other content under a known revision (S34). The retire guard (S27) needs what came before and is asked
later, batch by batch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StringType

from scd_pipeline.columns import BATCH, KIND
from scd_pipeline.declaration import Dimension, RetireGuard, Snapshot
from scd_pipeline.deliveries.batch_summary import summarize_batches
from scd_pipeline.deliveries.casts import Rules, cast
from scd_pipeline.deliveries.delivery import Delivery
from scd_pipeline.deliveries.read import BatchResult, Entry, read_all
from scd_pipeline.deliveries.row_columns import HASH, KEY_READABLE, ROW_ORDER
from scd_pipeline.deliveries.ties import drop_deleted_ties, find_conflicts, merge_ties, merge_ties_by_last_row
from scd_pipeline.errors import BatchRejected, SourceDataError
from scd_pipeline.expressions import col, key_text
from scd_pipeline.frames import local_frame, union_all
from scd_pipeline.history.batch import (
    Batch,
    DeliveryKey,
    current_revisions,
    next_revision,
    overlap_groups,
    rank,
    revision_token,
)
from scd_pipeline.instants import from_micros_or_none

_SHOWN_KEYS = 10
_OF_THE_FILE = (HASH, KEY_READABLE, ROW_ORDER)


@dataclass(frozen=True, slots=True)
class Taken:
    """What a run takes in. `rows` are the conformed rows of everything read; `results` are in order of delivery.

    `overlap_groups` tells of each snapshot's delivery which others it concerns; `decide` says what is taken in once
    some batches, given with what stops them, are left out.
    """

    old: tuple[Batch, ...]
    entries: tuple[Entry, ...]
    recorded: tuple[Entry, ...]
    results: tuple[BatchResult, ...]
    rows: DataFrame
    dimension: Dimension
    counts: Mapping[str, Mapping[str, int]]
    stops: Mapping[str, BatchRejected]
    overlap_groups: Mapping[DeliveryKey, object]
    decide: Callable[[Mapping[str, BatchRejected]], _Decided]

    @property
    def accepted(self) -> tuple[Batch, ...]:
        """Batches whose statements come in."""
        return tuple(entry.batch for entry in self.entries)

    @property
    def removed(self) -> tuple[Batch, ...]:
        """Batches that stood and are replaced, or withdrawn, by those that come in."""
        stands = current_revisions(list(self.old))
        replaced = [stands.get(batch.delivery_key) for batch in self.accepted]
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
        rest, parts = F.lit(True), []
        for rule, ids in _by_tie_rule((entry.batch.id, entry) for entry in self.entries).items():
            has_ties = F.col(BATCH).isin(ids) & (F.col(KIND) != "bad")
            parts.append(_WITHOUT_TIES[rule](mine.where(has_ties), self.dimension))
            rest = rest & ~has_ties
        return union_all([mine.where(rest), *parts]).drop(*_OF_THE_FILE)

    def unreadable(self) -> DataFrame:
        """Bad rows whose key cannot be read."""
        mine = self._mine()
        rows = self.rows.limit(0) if mine is None else mine.where(~F.col(KEY_READABLE))
        return rows.drop(*_OF_THE_FILE)

    def _mine(self) -> DataFrame | None:
        ids = [batch.id for batch in self.accepted if not batch.withdrawn]
        return self.rows.where(F.col(BATCH).isin(ids)) if ids else None

    def with_counts(self, counts: Mapping[str, Mapping[str, int]]) -> Taken:
        """The same with what each batch changes, as told by its kept statements."""
        entries = tuple(replace(e, batch=_counted(e.batch, counts.get(e.batch.id, {}))) for e in self.entries)
        told = {e.batch.id: _with_versions(e.result("accepted"), counts.get(e.batch.id, {})) for e in entries}
        results = tuple(told.get(r.batch_id, r) if r.outcome == "accepted" else r for r in self.results)
        return replace(self, entries=entries, results=results, counts=counts)

    def guarded(self, dimension: Dimension) -> list[BatchRejected]:
        """Snapshots that retire too large a share: the first by position of those that concern each other (S27).

        What the later ones retire depends on whether it is taken in.
        """
        snapshots = [e for e in self.entries if e.batch.is_snapshot and e.batch.retires and not e.batch.withdrawn]
        found: dict[object, BatchRejected] = {}
        for entry in sorted(snapshots, key=lambda e: e.batch.position):
            group = self.overlap_groups[entry.batch.delivery_key]
            stop = self._guard(entry, dimension.source(entry.batch.source).retire_guard)
            if stop and group not in found:
                found[group] = stop
        return list(found.values())

    def _guard(self, entry: Entry, guard: RetireGuard) -> BatchRejected | None:
        counts = self.counts.get(entry.batch.id, {})
        retired = counts.get("retired", 0)
        in_plain = entry.batch.entities - counts.get("unasserted", 0)
        present = counts.get("asserted_present", 0) if entry.batch.row_times else in_plain
        existing = retired + present + counts.get("asserted_bad", 0)
        if "retire_guard" in entry.delivery.allow or not guard.rejects(retired, existing):
            return None
        problem = (
            f"it would retire {retired} of {existing} entities that its source had asserted to exist; "
            f"at most {guard.share:.0%} may be retired"
        )
        return BatchRejected(entry.batch.id, "retire_guard", problem)

    def without(self, rejected: Sequence[BatchRejected]) -> Taken:
        """The same without the batches that were stopped; lower revisions that they displaced stand again (S34)."""
        stops = {**self.stops, **{stop.batch: stop for stop in rejected}}
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

    Errors: SourceDataError for a malformed one, as a frame without a time is.
    """
    entries = _numbered([_entry(delivery, dimension, run_id) for delivery in deliveries])
    scoped = _encoded_scopes(spark, dimension, entries)
    results = {**_ill_timed(scoped, dimension), **_known(scoped, old)}
    scoped = _numbered(_above_current(scoped, old))
    rows, read = read_all(spark, scoped, results, dimension)
    if read:
        progress(f"reading {len(read)} deliveries")
    measured = _measured(rows, read, dimension) if read else []
    measured += [(number, entry) for number, entry in enumerate(scoped) if entry.batch.withdrawn]
    unordered = _unordered(rows, measured, dimension)

    def decide(stops: Mapping[str, BatchRejected]) -> _Decided:
        return _decided(measured, results, old, unordered, stops, dimension)

    made = decide({})
    given = [entry.batch for _, entry in measured if entry.batch.is_snapshot]
    delivery_keys = {batch.delivery_key for batch in given}
    apart = overlap_groups([*given, *(batch for batch in old if batch.delivery_key in delivery_keys)])
    return Taken(tuple(old), made.entries, made.recorded, made.results, rows, dimension, {}, {}, apart, decide)


def _ill_timed(entries: Sequence[Entry], dimension: Dimension) -> dict[int, BatchResult]:
    """By its number what becomes of each delivery that could not be taken at any time: it is stopped."""
    stops = {number: _without_a_time(entry, dimension) for number, entry in enumerate(entries)}
    return {number: entries[number].result("rejected", stop) for number, stop in stops.items() if stop is not None}


def _without_a_time(entry: Entry, dimension: Dimension) -> BatchRejected | None:
    """What stops a delivery that was found and has no time (S4), or a snapshot at or after the open end (S29).

    Rows of such a time are bad rows; but whom such a snapshot leaves out would be gone by then.
    """
    if wrong := entry.delivery.lacks_time(dimension):
        return BatchRejected(entry.batch.id, "no time", wrong)
    at = entry.batch.at
    if at is None or at < dimension.open_end_time or not entry.batch.is_snapshot or entry.batch.withdrawn:
        return None
    wrong = f"its time {at:%Y-%m-%d %H:%M:%S} is not before the open end {dimension.open_end}: nobody can be gone then"
    return BatchRejected(entry.batch.id, "open end", wrong)


def _known(entries: Sequence[Entry], old: Sequence[Batch]) -> dict[int, BatchResult]:
    """By its number the result of each delivery that need not be read: it was, or it is older than its withdrawal."""
    by_id, current = {batch.id: batch for batch in old}, current_revisions(list(old))
    found = {}
    for number, entry in enumerate(entries):
        stands = current.get(entry.batch.delivery_key)
        if stands is None or entry.batch.withdrawn:
            continue
        known = by_id.get(entry.batch.id) if entry.delivery.sealed else None
        if known is not None:
            same = known.records_batch_id == stands.records_batch_id
            found[number] = entry.result("unchanged" if same else "superseded")
        elif entry.delivery.is_latest and stands.withdrawn and _is_lower(entry.batch, stands):
            found[number] = entry.result("superseded", _lower(entry, stands))
    return found


def _is_lower(batch: Batch, than: Batch) -> bool:
    return rank(batch.revision) < rank(than.revision)


def _above_current(entries: Sequence[Entry], old: Sequence[Batch]) -> list[Entry]:
    """The entries; one of what a source has only the latest content of gets a revision above the current one (S34).

    Its own token may be lower: after a move to a host whose clock is behind. Only if its content differs from the
    current revision's is that revision used; else its own token is recorded, so that it is not read again.
    """
    current = current_revisions(list(old))
    changed = []
    for entry in entries:
        stands = current.get(entry.batch.delivery_key)
        if entry.delivery.is_latest and stands is not None and _is_lower(entry.batch, stands):
            entry = replace(entry, batch=replace(entry.batch, revision=next_revision(stands.revision)))
        changed.append(entry)
    return changed


def _numbered(entries: Sequence[Entry]) -> list[Entry]:
    """Tell the entries of one and the same batch apart."""
    times: dict[str, int] = {}
    numbered = []
    for entry in entries:
        time = times[entry.batch.id] = times.get(entry.batch.id, -1) + 1
        numbered.append(replace(entry, time=time))
    return numbered


def _entry(delivery: Delivery, dimension: Dimension, run_id: str) -> Entry:
    batch = replace(delivery.batch(dimension), run_id=run_id)
    return Entry(delivery, batch, delivery.channel_of(dimension))


def _encoded_scopes(spark: SparkSession, dimension: Dimension, entries: Sequence[Entry]) -> list[Entry]:
    """Write declared scope values as the key columns' types write them, so that they compare with keys."""
    found = list(entries)
    for names in sorted({entry.batch.scope_columns for entry in entries if entry.delivery.scope is not None}):
        asked = [n for n, e in enumerate(entries) if e.delivery.scope is not None and e.batch.scope_columns == names]
        texts = _scope_texts(spark, dimension, names, [entries[number] for number in asked])
        for number, values in zip(asked, texts, strict=True):
            found[number] = replace(found[number], batch=replace(found[number].batch, scope=tuple(sorted(values))))
    return found


def _scope_texts(
    spark: SparkSession, dimension: Dimension, names: Sequence[str], entries: Sequence[Entry]
) -> list[set[str]]:
    """For each entry the values of its scope as text; one job for all of them.

    Errors: SourceDataError for a value that its key column cannot have.
    """
    types = {key.name: key.data_type for key in dimension.business_key if key.name in names}
    given = {name: f"_given_{number}" for number, name in enumerate(names)}
    rows = [
        (number, *(None if value is None else str(value) for value in values))
        for number, entry in enumerate(entries)
        for values in entry.delivery.scope or ()
    ]
    frame = local_frame(spark, rows, ", ".join(["_number int", *(f"{text} string" for text in given.values())]))
    typed = frame.withColumns(
        {name: cast(F.col(text), StringType(), types[name], Rules()).value for name, text in given.items()}
    )
    misfits = [
        F.when(F.col(text).isNotNull() & col(name).isNull(), F.array(F.lit(name), F.col(text)))
        for name, text in given.items()
    ]
    found: list[set[str]] = [set() for _ in entries]
    for number, text, misfit in typed.select("_number", key_text(list(given)), F.coalesce(*misfits)).collect():
        if misfit is not None:
            name, value = misfit
            raise SourceDataError(
                f"{dimension.name}: {value!r} in the scope of {entries[number].batch.id} is no {types[name].ddl()}; "
                f"expected a value that the key column {name} can have; nothing was written; correct the scope"
            )
        found[number].add(text)
    return found


def _measured(rows: DataFrame, read: Sequence[tuple[int, Entry]], dimension: Dimension) -> list[tuple[int, Entry]]:
    """The entries with the counts, the content and the times of their batches; one job for all of them."""
    scopes = {
        f"{e.batch.source}/{e.batch.channel}": e.batch.scope_columns
        for _, e in read
        if e.batch.scope_columns and e.batch.scope is None
    }
    micros = [F.unix_micros(name).alias(name) for name in ("earliest", "latest")]
    in_file_order = sorted({f"{e.batch.source}/{e.batch.channel}" for _, e in read if e.channel.ties == "last_row"})
    counted = summarize_batches(rows, scopes, in_file_order, dimension)
    plain = [c for c in counted.columns if c not in ("earliest", "latest")]
    found = {row[BATCH]: row for row in counted.select(*plain, *micros).collect()}
    if None in found:
        raise SourceDataError(
            f"{dimension.name}: {found[None]['rows']} rows lie in files that no delivery names; expected the paths "
            f"that were given; nothing was written; give each file by a plain path"
        )
    numbers = {delivery_key: number for number, delivery_key in enumerate(scopes)}
    return [(number, _with_content(entry, found.get(entry.mark), numbers, dimension)) for number, entry in read]


def _with_content(entry: Entry, row: Row | None, scopes: Mapping[str, int], dimension: Dimension) -> Entry:
    batch, told = entry.batch, (row.asDict() if row is not None else {})
    scope = batch.scope
    if batch.scope_columns and scope is None:
        values = told.get(f"scope_{scopes[f'{batch.source}/{batch.channel}']}") or []
        scope = tuple(sorted(set(values)))
    decides = batch.source == dimension.existence_source.name
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
        earliest=from_micros_or_none(told.get("earliest")),
        latest=from_micros_or_none(told.get("latest")),
    )
    return replace(
        entry, batch=filled, repeated=int(told.get("repeated") or 0), bad_reason=str(told.get("bad_reason") or "")
    )


def _by_tie_rule(entries: Iterable[tuple[str, Entry]]) -> dict[str, list[str]]:
    """The ids of batches in which a key comes twice at one position, by the rule that decides between its rows (S5)."""
    ids: dict[str, list[str]] = {}
    for batch_id, entry in entries:
        if entry.repeated:
            ids.setdefault(entry.channel.ties, []).append(batch_id)
    return ids


def _collapse_without_deleted(rows: DataFrame, dimension: Dimension) -> DataFrame:
    return merge_ties(drop_deleted_ties(rows, dimension), dimension)


_WITHOUT_TIES = {"reject": merge_ties, "delete_wins": _collapse_without_deleted, "last_row": merge_ties_by_last_row}


def _unordered(rows: DataFrame, measured: Sequence[tuple[int, Entry]], dimension: Dimension) -> dict[str, str]:
    """Of batches in which a key comes twice at one time: the keys whose values nothing orders, as text (S5)."""
    by_rule = _by_tie_rule((entry.mark, entry) for _, entry in measured)
    candidates = [rows.where(F.col(BATCH).isin(ids)) for rule, ids in by_rule.items() if rule == "reject"]
    if "delete_wins" in by_rule:
        good = rows.where(F.col(BATCH).isin(by_rule["delete_wins"]) & (F.col(KIND) != "bad"))
        candidates.append(drop_deleted_ties(good, dimension))
    if not candidates:
        return {}
    found: dict[str, list[str]] = {}
    for row in find_conflicts(union_all(candidates), dimension, _SHOWN_KEYS + 1).collect():
        found.setdefault(row[BATCH], []).append(row["key"])
    return {
        batch: "; ".join(sorted(keys)[:_SHOWN_KEYS]) + (" and more" if len(keys) > _SHOWN_KEYS else "")
        for batch, keys in found.items()
    }


@dataclass(frozen=True, slots=True)
class _Decided:
    """What comes in, which higher revisions repeat what stands, and what became of each delivery, in their order."""

    entries: tuple[Entry, ...]
    recorded: tuple[Entry, ...]
    results: tuple[BatchResult, ...]


_Lineages = dict[DeliveryKey, Entry]


def _decided(
    measured: Sequence[tuple[int, Entry]],
    known: Mapping[int, BatchResult],
    old: Sequence[Batch],
    unordered: Mapping[str, str],
    stops: Mapping[str, BatchRejected],
    dimension: Dimension,
) -> _Decided:
    """What becomes of all deliveries; `known` has the results of those that were not read.

    They are asked by rising revision: a higher one that is not stopped takes a lower one's place (S34).
    """
    results, numbers = dict(known), {entry.mark: number for number, entry in measured}
    stood, coming, recorded = current_revisions(list(old)), _Lineages(), _Lineages()
    ids = {batch.id for batch in old}
    for number, entry in sorted(measured, key=lambda pair: rank(pair[1].batch.revision)):
        delivery_key = entry.batch.delivery_key
        displaced = coming.get(delivery_key)
        entered = [e.batch for e in (recorded.get(delivery_key), displaced) if e is not None]
        stands = current_revisions([*([stood[delivery_key]] if delivery_key in stood else []), *entered]).get(
            delivery_key
        )
        stop = stops.get(entry.batch.id) or _stops(entry, unordered.get(entry.mark, ""), dimension)
        results[number] = _decide(entry, stands, stop, old)
        if results[number].outcome == "accepted":
            coming[delivery_key] = entry
            recorded.pop(delivery_key, None)
            if displaced is not None:
                results[numbers[displaced.mark]] = displaced.result("superseded")
        elif stands is not None and _repeats(entry.batch, stands, results[number]):
            again = replace(
                stands, revision=revision_token(entry.delivery.revision), content_of=stands.records_batch_id
            )
            if again.id not in ids:
                recorded[delivery_key] = replace(entry, batch=again)
    ordered = tuple(results[number] for number in sorted(results))
    return _Decided(tuple(coming.values()), tuple(recorded.values()), ordered)


def _repeats(batch: Batch, stands: Batch, result: BatchResult) -> bool:
    """Whether it is a higher revision of the same content: the log remembers it, as the one that counts."""
    return result.outcome == "unchanged" and rank(batch.revision) > rank(stands.revision)


def _decide(entry: Entry, stands: Batch | None, stop: BatchRejected | None, old: Sequence[Batch]) -> BatchResult:
    """What becomes of a delivery beside the edition that stands, if one does; `stop` is what would stop it."""
    batch = entry.batch
    if stands is not None and _is_lower(batch, stands):
        known = [stands, *(other for other in old if other.id == batch.id)]
        is_known = any(_content(batch) == _content(other) for other in known)
        return entry.result("superseded", None if is_known else _lower(entry, stands))
    same = stands is not None and _content(batch) in _contents(entry, stands, old)
    if stands is not None and rank(batch.revision) == rank(stands.revision):
        return entry.result("unchanged") if same else entry.result("rejected", _other_content(entry))
    if stop is not None:
        return entry.result("rejected", stop)
    if entry.time:
        return entry.result("rejected", _other_content(entry))
    return entry.result("unchanged" if same else "accepted")


def _contents(entry: Entry, stands: Batch, old: Sequence[Batch]) -> list[tuple[object, ...]]:
    """What the entry must contain to change nothing. A file that was withdrawn, and only touched since, stays so."""
    withdrawn = entry.delivery.is_latest and stands.withdrawn
    before = (
        current_revisions([b for b in old if b.delivery_key == stands.delivery_key and not b.withdrawn])
        if withdrawn
        else {}
    )
    return [_content(stands), *(_content(batch) for batch in before.values())]


def _lower(entry: Entry, stands: Batch) -> BatchRejected:
    how = "withdrew the delivery" if stands.withdrawn else "has other content and is current"
    wrong = f"revision {entry.batch.revision} is not loaded, as revision {stands.revision}, which is higher, {how}"
    return BatchRejected(entry.batch.id, "lower revision", wrong)


def _content(batch: Batch) -> tuple[object, ...]:
    if batch.withdrawn:
        return ("withdrawn",)
    return (batch.fingerprint, batch.at, batch.scope)


def _other_content(entry: Entry) -> BatchRejected:
    wrong = f"revision {entry.batch.revision} of this delivery was accepted with other content, time or scope"
    return BatchRejected(entry.batch.id, "revision", wrong)


def _stops(entry: Entry, unordered: str, dimension: Dimension) -> BatchRejected | None:
    batch = entry.batch
    if unordered:
        wrong = f"nothing orders different changes of {unordered}"
        return BatchRejected(batch.id, "unordered changes", wrong)
    limit = dimension.source(batch.source).bad_row_limit
    if batch.rows and batch.bad_rows > limit * batch.rows and "bad_rows" not in entry.delivery.allow:
        wrong = f"{batch.bad_rows} of {batch.rows} rows cannot be taken; at most {limit:.0%} may be bad"
        wrong += f"; e.g. {entry.bad_reason}"
        return BatchRejected(batch.id, "bad_rows", wrong)
    return None
