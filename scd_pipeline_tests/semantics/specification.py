"""The parts of a specification: a declaration, deliveries as text tables, and the expected rows.

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
one revision are one batch. In addition to `delivery`, a table can have `revision` (default 1), `at` (the batch's
time), `scope` (the values that a snapshot covers), `allow` (the rules to override) and the columns that the source
delivers. In place of the key, `no row` is a batch without rows, `withdrawn` is a withdrawal, and `1..24` is a row for
each number. All values are delivered as text, and an empty cell as NULL. A row does not have a column in which it has
`absent`; a batch with such rows is a list of dicts. A column that a table does not have is not delivered, except for
op, seq and reason if the channel declares them.
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

from scd_pipeline.declaration import Attribute, Begin, Dimension, Feed, KeyColumn, Snapshot, Source, parse
from scd_pipeline.declaration.times import to_datetime
from scd_pipeline_tests import oracle as o
from scd_pipeline_tests.text_tables import header
from scd_pipeline_tests.text_tables import parse as parse_table

rule = pytest.mark.rule
requirement = pytest.mark.requirement

CASE = "case"
"""The key column that lets many cases share the tables of one declaration."""

ORACLE = "oracle"
"""The side of a case that the oracle runs; the engine runs the other one."""

_BATCH_COLUMNS = ("delivery", "revision", "at", "scope", "allow")
_PLACEHOLDERS = ("no row", "withdrawn")
_ABSENT = "absent"
_CODES_THE_ORACLE_LACKS = ("BAD_ROWS", "COLUMN_MISSING", "REVISION_CONTENT")
_RANGE = re.compile(r"([a-z]*)(\d+)\.\.(\d+)")


# --------------------------------------------------------------------- declarations


@dataclass(frozen=True)
class Declaration:
    """A declaration in YAML that cases share.

    `by_increments`: whether deliveries in order are loaded in two loads, so that the second one changes stored rows.
    """

    text: str
    by_increments: bool = True

    @cached_property
    def dimension(self) -> Dimension:
        """The dimension as declared."""
        (dimension,) = parse(inspect.cleandoc(self.text))
        return dimension

    @cached_property
    def shared(self) -> Dimension:
        """The same with an additional key column, which is the scope of every snapshot: one table for many cases."""
        dimension = by_files(self.dimension)
        key = (KeyColumn(CASE, "int"), *dimension.business_key)
        return replace(dimension, business_key=key, sources=tuple(map(_scoped_by_case, dimension.sources)))

    @cached_property
    def dim(self) -> o.Dim:
        """The dimension in the oracle's terms."""
        return oracle_dim(self.dimension)


def declare(text: str, *, by_increments: bool = True) -> Declaration:
    """A declaration from its YAML."""
    return Declaration(text, by_increments)


def by_files(dimension: Dimension) -> Dimension:
    """The declaration with the format of the files that these tests deliver."""
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
        begin=_fixed_begin(begin) if begin and begin.at else None,
        begin_attr=begin.column if begin and begin.column else None,
        deleted_rows=dimension.deleted_rows,
        version_state=dimension.has_version_state,
        deleted_at=dimension.deleted_at,
        retire_guard=o.Guard(guard.share, guard.at_least),
        row_entities=dimension.has_row_entities,
        whole_rows=dimension.is_whole_row,
    )


def _fixed_begin(begin: Begin) -> tuple[dt.datetime, dt.datetime]:
    return _naive(to_datetime(begin.at)), _naive(to_datetime(begin.for_first_changes_until))


def _attr(dimension: Dimension, attribute: Attribute) -> o.Attr:
    source = next(s.name for s in dimension.sources if attribute in dimension.source_attributes(s.name))
    return o.Attr(
        attribute.name, int(attribute.scd), source, attribute.previous, attribute.former_names, attribute.untracked
    )


def _src(source: Source, decides: bool) -> o.Src:
    feed, snapshot = source.feed or Feed(), source.snapshot or Snapshot()
    return o.Src(
        source.name,
        decides,
        feed.updates,
        feed.nulls,
        feed.ties,
        snapshot.ties,
        snapshot.empty_scope or "delete",
    )


def _naive(moment: dt.datetime) -> dt.datetime:
    return moment.astimezone(dt.timezone.utc).replace(tzinfo=None)


# ----------------------------------------------------------------------- deliveries

Texts = Mapping[str, str | None]


@dataclass(frozen=True)
class DeliveredBatch:
    """One batch as its source delivers it: all values in `rows` are text or NULL."""

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

    @property
    def has_absent_values(self) -> bool:
        """Whether a row lacks a column of the table."""
        return any(name not in row for row in self.rows for name in self.columns)


@dataclass(frozen=True)
class DeliveryTable:
    """The deliveries of one table."""

    source: str
    channel: str
    table: str
    reason: str | None = None

    def batches(self, dimension: Dimension) -> Iterator[DeliveredBatch]:
        """The batches in order of their lines."""
        key = dimension.delivered_key_names or dimension.attribute_names
        names = tuple(name for name in header(self.table) if name not in _BATCH_COLUMNS)
        lines = expected(self.table)
        for (delivery, revision), group in groupby(lines, key=lambda c: (c["delivery"], c.get("revision") or 1)):
            rows = list(group)
            first = rows[0]
            yield DeliveredBatch(
                self.source,
                self.channel,
                str(delivery),
                str(revision),
                _moment(first.get("at")),
                names,
                tuple(_delivered_row(row, names) for row in rows if _placeholder(row, key) is None),
                _split(first.get("scope")),
                frozenset(_split(first.get("allow")) or ()),
                _placeholder(first, key) == "withdrawn",
                self.reason,
            )


def _delivered_row(cells: Mapping[str, Any], names: Iterable[str]) -> Texts:
    return {name: as_text(cells[name]) for name in names if cells[name] != _ABSENT}


def snapshots(table: str, source: str = "crm", *, reason: str | None = None) -> DeliveryTable:
    """Deliveries of the source's snapshot channel."""
    return DeliveryTable(source, "snapshot", inspect.cleandoc(table), reason)


def feed(table: str, source: str = "crm", *, reason: str | None = None) -> DeliveryTable:
    """Deliveries of the source's change feed."""
    return DeliveryTable(source, "feed", inspect.cleandoc(table), reason)


def _placeholder(cells: Mapping[str, Any], key: Sequence[str]) -> str | None:
    """The placeholder that a line has instead of a key, if any."""
    return next((text for name in key if (text := cells.get(name)) in _PLACEHOLDERS), None)


def expected(table: str) -> list[dict[str, Any]]:
    """The rows of a table; a line with a range, as `1..24` or `s1..4`, is a row for each number of the range."""
    return [row for cells in parse_table(table) for row in _expanded(cells)]


def _expanded(cells: dict[str, Any]) -> list[dict[str, Any]]:
    for name, value in cells.items():
        if isinstance(value, str) and (match := _RANGE.fullmatch(value)):
            prefix, numbers = match[1], range(int(match[2]), int(match[3]) + 1)
            return [{**cells, name: f"{prefix}{number}" if prefix else number} for number in numbers]
    return [cells]


def _moment(value: Any) -> dt.datetime | None:
    return None if value is None else dt.datetime.fromisoformat(str(value))


def _split(value: Any) -> tuple[str, ...] | None:
    return None if value is None else tuple(text.strip() for text in str(value).split(","))


def as_text(value: Any) -> str | None:
    """A cell as its source writes it."""
    if isinstance(value, bool):
        return str(value).lower()
    return None if value is None else str(value)


# ---------------------------------------------------------------------------- cases


@dataclass(frozen=True, init=False)
class Case:
    """Deliveries and the expected rows, as text tables.

    - `becomes`: rows of the dimension
    - `quarantine`: its bad rows, with `batch`, `key` and `reason`
    - `results`: the result of each batch: `arrives` (its number), `batch`, `outcome`, `code`, counts, and the `keys`
      that a rejection names
    - `log`: the change records in the change log, with `batch`, key, `kind`, `time` and attributes
    - `together`: all deliveries are in one load; otherwise some begin a load (see `split_into_loads`)
    - `on_page`: the page has the case as an example of its first rule
    """

    declaration: Declaration
    tables: tuple[DeliveryTable, ...]
    becomes: str
    quarantine: str | None
    results: str | None
    log: str | None
    together: bool
    on_page: bool

    def __init__(
        self,
        declaration: Declaration,
        *tables: DeliveryTable,
        becomes: str,
        quarantine: str | None = None,
        results: str | None = None,
        log: str | None = None,
        together: bool = False,
        on_page: bool = False,
    ) -> None:
        fields = {"declaration": declaration, "tables": tables, "becomes": becomes}
        fields |= {"together": together, "on_page": on_page}
        fields |= {"quarantine": quarantine, "results": results, "log": log}
        for name, value in fields.items():
            cleaned = inspect.cleandoc(value) if isinstance(value, str) else value
            object.__setattr__(self, name, cleaned)

    @property
    def batches(self) -> tuple[DeliveredBatch, ...]:
        """The batches in order of arrival."""
        return tuple(batch for table in self.tables for batch in table.batches(self.declaration.dimension))

    @property
    def depends_on_arrival(self) -> bool:
        """Whether a batch is rejected that might be accepted in another order of arrival."""
        return any(row["code"] for row in expected(self.results or "| code |"))

    @property
    def not_accepted(self) -> list[int]:
        """The indexes of the deliveries that are rejected, unchanged or superseded."""
        outcomes = [row["outcome"] for row in expected(self.results or "| outcome |")]
        return [index for index, outcome in enumerate(outcomes) if outcome != "accepted"]

    @property
    def oracle_batches(self) -> list[o.Batch]:
        """The batches for the oracle, without those that are rejected by a rule that the oracle lacks."""
        results = expected(self.results or "| code |")
        rejected = {row.get("arrives") for row in results if row["code"] in _CODES_THE_ORACLE_LACKS}
        dimension = self.declaration.dimension
        return [oracle_batch(b, dimension) for i, b in enumerate(self.batches, 1) if i not in rejected]


# ----------------------------------------------------------------------- the oracle


def oracle_batch(batch: DeliveredBatch, dimension: Dimension) -> o.Batch:
    """The batch in the oracle's terms."""
    batch = _under_current_names(batch, dimension)
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
        tuple(
            _oracle_row(row, dimension, source, channel, attributes)
            for row in batch.rows
            if not _is_absent(row, channel)
        ),
        has_row_times=channel.effective_at is not None,
        scope_columns=scope,
        scope_values=_scope_values(batch, dimension, scope),
        withdrawn=batch.withdrawn,
        reason=batch.reason,
        allow=batch.allow,
        declared=tuple(a.name for a in attributes),
    )


def _under_current_names(batch: DeliveredBatch, dimension: Dimension) -> DeliveredBatch:
    """The batch with the name of each attribute in place of its declared column, or else of its former name (S20)."""
    source = dimension.source(batch.source)
    candidates = {a.name: (*source.column(a.name).from_, *a.former_names) for a in dimension.attributes}
    delivered = {name: [each for each in columns if each in batch.columns] for name, columns in candidates.items()}
    names = {columns[0]: name for name, columns in delivered.items() if columns}
    columns = tuple(names.get(name, name) for name in batch.columns)
    rows = tuple({names.get(name, name): value for name, value in row.items()} for row in batch.rows)
    return replace(batch, columns=columns, rows=rows)


def _scope_values(batch: DeliveredBatch, dimension: Dimension, scope: Sequence[str]) -> tuple[o.Key, ...] | None:
    if batch.scope is None:
        return None
    types = {column.name: column.type for column in (*dimension.business_key, *dimension.attributes)}
    return tuple((cast(value, types[scope[0]]),) for value in batch.scope)


def _is_absent(row: Texts, channel: Snapshot | Feed) -> bool:
    """Whether a row of a snapshot has the flag by which its entity counts as absent."""
    return isinstance(channel, Snapshot) and channel.deletes is not None and row.get("op") == "D"


def _oracle_row(
    row: Texts, dimension: Dimension, source: Source, channel: Snapshot | Feed, attributes: Sequence[Attribute]
) -> o.Row:
    rules = {a.name: _missing_rule(a, channel) for a in attributes}
    left_out = {a.name for a in attributes if row.get(a.name) in source.column(a.name).not_provided_values}
    provided = [a for a in attributes if a.name not in left_out and (a.name in row or rules[a.name] == "null")]
    cleared = frozenset(a.name for a in provided if row.get(a.name) in source.column(a.name).null_values)
    values = {a.name: None if a.name in cleared else cast(row.get(a.name), a.type) for a in provided}
    lacks = any(rules[name] == "reject" and name not in row for name in rules)
    time = cast(row.get(str(channel.effective_at or "")), "timestamp")
    sequence = cast(row.get(str(channel.sequence or "")), "bigint")
    deleted = isinstance(channel, Feed) and channel.deletes is not None and row.get("op") == "D"
    bad = o.BAD in (time, sequence, *(() if deleted else values.values())) or (lacks and not deleted)
    return o.Row(
        tuple(_whole_row(values) if key.derived else cast(row[key.name], key.type) for key in dimension.business_key),
        values,
        "delete" if deleted else "upsert",
        None if time is o.BAD else time,
        None if sequence is o.BAD else sequence,
        row.get(channel.reason or ""),
        "does not cast" if bad else None,
        cleared,
    )


def stored_row(row: Mapping[str, Any], dimension: Dimension) -> dict[str, Any]:
    """A row of the oracle with the columns and the open end of the table."""
    layout = dimension.column_layout
    ends = (_naive(dimension.open_end_time),) if layout.has_null_end else ()
    stored = {name: None if name == "effective_to" and value in ends else value for name, value in row.items()}
    return {name if name in dimension.key_names else layout.name(name) or name: value for name, value in stored.items()}


def _whole_row(values: Mapping[str, Any]) -> Any:
    """S37: the values by which a row is an entity; BAD if one of them cannot be cast."""
    provided = tuple(sorted((name, value) for name, value in values.items() if value is not None))
    return o.BAD if any(value is o.BAD for _, value in provided) else provided


def _missing_rule(attribute: Attribute, channel: Snapshot | Feed) -> str:
    """S30: what it means that a row lacks an attribute."""
    is_partial = isinstance(channel, Feed) and channel.updates == "partial"
    return "not_provided" if is_partial else attribute.missing


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
    """The value of a delivered text; BAD if it cannot be cast."""
    if text is None:
        return None
    try:
        return _CASTS[kind.partition("(")[0]](text)
    except (ValueError, KeyError, InvalidOperation):
        return o.BAD


# ---------------------------------------------------------------------------- tests


def case(build: Callable[[], Case], *, is_long: bool = False) -> Callable[..., None]:
    """Turn a function that returns a case into a test of the oracle and a test of the engine.

    Args:
        build: The function.
        is_long: Whether the engine is tested in `make test-all` only.
    """
    engine = pytest.param("engine", marks=[pytest.mark.slow] * is_long)

    @pytest.mark.parametrize("side", [ORACLE, engine])
    @functools.wraps(build)
    def test(side: str, request: pytest.FixtureRequest) -> None:
        if side == ORACLE:
            request.getfixturevalue("check_oracle")(test.case)
        else:
            request.getfixturevalue("check_engine")(test.case)

    del test.__wrapped__  # otherwise pytest uses the signature of the wrapped function
    test.case = build()
    return test


long_case = functools.partial(case, is_long=True)
"""As `case`, for one that takes the engine long."""
