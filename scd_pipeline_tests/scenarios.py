"""Small random scenarios of one dimension or fact, with every kind of delivery that a pipeline gets.

A scenario is a declaration (a shape), four to eight batches and the order in which they arrive. That of a fact has
another scenario: that of the dimension that its rows reference. The same generator runs on a seed
(`random_scenario(7)`) and under Hypothesis (`drawn_scenarios()`), where examples shrink.

Many scenarios of one shape can share a load. The first key column is `scenario`, every snapshot is scoped by it,
and the delivery names of two scenarios differ: they contain the number of the scenario in such a way that their
order within a scenario stays (see `delivery_name`). `unscoped_scenario` returns a scenario with full snapshots.

The engine's side builds a frame from `rows_as_records` and `physical_columns`. Rendering, by declared type:

    type                       column in the delivery   rendered as
    string                     string                   unchanged
    int, bigint                string                   '12', '-5'
    decimal(10,2)              string                   '1.50'
    boolean                    string                   'true', 'false'
    date                       string                   '2024-02-29'
    timestamp, updated_at      string                   '2024-01-01 00:00:00.000000' (UTC, no zone)
    double                     double                   a float (NaN and -0.0 too)
    array<>, struct<>, map<>   as declared              list, dict by field, dict
    seq                        bigint                   an int
    op, reason                 string                   op: 'D' for a delete, else 'U'

NULL is None. A value that does not cast is the text 'x!' (never in a string, double or nested column); a key
that cannot be read is None, or 'x!' in an int column. A feed has the columns op (`deletes: op = 'D'`), seq
and reason, a channel with row times has updated_at (`effective_at`) and seq, a snapshot without has neither.
Some rows of a batch are bad by intent: declare bad_row_limit 1.
"""

from __future__ import annotations

import datetime as dt
import itertools
import random
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from decimal import Decimal
from functools import cached_property
from typing import Any

from hypothesis import strategies as st

from scd_pipeline_tests import oracle as o
from scd_pipeline_tests.oracle import BAD, Attr, Batch, Dim, Key, Row, Src

SCOPED_BY_SCENARIO = ("scenario",)
SCOPED_BY_REGION = ("scenario", "region")
SCOPED_BY_SHOP = ("scenario", "shop")
REGIONS = ("north", "south")
SHOPS = ("a", "b")
"""Values of the attribute `shop`, which has others too."""
DAY = dt.timedelta(days=1)
START = dt.datetime(2024, 1, 1)
MAX_SCENARIOS = 3000


# -------------------------------------------------------------------------- shapes


@dataclass(frozen=True)
class Types:
    """The declared types of the key columns and of the attributes (under former names too)."""

    key: Mapping[str, str]
    attributes: Mapping[str, str]


@dataclass(frozen=True)
class Channel:
    """How a source delivers: the scope columns of its snapshots, and whether its rows have times of their own."""

    source: str
    kind: str
    has_row_times: bool = False
    scope: tuple[str, ...] = ()


@dataclass(frozen=True)
class Shape:
    """A declaration that scenarios share: the first one, and the final one after its changes (S20).

    `optional`: the attributes that a delivery may lack. A partial feed may lack any. `has_events`: a row of a feed is
    an event with a before-image, which the condition `rows` excludes, and its sequence is that of two columns.
    `pools`: the values of attributes whose values are not those of their type. `fact`: the fact whose rows these are;
    `upstream`: the shape of the dimension that it references.
    """

    name: str
    types: Types
    first: Dim
    final: Dim
    channels: tuple[Channel, ...]
    optional: frozenset[str] = frozenset()
    has_events: bool = False
    pools: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)
    fact: o.Fact | None = None
    upstream: Shape | None = None

    @property
    def redeclared(self) -> bool:
        return self.first != self.final

    def pool(self, name: str) -> tuple[Any, ...]:
        """The values of an attribute, those that are drawn more often first."""
        return self.pools.get(name) or POOLS[self.types.attributes[name]]


def _attr(name: str, scd: int, kind: str, source: str, **more: Any) -> tuple[Attr, str]:
    return Attr(name, scd, source, **more), kind


def _shape(
    name: str,
    key: dict[str, str],
    sources: tuple[Src, ...],
    attrs: tuple[tuple[Attr, str], ...],
    channels: tuple[Channel, ...],
    added: Collection[str] = (),
    optional: Collection[str] = (),
    table: str = "dim",
    **options: Any,
) -> Shape:
    """A shape whose first declaration lacks the added attributes and uses the former names."""
    final = Dim(f"{table}_{name}", tuple(key), tuple(attr for attr, _ in attrs), sources, **options)
    old = (replace(a, name=(*a.former_names, a.name)[0], former_names=()) for a in final.attrs if a.name not in added)
    types = {column: kind for attr, kind in attrs for column in (attr.name, *attr.former_names)}
    first = replace(final, attrs=tuple(old))
    return Shape(name, Types(key, types), first, final, channels, frozenset(optional))


CUSTOMER = _shape(
    "customer",
    {"scenario": "bigint", "id": "string"},
    (Src("crm", True),),
    (
        _attr("birth_date", 0, "date", "crm"),
        _attr("email", 1, "string", "crm"),
        _attr("city", 2, "string", "crm", former_names=("town",)),
        _attr("score", 2, "int", "crm"),
        _attr("manager", 3, "string", "crm"),
        _attr("tier", 6, "string", "crm", previous=True),
    ),
    (Channel("crm", "snapshot", scope=SCOPED_BY_SCENARIO), Channel("crm", "feed", has_row_times=True)),
    added={"manager"},
    optional={"email", "score"},
    begin_attr="birth_date",
    version_state=True,
)

STORE = _shape(
    "store",
    {"scenario": "bigint", "region": "string", "id": "int"},
    (Src("crm", True), Src("erp", False, feed_updates="partial", feed_nulls="not_provided", feed_ties="last_row")),
    (
        _attr("name", 1, "string", "crm", untracked="latest_in_version"),
        _attr("status", 2, "string", "crm"),
        _attr("opened", 0, "date", "erp"),
        _attr("size", 2, "int", "erp"),
        _attr("owner", 6, "string", "erp", former_names=("holder",)),
    ),
    (Channel("crm", "snapshot", scope=SCOPED_BY_REGION), Channel("erp", "feed", has_row_times=True)),
    added={"size"},
    optional={"status"},
    begin_attr="opened",
)

PLAYER = _shape(
    "player",
    {"scenario": "bigint", "id": "string"},
    (
        Src("loyalty", True),
        Src("hotel", False, feed_updates="partial", feed_ties="first_row", snapshot_ties="first_row"),
        Src("compliance", False),
    ),
    (
        _attr("joined", 0, "date", "loyalty"),
        _attr("tier", 2, "string", "loyalty"),
        _attr("points", 1, "int", "loyalty", untracked="at_open"),
        _attr("host", 3, "string", "hotel"),
        _attr("home", 2, "string", "hotel"),
        _attr("risk", 6, "int", "compliance", previous="last_different_value"),
    ),
    (
        Channel("loyalty", "feed", has_row_times=True),
        Channel("hotel", "snapshot", has_row_times=True, scope=SCOPED_BY_SCENARIO),
        Channel("hotel", "feed", has_row_times=True),
        Channel("compliance", "snapshot", scope=SCOPED_BY_SCENARIO),
    ),
    begin=(dt.datetime(2023, 1, 1), START + DAY),
)

COUNTRY = _shape(
    "country",
    {"scenario": "bigint", "id": "string"},
    (Src("iso", True),),
    (
        _attr("name", 1, "string", "iso"),
        _attr("founded", 0, "int", "iso"),
        _attr("capital", 3, "string", "iso", former_names=("seat",)),
        _attr("region", 1, "string", "iso"),
    ),
    (Channel("iso", "snapshot", scope=SCOPED_BY_SCENARIO), Channel("iso", "feed", has_row_times=True)),
    added={"region"},
    deleted_at=True,
)

PARTNER = _shape(
    "partner",
    {"scenario": "bigint", "id": "int"},
    (Src("sap", True), Src("desk", False, feed_updates="partial", feed_ties="delete_wins")),
    (
        _attr("name", 1, "string", "sap"),
        _attr("since", 0, "date", "sap"),
        _attr("contact", 3, "string", "desk"),
        _attr("rank", 1, "int", "desk"),
    ),
    (Channel("sap", "snapshot", has_row_times=True, scope=SCOPED_BY_SCENARIO), Channel("desk", "feed")),
    deleted_rows="remove",
)

MACHINE = _shape(
    "machine",
    {"scenario": "bigint", "region": "string", "id": "int"},
    (
        Src(
            "floor",
            True,
            feed_updates="partial",
            feed_nulls="not_provided",
            feed_ties="delete_wins",
            snapshot_ties="last_row",
        ),
    ),
    (
        _attr("load", 2, "double", "floor"),
        _attr("price", 2, "decimal(10,2)", "floor"),
        _attr("tags", 2, "array<string>", "floor"),
        _attr("place", 1, "struct<a:int,b:string>", "floor", untracked="latest_in_version"),
        _attr("counts", 2, "map<string,int>", "floor"),
        _attr("checked", 6, "timestamp", "floor", previous=True),
        _attr("leased", 0, "boolean", "floor"),
    ),
    (
        Channel("floor", "snapshot", has_row_times=True, scope=SCOPED_BY_REGION),
        Channel("floor", "feed", has_row_times=True),
    ),
    added={"counts"},
    optional={"tags"},
    begin=(dt.datetime(2023, 1, 1), START + DAY),
    version_state=True,
)

SHOPPER = replace(
    _shape(
        "shopper",
        {"scenario": "bigint", "id": "string"},
        (Src("pos", True, feed_updates="partial", snapshot_ties="last_row"), Src("web", False)),
        (
            _attr("shop", 2, "string", "pos"),
            _attr("name", 1, "string", "pos"),
            _attr("points", 2, "int", "web"),
        ),
        (
            Channel("pos", "snapshot", scope=SCOPED_BY_SHOP),
            Channel("pos", "feed", has_row_times=True),
            Channel("web", "feed", has_row_times=True),
        ),
        optional={"name"},
    ),
    has_events=True,
)
"""A shape whose entities move from one scope to another, and whose feeds have events."""

EVENT_TIMES = (
    START,
    START + DAY,
    START + 5 * DAY,
    START + DAY - dt.timedelta(microseconds=1),
    START + 8 * DAY,
    dt.datetime(2022, 12, 31),
)
"""The event times of facts: at the times of changes, between them, and before the beginning of histories."""


def _fact(
    name: str,
    key: dict[str, str],
    columns: dict[str, str],
    upstream: Shape,
    roles: tuple[o.Role, ...],
    source: Src,
    scope: tuple[str, ...],
    pools: dict[str, tuple[Any, ...]],
) -> Shape:
    """The shape of a fact that is delivered by snapshots of a scope, and by a feed with deletes."""
    attrs = tuple(_attr(column, 1, kind, source.name, required=column == "sold_at") for column, kind in columns.items())
    channels = (Channel(source.name, "snapshot", scope=scope), Channel(source.name, "feed"))
    shape = _shape(name, key, (source,), attrs, channels, table="fct", deleted_rows="remove")
    fact = o.Fact(shape.final, "sold_at", roles)
    return replace(shape, pools={"sold_at": EVENT_TIMES, **pools}, fact=fact, upstream=upstream)


SALE = _fact(
    "sale",
    {"scenario": "bigint", "id": "int"},
    {"sold_at": "timestamp", "shop": "string", "player_id": "string", "partner_id": "string", "coins": "int"},
    PLAYER,
    (
        o.Role("player", PLAYER.final, ("scenario", "player_id"), infers=True),
        o.Role("partner", PLAYER.final, ("scenario", "partner_id")),
    ),
    Src("till", True),
    SCOPED_BY_SHOP,
    {"player_id": ("k1", "k2", "k5", "k7", "zz"), "partner_id": ("k1", "k3", "k7", "zz")},
)
"""A fact whose rows move from one scope to another; a scope that is named and has no rows is emptied."""

RENT = _fact(
    "rent",
    {"scenario": "bigint", "region": "string", "id": "int"},
    {"sold_at": "timestamp", "store_id": "int", "coins": "int"},
    STORE,
    (o.Role("store", STORE.final, ("scenario", "region", "store_id"), infers=True),),
    Src("lease", True, feed_ties="delete_wins", empty_scope="reject"),
    SCOPED_BY_REGION,
    {"store_id": (1, 2, 4, 9)},
)
"""A fact whose scope is a column of the grain; a scope that is named and has no rows rejects the delivery."""

PURCHASE = _fact(
    "purchase",
    {"scenario": "bigint", "id": "string"},
    {"sold_at": "timestamp", "buyer": "string", "coins": "int"},
    CUSTOMER,
    (o.Role("buyer", CUSTOMER.final, ("scenario", "buyer")),),
    Src("web", True, snapshot_ties="last_row", empty_scope="reject"),
    SCOPED_BY_SCENARIO,
    {"buyer": ("k1", "k2", "k6", "zz")},
)
"""A fact whose snapshots have all of its rows."""

SHAPES = (CUSTOMER, STORE, PLAYER, COUNTRY, PARTNER, MACHINE)
DIMENSION_SHAPES = (*SHAPES, SHOPPER)
"""The dimensions that are compared with the oracle. `SHOPPER` has few features, whose shares it would reduce."""

FACT_SHAPES = (SALE, RENT, PURCHASE)
COMPARED_SHAPES = (*DIMENSION_SHAPES, *FACT_SHAPES)


def with_deleted_versions(shape: Shape) -> Shape:
    """The shape with deletes that open versions (S18); its scenarios are the same."""
    first, final = (replace(dim, deleted_rows="new_version") for dim in (shape.first, shape.final))
    return replace(shape, name=f"{shape.name}_deleted", first=first, final=final)


DELETED_SHAPES = tuple(with_deleted_versions(shape) for shape in SHAPES if shape.final.has_windows)

POOLS: dict[str, tuple[Any, ...]] = {
    "string": ("a", "b", "A", "", "a|b", "a ", "ä"),
    "int": (0, 1, -5, 2147483647),
    "boolean": (True, False),
    "date": (dt.date(1990, 1, 1), dt.date(2024, 2, 29), dt.date(1900, 3, 1)),
    "timestamp": (START, START + dt.timedelta(microseconds=1), dt.datetime(1999, 12, 31, 23, 59, 59, 999999)),
    "double": (0.0, -0.0, float("nan"), 1.5, 0.1),
    "decimal(10,2)": (Decimal("0.00"), Decimal("1.50"), Decimal("-0.25")),
    "array<string>": ([], ["a", "b"], ["a|b"], [None], ["b", "a"]),
    "struct<a:int,b:string>": ({"a": 1, "b": None}, {"a": None, "b": None}, {"a": 1, "b": "x"}),
    "map<string,int>": ({}, {"x": 1, "y": 2}, {"y": 2, "x": 1}, {"x": None}),
}
CASTS = frozenset({"int", "boolean", "date", "timestamp", "decimal(10,2)"})


# -------------------------------------------------------------------------- scenarios


@dataclass(frozen=True)
class Scenario:
    """A scenario of one dimension.

    `batches` are ordered by position. `phases` are their indexes in the order of delivery, including retries:
    first those delivered under the first declaration, then those under the final one. `one_load`: what the retire
    guard rejects depends on the existing entities (S27), so one load has to ingest all batches. `upstream`: for a fact,
    the scenario of the dimension that its rows reference.
    """

    number: int
    shape: Shape
    batches: tuple[Batch, ...]
    phases: tuple[tuple[int, ...], tuple[int, ...]]
    one_load: bool = False
    upstream: Scenario | None = None

    @property
    def dim(self) -> Dim:
        return self.shape.final

    @property
    def first(self) -> tuple[Batch, ...]:
        """The batches that are delivered under the first declaration, in order of delivery."""
        return tuple(self.batches[i] for i in self.phases[0])

    @property
    def second(self) -> tuple[Batch, ...]:
        """The batches that are delivered under the final declaration, in order of delivery."""
        return tuple(self.batches[i] for i in self.phases[1])

    @property
    def delivered(self) -> tuple[Batch, ...]:
        return self.first + self.second


def unscoped_scenario(scenario: Scenario) -> Scenario:
    """Return the scenario for a load of its own: snapshots are full unless they are scoped by region."""
    channels = tuple(replace(c, scope=tuple(s for s in c.scope if s != "scenario")) for c in scenario.shape.channels)
    batches = tuple(_unscoped(batch) for batch in scenario.batches)
    return replace(scenario, shape=replace(scenario.shape, channels=channels), batches=batches)


def _unscoped(batch: Batch) -> Batch:
    if not batch.scope_columns:
        return batch
    values = None if batch.scope_values is None else tuple(value[1:] for value in batch.scope_values)
    columns = batch.scope_columns[1:]
    return replace(batch, scope_columns=columns, scope_values=values if columns else None)


def rendered(value: Any, kind: str) -> Any:
    """A value as the source delivers it (see the module's table)."""
    if value is BAD:
        return "x!"
    if value is None or kind in ("string", "double") or "<" in kind:
        return value
    if kind == "boolean":
        return str(value).lower()
    return value.strftime("%Y-%m-%d %H:%M:%S.%f") if isinstance(value, dt.datetime) else str(value)


def physical_columns(batch: Batch, types: Types) -> dict[str, str]:
    """The columns of a delivery with their types in it, also where it has no rows."""
    columns = dict.fromkeys(types.key, "string")
    for name in batch.declared or ():
        kind = types.attributes[name]
        columns[name] = kind if kind == "double" or "<" in kind else "string"
    feed = batch.channel == "feed"
    extra = {"op": feed, "updated_at": batch.has_row_times, "seq": feed or batch.has_row_times, "reason": feed}
    return columns | {
        name: "bigint" if name == "seq" else "string" for name, is_delivered in extra.items() if is_delivered
    }


def rows_as_records(batch: Batch, types: Types) -> list[dict[str, Any]]:
    """The rows of a delivery as its source writes them, with exactly the columns of `physical_columns`.

    The attribute columns are those that the batch declares; an attribute that a row does not provide is NULL.
    """
    columns = physical_columns(batch, types)
    return [{name: value for name, value in _record(row, types).items() if name in columns} for row in batch.rows]


def _record(row: Row, types: Types) -> dict[str, Any]:
    key = {name: rendered(part, types.key[name]) for name, part in zip(types.key, row.key, strict=True)}
    values = {name: rendered(row.values.get(name), kind) for name, kind in types.attributes.items()}
    updated_at = rendered(row.effective_at, "timestamp")
    op = "D" if row.kind == "delete" else "U"
    return key | values | {"op": op, "updated_at": updated_at, "seq": row.sequence, "reason": row.reason}


# ------------------------------------------------------------------------ drafting

WORDS = ("run", "Run", "a", "a1", "10b", "é", "zz", "B", "x_y", "2024")
SWITCHES: dict[str, float] = {
    "equal_times": 0.5,
    "nulls": 0.7,
    "missing_columns": 0.5,
    "redeclared": 0.6,
    "reasons": 0.5,
    "bad_value": 0.35,
    "unreadable_key": 0.25,
    "outside_scope": 0.6,
    "bad_time": 0.3,
    "duplicates": 0.3,
    "merged_rows": 0.5,
    "higher_revision": 0.3,
    "lower_revision": 0.25,
    "same_content": 0.2,
    "withdrawn": 0.3,
    "brought_back": 0.6,
    "unordered": 0.12,
    "retries": 0.5,
    "guard": 0.48,
}
LATER_SWITCHES: dict[str, float] = {
    "shared_names": 0.25,
    "bad_twin": 0.25,
    "guard_twists": 0.5,
    "two_sequences": 0.4,
    "wrong_file": 0.2,
    "cut_short": 0.6,
    "late_row": 0.6,
    "ties": 0.7,
    "no_event_time": 0.3,
    "withdrawn_last": 0.6,
    "totals": 0.8,
}


def drawn_switches(rng: random.Random, seed: int) -> frozenset[str]:
    """Draw each switch by its share; a later one by its own seed, so that scenarios without it stay the same."""
    later = {name for name, share in LATER_SWITCHES.items() if random.Random(f"{name} {seed}").random() < share}
    return frozenset(later.union(name for name, share in SWITCHES.items() if rng.random() < share))


class Draft:
    """A scenario under construction: what its batches are drawn from."""

    def __init__(self, rng: random.Random, shape: Shape, number: int, switches: Collection[str]) -> None:
        self.rng, self.shape, self.number, self.switches = rng, shape, number, switches
        self.guarded = "guard" in switches and any(_guards(shape, channel) for channel in shape.channels)
        self.redeclares = "redeclared" in switches and shape.redeclared and not self.guarded
        self.times = self._times()
        self.replaces_second_snapshot = self.guarded and "wrong_file" in switches
        self.keys = self._keys((30 if self.replaces_second_snapshot else 24) if self.guarded else rng.randint(5, 8))
        self.truth = {key: self._values({}) for key in self.keys}
        self.names = rng.choice(("date", "integer", "text", "mixed"))
        self.slots = rng.sample(range(10), 10)
        self.phase: dict[str, int] = {}
        self.last: set[str] = set()

    def on(self, switch: str) -> bool:
        return switch in self.switches

    def _times(self) -> list[dt.datetime]:
        if self.on("equal_times"):
            return [START + i * DAY for i in (0, 1, 5)]
        return [START + i * DAY + dt.timedelta(microseconds=i) for i in range(12)]

    def _keys(self, count: int) -> list[Key]:
        ids = range(1, count + 1)
        if "region" in self.shape.final.key:
            return [(self.number, REGIONS[i % 2], i // 2 + i % 2) for i in ids]
        if self.shape.types.key["id"] == "string":
            return [(self.number, f"k{i}") for i in ids]
        # So that (2, 13) of a scenario and (21, 3) of another have the same digits.
        return [(self.number, i if (i + self.number) % 2 == 0 else 10 + i) for i in ids]

    def value(self, attr: Attr) -> Any:
        if self.on("nulls") and not attr.required and self.rng.random() < 0.25:
            return None
        pool = self.shape.pool(attr.name)
        return self.rng.choice(pool[:3] if self.rng.random() < 0.6 else pool)

    def _values(self, before: Mapping[str, Any], share: float = 0.4) -> dict[str, Any]:
        """New values for some of the attributes, the values before for the others."""
        stay = {a.name for a in self.shape.final.attrs if a.name in before and self.rng.random() > share}
        return {a.name: before[a.name] if a.name in stay else self.value(a) for a in self.shape.final.attrs}

    def good(self, batch: Batch) -> list[Row]:
        return _good(self.shape.final, batch)

    def columns(self, batch: Batch) -> dict[str, str]:
        """Attribute to column, as a batch was delivered."""
        to_attr = {name: a.name for a in self.shape.final.attrs for name in (a.name, *a.former_names)}
        return {to_attr[column]: column for column in batch.declared or ()}

    def values(self, key: Key, columns: Mapping[str, str]) -> dict[str, Any]:
        """The values of a row of this key, by delivered column; mostly those delivered before."""
        self.truth[key] = self._values(self.truth[key], share=self.rng.choice((0, 0.4)))
        return {column: self.truth[key][attr] for attr, column in columns.items()}


def _guards(shape: Shape, channel: Channel) -> bool:
    decides = shape.final.source(channel.source).decides
    return decides and channel.kind == "snapshot" and not channel.has_row_times


def delivery_name(kind: str, slot: int, number: int) -> str:
    """The name of a delivery: ordered by slot inside a scenario, and unique among those of the shape."""
    match kind:
        case "date":
            return str(dt.date(1900, 1, 1) + (slot * MAX_SCENARIOS + number) * DAY)
        case "integer":
            return str((slot + 5) * 10_000 + number)
    return f"{WORDS[slot]}-w{number}"


def delivered_columns(draft: Draft, channel: Channel, phase: int) -> dict[str, str]:
    """Attribute to column: those of the channel's source, by their names in the phase; some are missing."""
    then = {attr.name for attr in (draft.shape.first, draft.shape.final)[phase].attrs}
    own = [attr for attr in draft.shape.final.attrs if attr.source == channel.source]
    mine = {attr.name: name for attr in own for name in (attr.name, *attr.former_names) if name in then}
    partial = channel.kind == "feed" and draft.shape.final.source(channel.source).feed_updates == "partial"
    may_miss = set(mine) if partial else set(mine) & draft.shape.optional
    missing = {n for n in sorted(may_miss) if draft.on("missing_columns") and draft.rng.random() < 0.4}
    return {attr: column for attr, column in mine.items() if attr not in missing}


def draft_batch(draft: Draft, index: int, channel: Channel) -> Batch:
    """One batch of a channel at a drawn time."""
    rng = draft.rng
    kind = rng.choice(("date", "integer", "text")) if draft.names == "mixed" else draft.names
    phase = rng.randint(0, 1) if draft.redeclares else 1
    columns = delivered_columns(draft, channel, phase)
    batch = Batch(
        channel.source,
        channel.kind,
        delivery_name(kind, draft.slots[index], draft.number),
        revision=1,
        at=_drawn_time(draft, index),
        has_row_times=channel.has_row_times,
        scope_columns=channel.scope,
        reason="audit" if draft.on("reasons") and rng.random() < 0.4 else None,
        declared=tuple(columns.values()),
        scenario=draft.number,
    )
    draft.phase[batch.id] = phase
    with_rows = _with_snapshot_rows if channel.kind == "snapshot" else _with_feed_rows
    return with_rows(draft, batch, columns)


def _drawn_time(draft: Draft, index: int) -> dt.datetime:
    """Any time; where the retire guard is tested, only the first batch has the first time."""
    if not draft.guarded:
        return draft.rng.choice(draft.times)
    return draft.rng.choice(draft.times[1:]) if index else draft.times[0]


def _with_snapshot_rows(draft: Draft, batch: Batch, columns: Mapping[str, str]) -> Batch:
    scope = _drawn_scope(draft, batch)
    is_by_shop = "shop" in batch.scope_columns
    keys = [key for key in draft.keys if scope is None or is_by_shop or _part(batch, key) in scope]
    present = _drawn_guarded(draft, batch, keys) if draft.guarded else _drawn_present(draft, keys)
    rows = tuple(row for key in present for row in _snapshot_rows(draft, batch, key, columns))
    if is_by_shop:
        rows = tuple(_in_a_shop(draft, row, columns["shop"], scope) for row in rows)
    allow = {"retire_guard"} if draft.guarded and draft.rng.random() < 0.5 else ()
    return replace(batch, rows=rows, scope_values=scope, allow=frozenset(allow))


def _in_a_shop(draft: Draft, row: Row, column: str, scope: tuple[Key, ...] | None) -> Row:
    """The row with a shop that the snapshot covers."""
    shop = draft.rng.choice(SHOPS if scope is None else [shop for _, shop in scope])
    draft.truth[row.key] |= {"shop": shop}
    return replace(row, values={**row.values, column: shop})


def _drawn_present(draft: Draft, keys: list[Key]) -> list[Key]:
    share = draft.rng.choice((0.8, 0.8, 0.8, 0.8, 0.5, 0.0))
    return [key for key in keys if draft.rng.random() < share]


def _drawn_guarded(draft: Draft, batch: Batch, keys: list[Key]) -> list[Key]:
    """All at first; later snapshots omit some: up to a quarter (6 of 24), or more than the guard accepts."""
    all_of_them = draft.replaces_second_snapshot or batch.at == draft.times[0]
    omitted = 0 if all_of_them else draft.rng.choice((0, 3, 6, 7, 12, 20))
    return draft.rng.sample(keys, len(keys) - omitted)


def _part(batch: Batch, key: Key) -> Key:
    return key[: len(batch.scope_columns)]


def _drawn_scope(draft: Draft, batch: Batch) -> tuple[Key, ...] | None:
    """All regions, one of them, or (None) those in the batch's rows."""
    if batch.scope_columns == SCOPED_BY_SCENARIO:
        return ((draft.number,),)
    values = SHOPS if "shop" in batch.scope_columns else REGIONS
    scopes = (values, values, values[:1], values[1:], None)
    regions = draft.rng.choice(scopes[:2] if draft.guarded else scopes)
    return None if regions is None else tuple((draft.number, region) for region in regions)


def _snapshot_rows(draft: Draft, batch: Batch, key: Key, columns: Mapping[str, str]) -> list[Row]:
    """A row for a key; where rows have times, some keys have two, and some times are after the snapshot's."""
    if not batch.has_row_times:
        return [Row(key, draft.values(key, columns))]
    times = draft.times if draft.rng.random() < 0.2 else [time for time in draft.times if time <= batch.at]
    chosen = draft.rng.sample(times, min(len(times), draft.rng.choice((1, 1, 1, 2))))
    sequences = (None, None, 1, 2)
    return [Row(key, draft.values(key, columns), effective_at=t, sequence=draft.rng.choice(sequences)) for t in chosen]


def _with_feed_rows(draft: Draft, batch: Batch, columns: Mapping[str, str]) -> Batch:
    """One to six changes of a few keys, no two at one position."""
    rng, positions = draft.rng, set()
    keys = rng.sample(draft.keys, 6 if draft.guarded else 3)
    rows = []
    for _ in range(rng.randint(1, 6)):
        key, time = rng.choice(keys), rng.choice(draft.times) if batch.has_row_times else None
        time = batch.at if time and draft.guarded else time
        sequence = None if draft.guarded else rng.choice((None, None, 1, 2, 10))
        if (key, time, sequence) not in positions:
            positions.add((key, time, sequence))
            rows.append(_feed_row(draft, key, columns, time, sequence))
    return replace(batch, rows=tuple(rows))


def _feed_row(
    draft: Draft, key: Key, columns: Mapping[str, str], time: dt.datetime | None, sequence: int | None
) -> Row:
    reason = draft.rng.choice(("tier_upgrade", "manual_steward")) if draft.on("reasons") else None
    reason = reason if draft.rng.random() < 0.5 else None
    if draft.rng.random() < 0.25:
        values = draft.values(key, columns) if draft.rng.random() < 0.3 else {}
        return Row(key, values, "delete", time, sequence, reason)
    return Row(key, draft.values(key, columns), "upsert", time, sequence, reason)


# -------------------------------------------------------------------------- twists


def _replaced(batch: Batch, old: Row, *new: Row) -> Batch:
    """The batch with a row replaced by others."""
    at = next(i for i, row in enumerate(batch.rows) if row is old)
    return replace(batch, rows=(*batch.rows[:at], *new, *batch.rows[at + 1 :]))


def _good(dim: Dim, batch: Batch) -> list[Row]:
    """The accepted rows that provide values."""
    return [row for row in batch.rows if row.kind == "upsert" and o.row_fault(dim, batch, row) is None]


def spoil_value(draft: Draft, batch: Batch) -> Batch | None:
    """S26: a row with a value that does not cast."""
    columns = [name for name in batch.declared or () if draft.shape.types.attributes[name] in CASTS]
    rows = draft.good(batch)
    if not columns or not rows:
        return None
    row, column = draft.rng.choice(rows), draft.rng.choice(columns)
    bad = replace(row, values={**row.values, column: BAD}, bad=f"does not cast: {column}")
    return _replaced(batch, row, bad)


def spoil_twin(draft: Draft, batch: Batch) -> Batch | None:
    """S26: a bad row in addition to a good one of the same entity."""
    spoiled = spoil_value(draft, batch)
    if spoiled is None:
        return None
    bad = next(row for row in spoiled.rows if row.bad and not any(row is other for other in batch.rows))
    return replace(batch, rows=(*batch.rows, bad))


def spoil_key(draft: Draft, batch: Batch) -> Batch | None:
    """S26, S27: a row whose key cannot be read."""
    rows = draft.good(batch)
    if not rows:
        return None
    row = draft.rng.choice(rows)
    parts = (None, BAD) if draft.shape.types.key["id"] == "int" else (None,)
    return _replaced(batch, row, replace(row, key=(*row.key[:-1], draft.rng.choice(parts))))


def stray(draft: Draft, batch: Batch) -> Batch | None:
    """Scope: a row of a region that the snapshot does not cover."""
    if len(batch.scope_columns) < 2 or batch.scope_values is None:
        return None
    if "shop" in batch.scope_columns:
        rows = draft.good(batch)
        return replace(batch, rows=(*batch.rows, _in_no_shop(draft.rng.choice(rows)))) if rows else None
    rows, outside = (
        draft.good(batch),
        [key for key in draft.keys if _part(batch, key) not in batch.scope_values],
    )
    if not rows or not outside:
        return None
    row = replace(draft.rng.choice(rows), key=draft.rng.choice(outside))
    return replace(batch, rows=(*batch.rows, row))


def _in_no_shop(row: Row) -> Row:
    return replace(row, values={**row.values, "shop": "A"})


def spoil_time(draft: Draft, batch: Batch) -> Batch | None:
    """S26, S29: a row without a time, at the open end, or before the fixed beginning."""
    rows = draft.good(batch) if batch.has_row_times else []
    if not rows:
        return None
    times = [None, draft.shape.final.open_end]
    if draft.shape.final.begin:
        times.append(draft.shape.final.begin[0] - dt.timedelta(microseconds=1))
    row = draft.rng.choice(rows)
    return _replaced(batch, row, replace(row, effective_at=draft.rng.choice(times)))


def repeat_row(draft: Draft, batch: Batch) -> Batch | None:
    """S5: the same row twice."""
    if not batch.rows:
        return None
    row = draft.rng.choice(batch.rows)
    return _replaced(batch, row, row, row)


def split_row(draft: Draft, batch: Batch) -> Batch | None:
    """S5: two rows of one position that provide different attributes."""
    silent = batch.channel == "feed" and draft.shape.final.source(batch.source).feed_nulls == "not_provided"
    rows = [row for row in draft.good(batch) if len(_provided(row)) > 1]
    if not silent or not rows:
        return None
    row = draft.rng.choice(rows)
    own = draft.rng.choice(_provided(row))
    rest = {name: None if name == own else value for name, value in row.values.items()}
    alone = {**dict.fromkeys(rest), own: row.values[own]}
    return _replaced(batch, row, replace(row, values=rest), replace(row, values=alone))


def second_sequence(draft: Draft, batch: Batch) -> Batch | None:
    """S4: two rows of a row-timed snapshot with one entity and time, ordered by their sequences."""
    rows = [row for row in draft.good(batch) if row.sequence is None]
    if batch.channel != "snapshot" or not batch.has_row_times or not rows:
        return None
    row = draft.rng.choice(rows)
    columns = draft.columns(batch)
    later = replace(row, values=draft.values(row.key, columns), sequence=draft.rng.choice((3, 7)))
    earlier = replace(row, values=draft.values(row.key, columns), sequence=draft.rng.choice((1, 2)))
    return _replaced(batch, row, later, earlier)


def tie(draft: Draft, batch: Batch) -> Batch | None:
    """S5: two or three rows of one position that the channel's tie rule resolves."""
    rule = o.tie_rule(draft.shape.final, batch)
    rows = draft.good(batch)
    if rule == "reject" or not rows:
        return None
    row, columns = draft.rng.choice(rows), draft.columns(batch)
    others = [replace(row, values=draft.values(row.key, columns)) for _ in range(draft.rng.randint(1, 2))]
    delete = replace(row, kind="delete", values={})
    if rule == "delete_wins":
        others = [*others, delete]
    elif batch.channel == "feed" and draft.rng.random() < 0.5:
        others[draft.rng.randrange(len(others))] = delete
    # Anywhere in the file: the rule uses the first or the last of them, whatever rows are between them.
    group = draft.rng.sample([row, *others], len(others) + 1)
    rest = [other for other in batch.rows if other is not row]
    indexes = sorted(draft.rng.choices(range(len(rest) + 1), k=len(group)))
    for index, member in reversed(list(zip(indexes, group, strict=True))):
        rest.insert(index, member)
    return replace(batch, rows=tuple(rest))


def _provided(row: Row) -> list[str]:
    return [name for name, value in row.values.items() if value is not None]


def contradict(draft: Draft, batch: Batch) -> Batch | None:
    """S5: two rows of one position that differ, or one of which is a delete: the batch has to be rejected."""
    rows = [row for row in draft.good(batch) if _provided(row)]
    if not rows:
        return None
    row = draft.rng.choice(rows)
    if batch.channel == "feed" and draft.rng.random() < 0.4:
        return _replaced(batch, row, row, replace(row, kind="delete", values={}))
    name = draft.rng.choice(_provided(row))
    pool = draft.shape.pool(name)
    other = next(value for value in pool if o.canon(value) != o.canon(row.values[name]))
    return _replaced(batch, row, row, replace(row, values={**row.values, name: other}))


Twist = Callable[[Draft, Batch], Batch | None]
ROW_TWISTS: dict[str, Twist] = {
    "duplicates": repeat_row,
    "merged_rows": split_row,
    "bad_value": spoil_value,
    "unreadable_key": spoil_key,
    "outside_scope": stray,
    "bad_time": spoil_time,
    "bad_twin": spoil_twin,
    "two_sequences": second_sequence,
    "ties": tie,
}
GUARD_TWISTS = (spoil_value, spoil_twin, repeat_row, stray)


def drop_event_time(draft: Draft, batch: Batch) -> Batch | None:
    """S23: a row of a fact without its event time."""
    rows = draft.good(batch)
    if not rows:
        return None
    row = draft.rng.choice(rows)
    return _replaced(batch, row, replace(row, values={**row.values, "sold_at": None}))


def with_totals(draft: Draft, batches: list[Batch]) -> list[Batch]:
    """S41: some deliveries declare control totals, some of which differ; equal contents have equal totals."""
    drawn: dict[Any, tuple[dict[str, int], frozenset[str]]] = {}
    result = []
    for batch in batches:
        totals, allow = drawn.setdefault((batch.run_id, repr(o.content(batch))), _drawn_totals(draft, batch))
        result.append(replace(batch, totals=totals, allow=batch.allow | allow))
    return result


def _drawn_totals(draft: Draft, batch: Batch) -> tuple[dict[str, int], frozenset[str]]:
    """The control totals of a delivery, if it has any, and whether it overrides the rule."""
    names = draft.rng.choice(((), ("rows",), ("coins",), ("rows", "coins")))
    if batch.withdrawn or not names:
        return {}, frozenset()
    totals = {name: o.figure(draft.shape.final, batch, name) for name in names}
    if draft.rng.random() < 0.4:
        totals[draft.rng.choice(names)] += draft.rng.choice((-1, 1, 10))
    return totals, frozenset({"control_totals"} if draft.rng.random() < 0.3 else ())


def twisted(draft: Draft, batches: list[Batch], twist: Twist) -> list[Batch]:
    """The batches, with one of those that the twist fits changed by it."""
    for i in draft.rng.sample(range(len(batches)), len(batches)):
        changed = twist(draft, batches[i])
        if changed is not None:
            return [*batches[:i], changed, *batches[i + 1 :]]
    return batches


def commit_late(draft: Draft, batches: list[Batch]) -> list[Batch]:
    """S4: a row-timed snapshot has a late-arriving row that earlier ones omit; the first may have it."""
    timed = sorted((b for b in batches if _retires_by_row_times(draft, b)), key=lambda b: b.position)
    if len(timed) < 3 or not timed[-1].rows or timed[1].at == timed[-1].at:
        return batches
    first = {row.key for row in timed[0].rows}
    late = draft.rng.choice([row for row in timed[-1].rows if row.key in first] or timed[-1].rows)
    times = [time for time in draft.times if timed[1].at <= time <= timed[-2].at]
    moved = {timed[-1].id: _replaced(timed[-1], late, replace(late, effective_at=draft.rng.choice(times)))}
    for batch in timed[1:-1]:
        moved[batch.id] = replace(batch, rows=tuple(row for row in batch.rows if row.key != late.key))
    return [moved.get(batch.id, batch) for batch in batches]


def _retires_by_row_times(draft: Draft, batch: Batch) -> bool:
    return batch.channel == "snapshot" and batch.has_row_times and draft.shape.final.source(batch.source).decides


def revise(draft: Draft, batch: Batch, revision: int, same_content: bool = False) -> Batch:
    """Another revision of a delivery, in the same phase; sometimes for another time."""
    rows = batch.rows if same_content else tuple(_rewritten(draft, batch))
    moved = not same_content and draft.rng.random() < 0.3
    result = replace(batch, revision=revision, rows=rows, at=draft.rng.choice(draft.times) if moved else batch.at)
    draft.phase[result.id] = draft.phase[batch.id]
    return result


def _rewritten(draft: Draft, batch: Batch) -> Iterable[Row]:
    """Its rows with other values; some are omitted."""
    columns, good = draft.columns(batch), draft.good(batch)
    for row in {(row.key, row.effective_at, row.sequence): row for row in batch.rows}.values():
        if draft.rng.random() < 0.75:
            yield replace(row, values=draft.values(row.key, columns)) if row in good else row


def withdraw(draft: Draft, batch: Batch) -> Batch:
    return replace(revise(draft, batch, batch.revision + 1), rows=(), withdrawn=True, reason=None)


def withdraw_last(draft: Draft, batches: list[Batch]) -> list[Batch]:
    """S34: a delivery is withdrawn after everything has arrived, as by the command."""
    times = Counter(batch.run_id for batch in batches)
    candidates = [batch for batch in batches if times[batch.run_id] == 1]
    if not candidates:
        return batches
    withdrawn = withdraw(draft, draft.rng.choice(candidates))
    draft.last.add(withdrawn.id)
    return [*batches, withdrawn]


def replace_second_snapshot(draft: Draft, batches: list[Batch]) -> list[Batch]:
    """S27: 8 of the 22 entities of the second snapshot are new; if it were accepted, the third would retire them."""
    for number, batch in enumerate(_guarded(batches)):
        own = draft.keys[8:] if number == 1 else draft.keys[:22]
        rows = tuple(row for row in batch.rows if row.key in own)
        changed = replace(batch, rows=rows, allow=frozenset())
        batches = [changed if other is batch else other for other in batches]
    return batches


def cut_short(draft: Draft, batches: list[Batch]) -> list[Batch]:
    """S27, S34: a higher revision of a snapshot lacks most of its rows; as it is rejected, the lower one is current."""
    lower = draft.rng.choice(_guarded(batches)[1:])
    higher = replace(lower, revision=2, rows=lower.rows[:1], allow=frozenset())
    draft.phase[higher.id] = draft.phase[lower.id]
    return [*batches, higher]


def _guarded(batches: list[Batch]) -> list[Batch]:
    """The snapshots of the channel that delivers first, by position; three at least."""
    own = [batch for batch in batches if _channel(batch) == _channel(batches[0])]
    return sorted(own, key=lambda batch: batch.position)


def with_revisions(draft: Draft, batches: list[Batch]) -> list[Batch]:
    """S34: higher and lower revisions, the same content again, withdrawals, and deliveries after a withdrawal."""
    rng, revised = draft.rng, list(batches)
    originals = rng.sample(batches, len(batches))
    for switch in ("higher_revision", "lower_revision", "same_content", "withdrawn"):
        if draft.on(switch) and originals and len(revised) < 8:
            revised += _revisions_of(draft, originals.pop(), switch)
    return revised[:8]


def _revisions_of(draft: Draft, batch: Batch, switch: str) -> list[Batch]:
    match switch:
        case "higher_revision":
            return [revise(draft, batch, draft.rng.choice((2, 10)))]
        case "lower_revision":
            return [revise(draft, batch, 0)]
        case "same_content":
            return [revise(draft, batch, 9, same_content=True)]
    back = [revise(draft, batch, 3, draft.rng.random() < 0.5)] if draft.on("brought_back") else []
    return [withdraw(draft, batch), *back]


def reject_one(draft: Draft, batches: list[Batch]) -> list[Batch]:
    """S5: the highest revision of some delivery has to be rejected."""
    rejecting = [batch for batch in batches if o.tie_rule(draft.shape.final, batch) == "reject"]
    last = {b.run_id: b for b in sorted(rejecting, key=lambda b: b.revision)}
    for batch in draft.rng.sample(list(last.values()), len(last)):
        changed = contradict(draft, batch)
        if changed is not None:
            return [changed if other is batch else other for other in batches]
    return batches


# ------------------------------------------------------------------------ building


def build(rng: random.Random, shape: Shape, number: int, switches: Collection[str]) -> Scenario:
    """Build a scenario of a shape, with the variations that the switches allow."""
    draft = Draft(rng, shape, number, switches)
    batches = [draft_batch(draft, i, channel) for i, channel in enumerate(drawn_channels(draft))]
    batches = _with_guard_twists(draft, batches) if draft.guarded else _with_twists(draft, batches)
    if shape.fact:
        batches = _with_fact_twists(draft, batches)
    batches.sort(key=lambda batch: batch.position)
    phases = _phases(draft, batches)
    upstream = build(rng, shape.upstream, number, switches) if shape.upstream else None
    return Scenario(number, shape, tuple(batches), phases, draft.guarded, upstream)


def drawn_channels(draft: Draft) -> list[Channel]:
    """Four to six; the first ones deliver from the existence source."""
    rng, every = draft.rng, draft.shape.channels
    deciding = [channel for channel in every if draft.shape.final.source(channel.source).decides]
    first = deciding[:1] * 3 if draft.guarded else [rng.choice(deciding) for _ in range(2)]
    return first + [rng.choice(every) for _ in range(rng.randint(4, 6) - len(first))]


def _with_twists(draft: Draft, batches: list[Batch]) -> list[Batch]:
    if draft.on("late_row"):
        batches = commit_late(draft, batches)
    for switch, twist in ROW_TWISTS.items():
        if draft.on(switch):
            batches = twisted(draft, batches, twist)
    batches = with_revisions(draft, batches)
    if draft.on("shared_names"):
        batches = share_name(draft, batches)
    return reject_one(draft, batches) if draft.on("unordered") else batches


def _with_guard_twists(draft: Draft, batches: list[Batch]) -> list[Batch]:
    if draft.replaces_second_snapshot:
        batches = replace_second_snapshot(draft, batches)
    for twist in GUARD_TWISTS if draft.on("guard_twists") else ():
        batches = twisted(draft, batches, twist)
    return cut_short(draft, batches) if draft.on("cut_short") else batches


def _with_fact_twists(draft: Draft, batches: list[Batch]) -> list[Batch]:
    if draft.on("no_event_time"):
        batches = twisted(draft, batches, drop_event_time)
    if draft.on("withdrawn_last") and not draft.guarded:
        batches = withdraw_last(draft, batches)
    return with_totals(draft, batches) if draft.on("totals") else batches


def share_name(draft: Draft, batches: list[Batch]) -> list[Batch]:
    """Position: two channels deliver under one name."""
    pairs = [(a, b) for a, b in itertools.combinations(batches, 2) if _channel(a) != _channel(b)]
    if not pairs:
        return batches
    first, second = draft.rng.choice(pairs)
    return [_renamed(draft, batch, first.delivery) if batch.run_id == second.run_id else batch for batch in batches]


def _channel(batch: Batch) -> tuple[str, str]:
    return batch.source, batch.channel


def _renamed(draft: Draft, batch: Batch, delivery: str) -> Batch:
    renamed = replace(batch, delivery=delivery)
    draft.phase[renamed.id] = draft.phase[batch.id]
    return renamed


def _phases(draft: Draft, batches: list[Batch]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """An order of delivery in each phase, with some retries."""
    return _phase(draft, batches, 0), _phase(draft, batches, 1)


def _phase(draft: Draft, batches: list[Batch], phase: int) -> tuple[int, ...]:
    own = [i for i, batch in enumerate(batches) if draft.phase[batch.id] == phase]
    retries = [i for i in own if draft.on("retries") and draft.rng.random() < 0.25]
    order = draft.rng.sample(own + retries, len(own + retries))
    return tuple(sorted(order, key=lambda i: batches[i].id in draft.last))


def random_scenario(
    seed: int, features: Collection[str] | None = None, *, shape: Shape | None = None, number: int = 0
) -> Scenario:
    """The scenario of a seed: the same for the same arguments.

    features: the only switches that are on; by default drawn by their shares.
    shape: by default the six in turn. number: below 3000, different for each scenario that shares a load.
    """
    assert 0 <= number < MAX_SCENARIOS, f"scenario number {number}: expected 0 to {MAX_SCENARIOS - 1}"
    unknown = set(features or ()) - {*SWITCHES, *LATER_SWITCHES}
    assert not unknown, f"no such switch: {unknown}"
    rng = random.Random(seed)
    switches = drawn_switches(rng, seed) if features is None else frozenset(features)
    return build(rng, shape or SHAPES[seed % len(SHAPES)], number, switches)


def scenarios_of(shape: Shape, seeds: Iterable[int], features: Collection[str] | None = None) -> list[Scenario]:
    """Scenarios of one shape that can share a load, numbered from 1."""
    return [random_scenario(seed, features, shape=shape, number=i) for i, seed in enumerate(seeds, 1)]


@st.composite
def drawn_scenarios(
    draw: st.DrawFn, shape: Shape | None = None, features: Collection[str] | None = None, number: int = 0
) -> Scenario:
    """Scenarios for Hypothesis; switches and draws shrink towards fewer and smaller ones."""
    chosen = draw(st.sampled_from(SHAPES)) if shape is None else shape
    drawn = (
        st.frozensets(st.sampled_from(sorted({*SWITCHES, *LATER_SWITCHES}))) if features is None else st.just(features)
    )
    return build(draw(st.randoms(use_true_random=False)), chosen, number, draw(drawn))


def smaller(scenario: Scenario) -> Iterator[Scenario]:
    """The scenario without one batch, without one entity, or without one row, of its dimension too."""
    for i in range(len(scenario.batches)):
        yield _without_batch(scenario, i)
    for key in dict.fromkeys(row.key for batch in scenario.batches for row in batch.rows):
        yield _with_rows(scenario, lambda _, row, key=key: row.key != key)
    for batch in scenario.batches:
        for i in range(len(batch.rows)):
            yield _with_rows(
                scenario, lambda other, row, batch=batch, i=i: other is not batch or row is not batch.rows[i]
            )
    if scenario.upstream is not None:
        yield from (replace(scenario, upstream=less) for less in smaller(scenario.upstream))


def _without_batch(scenario: Scenario, index: int) -> Scenario:
    first, second = (tuple(i - (i > index) for i in phase if i != index) for phase in scenario.phases)
    batches = scenario.batches[:index] + scenario.batches[index + 1 :]
    return replace(scenario, batches=batches, phases=(first, second))


def _with_rows(scenario: Scenario, stays: Callable[[Batch, Row], bool]) -> Scenario:
    batches = tuple(replace(b, rows=tuple(row for row in b.rows if stays(b, row))) for b in scenario.batches)
    return replace(scenario, batches=batches)


def shrunk(scenario: Scenario, fails: Callable[[Scenario], bool]) -> Scenario:
    """A smallest scenario that still fails: without any batch, entity or row it would not."""
    while (less := next((other for other in smaller(scenario) if fails(other)), None)) is not None:
        scenario = less
    return scenario


# ------------------------------------------------------------------------ features


@dataclass(frozen=True)
class Seen:
    """A scenario with its results on the oracle."""

    scenario: Scenario

    @property
    def dim(self) -> Dim:
        return self.scenario.dim

    @cached_property
    def accepted_and_rejected(self) -> tuple[list[Batch], dict[str, str]]:
        return o.accepted(self.dim, self.scenario.batches)

    @property
    def batches_in_effect(self) -> list[Batch]:
        return self.accepted_and_rejected[0]

    @cached_property
    def statements(self) -> list[o.Statement]:
        return o.all_statements(self.dim, self.batches_in_effect)

    @cached_property
    def resolved(self) -> list[o.Statement]:
        return o.resolve_kinds(self.statements)

    @cached_property
    def entities(self) -> dict[Key, list[o.Moment]]:
        return o.moments_by_key(self.dim, self.resolved)

    @property
    def histories(self) -> list[list[o.Moment]]:
        return list(self.entities.values())

    @cached_property
    def rows(self) -> list[dict[str, Any]]:
        return o.entity_rows(self.dim, self.entities)

    @cached_property
    def facts(self) -> list[dict[str, Any]]:
        """The rows of a fact with the members that they reference; none for a dimension."""
        fact, upstream = self.scenario.shape.fact, self.scenario.upstream
        return o.fact_rows(fact, self.scenario.batches, upstream.batches) if fact and upstream else []

    def references(self, text: str) -> bool:
        """Whether a fact references a member whose name contains a text."""
        members = [value for row in self.facts for name, value in row.items() if name.endswith("_member")]
        return any(text in each for each in members)

    @cached_property
    def faults(self) -> set[str]:
        return {reason.split(":")[0] for _, _, reason in o.bad_rows(self.dim, self.batches_in_effect)}

    @property
    def revision_pairs(self) -> list[tuple[Batch, Batch]]:
        """Pairs of a lower and a higher revision of one delivery."""
        pairs = itertools.permutations(self.scenario.batches, 2)
        return [(a, b) for a, b in pairs if a.run_id == b.run_id and a.revision < b.revision]

    def values(self, kind: str) -> list[Any]:
        """The values of a declared type that the batches in effect deliver."""
        names = {name for name, declared in self.scenario.shape.types.attributes.items() if declared == kind}
        rows = [row for batch in self.batches_in_effect for row in batch.rows]
        return [value for row in rows for name, value in row.values.items() if name in names]

    def arrives_later(self, first: Batch, second: Batch) -> bool:
        order = [batch.id for batch in self.scenario.delivered]
        return order.index(first.id) > order.index(second.id)


@dataclass(frozen=True)
class Look:
    """A batch in effect, and its scenario."""

    seen: Seen
    batch: Batch

    @property
    def feed(self) -> bool:
        return self.batch.channel == "feed"

    @property
    def snapshot(self) -> bool:
        return self.batch.channel == "snapshot" and not self.batch.withdrawn

    @property
    def source(self) -> Src:
        return self.seen.dim.source(self.batch.source)

    @property
    def good(self) -> list[Row]:
        return _good(self.seen.dim, self.batch)

    @property
    def deletes(self) -> bool:
        return any(row.kind == "delete" for row in self.batch.rows)

    @property
    def nulls(self) -> bool:
        return any(None in row.values.values() for row in self.good)

    @property
    def regions(self) -> int:
        """The number of regions that it covers; 0 if it does not list them, or is not scoped by region."""
        scoped = self.batch.scope_columns in (SCOPED_BY_REGION, SCOPED_BY_REGION[1:])
        return len(self.batch.scope_values or ()) if scoped else 0

    @property
    def lacks_column(self) -> bool:
        """Whether it lacks a column of the declaration at that time."""
        final = self.batch.id in {batch.id for batch in self.seen.scenario.second}
        dim = self.seen.dim if final else self.seen.scenario.shape.first
        return any(a.source == self.batch.source and a.name not in (self.batch.declared or ()) for a in dim.attrs)

    @property
    def merges(self) -> bool:
        """Whether it has different rows of one position."""
        groups = o.changes(self.seen.dim, self.batch).values()
        return any(len({repr(row) for row in group}) > 1 for group in groups)

    def decides_by(self, rule: str) -> bool:
        """Whether this tie rule resolves some rows of one position that contradict each other."""
        if o.tie_rule(self.seen.dim, self.batch) != rule:
            return False
        groups = [group for group in o.changes(self.seen.dim, self.batch).values() if len({*map(repr, group)}) > 1]
        rejecting = replace(self.source, feed_ties="reject", snapshot_ties="reject")
        others = tuple(rejecting if s.name == rejecting.name else s for s in self.seen.dim.sources)
        strict = replace(self.seen.dim, sources=others)
        return any(o.contradict(strict, self.batch, group) for group in groups)

    @property
    def changes_one_key_twice(self) -> bool:
        return len({row.key for row in self.good}) < len({(row.key, row.effective_at) for row in self.good})

    @property
    def orders_one_key_twice(self) -> bool:
        """Whether only a sequence orders two rows."""
        positions = {(row.key, row.effective_at, row.sequence) for row in self.good}
        return len({position[:2] for position in positions}) < len(positions)

    @property
    def overrides_guard(self) -> bool:
        before = self.seen.batches_in_effect[: self.seen.batches_in_effect.index(self.batch)]
        guarded = replace(self.batch, allow=self.batch.allow - {"retire_guard"})
        return guarded != self.batch and o.guard_rejects(self.seen.dim, guarded, before)

    @property
    def is_just_accepted_by_guard(self) -> bool:
        """Whether it omits a quarter of 24 entities."""
        return self.seen.scenario.one_load and self.snapshot and len(self.batch.rows) == 18

    @property
    def has_other_totals(self) -> bool:
        """Whether it differs from its control totals, and was accepted nevertheless."""
        return o.has_other_totals(self.seen.dim, replace(self.batch, allow=frozenset()))

    @property
    def empties_a_scope(self) -> bool:
        """Whether it names a scope of which it has no rows."""
        named = set(self.batch.scope_values or ())
        return self.snapshot and bool(named - o.delivered_scope(self.seen.dim, self.batch))

    def delivers(self, names: Iterable[str]) -> bool:
        return any(name in (self.batch.declared or ()) for name in names)


def _moves(seen: Seen) -> bool:
    """Whether a row moves from one scope to another."""
    shops: dict[Key, set[Any]] = {}
    for statement in seen.statements:
        shops.setdefault(statement.key, set()).update(v for n, v in statement.values.items() if n == "shop")
    return any(len(each) > 1 for each in shops.values())


def _returns(history: list[o.Moment]) -> bool:
    """Whether an entity was deleted and returned."""
    ended = [moment.time for moment in history if o.ends(moment)]
    return any(m.after.exists and not m.before.exists and m.time > min(ended) for m in history if ended)


def _equal_times(seen: Seen) -> bool:
    """Whether several batches provide values of one entity at one time."""
    positions = {(s.key, s.time, s.batch.id) for s in seen.statements if s.kind == "upsert"}
    return len({position[:2] for position in positions}) < len(positions)


def _presence_returns_entity(seen: Seen) -> bool:
    pairs = zip(seen.statements, seen.resolved, strict=True)
    return any(raw.kind == "presence" and after.kind == "upsert" for raw, after in pairs)


def _absences_without_effect(seen: Seen) -> list[bool]:
    """S4: absences of entities that only a late row made exist; for each, whether the entity was deleted earlier."""
    exists: dict[tuple[str, Key], bool] = {}
    deleted: set[tuple[str, Key]] = set()
    deleted_earlier = []
    for raw, resolved in zip(seen.statements, seen.resolved, strict=True):
        entity = (raw.batch.source, raw.key)
        if o.is_absence(raw) and resolved.kind == "no_op" and exists.get(entity):
            deleted_earlier.append(entity in deleted)
        if resolved.kind == "delete":
            deleted.add(entity)
        if resolved.kind != "no_op":
            exists[entity] = resolved.kind == "upsert"
    return deleted_earlier


def _absence_ends(seen: Seen) -> bool:
    ends = [s for history in seen.histories for m in history if o.ends(m) for s in m.statements]
    return any(statement.kind == "delete" and statement.batch.channel == "snapshot" for statement in ends)


def _provided_while_deleted(seen: Seen) -> bool:
    moments = [m for history in seen.histories for m in history if not m.before.exists and not m.after.exists]
    return any(statement.kind == "upsert" for moment in moments for statement in moment.statements)


def _removed(seen: Seen) -> bool:
    deleted = [history for history in seen.histories if not history[-1].after.exists]
    return seen.dim.deleted_rows == "remove" and any(o.versions(seen.dim, history) for history in deleted)


def _begins_at_value(seen: Seen) -> bool:
    firsts = [(seen.dim, history, version) for history in seen.histories for version in o.versions(seen.dim, history)]
    return bool(seen.dim.begin_attr) and any(o.begins(*first) < first[2].opened.time for first in firsts)


def _begins_earlier(seen: Seen) -> bool:
    return bool(seen.dim.begin) and any(row["effective_from"] == seen.dim.begin[0] for row in seen.rows)


def _type(scd: int) -> Callable[[Seen], bool]:
    return lambda seen: bool(seen.dim.of_type(scd))


def _value(kind: str) -> Callable[[Seen], bool]:
    return lambda seen: any(value is not None for value in seen.values(kind))


BATCH_FEATURES: dict[str, Callable[[Look], bool]] = {
    "full snapshot": lambda x: x.snapshot and "region" not in x.batch.scope_columns,
    "scoped snapshot": lambda x: x.snapshot and "region" in x.batch.scope_columns,
    "scope of one region": lambda x: x.snapshot and x.regions == 1,
    "scope from its rows": lambda x: bool(x.batch.scope_columns and x.batch.rows) and x.batch.scope_values is None,
    "empty snapshot": lambda x: x.snapshot and not x.batch.rows,
    "snapshot with row times": lambda x: x.snapshot and x.batch.has_row_times,
    "row time after its snapshot": lambda x: (
        x.snapshot and x.batch.has_row_times and any(row.effective_at > x.batch.at for row in x.good)
    ),
    "does not retire": lambda x: x.snapshot and x.source.decides and not o.retires(x.seen.dim, x.batch),
    "feed": lambda x: x.feed,
    "feed at its delivery's time": lambda x: x.feed and not x.batch.has_row_times,
    "partial feed": lambda x: x.feed and x.source.feed_updates == "partial",
    "delete in a feed": lambda x: x.source.decides and x.deletes,
    "delete by another source": lambda x: not x.source.decides and x.deletes,
    "missing column": lambda x: x.lacks_column,
    "missing column in a snapshot": lambda x: x.snapshot and x.lacks_column,
    "NULL as a value": lambda x: x.nulls and (x.snapshot or x.source.feed_nulls == "value"),
    "NULL as not provided": lambda x: x.nulls and x.feed and x.source.feed_nulls == "not_provided",
    "several changes in a batch": lambda x: x.changes_one_key_twice,
    "sequence": lambda x: any(row.sequence is not None for row in x.batch.rows),
    "bad and good row of one entity": lambda x: bool({r.key for r in x.good} & {r.key for r in x.batch.rows if r.bad}),
    "identical duplicates": lambda x: any(x.batch.rows.count(row) > 1 for row in x.batch.rows),
    "two rows of a snapshot at one time": lambda x: x.snapshot and x.orders_one_key_twice,
    "rows merged": lambda x: x.merges,
    "delete wins": lambda x: x.decides_by("delete_wins"),
    "last row decides": lambda x: x.decides_by("last_row"),
    "first row decides": lambda x: x.decides_by("first_row"),
    "overrides the guard": lambda x: x.overrides_guard,
    "just accepted by the guard": lambda x: x.is_just_accepted_by_guard,
    "withdrawn": lambda x: x.batch.withdrawn,
    "renamed column": lambda x: x.delivers(name for attr in x.seen.dim.attrs for name in attr.former_names),
    "date as delivery": lambda x: o.code(x.batch.delivery)[0] == "d",
    "integer as delivery": lambda x: o.code(x.batch.delivery)[0] == "i",
    "text as delivery": lambda x: o.code(x.batch.delivery)[0] == "t",
}

SCENARIO_FEATURES: dict[str, Callable[[Seen], bool]] = {
    "one source": lambda seen: len(seen.dim.sources) == 1,
    "two sources": lambda seen: len(seen.dim.sources) == 2,
    "three sources": lambda seen: len(seen.dim.sources) == 3,
    "three-part key": lambda seen: len(seen.dim.key) == 3,
    "equal times": _equal_times,
    "one name in two channels": lambda seen: (
        len({b.delivery for b in seen.batches_in_effect}) < len({b.run_id for b in seen.batches_in_effect})
    ),
    "rejected as unordered": lambda seen: o.UNORDERED in seen.accepted_and_rejected[1].values(),
    "rejected by the guard": lambda seen: o.RETIRE_GUARD in seen.accepted_and_rejected[1].values(),
    "current as the higher revision is rejected": lambda seen: bool(
        {b.run_id for b in seen.batches_in_effect}
        & {b.run_id for b in seen.scenario.batches if b.id in seen.accepted_and_rejected[1]}
    ),
    "higher revision": lambda seen: any(o.content(low) != o.content(high) for low, high in seen.revision_pairs),
    "lower revision arrives later": lambda seen: any(seen.arrives_later(*pair) for pair in seen.revision_pairs),
    "same content again": lambda seen: any(o.content(low) == o.content(high) for low, high in seen.revision_pairs),
    "revision for another time": lambda seen: any(low.at != high.at for low, high in seen.revision_pairs),
    "delivered after a withdrawal": lambda seen: any(
        low.withdrawn and not high.withdrawn for low, high in seen.revision_pairs
    ),
    "retry": lambda seen: len(seen.scenario.delivered) > len(seen.scenario.batches),
    "late": lambda seen: any(list(phase) != sorted(phase) for phase in seen.scenario.phases),
    "bad value": lambda seen: "does not cast" in seen.faults,
    "unreadable key": lambda seen: o.UNREADABLE_KEY in seen.faults,
    "outside scope": lambda seen: o.OUTSIDE_SCOPE in seen.faults,
    "bad time": lambda seen: bool(seen.faults & {o.NO_TIME, o.TOO_EARLY, o.TOO_LATE}),
    "absence ends": _absence_ends,
    "absence without effect": lambda seen: bool(_absences_without_effect(seen)),
    "late row of a returning entity": lambda seen: any(_absences_without_effect(seen)),
    "return after a delete": lambda seen: any(_returns(history) for history in seen.histories),
    "presence returns an entity": _presence_returns_entity,
    "provided while deleted": _provided_while_deleted,
    "added column": lambda seen: seen.scenario.shape.redeclared and bool(seen.scenario.first and seen.scenario.second),
    "own reason": lambda seen: any(row["change_reason"] != "source_load" for row in seen.rows),
    "fixed beginning": _begins_earlier,
    "beginning at a value": _begins_at_value,
    "no windows": lambda seen: not seen.dim.has_windows,
    "deleted_at": lambda seen: any(row.get("deleted_at") for row in seen.rows),
    "removed row": _removed,
    **{f"type {scd}": _type(scd) for scd in (0, 1, 2, 3, 6)},
    **{re.split("[<(]", kind)[0]: _value(kind) for kind in POOLS},
    "NaN": lambda seen: any(value != value for value in seen.values("double")),
    "negative zero": lambda seen: any(str(value) == "-0.0" for value in seen.values("double")),
    "empty text": lambda seen: "" in seen.values("string"),
}

FACT_BATCH_FEATURES: dict[str, Callable[[Look], bool]] = {
    "control totals": lambda x: bool(x.batch.totals),
    "overrides control totals": lambda x: x.has_other_totals,
    "empties a named scope": lambda x: x.empties_a_scope,
}

FACT_FEATURES: dict[str, Callable[[Seen], bool]] = {
    "rejected by control totals": lambda seen: o.CONTROL_TOTALS in seen.accepted_and_rejected[1].values(),
    "rejected as a scope is empty": lambda seen: o.EMPTY_SCOPE in seen.accepted_and_rejected[1].values(),
    "no event time": lambda seen: o.NO_VALUE in seen.faults,
    "moved fact": _moves,
    "version referenced": lambda seen: seen.references("version"),
    "inferred member referenced": lambda seen: seen.references(o.INFERRED_MEMBER),
    "unknown member referenced": lambda seen: seen.references(o.UNKNOWN_MEMBER),
}

FEATURES = (*SCENARIO_FEATURES, *BATCH_FEATURES)
FEATURES_OF_FACTS = (*FACT_FEATURES, *FACT_BATCH_FEATURES)


def features(scenario: Scenario, names: Collection[str] = FEATURES) -> set[str]:
    """Those of some features that occur in a scenario, in its batches in effect or in their results."""
    seen = Seen(scenario)
    looks = [Look(seen, batch) for batch in seen.batches_in_effect]
    of_scenarios, of_batches = SCENARIO_FEATURES | FACT_FEATURES, BATCH_FEATURES | FACT_BATCH_FEATURES
    occurring = {name for name, occurs in of_scenarios.items() if name in names and occurs(seen)}
    return occurring | {name for name, occurs in of_batches.items() if name in names and any(map(occurs, looks))}


def feature_report(scenarios: Iterable[Scenario], names: Collection[str] = FEATURES) -> dict[str, float]:
    """The share of the scenarios in which each of some features occurs, rarest first."""
    occurring = [features(scenario, names) for scenario in scenarios]
    shares = {name: sum(name in each for each in occurring) / max(1, len(occurring)) for name in names}
    return dict(sorted(shares.items(), key=lambda item: item[1]))
