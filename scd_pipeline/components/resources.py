"""What the assets work with: a Spark that knows Delta, and the warehouse's folder.

One run is one process with one session, started by the first step that asks for it. Embedded, that is a Java machine
of its own; with `remote` it is a session at a Spark Connect server that others share and that is warm already.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from typing import Any

import dagster as dg
from dagster_pyspark import LazyPySparkResource
from pydantic import Field, PrivateAttr

from scd_pipeline import session, setup
from scd_pipeline.errors import ScdError
from scd_pipeline.warehouse import Warehouse

_REMOTE = "A Spark Connect server, sc://host:port; empty for a Spark in the run's own process."
_SPARK_CONFIG = "Further settings of a Spark in the run's own process; they win."


@contextlib.contextmanager
def told_as_failure() -> Iterator[None]:
    """Turn an error of this package into Dagster's own, which the interface shows by its message alone.

    It is of no use to try such a step again as it is.
    """
    try:
        yield
    except ScdError as error:
        raise dg.Failure(f"{type(error).__name__}: {error}", allow_retries=False) from error


class DeltaSparkResource(LazyPySparkResource):
    """dagster-pyspark's lazy session with Delta's settings; fits wherever a LazyPySparkResource is asked for.

    Errors: SetupError if Java or Delta's jars are missing, if the server does not answer, or if the process already has
    a session without Delta, which no setting can mend.
    """

    spark_config: dict[str, Any] = Field(default={}, description=_SPARK_CONFIG)
    remote: str = Field(default="", description=_REMOTE)

    def _init_session(self) -> None:
        if self._spark_session is None:
            self._spark_session = session.connect_spark(self.remote) if self.remote else self._embedded()

    def _embedded(self) -> Any:
        installed = setup.find(os.environ)
        return session.local_spark(
            setup.cache_folder(os.environ) / "spark-warehouse",
            jars=installed.jars,
            java_home=installed.java_home,
            extra={str(name): str(value) for name, value in self.spark_config.items()},
        )

    def leave(self) -> None:
        """Leave the server; an embedded session stays, as others in the process may be using it."""
        if self.remote and self._spark_session is not None:
            self._spark_session.stop()
            self._spark_session = None

    def teardown_after_execution(self, context: dg.InitResourceContext) -> None:  # noqa: ARG002
        """Called by Dagster at the end of a run."""
        self.leave()


class WarehouseResource(dg.ConfigurableResource[Warehouse]):
    """The folder of the tables, and the Spark that reads and writes them."""

    path: str = Field(description="A folder, or the address of a bucket.")
    remote: str = Field(default="", description=_REMOTE)
    schema_name: str | None = Field(
        default=None, alias="schema", description="A schema of the session's catalog, in place of the folder."
    )
    schemas: dict[str, str] = Field(
        default={}, description="Another schema for a kind of table: changes, audit or keys."
    )
    spark_config: dict[str, Any] = Field(default={}, description=_SPARK_CONFIG)
    _spark: LazyPySparkResource | None = PrivateAttr(default=None)

    def spark(self) -> LazyPySparkResource:
        """The session's resource; nothing starts before its session is asked for."""
        return DeltaSparkResource(remote=self.remote, spark_config=self.spark_config)

    def open(self) -> Warehouse:
        """The warehouse; starts Spark if this run has not yet.  Errors: SetupError."""
        if self._spark is None:
            self._spark = self.spark()
        return Warehouse(self._spark.spark_session, self.path, schema=self.schema_name, schemas=self.schemas)

    @property
    def place(self) -> str:
        """Which Spark it is, for the run's log."""
        named = session.without_secrets(self.remote)
        return f"the Spark Connect server {named}" if named else "an embedded Spark"

    def teardown_after_execution(self, context: dg.InitResourceContext) -> None:  # noqa: ARG002
        """Called by Dagster at the end of a run."""
        if isinstance(self._spark, DeltaSparkResource):
            self._spark.leave()
