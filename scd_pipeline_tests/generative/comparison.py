"""What worlds left in their ground, against what the oracle says of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from scd_pipeline.columns import BATCH, EFFECTIVE_FROM, KIND
from scd_pipeline.declaration import Dimension
from scd_pipeline_tests import oracle as o
from scd_pipeline_tests.generative.ground import Ground, Record
from scd_pipeline_tests.text_tables import same_rows
from scd_pipeline_tests.worlds import World

Differences = dict[int, str]
BadRows = Counter[tuple[str, o.Key | None]]
EVERYWHERE = 0
"""Stands for a world's number where a difference is no single world's."""


@dataclass(frozen=True)
class Expected:
    """What the oracle says of one world: rows, the batches that stand, their bad rows, and what is refused and why."""

    world: World
    rows: Sequence[Record]
    standing: frozenset[str]
    bad: BadRows
    refused: Mapping[str, str]

    @staticmethod
    def of(world: World) -> Expected:
        standing, refused = o.accepted(world.dim, world.batches)
        bad = Counter((batch, key) for batch, key, _ in o.quarantine(world.dim, world.batches))
        ids = frozenset(batch.id for batch in standing)
        return Expected(world, o.oracle(world.dim, world.batches), ids, bad, refused)


def expected(worlds: Iterable[World]) -> list[Expected]:
    return [Expected.of(world) for world in worlds]


def differences(ground: Ground, wanted: Sequence[Expected]) -> Differences:
    """By the number of the world what differs; nothing if all is as the oracle says."""
    found: dict[int, list[str]] = {}
    for number, text in _differences(ground, wanted):
        if text:
            found.setdefault(number, []).append(text)
    return {number: "\n".join(texts) for number, texts in found.items()}


def _differences(ground: Ground, wanted: Sequence[Expected]) -> Iterator[tuple[int, str]]:
    rows, log = ground.rows(), Log(ground.log(), ground.dimension)
    names = list(next((row for one in wanted for row in one.rows), {}))
    yield EVERYWHERE, _columns(rows, names, ground.dimension)
    yield EVERYWHERE, _repeated_keys(rows, ground.dimension)
    by_world: dict[int, list[Record]] = {}
    for row in rows:
        by_world.setdefault(row["world"], []).append(row)
    for one in wanted:
        number = one.world.number
        yield number, same_rows(one.rows, by_world.pop(number, []), names)
        yield number, log.difference(one)
    yield EVERYWHERE, f"rows of other worlds: {by_world}" if by_world else ""
    owner = {batch.id: one for one in wanted for batch in one.world.batches}
    yield from _stopped(ground, owner)
    yield from _repeats(ground, owner)


def _columns(rows: Sequence[Record], names: Sequence[str], dimension: Dimension) -> str:
    """The table has the columns that the oracle tells of, and the surrogate key."""
    there, wanted = set(rows[0]) if rows else set(), {*names, dimension.surrogate_key}
    return f"columns that differ: {sorted(there ^ wanted)}" if rows and names and there != wanted else ""


def _repeated_keys(rows: Sequence[Record], dimension: Dimension) -> str:
    """S14: a surrogate key names one version."""
    times = Counter(row[dimension.surrogate_key] for row in rows)
    again = {key: n for key, n in times.items() if n > 1}
    return f"surrogate keys of several rows: {again}" if again else ""


class Log:
    """The batches and the bad rows of a change log."""

    def __init__(self, records: Sequence[Record], dimension: Dimension) -> None:
        self.kept_as = {row[BATCH]: row["content_of"] or row[BATCH] for row in records if row[KIND] == "batch"}
        self.bad: dict[str, list[o.Key | None]] = {}
        for row in records:
            if row[KIND] == "bad":
                key = tuple(row[name] for name in dimension.key_names)
                self.bad.setdefault(row[BATCH], []).append(None if None in key else key)

    def difference(self, one: Expected) -> str:
        """S26, S34: which batches of a world stand, and what of them is in the quarantine."""
        stands = self._standing(one.world)
        told = [f"standing, but should not: {sorted(stands - one.standing)}"] if stands - one.standing else []
        told += [f"should stand, but does not: {sorted(one.standing - stands)}"] if one.standing - stands else []
        bad: BadRows = Counter((batch, key) for batch in stands for key in self.bad.get(self.kept_as[batch], []))
        told += [f"quarantine: missing {one.bad - bad}, not expected {bad - one.bad}"] if bad != one.bad else []
        return "\n".join(told)

    def _standing(self, world: World) -> set[str]:
        best: dict[str, o.Batch] = {}
        for batch in world.batches:
            known = best.get(batch.run_id)
            if batch.id in self.kept_as and (known is None or _revision(batch) > _revision(known)):
                best[batch.run_id] = batch
        return {batch.id for batch in best.values()}


def _revision(batch: o.Batch) -> str:
    return o.code(str(batch.revision))


def _stopped(ground: Ground, owner: Mapping[str, Expected]) -> Iterator[tuple[int, str]]:
    """S5, S27: what is stopped is what the oracle refuses, for the same rule; what the guard stops is told."""
    rejected = {(batch.batch_id, batch.code) for result in ground.done for batch in result.rejected}
    for name, rule in sorted(rejected):
        if owner[name].refused.get(name) != rule:
            yield owner[name].world.number, f"{name} is stopped: {rule}"
    for name, one in owner.items():
        if one.refused.get(name) == o.RETIRE_GUARD and (name, o.RETIRE_GUARD) not in rejected:
            yield one.world.number, f"{name} is not stopped: {o.RETIRE_GUARD}"


def _repeats(ground: Ground, owner: Mapping[str, Expected]) -> Iterator[tuple[int, str]]:
    """S13, S15: what is loaded again is not taken in again, and makes no version of a table."""
    for before, after in ground.repeats:
        again = [batch.batch_id for batch in after.batches if batch.outcome == "accepted"]
        for name in again:
            yield owner[name].world.number, f"{name} is accepted again"
        versions = [(result.table_version, result.log_version) for result in (before, after)]
        if versions[0] != versions[1] and not again:
            yield EVERYWHERE, f"loading again: versions of dimension and log {versions[0]}, then {versions[1]}"


def keys(rows: Iterable[Record], dimension: Dimension) -> dict[tuple[Any, ...], int]:
    """S14: the surrogate key of each (business key, effective_from)."""
    names = [*dimension.key_names, *([EFFECTIVE_FROM] if dimension.has_windows else [])]
    return {tuple(row[name] for name in names): row[dimension.surrogate_key] for row in rows}
