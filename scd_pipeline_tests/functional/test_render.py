"""Rows as text: aligned, lossless, readable by other programs."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow.parquet
import pytest

from scd_pipeline.cli import render
from scd_pipeline.cli.render import Output
from scd_pipeline.cli.rows import Rows, collect
from scd_pipeline.errors import UsageError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROWS = Rows(("name", "n"), ("text", "number"), (("Müller", "7"), (None, "1200"), ("", None)))


def test_numbers_are_right_aligned_and_null_differs_from_empty() -> None:
    assert render.table(ROWS).splitlines() == [
        "name       n",
        "------  ----",
        "Müller     7",
        "NULL    1200",
        "        NULL",
    ]


def test_wide_and_combining_characters_are_aligned() -> None:
    rows = Rows(("a", "b"), ("text", "text"), (("東京", "x"), ("e\u0301", "y")))
    assert render.table(rows).splitlines() == ["a     b", "----  -", "東京  x", "e\u0301     y"]


def test_control_characters_do_not_break_the_table() -> None:
    rows = Rows(("a",), ("text",), (("one\ntwo\t\x1b[31m",),))
    assert render.table(rows).splitlines()[2] == "one\\ntwo\\t\\x1b[31m"


def test_a_table_without_rows_has_its_header() -> None:
    assert render.table(Rows(("a", "bb"), ("text", "number"), ())).splitlines() == ["a  bb", "-  --"]


def test_records_have_one_value_per_line() -> None:
    assert render.records(ROWS).splitlines()[:3] == ["-- row 1 ", "name  Müller", "n     7"]
    assert render.records(Rows(("a",), ("text",), ())) == "(no rows)"


def test_csv_is_read_back() -> None:
    rows = Rows(("a", "b"), ("text", "text"), (('say "hi", all', "two\nlines"), ("plain", "x")))
    assert list(csv.reader(io.StringIO(render.comma_separated(rows)))) == [list(rows.names), *map(list, rows.values)]


def test_csv_distinguishes_null_from_an_empty_text() -> None:
    assert render.comma_separated(ROWS).splitlines()[2:] == [",1200", '"",']


def test_json_has_numbers_as_numbers_and_values_that_json_lacks_as_text() -> None:
    kinds = ("text", "number", "boolean", "number")
    rows = Rows(("t", "n", "b", "x"), kinds, (("ä\n", "12.50", "true", "NaN"), (None, None, None, "1E+2")))
    read = json.loads(render.json_array(rows))
    assert read == [{"t": "ä\n", "n": 12.5, "b": True, "x": "NaN"}, {"t": None, "n": None, "b": None, "x": 100.0}]


def test_json_keeps_digits_nested_values_and_times() -> None:
    kinds = ("number", "json", "instant")
    rows = Rows(("n", "j", "t"), kinds, (("0.10000000000000000001", '{"a":[1,null]}', "9999-12-31 23:59:59"),))
    text = '{"n": 0.10000000000000000001, "j": {"a":[1,null]}, "t": "9999-12-31T23:59:59Z"}'
    assert render.json_array(rows) == f"[\n{text}\n]"
    assert render.json_array(Rows(("a",), ("text",), ())) == "[]"


def test_a_report_is_written_to_a_file_of_each_format(tmp_path: Path) -> None:
    rows = Rows.from_records({"t": "text", "n": "number", "j": "json"}, [("a", 7, ["x"]), (None, None, [])])
    for suffix in ("csv", "json", "parquet"):
        file = tmp_path / f"rows.{suffix}"
        Output(render.resolve_format(None, file), file).write(rows)
    assert (tmp_path / "rows.csv").read_text() == 't,n,j\na,7,"[""x""]"\n,,[]\n'
    assert json.loads((tmp_path / "rows.json").read_text())[0] == {"t": "a", "n": 7, "j": ["x"]}
    assert pyarrow.parquet.read_table(tmp_path / "rows.parquet").to_pylist()[1] == {"t": None, "n": None, "j": "[]"}


def test_an_unknown_suffix_is_rejected_unless_a_format_is_requested() -> None:
    with pytest.raises(UsageError) as error:
        render.resolve_format(None, Path("rows.xlsx"))
    assert (error.value.code, error.value.location) == ("OUTPUT_SUFFIX", "rows.xlsx")
    assert render.resolve_format("csv", Path("rows.xlsx")) == "csv"
    assert [render.resolve_format(None, Path(name)) for name in ("rows", "rows.txt")] == ["table", "table"]


def test_a_terminal_gets_colours_unless_no_color_is_set(monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    def output(width: int) -> str:
        stream = Terminal()
        render.print_table(ROWS, stream, width)
        return stream.getvalue()

    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    assert "\x1b[" in output(80) and "Müller" in output(80)
    assert output(8).startswith("-- row 1 ")
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b[3" not in output(80)


def test_a_frame_becomes_parquet_with_its_types(spark: SparkSession, tmp_path: Path) -> None:
    file = tmp_path / "rows.parquet"
    Output("parquet", file, limit=2).write_frame(spark.sql("SELECT id, array(id) AS a FROM range(3) ORDER BY id"))
    assert pyarrow.parquet.read_table(file).to_pylist() == [{"id": 0, "a": [0]}, {"id": 1, "a": [1]}]


def test_columns_that_differ() -> None:
    rows = Rows(("a", "b"), ("text", "text"), (("1", None), ("1", "x")))
    assert rows.differing() == ["b"]
    assert replace(rows, values=rows.values[:1]).differing() == list(rows.names)
    assert rows.select(["b"]).values == ((None,), ("x",))


@pytest.mark.parametrize("zone", ["Asia/Tokyo", "America/New_York"])
def test_every_type_of_spark_becomes_text_in_any_zone(
    spark: SparkSession, zone: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    import time

    monkeypatch.setenv("TZ", zone)
    time.tzset()
    try:
        rows = collect(
            spark.sql(
                "SELECT timestamp'9999-12-31 23:59:59' AS t, timestamp'0001-01-01 00:00:00' AS t, 1.50 AS d, "
                "map('k', 1) AS m, array(1, NULL) AS a, struct(1 AS x, 'y' AS y) AS s, true AS b, null AS n, "
                "X'FF00' AS x"
            )
        )
    finally:
        monkeypatch.undo()
        time.tzset()
    values = (
        "9999-12-31 23:59:59",
        "0001-01-01 00:00:00",
        "1.50",
        '{"k":1}',
        "[1,null]",
        '{"x":1,"y":"y"}',
        "true",
        None,
        "FF00",
    )
    assert rows.values == (values,)
    assert rows.names == ("t", "t", "d", "m", "a", "s", "b", "n", "x")
    assert rows.kinds == ("instant", "instant", "number", "json", "json", "json", "boolean", "text", "text")


def test_rows_beyond_the_limit_are_reported(spark: SparkSession) -> None:
    assert collect(spark.range(5), limit=5).has_more is False
    rows = collect(spark.range(5), limit=3)
    assert (len(rows.values), rows.has_more) == (3, True)
