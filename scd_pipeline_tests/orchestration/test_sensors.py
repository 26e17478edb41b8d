"""Sensors: a run for what has arrived whole, a run of a fact whose dimension has changed, word of a failed run."""

from __future__ import annotations

import datetime as dt
import http.server
import json
import os
import shutil
import socketserver
import threading
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
from scd_pipeline.declaration import Dimension, Fact, Feed, Role, Source, load_dimension
from scd_pipeline.deliveries.discovery import data_version, discover_files
from scd_pipeline.deliveries.partitions import EVERYTHING
from scd_pipeline.environment import Environment

DECLARATION = """\
dimension: dim_customer
business_key: id
sources: {crm: {snapshot: "customers_{date}.csv"}}
attributes: {city: 2}
"""


@dg.job
def _nothing() -> None:
    """A job to be named."""


@pytest.fixture
def customer(tmp_path: Path) -> Dimension:
    (tmp_path / "dim_customer.yaml").write_text(DECLARATION, encoding="utf-8")
    return load_dimension(tmp_path / "dim_customer.yaml")


class Ticks:
    """A sensor that ticks at times of our own."""

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
        """The run that is started once the files of some days have arrived."""
        for day in days:
            (folder / f"customers_2024-01-0{day}.csv").write_text("id,city\n1,Graz\n")
        self(1)
        (request,) = self(6).run_requests or ()
        return request


def taken(request: dg.RunRequest) -> dict[str, str]:
    """What a run is to take: names with their marks."""
    found: dict[str, str] = request.run_config["ops"]["load_dim_customer"]["config"]["files"]
    return found


def test_a_file_starts_one_run_once_it_is_whole(customer: Dimension, tmp_path: Path) -> None:
    """One that takes three seconds to be written starts none before."""
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


def test_all_that_has_arrived_goes_into_one_run_and_becomes_partitions(customer: Dimension, tmp_path: Path) -> None:
    tick = Ticks(customer)
    for day in (1, 2, 3):
        (tmp_path / f"customers_2024-01-0{day}.csv").write_text("id,city\n1,Graz\n")
    tick(1)
    result = tick(6)
    assert len(result.run_requests or ()) == 1
    (added,) = result.dynamic_partitions_requests or ()
    assert added.partition_keys == ["2024-01-01", "2024-01-02", "2024-01-03", EVERYTHING]


def test_a_run_takes_no_files_but_those_that_were_seen_whole(customer: Dimension, tmp_path: Path) -> None:
    tick = Ticks(customer)
    (tmp_path / "customers_2024-01-01.csv").write_text("id,city\n1,Graz\n")
    tick(1)
    (tmp_path / "customers_2024-02-01.csv").write_text("id,ci")
    (request,) = tick(6).run_requests or ()
    (delivery,) = [d for d in discover_files(customer) if d.name == "2024-01-01"]
    assert taken(request) == {"2024-01-01": data_version(delivery)}
    assert taken(request)["2024-01-01"].endswith("Z, 15 bytes")


def test_what_a_failed_run_left_out_goes_with_the_next(customer: Dimension, tmp_path: Path) -> None:
    """And starts none by itself. What such a run marked is in, and so is all that a run without a fault was to take."""
    with dg.DagsterInstance.ephemeral() as instance:

        def ran(request: dg.RunRequest, *marked: str, fails: bool = False) -> None:
            @dg.op(name="load_dim_customer", config_schema={"files": dict})
            def take() -> None:
                for name in marked:
                    dg.OpExecutionContext.get().log_event(dg.AssetMaterialization("dim_customer", partition=name))
                if fails:
                    raise dg.Failure("the server is gone")

            @dg.job
            def takes() -> None:
                take()

            tags = {"dagster/run_key": str(request.run_key)}
            config = dict(request.run_config)
            takes.execute_in_process(config, instance=instance, tags=tags, raise_on_error=False)

        tick = Ticks(customer, instance)
        ran(tick.request(1, 2, folder=tmp_path), "2024-01-01", fails=True)
        assert not tick(30).run_requests
        second = tick.request(3, folder=tmp_path)
        assert sorted(taken(second)) == ["2024-01-02", "2024-01-03"]
        ran(second, fails=True)
        third = tick.request(4, folder=tmp_path)
        assert sorted(taken(third)) == ["2024-01-02", "2024-01-03", "2024-01-04"]
        ran(third)
        assert sorted(taken(tick.request(5, folder=tmp_path))) == ["2024-01-05"]


def test_the_cursor_stays_small(customer: Dimension, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """However many files there are; and of those that did not change only sizes and times are read."""
    tick = Ticks(customer)
    days = [dt.date(2001, 1, 1) + dt.timedelta(number) for number in range(2000)]
    for day in days:
        (tmp_path / f"customers_{day}.csv").touch()
    tick(1)
    (request,) = tick(6).run_requests or ()
    assert len(taken(request)) == len(days)
    assert len(str(tick.cursor)) < 8_000

    def unexpected(_: Any) -> str:
        raise AssertionError("a mark may read the content of a file")

    monkeypatch.setattr(arrivals, "data_version", unexpected)
    assert not tick(30).run_requests


def test_a_new_file_starts_a_run_without_those_that_dagster_shows_as_loaded(
    customer: Dimension, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Though they share a digest in the cursor; nor does a file that is removed. One that was never recorded does."""
    monkeypatch.setattr(arrivals, "_bucket", lambda _: "one")
    with dg.DagsterInstance.ephemeral() as instance:
        tick = Ticks(customer, instance)
        files = taken(tick.request(1, 2, 3, folder=tmp_path))
        for name in ("2024-01-01", "2024-01-02"):
            told = dg.AssetMaterialization("dim_customer_changes", partition=name, metadata={"file": files[name]})
            instance.report_runless_asset_event(told)
        (tmp_path / "customers_2024-01-03.csv").unlink()
        tick(30)
        assert not tick(30).run_requests
        (tmp_path / "customers_2024-01-02.csv").write_text("id,city\n1,Salzburg\n")
        assert sorted(taken(tick.request(4, folder=tmp_path))) == ["2024-01-02", "2024-01-04"]


def test_a_file_waits_for_no_other(customer: Dimension, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where they share a digest; and it is requested once."""
    monkeypatch.setattr(arrivals, "_bucket", lambda _: "one")
    tick, growing = Ticks(customer), tmp_path / "customers_2024-01-02.csv"
    (tmp_path / "customers_2024-01-01.csv").write_text("id,city\n1,Graz\n")
    requested = []
    for seconds in range(1, 5):
        growing.write_text("id,city\n" * seconds)
        requested += [taken(request) for request in tick(6).run_requests or ()]
    assert [sorted(one) for one in requested] == [["2024-01-01"]]
    (last,) = tick(6).run_requests or ()
    assert "2024-01-02" in taken(last)
    assert not tick(6).run_requests


def test_a_replaced_file_is_new_again(customer: Dimension, tmp_path: Path) -> None:
    """With a key of its own: Dagster remembers keys for ever."""
    tick, file = Ticks(customer), tmp_path / "customers_2024-01-01.csv"
    file.write_text("id,city\n1,Graz\n")
    tick(1)
    (first,) = tick(6).run_requests or ()
    file.write_text("id,city\n1,Linz\n")
    os.utime(file, (2_000_000_000, 2_000_000_000))
    assert not tick(30).run_requests
    (second,) = tick(6).run_requests or ()
    assert first.run_key != second.run_key


@pytest.mark.parametrize("told", ["versions: true", "partition: day"])
def test_each_commit_of_a_table_starts_a_run_at_once(told: str, tmp_path: Path) -> None:
    """A table with a commit between any two ticks is never at rest, and each commit is whole."""
    channel = f"{{path: table, format: delta, {told}}}"
    (tmp_path / "dim_customer.yaml").write_text(DECLARATION.replace('"customers_{date}.csv"', channel))
    log = tmp_path / "table" / "_delta_log"
    log.mkdir(parents=True)
    tick = Ticks(load_dimension(tmp_path / "dim_customer.yaml"))
    for version in range(3):
        (log / f"{version:020}.json").touch()
        assert len(tick(1).run_requests or ()) == 1
    assert not tick(6).run_requests


def test_a_table_of_files_waits_until_it_is_at_rest(tmp_path: Path) -> None:
    channel = "{path: table, format: parquet, partition: day}"
    (tmp_path / "dim_customer.yaml").write_text(DECLARATION.replace('"customers_{date}.csv"', channel))
    (tmp_path / "table" / "day=2024-01-01").mkdir(parents=True)
    (tmp_path / "table" / "day=2024-01-01" / "part.parquet").touch()
    tick = Ticks(load_dimension(tmp_path / "dim_customer.yaml"))
    assert "waiting for files that are still being written: table table" in str(tick(1).skip_reason)
    assert len(tick(6).run_requests or ()) == 1


@pytest.mark.parametrize("path", ["table", "s3://bucket/table"])
def test_a_table_that_is_not_there_starts_no_run(path: str, tmp_path: Path) -> None:
    """Nor does one that goes; one that is made anew does, though it has a version seen before."""
    channel = f'{{path: "{path}", format: delta, partition: day}}'
    (tmp_path / "dim_customer.yaml").write_text(DECLARATION.replace('"customers_{date}.csv"', channel))
    tick = Ticks(load_dimension(tmp_path / "dim_customer.yaml"))
    assert not tick(1).run_requests
    assert not tick(6).run_requests
    if path == "table":
        log = tmp_path / "table" / "_delta_log"
        for _ in range(2):
            log.mkdir(parents=True)
            (log / f"{0:020}.json").touch()
            assert len(tick(30).run_requests or ()) == 1
            shutil.rmtree(tmp_path / "table")
            assert not tick(30).run_requests


def test_a_file_may_have_any_name_that_its_path_allows(tmp_path: Path) -> None:
    """Also one that sounds like a table."""
    feed = '{feed: {path: "{delivery}.csv", effective_at: at}}'
    (tmp_path / "dim_customer.yaml").write_text(DECLARATION.replace('{snapshot: "customers_{date}.csv"}', feed))
    (tmp_path / "table orders.csv").write_text("id,city,at\n1,Graz,2024-01-01\n")
    tick = Ticks(load_dimension(tmp_path / "dim_customer.yaml"))
    tick(1)
    (request,) = tick(6).run_requests or ()
    assert set(taken(request)) == {"table orders"}


def test_a_new_instance_gets_the_partition_of_all_deliveries() -> None:
    """Each table that lacks it, also one that was declared later."""
    sensor = partitions_sensor("scd_partitions", ["dim_customer", "fct_sale"])
    with dg.DagsterInstance.ephemeral() as instance:
        instance.add_dynamic_partitions("fct_sale_deliveries", [EVERYTHING])
        result = sensor(dg.build_sensor_context(instance=instance))
        assert isinstance(result, dg.SensorResult)
        (request,) = result.dynamic_partitions_requests or ()
        assert (request.partitions_def_name, request.partition_keys) == ("dim_customer_deliveries", [EVERYTHING])
        instance.add_dynamic_partitions("dim_customer_deliveries", [EVERYTHING])
        assert isinstance(sensor(dg.build_sensor_context(instance=instance)), dg.SkipReason)


def test_a_change_of_the_dimension_starts_its_fact(customer: Dimension) -> None:
    """A run that changed nothing starts none; a table that was made anew does, though it has a version seen before."""
    fact = Fact(
        "fct_sale", {"n": "int"}, "at", {"customer": Role(customer)}, Source("till", feed=Feed("sales_{date}.csv"))
    )
    sensor = rekey_sensor(fact, _nothing)
    with dg.DagsterInstance.ephemeral() as instance:

        def tick(cursor: str | None) -> dg.SensorResult:
            result = sensor(dg.build_sensor_context(instance=instance, cursor=cursor))
            assert isinstance(result, dg.SensorResult)
            return result

        def materialized(version: int, opened: int) -> None:
            told = {"delta_version": version, "load/rows_opened": opened}
            instance.report_runless_asset_event(dg.AssetMaterialization("dim_customer", metadata=told))

        assert not tick(None).run_requests
        materialized(version=3, opened=2)
        first = tick(None)
        assert len(first.run_requests or ()) == 1
        assert not tick(first.cursor).run_requests
        materialized(version=3, opened=0)
        unchanged = tick(first.cursor)
        assert not unchanged.run_requests
        materialized(version=3, opened=2)
        anew = tick(unchanged.cursor)
        keys = [request.run_key for result in (first, anew) for request in result.run_requests or ()]
        assert len(set(keys)) == 2


# -- alerts


@contextmanager
def webhook() -> Iterator[tuple[str, list[Any]]]:
    """A receiver on this machine."""
    received: list[Any] = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            received.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(204)
            self.end_headers()

        def log_message(self, *_: Any) -> None:
            """Say nothing."""

    with http.server.HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/hook", received
        server.shutdown()
        thread.join()


@contextmanager
def mail_server() -> Iterator[tuple[str, list[str]]]:
    """As much of a mail server as takes one message."""
    received: list[str] = []

    class Handler(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            self.wfile.write(b"220 here\r\n")
            while line := self.rfile.readline().decode().strip():
                if line.upper() == "DATA":
                    self.wfile.write(b"354 go on\r\n")
                    text = []
                    while (told := self.rfile.readline().decode().rstrip("\r\n")) != ".":
                        text.append(told)
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


def test_a_failure_is_told_by_webhook_and_by_mail() -> None:
    with webhook() as (hook, posted), mail_server() as (mail, sent):
        environ = {"SCD_ALERT_WEBHOOK": hook, "SCD_ALERT_SMTP": mail, "SCD_ALERT_MAIL_TO": "ann@example.com"}
        attempts = send_alert("it failed", "two keys", {"run_id": "7"}, Environment.from_env(environ))
        assert [str(attempt) for attempt in attempts] == ["webhook", "email"]
    assert posted == [{"text": "it failed: two keys", "run_id": "7"}]
    assert "Subject: it failed" in sent[0]
    assert "run_id: 7" in sent[0]


def test_a_way_that_fails_keeps_no_other_from_being_tried() -> None:
    with mail_server() as (mail, sent):
        environ = {"SCD_ALERT_WEBHOOK": "http://127.0.0.1:9/", "SCD_ALERT_SMTP": mail, "SCD_ALERT_MAIL_TO": "a@b.c"}
        hook, email = send_alert("it failed", "two keys", {}, Environment.from_env(environ))
    assert hook.transport == "webhook" and hook.problem
    assert (str(email), len(sent)) == ("email", 1)


def test_where_nobody_is_named_nobody_is_told() -> None:
    assert send_alert("it failed", "two keys", {}, Environment.from_env({})) == []


@pytest.mark.parametrize(
    ("hook", "mail", "problem", "of_mail"),
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
def test_a_way_that_fails_is_told_without_its_address(hook: str, mail: str, problem: str, of_mail: str) -> None:
    environ = {"SCD_ALERT_WEBHOOK": hook, "SCD_ALERT_SMTP": mail, "SCD_ALERT_MAIL_TO": "tOkEn@b.c"}
    problems = [str(attempt) for attempt in send_alert("it failed", "two keys", {}, Environment.from_env(environ))]
    expected = [f"webhook failed: {problem}", *([f"email failed: {of_mail}"] if mail else [])]
    assert [text[: len(start)] for text, start in zip(problems, expected, strict=True)] == expected
    assert "tOkEn" not in "".join(problems)


@pytest.mark.parametrize(
    "error", [dg.Failure("stopped: 2024-02-01", allow_retries=False), ConnectionError("stopped: 2024-02-01")]
)
def test_a_run_that_fails_is_told_with_its_reason(error: Exception, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever it was that failed."""
    with webhook() as (hook, posted):
        monkeypatch.setenv("SCD_ALERT_WEBHOOK", hook)
        _tell_of_a_run_that_ends_with(error)
    (told,) = posted
    assert told["text"].removeprefix("breaks failed: ").removeprefix("ConnectionError: ") == "stopped: 2024-02-01"
    assert told["steps"] == "stop"


def test_word_that_could_not_be_sent_fails_the_tick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Dagster shows it, and goes on with the next failure."""
    monkeypatch.setenv("SCD_ALERT_WEBHOOK", "http://127.0.0.1:9/")
    with pytest.raises(dg.Failure, match=r"run .* failed, and its alert was not sent: webhook failed: "):
        _tell_of_a_run_that_ends_with(dg.Failure("rejected"))


def _tell_of_a_run_that_ends_with(error: Exception) -> None:
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
