"""Fetch the locked jars into Maven's local repository by Maven itself, with its mirrors, proxies and certificates.

`scd setup` copies jars from there before it downloads any. Usage: python .ci/maven_jars.py
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path

LOCKS = sorted((Path(__file__).parents[1] / "scd_pipeline" / "spark").glob("*.lock.json"))
POM = """<project><modelVersion>4.0.0</modelVersion><groupId>jars</groupId><artifactId>jars</artifactId>
<version>1</version><dependencies>{}</dependencies></project>"""
DEPENDENCY = "<dependency><groupId>{}</groupId><artifactId>{}</artifactId><version>{}</version></dependency>"


def main() -> int:
    """Run Maven on a project that depends on the locked jars; return its exit code."""
    locked = [coordinates for lock in LOCKS for coordinates in json.loads(lock.read_text())]
    dependencies = "".join(DEPENDENCY.format(*coordinates.split(":")) for coordinates in locked)
    with tempfile.TemporaryDirectory() as folder:
        pom = Path(folder, "pom.xml")
        pom.write_text(POM.format(dependencies), encoding="utf-8")
        options = ["--quiet", "--batch-mode", "-DexcludeTransitive=true", "--file", str(pom)]
        command = ["mvn", *options, "dependency:resolve"]
        return subprocess.run(command, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
