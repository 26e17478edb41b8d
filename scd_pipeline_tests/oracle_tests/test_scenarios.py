from __future__ import annotations

import datetime as dt
import random
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from scd_pipeline_tests import oracle as o
from scd_pipeline_tests.oracle import Batch, Dim
from scd_pipeline_tests.scenarios import (
    CUSTOMER,
    FACT_SHAPES,
    FEATURES_OF_FACTS,
    SHAPES,
    Scenario,
    Shape,
    drawn_scenarios,
    feature_report,
    features,
    physical_columns,
    random_scenario,
    rendered,
    rows_as_records,
    scenarios_of,
    shrunk,
    smaller,
    unscoped_scenario,
)
from scd_pipeline_tests.text_tables import assert_same_rows

every_shape = pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.name)
every_fact = pytest.mark.parametrize("shape", FACT_SHAPES, ids=lambda shape: shape.name)


def _shuffled(scenario: Scenario, rng: random.Random) -> list[Batch]:
    """The batches in another order, some twice, with shuffled rows unless their order decides (S5)."""
    batches = [
        batch
        if o.tie_rule(scenario.dim, batch) in o.BY_ROW_ORDER
        else replace(batch, rows=tuple(rng.sample(batch.rows, len(batch.rows))))
        for batch in scenario.batches
    ]
    batches += [batch for batch in batches if rng.random() < 0.5]
    return rng.sample(batches, len(batches))


def _rows(scenario: Scenario) -> list[dict[str, Any]]:
    return o.oracle(scenario.dim, scenario.batches)


@cache
def _scenarios() -> tuple[Scenario, ...]:
    """The scenarios, which are not built where no test of this file runs."""
    return tuple(map(random_scenario, range(400)))


def _facts(shape: Shape) -> list[Scenario]:
    """Scenarios of a fact."""
    return [random_scenario(seed, shape=shape) for seed in range(40)]


def _sample() -> tuple[Scenario, ...]:
    """A quarter of the scenarios."""
    return _scenarios()[::4]


@cache
def _scenarios_with_rows() -> list[tuple[Scenario, list[dict[str, Any]]]]:
    """Some scenarios with their rows."""
    return [(scenario, _rows(scenario)) for scenario in _sample()]


# ------------------------------------------------------------------------- scenarios


def test_every_feature_occurs() -> None:
    """Each in at least 5 % of the scenarios."""
    rare = {name: share for name, share in feature_report(_scenarios()).items() if share < 0.05}
    assert not rare


@every_fact
def test_every_feature_of_facts_occurs(shape: Shape) -> None:
    """Each in at least 5 % of the scenarios of a fact, as far as its shape has it."""
    absent = {
        "sale": {"rejected as a scope is empty"},
        "rent": {"empties a named scope", "moved fact"},
        "purchase": {"empties a named scope", "moved fact", "inferred member referenced"},
    }
    shares = feature_report(_facts(shape), FEATURES_OF_FACTS)
    assert {name for name, share in shares.items() if share < 0.05} == absent[shape.name]


def test_scenarios_are_small() -> None:
    for scenario in _scenarios():
        assert 4 <= len(scenario.batches) <= 8
        assert len({batch.id for batch in scenario.batches}) == len(scenario.batches)
        keys = {row.key for batch in scenario.batches for row in batch.rows if row.readable}
        assert len(keys) <= (30 if scenario.one_load else 8)


def test_a_seed_gives_the_same_scenario() -> None:
    assert repr([random_scenario(seed) for seed in range(12)]) == repr(list(_scenarios()[:12]))


def test_features_can_be_chosen() -> None:
    plain = [random_scenario(seed, ()) for seed in range(60)]
    assert not {"retry", "withdrawn", "higher revision", "bad value"} & set().union(*map(features, plain))
    assert all("withdrawn" in features(random_scenario(seed, {"withdrawn"})) for seed in range(60))
    with pytest.raises(AssertionError, match="no such switch"):
        random_scenario(1, {"witdrawn"})


def test_every_batch_is_delivered() -> None:
    for scenario in _scenarios():
        assert set(scenario.phases[0]) | set(scenario.phases[1]) == set(range(len(scenario.batches)))
        assert not set(scenario.phases[0]) & set(scenario.phases[1])


def test_batches_deliver_only_columns_declared_at_that_time() -> None:
    for scenario in _scenarios():
        for dim, batches in ((scenario.shape.first, scenario.first), (scenario.dim, scenario.second)):
            for batch in batches:
                declared = {attr.name for attr in dim.attrs if attr.source == batch.source}
                assert set(batch.declared or ()) <= declared
                assert all(set(row.values) <= set(batch.declared or ()) for row in batch.rows)


def test_only_optional_columns_are_missing() -> None:
    for scenario in _scenarios():
        for batch in scenario.second:
            source = scenario.dim.source(batch.source)
            declared = {attr.name for attr in scenario.dim.attrs if attr.source == batch.source}
            partial = batch.channel == "feed" and source.feed_updates == "partial"
            assert partial or declared - set(batch.declared or ()) <= scenario.shape.optional


def test_batches_follow_their_channels() -> None:
    for scenario in _scenarios():
        channels = {(c.source, c.kind): c for c in scenario.shape.channels}
        for batch in scenario.batches:
            channel = channels[batch.source, batch.channel]
            assert (batch.has_row_times, batch.scope_columns) == (channel.has_row_times, channel.scope)


def test_a_shrunk_scenario_is_minimal() -> None:
    """It fails, and does not fail without any of its batches, entities or rows."""

    def fails(scenario: Scenario) -> bool:
        return any(row.get("version") == 2 for row in _rows(scenario))

    small = shrunk(_scenarios()[0], fails)
    assert fails(small)
    assert not any(fails(scenario) for scenario in smaller(small))
    assert sum(len(batch.rows) for batch in small.batches) <= 3
    assert set(small.phases[0]) | set(small.phases[1]) == set(range(len(small.batches)))


@every_shape
def test_scenarios_that_share_a_load_are_independent(shape: Any) -> None:
    """The rows of many scenarios in one load are those of each scenario in its own load."""
    scenarios = scenarios_of(shape, range(12))
    names = Counter(
        key for scenario in scenarios for key in {(b.source, b.channel, b.delivery) for b in scenario.batches}
    )
    assert set(names.values()) == {1}
    together = o.oracle(shape.final, [batch for scenario in scenarios for batch in scenario.batches])
    assert_same_rows([row for scenario in scenarios for row in _rows(scenario)], together)


def test_the_number_of_a_scenario_changes_only_its_names() -> None:
    """It does not change the order of its deliveries, which depends on their names."""
    for seed in range(0, 120, 3):
        low, high = random_scenario(seed, number=9), random_scenario(seed, number=2999)
        assert _name_order(low) == _name_order(high)
        assert_same_rows(_without_names(low), _without_names(high))


def _name_order(scenario: Scenario) -> list[int]:
    codes = [o.code(batch.delivery) for batch in scenario.batches]
    return sorted(range(len(codes)), key=codes.__getitem__)


def _without_names(scenario: Scenario) -> list[dict[str, Any]]:
    return [{k: v for k, v in row.items() if k not in ("scenario", "load_run_id")} for row in _rows(scenario)]


def test_a_scenario_with_full_snapshots_has_the_same_rows() -> None:
    for scenario, rows in _scenarios_with_rows():
        unscoped = unscoped_scenario(scenario)
        assert_same_rows(rows, _rows(unscoped))
        assert not any("scenario" in batch.scope_columns for batch in unscoped.batches)


# ------------------------------------------------------------------------- deliveries


def test_records_have_the_columns_of_their_delivery() -> None:
    for scenario in _scenarios():
        for batch in scenario.batches:
            columns = set(physical_columns(batch, scenario.shape.types))
            records = rows_as_records(batch, scenario.shape.types)
            assert len(records) == len(batch.rows)
            assert all(set(record) == columns for record in records)


def test_columns_of_a_delivery() -> None:
    shape = CUSTOMER
    batch = Batch("crm", "feed", "1", 1, dt.datetime(2024, 1, 1), declared=("town", "score"), has_row_times=True)
    assert physical_columns(batch, shape.types) == {
        **dict.fromkeys(("scenario", "id", "town", "score", "op", "updated_at"), "string"),
        "seq": "bigint",
        "reason": "string",
    }
    assert list(physical_columns(replace(batch, channel="snapshot", has_row_times=False), shape.types)) == [
        "scenario",
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


# ------------------------------------------------------------------------- rows of the oracle


@pytest.mark.parametrize("start", range(4))
def test_convergence(start: int) -> None:
    """S14: any order and any duplicates give the same rows."""
    for scenario in _scenarios()[start::20]:
        expected, rng = _rows(scenario), random.Random(start)
        for _ in range(3):
            assert_same_rows(expected, o.oracle(scenario.dim, _shuffled(scenario, rng)))


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(drawn_scenarios(), st.randoms(use_true_random=False))
def test_convergence_of_drawn_scenarios(scenario: Scenario, rng: random.Random) -> None:
    """S14."""
    assert_same_rows(_rows(scenario), o.oracle(scenario.dim, _shuffled(scenario, rng)))


def test_rejected_superseded_and_withdrawn_batches_have_no_effect() -> None:
    """S34."""
    for scenario, rows in _scenarios_with_rows():
        accepted = [batch for batch in o.accepted(scenario.dim, scenario.batches)[0] if not batch.withdrawn]
        assert_same_rows(rows, o.oracle(scenario.dim, accepted))


def test_windows_are_not_empty_and_do_not_overlap() -> None:
    """S2, S3: also, version numbers have no gaps, and only the last version may be current."""
    for scenario, rows in _scenarios_with_rows():
        for versions in _by_key(scenario.dim, rows).values():
            assert all(row["effective_from"] < row["effective_to"] for row in versions)
            assert all(row["effective_to"] <= later["effective_from"] for row, later in pairwise(versions))
            assert [row["version"] for row in versions] == list(range(1, len(versions) + 1))
            assert not any(row["current_flag"] for row in versions[:-1])


def _by_key(dim: Dim, rows: list[dict[str, Any]]) -> dict[tuple[Any, ...], list[dict[str, Any]]]:
    """The versions of each entity, in order of time."""
    versions: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    for row in sorted(rows, key=lambda row: row["effective_from"]) if dim.has_windows else ():
        versions.setdefault(tuple(row[name] for name in dim.key), []).append(row)
    return versions


def _versioned(dim: Dim, values: Mapping[str, Any]) -> list[Any]:
    return [o.canon(values.get(attr.name)) for attr in dim.of_type(2, 6)]


def test_adjacent_versions_differ() -> None:
    """S8, S13: without a gap between them, a version differs from the preceding one."""
    for scenario, rows in _scenarios_with_rows():
        for versions in _by_key(scenario.dim, rows).values():
            for row, later in pairwise(versions):
                gap = row["effective_to"] < later["effective_from"]
                assert gap or _versioned(scenario.dim, row) != _versioned(scenario.dim, later)


def test_the_version_in_force_has_the_values_provided_last() -> None:
    """S2, S8, S18, S30: the version in force at a time has the last values provided up to that time."""
    for scenario in _sample():
        dim = replace(scenario.dim, begin=None, begin_attr=None)
        versions = _by_key(dim, o.oracle(dim, scenario.batches))
        change_records = [
            s for s in o.resolve_kinds(o.statements(dim, scenario.batches)) if s.kind != "no_op" and dim.has_windows
        ]
        for key, time in {(record.key, record.time) for record in change_records}:
            records = [record for record in change_records if record.key == key and record.time <= time]
            rows_in_force = [r for r in versions.get(key, []) if r["effective_from"] <= time < r["effective_to"]]
            assert [_versioned(dim, row) for row in rows_in_force] == _values_in_force(dim, records)


def _values_in_force(dim: Dim, records: list[o.Statement]) -> list[list[Any]]:
    existence_records = [record for record in records if dim.source(record.batch.source).decides]
    if not existence_records or existence_records[-1].kind == "delete":
        return []
    values: dict[str, Any] = {}
    for record in records:
        values.update(record.values)
    return [_versioned(dim, values)]


def test_rows_name_the_batch_that_opened_them() -> None:
    """S14: load_run_id is the delivery of an accepted batch; source and reason are those of the batch."""
    for scenario, rows in _scenarios_with_rows():
        accepted = {batch.run_id: batch for batch in o.accepted(scenario.dim, scenario.batches)[0]}
        for row in rows:
            batch = accepted[row["load_run_id"]]
            assert row["change_source"] == batch.source
            assert row["change_reason"] in {r.reason for r in batch.rows} | {batch.reason, "source_load"}


# ------------------------------------------------------------------------- facts


def _fact_rows(scenario: Scenario, batches: Sequence[Batch], of_dimension: Sequence[Batch]) -> list[dict[str, Any]]:
    assert scenario.shape.fact is not None
    return o.fact_rows(scenario.shape.fact, batches, of_dimension)


@every_fact
def test_facts_converge(shape: Shape) -> None:
    """S14, S24: any order and any duplicates of their deliveries, and those of their dimension, give the same facts."""
    rng = random.Random(shape.name)
    for scenario in _facts(shape)[::4]:
        assert scenario.upstream is not None
        expected = _fact_rows(scenario, scenario.batches, scenario.upstream.batches)
        shuffled = _shuffled(scenario, rng), _shuffled(scenario.upstream, rng)
        assert_same_rows(expected, _fact_rows(scenario, *shuffled))


@every_fact
def test_facts_are_the_latest_values_of_entities(shape: Shape) -> None:
    """S41: replayed delivery by delivery, they are the rows of a dimension of type 1 without deleted entities."""
    names = (*shape.final.key, *(attr.name for attr in shape.final.attrs))
    for scenario in _facts(shape):
        replayed = o.replayed_facts(scenario.dim, scenario.batches)
        assert_same_rows([{name: row[name] for name in names} for row in _rows(scenario)], replayed, names)


@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.sampled_from(FACT_SHAPES).flatmap(drawn_scenarios))
def test_drawn_facts_reference_members_of_their_dimension(scenario: Scenario) -> None:
    """S23: a version of the scenario's dimension that is in force, an inferred member, or the unknown one."""
    assert scenario.upstream is not None
    dim = scenario.upstream.dim
    versions = {o.member_text(tuple(row[n] for n in dim.key), row["version"]) for row in _rows(scenario.upstream)}
    members = {
        value
        for row in _fact_rows(scenario, scenario.batches, scenario.upstream.batches)
        for name, value in row.items()
        if name.endswith("_member")
    }
    assert all(each in versions or each.endswith((o.INFERRED_MEMBER, o.UNKNOWN_MEMBER)) for each in members)
