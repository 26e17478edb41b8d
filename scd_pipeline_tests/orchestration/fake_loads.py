"""Loads without Spark, for tests of the events that Dagster records."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any

import dagster as dg
import pytest

from scd_pipeline.components import WarehouseResource, assets, load_checks, load_metadata, rejections
from scd_pipeline.components import checks as asset_checks
from scd_pipeline.components.partitions import partitions_name
from scd_pipeline.declaration import Dimension
from scd_pipeline.deliveries.delivery import Delivery
from scd_pipeline.deliveries.discovery import discover_files
from scd_pipeline.deliveries.result import BatchResult
from scd_pipeline.load.audit import AuditResult
from scd_pipeline.load.audit_changes import TransitionCounts
from scd_pipeline.load.run import LoadResult
from scd_pipeline.operations.check import CheckResult

_TABLE = "dim_customer"
DAYS = ["2024-01-01", "2024-01-02", "2024-01-03"]
"""The days of the three deliveries of the fixture `customer`."""
PARTITIONS = dg.DynamicPartitionsDefinition(name=partitions_name(_TABLE))


class NoWarehouse(WarehouseResource):
    """The resource `warehouse` without a warehouse."""

    def open(self) -> Any:
        return SimpleNamespace(spark=SimpleNamespace(version="none"), schema=None)


def fake_loads(
    monkeypatch: pytest.MonkeyPatch, *, rejected: Collection[str] = (), failure: str = "rejected"
) -> Callable[[Collection[str]], None]:
    """Let each run accept its deliveries with one new entity each, or reject those of some names by `bad_rows`.

    Args:
        monkeypatch: Replaces the load.
        rejected: The names to reject.
        failure: The outcome of these: `rejected` or `missing`.

    Returns:
        A function that sets the names to reject from then on.
    """
    names, loaded = set(rejected), set()

    def outcome(delivery: Delivery) -> BatchResult:
        key = (delivery.source, delivery.channel, delivery.name)
        batch = f"{'/'.join(key)}/1"
        if delivery.name in names:
            rejection = {"code": "BAD_ROWS", "problem": "2 of 3 rows are bad", "fix": "deliver it again"}
            return BatchResult(batch, *key, failure, **rejection)
        if delivery.name in loaded:
            return BatchResult(batch, *key, "unchanged")
        loaded.add(delivery.name)
        return BatchResult(batch, *key, "accepted", rows=1, new=1, versions_opened=1)

    def load(_: Any, dimension: Dimension, deliveries: Sequence[Delivery], **__: Any) -> LoadResult:
        batches = tuple(outcome(delivery) for delivery in deliveries)
        accepted = [batch for batch in batches if batch.outcome == "accepted"]
        counts = {
            "/".join(batch.delivery_key): TransitionCounts(Counter({"INSERT": 1}), opened=1) for batch in accepted
        }
        audit = AuditResult(dimension.name, counts, 1)
        return LoadResult(dimension.name, batches, {"open": len(accepted)}, 1, 1, 0.1, audit=audit)

    monkeypatch.setattr(assets, "load_table", load)
    monkeypatch.setattr(asset_checks, "check_table", lambda *_: ())
    monkeypatch.setattr(
        load_checks, "check_table", lambda *_: (CheckResult(_TABLE, "one_current_version", 1, ("id=7",)),)
    )
    monkeypatch.setattr(
        rejections,
        "waiting_deliveries",
        lambda _, dimension: [each for each in discover_files(dimension) if each.name not in loaded],
    )
    monkeypatch.setattr(assets, "create_views", lambda *_, **__: None)
    monkeypatch.setattr(assets, "running_queries", lambda *_: nullcontext())
    monkeypatch.setattr(
        load_metadata, "sizes", lambda _, table, versions: {suffix: {"dagster/row_count": 9} for suffix in versions}
    )
    monkeypatch.setattr(load_metadata, "entity_history", lambda *_: {})
    monkeypatch.setattr(load_metadata, "examples", lambda *_: {"versions_per_delivery": "a plot"})

    def reject(others: Collection[str]) -> None:
        names.clear()
        names.update(others)

    return reject


def run(
    dimension: Dimension,
    instance: dg.DagsterInstance,
    *partitions: str,
    select: Sequence[str] = (),
    run_config: Mapping[str, Any] | None = None,
    with_checks: bool = True,
) -> dg.ExecuteInProcessResult:
    """Materialize a partition or a range of partitions, of some assets or of all."""
    selected = dg.AssetSelection.assets(*select) if select else dg.AssetSelection.all()
    first, last = partitions[0], partitions[-1]
    range_tags = {"dagster/asset_partition_range_start": first, "dagster/asset_partition_range_end": last}
    return dg.materialize(
        [assets.table_assets(dimension), asset_checks.table_checks(dimension)],
        resources={"warehouse": NoWarehouse(path="/nowhere")},
        instance=instance,
        partition_key=first if len(partitions) == 1 else None,
        tags=range_tags if len(partitions) > 1 else None,
        selection=selected if with_checks else selected.without_checks(),
        run_config=run_config,
        raise_on_error=False,
    )
