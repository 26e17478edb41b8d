"""The evaluation of statements as one expression of Spark over a row of the base (S12).

A row's state consists of the columns that statements assign, of whether the row exists, and of the last statement that
hit it. `aggregate` applies to it, one after the other, the statements that may hit the row. The statements are the
leaves of a binary tree of conditions on their number, so that the depth of the expression grows with the logarithm of
their number. Spark interprets `aggregate`, but compiles the condition before it: a row that no statement hits skips it.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import cached_property

from scd_pipeline.declaration.names import quote_name
from scd_pipeline.timed.candidates import Candidates, may_hit
from scd_pipeline.timed.expressions import Columns, Resolve
from scd_pipeline.timed.statements import Statement

PREFIX = "_scd_"
"""How the names of fields and variables of the expression begin, which no column of a base may have."""
EXISTS, LAST = f"{PREFIX}exists", f"{PREFIX}last"
"""The fields of a state: whether the row exists, and the number of the last statement that hit it, 0 for none."""
_STATE, _NUMBER, _TRACE, _NEXT, _COUNT = (f"{PREFIX}{name}" for name in ("state", "number", "trace", "next", "count"))


def applied(statements: Sequence[Statement], millis: int) -> list[Statement]:
    """Return the statements whose time is at or before a time."""
    return [statement for statement in statements if statement.millis <= millis]


def relevant(statements: Sequence[Statement], read: Collection[str]) -> list[Statement]:
    """Return the statements on which the read columns or the existence of a row depend."""
    needed, selected = set(read), []
    for statement in reversed(statements):
        assigned = statement.assignments
        if assigned is not None and needed.isdisjoint(assigned):
            continue
        values = [] if assigned is None else [value for column, value in assigned.items() if column in needed]
        needed |= statement.references(statement.condition, *values)
        selected.append(statement)
    return selected[::-1]


@dataclass(frozen=True)
class Program:
    """Statements in the order in which they apply, and the columns of their table."""

    columns: Columns
    statements: Sequence[Statement]

    @property
    def has_deletes(self) -> bool:
        """Whether a statement is a DELETE."""
        return any(statement.assignments is None for statement in self.statements)

    @cached_property
    def assigned(self) -> dict[str, str]:
        """The field of a state for each column that a statement assigns, in the order of the table."""
        assigned = {column for each in self.statements for column in each.assignments or ()}
        return {column: f"{PREFIX}{i}" for i, column in enumerate(self.columns) if column in assigned}

    def last_state(self) -> str:
        """Return the state of a row after all statements; NULL if none of them hits the row."""
        state = f"coalesce(if({_STATE}.{EXISTS}, {self._steps()}, NULL), {_STATE})"
        last = self._aggregate(self._first_state(), f"({_STATE}, {_NUMBER}) -> {state}")
        return f"if({may_hit(self.statements)}, {last}, NULL)"

    def all_states(self) -> str:
        """Return an array of the states of a row: of the base, and after each statement that hits it, in order."""
        steps = f"if({_STATE}.{EXISTS}, {self._steps()}, NULL)"
        following = f"if({_NEXT} IS NULL, {_TRACE}, concat({_TRACE}, array({_NEXT})))"
        with_last = f"transform(array(element_at({_TRACE}, -1)), {_STATE} -> {steps})"
        trace = f"element_at(transform({with_last}, {_NEXT} -> {following}), 1)"
        first = f"array({self._first_state()})"
        return f"if({may_hit(self.statements)}, {self._aggregate(first, f'({_TRACE}, {_NUMBER}) -> {trace}')}, {first})"

    def _aggregate(self, start: str, merge: str) -> str:
        return f"aggregate({Candidates(self.statements, _COUNT).numbers()}, {start}, {merge})"

    def _first_state(self) -> str:
        values = {field: quote_name(column) for column, field in self.assigned.items()}
        types = {field: self.columns[column].ddl() for column, field in self.assigned.items()}
        # By the cast, every field may become NULL.
        declared = ", ".join(f"{field}: {ddl}" for field, ddl in {**types, EXISTS: "boolean", LAST: "int"}.items())
        return f"CAST({_struct({**values, EXISTS: 'TRUE', LAST: '0'})} AS struct<{declared}>)"

    def _steps(self) -> str:
        """Return the state after the statement of a number; NULL if it does not hit the row."""
        fields = self.assigned

        def resolve(column: str) -> str:
            return f"{_STATE}.{fields[column]}" if column in fields else quote_name(column)

        leaves = [self._step(number, each, resolve) for number, each in enumerate(self.statements, start=1)]
        return _tree(leaves or ["NULL"], 1)

    def _step(self, number: int, statement: Statement, resolve: Resolve) -> str:
        translator = statement.translator(resolve)
        values = {field: f"{_STATE}.{field}" for field in self.assigned.values()}
        for column, value in (statement.assignments or {}).items():
            values[self.assigned[column]] = translator.assignment(column, value)
        exists = "FALSE" if statement.assignments is None else "TRUE"
        changed = _struct({**values, EXISTS: exists, LAST: str(number)})
        condition = "TRUE" if statement.condition is None else translator.condition(statement.condition)
        return f"if({condition}, {changed}, NULL)"


def _struct(values: dict[str, str]) -> str:
    fields = (f"'{name}', {value}" for name, value in values.items())
    return f"named_struct({', '.join(fields)})"


def _tree(leaves: Sequence[str], first: int) -> str:
    """Return the leaf whose number is that of the statement; `first` is the number of the first leaf."""
    if len(leaves) == 1:
        return leaves[0]
    middle = len(leaves) // 2
    left, right = _tree(leaves[:middle], first), _tree(leaves[middle:], first + middle)
    return f"if({_NUMBER} < {first + middle}, {left}, {right})"
