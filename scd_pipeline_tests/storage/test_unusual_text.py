"""Files that are valid, and rarely seen: their rows are loaded as they are, without a bad row (S20, S26)."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from scd_pipeline import Pipeline
from scd_pipeline.declaration import Dimension, parse_declarations
from scd_pipeline.deliveries.discovery import discover
from scd_pipeline.deliveries.path_matches import list_paths
from scd_pipeline.deliveries.table_states import table_states
from scd_pipeline_tests.semantics.specification import rule


def declared(channel: str, attributes: str, folder: Path) -> Dimension:
    text = f"dimension: dim_x\nbusiness_key: id\nsources: {{s: {channel}}}\nattributes: {attributes}\n"
    (dimension,) = parse_declarations(text.replace("FOLDER", str(folder))).dimensions
    return dimension


def loaded(spark: SparkSession, warehouse: Path, dimension: Dimension) -> list[tuple[object, ...]]:
    """Load all files; return key and attributes of the current rows. No delivery is rejected, and no row is bad."""
    pipeline = Pipeline(warehouse, spark=spark)
    result = pipeline.load(dimension)
    result.raise_if_rejected()
    assert [batch.bad_rows for batch in result.results] == [0]
    names = ["id", *dimension.attribute_names]
    return sorted(tuple(row) for row in pipeline.current(dimension).select(*names).collect())


@rule("S20")
def test_a_repeated_column_does_not_get_the_name_of_another_one(
    spark: SparkSession, warehouse: Path, tmp_path: Path
) -> None:
    (tmp_path / "2024-01-01.csv").write_text("id,tel,tel,tel2,city\n1,a,b,c,Bonn\n", encoding="utf-8")
    dimension = declared("{snapshot: 'FOLDER/{date}.csv'}", "{tel2: 2, city: 2}", tmp_path)
    assert loaded(spark, warehouse, dimension) == [("1", "c", "Bonn")]


@rule("S26")
def test_a_declared_quote_is_doubled_in_quotes(spark: SparkSession, warehouse: Path, tmp_path: Path) -> None:
    rows = "id,city\n1,'it''s'\n2,'it''s, ok'\n3,'''t Veld'\n"
    (tmp_path / "2024-01-01.csv").write_text(rows, encoding="utf-8")
    channel = """{snapshot: {path: 'FOLDER/{date}.csv', options: {quote: "'"}}}"""
    expected = [("1", "it's"), ("2", "it's, ok"), ("3", "'t Veld")]
    assert loaded(spark, warehouse, declared(channel, "{city: 2}", tmp_path)) == expected


@rule("S26")
def test_a_document_may_begin_with_any_blanks(spark: SparkSession, warehouse: Path, tmp_path: Path) -> None:
    (tmp_path / "2024-01-01.json").write_text('\r\n\t[{"id": "1", "city": "Bonn"}]\n', encoding="utf-8")
    channel = "{snapshot: {path: 'FOLDER/{date}.json', options: {multiLine: 'true'}}}"
    assert loaded(spark, warehouse, declared(channel, "{city: 2}", tmp_path)) == [("1", "Bonn")]


@rule("S26")
def test_spaces_around_a_time_in_a_declared_form_are_ignored(
    spark: SparkSession, warehouse: Path, tmp_path: Path
) -> None:
    (tmp_path / "2024-01-01.csv").write_text("id,born\n1, 31.12.1990\n2,01.02.1990 \n", encoding="utf-8")
    channel = "{snapshot: 'FOLDER/{date}.csv', columns: {born: {format: dd.MM.yyyy}}}"
    expected = [("1", date(1990, 12, 31)), ("2", date(1990, 2, 1))]
    assert loaded(spark, warehouse, declared(channel, "{born: {scd: 2, type: date}}", tmp_path)) == expected


@pytest.mark.parametrize("hidden", [".staging-7", "_rejected"])
def test_a_folder_that_is_not_complete_is_no_delivery(tmp_path: Path, hidden: str) -> None:
    for name in ("0007", hidden):
        (tmp_path / name).mkdir()
        (tmp_path / name / "rows.csv").write_text("id,city,at\n1,Bonn,2024-01-01\n", encoding="utf-8")
    dimension = declared("{feed: {path: 'FOLDER/{delivery}/rows.csv', effective_at: at}}", "{city: 2}", tmp_path)
    assert [delivery.name for delivery in discover(dimension, None)] == ["0007"]


def test_a_path_may_end_with_a_slash(tmp_path: Path) -> None:
    """Paths of folders in a bucket are often written so."""
    (tmp_path / "2024-01-31").mkdir()
    (match,) = list_paths(f"{tmp_path}/{{date}}/").matches
    assert match.name == "2024-01-31"


def test_a_table_at_a_path_with_a_scheme_has_a_state(tmp_path: Path) -> None:
    (tmp_path / "_delta_log").mkdir()
    (tmp_path / "_delta_log" / f"{0:020}.json").write_text("{}", encoding="utf-8")
    states = [
        table_states(declared(f"{{snapshot: {{path: '{prefix}FOLDER', versions: true}}}}", "{city: 2}", tmp_path))
        for prefix in ("", "file:", "file://")
    ]
    assert [len(each) for each in states] == [1, 1, 1]
    assert len({state.text for each in states for state in each.values()}) == 1
