"""Resources of the assets: a Spark session with Delta, and the warehouse.

A run is one process with one session, which the first step that needs it starts. An embedded session has a JVM
of its own. A session at a Spark Connect server shares the server, which is warm already, with other runs.

An address of a server may contain a token. Dagster stores the configuration of resources, and shows it in its UI. So
the configuration names the environment variable (`dg.EnvVar`), and an address with a token is rejected.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import dagster as dg
from dagster_pyspark import LazyPySparkResource
from pydantic import Field, PrivateAttr

from scd_pipeline.declaration.source import is_address
from scd_pipeline.delta.warehouse import Warehouse
from scd_pipeline.environment import DEFAULT_WAREHOUSE, Environment
from scd_pipeline.errors import SetupError
from scd_pipeline.spark import session
from scd_pipeline.spark.remote import BACKGROUND, redacted_address

REMOTE_VARIABLE = "SCD_REMOTE"
_REMOTE = (
    "Address of a Spark Connect server, sc://host:port; one with a token as dg.EnvVar; `background` for the one that "
    "the commands of scd share. Empty: an embedded Spark session in the process of the run."
)
_REMOTE_OR_VARIABLE = f"{_REMOTE} Not set: the value of {REMOTE_VARIABLE} in the environment of the run."
_SPARK_CONFIG = "Further Spark settings of an embedded session; they override the defaults of scd_pipeline."
_PARAMETER = re.compile(r"[/;?&]([\w-]+)=")
_PUBLIC_PARAMETERS = {"use_ssl", "user_id", "user_agent", "session_id", "grpc_max_message_size"}


def _reject_literal_token(resource: str, remote: str | None) -> None:
    """Reject an address with a token, or with another header, that is written into the configuration of a resource.

    Raises SetupError.
    """
    if remote is None or isinstance(remote, dg.EnvVar):
        return
    if set(_PARAMETER.findall(remote)) - _PUBLIC_PARAMETERS:
        raise SetupError("SECRET_IN_RESOURCE", f"{resource}: remote", variable=REMOTE_VARIABLE)


def _setting(value: Any) -> str:
    """Return a setting as text. Dagster does not resolve a dg.EnvVar in a dictionary, and passes {"env": name}.

    Raises SetupError if the variable is not set.
    """
    variable = value.get("env") if isinstance(value, Mapping) else None
    if variable is None:
        return str(value)
    if variable not in os.environ:
        raise SetupError("ENVIRONMENT_VARIABLE_MISSING", "spark_config", variable=variable)
    return os.environ[variable]


def _address(remote: str, spark_config: Mapping[str, Any]) -> str:
    """Return the address to use: the server in the background has no settings of one resource."""
    return "" if remote == BACKGROUND and spark_config else remote


class DeltaSparkResource(LazyPySparkResource):
    """A lazy Spark session with Delta's settings; it can be used wherever a LazyPySparkResource is expected.

    Raises SetupError when the session starts if Java or Delta's jars are missing, if the server does not answer, or if
    the process already has a session without Delta, to which no setting can add it.
    """

    spark_config: dict[str, Any] = Field(default={}, description=_SPARK_CONFIG)
    remote: str = Field(default="", description=_REMOTE)

    def get_resource_definition(self) -> Any:
        """Return Dagster's definition of the resource, whose configuration Dagster stores.

        Raises SetupError if the configuration contains a token.
        """
        _reject_literal_token(type(self).__name__, self.remote)
        return super().get_resource_definition()

    def _init_session(self) -> None:
        if self._spark_session is None:
            remote = _address(self.remote, self.spark_config)
            embedded = {} if remote else self.spark_config
            extra = {str(name): _setting(value) for name, value in embedded.items()}
            self._spark_session = session.open_spark(remote, Environment.from_env(), extra=extra)

    def disconnect(self) -> None:
        """Stop a session at a server. An embedded session stays, as others in the process may use it."""
        if self.remote and self._spark_session is not None:
            session.disconnect(self._spark_session)
            self._spark_session = None

    def teardown_after_execution(self, context: dg.InitResourceContext) -> None:  # noqa: ARG002
        """Disconnect at the end of a run; Dagster calls it."""
        self.disconnect()


class WarehouseResource(dg.ConfigurableResource[Warehouse]):
    """The folder or schema of the tables, and the Spark session that reads and writes them."""

    path: str = Field(description="Folder of the tables, or the URL of a folder in an object store.")
    remote: str | None = Field(default=None, description=_REMOTE_OR_VARIABLE)
    schema_name: str | None = Field(
        default=None, alias="schema", description="Schema of the session's catalog for the tables; replaces the folder."
    )
    schemas: dict[str, str] = Field(
        default={},
        description="Schemas for some kinds of tables: `changes`, `audit`, `keys`, `history` or `archive` to the "
        "schema's name.",
    )
    spark_config: dict[str, Any] = Field(default={}, description=_SPARK_CONFIG)
    load_cores: int | None = Field(
        default=None, description="Cores that a load uses at most, so that queries beside it have the others."
    )
    _spark: LazyPySparkResource | None = PrivateAttr(default=None)

    @classmethod
    def from_env(cls, environ: Mapping[str, str] | None = None, *, path: str | Path | None = None) -> WarehouseResource:
        """Return the warehouse that the environment names, as the commands of `scd` read it.

        SCD_WAREHOUSE is the folder or the URL in an object store, SCD_REMOTE a Spark Connect server, SCD_SCHEMA a
        schema of its catalog that replaces the folder, SCD_LOAD_CORES the cores of a load; SCD_SCHEMA_CHANGES, _AUDIT,
        _KEYS and _HISTORY name schemas for these kinds of tables.

        Args:
            environ: The variables; those of the process by default.
            path: The folder if SCD_WAREHOUSE is not set; `warehouse` in the current folder by default.
        """
        environment = Environment.from_env(environ)
        configured = environment.warehouse or str(path or DEFAULT_WAREHOUSE)
        absolute = configured if is_address(configured) else str(Path(configured).absolute())
        remote = dg.EnvVar(REMOTE_VARIABLE) if environment.remote else None
        return cls(
            path=absolute,
            remote=remote,
            schema=environment.schema,
            schemas=environment.schemas,
            load_cores=environment.load_cores,
        )

    def get_resource_definition(self) -> Any:
        """Return Dagster's definition of the resource, whose configuration Dagster stores.

        Raises SetupError if the configuration contains a token.
        """
        _reject_literal_token(type(self).__name__, self.remote)
        return super().get_resource_definition()

    def spark(self) -> LazyPySparkResource:
        """Return a resource whose session is not started yet."""
        return DeltaSparkResource(remote=self.address, spark_config=self.spark_config)

    @property
    def address(self) -> str:
        """The address of the Spark Connect server, which may contain a token; empty for an embedded session."""
        return _address(Environment.from_env().remote if self.remote is None else self.remote, self.spark_config)

    def open(self) -> Warehouse:
        """Return the warehouse; the first call starts the Spark session.

        Raises SetupError as DeltaSparkResource does.
        """
        if self._spark is None:
            self._spark = self.spark()
        return Warehouse(
            self._spark.spark_session,
            self.path,
            schema=self.schema_name,
            schemas=self.schemas,
            load_cores=self.load_cores,
        )

    @property
    def spark_description(self) -> str:
        """The kind of the Spark session and its server without a token, for the log of a run."""
        server = redacted_address(self.address)
        name = "in the background" if server == BACKGROUND else server
        return f"the Spark Connect server {name}" if server else "an embedded Spark session"

    def teardown_after_execution(self, context: dg.InitResourceContext) -> None:  # noqa: ARG002
        """Disconnect at the end of a run; Dagster calls it."""
        if isinstance(self._spark, DeltaSparkResource):
            self._spark.disconnect()
