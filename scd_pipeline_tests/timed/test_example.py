"""The example of a timed table, and the blocks of the how-to, run on it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING
from unittest import mock

import pytest

from examples.doctors import demo
from scd_pipeline import Pipeline, pipeline
from scd_pipeline_tests.docs.blocks import ROOT, blocks
from scd_pipeline_tests.semantics.specification import requirement
from scd_pipeline_tests.text_tables import header, parse
from scd_pipeline_tests.timed.doctors import AT_2014_01_01, NOW, RAW

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@requirement("V27")
@pytest.mark.slow(20)
def test_the_demo_prints_the_rows_at_five_times_and_the_history(
    spark: SparkSession, warehouse: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    lines: list[str] = []
    demo.run(Pipeline(warehouse, spark=spark), lines.append)
    titles, tables = lines[::2], lines[1::2]
    assert titles == ["at 'raw'", "now", "at '2014-01-01'", "at -1", "at ''", "history"]
    for printed, expected in zip(tables, (RAW, NOW, AT_2014_01_01, RAW, NOW), strict=False):
        rows = sorted(parse(expected), key=lambda row: int(row["number"]))
        cells = [[str(value) for value in row.values()] for row in rows]
        assert [re.split(r"  +", line.strip()) for line in printed.splitlines()[2:]] == cells
        assert printed.split("\n")[0].split() == list(header(expected))
    history = [re.split(r"  +", line.strip()) for line in tables[-1].splitlines()[2:]]
    assert [row for row in history if row[2:] != ["NULL", "NULL"]] == [
        ["2", "Troughton", "NULL", "1970-01-01 00:00:00"],
        ["6", "Baker", "NULL", "2014-09-01 00:00:00"],
        ["12", "Troughton", "1970-01-01 00:00:00", "NULL"],
    ]
    assert len(history) == 12


def test_the_python_of_the_page_runs_on_the_example(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    monkeypatch.chdir(tmp_path)
    (block,) = blocks(ROOT / "docs" / "how-to" / "timed-tables.md", "python")
    with mock.patch.object(pipeline, "_start", return_value=(spark, None)):
        exec(block.text, {})
    output = capsys.readouterr().out
    assert "|      10|" in output
    assert output.endswith("[1, 1]\n")


def test_the_log_of_the_page_is_that_of_the_example() -> None:
    (log,) = blocks(ROOT / "docs" / "how-to" / "timed-tables.md", "sql")
    assert log.text == (ROOT / "examples" / "doctors" / "data" / ".updates").read_text(encoding="utf-8")
