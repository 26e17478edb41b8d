"""The results of a long run so far, so that it can be stopped and continued."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from scd_pipeline.environment import Environment
from scd_pipeline.spark.installation import find_installation
from scd_pipeline_tests import servers

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / ".long_runs"
ENGINE = ("declaration", "deliveries", "delta", "history", "invariants", "load", "operations")
GROUND = ("columns.py", "expressions.py", "frames.py", "instants.py")
UNFINISHED = 3
"""Exit code of a run that has more to do."""


def fingerprint(sources: Sequence[Path]) -> str:
    """The checksum of the code that a result depends on; results of other code are discarded."""
    digest = hashlib.sha256()
    for path in sorted(sources):
        digest.update(f"{path.relative_to(ROOT)}\n".encode() + path.read_bytes())
    return digest.hexdigest()


def code() -> list[Path]:
    """The engine and the code that it is compared with, without the faults: their names in a journal identify them."""
    engine, tests = ROOT / "scd_pipeline", ROOT / "scd_pipeline_tests"
    paths = [engine / name for name in (*ENGINE, *GROUND)]
    paths += [tests / name for name in ("generative", "oracle.py", "scenarios.py")]
    files = [file for path in paths for file in ([path] if path.suffix else path.rglob("*.py"))]
    return [file for file in files if file.name != "faults.py"]


def engine_modules() -> list[str]:
    """Return the names of the modules of the engine."""
    files = [path.relative_to(ROOT).with_suffix("") for path in code() if ROOT / "scd_pipeline" in path.parents]
    return [".".join(file.parts).removesuffix(".__init__") for file in sorted(files)]


@dataclass
class Journal:
    """A JSON line for each result, by its name; the first line has the fingerprint of the code."""

    path: Path
    fingerprint: str
    done: dict[str, dict[str, Any]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        lines = [json.loads(line) for line in self.path.read_text().splitlines()] if self.path.exists() else []
        if lines and lines[0] == {"code": self.fingerprint}:
            self.done = {line.pop("name"): line for line in lines[1:]}
            return
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.path.write_text(json.dumps({"code": self.fingerprint}) + "\n")

    def add(self, name: str, **result: Any) -> None:
        self.done[name] = result
        with self.path.open("a") as lines:
            lines.write(json.dumps({"name": name, **result}) + "\n")


@contextmanager
def spark_of_tests() -> Iterator[SparkSession]:
    """A session at the server of the tests."""
    installation = find_installation(Environment.from_env())
    with servers.shared_spark(
        servers.folder(), servers.settings(installation), java_home=installation.java_home
    ) as spark:
        yield spark
