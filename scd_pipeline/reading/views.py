"""Ready readings in SQL: temporary ones of a session, or ones of a shared catalog."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import combinations

from pyspark.sql import SparkSession

from scd_pipeline.columns import EFFECTIVE_FROM, EFFECTIVE_TO
from scd_pipeline.declaration import Fact
from scd_pipeline.declaration.tables import KEYS_SUFFIX, LOG_SUFFIX
from scd_pipeline.delta.schema import declared_columns, stored_declaration
from scd_pipeline.delta.table import Table
from scd_pipeline.delta.warehouse import Warehouse
from scd_pipeline.errors import first_line
from scd_pipeline.expressions import quote_name
from scd_pipeline.history.keys import RESERVED_KEYS, UNKNOWN_KEY
from scd_pipeline.reading.dimension import BATCHES_SUFFIX, QUARANTINE_SUFFIX, Shape, batches, quarantine, shape_of
from scd_pipeline.reading.labels import labelled, labelled_attributes, labelled_roles, labels_of

_FIRST_DAY = "TIMESTAMP '0001-01-02 00:00:00Z'"
_WINDOW = (EFFECTIVE_FROM, EFFECTIVE_TO)


@dataclass(frozen=True, slots=True)
class View:
    """A reading as SQL; with parameters it is a table function. `name` is without a schema."""

    name: str
    text: str
    parameters: str = ""

    def create(self, spark: SparkSession, schema: str | None = None) -> None:
        """Create or replace it, for this session alone if no schema is given."""
        scope = "" if schema else "TEMPORARY "
        name = Table(spark, self.name, None, schema).identifier
        if self.parameters:
            spark.sql(f"CREATE OR REPLACE {scope}FUNCTION {name}({self.parameters}) RETURNS TABLE RETURN {self.text}")
        else:
            spark.sql(f"CREATE OR REPLACE {scope}VIEW {name} AS {self.text}")


def views(warehouse: Warehouse, facts: Sequence[Fact] = ()) -> list[str]:
    """The names that `register` gives: of each table, and of the readings of each dimension and fact."""
    there = warehouse.tables()
    return _names(there, _readings(warehouse, there, facts))


def register(
    warehouse: Warehouse,
    names: Iterable[str] | None = None,
    facts: Sequence[Fact] = (),
    *,
    query: str | None = None,
) -> list[str]:
    """Make temporary views of the tables by their names, and of the ready readings; of all, or of some of `views`.

    Which, is said by `names`, or by a `query` in which they occur.

    The tables are raw: an open window ends in the sentinel, which some zones cannot collect as a time; in the readings
    it ends in NULL.  Out: the names of the views.  Errors: SetupError.
    """
    there = warehouse.tables()
    asked = None if names is None else list(names)
    found = _readings(warehouse, there, facts, query if asked is None else " ".join(asked))
    ready = {view.name: view for view in found}
    chosen = _names(there, found, query) if asked is None else asked
    for name in chosen:
        if name in there:
            warehouse.table(name).read().createOrReplaceTempView(name)
        elif name in ready:
            ready[name].create(warehouse.spark)
        elif name.endswith(BATCHES_SUFFIX):
            batches(warehouse, name.removesuffix(BATCHES_SUFFIX)).createOrReplaceTempView(name)
        else:
            quarantine(warehouse, name.removesuffix(QUARANTINE_SUFFIX)).createOrReplaceTempView(name)
    return chosen


def create_views(
    warehouse: Warehouse,
    names: Iterable[str] | None = None,
    facts: Sequence[Fact] = (),
    *,
    failed: Callable[[str], None] | None = None,
) -> list[str]:
    """Make the ready readings of the warehouse's schema, as views and table functions beside its tables.

    In: `names` of the dimensions and facts, else of all; `failed` is told of each that cannot be made, as after a load,
    which has committed by then.  Out: the names that were made; none where tables lie in a folder, by which no other
    session would find them.  Errors: SetupError; and, without `failed`, what Spark says of a view.
    """
    if warehouse.schema is None:
        return []
    asked = None if names is None else tuple(names)
    found: list[View] = []
    # Another table of the schema may be damaged, or not be ours to read.
    with _told_of_failure(f"of {', '.join(asked or ['every table'])}", failed):
        found = _readings(warehouse, warehouse.tables(), facts)
    made = []
    for view in found:
        if asked is not None and not any(name in view.name for name in asked):
            continue
        with _told_of_failure(view.name, failed):
            view.create(warehouse.spark, warehouse.schema)
            made.append(view.name)
    return made


@contextmanager
def _told_of_failure(view: str, failed: Callable[[str], None] | None) -> Iterator[None]:
    try:
        yield
    except Exception as error:
        if failed is None:
            raise
        failed(f"the view {view} was not made: {first_line(error)}; the tables are loaded, the next load tries again")


def _dimensions(names: Sequence[str]) -> list[str]:
    return sorted(name.removesuffix(LOG_SUFFIX) for name in names if name.endswith(LOG_SUFFIX))


def _occurring(names: Sequence[str], query: str | None) -> list[str]:
    return [name for name in names if query is None or name.casefold() in query.casefold()]


def _names(there: Sequence[str], ready: Sequence[View], query: str | None = None) -> list[str]:
    derived = [name + suffix for name in _dimensions(there) for suffix in (BATCHES_SUFFIX, QUARANTINE_SUFFIX)]
    return sorted(_occurring([*there, *derived, *(view.name for view in ready)], query))


def _readings(
    warehouse: Warehouse, names: Sequence[str], facts: Sequence[Fact], query: str | None = None
) -> list[View]:
    """The readings of what is there, as far as the dimension or the fact occurs in the query."""
    told = {fact.name for fact in facts}
    dimensions = [name for name in _occurring(_dimensions(names), query) if name in names and name not in told]
    # A shared schema may have tables of such names that are not ours.
    shapes = [shape_of(warehouse, name) for name in dimensions if stored_declaration(warehouse.table(name)) is not None]
    with_windows = [shape for shape in shapes if shape.has_windows]
    found = [view for shape in shapes for view in _of_dimension(warehouse, shape)]
    found += [
        _overlap(warehouse, left, right)
        for left, right in combinations(with_windows, 2)
        if left.key_names == right.key_names
    ]
    asked = [fact for fact in facts if _occurring([fact.name], query)]
    loaded = [fact for fact in asked if {fact.name, *(d.name for d in fact.dimensions)} <= set(names)]
    return [*found, *(_joined(warehouse, fact) for fact in loaded)]


def _of_dimension(warehouse: Warehouse, shape: Shape) -> list[View]:
    """Current, in force now, and as of a time given as the function's argument.

    Without windows the rows that are there are all of these (S33).
    """
    as_of = f"{shape.name}_as_of"
    current, now, then = "v.current_flag", _holds("current_timestamp()"), _holds(f"{quote_name(as_of)}.`at`")
    if not shape.has_windows:
        current, now, then = "true", "true", "true"
    return [
        View(f"{shape.name}_current", _versions(warehouse, shape, current)),
        View(f"{shape.name}_in_force", _versions(warehouse, shape, now)),
        View(as_of, _versions(warehouse, shape, then), "`at` TIMESTAMP"),
    ]


def _holds(moment: str) -> str:
    """The half-open window of version `v` holds a moment (S2)."""
    return f"v.effective_from <= {moment} AND {moment} < v.effective_to"


def _versions(warehouse: Warehouse, shape: Shape, condition: str = "true") -> str:
    table = warehouse.table(shape.name)
    columns = [_shown(name, f"v.{quote_name(name)}", [shape]) for name in table.columns()]
    reserved = ", ".join(str(key) for key in RESERVED_KEYS)
    return (
        f"SELECT {', '.join(columns)} FROM {table.identifier} AS v "
        f"WHERE v.{quote_name(shape.surrogate_key)} NOT IN ({reserved}) AND {condition}"
    )


def _shown(name: str, value: str, of: Sequence[Shape]) -> str:
    """A column, with NULL for a time that a zone could push out of the calendar."""
    if name == EFFECTIVE_FROM:
        value = f"CASE WHEN {value} >= {_FIRST_DAY} THEN {value} END"
    elif name == EFFECTIVE_TO:
        open_ends = ", ".join(f"TIMESTAMP '{shape.open_end}Z'" for shape in of)
        value = f"CASE WHEN {value} NOT IN ({open_ends}) THEN {value} END"
    return f"{value} AS {quote_name(name)}"


def _joined(warehouse: Warehouse, fact: Fact) -> View:
    """The facts with the attributes of their dimensions by the stored keys, `with_dimensions` in SQL (S23, S24)."""
    table = warehouse.table(fact.name)
    columns, joins = declared_columns(fact.as_dimension(), table.columns(), of="f"), ""
    names = labelled_roles(fact, columns)
    for role, key, of in fact.keyed_roles:
        stored, version = columns[key], f"role_{role}"
        values = declared_columns(of.dimension, warehouse.table(of.dimension.name).columns(), of=version)
        columns[key] = f"COALESCE({values[of.dimension.surrogate_key]}, {UNKNOWN_KEY})"
        columns |= {names[column]: values[column[1]] for column in labelled_attributes(of.dimension, role)}
        versions = _by_every_key(warehouse, shape_of(warehouse, of.dimension))
        joins += f" LEFT JOIN ({versions}) AS {quote_name(version)} ON {quote_name(version)}.`_given` = {stored}"
    chosen = ", ".join(f"{value} AS {quote_name(name)}" for name, value in columns.items())
    return View(f"{fact.name}_joined", f"SELECT {chosen} FROM {table.identifier} AS f{joins}")


def _by_every_key(warehouse: Warehouse, shape: Shape) -> str:
    """The versions by each key ever given, `_given`: where that version is gone, the one that holds its beginning."""
    table, key = warehouse.table(shape.name).identifier, quote_name(shape.surrogate_key)
    standing = f"SELECT v.{key} AS `_given`, v.* FROM {table} AS v"
    keys = warehouse.table(shape.name + KEYS_SUFFIX)
    if not shape.has_windows or not keys.exists():
        return standing
    same = " AND ".join(f"v.{quote_name(name)} = k.{quote_name(name)}" for name in shape.key_names)
    return (
        f"{standing} UNION ALL SELECT k.{key} AS `_given`, v.* "
        f"FROM (SELECT DISTINCT * FROM {keys.identifier}) AS k JOIN {table} AS v "
        f"ON {same} AND {_holds('k.effective_from')} WHERE k.{key} NOT IN (SELECT {key} FROM {table})"
    )


def _overlap(warehouse: Warehouse, left: Shape, right: Shape) -> View:
    """Two histories of one business key: a row for each pair of versions that held together, with their window."""
    shared = (*left.key_names, *_WINDOW)
    of_label = dict(zip(labels_of(left.name, right.name), (("l", left), ("r", right)), strict=True))
    own = [
        (label, name)
        for label, (_, shape) in of_label.items()
        for name in warehouse.table(shape.name).columns()
        if name not in shared
    ]
    columns = [f"l.{quote_name(name)}" for name in left.key_names]
    for (label, column), name in labelled(own, shared).items():
        columns.append(f"{of_label[label][0]}.{quote_name(column)} AS {quote_name(name)}")
    begin, end = "GREATEST(l.effective_from, r.effective_from)", "LEAST(l.effective_to, r.effective_to)"
    window = [_shown(EFFECTIVE_FROM, begin, [left, right]), _shown(EFFECTIVE_TO, end, [left, right])]
    same = " AND ".join(f"l.{quote_name(name)} = r.{quote_name(name)}" for name in left.key_names)
    text = (
        f"SELECT {', '.join([*columns, *window])} FROM {warehouse.table(left.name).identifier} AS l "
        f"JOIN {warehouse.table(right.name).identifier} AS r "
        f"ON {same} AND l.effective_from < r.effective_to AND r.effective_from < l.effective_to"
    )
    return View(f"{left.name}_with_{right.name}", text)
