"""Views of the tables in SQL: temporary views of a session, or views of a shared catalog."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import combinations

from scd_pipeline.columns import EFFECTIVE_FROM, EFFECTIVE_TO
from scd_pipeline.declaration import Fact
from scd_pipeline.declaration.child_tables import is_child_name
from scd_pipeline.declaration.names import quote_name
from scd_pipeline.declaration.tables import (
    CLOSED_SUFFIXES,
    KEYS_SUFFIX,
    LOG_SUFFIX,
    table_names,
)
from scd_pipeline.delta.history_table import child_marks, history_error, table_versions, versions_query
from scd_pipeline.delta.stored_declaration import stored_declaration
from scd_pipeline.delta.warehouse import Warehouse
from scd_pipeline.errors import first_line
from scd_pipeline.queries.child_tables import child_query
from scd_pipeline.queries.dimension import (
    BATCHES_SUFFIX,
    QUARANTINE_SUFFIX,
    QueriedTable,
    batches,
    keys_query,
    quarantine,
    queried_table,
)
from scd_pipeline.queries.dimension_versions import DIMENSION_VERSIONS_SUFFIX, dimension_versions
from scd_pipeline.queries.joins import OverlapSide, joined_query, overlap_query

VERSIONS_SUFFIX = "_versions"
_WINDOW = (EFFECTIVE_FROM, EFFECTIVE_TO)


@dataclass(frozen=True, slots=True)
class View:
    """A query as SQL.

    Attributes:
        name: The name, without a schema.
        text: The query.
        parameters: The parameters of a table function; empty for a view.
    """

    name: str
    text: str
    parameters: str = ""

    def create(self, warehouse: Warehouse, *, is_temporary: bool) -> None:
        """Create or replace the view: for this session only, or in the warehouse's schema."""
        scope, name = "", warehouse.table(self.name).identifier
        if is_temporary:
            scope, name = "TEMPORARY ", quote_name(self.name)
        created = f"FUNCTION {name}({self.parameters}) RETURNS TABLE RETURN" if self.parameters else f"VIEW {name} AS"
        warehouse.spark.sql(f"CREATE OR REPLACE {scope}{created} {self.text}")


def view_names(warehouse: Warehouse, facts: Sequence[Fact] = ()) -> list[str]:
    """Return the names that `register` can create: the tables, and the views of each dimension and fact."""
    tables = warehouse.tables()
    return _names(tables, _ready_views(warehouse, tables, facts), facts)


def register(
    warehouse: Warehouse,
    names: Iterable[str] | None = None,
    facts: Sequence[Fact] = (),
    *,
    query: str | None = None,
) -> list[str]:
    """Create temporary views of the tables and of the queries.

    A view of a table has the table's name and shows its rows unchanged: `effective_to` of a current version is the open
    end, which some time zones cannot show. In the other views it is NULL.

    Args:
        names: The names to create, out of `view_names`; by default all.
        facts: The declarations of the facts whose `<fact>_joined` and `<fact>_dimension_versions` views are created.
        query: Without `names`, create only the views that occur in this query.

    Returns:
        The names of the created views.

    Raises:
        SetupError: A table does not exist.
    """
    tables = warehouse.tables()
    requested = None if names is None else list(names)
    ready = _ready_views(warehouse, tables, facts, query if requested is None else " ".join(requested))
    views_by_name = {view.name: view for view in ready}
    selected = _names(tables, ready, facts, query) if requested is None else requested
    pinned = _pinned_versions(warehouse, tables, selected)
    facts_by_view = {fact.name + DIMENSION_VERSIONS_SUFFIX: fact for fact in facts}
    for name in selected:
        if name in views_by_name:  # a key list of an earlier release has the name of a view
            views_by_name[name].create(warehouse, is_temporary=True)
        elif name in tables:
            warehouse.table(name).read(pinned.get(name)).createOrReplaceTempView(name)
        elif name in facts_by_view:
            dimension_versions(warehouse, facts_by_view[name]).createOrReplaceTempView(name)
        elif name.endswith(BATCHES_SUFFIX):
            batches(warehouse, name.removesuffix(BATCHES_SUFFIX)).createOrReplaceTempView(name)
        else:
            quarantine(warehouse, name.removesuffix(QUARANTINE_SUFFIX)).createOrReplaceTempView(name)
    return selected


def _pinned_versions(warehouse: Warehouse, tables: Sequence[str], selected: Collection[str]) -> dict[str, int]:
    """Return the table versions that belong together of each selected table of versions or of elements, by table."""
    pinned: dict[str, int] = {}
    existing = {*tables} & {*selected}
    for name in {*tables} & {*_dimensions(tables)}:
        closed = [name + suffix for suffix in CLOSED_SUFFIXES if name + suffix in existing]
        children = [each for each in existing if is_child_name(each, name)]
        if closed or children:
            commit = warehouse.table(name).last_commit_or_zero()
            recorded = [each for each in children if each in child_marks(commit)]
            pinned |= table_versions(warehouse, commit, [*closed, *recorded])
    return pinned


def create_views(
    warehouse: Warehouse,
    names: Iterable[str] | None = None,
    facts: Sequence[Fact] = (),
    *,
    on_failure: Callable[[str], None] | None = None,
) -> list[str]:
    """Create the views and table functions in the warehouse's schema, next to its tables.

    Args:
        warehouse: The warehouse. In a folder no views are created, because no other session could find them.
        names: Only views that read one of these dimensions and facts are created; by default all.
        facts: The declarations of the facts whose `<fact>_joined` view is created.
        on_failure: Called with a message for each view that cannot be created. After a load, which has committed,
            a view that fails is not an error.

    Returns:
        The names of the created views.

    Raises:
        SetupError: A table does not exist.
        Exception: Without `on_failure`, the error of Spark.
    """
    if warehouse.schema is None:
        return []
    requested = None if names is None else tuple(names)
    tables: list[str] = []
    with _report_failure(f"views of {', '.join(requested or ['every table'])}", on_failure):
        tables = _declared_names(warehouse.tables(), requested or (), facts)
    created = []
    key_lists = {name.casefold() for name in tables if name.endswith(KEYS_SUFFIX)}  # of an earlier release
    for view in _ready_views(warehouse, tables, facts, reading=requested, on_failure=on_failure):
        if view.name.casefold() in key_lists:
            continue
        with _report_failure(f"view {view.name}", on_failure):
            view.create(warehouse, is_temporary=False)
            created.append(view.name)
    return created


@contextmanager
def _report_failure(views: str, on_failure: Callable[[str], None] | None) -> Iterator[None]:
    try:
        yield
    except Exception as error:
        if on_failure is None:
            raise
        problem = f"cannot create the view: {first_line(error)}"
        on_failure(f"{views}: {problem}; the tables are written; the next load retries")


def _dimensions(names: Sequence[str], suffix: str = LOG_SUFFIX) -> list[str]:
    """Return the dimensions and facts that have a table with this suffix."""
    return sorted(name.removesuffix(suffix) for name in names if name.endswith(suffix))


def _occurring(names: Sequence[str], query: str | None) -> list[str]:
    return [name for name in names if query is None or name.casefold() in query.casefold()]


def _names(tables: Sequence[str], ready: Sequence[View], facts: Sequence[Fact], query: str | None = None) -> list[str]:
    derived = [name + suffix for name in _dimensions(tables) for suffix in (BATCHES_SUFFIX, QUARANTINE_SUFFIX)]
    derived += [fact.name + DIMENSION_VERSIONS_SUFFIX for fact in facts if fact.name in tables]
    return sorted(_occurring([*{*tables, *derived, *(view.name for view in ready)}], query))


def _declared_names(listed: Sequence[str], requested: Sequence[str], facts: Sequence[Fact]) -> list[str]:
    """Return listed tables by their declared names, which their commits have: Spark's catalog lists lower case."""
    names = {*requested, *(name for fact in facts for name in (fact.name, *(d.name for d in fact.dimensions)))}
    declared = {table.casefold(): table for name in names for table in table_names(name, CLOSED_SUFFIXES)}
    return sorted(declared.get(name.casefold(), name) for name in listed)


def _ready_views(
    warehouse: Warehouse,
    names: Sequence[str],
    facts: Sequence[Fact],
    query: str | None = None,
    *,
    reading: Collection[str] | None = None,
    on_failure: Callable[[str], None] | None = None,
) -> list[View]:
    """Return the views of the existing tables whose dimension or fact occurs in the query.

    With `reading`, these are only the views that read one of these dimensions and facts: the others, of which a schema
    may have many, are not built.

    A schema may contain damaged tables, tables that this user cannot read, and foreign tables of such names: with
    `on_failure` they do not prevent the views of other tables.
    """
    fact_names = {fact.name for fact in facts}
    dimensions = [name for name in _occurring(_dimensions(names), query) if name in names and name not in fact_names]

    def is_requested(*tables: str) -> bool:
        return reading is None or not set(reading).isdisjoint(tables)

    ready: list[View] = []
    with_windows: list[QueriedTable] = []
    for name in dimensions:
        with _report_failure(f"views of {name}", on_failure):
            if stored_declaration(warehouse, name) is None:
                continue
            table = queried_table(warehouse, name)
            if is_requested(name):
                ready += _dimension_views(warehouse, table)
                has_children = any(is_child_name(each, name) for each in names)
                ready += _child_views(warehouse, table, query) if has_children else []
            with_windows += [table] if table.has_windows else []
    for left, right in combinations(with_windows, 2):
        if left.key_names == right.key_names and is_requested(left.name, right.name):
            with _report_failure(f"views of {left.name} and {right.name}", on_failure):
                ready.append(_overlap(warehouse, left, right))
    for fact in facts:
        read = (fact.name, *(dimension.name for dimension in fact.dimensions))
        if set(read) <= set(names) and is_requested(*read) and _occurring([fact.name], query):
            with _report_failure(f"views of {fact.name}", on_failure):
                ready.append(View(f"{fact.name}_joined", joined_query(warehouse, fact)))
    return ready


def _dimension_views(warehouse: Warehouse, table: QueriedTable) -> list[View]:
    """Return the views of current rows, of rows in force now and as of a time, and of surrogate keys.

    Without windows each of the first three returns all rows (S33).
    """
    as_of, stored_table = f"{table.name}_as_of", warehouse.table(table.name)
    columns, source, current_source = stored_table.columns(), stored_table.identifier, stored_table.identifier
    if table.closed_suffix:
        commit = stored_table.last_commit_or_zero()
        pair = table_versions(warehouse, commit, table.closed_tables)
        source = versions_query(warehouse, table.name, pair)
        current_source = f"{stored_table.identifier} VERSION AS OF {pair[table.name]}"
    current = table.is_current(columns)
    now, then = (table.exists_at(columns, time) for time in ("current_timestamp()", f"{quote_name(as_of)}.`at`"))
    every_version = View(table.name + VERSIONS_SUFFIX, _versions(source, table, columns, "true"))
    return [
        *([every_version] if table.closed_suffix else []),
        View(f"{table.name}_current", _versions(current_source, table, columns, current)),
        View(f"{table.name}_in_force", _versions(source, table, columns, now)),
        View(as_of, _versions(source, table, columns, then), "`at` TIMESTAMP"),
        View(table.name + KEYS_SUFFIX, keys_query(warehouse, table, source, columns)),
    ]


def _child_views(warehouse: Warehouse, table: QueriedTable, query: str | None) -> list[View]:
    """Return the views of all rows of each child table with the window of their version, and of the current ones.

    Of a child table that was lost only a query that names it fails.
    """
    commit = warehouse.table(table.name).last_commit_or_zero()
    children = _occurring(list(child_marks(commit)), query)
    if query is None:
        last = {name: warehouse.table(name).last_commit_or_zero() for name in children}
        children = [name for name in children if history_error(commit, last[name]) is None]
    if not children:
        return []
    versions = table_versions(warehouse, commit, [*table.closed_tables, *children])
    is_current = table.is_current(warehouse.table(table.name).columns())
    return [
        View(child + suffix, child_query(warehouse, table, child, versions, condition))
        for child in children
        for suffix, condition in ((VERSIONS_SUFFIX, "true"), ("_current", is_current))
    ]


def _versions(source: str, table: QueriedTable, columns: Collection[str], condition: str) -> str:
    return f"SELECT {', '.join(table.select_list(columns))} FROM {source} AS v WHERE {table.is_version(condition)}"


def _overlap(warehouse: Warehouse, left: QueriedTable, right: QueriedTable) -> View:
    """Return the view of the pairs of versions of two dimensions, with one business key, that overlap in time."""
    sides = []
    for table in (left, right):
        existing, keys = warehouse.table(table.name).columns(), [f"v.{quote_name(name)}" for name in table.key_names]
        shared = {*table.key_names, *_WINDOW, *map(table.column_layout.name, _WINDOW)}
        own = {name: f"v.{quote_name(name)}" for name in existing if name not in shared}
        sides.append(OverlapSide(table, existing, keys, own))
    return View(f"{left.name}_with_{right.name}", overlap_query(warehouse, *sides, shared=left.key_names))
