"""Events that Dagster has no public way to report or to read.

Everything that depends on Dagster's private interfaces is in this module: a step cannot publicly record that another
partition than its own has failed, nor the result of a check that it runs in place of the check's own step.
"""

from __future__ import annotations

from collections.abc import Iterator

import dagster as dg
from dagster._core.events import AssetMaterializationPlannedData


def plan_materialization(context: dg.AssetExecutionContext, asset: dg.AssetKey, partition: str) -> None:
    """Record that the run has planned to materialize a partition.

    Dagster shows a partition as failed if a failed run had planned to materialize it and did not.
    """
    step = context.get_step_execution_context().step.key
    planned = AssetMaterializationPlannedData(asset, partition=partition)
    event = dg.DagsterEvent.build_asset_materialization_planned_event(context.run.job_name, step, planned)
    context.instance.report_dagster_event(event, context.run.run_id)


def planned_checks(context: dg.AssetExecutionContext, asset: dg.AssetKey) -> list[str]:
    """Return the names of the asset's checks that the run has planned."""
    event_type = dg.DagsterEventType.ASSET_CHECK_EVALUATION_PLANNED
    logged = context.instance.all_logs(context.run.run_id, of_type=event_type)
    planned = [entry.get_dagster_event().asset_check_planned_data for entry in logged]
    return [data.check_name for data in planned if data.asset_key == asset]


def report_check(context: dg.AssetExecutionContext, evaluation: dg.AssetCheckEvaluation) -> None:
    """Record the result of a check that this step has run."""
    event = dg.DagsterEvent.asset_check_evaluation(context.get_step_execution_context(), evaluation)
    context.instance.report_dagster_event(event, context.run.run_id)


def materialized_partitions_of_run(instance: dg.DagsterInstance, run_id: str) -> Iterator[str | None]:
    """Yield the partitions of the materializations that a run has recorded."""
    for entry in instance.all_logs(run_id, of_type=dg.DagsterEventType.ASSET_MATERIALIZATION):
        yield entry.get_dagster_event().partition
