"""The component that turns declarations into assets, checks, jobs, schedules and sensors, by one line of YAML."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import dagster as dg
from pydantic import Field, field_validator

from scd_pipeline.components.assets import dimension_assets, fact_assets, plain
from scd_pipeline.components.automation import automation_sensor, follow_by_condition
from scd_pipeline.components.checks import dimension_checks, fact_checks, overdue_check
from scd_pipeline.components.overview import status_asset
from scd_pipeline.components.scaffolder import DimensionScaffolder
from scd_pipeline.components.sensors import arrival_sensor, load_schedule, partitions_sensor, rekey_sensor
from scd_pipeline.components.upkeep import upkeep_job
from scd_pipeline.declaration import Declarations, Dimension, Fact, load_declarations

_LEAST_HOURS, _TOO_MANY_HOURS = 0.02, 1_000_000
"""Of waiting: Dagster itself takes no less than a minute."""


@dg.scaffold_with(DimensionScaffolder)
class ScdDimension(dg.Component, dg.Model, dg.Resolvable):
    """Slowly changing dimensions, and the facts that store their keys, from their declarations.

    For each: change log, table and audit, loaded together; checks; a job and its cron schedule; a sensor on arrival;
    a job that keeps the tables small. Schedules and sensors are off until they are switched on, other than the sensor
    that adds the partition of all deliveries.
    """

    declaration: str = Field(
        default=".",
        description=(
            "A declaration's file, or a folder of them; a relative path starts at the folder of this defs.yaml. "
            "Empty: there is none."
        ),
    )
    dimensions: list[str] = Field(
        default=[],
        description=(
            "Declarations of other components, as files or folders, whose dimensions the facts of this one name; "
            "a relative path starts at the folder of this defs.yaml."
        ),
    )
    fact_automation: bool = Field(
        default=False,
        description=(
            "Whether facts get an automation condition, by which Dagster's own sensor loads them after their "
            "dimensions, in place of the sensor `<fact>_follows`."
        ),
    )
    load_cron: str = Field(default="0 5 * * *", description="When all that lies there is loaded into dimensions.")
    fact_cron: str = Field(default="30 5 * * *", description="The same for facts: after their dimensions.")
    upkeep_cron: str = Field(default="0 3 * * 0", description="When tables are compacted.")
    status: str | None = Field(
        default=None,
        description=(
            "The name of the asset that tells where everything stands: `scd_status` for a folder of declarations, "
            "`dim_x_status` for one file, unless it is named here."
        ),
    )
    docs_url: str = Field(
        default="",
        description="Address at which the folder `docs` of scd_pipeline is served; checks link to the rules there.",
    )
    status_cron: str = Field(default="0 6 * * *", description="When it is told where everything stands.")
    timezone: str = Field(default="UTC", description="The zone of all of these.")
    overdue_after_hours: float | None = Field(
        default=None,
        description="A table that was not loaded for so long is shown as overdue, and a source that did not deliver; "
        "a source may declare hours of its own.",
    )

    @field_validator("overdue_after_hours")
    @classmethod
    def _hours_to_wait(cls, hours: float | None) -> float | None:
        # Not by constraints of the field, which Dagster would hold against its templates too, and these are text.
        if hours is not None and not _LEAST_HOURS <= hours < _TOO_MANY_HOURS:
            raise ValueError(
                f"{hours:g} is no time to wait; give hours, at least {_LEAST_HOURS} and less than {_TOO_MANY_HOURS}, "
                f"here, or by SCD_OVERDUE_HOURS where that is what gives them"
            )
        return hours

    def build_defs(self, context: dg.ComponentLoadContext) -> dg.Definitions:
        """Everything for each declared dimension and fact.

        Errors: DeclarationError with file, line and field of every fault, when the definitions load (S28).
        """
        if not self.declaration:
            return dg.Definitions()
        place = Path(context.path) / self.declaration
        declared = load_declarations(place, dimensions=[Path(context.path) / path for path in self.dimensions])
        names = [*(of.name for of in declared.dimensions), *(of.name for of in declared.facts)]
        of = names[0] if names and place.is_file() else "scd"
        return self.definitions(declared, status=self.status or f"{plain(of)}_status")

    def definitions(self, declared: Declarations, *, status: str = "scd_status") -> dg.Definitions:
        """The same for declarations that are there already; `status` names the asset that tells where they stand."""
        freshness = self._freshness()
        made: list[dg.Definitions] = []
        waited: list[dg.AssetChecksDefinition] = []
        joined = {dimension.name for fact in declared.facts for dimension in fact.dimensions}
        for dimension in declared.dimensions:
            assets = dimension_assets(dimension, has_facts=dimension.name in joined, freshness=freshness)
            overdue = self._overdue(dimension)
            waited += overdue
            made.append(self._of(dimension, assets, [dimension_checks(dimension, docs_url=self.docs_url), *overdue]))
        for fact in declared.facts:
            assets = fact_assets(fact, freshness=freshness)
            assets = follow_by_condition(assets, fact) if self.fact_automation else assets
            overdue = self._overdue(fact.as_dimension())
            waited += overdue
            checks = [fact_checks(fact, docs_url=self.docs_url), *overdue]
            made.append(self._of(fact.as_dimension(), assets, checks, fact))
        if declared.dimensions or declared.facts:
            made.append(self._status(declared, status, waited))
            tables = [*(item.name for item in declared.dimensions), *(item.name for item in declared.facts)]
            sensor = partitions_sensor(f"{status.removesuffix('_status')}_partitions", tables)
            made.append(dg.Definitions(sensors=[sensor]))
        return dg.Definitions.merge(*made)

    def _overdue(self, shape: Dimension) -> list[dg.AssetChecksDefinition]:
        check = overdue_check(shape, self.overdue_after_hours)
        return [] if check is None else [check]

    def _of(
        self,
        shape: Dimension,
        assets: dg.AssetsDefinition,
        checks: Sequence[dg.AssetChecksDefinition],
        fact: Fact | None = None,
    ) -> dg.Definitions:
        name = plain(shape.name)
        job = dg.define_asset_job(
            f"{name}_job",
            selection=dg.AssetSelection.assets(assets) | dg.AssetSelection.checks(*checks),
            executor_def=dg.in_process_executor,
            description=f"Loads what was delivered for {shape.name}, and asks its checks.",
        )
        upkeep = upkeep_job(shape.name)
        schedules = [
            load_schedule(shape, job, self.fact_cron if fact else self.load_cron, self.timezone),
            dg.ScheduleDefinition(
                name=f"maintain_{name}_schedule",
                job=upkeep,
                cron_schedule=self.upkeep_cron,
                execution_timezone=self.timezone,
            ),
        ]
        sensors: list[Any] = [arrival_sensor(shape, job)]
        if fact:
            sensors.append(automation_sensor(fact) if self.fact_automation else rekey_sensor(fact, job))
        return dg.Definitions(
            assets=[assets], asset_checks=checks, jobs=[job, upkeep], schedules=schedules, sensors=sensors
        )

    def _status(self, declared: Declarations, name: str, overdue: Sequence[dg.AssetChecksDefinition]) -> dg.Definitions:
        """With the checks of sources that are overdue, as those of a load are not asked where it fails."""
        asset = status_asset(declared.dimensions, declared.facts, name=name)
        told = "Tells where everything stands."
        job = dg.define_asset_job(
            f"{name}_job",
            selection=dg.AssetSelection.assets(asset) | dg.AssetSelection.checks(*overdue),
            executor_def=dg.in_process_executor,
            description=told,
        )
        schedule = dg.ScheduleDefinition(
            name=f"{name}_schedule",
            job=job,
            cron_schedule=self.status_cron,
            execution_timezone=self.timezone,
            description=told,
        )
        return dg.Definitions(assets=[asset], jobs=[job], schedules=[schedule])

    def _freshness(self) -> dg.FreshnessPolicy | None:
        if self.overdue_after_hours is None:
            return None
        return dg.FreshnessPolicy.time_window(fail_window=timedelta(hours=self.overdue_after_hours))
