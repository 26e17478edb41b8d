"""Files that are replaced while a load reads them: rejected, and read by the next load."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow
import pyarrow.parquet
import pytest
from pyspark.sql import SparkSession

from scd_pipeline.declaration import Dimension, Snapshot, Source
from scd_pipeline.deliveries import accept
from scd_pipeline.deliveries.discovery import discover
from scd_pipeline.delta.warehouse import Warehouse
from scd_pipeline.history import narrowing
from scd_pipeline.load.run import LoadResult, ingest_and_apply
from scd_pipeline_tests.storage.customers import history

OLD, NEW = ["Bonn", "Rome", "Oslo", "Wien", "Graz", "Linz"], ["Paris", "Rome", "Oslo", "Wien", "Graz", "Linz", "Kiel"]


def write_csv(path: Path, cities: list[str]) -> None:
    text = "".join(f"{key},{city}\n" for key, city in enumerate(cities))
    path.write_text(f"id,city\n{text}", encoding="utf-8")


def write_json(path: Path, cities: list[str]) -> None:
    text = "".join(f'{{"id":"{key}","city":"{city}"}}\n' for key, city in enumerate(cities))
    path.write_text(text, encoding="utf-8")


def write_parquet(path: Path, cities: list[str]) -> None:
    table = pyarrow.table({"id": [str(key) for key in range(len(cities))], "city": cities})
    pyarrow.parquet.write_table(table, path)


def write_partition(path: Path, cities: list[str]) -> None:
    folder = path / "day=2024-01-31"
    folder.mkdir(parents=True, exist_ok=True)
    write_parquet(folder / "p.parquet", cities)


def write_nested_partition(path: Path, cities: list[str]) -> None:
    write_partition(path / "month=01", cities)


def replace_before_rows_are_read(monkeypatch: pytest.MonkeyPatch, replace_files: Callable[[], None]) -> None:
    """Let the first load replace its files after they are listed and scanned, and before their rows are computed."""
    compute, replaced = accept.compute_deliveries, list[bool]()

    def replace_and_compute(*arguments: Any) -> Any:
        if not replaced:
            replace_files()
            replaced.append(True)
        return compute(*arguments)

    monkeypatch.setattr(accept, "compute_deliveries", replace_and_compute)


@pytest.mark.parametrize(
    ("path", "options", "write"),
    [
        pytest.param("c_{date}.csv", {}, write_csv, id="csv"),
        pytest.param("c_{date}.json", {}, write_json, id="json", marks=pytest.mark.slow),
        pytest.param("c_{date}.parquet", {}, write_parquet, id="parquet", marks=pytest.mark.slow),
        pytest.param(
            "c", {"partition": "day", "format": "parquet"}, write_partition, id="partition", marks=pytest.mark.slow
        ),
        pytest.param(
            "c", {"partition": "day", "format": "parquet"}, write_nested_partition, id="nested", marks=pytest.mark.slow
        ),
    ],
)
def test_a_replaced_file_is_rejected_and_read_by_the_next_load(
    spark: SparkSession,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    path: str,
    options: dict[str, str],
    write: Callable[[Path, list[str]], None],
) -> None:
    file, incoming = tmp_path / path.replace("{date}", "2024-01-31"), tmp_path / "incoming"
    write(file, OLD)
    write(incoming, NEW)
    dimension = Dimension("dim_city", "id", {"city": 2}, Source("s", Snapshot(str(tmp_path / path), **options)))  # type: ignore[arg-type]
    opened = Warehouse(spark, tmp_path / "warehouse")

    def move_new_files() -> None:
        for each in [*incoming.rglob("*.parquet")] if incoming.is_dir() else [incoming]:
            each.replace(file / each.relative_to(incoming) if incoming.is_dir() else file)

    def load() -> LoadResult:
        return ingest_and_apply(opened, dimension, discover(dimension, spark))

    replace_before_rows_are_read(monkeypatch, move_new_files)
    (rejected,) = load().results
    assert (rejected.outcome, rejected.code) == ("rejected", "CHANGED_WHILE_READ")
    assert not opened.table("dim_city").exists()
    (accepted,) = load().results
    assert (accepted.outcome, accepted.rows) == ("accepted", 7)
    assert sorted(row["city"] for row in history(opened, dimension)) == sorted(NEW)
    assert [batch.outcome for batch in load().results] == ["unchanged"]


@pytest.mark.slow
def test_other_deliveries_of_the_load_are_accepted(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also a snapshot that is compared with the current rows while it is read, and files of other partitions."""
    for day in ("2024-01-01", "2024-01-02"):
        write_csv(tmp_path / f"c_{day}.csv", OLD)
    dimension = Dimension("dim_city", "id", {"city": 2}, Source("s", str(tmp_path / "c_{date}.csv")))
    opened = Warehouse(spark, tmp_path / "warehouse")
    replace_before_rows_are_read(monkeypatch, lambda: write_csv(tmp_path / "c_2024-01-02.csv", NEW))
    results = ingest_and_apply(opened, dimension, discover(dimension, spark)).results
    assert [(batch.delivery, batch.outcome) for batch in results] == [
        ("2024-01-01", "accepted"),
        ("2024-01-02", "rejected"),
    ]
    monkeypatch.setattr(narrowing, "NARROWED_FROM", 0)
    narrow = accept.compute_narrowed

    def append_and_narrow(*arguments: Any) -> Any:
        with (tmp_path / "c_2024-01-02.csv").open("a", encoding="utf-8") as file:
            file.write("7,Brno\n")
        return narrow(*arguments)

    with monkeypatch.context() as patch:
        patch.setattr(accept, "compute_narrowed", append_and_narrow)
        results = ingest_and_apply(opened, dimension, discover(dimension, spark)).results
    assert [batch.code for batch in results] == ["", "CHANGED_WHILE_READ"]
    results = ingest_and_apply(opened, dimension, discover(dimension, spark)).results
    assert [(batch.outcome, batch.rows) for batch in results] == [("unchanged", 0), ("accepted", 8)]
