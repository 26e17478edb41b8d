"""Compare the tables of loaded scenarios with the results of the oracle."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from scd_pipeline.columns import BATCH, EFFECTIVE_FROM, KIND, VERSION
from scd_pipeline.declaration import Dimension, Fact
from scd_pipeline.history.keys import UNKNOWN_KEY
from scd_pipeline_tests import oracle as o
from scd_pipeline_tests.generative.scenario_warehouse import Record, ScenarioWarehouse
from scd_pipeline_tests.scenarios import Scenario
from scd_pipeline_tests.text_tables import same_rows

Differences = dict[int, str]
BadRows = Counter[tuple[str, o.Key | None]]
EVERYWHERE = 0
"""In place of a scenario's number, for a difference that belongs to no single scenario."""


@dataclass(frozen=True)
class Expected:
    """The oracle's results of a scenario: rows, batches in effect, their bad rows, and the rules that reject others.

    For a fact also its rows with the members that they reference, and the results of its dimension.
    """

    scenario: Scenario
    rows: Sequence[Record]
    in_effect: frozenset[str]
    bad: BadRows
    rejections: Mapping[str, str]
    facts: Sequence[Record] = ()
    upstream: Expected | None = None

    @staticmethod
    def from_oracle(scenario: Scenario) -> Expected:
        batches, rejections = o.accepted(scenario.dim, scenario.batches)
        bad = Counter((batch, key) for batch, key, _ in o.quarantine(scenario.dim, scenario.batches))
        ids = frozenset(batch.id for batch in batches)
        result = Expected(scenario, o.oracle(scenario.dim, scenario.batches), ids, bad, rejections)
        fact, upstream = scenario.shape.fact, scenario.upstream
        if fact is None or upstream is None:
            return result
        facts = o.fact_rows(fact, scenario.batches, upstream.batches)
        return replace(result, facts=facts, upstream=Expected.from_oracle(upstream))


def expected(scenarios: Iterable[Scenario]) -> list[Expected]:
    return [Expected.from_oracle(scenario) for scenario in scenarios]


def differences(opened: ScenarioWarehouse, expectations: Sequence[Expected]) -> Differences:
    """The differences by the number of the scenario; empty if all agrees with the oracle."""
    texts_by_scenario: dict[int, list[str]] = {}
    for number, text in _differences(opened, expectations):
        if text:
            texts_by_scenario.setdefault(number, []).append(text)
    return {number: "\n".join(texts) for number, texts in texts_by_scenario.items()}


def _differences(opened: ScenarioWarehouse, expectations: Sequence[Expected]) -> Iterator[tuple[int, str]]:
    rows, log = opened.rows(), Log(opened.log(), opened.dimension)
    names = list(next((row for expectation in expectations for row in expectation.rows), {}))
    yield EVERYWHERE, _columns(rows, names, opened.dimension)
    yield EVERYWHERE, _repeated_keys(rows, opened.dimension)
    by_scenario: dict[int, list[Record]] = {}
    for row in rows:
        by_scenario.setdefault(row["scenario"], []).append(row)
    for expectation in expectations:
        number = expectation.scenario.number
        yield number, same_rows(expectation.rows, by_scenario.pop(number, []), names)
        yield number, log.difference(expectation)
    yield EVERYWHERE, f"rows of other scenarios: {by_scenario}" if by_scenario else ""
    owner = {batch.id: expectation for expectation in expectations for batch in expectation.scenario.batches}
    yield from _rejections(opened, owner)
    yield from _repeats(opened, owner)
    if opened.upstream is not None:
        yield from _differences(opened.upstream, [each.upstream for each in expectations if each.upstream])
        yield from _fact_differences(opened, opened.upstream, rows, expectations)


def _fact_differences(
    opened: ScenarioWarehouse, upstream: ScenarioWarehouse, rows: Sequence[Record], expectations: Sequence[Expected]
) -> Iterator[tuple[int, str]]:
    """S23, S24, S41: compare the facts and the members that they reference; an inferred member has no versions."""
    assert isinstance(opened.table, Fact)
    dimension, versions = upstream.dimension, upstream.rows()
    members = {row[dimension.surrogate_key]: _member(row, dimension) for row in (*versions, *upstream.members())}
    facts: dict[int, list[Record]] = {}
    for row in rows:
        referenced = {f"{role}_member": members.get(row[key]) for role, key, _ in opened.table.keyed_roles}
        facts.setdefault(row["scenario"], []).append(row | referenced)
    for expectation in expectations:
        names = list(next(iter(expectation.facts), {}))
        yield (
            expectation.scenario.number,
            same_rows(expectation.facts, facts.get(expectation.scenario.number, []), names),
        )
    with_versions = {_business_key(row, dimension) for row in versions}
    for row in upstream.members():
        if _business_key(row, dimension) in with_versions:
            yield row["scenario"], f"an inferred member of an entity that has versions: {_business_key(row, dimension)}"


def _business_key(row: Record, dimension: Dimension) -> o.Key:
    return tuple(row[name] for name in dimension.key_names)


def _member(row: Record, dimension: Dimension) -> str:
    """A row of a dimension as the oracle names what a fact references."""
    key = _business_key(row, dimension)
    return o.UNKNOWN_MEMBER if row[dimension.surrogate_key] == UNKNOWN_KEY else o.member_text(key, row[VERSION])


def _columns(rows: Sequence[Record], names: Sequence[str], dimension: Dimension) -> str:
    """Compare the table's columns with those of the oracle and the surrogate keys, also those that a fact stores."""
    keys = {attribute.name for attribute in dimension.attributes if attribute.derived}
    actual, required = set(rows[0]) if rows else set(), {*names, *keys, dimension.surrogate_key}
    return f"columns that differ: {sorted(actual ^ required)}" if rows and names and actual != required else ""


def _repeated_keys(rows: Sequence[Record], dimension: Dimension) -> str:
    """S14: a surrogate key belongs to one version."""
    times = Counter(row[dimension.surrogate_key] for row in rows)
    repeated = {key: n for key, n in times.items() if n > 1}
    return f"surrogate keys of several rows: {repeated}" if repeated else ""


class Log:
    """The batches and the bad rows of a change log."""

    def __init__(self, records: Sequence[Record], dimension: Dimension) -> None:
        self.content_ids = {row[BATCH]: row["content_of"] or row[BATCH] for row in records if row[KIND] == "batch"}
        self.bad: dict[str, list[o.Key | None]] = {}
        for row in records:
            if row[KIND] == "bad":
                key = tuple(row[name] for name in dimension.key_names)
                self.bad.setdefault(row[BATCH], []).append(None if None in key else key)

    def difference(self, expectation: Expected) -> str:
        """S26, S34: compare the batches of a scenario that are in effect, and their quarantined rows."""
        actual, required = self._in_effect(expectation.scenario), expectation.in_effect
        texts = [f"in effect, but should not be: {sorted(actual - required)}"] if actual - required else []
        texts += [f"should be in effect, but is not: {sorted(required - actual)}"] if required - actual else []
        bad: BadRows = Counter((batch, key) for batch in actual for key in self.bad.get(self.content_ids[batch], []))
        if bad != expectation.bad:
            texts.append(f"quarantine: missing {expectation.bad - bad}, not expected {bad - expectation.bad}")
        return "\n".join(texts)

    def _in_effect(self, scenario: Scenario) -> set[str]:
        best: dict[str, o.Batch] = {}
        for batch in scenario.batches:
            highest = best.get(batch.run_id)
            if batch.id in self.content_ids and (highest is None or _revision(batch) > _revision(highest)):
                best[batch.run_id] = batch
        return {batch.id for batch in best.values()}


def _revision(batch: o.Batch) -> str:
    return o.code(str(batch.revision))


def _rejections(opened: ScenarioWarehouse, owner: Mapping[str, Expected]) -> Iterator[tuple[int, str]]:
    """S5, S27: the oracle rejects each rejected batch by the same rule; the retire guard misses no batch."""
    rejected = {(batch.batch_id, batch.code) for result in opened.done for batch in result.rejected}
    for name, rule in sorted(rejected):
        if owner[name].rejections.get(name) != rule:
            yield owner[name].scenario.number, f"{name} is rejected: {rule}"
    for name, expectation in owner.items():
        if expectation.rejections.get(name) == o.RETIRE_GUARD and (name, o.RETIRE_GUARD) not in rejected:
            yield expectation.scenario.number, f"{name} is not rejected: {o.RETIRE_GUARD}"


def _repeats(opened: ScenarioWarehouse, owner: Mapping[str, Expected]) -> Iterator[tuple[int, str]]:
    """S13, S15: a repeated load accepts no batch and creates no table version."""
    for before, after in opened.repeats:
        accepted = [batch.batch_id for batch in after.results if batch.outcome == "accepted"]
        for name in accepted:
            yield owner[name].scenario.number, f"{name} is accepted again"
        versions = [(result.table_version, result.log_version) for result in (before, after)]
        if versions[0] != versions[1] and not accepted:
            yield EVERYWHERE, f"loading again: versions of dimension and log {versions[0]}, then {versions[1]}"


def keys(rows: Iterable[Record], dimension: Dimension) -> dict[tuple[Any, ...], int]:
    """S14: the surrogate key of each (business key, effective_from)."""
    names = [*dimension.key_names, *([EFFECTIVE_FROM] if dimension.has_windows else [])]
    return {tuple(row[name] for name in names): row[dimension.surrogate_key] for row in rows}
