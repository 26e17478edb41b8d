"""The package's command line as a process of its own, with a Spark Connect server that stays warm."""

from __future__ import annotations

import atexit
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import cache
from pathlib import Path

from benchmarks.contestants.contestant import Site
from benchmarks.contestants.pipeline import CUSTOMER, Pipeline
from benchmarks.contestants.processes import run_program
from benchmarks.servers import warm_server
from benchmarks.work import DIMENSION, File, Work
from scd_pipeline import Snapshot, describe
from scd_pipeline.spark.server import Server


@cache
def _started_server(folder: Path, cores: int, memory: str) -> Server:
    """Return a server that runs until this process ends; it is started at the first call."""
    users = ExitStack()
    atexit.register(users.close)
    return users.enter_context(warm_server(folder, cores=cores, memory=memory, shuffle_partitions=2 * cores))


class PipelineProcess(Pipeline):
    """`scd load`."""

    name = "scd_load"
    description = "`scd load` with a warm server, a process"
    is_process = True

    def server_ids(self, site: Site) -> tuple[int, ...]:
        return (_server(site).pid,)

    def prepare(self, work: Work, site: Site) -> None:
        super().prepare(work, site)
        _server(site)

    def load_files(self, work: Work, site: Site, files: Sequence[File]) -> None:
        declared, snapshots = site.state / "declared", site.state / "snapshots"
        declared.mkdir()
        snapshots.mkdir()
        source = replace(CUSTOMER.existence_source, snapshot=Snapshot(str(snapshots / "{date}.parquet")))
        (declared / f"{DIMENSION}.yaml").write_text(describe(replace(CUSTOMER, sources=(source,))))
        for file in files:
            (snapshots / f"{file.at:%Y-%m-%d}.parquet").symlink_to(site.delivery(file))
        environ = {
            "SCD_WAREHOUSE": str(site.state / "warehouse"),
            "SCD_DECLARATIONS": str(declared),
            "SCD_REMOTE": _server(site).url,
        }
        run_program([sys.executable, "-m", "scd_pipeline", "load", DIMENSION], site.state, environ)


def _server(site: Site) -> Server:
    context = site.spark.sparkContext
    memory = context.getConf().get("spark.driver.memory", "3g") or "3g"
    return _started_server(site.environments / "server", context.defaultParallelism, memory)
