"""The first pages that a user tries: the README, and loading from Python."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from scd_pipeline_tests.docs.blocks import README, ROOT, blocks
from scd_pipeline_tests.docs.runner import run_page

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

# The examples use the Spark Connect server of the tests instead of a Java process of their own.
ON_A_SERVER = """\
from scd_pipeline.spark import session
session.local_spark = lambda *_, **__: session.connect_spark({url!r})
"""


@pytest.mark.slow(30)
def test_the_readme_does_what_it_shows(remote: str, tmp_path: Path) -> None:
    """The tables that it creates can be read without Spark, as `read-without-spark.md` shows."""
    run_page(README, tmp_path, remote)
    names: dict[str, DataFrame] = {}
    (example,) = blocks(ROOT / "docs" / "how-to" / "read-without-spark.md", "python")
    exec(example.text.replace('"warehouse/', f'"{tmp_path}/warehouse/'), names)
    assert len(names["customers"]) == 4
    assert sorted(names["current"].column("city").to_pylist()) == ["Linz", "Wien"]


@pytest.mark.slow
@pytest.mark.parametrize("zone", ["Asia/Tokyo", "America/New_York"])
def test_loading_from_python_shows_the_same_in_every_zone(remote: str, zone: str, tmp_path: Path) -> None:
    (example,) = blocks(ROOT / "docs" / "how-to" / "python.md", "python")
    preamble = ON_A_SERVER.format(url=remote) if remote else ""
    done = subprocess.run(
        [sys.executable, "-c", preamble + example.text],
        cwd=tmp_path,
        env={**os.environ, "TZ": zone, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr
    lines = {re.sub(r"^\d+\s+", "", line) for line in done.stdout.splitlines()}
    rows = {re.sub(r"\s+", " ", line).strip() for line in lines}
    assert rows == {
        "customer_id email city effective_from effective_to",
        "7 ann@b.com Graz 2024-01-01 2024-02-01",
        "7 ann@b.com Wien 2024-02-01 NaT",
        "8 bob@b.com Linz 2024-02-01 NaT",
        "customer_id city",
        "7 Graz",
    }
