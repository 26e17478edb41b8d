"""The automation condition that loads a fact after its dimensions, as an alternative to the re-key sensor."""

from __future__ import annotations

import warnings

import dagster as dg

from scd_pipeline.components.names import dagster_name
from scd_pipeline.declaration import Fact
from scd_pipeline.deliveries.partitions import EVERYTHING


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


def follow_dimensions() -> dg.AutomationCondition[dg.AssetKey]:
    """Return the condition that requests a fact once after each load of one of its dimensions (S24).

    Unlike `AutomationCondition.eager()` it does not wait for missing partitions of a dimension: its partitions are
    deliveries, and the partition of a rejected delivery stays missing.
    """
    is_updated = dg.AutomationCondition.any_deps_updated().since_last_handled()
    is_running = dg.AutomationCondition.any_deps_in_progress() | dg.AutomationCondition.in_progress()
    return (OnePartition() & is_updated & ~is_running).with_label("follow_dimensions")


def with_automation(assets: dg.AssetsDefinition, fact: Fact) -> dg.AssetsDefinition:
    """Return the assets of a fact with the automation condition on its table."""
    table, condition = dg.AssetKey(fact.name), follow_dimensions()
    return assets.map_asset_specs(
        lambda spec: spec.replace_attributes(automation_condition=condition) if spec.key == table else spec
    )


def automation_sensor(fact: Fact) -> dg.AutomationConditionSensorDefinition:
    """Return the sensor that evaluates the condition, in the code location: the condition has code of its own."""
    names = " or ".join(dimension.name for dimension in fact.dimensions)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", dg.BetaWarning)  # conditions with code of their own are beta
        return dg.AutomationConditionSensorDefinition(
            f"{dagster_name(fact.name)}_automation",
            target=dg.AssetSelection.assets(fact.name),
            use_user_code_server=True,
            description=f"Evaluates the automation condition of {fact.name}: one run after each load of {names}.",
        )
