"""Mutations of functions of this module, in place of the engine's."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from scd_pipeline_tests.generative import mutations as m

LIMIT = 10


def prices(rows: list[int], factor: int = 2) -> list[int]:
    """Return the small rows in order, multiplied; none for no factor."""
    if factor == 0:
        return []
    small = [row * factor for row in sorted(rows, reverse=False) if row < LIMIT and row >= 0]
    return [*small, max(rows)]


def chained(text: str) -> str:
    return text.strip().upper().replace("A", "b", 1)


def last(rows: list[int]) -> int:
    latest = 0
    for row in rows:
        latest = row
    return latest


@dataclass(frozen=True, slots=True)
class Store:
    size: int

    @property
    def is_large(self) -> bool:
        return self.size > LIMIT or self.size == 0


REFERENCE = prices


def mutated(mutation: m.Mutation, name: str = "prices") -> m.Patch:
    return m.Patch([m.Mutated(f"test_mutations.{name}", mutation)], [__name__])


@pytest.mark.parametrize(
    ("mutation", "expected"),
    [
        (m.dropped(m.item("max")), [2, 4]),
        (m.dropped(m.operand("LIMIT")), [2, 4, 20, 10]),
        (m.compared(m.comparison("LIMIT"), "<="), [2, 4, 20, 10]),
        (m.compared(m.comparison(operator=">="), "<"), [-2, 10]),
        (m.renamed(m.call("max"), "min"), [2, 4, -1]),
        (m.replaced(m.call("sorted"), "_0"), [4, 2, 10]),
        (m.replaced(m.argument("sorted"), "[*_, 3]"), [2, 4, 6, 10]),
        (m.replaced(m.keyword("reverse"), "True"), [4, 2, 10]),
        (m.replaced(m.condition("factor"), "True"), []),
        (m.replaced(m.comprehension("LIMIT"), "list(reversed(_))"), [4, 2, 10]),
        (m.begun("rows = rows[:1]"), [4, 2]),
        (m.returned("[LIMIT]"), [10]),
    ],
    ids=lambda value: str(value.selection or value.new) if isinstance(value, m.Mutation) else "",
)
def test_changes_the_selected_expression_while_it_is_applied(mutation: m.Mutation, expected: list[int]) -> None:
    rows = [2, 1, -1, 10]
    with mutated(mutation).applied():
        assert prices(rows) == REFERENCE(rows) == expected
    assert prices(rows) == [2, 4, 10]


@pytest.mark.parametrize(
    ("mutation", "expected"),
    [
        (m.unchained(m.call("upper")), "aB"),
        (m.unchained(m.call("replace", "A")), "AB"),
        (m.renamed(m.call("upper"), "lower"), "ab"),
        (m.replaced(m.attribute("upper"), "text.lower"), " ab "),
        (m.replaced(m.call("replace"), "_receiver + _1"), "ABb"),
    ],
    ids=lambda value: str(value.selection) if isinstance(value, m.Mutation) else "",
)
def test_changes_chains_of_calls(mutation: m.Mutation, expected: str) -> None:
    with mutated(mutation, "chained").applied():
        assert chained(" aB ") == expected


def test_changes_what_a_loop_iterates_over() -> None:
    with mutated(m.replaced(m.iterable(), "_[:1]"), "last").applied():
        assert last([1, 2, 3]) == 1


def test_changes_a_property() -> None:
    with mutated(m.dropped(m.operand("LIMIT")), "Store.is_large").applied():
        assert not Store(11).is_large
    assert Store(11).is_large


def test_records_whether_the_mutated_function_was_called() -> None:
    patch = mutated(m.renamed(m.call("max"), "min"))
    for _ in range(2):
        with patch.applied():
            assert not patch.is_called()
            prices([1])
        assert patch.is_called()


@pytest.mark.parametrize(
    ("mutation", "problem"),
    [
        (m.dropped(m.item("min")), "expected one item that mentions min; the function has 0"),
        (m.dropped(m.operand()), "expected one operand; the function has 2"),
        (
            m.replaced(m.call("sorted").inside(m.call("max")), "_0"),
            "expected one call sorted inside a call max; the function has 0",
        ),
        (m.replaced(m.call("sorted"), "unknown_name"), "the function has no unknown_name"),
        (m.replaced(m.call("sorted"), "_receiver"), "no part _receiver"),
        (m.compared(m.comparison("LIMIT"), "<"), "changes nothing"),
    ],
)
def test_reports_what_does_not_apply(mutation: m.Mutation, problem: str) -> None:
    with pytest.raises(m.DoesNotApply, match=problem):
        mutated(mutation)


@pytest.mark.parametrize("name", ["absent", "Store.absent", "Store", "LIMIT", "pytest.fixture"])
def test_reports_a_function_that_the_module_does_not_have(name: str) -> None:
    with pytest.raises(m.DoesNotApply, match="0 functions have this name; expected one"):
        mutated(m.returned("None"), name)


def test_new_code_may_bind_names_of_its_own() -> None:
    new = m.replaced(m.call("max"), "sum(value for value in (lambda other: other)(rows))")
    with mutated(new).applied():
        assert prices([1, 2]) == [2, 4, 3]
