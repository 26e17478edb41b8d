"""The component that builds assets, checks, jobs, schedules and sensors from declarations."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import dagster as dg
from pydantic import Field, field_validator

from scd_pipeline.components.archive import archive_job
from scd_pipeline.components.arrivals import arrival_sensor
from scd_pipeline.components.assets import table_assets
from scd_pipeline.components.automation import automation_sensor, never_requested, with_automation
from scd_pipeline.components.checklist import checklist_check
from scd_pipeline.components.checks import table_checks
from scd_pipeline.components.dagster_internals import cron_times
from scd_pipeline.components.load_window import LoadWindow
from scd_pipeline.components.maintenance import (
    backfill_sensor,
    maintenance_job,
    maintenance_schedules,
    timed_table_maintenance_job,
)
from scd_pipeline.components.overdue import overdue_check, overdue_limits
from scd_pipeline.components.partitions import load_schedule
from scd_pipeline.components.scaffolder import DimensionScaffolder
from scd_pipeline.components.sensors import partitions_sensor, refresh_sensor, rekey_sensor
from scd_pipeline.components.status import status_asset
from scd_pipeline.components.timed_tables import timed_table_asset, timed_table_check, timed_table_sensor
from scd_pipeline.declaration import Declarations, DeclaredTable, Dimension, Fact, TimedTable, read_declarations
from scd_pipeline.declaration.declared import as_dimension
from scd_pipeline.load.retry import Retry
from scd_pipeline.operations.dagster_names import archive_op_name, check_job_name, dagster_name, maintenance_op_name

_log = logging.getLogger("scd_pipeline")
_ANY_DAY = datetime(2024, 1, 1, tzinfo=timezone.utc)
_MIN_HOURS, _MAX_HOURS = 0.02, 1_000_000
"""Limits of a freshness policy: Dagster itself requires at least a minute."""


@dg.scaffold_with(DimensionScaffolder)
class ScdDimension(dg.Component, dg.Model, dg.Resolvable):
    """Slowly changing dimensions, and the facts that store their surrogate keys, from their declarations.

    For each dimension, fact and landing table: assets for change log, table and audit, which one step loads, with a
    job, a schedule, and sensors that start runs after arrivals or after loads of the tables that it reads; asset checks
    and maintenance, each with a job and schedules. For all of them a status asset with a job and a schedule. For each
    timed table an asset with its rows as of now, with a job and a sensor, and its asset check, with a job and a
    schedule. Schedules and sensors are stopped by default, except for the sensor that adds partitions.
    """

    declaration: str = Field(
        default=".",
        description=(
            "File of a declaration, or a folder of such files, relative to the folder of this defs.yaml. Empty: the "
            "component defines nothing."
        ),
    )
    dimensions: list[str] = Field(
        default=[],
        description=(
            "Files or folders with the declarations of other components that contain dimensions of this component's "
            "facts, relative to the folder of this defs.yaml."
        ),
    )
    fact_automation: bool = Field(
        default=False,
        description=(
            "Whether a fact is loaded after its dimensions by an automation condition and its sensor "
            "`<fact>_automation`, instead of the sensor `<fact>_rekey`."
        ),
    )
    load_cron: str = Field(default="0 5 * * *", description="Cron expression for loads of dimensions.")
    fact_cron: str = Field(
        default="30 5 * * *",
        description=(
            "Cron expression for loads of facts, and of dimensions that read landing tables or timed tables; choose a "
            "time after `load_cron`."
        ),
    )
    load_window: LoadWindow | None = Field(
        default=None,
        description=(
            "Daily window of the loads by schedules, from `start` to `end`, such as '01:00' and '05:00', in the time "
            "zone `timezone`. A load begins no further step after its end: the run fails, and the next one continues. "
            "The times of `load_cron` and `fact_cron` must be in the window."
        ),
    )
    check_cron: str = Field(
        default="0 7 * * *",
        description=(
            "Cron expression for the asset checks, which read whole tables. A load checks the entities that it changes "
            "before it commits them."
        ),
    )
    maintenance_cron: str = Field(
        default="0 3 * * 0",
        description="Cron expression for OPTIMIZE and VACUUM of dimensions, facts and the stored rows of timed tables.",
    )
    log_maintenance_cron: str = Field(
        default="0 4 1 * *",
        description=(
            "Cron expression for OPTIMIZE and VACUUM of the tables that loads mostly append to: change logs, audits, "
            "history tables and archives."
        ),
    )
    archive_cron: str = Field(
        default="0 2 1 * *",
        description="Cron expression for archive runs of the dimensions that declare `archive_after_years`.",
    )
    status: str | None = Field(
        default=None,
        description=(
            "Name of the status asset. Default: the dimension's or fact's name with `_status` for a declaration in a "
            "file, the name of the component's folder with `_status` for a folder of declarations."
        ),
    )
    docs_url: str = Field(
        default="",
        description="Address at which the folder `docs` of scd_pipeline is served; asset checks link to its rules.",
    )
    status_cron: str = Field(default="0 6 * * *", description="Cron expression for materializing the status asset.")
    checklist: bool = Field(
        default=False,
        description=(
            "Whether each dimension has the asset check `checklist_is_complete`, which warns of items of the checklist "
            "that fail."
        ),
    )
    timezone: str = Field(default="UTC", description="Time zone of the cron expressions.")
    attempts: int = Field(
        default=Retry().attempts,
        description="Attempts of a load, with growing waits after write conflicts; 1 for loads without a retry.",
    )
    overdue_after_hours: float | None = Field(
        default=None,
        description=(
            "Hours without a load after which a table is overdue (freshness policy), and without a delivery after "
            "which a source is overdue (asset check); a source may declare its own hours."
        ),
    )

    @field_validator("attempts")
    @classmethod
    def _require_an_attempt(cls, attempts: int) -> int:
        if attempts < 1:
            raise ValueError(f"attempts is {attempts}; expected at least 1; change it in the defs.yaml")
        return attempts

    @field_validator("load_window")
    @classmethod
    def _require_times_of_day(cls, window: LoadWindow | None) -> LoadWindow | None:
        if window is not None and window.problem:
            raise ValueError(
                f"load_window: {window.problem}; expected times of day; correct `start` and `end` in the defs.yaml"
            )
        return window

    @field_validator("overdue_after_hours")
    @classmethod
    def _require_freshness_hours(cls, hours: float | None) -> float | None:
        # Dagster would apply constraints of the field to its templates too, and these are text.
        if hours is not None and not _MIN_HOURS <= hours < _MAX_HOURS:
            raise ValueError(
                f"overdue_after_hours is {hours:g}; expected at least {_MIN_HOURS} and less than {_MAX_HOURS} hours; "
                "change it in the defs.yaml, or in SCD_OVERDUE_HOURS if the component reads it from there"
            )
        return hours

    def build_defs(self, context: dg.ComponentLoadContext) -> dg.Definitions:
        """Return the definitions of all declared dimensions and facts.

        Raises DeclarationError with file, line and field of every error, when the definitions load (S28).
        """
        if not self.declaration:
            return dg.Definitions()
        path = Path(context.path) / self.declaration
        declared = read_declarations(path, dimension_paths=[Path(context.path) / item for item in self.dimensions])
        for warning in (warning for dimension in declared.dimensions for warning in dimension.warnings):
            _log.warning("%s", warning)
        return self.definitions(declared, status=self.status or _status_name(context, path, declared))

    def definitions(self, declared: Declarations, *, status: str = "scd_status") -> dg.Definitions:
        """Return the definitions of declarations that are already read.

        Args:
            declared: The dimensions and facts.
            status: The name of the status asset.
        """
        self._require_loads_in_window()
        hours, retry = self.overdue_after_hours, Retry(self.attempts)
        freshness = None if hours is None else dg.FreshnessPolicy.time_window(fail_window=timedelta(hours=hours))
        parts: list[dg.Definitions] = []
        overdue_checks: list[dg.AssetChecksDefinition] = []
        for table in declared.tables:
            limits = overdue_limits(as_dimension(table), hours)
            overdue = [overdue_check(limits)] if limits else []
            overdue_checks += overdue
            facts = [fact for fact in declared.facts if fact is table or fact.references(as_dimension(table))]
            assets = table_assets(
                table, facts=facts, freshness=freshness, limits=limits, retry=retry, docs_url=self.docs_url
            )
            condition = None
            if isinstance(table, Fact) and self.fact_automation:
                assets, condition = with_automation(assets, table), never_requested()
            checks = [table_checks(table, docs_url=self.docs_url, condition=condition), *overdue]
            if self.checklist and isinstance(table, Dimension):
                checks.append(checklist_check(table, [fact.name for fact in facts], docs_url=self.docs_url))
            parts.append(self._table_definitions(table, assets, checks, facts))
        if declared.tables:
            parts.append(self._status_definitions(declared, status, overdue_checks))
            sensor = partitions_sensor(f"{status.removesuffix('_status')}_partitions", declared.tables)
            parts.append(dg.Definitions(sensors=[sensor]))
        parts += [self._timed_table_definitions(table) for table in declared.timed_tables]
        return dg.Definitions.merge(*parts)

    def _require_loads_in_window(self) -> None:
        """Check the next time of each schedule of loads; a schedule skips its other times outside of the window."""
        if self.load_window is None:
            return
        for option, cron in (("load_cron", self.load_cron), ("fact_cron", self.fact_cron)):
            tick = next(cron_times(cron, self.timezone, _ANY_DAY))
            if self.load_window.end_after(tick) is None:
                raise ValueError(
                    f"{option}: {cron!r} is outside the load window, {self.load_window}; expected a time in it; change "
                    "one of them in the defs.yaml"
                )

    def _table_definitions(
        self,
        table: DeclaredTable,
        assets: dg.AssetsDefinition,
        checks: Sequence[dg.AssetChecksDefinition],
        facts: Sequence[Fact],
    ) -> dg.Definitions:
        """Return the definitions of a dimension with the facts that reference it, or of a fact."""
        dimension, fact = as_dimension(table), table if isinstance(table, Fact) else None
        name = dagster_name(table.name)
        job = dg.define_asset_job(
            f"{name}_job",
            # The cost of a load depends on the size of the change; the checks read whole tables.
            selection=dg.AssetSelection.assets(assets).without_checks(),
            executor_def=dg.in_process_executor,
            description=f"Loads deliveries into {dimension.name}.",
        )
        check_job = dg.define_asset_job(
            check_job_name(table.name),
            selection=dg.AssetSelection.checks(*checks),
            executor_def=dg.in_process_executor,
            description=f"Runs the asset checks of {dimension.name} on its stored tables.",
        )
        maintenance = maintenance_job(table, facts)
        cron = self.fact_cron if fact or dimension.stored_tables else self.load_cron
        schedules = [
            load_schedule(dimension, job, cron, self.timezone, self.load_window),
            self._schedule(f"check_{name}_schedule", check_job, self.check_cron),
            *maintenance_schedules(
                dimension,
                maintenance,
                cron=self.maintenance_cron,
                log_cron=self.log_maintenance_cron,
                timezone=self.timezone,
            ),
        ]
        jobs: list[Any] = [job, check_job, maintenance]
        if isinstance(table, Dimension) and table.archive_after_years is not None:
            archive = archive_job(table, facts)
            jobs.append(archive)
            schedules.append(self._schedule(f"{archive_op_name(table.name)}_schedule", archive, self.archive_cron))
        sensors: list[Any] = [arrival_sensor(dimension, job)] if dimension.has_own_deliveries else []
        if dimension.stored_tables:
            sensors.append(refresh_sensor(dimension, job))
        if dimension.has_windows:
            sensors.append(backfill_sensor(dimension))
        if fact:
            sensors.append(automation_sensor(fact) if self.fact_automation else rekey_sensor(fact, job))
        return dg.Definitions(
            assets=[assets],
            asset_checks=checks,
            jobs=jobs,
            schedules=schedules,
            sensors=sensors,
        )

    def _timed_table_definitions(self, table: TimedTable) -> dg.Definitions:
        """Return the definitions of a timed table."""
        name = dagster_name(table.name)
        asset = timed_table_asset(table)
        check = timed_table_check(table, docs_url=self.docs_url)
        job = dg.define_asset_job(
            f"{name}_job",
            selection=dg.AssetSelection.assets(asset).without_checks(),
            executor_def=dg.in_process_executor,
            description=f"Stores the rows of {table.name} as of now.",
        )
        check_job = dg.define_asset_job(
            check_job_name(table.name),
            selection=dg.AssetSelection.checks(check),
            executor_def=dg.in_process_executor,
            description=f"Compares the stored rows of {table.name} with a read.",
        )
        maintenance = timed_table_maintenance_job(table)
        return dg.Definitions(
            assets=[asset],
            asset_checks=[check],
            jobs=[job, check_job, maintenance],
            schedules=[
                self._schedule(f"check_{name}_schedule", check_job, self.check_cron),
                self._schedule(f"{maintenance_op_name(table.name)}_schedule", maintenance, self.maintenance_cron),
            ],
            sensors=[timed_table_sensor(table, job)],
        )

    def _schedule(
        self, name: str, job: dg.JobDefinition | dg.UnresolvedAssetJobDefinition, cron: str
    ) -> dg.ScheduleDefinition:
        return dg.ScheduleDefinition(
            name=name, job=job, cron_schedule=cron, execution_timezone=self.timezone, description=job.description
        )

    def _status_definitions(
        self, declared: Declarations, name: str, overdue_checks: Sequence[dg.AssetChecksDefinition]
    ) -> dg.Definitions:
        """Return the status asset with its job and schedule.

        The job also checks for overdue sources.
        """
        asset = status_asset(declared.tables, name=name)
        description = f"Reports the status of {', '.join(_table_names(declared))}."
        if overdue_checks:
            description += " Checks whether their sources are on time."
        job = dg.define_asset_job(
            f"{name}_job",
            selection=dg.AssetSelection.assets(asset) | dg.AssetSelection.checks(*overdue_checks),
            executor_def=dg.in_process_executor,
            description=description,
        )
        schedule = self._schedule(f"{name}_schedule", job, self.status_cron)
        return dg.Definitions(assets=[asset], jobs=[job], schedules=[schedule])


def _table_names(declared: Declarations) -> list[str]:
    return [table.name for table in declared.tables]


def _status_name(context: dg.ComponentLoadContext, path: Path, declared: Declarations) -> str:
    """Return a name for the status asset that no other component of the project uses.

    It is the name of the table for a declaration in a file. For a folder it is the path of the component below the
    folder of all definitions, with its number if its defs.yaml contains several components.
    """
    names = _table_names(declared)
    if names and path.is_file():
        return f"{dagster_name(names[0])}_status"
    location = context.component_path
    folder, root = Path(location.file_path), Path(context.defs_module_path)
    name = folder.relative_to(root).as_posix() if folder.is_relative_to(root) else folder.name
    number = f"_{location.instance_key}" if location.instance_key else ""
    return f"{dagster_name(name if name != '.' else 'scd')}{number}_status"
