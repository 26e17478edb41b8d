"""Rows as text: aligned, lossless, readable by other programs."""

from __future__ import annotations

import csv
import io
import json
from typing import TYPE_CHECKING

import pytest

from scd_pipeline.operations import texts
from scd_pipeline.operations.texts import Texts

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROWS = Texts(("name", "n"), ("text", "number"), (("Müller", "7"), (None, "1200"), ("", None)))


def test_numbers_are_to_the_right_and_null_is_told_from_empty() -> None:
    assert texts.table(ROWS).splitlines() == [
        "name       n",
        "------  ----",
        "Müller     7",
        "NULL    1200",
        "        NULL",
    ]


def test_wide_and_combining_characters_keep_the_columns() -> None:
    rows = Texts(("a", "b"), ("text", "text"), (("東京", "x"), ("e\u0301", "y")))
    assert texts.table(rows).splitlines() == ["a     b", "----  -", "東京  x", "e\u0301     y"]


def test_control_characters_do_not_break_the_table() -> None:
    rows = Texts(("a",), ("text",), (("one\ntwo\t\x1b[31m",),))
    assert texts.table(rows).splitlines()[2] == "one\\ntwo\\t\\x1b[31m"


def test_a_table_without_rows_has_its_head() -> None:
    assert texts.table(Texts(("a", "bb"), ("text", "number"), ())).splitlines() == ["a  bb", "-  --"]


def test_records_have_one_value_to_a_line() -> None:
    assert texts.records(ROWS).splitlines()[:3] == ["-- row 1 ", "name  Müller", "n     7"]
    assert texts.records(Texts(("a",), ("text",), ())) == "(no rows)"


def test_csv_is_read_back() -> None:
    rows = Texts(("a", "b"), ("text", "text"), (('say "hi", all', "two\nlines"), ("plain", "x")))
    assert list(csv.reader(io.StringIO(texts.comma_separated(rows)))) == [list(rows.names), *map(list, rows.rows)]


def test_csv_tells_null_from_an_empty_text() -> None:
    assert texts.comma_separated(ROWS).splitlines()[2:] == [",1200", '"",']


def test_json_has_numbers_as_numbers_and_what_json_lacks_as_text() -> None:
    kinds = ("text", "number", "boolean", "number")
    rows = Texts(("t", "n", "b", "x"), kinds, (("ä\n", "12.50", "true", "NaN"), (None, None, None, "1E+2")))
    read = [json.loads(line) for line in texts.json_lines(rows).splitlines()]
    assert read == [{"t": "ä\n", "n": 12.5, "b": True, "x": "NaN"}, {"t": None, "n": None, "b": None, "x": 100.0}]


def test_columns_that_differ() -> None:
    rows = Texts(("a", "b"), ("text", "text"), (("1", None), ("1", "x")))
    assert texts.differing(rows) == ["b"]
    assert rows.of(["b"]).rows == ((None,), ("x",))


@pytest.mark.parametrize("zone", ["Asia/Tokyo", "America/New_York"])
def test_every_type_of_spark_becomes_text_in_any_zone(
    spark: SparkSession, zone: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    import time

    monkeypatch.setenv("TZ", zone)
    time.tzset()
    try:
        found = texts.collected(
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
        "{k -> 1}",
        "[1, null]",
        "{1, y}",
        "true",
        None,
        "FF00",
    )
    assert found.rows == (values,)
    assert found.names == ("t", "t", "d", "m", "a", "s", "b", "n", "x")
    assert found.kinds == ("text", "text", "number", "text", "text", "text", "boolean", "text", "text")


def test_rows_beyond_the_limit_are_told(spark: SparkSession) -> None:
    assert texts.collected(spark.range(5), limit=5).more is False
    found = texts.collected(spark.range(5), limit=3)
    assert (len(found.rows), found.more) == (3, True)
