"""The selection of the statements that may hit a row, by the values of the row of the base (S12).

A statement may hit a row if the row of the base is in an interval of its condition, or if an earlier statement that may
hit the row assigns a value that may be in the interval: the statement depends on the earlier one.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import islice
from typing import Any

from scd_pipeline.declaration.names import quote_name
from scd_pipeline.delta.table import sql_literal
from scd_pipeline.timed.expressions import Interval, Kind, Term, Value, can_fail, conjuncts
from scd_pipeline.timed.patterns import contains_any
from scd_pipeline.timed.search import Cluster, cluster_at, clusters, search
from scd_pipeline.timed.statements import Statement

_MOST = 10
"""The number of dependent statements that are listed; if there are more, all later statements are candidates."""


def may_hit(statements: Sequence[Statement]) -> str:
    """Return a condition on the row of the base; if it is not true, no statement hits the row.

    The first statement that hits a row hits its row of the base. Where a condition has a term `column = literal`, only
    this term is tested, in one list for each column: Spark looks a value up in it. Where it has a term that only values
    within an interval meet, such as BETWEEN, all intervals of a column are tested by a binary search, and all texts of
    `LIKE '%text%'` by one regular expression. These terms are first, as they cannot fail, and the others are in the
    order of the statements: a condition that fails for a row is not evaluated if an earlier statement hits the row.
    """
    conditions: list[str] = []
    lookups: dict[str, dict[str, None]] = {}
    intervals: dict[str, list[tuple[Interval, int]]] = {}
    inner_texts: dict[str, list[str]] = {}
    for number, statement in enumerate(statements, start=1):
        if statement.condition is None:
            return "TRUE"
        translator, terms = statement.translator(quote_name), conjuncts(statement.condition)
        if lookup := next(filter(None, map(translator.lookup, terms)), None):
            lookups.setdefault(lookup[0], {}).update(dict.fromkeys(lookup[1]))
        elif term := next(filter(None, map(translator.term, terms)), None):
            intervals.setdefault(term.text, []).extend((each, number) for each in term.intervals)
        elif inner := next(filter(None, map(translator.inner_text, terms)), None):
            inner_texts.setdefault(inner[0], []).append(inner[1])
        else:
            conditions.append(translator.condition(statement.condition))
    tests = [f"{value} IN ({', '.join(literals)})" for value, literals in lookups.items()]
    tests += [search(value, clusters(each), partial(_is_within, value)) for value, each in intervals.items()]
    tests += [f"{column} RLIKE {sql_literal(contains_any(texts))}" for column, texts in inner_texts.items()]
    branches = "".join(f" WHEN {test} THEN TRUE" for test in [*tests, *conditions])
    return f"(CASE{branches} ELSE FALSE END)" if branches else "FALSE"


@dataclass(frozen=True, slots=True)
class _Searched:
    """A value that terms compare with literals.

    Attributes:
        column: The column of the value.
        sort_key: Returns the key of the value if the column has a literal.
        clusters: The intervals of the terms.
        numbers: The numbers of their statements, in order.
    """

    column: str
    sort_key: Callable[[str], Any]
    clusters: Sequence[Cluster]
    numbers: Sequence[int]

    @classmethod
    def by_terms(cls, terms: Sequence[tuple[int, Term]]) -> _Searched:
        """Return the value of terms with the numbers of their statements, which are in order."""
        ordered = clusters((interval, number) for number, term in terms for interval in term.intervals)
        _, first = terms[0]
        return cls(first.column, first.sort_key, ordered, [number for number, _ in terms])

    def selected(self, value: Value) -> Sequence[int]:
        """Return the numbers of the statements that a value of the column may select, in order."""
        if value.kind is Kind.NULL:
            return ()
        if value.literal is None:
            return self.numbers
        cluster = cluster_at(self.clusters, self.sort_key(value.literal))
        return () if cluster is None else cluster.numbers


@dataclass(frozen=True)
class Candidates:
    """The statements that may hit a row, for a row that one of them may hit.

    A statement is selected by a term of its condition that compares a column with literals. Without such a term, it is
    selected by those terms that read no column that an earlier statement assigns, and that cannot fail: an earlier
    statement may delete the rows for which they do. Without these, it is a candidate for all rows.

    Attributes:
        statements: The statements; the number of the first one is 1.
        count: The name of a variable of the expression, for the number of the statements.
    """

    statements: Sequence[Statement]
    count: str

    def numbers(self) -> str:
        """Return the numbers of the candidates in their order, as an array."""
        conditions = [
            f"if({selection}, {self._list([number])}, NULL)"
            for number, selection in self._selections.items()
            if isinstance(selection, str)
        ]
        searches = [
            search(value, searched.clusters, partial(self._list_within, value))
            for value, searched in self._searched.items()
        ]
        others = self._list(number for number, selection in self._selections.items() if selection is None)
        lists = ", ".join([*conditions, *searches, f"CAST({others} AS array<int>)"])
        numbers = f"array_sort(array_distinct(flatten(array_compact(array({lists})))))"
        # Of a variable Spark stores no list for each begin of a sequence.
        return f"element_at(transform(array({len(self.statements)}), {self.count} -> {numbers}), 1)"

    @cached_property
    def _selections(self) -> dict[int, Term | str | None]:
        """The term or the condition that selects each statement; None for a candidate for all rows."""
        selections: dict[int, Term | str | None] = {}
        assigned: set[str] = set()
        for number, statement in enumerate(self.statements, start=1):
            selections[number] = _selection(statement, assigned)
            assigned |= set(statement.assignments or ())
        return selections

    @cached_property
    def _searched(self) -> dict[str, _Searched]:
        """The terms of the same value, by its SQL."""
        terms: dict[str, list[tuple[int, Term]]] = {}
        for number, selection in self._selections.items():
            if isinstance(selection, Term):
                terms.setdefault(selection.text, []).append((number, selection))
        return {value: _Searched.by_terms(each) for value, each in terms.items()}

    @cached_property
    def _reached(self) -> dict[int, frozenset[int] | None]:
        """Each statement and those that depend on it; None for all later ones."""
        reached: dict[int, frozenset[int] | None] = {}
        for number in reversed(self._selections):
            dependent = [reached[each] for each in islice(self._dependent(number), _MOST)]
            numbers = frozenset({number}.union(*filter(None, dependent)))
            reached[number] = None if None in dependent or len(numbers) > _MOST else numbers
        return reached

    def _dependent(self, number: int) -> Iterator[int]:
        """Yield the first statements that depend on one, without those that depend on these."""
        statement = self.statements[number - 1]
        for column, assigned in (statement.assignments or {}).items():
            value = statement.translator(quote_name).value(assigned)
            for searched in self._searched.values():
                if searched.column == column:
                    numbers = searched.selected(value)
                    first = bisect_right(numbers, number)
                    yield from numbers[first : first + _MOST]

    def _list(self, numbers: Iterable[int]) -> str:
        """Return the list of statements and of those that depend on them."""
        reached = {number: self._reached[number] for number in numbers}
        first = min((number for number, each in reached.items() if each is None), default=None)
        listed = {each for some in reached.values() for each in some or ()} | ({first} if first is not None else set())
        text = f"array({', '.join(map(str, sorted(listed)))})"
        return text if first is None else f"concat({text}, sequence({first}, {self.count}))"

    def _list_within(self, value: str, cluster: Cluster) -> str:
        return f"if({cluster.interval.contains(value)}, {self._list(cluster.numbers)}, NULL)"


def _selection(statement: Statement, assigned: set[str]) -> Term | str | None:
    """Return what selects the rows that a statement may hit; None for all rows.

    Args:
        statement: The statement.
        assigned: The columns that earlier statements assign.
    """
    translator = statement.translator(quote_name)
    conditions = [] if statement.condition is None else conjuncts(statement.condition)
    unchanged = [each for each in conditions if assigned.isdisjoint(statement.references(each))]
    term = next(filter(None, map(translator.term, [*unchanged, *conditions])), None)
    if term is not None:
        return term
    tested = [translator.condition(each) for each in unchanged if not can_fail(each)]
    return f"({' AND '.join(tested)})" if tested else None


def _is_within(value: str, cluster: Cluster) -> str:
    return f"({cluster.interval.contains(value)})"
