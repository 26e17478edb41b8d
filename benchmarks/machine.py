"""The machine and the versions with which a benchmark ran."""

from __future__ import annotations

import hashlib
import os
import platform
import re
import subprocess
from importlib import metadata
from pathlib import Path

from scd_pipeline.environment import Environment
from scd_pipeline.spark.installation import install

_PACKAGES = ("scd_pipeline", "pyspark", "delta-spark", "pyarrow")
_REQUIREMENTS = Path(__file__).parent / "environments"
_BOOT = "/proc/sys/kernel/random/boot_id"


def machine_id() -> str:
    """Return an id of this machine since its last start; only results with the same id can be compared."""
    (boot,) = _lines(_BOOT) or [platform.node()]
    described = (platform.machine(), _processor(), str(os.cpu_count()), _memory(), boot)
    return hashlib.sha256("\n".join(described).encode()).hexdigest()[:8]


def environment(environments: Path, *, cores: int, memory: str) -> dict[str, str]:
    """Return the machine, and the versions of all programs.

    Args:
        environments: The folder of the Python environments of contestants without Spark.
        cores: The cores of Spark.
        memory: The heap of Spark.
    """
    return {
        "machine": f"{platform.machine()}, {_processor()}",
        "machine_cores": str(os.cpu_count()),
        "machine_memory_gib": str(round(int(_memory()) / 2**20)),
        "spark_cores": str(cores),
        "spark_heap": memory,
        "python": platform.python_version(),
        "java": _java_version(),
        **{name: _version(name) for name in _PACKAGES},
        **_contestant_versions(environments),
    }


def _contestant_versions(environments: Path) -> dict[str, str]:
    """Return the versions of the packages in the environments that exist, as `<environment>: <package>`."""
    return {
        f"{file.stem}: {package}": _version(package, environments / file.stem)
        for file in sorted(_REQUIREMENTS.glob("*.txt"))
        if (environments / file.stem).exists()
        for package in _required_packages(file)
    }


def _required_packages(file: Path) -> list[str]:
    names = (re.match(r"[\w.-]+", line) for line in file.read_text().splitlines())
    return list(dict.fromkeys(name[0] for name in names if name))


def _version(package: str, environment: Path | None = None) -> str:
    """Return the version of a package in this environment or in the one in a folder."""
    if environment is None:
        distributions = metadata.distributions(name=package)
    else:
        folders = [str(folder) for folder in environment.glob("lib/python*/site-packages")]
        distributions = metadata.distributions(name=package, path=folders)
    return next((distribution.version for distribution in distributions), "not installed")


def _java_version() -> str:
    """Return the version of Spark's Java."""
    java = install(Environment.from_env()).java_home / "bin" / "java"
    result = subprocess.run([str(java), "-version"], capture_output=True, text=True, check=False)
    version = re.search(r'version "([^"]+)"', result.stderr + result.stdout)
    return version[1] if version else "unknown"


def _processor() -> str:
    models = (line.partition(":")[2].strip() for line in _lines("/proc/cpuinfo") if line.startswith("model name"))
    return next(models, platform.processor())


def _memory() -> str:
    """Return the memory of the machine in KiB."""
    return next((line.split()[1] for line in _lines("/proc/meminfo") if line.startswith("MemTotal")), "0")


def _lines(path: str) -> list[str]:
    file = Path(path)
    return file.read_text().splitlines() if file.exists() else []
