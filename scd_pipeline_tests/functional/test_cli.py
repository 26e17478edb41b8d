"""The command line: its output and exit codes; a user's error never prints a stack trace."""

from __future__ import annotations

import errno
import io
import json
import os
import subprocess
import sys
import uuid
from collections.abc import Callable
from pathlib import Path

import pyarrow
import pyarrow.parquet
import pytest
from pyspark.sql import SparkSession

from scd_pipeline.cli import app as cli
from scd_pipeline.cli.context import Settings, _read_path
from scd_pipeline.delta.warehouse import Warehouse
from scd_pipeline.environment import EXAMPLE
from scd_pipeline.errors import LoadError, ScdError, SetupError
from scd_pipeline.exit_codes import ExitCode
from scd_pipeline.spark import doctor
from scd_pipeline_tests.semantics.specification import requirement

Scd = Callable[..., tuple[int, str, str]]

DECLARED = """\
dimension: dim_x
business_key: id
sources: {s: {snapshot: "x_{date}.csv"}}
attributes: {a: 2}
"""


@pytest.fixture
def scd(
    legislators: Warehouse,
    remote: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> Scd:
    """Runs a command on the warehouse of the example; returns exit code, standard output and standard error."""
    monkeypatch.setenv("SCD_WAREHOUSE", legislators.path)
    monkeypatch.setenv("SCD_REMOTE", remote)

    def run(*arguments: str) -> tuple[int, str, str]:
        code = cli.main(arguments)
        output = capsys.readouterr()
        assert "Traceback" not in output.err
        assert "\tat " not in output.err
        return code, output.out, output.err

    return run


def test_a_query_prints_an_aligned_table(scd: Scd) -> None:
    query = "SELECT party, count(*) AS members, null AS nothing FROM dim_legislator WHERE current_flag GROUP BY 1"
    code, out, err = scd("sql", f"{query} ORDER BY 2")
    assert code == 0
    assert out.splitlines() == [
        "party        members  nothing",
        "-----------  -------  -------",
        "Independent        3  NULL",
        "Democrat         261  NULL",
        "Republican       273  NULL",
    ]
    assert "3 rows" in err


@pytest.mark.slow(3)
def test_a_query_as_csv_and_json(scd: Scd) -> None:
    query = "SELECT delivery, bad_rows, run_id IS NULL AS x FROM dim_legislator_batches WHERE bad_rows > 0 ORDER BY 1"
    assert scd("sql", query, "--format", "csv")[1].splitlines()[0] == "delivery,bad_rows,x"
    assert scd("sql", "SELECT 1 AS a WHERE false", "--format", "json")[1] == "[]\n"
    assert json.loads(scd("sql", query, "--format", "json")[1]) == [
        {"delivery": "2013-01-02", "bad_rows": 78, "x": False},
        {"delivery": "2021-01-01", "bad_rows": 60, "x": False},
    ]


def test_a_history_is_written_as_parquet_with_the_types_of_its_columns(scd: Scd, tmp_path: Path) -> None:
    file = tmp_path / "history.parquet"
    assert scd("history", "dim_legislator", "bioguide=S001191", "--output", str(file))[0] == 0
    schema = pyarrow.parquet.read_schema(file)
    assert pyarrow.types.is_timestamp(schema.field("effective_from").type)


def test_a_fact_in_a_file_references_the_dimensions_of_its_folder(tmp_path: Path) -> None:
    (tmp_path / "dim_city.yaml").write_text(
        "dimension: dim_city\nbusiness_key: zip\nsources: {crm: {snapshot: {}}}\nattributes: {name: 2}\n"
    )
    (tmp_path / "fct_visit.yaml").write_text(
        "fact: fct_visit\ngrain: {visit: int}\nevent_time: visited_at\ndimensions: {city: dim_city}\n"
        "sources: {desk: {feed: {}}}\n"
    )
    loaded = _read_path(str(tmp_path / "fct_visit.yaml"))
    assert ([fact.name for fact in loaded.facts], loaded.dimensions) == (["fct_visit"], ())


def test_the_sentinel_can_be_shown(scd: Scd) -> None:
    out = scd("sql", "SELECT max(effective_to) AS m FROM dim_legislator")[1]
    assert out.splitlines()[2] == "9999-12-31 23:59:59"


def test_sql_without_a_query_lists_the_names(scd: Scd) -> None:
    of_both = ("", "_batches", "_changes", "_quarantine")
    of_dimension = ("_as_of", "_audit", "_current", "_in_force", "_keys")
    names = sorted(f"dim_legislator{suffix}" for suffix in (*of_both, *of_dimension))
    names += sorted(f"fct_committee_seat{suffix}" for suffix in (*of_both, "_dimension_versions", "_joined"))
    assert scd("sql")[1].splitlines() == names


def test_a_schema_without_tables_is_reported_by_its_name(
    spark: SparkSession, scd: Scd, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    schema = f"empty_{uuid.uuid4().hex}"
    spark.sql(f"CREATE SCHEMA {schema} LOCATION '{tmp_path}'")
    monkeypatch.setenv("SCD_SCHEMA", schema)
    assert scd("sql")[1] == f"no table is in {schema} yet\n"
    spark.sql(f"DROP SCHEMA {schema}")


@pytest.mark.slow
def test_views_are_queried_by_name(scd: Scd) -> None:
    _, out, _ = scd("sql", "SELECT count(*) FROM dim_legislator_current", "--format", "csv")
    _, same, _ = scd("sql", "SELECT count(*) FROM dim_legislator WHERE current_flag", "--format", "csv")
    assert out == same != ""
    query = "SELECT state FROM dim_legislator_as_of('2016-01-15') WHERE bioguide = 'S000033'"
    assert scd("sql", query, "--format", "csv")[1].splitlines()[1:] == ["VT"]
    query = "SELECT count(*) FROM fct_committee_seat_joined WHERE legislator_party IS NOT NULL"
    assert int(scd("sql", query, "--format", "csv")[1].splitlines()[1]) > 1000


@pytest.mark.slow(3)
def test_rows_of_a_file_are_joined_as_of_their_own_times(scd: Scd, tmp_path: Path) -> None:
    file = tmp_path / "votes.csv"
    file.write_text("voted_on,who\n2016-01-15,S000033\n2016-01-15,X000000\n2016,so,on\n", encoding="utf-8")
    arguments = ("as-of", "dim_legislator", "voted_on", "--join", str(file), "--key", "who", "--format", "json")
    _, out, err = scd(*arguments)
    rows = json.loads(out)
    expected = {("S000033", "VT"), ("X000000", None), (None, None)}
    assert {(row["who"], row["legislator_state"]) for row in rows} == expected
    assert list(rows[0])[:3] == ["voted_on", "who", "legislator_key"]
    assert "warning: " in err and "1 of its lines are not rows of its columns" in err
    out = scd(*arguments, "--tolerance", "0.5")[1]
    assert {row["legislator_state"] for row in json.loads(out)} == {None}, "the version is older than half a day"
    code, _, err = scd("as-of", "dim_legislator", "day", "--join", str(file), "--key", "who")
    assert code == 2
    assert "[COLUMN_NOT_FOUND]" in err
    code, _, err = scd("as-of", "dim_legislator", "voted_on", "--join", str(tmp_path / "votes.txt"), "--key", "who")
    assert code == 2
    assert "[FILE_FORMAT_UNKNOWN]" in err


def test_a_limit_is_reported(scd: Scd) -> None:
    code, out, err = scd("sql", "SELECT bioguide FROM dim_legislator ORDER BY 1", "--limit", "2")
    assert (code, len(out.splitlines())) == (0, 4)
    assert "these are the first 2 rows; --limit 0 shows all" in err


def test_a_history_shows_the_columns_that_differ(scd: Scd) -> None:
    out = scd("history", "dim_legislator", "bioguide=S001191")[1]
    head, _, *rows = out.splitlines()
    assert head.split()[:4] == ["bioguide", "version", "effective_from", "effective_to"]
    assert "first" not in head.split()
    assert len(rows) == 3
    assert "first" in scd("history", "dim_legislator", "bioguide=S001191", "--all")[1].splitlines()[0].split()


def test_as_of_a_time_with_conditions(scd: Scd) -> None:
    out = scd("as-of", "dim_legislator", "2016-01-01", "state=VT", "chamber=sen", "--format", "json")[1]
    assert {row["last"] for row in json.loads(out)} == {"Leahy", "Sanders"}
    later = scd("as-of", "dim_legislator", "2026-04-14T00:00:00Z", "state=VT", "chamber=sen", "--format", "json")[1]
    assert {row["last"] for row in json.loads(later)} == {"Sanders", "Welch"}


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["sql", "SELECT * FROM dim_legislators"], 2, "did you mean dim_legislator?"),
        (["sql", "SELEC 1"], 2, "Spark does not parse it as a query; expected a query (SELECT, WITH,"),
        (["sql", "SELECT foo FROM dim_legislator"], 2, "`foo` cannot be resolved"),
        (["sql", "SELECT int('a')"], 2, 'cannot be cast to "INT"'),
        (["sql", "SELECT 1 AS a, 2 AS a", "--format", "json"], 2, "[DUPLICATE_OUTPUT_COLUMN]"),
        (["sql", "SELECT 1", "--format", "parquet"], 2, "[OUTPUT_FILE_REQUIRED]"),
        (["as-of", "dim_legislator", "at", "--join", "not/there.csv"], 2, "[FILE_NOT_FOUND] not/there.csv"),
        (["as-of", "dim_legislator", "2016-13-01"], 2, "[INVALID_TIME] 2016-13-01"),
        (["as-of", "dim_legislator", "20160101"], 2, "[INVALID_TIME] 20160101"),
        (["as-of", "dim_legislater", "2016-01-01"], 2, "the nearest is dim_legislator"),
        (["as-of", "planets", "2016-01-01"], 5, "planets"),
        (["history", "dim_legislator", "bioguid=x"], 2, "did you mean bioguide?"),
        (["history", "dim_legislator", "bioguide"], 2, "[INVALID_CONDITION] bioguide"),
        (["audit", "fct_committee_seat"], 5, "fct_committee_seat_batches"),
        (["load", "dim_legislater"], 2, "did you mean dim_legislator?"),
        (["load", "--delivery", "2020"], 2, "2020"),
        (["sql", "SELECT 1", "--remote", "sc://127.0.0.1:1"], 5, "[SERVER_UNREACHABLE] sc://127.0.0.1:1"),
        (["sql", "SELECT 1", "--remote", "localhost"], 5, "expected sc://host:port"),
    ],
)
def test_an_error_has_an_exit_code_and_a_message(scd: Scd, arguments: list[str], code: int, message: str) -> None:
    exit_code, out, err = scd(*arguments)
    assert (exit_code, out) == (code, "")
    assert err.startswith("error: ")
    assert message in err


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--tolerance", "30"], "--key and --tolerance need --join"),
        (["--key", "id"], "--key and --tolerance need --join"),
        (["--join", "f.csv", "--tolerance", "nan"], "nan: expected a number of days"),
        (["--join", "f.csv", "--tolerance", "1e9"], "1000000000.0 is not in the range"),
    ],
)
def test_options_without_an_effect_are_rejected(scd: Scd, options: list[str], message: str) -> None:
    code, out, err = scd("as-of", "dim_legislator", "2016-01-01", *options)
    assert (code, out) == (2, "")
    assert message in err


def test_an_invalid_declaration_is_reported_with_its_line(scd: Scd, tmp_path: Path) -> None:
    file = tmp_path / "dim_x.yaml"
    file.write_text("dimension: dim_x\nbusines_key: id\nattributes: {a: 7}\n", encoding="utf-8")
    code, _, err = scd("plan", str(file))
    assert code == 2
    assert f"{file}:2: busines_key" in err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["laod"], "Did you mean 'load'?"),
        (["load", "--alow", "bad_rows"], "--allow"),
        (["load", "--allow", "everything"], "'bad_rows', 'retire_guard', 'control_totals', 'withdrawn'"),
        (["sql", "x", "--format", "xml"], "'parquet'"),
        (["history", "dim_x", "--limit", "-1"], "--limit"),
        (["history"], "DIMENSION"),
    ],
)
def test_invalid_arguments_end_with_2(arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(arguments) == 2
    errors = capsys.readouterr().err
    assert "Usage: scd" in errors and message in errors


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[Settings]:
    """The settings of each command that tried to open its warehouse, which fails."""
    settings: list[Settings] = []

    def fail(own: Settings, **_: object) -> None:
        settings.append(own)
        raise SetupError("TABLE_NOT_LOADED", "dim_x", table="dim_x", warehouse="w")

    monkeypatch.setattr(Settings, "open", fail)
    return settings


def test_options_are_valid_before_and_after_the_command(
    opened: list[Settings], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)

    def settings(*arguments: str, **environ: str) -> Settings:
        for name in ("WAREHOUSE", "REMOTE", "DECLARATIONS"):
            monkeypatch.setenv(f"SCD_{name}", environ.get(name, ""))
        assert cli.main([*arguments]) == 5
        return opened[-1]

    environ = {"WAREHOUSE": "/e", "REMOTE": "sc://e"}
    assert settings("audit", "d", **environ).warehouse == "/e"
    assert settings("--warehouse", "/a", "audit", "d", **environ).warehouse == "/a"
    assert settings("--warehouse", "/a", "audit", "d", "--warehouse", "/b", **environ).warehouse == "/b"
    assert settings("audit", "d", **environ).remote == "sc://e"
    assert settings("audit", "d", "--remote", "", **environ).remote == ""
    assert settings("audit", "d", DECLARATIONS="/d").declarations == Path("/d")
    assert settings("audit", "d", "--declarations", "/f", DECLARATIONS="/d").declarations == Path("/f")
    assert settings("audit", "d").declarations is None
    assert settings("audit", "d").warehouse_path == str(tmp_path / "warehouse")
    assert settings("audit", "d", "--warehouse", "s3://b/w").warehouse_path == "s3://b/w"
    (tmp_path / "declarations").mkdir()
    assert settings("audit", "d").declarations == tmp_path / "declarations"
    assert settings("audit", "d", DECLARATIONS="/d").declarations == Path("/d")
    monkeypatch.chdir(EXAMPLE.parent.parent)
    assert settings("audit", "d").declarations == EXAMPLE


def test_every_error_has_a_documented_exit_code(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["--help"]) == 0
    help_text = capsys.readouterr().out
    classes = [ScdError]
    for error_class in classes:
        classes += error_class.__subclasses__()
        assert ExitCode(error_class.exit_code).meaning in help_text


def test_completion_scripts_complete_declared_tables(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert cli.main(["completion", "zsh"]) == 0
    assert "_SCD_COMPLETE=zsh_complete" in capsys.readouterr().out
    monkeypatch.setenv("SCD_DECLARATIONS", str(EXAMPLE))
    environ = {**os.environ, "_SCD_COMPLETE": "zsh_complete", "COMP_WORDS": "scd load dim_", "COMP_CWORD": "2"}
    program = "from scd_pipeline.cli.app import main; main([])"
    done = subprocess.run([sys.executable, "-c", program], env=environ, capture_output=True, text=True, check=False)
    assert "dim_legislator" in done.stdout


def test_version_names_the_engine(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["version"]) == 0
    assert "pyspark 4.2.0" in capsys.readouterr().out.splitlines()


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (SetupError("JAVA_MISSING"), 5),
        (LoadError("NO_WAY_TO_WRITE"), 4),
        (PermissionError(errno.EACCES, "Permission denied", "/jars"), 5),
        (KeyboardInterrupt(), 130),
    ],
)
def test_errors_become_exit_codes(
    error: BaseException, code: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr(doctor, "diagnose", fail)
    assert cli.main(["doctor"]) == code
    assert "Traceback" not in capsys.readouterr().err


def test_an_unexpected_error_is_not_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(doctor, "diagnose", fail)
    with pytest.raises(ZeroDivisionError):
        cli.main(["doctor"])


def test_a_character_that_the_terminal_lacks_is_escaped(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = io.TextIOWrapper(io.BytesIO(), encoding="latin-1")
    monkeypatch.setattr(sys, "stdout", stream)
    monkeypatch.setattr(doctor, "diagnose", lambda *_, **__: [doctor.Diagnosis("Warehouse", "Łódź")])
    assert cli.main(["doctor"]) == 0
    stream.flush()
    assert "\\u0141ód\\u017a" in stream.buffer.getvalue().decode("latin-1")  # type: ignore[attr-defined]


def test_the_doctor_reports_the_version_of_spark(scd: Scd) -> None:
    _, out, _ = scd("doctor")
    assert "ok   Spark: 4.2.0" in out.splitlines()


def test_declarations_need_no_spark() -> None:
    program = (
        "import sys, scd_pipeline, scd_pipeline.cli.app\n"
        "scd_pipeline.Dimension('d', 'id', {'a': 1}, scd_pipeline.Source('s', snapshot='x_{date}.csv'))\n"
        "scd_pipeline.cli.app.main(['--help'])\n"
        "assert not {'pyspark', 'dagster', 'delta', 'pandas', 'pyarrow', 'rich'} & set(sys.modules)\n"
        "assert scd_pipeline.Warehouse.__name__ == 'Warehouse' and 'pyspark' in sys.modules\n"
        "assert all(hasattr(scd_pipeline, name) for name in scd_pipeline.__all__)\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


@pytest.mark.slow
def test_deliveries_of_one_date_are_listed_with_their_channels(
    remote: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """`--delivery` selects them by these names."""
    sources = (
        "{crm: {snapshot: 'c_{date}.csv', attributes: a, existence: true}, s: {feed: 's_{date}.csv', attributes: b}}"
    )
    text = f"dimension: dim_x\nbusiness_key: id\nsources: {sources}\nattributes: {{a: 2, b: 1}}\n"
    (tmp_path / "dim_x.yaml").write_text(text, encoding="utf-8")
    for name, attribute in (("c", "a"), ("s", "b")):
        (tmp_path / f"{name}_2024-01-01.csv").write_text(f"id,{attribute}\n1,u\n", encoding="utf-8")
    monkeypatch.setenv("SCD_WAREHOUSE", str(tmp_path / "warehouse"))
    monkeypatch.setenv("SCD_REMOTE", remote)
    names = ["crm.snapshot.2024-01-01", "s.feed.2024-01-01"]
    chosen = [argument for name in names for argument in ("--delivery", name)]
    assert cli.main(["load", str(tmp_path / "dim_x.yaml"), *chosen]) == 0
    rows = [line.split()[:2] for line in capsys.readouterr().out.splitlines()]
    assert [row for row in rows if "accepted" in row] == [[name, "accepted"] for name in names]


@pytest.mark.rule("S31")
@pytest.mark.parametrize("personal", [False, True])
def test_bad_rows_of_a_rejected_delivery_are_shown_and_nothing_is_written(
    personal: bool, remote: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    attribute = f"{{scd: 2, type: int, personal: {str(personal).lower()}}}"
    sources = "{s: {snapshot: 'x_{date}.csv'}}"
    text = f"dimension: dim_x\nbusiness_key: id\nsources: {sources}\nattributes: {{a: {attribute}}}\n"
    (tmp_path / "dim_x.yaml").write_text(text, encoding="utf-8")
    (tmp_path / "x_2024-01-01.csv").write_text("id,a\n1,seven\n", encoding="utf-8")
    monkeypatch.setenv("SCD_WAREHOUSE", str(tmp_path / "warehouse"))
    monkeypatch.setenv("SCD_REMOTE", remote)
    assert cli.main(["plan", str(tmp_path / "dim_x.yaml"), "--bad-rows"]) == 3
    out = capsys.readouterr().out
    assert "id=1" in out and "cannot cast" in out
    assert ("seven" in out) is not personal
    assert not (tmp_path / "warehouse" / "dim_x").exists()


@pytest.mark.slow
def test_commands_alone_create_a_warehouse_from_declarations(
    spark: SparkSession,
    remote: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Load, status, check and audit; a table damaged by hand fails the check, which names the key."""
    (tmp_path / "dim_x.yaml").write_text(DECLARED, encoding="utf-8")
    (tmp_path / "x_2024-01-01.csv").write_text("id,a\n1,u\n2,v\n", encoding="utf-8")
    for name, value in (("WAREHOUSE", "warehouse"), ("DECLARATIONS", "dim_x.yaml")):
        monkeypatch.setenv(f"SCD_{name}", str(tmp_path / value))
    monkeypatch.setenv("SCD_REMOTE", remote)

    def scd(*arguments: str) -> tuple[int, list[str]]:
        code, output = cli.main(arguments), capsys.readouterr()
        assert "error:" not in output.err, output.err
        return code, [line.strip() for line in output.out.splitlines()]

    assert scd("load")[0] == 0
    (tmp_path / "x_2024-02-01.csv").write_text("id,a\n1,w\n", encoding="utf-8")
    code, lines = scd("status")
    assert code == 0
    assert any("2024-01-01" in line and line.startswith("dim_x") for line in lines)
    assert lines[-1].startswith("1 table: 1 pending delivery, 0 bad rows")
    assert scd("status", "--plan")[1][-1].startswith("1 table: 1 pending delivery, 0 rejected, 0 bad rows")
    assert scd("load", "--delivery", "2024-02-01")[0] == 0
    code, lines = scd("audit", "dim_x", "id=2")
    assert code == 0
    kinds = [value for line in lines for value in line.split() if value in ("INSERT", "UPDATE", "LOGICAL_DELETE")]
    assert kinds == ["INSERT", "LOGICAL_DELETE"]
    assert scd("check")[0] == 0
    damaged = Warehouse(spark, tmp_path / "warehouse").table("dim_x").identifier
    spark.sql(f"UPDATE {damaged} SET current_flag = true WHERE id = '2'")
    code, lines = scd("check")
    assert code != 0
    assert any(line.startswith("dim_x: current_versions_are_open: failed (1): id=2") for line in lines)
    assert any(line.split()[1:] == ["windows_do_not_overlap", "passed", "0"] for line in lines)
    assert lines[-1] == "15 checks: 12 passed, 3 failed"


@pytest.mark.slow
@requirement("F30")
def test_a_table_of_another_program_is_repaired(
    spark: SparkSession,
    remote: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Two writers have left two current versions."""
    (tmp_path / "dim_x.yaml").write_text(DECLARED, encoding="utf-8")
    monkeypatch.setenv("SCD_REMOTE", remote)
    arguments = ("--warehouse", str(tmp_path / "warehouse"), "--declarations", str(tmp_path / "dim_x.yaml"))
    table = Warehouse(spark, tmp_path / "warehouse").table("dim_x")
    window = "effective_from, timestamp'9999-12-31 23:59:59' AS effective_to, true AS current_flag"
    rows = "VALUES (1, '7', 'u', timestamp'2024-01-01'), (2, '7', 'v', timestamp'2024-02-01')"
    columns = f"SELECT x_key, id, a, {window} FROM {rows} AS t(x_key, id, a, effective_from)"
    spark.sql(f"CREATE TABLE {table.identifier} USING delta AS {columns}")
    for option, last in (("--dry-run", "1 to close; nothing was written"), ("--actor=ann", "table version 1")):
        assert cli.main(("repair", "dim_x", "--without-log", option, *arguments)) == 0
        output = capsys.readouterr()
        assert last in output.out + output.err
    assert table.read().where("current_flag").select("a").collect() == [("v",)]
