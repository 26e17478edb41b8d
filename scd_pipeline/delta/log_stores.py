"""Whether two Sparks can commit to the tables of a warehouse at the same time.

Delta commits a version by creating a file that must not exist. Its log store for S3 checks that inside one Spark only,
because S3 replaces an existing object without an error: of two commits at once, one may be lost.
"""

from __future__ import annotations

from collections.abc import Callable

from scd_pipeline.delta.warehouse import Warehouse
from scd_pipeline.errors import LoadWarning

_SCHEMES = ("s3", "s3a", "s3n")


def log_store_warnings(warehouse: Warehouse) -> tuple[LoadWarning, ...]:
    """Return the warning about the log store of a warehouse in a folder; none of a schema, whose catalog has tables."""
    return () if warehouse.schema else _warnings(warehouse.path, lambda name: warehouse.spark.conf.get(name, ""))


def _warnings(path: str, setting: Callable[[str], str | None]) -> tuple[LoadWarning, ...]:
    """Return a warning for a path in S3 whose log store the settings of Spark do not name."""
    scheme, separator, _ = path.partition("://")
    name = f"spark.delta.logStore.{scheme}.impl"
    if not separator or scheme not in _SCHEMES or setting(name):
        return ()
    return (LoadWarning("ONE_SPARK", f"warehouse {path}", {"setting": name}),)
