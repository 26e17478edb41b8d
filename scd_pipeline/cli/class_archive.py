"""Archive the classes that Spark loads, with which the next Java of this machine starts faster.

`python -m scd_pipeline.cli.class_archive FILE` is the process whose classes are archived: it loads and queries a
small dimension. Java writes the archive when it exits (JEP 350), and checks at each start that the archive is of its
own build and of the same jars.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from datetime import datetime
from pathlib import Path

from scd_pipeline.spark.installation import Installation
from scd_pipeline.spark.launch import launch_environment

_SECONDS = 600
_LINES_OF_OUTPUT = 3


def archive_classes(
    installation: Installation,
    progress: Callable[[str], None],
    command: tuple[str, ...] = (sys.executable, "-m", "scd_pipeline.cli.class_archive"),
) -> str:
    """Create the class archive of the installation if it has none.

    Args:
        installation: Java and jars.
        progress: Receives a line before and after.
        command: The process whose classes are archived; its last argument is the file to write.

    Returns:
        Why there is no archive; empty if there is one. Everything works without it.
    """
    archive = installation.class_archive
    if archive.exists():
        return ""
    progress("classes: archiving those of Spark, about a minute")
    draft = archive.with_name(f"{archive.name}.{os.getpid()}")
    try:
        process = subprocess.run(
            [*command, str(draft)],
            capture_output=True,
            text=True,
            timeout=_SECONDS,
            check=False,
            stdin=subprocess.DEVNULL,
            # A process that has connected to a server leaves a variable that keeps Spark from being embedded.
            env=launch_environment(os.environ, installation.java_home),
        )
        if process.returncode != 0 or not draft.exists():
            lines = process.stderr.strip().splitlines()[-_LINES_OF_OUTPUT:]
            return " ".join(lines) or "Java wrote no archive"
        draft.replace(archive)
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    finally:
        draft.unlink(missing_ok=True)
    progress(f"classes: archived in {archive}")
    return ""


def main(archive: Path) -> None:
    """Load and query a dimension on an embedded Spark that writes the archive when it exits."""
    from scd_pipeline.environment import Environment
    from scd_pipeline.spark.configuration import spark_conf
    from scd_pipeline.spark.installation import find_installation

    installation = find_installation(Environment.from_env())
    with tempfile.TemporaryDirectory() as folder:
        conf = spark_conf(jars=installation.jars, warehouse=folder, quick=True)
        options = f'"-XX:ArchiveClassesAtExit={archive}" -Xlog:cds=off -Xlog:cds+dynamic=off'
        conf["spark.driver.extraJavaOptions"] += f" {options}"
        load_and_query(conf, installation.java_home, Path(folder, "warehouse"))


def load_and_query(conf: Mapping[str, str], java_home: Path | None, folder: Path) -> None:
    """Load and query a small dimension in a folder, on an embedded Spark whose Java then exits."""
    from pyspark import SparkContext

    from scd_pipeline import queries
    from scd_pipeline.declaration import Dimension, Source
    from scd_pipeline.deliveries.delivery import Delivery
    from scd_pipeline.delta.warehouse import Warehouse
    from scd_pipeline.load.run import load
    from scd_pipeline.spark.session import local_spark

    spark = local_spark(conf, java_home=java_home)
    java = SparkContext._gateway.proc  # type: ignore[union-attr]
    warehouse = Warehouse(spark, folder)
    customer = Dimension("dim_customer", "id", {"city": 2}, Source("crm", snapshot={}))
    days = [datetime(2024, 1, 1), datetime(2024, 1, 2)]
    for day, city in zip(days, ("Rome", "Oslo"), strict=True):
        delivery = Delivery("crm", day.date().isoformat(), at=day, frame=[{"id": "7", "city": city}])
        load(warehouse, customer, [delivery])
        queries.create_views(warehouse, [customer.name])
    queries.history(warehouse, customer).collect()
    queries.as_of(warehouse, customer, days[0]).collect()
    queries.register(warehouse, query="SELECT city FROM dim_customer_current")
    spark.sql("SELECT city FROM dim_customer_current").collect()
    spark.stop()
    # The embedded Java exits at the end of its input.
    java.stdin.close()
    java.wait(_SECONDS)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
