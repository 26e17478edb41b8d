"""The location of the tables of dimensions and facts, and the platform capabilities of the server."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path

from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from scd_pipeline.declaration.names import quote_path
from scd_pipeline.declaration.source import is_address
from scd_pipeline.declaration.tables import CLOSED_SUFFIXES, KINDS, table_names
from scd_pipeline.delta.capabilities import TABLE_NAME as CAPABILITIES
from scd_pipeline.delta.capabilities import Capabilities, current_engine, load_capabilities
from scd_pipeline.delta.scratch import remove_abandoned_tables
from scd_pipeline.delta.table import Table, allow_earlier_versions, is_conflict, is_version_expired
from scd_pipeline.errors import SetupError, first_line
from scd_pipeline.frames import is_checkpoint_lost
from scd_pipeline.history.keys import KeyHash, hash_64


class Warehouse:
    """A folder or bucket with one Delta table per name, or a schema of the session's catalog.

    Args:
        spark: The session. Its time zone must be UTC, because Spark casts times in that zone (S1). From then on it
            reads every table version whose files exist, however old.
        path: The folder. With `schema` it contains only the tables of the platform capabilities.
        schema: The schema of the tables; by default they are in the folder.
        schemas: Another schema for a kind of table (`changes`, `audit`, `history`, `archive`), or for the view `keys`.
        declared: Names of dimensions and facts, of which `tables` returns the existing tables if the folder cannot be
            listed.
        key_hash: Computes a surrogate key from the text of a version; tests set another than the default.
        load_cores: The largest number of tasks into which a load divides a step of a query, which leaves the other
            cores to other queries; by default the settings of the session decide.

    Raises:
        SetupError: The session has another time zone, `schemas` names another kind of table, `schema` is missing, or
            `load_cores` is not a number of cores.
    """

    def __init__(
        self,
        spark: SparkSession,
        path: str | Path,
        *,
        schema: str | None = None,
        schemas: Mapping[str, str] | None = None,
        declared: Sequence[str] = (),
        key_hash: KeyHash = hash_64,
        load_cores: int | None = None,
    ) -> None:
        self.spark = spark
        self.path = _absolute(str(path))
        self.schema = schema
        self.schemas = dict(schemas or {})
        self.declared = tuple(declared)
        self.key_hash = key_hash
        self.load_cores = load_cores
        self._confirmed: Capabilities | None = None
        location = f"warehouse {self.path}"
        if load_cores is not None and (type(load_cores) is not int or load_cores < 1):
            raise SetupError("LOAD_CORES", location, value=repr(load_cores))
        if unknown := sorted(set(self.schemas) - set(KINDS)):
            raise SetupError("UNKNOWN_TABLE_KIND", location, kinds=", ".join(unknown), expected=", ".join(KINDS))
        if self.schemas and not schema:
            raise SetupError("MAIN_SCHEMA_MISSING", location, kinds=", ".join(self.schemas))
        zone = spark.conf.get("spark.sql.session.timeZone")
        if zone not in ("UTC", "Etc/UTC", "Z", "+00:00"):
            raise SetupError("SESSION_TIME_ZONE", "Spark session", zone=zone)
        allow_earlier_versions(spark)

    @cached_property
    def capabilities(self) -> Capabilities:
        """The platform capabilities of this server, probed at the first use, before any table is written.

        The stored ones may be of a server with another Delta: see `writable_by`.

        Raises:
            SetupError: STORAGE_NOT_WRITABLE if Spark cannot read the folder or create a table in it.
            UnsupportedDelta: Neither way of writing works on this server.
        """
        try:
            remove_abandoned_tables(self._scratch)
            return load_capabilities(self.spark, self._at_path(CAPABILITIES), self._scratch)
        except (PySparkException, Py4JJavaError) as error:
            if is_conflict(error) or is_version_expired(error) or is_checkpoint_lost(error):
                raise  # a further attempt may succeed
            raise SetupError("STORAGE_NOT_WRITABLE", f"warehouse {self.path}", reason=first_line(error)) from error

    def table(self, name: str) -> Table:
        """Return a table by its name, for reading; `writable` returns one for writing."""
        if not self.schema:
            return self._at_path(name)
        return Table(self.spark, name, None, self._table_schema(name), scratch=self._scratch)

    def writable(self, name: str) -> Table:
        """Return the table with the way of writing that this server supports (S32)."""
        return replace(self.table(name), replaces=self.capabilities.replaces)

    def writable_by(self, name: str, engine: str) -> Table:
        """Return the table with the way of writing that the engine of this session supports (S32).

        Delta before 4.3 ignores `replaceUsing` and overwrites the whole table, and the stored capabilities may be of a
        server with another Delta. So they are compared with the engine of a commit of this session, once.

        Args:
            engine: The engine of a commit that this session has just written, empty if it wrote none; then it writes
                one in the table of capabilities, if it is to use `replaceUsing`.

        Raises:
            UnsupportedDelta: The engine can write in neither way.
        """
        if self._confirmed is not self.capabilities:
            store = self._at_path(CAPABILITIES)
            engine = engine or (current_engine(store) if self.capabilities.replaces else "")
            if not engine:
                return replace(self.table(name), replaces=False)
            if engine != self.capabilities.engine:
                self.capabilities = load_capabilities(self.spark, store, self._scratch, engine=engine)
            self._confirmed = self.capabilities
        return self.writable(name)

    def with_declared(self, names: Sequence[str]) -> Warehouse:
        """Return the warehouse with other declared names."""
        warehouse = copy.copy(self)
        warehouse.declared = tuple(names)
        return warehouse

    @property
    def location(self) -> str:
        """The location of the tables for messages: the schema, or the folder."""
        return self.schema or self.path

    @property
    def is_listed(self) -> bool:
        """Whether the tables can be listed, as those of a remote folder cannot."""
        return self.schema is not None or not is_address(self.path)

    def tables(self) -> list[str]:
        """Return the names of the existing tables, in order.

        Raises:
            SetupError: The folder cannot be listed, and no declared names were passed.
        """
        if not self.is_listed:
            if not self.declared:
                raise SetupError("TABLES_NOT_LISTED", f"warehouse {self.path}", path=self.path)
            names = [table for name in self.declared for table in table_names(name, CLOSED_SUFFIXES)]
            return sorted(name for name in names if self.table(name).exists())
        if self.schema is not None:
            schemas = sorted({self.schema, *self.schemas.values()})
            # Spark lists the session's temporary views in every schema.
            tables, views = (
                {
                    row[column]
                    for schema in schemas
                    for row in self.spark.sql(f"SHOW {kind} IN {_quoted(schema)}").collect()
                    if not row["isTemporary"] and self.table(row[column]).schema == schema
                }
                for kind, column in (("TABLES", "tableName"), ("VIEWS", "viewName"))
            )
            return sorted(tables - views)
        folder = Path(self.path)
        logs = folder.glob("*/_delta_log") if folder.is_dir() else ()
        # A load that was killed while it created a table may have left a log without commits.
        names = [log.parent.name for log in logs if any(log.glob("*.json"))]
        return sorted(name for name in names if not name.startswith("_"))

    def _table_schema(self, name: str) -> str | None:
        return self.schemas.get(name.rpartition("_")[2], self.schema)

    def _at_path(self, name: str) -> Table:
        return Table(self.spark, name, f"{self.path}/{name}", scratch=self._scratch)

    @property
    def _scratch(self) -> str:
        return f"{self.path}/_scratch"


def _quoted(schema: str) -> str:
    return quote_path(schema.split("."))


def _absolute(path: str) -> str:
    """Return the path as an absolute one; a path with a scheme is absolute already."""
    return path.rstrip("/") if is_address(path) else str(Path(path).resolve())
