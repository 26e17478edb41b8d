"""What the assets work with: a Spark that knows Delta, and the warehouse's folder.

One run is one process with one session, started by the first step that asks for it. Embedded, that is a Java machine
of its own; with `remote` it is a session at a Spark Connect server that others share and that is warm already.

No postponed annotations here: Dagster reads those of a resource as they stand.
"""

import os
from typing import Any

import dagster as dg
from dagster_pyspark import LazyPySparkResource
from pydantic import Field

from scd_pipeline import session, setup
from scd_pipeline.warehouse import Warehouse


class DeltaSparkResource(LazyPySparkResource):
    """dagster-pyspark's lazy session with Delta's settings; fits wherever a LazyPySparkResource is asked for.

    Errors: SetupError if Java or Delta's jars are missing, or if the process already has a session without Delta,
    which no setting can mend.
    """

    spark_config: dict[str, Any] = Field(default={}, description="Further settings of an embedded Spark; they win.")
    remote: str = Field(default="", description="A Spark Connect server, sc://host:port; empty for an embedded Spark.")

    def _init_session(self) -> None:
        if self._spark_session is not None:
            return
        if self.remote:
            self._spark_session = session.connect_spark(self.remote)
        else:
            installed = setup.find(os.environ)
            extra = {str(name): str(value) for name, value in self.spark_config.items()}
            scratch = setup.cache_folder(os.environ) / "spark-warehouse"
            self._spark_session = session.local_spark(
                scratch, jars=installed.jars, java_home=installed.java_home, extra=extra
            )

    def teardown_after_execution(self, context: dg.InitResourceContext) -> None:  # noqa: ARG002
        """Leave the server; an embedded session stays, as others in the process may be using it."""
        if self.remote and self._spark_session is not None:
            self._spark_session.stop()
            self._spark_session = None

    @property
    def place(self) -> str:
        """Which Spark it is, for the run's log."""
        return f"the Spark Connect server {self.remote}" if self.remote else "an embedded Spark"


class WarehouseResource(dg.ConfigurableResource[Warehouse]):
    """The folder of the tables, and the Spark that reads and writes them."""

    path: str = Field(description="A folder, or the address of a bucket.")
    spark: dg.ResourceDependency[DeltaSparkResource]

    def open(self) -> Warehouse:
        """The warehouse; starts Spark if nothing did before.  Errors: SetupError."""
        return Warehouse(self.spark.spark_session, self.path)
