"""The resources of the assets: a Spark session with Delta, and the warehouse.

A run is one process with one session, which the first step that needs it starts. Embedded, that is a Java machine of
its own; with a remote address it is a session at a Spark Connect server that others share and that is warm already.
An address may contain a token: Dagster stores the configuration of resources, so that it names the variable
SCD_REMOTE (`dg.EnvVar`) and never contains its value.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import dagster as dg
from dagster_pyspark import LazyPySparkResource
from pydantic import Field, PrivateAttr

from scd_pipeline.delta.warehouse import Warehouse
from scd_pipeline.environment import schemas
from scd_pipeline.errors import ScdError, SetupError, value_error_name
from scd_pipeline.spark import session, setup

REMOTE_VARIABLE = "SCD_REMOTE"
DEFAULT_WAREHOUSE = "warehouse"
_REMOTE = "A Spark Connect server, sc://host:port, as dg.EnvVar if it has a token; empty: a Spark in the run's process."
_REMOTE_OR_VARIABLE = f"{_REMOTE} If it is not set: the value of {REMOTE_VARIABLE} in the environment of the run."
_SPARK_CONFIG = "Further settings of a Spark in the run's own process; they win."


@contextlib.contextmanager
def told_as_failure() -> Iterator[None]:
    """Turn an error of this package into Dagster's own, which the interface shows by its message alone.

    It is of no use to try such a step again as it is. Dagster stores messages: one of Spark that repeats values of rows
    is replaced by its name.
    """
    try:
        yield
    except ScdError as error:
        raise dg.Failure(f"{type(error).__name__}: {error}", allow_retries=False) from error
    except Exception as error:
        if (name := value_error_name(error)) is None:
            raise
        raise dg.Failure(f"{name}: Spark failed at a value of a row, which is not shown", allow_retries=False) from None


def _setting(value: Any) -> str:
    """Return a setting as text. Dagster does not resolve a dg.EnvVar in a dictionary, and passes {"env": name}.

    Raises SetupError if the variable is not set.
    """
    variable = value.get("env") if isinstance(value, Mapping) else None
    if variable is None:
        return str(value)
    if variable not in os.environ:
        raise SetupError(f"spark_config: the environment variable {variable} is not set; expected a value; set it")
    return os.environ[variable]


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
            extra={str(name): _setting(value) for name, value in self.spark_config.items()},
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
    remote: str | None = Field(default=None, description=_REMOTE_OR_VARIABLE)
    schema_name: str | None = Field(
        default=None, alias="schema", description="A schema of the session's catalog, in place of the folder."
    )
    schemas: dict[str, str] = Field(
        default={}, description="Another schema for a kind of table: changes, audit or keys."
    )
    spark_config: dict[str, Any] = Field(default={}, description=_SPARK_CONFIG)
    _spark: LazyPySparkResource | None = PrivateAttr(default=None)

    @classmethod
    def from_env(cls, environ: Mapping[str, str] | None = None, *, path: str | Path | None = None) -> WarehouseResource:
        """Return the warehouse that the environment names, as the commands of `scd` read it.

        SCD_WAREHOUSE is the folder or the address of a bucket, SCD_REMOTE a Spark Connect server, SCD_SCHEMA a schema
        of its catalog in place of the folder; SCD_SCHEMA_CHANGES, SCD_SCHEMA_AUDIT and SCD_SCHEMA_KEYS name others for
        these kinds of table.

        Args:
            environ: The variables; those of the process by default.
            path: The folder if SCD_WAREHOUSE is not set; `warehouse` in the current folder by default.
        """
        variables = os.environ if environ is None else environ
        named = variables.get("SCD_WAREHOUSE") or str(path or DEFAULT_WAREHOUSE)
        absolute = named if "://" in named else str(Path(named).absolute())
        remote = dg.EnvVar(REMOTE_VARIABLE) if variables.get(REMOTE_VARIABLE) else None
        return cls(path=absolute, remote=remote, **schemas(variables))

    def spark(self) -> LazyPySparkResource:
        """Return the resource of the session, which nothing has started yet."""
        return DeltaSparkResource(remote=self.address, spark_config=self.spark_config)

    @property
    def address(self) -> str:
        """The Spark Connect server, which may contain a token; empty for an embedded Spark."""
        return os.environ.get(REMOTE_VARIABLE, "") if self.remote is None else self.remote

    def open(self) -> Warehouse:
        """The warehouse; starts Spark if this run has not yet.  Errors: SetupError."""
        if self._spark is None:
            self._spark = self.spark()
        return Warehouse(self._spark.spark_session, self.path, schema=self.schema_name, schemas=self.schemas)

    @property
    def place(self) -> str:
        """Which Spark it is, for the run's log."""
        named = session.without_secrets(self.address)
        return f"the Spark Connect server {named}" if named else "an embedded Spark"

    def teardown_after_execution(self, context: dg.InitResourceContext) -> None:  # noqa: ARG002
        """Called by Dagster at the end of a run."""
        if isinstance(self._spark, DeltaSparkResource):
            self._spark.leave()
