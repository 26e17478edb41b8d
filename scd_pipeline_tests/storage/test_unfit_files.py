"""Files that are not what their names or their headers say: the error names the cause, and others are loaded."""

from __future__ import annotations

import gzip
import io
import json
import tarfile
import zipfile
from datetime import datetime, timezone
from pathlib import Path

import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from scd_pipeline.declaration import Dimension, Feed, Source
from scd_pipeline.deliveries import bad_row_explanations
from scd_pipeline.deliveries.bad_row_explanations import explain_bad_rows
from scd_pipeline.deliveries.delivery import Delivery
from scd_pipeline.deliveries.file_signatures import signature_problem
from scd_pipeline.deliveries.result import BatchResult
from scd_pipeline.delta.warehouse import Warehouse
from scd_pipeline.load.run import ingest_and_apply


def zipped(text: str) -> bytes:
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        archive.writestr("c.csv", text)
    return content.getvalue()


def tarred(text: str) -> bytes:
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w") as archive:
        archive.addfile(tarfile.TarInfo("c.csv"), io.BytesIO(text.encode()))
    return content.getvalue()


TAR = tarred("id,city\n")
AT = datetime(2024, 1, 1, tzinfo=timezone.utc)
FILES: dict[str, bytes | None] = {
    "good.csv": b"id,city\n1,Graz\n",
    "members.csv.gz": gzip.compress(b"id,city\n2,Graz\n") + gzip.compress(b"3,Linz\n"),
    "archive.csv": zipped("id,city\n4,Graz\n"),
    "gzip.csv": gzip.compress(b"id,city\n5,Graz\n"),
    "plain.csv.gz": b"id,city\n6,Graz\n",
    "folder.csv": None,
    "folders.csv": None,
    "explained before.csv": b"id,city\n13,Graz,\n",
    "more.csv": b"id,city\n7,Graz,\n8,Linz,\n9\n",
    "fewer.csv": b'id,city,\n"10\n"\n11,Linz,\n\n12\n',
    "ends of lines.csv": b"id,city\n14,Graz,\n15,Linz,\n16,Wels,\n17,Wien,\n",
    "end of header.csv": b"id,city,\n18,Graz\n19,Linz\n",
    "separator.csv": b"id;city\n21;Graz\n",
}
REJECTED = {
    "folders.csv": (
        "UNREADABLE_DELIVERY",
        "folders.csv is a folder whose files are in folders below it; move them into it, or declare `options: "
        '{recursiveFileLookup: "true"}` in the channel',
    ),
    "archive.csv": ("UNREADABLE_DELIVERY", "archive.csv is a ZIP archive or an Excel workbook; unpack or convert it"),
    "gzip.csv": (
        "UNREADABLE_DELIVERY",
        "gzip.csv is compressed with gzip; unpack it, or rename it to gzip.csv.gz, also in the declared path",
    ),
    "plain.csv.gz": (
        "UNREADABLE_DELIVERY",
        "plain.csv.gz is not compressed with gzip, unlike its suffix; rename it to plain.csv, also in the declared "
        "path, or compress it",
    ),
    "folder.csv": (
        "UNREADABLE_DELIVERY",
        "folder.csv is a folder without files; put the files into it, or replace it by the file",
    ),
    "more.csv": (
        "BAD_ROWS",
        "1 line has fewer than the 2 fields of the header (line 4 has 1), and 2 lines have more than the 2 fields of "
        "the header (line 2 has 3, line 3 has 3) because each of them ends with the separator ','; remove it there, or "
        "end the header with it too; 3 of 3 rows are bad (100%); expected at most 5%",
    ),
    "fewer.csv": (
        "BAD_ROWS",
        "2 lines have fewer than the 3 fields of the header (line 2 has 1, line 6 has 1); 2 of 3 rows are bad (67%); "
        "expected at most 5%",
    ),
    "ends of lines.csv": (
        "BAD_ROWS",
        "4 lines have more than the 2 fields of the header (line 2 has 3, line 3 has 3, line 4 has 3, "
        "...) because each of them ends with the separator ','; remove it there, or end the header with it too; 4 of 4 "
        "rows are bad (100%); expected at most 5%",
    ),
    "separator.csv": (
        "COLUMN_MISSING",
        "columns are missing: id, city; it has one column, as its header has the separator ';'; declare `options: "
        '{sep: ";"}` in the channel; expected every declared column',
    ),
    "end of header.csv": (
        "BAD_ROWS",
        "2 lines have fewer than the 3 fields of the header (line 2 has 2, line 3 has 2) because the "
        "header ends with the separator ','; remove it there, or end each line with it too; 2 of 2 rows are bad "
        "(100%); expected at most 5%",
    ),
}


@pytest.mark.parametrize(
    ("name", "content", "file_format", "problem"),
    [
        ("a.csv", b"PAR1_code,id\n1,2\n", "csv", ""),
        ("a.json", b"PAR1....PAR1", "json", "a.json is a Parquet file; declare `format: parquet`"),
        ("a.csv", b"\xd0\xcf\x11\xe0.", "csv", "a.csv is an old Excel workbook; convert it"),
        (
            "a.csv.bz2",
            b"id,city\n",
            "csv",
            "a.csv.bz2 is not compressed with bzip2, unlike its suffix; rename it to a.csv, also in the declared path, "
            "or compress it",
        ),
        (
            "a.json",
            b"\x28\xb5\x2f\xfd.",
            "json",
            "a.json is compressed with zstd; unpack it, or rename it to a.json.zst, also in the declared path",
        ),
        ("a.csv", b"\xfd7zXZ\x00.", "csv", "a.csv is compressed with xz, which Spark does not read; unpack it"),
        ("a.csv", b"7z\xbc\xaf\x27\x1c.", "csv", "a.csv is a 7z archive; unpack it"),
        ("a.csv", TAR, "csv", "a.csv is a tar archive; unpack it"),
        ("a.tar.gz", gzip.compress(TAR), "csv", "a.tar.gz is a tar archive; unpack it"),
        ("a.csv.gz", gzip.compress(b"id")[:15], "csv", ""),
        ("a.parquet", zipped(""), "parquet", "a.parquet is a ZIP archive or an Excel workbook; unpack or convert it"),
        ("a.parquet", gzip.compress(b"PAR1"), "parquet", "a.parquet is compressed with gzip; unpack it"),
        ("a.csv.zst", b"\x28\xb5\x2f\xfd.", "csv", ""),
        ("a.csv", b"", "csv", ""),
        ("a.csv.gz", b"", "csv", ""),
        ("a.parquet", b"PAR1", "parquet", ""),
        ("_SUCCESS", b"PK\x03\x04", "csv", ""),
    ],
    # Archives contain the time: each process of a run would give the test another name.
    ids=lambda value: None if isinstance(value, str) else "content",
)
def test_first_bytes_show_the_format_of_a_file(
    tmp_path: Path, name: str, content: bytes, file_format: str, problem: str
) -> None:
    file = tmp_path / name
    file.write_bytes(content)
    assert signature_problem(str(file), file_format) == (f"{tmp_path}/{problem}" if problem else "")
    (tmp_path / "part.csv").write_bytes(b"id")
    assert signature_problem(str(tmp_path), file_format) == (f"{tmp_path}/{problem}" if problem else "")


@pytest.mark.parametrize(
    ("files", "is_recursive", "problem"),
    [
        ("", False, "without files; put the files into it, or replace it by the file"),
        ("_SUCCESS a/.x", False, "without files; put the files into it, or replace it by the file"),
        (
            "a/x.csv b/y.csv",
            False,
            "whose files are in folders below it; move them into it, or declare `options: {recursiveFileLookup: "
            '"true"}` in the channel',
        ),
        ("a/x.csv", True, ""),
        ("a/x.csv y.csv", False, ""),
        ("a/x.csv city=Graz/y.csv", False, ""),
    ],
)
def test_a_folder_of_which_spark_reads_no_file_is_named(
    tmp_path: Path, files: str, is_recursive: bool, problem: str
) -> None:
    for name in files.split():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("id\n1\n")
    expected = f"{tmp_path} is a folder {problem}" if problem else ""
    assert signature_problem(str(tmp_path), "csv", is_recursive=is_recursive) == expected


RESERVED = ("_scd_line", "_scd_file", "_metadata", "_SCD")
"""Names that the readers give to columns of their own."""


@pytest.mark.slow
@pytest.mark.rule("S20")
@pytest.mark.parametrize("file_format", ["csv", "quoted.csv", "parquet", "json"])
def test_columns_with_reserved_names_are_undeclared(spark: SparkSession, tmp_path: Path, file_format: str) -> None:
    """Each in two files, which are read together, and all in one."""
    deliveries = []
    for number, names in enumerate([*((name,) for name in RESERVED for _ in (1, 2)), RESERVED]):
        table = pa.table(
            {names[0]: ["x"], "id": [str(number)], **{name: ["y"] for name in names[1:]}, "city": ["Graz"]}
        )
        path = tmp_path / f"{number}.{file_format}"
        if file_format == "parquet":
            pq.write_table(table, path)
        elif file_format == "json":
            path.write_text(json.dumps(table.to_pylist()), encoding="utf-8")
        else:
            quoting = "needed" if file_format == "csv" else "all_valid"
            pa_csv.write_csv(table, path, pa_csv.WriteOptions(quoting_style=quoting, quoting_header=quoting))
        deliveries.append(Delivery("crm", str(number), at=AT, path=str(path)))
    dimension = Dimension("dim_c", "id", {"city": 2}, Source("crm", feed=Feed(format=file_format.rpartition(".")[2])))
    opened = Warehouse(spark, tmp_path / "warehouse")
    done = ingest_and_apply(opened, dimension, deliveries)
    undeclared = [tuple(sorted(result.undeclared)) for result in done.results]
    assert undeclared == [*((name,) for name in RESERVED for _ in (1, 2)), tuple(sorted(RESERVED))]
    rows = opened.table("dim_c").read().select("id", "city").collect()
    assert sorted(map(tuple, rows)) == [(str(number), "Graz") for number in range(9)]


@pytest.mark.slow
@pytest.mark.rule("S20")
def test_frames_and_tables_with_reserved_names_are_read_and_a_declared_one_is_rejected(
    spark: SparkSession, tmp_path: Path
) -> None:
    table = pa.table({"_scd_line": ["x"], "id": ["1"], "_metadata": ["y"], "city": ["Graz"], "_scd_row_order": ["z"]})
    source = Source("crm", feed=Feed(), columns={"phone": "_scd_line"})
    opened = Warehouse(spark, tmp_path / "warehouse")
    for number, frame in enumerate([table, spark.createDataFrame(table.to_pandas())]):
        dimension = Dimension(f"dim_{number}", "id", {"city": 2}, Source("crm", feed=Feed()))
        (result,) = ingest_and_apply(opened, dimension, [Delivery("crm", "1", at=AT, frame=frame)]).results
        assert (result.outcome, result.undeclared) == ("accepted", ("_scd_line", "_metadata", "_scd_row_order"))
    dimension = Dimension("dim_2", "id", {"city": 2, "phone": 2}, source)
    (result,) = ingest_and_apply(opened, dimension, [Delivery("crm", "1", at=AT, frame=table)]).results
    assert (result.code, result.details) == ("RESERVED_COLUMN", {"columns": "_scd_line"})


def dimension_of(file_format: str) -> Dimension:
    return Dimension("dim_c", "id", {"city": 2}, Source("crm", feed=Feed(format=file_format)))


@pytest.fixture(scope="module")
def results(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> dict[str, BatchResult]:
    """The results of one load of all files, by name."""
    folder = tmp_path_factory.mktemp("files")
    for name, content in FILES.items():
        (folder / name).mkdir() if content is None else (folder / name).write_bytes(content)
    (folder / "folders.csv" / "folder").mkdir()
    (folder / "folders.csv" / "folder" / "part.csv").write_bytes(b"id,city\n20,Graz\n")
    deliveries = [Delivery("crm", name, at=AT, path=str(folder / name)) for name in FILES]
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(bad_row_explanations, "_MAX_EXPLAINED", 4)
        done = ingest_and_apply(Warehouse(spark, folder / "warehouse"), dimension_of("csv"), deliveries)
    return {result.delivery: result for result in done.results}


@pytest.mark.rule("S26", "S27")
@pytest.mark.parametrize("name", REJECTED)
def test_a_file_that_is_not_as_declared_is_rejected_with_the_cause(results: dict[str, BatchResult], name: str) -> None:
    code, problem = REJECTED[name]
    assert (results[name].outcome, results[name].code) == ("rejected", code)
    assert results[name].problem.partition("; expected a complete")[0].endswith(problem)


@pytest.mark.rule("S26")
def test_the_lines_of_the_last_rejected_files_alone_are_read_once_more(results: dict[str, BatchResult]) -> None:
    before = results["explained before.csv"]
    assert (before.outcome, before.code) == ("rejected", "BAD_ROWS")
    assert "of the header" not in before.problem


@pytest.mark.rule("S26")
@pytest.mark.parametrize("file_format", ["csv", "json"])
def test_a_rejected_file_that_was_moved_keeps_the_reason_of_a_row(
    spark: SparkSession, tmp_path: Path, results: dict[str, BatchResult], file_format: str
) -> None:
    moved = Delivery("crm", "more.csv", at=AT, path=str(tmp_path / f"moved.{file_format}"))
    before = results["explained before.csv"]
    assert explain_bad_rows(spark, dimension_of(file_format), [moved], [before]) == (before,)


def test_all_members_of_a_compressed_file_are_read_and_other_files_are_loaded(results: dict[str, BatchResult]) -> None:
    rows = {name: result.rows for name, result in results.items() if result.outcome == "accepted"}
    assert rows == {"good.csv": 1, "members.csv.gz": 2}


ONE_DOCUMENT = 'each file is one document of several lines; declare `options: {multiLine: "true"}` in the channel'
NO_OBJECT = "the line is not a JSON object or an array of objects, or has text after it"


@pytest.mark.rule("S26")
def test_json_that_is_not_one_object_per_line_is_rejected_with_what_it_has(spark: SparkSession, tmp_path: Path) -> None:
    """A document of several lines, lines that no declaration reads, and rows that are inside of an object."""
    texts = {
        "indented": '[\n  {"id": 1, "city": "Graz"},\n  {"id": 2, "city": "Linz"}\n]\n',
        "array": '[{"id": 1, "city": "Graz"},\n{"id": 2, "city": "Linz"}]\n',
        "object": '{"id": 1,\n "city": "Graz"}\n',
        "truncated": '[\n  {\n    "id": 1,\n    "city": "Gr',
        "commas": '{"id": 1, "city": "Graz"},\n{"id": 2, "city": "Linz"},\n',
        "key": '[{"id": null, "city": "Graz"}]\n',
        "wrapped": '{"next": null, "value": [{"id": 1, "city": "Graz"}]}\n',
    }
    deliveries = []
    for name, text in texts.items():
        (tmp_path / f"{name}.json").write_text(text)
        deliveries.append(Delivery("crm", name, at=AT, path=str(tmp_path / f"{name}.json")))
    done = ingest_and_apply(Warehouse(spark, tmp_path / "warehouse"), dimension_of("json"), deliveries)
    *unparsed, wrapped = done.results
    assert [(result.delivery, result.code, result.details["example"]) for result in unparsed] == [
        ("indented", "BAD_ROWS", ONE_DOCUMENT),
        ("array", "BAD_ROWS", ONE_DOCUMENT),
        ("object", "BAD_ROWS", ONE_DOCUMENT),
        ("truncated", "BAD_ROWS", ONE_DOCUMENT),
        ("commas", "BAD_ROWS", NO_OBJECT),
        ("key", "BAD_ROWS", "the business key is NULL or cannot be read"),
    ]
    assert (wrapped.code, wrapped.details["existing"]) == ("COLUMN_MISSING", "next, value")


@pytest.mark.rule("S20")
@pytest.mark.parametrize(
    ("file", "text"),
    [
        pytest.param("c.csv", "id,address.city,address.zip code\n1,Graz,8010\n2,Linz,4020\n", marks=pytest.mark.slow),
        (
            "c.json",
            '{"id": 1, "address": {"city": "Graz", "zip code": 8010}}\n'
            '{"id": 2, "address": {"city": "Linz", "zip code": "4020"}}\n',
        ),
    ],
)
def test_a_name_with_a_dot_is_that_of_a_column_or_of_a_field(
    spark: SparkSession, tmp_path: Path, file: str, text: str
) -> None:
    (tmp_path / file).write_text(text)
    columns = {"city": "address.city", "zip": "address.zip code"}
    source = Source("crm", feed=Feed(format=file[2:]), columns=columns)
    opened = Warehouse(spark, tmp_path / "warehouse")
    dimension = Dimension("dim_c", "id", {"city": 2, "zip": 1}, source)
    delivery = Delivery("crm", "1", at=AT, path=str(tmp_path / file))
    (result,) = ingest_and_apply(opened, dimension, [delivery]).results
    assert (result.outcome, result.undeclared) == ("accepted", ()), result
    rows = opened.table("dim_c").read().select("id", "city", "zip").collect()
    assert sorted(map(tuple, rows)) == [("1", "Graz", "8010"), ("2", "Linz", "4020")]
