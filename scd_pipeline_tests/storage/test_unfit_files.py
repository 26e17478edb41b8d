"""Files that are not what their names or their headers say: the error names the cause, and others are loaded."""

from __future__ import annotations

import gzip
import io
import zipfile
from datetime import datetime, timezone
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from scd_pipeline.declaration import Dimension, Feed, Source
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


AT = datetime(2024, 1, 1, tzinfo=timezone.utc)
FILES: dict[str, bytes | None] = {
    "good.csv": b"id,city\n1,Graz\n",
    "members.csv.gz": gzip.compress(b"id,city\n2,Graz\n") + gzip.compress(b"3,Linz\n"),
    "archive.csv": zipped("id,city\n4,Graz\n"),
    "gzip.csv": gzip.compress(b"id,city\n5,Graz\n"),
    "plain.csv.gz": b"id,city\n6,Graz\n",
    "folder.csv": None,
    "more.csv": b"id,city\n7,Graz,\n8,Linz,\n9\n",
    "fewer.csv": b'id,city,\n"10\n"\n11,Linz,\n\n12\n',
}
REJECTED = {
    "archive.csv": ("UNREADABLE_DELIVERY", "archive.csv is a ZIP archive or an Excel workbook; unpack or convert it"),
    "gzip.csv": ("UNREADABLE_DELIVERY", "gzip.csv is compressed with gzip; give its name the suffix .gz"),
    "plain.csv.gz": ("UNREADABLE_DELIVERY", "plain.csv.gz is not compressed with gzip, unlike its suffix; rename it"),
    "folder.csv": ("UNREADABLE_DELIVERY", "folder.csv is a folder without files"),
    "more.csv": (
        "BAD_ROWS",
        "3 of 3 rows are bad (100%); expected at most 5%; for example: 1 line has fewer than the 2 fields of the "
        "header (line 4) and 2 lines have more than the 2 fields of the header (line 2)",
    ),
    "fewer.csv": ("BAD_ROWS", "for example: 2 lines have fewer than the 3 fields of the header (line 2)"),
}


@pytest.mark.parametrize(
    ("name", "content", "file_format", "problem"),
    [
        ("a.json", b"PAR1....", "json", "a.json is a Parquet file; declare `format: parquet`"),
        ("a.csv", b"\xd0\xcf\x11\xe0.", "csv", "a.csv is an old Excel workbook; convert it"),
        ("a.csv.bz2", b"id,city\n", "csv", "a.csv.bz2 is not compressed with bzip2, unlike its suffix; rename it"),
        ("a.csv.zst", b"\x28\xb5\x2f\xfd.", "csv", ""),
        ("a.csv", b"", "csv", ""),
        ("a.csv.gz", b"", "csv", ""),
        ("a.parquet", b"PAR1", "parquet", ""),
        ("_SUCCESS", b"PK\x03\x04", "csv", ""),
    ],
)
def test_first_bytes_show_the_format_of_a_file(
    tmp_path: Path, name: str, content: bytes, file_format: str, problem: str
) -> None:
    file = tmp_path / name
    file.write_bytes(content)
    assert signature_problem(str(file), file_format) == (f"{tmp_path}/{problem}" if problem else "")
    (tmp_path / "part.csv").write_bytes(b"id")
    assert signature_problem(str(tmp_path), file_format) == (f"{tmp_path}/{problem}" if problem else "")


@pytest.fixture(scope="module")
def results(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> dict[str, BatchResult]:
    """The results of one load of all files, by name."""
    folder = tmp_path_factory.mktemp("files")
    for name, content in FILES.items():
        (folder / name).mkdir() if content is None else (folder / name).write_bytes(content)
    deliveries = [Delivery("crm", name, at=AT, path=str(folder / name)) for name in FILES]
    dimension = Dimension("dim_c", "id", {"city": 2}, Source("crm", feed=Feed(format="csv")))
    done = ingest_and_apply(Warehouse(spark, folder / "warehouse"), dimension, deliveries)
    return {result.delivery: result for result in done.results}


@pytest.mark.rule("S26", "S27")
@pytest.mark.parametrize("name", REJECTED)
def test_a_file_that_is_not_as_declared_is_rejected_with_the_cause(results: dict[str, BatchResult], name: str) -> None:
    code, problem = REJECTED[name]
    assert (results[name].outcome, results[name].code) == ("rejected", code)
    assert problem in results[name].problem


def test_all_members_of_a_compressed_file_are_read_and_other_files_are_loaded(results: dict[str, BatchResult]) -> None:
    rows = {name: result.rows for name, result in results.items() if result.outcome == "accepted"}
    assert rows == {"good.csv": 1, "members.csv.gz": 2}
