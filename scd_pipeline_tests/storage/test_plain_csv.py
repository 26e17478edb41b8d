"""Spark's reader of plain CSV files returns the same rows as the reader that checks each line as text."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from pyspark.sql import Row, SparkSession
from pyspark.sql import functions as F

from scd_pipeline.declaration import Feed
from scd_pipeline.deliveries.csv_files import CsvLayout, read_csv, scan_csv
from scd_pipeline.deliveries.row_columns import FILE, LINE, PROBLEM, ROW_ORDER

FEED = Feed(format="csv")
HEADERS = ("id,city\n", "id,city\r\n", "id,city\r", "\ufeffid,city\n", "\n \nid,city\n")
PIECES = (",", ",", ",", "\n", "\n", "\n", "\r\n", "\r", " ", "\t", "a", "1", "''", "\\", "#", "ö", "😀", "\ufeff")
CONTROLS = ("\0", "\x01", "\x0b", "\x1c", "\x7f", "\x85", "\u2028", '"')
BODIES = st.lists(st.sampled_from(PIECES + CONTROLS), max_size=30).map("".join)
FILES = st.lists(st.tuples(st.sampled_from(HEADERS), BODIES), min_size=60, max_size=60)


def rows_in_order(spark: SparkSession, paths: list[str], layout: CsvLayout) -> list[Row]:
    rows = read_csv(spark, FEED, paths, layout)
    values = [F.hex("id"), F.hex("city"), F.hex(LINE), F.col(PROBLEM)]
    order = [F.col(ROW_ORDER)["block"].alias("block"), F.col(ROW_ORDER)["row"].alias("row")]
    return rows.select(FILE, *values, *order).orderBy(FILE, "block", "row").drop("block", "row").collect()


@pytest.mark.slow
@pytest.mark.rule("S26")
@settings(
    max_examples=3,
    deadline=None,
    phases=[Phase.generate],
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(files=FILES)
def test_both_readers_return_the_same_rows_in_the_same_order(spark: SparkSession, files: list[tuple[str, str]]) -> None:
    with TemporaryDirectory() as folder:
        for number, (header, body) in enumerate(files):
            Path(folder, f"{number}.csv").write_bytes((header + body).encode())
        layouts = scan_csv(spark, FEED, [str(path) for path in sorted(Path(folder).iterdir())])
        plain = [path for path, layout in layouts.items() if layout.is_plain and layout.header == "id,city"]
        layout = layouts[plain[0]]
        exact = rows_in_order(spark, plain, replace(layout, is_plain=False))
        assert rows_in_order(spark, plain, layout) == exact
        assert len(plain) > 10


@pytest.mark.parametrize(
    ("content", "is_plain"),
    [
        (b"id,city\n1,Graz\n2\n", True),
        (b'id,city\n1,"Graz"\n', False),
        (b'id,city\n1,5" pipe\n', False),
        (b"id,city\n1,M\xf6dling\n", False),
        (b"id,city\n1" + b",x" * 20_479 + b"\n", False),
        (b"", False),
    ],
)
def test_a_file_is_plain_if_no_line_needs_a_check(
    spark: SparkSession, tmp_path: Path, content: bytes, is_plain: bool
) -> None:
    path = tmp_path / "c.csv"
    path.write_bytes(content)
    assert scan_csv(spark, FEED, [str(path)])[str(path)].is_plain == is_plain


def test_declared_options_of_the_parser_need_its_check(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "c.csv"
    path.write_text("id;city\n1;Graz\n")
    for options, is_plain in [({"sep": ";"}, True), ({"sep": ";", "mode": "DROPMALFORMED"}, False)]:
        feed = Feed(format="csv", options=options)
        assert scan_csv(spark, feed, [str(path)])[str(path)].is_plain == is_plain
