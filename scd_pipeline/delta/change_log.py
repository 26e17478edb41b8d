"""The change log of a dimension: append-only, with batches and their change records in one commit.

All other tables of the dimension can be rebuilt from it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from pyspark.sql import Column, DataFrame, Row
from pyspark.sql import functions as F

from scd_pipeline.columns import (
    ACTOR,
    ASSERTED_AT,
    BAD_REASON,
    BAD_ROW,
    BATCH,
    BATCH_ROW,
    CHANGE_RECORD_TYPES,
    CHANNEL,
    COMMIT,
    CORRELATION_ID,
    CURSOR,
    DELIVERY_RANK,
    EFFECTIVE_AT,
    INFO,
    KIND,
    PROVIDED,
    REASON,
    REVISION_RANK,
    SEQUENCE,
    SOURCE,
    UPSERT,
    attribute_types,
)
from scd_pipeline.declaration import Dimension
from scd_pipeline.declaration.types import parse_type
from scd_pipeline.delta.commits import PipelineCommit
from scd_pipeline.delta.schema import APPEND_ONLY_PROPERTIES, altered_column, renamed_columns, skipping_columns
from scd_pipeline.delta.table import Table
from scd_pipeline.expressions import col, constant_number, to_current_names, unwrap, wrap
from scd_pipeline.frames import checkpoint, empty_frame, local_frame
from scd_pipeline.history.batch import Batch, CursorState, rank
from scd_pipeline.instants import from_micros_or_none

_DELIVERY, _REVISION, _SCOPE_ID = "_delivery", "_revision", "_scope_id"
_INFO_FIELDS = (
    "at timestamp, columns array<string>, scope_columns array<string>, scope array<string>, has_row_times boolean, "
    "retires boolean, withdrawn boolean, rows bigint, bad_rows bigint, entities bigint, fingerprint string, "
    "content_of string, earliest timestamp, latest timestamp, new bigint, changed bigint, deleted bigint, "
    "run_id string, reason string, actor string, correlation_id string, overridden array<string>"
)
_CURSOR_TYPE = "struct<value:string,rows:array<bigint>>"
_TIMES = ("at", "earliest", "latest")
_SPARSE = " (sparse)"
"""The end of a stored name in `columns` that is in `sparse_columns`; the name of an attribute has no blank."""
CHANGE_RECORD_COLUMNS = tuple(CHANGE_RECORD_TYPES)


def log_properties(dimension: Dimension) -> dict[str, str]:
    """Return the table properties of the log."""
    queried = {KIND, COMMIT, EFFECTIVE_AT, *dimension.key_names, BATCH}
    columns = [column for column in log_schema(dimension) if column[0] in queried]
    return {**APPEND_ONLY_PROPERTIES, **skipping_columns(columns)}


def log_schema(dimension: Dimension) -> list[tuple[str, str]]:
    """Return name and type of the log's columns, in order."""
    keys = [(key.name, parse_type(key.type).ddl()) for key in dimension.business_key]
    texts = [BATCH, SOURCE, CHANNEL, _DELIVERY, _REVISION, DELIVERY_RANK, REVISION_RANK]
    return [
        (KIND, "string"),
        (COMMIT, "bigint"),
        (EFFECTIVE_AT, "timestamp"),
        *keys,
        *[(name, "string") for name in texts],
        (SEQUENCE, "bigint"),
        (ASSERTED_AT, "timestamp"),
        (PROVIDED, "array<string>"),
        *[(name, "string") for name in (REASON, ACTOR, CORRELATION_ID, BAD_REASON, BAD_ROW)],
        (INFO, f"struct<{_INFO_FIELDS.replace(' ', ':').replace(',:', ',')}>"),
        *([(CURSOR, _CURSOR_TYPE)] if has_cursor(dimension) else []),
        *[(name, data_type.ddl()) for name, data_type in attribute_types(dimension).items()],
    ]


def has_cursor(dimension: Dimension) -> bool:
    """Return whether a source of a dimension is read by a cursor, whose state the log stores with each batch (S39)."""
    return any(channel.has_cursor for source in dimension.sources for _, channel in source.channels)


@dataclass(frozen=True, slots=True)
class ChangeLog:
    """The log at one version: its table, the types of its columns, its last pipeline commit, and the rows.

    Without a table `stored` is None and `columns` is empty; it reads as a log without rows.
    """

    table: Table
    dimension: Dimension
    columns: Mapping[str, str]
    commit: PipelineCommit
    stored: DataFrame | None

    @property
    def exists(self) -> bool:
        """Whether the table exists."""
        return bool(self.columns)

    def with_checkpoint(self) -> ChangeLog:
        """Return the log with all its rows computed, by one scan: for a log of few records."""
        return replace(self, stored=None if self.stored is None else checkpoint(self.stored))

    def until(self, commit: int) -> ChangeLog:
        """Return the log as it was after one of its commits."""
        stored = None if self.stored is None else self.stored.where(F.col(COMMIT) <= commit)
        return replace(self, commit=replace(self.commit, number=commit), stored=stored)

    def batches(self) -> list[Batch]:
        """Return all accepted batches, with every revision of a delivery."""
        return [batch for _, batch in self.committed_batches()]

    def committed_batches(self) -> list[tuple[int, Batch]]:
        """Return all accepted batches, each with the number of the pipeline commit that appended it.

        Batches with equal scopes share one tuple, because the scope of a delivery is usually that of the one before.
        """
        if self.stored is None:
            return []
        rows = self.stored.where(F.col(KIND) == BATCH_ROW).withColumn(_SCOPE_ID, _scope_id())
        keys = [COMMIT, SOURCE, CHANNEL, _DELIVERY, _REVISION, _SCOPE_ID]
        batch_rows = rows.select(*keys, *_info_with_microseconds()).collect()
        has_scopes = any(row[_SCOPE_ID] is not None for row in batch_rows)
        scopes = _distinct_scopes(rows) if has_scopes else {}
        return [(row[COMMIT], self._with_current_names(_batch(row, scopes))) for row in batch_rows]

    def last_cursor(self, source: str, channel: str) -> tuple[int, CursorState | None]:
        """Return the highest number that is the name of a delivery, 0 without one, and the last state of the cursor.

        The state is that of the last delivery by the cursor, even if it was withdrawn; None without one (S39).
        """
        if self.stored is None:
            return 0, None
        state = F.col(CURSOR) if CURSOR in self.columns else F.lit(None).cast(_CURSOR_TYPE)
        number = F.col(_DELIVERY).try_cast("bigint")
        batch_rows = self.stored.where((F.col(KIND) == BATCH_ROW) & (F.col(SOURCE) == source))
        of_channel = batch_rows.where(F.col(CHANNEL) == channel).select(number.alias("number"), state.alias("state"))
        numbered_state = F.when(F.col("state").isNotNull(), F.col("number"))
        last = of_channel.agg(F.max("number").alias("number"), F.max_by("state", numbered_state).alias("state"))
        row = last.collect()[0]
        stored = row["state"]
        return row["number"] or 0, None if stored is None else CursorState(stored["value"], tuple(stored["rows"]))

    def _with_current_names(self, batch: Batch) -> Batch:
        """Return the batch with the current names of renamed attributes (S20)."""
        renamed = renamed_columns(self.dimension.attributes, generated=False)
        columns, scope, sparse = (
            tuple(renamed.get(name, name) for name in names)
            for names in (batch.columns, batch.scope_columns, batch.sparse_columns)
        )
        return replace(batch, columns=columns, scope_columns=scope, sparse_columns=sparse)

    def rows(self) -> DataFrame:
        """Return the change records of all batches, with `_commit`.

        A renamed attribute is read under its former names. An attribute without a column in the log is NULL.
        """
        if self.stored is None:
            return self._empty()
        frame = self.stored.where(F.col(KIND) != BATCH_ROW)
        attributes = {a.name: [a.name, *a.former_names] for a in self.dimension.attributes}
        types = attribute_types(self.dimension)
        values = []
        for name, names in attributes.items():
            existing = next((n for n in names if n in self.columns), None)
            values.append(altered_column(existing, self.columns, types[name].ddl()).alias(name))
        former = renamed_columns(self.dimension.attributes, generated=False)
        provided = F.transform(PROVIDED, to_current_names(former)) if former else F.col(PROVIDED)
        if self.dimension.landing is not None:
            # Each row replaces the one before as a whole: it has NULL in a column that its delivery lacked.
            every = F.array(*[F.lit(name) for name in attributes]).cast("array<string>")
            provided = F.when(F.col(KIND) == UPSERT, every).otherwise(provided)
        keys = [col(name) for name in self.dimension.key_names]
        plain = frame.select(*keys, *CHANGE_RECORD_COLUMNS, COMMIT, provided.alias(PROVIDED), *values)
        return wrap(plain, attributes)

    def _empty(self) -> DataFrame:
        types = attribute_types(self.dimension)
        all_columns = dict(log_schema(self.dimension))
        names = [*self.dimension.key_names, *CHANGE_RECORD_COLUMNS, COMMIT, PROVIDED, *types]
        return wrap(empty_frame(self.table.spark, {name: all_columns[name] for name in names}), types)

    def append(self, batches: Sequence[Batch], change_records: DataFrame, commit: PipelineCommit) -> PipelineCommit:
        """Append batches and their change records as `commit`.

        Raises:
            ConflictError: Another writer used the commit's number.
        """
        names = [name for name, _ in log_schema(self.dimension)]
        record_rows = unwrap(change_records, list(attribute_types(self.dimension)))
        record_rows = record_rows.withColumns(
            {
                _DELIVERY: F.lit(None).cast("string"),
                _REVISION: F.lit(None).cast("string"),
                INFO: F.lit(None).cast(dict(log_schema(self.dimension))[INFO]),
                CURSOR: F.lit(None).cast(_CURSOR_TYPE),
                COMMIT: constant_number(commit.number, F.col(CORRELATION_ID)),
            }
        )
        rows = record_rows.select(*[col(n) for n in names]).unionByName(self._batch_rows(batches, commit), True)
        return self.table.append(rows.select(*[col(n) for n in names]), commit)

    def _batch_rows(self, batches: Sequence[Batch], commit: PipelineCommit) -> DataFrame:
        names = [KIND, COMMIT, EFFECTIVE_AT, BATCH, SOURCE, CHANNEL, _DELIVERY, _REVISION, DELIVERY_RANK]
        names += [REVISION_RANK, INFO, *([CURSOR] if has_cursor(self.dimension) else [])]
        types = dict(log_schema(self.dimension))
        rows = [
            (
                BATCH_ROW,
                commit.number,
                b.at,
                b.id,
                b.source,
                b.channel,
                b.delivery,
                b.revision,
                rank(b.delivery),
                rank(b.revision),
                _info(b),
                *([_cursor(b)] if has_cursor(self.dimension) else []),
            )
            for b in batches
        ]
        schema = ", ".join(f"`{name}` {types[name]}" for name in names)
        return local_frame(self.table.spark, rows, schema)


def _cursor(batch: Batch) -> tuple[object, ...] | None:
    return None if batch.cursor is None else (batch.cursor.value, list(batch.cursor.rows))


def _info(batch: Batch) -> tuple[object, ...]:
    scope = None if batch.scope is None else list(batch.scope)
    return (
        batch.at,
        [f"{name}{_SPARSE}" if name in batch.sparse_columns else name for name in batch.columns],
        list(batch.scope_columns),
        scope,
        batch.has_row_times,
        batch.retires,
        batch.withdrawn,
        batch.rows,
        batch.bad_rows,
        batch.entities,
        batch.fingerprint,
        batch.content_of,
        batch.earliest,
        batch.latest,
        batch.new,
        batch.changed,
        batch.deleted,
        batch.run_id,
        batch.reason,
        batch.actor,
        batch.correlation_id,
        list(batch.overridden),
    )


def _info_with_microseconds() -> list[Column]:
    """Return the details of a batch without its scope, and its times in microseconds, which no time zone can change.

    A time of year 1 cannot be collected at all in a zone west of UTC.
    """
    times = [F.unix_micros(F.col(INFO)[name]).alias(name) for name in _TIMES]
    return [F.col(INFO).dropFields("scope", *_TIMES).alias(INFO), *times]


def _scope_id() -> Column:
    """Return a text that identifies the scope of a batch row; NULL if the batch covers everything."""
    return F.sha2(F.to_json(F.col(INFO)["scope"]), 256)


def _distinct_scopes(rows: DataFrame) -> dict[str, tuple[str, ...]]:
    """Return the scopes of batch rows by their ids."""
    scopes = (
        rows.where(F.col(_SCOPE_ID).isNotNull()).groupBy(_SCOPE_ID).agg(F.first(F.col(INFO)["scope"]).alias("scope"))
    )
    return {row[_SCOPE_ID]: tuple(row["scope"]) for row in scopes.collect()}


def _batch(row: Row, scopes: Mapping[str, tuple[str, ...]]) -> Batch:
    info = row[INFO].asDict() | {name: row[name] for name in _TIMES}
    columns = info.pop("columns")
    return Batch(
        source=row[SOURCE],
        channel=row[CHANNEL],
        delivery=row[_DELIVERY],
        revision=row[_REVISION],
        at=from_micros_or_none(info.pop("at")),
        earliest=from_micros_or_none(info.pop("earliest")),
        latest=from_micros_or_none(info.pop("latest")),
        columns=tuple(name.removesuffix(_SPARSE) for name in columns),
        sparse_columns=tuple(name.removesuffix(_SPARSE) for name in columns if name.endswith(_SPARSE)),
        scope_columns=tuple(info.pop("scope_columns")),
        scope=None if row[_SCOPE_ID] is None else scopes[row[_SCOPE_ID]],
        overridden=tuple(info.pop("overridden", None) or ()),  # older logs do not have it
        **info,
    )
