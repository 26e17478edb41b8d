"""Deliveries: named units that a source delivers, discovered at the path of a channel or passed as frames."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyspark.sql import DataFrame

from scd_pipeline.declaration import Dimension, Feed, Snapshot
from scd_pipeline.declaration.control_totals import ROW_COUNT, summable_scales
from scd_pipeline.declaration.frozen import checked_arguments, set_frozen_fields
from scd_pipeline.declaration.path_times import suggested_form
from scd_pipeline.declaration.source import FORMAT_SUFFIXES, TIME_PLACEHOLDERS, format_of
from scd_pipeline.deliveries.inputs import (
    check_texts,
    to_frame,
    to_name,
    to_names,
    to_path,
    to_revision,
    to_time,
    to_totals,
)
from scd_pipeline.errors import OVERRIDABLE_RULES, SourceDataError
from scd_pipeline.history.batch import Batch, CursorState, revision_token
from scd_pipeline.instants import to_instant, to_utc
from scd_pipeline.texts import did_you_mean, join_names, short_repr

if TYPE_CHECKING:
    import pandas
    import pyarrow

    from scd_pipeline.deliveries.inputs import ArrowStream

NO_VALUE = "__HIVE_DEFAULT_PARTITION__"
"""The name of the partition of rows without a value, as Spark and Hive write it."""


@checked_arguments
@dataclass(frozen=True)
class Delivery:
    """A named unit that a source delivers, with its time.

    - `source`: the name of the declared source
    - `name`: identifies the delivery within its channel, so that a second load of it changes nothing
    - `channel`: "snapshot" or "feed"; may be omitted if the source has only one
    - `at`: the business time, as ISO text, date or datetime, in UTC if it has no zone; by default the name, if that is
      a date; a feed whose rows have times needs none (S4)
    - `revision`: orders the successive issues of a delivery; the highest is current (S34)
    - `frame`: the rows: a list of dicts or an iterator of them, a Spark or pandas DataFrame, a pyarrow Table, or the
      Arrow data of another library, such as a Polars DataFrame
    - `path`: the file or folder of the rows, in place of `frame`; a relative one starts from the current folder
    - `scope`: the values of the channel's scope columns that a snapshot covers; an empty one covers no entity
    - `actor`, `reason`, `correlation_id`: who changed the rows, why, and an id of the change, for the audit (S21)
    - `allow`: the rules to override: "bad_rows", "retire_guard", "control_totals"; "withdrawn" loads a withdrawn
      delivery again
    - `totals`: control totals: the number of delivered rows (`rows`), and sums of columns by their names, as whole
      numbers, decimals or texts, in place of those that its channel declares; a difference rejects the delivery (S41)
    - `withdrawn`: undoes the delivery; without a revision, whatever its current one is
    - `sealed`: not read again once it was accepted, because its revision identifies its content, as the time of the
      last change of a file does
    - `is_overwritten_in_place`: the source has only the latest content of the delivery, as a file or a partition
      does; content that differs from the current revision is a higher one, whatever its time
    - `unchanged_since`: the revision since which the source has not changed the content; a delivery of which this
      revision or a higher one was accepted is not read
    - `partition`, `table_version`: the partition or the version of the table at `path` that has the rows; several
      deliveries can be partitions of one `frame`
    - `size`: the bytes of the files at `path` when they were discovered
    - `cursor`: the state of the channel's cursor; only the rows that were not loaded before are read (S39)
    - `connection`: options of the connection to the database of the channel, which may be secret
    - `changes_since`: the version before `table_version`; if that one is loaded, only the rows that were inserted or
      updated since are read, by the table's change data feed

    Raises:
        SourceDataError: A field has a value that cannot be used.
    """

    source: str
    name: str
    channel: str | None = None
    at: datetime | None = None
    revision: str | int | datetime = 0
    frame: DataFrame | pandas.DataFrame | pyarrow.Table | ArrowStream | Iterable[Mapping[str, Any]] | None = field(
        default=None, repr=False
    )
    path: str | None = None
    scope: Sequence[Sequence[Any]] | None = None
    actor: str | None = None
    reason: str | None = None
    correlation_id: str | None = None
    allow: frozenset[str] = frozenset()
    withdrawn: bool = False
    partition: str | None = None
    table_version: int | None = None
    changes_since: int | None = None
    size: int | None = None
    sealed: bool = False
    is_overwritten_in_place: bool = False
    unchanged_since: str | int | datetime | None = None
    cursor: CursorState | None = None
    connection: Mapping[str, str] | None = field(default=None, repr=False)
    totals: Mapping[str, str | int | Decimal] | None = None

    def __post_init__(self) -> None:
        """Store each field in one form.

        Raises:
            SourceDataError: A field has a value that cannot be used.
        """
        set_frozen_fields(self, name=to_name(self.name))
        location = self.location
        set_frozen_fields(
            self,
            at=to_time(location, self.at),
            revision=to_revision(location, self.revision),
            unchanged_since=None if self.unchanged_since is None else to_revision(location, self.unchanged_since),
            path=to_path(location, self.path),
            allow=to_names(location, self.allow),
            totals=to_totals(location, self.totals),
            frame=to_frame(location, self.frame),
        )
        texts = ("source", "channel", "actor", "reason", "correlation_id", "partition")
        check_texts(location, {name: getattr(self, name) for name in texts})
        is_scope = isinstance(self.scope, list | tuple) and all(isinstance(v, list | tuple) for v in self.scope)
        if self.scope is not None and not is_scope:
            raise SourceDataError("DELIVERY_SCOPE", location, value=short_repr(self.scope))

    @property
    def location(self) -> str:
        """The delivery, as error messages name it."""
        return f"delivery {self.source}/{self.name}"

    def declared_channel(self, dimension: Dimension) -> Snapshot | Feed:
        """Return the declared channel.

        Raises:
            SourceDataError: The dimension does not have it.
        """
        names = [source.name for source in dimension.sources]
        if self.source not in names:
            raise SourceDataError("UNKNOWN_SOURCE", self.location, table=dimension.name, sources=", ".join(names))
        channels = dict(dimension.source(self.source).channels)
        kind = self.channel or (next(iter(channels)) if len(channels) == 1 else None)
        if kind not in channels:
            requested = f"channel {self.channel} is not declared" if self.channel else "the channel is missing"
            raise SourceDataError("UNKNOWN_CHANNEL", self.location, requested=requested, channels=" or ".join(channels))
        channel = channels[kind]
        if self.path is None or channel.format is not None:
            return channel
        return replace(channel, format=self._format())

    def _format(self) -> str:
        """Return the format of a file whose channel declares none.

        Raises:
            SourceDataError: UNKNOWN_FORMAT: The suffix of the path does not imply a format.
        """
        if inferred := format_of(self.path):
            return inferred
        raise SourceDataError("UNKNOWN_FORMAT", self.location, path=self.path, suffixes=join_names(FORMAT_SUFFIXES))

    def time(self, dimension: Dimension) -> datetime | None:
        """Return `at` in UTC; without it, the name if that is a time (S4).

        None for a delivery without either, or whose name is not its time: one that was discovered, a withdrawal, and a
        feed whose rows have times.
        """
        channel = self.declared_channel(dimension)
        if self.at is not None:
            return to_utc(self.at)
        is_discovered = self.sealed or self.partition is not None
        ignores_name = is_discovered or self.withdrawn or (isinstance(channel, Feed) and channel.effective_at)
        return None if ignores_name else to_instant(self.name)

    def time_problem(self, dimension: Dimension) -> str:
        """Return why neither the delivery nor its rows have a time (S4); an empty text if one of them has."""
        channel = self.declared_channel(dimension)
        if self.withdrawn or self.time(dimension) is not None:
            return ""
        if self.sealed and channel.placeholder in TIME_PLACEHOLDERS:
            return f"{self.name} in the name of {Path(str(self.path)).name} is not a date of the calendar"
        if isinstance(channel, Feed) and channel.effective_at:
            return ""
        if self.partition == NO_VALUE:
            return f"its rows have no value in {channel.partition}"
        if self.partition is not None:
            return f"{self.partition} in {channel.partition} is not a {_partition_form(channel)}"
        return "it has no time"

    def time_fix(self, dimension: Dimension) -> str:
        """Return how to declare the form of a partition without a time; empty if that of any delivery helps."""
        channel = self.declared_channel(dimension)
        form = suggested_form([self.partition]) if self.partition else None
        if form is None or form == channel.partition_format:
            return ""
        return f'declare the form of its date, `partition_format: "{form}"`'

    def batch(self, dimension: Dimension) -> Batch:
        """Return the batch of this delivery, before its content is known.

        Raises:
            SourceDataError: The scope or an override does not fit the channel, or a frame has no time. A discovered
                delivery without a time is rejected later, so that the others are loaded.
        """
        channel = self.declared_channel(dimension)
        self._check_scope(channel)
        self._check_totals(dimension)
        if unknown := sorted(self.allow - set(OVERRIDABLE_RULES)):
            details = {"rules": ", ".join(unknown), "expected": ", ".join(OVERRIDABLE_RULES)}
            hint = did_you_mean(unknown[0], OVERRIDABLE_RULES)
            raise SourceDataError("UNKNOWN_RULE", self.location, **details, hint=hint)
        is_passed = self.path is None and self.connection is None
        if is_passed and (reason := self.time_problem(dimension)):
            raise SourceDataError("NO_TIME", self.location, reason=reason)
        return Batch(
            source=self.source,
            channel=channel.name,
            delivery=self.name,
            revision=revision_token(self.revision),
            at=self.time(dimension),
            has_row_times=isinstance(channel, Snapshot) and channel.effective_at is not None,
            scope_columns=channel.scope if isinstance(channel, Snapshot) else (),
            withdrawn=self.withdrawn,
            reason=self.reason,
            actor=self.actor,
            correlation_id=self.correlation_id,
        )

    def _check_scope(self, channel: Snapshot | Feed) -> None:
        """Check that the scope has a value for each scope column of the channel; else it would cover no entity."""
        if self.scope is None:
            return
        names = channel.scope if isinstance(channel, Snapshot) else ()
        if not names:
            raise SourceDataError("UNDECLARED_SCOPE", self.location, value=repr(self.scope), channel=channel.name)
        for values in self.scope:
            if len(values) != len(names):
                details = {"value": repr(values), "count": len(values), "columns": ", ".join(names)}
                raise SourceDataError("SCOPE_LENGTH", self.location, **details, expected=len(names))

    def _check_totals(self, dimension: Dimension) -> None:
        """Check that each sum is of a column of whole numbers or decimals of the source."""
        summable = [ROW_COUNT, *summable_scales(dimension, self.source)]
        if unknown := [name for name in self.totals or {} if name not in summable]:
            hint = did_you_mean(unknown[0], summable)
            raise SourceDataError("UNKNOWN_TOTAL", self.location, name=unknown[0], hint=hint)


def _partition_form(channel: Snapshot | Feed) -> str:
    """Return the form of the date in a partition, for messages."""
    if channel.partition_format is None:
        return "date of the form 2024-01-31, or a time of the form 2024-01-31 12:30:00"
    return f"date or time of the form {channel.partition_format}"
