"""Warm Spark Connect servers, of which the processes are measured too."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from scd_pipeline.environment import Environment
from scd_pipeline.spark.configuration import spark_conf
from scd_pipeline.spark.installation import install
from scd_pipeline.spark.server import Server, running_server, state_folder
from scd_pipeline_tests.servers import connect_server


@contextmanager
def warm_server(folder: Path, *, cores: int, memory: str, shuffle_partitions: int = 4) -> Iterator[Server]:
    """Yield the running server of a folder with these cores and this heap; the last user stops it.

    Raises:
        RuntimeError: The server has ended.
    """
    installation = install(Environment.from_env())
    conf = spark_conf(jars=installation.jars, cores=cores, shuffle_partitions=shuffle_partitions, driver_memory=memory)
    with connect_server(folder, conf, java_home=installation.java_home) as url:
        server = running_server(state_folder(folder, conf))
        if server is None:
            raise RuntimeError(f"{url}: the server has ended")
        yield server
