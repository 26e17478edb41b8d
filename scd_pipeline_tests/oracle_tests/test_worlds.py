from __future__ import annotations

import datetime as dt
import random
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from scd_pipeline_tests import oracle as o
from scd_pipeline_tests.oracle import Batch, Dim
from scd_pipeline_tests.text_tables import assert_same_rows
from scd_pipeline_tests.worlds import (
    CUSTOMER,
    SHAPES,
    World,
    feature_report,
    features,
    physical_columns,
    rendered,
    rows_as_records,
    shrunk,
    smaller,
    world,
    world_alone,
    worlds,
    worlds_of,
)

SEEDS = range(400)
EVERY = tuple(world(seed) for seed in SEEDS)
SOME = EVERY[::4]
every_shape = pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.name)


def _shuffled(one: World, rng: random.Random) -> list[Batch]:
    """Batches in another order, some doubled; their rows too, but where the last row decides (S5)."""
    mixed = [
        batch
        if o.tie_rule(one.dim, batch) == "last_row"
        else replace(batch, rows=tuple(rng.sample(batch.rows, len(batch.rows))))
        for batch in one.batches
    ]
    mixed += [batch for batch in mixed if rng.random() < 0.5]
    return rng.sample(mixed, len(mixed))


def _rows(one: World) -> list[dict[str, Any]]:
    return o.oracle(one.dim, one.batches)


@cache
def _shown() -> list[tuple[World, list[dict[str, Any]]]]:
    """Some worlds with their rows."""
    return [(one, _rows(one)) for one in SOME]


# ------------------------------------------------------------------------- what worlds are


def test_every_feature_occurs() -> None:
    """Each in at least 5 % of the worlds."""
    rare = {name: share for name, share in feature_report(EVERY).items() if share < 0.05}
    assert not rare


def test_worlds_are_small() -> None:
    for one in EVERY:
        assert 4 <= len(one.batches) <= 8
        assert len({batch.id for batch in one.batches}) == len(one.batches)
        keys = {row.key for batch in one.batches for row in batch.rows if row.readable}
        assert len(keys) <= (30 if one.one_load else 8)


def test_a_seed_gives_the_same_world() -> None:
    assert repr([world(seed) for seed in range(12)]) == repr(list(EVERY[:12]))


def test_features_can_be_chosen() -> None:
    plain = [world(seed, ()) for seed in range(60)]
    assert not {"retry", "withdrawn", "higher revision", "bad value"} & set().union(*map(features, plain))
    assert all("withdrawn" in features(world(seed, {"withdrawn"})) for seed in range(60))
    with pytest.raises(AssertionError, match="no such switch"):
        world(1, {"witdrawn"})


def test_every_batch_is_delivered() -> None:
    for one in EVERY:
        assert set(one.phases[0]) | set(one.phases[1]) == set(range(len(one.batches)))
        assert not set(one.phases[0]) & set(one.phases[1])


def test_batches_deliver_columns_that_were_declared_then() -> None:
    for one in EVERY:
        for dim, batches in ((one.shape.first, one.first), (one.dim, one.second)):
            for batch in batches:
                known = {attr.name for attr in dim.attrs if attr.source == batch.source}
                assert set(batch.declared or ()) <= known
                assert all(set(row.values) <= set(batch.declared or ()) for row in batch.rows)


def test_only_what_may_be_missing_is_missing() -> None:
    for one in EVERY:
        for batch in one.second:
            source = one.dim.source(batch.source)
            known = {attr.name for attr in one.dim.attrs if attr.source == batch.source}
            partial = batch.channel == "feed" and source.feed_updates == "partial"
            assert partial or known - set(batch.declared or ()) <= one.shape.optional


def test_batches_follow_their_channels() -> None:
    for one in EVERY:
        channels = {(c.source, c.kind): c for c in one.shape.channels}
        for batch in one.batches:
            channel = channels[batch.source, batch.channel]
            assert (batch.row_times, batch.scope_columns) == (channel.row_times, channel.scope)


def test_shrunk() -> None:
    """What is left still fails, and does no more without any of its batches, entities or rows."""

    def fails(one: World) -> bool:
        return any(row.get("version") == 2 for row in _rows(one))

    small = shrunk(EVERY[0], fails)
    assert fails(small)
    assert not any(fails(one) for one in smaller(small))
    assert sum(len(batch.rows) for batch in small.batches) <= 3
    assert set(small.phases[0]) | set(small.phases[1]) == set(range(len(small.batches)))


@every_shape
def test_worlds_that_share_a_load_do_not_meet(shape: Any) -> None:
    """The rows of many worlds together are the rows of each alone."""
    many = worlds_of(shape, range(12))
    names = Counter(key for one in many for key in {(b.source, b.channel, b.delivery) for b in one.batches})
    assert set(names.values()) == {1}
    together = o.oracle(shape.final, [batch for one in many for batch in one.batches])
    assert_same_rows([row for one in many for row in _rows(one)], together)


def test_the_number_of_a_world_changes_nothing_else() -> None:
    """The order of its deliveries included, which their names are made for."""
    for seed in range(0, 120, 3):
        low, high = world(seed, number=9), world(seed, number=2999)
        assert _name_order(low) == _name_order(high)
        assert_same_rows(_without_names(low), _without_names(high))


def _name_order(one: World) -> list[int]:
    codes = [o.code(batch.delivery) for batch in one.batches]
    return sorted(range(len(codes)), key=codes.__getitem__)


def _without_names(one: World) -> list[dict[str, Any]]:
    return [{k: v for k, v in row.items() if k not in ("world", "load_run_id")} for row in _rows(one)]


def test_a_world_alone_has_the_same_rows() -> None:
    for one, rows in _shown():
        alone = world_alone(one)
        assert_same_rows(rows, _rows(alone))
        assert not any("world" in batch.scope_columns for batch in alone.batches)


# ------------------------------------------------------------------------- how they are delivered


def test_records_have_the_columns_of_their_delivery() -> None:
    for one in EVERY:
        for batch in one.batches:
            columns = set(physical_columns(batch, one.shape.types))
            records = rows_as_records(batch, one.shape.types)
            assert len(records) == len(batch.rows)
            assert all(set(record) == columns for record in records)


def test_columns_of_a_delivery() -> None:
    shape = CUSTOMER
    batch = Batch("crm", "feed", "1", 1, dt.datetime(2024, 1, 1), declared=("town", "score"), row_times=True)
    assert physical_columns(batch, shape.types) == {
        **dict.fromkeys(("world", "id", "town", "score", "op", "updated_at"), "string"),
        "seq": "bigint",
        "reason": "string",
    }
    assert list(physical_columns(replace(batch, channel="snapshot", row_times=False), shape.types)) == [
        "world",
        "id",
        "town",
        "score",
    ]


@pytest.mark.parametrize(
    ("value", "kind", "text"),
    [
        (12, "int", "12"),
        (True, "boolean", "true"),
        (dt.date(1990, 1, 1), "date", "1990-01-01"),
        (dt.datetime(2024, 1, 1), "timestamp", "2024-01-01 00:00:00.000000"),
        (o.BAD, "date", "x!"),
        (None, "int", None),
        (1.5, "double", 1.5),
        ({"x": 1}, "map<string,int>", {"x": 1}),
        ("", "string", ""),
    ],
)
def test_rendered(value: Any, kind: str, text: Any) -> None:
    assert rendered(value, kind) == text


# ------------------------------------------------------------------------- what the oracle makes of them


@pytest.mark.parametrize("start", range(4))
def test_convergence(start: int) -> None:
    """S14: any order, any doubling, the same rows."""
    for one in EVERY[start::20]:
        expected, rng = _rows(one), random.Random(start)
        for _ in range(3):
            assert_same_rows(expected, o.oracle(one.dim, _shuffled(one, rng)))


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(worlds(), st.randoms(use_true_random=False))
def test_convergence_of_drawn_worlds(one: World, rng: random.Random) -> None:
    """S14."""
    assert_same_rows(_rows(one), o.oracle(one.dim, _shuffled(one, rng)))


def test_what_does_not_count_never_came() -> None:
    """S34: refused, superseded and withdrawn batches leave no trace."""
    for one, rows in _shown():
        counting = [batch for batch in o.accepted(one.dim, one.batches)[0] if not batch.withdrawn]
        assert_same_rows(rows, o.oracle(one.dim, counting))


def test_windows_are_whole() -> None:
    """S2, S3: none empty, none over another; numbers without holes; only the last version may be current."""
    for one, rows in _shown():
        for versions in _by_key(one.dim, rows).values():
            assert all(row["effective_from"] < row["effective_to"] for row in versions)
            assert all(row["effective_to"] <= later["effective_from"] for row, later in pairwise(versions))
            assert [row["version"] for row in versions] == list(range(1, len(versions) + 1))
            assert not any(row["current_flag"] for row in versions[:-1])


def _by_key(dim: Dim, rows: list[dict[str, Any]]) -> dict[tuple[Any, ...], list[dict[str, Any]]]:
    """The versions of each entity, in order of time."""
    found: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    for row in sorted(rows, key=lambda row: row["effective_from"]) if dim.has_windows else ():
        found.setdefault(tuple(row[name] for name in dim.key), []).append(row)
    return found


def _versioned(dim: Dim, values: Mapping[str, Any]) -> list[Any]:
    return [o.canon(values.get(attr.name)) for attr in dim.of_type(2, 6)]


def test_neighbours_differ() -> None:
    """S8, S13: without a gap a version differs from the one before."""
    for one, rows in _shown():
        for versions in _by_key(one.dim, rows).values():
            for row, later in pairwise(versions):
                gap = row["effective_to"] < later["effective_from"]
                assert gap or _versioned(one.dim, row) != _versioned(one.dim, later)


def test_windows_say_what_was_stated_last() -> None:
    """S2, S8, S18, S30: at any time the row in force holds what was last stated until then."""
    for one in SOME:
        dim = replace(one.dim, begin=None)
        versions = _by_key(dim, o.oracle(dim, one.batches))
        said = [s for s in o.resolve_kinds(o.statements(dim, one.batches)) if s.kind != "no_op" and dim.has_windows]
        for key, time in {(statement.key, statement.time) for statement in said}:
            until = [statement for statement in said if statement.key == key and statement.time <= time]
            there = [r for r in versions.get(key, []) if r["effective_from"] <= time < r["effective_to"]]
            assert [_versioned(dim, row) for row in there] == _last_stated(dim, until)


def _last_stated(dim: Dim, until: list[o.Statement]) -> list[list[Any]]:
    deciding = [statement for statement in until if dim.source(statement.batch.source).decides]
    if not deciding or deciding[-1].kind == "delete":
        return []
    values: dict[str, Any] = {}
    for statement in until:
        values.update(statement.values)
    return [_versioned(dim, values)]


def test_rows_name_the_batch_that_opened_them() -> None:
    """S14: load_run_id is the delivery of a batch that counts; source and reason are the batch's own."""
    for one, rows in _shown():
        standing = {batch.run_id: batch for batch in o.accepted(one.dim, one.batches)[0]}
        for row in rows:
            batch = standing[row["load_run_id"]]
            assert row["change_source"] == batch.source
            assert row["change_reason"] in {r.reason for r in batch.rows} | {batch.reason, "source_load"}
