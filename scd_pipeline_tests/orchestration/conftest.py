"""A dimension with three deliveries, and an instance with their partitions, for tests without Spark."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import dagster as dg
import pytest
from dagster._core.storage.defs_state.base import set_defs_state_storage

from scd_pipeline.declaration import Dimension, read_dimension
from scd_pipeline.deliveries.partitions import EVERYTHING
from scd_pipeline_tests.orchestration.fake_loads import DAYS, PARTITIONS

DECLARATION = """\
dimension: dim_customer
business_key: id
sources: {crm: {snapshot: "customers_{date}.csv"}}
attributes: {city: 2}
"""


@pytest.fixture(autouse=True)
def _without_state_of_other_instances() -> Iterator[None]:
    """Reset the storage of states: Dagster leaves that of the instance of a tick, which does not exist any more."""
    with set_defs_state_storage(None):
        yield


@pytest.fixture
def customer(tmp_path: Path) -> Dimension:
    """A declaration, and three deliveries."""
    (tmp_path / "dim_customer.yaml").write_text(DECLARATION, encoding="utf-8")
    for day in DAYS:
        (tmp_path / f"customers_{day}.csv").write_text("id,city\n1,Graz\n", encoding="utf-8")
    return read_dimension(tmp_path / "dim_customer.yaml")


@pytest.fixture
def instance() -> Iterator[dg.DagsterInstance]:
    """An ephemeral instance with all partitions."""
    with dg.DagsterInstance.ephemeral() as instance:
        instance.add_dynamic_partitions(str(PARTITIONS.name), [*DAYS, EVERYTHING])
        yield instance
