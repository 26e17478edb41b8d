"""The rows of a timed table, computed from its base (S12)."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from scd_pipeline.expressions import col
from scd_pipeline.timed.program import EXISTS, LAST, PREFIX, Program

FROM, TO = f"{PREFIX}from", f"{PREFIX}to"
"""The columns of a state: the time from which the row has its values, and the first time at which it has not."""
_STATE, _STATES = f"{PREFIX}state", f"{PREFIX}states"


def last_rows(base: DataFrame, program: Program) -> DataFrame:
    """Return the rows of a base after all statements of a program.

    Args:
        base: The rows of the base, with the columns of the program.
        program: The statements.

    Returns:
        The columns of the program, in its order.
    """
    if not program.statements:
        return base.select(*[col(name) for name in program.columns])
    rows = base.withColumn(_STATE, F.expr(program.last_state()))
    is_unchanged = col(_STATE).isNull()
    if program.has_deletes:
        rows = rows.where(is_unchanged | col(_STATE)[EXISTS])
    values = {
        name: F.when(is_unchanged, col(name)).otherwise(col(_STATE)[field]) for name, field in program.assigned.items()
    }
    return rows.select(*[values.get(name, col(name)).alias(name) for name in program.columns])


def all_rows(base: DataFrame, program: Program) -> DataFrame:
    """Return every state that rows of a base have at some time.

    Returns:
        The columns of the program; FROM and TO, the half-open window of the state, NULL where it is unlimited; LAST,
        the number of the statement that began the state, 0 for the base. A deleted row has no state.
    """
    states = base.select("*", F.expr(program.all_states()).alias(_STATES))
    rows = states.select(*_unassigned(program), F.expr(f"inline({_windows(program)})"))
    return rows.where(col(EXISTS) & F.coalesce(col(FROM) < col(TO), F.lit(True))).select(
        *_columns(program), FROM, TO, LAST
    )


def hits(base: DataFrame, program: Program) -> dict[int, int]:
    """Return the number of rows that each statement of a program hits, by its number in the program."""
    states = base.select(F.expr(f"inline({program.all_states()})"))
    counts = states.where(col(LAST) > 0).groupBy(LAST).count().collect()
    return dict.fromkeys(range(1, len(program.statements) + 1), 0) | {row[0]: row[1] for row in counts}


def _windows(program: Program) -> str:
    """Return the states, each with its window: it ends where the next one begins."""
    times = ", ".join(f"{each.millis}L" for each in program.statements) or "0L"
    names = [*program.assigned.values(), EXISTS, LAST]
    fields = ", ".join(f"'{name}', {PREFIX}state.{name}" for name in names)

    def time(state: str) -> str:
        return f"timestamp_millis(element_at(array({times}), {state}.{LAST}))"

    following = time(f"element_at({_STATES}, {PREFIX}index + 2)")
    following = f"if({PREFIX}index + 2 > size({_STATES}), NULL, {following})"
    first = f"if({PREFIX}state.{LAST} = 0, NULL, {time(f'{PREFIX}state')})"
    window = f"'{FROM}', {first}, '{TO}', {following}"
    return f"transform({_STATES}, ({PREFIX}state, {PREFIX}index) -> named_struct({fields}, {window}))"


def _unassigned(program: Program) -> list[Column]:
    return [col(name) for name in program.columns if name not in program.assigned]


def _columns(program: Program) -> list[Column]:
    return [col(program.assigned.get(name, name)).alias(name) for name in program.columns]
