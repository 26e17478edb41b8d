"""The warning about log stores that lose commits of two Sparks."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from scd_pipeline.delta.log_stores import log_store_warnings
from scd_pipeline.delta.warehouse import Warehouse

SINGLE_DRIVER = "io.delta.storage.S3SingleDriverLogStore"


def warehouse(path: str, schema: str | None = None, **settings: str) -> Warehouse:
    conf = {name.replace("_", "."): value for name, value in settings.items()}
    session = SimpleNamespace(conf=conf)
    return cast(Warehouse, SimpleNamespace(path=path, schema=schema, spark=cast(Any, session)))


@pytest.mark.parametrize(
    ("opened", "codes"),
    [
        (warehouse("s3a://lake/warehouse"), ["ONE_SPARK"]),
        (warehouse("s3://lake/warehouse"), ["ONE_SPARK"]),
        (warehouse("s3a://lake/warehouse", spark_delta_logStore_s3a_impl=SINGLE_DRIVER), []),
        (warehouse("s3a://lake/warehouse", schema="mart"), []),
        (warehouse("gs://lake/warehouse"), []),
        (warehouse("abfss://lake@account.dfs.core.windows.net/warehouse"), []),
        (warehouse("/data/warehouse"), []),
    ],
)
def test_a_warehouse_in_s3_without_a_named_log_store_is_reported(opened: Warehouse, codes: list[str]) -> None:
    assert [warning.code for warning in log_store_warnings(opened)] == codes


def test_the_warning_names_the_setting_of_the_scheme() -> None:
    (warning,) = log_store_warnings(warehouse("s3a://lake/warehouse"))
    assert warning.details["setting"] == "spark.delta.logStore.s3a.impl"
