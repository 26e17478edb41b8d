"""Since when the snapshots of a source retire no entities (S27)."""

from __future__ import annotations

import pytest

from scd_pipeline.history.batch import Batch
from scd_pipeline.history.deletes import deletes_off
from scd_pipeline.instants import to_instant


def snapshot(day: int, kind: str, scope: str = "", source: str = "crm") -> Batch:
    """A snapshot of a day: it `retires`, has `unreadable` keys, or is of a time when its source did not decide."""
    return Batch(
        source=source,
        channel="snapshot",
        delivery=f"2024-01-{day:02}",
        revision="0",
        at=to_instant(f"2024-01-{day:02}"),
        scope_columns=("store",) if scope else (),
        scope=tuple(scope.split("+")) if scope else None,
        retires=kind == "retires",
        bad_rows=int(kind == "unreadable"),
    )


def off(*batches: Batch) -> tuple[str, str, int] | None:
    result = deletes_off(batches, "crm")
    return result and (result.first.delivery[-2:], result.last.delivery[-2:], result.count)


@pytest.mark.rule("S27")
@pytest.mark.parametrize(
    ("kinds", "expected"),
    [
        ("", None),
        ("retires retires", None),
        ("unreadable retires", None),
        ("unreadable", ("01", "01", 1)),
        ("retires unreadable unreadable", ("02", "03", 2)),
        ("unreadable retires unreadable", ("03", "03", 1)),
        ("other unreadable other", ("02", "02", 1)),
        ("other", None),
    ],
)
def test_deletes_are_off_since_the_first_snapshot_after_the_last_that_retires(
    kinds: str, expected: tuple[str, str, int] | None
) -> None:
    batches = [snapshot(day, kind) for day, kind in enumerate(kinds.split(), start=1)]
    assert off(*batches) == off(*reversed(batches)) == expected


@pytest.mark.rule("S27")
def test_deletes_are_off_for_each_value_of_a_scope() -> None:
    first, second = snapshot(1, "unreadable", "S1+S2"), snapshot(2, "retires", "S1")
    assert off(first, second) == ("01", "01", 1)
    assert off(first, second, snapshot(3, "retires", "S2")) is None
    assert off(first, snapshot(3, "retires")) is None
    assert off(snapshot(1, "retires"), snapshot(2, "unreadable", source="web")) is None
