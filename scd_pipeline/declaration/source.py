"""Sources of a dimension or a fact, and their channels (S4, S30)."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any, ClassVar, Literal, get_args

from scd_pipeline.declaration.batch_values import with_batch_values
from scd_pipeline.declaration.control_totals import ControlTotals, as_control_totals
from scd_pipeline.declaration.debezium import OPTIONS, debezium_options
from scd_pipeline.declaration.frozen import FrozenMapping, as_tuple, checked_arguments, set_frozen_fields
from scd_pipeline.declaration.jdbc import Jdbc, as_jdbc
from scd_pipeline.declaration.path_times import FORMS
from scd_pipeline.declaration.times import canonical_time, parse_time

if TYPE_CHECKING:
    from scd_pipeline.declaration.landing_table import LandingTable
    from scd_pipeline.declaration.timed_table import TimedTable

ChannelName = Literal["snapshot", "feed"]
Default = str | int | float | bool
Ties = Literal["reject", "delete_wins", "first_row", "last_row"]
Unit = Literal["s", "ms", "us"]
TIES: tuple[str, ...] = get_args(Ties)
UNITS: tuple[str, ...] = get_args(Unit)

SEQUENCE_BITS: Mapping[int, tuple[int, ...]] = {1: (64,), 2: (31, 32), 3: (20, 32, 11)}
"""The bits of each part of a sequence, by their number: the change log stores all parts as one BIGINT. Three parts
fit a binary log: the number of the file, the position in it and the number of the row at that position."""

TIME_PLACEHOLDERS = tuple(FORMS)
PLACEHOLDERS = (*TIME_PLACEHOLDERS, "delivery")
_FORMATS_BY_SUFFIX = {
    ".parquet": "parquet",
    ".csv": "csv",
    ".json": "json",
    ".jsonl": "json",
    ".ndjson": "json",
    ".delta": "delta",
}
FORMAT_SUFFIXES = tuple(_FORMATS_BY_SUFFIX)
"""The suffixes of files from which a format is inferred."""
_COMPRESSIONS = {".gz", ".bz2", ".zst", ".lz4", ".snappy", ".deflate"}
_ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:/")
_FILE_SCHEME = re.compile(r"^file:/+")
BUCKET_SCHEMES = ("s3", "s3a", "gs", "abfss")
"""The schemes of the object stores whose objects can be listed."""
# Not with a login, as `s3://key:secret@bucket`: a declaration has no credentials.
_NAME = r"[^/{}@:?#]+"
_BUCKET = re.compile(rf"(?P<address>(?:s3|s3a|gs)://{_NAME}|abfss://{_NAME}@{_NAME})(?P<key>/.*)")
_BRACES = re.compile(r"\{([^{}]*)\}")


@checked_arguments
@dataclass(frozen=True, slots=True, init=False)
class Column:
    """The source column, or expression, of an attribute or a key column.

    - `from_` (in YAML `from`): the column's name, or several names, of which the first that a delivery has is read
    - `expression`: SQL over the delivery's columns, and over its time and id, `{{ load_timestamp }}` and
      `{{ load_run_id }}`; excludes `from_`
    - `format`: reads text as a date or time, by Spark's patterns
    - `unit`: reads a number as a time that counts seconds, milliseconds or microseconds from 1970 in UTC
    - `round`: accepts a value with more digits than the type has: a number is rounded half up, a time cut off; and a
      floating-point number into text (S26)
    - `decimal`, `grouping`: the decimal separator of numbers in text, and the character between groups of three digits
    - `true_values`, `false_values`: the delivered texts that mean true and false
    - `default`: replaces NULL
    - `not_provided_values`: delivered texts that mean that a row does not provide the attribute (S30)
    - `null_values`: delivered texts that mean NULL, even if NULL itself means "not provided" (S30)
    """

    from_: tuple[str, ...] = ()
    format: str | None = None
    expression: str | None = None
    default: Default | None = None
    unit: Unit | None = None
    round: bool = False
    not_provided_values: tuple[str, ...] = ()
    null_values: tuple[str, ...] = ()
    decimal: str = "."
    grouping: str = ""
    true_values: tuple[str, ...] = ()
    false_values: tuple[str, ...] = ()

    def __init__(
        self,
        from_: str | Sequence[str] = (),
        format: str | None = None,
        expression: str | None = None,
        default: Default | None = None,
        unit: Unit | None = None,
        round: bool = False,
        not_provided_values: str | Sequence[str] = (),
        null_values: str | Sequence[str] = (),
        decimal: str = ".",
        grouping: str = "",
        true_values: str | Sequence[str] = (),
        false_values: str | Sequence[str] = (),
    ) -> None:
        set_frozen_fields(self, from_=() if from_ is None else as_tuple(from_), format=format, expression=expression)
        set_frozen_fields(self, default=default, unit=unit, round=round)
        set_frozen_fields(self, not_provided_values=as_tuple(not_provided_values), null_values=as_tuple(null_values))
        set_frozen_fields(self, decimal=decimal, grouping=grouping)
        set_frozen_fields(self, true_values=as_tuple(true_values), false_values=as_tuple(false_values))

    @property
    def text_form(self) -> str:
        """The declared form of text for messages, such as `, written as 1.234,5`; empty if it is not declared."""
        if self.decimal != "." or self.grouping:
            return f", written as 1{self.grouping}234{self.decimal}5"
        return f", written as {' or '.join((*self.true_values, *self.false_values))}" if self.true_values else ""


@dataclass(frozen=True, slots=True)
class Channel:
    """How a source delivers; use Snapshot or Feed.

    - `path`: path of the deliveries; that of files contains `{date}`, `{datetime}` or, for feeds with `effective_at`,
      `{delivery}`. A date or time may have a form, such as `{date:%Y%m%d}`. Without a path, frames are passed
    - `format`: parquet, csv, json, delta or, for a feed, debezium: JSON with the events of Debezium, from which other
      options follow; by default that of the path's suffix
    - `jdbc`: the table or query of a database that is read in place of a path
    - `options`: reader options, stored as sorted pairs
    - `skip_lines`, `skip_footer`: the numbers of lines before the header and at the end of each CSV file that are not
      read
    - `record_path`: the path of the records inside of each JSON document, such as `data` or `hits.hits`
    - `partition`, `versions`: one delivery for each value of a partition column, or for each version,
      of the table at `path`
    - `partition_format`: the form of the dates or times in the partition column, such as `%Y%m%d`
    - `time_of_day`: the time of a delivery on the date of its path or partition, such as 23:59:59; default midnight
    - `delivery_timezone`: the zone of the times in paths and partitions (S1)
    - `effective_at`: column, or `{expression: ...}`, of the business time of a row, read by `effective_at_format` or,
      if it is a number, as a count of `effective_at_unit` since 1970; `effective_at_round` cuts off digits beyond
      microseconds (S4)
    - `sequence`: column or `{expression: ...}` that orders changes of equal time, of type `sequence_type`; or two or
      three of them, of which the first decides, then the second (S5)
    - `ties`: what happens if nothing orders two changes of one batch (S5): the batch is rejected, or `delete_wins`, or
      the `first_row` or the `last_row` of the file wins
    - `reason`, `actor`, `correlation_id`: columns for the audit (S21)
    - `control_totals`: where the source declares the number of rows of a delivery, and sums of columns (S41)
    - `rows`: an SQL condition over the delivery's columns; a row for which it is not true has no effect
    - `deletes`: an SQL condition over the delivery's columns, true for a delete; in a snapshot, such a row counts as
      absent
    """

    name: ClassVar[ChannelName]

    path: str | None = None
    format: str | None = None
    options: Mapping[str, str] | tuple[tuple[str, str], ...] = ()
    partition: str | None = None
    versions: bool = False
    partition_format: str | None = None
    time_of_day: str | None = None
    delivery_timezone: str = "UTC"
    effective_at: str | Column | None = None
    effective_at_format: str | None = None
    effective_at_unit: Unit | None = None
    effective_at_round: bool = False
    sequence: str | Column | tuple[str | Column, ...] | None = None
    sequence_type: Literal["bigint", "timestamp"] = "bigint"
    ties: Ties = "reject"
    reason: str | None = None
    actor: str | None = None
    correlation_id: str | None = None
    skip_lines: int = 0
    skip_footer: int = 0
    record_path: str | None = None
    rows: str | None = None
    deletes: str | None = None
    jdbc: Jdbc | None = None
    control_totals: ControlTotals | None = None

    def __post_init__(self) -> None:
        set_frozen_fields(self, jdbc=as_jdbc(self.jdbc), control_totals=as_control_totals(self.control_totals))
        if self.format == "debezium":
            set_frozen_fields(self, **debezium_options({name: getattr(self, name) for name in OPTIONS}))
        set_frozen_fields(self, options=_pairs(self.options), effective_at=_computed(self.effective_at))
        set_frozen_fields(self, sequence=_sequence(self.sequence))
        if self.format is None:
            set_frozen_fields(self, format=format_of(self.path, self.versions))

    @property
    def reader_options(self) -> dict[str, str]:
        """The reader options by name."""
        return dict(self.options)

    @property
    def is_json(self) -> bool:
        """Whether its files are JSON."""
        return self.format in ("json", "debezium")

    @property
    def time_column(self) -> Column | None:
        """How the business time of a row is read; None if the rows have no times."""
        if self.effective_at is None:
            return None
        column = _as_column(self.effective_at)
        pattern, unit, is_rounded = self.effective_at_format, self.effective_at_unit, self.effective_at_round
        return replace(column, format=pattern, unit=unit, round=is_rounded)

    @property
    def sequence_columns(self) -> tuple[Column, ...]:
        """How the parts of a row's sequence are read, the deciding one first; none if there is no sequence."""
        if self.sequence is None:
            return ()
        parts = self.sequence if isinstance(self.sequence, tuple) else (self.sequence,)
        return tuple(_as_column(part) for part in parts)

    @property
    def control_columns(self) -> dict[str, str]:
        """The delivery's columns with control totals, by the names of these."""
        return self.control_totals.delivered_columns if isinstance(self.control_totals, ControlTotals) else {}

    @property
    def column_names(self) -> tuple[str, ...]:
        """The delivery's columns that the channel names outside of expressions."""
        columns = (*([self.time_column] if self.time_column else []), *self.sequence_columns)
        texts = (self.reason, self.actor, self.correlation_id, *self.control_columns.values())
        return (*(name for column in columns for name in column.from_), *(name for name in texts if name is not None))

    @property
    def expressions(self) -> tuple[str, ...]:
        """The SQL texts of the channel."""
        columns = (*([self.time_column] if self.time_column else []), *self.sequence_columns)
        return (*(column.expression for column in columns if column.expression), *self.conditions.values())

    @property
    def conditions(self) -> dict[str, str]:
        """The SQL of the conditions that the channel declares, by their options."""
        texts = {"deletes": self.deletes, "rows": self.rows}
        return {option: with_batch_values(text) for option, text in texts.items() if text}

    @property
    def has_row_order(self) -> bool:
        """Whether the order of a file's rows decides between changes that nothing else orders (S5)."""
        return self.ties in ("first_row", "last_row")

    @property
    def has_cursor(self) -> bool:
        """Whether a cursor selects the rows of each delivery (S39)."""
        return False

    @property
    def placeholder(self) -> str | None:
        """The placeholder of the path: `date`, `datetime` or `delivery`; None if it has none."""
        return next((name for name, _ in map(split_placeholder, placeholders(self.path))), None)


@checked_arguments
@dataclass(frozen=True, slots=True)
class Snapshot(Channel):
    """A channel of full extracts: an entity of its scope that a delivery omits is deleted.

    - `scope`: the columns of the business key, or the attributes, whose values limit a delivery
    - `unreadable_keys`: the effect of rows whose keys cannot be read: the snapshot deletes no entity ("retire_none")
      or those that it omits ("retire") (S27)
    - `empty_scope`: whether a snapshot that has no rows of a scope that it covers deletes the entities of that scope
      ("delete"), or is rejected ("reject"); None if the kind of the table decides: a fact rejects it (S41)
    - `jdbc`: the table or query of a database; each load reads it as one snapshot
    - `path`, `format`, `options`, `skip_lines`, `skip_footer`, `record_path`, `partition`, `versions`: where the
      deliveries are, and how to read them
    - `partition_format`, `time_of_day`, `delivery_timezone`: the times of the deliveries
    - `effective_at`, `effective_at_format`, `effective_at_unit`, `effective_at_round`: the business time of a row
    - `sequence`, `sequence_type`, `ties`: the order of changes of equal time
    - `rows`, `deletes`: the conditions of the rows that count, and of those whose entities count as absent
    - `reason`, `actor`, `correlation_id`: columns for the audit
    - `control_totals`: the number of rows of a delivery, and sums of columns, as the source declares them

    `help(Channel)` explains the options that both channels have.
    """

    name: ClassVar[ChannelName] = "snapshot"

    scope: tuple[str, ...] = ()
    unreadable_keys: Literal["retire_none", "retire"] = "retire_none"
    empty_scope: Literal["delete", "reject"] | None = None

    def __post_init__(self) -> None:
        Channel.__post_init__(self)
        set_frozen_fields(self, scope=as_tuple(self.scope))


@checked_arguments
@dataclass(frozen=True, slots=True)
class Feed(Channel):
    """A channel of incremental extracts: an entity that a delivery omits is unchanged.

    - `updates`: "partial" if a row may lack attributes of the source, else "full" (S30)
    - `nulls`: what NULL means in partial updates: the value NULL ("value"), or no change ("not_provided") (S30)
    - `cursor`, `start`: a column that grows, and the value from which the first load reads: each load reads the rows
      that were not loaded before, from the highest value that was (S39). Its time is also that of the row, unless
      `effective_at` is declared
    - `jdbc`: the table or query of a database, which a cursor reads
    - `path`, `format`, `options`, `skip_lines`, `skip_footer`, `record_path`, `partition`, `versions`: where the
      deliveries are, and how to read them
    - `partition_format`, `time_of_day`, `delivery_timezone`: the times of the deliveries
    - `effective_at`, `effective_at_format`, `effective_at_unit`, `effective_at_round`: the business time of a row
    - `sequence`, `sequence_type`, `ties`: the order of changes of equal time
    - `rows`, `deletes`: the conditions of the rows that count, and of those that are deletes
    - `reason`, `actor`, `correlation_id`: columns for the audit
    - `control_totals`: the number of rows of a delivery, and sums of columns, as the source declares them

    `help(Channel)` explains the options that both channels have.
    """

    name: ClassVar[ChannelName] = "feed"

    updates: Literal["full", "partial"] = "full"
    nulls: Literal["value", "not_provided"] = "value"
    cursor: str | None = None
    start: str | int | float | None = None

    def __post_init__(self) -> None:
        Channel.__post_init__(self)
        set_frozen_fields(self, start=canonical_time(self.start))
        if self.effective_at is None and self.has_time_cursor:
            set_frozen_fields(self, effective_at=self.cursor)

    @property
    def has_cursor(self) -> bool:
        """Whether a cursor selects the rows of each delivery (S39)."""
        return self.cursor is not None

    @property
    def has_time_cursor(self) -> bool:
        """Whether the values of the cursor are times."""
        return self.cursor is not None and parse_time(self.start) is not None


@checked_arguments
@dataclass(frozen=True, slots=True)
class RetireGuard:
    """Limit on how many entities one snapshot may retire (S27).

    - `share`: the largest share of the existing entities that it may retire
    - `at_least`: the number of existing entities from which the limit applies
    """

    share: float = 0.25
    at_least: int = 1

    def rejects(self, retired: int, existing: int) -> bool:
        """Return whether a snapshot that retires this number of the existing entities is rejected."""
        return existing >= self.at_least and retired > self.share * existing


DEFAULT_RETIRE_GUARD = RetireGuard(0.25, at_least=20)
"""The limit if none is declared. A declared share applies to any number of entities."""


@checked_arguments
@dataclass(frozen=True, slots=True, init=False)
class Source:
    """A system that delivers by snapshot, by change feed or by both; or a timed table or a landing table.

    - `timed_table`: the timed table, without a channel; each time of its statements is a delivery of changes (S12)
    - `landing_table`: the landing table, without a channel; each time of its deliveries is one of changes (S38)
    - `attributes`: the attributes that it provides, if the dimension has several sources
    - `existence`: whether it is the existence source, of which there is exactly one (S30)
    - `timezone`: the zone of times without one (S1)
    - `columns`: how its columns become attributes and key columns, if the names differ
    - `bad_row_limit`: the share of bad rows above which a batch is rejected (S26)
    - `retire_guard`: the largest share of entities that a snapshot may retire, or a RetireGuard (S27)
    - `overdue_after_hours`: time without a delivery after which it is overdue
    - `upstream`: the keys of the assets of Dagster that write what it reads, such as `raw/customers`
    """

    name: str
    snapshot: Snapshot | None = None
    feed: Feed | None = None
    attributes: tuple[str, ...] | None = None
    existence: bool | None = None
    timezone: str = "UTC"
    columns: Mapping[str, Column] = FrozenMapping({})
    bad_row_limit: float = 0.05
    retire_guard: RetireGuard = DEFAULT_RETIRE_GUARD
    overdue_after_hours: float | None = None
    upstream: tuple[str, ...] = ()
    timed_table: TimedTable | None = None
    landing_table: LandingTable | None = None

    def __init__(
        self,
        name: str,
        snapshot: Snapshot | str | os.PathLike[str] | Mapping[str, Any] | None = None,
        feed: Feed | str | os.PathLike[str] | Mapping[str, Any] | None = None,
        attributes: str | Sequence[str] | None = None,
        existence: bool | None = None,
        timezone: str = "UTC",
        columns: Mapping[str, Column | str | Sequence[str]] | None = None,
        bad_row_limit: float = 0.05,
        retire_guard: RetireGuard | float = DEFAULT_RETIRE_GUARD,
        overdue_after_hours: float | None = None,
        upstream: str | Sequence[str] = (),
        timed_table: TimedTable | None = None,
        landing_table: LandingTable | None = None,
    ) -> None:
        feed = TIMED_FEED if feed is None and (timed_table or landing_table) is not None else feed
        set_frozen_fields(self, name=name, attributes=as_tuple(attributes), existence=existence, timezone=timezone)
        set_frozen_fields(self, snapshot=_channel(Snapshot, snapshot), feed=_channel(Feed, feed))
        set_frozen_fields(self, columns=_columns({} if columns is None else columns))
        set_frozen_fields(self, bad_row_limit=bad_row_limit, overdue_after_hours=overdue_after_hours)
        set_frozen_fields(self, retire_guard=_retire_guard(retire_guard), upstream=as_tuple(upstream))
        set_frozen_fields(self, timed_table=timed_table, landing_table=landing_table)

    @property
    def stored_tables(self) -> dict[str, TimedTable | LandingTable]:
        """The timed table or the landing table that it reads, by the option that names it; empty without one."""
        declared = {"timed_table": self.timed_table, "landing_table": self.landing_table}
        return {option: table for option, table in declared.items() if table is not None}

    @property
    def channels(self) -> tuple[tuple[ChannelName, Snapshot | Feed], ...]:
        """The channels with their names, the snapshot first."""
        both = (self.snapshot, self.feed)
        return tuple((channel.name, channel) for channel in both if channel is not None)

    def channel(self, name: str) -> Snapshot | Feed:
        """Return the channel of this name.

        Raises:
            KeyError: The source has no such channel.
        """
        return dict(self.channels)[name]  # type: ignore[index]

    def column(self, name: str) -> Column:
        """Return how an attribute or key column is read: by default from the source column with its name."""
        column = _as_column(self.columns.get(name, Column()))
        return column if column.from_ or column.expression else replace(column, from_=(name,))


def _as_column(declared: str | Column) -> Column:
    """Return a column with the SQL of its expression, without placeholders."""
    column = Column(declared) if isinstance(declared, str) else declared
    return replace(column, expression=with_batch_values(column.expression)) if column.expression else column


def _computed(declared: Any) -> Any:
    """Return a mapping with an expression as a column; anything else unchanged, for the checks to reject."""
    return Column(**declared) if isinstance(declared, Mapping) and set(declared) == {"expression"} else declared


def _sequence(declared: Any) -> Any:
    """Return a list of parts as a tuple, and a single part alone."""
    if not isinstance(declared, (list, tuple)):
        return _computed(declared)
    parts = tuple(_computed(part) for part in declared)
    return parts[0] if len(parts) == 1 else parts


def _channel(kind: type[Snapshot] | type[Feed], declared: Any) -> Any:
    """Return a path, or a mapping of options, as a channel; anything else unchanged, for the checks to reject."""
    if isinstance(declared, (str, os.PathLike)):
        return kind(str(declared))
    names = {field.name for field in fields(kind)}
    if isinstance(declared, Mapping) and names.issuperset(declared):
        return kind(**declared)
    return declared


def _retire_guard(declared: Any) -> Any:
    """Return a share as a guard for any number of entities; anything else unchanged, for the checks to reject."""
    is_share = isinstance(declared, (int, float)) and not isinstance(declared, bool)
    return RetireGuard(declared) if is_share else declared


def placeholders(path: Any) -> list[str]:
    """Return the texts in braces in a path, unchanged."""
    return _BRACES.findall(path) if isinstance(path, str) else []


def split_placeholder(text: str) -> tuple[str, str]:
    """Return the name and the form of the text in braces; of a name without a form its default, or an empty text."""
    name, separator, form = text.partition(":")
    return name, form if separator else FORMS.get(name, "")


def is_address(path: Any) -> bool:
    """Return whether a path begins with the scheme of a file system, such as `s3a://` or `dbfs:/`."""
    return isinstance(path, str) and bool(_ADDRESS.match(path))


def without_file_scheme(path: str) -> str:
    """Return a path of this machine without its scheme `file:`; any other path unchanged."""
    return _FILE_SCHEME.sub("/", path)


def split_bucket(path: str) -> tuple[str, str]:
    """Return the address of the bucket in a path of an object store, and the rest; two empty texts of another path."""
    match = _BUCKET.fullmatch(path)
    return (match["address"], match["key"]) if match else ("", "")


def is_in_bucket(path: Any) -> bool:
    """Return whether a path is one of an object in a bucket, such as `s3a://landing/customers.csv`."""
    return isinstance(path, str) and bool(_BUCKET.fullmatch(path))


def format_of(path: Any, versions: Any = False) -> str | None:
    """Return the format of the path's suffix; without one, delta for a table that is read by versions."""
    if not isinstance(path, str):
        return None
    suffixes = [suffix.lower() for suffix in PurePosixPath(path).suffixes]
    if suffixes and suffixes[-1] in _COMPRESSIONS:
        suffixes.pop()
    file_format = _FORMATS_BY_SUFFIX.get(suffixes[-1]) if suffixes else None
    return file_format or ("delta" if versions is True else None)


def _pairs(options: Any) -> Any:
    items = options.items() if isinstance(options, Mapping) else options
    try:
        return tuple(sorted((key, value) for key, value in items))
    except (TypeError, ValueError):  # not pairs, or not sortable: the checks report it
        return tuple(items) if isinstance(options, Mapping) else options


def _columns(columns: Any) -> Any:
    if not isinstance(columns, Mapping):
        return columns
    return FrozenMapping(
        {
            name: Column(from_=declared) if isinstance(declared, (str, list, tuple)) else declared
            for name, declared in columns.items()
        }
    )


TIMED_DELIVERY, TIMED_DELETE = "_scd_delivery", "_scd_deleted"
"""The columns of the changes of a timed or a landing table: the delivery of a change, and whether it is a delete."""
TIMED_FEED = Feed(partition=TIMED_DELIVERY, deletes=TIMED_DELETE)
"""The channel of a source that is a timed table or a landing table."""
