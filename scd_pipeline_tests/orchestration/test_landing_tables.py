"""A landing table and the dimension that reads it (S38): one run of both, runs on request, partitions and sensors."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Any

import dagster as dg
import pytest

from scd_pipeline import Pipeline
from scd_pipeline.components import ScdDimension, WarehouseResource, delivery_selection, rejections
from scd_pipeline.components.arrivals import arrival_sensor
from scd_pipeline.components.assets import table_assets
from scd_pipeline.components.dagster_internals import last_evaluated_check
from scd_pipeline.components.sensors import partitions_sensor, refresh_sensor
from scd_pipeline.declaration import Declarations, DeclaredTable, read_declarations
from scd_pipeline.declaration.declared import as_dimension
from scd_pipeline.deliveries.delivery import Delivery
from scd_pipeline.deliveries.partitions import EVERYTHING
from scd_pipeline.invariants.check_descriptions import DELIVERIES_ACCEPTED
from scd_pipeline_tests.orchestration.code_locations import warehouse_resource
from scd_pipeline_tests.orchestration.fake_loads import NoWarehouse, fake_loads
from scd_pipeline_tests.semantics.specification import rule
from scd_pipeline_tests.text_tables import assert_same_rows, header

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DECLARATIONS = """\
landing_table: raw_issues
disposition: merge
primary_key: {id: int}
columns: [state]
sources: {github: {feed: "issues_{date}.csv"}}
---
dimension: dim_issue
business_key: {id: int}
attributes: {state: 2}
sources: {issues: {landing_table: raw_issues, upstream: meanwhile}}
single_scd_type: true
"""
FIVE_THIRTY = datetime(2024, 4, 1, 5, 30, tzinfo=timezone.utc)
PAGES = {"01-01": "id,state\n1,open\n", "02-01": "id,state\n1,review\n", "03-01": "id,state\n1,closed\n2,open\n"}
GRAPH = """
raw_issues_changes  raw_issues_deliveries
raw_issues          raw_issues_deliveries  <- raw_issues_changes
dim_issue_changes   not partitioned        <- meanwhile, raw_issues
dim_issue           not partitioned        <- dim_issue_changes, meanwhile, raw_issues
dim_issue_audit     not partitioned        <- dim_issue, meanwhile, raw_issues
"""


@pytest.fixture
def declared(tmp_path: Path) -> Declarations:
    """A landing table of files in a folder, and a dimension that reads it, and is loaded after `meanwhile`."""
    (tmp_path / "issues.yaml").write_text(DECLARATIONS, encoding="utf-8")
    return read_declarations(tmp_path / "issues.yaml")


def deliver(folder: Path, *days: str) -> None:
    for day in days:
        (folder / f"issues_2024-{day}.csv").write_text(PAGES[day], encoding="utf-8")


@rule("S38")
def test_only_the_landing_table_has_partitions(declared: Declarations) -> None:
    lines = []
    for spec in (spec for table in declared.tables for spec in table_assets(table).specs):
        upstream = ", ".join(sorted(dep.asset_key.to_user_string() for dep in spec.deps))
        definition: Any = spec.partitions_def
        partitions = definition.name if definition else "not partitioned"
        arrow = f"<- {upstream}" if upstream else ""
        lines.append(f"{spec.key.to_user_string():<18}  {partitions:<21}  {arrow}".rstrip())
    assert "\n".join(lines) == GRAPH.strip()


def test_jobs_schedules_and_sensors_of_both(declared: Declarations) -> None:
    """Nothing arrives for the dimension; it is loaded after the landing table, by the schedule and by its sensor."""
    shared = dg.Definitions(resources={"warehouse": WarehouseResource(path="/nowhere")})
    defs = dg.Definitions.merge(ScdDimension().definitions(declared, status="issues_status"), shared)
    repository = defs.get_repository_def()
    sensors = {sensor.name: sensor.default_status.value for sensor in repository.sensor_defs}
    assert sensors == {
        "raw_issues_arrivals": "STOPPED",
        "dim_issue_refresh": "STOPPED",
        "maintain_dim_issue_after_backfill": "STOPPED",
        "issues_partitions": "RUNNING",
    }
    loads = [repository.get_schedule_def(f"{table}_schedule") for table in ("raw_issues", "dim_issue")]
    assert [schedule.cron_schedule for schedule in loads] == ["0 5 * * *", "30 5 * * *"]
    with dg.instance_for_test() as instance:
        context = dg.build_schedule_context(
            instance=instance, scheduled_execution_time=FIVE_THIRTY, repository_def=repository, resources={}
        )
        (request,) = loads[1].evaluate_tick(context).run_requests or ()
    assert request.partition_key is None


def test_the_first_ticks_add_the_partitions_of_the_landing_table(declared: Declarations, tmp_path: Path) -> None:
    """The arrival sensor adds those of files that have not changed since its tick before."""
    deliver(tmp_path, "01-01", "02-01")
    raw, now = as_dimension(declared.landing_tables[0]), [0.0]
    sensors = {
        "partitions": partitions_sensor("issues_partitions", declared.tables),
        "arrivals": arrival_sensor(raw, dg.define_asset_job("raw_issues_job"), clock=lambda: now[0]),
    }
    with dg.DagsterInstance.ephemeral() as instance:

        def tick(name: str, seconds: float = 0, cursor: str | None = None) -> dg.SensorResult:
            now[0] += seconds
            result = sensors[name](dg.build_sensor_context(instance=instance, cursor=cursor))
            assert isinstance(result, dg.SensorResult)
            return result

        def added(result: dg.SensorResult) -> dict[str, list[str]]:
            requests = result.dynamic_partitions_requests or ()
            return {str(request.partitions_def_name): sorted(request.partition_keys) for request in requests}

        partitions = {"raw_issues_deliveries": ["2024-01-01", "2024-02-01", EVERYTHING]}
        assert added(tick("partitions")) == partitions
        first = tick("arrivals", 30)
        assert (added(first), first.run_requests) == ({}, [])
        second = tick("arrivals", 30, first.cursor)
        assert added(second) == partitions
        assert len(second.run_requests or ()) == 1


def test_each_change_of_the_change_log_requests_the_dimension(declared: Declarations) -> None:
    """A late page may change the history although it changes no row of the landing table."""
    sensor = refresh_sensor(declared.dimensions[0], dg.define_asset_job("dim_issue_job"))
    with dg.DagsterInstance.ephemeral() as instance:

        def materialize(version: int, accepted: int) -> None:
            for name in ("raw_issues_changes", "raw_issues"):
                metadata = {"delta_version": version if name.endswith("_changes") else 1}
                counts = {"load/deliveries_accepted": accepted, "load/rows_opened": 0}
                event = dg.AssetMaterialization(name, partition="2024-01-01", metadata={**metadata, **counts})
                instance.report_runless_asset_event(event)

        def tick(cursor: str | None) -> tuple[list[str | None], str | None]:
            result = sensor(dg.build_sensor_context(instance=instance, cursor=cursor))
            assert isinstance(result, dg.SensorResult)
            assert not result.dynamic_partitions_requests
            return [request.partition_key for request in result.run_requests or ()], result.cursor

        requests, cursor = tick(None)
        assert requests == []
        for version, accepted, expected in ((1, 1, [None]), (1, 0, []), (2, 1, [None]), (2, 1, [None])):
            materialize(version, accepted)
            requests, cursor = tick(cursor)
            assert requests == expected, (version, accepted)
        assert tick(cursor)[0] == []


@rule("S38", "S27")
def test_a_rejected_delivery_fails_the_run_and_the_check_until_it_is_loaded(
    declared: Declarations, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its events have its name, although the dimension has no partitions. The others are loaded, and facts follow."""
    reject, dimension, names = fake_loads(monkeypatch, rejected=["b"]), declared.dimensions[0], ["a", "b"]
    deliveries, table = [Delivery("issues", name, "feed") for name in names], dg.AssetKey("dim_issue")
    monkeypatch.setattr(delivery_selection, "others", lambda *_: lambda _: deliveries)
    monkeypatch.setattr(rejections, "waiting_deliveries", lambda *_: deliveries[1:])
    with dg.DagsterInstance.ephemeral() as instance:

        def run() -> tuple[bool, bool, list[str | None]]:
            """Return whether a run succeeds and no delivery is rejected, and the partitions of its materializations."""
            result = dg.materialize(
                [table_assets(dimension)],
                resources={"warehouse": NoWarehouse(path="/nowhere")},
                instance=instance,
                raise_on_error=False,
            )
            check = last_evaluated_check(instance, dg.AssetCheckKey(table, DELIVERIES_ACCEPTED))
            events = instance.all_logs(result.run_id, of_type=dg.DagsterEventType.ASSET_MATERIALIZATION)
            loaded = [event.get_dagster_event() for event in events]
            partitions = [event.partition for event in loaded if event.asset_key == table]
            return result.success, check is not None and check.evaluation.passed, partitions

        assert run() == (False, False, [None])
        reject([])
        assert run() == (True, True, ["b", None])
        assert run() == (True, True, [None])
        assert not instance.get_dynamic_partitions("dim_issue_deliveries")


class Runs:
    """Runs of the assets of both tables, with an asset between them that may load the landing table as well."""

    def __init__(self, spark: SparkSession, warehouse: Path, declared: Declarations) -> None:
        self.pipeline = Pipeline(warehouse, spark=spark)
        self.instance = dg.DagsterInstance.ephemeral()
        self.instance.add_dynamic_partitions("raw_issues_deliveries", [EVERYTHING, *(f"2024-{day}" for day in PAGES)])
        self._raw, self._issue = declared.landing_tables[0], declared.dimensions[0]
        self._resources = {"warehouse": warehouse_resource(spark, str(warehouse))}
        self._sensor = refresh_sensor(self._issue, dg.define_asset_job("dim_issue_job"))
        self._cursor: str | None = None

    def run_both(self, partition: str | None, *, other_run_loads: bool = False) -> bool:
        """Run the landing table and its dimension; between them another program may load all pages."""

        @dg.asset(name="meanwhile", deps=["raw_issues"])
        def meanwhile() -> None:
            if other_run_loads:
                self.pipeline.load(self._raw)

        return self._run([table_assets(self._issue), meanwhile, table_assets(self._raw)], partition)

    def run_one(self, table: DeclaredTable, partition: str | None) -> bool:
        """Run the assets of one of the tables."""
        return self._run([table_assets(table)], partition)

    def _run(self, assets: list[dg.AssetsDefinition], partition: str | None) -> bool:
        done = dg.materialize(
            assets,
            resources=self._resources,
            instance=self.instance,
            partition_key=partition,
            raise_on_error=False,
        )
        return done.success

    def requested(self) -> int:
        """Run the dimension as often as a tick of its sensor requests, and return how often."""
        result = self._sensor(dg.build_sensor_context(instance=self.instance, cursor=self._cursor))
        assert isinstance(result, dg.SensorResult)
        self._cursor = result.cursor
        requests = list(result.run_requests or ())
        assert all(self.run_one(self._issue, request.partition_key) for request in requests)
        return len(requests)

    def assert_history(self, expected: str) -> None:
        rows = self.pipeline.history("dim_issue").select(list(header(expected))).collect()
        assert_same_rows(expected, [row.asDict() for row in rows])


@pytest.fixture
def runs(spark: SparkSession, warehouse: Path, declared: Declarations) -> Iterator[Runs]:
    """Runs on an empty warehouse."""
    created = Runs(spark, warehouse, declared)
    with created.instance:
        yield created


HISTORY = """
| id | state  | effective_from      | effective_to        |
| 1  | open   | 2024-01-01 00:00:00 | 2024-02-01 00:00:00 |
| 1  | review | 2024-02-01 00:00:00 | 2024-03-01 00:00:00 |
| 1  | closed | 2024-03-01 00:00:00 |                     |
| 2  | open   | 2024-03-01 00:00:00 |                     |
"""


@rule("S38")
def test_one_run_loads_a_partition_and_then_the_dimension(runs: Runs, tmp_path: Path) -> None:
    deliver(tmp_path, "01-01", "02-01")
    assert runs.run_both("2024-02-01")
    runs.assert_history(
        """
        | id | state  | effective_from      | effective_to |
        | 1  | review | 2024-02-01 00:00:00 |              |
        """
    )
    assert runs.instance.get_materialized_partitions(dg.AssetKey("raw_issues")) == {"2024-02-01"}
    assert not runs.instance.get_dynamic_partitions("dim_issue_deliveries")


@pytest.mark.slow(35)
@rule("S38", "S14")
def test_the_dimension_reads_what_its_run_has_landed_and_a_request_brings_the_rest(runs: Runs, tmp_path: Path) -> None:
    """The pages are landed in reverse order; the last run has no partition, and loads all of them."""
    deliver(tmp_path, "01-01", "02-01")
    assert runs.run_both("2024-02-01", other_run_loads=True)
    runs.assert_history(
        """
        | id | state  | effective_from      | effective_to |
        | 1  | review | 2024-02-01 00:00:00 |              |
        """
    )
    assert [runs.requested(), runs.requested()] == [1, 0]
    runs.assert_history(
        """
        | id | state  | effective_from      | effective_to        |
        | 1  | open   | 2024-01-01 00:00:00 | 2024-02-01 00:00:00 |
        | 1  | review | 2024-02-01 00:00:00 |                     |
        """
    )
    deliver(tmp_path, "03-01")
    assert runs.run_both(None)
    runs.assert_history(HISTORY)
    deliveries = {"2024-01-01", "2024-02-01", "2024-03-01"}
    assert runs.instance.get_materialized_partitions(dg.AssetKey("raw_issues")) == deliveries


@pytest.mark.slow(30)
@rule("S38", "S14")
def test_a_backfill_in_any_order_gives_the_same_history(runs: Runs, tmp_path: Path, declared: Declarations) -> None:
    """A run of the landing table that rejects a delivery fails; the dimension is requested for the others."""
    (raw,), _ = declared.landing_tables, deliver(tmp_path, *PAGES)
    for day in ("03-01", "01-01", "02-01"):
        assert runs.run_one(raw, f"2024-{day}")
    assert runs.requested() == 1
    runs.assert_history(HISTORY)
    (tmp_path / "issues_2024-04-01.csv").write_text("id\n1\n", encoding="utf-8")
    (tmp_path / "issues_2024-04-02.csv").write_text("id,state\n2,closed\n", encoding="utf-8")
    assert not runs.run_one(raw, EVERYTHING)
    assert runs.requested() == 1
    runs.assert_history(
        HISTORY.replace("| 2  | open   | 2024-03-01 00:00:00 |                     |", "")
        + "| 2  | open   | 2024-03-01 00:00:00 | 2024-04-02 00:00:00 |\n"
        + "| 2  | closed | 2024-04-02 00:00:00 |                     |"
    )
