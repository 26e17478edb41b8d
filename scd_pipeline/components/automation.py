"""The automation condition that loads a fact after its dimensions, as an alternative to the re-key sensor."""

from __future__ import annotations

import warnings
from typing import Any

import dagster as dg

from scd_pipeline.declaration import Fact
from scd_pipeline.declaration.tables import LOG_SUFFIX
from scd_pipeline.deliveries.partitions import EVERYTHING
from scd_pipeline.operations.dagster_names import automation_sensor_name


class OnePartition(dg.AutomationCondition[dg.AssetKey]):
    """True for one candidate partition of a fact: `everything`, or the last one if that does not exist.

    A run of any partition re-keys the whole fact, and a change of a dimension concerns all of its partitions. Without
    this condition Dagster would start a run for each.
    """

    @property
    def name(self) -> str:
        """The name of the condition in the UI."""
        return "one_partition"

    def evaluate(self, context: dg.AutomationContext[dg.AssetKey]) -> dg.AutomationResult[dg.AssetKey]:
        """Return the one partition, if it is among the candidates."""
        partitions = context.candidate_subset.expensively_compute_partition_keys()
        chosen = {EVERYTHING} & partitions or set(sorted(partitions)[-1:])
        return dg.AutomationResult(context, context.candidate_subset.compute_intersection_with_partition_keys(chosen))


def rekey_after_dimensions(fact: Fact) -> dg.AutomationCondition[dg.AssetKey]:
    """Return the condition that requests a fact once after each load of one of its dimensions (S24).

    Unlike `AutomationCondition.eager()` it does not wait for missing partitions of a dimension: its partitions are
    deliveries, and the partition of a rejected delivery stays missing. And a load of a dimension during a run of the
    fact is not handled by that run, which may have read the dimension before it.
    """
    deliveries = dg.AssetSelection.assets(fact.name + LOG_SUFFIX, *fact.source.upstream)
    is_updated = dg.AutomationCondition.any_deps_updated().ignore(deliveries)
    # A load of a dimension between the request and the next tick is another reason, not the one that was requested.
    was_requested = dg.AutomationCondition.newly_requested() & ~is_updated
    has_changes = is_updated.since(was_requested | dg.AutomationCondition.initial_evaluation())
    is_running = dg.AutomationCondition.any_deps_in_progress() | dg.AutomationCondition.in_progress()
    return (OnePartition() & has_changes & ~is_running).with_label("rekey_after_dimensions")


def with_automation(assets: dg.AssetsDefinition, fact: Fact) -> dg.AssetsDefinition:
    """Return the assets of a fact with the automation condition on its table."""
    table, condition = dg.AssetKey(fact.name), rekey_after_dimensions(fact)
    return assets.map_asset_specs(
        lambda spec: spec.replace_attributes(automation_condition=condition) if spec.key == table else spec
    )


def never_requested() -> dg.AutomationCondition[Any]:
    """Return the condition of checks that the runs of an automation condition leave out.

    Dagster adds the checks without a condition of their own to the runs that it requests of their asset.
    """
    requested = dg.AutomationCondition.newly_requested()
    return (requested & ~requested).with_label("never_requested")


def automation_sensor(fact: Fact) -> dg.AutomationConditionSensorDefinition:
    """Return the sensor that evaluates the condition, in the code location: the condition has code of its own."""
    names = " or ".join(dimension.name for dimension in fact.dimensions)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", dg.BetaWarning)  # conditions with code of their own are beta
        return dg.AutomationConditionSensorDefinition(
            automation_sensor_name(fact.name),
            target=dg.AssetSelection.assets(fact.name),
            use_user_code_server=True,
            description=f"Evaluates the automation condition of {fact.name}: one run after each load of {names}.",
        )
