"""Files that are not deliveries because their names only nearly match a path: every command names them."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from pathlib import Path

import dagster as dg
import pytest
from pyspark.sql import SparkSession

from scd_pipeline import Pipeline
from scd_pipeline.cli import app as cli
from scd_pipeline.components.arrivals import arrival_sensor
from scd_pipeline.components.delivery_selection import resolve_partitions
from scd_pipeline.declaration import Dimension, Feed, Snapshot, Source, read_dimension
from scd_pipeline.deliveries.discovery import Discovery, discover_all, select_by_table
from scd_pipeline.deliveries.partitions import EVERYTHING
from scd_pipeline.delta.warehouse import Warehouse
from scd_pipeline.errors import UsageError

COMPACT = """\
dimension: dim_user
business_key: id
sources: {hr: {snapshot: "in/users_{date}.csv"}}
attributes: {dept: 2}
"""
MIXED = ("u_2024-01-01.csv", "u_2024-01-2.csv", "u_2024-01-03.CSV", "u_2024-01-04 (1).csv")
Scd = Callable[..., tuple[int, str, str]]


@pytest.fixture
def scd(remote: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Scd:
    """Runs a command in an empty folder; returns exit code, standard output and standard error."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SCD_REMOTE", remote)
    monkeypatch.setenv("SCD_WAREHOUSE", str(tmp_path / "warehouse"))

    def run(*arguments: str) -> tuple[int, str, str]:
        code = cli.main(arguments)
        output = capsys.readouterr()
        return code, output.out, output.err

    return run


def write(folder: Path, *names: str) -> None:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("id,dept\n1,X\n", encoding="utf-8")


def snapshots(path: str) -> Dimension:
    return Dimension("dim_user", "id", {"dept": 2}, Source("hr", Snapshot(path, format="csv")))


def near_names(dimension: Dimension, folder: Path) -> list[str]:
    discovery = discover_all(dimension, None, base=folder)
    return [name for near in discovery.near_matches for name in near.names]


@pytest.mark.slow
def test_load_plan_and_status_name_files_of_another_form(scd: Scd, tmp_path: Path) -> None:
    write(tmp_path / "in", "users_20190701.csv", "users_20190702.csv", "customers_20190701.csv")
    (tmp_path / "d.yaml").write_text(COMPACT, encoding="utf-8")
    message = (
        "[NEAR_MATCH] dim_user.hr.snapshot: files at its path are not deliveries, because their names only nearly "
        "match in/users_{date}.csv: users_20190701.csv, users_20190702.csv; expected names such as "
        "users_2024-01-31.csv; none of them is loaded; declare the form of their dates, as in "
        "in/users_{date:%Y%m%d}.csv, or rename them"
    )
    code, out, err = scd("plan", "d.yaml")
    assert (code, f"  warning: {message}" in out.splitlines()) == (3, True)
    code, out, err = scd("load", "d.yaml")
    assert (code, f"warning: {message}" in err.splitlines()) == (3, True)
    code, out, err = scd("status", "--declarations", "d.yaml")
    assert (code, f"warning: {message}" in out.splitlines()) == (0, True)
    code, out, err = scd("status", "--declarations", "d.yaml", "--format", "json")
    assert json.loads(out)[0]["warnings"] == [message]

    (tmp_path / "d.yaml").write_text(COMPACT.replace("{date}", "{date:%Y%m%d}"), encoding="utf-8")
    code, out, err = scd("load", "d.yaml")
    assert (code, "warning" in err, "2019-07-02  accepted" in out) == (0, False, True)


@pytest.mark.slow
def test_a_load_of_other_deliveries_names_them_and_succeeds(
    spark: SparkSession, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    write(tmp_path, *MIXED)
    with caplog.at_level(logging.WARNING, logger="scd_pipeline"):
        result = Pipeline(tmp_path / "w", spark=spark).load(snapshots(str(tmp_path / "u_{date}.csv")))
    assert [batch.delivery for batch in result.results] == ["2024-01-01"]
    (warning,) = [warning for warning in result.warnings if warning.code == "NEAR_MATCH"]
    assert warning.details["files"] == "u_2024-01-03.CSV, u_2024-01-04 (1).csv, u_2024-01-2.csv"
    assert warning.fix == "rename them"
    assert str(warning) in caplog.text


def test_the_sensor_names_them(tmp_path: Path) -> None:
    write(tmp_path / "in", "users_20190701.csv")
    (tmp_path / "d.yaml").write_text(COMPACT, encoding="utf-8")

    @dg.job
    def nothing() -> None:
        """Do nothing."""

    sensor = arrival_sensor(read_dimension(tmp_path / "d.yaml"), nothing)
    result = sensor(dg.build_sensor_context(instance=dg.DagsterInstance.ephemeral()))
    assert isinstance(result, dg.SensorResult)
    assert result.skip_reason is not None
    assert str(result.skip_reason.skip_message).startswith(
        "no new deliveries; [NEAR_MATCH] dim_user.hr.snapshot: files"
    )


@pytest.mark.parametrize(
    ("pattern", "near", "others"),
    [
        (
            "u_{date}.csv",
            ["U_2024-01-31.csv", "u_20240131.csv", "u_2024-1-31.csv", "u_31.01.2024.csv", "u_31JAN2024.csv"],
            ["u_2024-01-31.csv", "u_2024.csv", "u_all.csv", "users_20240131.csv", "u_20240131.json", ".u_20240131.csv"],
        ),
        (
            "u_{date}.csv",
            ["u_2024-01-31.CSV", "u_2024-01-31 (2).csv", "u_2024-01-31 - Copy.csv", "u_2024-01-31.csv.1"],
            ["u_2024-01-31.csv.part", "u_2024-01-31.csv.gz", "u_2024-01-31_final.csv"],
        ),
        ("u_{date:%d%m%Y}.csv", ["u_2024-01-31.csv"], ["u_31012024.csv"]),
        ("u_{datetime}.csv", ["u_2024-01-31.csv", "u_2024-01-31 23:59:59.csv"], ["u_2024-01-31T23-59-59.csv"]),
        ("{date}", ["20240131"], ["2024-01-31", "archive", "v1"]),
        ("in/{date}/u.csv", ["in/2024-01-31"], ["in/2024-02-29/u.csv", "in/notes", "in/2024-03-31/v.csv"]),
        ("{date:%Y/%m/%d}_new/u.csv", ["2024/01/31_new"], ["2024/02/29_new/u.csv", "2024/03/31"]),
    ],
)
def test_a_name_nearly_matches_if_form_case_or_suffix_differ(
    tmp_path: Path, pattern: str, near: list[str], others: list[str]
) -> None:
    write(tmp_path, *near, *others)
    assert near_names(snapshots(pattern), tmp_path) == sorted(Path(name).name for name in near)


def test_a_file_in_place_of_a_folder_is_named_with_an_example_of_the_path(tmp_path: Path) -> None:
    write(tmp_path / "in", "2024-01-31")
    (near,) = discover_all(snapshots("in/{date}/u.csv"), None, base=tmp_path).near_matches
    details = near.warning().details
    assert (details["files"], details["example"]) == ("2024-01-31", "2024-01-31/u.csv")


def test_any_name_nearly_matches_only_by_its_case(tmp_path: Path) -> None:
    write(tmp_path, "c_1.csv", "C_2.csv", "c_3.CSV", "d_4.csv")
    feed = Feed("c_{delivery}.csv", effective_at="at")
    dimension = Dimension("dim_user", "id", {"dept": 2}, Source("hr", feed=feed))
    assert near_names(dimension, tmp_path) == [
        "C_2.csv",
        "c_3.CSV",
    ]


def test_a_delivery_of_another_channel_or_table_is_not_a_near_match(spark: SparkSession, tmp_path: Path) -> None:
    write(tmp_path, "u_2024-01-31.csv", "u_20240131.csv", "u_2024.01.31.csv")
    first = str(tmp_path / "u_{date}.csv")
    both = Dimension("dim_a", "id", {"dept": 2}, Source("hr", first, Feed(str(tmp_path / "u_{date:%Y%m%d}.csv"))))
    assert near_names(both, tmp_path) == ["u_2024.01.31.csv"] * 2
    other = Dimension("dim_b", "id", {"dept": 2}, Source("hr", str(tmp_path / "u_{date:%Y.%m.%d}.csv")))
    selected = select_by_table([both, other], spark)
    assert [(len(each.deliveries), each.near_matches) for each in selected] == [(2, ()), (1, ())]


def test_a_run_of_everything_reports_them(spark: SparkSession, tmp_path: Path) -> None:
    """A run of one partition loads what was requested, and reports nothing else."""
    write(tmp_path, *MIXED)
    dimension, opened = snapshots(str(tmp_path / "u_{date}.csv")), Warehouse(spark, tmp_path / "warehouse")
    (warning,) = resolve_partitions(opened, dimension, [EVERYTHING]).warnings
    assert warning.code == "NEAR_MATCH"
    assert resolve_partitions(opened, dimension, ["2024-01-01"]).warnings == ()


def test_a_requested_delivery_is_not_found_and_files_nearly_match(spark: SparkSession, tmp_path: Path) -> None:
    write(tmp_path, *MIXED)
    with pytest.raises(UsageError) as error:
        select_by_table([snapshots(str(tmp_path / "u_{date}.csv"))], spark, names=["2024-01-03"])
    assert error.value.code == "DELIVERY_NOT_FOUND"
    assert "these files nearly match: u_2024-01-03.CSV, u_2024-01-04 (1).csv, u_2024-01-2.csv; " in error.value.fix


def test_an_empty_folder_has_no_near_matches() -> None:
    assert not Discovery([]).has_only_near_matches
