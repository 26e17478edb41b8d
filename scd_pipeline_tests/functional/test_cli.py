"""The command line: what it prints, and its exit codes; never a stack trace for a fault of the user's."""

from __future__ import annotations

import json
import subprocess
import sys
import uuid
from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from scd_pipeline.cli import app as cli
from scd_pipeline.cli import commands
from scd_pipeline.delta.warehouse import Warehouse
from scd_pipeline.environment import EXAMPLE
from scd_pipeline.errors import LoadError, SetupError

Scd = Callable[..., tuple[int, str, str]]


@pytest.fixture
def scd(
    congress: tuple[Warehouse, list[str]],
    remote: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> Scd:
    """Run a command on the demo's warehouse.  Out: exit code, standard output, standard error."""
    monkeypatch.setenv("SCD_WAREHOUSE", congress[0].path)
    monkeypatch.setenv("SCD_REMOTE", remote)

    def run(*arguments: str) -> tuple[int, str, str]:
        code = cli.main(arguments)
        told = capsys.readouterr()
        assert "Traceback" not in told.err
        assert "\tat " not in told.err
        return code, told.out, told.err

    return run


def test_a_query_is_answered_by_an_aligned_table(scd: Scd) -> None:
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


def test_a_query_as_csv_and_json(scd: Scd) -> None:
    query = "SELECT delivery, bad_rows, run_id IS NULL AS x FROM dim_legislator_batches WHERE bad_rows > 0 ORDER BY 1"
    assert scd("sql", query, "--format", "csv")[1].splitlines()[0] == "delivery,bad_rows,x"
    assert scd("sql", "SELECT 1 AS a WHERE false", "--format", "json")[1] == ""
    out = scd("sql", query, "--format", "json")[1]
    assert [json.loads(line) for line in out.splitlines()] == [
        {"delivery": "2013-01-02", "bad_rows": 78, "x": False},
        {"delivery": "2021-01-01", "bad_rows": 60, "x": False},
    ]


def test_the_sentinel_can_be_shown(scd: Scd) -> None:
    out = scd("sql", "SELECT max(effective_to) AS m FROM dim_legislator")[1]
    assert out.splitlines()[2] == "9999-12-31 23:59:59"


def test_no_query_shows_the_names(scd: Scd) -> None:
    of_both = ("", "_batches", "_changes", "_quarantine")
    of_dimension = ("_as_of", "_audit", "_current", "_in_force", "_keys")
    names = sorted(f"dim_legislator{suffix}" for suffix in (*of_both, *of_dimension))
    names += sorted(f"fct_committee_seat{suffix}" for suffix in (*of_both, "_joined"))
    assert scd("sql")[1].splitlines() == names


def test_where_there_is_no_table_is_told_by_the_schema(
    spark: SparkSession, scd: Scd, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    schema = f"empty_{uuid.uuid4().hex}"
    spark.sql(f"CREATE SCHEMA {schema} LOCATION '{tmp_path}'")
    monkeypatch.setenv("SCD_SCHEMA", schema)
    assert scd("sql")[1] == f"no table is in {schema} yet\n"
    spark.sql(f"DROP SCHEMA {schema}")


def test_ready_readings_are_asked_by_name(scd: Scd) -> None:
    _, out, _ = scd("sql", "SELECT count(*) FROM dim_legislator_current", "--format", "csv")
    _, same, _ = scd("sql", "SELECT count(*) FROM dim_legislator WHERE current_flag", "--format", "csv")
    assert out == same != ""
    query = "SELECT state FROM dim_legislator_as_of('2016-01-15') WHERE bioguide = 'S000033'"
    assert scd("sql", query, "--format", "csv")[1].splitlines()[1:] == ["VT"]
    query = "SELECT count(*) FROM fct_committee_seat_joined WHERE legislator_party IS NOT NULL"
    assert int(scd("sql", query, "--format", "csv")[1].splitlines()[1]) > 1000


def test_rows_of_a_file_are_joined_as_of_their_own_times(scd: Scd, tmp_path: Path) -> None:
    file = tmp_path / "votes.csv"
    file.write_text("voted_on,who\n2016-01-15,S000033\n2016-01-15,nobody\n2016,so,on\n", encoding="utf-8")
    asked = ("as-of", "dim_legislator", "voted_on", "--join", str(file), "--key", "who", "--format", "json")
    _, out, err = scd(*asked)
    told = [json.loads(line) for line in out.splitlines()]
    expected = {("S000033", "VT"), ("nobody", None), (None, None)}
    assert {(row["who"], row["legislator_state"]) for row in told} == expected
    assert list(told[0])[:3] == ["voted_on", "who", "legislator_key"]
    assert "warning: " in err and "1 of its lines are no rows of its columns" in err
    code, _, err = scd("as-of", "dim_legislator", "day", "--join", str(file), "--key", "who")
    assert code == 2
    assert "there is no column day; expected the column of each row's time" in err
    code, _, err = scd("as-of", "dim_legislator", "voted_on", "--join", str(tmp_path / "votes.txt"), "--key", "who")
    assert code == 2
    assert "expected a file that ends in .csv, .json or .parquet" in err


def test_a_limit_is_told(scd: Scd) -> None:
    code, out, err = scd("sql", "SELECT bioguide FROM dim_legislator ORDER BY 1", "--limit", "2")
    assert (code, len(out.splitlines())) == (0, 4)
    assert "these are the first 2 rows; --limit 0 shows all" in err


def test_a_history_shows_what_differs(scd: Scd) -> None:
    out = scd("history", "dim_legislator", "bioguide=S001191")[1]
    head, _, *rows = out.splitlines()
    assert head.split()[:4] == ["bioguide", "version", "effective_from", "effective_to"]
    assert "first" not in head.split()
    assert len(rows) == 3
    assert "first" in scd("history", "dim_legislator", "bioguide=S001191", "--all")[1].splitlines()[0].split()


def test_as_of_a_time_with_conditions(scd: Scd) -> None:
    out = scd("as-of", "dim_legislator", "2016-01-01", "state=VT", "chamber=sen", "--format", "json")[1]
    assert {json.loads(line)["last"] for line in out.splitlines()} == {"Leahy", "Sanders"}
    later = scd("as-of", "dim_legislator", "2026-04-14T00:00:00Z", "state=VT", "chamber=sen", "--format", "json")[1]
    assert {json.loads(line)["last"] for line in later.splitlines()} == {"Sanders", "Welch"}


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["sql", "SELECT * FROM dim_legislators"], 2, "there is: dim_legislator, dim_legislator_as_of, "),
        (["sql", "SELEC 1"], 2, "Spark does not parse it as a query; expected a query (SELECT, WITH,"),
        (["sql", "SELECT foo FROM dim_legislator"], 2, "`foo` cannot be resolved"),
        (["sql", "SELECT int('a')"], 2, 'cannot be cast to "INT"'),
        (["as-of", "dim_legislator", "at", "--join", "not/there.csv"], 2, "not/there.csv: there is no such file; exp"),
        (["as-of", "dim_legislator", "2016-13-01"], 2, "2016-13-01 is no time; expected one as 2016-01-01"),
        (["as-of", "dim_senator", "2016-01-01"], 5, "there is dim_legislator, fct_committee_seat; load it first"),
        (
            ["history", "dim_legislator", "name=x"],
            2,
            "expected COLUMN=VALUE with a column of the table: legislator_key",
        ),
        (["history", "dim_legislator", "bioguide"], 2, "bioguide: expected COLUMN=VALUE"),
        (["audit", "fct_committee_seat"], 5, "a fact has no audit, but its deliveries in fct_committee_seat_batches"),
        (["load", "dim_senator"], 2, "neither a file or folder, nor a dimension or fact of"),
        (["load", "--delivery", "2020"], 3, "no delivery 2020 at"),
        (["sql", "SELECT 1", "--remote", "sc://127.0.0.1:1"], 5, "[SERVER_UNREACHABLE] sc://127.0.0.1:1"),
        (["sql", "SELECT 1", "--remote", "localhost"], 5, "expected sc://host:port"),
    ],
)
def test_a_fault_is_told_in_a_line(scd: Scd, arguments: list[str], code: int, message: str) -> None:
    got, out, err = scd(*arguments)
    assert (got, out) == (code, "")
    assert err.startswith("error: ")
    assert message in err


def test_a_wrong_declaration_is_told_by_line(scd: Scd, tmp_path: Path) -> None:
    file = tmp_path / "dim_x.yaml"
    file.write_text("dimension: dim_x\nbusines_key: id\nattributes: {a: 7}\n", encoding="utf-8")
    code, _, err = scd("plan", str(file))
    assert code == 2
    assert f"{file}:2: busines_key" in err


@pytest.mark.parametrize(
    "arguments", [[], ["sing"], ["load", "--allow", "everything"], ["sql", "x", "--format", "xml"]]
)
def test_wrong_arguments_end_with_2(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        cli.main(arguments)
    assert ended.value.code == 2
    assert "usage: scd" in capsys.readouterr().err


def test_conditions_stand_before_and_after_options() -> None:
    as_of = ["as-of", "dim_x", "2024-01-15"]
    for told in (["a=1", "b=2", "--limit", "3"], ["--limit", "3", "a=1", "b=2"], ["a=1", "--limit", "3", "b=2"]):
        options = cli.parsed([*as_of, *told])
        assert (options.where, options.limit) == (["a=1", "b=2"], 3)


@pytest.mark.parametrize("told", [["--limt", "3"], ["a=1", "--limit", "3", "b"], ["--limit", "-1"]])
def test_what_is_neither_option_nor_condition_is_refused(told: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        cli.parsed(["history", "dim_x", *told])
    assert "error: " in capsys.readouterr().err


def test_the_demo_loads_nothing_else(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("SCD_DECLARATIONS", "elsewhere")
    assert cli.main(["demo"]) == 2
    assert "unset SCD_DECLARATIONS" in capsys.readouterr().err


def test_options_are_taken_before_and_after_the_command() -> None:
    def settings(*arguments: str) -> commands.Settings:
        environ = {"SCD_WAREHOUSE": "/e", "SCD_REMOTE": "sc://e", "SCD_DECLARATIONS": "/d"}
        return cli.settings(cli.parser().parse_args(arguments), environ)

    assert settings("sql").warehouse == "/e"
    assert settings("--warehouse", "/a", "sql").warehouse == "/a"
    assert settings("--warehouse", "/a", "sql", "--warehouse", "/b").warehouse == "/b"
    assert (settings("sql").remote, settings("sql", "--remote", "").remote) == ("sc://e", "")
    assert settings("load").declarations == Path("/d")
    assert settings("load", "--declarations", "/f").declarations == Path("/f")
    assert cli.settings(cli.parser().parse_args(["load"]), {}).declarations == EXAMPLE
    assert cli.settings(cli.parser().parse_args(["load"]), {}).warehouse_path == str(Path("warehouse").absolute())
    assert settings("sql", "--warehouse", "s3://b/w").warehouse_path == "s3://b/w"


@pytest.mark.parametrize(
    ("error", "code"), [(SetupError("none"), 5), (LoadError("lost"), 4), (KeyboardInterrupt(), 130)]
)
def test_errors_become_exit_codes(
    error: BaseException, code: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(*_: object) -> None:
        raise error

    monkeypatch.setattr(commands, "doctor", fail)
    assert cli.main(["doctor"]) == code
    assert "Traceback" not in capsys.readouterr().err


def test_a_fault_of_the_program_is_not_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(commands, "doctor", fail)
    with pytest.raises(ZeroDivisionError):
        cli.main(["doctor"])


def test_the_doctor_tells_what_is_there(scd: Scd) -> None:
    _, out, _ = scd("doctor")
    assert "ok   Spark: 4.2.0" in out.splitlines()


def test_the_demo_of_an_installed_package_says_where_its_data_is(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setattr("scd_pipeline.cli.demo.EXAMPLE", tmp_path / "none")
    assert cli.main(["demo"]) == 5
    assert "clone the project and run `make demo` there" in capsys.readouterr().err


def test_declarations_need_no_spark() -> None:
    program = (
        "import sys, scd_pipeline, scd_pipeline.cli.app\n"
        "scd_pipeline.Dimension('d', 'id', {'a': 1}, scd_pipeline.Source('s', snapshot='x_{date}.csv'))\n"
        "scd_pipeline.cli.app.parser()\n"
        "assert not {'pyspark', 'dagster', 'delta', 'pandas'} & set(sys.modules), sys.modules.keys()\n"
        "assert scd_pipeline.Warehouse.__name__ == 'Warehouse' and 'pyspark' in sys.modules\n"
        "assert all(hasattr(scd_pipeline, name) for name in scd_pipeline.__all__)\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


def test_deliveries_of_one_date_are_told_by_their_channels(
    remote: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As they can be named then."""
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
    chosen = [word for name in names for word in ("--delivery", name)]
    assert cli.main(["load", str(tmp_path / "dim_x.yaml"), *chosen]) == 0
    rows = [line.split()[:2] for line in capsys.readouterr().out.splitlines()]
    assert [row for row in rows if "accepted" in row] == [[name, "accepted"] for name in names]


@pytest.mark.slow
def test_a_warehouse_from_its_declarations_by_commands_alone(
    spark: SparkSession,
    remote: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Load, status, check and audit; a table damaged by hand fails the check, which names the key."""
    text = "dimension: dim_x\nbusiness_key: id\nsources: {s: {snapshot: 'x_{date}.csv'}}\nattributes: {a: 2}\n"
    (tmp_path / "dim_x.yaml").write_text(text, encoding="utf-8")
    (tmp_path / "x_2024-01-01.csv").write_text("id,a\n1,u\n2,v\n", encoding="utf-8")
    for name, value in (("WAREHOUSE", "warehouse"), ("DECLARATIONS", "dim_x.yaml")):
        monkeypatch.setenv(f"SCD_{name}", str(tmp_path / value))
    monkeypatch.setenv("SCD_REMOTE", remote)

    def scd(*arguments: str) -> tuple[int, list[str]]:
        code, told = cli.main(arguments), capsys.readouterr()
        assert "error:" not in told.err, told.err
        return code, [line.strip() for line in told.out.splitlines()]

    assert scd("load")[0] == 0
    (tmp_path / "x_2024-02-01.csv").write_text("id,a\n1,w\n", encoding="utf-8")
    code, told = scd("status")
    assert code == 0
    assert any("2024-01-01" in line and line.startswith("dim_x") for line in told)
    assert scd("load", "--delivery", "2024-02-01")[0] == 0
    code, told = scd("audit", "dim_x", "id=2")
    assert code == 0
    kinds = [word for line in told for word in line.split() if word in ("INSERT", "UPDATE", "LOGICAL_DELETE")]
    assert kinds == ["INSERT", "LOGICAL_DELETE"]
    assert scd("check")[0] == 0
    damaged = Warehouse(spark, tmp_path / "warehouse").table("dim_x").identifier
    spark.sql(f"UPDATE {damaged} SET current_flag = true WHERE id = '2'")
    code, told = scd("check")
    assert code != 0
    assert any(line.startswith("dim_x: current_versions_are_open: failed (1): id=2") for line in told)
    assert "dim_x: windows_do_not_overlap: passed" in told
