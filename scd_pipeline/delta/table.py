"""One Delta table of the warehouse: create it, read it, and write it at an expected pipeline commit."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace

from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.utils import is_remote

from scd_pipeline.declaration.names import quote_name, quote_path
from scd_pipeline.declaration.table_properties import V_ORDER
from scd_pipeline.delta.commits import PipelineCommit, find_commit, last_pipeline_commit, pipeline_commits_since
from scd_pipeline.delta.scratch import scratch_table_path
from scd_pipeline.delta_operations import CHANGES_NO_ROW, ENFORCE_TIME_TRAVEL_RETENTION
from scd_pipeline.errors import ConflictError, SetupError, UnsupportedDelta, UsageError, first_line
from scd_pipeline.expressions import without_blanks
from scd_pipeline.frames import column_types
from scd_pipeline.spark.settings import temporary_settings

_CONFLICTS = (
    "DELTA_CONCURRENT_",
    "DELTA_METADATA_CHANGED",
    "DELTA_PROTOCOL_CHANGED",
    "ConcurrentTransactionException",
    "ConcurrentAppendException",
    "ConcurrentDeleteReadException",
    "ConcurrentDeleteDeleteException",
    "ConcurrentWriteException",
    "MetadataChangedException",
    "ProtocolChangedException",
)
# Errors of an ALTER if another writer has executed the same schema step since it was planned.
_ALREADY_ALTERED = ("FIELD_ALREADY_EXISTS", "UNRESOLVED_COLUMN")
_MISSING = (
    "DELTA_MISSING_DELTA_TABLE",
    "DELTA_TABLE_NOT_FOUND",
    "DELTA_PATH_DOES_NOT_EXIST",
    "TABLE_OR_VIEW_NOT_FOUND",
    "PATH_NOT_FOUND",
    "is not a Delta table",
)
# Errors of a CREATE TABLE if the table exists, or if its folder is not empty.
_FOLDER_IS_USED = ("TABLE_OR_VIEW_ALREADY_EXISTS", "DELTA_CREATE_TABLE_WITH_NON_EMPTY_LOCATION")
# Delta refuses a version that another writer has replaced, if it is old (`ENFORCE_TIME_TRAVEL_RETENTION`).
_VERSION_EXPIRED = "DELTA_UNSUPPORTED_TIME_TRAVEL"
_APP_ID = "spark.databricks.delta.write.txnAppId"
_APP_VERSION = "spark.databricks.delta.write.txnVersion"
_USER_METADATA = "spark.databricks.delta.commitInfo.userMetadata"
_VECTORS = "delta.enableDeletionVectors"
_TIME_FORMAT = {
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    "spark.sql.parquet.datetimeRebaseModeInWrite": "CORRECTED",
}
"""How times are stored, whatever the session's own settings. Spark's default is INT96, which other readers convert to
nanoseconds: a sentinel of year 9999 overflows and becomes a time of year 1816. LEGACY stores days before 1582 in the
Julian calendar, which other readers do not convert back."""
_UNCHECKED_PROPERTIES = "spark.databricks.delta.allowArbitraryProperties.enabled"
_UNKNOWN_PROPERTY = "DELTA_UNKNOWN_CONFIGURATION"
_TYPE_WIDENING = "delta.enableTypeWidening"
_TIMES_WITHOUT_ZONE = "delta.feature.timestampNtz"
_RECENT_COMMITS = 20
_ONLY_SMALL_FILES = {
    "spark.databricks.delta.optimize.minFileSize": str(16 << 20),
    "spark.databricks.delta.optimize.maxFileSize": str(128 << 20),
    "spark.databricks.delta.optimize.maxDeletedRowsRatio": "1.0",
}
"""OPTIMIZE combines files below the first size to files of the second; none is rewritten for its deleted rows."""


@dataclass(frozen=True, slots=True)
class TableVersion:
    """A table at one version: its last pipeline commit, and the rows of the newest version at that moment.

    `rows` are read lazily, and always at that version, so that all queries of a run see the same rows.
    """

    commit: PipelineCommit
    rows: DataFrame

    def columns(self) -> dict[str, str]:
        """Return the type of each column by its name."""
        return column_types(self.rows.schema)


@dataclass(frozen=True, slots=True)
class Table:
    """A table by its name, at a path of its own or in a schema of the catalog.

    `replaces` is whether this server's Delta supports `replaceUsing` (S32); otherwise one MERGE has the same effect.
    `scratch` is the folder of scratch tables.
    """

    spark: SparkSession
    name: str
    path: str | None
    schema: str | None = None
    replaces: bool = True
    scratch: str = ""

    @property
    def identifier(self) -> str:
        """The table's name in SQL."""
        if self.path is not None:
            return f"delta.{quote_name(self.path)}"
        names = [*filter(None, (self.schema or "").split(".")), self.name]
        return quote_path(names)

    def exists(self) -> bool:
        """Return whether the table exists."""
        return bool(self.columns())

    def create(self, columns: Sequence[tuple[str, str, bool]], properties: Mapping[str, str], comment: str) -> bool:
        """Create the table if it does not exist, with deletion vectors unless a property turns them off.

        A load that was killed while it created the table may have left its folder with an empty Delta log, which is
        completed (S17).

        Args:
            columns: Name, type and nullability of each column.
            properties: The table properties.
            comment: The description of the table.

        Returns:
            Whether it did not exist.

        Raises:
            ConflictError: Another writer completed the same table at the same time.
            SetupError: The folder of the table has files, but no Delta log.
            UsageError: Delta does not know a property.
        """
        ddl = ", ".join(f"{quote_name(n)} {t}{'' if nullable else ' NOT NULL'}" for n, t, nullable in columns)
        statement = f"CREATE TABLE {self.identifier} ({ddl}) USING delta COMMENT {sql_literal(comment)} TBLPROPERTIES"
        try:
            # With IF NOT EXISTS, Delta creates nothing in a folder with an empty Delta log, and raises no error.
            self._alter_properties(statement, {_VECTORS: "true", **properties})
        except Exception as error:
            if not any(text in str(error) for text in _FOLDER_IS_USED):
                raise
            if self.exists():
                return False
            self._complete(columns, properties, comment)
        return True

    def _complete(self, columns: Sequence[tuple[str, str, bool]], properties: Mapping[str, str], comment: str) -> None:
        """Create the table in a folder with a Delta log without commits.

        Only a clone can do that without replacing what another writer commits meanwhile. The clone of an empty table
        has its columns and properties.
        """
        with scratch_table_path(self.scratch) as path:
            template = Table(self.spark, self.name, path)
            template.create(columns, properties, "")
            try:
                self._alter(f"CREATE TABLE IF NOT EXISTS {self.identifier} SHALLOW CLONE {template.identifier}")
            except PySparkException as error:
                if not any(text in str(error) for text in _FOLDER_IS_USED):
                    raise
                if not self.exists():
                    location = f"table {self.name}"
                    raise SetupError("FOLDER_NOT_EMPTY", location, table=self.identifier) from error
        if comment:
            self.set_properties({"comment": comment})

    def add_columns(self, columns: Sequence[tuple[Sequence[str], str]]) -> None:
        """Add nullable columns, or fields inside of columns, each by its path and with its type.

        Times without a zone need a table feature, which Delta enables by itself only for a new table.
        """
        if any("timestamp_ntz" in data_type for _, data_type in columns):
            self.set_properties({_TIMES_WITHOUT_ZONE: "supported"})
        ddl = ", ".join(f"{quote_path(path)} {data_type}" for path, data_type in columns)
        self._alter(f"ALTER TABLE {self.identifier} ADD COLUMNS ({ddl})")

    def rename_column(self, old: str, new: str) -> None:
        """Rename a column in the metadata alone; turns on column mapping, which Delta needs for it."""
        self._alter(f"ALTER TABLE {self.identifier} SET TBLPROPERTIES ('delta.columnMapping.mode' = 'name')")
        self._alter(f"ALTER TABLE {self.identifier} RENAME COLUMN {quote_name(old)} TO {quote_name(new)}")

    def allow_widening(self) -> None:
        """Turn on type widening, which `widen_column` needs.

        Raises:
            UnsupportedDelta: The Delta of this server does not have it.
        """
        try:
            self.set_properties({_TYPE_WIDENING: "true"})
        except UsageError as error:
            raise UnsupportedDelta("NO_TYPE_WIDENING", f"table {self.name}", property=_TYPE_WIDENING) from error

    def widen_column(self, path: Sequence[str], data_type: str) -> None:
        """Give a column, or a value inside of one, a wider type in the metadata alone."""
        self._alter(f"ALTER TABLE {self.identifier} ALTER COLUMN {quote_path(path)} TYPE {data_type}")

    def comment_column(self, name: str, comment: str) -> None:
        """Set the comment of a column."""
        self._alter(f"ALTER TABLE {self.identifier} ALTER COLUMN {quote_name(name)} COMMENT {sql_literal(comment)}")

    def set_properties(self, properties: Mapping[str, str]) -> None:
        """Set table properties.

        Raises:
            UsageError: Delta does not know a property.
        """
        self._alter_properties(f"ALTER TABLE {self.identifier} SET TBLPROPERTIES", properties)

    def add_constraint(self, name: str, condition: str) -> None:
        """Add a CHECK constraint, which Delta compares with all rows; it replaces one of this name."""
        stored = self.properties().get(f"delta.constraints.{name}")
        if stored is not None and without_blanks(stored) == without_blanks(condition):
            return
        if stored is not None:
            self._alter(f"ALTER TABLE {self.identifier} DROP CONSTRAINT {quote_name(name)}")
        self._alter(f"ALTER TABLE {self.identifier} ADD CONSTRAINT {quote_name(name)} CHECK ({condition})")

    def compact(self, z_order: Sequence[str] = ()) -> None:
        """Run OPTIMIZE, which changes no row.

        Args:
            z_order: The columns by which all rows are rearranged, so that queries on them skip files; without them,
                only small files are combined.

        Raises:
            ConflictError: Another writer committed first.
        """
        set_time_format(self.spark)
        columns = ", ".join(map(quote_name, z_order))
        self._alter(f"OPTIMIZE {self.identifier}{columns and f' ZORDER BY ({columns})'}")

    def combine_small_files(self) -> None:
        """Run an OPTIMIZE that reads only files of less than 16 MB, which changes no row.

        A table with clustering columns is left to maintenance, because Delta would rewrite all of its files. So is one
        on a managed service that refuses the settings.

        Raises:
            ConflictError: Another writer committed first.
        """
        if self.details()["clusteringColumns"]:
            return
        with new_session(self.spark) as session:
            try:
                for name, value in _ONLY_SMALL_FILES.items():
                    session.conf.set(name, value)
            except (PySparkException, Py4JError):
                return
            replace(self, spark=session).compact()

    def is_z_ordered(self, columns: Sequence[str], version: int) -> bool:
        """Return whether one of the last commits, after a table version, has arranged the rows by these columns."""
        return set(columns) <= set(self.last_z_order(version, limit=_RECENT_COMMITS))

    def last_z_order(self, after_version: int = -1, *, limit: int | None = None) -> tuple[str, ...]:
        """Return the columns by which an OPTIMIZE arranged the rows last; none if none did.

        Args:
            after_version: The table version before the commits to search.
            limit: The number of commits to search, the newest first; by default all.
        """
        history = self.spark.sql(f"DESCRIBE HISTORY {self.identifier}{'' if limit is None else f' LIMIT {limit}'}")
        columns = F.from_json(F.col("operationParameters")["zOrderBy"], "array<string>")
        has_arranged = (F.col("operation") == "OPTIMIZE") & (F.size(columns) > 0)
        newest_first = history.where((F.col("version") > after_version) & has_arranged).orderBy(F.desc("version"))
        last = newest_first.select(columns.alias("columns")).limit(1).collect()
        return tuple(last[0]["columns"]) if last else ()

    def details(self) -> Row:
        """Return the row of DESCRIBE DETAIL, with the number and the size of the files among others."""
        (details,) = self.spark.sql(f"DESCRIBE DETAIL {self.identifier}").collect()
        return details

    def properties(self) -> dict[str, str]:
        """Return all table properties, including Delta's own, or an empty dict if the table does not exist."""
        try:
            rows = self.spark.sql(f"SHOW TBLPROPERTIES {self.identifier}").collect()
        except Exception as error:
            if is_missing(error):
                return {}
            raise
        return {row["key"]: row["value"] for row in rows}

    def read(self, version: int | None = None) -> DataFrame:
        """Return the rows of the table, at a table version or the newest one."""
        reader = self.spark.read if version is None else self.spark.read.option("versionAsOf", version)
        return reader.table(self.identifier)

    def columns(self) -> dict[str, str]:
        """Return the type of each column by its name; none if the table does not exist."""
        try:
            return column_types(self.read().schema)
        except Exception as error:
            if is_missing(error):
                return {}
            raise

    def last_commit(self) -> PipelineCommit:
        """Return the table's last pipeline commit.

        Raises:
            PipelineCommitMissing: The history has no pipeline commit left.
        """
        return last_pipeline_commit(self.spark, self.name, self.identifier)

    def last_commit_or_zero(self) -> PipelineCommit:
        """Return the last pipeline commit, and number 0 of no version if the table does not exist."""
        try:
            return self.last_commit()
        except Exception as error:
            if is_missing(error):
                return PipelineCommit(self.name, 0)
            raise

    def newest(self, commit: PipelineCommit | None = None) -> TableVersion | None:
        """Return the table at its newest version; None if it does not exist.

        `commit` is its last pipeline commit, if it was read already; the result is then the table as of that reading.
        """
        commit = commit or self.last_commit_or_zero()
        return TableVersion(commit, self.read(commit.newest)) if commit.exists else None

    def commits_since(self, number: int) -> list[PipelineCommit]:
        """Return the pipeline commits after a number, in order."""
        return pipeline_commits_since(self.spark, self.name, self.identifier, number)

    def append(self, rows: DataFrame, commit: PipelineCommit) -> PipelineCommit:
        """Append the rows as `commit`.

        Raises:
            ConflictError: Another writer used its number.
        """
        return self._commit(commit, lambda: self._save(rows, "append", {}, commit))

    def commit_empty(self, commit: PipelineCommit) -> PipelineCommit:
        """Write `commit` without rows, for its metadata.

        Raises:
            ConflictError: Another writer used the commit's number.
        """
        return self.append(self.read().limit(0), commit)

    def replace(
        self, rows: DataFrame, commit: PipelineCommit, *, key: str, properties: Mapping[str, str] | None = None
    ) -> PipelineCommit:
        """Replace the rows with the keys of `rows`, and append rows with new keys, as `commit`.

        `properties` are those of the table, if they were read already.

        Raises:
            ConflictError: Another writer used its number.
            UnsupportedDelta: The table has no deletion vectors; without them `replaceUsing` fails on large tables.
        """
        if (properties or self.properties()).get(_VECTORS) != "true":
            raise UnsupportedDelta("DELETION_VECTORS_OFF", f"table {self.name}", property=_VECTORS)
        return self._commit(commit, lambda: self._save(rows, "overwrite", {"replaceUsing": key}, commit))

    def replace_where(self, rows: DataFrame, commit: PipelineCommit, condition: str) -> PipelineCommit:
        """Replace all rows for which a condition is true by `rows`, for each of which it is true too, as `commit`.

        Files without such rows stay as they are. Unlike `overwrite`, columns and properties stay too.

        Raises:
            ConflictError: Another writer used its number.
        """
        return self._commit(commit, lambda: self._save(rows, "overwrite", {"replaceWhere": condition}, commit))

    def overwrite(self, rows: DataFrame, commit: PipelineCommit, properties: Mapping[str, str]) -> PipelineCommit:
        """Replace all rows and columns as `commit`.

        In a schema of the catalog, Delta replaces the properties too: the table then has `properties`.

        Raises:
            ConflictError: Another writer used its number.
        """
        options = {"overwriteSchema": "true", _VECTORS: "true", **properties}
        return self._commit(commit, lambda: self._save(rows, "overwrite", options, commit))

    def merge(self, rows: DataFrame, commit: PipelineCommit, *, key: str, removes: str) -> PipelineCommit:
        """Replace rows by key with one MERGE; rows for which the condition `removes` is true are deleted.

        The MERGE takes its transaction from session settings, so it runs in an isolated session: in the
        caller's session, a write of another thread would use the same number.
        """
        assignments = ", ".join(f"t.{quote_name(n)} = s.{quote_name(n)}" for n in self._written_columns(rows))
        condition = f"t.{quote_name(key)} = s.{quote_name(key)}"
        matched = f"WHEN MATCHED AND {removes} THEN DELETE WHEN MATCHED THEN UPDATE SET {assignments}"
        return self._commit(
            commit, lambda: self._merge(rows, condition, matched, removes, self._transaction_settings(commit))
        )

    def rewrite(self, rows: DataFrame, commit: PipelineCommit, *, key: str, removes: str) -> PipelineCommit:
        """Delete all rows with the keys of the rows for which `removes` is true, and insert the others, by one MERGE.

        Unlike `merge`, this also replaces several rows with one key by one row.

        Raises:
            ConflictError: Another writer used its number.
        """
        return self._commit(commit, lambda: self._rewrite(rows, [key], removes, self._transaction_settings(commit)))

    def rewrite_foreign(
        self, rows: DataFrame, version: int, *, keys: Sequence[str], removes: str, metadata: str
    ) -> int:
        """Delete and insert rows as `rewrite` does, in a table of another program: without a commit number.

        Args:
            rows: The rows to insert, and a row with the key of those to delete.
            version: The version of the table from which the rows were computed.
            keys: The columns of the key.
            removes: The condition of the rows to delete.
            metadata: The `userMetadata` of the commit, which no other commit has.

        Returns:
            The version of the table that the commit wrote.

        Raises:
            ConflictError: Another program changed rows after `version` and before this commit.
        """
        try:
            self._rewrite(rows, keys, removes, {_USER_METADATA: metadata})
        except Exception as error:
            if not is_conflict(error):
                raise
            self.require_unchanged(version)
            raise ConflictError("SCHEMA_CONFLICT", f"table {self.name}", operation="MERGE") from error
        commits = self.row_changes_since(version)
        (written,) = (commit["version"] for commit in commits if commit["userMetadata"] == metadata)
        others = [commit["version"] for commit in commits if commit["version"] < written]
        if others:
            details = {"version": others[-1], "table": self.identifier}
            raise ConflictError("CHANGED_DURING_REPAIR", f"table {self.name}", **details)
        return int(written)

    def require_unchanged(self, version: int) -> None:
        """Check that no program has changed rows after a version of the table.

        Raises:
            ConflictError: One did.
        """
        if commits := self.row_changes_since(version):
            fix = "no row was changed; stop the other program, and repeat the repair"
            details = {"version": commits[-1]["version"], "fix": fix}
            raise ConflictError("CHANGED_DURING_REPAIR", f"table {self.name}", **details)

    def row_changes_since(self, version: int) -> list[Row]:
        """Return the commits after a version that may have changed rows, in order."""
        history = self.spark.sql(f"DESCRIBE HISTORY {self.identifier}")
        is_change = (F.col("version") > version) & ~F.col("operation").isin(sorted(CHANGES_NO_ROW))
        return history.where(is_change).select("version", "userMetadata").orderBy("version").collect()

    def newest_version(self) -> int:
        """Return the newest version of the table, whatever program wrote it."""
        return int(self.spark.sql(f"DESCRIBE HISTORY {self.identifier} LIMIT 1").collect()[0]["version"])

    def _alter_properties(self, statement: str, properties: Mapping[str, str]) -> None:
        """Run a statement that ends with table properties."""
        pairs = ", ".join(f"{sql_literal(key)} = {sql_literal(value)}" for key, value in properties.items())
        try:
            # Delta does not know this property, which only Microsoft Fabric has.
            with temporary_settings(self.spark, {_UNCHECKED_PROPERTIES: "true"} if V_ORDER in properties else {}):
                self._alter(f"{statement} ({pairs})")
        except Exception as error:
            if _UNKNOWN_PROPERTY in str(error):
                raise UsageError("TABLE_PROPERTY_UNKNOWN", f"table {self.name}", reason=first_line(error)) from error
            raise

    def _alter(self, statement: str) -> None:
        """Run a statement that has no pipeline commit number.

        Raises:
            ConflictError: Another writer committed first, with the same statement or another one.
        """
        try:
            self.spark.sql(statement).collect()
        except Exception as error:
            if is_conflict(error) or any(text in str(error) for text in _ALREADY_ALTERED):
                operation = statement.partition(" ")[0]
                raise ConflictError("SCHEMA_CONFLICT", f"table {self.name}", operation=operation) from error
            raise

    def _commit(self, commit: PipelineCommit, write: Callable[[], None]) -> PipelineCommit:
        """Write, and return the commit as the table's history has it; another writer may have committed after it.

        Raises:
            ConflictError: Another writer used the commit's number.
        """
        cause: Exception | None = None
        try:
            write()
        except Exception as error:
            if not is_conflict(error):
                raise
            cause = error
        stored_commit = find_commit(self.spark, commit, self.identifier)
        if stored_commit is None:
            raise self._conflict(commit) from cause
        return stored_commit

    def _conflict(self, commit: PipelineCommit) -> ConflictError:
        number = commit.number
        return ConflictError("WRITE_CONFLICT", f"table {self.name}", number=number, previous=number - 1)

    def _save(self, rows: DataFrame, mode: str, options: Mapping[str, str], commit: PipelineCommit) -> None:
        set_time_format(self.spark)
        writer = rows.write.format("delta").mode(mode).options(**options).option("txnAppId", self.name)
        writer = writer.option("txnVersion", str(commit.number)).option("userMetadata", commit.metadata())
        if self.path is not None:
            writer.save(self.path)
        else:
            writer.saveAsTable(self.identifier)

    def _transaction_settings(self, commit: PipelineCommit) -> dict[str, str]:
        return {_APP_ID: self.name, _APP_VERSION: str(commit.number), _USER_METADATA: commit.metadata()}

    def _written_columns(self, rows: DataFrame) -> list[str]:
        return [name for name in self.columns() if name in rows.columns]

    def _rewrite(self, rows: DataFrame, keys: Sequence[str], removes: str, settings: Mapping[str, str]) -> None:
        same_key = " AND ".join(f"t.{quote_name(key)} <=> s.{quote_name(key)}" for key in keys)
        self._merge(rows, f"{same_key} AND {removes}", "WHEN MATCHED THEN DELETE", removes, settings)

    def _merge(self, rows: DataFrame, condition: str, matched: str, removes: str, settings: Mapping[str, str]) -> None:
        """Run a MERGE that inserts the rows without a match, except those for which `removes` is true."""
        names = self._written_columns(rows)
        values = ", ".join(f"s.{quote_name(n)}" for n in names)
        with isolated_session(self.spark, rows, f"scd_merge_{uuid.uuid4().hex}") as (session, view):
            set_time_format(session)
            allow_earlier_versions(session)
            for name, value in settings.items():
                session.conf.set(name, value)
            session.sql(
                f"MERGE INTO {self.identifier} t USING {view} s ON {condition} {matched} "
                f"WHEN NOT MATCHED AND NOT ({removes}) THEN "
                f"INSERT ({', '.join(quote_name(n) for n in names)}) VALUES ({values})"
            )


def set_time_format(spark: SparkSession) -> None:
    """Set how the session stores times in Parquet files; every write of a table does this first.

    Delta takes this from the session alone. The setting stays: another thread may be writing by the same session.
    """
    for name, value in _TIME_FORMAT.items():
        spark.conf.set(name, value)


def allow_earlier_versions(spark: SparkSession) -> None:
    """Let the session read every table version whose files exist, unless a managed service refuses the setting."""
    with suppress(PySparkException, Py4JError):
        spark.conf.set(ENFORCE_TIME_TRAVEL_RETENTION, "false")


@contextmanager
def new_session(spark: SparkSession) -> Iterator[SparkSession]:
    """Yield a session of the same server with settings of its own, which is released at the end."""
    if not is_remote():
        yield spark.newSession()
        return
    clone: SparkSession = spark.cloneSession()  # type: ignore[attr-defined]  # only Connect's session has it
    try:
        yield clone
    finally:
        clone.client.release_session()
        clone.client.close()


@contextmanager
def isolated_session(spark: SparkSession, rows: DataFrame, view: str) -> Iterator[tuple[SparkSession, str]]:
    """Yield a new session and the name under which it has `rows` as a view; both are released at the end."""
    if is_remote():
        rows.createOrReplaceTempView(view)
        try:
            with new_session(spark) as session:  # it has the views of the session that it clones
                yield session, quote_name(view)
        finally:
            spark.catalog.dropTempView(view)
        return
    rows.createOrReplaceGlobalTempView(view)
    try:
        with new_session(spark) as session:
            yield session, f"global_temp.{quote_name(view)}"
    finally:
        spark.catalog.dropGlobalTempView(view)


def is_conflict(error: BaseException) -> bool:
    """Return whether Delta rejected a commit because of another writer's; with Connect only the message shows it."""
    text = f"{type(error).__name__}: {error}"
    return any(message_part in text for message_part in _CONFLICTS)


def is_version_expired(error: BaseException) -> bool:
    """Return whether Delta refused to read a version because another writer has replaced it and it is old."""
    return _VERSION_EXPIRED in str(error)


def is_missing(error: BaseException) -> bool:
    """Return whether a query failed because its table, folder or file does not exist."""
    text = str(error)
    return any(message_part in text for message_part in _MISSING)


def sql_literal(text: str) -> str:
    """Return a text as an SQL literal."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
