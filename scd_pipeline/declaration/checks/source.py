"""What makes sources and their channels valid, each taken alone."""

from __future__ import annotations

import dataclasses
import difflib
import zoneinfo
from collections.abc import Iterable, Mapping
from typing import Any

from scd_pipeline.declaration.checks.collect import Faults, joined
from scd_pipeline.declaration.frozen import FrozenMapping, set_frozen_fields
from scd_pipeline.declaration.names import COLUMN_NAME_RULE, did_you_mean, is_column_name, is_text, shown
from scd_pipeline.declaration.patterns import pattern_fault
from scd_pipeline.declaration.source import (
    DATED_PLACEHOLDERS,
    PLACEHOLDERS,
    UNITS,
    Channel,
    Column,
    Feed,
    RetireGuard,
    Snapshot,
    Source,
    placeholders,
)
from scd_pipeline.declaration.yaml.options import COLUMN, FEED, RETIRE_GUARD, SNAPSHOT, SOURCE

FORMATS = ("parquet", "csv", "json", "delta")
_LOCAL_ZONES = ("localtime", "posixrules", "Factory")  # these differ from machine to machine
_TOO_LONG = 1_000_000  # hours, a century


def check_sources(faults: Faults, sources: Any) -> tuple[Source, ...]:
    """The sources that later checks can rely on."""
    if sources is None or sources == ():
        faults.add("sources", "is missing", "declare at least one source, with a snapshot or a feed")
        return ()
    if not isinstance(sources, tuple):
        faults.add("sources", f"{shown(sources)} is not a source", "give a Source or a list of them")
        return ()
    drafts = [_check_source(faults, source) for source in sources]
    return tuple(draft for draft in drafts if draft is not None)


def _check_source(faults: Faults, source: Any) -> Source | None:
    if not isinstance(source, Source):
        faults.add("sources", f"{shown(source)} is not a source", "give a Source or a list of them")
        return None
    if not (isinstance(source.name, str) and is_column_name(source.name)):
        field = joined("sources", source.name)
        faults.add(field, f"{shown(source.name)} cannot be a name", COLUMN_NAME_RULE)
        return None
    if "/" in source.name:
        field = joined("sources", source.name)
        faults.add(field, f"{shown(source.name)} cannot name a source", "write it without `/`, as batches' ids have it")
        return None
    path = f"sources.{source.name}"
    draft = faults.sound(path, source, SOURCE)
    faults.unique(f"{path}.attributes", draft.attributes or ())
    _check_channels(faults, path, draft)
    _check_timezone(faults, f"{path}.timezone", draft.timezone)
    _check_share(faults, f"{path}.bad_row_limit", draft.bad_row_limit)
    _check_retire_guard(faults, f"{path}.retire_guard", draft.retire_guard)
    if draft.overdue_after_hours is not None and not 0 < draft.overdue_after_hours < _TOO_LONG:
        wrong = f"{shown(draft.overdue_after_hours)} is no time to wait"
        faults.add(f"{path}.overdue_after_hours", wrong, f"give hours, more than 0 and less than {_TOO_LONG}")
    set_frozen_fields(draft, columns=_check_columns(faults, f"{path}.columns", draft.columns))
    return draft


def _check_timezone(faults: Faults, field: str, name: str) -> None:
    try:
        if name not in _LOCAL_ZONES:
            zoneinfo.ZoneInfo(name)
            return
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
        pass
    near = difflib.get_close_matches(name, zoneinfo.available_timezones() - {*_LOCAL_ZONES}, n=1)
    right = f"did you mean {near[0]}?" if near else "give a zone's name, as UTC or Europe/Oslo"
    faults.add(field, f"{shown(name)} is not a time zone", right)


def _check_share(faults: Faults, field: str, share: float) -> None:
    if not 0 <= share <= 1:
        faults.add(field, f"{shown(share)} is not between 0 and 1", "give a share, as 0.05 for 5 percent")


def _check_retire_guard(faults: Faults, field: str, guard: Any) -> None:
    if not isinstance(guard, RetireGuard):
        faults.add(field, f"{shown(guard)} is not a number", "give a share, as 0.05 for 5 percent, or a RetireGuard")
        return
    draft = faults.sound(field, guard, RETIRE_GUARD)
    _check_share(faults, field, draft.share)
    if not isinstance(draft.at_least, int) or draft.at_least < 1:
        problem = f"{shown(draft.at_least)} is not a whole number from 1 on"
        faults.add(f"{field}.at_least", problem, "give the least number of entities, as 20")


def _check_channels(faults: Faults, path: str, draft: Source) -> None:
    if draft.snapshot is None and draft.feed is None:
        faults.add(path, "has neither a snapshot nor a feed", "declare how it delivers, with one or both")
    for kind, of in (("snapshot", Snapshot), ("feed", Feed)):
        channel = getattr(draft, kind)
        if channel is None:
            continue
        if isinstance(channel, of):
            set_frozen_fields(draft, **{kind: _check_channel(faults, f"{path}.{kind}", channel)})
        elif isinstance(channel, Mapping):
            known = [field.name for field in dataclasses.fields(of)]
            for word in (word for word in channel if word not in known):
                faults.add(joined(f"{path}.{kind}", word), "is not an option", did_you_mean(word, known))
            set_frozen_fields(draft, **{kind: None})
        else:
            faults.add(f"{path}.{kind}", f"{shown(channel)} is not a {kind}", f"give a path or a {of.__name__}")
            set_frozen_fields(draft, **{kind: None})


def _check_channel(faults: Faults, path: str, channel: Snapshot | Feed) -> Snapshot | Feed:
    draft = faults.sound(path, channel, SNAPSHOT if isinstance(channel, Snapshot) else FEED)
    _check_options(faults, f"{path}.options", draft.options)
    if draft.path is None:
        _check_pathless(faults, path, draft)
    else:
        _check_place(faults, path, draft)
        _check_format(faults, path, draft)
    faults.choice(f"{path}.sequence_type", draft.sequence_type, ("bigint", "timestamp"))
    if draft.sequence_type == "timestamp" and draft.sequence is None:
        faults.add(
            f"{path}.sequence_type",
            "there is no `sequence` that it speaks of",
            "name the column in `sequence`",
        )
    _check_ties(faults, f"{path}.ties", draft)
    _check_effective_at(faults, path, draft)
    if isinstance(draft, Feed):
        _check_feed(faults, path, draft)
    else:
        faults.choice(f"{path}.unreadable_keys", draft.unreadable_keys, ("retire_nobody", "retire"))
        faults.unique(f"{path}.scope", draft.scope)
        if draft.sequence is not None and draft.effective_at is None:
            wrong = "a snapshot states each entity once, unless its rows have times of their own"
            faults.add(f"{path}.sequence", wrong, "name their column in `effective_at`, or remove `sequence`")
    return draft


def _check_effective_at(faults: Faults, path: str, channel: Channel) -> None:
    """Check how the business time of a row is read."""
    declared = {
        "effective_at_format": channel.effective_at_format is not None,
        "effective_at_unit": channel.effective_at_unit is not None,
        "effective_at_round": channel.effective_at_round,
    }
    if channel.effective_at is None:
        wrong = "there is no `effective_at` that it speaks of"
        for word in (word for word, is_declared in declared.items() if is_declared):
            faults.add(f"{path}.{word}", wrong, "name the column in `effective_at`")
        return
    _check_time_reading(faults, path, channel.effective_at_format, channel.effective_at_unit, "effective_at_")


def _check_time_reading(faults: Faults, path: str, pattern: str | None, unit: str | None, prefix: str = "") -> None:
    """Check a pattern for text and a unit for numbers, of which a time takes one."""
    _check_pattern(faults, f"{path}.{prefix}format", pattern)
    if unit is None:
        return
    field = f"{path}.{prefix}unit"
    faults.choice(field, unit, UNITS)
    if pattern is not None:
        wrong = f"excludes `{prefix}format`: a unit reads numbers, a format reads text"
        faults.add(field, wrong, "keep the one that fits the column")


def _check_ties(faults: Faults, field: str, channel: Snapshot | Feed) -> None:
    """A rule for ties needs what it decides by: deletes, or rows in an order that every read repeats."""
    faults.choice(field, channel.ties, ("reject", "delete_wins", "last_row"))
    if channel.ties == "delete_wins" and not (isinstance(channel, Feed) and channel.deletes):
        right = "name their condition in `deletes`" if isinstance(channel, Feed) else "write reject or last_row"
        faults.add(field, f"no row of this {channel.kind} is a delete", f"{right}, or remove `ties`")
    if channel.ties == "last_row" and (channel.format == "delta" or channel.partition is not None):
        fix = "name a column that orders them in `sequence`, or deliver files"
        faults.add(field, "the rows of a table have no order", fix)


def _check_feed(faults: Faults, path: str, feed: Feed) -> None:
    faults.choice(f"{path}.updates", feed.updates, ("full", "partial"))
    faults.choice(f"{path}.nulls", feed.nulls, ("value", "not_provided"))
    if feed.nulls == "not_provided" and feed.updates == "full":
        wrong = "a feed that states all attributes cannot leave one unstated"
        faults.add(f"{path}.nulls", wrong, "write `updates: partial` beside it, or remove it")


def _check_options(faults: Faults, field: str, options: Any) -> None:
    pairs = isinstance(options, tuple) and all(isinstance(pair, tuple) and len(pair) == 2 for pair in options)
    if not pairs:
        faults.add(field, f"{shown(options)} has no options", "give options by their names")
        return
    for name, value in options:
        if not (isinstance(name, str) and isinstance(value, str) and is_text(name) and is_text(value)):
            wrong = f"option {shown(name)} has the value {shown(value)}, which is not text"
            faults.add(field, wrong, 'options are given as text, as "true" or "1"')
    names = [name.casefold() for name, _ in options if isinstance(name, str)]
    faults.unique(field, names)


def _check_pathless(faults: Faults, path: str, channel: Channel) -> None:
    """Without a path, frames are handed in: nothing is looked for."""
    for word, given in (("partition", channel.partition), ("versions", channel.versions)):
        if given:
            faults.add(
                f"{path}.{word}",
                "there is no `path` whose deliveries it tells apart",
                "give the table's `path`",
            )
    if channel.format is not None:
        faults.choice(f"{path}.format", channel.format, FORMATS)


def _check_place(faults: Faults, path: str, channel: Channel) -> None:
    """How the deliveries at the path are told apart: by a placeholder, by partition or by version."""
    found, timely = placeholders(channel.path), _timely(channel)
    for word in found:
        if word not in PLACEHOLDERS:
            faults.add(f"{path}.path", f"{{{word}}} is not a placeholder", did_you_mean(word, timely))
    known = [word for word in found if word in PLACEHOLDERS]
    if channel.partition is not None and channel.versions:
        faults.add(f"{path}.versions", "excludes `partition`", "keep the one that tells its deliveries apart")
    if channel.partition is not None or channel.versions:
        if known:
            word = "versions" if channel.versions else "partition"
            wrong = f"`{word}` tells its deliveries apart, so {{{known[0]}}} has no meaning"
            faults.add(f"{path}.path", wrong, "give the path of the table alone")
    elif known and "://" in str(channel.path):
        wrong = f"files at an address cannot be listed, so nothing would be found for {{{known[0]}}}"
        faults.add(f"{path}.path", wrong, "give a path of this machine, as one of a mounted folder, or hand in frames")
    elif len(known) > 1:
        faults.add(f"{path}.path", f"has {len(known)} placeholders", f"keep one: {_braced(timely)}")
    elif known and known[0] not in timely:
        _tell_timeless(faults, f"{path}.path", channel, known[0])
    elif not found:
        _tell_missing_placeholder(faults, f"{path}.path", channel)


def _timely(channel: Channel) -> tuple[str, ...]:
    """The placeholders that will do: a delivery has a time, unless it is of a feed whose rows have theirs (S4)."""
    own_times = isinstance(channel, Feed) and channel.effective_at is not None
    return PLACEHOLDERS if own_times else DATED_PLACEHOLDERS


def _braced(words: Iterable[str]) -> str:
    return " or ".join(f"{{{word}}}" for word in words)


def _tell_timeless(faults: Faults, field: str, channel: Channel, word: str) -> None:
    wrong = f"{{{word}}} is any name, and a {channel.kind} takes a delivery's time from its name"
    right = f"write {_braced(DATED_PLACEHOLDERS)} in its place"
    if isinstance(channel, Feed):
        wrong = f"{wrong} where its rows have none"
        right = f"{right}, or name the column of the rows' times in `effective_at`"
    faults.add(field, wrong, right)


def _tell_missing_placeholder(faults: Faults, field: str, channel: Channel) -> None:
    right = f"put {_braced(_timely(channel))} in the name, as customers_{{date}}.csv"
    if channel.format == "delta":
        right = "write `versions: true` or `partition: <column>` beside it"
    elif channel.format in (None, "parquet"):
        right = f"{right}; or for a table, write `partition: <column>`"
    faults.add(field, f"nothing in {shown(channel.path)} tells one delivery from the next", right)


def _check_format(faults: Faults, path: str, channel: Channel) -> None:
    field = f"{path}.format"
    if channel.format is None:
        wrong = f"is missing, and the ending of {shown(channel.path)} does not tell it"
        faults.add(field, wrong, f"write one of {', '.join(FORMATS)}")
        return
    faults.choice(field, channel.format, FORMATS)
    if channel.format not in FORMATS:
        return
    if channel.versions and channel.format != "delta":
        faults.add(field, f"{channel.format} has no versions", "write delta, or remove `versions`")
    if channel.partition is not None and channel.format not in ("delta", "parquet"):
        wrong = f"{channel.format} has no partitions that can be relied on"
        faults.add(field, wrong, "write delta or parquet, or remove `partition`")


def _check_columns(faults: Faults, path: str, columns: Any) -> FrozenMapping[Column]:
    if not isinstance(columns, Mapping):
        faults.add(path, f"{shown(columns)} has no columns", "give attribute or key names with their columns")
        return FrozenMapping({})
    drafts = {name: _check_column(faults, joined(path, name), column) for name, column in columns.items()}
    return FrozenMapping({name: draft for name, draft in drafts.items() if draft is not None})


def _check_column(faults: Faults, path: str, column: Any) -> Column | None:
    if not isinstance(column, Column):
        faults.add(path, f"{shown(column)} is not a column", "give the column's name, or a Column")
        return None
    draft = faults.sound(path, column, COLUMN)
    if draft.from_ and draft.expression is not None:
        faults.add(path, "has both `from` and `expression`", "keep one: the expression may name any column")
    faults.unique(f"{path}.from", [name.casefold() for name in draft.from_])
    _check_time_reading(faults, path, draft.format, draft.unit)
    return draft


def _check_pattern(faults: Faults, field: str, pattern: str | None) -> None:
    fault = None if pattern is None else pattern_fault(pattern)
    if fault is not None:
        faults.add(field, *fault)
