"""The rules of history in plain Python, implemented as simply as possible: the oracle for tests of the engine.

It has no differences, no indexes and no increments: it reads all batches, stores every change record (`Statement`)
in them, and replays them entity by entity. It imports nothing of the package under test. Each function implements
one rule, which its docstring names. All times are naive UTC datetimes.
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
NO_VALUE = "missing value"
BY_ROW_ORDER = ("first_row", "last_row")
UNORDERED = "UNORDERED_CHANGES"
RETIRE_GUARD = "RETIRE_GUARD"
EMPTY_SCOPE = "EMPTY_SCOPE"
CONTROL_TOTALS = "CONTROL_TOTALS"
UNKNOWN_MEMBER = "unknown member"
INFERRED_MEMBER = "inferred member"


class Unreadable(enum.Enum):
    """Placeholder for a delivered text that does not cast, in a key or in a value."""

    BAD = "bad"


BAD = Unreadable.BAD


@dataclass(frozen=True)
class Attr:
    """An attribute: its type (0, 1, 2, 3, 6), the one source that provides it, and its former names.

    `previous`: whether type 6 has the value of the version before, or "last_different_value" (S10).
    `untracked`: which value a version has of its own (S7), in place of the latest one of all versions. `required`:
    whether a row without its value is bad, as one without the event time of a fact (S23).
    """

    name: str
    scd: int
    source: str
    previous: bool | str = False
    former_names: tuple[str, ...] = ()
    untracked: str | None = None
    required: bool = False


@dataclass(frozen=True)
class Src:
    """A source: whether it decides existence, how its change feed is read (S30), and what resolves ties (S5).

    `empty_scope`: whether a snapshot without rows of a scope that it names empties it, or is rejected (S41).
    """

    name: str
    decides: bool
    feed_updates: str = "full"
    feed_nulls: str = "value"
    feed_ties: str = "reject"
    snapshot_ties: str = "reject"
    empty_scope: str = "delete"


@dataclass(frozen=True)
class Guard:
    """S27: the share of the existing entities that a snapshot may retire, and the size from which it applies."""

    share: float = 0.25
    at_least: int = 20


@dataclass(frozen=True)
class Dim:
    """A dimension's declaration, as far as it matters for history.

    `begin`: the fixed start and the limit of the first changes for which it applies. `begin_attr`: the attribute whose
    value is the start instead (S29). `row_entities`: whether an entity is a row, or a version of one (S37).
    `whole_rows`: whether it is a row.
    """

    name: str
    key: tuple[str, ...]
    attrs: tuple[Attr, ...]
    sources: tuple[Src, ...]
    open_end: dt.datetime = dt.datetime(9999, 12, 31, 23, 59, 59)
    begin: tuple[dt.datetime, dt.datetime] | None = None
    begin_attr: str | None = None
    deleted_rows: str = "keep"
    version_state: bool = False
    deleted_at: bool = False
    retire_guard: Guard = Guard()
    row_entities: bool = False
    whole_rows: bool = False

    def of_type(self, *types: int) -> tuple[Attr, ...]:
        return tuple(attr for attr in self.attrs if attr.scd in types)

    def source(self, name: str) -> Src:
        return next(source for source in self.sources if source.name == name)

    @property
    def has_windows(self) -> bool:
        return self.row_entities or bool(self.of_type(2, 6))


@dataclass(frozen=True)
class Row:
    """A delivered row. A column that is missing in `values` is not provided; None in it is NULL.

    `key` contains None or BAD where the key cannot be read; `bad`: why a row with a readable key is quarantined.
    `cleared`: the columns whose NULL is a value whatever NULL means in the feed (S30).
    """

    key: Key
    values: Mapping[str, Any] = field(default_factory=dict)
    kind: str = "upsert"
    effective_at: dt.datetime | None = None
    sequence: int | None = None
    reason: str | None = None
    bad: str | None = None
    cleared: frozenset[str] = frozenset()

    @property
    def readable(self) -> bool:
        return not any(element is None or element is BAD for element in self.key)


@dataclass(frozen=True)
class Batch:
    """One revision of one delivery; `rows` are in the order of the file.

    `declared` names the attribute columns that it delivers, by their names in the declaration at that time (None:
    the columns of its rows). `has_row_times`: the channel has a column with the time of each row. Without it the rows
    of a snapshot have the time `at`, and so do those of a feed, unless a row has a time nevertheless.
    `scope_values` None with `scope_columns`: the distinct values in its rows. `allow`: the rules that it overrides
    ("retire_guard", "control_totals"). `totals`: its control totals, `rows` and sums by column (S41). The oracle does
    not read `scenario`.
    """

    source: str
    channel: str
    delivery: str
    revision: int
    at: dt.datetime
    rows: tuple[Row, ...] = ()
    has_row_times: bool = False
    scope_columns: tuple[str, ...] = ()
    scope_values: tuple[Key, ...] | None = None
    withdrawn: bool = False
    reason: str | None = None
    allow: frozenset[str] = frozenset()
    totals: Mapping[str, int] = field(default_factory=dict)
    declared: tuple[str, ...] | None = None
    scenario: int = 0

    @property
    def run_id(self) -> str:
        """The delivery without its revision, so that a revision with the same content changes no row (S34)."""
        return f"{self.source}/{self.channel}/{self.delivery}"

    @property
    def id(self) -> str:
        return f"{self.run_id}/{self.revision}"

    @property
    def position(self) -> Position:
        return position(self, self.at, None)


@dataclass(frozen=True)
class Statement:
    """A change record: what a batch asserts about one entity at one position: upsert, delete, presence (S4), no-op."""

    batch: Batch
    key: Key
    kind: str
    time: dt.datetime
    sequence: int | None = None
    values: Mapping[str, Any] = field(default_factory=dict)
    reason: str | None = None

    @property
    def order(self) -> tuple[Position, bool]:
        """By position; the rows of a snapshot come before the presences that it asserts."""
        return position(self.batch, self.time, self.sequence), self.kind == "presence"


@dataclass(frozen=True)
class State:
    """An entity at one time: whether it exists, and its values (an attribute never provided has none)."""

    exists: bool = False
    values: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Moment:
    """All change records of an entity at one time, with its state before and after."""

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
    """The order of deliveries and revisions: dates as dates, integers as integers, others as text."""
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
    """Position: time, sequence (NULL first), delivery, channel, source, revision. Arrival is not part of it.

    One revision of a delivery is current, so the revision does not affect the order of current ones.
    """
    delivery = code(batch.delivery), batch.channel, batch.source, code(str(batch.revision))
    return time, sequence is not None, sequence or 0, *delivery


# ----------------------------------------------------------------- rows of a batch


def row_time(batch: Batch, row: Row) -> dt.datetime | None:
    """S4: a row's own time where the channel has one, otherwise the batch's."""
    if batch.has_row_times:
        return row.effective_at
    return row.effective_at or batch.at if batch.channel == "feed" else batch.at


def time_fault(dim: Dim, time: dt.datetime | None) -> str | None:
    """S26, S29: no time, a time before the fixed beginning, or a time at or after the open end."""
    if time is None:
        return NO_TIME
    if dim.begin and time < dim.begin[0]:
        return TOO_EARLY
    return TOO_LATE if time >= dim.open_end else None


def scope_of(dim: Dim, batch: Batch) -> set[Key] | None:
    """Scope: None for everything, otherwise the declared values, or the distinct values in the batch."""
    if not batch.scope_columns:
        return None
    return delivered_scope(dim, batch) if batch.scope_values is None else set(batch.scope_values)


def delivered_scope(dim: Dim, batch: Batch) -> set[Key]:
    """Scope: the distinct values in the rows of a batch."""
    rows = [row for row in batch.rows if row.readable]
    if has_attribute_scope(dim, batch):  # a bad row provides no attribute
        rows = [row for row in rows if value_fault(dim, batch, row) is None]
    return {part for row in rows if (part := scope_part(dim, batch, row.key, provided(dim, batch, row))) is not None}


def has_attribute_scope(dim: Dim, batch: Batch) -> bool:
    """Scope: whether an entity's scope depends on attributes, so that it can move from one scope to another."""
    return not set(batch.scope_columns) <= set(dim.key)


def in_scope(dim: Dim, batch: Batch, key: Key, values: Mapping[str, Any]) -> bool:
    """Scope: whether a snapshot covers an entity with these values of its source; NULL belongs to no scope."""
    scope = scope_of(dim, batch)
    return scope is None or scope_part(dim, batch, key, values) in scope


def scope_part(dim: Dim, batch: Batch, key: Key, values: Mapping[str, Any]) -> Key | None:
    """Scope: the values of the scope columns; None where an attribute has none."""
    entity = {**values, **dict(zip(dim.key, key, strict=True))}
    part = tuple(entity.get(column) for column in batch.scope_columns)
    return None if None in part else part


def row_fault(dim: Dim, batch: Batch, row: Row) -> str | None:
    """S26: why a row is quarantined; None for an accepted row."""
    if not row.readable:
        return UNREADABLE_KEY
    outside = None if in_scope(dim, batch, row.key, provided(dim, batch, row)) else OUTSIDE_SCOPE
    return value_fault(dim, batch, row) or outside


def value_fault(dim: Dim, batch: Batch, row: Row) -> str | None:
    """S23, S26: why a row with a readable key is quarantined, whatever the scope is."""
    if row.bad:
        return row.bad
    return NO_VALUE if lacks_value(dim, batch, row) else time_fault(dim, row_time(batch, row))


def lacks_value(dim: Dim, batch: Batch, row: Row) -> bool:
    """S23, S26: whether an upsert has no value of a required attribute."""
    values = provided(dim, batch, row)
    return row.kind == "upsert" and any(attr.required and values.get(attr.name) is None for attr in dim.attrs)


def provided(dim: Dim, batch: Batch, row: Row) -> dict[str, Any]:
    """S20, S30: the attributes that a row provides, by their current names.

    Not provided: another source's attribute, a column that the row lacks or that was not declared at the time, and
    NULL in a feed that declares `nulls: not_provided`, unless it is cleared. A delete provides none (S18).
    """
    if row.kind == "delete":
        return {}
    columns = {attr.name: _delivered(attr, batch, row) for attr in dim.attrs if attr.source == batch.source}
    return {
        name: row.values[column]
        for name, column in columns.items()
        if column is not None
        and not (row.values[column] is None and column not in row.cleared and _silent_nulls(dim, batch))
    }


def _delivered(attr: Attr, batch: Batch, row: Row) -> str | None:
    """S20: the delivered column of an attribute, under its name or a former one."""
    delivered = row.values.keys() if batch.declared is None else row.values.keys() & set(batch.declared)
    return next((name for name in (attr.name, *attr.former_names) if name in delivered), None)


def _silent_nulls(dim: Dim, batch: Batch) -> bool:
    return batch.channel == "feed" and dim.source(batch.source).feed_nulls == "not_provided"


def changes(dim: Dim, batch: Batch) -> dict[tuple[Key, dt.datetime, int | None], list[Row]]:
    """S5: the accepted rows, grouped where nothing orders them."""
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
    """S5: the rows of one position that the tie rule keeps, in the order of the file, or in reverse for `first_row`."""
    rule = tie_rule(dim, batch)
    if rule == "delete_wins" and any(row.kind == "delete" for row in rows):
        return [row for row in rows if row.kind == "delete"]
    if rule in BY_ROW_ORDER:
        rows = rows[::-1] if rule == "first_row" else rows
        return [row for row in rows if row.kind == rows[-1].kind]
    return list(rows)


def contradict(dim: Dim, batch: Batch, rows: Sequence[Row]) -> bool:
    """S5: whether rows of one position differ in an attribute, or delete and do not, and no tie rule resolves it."""
    if tie_rule(dim, batch) in BY_ROW_ORDER:
        return False
    rows = decisive(dim, batch, rows)
    values_by_name: dict[str, set[Any]] = {}
    for row in rows:
        for name, value in provided(dim, batch, row).items():
            values_by_name.setdefault(name, set()).add(canon(value))
    return len({row.kind for row in rows}) > 1 or any(len(values) > 1 for values in values_by_name.values())


def unordered_keys(dim: Dim, batch: Batch) -> set[Key]:
    """S5: the keys for which a batch is rejected."""
    return {key for (key, _, _), rows in changes(dim, batch).items() if contradict(dim, batch, rows)}


# ------------------------------------------------------------------------- batches


def without_retries(batches: Iterable[Batch]) -> list[Batch]:
    """S14, S34: a batch delivered again is a retry; an override of one of them is an override of the batch."""
    batches_by_id: dict[str, Batch] = {}
    for batch in batches:
        first = batches_by_id.setdefault(batch.id, batch)
        if content(first) != content(batch):
            raise ValueError(f"{batch.id}: two contents under one revision; a change needs a higher revision")
        batches_by_id[batch.id] = replace(first, allow=first.allow | batch.allow)
    return list(batches_by_id.values())


def content(batch: Batch) -> Any:
    """The content of a batch, independent of the order of its rows."""
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


def current_revisions(batches: Iterable[Batch]) -> list[Batch]:
    """S34: the highest revision of each delivery is current as a whole, in any order of arrival."""
    best: dict[str, Batch] = {}
    for batch in batches:
        highest = best.setdefault(batch.run_id, batch)
        if code(str(batch.revision)) > code(str(highest.revision)):
            best[batch.run_id] = batch
    return sorted(best.values(), key=lambda batch: batch.position)


def retires(dim: Dim, batch: Batch) -> bool:
    """S27, S30: a snapshot of the existence source retires the entities that it omits, unless a key is unreadable."""
    return (
        batch.channel == "snapshot"
        and not batch.withdrawn
        and dim.source(batch.source).decides
        and all(row.readable for row in batch.rows)
    )


def guard_rejects(dim: Dim, batch: Batch, accepted_batches: Sequence[Batch]) -> bool:
    """S27: a snapshot may retire at most the declared share of the entities that its source has asserted to exist.

    S37: of a row that changes, a snapshot omits the former values and adds the new ones.
    """
    if not retires(dim, batch) or "retire_guard" in batch.allow:
        return False
    existing = asserted_in_source(dim, batch, accepted_batches)
    delivered = {row.key for row in batch.rows}
    retired = len(set(existing) - delivered)
    added = len(delivered - set(existing)) if dim.whole_rows else 0
    guard = dim.retire_guard
    return len(existing) >= guard.at_least and retired - added > guard.share * len(existing)


def asserted_in_source(dim: Dim, batch: Batch, accepted_batches: Sequence[Batch]) -> list[Key]:
    """S27: the entities of its scope that the batch's own source has asserted to exist just before its position."""
    own = [other for other in accepted_batches if other.source == batch.source]
    asserted: dict[Key, bool] = {}
    values: dict[Key, dict[str, Any]] = {}
    for statement in all_statements(dim, own):
        if statement.order[0] < batch.position:
            if (assertion := existence_assertion(statement)) is not None:
                asserted[statement.key] = assertion
            values.setdefault(statement.key, {}).update(statement.values)
    return [key for key, exists in asserted.items() if exists and in_scope(dim, batch, key, values.get(key, {}))]


def _first_rejected(dim: Dim, batches: Sequence[Batch]) -> Batch | None:
    """S27: the retire guard checks the batches in order of position."""
    return next((batch for i, batch in enumerate(batches) if guard_rejects(dim, batch, batches[:i])), None)


def has_empty_scope(dim: Dim, batch: Batch) -> bool:
    """S41: whether a snapshot has no rows of a scope that it names, or of everything, and its source allows none."""
    if batch.channel == "feed" or batch.withdrawn or dim.source(batch.source).empty_scope == "delete":
        return False
    if not batch.scope_columns:
        return not batch.rows
    return not set(batch.scope_values or ()) <= delivered_scope(dim, batch)


def figure(dim: Dim, batch: Batch, name: str) -> int:
    """S41: what a control total is compared with: the number of all rows, or the sum of a column of the good ones."""
    if name == "rows":
        return len(batch.rows)
    good = [provided(dim, batch, row) for row in batch.rows if row_fault(dim, batch, row) is None]
    return sum(values.get(name) or 0 for values in good)


def has_other_totals(dim: Dim, batch: Batch) -> bool:
    """S41: whether a batch differs from one of its control totals, and does not override the rule."""
    differs = any(figure(dim, batch, name) != total for name, total in batch.totals.items())
    return differs and "control_totals" not in batch.allow


def content_rejection(dim: Dim, batch: Batch) -> str | None:
    """S5, S41: the rule that the content of a batch breaks, whatever other batches there are."""
    if has_empty_scope(dim, batch):
        return EMPTY_SCOPE
    if unordered_keys(dim, batch):
        return UNORDERED
    return CONTROL_TOTALS if has_other_totals(dim, batch) else None


def accepted(dim: Dim, batches: Iterable[Batch]) -> tuple[list[Batch], dict[str, str]]:
    """S5, S27, S34, S41: the batches in effect, by position, and the rule that each rejected one breaks (by batch id).

    A rejected revision is not accepted, so the next lower one is current. A withdrawn revision is in effect too.
    """
    candidates = without_retries(batches)
    rejections = {batch.id: rule for batch in candidates if (rule := content_rejection(dim, batch)) is not None}
    candidates = [batch for batch in candidates if batch.id not in rejections]
    while (rejected := _first_rejected(dim, current_revisions(candidates))) is not None:
        rejections[rejected.id] = RETIRE_GUARD
        candidates = [batch for batch in candidates if batch.id != rejected.id]
    return current_revisions(candidates), rejections


def quarantine(dim: Dim, batches: Iterable[Batch]) -> list[tuple[str, Key | None, str]]:
    """S26: the bad rows of the batches in effect: batch id, key (None: unreadable), reason."""
    return bad_rows(dim, accepted(dim, batches)[0])


def bad_rows(dim: Dim, accepted_batches: Iterable[Batch]) -> list[tuple[str, Key | None, str]]:
    """S26: the bad rows of accepted batches, as `quarantine` returns them."""
    return [
        (batch.id, row.key if row.readable else None, reason)
        for batch in accepted_batches
        for row in batch.rows
        if (reason := row_fault(dim, batch, row)) is not None
    ]


# ------------------------------------------------------------------ change records


def merged(dim: Dim, batch: Batch, rows: Sequence[Row]) -> Statement:
    """S5: rows that nothing orders and that agree are one change record (of several reasons, the least).

    Where the last row decides, it does so for each attribute that it provides, and its reason is the record's.
    """
    rows = decisive(dim, batch, rows)
    values = {name: value for row in rows for name, value in provided(dim, batch, row).items()}
    reason = min((row.reason for row in rows if row.reason is not None), default=None)
    if tie_rule(dim, batch) in BY_ROW_ORDER:
        reason = rows[-1].reason
    time = row_time(batch, rows[0])
    assert time is not None
    return Statement(batch, rows[0].key, rows[0].kind, time, rows[0].sequence, values, reason)


def presences(batch: Batch, records: Iterable[Statement]) -> list[Statement]:
    """S4: a snapshot with row times asserts presence at its own time, with the row of highest position up to then.

    A row dated after the snapshot asserts nothing before its own time.
    """
    highest: dict[Key, Statement] = {}
    for statement in sorted(records, key=lambda statement: statement.order):
        if statement.time <= batch.at:
            highest[statement.key] = statement
    return [replace(top, kind="presence", time=batch.at, sequence=None) for top in highest.values()]


def absences(dim: Dim, batch: Batch, keys: Iterable[Key]) -> list[Statement]:
    """S19, S27, S30: an entity of its scope that a snapshot omits is deleted if it retires; otherwise a no-op."""
    delivered = {row.key for row in batch.rows}
    kind = "delete" if retires(dim, batch) else "no_op"
    omitted = [key for key in keys if key not in delivered]
    if not has_attribute_scope(dim, batch):
        omitted = [key for key in omitted if in_scope(dim, batch, key, {})]
    return [Statement(batch, key, kind, batch.at) for key in omitted]


def no_ops(dim: Dim, batch: Batch) -> list[Statement]:
    """S26: a snapshot's bad row with a readable key keeps its entity from being absent, and asserts nothing."""
    bad = {row.key for row in batch.rows if row.readable and row_fault(dim, batch, row)}
    return [Statement(batch, key, "no_op", batch.at) for key in bad]


def batch_statements(dim: Dim, batch: Batch, keys: Iterable[Key]) -> list[Statement]:
    """All change records of a batch about some entities; a withdrawn batch has none (S34)."""
    if batch.withdrawn:
        return []
    records = [merged(dim, batch, rows) for rows in changes(dim, batch).values()]
    if batch.channel == "feed":
        return records
    present = presences(batch, records) if batch.has_row_times else []
    return [*records, *present, *absences(dim, batch, keys), *no_ops(dim, batch)]


def all_statements(dim: Dim, batches: Sequence[Batch]) -> list[Statement]:
    """Every change record of some batches, in order of position."""
    keys = dict.fromkeys(row.key for batch in batches for row in batch.rows if row.readable)
    records = [record for batch in batches for record in batch_statements(dim, batch, keys)]
    return within_scopes(dim, sorted(records, key=lambda record: record.order))


def within_scopes(dim: Dim, ordered: Iterable[Statement]) -> list[Statement]:
    """Scope: an absence asserts nothing of an entity that belongs to another scope at its position.

    The entity belongs to the scope of the values that the source has provided last, whether or not it exists.
    """
    values: dict[tuple[str, Key], dict[str, Any]] = {}
    result = []
    for statement in ordered:
        own = values.setdefault((statement.batch.source, statement.key), {})
        if is_absence(statement) and not in_scope(dim, statement.batch, statement.key, own):
            statement = replace(statement, kind="no_op")
        own.update(statement.values)
        result.append(statement)
    return result


def statements(dim: Dim, batches: Iterable[Batch]) -> list[Statement]:
    """Every change record of the batches in effect, in order of position; presences are not resolved yet."""
    return all_statements(dim, accepted(dim, batches)[0])


def resolve_kinds(ordered: Iterable[Statement]) -> list[Statement]:
    """S4: a presence provides its row's values where the entity does not exist in this source; otherwise nothing.

    An absence deletes only an entity whose existence this source has asserted before; otherwise it asserts nothing.
    """
    exists: dict[tuple[str, Key], bool] = {}
    asserted: dict[tuple[str, Key], bool] = {}
    result = []
    for statement in ordered:
        entity = (statement.batch.source, statement.key)
        kind = statement.kind
        if kind == "presence":
            kind = "no_op" if exists.get(entity) else "upsert"
        if is_absence(statement) and not asserted.get(entity):
            kind = "no_op"
        if (assertion := existence_assertion(statement)) is not None:
            asserted[entity] = assertion
        if kind != "no_op":
            exists[entity] = kind == "upsert"
        result.append(replace(statement, kind=kind))
    return result


def is_absence(statement: Statement) -> bool:
    """S4: whether a snapshot deletes an entity that it omits. A feed deletes by a change record of its own."""
    return statement.kind == "delete" and statement.batch.channel == "snapshot"


def existence_assertion(statement: Statement) -> bool | None:
    """S4, S18: whether the source asserts from here on that the entity exists, until it asserts otherwise.

    The row of a row-timed snapshot asserts it from the later of two times: its own, and the snapshot's. So a row dated
    up to the snapshot's time asserts nothing at its own: its presence does, at the snapshot's.
    """
    if statement.kind == "delete":
        return False
    if statement.kind == "upsert":
        batch = statement.batch
        is_early = batch.channel == "snapshot" and batch.has_row_times and statement.time <= batch.at
        return None if is_early else True
    return True if statement.kind == "presence" else None


# ---------------------------------------------------------------------- one entity


def apply(dim: Dim, state: State, statement: Statement) -> State:
    """S18, S30: an upsert sets attributes, a delete sets none; only the existence source changes existence."""
    if statement.kind == "no_op":
        return state
    decides = dim.source(statement.batch.source).decides
    exists = statement.kind == "upsert" if decides else state.exists
    return State(exists, {**state.values, **statement.values})


def moments(dim: Dim, ordered: Iterable[Statement]) -> list[Moment]:
    """S5: the state at a time is the one after all change records of that time; no intermediate state is visible."""
    result, state = [], State()
    for time, group in groupby(ordered, key=lambda statement: statement.time):
        records, before = tuple(group), state
        for statement in records:
            state = apply(dim, state, statement)
        result.append(Moment(time, records, before, state))
    return result


def versioned(dim: Dim, state: State) -> tuple[Any, ...]:
    """S8, S10: the values whose change opens a version; an entity that does not exist has none."""
    return state.exists, *(canon(state.values.get(attr.name)) for attr in dim.of_type(2, 6) if state.exists)


def opens(dim: Dim, moment: Moment) -> bool:
    """S8, S13, S18: it exists, and its existence or a type 2 or 6 value differs from the state before.

    By an option, an entity that is deleted has a version of its own too.
    """
    if dim.deleted_rows == "new_version" and ends(moment):
        return True
    return moment.after.exists and versioned(dim, moment.before) != versioned(dim, moment.after)


def ends(moment: Moment) -> bool:
    """S18: an entity that existed does not exist from here on."""
    return moment.before.exists and not moment.after.exists


def versions(dim: Dim, history: Sequence[Moment]) -> list[Version]:
    """S2, S3, S18: a version ends where the next opens or the entity ends; version numbers continue after gaps."""
    opened: list[Version] = []
    for i, moment in enumerate(history):
        if opens(dim, moment):
            ending = (later.time for later in history[i + 1 :] if opens(dim, later) or ends(later))
            opened.append(Version(len(opened) + 1, moment, next(ending, dim.open_end)))
    return opened


def opener(dim: Dim, moment: Moment) -> Statement:
    """The change record that opened a version: the last at its time that changed existence or a versioned value."""
    state, last = moment.before, None
    for statement in moment.statements:
        after = apply(dim, state, statement)
        if versioned(dim, after) != versioned(dim, state):
            last = statement
        state = after
    assert last is not None, "no version opens at this time"
    return last


def begins(dim: Dim, history: Sequence[Moment], version: Version) -> dt.datetime:
    """S29: the first version begins at the fixed time, if its change is not after the declared limit.

    Or at the value of the declared attribute, as known at its change, if this is before the change.
    """
    opened = version.opened.time
    if version.number > 1:
        return opened
    if dim.begin and opened <= dim.begin[1]:
        return dim.begin[0]
    return min(opened, begin_value(dim, history, version) or opened)


def begin_value(dim: Dim, history: Sequence[Moment], version: Version) -> dt.datetime | None:
    """S29: the value of the attribute that begins histories when a version opens; a date is its midnight in UTC."""
    attr = next((attr for attr in dim.attrs if attr.name == dim.begin_attr), None)
    if attr is None:
        return None
    until = [moment for moment in history if moment.time <= version.opened.time]
    value = original(attr.name, until) if attr.scd == 0 else latest(attr.name, until)
    if value is None or isinstance(value, dt.datetime):
        return value
    return dt.datetime.combine(value, dt.time())


# ---------------------------------------------------------------------- attributes


def original(name: str, history: Iterable[Moment]) -> Any:
    """S6: the first value, in business time, that is not NULL."""
    return next((m.after.values[name] for m in history if m.after.values.get(name) is not None), None)


def latest(name: str, history: Sequence[Moment]) -> Any:
    """S7: the latest value, also if it was provided while the entity was deleted."""
    return history[-1].after.values.get(name)


def within(history: Iterable[Moment], version: Version) -> list[Moment]:
    """S2: the moments in the window of a version, from the one that opens it."""
    return [moment for moment in history if version.opened.time <= moment.time < version.ended]


def untracked_value(attr: Attr, history: Iterable[Moment], version: Version) -> Any:
    """S7: the value at the start of a version, or the latest one before its end."""
    moments_within = within(history, version)
    return moments_within[0 if attr.untracked == "at_open" else -1].after.values.get(attr.name)


def runs(name: str, history: Iterable[Moment]) -> list[tuple[dt.datetime, Any]]:
    """S9: when each run of equal values began, from the first time that the attribute is provided."""
    starts: list[tuple[dt.datetime, Any]] = []
    for moment in history:
        if name in moment.after.values:
            value = moment.after.values[name]
            if not starts or canon(starts[-1][1]) != canon(value):
                starts.append((moment.time, value))
    return starts


def type_3_columns(name: str, history: Iterable[Moment]) -> dict[str, Any]:
    """S9: the latest value, the one before it, and when it changed."""
    (_, before), (since, value) = [(None, None), (None, None), *runs(name, history)][-2:]
    return {name: value, f"previous_{name}": before, f"{name}_changed_at": since}


def type_6_columns(
    attr: Attr, history: Sequence[Moment], version: Version, earlier: Sequence[Version]
) -> dict[str, Any]:
    """S10: the version's value, the latest one, and if declared that of the version before or the last other one."""
    value = version.opened.after.values.get(attr.name)
    columns = {attr.name: value, f"current_{attr.name}": latest(attr.name, history)}
    before = [each.opened.after.values.get(attr.name) for each in earlier]
    if attr.previous == "last_different_value":
        before = [other for other in before if canon(other) != canon(value)]
    if attr.previous:
        columns[f"previous_{attr.name}"] = before[-1] if before else None
    return columns


def attribute_columns(
    attr: Attr, history: Sequence[Moment], version: Version, earlier: Sequence[Version]
) -> dict[str, Any]:
    """S6 to S10: the columns of one attribute in one version."""
    match attr.scd:
        case 0:
            return {attr.name: original(attr.name, history)}
        case 1 if attr.untracked:
            return {attr.name: untracked_value(attr, history, version)}
        case 1:
            return {attr.name: latest(attr.name, history)}
        case 2:
            return {attr.name: version.opened.after.values.get(attr.name)}
        case 3:
            return type_3_columns(attr.name, history)
        case 6:
            return type_6_columns(attr, history, version, earlier)
    raise AssertionError(f"{attr.name}: type {attr.scd} is not an SCD type")


# ---------------------------------------------------------------------------- rows


def overwritten_at(dim: Dim, history: Sequence[Moment]) -> dt.datetime:
    """S14: the time of the last change of a value that every version has (types 0, 1, 3 and current_ of type 6)."""
    common = [attr for attr in dim.of_type(0, 1, 3, 6) if not attr.untracked]
    since, before = dt.datetime.min, tuple(None for _ in common)
    for i, moment in enumerate(history):
        values = tuple(
            canon(original(attr.name, history[: i + 1]) if attr.scd == 0 else moment.after.values.get(attr.name))
            for attr in common
        )
        since, before = (since if values == before else moment.time), values
    return since


def overwritten_within(dim: Dim, history: Iterable[Moment], version: Version) -> dt.datetime:
    """S7, S14: the time of the last change of a value that is the latest one in a version."""
    names = [attr.name for attr in dim.attrs if attr.untracked == "latest_in_version"]

    def changes(moment: Moment) -> bool:
        return any(canon(moment.before.values.get(n)) != canon(moment.after.values.get(n)) for n in names)

    return max((m.time for m in within(history, version) if changes(m)), default=version.opened.time)


def origin_columns(dim: Dim, history: Sequence[Moment], version: Version) -> dict[str, Any]:
    """S14: where a row comes from; all of it from batches, nothing from the clock."""
    by = opener(dim, version.opened)
    default = "source_load" if version.opened.after.exists else "deleted_in_source"
    return {
        "change_reason": by.reason or by.batch.reason or default,
        "change_source": by.batch.source,
        "load_run_id": by.batch.run_id,
        "last_updated": max(
            version.opened.time, overwritten_at(dim, history), overwritten_within(dim, history, version)
        ),
    }


def window_columns(dim: Dim, history: Sequence[Moment], version: Version) -> dict[str, Any]:
    """S2, S3: the half-open window; the version with no end is the current one."""
    deleted = {"is_deleted": not version.opened.after.exists} if dim.deleted_rows == "new_version" else {}
    state = {"version_state": version_state(dim, history, version)} if dim.version_state else {}
    return {
        "effective_from": begins(dim, history, version),
        "effective_to": version.ended,
        "current_flag": version.ended == dim.open_end,
        "version": version.number,
        **deleted,
        **state,
    }


def version_state(dim: Dim, history: Sequence[Moment], version: Version) -> str:
    """S18: what happened last to a version: the entity was deleted, its values changed, or it began to exist."""
    if not version.opened.after.exists:
        return "deleted"
    last = next((moment for moment in history if moment.time == version.ended), version.opened)
    if not last.after.exists:
        return "deleted"
    return "changed" if last.before.exists else "new"


def version_row(
    dim: Dim, key: Key, history: Sequence[Moment], version: Version, earlier: Sequence[Version]
) -> dict[str, Any]:
    """One row of the dimension, without the columns that only one of the two layouts has."""
    row = dict(zip(dim.key, key, strict=True))
    for attr in dim.attrs:
        row |= attribute_columns(attr, history, version, earlier)
    return row | origin_columns(dim, history, version)


def windowed_rows(dim: Dim, key: Key, history: Sequence[Moment]) -> list[dict[str, Any]]:
    """S2: a row for each version."""
    every = versions(dim, history)
    return [version_row(dim, key, history, v, every[:i]) | window_columns(dim, history, v) for i, v in enumerate(every)]


def single_row(dim: Dim, key: Key, history: Sequence[Moment]) -> list[dict[str, Any]]:
    """S33: one row for an entity that ever existed; that of a deleted entity stays, or is removed by an option."""
    every = versions(dim, history)
    exists = history[-1].after.exists
    if not every or (dim.deleted_rows == "remove" and not exists):
        return []
    row = version_row(dim, key, history, every[0], ())
    if dim.deleted_at:
        row["deleted_at"] = None if exists else next(m.time for m in reversed(history) if ends(m))
    return [row]


def entities(dim: Dim, batches: Iterable[Batch]) -> dict[Key, list[Moment]]:
    """The moments of each entity that has a change record."""
    return moments_by_key(dim, resolve_kinds(statements(dim, batches)))


def moments_by_key(dim: Dim, resolved: Iterable[Statement]) -> dict[Key, list[Moment]]:
    """The moments of each entity, from its change records in order of position, with presences resolved."""
    by_key: dict[Key, list[Statement]] = {}
    for statement in resolved:
        by_key.setdefault(statement.key, []).append(statement)
    return {key: moments(dim, records) for key, records in by_key.items()}


def oracle(dim: Dim, batches: Iterable[Batch]) -> list[dict[str, Any]]:
    """S14: the rows of the dimension, a function of the declaration and of the set of batches."""
    return entity_rows(dim, entities(dim, batches))


def entity_rows(dim: Dim, histories: Mapping[Key, Sequence[Moment]]) -> list[dict[str, Any]]:
    """The rows of entities, from their moments."""
    rows_of = windowed_rows if dim.has_windows else single_row
    return [row for key, history in histories.items() for row in rows_of(dim, key, history)]


# --------------------------------------------------------------------------- facts


@dataclass(frozen=True)
class Role:
    """A dimension with windows in a fact: the fact's columns of its business key.

    `infers`: whether an entity without a version has an inferred member (S23).
    """

    name: str
    dim: Dim
    key: tuple[str, ...]
    infers: bool = False


@dataclass(frozen=True)
class Fact:
    """A fact: how its rows are delivered, with the grain as key and all other columns as attributes, and its roles."""

    rows: Dim
    event_time: str
    roles: tuple[Role, ...]


@dataclass(frozen=True)
class Effect:
    """S41: what a batch does to facts at one position: a row replaces a fact, a snapshot removes those it omits."""

    position: Position
    batch: Batch
    row: Statement | None = None


def fact_rows(fact: Fact, batches: Iterable[Batch], of_dimensions: Sequence[Batch]) -> list[dict[str, Any]]:
    """S23, S24: the facts, with what each role references (`<role>_member`) in dimensions that have these batches."""
    dims = {role.dim.name: role.dim for role in fact.roles}
    versions = {name: rows_by_key(dim, of_dimensions) for name, dim in dims.items()}

    def members(row: Mapping[str, Any]) -> dict[str, str]:
        time = row[fact.event_time]
        keys = [(role, tuple(row[column] for column in role.key)) for role in fact.roles]
        return {
            f"{role.name}_member": member(role, key, time, versions[role.dim.name].get(key, ())) for role, key in keys
        }

    return [row | members(row) for row in replayed_facts(fact.rows, batches)]


def rows_by_key(dim: Dim, batches: Iterable[Batch]) -> dict[Key, list[dict[str, Any]]]:
    """The rows of a dimension by their entity."""
    rows: dict[Key, list[dict[str, Any]]] = {}
    for row in oracle(dim, batches):
        rows.setdefault(tuple(row[name] for name in dim.key), []).append(row)
    return rows


def replayed_facts(dim: Dim, batches: Iterable[Batch]) -> list[dict[str, Any]]:
    """S14, S34, S41: what the rows of a fact are after the batches in effect, one position after the other."""
    effects = [effect for batch in accepted(dim, batches)[0] for effect in fact_effects(dim, batch)]
    facts: dict[Key, Mapping[str, Any]] = {}
    for effect in sorted(effects, key=lambda effect: (effect.position, effect.row is not None)):
        if effect.row is None:
            facts = {key: values for key, values in facts.items() if not omits(dim, effect.batch, key, values)}
        elif effect.row.kind == "delete":
            facts.pop(effect.row.key, None)
        else:
            facts[effect.row.key] = effect.row.values
    return [
        dict(zip(dim.key, key, strict=True)) | {attr.name: values.get(attr.name) for attr in dim.attrs}
        for key, values in facts.items()
    ]


def fact_effects(dim: Dim, batch: Batch) -> list[Effect]:
    """S34, S41: the rows of a batch at their positions, and for a snapshot that it replaces its scope."""
    if batch.withdrawn:
        return []
    rows = [merged(dim, batch, rows) for rows in changes(dim, batch).values()]
    effects = [Effect(position(batch, row.time, row.sequence), batch, row) for row in rows]
    return [*effects, Effect(batch.position, batch)] if retires(dim, batch) else effects


def omits(dim: Dim, batch: Batch, key: Key, values: Mapping[str, Any]) -> bool:
    """S26, S41: whether a snapshot has no row of a fact of its scope, not even a bad one."""
    return key not in {row.key for row in batch.rows} and in_scope(dim, batch, key, values)


def member(role: Role, key: Key, time: dt.datetime, versions: Sequence[Mapping[str, Any]]) -> str:
    """S23: what a fact references: the version in force at its event time, the inferred member, or the unknown one.

    An entity that has versions is not inferred at another time.
    """
    if None in key:
        return UNKNOWN_MEMBER
    for version in versions:
        if version["effective_from"] <= time < version["effective_to"]:
            return member_text(key, version["version"])
    begin = role.dim.begin[0] if role.dim.begin else dt.datetime.min
    return member_text(key, 0) if role.infers and not versions and time >= begin else UNKNOWN_MEMBER


def member_text(key: Key, version: int) -> str:
    """A version of an entity, or its inferred member, which has the number 0."""
    return f"{key} {f'version {version}' if version else INFERRED_MEMBER}"
