"""The entry point of the library: load and query the tables of one warehouse."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta, timezone
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

from scd_pipeline import queries
from scd_pipeline.declaration import DeclaredTable, Dimension, Fact, Feed, TimedTable
from scd_pipeline.declaration.declared import as_dimension
from scd_pipeline.declaration.names import is_table_name
from scd_pipeline.deliveries.delivery import Delivery
from scd_pipeline.deliveries.discovery import Discovery, select
from scd_pipeline.deliveries.dispatch import TableOfRow, rows_by_table
from scd_pipeline.deliveries.inputs import is_frame, is_rows, to_known_rows, to_names
from scd_pipeline.delta.warehouse import Warehouse
from scd_pipeline.environment import Environment
from scd_pipeline.errors import DeclarationWarning, LoadWarning, UsageError
from scd_pipeline.instants import time_name, to_instant
from scd_pipeline.load.deadline import Deadline
from scd_pipeline.load.landing_options import named_landing_table
from scd_pipeline.load.load_plan import LoadPlan
from scd_pipeline.load.log import read_log
from scd_pipeline.load.retry import Retry
from scd_pipeline.load.run import LoadResult, load, plan
from scd_pipeline.load.source_deliveries import cursor_delivery, other_deliveries
from scd_pipeline.operations import archive, check, repair, status
from scd_pipeline.operations.repair_without_log import repair_without_log
from scd_pipeline.operations.withdrawals import withdrawal
from scd_pipeline.spark import session
from scd_pipeline.spark.installation import install
from scd_pipeline.texts import join_names, short_repr
from scd_pipeline.timed.append import append_statements
from scd_pipeline.timed.fold import fold_log
from scd_pipeline.timed.read import StatementHits, read_state

if TYPE_CHECKING:
    import pandas
    import pyarrow
    from pyspark.sql import DataFrame, SparkSession

    from scd_pipeline.deliveries.inputs import ArrowStream

    Rows: TypeAlias = DataFrame | pandas.DataFrame | pyarrow.Table | ArrowStream | Iterable[Mapping[str, Any]]
    Deliveries: TypeAlias = Delivery | Iterable[Delivery] | Rows | str | os.PathLike[str]

Time: TypeAlias = str | date | datetime
"""A time in any accepted form: ISO text, a date or a datetime; in UTC without a zone."""

TimedTime: TypeAlias = Time | int
"""A time of a timed table: also milliseconds since 1970, "raw" or an empty text."""

_log = logging.getLogger("scd_pipeline")


class Pipeline:
    """Loads deliveries into the dimensions and facts of a warehouse, and queries them.

    Without `spark` and `remote` it starts Spark in this process; the first use on a machine downloads Delta's jars.
    As a context manager it closes itself at the end.

    A query of one table accepts a declaration or the name of the table. It raises SetupError if the table, or for
    `audit` the audit, does not exist.

    Args:
        warehouse: The folder of the tables, or the address of a bucket; it is created by the first load.
        spark: A session of your own, with Delta and the time zone UTC.
        remote: The address of a Spark Connect server, such as `sc://host:port`; `background` for the one that the
            commands of `scd` share, which is started if it does not run.
        schema: The schema of the session's catalog that has the tables, such as `sales` or `main.sales`; by default
            they are in the folder.
        schemas: Other schemas for some kinds of tables: `changes`, `audit`, `history`, `archive`; and for the view
            `keys`.
        load_cores: Cores that a load uses at most, so that queries beside it have the others; by default all.

    Raises:
        SetupError: Java, jars or a server are missing, or the session's time zone is not UTC.
        UsageError: An argument has a value that cannot be used.

    Example:
        from scd_pipeline import Dimension, Pipeline, Source

        customer = Dimension("dim_customer", "id", {"name": 1, "city": 2}, Source("crm", snapshot={}))

        with Pipeline("warehouse") as pipeline:
            pipeline.load(customer, [{"id": "7", "name": "Ada", "city": "Rome"}], at="2024-01-31")
            pipeline.load(customer, [{"id": "7", "name": "Ada", "city": "Oslo"}], at="2024-02-29")
            pipeline.as_of(customer, "2024-02-01").show()
    """

    def __init__(
        self,
        warehouse: str | os.PathLike[str] = "warehouse",
        *,
        spark: SparkSession | None = None,
        remote: str = "",
        schema: str | None = None,
        schemas: Mapping[str, str] | None = None,
        load_cores: int | None = None,
    ) -> None:
        _check_arguments(warehouse, spark, remote, schema, schemas)
        self._stop: Callable[[], None] | None = None
        if spark is None:
            spark, self._stop = _connect(remote) if remote else _start()
        try:
            self.warehouse = Warehouse(
                spark, os.fspath(warehouse), schema=schema, schemas=schemas, load_cores=load_cores
            )
        except BaseException:
            self.close()
            raise

    @property
    def spark(self) -> SparkSession:
        """The Spark session."""
        return self.warehouse.spark

    def close(self) -> None:
        """Stop the Spark session if this pipeline has started it."""
        stop, self._stop = self._stop, None
        if stop is not None:
            stop()

    def __enter__(self) -> Pipeline:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    # Loads

    def load(
        self,
        table: DeclaredTable | str,
        deliveries: Deliveries | None = None,
        *,
        name: str | int | date | None = None,
        at: Time | None = None,
        source: str | None = None,
        channel: str | None = None,
        revision: str | int | datetime | None = None,
        allow: str | Collection[str] = (),
        run_id: str = "",
        retry: Retry | None = None,
        deadline: Deadline | None = None,
        raise_on_rejection: bool = True,
        **options: Any,
    ) -> LoadResult:
        """Load deliveries into a dimension, with its audit, into a fact or into a landing table.

        A load can be repeated: a delivery that was loaded before changes nothing.

        Args:
            table: The declaration; or the name of a landing table that has all columns of its rows.
            deliveries: One Delivery or several; or the rows of one delivery as a Spark or pandas DataFrame, as a
                pyarrow Table, as Arrow data of another library, such as a Polars DataFrame, as dicts in a list or from
                an iterator, or as the path of a file. By default all deliveries at the paths of the declaration.
            name: The name of the delivery, if its rows are passed; by default its time.
            at: The time of that delivery; by default its name, if that is a date.
            source: The source of that delivery; by default the only one that is declared.
            channel: The channel of that delivery, `snapshot` or `feed`; by default the only one of the source.
            revision: The revision of that delivery, 0 by default; a higher one replaces a lower one of the same name.
            allow: The rules that may not reject these deliveries: `bad_rows`, `retire_guard`,
                `control_totals`; and `withdrawn`, which loads withdrawn deliveries again.
            run_id: An id of this load, which is stored with its batches and commits.
            retry: The number of attempts after write conflicts, 5 by default, and the waits between them, as in
                `Retry(attempts=8)`.
            deadline: The time after which the load begins no further step, as in
                `Deadline(time.monotonic() + 3600, time.monotonic)`.
            raise_on_rejection: Raise if a delivery is rejected, after all others are loaded. Otherwise
                `LoadResult.rejected` has the rejected ones.
            options: The options of a landing table that is passed by its name: `disposition`, `primary_key`,
                `merge_key`, `strategy`, `dedup_sort`, `hard_delete` and `columns`, as in LandingTable. The first load
                declares them, and the table stores them; a later one may repeat them, and cannot change them.

        Returns:
            The outcome of each delivery, and the number of rows that were changed.

        Raises:
            DeclarationError: The options are invalid; nothing was written.
            BatchRejected: A delivery breaks a rule, such as the retire guard; all others are loaded.
            SourceDataError: A delivery does not fit the declaration; nothing was written.
            LoadError: The tables are damaged, another writer kept committing first, or the deadline has passed.
            UsageError: An argument has a value that cannot be used; nothing was written.
        """
        declared, selected = self._select(table, options, deliveries, name, at, source, channel, revision, allow)
        if isinstance(declared, Dimension):
            _log_warnings(declared.warnings)
        result = self._load(declared, selected, run_id, retry, deadline)
        if raise_on_rejection:
            result.raise_if_rejected()
        return result

    def withdraw(
        self,
        table: DeclaredTable,
        delivery: str,
        *,
        by: str,
        reason: str,
        run_id: str = "",
        retry: Retry | None = None,
    ) -> LoadResult:
        """Withdraw a delivery: the table becomes what it would be without it, and all other deliveries remain.

        The delivery is loaded again only by `load` with `allow="withdrawn"`. Facts follow the withdrawal of a delivery
        of their dimension with their next load.

        Args:
            table: The declaration of the dimension or fact.
            delivery: The name of the delivery, such as `2024-01-31`, or `crm.snapshot.2024-01-31` for one channel.
            by: The person or program that withdraws it, for `batches` and the audit.
            reason: The reason, for `batches` and the audit.
            run_id: As for `load`.
            retry: As for `load`.

        Returns:
            The number of rows that were changed; the outcome is `unchanged` if it was withdrawn before.

        Raises:
            UsageError: An argument has a value that cannot be used, or no delivery of that name was loaded, or several.
            LoadError: As for `load`.
        """
        declared = _require_declaration(table)
        name, by, reason = _text("delivery", delivery), _text("by", by), _text("reason", reason)
        withdrawn = withdrawal(self.warehouse, declared, name, by=by, reason=reason)
        return self._load(declared, Discovery([withdrawn]), run_id, retry)

    def _load(
        self, declared: DeclaredTable, selected: Discovery, run_id: Any, retry: Any, deadline: Any = None
    ) -> LoadResult:
        text = _text("run_id", run_id)
        if retry is not None and not isinstance(retry, Retry):
            raise UsageError("NOT_A_RETRY", "retry", value=short_repr(retry))
        if deadline is not None and not isinstance(deadline, Deadline):
            raise UsageError("NOT_A_DEADLINE", "deadline", value=short_repr(deadline))
        result = load(
            self.warehouse,
            declared,
            selected.deliveries,
            run_id=text,
            retry=retry,
            progress=_log.info,
            warnings=selected.warnings,
            deadline=deadline,
        )
        _log_warnings(result.warnings)
        facts = [declared] if isinstance(declared, Fact) else []
        queries.create_views(self.warehouse, [declared.name], facts, on_failure=_log.warning)
        return result

    def load_each(
        self,
        rows: Rows,
        *,
        table: TableOfRow,
        name: str | int | date | None = None,
        at: Time | None = None,
        revision: str | int | datetime | None = None,
        allow: str | Collection[str] = (),
        run_id: str = "",
        retry: Retry | None = None,
        raise_on_rejection: bool = True,
        **options: Any,
    ) -> dict[str, LoadResult]:
        """Load rows of several kinds into a landing table for each kind.

        The names of all tables are checked before the first one is loaded. Each table has a commit of its own.

        Args:
            rows: The rows of one delivery, as for `load`, without a path.
            table: The column with the name of a row's table; or for a list of dicts, a function that returns it.
            name, at, revision, allow, run_id, retry: As for `load`; the delivery has the same name in each table.
            raise_on_rejection: Raise if the delivery of a table is rejected, after the rows of all others are loaded.
            options: The options of all tables, as for `load`.

        Returns:
            The result of each load, by the name of the table.

        Raises:
            BatchRejected: The rows of a table break a rule.
            ScdError: As `load`.
        """
        delivery: dict[str, Any] = {"name": name, "at": at, "revision": revision, "allow": allow}
        described: dict[str, Any] = {**delivery, "run_id": run_id, "retry": retry, **options}
        results = {
            each: self.load(each, passed, raise_on_rejection=False, **described)
            for each, passed in rows_by_table(rows, table).items()
        }
        for result in results.values():
            if raise_on_rejection:
                result.raise_if_rejected()
        return results

    def plan(
        self,
        table: DeclaredTable | str,
        deliveries: Deliveries | None = None,
        *,
        name: str | int | date | None = None,
        at: Time | None = None,
        source: str | None = None,
        channel: str | None = None,
        revision: str | int | datetime | None = None,
        allow: str | Collection[str] = (),
        **options: Any,
    ) -> LoadPlan:
        """Compute what `load` would change, and write nothing; `LoadPlan.explain()` is a summary.

        Args:
            table: As for `load`.
            deliveries: As for `load`.
            name, at, source, channel, revision, allow, options: As for `load`.

        Raises:
            SourceDataError: A delivery does not fit the declaration.
            UsageError: An argument has a value that cannot be used.
        """
        declared, selected = self._select(table, options, deliveries, name, at, source, channel, revision, allow)
        return plan(self.warehouse, declared, selected.deliveries, warnings=selected.warnings)

    def _select(
        self, table: Any, options: Mapping[str, Any], deliveries: Any, *description: Any
    ) -> tuple[DeclaredTable, Discovery]:
        """Return the declaration and the deliveries that the arguments of `load` and `plan` mean."""
        if isinstance(table, str) and is_table_name(table):
            declared: DeclaredTable = named_landing_table(self.warehouse, table, options)
        else:
            declared = _require_declaration(table)
            if options:
                raise UsageError("OPTIONS_OF_DECLARED_TABLE", declared.name, options=join_names(options))
        return declared, _select(declared, deliveries, _Description(*description), self.warehouse)

    # Queries of one table

    def current(self, table: DeclaredTable | str) -> DataFrame:
        """Return the current version of each entity that exists in a table, or the rows of a fact."""
        return queries.current(self.warehouse, _query_target(table))

    def history(self, table: DeclaredTable | str) -> DataFrame:
        """Return every version of every entity in a table; `effective_to` is NULL in a current version."""
        return queries.history(self.warehouse, _query_target(table))

    def as_of(self, table: DeclaredTable | str, time: Time, *, known_at: Time | None = None) -> DataFrame:
        """Return the versions in force at a time.

        Args:
            table: A dimension or fact, or its name; with `known_at` a declared dimension.
            time: The business time, as ISO text, date or datetime; in UTC without a zone.
            known_at: The system time: the dimension is rebuilt from its audit as it was known then; by default now.

        Raises:
            SetupError: The table does not exist, or it has no audit.
            UsageError: A value is not a time.
        """
        system_time = None if known_at is None else _time("known_at", known_at)
        return queries.as_of(self.warehouse, _query_target(table), _time("time", time), known_at=system_time)

    def audit(self, dimension: Dimension | str) -> DataFrame:
        """Return the transitions of a dimension: what changed, when, by which delivery, and when it was recorded."""
        return queries.audit(self.warehouse, _query_target(dimension))

    def batches(self, table: DeclaredTable | str) -> DataFrame:
        """Return every revision of every delivery that a table has accepted, with its state and its counts of rows."""
        return queries.batches(self.warehouse, _query_target(table))

    def quarantine(self, table: DeclaredTable | str) -> DataFrame:
        """Return the bad rows of all deliveries of a table, each with its reason and its content as JSON."""
        return queries.quarantine(self.warehouse, _query_target(table))

    def child_table(self, dimension: Dimension | str, path: str) -> DataFrame:
        """Return the rows of a child table of a dimension, with the window of the version that each belongs to.

        Args:
            dimension: The dimension, or its name.
            path: The attribute, or the path of an array in its elements, as in `child_tables`.

        Raises:
            SetupError: The dimension does not exist, or the load that builds the child table is missing.
        """
        return queries.child_table(self.warehouse, _query_target(dimension), _text("path", path))

    # Queries of timed tables

    def read(
        self, table: TimedTable, *, at: TimedTime | None = None, columns: Sequence[str] | None = None
    ) -> DataFrame:
        """Return the rows of a timed table at a time: its base after all statements up to that time.

        Args:
            table: The declaration of the timed table.
            at: The time: milliseconds since 1970, a date, or a date and time, in the time zone of the table if it has
                no offset; "raw" or -1 for the base itself; by default, and for an empty text, now.
            columns: The columns to return; by default all. Statements on which they do not depend are not evaluated.

        Raises:
            SourceDataError: A statement of the log cannot be applied, or the base cannot be read.
            UsageError: An argument has a value that cannot be used.
        """
        time = queries.parse_read_time(_require_timed(table), at, datetime.now(timezone.utc), "at")
        selected = None if columns is None else _texts("columns", columns)
        return read_state(self.warehouse, table).rows(time, selected)

    def log_hits(self, table: TimedTable, *, at: TimedTime | None = None) -> list[StatementHits]:
        """Return the statements of a log that apply at a time, in this order, each with the number of rows it hits.

        Args:
            table: The declaration of the timed table.
            at: The time, as for `read`.

        Raises:
            SourceDataError: As for `read`.
            UsageError: As for `read`.
        """
        time = queries.parse_read_time(_require_timed(table), at, datetime.now(timezone.utc), "at")
        return read_state(self.warehouse, table).hits(time)

    def append_to_log(
        self, table: TimedTable, statements: str, *, at: TimedTime | None = None, author: str, reason: str = ""
    ) -> None:
        """Append UPDATE and DELETE statements to the log of a timed table, after a check of all of them.

        Args:
            table: The declaration of the timed table.
            statements: One statement or several, without times.
            at: The time of the statements, as for `read`; by default now.
            author: The person or program that appends.
            reason: The reason.

        Raises:
            SourceDataError: A statement cannot be applied; nothing was appended.
            UsageError: An argument has a value that cannot be used.
        """
        now = datetime.now(timezone.utc)
        append_statements(
            self.warehouse,
            _require_timed(table),
            _text("statements", statements),
            millis=queries.parse_statement_time(table, at, now, "at"),
            author=_text("author", author),
            reason=_text("reason", reason),
            now=now,
        )

    def fold_log(self, table: TimedTable, *, until: TimedTime, author: str, reason: str = "") -> int:
        """Write the rows of a timed table at a time as its new base, the Delta table `<table>_base` of the warehouse.

        From then on reads apply the statements after this time to the new base. They return what they returned before;
        reads at an earlier time are rejected. The declared base and the log are not changed. Without statements to
        fold, nothing is written.

        Args:
            table: The declaration of the timed table.
            until: The time, as for `read`, up to which statements are folded.
            author: The person or program that folds.
            reason: The reason.

        Returns:
            The number of folded statements.

        Raises:
            SourceDataError: A statement of the log cannot be applied, or the base cannot be read.
            UsageError: An argument has a value that cannot be used.
            ConflictError: Another process folded the log at the same time.
        """
        now = datetime.now(timezone.utc)
        return fold_log(
            self.warehouse,
            _require_timed(table),
            until=queries.parse_statement_time(table, until, now, "until"),
            author=_text("author", author),
            reason=_text("reason", reason),
            now=now,
        )

    # Queries of several tables

    def join_as_of(
        self,
        rows: DataFrame,
        dimension: Dimension,
        *,
        time: str,
        keys: str | Sequence[str] | None = None,
        known_at: Time | None = None,
        tolerance: timedelta | None = None,
    ) -> DataFrame:
        """Return the rows with the attributes of a dimension in force at the time of each row.

        Args:
            rows: A Spark DataFrame with the business key and a time.
            dimension: The declaration of the dimension.
            time: The column of the rows with their time.
            keys: The columns of the rows with the business key; by default they have the dimension's names.
            known_at: The system time, as for `as_of`.
            tolerance: The largest age that a version may have at the time of a row; by default any.

        Returns:
            The same number of rows, with the surrogate key and `<dimension>_<attribute>`, where the dimension is named
            without `dim_`. The key is -1 if no version is in force, or if the one in force began longer ago than
            `tolerance`.

        Raises:
            SetupError: The dimension does not exist.
            UsageError: An argument has a value that cannot be used.
        """
        if not isinstance(dimension, Dimension):
            raise UsageError("NOT_A_DIMENSION", "dimension", value=short_repr(dimension))
        if tolerance is not None and not isinstance(tolerance, timedelta):
            raise UsageError("NOT_A_DURATION", "tolerance", value=short_repr(tolerance))
        if not (is_frame(rows) and hasattr(rows, "sparkSession")):
            raise UsageError("NOT_A_SPARK_FRAME", "rows", type=type(rows).__name__)
        names = [keys] if isinstance(keys, str) else keys
        _check_columns(rows, [_text("time", time), *_texts("keys", names or dimension.key_names)])
        system_time = None if known_at is None else _time("known_at", known_at)
        return queries.join_as_of(
            self.warehouse, rows, dimension, time=time, keys=names, known_at=system_time, tolerance=tolerance
        )

    def sql(
        self,
        query: str,
        *,
        facts: Sequence[Fact] = (),
        dimensions: Sequence[Dimension] = (),
        timed_tables: Sequence[TimedTable] = (),
        at: TimedTime | None = None,
    ) -> DataFrame:
        """Return the result of a query in Spark SQL over the tables and views of the warehouse, by their names.

        In addition to the tables, each dimension has the views `<dimension>_current`, `_in_force`, `_batches` and
        `_quarantine`, with a history table also `_versions`, and the table function `<dimension>_as_of(time)`. Two
        dimensions with the same business key have the view `<dimension>_with_<other>`.

        Args:
            query: The query.
            facts: Facts for which `<fact>_joined` has the attributes of their dimensions.
            dimensions: Other dimensions that the query reads. They are needed only if the warehouse is in a bucket,
                whose tables cannot be listed.
            timed_tables: Timed tables that the query reads by their names. `<table>_at(time)` returns the rows at a
                time, as text in a form of `read`; `<table>_states` has all states of each row.
            at: The time of the timed tables, as for `read`.

        Raises:
            UsageError: An argument has a value that cannot be used.
            pyspark.errors.AnalysisException: The query names a table or column that does not exist.
        """
        declared = [
            _require_declaration(each)
            for each in (*_require_list("facts", facts), *_require_list("dimensions", dimensions))
        ]
        joined = [table for table in declared if isinstance(table, Fact)]
        tables = (*declared, *(d for fact in joined for d in fact.dimensions))
        names = [name for table in tables for name in (table.name, *as_dimension(table).child_names)]
        warehouse = self.warehouse if self.warehouse.is_listed else self.warehouse.with_declared(names)
        text = _text("query", query)
        if warehouse.is_listed or names:
            queries.register(warehouse, facts=joined, query=text)
        timed = [_require_timed(table) for table in _require_list("timed_tables", timed_tables)]
        queries.register_timed_tables(warehouse, timed, query=text, at=at, now=datetime.now(timezone.utc))
        return self.spark.sql(text)

    # Operations

    def check(self, *tables: DeclaredTable) -> tuple[check.CheckResult, ...]:
        """Check all invariants of dimensions and facts.

        Args:
            tables: The declarations.

        Returns:
            The result of each check; `passed` is False for one with violations.

        Raises:
            UsageError: An argument is not a dimension or fact.
        """
        return tuple(
            result for table in tables for result in check.check_table(self.warehouse, _require_declaration(table))
        )

    def repair(
        self,
        dimension: Dimension,
        *,
        actor: str,
        reason: str = "repair",
        dry_run: bool = False,
        without_log: bool = False,
        now: Time | None = None,
        run_id: str = "",
    ) -> repair.RepairResult:
        """Replace the rows of a dimension that differ from its change log, because another program changed them.

        Args:
            dimension: The declaration.
            actor: The person or program that repairs, for the audit.
            reason: The reason, for the audit.
            dry_run: Whether to write nothing.
            without_log: Whether the table was created by another program and has no change log: each version then
                ends at the start of the next one at the latest.
            now: The time that the audit records; the current time by default.
            run_id: An id of this run, which is stored with its commits.

        Returns:
            The rows that differ, and the commit.

        Raises:
            ScdError: As `operations.repair.repair` and `operations.repair_without_log.repair_without_log`.
            UsageError: An argument has a value that cannot be used.
        """
        time = datetime.now(timezone.utc) if now is None else _time("now", now)
        if not isinstance(dimension, Dimension):
            raise UsageError("NOT_A_DIMENSION", "repair", value=short_repr(dimension))
        run = repair_without_log if without_log else repair.repair
        result = run(self.warehouse, dimension, now=time, actor=actor, reason=reason, run_id=run_id, dry_run=dry_run)
        if result.commit is not None:
            queries.create_views(self.warehouse, [dimension.name], on_failure=_log.warning)
        return result

    def archive(
        self,
        dimension: Dimension,
        *,
        by: str,
        reason: str,
        closed_before: Time | None = None,
        now: Time | None = None,
        run_id: str = "",
    ) -> archive.ArchiveResult:
        """Move old closed versions of a dimension to its archive; queries and views read the archive too.

        Args:
            dimension: The declaration.
            by: The person or program that archives, for the metadata of the commit.
            reason: The reason, for the metadata of the commit.
            closed_before: The time before which the moved versions ended; by default `archive_after_years` of the
                declaration before `now`.
            now: The current time by default.
            run_id: An id of this run, which is stored with its commits.

        Returns:
            The number of moved versions, and the commit.

        Raises:
            ScdError: As `operations.archive.archive`.
            UsageError: An argument has a value that cannot be used.
        """
        if not isinstance(dimension, Dimension):
            raise UsageError("NOT_A_DIMENSION", "archive", value=short_repr(dimension))
        current = datetime.now(timezone.utc) if now is None else _time("now", now)
        time = archive.archive_time(dimension, closed_before, now=current)
        result = archive.archive(
            self.warehouse,
            dimension,
            closed_before=time,
            by=_text("by", by),
            reason=_text("reason", reason),
            run_id=run_id,
        )
        if result.commit is not None:
            queries.create_views(self.warehouse, [dimension.name], on_failure=_log.warning)
        return result

    def status(self, *tables: DeclaredTable, now: Time | None = None, plan_pending: bool = False) -> status.Status:
        """Report the last and the pending deliveries of each source, and how far each table is behind.

        Args:
            tables: The declarations.
            now: The time from which the age of the deliveries is counted; the current time by default.
            plan_pending: Whether a load of the pending deliveries is planned, to find those that it would reject. It
                takes about as long as the load.

        Raises:
            UsageError: An argument is not a dimension or fact, or `now` is not a time.
        """
        time = datetime.now(timezone.utc) if now is None else _time("now", now)
        declared = [_require_declaration(table) for table in tables]
        return status.status(self.warehouse, declared, now=time, plan_pending=plan_pending)


# Spark


def _start() -> tuple[SparkSession, Callable[[], None] | None]:
    """Return a session in this process, and what stops it; an existing session is used and not stopped."""
    from pyspark.sql import SparkSession

    environment = Environment.from_env()
    installation = install(environment, progress=_log.info)
    existing = SparkSession.getActiveSession()
    spark = session.open_spark("", environment, installation=installation)
    return spark, spark.stop if existing is None else None


def _connect(remote: str) -> tuple[SparkSession, Callable[[], None]]:
    """Return a session at a Spark Connect server, and what stops it."""
    spark = session.open_spark(remote, Environment.from_env(), report=_log.info)
    return spark, lambda: session.disconnect(spark)


# Arguments


def _check_arguments(warehouse: Any, spark: Any, remote: Any, schema: Any, schemas: Any) -> None:
    if not isinstance(warehouse, (str, os.PathLike)) or not str(warehouse).strip():
        raise UsageError("NOT_A_WAREHOUSE", "warehouse", value=short_repr(warehouse))
    if spark is not None and not (hasattr(spark, "createDataFrame") and hasattr(spark, "conf")):
        raise UsageError("NOT_A_SPARK_SESSION", "spark", type=type(spark).__name__)
    if spark is not None and remote:
        raise UsageError("TWO_SPARK_SESSIONS", "Pipeline")
    _text("remote", remote)
    if schema is not None:
        _text("schema", schema)
    if schemas is not None:
        if not isinstance(schemas, Mapping):
            raise UsageError("NOT_A_MAPPING", "schemas", value=short_repr(schemas))
        _texts("schemas", [*schemas, *schemas.values()])


def _log_warnings(warnings: Iterable[DeclarationWarning | LoadWarning]) -> None:
    for warning in warnings:
        _log.warning("%s", warning)


def _require_declaration(table: Any) -> DeclaredTable:
    if not isinstance(table, DeclaredTable):
        raise UsageError("NOT_A_DECLARATION", "table", value=short_repr(table))
    return table


def _require_timed(table: Any) -> TimedTable:
    if not isinstance(table, TimedTable):
        raise UsageError("NOT_A_TIMED_TABLE", "table", value=short_repr(table))
    return table


def _query_target(table: Any) -> Dimension | str:
    """Return the dimension, a fact or a landing table as one, or the name of any."""
    if isinstance(table, str) and is_table_name(table):
        return table
    if not isinstance(table, DeclaredTable):
        raise UsageError("NOT_A_TABLE_NAME", "table", value=short_repr(table))
    return as_dimension(table)


def _time(argument: str, value: Any) -> datetime:
    time = to_instant(value)
    if time is None:
        raise UsageError("NOT_A_TIME", argument, value=short_repr(value))
    return time


def _text(argument: str, value: Any) -> str:
    if not isinstance(value, str):
        raise UsageError("NOT_A_TEXT", argument, value=short_repr(value))
    return value


def _texts(argument: str, values: Any) -> list[str]:
    return [_text(argument, value) for value in _require_list(argument, values)]


def _require_list(argument: str, values: Any) -> list[Any]:
    if not isinstance(values, (list, tuple)):
        raise UsageError("NOT_A_LIST", argument, value=short_repr(values))
    return list(values)


def _check_columns(rows: DataFrame, names: Sequence[str]) -> None:
    missing = [name for name in names if name not in rows.columns]
    if missing:
        raise UsageError("NO_SUCH_COLUMN", "rows", names=join_names(missing), columns=", ".join(rows.columns))


# Deliveries


@dataclass(frozen=True)
class _Description:
    """The description of a delivery whose rows are passed to a load; None for each argument that is not passed."""

    name: Any
    at: Any
    source: Any
    channel: Any
    revision: Any
    allow: Any

    def arguments(self) -> list[str]:
        """Return the names of the arguments that were given."""
        values = {**vars(self), "allow": self.allow or None}
        return [name for name, value in values.items() if value is not None]


def _select(table: DeclaredTable, passed: Any, described: _Description, warehouse: Warehouse) -> Discovery:
    """Return the deliveries that the arguments of a load mean.

    Raises:
        UsageError: The arguments exclude each other, or are of no known kind.
    """
    if passed is None:
        usable = ("allow", "at") if _reads_snapshots_of_database(as_dimension(table)) else ("allow",)
        if unused := [name for name in described.arguments() if name not in usable]:
            raise UsageError("DELIVERY_WITHOUT_ROWS", table.name, arguments=join_names(unused))
        allowed = to_names(table.name, described.allow)
        now = datetime.now(timezone.utc) if described.at is None else _time("at", described.at)
        others = partial(other_deliveries, warehouse, variables=Environment.from_env().variables, now=now)
        return select(as_dimension(table), warehouse.spark, allow=allowed, others=others)
    passed = to_known_rows(passed)
    deliveries = [passed] if isinstance(passed, Delivery) else passed
    if not isinstance(deliveries, (list, tuple)) or not all(isinstance(item, Delivery) for item in deliveries):
        return Discovery([_delivery(table, passed, described, warehouse)])
    if not deliveries and (described.name is not None or described.at is not None):
        return Discovery([_delivery(table, passed, described, warehouse)])
    if unused := described.arguments():
        raise UsageError("DELIVERY_DESCRIBED_TWICE", table.name, arguments=join_names(unused))
    return Discovery(list(deliveries))


def _reads_snapshots_of_database(dimension: Dimension) -> bool:
    """Return whether a load reads a snapshot of a database, which is named by its time."""
    return any(source.snapshot is not None and source.snapshot.jdbc is not None for source in dimension.sources)


def _delivery(table: DeclaredTable, rows: Any, described: _Description, warehouse: Warehouse) -> Delivery:
    """Return the delivery of these rows.

    Raises:
        UsageError: The rows are of no known kind, or the delivery has neither a name nor a time, or no source is given
            for a table with several; or a cursor decides which rows are new, and the delivery has a name too.
    """
    is_path = isinstance(rows, (str, os.PathLike))
    if not (is_path or is_frame(rows) or is_rows(rows)):
        raise UsageError("NOT_DELIVERIES", table.name, type=type(rows).__name__)
    name, at, source = described.name, described.at, described.source
    sources = as_dimension(table).sources
    feed = _cursor_feed(table, described)
    if feed is not None:
        arguments = [each for each in described.arguments() if each in ("name", "at", "revision")]
        if unused := [*arguments, *(["a path"] if is_path else [])]:
            details = {"arguments": join_names(unused), "column": feed.cursor}
            raise UsageError("DELIVERY_BY_CURSOR", table.name, **details)
        log = read_log(warehouse, as_dimension(table))
        return cursor_delivery(log, source or sources[0].name, feed, frame=rows, allow=described.allow)
    if name is None and at is None:
        raise UsageError("DELIVERY_NOT_NAMED", table.name)
    if source is None and len(sources) > 1:
        raise UsageError("SOURCE_NOT_NAMED", table.name, sources=join_names(each.name for each in sources))
    return Delivery(
        sources[0].name if source is None else source,
        name=time_name(_time("at", at)) if name is None else name,
        channel=described.channel,
        at=at,
        revision=0 if described.revision is None else described.revision,
        frame=None if is_path else rows,
        path=rows if is_path else None,
        allow=described.allow,
    )


def _cursor_feed(table: DeclaredTable, described: _Description) -> Feed | None:
    """Return the feed of the described source if a cursor selects its rows (S39)."""
    sources = as_dimension(table).sources
    names = [described.source] if described.source is not None else [each.name for each in sources]
    feeds = [each.feed for each in sources if [each.name] == names and described.channel in (None, "feed")]
    return next((feed for feed in feeds if feed is not None and feed.has_cursor), None)
