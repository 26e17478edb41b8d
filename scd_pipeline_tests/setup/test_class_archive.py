"""The class archive: when it is created, when Java uses it, and what happens without it."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from scd_pipeline.cli.class_archive import archive_classes
from scd_pipeline.environment import Environment
from scd_pipeline.spark.installation import Installation, find_installation
from scd_pipeline.spark.java import CLASS_ARCHIVE, Java, wrap_java

FAILS = "import sys; open(sys.argv[1], 'w').close(); sys.exit('no space left')"
ECHO = Java(Path("/bin/echo"), 21, "PATH")
USE = """
import sys
from scd_pipeline.environment import Environment
from scd_pipeline.spark.configuration import spark_conf
from scd_pipeline.spark.installation import find_installation
from scd_pipeline.spark.session import local_spark

installation = find_installation(Environment.from_env())
conf = spark_conf(jars=installation.jars)
conf["spark.driver.extraJavaOptions"] += f" -Xlog:class+load:file={sys.argv[1]}"
spark = local_spark(conf, java_home=installation.java_home)
print(spark.sql("SELECT 1 AS one").collect()[0].one)
"""


@pytest.fixture
def unarchived(tmp_path: Path) -> Installation:
    """An installation without a class archive."""
    return Installation(ECHO, wrap_java(tmp_path, ECHO), ())


def arguments_of_java(home: Path) -> list[str]:
    return subprocess.run([home / "bin" / "java", "Main"], capture_output=True, text=True, check=True).stdout.split()


def test_java_gets_the_archive_if_there_is_one(unarchived: Installation) -> None:
    assert arguments_of_java(unarchived.java_home) == ["Main"]
    unarchived.class_archive.touch()
    first, *others = arguments_of_java(unarchived.java_home)
    assert first == f"-XX:SharedArchiveFile={unarchived.class_archive}"
    assert "-Xshare:auto" in others and others[-1] == "Main"


def test_each_build_of_java_and_each_spark_has_its_own_archive(tmp_path: Path) -> None:
    program = tmp_path / "jdk" / "bin" / "java"
    program.parent.mkdir(parents=True)
    java, release, homes = Java(program, 17, "PATH"), tmp_path / "jdk" / "release", set()
    for build, spark in (("17.0.1", "Spark 4.1"), ("17.0.2", "Spark 4.1"), ("17.0.2", "Spark 4.2")):
        release.write_text(f'JAVA_VERSION="{build}"\n', encoding="utf-8")
        homes.add(wrap_java(tmp_path / "cache", java, spark))
        assert wrap_java(tmp_path / "cache", java, spark) in homes
    assert len(homes) == 3


def test_an_archive_is_created_once(unarchived: Installation) -> None:
    lines: list[str] = []
    write = (sys.executable, "-c", "import pathlib, sys; pathlib.Path(sys.argv[1]).write_text('classes')")
    assert archive_classes(unarchived, lines.append, write) == ""
    assert unarchived.class_archive.read_text(encoding="utf-8") == "classes"
    assert lines[-1] == f"classes: archived in {unarchived.class_archive}"
    assert archive_classes(unarchived, lines.append, ("/no/such/program",)) == ""
    assert len(lines) == 2


@pytest.mark.parametrize(
    ("command", "reason"),
    [
        ((sys.executable, "-c", FAILS), "no space left"),
        ((sys.executable, "-c", ""), "Java wrote no archive"),
        (("/no/such/program",), "No such file or directory"),
    ],
)
def test_without_an_archive_the_reason_is_returned(
    unarchived: Installation, command: tuple[str, ...], reason: str
) -> None:
    before = set(unarchived.java_home.iterdir())
    assert reason in archive_classes(unarchived, lambda line: None, command)
    assert set(unarchived.java_home.iterdir()) == before, "an incomplete archive is left"


@pytest.mark.slow(70)
def test_an_embedded_spark_loads_archived_classes(
    installation: Installation, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "home of scd"
    home.mkdir()
    (home / "jars").symlink_to(installation.jars[0].parents[1], target_is_directory=True)
    monkeypatch.setenv("SCD_HOME", str(home))
    own = find_installation(Environment.from_env())
    assert own == replace(installation, java_home=own.java_home, jars=own.jars)
    assert archive_classes(own, print) == ""
    log = tmp_path / "classes.log"
    process = subprocess.run([sys.executable, "-c", USE, str(log)], capture_output=True, text=True, check=True)
    assert process.stdout.split() == ["1"]
    assert "[cds]" not in process.stdout + process.stderr
    archived = [line for line in log.read_text(encoding="utf-8").splitlines() if "shared objects file (top)" in line]
    assert any(" org.apache.spark." in line for line in archived) and len(archived) > 5_000


def test_an_unfit_archive_is_ignored(installation: Installation, tmp_path: Path) -> None:
    home = wrap_java(tmp_path, installation.java)
    (home / CLASS_ARCHIVE).write_text("no archive", encoding="utf-8")
    version = subprocess.run([home / "bin" / "java", "-version"], capture_output=True, text=True, check=True)
    assert "version" in version.stderr and "archive" not in version.stdout + version.stderr
