"""Results of asset checks that the step of a load records in place of the checks' own step.

Dagster shows a check as not evaluated if its last result is older than the latest materialization of its asset. So in
runs without checks, such as those of sensors and schedules, the step records what the load has verified. If the load
fails, the step runs the checks that the run has planned.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import dagster as dg

from scd_pipeline.components.check_results import alert_of_failed_checks, as_evaluation, check_result
from scd_pipeline.components.dagster_internals import last_evaluated_check, planned_checks, report_check
from scd_pipeline.components.overdue import OverdueLimits
from scd_pipeline.components.rejections import deliveries_result
from scd_pipeline.declaration import DeclaredTable
from scd_pipeline.declaration.tables import LOG_SUFFIX
from scd_pipeline.delta.warehouse import Warehouse
from scd_pipeline.invariants.check_descriptions import DELIVERIES_ACCEPTED, SOURCES_ARE_ON_TIME
from scd_pipeline.load.run import LoadResult
from scd_pipeline.operations.check import CheckResult, check_names, check_table, checks_of_loads
from scd_pipeline.texts import pluralize

_CHECKED, _WHOLE_TABLE_CHECKED = "checked", "whole_table_checked"
"""Metadata keys of a result that a load records: what it has checked, and when the whole table was checked."""


@dataclass(frozen=True)
class LoadChecks:
    """The checks whose results the step of a load records.

    Attributes:
        declared: The dimension or fact.
        limits: When its sources are overdue, if they are checked.
        docs_url: Address of the docs, to which the results link.
    """

    declared: DeclaredTable
    limits: OverdueLimits | None = None
    docs_url: str = ""

    def record_results(self, context: dg.AssetExecutionContext, warehouse: Warehouse, result: LoadResult) -> None:
        """Record the results of the checks that a load has evaluated, except for those that the run has planned."""
        with _errors_as_warnings(context, result.table):
            planned = planned_checks(context, dg.AssetKey(result.table))
            if DELIVERIES_ACCEPTED not in planned:
                report_check(context, as_evaluation(deliveries_result(context.instance, warehouse, self.declared)))
            for name in checks_of_loads(self.declared):
                if name not in planned:
                    report_check(context, self._evaluation(context.instance, result, name))

    def _evaluation(self, instance: dg.DagsterInstance, result: LoadResult, name: str) -> dg.AssetCheckEvaluation:
        """Return the result of a check that a load has evaluated for the entities that it changed.

        A violation in the last result remains until the whole table is checked: it may be one of other entities.
        """
        table, key = result.table, dg.AssetCheckKey(dg.AssetKey(result.table), name)
        last = last_evaluated_check(instance, key)
        metadata = check_result(table, name, CheckResult(table, name, 0, ()), self.docs_url).metadata
        whole: dg.MetadataValue[Any] = dg.MetadataValue.text("not yet")
        if last is not None:
            whole = last.evaluation.metadata.get(_WHOLE_TABLE_CHECKED, dg.MetadataValue.timestamp(last.recorded_at))
        if last is not None and not last.evaluation.passed:
            metadata = last.evaluation.metadata
        rows = pluralize(sum(result.row_counts.values()), "changed row")
        return dg.AssetCheckEvaluation(
            asset_key=key.asset_key,
            check_name=name,
            passed=last is None or last.evaluation.passed,
            metadata={**metadata, _CHECKED: f"the entities of this load ({rows})", _WHOLE_TABLE_CHECKED: whole},
        )

    def run_planned(self, context: dg.AssetExecutionContext, warehouse: Warehouse) -> None:
        """Run the checks that the run has planned: Dagster skips their own steps if this step fails.

        Dagster would show the skipped checks as failed, though the stored table may violate no invariant. The
        checklist, which does not check the stored table, is skipped, and so are checks of the project's own.
        """
        with _errors_as_warnings(context, self.declared.name):
            for result in self._planned_results(context, warehouse):
                report_check(context, as_evaluation(result))

    def _planned_results(
        self, context: dg.AssetExecutionContext, warehouse: Warehouse
    ) -> Iterator[dg.AssetCheckResult]:
        table = self.declared.name
        planned = planned_checks(context, dg.AssetKey(table))
        if DELIVERIES_ACCEPTED in planned:
            yield deliveries_result(context.instance, warehouse, self.declared)
        names = [name for name in planned if name in check_names(self.declared)]
        if names:
            results = {result.check: result for result in check_table(warehouse, self.declared, names)}
            alert_of_failed_checks(context.op_execution_context, table, results.values())
            yield from (check_result(table, name, results.get(name), self.docs_url) for name in names)
        if self.limits is not None and SOURCES_ARE_ON_TIME in planned_checks(context, dg.AssetKey(table + LOG_SUFFIX)):
            yield self.limits.evaluate_and_alert(context.op_execution_context, warehouse)


@contextlib.contextmanager
def _errors_as_warnings(context: dg.AssetExecutionContext, table: str) -> Iterator[None]:
    """Log an error of a check as a warning: the load has committed, or fails for a reason that must not be replaced."""
    try:
        yield
    except Exception as error:
        context.log.warning(f"{table}: the checks did not run: {error}")
