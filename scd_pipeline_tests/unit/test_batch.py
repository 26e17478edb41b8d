"""Batches as data, without any rows."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from scd_pipeline.history.batch import Batch, overlap_groups, rank
from scd_pipeline_tests import oracle


def snapshot(name: str, scope: str | None, *, source: str = "pos", columns: str = "region") -> Batch:
    """A scope is given by its values, one letter each; `name` is delivery/revision."""
    delivery, _, revision = name.partition("/")
    values = None if scope is None else tuple(scope)
    return Batch(source, "snapshot", delivery, revision or "1", None, scope_columns=(columns,), scope=values)


def groups(batches: Iterable[Batch]) -> set[str]:
    """Return the names of the deliveries of each group, in order."""
    names_by_group: dict[object, list[str]] = {}
    for (_, _, delivery), group in overlap_groups(list(batches)).items():
        names_by_group.setdefault(group, []).append(delivery)
    return {"".join(sorted(names)) for names in names_by_group.values()}


@pytest.mark.rule("S27")
@pytest.mark.parametrize(
    ("batches", "expected"),
    [
        ([snapshot("a", "n"), snapshot("b", "s"), snapshot("c", "n")], {"ac", "b"}),
        ([snapshot("a", "n"), snapshot("b", "s"), snapshot("c", "ns")], {"abc"}),
        ([snapshot("a", "n"), snapshot("b", "no"), snapshot("c", "op"), snapshot("d", "s")], {"abc", "d"}),
        ([snapshot("a/1", "n"), snapshot("a/2", "s"), snapshot("b", "n"), snapshot("c", "s")], {"abc"}),
        ([snapshot("a", "n"), snapshot("b", None), snapshot("c", "s")], {"abc"}),
        ([snapshot("a", "n"), snapshot("b", "n", columns="city"), snapshot("c", "s")], {"abc"}),
        ([snapshot("a", "n"), snapshot("b", "n", source="erp"), snapshot("c", None, source="erp")], {"a", "bc"}),
        ([snapshot("a", ""), snapshot("b", "")], {"a", "b"}),
    ],
    ids=["same", "wide", "chain", "revisions", "everything", "other columns", "other source", "no entity"],
)
def test_snapshots_that_may_cover_the_same_entities_form_a_group(batches: list[Batch], expected: set[str]) -> None:
    assert groups(batches) == expected


@pytest.mark.rule("S14")
def test_names_have_one_order_independent_of_arrival() -> None:
    """Numbers are compared as numbers, dates come before them, and two ways of writing one number are two names."""
    names = ["2024-01-31", "2024-02-01", "0", "00", "1", "01", "001", "2", "10", "a", "b"]
    assert len({rank(name) for name in names}) == len(names)
    assert sorted(names, key=rank)[:4] == ["2024-01-31", "2024-02-01", "0", "00"]
    assert sorted(names, key=rank)[-3:] == ["10", "a", "b"]
    assert [rank(name) for name in names] == [oracle.code(name) for name in names]
