"""Snapshots whose scope is an attribute: an entity can move from one scope to another.

A snapshot of store S1 lists the customers of S1. The scope to which a customer belongs is the value of `store` that the
same source has provided last before the snapshot's position. A snapshot that omits a customer who belongs to S2 then
asserts nothing about it; one that omits a customer of S1 deletes it (S27). An entity without a value (NULL, or never
provided) belongs to no scope.

Which entities such a snapshot covers is therefore not known from their keys, and late or withdrawn batches change it.
So the scope is a condition that is evaluated wherever change records are sorted by position:

- An absence is derived for every entity that the snapshot does not list and that any record of the source puts into
  its scope, whatever the record's position (`possible_scope_texts`). It is stored only if the entity's existence was
  asserted and it belonged to the scope: of other entities nothing is stored, so that the log does not grow by what
  other snapshots cover.
- A stored absence has an effect only while it is in the scope at its position (`with_scope_before`). If a late batch
  moves the entity out of the scope before it, the absence stays in the log and has no effect.
- A delete that such a snapshot delivers has its effect in any scope, and is always stored: it has `_asserted_at`, and
  an absence has not.
- What a stored snapshot implied about an entity of which it has no record follows from the log: an entity that existed
  in its scope was listed with the values before; any other was omitted, because a row of the snapshot would have
  changed its scope and would be stored. So the recheck of a snapshot (`differences`) needs no further column.

No such snapshot is complete: it does not decide about the entities of other scopes. The values of a row-timed snapshot
depend on existence (S4), which would depend on the scope; a channel therefore cannot have both.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import reduce

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from scd_pipeline.columns import BATCH, KIND, UPSERT
from scd_pipeline.declaration import Dimension
from scd_pipeline.expressions import all_of, any_of, col, key_text, text_of_parts, with_columns
from scd_pipeline.frames import local_frame, with_broadcast
from scd_pipeline.history.batch import Batch
from scd_pipeline.history.row_windows import RowWindow

IN_SCOPE_BEFORE = "_in_scope_before"
_SCOPE, _NUMBER, _VALUES = "_attribute_scope", "_attribute_scope_columns", "_attribute_scope_values"
_SCOPE_SCHEMA = f"{_SCOPE} int, {_NUMBER} int, {_VALUES} array<string>"


@dataclass(frozen=True, slots=True)
class AttributeScopes:
    """The scopes of snapshots that are scoped by attributes.

    Attributes:
        columns: The distinct lists of scope columns.
        scopes: The distinct scopes: the number of their columns in `columns`, and their values. Snapshots usually have
            the same scopes, so that the driver holds the values of each scope once.
        batches: For each batch, by the id of its records, the number of its scope.
    """

    columns: tuple[tuple[str, ...], ...] = ()
    scopes: tuple[tuple[int, tuple[str, ...]], ...] = ()
    batches: tuple[tuple[str, int], ...] = ()

    @classmethod
    def from_batches(cls, batches: Iterable[Batch], dimension: Dimension) -> AttributeScopes:
        """Return the scopes of the batches that are scoped by attributes."""
        scoped = {b.records_batch_id: b for b in batches if has_attribute_scope(b, dimension)}
        columns = tuple(sorted({batch.scope_columns for batch in scoped.values()}))
        numbers: dict[tuple[int, tuple[str, ...]], int] = {}
        numbered = []
        for name, batch in sorted(scoped.items()):
            scope = (columns.index(batch.scope_columns), batch.scope or ())
            numbered.append((name, numbers.setdefault(scope, len(numbers))))
        return cls(columns, tuple(numbers), tuple(numbered))

    def with_scope_before(
        self, rows: DataFrame, dimension: Dimension, window: RowWindow, in_effect: Column
    ) -> DataFrame:
        """Add `_in_scope_before`: whether the entity belonged to the scope of the row's snapshot just before the row.

        True in rows of other batches. `window` has the rows of the same source before each row.
        """
        if not self.scopes:
            return rows.withColumn(IN_SCOPE_BEFORE, F.lit(True))
        rows = rows.join(self._scopes_of_batches(rows.sparkSession), BATCH, "left")
        is_upsert = in_effect & (F.col(KIND) == UPSERT)
        attributes = {n for names in self.columns for n in names if n not in dimension.key_names}
        before = {_before(n): window.last(F.when(is_upsert, col(n)))["v"] for n in sorted(attributes)}
        rows = with_columns(rows, before)
        is_inside = any_of([self._is_inside(number, names, dimension) for number, names in enumerate(self.columns)])
        in_scope = F.when(F.col(_NUMBER).isNull(), True).otherwise(F.coalesce(is_inside, F.lit(False)))
        return rows.withColumn(IN_SCOPE_BEFORE, in_scope).drop(_NUMBER, _VALUES, *before)

    def _scopes_of_batches(self, spark: SparkSession) -> DataFrame:
        scopes = [(scope, number, list(values)) for scope, (number, values) in enumerate(self.scopes)]
        value_count = max(len(values) for _, values in self.scopes)
        frame = with_broadcast(local_frame(spark, scopes, _SCOPE_SCHEMA), len(scopes), value_count)
        batches = local_frame(spark, list(self.batches), f"{BATCH} string, {_SCOPE} int")
        return with_broadcast(batches.join(frame, _SCOPE).drop(_SCOPE), len(self.batches), value_count)

    def _is_inside(self, number: int, names: tuple[str, ...], dimension: Dimension) -> Column:
        values = [col(n) if n in dimension.key_names else col(_before(n)) for n in names]
        has_values = all_of([value.isNotNull() for value in values])
        return (F.col(_NUMBER) == number) & has_values & F.array_contains(_VALUES, text_of_parts(values))


def has_attribute_scope(batch: Batch, dimension: Dimension) -> bool:
    """Return whether a batch is a snapshot whose scope has attributes."""
    return not set(batch.scope_columns) <= set(dimension.key_names)


def by_keys(batch: Batch, dimension: Dimension) -> Batch:
    """Return the batch with the scope that keys show: everything if the scope has attributes."""
    return replace(batch, scope=None, scope_columns=()) if has_attribute_scope(batch, dimension) else batch


def provided_scope_values(batches: Iterable[Batch], dimension: Dimension) -> list[Column]:
    """Return aggregates of an entity's change records: for each scope attribute, the values that any record provides.

    `possible_scope_texts` reads them.
    """
    attributes = {name for batch in batches for name in batch.scope_columns if name not in dimension.key_names}
    values = {name: col(name)["v"] for name in sorted(attributes)}
    texts = {name: F.when(value.isNotNull(), text_of_parts([value])) for name, value in values.items()}
    return [F.collect_set(text).alias(_provided(name)) for name, text in texts.items()]


def possible_scope_texts(names: Sequence[str], dimension: Dimension, prefix: str) -> Column:
    """Return an array of the values of these scope columns that an entity may have had, each after a prefix.

    They are all combinations of the values that its records provide (`provided_scope_values`), because a record need
    not provide every attribute. Which of them it had before a snapshot is decided by `with_scope_before`.
    """
    if set(names) <= set(dimension.key_names):
        return F.array(F.concat(F.lit(prefix), key_text(names)))
    texts = [F.array(key_text([n])) if n in dimension.key_names else col(_provided(n)) for n in names]
    return reduce(_combine, texts, F.array(F.lit(prefix)))


def _combine(beginnings: Column, endings: Column) -> Column:
    """Return an array of each text of the first array followed by each one of the second."""
    return F.flatten(F.transform(beginnings, lambda start: F.transform(endings, lambda end: F.concat(start, end))))


def _before(attribute: str) -> str:
    return f"_scope_before_{attribute}"


def _provided(attribute: str) -> str:
    return f"_scope_values_of_{attribute}"
