"""The warehouse of a test of landing tables."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from scd_pipeline.delta.warehouse import Warehouse


@pytest.fixture
def opened(spark: SparkSession, warehouse: Path) -> Warehouse:
    """An empty warehouse."""
    return Warehouse(spark, warehouse)
