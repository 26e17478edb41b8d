"""A record of a CSV file is what Python's csv module reads as one, whatever line breaks divide it and are in it."""

from __future__ import annotations

import csv
import io
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from scd_pipeline.declaration import Feed
from scd_pipeline.deliveries.csv_files import CsvLayout, read_csv, scan_csv
from scd_pipeline.deliveries.paths import normalize_path
from scd_pipeline.deliveries.row_columns import FILE, LINE, ROW_ORDER

Row = tuple[str | None, str | None]

BREAKS = st.sampled_from(("\n", "\r", "\r\n"))
HEADERS = ("id,city", '"id","ci\rty"', '"i\r\nd",city')
TEXTS = st.lists(st.sampled_from((*"ab1 ,", '"', "\n", "\r", "\r\n", "ö")), max_size=6).map("".join)
QUOTED = TEXTS.map(lambda text: '"' + text.replace('"', '""') + '"')
UNQUOTED = st.tuples(st.sampled_from("xyz"), st.lists(st.sampled_from((*"ab ö", '"')), max_size=4).map("".join)).map(
    "".join
)
ENDED_RECORDS = st.tuples(st.lists(QUOTED | UNQUOTED, min_size=1, max_size=3).map(",".join), BREAKS).map("".join)
BODIES = st.lists(ENDED_RECORDS | BREAKS, max_size=6).map("".join)
LAST_LINES = st.sampled_from(("", "", "x", 'x,"a\rb"', "\r\r\n"))
FILES = st.lists(st.tuples(st.sampled_from(HEADERS), BREAKS, BODIES, LAST_LINES).map("".join), min_size=60, max_size=60)


def rows_by_python(text: str) -> tuple[list[str], list[Row]]:
    """The header, and each row; the values of a row that does not have two fields are None."""
    header, *rows = [row for row in csv.reader(io.StringIO(text, newline="")) if row]
    return header, [(row[0] or None, row[1] or None) if len(row) == 2 else (None, None) for row in rows]


def rows_by_spark(spark: SparkSession, paths: list[str], layout: CsvLayout) -> tuple[list[str], dict[str, list[Row]]]:
    """The names of the columns, and the rows of each file in their order."""
    frame = read_csv(spark, Feed(format="csv"), paths, layout)
    names = frame.columns[:2]
    values = [F.when(F.col(LINE).isNull() & (F.col(f"`{name}`") != ""), F.col(f"`{name}`")) for name in names]
    order = [F.col(ROW_ORDER)["block"].alias("block"), F.col(ROW_ORDER)["row"].alias("row")]
    rows: dict[str, list[Row]] = {}
    for file, first, second, *_ in frame.select(FILE, *values, *order).orderBy(FILE, "block", "row").collect():
        rows.setdefault(normalize_path(file), []).append((first, second))
    return names, rows


def check(spark: SparkSession, texts: list[str]) -> None:
    """Write the texts as files, read those of one layout together, and compare the rows with those of Python."""
    with TemporaryDirectory() as folder:
        by_path = {str(Path(folder, f"{number}.csv")): text for number, text in enumerate(texts)}
        for path, text in by_path.items():
            Path(path).write_bytes(text.encode())
        by_layout: dict[CsvLayout, list[str]] = {}
        for path, layout in scan_csv(spark, Feed(format="csv"), list(by_path)).items():
            assert layout.problem == "", by_path[path]
            by_layout.setdefault(layout, []).append(path)
        for layout, paths in by_layout.items():
            names, rows = rows_by_spark(spark, paths, layout)
            for path in paths:
                expected = rows_by_python(by_path[path])
                assert (names, rows.get(path, [])) == expected, repr(by_path[path])


@pytest.mark.rule("S26")
def test_line_breaks_of_each_kind_end_records_and_are_values_in_quotes(spark: SparkSession) -> None:
    check(
        spark,
        [
            'id,city\n1,"Gr\raz"\n2,Linz\n',
            'id,city\r1,"Gr\naz"\r2,Linz\r',
            'id,city\r\n1,"Gr\r\n\raz"\r2,"\r"\n\r\n3,"\r\n"\r\n',
            'id,city\n1,5" pipe\r2,"x\ny"\n3,"say ""hi"",\r""ho"""\n',
            'id,city\r\r\n1,"a\n\n\rb"\r\r\n2,c',
        ],
    )


@pytest.mark.slow
@pytest.mark.rule("S26")
@settings(
    max_examples=8,
    deadline=None,
    phases=[Phase.generate],
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(texts=FILES)
def test_records_are_those_of_pythons_csv_module(spark: SparkSession, texts: list[str]) -> None:
    check(spark, texts)


HEADERS_AND_NAMES: list[tuple[dict[str, str], str, list[str]]] = [
    ({"nullValue": "NA"}, 'id,"ci""ty",NA,,id,ID', ["id0", 'ci"ty', "_c2", "_c3", "id4", "ID5"]),
    ({}, 'a b,"c,d", e ', ["a b", "c,d", " e "]),
    ({"ignoreLeadingWhiteSpace": "true"}, 'state, "dis,trict", zip ', ["state", "dis,trict", "zip "]),
    ({"ignoreLeadingWhiteSpace": "true", "ignoreTrailingWhiteSpace": "true"}, " a , b ", ["a", "b"]),
    ({"sep": "||"}, "a||b|c||", ["a", "b|c", "_c2"]),
    ({"escape": "\\"}, '"a\\"b",c', ['a"b', "c"]),
    ({"quote": ""}, '1,"a,b"', ["1", '"a', 'b"']),
    ({"header": "false"}, '1,"a,b"', ["_c0", "_c1"]),
    ({"unescapedQuoteHandling": "STOP_AT_CLOSING_QUOTE"}, '"id","a b"', ["id", "a b"]),
]


def test_the_names_of_columns_are_those_that_spark_gives(spark: SparkSession, tmp_path: Path) -> None:
    for number, (options, header, names) in enumerate(HEADERS_AND_NAMES):
        path = tmp_path / f"{number}.csv"
        path.write_text(f"{header}\n1\n")
        reader = spark.read.options(header="true", escape='"').options(**options)
        assert reader.csv(str(path)).columns == names
        feed = Feed(format="csv", options=options)
        layout = scan_csv(spark, feed, [str(path)])[str(path)]
        assert read_csv(spark, feed, [str(path)], layout).columns[: len(names)] == names
