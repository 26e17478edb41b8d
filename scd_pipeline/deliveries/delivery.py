"""Deliveries: what a source hands over, found at its channel's path or given as a frame, and read as frames."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyspark.sql import DataFrame

from scd_pipeline.declaration import Dimension, Feed, Snapshot
from scd_pipeline.errors import OVERRIDABLE_RULES, SourceDataError
from scd_pipeline.history.batch import Batch, revision_token
from scd_pipeline.instants import to_utc

if TYPE_CHECKING:
    import pandas
    import pyarrow

NO_VALUE = "__HIVE_DEFAULT_PARTITION__"
"""The name of the partition of rows without a value, as tables themselves call it."""
PLACEHOLDERS = {
    "date": r"\d{4}-\d{2}-\d{2}",
    "datetime": r"\d{4}-\d{2}-\d{2}T\d{2}-\d{2}-\d{2}",
    "delivery": r"[^/]+",
}
TIME_PLACEHOLDERS = ("date", "datetime")


@dataclass(frozen=True)
class Delivery:
    """One thing that a source delivers, with its name and its time.

    `channel` may be left out where the source has only one. `at` without a zone is UTC; it may be None only for a
    feed whose rows carry their own times (S4). `revision` tells a corrected edition from an earlier one, the highest
    counts (S34). `scope` gives the values of the channel's scope columns that a snapshot speaks of; without any it
    speaks of nobody. `allow` lets through what would stop the batch: "bad_rows", "retire_guard". `withdrawn` takes the
    delivery back. A `sealed` one is not read again once it was accepted: its revision tells its content, as a file's
    time of change does. `is_latest` says that the source has only the delivery's latest content, as a file or a
    partition does: other content than that of the current revision is a higher one, whatever a clock says.
    """

    source: str
    name: str
    channel: str | None = None
    at: datetime | None = None
    revision: str | int | datetime = 0
    frame: DataFrame | pandas.DataFrame | pyarrow.Table | None = field(default=None, repr=False)
    path: str | None = None
    scope: Sequence[Sequence[Any]] | None = None
    actor: str | None = None
    reason: str | None = None
    correlation_id: str | None = None
    allow: frozenset[str] = frozenset()
    withdrawn: bool = False
    partition: str | None = None
    table_version: int | None = None
    sealed: bool = False
    is_latest: bool = False

    def __post_init__(self) -> None:
        """Errors: SourceDataError for a time or a revision that is none, or a scope that is no list of lists."""
        if self.at is not None and not isinstance(self.at, datetime):
            raise SourceDataError(
                f"delivery {self.source}/{self.name}: at={self.at!r} is no datetime; expected one, as "
                f"datetime(2024, 1, 31, tzinfo=timezone.utc)"
            )
        if "/" in str(self.revision) or (isinstance(self.revision, int) and self.revision < 0):
            raise SourceDataError(
                f"delivery {self.source}/{self.name}: revision={self.revision!r} cannot be one; expected a number from "
                f"0 on, a datetime, or a text without `/`"
            )
        if self.scope is not None and not all(isinstance(values, list | tuple) for values in self.scope):
            raise SourceDataError(
                f"delivery {self.source}/{self.name}: scope={self.scope!r} is no list of lists; expected for each part "
                f"of the scope its values in the order of the scope's columns, as [['EU'], ['US']]"
            )

    def channel_of(self, dimension: Dimension) -> Snapshot | Feed:
        """The declared channel.  Errors: SourceDataError if the dimension has none of that name."""
        names = [source.name for source in dimension.sources]
        if self.source not in names:
            raise SourceDataError(
                f"delivery {self.name}: source '{self.source}' is not declared for {dimension.name}; "
                f"expected one of {', '.join(names)}"
            )
        channels = dict(dimension.source(self.source).channels)
        kind = self.channel or (next(iter(channels)) if len(channels) == 1 else None)
        if kind not in channels:
            raise SourceDataError(
                f"delivery {self.source}/{self.name}: channel {self.channel or 'not given'}; expected "
                f"{' or '.join(channels)}"
            )
        return channels[kind]

    def lacks_time(self, dimension: Dimension) -> str:
        """What is wrong where neither the delivery nor its rows have a time (S4); nothing where one of them has."""
        channel = self.channel_of(dimension)
        if self.at is not None or self.withdrawn:
            return ""
        if self.sealed and any(placeholder(word) in str(channel.path) for word in TIME_PLACEHOLDERS):
            file = Path(str(self.path)).name
            return f"{file} has {self.name} in its name, which is no date of the calendar; rename the file"
        if isinstance(channel, Feed) and channel.effective_at:
            return ""
        wrong = f"its rows have no value in {channel.partition}" if self.partition == NO_VALUE else "it has no time"
        right = "expected `at`, a date in its name, or a feed with `effective_at`"
        return f"{wrong}; {right}; the wall clock is never asked"

    def batch(self, dimension: Dimension) -> Batch:
        """The batch that this delivery is, before its content is known.

        Errors: SourceDataError where it does not fit its channel: by its scope, by what it lets through, or as a frame
        without a time. What was found somewhere may lack one: it is stopped later, and keeps no other out.
        """
        channel = self.channel_of(dimension)
        self._check_scope(channel)
        if unknown := sorted(self.allow - set(OVERRIDABLE_RULES)):
            raise SourceDataError(
                f"delivery {self.source}/{self.name}: no rule {', '.join(unknown)} can be let through; "
                f"expected some of {', '.join(OVERRIDABLE_RULES)}"
            )
        if self.path is None and (wrong := self.lacks_time(dimension)):
            raise SourceDataError(f"delivery {self.source}/{self.name}: {wrong}")
        return Batch(
            source=self.source,
            channel=channel.kind,
            delivery=self.name,
            revision=revision_token(self.revision),
            at=None if self.at is None else to_utc(self.at),
            row_times=isinstance(channel, Snapshot) and channel.effective_at is not None,
            scope_columns=channel.scope if isinstance(channel, Snapshot) else (),
            withdrawn=self.withdrawn,
            reason=self.reason,
            actor=self.actor,
            correlation_id=self.correlation_id,
        )

    def _check_scope(self, channel: Snapshot | Feed) -> None:
        """Values that nobody asks for, or too few or too many of them, would cover nobody."""
        if self.scope is None:
            return
        names = channel.scope if isinstance(channel, Snapshot) else ()
        if not names:
            raise SourceDataError(
                f"delivery {self.source}/{self.name}: scope={self.scope!r}, and its {channel.kind} declares no scope; "
                f"expected none, or a snapshot with `scope` and columns of the business key"
            )
        for values in self.scope:
            if len(values) != len(names):
                raise SourceDataError(
                    f"delivery {self.source}/{self.name}: {values!r} in its scope has {len(values)} values; expected "
                    f"{len(names)}, one for each of {', '.join(names)}"
                )


def placeholder(word: str) -> str:
    return "{" + word + "}"
