"""What Dagster has no public way to report or to read.

Everything that depends on Dagster's private interfaces is in this module and in the run launcher: a step cannot
publicly record that another partition than its own has failed, nor the result of a check that it runs in place of the
check's own step, nor can it succeed without a partition if it has them, nor read the last result of a check, the
partitions that were observed last, or the order in which Dagster records partitions; a program cannot publicly load a
code location by its module, nor evaluate a cron expression.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

import dagster as dg
from dagster._check import CheckError
from dagster._core.definitions.reconstruct import repository_def_from_target_def
from dagster._core.events import AssetMaterializationPlannedData
from dagster._core.execution.backfill import BULK_ACTION_TERMINAL_STATUSES, BulkActionsFilter
from dagster._core.execution.plan.outputs import StepOutputHandle
from dagster._core.storage.asset_check_execution_record import AssetCheckExecutionRecordStatus
from dagster._core.workspace.autodiscovery import loadable_targets_from_python_module
from dagster._utils.schedules import cron_string_iterator


def plan_materialization(context: dg.AssetExecutionContext, asset: dg.AssetKey, partition: str) -> None:
    """Record that the run has planned to materialize a partition.

    Dagster shows a partition as failed if a failed run had planned to materialize it and did not.
    """
    step = context.get_step_execution_context().step.key
    planned = AssetMaterializationPlannedData(asset, partition=partition)
    event = dg.DagsterEvent.build_asset_materialization_planned_event(context.run.job_name, step, planned)
    context.instance.report_dagster_event(event, context.run.run_id)


def omit_input_versions(context: dg.AssetExecutionContext) -> None:
    """Let Dagster record the materializations of this step without the versions of the assets that they depend on.

    Without a partition, it would look for the partitions of the run, and fail the step that has loaded its tables.
    """
    context.get_step_execution_context()._data_version_cache.is_external_input_asset_version_info_loaded = False


def recorded_partitions(context: dg.AssetExecutionContext, asset: dg.AssetKey) -> list[str]:
    """Return the partitions of a run in the order in which Dagster records an asset's materializations after a step."""
    step = context.get_step_execution_context()
    output = StepOutputHandle(step.step.key, context.assets_def.get_output_name_for_asset_key(asset))
    return list(step.get_output_context(output, {}).asset_partition_keys)


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


class EvaluatedCheck(NamedTuple):
    """A result of a check, and when it was recorded, in seconds since 1970."""

    evaluation: dg.AssetCheckEvaluation
    recorded_at: float


def last_evaluated_check(instance: dg.DagsterInstance, key: dg.AssetCheckKey) -> EvaluatedCheck | None:
    """Return the last result of a check; None if it has none yet."""
    evaluated = {AssetCheckExecutionRecordStatus.SUCCEEDED, AssetCheckExecutionRecordStatus.FAILED}
    records = instance.event_log_storage.get_asset_check_execution_history(key, limit=1, status=evaluated)
    for record in records:
        if record.event is not None and record.evaluation is not None:
            return EvaluatedCheck(record.evaluation, record.event.timestamp)
    return None


def partitions_observed_last(instance: dg.DagsterInstance, asset: dg.AssetKey) -> list[str]:
    """Return the partitions whose last observation is newer than their last materialization, if they have any."""
    observation, materialization = dg.DagsterEventType.ASSET_OBSERVATION, dg.DagsterEventType.ASSET_MATERIALIZATION
    storage = instance.event_log_storage
    observed = storage.get_latest_storage_id_by_partition(asset, observation)
    if not observed:
        return []
    materialized = storage.get_latest_storage_id_by_partition(asset, materialization, set(observed))
    return sorted(partition for partition, number in observed.items() if number > materialized.get(partition, 0))


def recorded_partitions_of_run(instance: dg.DagsterInstance, run_id: str) -> Iterator[str | None]:
    """Yield the partitions of the materializations and observations that a run has recorded."""
    recorded = {dg.DagsterEventType.ASSET_MATERIALIZATION, dg.DagsterEventType.ASSET_OBSERVATION}
    for entry in instance.all_logs(run_id, of_type=recorded):
        yield entry.get_dagster_event().partition


class FinishedBackfill(NamedTuple):
    """A backfill that is over, whether or not it succeeded.

    Attributes:
        id: Its id.
        ended_at: When it ended, in seconds since 1970.
        targets: The names of its assets, or that of its job.
    """

    id: str
    ended_at: float
    targets: frozenset[str]


def finished_backfills(instance: dg.DagsterInstance, *, limit: int) -> list[FinishedBackfill]:
    """Return the backfills that are over, of the last ones of an instance."""
    filters = BulkActionsFilter(statuses=BULK_ACTION_TERMINAL_STATUSES)
    return [
        FinishedBackfill(
            backfill.backfill_id,
            backfill.backfill_end_timestamp or backfill.backfill_timestamp,
            frozenset(
                [backfill.job_name]
                if backfill.job_name
                else [key.to_user_string() for key in backfill.asset_selection or ()]
            ),
        )
        for backfill in instance.get_backfills(filters=filters, limit=limit)
    ]


def load_repository(module: str, folder: Path) -> dg.RepositoryDefinition:
    """Return the definitions of a module, as Dagster loads it as a code location.

    Args:
        module: The module.
        folder: The working directory, whose modules can be imported.

    Raises:
        dg.DagsterInvariantViolationError: The module does not define them.
    """
    targets = loadable_targets_from_python_module(module, working_directory=str(folder))
    repository = repository_def_from_target_def(targets[0].target_definition)
    if repository is None:
        raise dg.DagsterInvariantViolationError(f"{module} defines no Dagster definitions")
    return repository


def repository_of_run(context: dg.AssetCheckExecutionContext) -> dg.RepositoryDefinition | None:
    """Return the definitions that the job of a run belongs to; None if it was executed without any."""
    try:
        return context.repository_def
    except CheckError:
        return None


def cron_times(cron: str, timezone: str | None, start: datetime) -> Iterator[datetime]:
    """Yield the times of a cron expression from a time on."""
    return cron_string_iterator(start.timestamp(), cron, timezone)


def watches_failed_runs(sensor: dg.SensorDefinition) -> bool:
    """Return whether the sensor is evaluated for each failed run."""
    return getattr(sensor, "_run_status", None) is dg.DagsterRunStatus.FAILURE
