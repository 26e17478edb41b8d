"""The cost of the search for files that change while a load reads them."""

from __future__ import annotations

import os
from collections import Counter
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest

from scd_pipeline.declaration import Dimension, Snapshot, Source
from scd_pipeline.deliveries.delivery import Delivery
from scd_pipeline.deliveries.file_changes import changed_deliveries, fingerprint_deliveries
from scd_pipeline.deliveries.pending import PendingDelivery

PARTITIONS = [f"2024-01-{day:02}" for day in range(1, 31)]


def test_the_folder_of_a_table_is_listed_once_for_all_of_its_partitions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = {value: tmp_path / f"day={value}" / "a.parquet" for value in PARTITIONS}
    for file in files.values():
        file.parent.mkdir()
        file.write_text("1", encoding="utf-8")
    snapshot = Snapshot(path=str(tmp_path), partition="day", format="parquet")
    dimension = Dimension("dim_c", "id", {"city": 2}, Source("crm", snapshot=snapshot))
    at = datetime(2024, 1, 1, tzinfo=timezone.utc)
    deliveries = [Delivery("crm", value, at=at, path=str(tmp_path), partition=value) for value in PARTITIONS]
    pending = [PendingDelivery.create(number, each, dimension, "") for number, each in enumerate(deliveries)]
    listed: Counter[str] = Counter()
    scan = os.scandir

    def counted(path: Any = ".") -> Any:
        listed[str(path)] += 1
        return scan(path)

    monkeypatch.setattr(os, "scandir", counted)
    before = fingerprint_deliveries(pending)
    assert {len(before[each.number]) for each in pending} == {1}
    assert listed[str(tmp_path)] == 1
    files[PARTITIONS[7]].write_text("22", encoding="utf-8")
    assert [each.delivery.name for each in changed_deliveries(pending, before)] == [PARTITIONS[7]]
    assert listed[str(tmp_path)] == 2
