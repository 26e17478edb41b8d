"""Snapshots that retire no entities, because keys of their rows cannot be read (S27)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from scd_pipeline.history.batch import Batch, batches_in_effect


@dataclass(frozen=True, slots=True)
class DeletesOff:
    """The snapshots of a source that retire no entities, and that no later one of their scope follows that does.

    Attributes:
        first: The first of them in order of position: deletes are off since then.
        last: The last of them.
        count: Their number.
    """

    first: Batch
    last: Batch
    count: int


def deletes_off(batches: Sequence[Batch], source: str) -> DeletesOff | None:
    """Return the last snapshots of the existence source if they retire no entities; None if its deletes are in effect.

    A snapshot of the time when another source decided existence retires none either, but has no bad rows.

    Args:
        batches: Every batch of the change log.
        source: The existence source.
    """
    snapshots = [each for each in batches_in_effect(list(batches)) if each.is_snapshot and each.source == source]
    snapshots = [each for each in snapshots if each.retires or each.bad_rows]
    if all(batch.retires for batch in snapshots):
        return None
    off: dict[str, list[Batch]] = {}
    for batch in sorted(snapshots, key=lambda batch: batch.position):
        if not batch.retires:
            for value in batch.scope if batch.scope is not None else ("",):
                off.setdefault(value, []).append(batch)
        elif batch.scope is None:
            off.clear()
        else:
            for value in batch.scope:
                off.pop(value, None)
    remaining = {batch.id: batch for each in off.values() for batch in each}
    if not remaining:
        return None
    in_order = sorted(remaining.values(), key=lambda batch: batch.position)
    return DeletesOff(in_order[0], in_order[-1], len(in_order))
