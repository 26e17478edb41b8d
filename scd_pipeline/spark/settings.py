"""Settings of a session that apply for a while."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@contextlib.contextmanager
def temporary_settings(spark: SparkSession, settings: Mapping[str, str]) -> Iterator[None]:
    """Change settings of the session, and restore them at the end."""
    before = {name: spark.conf.get(name, None) for name in settings}
    try:
        for name, value in settings.items():
            spark.conf.set(name, value)
        yield
    finally:
        for name, former in before.items():
            restore_setting(spark, name, former)


def restore_setting(spark: SparkSession, name: str, value: str | None) -> None:
    """Set a setting to its former value; None if it was not set."""
    if value is None:
        spark.conf.unset(name)
    else:
        spark.conf.set(name, value)
