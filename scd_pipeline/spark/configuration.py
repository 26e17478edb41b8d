"""The settings of Spark for work on one machine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from scd_pipeline.errors import SetupError

LOOPBACK = "127.0.0.1"
DELTA_EXTENSION = "io.delta.sql.DeltaSparkSessionExtension"
LOG_CONFIGURATION = Path(__file__).with_name("log4j2.properties")

_DELTA_CATALOG = "org.apache.spark.sql.delta.catalog.DeltaCatalog"
NO_INFERRED_FILTERS = {"spark.sql.constraintPropagation.enabled": "false"}
"""Without these settings, the time and the memory to plan a query grow exponentially with its computed columns."""
_BASE_SETTINGS = {
    **NO_INFERRED_FILTERS,
    "spark.app.name": "scd_pipeline",
    "spark.driver.host": LOOPBACK,
    "spark.driver.bindAddress": LOOPBACK,
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    # Spark describes each query and stores the last 1,000 for its UI, which is off: 5% of a small load's time, and
    # memory.
    "spark.sql.ui.explainMode": "simple",
    "spark.sql.ui.retainedExecutions": "10",
    "spark.ui.retainedJobs": "10",
    "spark.ui.retainedStages": "10",
    "spark.sql.extensions": DELTA_EXTENSION,
    "spark.sql.catalog.spark_catalog": _DELTA_CATALOG,
    "spark.sql.session.timeZone": "UTC",
    # Delta spreads a table's state over 50 partitions by default, far too many for small logs.
    "spark.databricks.delta.snapshotPartitions": "2",
    # A load has hundreds of pieces of generated code. Spark caches 100, so that the next load compiled all of them.
    "spark.sql.codegen.cache.maxEntries": "2000",
    # Java compiles no method of more than 8,000 bytes to machine code, and Spark generates some that are larger.
    "spark.sql.codegen.hugeMethodLimit": "8000",
    # VACUUM lists a folder with this many tasks, 10,000 by default: half a minute for the smallest table.
    "spark.sql.sources.parallelPartitionDiscovery.parallelism": "32",
    # Delta writes a checksum of each version. By default Spark writes such files to a local folder in a way for which
    # Hadoop starts processes that read links and set permissions: dozens in a small load.
    "spark.sql.streaming.checkpointFileManagerClass": (
        "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
    ),
    # Each sort and each aggregate begins with a page of memory, which Java fills with zeros. A page has up to 64 MB by
    # default, which is gigabytes in a load of a few rows. A task has at most 8,192 pages.
    "spark.buffer.pageSize": "4m",
    # PySpark looks up the caller's line for each function call: 10% of a small load's time.
    "spark.python.sql.dataFrameDebugging.enabled": "false",
}


def spark_conf(
    *,
    jars: Sequence[Path],
    warehouse: str | Path | None = None,
    cores: str | int = "*",
    shuffle_partitions: int = 4,
    driver_memory: str = "2g",
    quick: bool = False,
    extra: Mapping[str, str] | None = None,
) -> dict[str, str]:
    """Return Spark's settings for one machine: Delta, UTC, loopback only, no UI, few partitions.

    Args:
        warehouse: The folder of Spark's own managed tables.
        cores: The number of threads; `*` is one for each core.
        shuffle_partitions: The number of partitions after a shuffle.
        driver_memory: The maximum heap, such as `2g`.
        quick: Compile less, for processes that live for seconds.
        extra: Further settings, which override all others.

    Raises:
        SetupError: A jar does not exist. Spark would only log a warning and fail later.
    """
    if missing := [str(jar) for jar in jars if not jar.is_file()]:
        raise SetupError("JARS_MISSING", "spark.jars", jars=", ".join(missing))
    conf = {
        **_BASE_SETTINGS,
        "spark.master": f"local[{cores}]",
        "spark.jars": ",".join(str(jar) for jar in jars),
        "spark.driver.memory": driver_memory,
        "spark.driver.extraJavaOptions": " ".join(_java_options(quick=quick)),
        "spark.sql.shuffle.partitions": str(shuffle_partitions),
    }
    if warehouse is not None:
        conf["spark.sql.warehouse.dir"] = str(Path(warehouse).absolute())
    return {**conf, **(extra or {})}


def s3_settings(variables: Mapping[str, str]) -> dict[str, str]:
    """Return the settings by which Hadoop uses the endpoint and the region of S3 in some environment variables.

    Hadoop reads the variables with credentials itself. Servers other than Amazon's have buckets in paths, not in names
    of hosts.
    """
    endpoint = variables.get("AWS_ENDPOINT_URL_S3") or variables.get("AWS_ENDPOINT_URL")
    region = variables.get("AWS_REGION") or variables.get("AWS_DEFAULT_REGION")
    settings = {"spark.hadoop.fs.s3.impl": "org.apache.hadoop.fs.s3a.S3AFileSystem"}
    if endpoint:
        settings |= {"spark.hadoop.fs.s3a.endpoint": endpoint, "spark.hadoop.fs.s3a.path.style.access": "true"}
    return settings | ({"spark.hadoop.fs.s3a.endpoint.region": region} if region else {})


# Java's second compiler begins with a method after four times as many calls as by default. A load calls some ten
# thousand methods, most of them too seldom to be worth it: compiling them was half of the processor time of the first
# loads of a process. A method that is called for each row reaches the thresholds in a fraction of a second.
_LATE_COMPILER = (
    "-XX:Tier4InvocationThreshold=20000",
    "-XX:Tier4MinInvocationThreshold=6000",
    "-XX:Tier4CompileThreshold=50000",
    "-XX:Tier4BackEdgeThreshold=160000",
)


def _java_options(*, quick: bool) -> list[str]:
    options = ["-Duser.timezone=UTC", f"-Dlog4j2.configurationFile={LOG_CONFIGURATION.as_uri()}"]
    if quick:
        # The default code cache of this mode has 48 MB. A JVM that has filled it compiles nothing more.
        return [*options, "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-XX:ReservedCodeCacheSize=240m"]
    # A concurrent collector takes 10% of the processor time on few cores, and pauses do no harm.
    return [*options, "-XX:+UseParallelGC", "-XX:ReservedCodeCacheSize=480m", *_LATE_COMPILER]
