"""When maintenance runs: by the type of a table, and after a backfill."""

from __future__ import annotations

import dagster as dg
import pytest

from scd_pipeline.components import ScdDimension
from scd_pipeline.components.maintenance import backfill_sensor, maintenance_job
from scd_pipeline.declaration import Declarations, Dimension, Fact, Feed, Role, Source
from scd_pipeline_tests.semantics.specification import requirement

SOURCE = Source("crm", snapshot="in/{date}.csv")
COUNTRY = Dimension("dim_country", "code", {"name": 1}, SOURCE)
PLAYER = Dimension("dim_player", "id", {"tier": 2}, SOURCE, history_table=True)
PLAY = Fact("fct_play", {"play": "int"}, "at", {"player": Role(PLAYER)}, Source("floor", feed=Feed("in/{date}.csv")))
DECLARED = Declarations((COUNTRY, PLAYER), (PLAY,))
WEEKLY, MONTHLY = "0 3 * * 0", "0 4 1 * *"


def compacted_tables(component: ScdDimension) -> dict[str, str]:
    """Return the cron expression of the maintenance of each table."""
    schedules = [s for s in component.definitions(DECLARED).schedules or () if s.name.startswith("maintain_")]
    crons: dict[str, str] = {}
    for schedule in schedules:
        assert isinstance(schedule, dg.ScheduleDefinition)
        request = schedule.evaluate_tick(dg.build_schedule_context()).run_requests[0]  # type: ignore[index]
        (op,) = request.run_config["ops"].values()
        crons |= dict.fromkeys(op["config"]["compacted"], str(schedule.cron_schedule))
    return crons


@requirement("F47")
def test_tables_are_compacted_weekly_and_what_loads_append_to_monthly() -> None:
    """Types 1 and 2 weekly; the audit, the change log, the key list and a declared history table monthly."""
    names = [table.name for table in (COUNTRY, PLAYER, PLAY)]
    expected = dict.fromkeys(names, WEEKLY)
    expected |= {f"{name}_{log}": MONTHLY for name in names for log in ("changes", "audit", "keys")}
    expected["dim_player_history"] = MONTHLY
    assert compacted_tables(ScdDimension()) == expected


def test_the_component_has_options_for_both_schedules() -> None:
    crons = compacted_tables(ScdDimension(maintenance_cron="0 1 * * *", log_maintenance_cron="0 2 * * 6"))
    assert (crons["dim_player"], crons["dim_player_audit"]) == ("0 1 * * *", "0 2 * * 6")


def requested(*, job: str, tags: dict[str, str], assets: tuple[str, ...]) -> list[object]:
    """Return the run configurations that the sensor of the players requests after a run of a job."""
    selection = frozenset(map(dg.AssetKey, assets)) or None
    run = dg.DagsterRun(job_name=job, run_id="run", tags=tags, asset_selection=selection)
    event = dg.DagsterEvent(dg.DagsterEventType.RUN_SUCCESS.value, job)
    with dg.DagsterInstance.ephemeral() as instance:
        context = dg.build_run_status_sensor_context("maintain_dim_player_after_backfill", event, instance, run)
        result = backfill_sensor("dim_player", maintenance_job(PLAYER))(context)
    return [result.run_config] if isinstance(result, dg.RunRequest) else []


@requirement("F47")
@pytest.mark.parametrize(
    ("job", "tags", "assets", "is_requested"),
    [
        ("__ASSET_JOB", {"dagster/backfill": "b"}, ("dim_player", "dim_player_changes"), True),
        ("dim_player_job", {"dagster/backfill": "b"}, (), True),
        ("dim_player_job", {}, ("dim_player",), False),
        ("__ASSET_JOB", {"dagster/backfill": "b"}, ("dim_country",), False),
    ],
)
def test_a_table_is_compacted_after_a_run_of_its_backfill(
    job: str, tags: dict[str, str], assets: tuple[str, ...], is_requested: bool
) -> None:
    config = {"ops": {"maintain_dim_player": {"config": {"compacted": ["dim_player"]}}}}
    assert requested(job=job, tags=tags, assets=assets) == ([config] if is_requested else [])


def test_only_a_table_with_windows_has_the_sensor() -> None:
    sensors = {sensor.name for sensor in ScdDimension().definitions(DECLARED).sensors or ()}
    assert {name for name in sensors if "backfill" in name} == {"maintain_dim_player_after_backfill"}
