"""What a specification is made of: a declaration, deliveries as text tables, and what has to come of them.

    @rule("S7")
    @case
    def test_every_version_has_the_latest_value() -> Case:
        return Case(
            CUSTOMER,
            feed('''
                | delivery | id | time       | city | email |
                | 1        | 1  | 2024-01-01 | Bonn | a     |
                | 2        | 1  | 2024-02-01 | Kiel | b     |
            '''),
            becomes='''
                | city | email | effective_from | effective_to |
                | Bonn | b     | 2024-01-01     | 2024-02-01   |
                | Kiel | b     | 2024-02-01     | OPEN         |
            ''',
        )

Deliveries arrive in the order of the tables and of their lines; lines that follow each other with one delivery and
one revision are one batch. Beside `delivery` a table has what is needed of `revision` (default 1), `at` (the batch's
time), `scope` (the values that a snapshot speaks of), `allow` (what is let through) and the columns that the source
delivers. In place of the key, `nobody` is a batch without rows, `withdrawn` one that is withdrawn, and `1..24` a row
for each number. Everything is delivered as text, NULL where a cell is empty; a column that a table does not have is
not delivered, but for the op, seq and reason that the channel declares.
"""

from __future__ import annotations

import datetime as dt
import functools
import inspect
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal, InvalidOperation
from functools import cached_property
from itertools import groupby
from typing import Any

import pytest

from scd_pipeline.declaration import Attribute, Dimension, Feed, KeyColumn, Snapshot, Source, parse
from scd_pipeline_tests import oracle as o
from scd_pipeline_tests.text_tables import header
from scd_pipeline_tests.text_tables import parse as parse_table

rule = pytest.mark.rule

CASE = "case"
"""The key column that lets many cases share the tables of one declaration."""

_OF_THE_BATCH = ("delivery", "revision", "at", "scope", "allow")
_NO_ROW = ("nobody", "withdrawn")
_UNKNOWN_TO_THE_ORACLE = ("BAD_ROWS", "COLUMN_MISSING", "REVISION_CONTENT")
_RANGE = re.compile(r"([a-z]*)(\d+)\.\.(\d+)")


# --------------------------------------------------------------------- declarations


@dataclass(frozen=True)
class Declaration:
    """A declaration in YAML, which cases share."""

    text: str

    @cached_property
    def dimension(self) -> Dimension:
        """As its owner means it."""
        (dimension,) = parse(inspect.cleandoc(self.text))
        return dimension

    @cached_property
    def shared(self) -> Dimension:
        """The same with one more key column, by which every snapshot is scoped: one table for many cases."""
        dimension = by_files(self.dimension)
        key = (KeyColumn(CASE, "int"), *dimension.business_key)
        return replace(dimension, business_key=key, sources=tuple(map(_scoped_by_case, dimension.sources)))

    @cached_property
    def dim(self) -> o.Dim:
        """As the oracle knows it."""
        return oracle_dim(self.dimension)


def declared(text: str) -> Declaration:
    """A declaration, from its YAML."""
    return Declaration(text)


def by_files(dimension: Dimension) -> Dimension:
    """The declaration with the format of the files in which these tests deliver."""
    return replace(dimension, sources=tuple(map(_by_files, dimension.sources)))


def _by_files(source: Source) -> Source:
    channels = {kind: replace(channel, format="parquet") for kind, channel in source.channels}
    return replace(source, **channels)


def _scoped_by_case(source: Source) -> Source:
    if source.snapshot is None:
        return source
    return replace(source, snapshot=replace(source.snapshot, scope=(CASE, *source.snapshot.scope)))


def oracle_dim(dimension: Dimension) -> o.Dim:
    """The declaration in the oracle's terms."""
    deciding = dimension.existence_source.name
    begin, guard = dimension.begin, dimension.existence_source.retire_guard
    return o.Dim(
        dimension.name,
        dimension.key_names,
        tuple(_attr(dimension, attribute) for attribute in dimension.attributes),
        tuple(_src(source, source.name == deciding) for source in dimension.sources),
        open_end=_naive(dimension.open_end_time),
        begin=(_naive(begin.at_time), _naive(begin.until_time)) if begin else None,
        deleted_rows=dimension.deleted_rows,
        deleted_at=dimension.deleted_at,
        retire_guard=o.Guard(guard.share, guard.at_least),
    )


def _attr(dimension: Dimension, attribute: Attribute) -> o.Attr:
    of = next(s.name for s in dimension.sources if attribute in dimension.source_attributes(s.name))
    return o.Attr(attribute.name, int(attribute.scd), of, attribute.previous, attribute.former_names)


def _src(source: Source, decides: bool) -> o.Src:
    feed, snapshot = source.feed or Feed(), source.snapshot or Snapshot()
    return o.Src(source.name, decides, feed.updates, feed.nulls, feed.ties, snapshot.ties)


def _naive(moment: dt.datetime) -> dt.datetime:
    return moment.astimezone(dt.timezone.utc).replace(tzinfo=None)


# ----------------------------------------------------------------------- deliveries

Texts = Mapping[str, str | None]


@dataclass(frozen=True)
class Delivered:
    """One batch as its source delivers it: `columns` and `rows` hold text alone."""

    source: str
    channel: str
    delivery: str
    revision: str
    at: dt.datetime | None
    columns: tuple[str, ...]
    rows: tuple[Texts, ...]
    scope: tuple[str, ...] | None = None
    allow: frozenset[str] = frozenset()
    withdrawn: bool = False
    reason: str | None = None

    @property
    def id(self) -> str:
        return f"{self.source}/{self.channel}/{self.delivery}/{self.revision}"


@dataclass(frozen=True)
class Told:
    """The deliveries of one table."""

    source: str
    channel: str
    table: str
    reason: str | None = None

    def batches(self, dimension: Dimension) -> Iterator[Delivered]:
        """The batches in order of their lines."""
        key = dimension.key_names
        names = tuple(name for name in header(self.table) if name not in _OF_THE_BATCH)
        lines = expected(self.table)
        for (delivery, revision), group in groupby(lines, key=lambda c: (c["delivery"], c.get("revision") or 1)):
            rows = list(group)
            first = rows[0]
            yield Delivered(
                self.source,
                self.channel,
                str(delivery),
                str(revision),
                _moment(first.get("at")),
                names,
                tuple({n: as_text(row[n]) for n in names} for row in rows if _word(row, key) is None),
                _words(first.get("scope")),
                frozenset(_words(first.get("allow")) or ()),
                _word(first, key) == "withdrawn",
                self.reason,
            )


def snapshots(table: str, source: str = "crm", *, reason: str | None = None) -> Told:
    """Deliveries of the source's snapshot channel."""
    return Told(source, "snapshot", inspect.cleandoc(table), reason)


def feed(table: str, source: str = "crm", *, reason: str | None = None) -> Told:
    """Deliveries of the source's change feed."""
    return Told(source, "feed", inspect.cleandoc(table), reason)


def _word(cells: Mapping[str, Any], key: Sequence[str]) -> str | None:
    """What stands in place of a row, if anything does."""
    return next((word for name in key if (word := cells[name]) in _NO_ROW), None)


def expected(table: str) -> list[dict[str, Any]]:
    """The rows of a table; one with a range, as `1..24` or `s1..4`, is a row for each of its numbers."""
    return [row for cells in parse_table(table) for row in _expanded(cells)]


def _expanded(cells: dict[str, Any]) -> list[dict[str, Any]]:
    for name, value in cells.items():
        if isinstance(value, str) and (found := _RANGE.fullmatch(value)):
            prefix, numbers = found[1], range(int(found[2]), int(found[3]) + 1)
            return [{**cells, name: f"{prefix}{number}" if prefix else number} for number in numbers]
    return [cells]


def _moment(value: Any) -> dt.datetime | None:
    return None if value is None else dt.datetime.fromisoformat(str(value))


def _words(value: Any) -> tuple[str, ...] | None:
    return None if value is None else tuple(word.strip() for word in str(value).split(","))


def as_text(value: Any) -> str | None:
    """A cell as its source writes it."""
    if isinstance(value, bool):
        return str(value).lower()
    return None if value is None else str(value)


# ---------------------------------------------------------------------------- cases


@dataclass(frozen=True, init=False)
class Case:
    """What is delivered, and what comes of it, as text tables.

    - `becomes`: rows of the dimension
    - `quarantine`: its bad rows, with `batch`, `key` and `reason`
    - `results`: what the loads told of each batch (`arrives` counts them): `batch`, `outcome`, `rule`, counts
    - `log`: the statements that the change log keeps, with `batch`, key, `kind`, `time` and attributes
    - `together`: everything arrives in one load; else each delivery in a load of its own, in the tables' order
    - `on_page`: shown as the example of its first rule
    """

    declaration: Declaration
    told: tuple[Told, ...]
    becomes: str
    quarantine: str | None
    results: str | None
    log: str | None
    together: bool
    on_page: bool

    def __init__(
        self,
        declaration: Declaration,
        *told: Told,
        becomes: str,
        quarantine: str | None = None,
        results: str | None = None,
        log: str | None = None,
        together: bool = False,
        on_page: bool = False,
    ) -> None:
        given = {"declaration": declaration, "told": told, "becomes": becomes}
        given |= {"together": together, "on_page": on_page}
        tables = {"quarantine": quarantine, "results": results, "log": log}
        for name, value in {**given, **tables}.items():
            cleaned = inspect.cleandoc(value) if isinstance(value, str) else value
            object.__setattr__(self, name, cleaned)

    @property
    def delivered(self) -> tuple[Delivered, ...]:
        """The batches in order of arrival."""
        return tuple(batch for told in self.told for batch in told.batches(self.declaration.dimension))

    @property
    def goes_by_arrival(self) -> bool:
        """Whether something is stopped that another order would not stop."""
        return any(row["code"] for row in expected(self.results or "| code |"))

    @property
    def accepts_all(self) -> bool:
        """Whether no delivery is rejected, or found to be loaded or superseded already."""
        return all(row["outcome"] == "accepted" for row in expected(self.results or "| outcome |"))

    @property
    def oracle_batches(self) -> list[o.Batch]:
        """The batches for the oracle, but for those that are stopped by what it does not know of."""
        told = expected(self.results or "| code |")
        rejected = {row.get("arrives") for row in told if row["code"] in _UNKNOWN_TO_THE_ORACLE}
        dimension = self.declaration.dimension
        return [oracle_batch(b, dimension) for i, b in enumerate(self.delivered, 1) if i not in rejected]


# ----------------------------------------------------------------------- the oracle


def oracle_batch(batch: Delivered, dimension: Dimension) -> o.Batch:
    """The batch as the oracle takes it."""
    source = dimension.source(batch.source)
    channel = source.channel(batch.channel)
    scope = channel.scope if isinstance(channel, Snapshot) else ()
    attributes = [a for a in dimension.source_attributes(source.name) if a.name in batch.columns and not a.retired]
    return o.Batch(
        batch.source,
        batch.channel,
        batch.delivery,
        int(batch.revision),
        batch.at or dt.datetime(2024, 12, 31),
        tuple(_oracle_row(row, dimension, channel, attributes) for row in batch.rows),
        row_times=channel.effective_at is not None,
        scope_columns=scope,
        scope_values=_scope_values(batch, dimension, scope),
        withdrawn=batch.withdrawn,
        reason=batch.reason,
        allow_guard="retire_guard" in batch.allow,
        declared=tuple(a.name for a in attributes),
    )


def _scope_values(batch: Delivered, dimension: Dimension, scope: Sequence[str]) -> tuple[o.Key, ...] | None:
    if batch.scope is None:
        return None
    types = {key.name: key.type for key in dimension.business_key}
    return tuple((cast(value, types[scope[0]]),) for value in batch.scope)


def _oracle_row(row: Texts, dimension: Dimension, channel: Snapshot | Feed, attributes: Iterable[Attribute]) -> o.Row:
    values = {a.name: cast(row[a.name], a.type) for a in attributes}
    time = cast(row.get(channel.effective_at or ""), "timestamp")
    sequence = cast(row.get(channel.sequence or ""), "bigint")
    deleted = isinstance(channel, Feed) and channel.deletes is not None and row.get("op") == "D"
    bad = o.BAD in (time, sequence, *(() if deleted else values.values()))
    return o.Row(
        tuple(cast(row[key.name], key.type) for key in dimension.business_key),
        values,
        "delete" if deleted else "upsert",
        None if time is o.BAD else time,
        None if sequence is o.BAD else sequence,
        row.get(channel.reason or ""),
        "does not cast" if bad else None,
    )


_CASTS: Mapping[str, Callable[[str], Any]] = {
    "string": str,
    "int": int,
    "bigint": int,
    "double": float,
    "date": dt.date.fromisoformat,
    "timestamp": dt.datetime.fromisoformat,
    "boolean": {"true": True, "false": False}.__getitem__,
    "decimal": Decimal,
}


def cast(text: str | None, kind: str) -> Any:
    """The value of a delivered text; BAD where it does not cast."""
    if text is None:
        return None
    try:
        return _CASTS[kind.partition("(")[0]](text)
    except (ValueError, KeyError, InvalidOperation):
        return o.BAD


# ---------------------------------------------------------------------------- tests


def case(build: Callable[[], Case]) -> Callable[..., None]:
    """Make a function that returns a case a test of the oracle and one of the engine."""

    @pytest.mark.parametrize("side", ["oracle", "engine"])
    @functools.wraps(build)
    def test(side: str, request: pytest.FixtureRequest) -> None:
        if side == "oracle":
            request.getfixturevalue("check_oracle")(test.case)
        else:
            request.getfixturevalue("check_engine")(test.case)

    del test.__wrapped__  # pytest would take the arguments of the function that was wrapped
    test.case = build()
    return test
