"""Revisions of files: their content decides, not the clock of the host or their permissions (S34)."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from scd_pipeline.declaration import Dimension, Source
from scd_pipeline.deliveries import read as ingest
from scd_pipeline.deliveries.delivery import Delivery
from scd_pipeline.deliveries.discovery import discover
from scd_pipeline.delta.warehouse import Warehouse
from scd_pipeline.history.batch import next_revision, rank
from scd_pipeline.load.run import ingest_and_apply
from scd_pipeline_tests.text_tables import assert_same_rows

TOUCHED, BEHIND, CORRECTED, WITHDRAWN, BROKEN = "2024-01-01", "2024-01-02", "2024-01-03", "2024-01-04", "2024-01-05"


@pytest.mark.slow
@pytest.mark.rule("S34")
def test_the_content_of_a_file_decides_about_its_revision(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Files are touched, moved to a host whose clock is behind, corrected there, withdrawn and then touched."""
    for name in (TOUCHED, BEHIND, CORRECTED, WITHDRAWN):
        (tmp_path / f"c_{name}.csv").write_text(f"id,city\n{name},Graz\n")
    (tmp_path / f"c_{BROKEN}.csv").write_text('id,city\n1,"Graz\n')
    dimension = Dimension("dim_c", "id", {"city": 2}, Source("crm", feed="c_{date}.csv"))
    opened = Warehouse(spark, tmp_path / "warehouse")
    by_name = {delivery.name: delivery for delivery in discover(dimension, None, base=tmp_path)}

    def outcomes(*deliveries: Delivery) -> list[dict[str, str]]:
        batches = ingest_and_apply(opened, dimension, deliveries).results
        return [{"delivery": b.delivery, "outcome": b.outcome, "code": b.code} for b in batches]

    def moved(name: str, micros: int) -> Delivery:
        return replace(by_name[name], revision=int(str(by_name[name].revision)) + micros)

    first = outcomes(*by_name.values())
    assert [row["outcome"] for row in first] == ["accepted"] * 4 + ["rejected"]
    withdrawals = [replace(moved(name, 10), withdrawn=True, sealed=False) for name in (WITHDRAWN, BROKEN)]
    (tmp_path / f"c_{CORRECTED}.csv").write_text(f"id,city\n{CORRECTED},Linz\n")
    later = [
        moved(TOUCHED, 5),
        moved(BEHIND, -1_000_000),
        moved(CORRECTED, -1_000_000),
        moved(WITHDRAWN, 1_000_000),
        by_name[BROKEN],
    ]
    outcomes(*withdrawals)
    assert_same_rows(
        """
        | delivery     | outcome    | code           |
        | '2024-01-01' | unchanged  | ''             |
        | '2024-01-02' | unchanged  | ''             |
        | '2024-01-03' | accepted   | ''             |
        | '2024-01-04' | unchanged  | ''             |
        | '2024-01-05' | superseded | LOWER_REVISION |
        """,
        outcomes(*later),
    )
    rows = opened.table("dim_c").read().where("current_flag").select("id", "city").collect()
    assert sorted(tuple(row) for row in rows) == [(TOUCHED, "Graz"), (BEHIND, "Graz"), (CORRECTED, "Linz")]

    def read(*_: object) -> None:
        raise AssertionError("a delivery that did not change is read again")

    monkeypatch.setattr(ingest, "_frame", read)
    unchanged = [delivery for delivery in later if delivery.name != CORRECTED]
    assert {row["outcome"] for row in outcomes(*unchanged)} == {"unchanged", "superseded"}


@pytest.mark.rule("S34")
@pytest.mark.parametrize("revision", ["0", "9", "1700000000000000", "2024-01-31", "second", "second+1"])
def test_a_successor_is_higher(revision: str) -> None:
    assert rank(next_revision(revision)) > rank(revision)
