"""When maintenance runs: by the type of a table, and after a backfill."""

from __future__ import annotations

import warnings

import dagster as dg
import pytest
from dagster._core.execution.backfill import BulkActionStatus, PartitionBackfill

from scd_pipeline.components import ScdDimension, WarehouseResource
from scd_pipeline.components.maintenance import backfill_sensor
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
    """Types 1 and 2 weekly; the audit of a dimension, the change log and a declared history table monthly."""
    names = [table.name for table in (COUNTRY, PLAYER, PLAY)]
    expected = dict.fromkeys(names, WEEKLY)
    expected |= {f"{name}_changes": MONTHLY for name in names}
    expected |= dict.fromkeys(("dim_country_audit", "dim_player_audit", "dim_player_history"), MONTHLY)
    assert compacted_tables(ScdDimension()) == expected


def test_the_component_has_options_for_both_schedules() -> None:
    crons = compacted_tables(ScdDimension(maintenance_cron="0 1 * * *", log_maintenance_cron="0 2 * * 6"))
    assert (crons["dim_player"], crons["dim_player_audit"]) == ("0 1 * * *", "0 2 * * 6")


def backfill(number: int, *assets: str, ended_at: float, status: str = "COMPLETED_SUCCESS") -> PartitionBackfill:
    """Return a backfill of some assets."""
    return PartitionBackfill(
        backfill_id=f"b{number}",
        status=BulkActionStatus(status),
        from_failure=False,
        tags={},
        backfill_timestamp=float(ended_at - 60),
        backfill_end_timestamp=float(ended_at),
        asset_selection=[dg.AssetKey(name) for name in assets],
    )


@requirement("F47")
@pytest.mark.parametrize("name", PLAYER.table_names[:3])
@pytest.mark.parametrize("status", ["COMPLETED_SUCCESS", "COMPLETED_FAILED", "CANCELED"])
def test_a_table_is_compacted_once_after_a_backfill_of_any_of_its_assets(name: str, status: str) -> None:
    """However many runs it had. A backfill of another table, and one from before the first tick, are ignored."""
    sensor = backfill_sensor(PLAYER)
    with dg.DagsterInstance.ephemeral() as instance:

        def tick(cursor: str | None) -> dg.SensorResult:
            result = sensor(dg.build_sensor_context(instance=instance, cursor=cursor))
            assert isinstance(result, dg.SensorResult)
            return result

        instance.add_backfill(backfill(1, name, ended_at=1000))
        first = tick(None)
        assert not first.run_requests
        instance.add_backfill(backfill(2, "dim_country", ended_at=2000))
        instance.add_backfill(backfill(3, name, ended_at=2000, status="REQUESTED"))
        second = tick(first.cursor)
        assert not second.run_requests
        instance.add_backfill(backfill(4, name, ended_at=3000, status=status))
        third = tick(second.cursor)
        (request,) = third.run_requests or ()
        assert request.run_config == {"ops": {"maintain_dim_player": {"config": {"compacted": ["dim_player"]}}}}
        assert not tick(third.cursor).run_requests


def test_only_a_table_with_windows_has_the_sensor() -> None:
    sensors = {sensor.name for sensor in ScdDimension().definitions(DECLARED).sensors or ()}
    assert {name for name in sensors if "backfill" in name} == {"maintain_dim_player_after_backfill"}


@pytest.mark.parametrize("fact_automation", [False, True])
def test_dagster_warns_of_nothing_that_the_component_defines(fact_automation: bool) -> None:
    """Dagster resolves jobs and sensors for each run; it would copy a sensor that refers to a job with resources."""
    resources = dg.Definitions(resources={"warehouse": WarehouseResource(path="/warehouse")})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        component = ScdDimension(fact_automation=fact_automation)
        repository = dg.Definitions.merge(component.definitions(DECLARED), resources).get_repository_def()
    sensor = repository.get_sensor_def("maintain_dim_player_after_backfill")
    assert repository.get_job(sensor.job_name).name == "maintain_dim_player_job"
