"""The SCD2 upsert of the library mack, in the warm session."""

from __future__ import annotations

import importlib
import sys
from typing import Any

from delta.tables import DeltaTable
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from benchmarks.contestants.contestant import Contestant, Site
from benchmarks.contestants.merges import as_changes
from benchmarks.contestants.processes import create_environment
from benchmarks.data import ATTRIBUTES, KEY, OPEN_END, VERSION_COLUMNS, timestamp
from benchmarks.tables import identifier, read_table, write_table
from benchmarks.work import Work

_ENVIRONMENT = "mack"


class MackUpsert(Contestant):
    """`type_2_scd_upsert`, which has no deletes: a MERGE before it closes the entities that a snapshot omits."""

    name = "mack_upsert"
    description = "type_2_scd_upsert of mack"
    state_of = "mack_table"

    def prepare(self, work: Work, site: Site) -> None:
        create_environment(site.environments, _ENVIRONMENT)
        assert work.base_versions is not None
        is_current = F.col("effective_to") == timestamp(OPEN_END)
        versions = work.base_versions(site.spark).select(
            KEY,
            *ATTRIBUTES,
            is_current.alias("is_current"),
            F.col("effective_from").alias("effective_time"),
            F.when(~is_current, F.col("effective_to")).alias("end_time"),
        )
        write_table(versions, site.state / "dim")

    def load(self, work: Work, site: Site) -> None:
        mack = _import_mack(site)
        path = site.state / "dim"
        for file in work.deliveries:
            changes = as_changes(site, file).drop("deleted").withColumnRenamed("changed_at", "effective_time")
            site.spark.sql(
                f"MERGE INTO {identifier(path)} t USING {{changes}} s ON t.{KEY} = s.{KEY} "
                "WHEN NOT MATCHED BY SOURCE AND t.is_current THEN "
                f"UPDATE SET t.end_time = TIMESTAMP'{file.at}', t.is_current = false",
                changes=changes,
            )
            mack.type_2_scd_upsert(DeltaTable.forPath(site.spark, str(path)), changes, KEY, list(ATTRIBUTES))

    def rows(self, work: Work, site: Site) -> DataFrame:
        end = F.coalesce("end_time", timestamp(OPEN_END)).alias("effective_to")
        rows = read_table(site.spark, site.state / "dim").withColumnRenamed("effective_time", "effective_from")
        return rows.select(*VERSION_COLUMNS[:-1], end)


def _import_mack(site: Site) -> Any:
    """Import mack from its own environment, which has no other package that the session uses."""
    folders = [str(folder) for folder in (site.environments / _ENVIRONMENT).glob("lib/python*/site-packages")]
    sys.path.extend(folder for folder in folders if folder not in sys.path)
    return importlib.import_module("mack")
