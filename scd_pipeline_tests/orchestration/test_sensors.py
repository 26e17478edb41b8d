"""Sensors: runs for complete arrivals, runs of facts whose dimensions have changed, alerts for failed runs."""

from __future__ import annotations

import datetime as dt
import http.server
import json
import os
import shutil
import socketserver
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from scd_pipeline.components import arrivals
from scd_pipeline.components.alerts import alert_sensor, send_alert
from scd_pipeline.components.arrivals import arrival_sensor
from scd_pipeline.components.sensors import partitions_sensor, rekey_sensor
from scd_pipeline.declaration import Dimension, Fact, Feed, Role, Source, read_dimension
from scd_pipeline.deliveries.discovery import discover_files, file_version, list_files
from scd_pipeline.deliveries.partitions import EVERYTHING
from scd_pipeline.deliveries.table_states import table_states
from scd_pipeline.environment import Environment

DECLARATION = """\
dimension: dim_customer
business_key: id
sources: {crm: {snapshot: "customers_{date}.csv"}}
attributes: {city: 2}
"""


@dg.job
def _nothing() -> None:
    """Do nothing."""


@dg.op(name="load_dim_customer", config_schema={"files": dict})
def _load_files() -> None:
    """Record the files of the run configuration."""
    context = dg.OpExecutionContext.get()
    for name, version in context.op_config["files"].items():
        context.log_event(dg.AssetMaterialization("dim_customer_changes", partition=name, metadata={"file": version}))


@dg.job
def _load_job() -> None:
    _load_files()


@pytest.fixture
def customer(tmp_path: Path) -> Dimension:
    (tmp_path / "dim_customer.yaml").write_text(DECLARATION, encoding="utf-8")
    return read_dimension(tmp_path / "dim_customer.yaml")


class Ticks:
    """An arrival sensor with a simulated clock."""

    def __init__(self, dimension: Dimension, instance: dg.DagsterInstance | None = None) -> None:
        self.now, self.cursor, self.instance = 1000.0, None, instance or dg.DagsterInstance.ephemeral()
        self.sensor = arrival_sensor(dimension, _nothing, quiet_seconds=5, clock=lambda: self.now)

    def __call__(self, seconds: float) -> dg.SensorResult:
        self.now += seconds
        result = self.sensor(dg.build_sensor_context(instance=self.instance, cursor=self.cursor))
        assert isinstance(result, dg.SensorResult)
        self.cursor = result.cursor  # type: ignore[assignment]
        return result

    def request(self, *days: int, folder: Path) -> dg.RunRequest:
        """Return the run request after the files of some days have arrived."""
        for day in days:
            (folder / f"customers_2024-01-0{day}.csv").write_text("id,city\n1,Graz\n")
        self(1)
        (request,) = self(6).run_requests or ()
        return request


def files_of(request: dg.RunRequest) -> dict[str, str]:
    """Return the files in a run's configuration: partition keys with versions."""
    files: dict[str, str] = request.run_config["ops"]["load_dim_customer"]["config"]["files"]
    return files


def test_a_file_starts_one_run_once_it_is_complete(customer: Dimension, tmp_path: Path) -> None:
    """A file that is being written for three seconds starts none before."""
    tick, file = Ticks(customer), tmp_path / "customers_2024-01-01.csv"
    assert not tick(1).run_requests
    file.write_text("id,city\n1,Gr")
    assert not tick(1).run_requests
    file.write_text("id,city\n1,Graz\n2,Linz\n")
    assert not tick(3).run_requests
    waiting = tick(1)
    assert not waiting.run_requests
    assert "waiting for files that are still being written: 2024-01-01" in str(waiting.skip_reason)
    (request,) = tick(5).run_requests or ()
    assert request.partition_key == EVERYTHING
    assert request.tags["scd/arrived"] == "2024-01-01"
    assert not tick(30).run_requests


def test_all_arrivals_are_one_run_and_become_partitions(customer: Dimension, tmp_path: Path) -> None:
    tick = Ticks(customer)
    for day in (1, 2, 3):
        (tmp_path / f"customers_2024-01-0{day}.csv").write_text("id,city\n1,Graz\n")
    tick(1)
    result = tick(6)
    assert len(result.run_requests or ()) == 1
    (added,) = result.dynamic_partitions_requests or ()
    assert added.partition_keys == ["2024-01-01", "2024-01-02", "2024-01-03", EVERYTHING]


def test_a_run_loads_only_complete_files(customer: Dimension, tmp_path: Path) -> None:
    tick = Ticks(customer)
    (tmp_path / "customers_2024-01-01.csv").write_text("id,city\n1,Graz\n")
    tick(1)
    (tmp_path / "customers_2024-02-01.csv").write_text("id,ci")
    (request,) = tick(6).run_requests or ()
    (delivery,) = [d for d in discover_files(customer) if d.name == "2024-01-01"]
    assert files_of(request) == {"2024-01-01": file_version(delivery)}
    assert files_of(request)["2024-01-01"].endswith("Z, 15 bytes")


def test_files_of_a_failed_run_are_part_of_the_next_run(
    customer: Dimension, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They start no run alone. A successful run may not have found a file; a rejected one is not requested again."""
    with dg.DagsterInstance.ephemeral() as instance:

        def execute(request: dg.RunRequest, *materialized: str, rejected: str = "", fails: bool = False) -> None:
            @dg.op(name="load_dim_customer", config_schema={"files": dict})
            def load_files() -> None:
                context = dg.OpExecutionContext.get()
                for name in materialized:
                    context.log_event(dg.AssetMaterialization("dim_customer", partition=name))
                if rejected:
                    context.log_event(dg.AssetObservation("dim_customer", partition=rejected))
                if fails:
                    raise dg.Failure("the server is unavailable")

            @dg.job
            def load_job() -> None:
                load_files()

            tags = {"dagster/run_key": str(request.run_key)}
            config = dict(request.run_config)
            load_job.execute_in_process(config, instance=instance, tags=tags, raise_on_error=False)

        tick = Ticks(customer, instance)
        execute(tick.request(1, 2, folder=tmp_path), "2024-01-01", fails=True)
        assert not tick(30).run_requests
        second = tick.request(3, folder=tmp_path)
        assert sorted(files_of(second)) == ["2024-01-02", "2024-01-03"]
        execute(second, fails=True)
        listings: list[Dimension] = []
        monkeypatch.setattr(arrivals, "list_files", lambda d, base: listings.append(d) or list_files(d, base=base))
        third = tick.request(4, folder=tmp_path)
        assert len(listings) == 2, "each of the two ticks lists the files once"
        assert sorted(files_of(third)) == ["2024-01-02", "2024-01-03", "2024-01-04"]
        execute(third, "2024-01-02", "2024-01-03")
        fourth = tick.request(5, folder=tmp_path)
        assert sorted(files_of(fourth)) == ["2024-01-04", "2024-01-05"]
        execute(fourth, "2024-01-04", rejected="2024-01-05", fails=True)
        assert sorted(files_of(tick.request(6, folder=tmp_path))) == ["2024-01-06"]


def test_files_are_requested_again_after_a_reset_of_the_cursor(customer: Dimension, tmp_path: Path) -> None:
    """Dagster never starts a second run for a run key, so the key differs."""
    tick = Ticks(customer)
    first = tick.request(1, folder=tmp_path)
    tick.cursor = None
    second = tick.request(folder=tmp_path)
    assert files_of(first) == files_of(second)
    assert first.run_key != second.run_key


@pytest.mark.slow
def test_the_cursor_stays_small(customer: Dimension, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """However many files exist. Of unchanged files only sizes and times are read."""
    tick = Ticks(customer)
    days = [dt.date(2001, 1, 1) + dt.timedelta(number) for number in range(2000)]
    for day in days:
        (tmp_path / f"customers_{day}.csv").touch()
    tick(1)
    (request,) = tick(6).run_requests or ()
    assert len(files_of(request)) == len(days)
    assert len(str(tick.cursor)) < 8_000

    def unexpected(_: Any) -> str:
        raise AssertionError("file_version may read the content of a file")

    monkeypatch.setattr(arrivals, "file_version", unexpected)
    assert not tick(30).run_requests


def test_a_tick_reads_a_limited_number_of_files(
    customer: Dimension, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All files are requested, by several ticks."""
    monkeypatch.setattr(arrivals, "_FILES_OF_A_TICK", 10)
    for day in range(1, 31):
        (tmp_path / f"customers_2024-01-{day:02}.csv").write_text("id,city\n1,Graz\n")
    with dg.DagsterInstance.ephemeral() as instance:
        tick, added = Ticks(customer, instance), set[str]()
        requests_meanwhile: list[dg.RunRequest] = []
        for _ in range(12):
            for request in tick(6).run_requests or ():
                files = set(files_of(request))
                assert len(files) < 20
                assert not files & added, "no run has the files of another one"
                added |= files
                config, tags = dict(request.run_config), {"dagster/run_key": str(request.run_key)}
                queued = instance.create_run_for_job(_load_job, run_config=config, tags=tags)
                requests_meanwhile += [request for _ in range(6) for request in tick(6).run_requests or ()]
                instance.report_run_canceled(queued)
                _load_job.execute_in_process(config, instance=instance, tags=tags)
        added |= {name for request in requests_meanwhile for name in files_of(request)}
        assert added == {f"2024-01-{day:02}" for day in range(1, 31)}
        assert len(requests_meanwhile) <= 1, "only the last files are requested while the run of others is queued"


def test_the_files_of_a_deleted_run_are_requested_again_if_they_are_complete(
    customer: Dimension, tmp_path: Path
) -> None:
    """With the next new file, whatever the deleted run has loaded."""
    with dg.DagsterInstance.ephemeral() as instance:
        tick = Ticks(customer, instance)
        files = files_of(tick.request(1, 2, folder=tmp_path))  # the instance has no run of this request
        loaded = {"file": files["2024-01-01"]}
        instance.report_runless_asset_event(
            dg.AssetMaterialization("dim_customer_changes", partition="2024-01-01", metadata=loaded)
        )
        (tmp_path / "customers_2024-01-03.csv").write_text("id,city\n1,Graz\n")
        tick(1)
        incomplete = tmp_path / "customers_2024-01-04.csv"
        incomplete.write_text("id,ci")
        requested = [sorted(files_of(request)) for _ in range(2) for request in tick(6).run_requests or ()]
        assert requested == [["2024-01-03"], ["2024-01-02", "2024-01-04"]]


def test_a_run_omits_files_that_are_recorded_as_loaded(
    customer: Dimension, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also if they share a bucket of the cursor, and if one is removed. A file that was never recorded is included.

    A rejected delivery is recorded by an observation.
    """
    monkeypatch.setattr(arrivals, "_bucket", lambda _: "one")
    with dg.DagsterInstance.ephemeral() as instance:
        tick = Ticks(customer, instance)
        files = files_of(tick.request(1, 2, 3, folder=tmp_path))
        for name in ("2024-01-01", "2024-01-02"):
            metadata = dg.AssetMaterialization("dim_customer_changes", partition=name, metadata={"file": files[name]})
            instance.report_runless_asset_event(metadata)
        rejected = {"file": files["2024-01-03"]}
        instance.report_runless_asset_event(
            dg.AssetObservation("dim_customer_changes", partition="2024-01-03", metadata=rejected)
        )
        (tmp_path / "customers_2024-01-05.csv").write_text("id,city\n1,Graz\n")
        tick(30)
        (request,) = tick(30).run_requests or ()
        assert sorted(files_of(request)) == ["2024-01-05"]
        (tmp_path / "customers_2024-01-05.csv").unlink()
        (tmp_path / "customers_2024-01-02.csv").write_text("id,city\n1,Salzburg\n")
        assert sorted(files_of(tick.request(4, folder=tmp_path))) == ["2024-01-02", "2024-01-04"]


def test_an_incomplete_file_does_not_delay_others(
    customer: Dimension, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also if they share a bucket of the cursor. Each file is requested once."""
    monkeypatch.setattr(arrivals, "_bucket", lambda _: "one")
    tick, growing = Ticks(customer), tmp_path / "customers_2024-01-02.csv"
    (tmp_path / "customers_2024-01-01.csv").write_text("id,city\n1,Graz\n")
    requested = []
    for seconds in range(1, 5):
        growing.write_text("id,city\n" * seconds)
        requested += [files_of(request) for request in tick(6).run_requests or ()]
    assert [sorted(files) for files in requested] == [["2024-01-01"]]
    (last,) = tick(6).run_requests or ()
    assert "2024-01-02" in files_of(last)
    assert not tick(6).run_requests


def test_a_replaced_file_is_new(customer: Dimension, tmp_path: Path) -> None:
    """Its run key is new: Dagster never starts a second run for a run key."""
    tick, file = Ticks(customer), tmp_path / "customers_2024-01-01.csv"
    file.write_text("id,city\n1,Graz\n")
    tick(1)
    (first,) = tick(6).run_requests or ()
    file.write_text("id,city\n1,Linz\n")
    os.utime(file, (2_000_000_000, 2_000_000_000))
    assert not tick(30).run_requests
    (second,) = tick(6).run_requests or ()
    assert first.run_key != second.run_key


@pytest.mark.parametrize("option", ["versions: true", "partition: day"])
def test_each_commit_of_a_table_starts_a_run_at_once(option: str, tmp_path: Path) -> None:
    """A table may change between any two ticks, and each commit is complete."""
    channel = f"{{path: table, format: delta, {option}}}"
    (tmp_path / "dim_customer.yaml").write_text(DECLARATION.replace('"customers_{date}.csv"', channel))
    log = tmp_path / "table" / "_delta_log"
    log.mkdir(parents=True)
    tick = Ticks(read_dimension(tmp_path / "dim_customer.yaml"))
    for version in range(3):
        (log / f"{version:020}.json").touch()
        assert len(tick(1).run_requests or ()) == 1
    assert not tick(6).run_requests


def test_a_parquet_table_is_complete_once_it_is_unchanged(tmp_path: Path) -> None:
    channel = "{path: table, format: parquet, partition: day}"
    (tmp_path / "dim_customer.yaml").write_text(DECLARATION.replace('"customers_{date}.csv"', channel))
    (tmp_path / "table" / "day=2024-01-01").mkdir(parents=True)
    (tmp_path / "table" / "day=2024-01-01" / "part.parquet").touch()
    tick = Ticks(read_dimension(tmp_path / "dim_customer.yaml"))
    assert "waiting for files that are still being written: table table" in str(tick(1).skip_reason)
    assert len(tick(6).run_requests or ()) == 1


@pytest.mark.parametrize("path", ["table", "s3://bucket/table"])
def test_a_missing_table_starts_no_run(path: str, tmp_path: Path) -> None:
    """Nor does a dropped table. A recreated table does, though it has a version seen before."""
    channel = f'{{path: "{path}", format: delta, partition: day}}'
    (tmp_path / "dim_customer.yaml").write_text(DECLARATION.replace('"customers_{date}.csv"', channel))
    tick = Ticks(read_dimension(tmp_path / "dim_customer.yaml"))
    assert not tick(1).run_requests
    assert not tick(6).run_requests
    if path == "table":
        log, keys = tmp_path / "table" / "_delta_log", set()
        for seconds in range(2):
            log.mkdir(parents=True)
            (log / f"{0:020}.json").touch()
            os.utime(log / f"{0:020}.json", (seconds, seconds))
            (request,) = tick(30).run_requests or ()
            keys.add(request.run_key)
            shutil.rmtree(tmp_path / "table")
            assert not tick(30).run_requests
        assert len(keys) == 2, "Dagster starts no second run for a key"


def test_a_table_that_is_created_again_between_two_ticks_is_new(tmp_path: Path) -> None:
    channel = "{path: table, format: delta, partition: day}"
    (tmp_path / "dim_customer.yaml").write_text(DECLARATION.replace('"customers_{date}.csv"', channel))
    tick = Ticks(read_dimension(tmp_path / "dim_customer.yaml"))
    log = tmp_path / "table" / "_delta_log"
    log.mkdir(parents=True)
    (log / f"{0:020}.json").touch()
    assert len(tick(30).run_requests or ()) == 1
    os.utime(log / f"{0:020}.json", (2_000_000_000, 2_000_000_000))
    assert len(tick(30).run_requests or ()) == 1


def test_a_run_reads_a_parquet_table_only_as_the_sensor_saw_it(tmp_path: Path) -> None:
    """A partition that is being written while another delivery arrives is not loaded."""
    sources = '{snapshot: {path: table, format: parquet, partition: day}, feed: "changes_{date}.csv"}'
    text = DECLARATION.replace('{snapshot: "customers_{date}.csv"}', sources)
    (tmp_path / "dim_customer.yaml").write_text(text)
    part = tmp_path / "table" / "day=2024-01-01" / "part.parquet"
    part.parent.mkdir(parents=True)
    part.write_bytes(b"1")
    dimension = read_dimension(tmp_path / "dim_customer.yaml")
    tick = Ticks(dimension)
    tick(1)
    (request,) = tick(6).run_requests or ()
    assert files_of(request) == {"table table": table_states(dimension)["table table"].text}
    (tmp_path / "changes_2024-01-02.csv").write_text("id,city\n1,Graz\n")
    tick(1)
    part.write_bytes(b"12")
    (request,) = tick(6).run_requests or ()
    assert set(files_of(request)) == {"crm.feed.2024-01-02"}


def test_a_file_name_that_is_not_text_is_escaped(tmp_path: Path) -> None:
    feed = '{feed: {path: "{delivery}.csv", effective_at: at}}'
    (tmp_path / "dim_customer.yaml").write_text(DECLARATION.replace('{snapshot: "customers_{date}.csv"}', feed))
    for name in (b"one.csv", b"M\xfcller.csv", b" .csv"):
        Path(os.fsdecode(os.fsencode(tmp_path) + b"/" + name)).write_text("id,city,at\n1,Graz,2024-01-01\n")
    tick = Ticks(read_dimension(tmp_path / "dim_customer.yaml"))
    tick(1)
    (request,) = tick(6).run_requests or ()
    assert set(files_of(request)) == {"one", r"M\xfcller"}


def test_a_file_may_have_any_name_that_its_path_allows(tmp_path: Path) -> None:
    """Also one that begins with the prefix of tables in the cursor."""
    feed = '{feed: {path: "{delivery}.csv", effective_at: at}}'
    (tmp_path / "dim_customer.yaml").write_text(DECLARATION.replace('{snapshot: "customers_{date}.csv"}', feed))
    (tmp_path / "table orders.csv").write_text("id,city,at\n1,Graz,2024-01-01\n")
    tick = Ticks(read_dimension(tmp_path / "dim_customer.yaml"))
    tick(1)
    (request,) = tick(6).run_requests or ()
    assert set(files_of(request)) == {"table orders"}


def test_a_new_instance_gets_the_partitions_of_all_deliveries_and_of_each_file(
    customer: Dimension, tmp_path: Path
) -> None:
    """Each table that lacks them gets them, also a table that is declared later, so that a backfill can select them."""
    till = Source("till", feed=Feed(str(tmp_path / "sales_{date}.csv")))
    fact = Fact("fct_sale", {"n": "int"}, "at", {"customer": Role(customer)}, till)
    sensor = partitions_sensor("scd_partitions", [customer, fact])
    with dg.DagsterInstance.ephemeral() as instance:

        def tick() -> list[tuple[str, list[str]]]:
            result = sensor(dg.build_sensor_context(instance=instance))
            if isinstance(result, dg.SkipReason):
                return []
            assert isinstance(result, dg.SensorResult)
            added = [
                (request.partitions_def_name, list(request.partition_keys))
                for request in result.dynamic_partitions_requests or ()
            ]
            for name, keys in added:
                instance.add_dynamic_partitions(name, keys)
            return added

        instance.add_dynamic_partitions("fct_sale_deliveries", [EVERYTHING])
        for day in ("2024-01-01", "2024-01-02"):
            (tmp_path / f"customers_{day}.csv").write_text("id,city\n1,Graz\n", encoding="utf-8")
        assert tick() == [("dim_customer_deliveries", [EVERYTHING, "2024-01-01", "2024-01-02"])]
        assert tick() == []
        (tmp_path / "sales_2024-01-03.csv").touch()
        assert tick() == [("fct_sale_deliveries", ["2024-01-03"])]


def test_a_changed_dimension_starts_a_run_of_its_fact(customer: Dimension) -> None:
    """A run that changed no row starts none. A recreated table does, though it has a version seen before."""
    fact = Fact(
        "fct_sale", {"n": "int"}, "at", {"customer": Role(customer)}, Source("till", feed=Feed("sales_{date}.csv"))
    )
    sensor = rekey_sensor(fact, _nothing)
    with dg.DagsterInstance.ephemeral() as instance:

        def tick(cursor: str | None) -> dg.SensorResult:
            result = sensor(dg.build_sensor_context(instance=instance, cursor=cursor))
            assert isinstance(result, dg.SensorResult)
            return result

        def materialize(version: int, opened: int) -> None:
            metadata = {"delta_version": version, "load/rows_opened": opened}
            instance.report_runless_asset_event(dg.AssetMaterialization("dim_customer", metadata=metadata))

        assert not tick(None).run_requests
        materialize(version=3, opened=2)
        first = tick(None)
        assert len(first.run_requests or ()) == 1
        assert not tick(first.cursor).run_requests
        materialize(version=3, opened=0)
        unchanged = tick(first.cursor)
        assert not unchanged.run_requests
        materialize(version=3, opened=2)
        recreated = tick(unchanged.cursor)
        keys = [request.run_key for result in (first, recreated) for request in result.run_requests or ()]
        assert len(set(keys)) == 2


def test_a_failed_run_of_a_fact_is_requested_again_after_some_minutes(customer: Dimension) -> None:
    """The rows of the fact have the keys of former versions until a run has loaded them.

    A run that has recorded a rejected delivery has loaded the others, and would fail again.
    """
    fact = Fact(
        "fct_sale", {"n": "int"}, "at", {"customer": Role(customer)}, Source("till", feed=Feed("sales_{date}.csv"))
    )
    now = [0.0]
    sensor = rekey_sensor(fact, _nothing, clock=lambda: now[0])
    with dg.DagsterInstance.ephemeral() as instance:

        def finish(request: dg.RunRequest, *, fails: bool, rejected: str = "") -> None:
            @dg.op
            def load_facts() -> None:
                if rejected:
                    rejection = dg.AssetObservation("fct_sale_changes", partition=rejected)
                    dg.OpExecutionContext.get().log_event(rejection)
                if fails:
                    raise dg.Failure("the server is unavailable")

            @dg.job
            def load_job() -> None:
                load_facts()

            tags = {"dagster/run_key": str(request.run_key)}
            load_job.execute_in_process(instance=instance, tags=tags, raise_on_error=False)
            now[0] = time.time()

        def tick(cursor: str | None, seconds: float) -> tuple[list[dg.RunRequest], str | None]:
            now[0] += seconds
            result = sensor(dg.build_sensor_context(instance=instance, cursor=cursor))
            assert isinstance(result, dg.SensorResult)
            return list(result.run_requests or ()), result.cursor

        metadata = {"delta_version": 3, "load/rows_opened": 2}
        instance.report_runless_asset_event(dg.AssetMaterialization("dim_customer", metadata=metadata))
        (first,), cursor = tick(None, 0)
        finish(first, fails=True)
        assert tick(cursor, 60)[0] == []
        (second,), cursor = tick(cursor, 300)
        assert first.run_key != second.run_key
        assert tick(cursor, 300)[0] == [], "it has not run yet"
        finish(second, fails=True)
        assert tick(cursor, 360)[0] == [], "the wait grows"
        (third,), cursor = tick(cursor, 300)
        finish(third, fails=True, rejected="2024-01-01")
        assert tick(cursor, 10_000)[0] == []


# -- alerts


@contextmanager
def webhook() -> Iterator[tuple[str, list[Any]]]:
    """A local webhook that collects its requests."""
    received: list[Any] = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            received.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(204)
            self.end_headers()

        def log_message(self, *_: Any) -> None:
            """Write no log."""

    with http.server.HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/hook", received
        server.shutdown()
        thread.join()


@contextmanager
def mail_server() -> Iterator[tuple[str, list[str]]]:
    """A local mail server for one message."""
    received: list[str] = []

    class Handler(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            self.wfile.write(b"220 here\r\n")
            while line := self.rfile.readline().decode().strip():
                if line.upper() == "DATA":
                    self.wfile.write(b"354 go on\r\n")
                    text = []
                    while (text_line := self.rfile.readline().decode().rstrip("\r\n")) != ".":
                        text.append(text_line)
                    received.append("\n".join(text))
                self.wfile.write(b"221 bye\r\n" if line.upper() == "QUIT" else b"250 ok\r\n")
                if line.upper() == "QUIT":
                    return

    with socketserver.TCPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield f"127.0.0.1:{server.server_address[1]}", received
        server.shutdown()
        thread.join()


def test_an_alert_is_sent_by_webhook_and_email() -> None:
    with webhook() as (hook, posted), mail_server() as (mail, sent):
        environ = {"SCD_ALERT_WEBHOOK": hook, "SCD_ALERT_SMTP": mail, "SCD_ALERT_MAIL_TO": "ann@example.com"}
        attempts = send_alert("it failed", "two keys", {"run_id": "7"}, Environment.from_env(environ))
        assert [str(attempt) for attempt in attempts] == ["webhook", "email"]
    assert posted == [{"text": "it failed: two keys", "run_id": "7"}]
    assert "Subject: it failed" in sent[0]
    assert "run_id: 7" in sent[0]


def test_a_failed_transport_does_not_stop_the_other() -> None:
    with mail_server() as (mail, sent):
        environ = {"SCD_ALERT_WEBHOOK": "http://127.0.0.1:9/", "SCD_ALERT_SMTP": mail, "SCD_ALERT_MAIL_TO": "a@b.c"}
        hook, email = send_alert("it failed", "two keys", {}, Environment.from_env(environ))
    assert hook.transport == "webhook" and hook.problem
    assert (str(email), len(sent)) == ("email", 1)


def test_without_configuration_no_alert_is_sent() -> None:
    assert send_alert("it failed", "two keys", {}, Environment.from_env({})) == []


@pytest.mark.parametrize(
    ("hook", "mail", "problem", "email_problem"),
    [
        ("hooks/tOkEn", "mail:tOkEn", "SCD_ALERT_WEBHOOK is not an address", "SCD_ALERT_SMTP is not a mail server"),
        ("tOkEn", ":25", "SCD_ALERT_WEBHOOK is not an address", "SCD_ALERT_SMTP is not a mail server"),
        ("https//h/tOkEn", "", "SCD_ALERT_WEBHOOK is not an address", ""),
        ("ftp://h/tOkEn", "", "SCD_ALERT_WEBHOOK is not an address", ""),
        ("http://127.0.0.1:tOkEn/", "", "SCD_ALERT_WEBHOOK is not an address", ""),
        ("http://127.0.0.1:9/\ntOkEn", "", "SCD_ALERT_WEBHOOK is not an address", ""),
        ("http://127.0.0.1:9/tOkEn", "127.0.0.1:9", "ConnectionRefusedError: Connection refused", "ConnectionRefused"),
        ("http://tOkEn.invalid/", "tOkEn.invalid", "gaierror", "gaierror"),
    ],
)
def test_the_problem_of_a_transport_has_no_address(hook: str, mail: str, problem: str, email_problem: str) -> None:
    environ = {"SCD_ALERT_WEBHOOK": hook, "SCD_ALERT_SMTP": mail, "SCD_ALERT_MAIL_TO": "tOkEn@b.c"}
    problems = [str(attempt) for attempt in send_alert("it failed", "two keys", {}, Environment.from_env(environ))]
    expected = [f"webhook failed: {problem}", *([f"email failed: {email_problem}"] if mail else [])]
    assert [text[: len(start)] for text, start in zip(problems, expected, strict=True)] == expected
    assert "tOkEn" not in "".join(problems)


@pytest.mark.parametrize(
    "error", [dg.Failure("rejected: 2024-02-01", allow_retries=False), ConnectionError("rejected: 2024-02-01")]
)
def test_an_alert_has_the_reason_of_the_failure(error: Exception, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the type of the error."""
    with webhook() as (hook, posted):
        monkeypatch.setenv("SCD_ALERT_WEBHOOK", hook)
        alert_for_a_run_that_fails_with(error)
    (payload,) = posted
    assert payload["text"].removeprefix("breaks failed: ").removeprefix("ConnectionError: ") == "rejected: 2024-02-01"
    assert payload["steps"] == "stop"


def test_an_alert_that_cannot_be_sent_fails_the_tick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Dagster shows the failed tick, and goes on with the next failed run."""
    monkeypatch.setenv("SCD_ALERT_WEBHOOK", "http://127.0.0.1:9/")
    with pytest.raises(dg.Failure, match=r"run .* failed, and its alert was not sent: webhook failed: "):
        alert_for_a_run_that_fails_with(dg.Failure("rejected"))


def alert_for_a_run_that_fails_with(error: Exception) -> None:
    @dg.op
    def stop() -> None:
        raise error

    @dg.job
    def breaks() -> None:
        stop()

    with dg.DagsterInstance.ephemeral() as instance:
        result = breaks.execute_in_process(instance=instance, raise_on_error=False)
        context = dg.build_run_status_sensor_context(
            sensor_name="alerts",
            dagster_instance=instance,
            dagster_run=result.dagster_run,
            dagster_event=result.get_run_failure_event(),
        ).for_run_failure()
        alert_sensor()(context)
