"""The rules of history, stated naively in plain Python: the oracle that the engine is held against.

It knows no differences, no indexes and no increments: it takes all batches, stores every statement that they
make, and replays them entity by entity. It imports nothing of the package under test. One function, one rule;
the docstring names it. All times are naive UTC datetimes.
"""

from __future__ import annotations

import datetime as dt
import enum
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import groupby
from typing import Any

Key = tuple[Any, ...]
Position = tuple[dt.datetime, bool, int, str, str, str, str]

UNREADABLE_KEY = "unreadable key"
NO_TIME = "missing effective_at"
TOO_EARLY = "before the beginning"
TOO_LATE = "at or after the open end"
OUTSIDE_SCOPE = "outside scope"
UNORDERED = "UNORDERED_CHANGES"
RETIRE_GUARD = "RETIRE_GUARD"


class Unreadable(enum.Enum):
    """What stands for a delivered text that does not cast, in a key or in a value."""

    BAD = "bad"


BAD = Unreadable.BAD


@dataclass(frozen=True)
class Attr:
    """An attribute: its type (0, 1, 2, 3, 6), the one source that states it, and its former names."""

    name: str
    scd: int
    source: str
    previous: bool = False
    former_names: tuple[str, ...] = ()


@dataclass(frozen=True)
class Src:
    """A source: whether it decides existence, how its change feed is to be read (S30), and what decides ties (S5)."""

    name: str
    decides: bool
    feed_updates: str = "full"
    feed_nulls: str = "value"
    feed_ties: str = "reject"
    snapshot_ties: str = "reject"


@dataclass(frozen=True)
class Guard:
    """S27: the share of the existing entities that a snapshot may retire, and from how many entities on."""

    share: float = 0.25
    at_least: int = 20


@dataclass(frozen=True)
class Dim:
    """A dimension's declaration, as far as it bears on history."""

    name: str
    key: tuple[str, ...]
    attrs: tuple[Attr, ...]
    sources: tuple[Src, ...]
    open_end: dt.datetime = dt.datetime(9999, 12, 31, 23, 59, 59)
    begin: tuple[dt.datetime, dt.datetime] | None = None
    deleted_rows: str = "keep"
    deleted_at: bool = False
    retire_guard: Guard = Guard()

    def of_type(self, *types: int) -> tuple[Attr, ...]:
        return tuple(attr for attr in self.attrs if attr.scd in types)

    def source(self, name: str) -> Src:
        return next(source for source in self.sources if source.name == name)

    @property
    def has_windows(self) -> bool:
        return bool(self.of_type(2, 6))


@dataclass(frozen=True)
class Row:
    """A delivered row. A column that is missing in `values` is not stated; None in it is NULL.

    `key` holds None or BAD where the key cannot be read; `bad`: why a row with a readable key is not taken.
    """

    key: Key
    values: Mapping[str, Any] = field(default_factory=dict)
    kind: str = "upsert"
    effective_at: dt.datetime | None = None
    sequence: int | None = None
    reason: str | None = None
    bad: str | None = None

    @property
    def readable(self) -> bool:
        return not any(element is None or element is BAD for element in self.key)


@dataclass(frozen=True)
class Batch:
    """What a source delivers at once; `rows` are in the order of the file.

    `declared` names the attribute columns that it delivers, under the names that the declaration of then
    gave them (None: whatever its rows hold). `row_times`: the channel has a column with each row's own time.
    Without it the rows of a snapshot are stated at `at`, and those of a feed at `at` unless they hold a time
    nevertheless. `scope_values` None with `scope_columns`: the distinct ones in it. `world` is not read here.
    """

    source: str
    channel: str
    delivery: str
    revision: int
    at: dt.datetime
    rows: tuple[Row, ...] = ()
    row_times: bool = False
    scope_columns: tuple[str, ...] = ()
    scope_values: tuple[Key, ...] | None = None
    withdrawn: bool = False
    reason: str | None = None
    allow_guard: bool = False
    declared: tuple[str, ...] | None = None
    world: int = 0

    @property
    def run_id(self) -> str:
        """The delivery without its revision, so that an equal edition changes no row (S34)."""
        return f"{self.source}/{self.channel}/{self.delivery}"

    @property
    def id(self) -> str:
        return f"{self.run_id}/{self.revision}"

    @property
    def position(self) -> Position:
        return position(self, self.at, None)


@dataclass(frozen=True)
class Statement:
    """What a batch says of one entity at one position: values, gone, present (S4) or nothing."""

    batch: Batch
    key: Key
    kind: str
    time: dt.datetime
    sequence: int | None = None
    values: Mapping[str, Any] = field(default_factory=dict)
    reason: str | None = None

    @property
    def order(self) -> tuple[Position, bool]:
        """By position; a snapshot's own rows come before its word on who is there."""
        return position(self.batch, self.time, self.sequence), self.kind == "presence"


@dataclass(frozen=True)
class State:
    """An entity at one point: whether it exists, and what was stated of it (no name: never stated)."""

    alive: bool = False
    values: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Moment:
    """All that is stated of an entity at one time, with its state before and after."""

    time: dt.datetime
    statements: tuple[Statement, ...]
    before: State
    after: State


@dataclass(frozen=True)
class Version:
    """A version: where it opens, and the time at which it ends (the open end for the current one)."""

    number: int
    opened: Moment
    ended: dt.datetime


# ---------------------------------------------------------------- values and order


def canon(value: Any) -> Any:
    """S8: values are equal where these forms are: NULL-safe, NaN is NaN, -0.0 is 0.0, maps by entries."""
    match value:
        case float():
            return ("NaN",) if value != value else value + 0.0
        case list() | tuple():
            return ("array", *map(canon, value))
        case dict():
            return ("entries", *sorted(((canon(k), canon(v)) for k, v in value.items()), key=repr))
    return value


@cache
def code(token: str) -> str:
    """The order of deliveries and revisions: dates as dates, integers as integers, all else as text."""
    if re.fullmatch(r"\d{4}-\d{2}-\d{2}", token, re.ASCII) and _is_date(token):
        return "d" + token
    if re.fullmatch(r"\d{1,20}", token, re.ASCII):
        number = token.lstrip("0") or "0"
        return "i" + number.zfill(20) + ("" if token == number else "/" + token)
    return "t" + token


def _is_date(token: str) -> bool:
    try:
        dt.date.fromisoformat(token)
    except ValueError:
        return False
    return True


def position(batch: Batch, time: dt.datetime, sequence: int | None) -> Position:
    """Position: time, sequence (NULL first), delivery, channel, source, revision. Arrival is no part of it.

    Of a delivery one revision counts, so that the revision orders nothing among those that count.
    """
    delivery = code(batch.delivery), batch.channel, batch.source, code(str(batch.revision))
    return time, sequence is not None, sequence or 0, *delivery


# ----------------------------------------------------------------- rows of a batch


def row_time(batch: Batch, row: Row) -> dt.datetime | None:
    """S4: a row's own time where the channel has one; else the batch's."""
    if batch.row_times:
        return row.effective_at
    return row.effective_at or batch.at if batch.channel == "feed" else batch.at


def time_fault(dim: Dim, time: dt.datetime | None) -> str | None:
    """S26, S29: no time, one before the fixed beginning, or one at or after the open end."""
    if time is None:
        return NO_TIME
    if dim.begin and time < dim.begin[0]:
        return TOO_EARLY
    return TOO_LATE if time >= dim.open_end else None


def scope_of(dim: Dim, batch: Batch) -> set[Key] | None:
    """Scope: None for everything, else the declared values, or the distinct ones in the batch."""
    if not batch.scope_columns:
        return None
    if batch.scope_values is not None:
        return set(batch.scope_values)
    return {_scope_part(dim, batch, row.key) for row in batch.rows if row.readable}


def in_scope(dim: Dim, batch: Batch, key: Key) -> bool:
    scope = scope_of(dim, batch)
    return scope is None or _scope_part(dim, batch, key) in scope


def _scope_part(dim: Dim, batch: Batch, key: Key) -> Key:
    return tuple(key[dim.key.index(column)] for column in batch.scope_columns)


def row_fault(dim: Dim, batch: Batch, row: Row) -> str | None:
    """S26: why a row goes to the quarantine; None for one that is taken."""
    if not row.readable:
        return UNREADABLE_KEY
    if row.bad:
        return row.bad
    outside = None if in_scope(dim, batch, row.key) else OUTSIDE_SCOPE
    return time_fault(dim, row_time(batch, row)) or outside


def stated(dim: Dim, batch: Batch, row: Row) -> dict[str, Any]:
    """S20, S30: the attributes that a row states, under their names of today.

    Not stated: another source's attribute, a column that the row lacks or that was not declared then, and
    NULL in a feed whose NULLs are declared as such. A delete states none (S18).
    """
    if row.kind == "delete":
        return {}
    found = {attr.name: _delivered(attr, batch, row) for attr in dim.attrs if attr.source == batch.source}
    return {
        name: row.values[column]
        for name, column in found.items()
        if column is not None and not (row.values[column] is None and _silent_nulls(dim, batch))
    }


def _delivered(attr: Attr, batch: Batch, row: Row) -> str | None:
    """S20: the delivered column of an attribute, under its name or a former one."""
    known = row.values.keys() if batch.declared is None else row.values.keys() & set(batch.declared)
    return next((name for name in (attr.name, *attr.former_names) if name in known), None)


def _silent_nulls(dim: Dim, batch: Batch) -> bool:
    return batch.channel == "feed" and dim.source(batch.source).feed_nulls == "not_provided"


def changes(dim: Dim, batch: Batch) -> dict[tuple[Key, dt.datetime, int | None], list[Row]]:
    """S5: the rows that are taken, together where nothing orders them."""
    groups: dict[tuple[Key, dt.datetime, int | None], list[Row]] = {}
    for row in batch.rows:
        if row_fault(dim, batch, row) is None:
            time = row_time(batch, row)
            assert time is not None
            groups.setdefault((row.key, time, row.sequence), []).append(row)
    return groups


def tie_rule(dim: Dim, batch: Batch) -> str:
    """S5: what decides between changes that nothing orders, as the batch's channel declares it."""
    source = dim.source(batch.source)
    return source.feed_ties if batch.channel == "feed" else source.snapshot_ties


def decisive(dim: Dim, batch: Batch, rows: Sequence[Row]) -> list[Row]:
    """S5: of the rows of one position, in the order of the file, those that the tie rule leaves."""
    rule = tie_rule(dim, batch)
    if rule == "delete_wins" and any(row.kind == "delete" for row in rows):
        return [row for row in rows if row.kind == "delete"]
    if rule == "last_row":
        return [row for row in rows if row.kind == rows[-1].kind]
    return list(rows)


def contradict(dim: Dim, batch: Batch, rows: Sequence[Row]) -> bool:
    """S5: rows of one position give one attribute different values, or delete and do not, and no rule decides."""
    if tie_rule(dim, batch) == "last_row":
        return False
    rows = decisive(dim, batch, rows)
    given: dict[str, set[Any]] = {}
    for row in rows:
        for name, value in stated(dim, batch, row).items():
            given.setdefault(name, set()).add(canon(value))
    return len({row.kind for row in rows}) > 1 or any(len(values) > 1 for values in given.values())


def unordered_keys(dim: Dim, batch: Batch) -> set[Key]:
    """S5: the keys for which a batch is refused."""
    return {key for (key, _, _), rows in changes(dim, batch).items() if contradict(dim, batch, rows)}


# ------------------------------------------------------------------------- batches


def one_of_each(batches: Iterable[Batch]) -> list[Batch]:
    """S14, S34: a batch delivered again is a retry; to be let through once is to be let through."""
    kept: dict[str, Batch] = {}
    for batch in batches:
        known = kept.setdefault(batch.id, batch)
        if content(known) != content(batch):
            raise ValueError(f"{batch.id}: two contents under one revision; a change needs a higher revision")
        kept[batch.id] = replace(known, allow_guard=known.allow_guard or batch.allow_guard)
    return list(kept.values())


def content(batch: Batch) -> Any:
    """What a batch says, whatever the order of its rows."""
    rows = sorted(
        repr((r.key, canon(dict(r.values)), r.kind, r.effective_at, r.sequence, r.reason, r.bad)) for r in batch.rows
    )
    return (
        rows,
        batch.at,
        batch.scope_columns,
        batch.scope_values,
        batch.withdrawn,
        batch.reason,
        batch.declared,
    )


def standing(batches: Iterable[Batch]) -> list[Batch]:
    """S34: of each delivery the highest revision counts, wholly, whatever came last."""
    best: dict[str, Batch] = {}
    for batch in batches:
        known = best.setdefault(batch.run_id, batch)
        if code(str(batch.revision)) > code(str(known.revision)):
            best[batch.run_id] = batch
    return sorted(best.values(), key=lambda batch: batch.position)


def retires(dim: Dim, batch: Batch) -> bool:
    """S27, S30: a snapshot of the deciding source retires whom it leaves out, unless a key is unreadable."""
    return (
        batch.channel == "snapshot"
        and not batch.withdrawn
        and dim.source(batch.source).decides
        and all(row.readable for row in batch.rows)
    )


def guard_stops(dim: Dim, batch: Batch, taken: Sequence[Batch]) -> bool:
    """S27: a snapshot may not retire more than the declared share of those its source had asserted to exist."""
    if not retires(dim, batch) or batch.allow_guard:
        return False
    existing = [key for key in asserted_in_source(dim, batch, taken) if in_scope(dim, batch, key)]
    retired = set(existing) - {row.key for row in batch.rows}
    guard = dim.retire_guard
    return len(existing) >= guard.at_least and len(retired) > guard.share * len(existing)


def asserted_in_source(dim: Dim, batch: Batch, taken: Sequence[Batch]) -> list[Key]:
    """S27: the entities that the batch's own source had asserted to exist just before its position."""
    own = [other for other in taken if other.source == batch.source]
    asserted: dict[Key, bool] = {}
    for statement in all_statements(dim, own):
        if statement.order[0] < batch.position and (assertion := existence_assertion(statement)) is not None:
            asserted[statement.key] = assertion
    return [key for key, exists in asserted.items() if exists]


def _first_stopped(dim: Dim, batches: Sequence[Batch]) -> Batch | None:
    """S27: a run of many goes by position."""
    return next((batch for i, batch in enumerate(batches) if guard_stops(dim, batch, batches[:i])), None)


def accepted(dim: Dim, batches: Iterable[Batch]) -> tuple[list[Batch], dict[str, str]]:
    """S5, S27, S34: the batches that count, by position, and the refused ones with the rule (by batch id).

    A refused revision is not accepted, so the one below it stands. A withdrawn one is among those that count.
    """
    candidates = one_of_each(batches)
    refused = {batch.id: UNORDERED for batch in candidates if unordered_keys(dim, batch)}
    candidates = [batch for batch in candidates if batch.id not in refused]
    while (rejected := _first_stopped(dim, standing(candidates))) is not None:
        refused[rejected.id] = RETIRE_GUARD
        candidates = [batch for batch in candidates if batch.id != rejected.id]
    return standing(candidates), refused


def quarantine(dim: Dim, batches: Iterable[Batch]) -> list[tuple[str, Key | None, str]]:
    """S26: the bad rows of the batches that count: batch id, key (None: unreadable), reason."""
    return [
        (batch.id, row.key if row.readable else None, reason)
        for batch in accepted(dim, batches)[0]
        for row in batch.rows
        if (reason := row_fault(dim, batch, row)) is not None
    ]


# ---------------------------------------------------------------------- statements


def merged(dim: Dim, batch: Batch, rows: Sequence[Row]) -> Statement:
    """S5: rows that nothing orders and that agree are one statement (of several reasons, the least).

    Where the last row decides, it does so for each attribute that it provides, and its reason is the statement's.
    """
    rows = decisive(dim, batch, rows)
    values = {name: value for row in rows for name, value in stated(dim, batch, row).items()}
    reason = min((row.reason for row in rows if row.reason is not None), default=None)
    if tie_rule(dim, batch) == "last_row":
        reason = rows[-1].reason
    time = row_time(batch, rows[0])
    assert time is not None
    return Statement(batch, rows[0].key, rows[0].kind, time, rows[0].sequence, values, reason)


def presences(batch: Batch, said: Iterable[Statement]) -> list[Statement]:
    """S4: a snapshot with row times says at its own time who is there, with the row of highest position."""
    highest: dict[Key, Statement] = {}
    for statement in sorted(said, key=lambda statement: statement.order):
        highest[statement.key] = statement
    return [replace(top, kind="presence", time=batch.at, sequence=None) for top in highest.values()]


def absences(dim: Dim, batch: Batch, keys: Iterable[Key]) -> list[Statement]:
    """S19, S27, S30: whom a snapshot leaves out of its scope is gone where it retires; else nothing."""
    delivered = {row.key for row in batch.rows}
    kind = "delete" if retires(dim, batch) else "no_op"
    left_out = (key for key in keys if key not in delivered and in_scope(dim, batch, key))
    return [Statement(batch, key, kind, batch.at) for key in left_out]


def silences(dim: Dim, batch: Batch) -> list[Statement]:
    """S26: a snapshot's quarantined row whose key can be read counts as present and says nothing."""
    bad = {row.key for row in batch.rows if row.readable and row_fault(dim, batch, row)}
    return [Statement(batch, key, "no_op", batch.at) for key in bad]


def batch_statements(dim: Dim, batch: Batch, keys: Iterable[Key]) -> list[Statement]:
    """All that a batch says of the given entities; a withdrawn one says nothing (S34)."""
    if batch.withdrawn:
        return []
    said = [merged(dim, batch, rows) for rows in changes(dim, batch).values()]
    if batch.channel == "feed":
        return said
    present = presences(batch, said) if batch.row_times else []
    return [*said, *present, *absences(dim, batch, keys), *silences(dim, batch)]


def all_statements(dim: Dim, batches: Sequence[Batch]) -> list[Statement]:
    """Every statement of the given batches, in order of position."""
    keys = dict.fromkeys(row.key for batch in batches for row in batch.rows if row.readable)
    said = [statement for batch in batches for statement in batch_statements(dim, batch, keys)]
    return sorted(said, key=lambda statement: statement.order)


def statements(dim: Dim, batches: Iterable[Batch]) -> list[Statement]:
    """Every statement of the batches that count, in order of position; `present` is not yet settled."""
    return all_statements(dim, accepted(dim, batches)[0])


def settled(ordered: Iterable[Statement]) -> list[Statement]:
    """S4: *present* states its row's values where the entity is not alive in this source; else nothing.

    An absence deletes only an entity whose existence this source has asserted before; else it asserts nothing.
    """
    alive: dict[tuple[str, Key], bool] = {}
    asserted: dict[tuple[str, Key], bool] = {}
    result = []
    for statement in ordered:
        entity = (statement.batch.source, statement.key)
        kind = statement.kind
        if kind == "presence":
            kind = "no_op" if alive.get(entity) else "upsert"
        if is_absence(statement) and not asserted.get(entity):
            kind = "no_op"
        if (assertion := existence_assertion(statement)) is not None:
            asserted[entity] = assertion
        if kind != "no_op":
            alive[entity] = kind == "upsert"
        result.append(replace(statement, kind=kind))
    return result


def is_absence(statement: Statement) -> bool:
    """S4: whether a snapshot deletes an entity that it omits. A feed deletes by a change record of its own."""
    return statement.kind == "delete" and statement.batch.channel == "snapshot"


def existence_assertion(statement: Statement) -> bool | None:
    """S4, S18: whether the source asserts from here on that the entity exists, until it asserts otherwise.

    The values of a row-timed snapshot assert nothing at the time of their row: presence does, at the snapshot's.
    """
    if statement.kind == "delete":
        return False
    if statement.kind == "upsert":
        return None if statement.batch.channel == "snapshot" and statement.batch.row_times else True
    return True if statement.kind == "presence" else None


# ---------------------------------------------------------------------- one entity


def apply(dim: Dim, state: State, statement: Statement) -> State:
    """S18, S30: values set attributes, gone touches none; the deciding source alone changes existence."""
    if statement.kind == "no_op":
        return state
    decides = dim.source(statement.batch.source).decides
    alive = statement.kind == "upsert" if decides else state.alive
    return State(alive, {**state.values, **statement.values})


def moments(dim: Dim, ordered: Iterable[Statement]) -> list[Moment]:
    """S5: the state at a time is the one after all that is stated at it; nothing in between is seen."""
    result, state = [], State()
    for time, group in groupby(ordered, key=lambda statement: statement.time):
        said, before = tuple(group), state
        for statement in said:
            state = apply(dim, state, statement)
        result.append(Moment(time, said, before, state))
    return result


def versioned(dim: Dim, state: State) -> tuple[Any, ...]:
    """S8, S10: what opens a version where it differs."""
    return state.alive, *(canon(state.values.get(attr.name)) for attr in dim.of_type(2, 6))


def opens(dim: Dim, moment: Moment) -> bool:
    """S8, S13, S18: alive, and different in existence or in a type 2 or 6 value from what was before."""
    return moment.after.alive and versioned(dim, moment.before) != versioned(dim, moment.after)


def ends(moment: Moment) -> bool:
    """S18: an entity that existed does not exist from here on."""
    return moment.before.alive and not moment.after.alive


def versions(dim: Dim, history: Sequence[Moment]) -> list[Version]:
    """S2, S3, S18: a version ends where the next opens or the entity ends; numbers count on through gaps."""
    found: list[Version] = []
    for i, moment in enumerate(history):
        if opens(dim, moment):
            ending = (later.time for later in history[i + 1 :] if opens(dim, later) or ends(later))
            found.append(Version(len(found) + 1, moment, next(ending, dim.open_end)))
    return found


def opener(dim: Dim, moment: Moment) -> Statement:
    """Who opened a version: the last statement at its time that changed existence or a versioned value."""
    state, last = moment.before, None
    for statement in moment.statements:
        after = apply(dim, state, statement)
        if versioned(dim, after) != versioned(dim, state):
            last = statement
        state = after
    assert last is not None, "nothing opens at this moment"
    return last


def begins(dim: Dim, version: Version) -> dt.datetime:
    """S29: the first version begins at the fixed time, if its change is not after the declared limit."""
    if dim.begin and version.number == 1 and version.opened.time <= dim.begin[1]:
        return dim.begin[0]
    return version.opened.time


# ---------------------------------------------------------------------- attributes


def original(name: str, history: Iterable[Moment]) -> Any:
    """S6: the first value, in business time, that is not NULL."""
    return next((m.after.values[name] for m in history if m.after.values.get(name) is not None), None)


def latest(name: str, history: Sequence[Moment]) -> Any:
    """S7: the latest value, also of what was stated while the entity was gone."""
    return history[-1].after.values.get(name)


def runs(name: str, history: Iterable[Moment]) -> list[tuple[dt.datetime, Any]]:
    """S9: when each run of equal values began, from the first time that the attribute is stated."""
    found: list[tuple[dt.datetime, Any]] = []
    for moment in history:
        if name in moment.after.values:
            value = moment.after.values[name]
            if not found or canon(found[-1][1]) != canon(value):
                found.append((moment.time, value))
    return found


def type_3_columns(name: str, history: Iterable[Moment]) -> dict[str, Any]:
    """S9: the latest value, the one before it, and since when."""
    (_, before), (since, value) = [(None, None), (None, None), *runs(name, history)][-2:]
    return {name: value, f"previous_{name}": before, f"{name}_changed_at": since}


def type_6_columns(attr: Attr, history: Sequence[Moment], version: Version, before: Version | None) -> dict[str, Any]:
    """S10: the version's value, the latest one, and where asked that of the version before."""
    shown = {
        attr.name: version.opened.after.values.get(attr.name),
        f"current_{attr.name}": latest(attr.name, history),
    }
    if attr.previous:
        shown[f"previous_{attr.name}"] = before.opened.after.values.get(attr.name) if before else None
    return shown


def attribute_columns(
    attr: Attr, history: Sequence[Moment], version: Version, before: Version | None
) -> dict[str, Any]:
    """S6 to S10: the columns of one attribute in one version."""
    match attr.scd:
        case 0:
            return {attr.name: original(attr.name, history)}
        case 1:
            return {attr.name: latest(attr.name, history)}
        case 2:
            return {attr.name: version.opened.after.values.get(attr.name)}
        case 3:
            return type_3_columns(attr.name, history)
        case 6:
            return type_6_columns(attr, history, version, before)
    raise AssertionError(f"{attr.name}: type {attr.scd} is none of an attribute's")


# ---------------------------------------------------------------------------- rows


def overwritten_at(dim: Dim, history: Sequence[Moment]) -> dt.datetime:
    """S14: since when the values hold that stand in every version (types 0, 1, 3 and current_ of type 6)."""
    since, before = dt.datetime.min, tuple(None for _ in dim.of_type(0, 1, 3, 6))
    for i, moment in enumerate(history):
        shown = tuple(
            canon(original(attr.name, history[: i + 1]) if attr.scd == 0 else moment.after.values.get(attr.name))
            for attr in dim.of_type(0, 1, 3, 6)
        )
        since, before = (since if shown == before else moment.time), shown
    return since


def origin_columns(dim: Dim, history: Sequence[Moment], version: Version) -> dict[str, Any]:
    """S14: where a row comes from; all of it from batches, nothing from the clock."""
    by = opener(dim, version.opened)
    return {
        "change_reason": by.reason or by.batch.reason or "source_load",
        "change_source": by.batch.source,
        "load_run_id": by.batch.run_id,
        "last_updated": max(version.opened.time, overwritten_at(dim, history)),
    }


def window_columns(dim: Dim, version: Version) -> dict[str, Any]:
    """S2, S3: the half-open window; the version with no end is the current one."""
    return {
        "effective_from": begins(dim, version),
        "effective_to": version.ended,
        "current_flag": version.ended == dim.open_end,
        "version": version.number,
    }


def version_row(
    dim: Dim, key: Key, history: Sequence[Moment], version: Version, before: Version | None
) -> dict[str, Any]:
    """One row of the dimension, but for what only one of the two layouts has."""
    row = dict(zip(dim.key, key, strict=True))
    for attr in dim.attrs:
        row |= attribute_columns(attr, history, version, before)
    return row | origin_columns(dim, history, version)


def windowed_rows(dim: Dim, key: Key, history: Sequence[Moment]) -> list[dict[str, Any]]:
    """S2: a row for each version."""
    found = versions(dim, history)
    pairs = zip([None, *found], found, strict=False)
    return [version_row(dim, key, history, v, before) | window_columns(dim, v) for before, v in pairs]


def single_row(dim: Dim, key: Key, history: Sequence[Moment]) -> list[dict[str, Any]]:
    """S33: one row for an entity that ever existed; of a deleted one it stays, or by option is removed."""
    found = versions(dim, history)
    alive = history[-1].after.alive
    if not found or (dim.deleted_rows == "remove" and not alive):
        return []
    row = version_row(dim, key, history, found[0], None)
    if dim.deleted_at:
        row["deleted_at"] = None if alive else next(m.time for m in reversed(history) if ends(m))
    return [row]


def entities(dim: Dim, batches: Iterable[Batch]) -> dict[Key, list[Moment]]:
    """The moments of each entity that a row with a readable key or a snapshot speaks of."""
    by_key: dict[Key, list[Statement]] = {}
    for statement in settled(statements(dim, batches)):
        by_key.setdefault(statement.key, []).append(statement)
    return {key: moments(dim, said) for key, said in by_key.items()}


def oracle(dim: Dim, batches: Iterable[Batch]) -> list[dict[str, Any]]:
    """S14: the rows of the dimension, a function of the declaration and of the set of batches."""
    return entity_rows(dim, entities(dim, batches))


def entity_rows(dim: Dim, histories: Mapping[Key, Sequence[Moment]]) -> list[dict[str, Any]]:
    """The rows of entities whose moments are known."""
    rows_of = windowed_rows if dim.has_windows else single_row
    return [row for key, history in histories.items() for row in rows_of(dim, key, history)]
