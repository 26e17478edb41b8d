"""Secrets are stored nowhere, personal values only in the tables (S31).

The test plants them in settings and deliveries, runs everything once, and searches all output. The run in an embedded
session also shows that such a session loads and reads each kind of table.
"""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
import uuid
from collections.abc import Sequence
from pathlib import Path

import pytest

from scd_pipeline.spark.installation import Installation
from scd_pipeline_tests import servers

ROOT = Path(__file__).parents[2]
DECLARATION = """
dimension: dim_person
business_key: id
sources:
  crm: {snapshot: "people_{date}.csv", attributes: [birthday, email, city], existence: true, bad_row_limit: 0.9}
  web: {feed: {path: "web_{date}.csv.gz", effective_at: at, deletes: "flag = 1"}, attributes: phone}
  app: {feed: {path: "app_{date}.json", deletes: "removed = 'yes'"}, attributes: nick}
attributes:
  birthday: {scd: 0, type: date, personal: true}
  email: {scd: 1, personal: true}
  city: {scd: 2, personal: true}
  phone: {scd: 2, personal: true}
  nick: {scd: 2, type: int, personal: true}
---
fact: fct_visit
grain: {visit: int}
event_time: at
dimensions: {person: dim_person}
measures: {minutes: int}
sources:
  desk: {feed: "visits_{date}.csv"}
"""
QUERIES = {
    "versions": "SELECT id, version, effective_from, current_flag FROM dim_person WHERE id IS NOT NULL",
    "audit": "SELECT id, change_type, change_ts FROM dim_person_audit",
    "current": "SELECT id, version FROM dim_person_current",
    "as of": "SELECT id, version FROM dim_person_as_of(TIMESTAMP '2024-01-01 12:00:00')",
    "facts": "SELECT visit, minutes, person_key = -1 AS is_unknown FROM fct_visit",
    "joined": "SELECT visit, person_birthday FROM fct_visit_joined",
}
"""Queries of tables and views, without personal values except for a date that is not planted."""
ROWS = {
    "versions": [["1", "1", "2024-01-01 00:00:00", "True"]],
    "audit": [["1", "INSERT", "2024-01-01 00:00:00"], ["1", "OVERWRITE", "2024-02-01 00:00:00"]],
    "current": [["1", "1"]],
    "as of": [["1", "1"]],
    "facts": [["1", "10", "True"], ["2", "20", "False"]],
    "joined": [["1", "None"], ["2", "1990-01-01"]],
}
"""The rows of these queries: the second person has bad rows only, and the first visit is before the first snapshot."""


def deliver(folder: Path, value: str) -> None:
    """Write accepted deliveries, with and without bad rows, and one rejected delivery for each reason."""
    (folder / "people.yaml").write_text(DECLARATION, encoding="utf-8")
    (folder / "visits_2024-04-01.csv").write_text(
        "visit,at,id,minutes\n1,2023-12-31,1,10\n2,2024-01-15,1,20\n", encoding="utf-8"
    )
    header = "id,birthday,email,city\n"
    people = {
        "2024-01-01": f"{header}1,1990-01-01,{value}1,{value}2\n",
        "2024-02-01": f"{header}1,1990-01-01,{value}3,{value}2\n2,{value}4,{value}5,{value}6\n3,{value}7\n",
        "without-header": f"4,1990-01-01,{value}8,{value}9\n",
        "without-order": f"{header}5,1990-01-01,{value}10,{value}11\n5,1990-01-01,{value}12,{value}13\n",
        "other-header": f"id,birthday,{value}14,city\n6,1990-01-01,{value}15,{value}16\n",
    }
    for number, (name, text) in enumerate(people.items(), 1):
        day = name if name.startswith("2024") else f"2024-0{number}-01"
        (folder / f"people_{day}.csv").write_text(text, encoding="utf-8")
    rows = "".join(f"{n},2024-01-01,0,{value}{uuid.uuid4().hex}\n" for n in range(20_000))
    web = ("1,2024-01-01,0,17\n", f"1,2024-01-02,{value}18,{value}19\n", rows)
    for day, text in enumerate(web, 1):
        packed = gzip.compress(f"id,at,flag,phone\n{text}".encode())
        (folder / f"web_2024-01-0{day}.csv.gz").write_bytes(packed[: len(packed) // 2] if text is rows else packed)
    (folder / "app_2024-01-01.json").write_text(f'{{"id": "1", "nick": "{value}20", "removed": "no"}}\n')


def run_commands(commands: Sequence[str]) -> None:
    from scd_pipeline.cli import app as cli

    for command in commands:
        print(f"$ {command}: {cli.main([command])}", flush=True)


def show_rows() -> None:
    """Print the rows of tables and views, as another session reads them."""
    from scd_pipeline import Pipeline
    from scd_pipeline.declaration import read_declarations

    facts = read_declarations(Path(os.environ["SCD_DECLARATIONS"])).facts
    with Pipeline(os.environ["SCD_WAREHOUSE"]) as pipeline:
        for name, query in QUERIES.items():
            rows = sorted([str(value) for value in row] for row in pipeline.sql(query, facts=facts).collect())
            print(f"$ {name}: {json.dumps(rows)}", flush=True)


def run_dagster() -> None:
    """Run the load, which fails, and then its alert, which fails too, and the checks."""
    import dagster as dg

    from scd_pipeline.components import alert_sensor
    from scd_pipeline.definitions import defs
    from scd_pipeline.deliveries.partitions import EVERYTHING

    job = defs.resolve_job_def("dim_person_job")
    with dg.DagsterInstance.get() as instance:
        instance.add_dynamic_partitions(str(getattr(job.partitions_def, "name", "")), [EVERYTHING])
        result = job.execute_in_process(instance=instance, partition_key=EVERYTHING, raise_on_error=False)
        context = dg.build_run_status_sensor_context(
            sensor_name="alerts",
            dagster_instance=instance,
            dagster_run=result.dagster_run,
            dagster_event=result.get_run_failure_event(),
        ).for_run_failure()
        try:
            alert_sensor()(context)
        except dg.Failure as failure:
            print(f"$ alert: {failure.description}")
        defs.resolve_job_def("check_dim_person_job").execute_in_process(instance=instance, raise_on_error=False)


@pytest.mark.rule("S31")
@pytest.mark.xdist_group("secrets")  # needs no fixture of the other files of the folder
@pytest.mark.parametrize(
    ("session_kind", "commands"),
    [
        pytest.param("server", "load plan status check dagster", marks=pytest.mark.slow(60)),
        pytest.param("embedded", "load rows", marks=pytest.mark.slow(60)),
    ],
)
def test_planted_values_are_not_written(
    session_kind: str, commands: str, remote: str, installation: Installation, tmp_path: Path
) -> None:
    if session_kind == "server" and not remote:
        pytest.skip("the tests have no server")
    value, secret = (f"{prefix}{uuid.uuid4().hex[:8]}x" for prefix in ("vAlUe", "tOkEn"))
    landing, home, cwd = (tmp_path / name for name in ("landing", "dagster", "cwd"))
    for folder in (landing, home, cwd):
        folder.mkdir()
    deliver(landing, value)
    (home / "dagster.yaml").write_text("telemetry: {enabled: false}\n", encoding="utf-8")
    settings = {
        "PYTHONPATH": str(ROOT),
        "DAGSTER_HOME": str(home),
        "SCD_DECLARATIONS": str(landing),
        "SCD_WAREHOUSE": str(tmp_path / "warehouse"),
        "SCD_REMOTE": f"{remote}/;x-key={secret}" if session_kind == "server" else "",
        "SCD_ALERT_WEBHOOK": f"http://127.0.0.1:9/{secret}",
        "SCD_ALERT_MAIL_TO": f"{value}@example.com",
        "SCD_ALERT_SMTP": "127.0.0.1:9",
        "SCD_ALERT_SMTP_USER": secret,
        "SCD_ALERT_SMTP_PASSWORD": secret,
        # The second compiler takes more time than its code saves in a process of a minute.
        "JAVA_TOOL_OPTIONS": "-XX:TieredStopAtLevel=1",
    }
    done = subprocess.run(
        [sys.executable, "-m", __name__, *commands.split()],
        cwd=cwd,
        # PySpark records the kind of session of a process in environment variables.
        env={**{name: setting for name, setting in os.environ.items() if not name.startswith("SPARK_")}, **settings},
        capture_output=True,
        text=True,
        check=False,
        timeout=1200,
    )
    written = {"stdout": done.stdout, "stderr": done.stderr}
    for folder in (home, cwd):
        for file in folder.rglob("*"):
            if file.is_file():
                written[str(file)] = file.read_bytes().decode("utf-8", "replace")
    if server := servers.find_server(servers.folder(), servers.settings(installation)):
        written[server.log] = Path(server.log).read_text(encoding="utf-8", errors="replace")
    leaks = [
        f"{name}: {line[max(0, line.index(planted) - 200) : line.index(planted) + 50]}"
        for name, text in written.items()
        for line in text.splitlines()
        for planted in (value, secret)
        if planted in line
    ]
    assert not leaks, "\n".join(leaks)
    assert done.returncode == 0, done.stderr
    expected_texts = ["COLUMN_MISSING", "UNREADABLE_DELIVERY", "UNORDERED_CHANGES", "$ load: 3"]
    expected_texts += ["BAD_ROWS", "deletes: the expression fails for the row"]
    if "dagster" in commands:
        expected_texts += ["$ check: 0", "$ alert: run ", "webhook failed: ConnectionRefusedError"]
    assert [text for text in expected_texts if text not in done.stdout + done.stderr] == [], (
        f"{done.stdout}\n{done.stderr}"
    )
    assert "\tat " not in done.stderr
    if "rows" in commands:
        printed = (line.removeprefix("$ ").partition(": ") for line in done.stdout.splitlines())
        rows = {name: json.loads(text) for name, _, text in printed if name in QUERIES}
        assert rows == ROWS


if __name__ == "__main__":
    run_commands([command for command in sys.argv[1:] if command not in ("rows", "dagster")])
    if "rows" in sys.argv:
        show_rows()
    if "dagster" in sys.argv:
        run_dagster()
