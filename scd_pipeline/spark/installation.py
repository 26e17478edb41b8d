"""What Spark and Delta need in addition to Python packages: a Java runtime and Delta's jars.

`install` downloads the jars once. After that `find_installation` needs no network.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from pathlib import Path

from scd_pipeline.environment import Environment
from scd_pipeline.errors import SetupError
from scd_pipeline.spark.jars import LOCK_FILE, OPTIONAL_LOCK_FILES, find_jars, find_optional_jars, jar_folder
from scd_pipeline.spark.java import CLASS_ARCHIVE, Java, require_java, wrap_java
from scd_pipeline.spark.launch import spark_home


@dataclass(frozen=True)
class Installation:
    """All that a Spark session needs: `java_home` and `jars` are arguments of the functions that start one."""

    java: Java
    java_home: Path
    jars: tuple[Path, ...]

    @property
    def class_archive(self) -> Path:
        """The file of the class archive, with which Java starts faster; it may be missing."""
        return self.java_home / CLASS_ARCHIVE


def install(
    environment: Environment,
    *,
    repository: str | None = None,
    optional: Collection[Path] = (),
    progress: Callable[[str], None] = lambda line: None,
) -> Installation:
    """Find a Java runtime and download the jars that are missing from the cache or damaged.

    Jars in Maven's local repository are copied.

    Args:
        repository: The URL of the Maven repository [SCD_MAVEN_REPOSITORY, else the default of the installed Spark].
        optional: The locks of further jars to download. Those that the cache has are verified in any case.
        progress: Receives one line for each step.

    Raises:
        SetupError: No Java was found, or a jar cannot be downloaded or does not have the locked checksum.
    """
    # Only the set-up needs the HTTP client, which is slow to import.
    from scd_pipeline.spark.download import download_jars

    cache = environment.cache_folder
    try:
        cache.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise SetupError("CACHE_NOT_WRITABLE", str(cache), reason=error.strerror) from error
    java = require_java(environment.variables)
    progress(f"java: using Java {java.release} ({java.program}, from {java.origin})")
    existing = [lock for lock in OPTIONAL_LOCK_FILES if jar_folder(cache, lock).is_dir()]
    for lock in (LOCK_FILE, *dict.fromkeys([*optional, *existing])):
        download_jars(
            cache,
            repository=repository or environment.maven_repository,
            local_repository=environment.maven_local_repository,
            certificates=environment.variables.get("SSL_CERT_FILE"),
            lock=lock,
            progress=progress,
        )
    installation = find_installation(environment)
    progress(f"jars: verified {len(installation.jars)} jars in {jar_folder(cache)}")
    return installation


def find_installation(environment: Environment) -> Installation:
    """Return what `install` installed, without using the network.

    Raises:
        SetupError: Java or a jar is missing, or a jar is damaged.
    """
    jars = (*find_jars(environment.cache_folder), *find_optional_jars(environment.cache_folder))
    java = require_java(environment.variables)
    # The name of this jar has Spark's version. A pyspark that was not installed by pip has no metadata to ask.
    core = (spark_home() / "jars").glob("spark-core_*.jar")
    spark = " ".join(str(jar) for jar in sorted(core))
    return Installation(java, wrap_java(environment.cache_folder, java, spark), jars)
