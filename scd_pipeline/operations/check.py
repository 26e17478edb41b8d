"""The invariants of whole tables: each is a query for what breaks it (S2, S3, S14, S21 to S24).

The same queries are asked before a commit of the entities that it is about (audit/), here of everything that is there,
by `scd check`, by Dagster's asset checks and by the tests.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import and_

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from scd_pipeline.declaration import Dimension, Fact
from scd_pipeline.declaration.tables import AUDIT_SUFFIX, KEYS_SUFFIX, LOG_SUFFIX, tables_of
from scd_pipeline.delta.audit_table import current_transitions
from scd_pipeline.delta.commits import PipelineCommit, foreign_commits
from scd_pipeline.delta.repair import REBUILT_BY
from scd_pipeline.delta.schema import stored_declaration, to_declared_columns, with_former_names
from scd_pipeline.delta.table import TableVersion
from scd_pipeline.delta.upstream import damage
from scd_pipeline.delta.warehouse import Warehouse
from scd_pipeline.errors import HighWaterMarkError, LoadError
from scd_pipeline.expressions import col, readable_key
from scd_pipeline.history.actions import row_actions
from scd_pipeline.history.keys import RESERVED_KEYS
from scd_pipeline.history.replay import rebuild_versions
from scd_pipeline.invariants.dimensions import KEY, RULE, invariants, violations
from scd_pipeline.invariants.facts import FACT_INVARIANTS
from scd_pipeline.invariants.properties import (
    AUDIT_REBUILDS_DIMENSION,
    KEY_LIST_IS_COMPLETE,
    NO_FOREIGN_COMMITS,
    SURROGATE_KEYS_FIT_EVENT_TIME,
    TABLES_ARE_APPEND_ONLY,
    UPSTREAM_HAS_APPLIED_COMMITS,
)
from scd_pipeline.load.facts import PinnedDimension, pin_dimensions, rows_with_current_keys, stored_rows
from scd_pipeline.load.keys import missing_keys

SHOWN = 20

_TOLD_BY: Mapping[str, tuple[str, ...]] = {
    "": (LOG_SUFFIX, AUDIT_SUFFIX, KEYS_SUFFIX),
    LOG_SUFFIX: ("", AUDIT_SUFFIX, KEYS_SUFFIX),
    AUDIT_SUFFIX: (KEYS_SUFFIX,),
    KEYS_SUFFIX: (AUDIT_SUFFIX,),
}
"""The suffix of each table, and those of the tables that have commits only where it was there once.

Only audit and keys tell of each other, as a dimension that is loaded without being recorded has neither.
"""


@dataclass(frozen=True, slots=True)
class Finding:
    """What a check found: how many break the invariant, and some of them by name; `more` names are not shown."""

    table: str
    rule: str
    count: int
    keys: tuple[str, ...]
    more: int = 0

    @property
    def passed(self) -> bool:
        return self.count == 0

    def __str__(self) -> str:
        if self.passed:
            return f"{self.table}: {self.rule}: passed"
        more = f" and {self.more} more" if self.more else ""
        return f"{self.table}: {self.rule}: failed ({self.count}): {'; '.join(self.keys)}{more}"


def dimension_rules(dimension: Dimension) -> tuple[str, ...]:
    """The names of a dimension's checks."""
    others = (
        AUDIT_REBUILDS_DIMENSION,
        KEY_LIST_IS_COMPLETE,
        NO_FOREIGN_COMMITS,
        UPSTREAM_HAS_APPLIED_COMMITS,
        TABLES_ARE_APPEND_ONLY,
    )
    return (*invariants(dimension), *others)


FACT_RULES = (*FACT_INVARIANTS, NO_FOREIGN_COMMITS, UPSTREAM_HAS_APPLIED_COMMITS, TABLES_ARE_APPEND_ONLY)


class _Tables:
    """The tables of a warehouse as one check reads them: each once, at the version that it has then."""

    def __init__(self, warehouse: Warehouse) -> None:
        self._warehouse = warehouse
        self._read: dict[str, TableVersion | None] = {}

    def newest(self, name: str) -> TableVersion | None:
        """Return the table; None if it does not exist."""
        if name not in self._read:
            self._read[name] = self._warehouse.table(name).newest()
        return self._read[name]

    def last(self, name: str) -> PipelineCommit:
        """Return the table's last commit, number 0 if it does not exist."""
        newest = self.newest(name)
        return newest.commit if newest else PipelineCommit(name, 0)

    def rows(self, name: str) -> DataFrame | None:
        """Return the table's rows; None if it does not exist."""
        newest = self.newest(name)
        return newest.rows if newest else None


def check_dimension(
    warehouse: Warehouse, dimension: Dimension, rules: Collection[str] | None = None
) -> tuple[Finding, ...]:
    """Every invariant of a dimension, or those of some names; one that cannot be asked yet is left out.

    A table that is not there though others tell of it has been taken away, or not been made as its load was killed.
    """
    name, tables = dimension.name, _Tables(warehouse)
    wanted = [rule for rule in dimension_rules(dimension) if rules is None or rule in rules]
    if not {AUDIT_REBUILDS_DIMENSION, KEY_LIST_IS_COMPLETE, UPSTREAM_HAS_APPLIED_COMMITS}.isdisjoint(wanted):
        for suffix in (AUDIT_SUFFIX, KEYS_SUFFIX):  # before their upstream, which a load between can only move ahead
            tables.newest(name + suffix)
    newest = tables.newest(name)
    if newest is None:
        return _without_its_table(warehouse, tables, name, rules)
    nobody = reduce(and_, [col(key).isNull() for key in dimension.key_names])
    rows = newest.rows.where(~(nobody & col(dimension.surrogate_key).isin(list(RESERVED_KEYS))))
    own = [rule for rule in wanted if rule in invariants(dimension)]
    found = _findings(name, own, violations(rows, dimension)) if own else []
    others: dict[str, Callable[[], Finding | None]] = {
        AUDIT_REBUILDS_DIMENSION: lambda: _audit_differs(warehouse, tables, dimension, rows),
        KEY_LIST_IS_COMPLETE: lambda: _key_list_incomplete(warehouse, tables, dimension),
        NO_FOREIGN_COMMITS: lambda: _foreign_commits(warehouse, tables, name, list(tables_of(name))),
        UPSTREAM_HAS_APPLIED_COMMITS: lambda: _upstream_lost(tables, name, [name + AUDIT_SUFFIX, name]),
        TABLES_ARE_APPEND_ONLY: lambda: _append_only_unset(warehouse, name, list(tables_of(name)[1:])),
    }
    for rule in wanted:
        finding = others[rule]() if rule in others else None
        found += [finding] if finding is not None else []
    return tuple(found)


def check_fact(warehouse: Warehouse, fact: Fact, rules: Collection[str] | None = None) -> tuple[Finding, ...]:
    """Every invariant of a fact, or those of some names; one that cannot be asked yet is left out.

    Rows whose keys the fact's next load looks at again need not have those that hold now; keys that dangle until then
    are counted all the same (S24).
    """
    tables = _Tables(warehouse)
    stored = tables.newest(fact.name)
    if stored is None:
        return _without_its_table(warehouse, tables, fact.name, rules)
    pinned = pin_dimensions(warehouse, fact)
    log, fact_tables = fact.name + LOG_SUFFIX, [fact.name, fact.name + LOG_SUFFIX]
    lost = [error for at in pinned.values() for error in at.damage(stored.commit)]
    others: dict[str, Callable[[], Finding]] = {
        NO_FOREIGN_COMMITS: lambda: _foreign_commits(warehouse, tables, fact.name, fact_tables),
        UPSTREAM_HAS_APPLIED_COMMITS: lambda: _upstream_lost(tables, fact.name, [fact.name], lost),
        TABLES_ARE_APPEND_ONLY: lambda: _append_only_unset(warehouse, fact.name, [log]),
    }
    wanted = [rule for rule in FACT_RULES if rules is None or rule in rules]
    return tuple(
        others[rule]() if rule in others else _of_rows(warehouse, fact, stored, pinned, rule) for rule in wanted
    )


def _of_rows(
    warehouse: Warehouse, fact: Fact, stored: TableVersion, pinned: Mapping[str, PinnedDimension], rule: str
) -> Finding:
    left_behind = rule == SURROGATE_KEYS_FIT_EVENT_TIME
    rows = rows_with_current_keys(warehouse, fact, stored, pinned) if left_behind else stored_rows(stored.rows, fact)
    broken = FACT_INVARIANTS[rule](rows, fact, {name: at.rows for name, at in pinned.items()})
    return _finding(fact.name, rule, broken)


def _finding(table: str, rule: str, broken: DataFrame) -> Finding:
    (found,) = _findings(table, [rule], broken)
    return found


def _findings(table: str, rules: list[str], broken: DataFrame) -> list[Finding]:
    """A finding for each rule; one query counts them all and keeps some keys of each."""
    keys = F.collect_set(KEY)  # several rows may be of one key
    told = broken.groupBy(RULE).agg(
        F.count(F.lit(1)).alias("n"),
        F.slice(F.array_sort(keys), 1, SHOWN).alias("keys"),
        F.greatest(F.size(keys) - SHOWN, F.lit(0)).alias("more"),
    )
    found = {row[RULE]: (int(row["n"]), tuple(row["keys"]), int(row["more"])) for row in told.collect()}
    return [Finding(table, rule, *found.get(rule, (0, ()))) for rule in rules]


def _audit_differs(warehouse: Warehouse, tables: _Tables, dimension: Dimension, rows: DataFrame) -> Finding | None:
    audit = tables.rows(dimension.name + AUDIT_SUFFIX)
    if audit is None:
        return None
    dimension = with_former_names(dimension, stored_declaration(warehouse.table(dimension.name)))
    told = rebuild_versions(current_transitions(audit, dimension), dimension, key_hash=warehouse.key_hash)
    differ = row_actions(to_declared_columns(rows, dimension), told, dimension)
    broken = differ.select(F.lit(AUDIT_REBUILDS_DIMENSION).alias(RULE), readable_key(dimension.key_names).alias(KEY))
    return _finding(dimension.name, AUDIT_REBUILDS_DIMENSION, broken)


def _key_list_incomplete(warehouse: Warehouse, tables: _Tables, dimension: Dimension) -> Finding | None:
    audit = tables.rows(dimension.name + AUDIT_SUFFIX)
    if audit is None:
        return None
    missing = missing_keys(warehouse, dimension, audit, tables.rows(dimension.name + KEYS_SUFFIX))
    broken = missing.select(F.lit(KEY_LIST_IS_COMPLETE).alias(RULE), readable_key(dimension.key_names).alias(KEY))
    return _finding(dimension.name, KEY_LIST_IS_COMPLETE, broken)


def _upstream_lost(tables: _Tables, name: str, downstream: list[str], others: Sequence[LoadError] = ()) -> Finding:
    commits = [tables.last(table) for table in downstream]
    errors = [*damage(tables.last(name + LOG_SUFFIX), commits), *others]
    lost = dict.fromkeys(str(error) for error in errors if isinstance(error, HighWaterMarkError))
    return Finding(name, UPSTREAM_HAS_APPLIED_COMMITS, len(lost), tuple(lost))


def _without_its_table(
    warehouse: Warehouse, tables: _Tables, name: str, rules: Collection[str] | None
) -> tuple[Finding, ...]:
    """What is found of a dimension or a fact whose table is not there: nothing where it was never loaded."""
    if rules is not None and NO_FOREIGN_COMMITS not in rules:
        return ()
    found = _foreign_commits(warehouse, tables, name, list(tables_of(name)))
    return () if found.passed else (found,)


def _gone(tables: _Tables, name: str) -> list[str]:
    """Those tables of a dimension or a fact that are not there though others tell of them."""
    last = {suffix: tables.last(name + suffix) for suffix in _TOLD_BY}
    return [
        f"{name}{suffix} is not there; {REBUILT_BY[suffix]}"
        for suffix, others in _TOLD_BY.items()
        if not last[suffix].exists
        if any(last[other].number > 0 for other in others)
    ]


def _foreign_commits(warehouse: Warehouse, tables: _Tables, name: str, names: list[str]) -> Finding:
    found = _gone(tables, name)
    for table in names:
        if tables.last(table).exists:
            identifier = warehouse.table(table).identifier
            found += [f"{table} {told}" for told in foreign_commits(warehouse.spark, table, identifier)]
    return Finding(name, NO_FOREIGN_COMMITS, len(found), tuple(found[:SHOWN]), len(found[SHOWN:]))


def _append_only_unset(warehouse: Warehouse, name: str, tables: list[str]) -> Finding:
    opened = [warehouse.table(table) for table in tables]
    there = [table for table in opened if table.exists()]
    unset = [table.name for table in there if table.properties().get("delta.appendOnly") != "true"]
    return Finding(name, TABLES_ARE_APPEND_ONLY, len(unset), tuple(unset))
