"""Facts that follow their dimensions by an automation condition, in place of a sensor with a cursor of its own."""

from __future__ import annotations

import warnings

import dagster as dg

from scd_pipeline.components.assets import plain
from scd_pipeline.declaration import Fact
from scd_pipeline.deliveries.partitions import EVERYTHING


class OnePartition(dg.AutomationCondition[dg.AssetKey]):
    """True for one partition of a fact: `everything`, or the last one before that exists.

    A run of any partition re-keys the whole fact, and a change of a dimension concerns all of them: without this
    condition Dagster would start a run for each.
    """

    @property
    def name(self) -> str:
        """The name in the interface."""
        return "one_partition"

    def evaluate(self, context: dg.AutomationContext[dg.AssetKey]) -> dg.AutomationResult[dg.AssetKey]:
        """Return the one partition, if it is among the candidates."""
        partitions = context.candidate_subset.expensively_compute_partition_keys()
        chosen = {EVERYTHING} & partitions or set(sorted(partitions)[-1:])
        return dg.AutomationResult(context, context.candidate_subset.compute_intersection_with_partition_keys(chosen))


def follow_dimensions() -> dg.AutomationCondition[dg.AssetKey]:
    """Return the condition that requests a fact once after each load of one of its dimensions (S24).

    Unlike `AutomationCondition.eager()` it does not wait for missing partitions of a dimension: its partitions are
    deliveries, and one that was rejected stays missing.
    """
    is_updated = dg.AutomationCondition.any_deps_updated().since_last_handled()
    is_running = dg.AutomationCondition.any_deps_in_progress() | dg.AutomationCondition.in_progress()
    return (OnePartition() & is_updated & ~is_running).with_label("follow_dimensions")


def follow_by_condition(assets: dg.AssetsDefinition, fact: Fact) -> dg.AssetsDefinition:
    """Return the assets of a fact with the condition on its table."""
    table, condition = dg.AssetKey(fact.name), follow_dimensions()
    return assets.map_asset_specs(
        lambda spec: spec.replace_attributes(automation_condition=condition) if spec.key == table else spec
    )


def automation_sensor(fact: Fact) -> dg.AutomationConditionSensorDefinition:
    """Return the sensor that evaluates the condition: in the code location, whose code part of it is."""
    names = ", ".join(dimension.name for dimension in fact.dimensions)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", dg.BetaWarning)  # conditions with code of their own are
        return dg.AutomationConditionSensorDefinition(
            f"{plain(fact.name)}_automation",
            target=dg.AssetSelection.assets(fact.name),
            use_user_code_server=True,
            description=f"Loads {fact.name} after {names}, by its automation condition.",
        )
