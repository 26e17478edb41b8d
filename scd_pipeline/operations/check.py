"""Check the invariants of whole tables: each is a query for its violations (S2, S3, S14, S21 to S24).

A load evaluates the same queries before a commit, for the entities of that commit. Here `scd check`, Dagster's asset
checks and the tests evaluate them for all rows.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from itertools import chain
from threading import Lock

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from scd_pipeline.declaration import DeclaredTable, Dimension, Fact
from scd_pipeline.declaration.child_tables import is_child_name
from scd_pipeline.declaration.declared import as_dimension, referenced_dimensions
from scd_pipeline.declaration.tables import AUDIT_SUFFIX, KEYS_SUFFIX, LOG_SUFFIX
from scd_pipeline.delta.audit_table import current_transitions
from scd_pipeline.delta.child_tables import CHILD_OF, child_differences, stored_children
from scd_pipeline.delta.commits import PipelineCommit, foreign_commits
from scd_pipeline.delta.data_files import missing_files_errors, missing_files_reported
from scd_pipeline.delta.generated_columns import with_computed_columns
from scd_pipeline.delta.history_table import history_error, newest_versions
from scd_pipeline.delta.repair_instructions import REBUILT_BY
from scd_pipeline.delta.schema import (
    APPEND_ONLY_PROPERTY,
    FORMAT,
    as_stored,
    to_declared_columns,
    with_widened_columns,
)
from scd_pipeline.delta.stored_declaration import stored_declaration
from scd_pipeline.delta.table import TableVersion
from scd_pipeline.delta.upstream import damage
from scd_pipeline.delta.warehouse import Warehouse
from scd_pipeline.errors import DataFilesLost, HighWaterMarkError, LoadError
from scd_pipeline.expressions import all_of, col, readable_key
from scd_pipeline.frames import column_types, union_all
from scd_pipeline.history.actions import row_actions
from scd_pipeline.history.keys import RESERVED_KEYS
from scd_pipeline.history.replay import rebuild_versions
from scd_pipeline.history.role_keys import is_inferred
from scd_pipeline.invariants.check_descriptions import (
    AUDIT_REBUILDS_DIMENSION,
    CHILD_TABLES_HAVE_ALL_ELEMENTS,
    DATA_FILES_EXIST,
    DELETES_ARE_IN_EFFECT,
    EXPECTED_VALUES_ARE_REPRODUCED,
    GRAIN_IS_UNIQUE,
    NO_FOREIGN_COMMITS,
    NO_UNUSED_TABLES,
    SURROGATE_KEYS_FIT_EVENT_TIME,
    TABLES_ARE_APPEND_ONLY,
    UPSTREAM_HAS_APPLIED_COMMITS,
    WARNING_CHECKS,
)
from scd_pipeline.invariants.dimensions import CHECK, KEY, invariants, violations
from scd_pipeline.invariants.facts import fact_invariants
from scd_pipeline.load.deletes_off import warnings_of_log
from scd_pipeline.load.facts import PinnedDimension, pin_dimensions, rows_with_current_keys, stored_rows
from scd_pipeline.load.log import read_log
from scd_pipeline.load.session_settings import running_queries
from scd_pipeline.operations.expected_values import unexpected_values

MAX_KEYS = 20
"""The number of keys that a violation names at most."""

_PROVES_EXISTENCE: Mapping[str, tuple[str, ...]] = {
    "": (LOG_SUFFIX, AUDIT_SUFFIX),
    LOG_SUFFIX: ("", AUDIT_SUFFIX),
    AUDIT_SUFFIX: ("",),
}
"""For the suffix of each table, the suffixes of the tables whose commits prove that it existed."""

_COMMIT_CHECKS = (NO_FOREIGN_COMMITS, UPSTREAM_HAS_APPLIED_COMMITS, TABLES_ARE_APPEND_ONLY)
"""The checks of the commits and properties of the tables of a dimension or a fact."""
_APPEND_ONLY = (LOG_SUFFIX, AUDIT_SUFFIX)
"""The suffixes of the tables of which no row is changed or deleted."""
_Part = Callable[[], "Sequence[CheckResult]"]
"""Evaluates one or several checks."""


@dataclass(frozen=True, slots=True)
class CheckResult:
    """The result of one check.

    Attributes:
        table: The dimension or fact.
        check: The name of the invariant.
        count: The number of violations; 0 if the check passed.
        keys: Up to `MAX_KEYS` of the keys that violate the invariant.
        more: The number of further keys.
    """

    table: str
    check: str
    count: int
    keys: tuple[str, ...]
    more: int = 0

    @property
    def passed(self) -> bool:
        """Whether nothing violates the invariant."""
        return self.count == 0

    @property
    def is_warning(self) -> bool:
        """Whether the invariant is violated, and that is a warning."""
        return not self.passed and self.check in WARNING_CHECKS

    @property
    def outcome(self) -> str:
        """The text `passed`, `failed` or `warning`."""
        return "passed" if self.passed else "warning" if self.is_warning else "failed"

    def __str__(self) -> str:
        if self.passed:
            return f"{self.table}: {self.check}: passed"
        more = f" and {self.more} more" if self.more else ""
        return f"{self.table}: {self.check}: {self.outcome} ({self.count}): {'; '.join(self.keys)}{more}"


def check_names(table: DeclaredTable) -> tuple[str, ...]:
    """Return the names of the checks of a dimension or a fact."""
    if isinstance(table, Fact):
        return (*fact_invariants(table), *_COMMIT_CHECKS, DATA_FILES_EXIST)
    dimension = as_dimension(table)
    audit = (AUDIT_REBUILDS_DIMENSION,) if dimension.has_audit else ()
    others = (*audit, *_COMMIT_CHECKS, NO_UNUSED_TABLES)
    deletes = (DELETES_ARE_IN_EFFECT,) if dimension.existence_source.snapshot is not None else ()
    declared = (EXPECTED_VALUES_ARE_REPRODUCED,) if dimension.expected_values else ()
    children = (CHILD_TABLES_HAVE_ALL_ELEMENTS,) if dimension.child_tables else ()
    return (*invariants(dimension), *others, *deletes, *declared, *children, DATA_FILES_EXIST)


def checks_of_loads(table: DeclaredTable) -> tuple[str, ...]:
    """Return the names of the checks that each load evaluates before its commit, for the entities that it changes."""
    return (GRAIN_IS_UNIQUE,) if isinstance(table, Fact) else tuple(invariants(as_dimension(table)))


class _Tables:
    """The tables of a warehouse for one check, which reads each once, at its newest version (`newest_versions`).

    Several threads may use it.
    """

    def __init__(self, warehouse: Warehouse) -> None:
        self.warehouse = warehouse
        self._read: dict[str, TableVersion | None] = {}
        self._lock = Lock()

    def newest(self, name: str) -> TableVersion | None:
        """Return the table; None if it does not exist."""
        with self._lock:
            if name not in self._read:
                self._read[name] = newest_versions(self.warehouse, name)
            return self._read[name]

    def last(self, name: str) -> PipelineCommit:
        """Return the table's last commit, number 0 if it does not exist."""
        newest = self.newest(name)
        return newest.commit if newest else PipelineCommit(name, 0)

    def rows(self, name: str) -> DataFrame | None:
        """Return the table's rows; None if it does not exist."""
        newest = self.newest(name)
        return newest.rows if newest else None


def check_table(
    warehouse: Warehouse, table: DeclaredTable, checks: Collection[str] | None = None
) -> tuple[CheckResult, ...]:
    """Check the invariants of a dimension or a fact, or some of them; one that cannot be evaluated yet is omitted.

    If other tables prove that a missing table existed, a violation of `no_foreign_commits` names it: it was removed, or
    a killed load did not create it. If a data file is lost, only `data_files_exist` is evaluated, as the other checks
    read the files.

    Rows that a fact's next load re-keys need not have the surrogate keys of the current versions. Keys without a
    version are violations all the same (S24).

    Args:
        table: The dimension or the fact.
        checks: The names of the invariants; None for all.

    Returns:
        A result for each invariant; none if the table was never loaded.
    """
    names, upstream = as_dimension(table).table_names, referenced_dimensions(table)
    is_selected = checks is None or DATA_FILES_EXIST in checks
    results: tuple[CheckResult, ...] = ()
    missing: list[DataFilesLost] = []
    with ThreadPoolExecutor() as pool:
        listed = pool.submit(missing_files_errors, warehouse, names if is_selected else ())
        try:
            with missing_files_reported(warehouse, [*names, *(name for each in upstream for name in each.table_names)]):
                results = _check_others(warehouse, table, checks)
        except Exception as error:  # for which lost files are the reason, if there are any
            missing = listed.result() or ([error] if is_selected and isinstance(error, DataFilesLost) else [])
            if not missing:
                raise
        missing = missing or listed.result()
    if not (missing or (is_selected and warehouse.table(names[0]).exists())):
        return results
    return (*(() if missing else results), _text_result(names[0], DATA_FILES_EXIST, [str(error) for error in missing]))


def _check_others(
    warehouse: Warehouse, table: DeclaredTable, checks: Collection[str] | None
) -> tuple[CheckResult, ...]:
    tables = _Tables(warehouse)
    selected = [check for check in check_names(table) if checks is None or check in checks]
    if isinstance(table, Fact):
        return _check_fact(tables, table, selected)
    return _check_dimension(tables, as_dimension(table), selected)


def _check_dimension(tables: _Tables, dimension: Dimension, selected: Sequence[str]) -> tuple[CheckResult, ...]:
    name, warehouse = dimension.name, tables.warehouse
    if dimension.has_audit and not {AUDIT_REBUILDS_DIMENSION, UPSTREAM_HAS_APPLIED_COMMITS}.isdisjoint(selected):
        tables.newest(name + AUDIT_SUFFIX)  # before its upstream, which a concurrent load can only move ahead
    newest = tables.newest(name)
    if newest is None:
        return _check_without_table(tables, dimension.table_names, selected)
    has_no_key = all_of([col(key).isNull() for key in dimension.key_names])
    stored = with_computed_columns(newest.rows, dimension.column_layout)
    rows = stored.where(~(has_no_key & col(dimension.surrogate_key).isin(list(RESERVED_KEYS))))
    if dimension.has_windows:
        rows = rows.where(~is_inferred(dimension))
    row_checks = [check for check in selected if check in invariants(dimension)]
    parts: list[_Part] = [lambda: _results(name, row_checks, violations(rows, dimension))] if row_checks else []
    if AUDIT_REBUILDS_DIMENSION in selected:
        parts.append(lambda: _check_audit(tables, dimension, rows))
    if CHILD_TABLES_HAVE_ALL_ELEMENTS in selected:
        parts.append(lambda: _check_child_tables(warehouse, dimension, newest))
    messages: dict[str, Callable[[], Sequence[str]]] = {
        NO_FOREIGN_COMMITS: lambda: _foreign_commits(tables, dimension.table_names),
        UPSTREAM_HAS_APPLIED_COMMITS: lambda: _lost_commits(tables, name, _own_tables(dimension, (AUDIT_SUFFIX, ""))),
        TABLES_ARE_APPEND_ONLY: lambda: _not_append_only(warehouse, _own_tables(dimension, _APPEND_ONLY)),
        NO_UNUSED_TABLES: lambda: _unused_tables(warehouse, dimension),
        DELETES_ARE_IN_EFFECT: lambda: _deletes_without_effect(warehouse, dimension),
        EXPECTED_VALUES_ARE_REPRODUCED: lambda: unexpected_values(warehouse, dimension),
    }
    with running_queries(warehouse.spark, tables.last(name + LOG_SUFFIX).records):
        return _evaluate([*parts, *_text_parts(name, selected, messages)])


def _check_fact(tables: _Tables, fact: Fact, selected: Sequence[str]) -> tuple[CheckResult, ...]:
    name, warehouse, fact_tables = fact.name, tables.warehouse, [fact.name, fact.name + LOG_SUFFIX]
    stored = tables.newest(name)
    if stored is None:
        return _check_without_table(tables, fact_tables, selected)
    pinned = pin_dimensions(warehouse, fact)
    errors = [error for dimension in pinned.values() for error in dimension.damage(stored.commit)]
    row_checks = [check for check in selected if check in fact_invariants(fact)]
    parts = [partial(_check_fact_rows, warehouse, fact, stored, pinned, check) for check in row_checks]
    messages: dict[str, Callable[[], Sequence[str]]] = {
        NO_FOREIGN_COMMITS: lambda: _foreign_commits(tables, fact_tables),
        UPSTREAM_HAS_APPLIED_COMMITS: lambda: _lost_commits(tables, name, [name], errors),
        TABLES_ARE_APPEND_ONLY: lambda: _not_append_only(warehouse, fact_tables[1:]),
    }
    sizes = [stored.commit.records, *(dimension.log.records for dimension in pinned.values())]
    with running_queries(warehouse.spark, None if None in sizes else max(size or 0 for size in sizes)):
        return _evaluate([*parts, *_text_parts(name, selected, messages)])


def _own_tables(dimension: Dimension, suffixes: Sequence[str]) -> list[str]:
    """Return the tables of a dimension with these suffixes; a landing table has no audit."""
    return [dimension.name + suffix for suffix in suffixes if dimension.name + suffix in dimension.table_names]


def _evaluate(parts: Sequence[_Part]) -> tuple[CheckResult, ...]:
    """Return the results of all parts, in order. They run at once, as each waits for several answers of Spark."""
    with ThreadPoolExecutor() as pool:
        return tuple(chain.from_iterable(pool.map(lambda part: part(), parts)))


def _text_parts(
    table: str, selected: Sequence[str], messages: Mapping[str, Callable[[], Sequence[str]]]
) -> list[_Part]:
    """Return a part for each selected check whose violations are messages."""

    def part(check: str) -> list[CheckResult]:
        return [_text_result(table, check, messages[check]())]

    return [partial(part, check) for check in selected if check in messages]


def _check_without_table(tables: _Tables, names: Sequence[str], selected: Sequence[str]) -> tuple[CheckResult, ...]:
    """Check a dimension or a fact without a table: there is nothing to check if it was never loaded.

    `names` has the names of all its tables, its own first.
    """
    messages = _foreign_commits(tables, names) if NO_FOREIGN_COMMITS in selected else []
    return (_text_result(names[0], NO_FOREIGN_COMMITS, messages),) if messages else ()


def _check_fact_rows(
    warehouse: Warehouse, fact: Fact, stored: TableVersion, pinned: Mapping[str, PinnedDimension], check: str
) -> list[CheckResult]:
    is_rekeyed = check == SURROGATE_KEYS_FIT_EVENT_TIME
    rows = rows_with_current_keys(warehouse, fact, stored, pinned) if is_rekeyed else stored_rows(stored.rows, fact)
    violating = fact_invariants(fact)[check].violations(
        rows, fact, {name: dimension.rows for name, dimension in pinned.items()}
    )
    return _results(fact.name, [check], violating)


def _check_audit(tables: _Tables, dimension: Dimension, rows: DataFrame) -> list[CheckResult]:
    name, log, warehouse = dimension.name + AUDIT_SUFFIX, dimension.name + LOG_SUFFIX, tables.warehouse
    audit = tables.rows(name)
    recorded, applied = (tables.last(table).applied(log).commit for table in (name, dimension.name))
    if audit is None or recorded < applied:  # a load has not recorded its changes yet, or was killed
        return []
    dimension = as_stored(dimension, stored_declaration(warehouse, dimension.name))
    rebuilt = rebuild_versions(current_transitions(audit, dimension), dimension, key_hash=warehouse.key_hash)
    widened = with_widened_columns(rows, column_types(rows.schema), dimension)
    differ = row_actions(to_declared_columns(widened, dimension), rebuilt, dimension)
    violating = differ.select(
        F.lit(AUDIT_REBUILDS_DIMENSION).alias(CHECK), readable_key(dimension.key_names).alias(KEY)
    )
    return _results(dimension.name, [AUDIT_REBUILDS_DIMENSION], violating)


def _check_child_tables(warehouse: Warehouse, dimension: Dimension, newest: TableVersion) -> list[CheckResult]:
    name, check = dimension.name, CHILD_TABLES_HAVE_ALL_ELEMENTS
    dimension = as_stored(dimension, stored_declaration(warehouse, name))
    children = stored_children(warehouse, dimension, newest.commit)
    errors = [error for child in children if (error := history_error(newest.commit, child.commit)) is not None]
    differences = child_differences(dimension, children, newest.rows)
    if errors or not differences:
        return [_text_result(name, check, [str(error) for error in errors])]
    keys = {child.table.name: child.table.key for child in children}
    violating = [
        rows.select(F.lit(check).alias(CHECK), F.concat_ws(" ", F.lit(table), col(keys[table])).alias(KEY))
        for table, rows in differences.items()
    ]
    return _results(name, [check], union_all(violating))


def _results(table: str, checks: list[str], violating: DataFrame) -> list[CheckResult]:
    """Return a result for each check; one query counts all violations and collects some keys of each check."""
    keys = F.collect_set(KEY)  # several rows may have one key
    summary = violating.groupBy(CHECK).agg(
        F.count(F.lit(1)).alias("n"),
        F.slice(F.array_sort(keys), 1, MAX_KEYS).alias("keys"),
        F.greatest(F.size(keys) - MAX_KEYS, F.lit(0)).alias("more"),
    )
    by_rule = {row[CHECK]: (int(row["n"]), tuple(row["keys"]), int(row["more"])) for row in summary.collect()}
    return [CheckResult(table, check, *by_rule.get(check, (0, ()))) for check in checks]


def _text_result(table: str, check: str, messages: Sequence[str]) -> CheckResult:
    """Return the result of a check whose violations are messages."""
    return CheckResult(table, check, len(messages), tuple(messages[:MAX_KEYS]), len(messages[MAX_KEYS:]))


def _foreign_commits(tables: _Tables, names: Sequence[str]) -> list[str]:
    """Return a message for each commit of another program, and for each table that is missing and existed once."""
    messages = _removed_tables(tables, names)
    for table in names:
        if tables.last(table).exists:
            identifier = tables.warehouse.table(table).identifier
            messages += [f"{table} {text}" for text in foreign_commits(tables.warehouse.spark, table, identifier)]
    return messages


def _removed_tables(tables: _Tables, names: Sequence[str]) -> list[str]:
    name = names[0]
    last = {suffix: tables.last(name + suffix) for suffix in _PROVES_EXISTENCE if name + suffix in names}
    return [
        f"{name}{suffix} does not exist; {REBUILT_BY[suffix]}"
        for suffix, commit in last.items()
        if not commit.exists
        if any(last[other].number > 0 for other in _PROVES_EXISTENCE[suffix] if other in last)
    ]


def _lost_commits(tables: _Tables, name: str, downstream: Sequence[str], others: Sequence[LoadError] = ()) -> list[str]:
    errors = [*damage(tables.last(name + LOG_SUFFIX), [tables.last(table) for table in downstream]), *others]
    return list(dict.fromkeys(str(error) for error in errors if isinstance(error, HighWaterMarkError)))


def _not_append_only(warehouse: Warehouse, names: Sequence[str]) -> list[str]:
    existing = [table for table in map(warehouse.table, names) if table.exists()]
    return [table.name for table in existing if table.properties().get(APPEND_ONLY_PROPERTY) != "true"]


def _unused_tables(warehouse: Warehouse, dimension: Dimension) -> list[str]:
    """Return a message for each table that no load uses.

    They are the key list that an earlier release created, which a view of the audit has replaced, and child tables that
    are not declared any more.
    """
    name, declared = dimension.name, {each.casefold() for each in dimension.child_names}
    listed = warehouse.tables() if warehouse.is_listed else []
    undeclared = [each for each in listed if is_child_name(each, name) and each.casefold() not in declared]
    keys = warehouse.table(name + KEYS_SUFFIX)
    unused = [keys] if FORMAT in keys.properties() else []
    unused += [table for table in map(warehouse.table, undeclared) if table.properties().get(CHILD_OF) == name]
    return [f"{table.name}: drop the table; no load uses it" for table in unused]


def _deletes_without_effect(warehouse: Warehouse, dimension: Dimension) -> list[str]:
    log = read_log(warehouse, dimension)
    return [str(warning) for warning in warnings_of_log(log, log.batches(), dimension)]
