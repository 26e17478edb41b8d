"""Where the tables of a set of dimensions lie, and what the server behind them can do."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path

from pyspark.sql import SparkSession

from scd_pipeline.declaration.tables import KINDS, tables_of
from scd_pipeline.delta.capabilities import TABLE_NAME as CAPABILITIES
from scd_pipeline.delta.capabilities import Capabilities, current_engine, load_capabilities
from scd_pipeline.delta.table import Table
from scd_pipeline.errors import SetupError
from scd_pipeline.history.keys import KeyHash, hash_64


class Warehouse:
    """A folder (or bucket) with one Delta table per name; with `schema`, names of the session's catalog instead.

    `schemas` names another schema for a kind of table (`changes`, `audit`, `keys`). The folder then only serves for
    trying out what Delta can do. `declared` names dimensions and facts whose tables may be there, for a place that
    cannot be listed. `key_hash` turns the text of a version into its surrogate key; another than the
    default is for tests.
    Errors: SetupError if the session's time zone is not UTC, as times would be read and cast in it (S1), or if
    `schemas` names something else.
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
    ) -> None:
        self.spark = spark
        self.path = _absolute(str(path))
        self.schema = schema
        self.schemas = dict(schemas or {})
        self.declared = tuple(declared)
        self.key_hash = key_hash
        self._confirmed: Capabilities | None = None
        if unknown := sorted(set(self.schemas) - set(KINDS)) or ([*self.schemas] if not schema else []):
            raise SetupError(
                f"warehouse {self.path}: schemas of {', '.join(unknown)}; expected a schema for all tables in "
                f"`schema`, and beside it others for {', '.join(KINDS)}"
            )
        zone = spark.conf.get("spark.sql.session.timeZone")
        if zone not in ("UTC", "Etc/UTC", "Z", "+00:00"):
            raise SetupError(
                f"Spark session: spark.sql.session.timeZone is {zone}; expected UTC; set it to UTC before the "
                f"warehouse is opened, or take a session from scd_pipeline.spark.session"
            )

    @cached_property
    def capabilities(self) -> Capabilities:
        """What was found out about this server's Delta; tried at the first use, before anything is written.

        What an earlier run stored may be of another Delta: see `writable_by`.
        """
        return load_capabilities(self.spark, self._at_path(CAPABILITIES), f"{self.path}/_scratch")

    def table(self, name: str) -> Table:
        """A table by its name, for reading; `writable` gives one for writing."""
        return Table(self.spark, name, None, self._schema_of(name)) if self.schema else self._at_path(name)

    def writable(self, name: str) -> Table:
        """The table with the way of writing that this server has (S32)."""
        table = self.table(name)
        return Table(table.spark, table.name, table.path, table.schema, self.capabilities.replaces)

    def writable_by(self, name: str, engine: str) -> Table:
        """Return the table with the way of writing that the engine of this session has (S32).

        Delta before 4.3 ignores `replaceUsing` and overwrites the whole table, and the stored capabilities may be of a
        server with another Delta. So they are compared with the engine of a commit of this session, once.

        Args:
            engine: The engine of a commit that this session has just made, empty if it made none; then it makes one in
                the table of capabilities, if it is to use `replaceUsing`.

        Raises:
            UnsupportedDelta: The engine can write in neither way.
        """
        if self._confirmed is not self.capabilities:
            memory = self._at_path(CAPABILITIES)
            engine = engine or (current_engine(memory) if self.capabilities.replaces else "")
            if not engine:
                return replace(self.table(name), replaces=False)
            if engine != self.capabilities.engine:
                self.capabilities = load_capabilities(self.spark, memory, f"{self.path}/_scratch", engine=engine)
            self._confirmed = self.capabilities
        return self.writable(name)

    @property
    def place(self) -> str:
        """Where the tables lie, for people: the schema, or the folder."""
        return self.schema or self.path

    @property
    def is_listed(self) -> bool:
        """Whether it can be told which tables there are."""
        return self.schema is not None or "://" not in self.path

    def tables(self) -> list[str]:
        """The names of the tables, in order.

        Errors: SetupError if they are in a folder that is not local, and nothing is declared.
        """
        if not self.is_listed:
            if not self.declared:
                raise SetupError(
                    f"warehouse {self.path}: the tables of a remote folder cannot be listed; name the declarations "
                    f"(--declarations or SCD_DECLARATIONS), or the tables in SQL as delta.`{self.path}/<table>`"
                )
            names = [table for name in self.declared for table in tables_of(name)]
            return sorted(name for name in names if self.table(name).exists())
        if self.schema is not None:
            found = [
                row["tableName"]
                for schema in sorted({self.schema, *self.schemas.values()})
                for row in self.spark.sql(f"SHOW TABLES IN {schema}").collect()
                if not row["isTemporary"] and self.table(row["tableName"]).schema == schema
            ]
            views = {row["viewName"] for row in self.spark.sql(f"SHOW VIEWS IN {self.schema}").collect()}
            return sorted(set(found) - views)
        folder = Path(self.path)
        names = [place.parent.name for place in folder.glob("*/_delta_log")] if folder.is_dir() else []
        return sorted(name for name in names if not name.startswith("_"))

    def _schema_of(self, name: str) -> str | None:
        return self.schemas.get(name.rpartition("_")[2], self.schema)

    def _at_path(self, name: str) -> Table:
        return Table(self.spark, name, f"{self.path}/{name}")


def _absolute(path: str) -> str:
    """A path without a scheme is a local folder, as seen from where the program runs."""
    return path.rstrip("/") if "://" in path else str(Path(path).resolve())
