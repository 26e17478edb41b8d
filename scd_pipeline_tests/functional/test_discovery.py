"""Discovery of declarations and deliveries."""

from __future__ import annotations

from datetime import datetime, timezone
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from scd_pipeline.declaration import Dimension, Source, read_dimension
from scd_pipeline.deliveries.discovery import declaration_folder, discover_files, select_deliveries
from scd_pipeline.deliveries.partitions import matching_partition_keys, partition_key
from scd_pipeline.environment import EXAMPLE, Environment
from scd_pipeline.errors import UsageError

TEXT = "dimension: dim_x\nbusiness_key: id\nsources: {s: {snapshot: 'in/x_{date}.csv'}}\nattributes: {a: 2}\n"


@pytest.fixture
def declared(tmp_path: Path) -> Dimension:
    """A declaration, and three files, one of which has another name."""
    (tmp_path / "in").mkdir()
    for name in ("x_2024-01-01.csv", "x_2024-02-01.csv", "y_2024-02-01.csv"):
        (tmp_path / "in" / name).write_text("id,a\n1,x\n", encoding="utf-8")
    (tmp_path / "dim_x.yaml").write_text(TEXT, encoding="utf-8")
    return read_dimension(tmp_path / "dim_x.yaml")


def test_relative_paths_start_at_the_declaration(
    declared: Dimension, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir("/")
    deliveries = discover_files(declared)
    assert [delivery.name for delivery in deliveries] == ["2024-01-01", "2024-02-01"]
    assert [delivery.path for delivery in deliveries] == [str(tmp_path / "in" / f"x_{d.name}.csv") for d in deliveries]
    assert deliveries[0].at == datetime(2024, 1, 1, tzinfo=timezone.utc)


def test_files_are_listed_at_an_address_of_this_machine(declared: Dimension, tmp_path: Path) -> None:
    path = f"file://{tmp_path}/in/x_{{date}}.csv"
    dimension = Dimension("dim_x", "id", {"a": 2}, Source("s", snapshot=path))
    assert [delivery.path for delivery in discover_files(dimension)] == [
        delivery.path for delivery in discover_files(declared)
    ]


def test_a_declaration_in_python_starts_at_the_current_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    dimension = Dimension("dim_x", "id", {"a": 2}, Source("s", snapshot="in/x_{date}.csv"))
    assert declaration_folder(dimension) == tmp_path


def test_a_delivery_is_selected_with_its_overrides(declared: Dimension, spark: SparkSession) -> None:
    (delivery,) = select_deliveries(declared, spark, names=["2024-02-01"], allow=["retire_guard"])
    assert (delivery.name, delivery.allow) == ("2024-02-01", frozenset({"retire_guard"}))


def test_a_missing_delivery_is_reported_with_the_available_deliveries(declared: Dimension, spark: SparkSession) -> None:
    with pytest.raises(UsageError) as error:
        select_deliveries(declared, spark, names=["2024-03-01"])
    assert error.value.code == "DELIVERY_NOT_FOUND"
    assert error.value.details["names"] == "2024-03-01"
    assert str(error.value.details["paths"]).endswith("in/x_{date}.csv")
    assert error.value.details["deliveries"] == "one of 2024-01-01, 2024-02-01"
    assert error.value.details["hint"] == "did you mean 2024-02-01? "


def test_a_delivery_is_named_with_its_channel_if_several_exist(
    declared: Dimension, tmp_path: Path, spark: SparkSession
) -> None:
    """Its former name remains valid if it matches one delivery, also after a channel was added or removed."""
    (before,) = [delivery for delivery in discover_files(declared) if delivery.name == "2024-01-01"]
    assert partition_key(before, declared) == "2024-01-01"
    assert matching_partition_keys("s.snapshot.2024-01-01", [before], declared) == ["2024-01-01"]
    (tmp_path / "dim_x.yaml").write_text(
        TEXT.replace(
            "{s: {snapshot: 'in/x_{date}.csv'}}", "{s: {snapshot: 'in/x_{date}.csv', feed: 'in/y_{date}.csv'}}"
        )
    )
    both = read_dimension(tmp_path / "dim_x.yaml")
    deliveries = discover_files(both)
    assert matching_partition_keys("2024-01-01", deliveries, both) == ["s.snapshot.2024-01-01"]
    assert matching_partition_keys("2024-02-01", deliveries, both) == ["s.feed.2024-02-01", "s.snapshot.2024-02-01"]
    assert matching_partition_keys("2024-03-01", deliveries, both) == []
    assert [d.channel for d in select_deliveries(both, spark, names=["s.feed.2024-02-01"])] == ["feed"]
    assert len(select_deliveries(both, spark, names=["2024-02-01"])) == 2
    with pytest.raises(UsageError) as error:
        select_deliveries(both, spark, names=["2024-03-01"])
    assert error.value.code == "DELIVERY_NOT_FOUND"
    assert error.value.details["deliveries"] == "one of s.feed.2024-02-01, s.snapshot.2024-01-01, s.snapshot.2024-02-01"


def test_declarations_are_those_of_the_environment_or_of_the_example(tmp_path: Path) -> None:
    assert Environment.from_env({"SCD_DECLARATIONS": str(tmp_path)}).declarations == tmp_path
    assert Environment.from_env({}).declarations == EXAMPLE
