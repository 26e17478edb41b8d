"""Build: what the tables of a dimension need before facts refer to them."""

from __future__ import annotations

import re

from scd_pipeline.columns import CURRENT_FLAG, EFFECTIVE_FROM, EFFECTIVE_TO, VERSION
from scd_pipeline.declaration.column_names import ROW_HASH
from scd_pipeline.declaration.tables import AUDIT_SUFFIX, LOG_SUFFIX
from scd_pipeline.history.transitions import AUDIT_ACTOR, AUDIT_REASON
from scd_pipeline.invariants.check_descriptions import NO_FOREIGN_COMMITS
from scd_pipeline.load.retry import shortest_wait
from scd_pipeline.operations.checklist.items import (
    Item,
    Result,
    code_location_missing,
    failed,
    not_applicable,
    passed,
    table_missing,
)
from scd_pipeline.operations.checklist.state import DimensionState
from scd_pipeline.operations.dagster_names import load_op_name
from scd_pipeline.texts import join_names, pluralize

_STRING = re.compile(r"'(?:[^'\\]|\\.)*'" r'|"(?:[^"\\]|\\.)*"')
_NAME = re.compile(r"`[^`]+`|[a-z_]\w*", re.IGNORECASE)
_CONSTANTS = frozenset({"true", "false", "null", "not", "and", "or", "is", "in", "between", "like"})
"""The words of a condition that refer to no column."""


def _version_columns(state: DimensionState) -> Result:
    dimension, table = state.dimension, state.table()
    if not dimension.has_windows:
        return not_applicable("no attribute has type 2 or 6")
    if table is None:
        return table_missing(state)
    names = [dimension.column_layout.name(column) for column in (EFFECTIVE_FROM, EFFECTIVE_TO, CURRENT_FLAG, VERSION)]
    expected = [name for name in names if name]
    missing = [name for name in expected if name not in table.columns]
    if missing:
        return failed(f"table {dimension.name}: no column {join_names(missing)}; load the dimension into a new table")
    return passed(f"table {dimension.name}: columns {join_names(expected)}")


def _change_detection(state: DimensionState) -> Result:
    dimension, table = state.dimension, state.table()
    column = dimension.column_layout.name(ROW_HASH)
    if column is None:
        return passed("each load compares the values of all attributes (S13); no hash column is declared")
    if table is None:
        return table_missing(state)
    if column not in table.columns:
        location = state.field(f"column_names.{ROW_HASH}")
        return failed(f"{location}: table {dimension.name} has no column {column}; load the dimension into a new table")
    return passed(f"table {dimension.name}: column {column}; each load compares the values of all attributes (S13)")


def _retry(state: DimensionState) -> Result:
    # A load by another op than the component's has no retries, or has those of its own code, which nothing here can
    # verify. The component's op has the number of attempts that its option declares.
    location, op = state.code_location, load_op_name(state.dimension.name)
    if location is None:
        return code_location_missing(state)
    attempts = location.load_attempts.get(op, 0)
    if not attempts:
        problem = f"op {op} has no retries, because it is not an op of this package"
        return failed(f"{location.name}: {problem}; define the dimension by the component")
    if attempts == 1:
        return failed(f"{location.name}: op {op} has 1 attempt; set the component's `attempts` to at least 2")
    waits = ", ".join(f"{shortest_wait(number):.1f}" for number in range(attempts - 1))
    times = pluralize(attempts, "attempt")
    return passed(f"op {op}: {times}; after a write conflict it waits {waits} seconds, with jitter")


def _single_writer(state: DimensionState) -> Result:
    log, result = state.dimension.name + LOG_SUFFIX, state.foreign_commits
    if state.table(LOG_SUFFIX) is None:
        return table_missing(state, LOG_SUFFIX)
    if result is None:
        return table_missing(state)
    if not result.passed:
        fix = f"run `scd repair {state.dimension.name}`, for another table run the command that `scd status` prints"
        return failed(f"check {NO_FOREIGN_COMMITS}: {'; '.join(result.keys)}; {fix}")
    return passed(f"change log {log}; check {NO_FOREIGN_COMMITS}")


def _owner(state: DimensionState) -> Result:
    location, owner = state.field("owner"), state.dimension.owner
    return passed(f"{location}: {owner}") if owner else failed(f"{location} is missing; name the team")


def _audit(state: DimensionState) -> Result:
    name, audit = state.dimension.name + AUDIT_SUFFIX, state.table(AUDIT_SUFFIX)
    if audit is None:
        return table_missing(state, AUDIT_SUFFIX)
    missing = [column for column in (AUDIT_ACTOR, AUDIT_REASON) if column not in audit.columns]
    if missing:
        return failed(f"table {name}: no column {join_names(missing)}; drop the table, a load rebuilds it")
    return passed(f"table {name}: columns {AUDIT_ACTOR} and {AUDIT_REASON}")


def _deletes(state: DimensionState) -> Result:
    source = state.dimension.existence_source
    path, day = f"sources.{source.name}", state.last_delete
    loaded = f"a deletion was loaded on {day}" if day else "no deletion was loaded yet"
    if source.snapshot is not None:
        return passed(f"{state.field(f'{path}.snapshot')}: an entity that a snapshot omits is deleted (S18); {loaded}")
    deletes = source.feed.deletes if source.feed else None
    location, fix = state.field(f"{path}.feed.deletes"), "write the condition by which a row is a delete"
    if deletes is None:
        return failed(f"{location} is missing, so no entity is ever deleted; {fix}")
    if _is_constant(deletes):
        return failed(f"{location}: {deletes} is the same for every row, so it cannot identify deletes; {fix}")
    return passed(f"{location}: {deletes}; {loaded}")


def _is_constant(condition: str) -> bool:
    """Return whether a condition refers to no column."""
    return _CONSTANTS.issuperset(name.lower() for name in _NAME.findall(_STRING.sub("''", condition)))


ITEMS = (
    Item("version_columns_exist", "The table has the columns of validity windows", _version_columns),
    Item("changes_are_detected", "Changes are detected by comparison, and a declared hash exists", _change_detection),
    Item("loads_are_retried", "Loads are retried after write conflicts", _retry),
    Item("one_writer", "Only this package has changed rows, and the change log exists", _single_writer),
    Item("owner_is_declared", "The dimension has an owner", _owner),
    Item("audit_has_actor_and_reason", "The audit has the actor and the reason of each change", _audit),
    Item("deletes_are_handled", "It is declared how the source deletes entities", _deletes),
)
