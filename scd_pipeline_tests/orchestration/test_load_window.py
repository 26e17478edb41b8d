"""The load window of the component: its schedules, the deadline of their runs, and the alert after it."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from zoneinfo import ZoneInfo

import dagster as dg
import pytest
from pyspark.sql import SparkSession

from scd_pipeline.components import ScdDimension, WarehouseResource
from scd_pipeline.components.alerts import SentAlert
from scd_pipeline.components.assets import table_assets
from scd_pipeline.components.load_window import DEADLINE_TAG, LoadWindow, deadline_tags, run_deadline
from scd_pipeline.declaration import Dimension, Snapshot, Source, parse_declarations
from scd_pipeline.deliveries.partitions import EVERYTHING
from scd_pipeline.delta.warehouse import Warehouse
from scd_pipeline_tests.orchestration.test_schedules import DECLARATIONS
from scd_pipeline_tests.semantics.specification import requirement

PARIS = ZoneInfo("Europe/Paris")


def at(text: str) -> dt.datetime:
    return dt.datetime.fromisoformat(text).replace(tzinfo=PARIS)


@pytest.mark.parametrize(
    ("start", "end", "tick", "expected"),
    [
        ("01:00", "05:00", "2024-03-10T01:00", "2024-03-10T05:00"),
        ("01:00", "05:00", "2024-03-10T04:59", "2024-03-10T05:00"),
        ("01:00", "05:00", "2024-03-10T05:00", None),
        ("01:00", "05:00", "2024-03-10T00:59", None),
        ("22:00", "04:00", "2024-03-10T23:00", "2024-03-11T04:00"),
        ("22:00", "04:00", "2024-03-10T03:00", "2024-03-10T04:00"),
        ("22:00", "04:00", "2024-03-10T12:00", None),
        ("01:00", "05:00", "2024-03-31T01:30", "2024-03-31T05:00"),
    ],
    ids=["start", "before its end", "end", "before", "evening", "past midnight", "noon", "a night of summer time"],
)
def test_a_time_is_in_the_window_that_contains_it(start: str, end: str, tick: str, expected: str | None) -> None:
    assert LoadWindow(start=start, end=end).end_after(at(tick)) == (at(expected) if expected else None)


@requirement("L16")
def test_a_tick_in_the_window_requests_a_run_with_its_end_as_deadline() -> None:
    window, declared = LoadWindow(start="01:00", end="05:00"), parse_declarations(DECLARATIONS)
    with pytest.raises(ValueError, match=r"load_cron: '0 5 \* \* \*' is outside the load window, 01:00 to 05:00"):
        ScdDimension(load_window=window).definitions(declared)
    crons = {"load_cron": "0 1-7 * * *", "fact_cron": "30 3 * * *"}
    component = ScdDimension(load_window=window, timezone="Europe/Paris", **crons)  # type: ignore[arg-type]
    shared = dg.Definitions(resources={"warehouse": WarehouseResource(path="/nowhere")})
    repository = dg.Definitions.merge(component.definitions(declared), shared).get_repository_def()
    ticks = {"2024-07-02T03:00": "2024-07-02T03:00:00+00:00", "2024-07-02T06:00": None}
    for tick, deadline in ticks.items():
        with dg.instance_for_test() as instance:
            context = dg.build_schedule_context(
                instance=instance, scheduled_execution_time=at(tick), repository_def=repository, resources={}
            )
            result = repository.get_schedule_def("dim_customer_schedule").evaluate_tick(context)
        requested = [request.tags.get(DEADLINE_TAG) for request in result.run_requests or ()]
        assert requested == ([deadline] if deadline else [])
        assert deadline or result.skip_message == "06:00 is outside the load window, 01:00 to 05:00"


@pytest.mark.parametrize(
    ("start", "end", "problem"),
    [
        ("1:00", "05:00", "'1:00' is not a time of day"),
        ("01:00", "24:00", "'24:00' is not a time of day"),
        ("01:00", "01:00", "its start is its end"),
    ],
)
def test_a_window_has_two_times_of_day(start: str, end: str, problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        ScdDimension(load_window=LoadWindow(start=start, end=end))


CUSTOMER = Dimension("dim_customer", "id", {"city": 2}, Source("crm", snapshot=Snapshot("customers_{date}.csv")))


@requirement("L16")
@pytest.mark.slow(30)
def test_a_run_stops_at_its_deadline_and_the_next_one_continues(
    spark: SparkSession, remote: str, warehouse: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By a clock of the test: the first run has no time, the last step of the second one takes longer."""
    alerts: list[str] = []
    monkeypatch.setattr(
        "scd_pipeline.components.alerts.send_alert",
        lambda subject, *others: alerts.append(subject) or [SentAlert("webhook")],
    )
    monkeypatch.chdir(tmp_path)
    Path("customers_2024-01-01.csv").write_text("id,city\n1,Graz\n", encoding="utf-8")
    end = at("2024-01-02T05:00")
    opened = Warehouse(spark, warehouse)

    def run(times: list[dt.datetime]) -> dg.ExecuteInProcessResult:
        clock = iter([*times[:-1], *[times[-1]] * 100])
        assets = table_assets(CUSTOMER, clock=lambda: next(clock).timestamp())
        with dg.instance_for_test() as instance:
            instance.add_dynamic_partitions("dim_customer_deliveries", [EVERYTHING])
            return dg.materialize(
                [assets],
                instance=instance,
                partition_key=EVERYTHING,
                tags=deadline_tags(end),
                resources={"warehouse": WarehouseResource(path=str(warehouse), remote=remote)},
                raise_on_error=False,
            )

    stopped = run([at("2024-01-02T04:00"), at("2024-01-02T04:30"), end])
    (failure,) = [event for event in stopped.all_events if event.is_step_failure]
    assert "[DEADLINE_EXCEEDED]" in str(failure.step_failure_data.user_failure_data.description)
    assert not opened.table("dim_customer").exists()
    late = run([at("2024-01-02T04:00")] * 5 + [end])
    assert late.success
    assert alerts == ["dim_customer was loaded after its load window"]
    assert [row["city"] for row in opened.table("dim_customer").read().collect()] == ["Graz"]


def test_a_run_that_no_schedule_with_a_window_requested_has_no_deadline() -> None:
    assert run_deadline({}, lambda: 0.0) is None
