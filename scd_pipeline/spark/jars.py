"""Delta's jars in the cache, with the checksums of a lock.

`jars.lock.json` lists the jars that Delta needs in addition to those of Spark, and Spark's own jar for Avro files.
`s3_jars.lock.json` lists those by which Spark reads and writes S3: Hadoop's, and of the AWS SDK the modules that Hadoop
uses, because the bundle of all has 680 MB. `postgresql.lock.json` has the JDBC driver of PostgreSQL. Only some
installations need these two.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path

from scd_pipeline.errors import SetupError

LOCK_FILE = Path(__file__).with_name("jars.lock.json")
S3_LOCK_FILE = Path(__file__).with_name("s3_jars.lock.json")
POSTGRESQL_LOCK_FILE = Path(__file__).with_name("postgresql.lock.json")
OPTIONAL_LOCK_FILES = (S3_LOCK_FILE, POSTGRESQL_LOCK_FILE)


def read_lock(lock: Path = LOCK_FILE) -> dict[str, str]:
    """Return the SHA-256 checksum of each locked jar by its Maven coordinates (`group:artifact:version`)."""
    checksums: dict[str, str] = json.loads(lock.read_text(encoding="utf-8"))
    return checksums


def jar_name(coordinates: str) -> str:
    """Return the file name of a jar, for example `delta-storage-4.4.0.jar`."""
    _, artifact, version = coordinates.split(":")
    return f"{artifact}-{version}.jar"


def jar_path(folder: Path, coordinates: str) -> Path:
    """Return the path of a jar in the folder of the locked jars."""
    return folder / jar_name(coordinates)


def jar_folder(cache: Path, lock: Path = LOCK_FILE) -> Path:
    """Return the folder of the locked jars. Each lock has its own folder, so that versions never mix."""
    return cache / "jars" / hashlib.sha256(lock.read_bytes()).hexdigest()[:16]


def find_jars(cache: Path, lock: Path = LOCK_FILE) -> tuple[Path, ...]:
    """Return the paths of the locked jars in the cache after verifying their checksums.

    Raises:
        SetupError: A jar is missing or damaged.
    """
    folder = jar_folder(cache, lock)
    checksums = read_lock(lock)
    if missing := [jar_name(coordinates) for coordinates in checksums if not jar_path(folder, coordinates).is_file()]:
        raise SetupError("JARS_MISSING", str(folder), jars=", ".join(missing))
    for coordinates, expected in checksums.items():
        jar = jar_path(folder, coordinates)
        if (actual := checksum(jar)) != expected:
            raise SetupError("JAR_DAMAGED", str(jar), actual=actual, expected=expected)
    return tuple(jar_path(folder, coordinates) for coordinates in checksums)


def find_optional_jars(cache: Path, locks: Sequence[Path] = OPTIONAL_LOCK_FILES) -> tuple[Path, ...]:
    """Return the paths of the jars for S3 and for databases; none that were never downloaded.

    Raises:
        SetupError: A jar is missing or damaged.
    """
    downloaded = [lock for lock in locks if jar_folder(cache, lock).is_dir()]
    return tuple(jar for lock in downloaded for jar in find_jars(cache, lock))


def invalid_jars(cache: Path, lock: Path = LOCK_FILE) -> tuple[str, ...]:
    """Return the coordinates of the locked jars that are missing from the cache or damaged."""
    folder = jar_folder(cache, lock)
    return tuple(
        coordinates
        for coordinates, expected in read_lock(lock).items()
        if not jar_path(folder, coordinates).is_file() or checksum(jar_path(folder, coordinates)) != expected
    )


def checksum(jar: Path) -> str:
    """Return the SHA-256 checksum of a file."""
    return hashlib.sha256(jar.read_bytes()).hexdigest()
