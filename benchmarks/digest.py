"""A digest of the code that is measured, or with which others measure it."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from pathlib import Path

import scd_pipeline

_FOLDER = Path(__file__).parent
_NOT_MEASURED = (
    "__init__.py",
    "__main__.py",
    "catalog.py",
    "contestants/registry.py",
    "digest.py",
    "layouts.py",
    "machine.py",
    "plots.py",
    "report.py",
    "results.py",
    "suites.py",
    "targets.py",
)
"""Modules that select, store and print results. A change of them does not change what was measured."""


def code_digest(package: Path | None = None, benchmark: Path = _FOLDER) -> str:
    """Return a digest of the package and of the benchmark's work items, contestants and measurement.

    Results of other code are not continued.

    Args:
        package: The folder of the package [scd_pipeline].
        benchmark: The folder of the benchmark.
    """
    own = [path for path in _sources(benchmark) if path.relative_to(benchmark).as_posix() not in _NOT_MEASURED]
    return _digest([*_sources(package or Path(scd_pipeline.__file__).parent), *own])


def layout_digest() -> str:
    """Return a digest of the code that measures table layouts, which is independent of the package."""
    return _digest([_FOLDER / f"{name}.py" for name in ("data", "layouts", "measure", "session", "tables")])


def _digest(files: Iterable[Path]) -> str:
    digest = hashlib.sha256()
    for file in files:
        digest.update(file.read_bytes())
    return digest.hexdigest()[:12]


def _sources(folder: Path) -> Iterator[Path]:
    """Yield the modules and the requirements of a folder in order."""
    return (path for path in sorted(folder.rglob("*")) if path.suffix in (".py", ".txt"))
