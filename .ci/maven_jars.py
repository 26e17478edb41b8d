"""Fetch the locked jars into Maven's local repository by Maven itself, with its mirrors, proxies and certificates.

`scd setup` copies jars from there before it downloads any. Usage: python .ci/maven_jars.py
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path

FOLDER = Path(__file__).parents[1] / "scd_pipeline" / "spark"
POM = """<project><modelVersion>4.0.0</modelVersion><groupId>jars</groupId><artifactId>jars</artifactId>
<version>1</version><dependencies>{}</dependencies></project>"""
DEPENDENCY = "<dependency><groupId>{}</groupId><artifactId>{}</artifactId><version>{}</version></dependency>"


def main() -> int:
    """Fetch Delta's jars, and the driver of PostgreSQL if it is available; return the exit code for the former."""
    code = fetch("jars.lock.json")
    if not code and fetch("postgresql.lock.json"):
        print("the driver of PostgreSQL is not available: its tests are skipped", file=sys.stderr)
    return code


def fetch(lock: str) -> int:
    """Run Maven on a project that depends on the jars of a lock; return its exit code."""
    locked = json.loads((FOLDER / lock).read_text(encoding="utf-8"))
    dependencies = "".join(DEPENDENCY.format(*coordinates.split(":")) for coordinates in locked)
    with tempfile.TemporaryDirectory() as folder:
        pom = Path(folder, "pom.xml")
        pom.write_text(POM.format(dependencies), encoding="utf-8")
        options = ["--quiet", "--batch-mode", "-DexcludeTransitive=true", "--file", str(pom)]
        command = ["mvn", *options, "dependency:resolve"]
        return subprocess.run(command, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
