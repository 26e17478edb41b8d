"""The one Spark session in which all contestants with Spark run."""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import SparkSession
from pyspark.sql.utils import is_remote

from scd_pipeline.environment import Environment
from scd_pipeline.spark.configuration import spark_conf
from scd_pipeline.spark.installation import install
from scd_pipeline.spark.session import local_spark


def start_session(folder: Path, *, cores: int, memory: str) -> SparkSession:
    """Start Spark in this process, as the package does, with a fixed number of cores and a fixed heap."""
    installation = install(Environment.from_env())
    conf = spark_conf(
        jars=installation.jars,
        warehouse=folder / "spark-warehouse",
        cores=cores,
        shuffle_partitions=2 * cores,
        driver_memory=memory,
        extra={
            "spark.local.dir": str(folder / "spark-local"),
            # The package stores times this way in any session; the tables of all contestants are to be alike.
            "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
        },
    )
    return local_spark(conf, java_home=installation.java_home)


def collect_garbage(spark: SparkSession) -> None:
    """Free what earlier runs left in the JVM, so that no run pays for another."""
    spark.catalog.clearCache()
    gateway = None if is_remote() else spark.sparkContext._gateway
    if gateway is not None:
        gateway.jvm.java.lang.System.gc()
