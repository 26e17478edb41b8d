"""Read the deliveries of a load as rows of one shape, each row tagged with its batch.

Deliveries of one channel with the same columns are read together. If that fails, each half is read by itself, down to
the deliveries that cannot be read: only those are rejected.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import pyarrow.parquet
from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
from pyspark.errors import AnalysisException, IllegalArgumentException, PySparkException, PySparkTypeError
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StringType, StructField, StructType

from scd_pipeline.columns import CHANGE_RECORD_TYPES, attribute_types
from scd_pipeline.declaration import Dimension, Feed, Snapshot, Source
from scd_pipeline.deliveries.arrow import column_names, is_convertible, to_arrow, unsupported_types, without_columns
from scd_pipeline.deliveries.batch_summary import Summary, checkpoint_with_summary, combined
from scd_pipeline.deliveries.column_mapping import (
    ColumnMapping,
    map_columns,
    names_in_expressions,
    undeclared_columns,
    with_readable_columns,
)
from scd_pipeline.deliveries.conform import batch_texts, conform, with_content_hash
from scd_pipeline.deliveries.csv_files import CsvLayout, repeated_columns, reserved_columns, scan_csv
from scd_pipeline.deliveries.cursors import CursorProblem, new_rows
from scd_pipeline.deliveries.databases import DatabaseProblem, read_database
from scd_pipeline.deliveries.debezium import unfold_events
from scd_pipeline.deliveries.expressions import (
    AnalyzedExpressions,
    analyze_expressions,
    objects_of_nulls,
    times_in_utc,
)
from scd_pipeline.deliveries.file_signatures import signature_problem
from scd_pipeline.deliveries.guarded import with_guarded_expressions
from scd_pipeline.deliveries.json_files import has_only_nulls, json_fields, nested_columns
from scd_pipeline.deliveries.mirrored import (
    has_key,
    mirrored_columns,
    with_delivered_columns,
    with_missing_whole_numbers,
)
from scd_pipeline.deliveries.missing_columns import describe_existing_columns, nested_columns_fix
from scd_pipeline.deliveries.nan_values import with_nan_as_declared
from scd_pipeline.deliveries.narrowed import AppliedState, NarrowedSnapshot, can_read_narrowed, narrow_snapshot
from scd_pipeline.deliveries.parquet_files import (
    NANOSECONDS,
    REPEATED,
    describe_problems,
    local_files,
    parquet_columns,
)
from scd_pipeline.deliveries.paths import (
    file_column,
    is_pattern,
    normalize_path,
    normalize_uri,
    owning_path,
    row_order_column,
)
from scd_pipeline.deliveries.pending import PendingDelivery
from scd_pipeline.deliveries.readers import (
    merged_fields,
    partition_column,
    read_path,
    read_table,
    with_batch_columns,
)
from scd_pipeline.deliveries.result import BatchResult
from scd_pipeline.deliveries.row_columns import (
    ADDED,
    FILE,
    HASH,
    KEY_READABLE,
    LINE,
    NULLED,
    ROW_ORDER,
    ROW_ORDER_TYPE,
    TOTALS,
    TOTALS_TYPE,
)
from scd_pipeline.deliveries.row_fields import RowFields
from scd_pipeline.deliveries.text_files import TextOptions, declared_options
from scd_pipeline.errors import BatchRejected, first_line
from scd_pipeline.expressions import with_columns
from scd_pipeline.frames import arrow_frame, empty_frame, union_all
from scd_pipeline.history.batch import Batch, CursorState
from scd_pipeline.instants import to_micros
from scd_pipeline.texts import join_names

_Item = TypeVar("_Item")
_Read = TypeVar("_Read")
# The names of Spark's and Delta's errors for files that no longer exist, as after VACUUM.
_MISSING_FILES = re.compile(
    r"\[(FAILED_READ_FILE\.FILE_NOT_EXIST|PATH_NOT_FOUND|DELTA_VERSION_NOT_FOUND|DELTA_TRUNCATED_TRANSACTION_LOG"
    r"|DELTA_(LOG_)?FILE_NOT_FOUND|DELTA_UNSUPPORTED_TIME_TRAVEL_BEYOND_DELETED_FILE_RETENTION_DURATION)\b"
)
# Spark's named errors have the class of their SQLSTATE.
_NAMED_ERROR = re.compile(r"\s*\[(?P<name>[A-Z0-9_.]+)\].*?SQLSTATE: (?P<state>\w\w)", re.DOTALL)
_VALUE_STATES = ("22", "P0")
# Errors of these states that no expression causes: of a record, in a mode of the reader that fails.
_READER_ERRORS = ("MALFORMED_RECORD", "MALFORMED_CSV_RECORD")
_RECURSIVE = "recursivefilelookup"
_NANOSECONDS_AS_LONG = "spark.sql.legacy.parquet.nanosAsLong"
_SERVER_STATES = ("", "08", "53", "57", "58", "HY", "XX")
# pyarrow appends this to the error of a column of a pandas frame; the text before it repeats a value.
_ARROW_COLUMN = re.compile(r"Conversion failed for column (?P<name>.*) with type .*", re.DOTALL)


_NO_NEW_ROWS = "NO_NEW_ROWS"


class _Unreadable(Exception):
    """Deliveries cannot be read as declared; `code` and `details` are of their rejection."""

    def __init__(self, code: str, **details: object) -> None:
        super().__init__(code)
        self.code = code
        self.details = details


@dataclass(frozen=True, slots=True)
class ReadResult:
    """The rows of the readable deliveries, those deliveries, and the results of the others.

    Attributes:
        rows: Change records with the columns of `conform`, whose `_batch` is the row tag of the delivery.
        readable: The deliveries that were read, with their columns.
        summary: The figures of all rows that were read.
        rejected: The results of the others, by the number of the delivery.
        dimension: The declaration; a mirrored one has the attributes of the deliveries too (S36).
        narrowed: If the only readable delivery was compared with the current rows, the result, of which `rows` are the
            rows; else None.
    """

    rows: DataFrame
    readable: tuple[PendingDelivery, ...]
    summary: Summary
    rejected: dict[int, BatchResult]
    dimension: Dimension
    narrowed: NarrowedSnapshot | None = None


@dataclass(frozen=True, slots=True)
class OpenedDeliveries:
    """Deliveries whose columns are known and whose rows are not computed yet.

    Attributes:
        groups: The deliveries that can be read as far as their columns show, each group as one frame.
        failures: The others, with the errors.
        dimension: The declaration; a mirrored one has the attributes of the deliveries too (S36).
    """

    groups: tuple[Group, ...]
    failures: tuple[tuple[PendingDelivery, _Unreadable], ...]
    dimension: Dimension


def open_deliveries(spark: SparkSession, pending: Sequence[PendingDelivery], dimension: Dimension) -> OpenedDeliveries:
    """Return the rows of deliveries as frames, grouped by their columns; each file is in one frame.

    Args:
        pending: Deliveries that are not withdrawn.
    """
    failures = _unfit_files(pending)
    failed = {delivery.number for delivery, _ in failures}
    layouts_by_number, unreadable = _csv_layouts(spark, [each for each in pending if each.number not in failed])
    failures += unreadable
    failed |= {delivery.number for delivery, _ in unreadable}
    by_shape: dict[tuple[str, ...], tuple[_Shape, list[PendingDelivery]]] = {}
    tables: _Tables = {}
    for delivery in pending:
        if delivery.number in failed:
            continue
        try:
            if delivery.is_read_by_path:
                shape = _shape(spark, delivery, dimension, layouts_by_number.get(delivery.number))
            else:
                shape = _shape_of_one(spark, delivery, dimension, tables)
            by_shape.setdefault(shape.key, (shape, []))[1].append(delivery)
        except _Unreadable as error:
            failures.append((delivery, error))
    shapes, failures_by_columns, dimension = _with_delivered_columns(spark, list(by_shape.values()), dimension)
    failures += failures_by_columns
    groups: list[Group] = []
    for shape, members in shapes:
        grouped, unreadable = _bisect(members, _grouping(spark, shape, dimension))
        groups += grouped
        failures += unreadable
    return OpenedDeliveries(tuple(groups), tuple(failures), dimension)


def compute_deliveries(spark: SparkSession, opened: OpenedDeliveries, dimension: Dimension) -> ReadResult:
    """Compute the rows of opened deliveries."""
    parts, unreadable = _compute(spark, opened.groups, dimension)
    rows = union_all([part.rows for part in parts]) if parts else _no_rows(spark, dimension)
    readable = tuple(delivery for part in parts for group in part.groups for delivery in group.members)
    failures = [*opened.failures, *unreadable]
    rejected = {delivery.number: _reject(delivery, error) for delivery, error in failures}
    return ReadResult(rows, readable, combined([part.summary for part in parts]), rejected, dimension)


def compute_narrowed(
    opened: OpenedDeliveries, stored: Sequence[Batch], state: AppliedState, dimension: Dimension
) -> ReadResult | None:
    """Compute the rows of a snapshot that may change something, if it is the only delivery that can be read.

    Args:
        stored: Every batch of the change log.
        state: What the snapshot is compared with.

    Returns:
        None if its rows have to be computed as a whole, because of their content or because they cannot be read.
    """
    if len(opened.groups) != 1 or len(opened.groups[0].members) != 1:
        return None
    group = opened.groups[0]
    batch = group.members[0].batch
    has_uncounted = may_have_uncounted_rows(group.members[0].channel, dimension)
    if has_uncounted or not can_read_narrowed(batch, stored, state, dimension):
        return None
    try:
        with _translate_read_errors("UNREADABLE_DELIVERY"):
            narrowed = narrow_snapshot(group.rows, group.members[0], state, dimension)
    except _Unreadable:
        return None
    if narrowed is None:
        return None
    rejected = {delivery.number: _reject(delivery, error) for delivery, error in opened.failures}
    return ReadResult(narrowed.rows, group.members, narrowed.summary, rejected, dimension, narrowed)


def may_have_uncounted_rows(channel: Snapshot | Feed, dimension: Dimension) -> bool:
    """Return whether the declaration excludes rows of the channel, or lets rows of a snapshot count as absent."""
    is_snapshot_with_deletes = isinstance(channel, Snapshot) and dimension.has_deletes(channel)
    return bool(channel.rows or dimension.is_deduplicated or is_snapshot_with_deletes)


_Tables = dict[str, "_Shape"]
"""The shapes of Parquet tables by their paths."""
_Undeclared = Callable[[Sequence[str]], tuple[str, ...]]
_Failures = list[tuple[PendingDelivery, _Unreadable]]


def _bisect(
    items: Sequence[_Item], read: Callable[[Sequence[_Item]], _Read]
) -> tuple[list[_Read], list[tuple[_Item, _Unreadable]]]:
    """Read all items together; if that fails, each half by itself, down to the items that cannot be read."""
    if not items:
        return [], []
    try:
        return [read(items)], []
    except _Unreadable as error:
        if len(items) == 1:
            return [], [(items[0], error)]
    results: list[_Read] = []
    failures: list[tuple[_Item, _Unreadable]] = []
    for half in _halves(items):
        read_half, failed_half = _bisect(half, read)
        results += read_half
        failures += failed_half
    return results, failures


def _halves(items: Sequence[_Item]) -> tuple[Sequence[_Item], Sequence[_Item]]:
    middle = len(items) // 2
    return items[:middle], items[middle:]


def _reject(delivery: PendingDelivery, error: _Unreadable) -> BatchResult:
    """Return the rejection; a table version whose files no longer exist is `missing`, and fails no load.

    A delivery of a cursor that has no new rows is unchanged.
    """
    if error.code == _NO_NEW_ROWS:
        return delivery.result("unchanged")
    is_missing_table_version = error.code == "DELIVERY_MISSING" and delivery.delivery.table_version is not None
    code = "TABLE_VERSION_MISSING" if is_missing_table_version else error.code
    return delivery.result(
        "missing" if is_missing_table_version else "rejected", BatchRejected(code, delivery.batch.id, **error.details)
    )


@dataclass(frozen=True, slots=True)
class _Shape:
    """What deliveries that one frame can read have in common.

    Attributes:
        key: Texts that are equal for such deliveries.
        layout: The layout of CSV files.
        fields: The columns to read of other files.
        unread: The names of undeclared columns that cannot be read.
        frame: The result of `_frame` for its only delivery, if that was needed before.
        cursor: The state of the cursor after the rows of its only delivery, if a cursor has selected them.
    """

    key: tuple[str, ...]
    layout: CsvLayout | None = None
    fields: tuple[StructField, ...] | None = None
    unread: tuple[str, ...] = ()
    frame: tuple[DataFrame, tuple[str, ...]] | None = None
    cursor: CursorState | None = None


@dataclass(frozen=True, slots=True)
class Group:
    """Deliveries of one channel with the same columns, and their rows as one frame."""

    rows: DataFrame
    members: tuple[PendingDelivery, ...]
    shape: _Shape


@dataclass(frozen=True, slots=True)
class _Part:
    """Groups whose rows were computed together."""

    rows: DataFrame
    summary: Summary
    groups: tuple[Group, ...]


def _unfit_files(pending: Sequence[PendingDelivery]) -> _Failures:
    """Return the deliveries of files that are of another format, by their first bytes, and of folders without files."""
    problems = [(delivery, _file_problem(delivery)) for delivery in pending if delivery.is_read_by_path]
    return [(delivery, _Unreadable("UNREADABLE_DELIVERY", reason=problem)) for delivery, problem in problems if problem]


def _file_problem(delivery: PendingDelivery) -> str:
    channel, is_recursive = delivery.channel, TextOptions(declared_options(delivery.channel)).is_on(_RECURSIVE)
    return signature_problem(str(delivery.delivery.path), str(channel.format), is_recursive=is_recursive)


def _csv_layouts(spark: SparkSession, pending: Sequence[PendingDelivery]) -> tuple[dict[int, CsvLayout], _Failures]:
    """Return the layouts of CSV deliveries by their numbers; files and folders of one channel are read together."""
    channels: dict[tuple[str, ...], list[PendingDelivery]] = {}
    for delivery in pending:
        if delivery.channel.format == "csv" and delivery.is_read_by_path:
            path = str(delivery.delivery.path)
            key = (delivery.batch.source, delivery.batch.channel, *([path] if is_pattern(path) else []))
            channels.setdefault(key, []).append(delivery)

    def read(members: Sequence[PendingDelivery]) -> dict[int, CsvLayout]:
        with _translate_read_errors("UNREADABLE_DELIVERY"):
            paths = sorted({str(delivery.delivery.path) for delivery in members})
            by_path = scan_csv(spark, members[0].channel, paths)
            return {delivery.number: by_path[str(delivery.delivery.path)] for delivery in members}

    by_number: dict[int, CsvLayout] = {}
    failures: _Failures = []
    for members in channels.values():
        read_layouts, failed = _bisect(members, read)
        by_number |= {number: layout for layouts in read_layouts for number, layout in layouts.items()}
        failures += failed
    return by_number, failures


def _compute(spark: SparkSession, groups: Sequence[Group], dimension: Dimension) -> tuple[list[_Part], _Failures]:
    """Compute the rows of the groups, all together if possible.

    Spark may reject a cast, an expression or a file only here, when the rows are computed. Then the group is divided.
    """
    parts, failed = _bisect(groups, lambda together: _computed_together(together, dimension))
    failures: _Failures = []
    for group, error in failed:
        type_error = _type_error(group)
        if type_error is not None:
            failures += [(delivery, type_error) for delivery in group.members]
        elif len(group.members) == 1:
            part = _compute_guarded(spark, group, dimension) if error.code == "EXPRESSION_FAILED" else None
            parts += [part] if part is not None else []
            failures += [] if part is not None else [(group.members[0], error)]
        else:
            for half in _halves(group.members):
                grouped, unreadable = _bisect(half, _grouping(spark, group.shape, dimension))
                more, uncomputable = _compute(spark, grouped, dimension)
                parts += more
                failures += [*unreadable, *uncomputable]
    return parts, failures


def _compute_guarded(spark: SparkSession, group: Group, dimension: Dimension) -> _Part | None:
    """Compute the rows of a delivery in which an expression fails for some; None if they cannot be computed so."""
    try:
        return _computed_together([_group(spark, group.members, group.shape, dimension, is_guarded=True)], dimension)
    except _Unreadable:
        return None


def _computed_together(groups: Sequence[Group], dimension: Dimension) -> _Part:
    rows = union_all([group.rows for group in groups])
    members = [delivery for group in groups for delivery in group.members]
    constants = batch_texts(members[0].batch, members[0].row_tag) if len(members) == 1 else {}
    with _translate_read_errors("UNREADABLE_DELIVERY"):
        computed, summary = checkpoint_with_summary(with_columns(rows, constants), members, dimension, [*constants])
        return _Part(with_columns(computed, constants), summary, tuple(groups))


def _type_error(group: Group) -> _Unreadable | None:
    """Return the error if the columns of a group cannot be analysed as the declared types."""
    try:
        with _translate_read_errors("COLUMN_TYPE"):
            len(group.rows.schema)  # Spark analyzes the plan here.
    except _Unreadable as error:
        return error
    return None


_Shaped = tuple[_Shape, list[PendingDelivery]]


def _with_delivered_columns(
    spark: SparkSession, shapes: Sequence[_Shaped], dimension: Dimension
) -> tuple[list[_Shaped], _Failures, Dimension]:
    """Return a mirrored dimension with the attributes of the delivered columns, and the deliveries that fit it (S36).

    In order of time, the columns of each delivery have to fit those before. Nothing is done for other dimensions.
    """
    if dimension.mirror is None:
        return list(shapes), [], dimension
    fitting, failures = list[_Shaped](), _Failures()
    for shape, members in sorted(shapes, key=lambda shaped: min(map(_order, shaped[1]))):
        try:
            shape, types = _mirrored_columns(spark, shape, members, dimension)
            dimension = with_delivered_columns(dimension, types, members[0].batch.id)
            fitting.append((shape, members))
        except _Unreadable as error:
            failures += [(delivery, error) for delivery in members]
        except BatchRejected as error:
            failures += [(delivery, _Unreadable(error.code, **error.details)) for delivery in members]
    return fitting, failures, dimension


def _order(delivery: PendingDelivery) -> tuple[bool, int, int]:
    """Return the order of deliveries by time; those without one are last, as their rows are not read yet."""
    time = delivery.batch.at
    return (time is None, 0 if time is None else to_micros(time), delivery.number)


def _mirrored_columns(
    spark: SparkSession, shape: _Shape, members: Sequence[PendingDelivery], dimension: Dimension
) -> tuple[_Shape, dict[str, str]]:
    """Return the type of each column of the deliveries that is mirrored, by its name; Spark analyzes one of them.

    The frame of a single delivery is returned with its shape, so that it is not created again. A delivery without its
    key has no such columns: it is rejected later, whatever else it has.

    Raises:
        _Unreadable: The delivery cannot be read.
    """
    first, source = members[0], dimension.source(members[0].batch.source)
    with _translate_read_errors("UNREADABLE_DELIVERY"):
        undeclared = partial(undeclared_columns, source=source, channel=first.channel, dimension=dimension)
        frame, reserved = shape.frame or _frame(spark, members[:1], shape, undeclared, dimension)
        events = unfold_events(frame) if first.channel.format == "debezium" else frame
        fields = [field for field in events.schema.fields if field.name not in (FILE, ROW_ORDER, *ADDED)]
    shape = replace(shape, frame=(frame, reserved)) if len(members) == 1 else shape
    if not has_key(fields, source, dimension):
        return shape, {}
    types = mirrored_columns(fields, source, first.channel, dimension)
    is_of_pandas = hasattr(first.delivery.frame, "iloc")
    return shape, with_missing_whole_numbers(types, dimension) if is_of_pandas else types


def _grouping(spark: SparkSession, shape: _Shape, dimension: Dimension) -> Callable[[Sequence[PendingDelivery]], Group]:
    return lambda members: _group(spark, members, shape, dimension)


def _group(
    spark: SparkSession,
    members: Sequence[PendingDelivery],
    shape: _Shape,
    dimension: Dimension,
    *,
    is_guarded: bool = False,
) -> Group:
    """Return deliveries of the same columns as one frame of change records.

    With `is_guarded`, a row for which an expression fails is a bad row; otherwise it is an error of Spark.

    Raises:
        _Unreadable: They cannot be read as declared.
    """
    first = members[0]
    source = dimension.source(first.batch.source)
    with _translate_read_errors("UNREADABLE_DELIVERY"):
        undeclared = partial(undeclared_columns, source=source, channel=first.channel, dimension=dimension)
        frame, reserved = shape.frame or _frame(spark, members, shape, undeclared, dimension)
        owners = _owners(frame, members) if len(members) > 1 else None
        fields = [field for field in frame.schema.fields if field.name not in (FILE, ROW_ORDER)]
        if _may_lack_columns(first) and all(field.name in ADDED for field in fields):
            if _has_no_rows(spark, frame, members):
                mapping = _empty_mapping(source, dimension)
                return _with_column_mapping(members, _no_rows(spark, dimension), mapping, shape)
            declared = _declared_columns(source, first.channel, dimension)
            has_lines = bool(declared) and LINE in frame.columns
            if has_lines and frame.where(F.col(LINE).isNull()).isEmpty():  # each line is a bad row
                return _group(
                    spark, members, replace(shape, fields=declared, frame=None), dimension, is_guarded=is_guarded
                )
        if first.channel.format == "debezium":
            frame = unfold_events(frame)
            fields = [field for field in frame.schema.fields if field.name not in (FILE, ROW_ORDER)]
    _check_unread("RESERVED_COLUMN", reserved, source, first.channel, dimension)
    if shape.layout is not None:
        repeated = repeated_columns(first.channel, shape.layout)
        _check_unread("DUPLICATE_COLUMN", repeated, source, first.channel, dimension)
    tags = [(delivery.delivery, delivery.batch, delivery.row_tag) for delivery in members]
    with _translate_read_errors("COLUMN_TYPE"):
        frame = with_batch_columns(frame, tags, owners).drop(FILE)
        frame = with_readable_columns(frame, fields, source, first.channel)
        frame, fields, expressions = _analyzed(frame, fields, source, first.channel, dimension)
        if names := times_in_utc(frame, source, first.channel, dimension, expressions):
            raise _Unreadable("EXPRESSION_TIME_ZONE", columns=join_names(names), zone=source.timezone)
    columns = map_columns(fields, source, first.channel, dimension, expressions, (*shape.unread, *reserved))
    if columns.missing:
        raise _missing_columns(spark, members, columns, source)
    with _translate_read_errors("COLUMN_TYPE"):
        frame = with_nan_as_declared(frame, first.delivery.frame, columns, dimension)
        frame = with_content_hash(frame, columns)
        if is_guarded:
            frame, columns = with_guarded_expressions(frame, columns, first.channel)
        rows = conform(frame, columns, source, first.channel, dimension)
    return _with_column_mapping(members, rows, columns, shape)


def _owners(frame: DataFrame, members: Sequence[PendingDelivery]) -> dict[str, int]:
    """Return the index of the member that each value of `_scd_file` belongs to: a file, or a partition of a frame."""
    if members[0].delivery.frame is not None:
        return {str(delivery.delivery.partition): index for index, delivery in enumerate(members)}
    indexes = {normalize_path(str(delivery.delivery.path)): index for index, delivery in enumerate(members)}
    paths = {path: path for path in indexes}
    owners = {uri: owning_path(uri, paths) for uri in map(normalize_uri, frame.inputFiles())}
    return {uri: indexes[path] for uri, path in owners.items() if path is not None}


def _analyzed(
    frame: DataFrame, fields: list[StructField], source: Source, channel: Snapshot | Feed, dimension: Dimension
) -> tuple[DataFrame, list[StructField], AnalyzedExpressions]:
    """Return the frame, its columns, and the analyzed expressions; fields that are null in all rows may be objects.

    Raises:
        AnalysisException: An expression is invalid.
    """
    try:
        return frame, fields, analyze_expressions(frame, source, channel, dimension)
    except AnalysisException as error:
        row_fields = RowFields.from_columns(fields)
        texts = [f.name for f in fields if isinstance(f.dataType, StringType) and row_fields.lacks(f.name)]
        types = objects_of_nulls(frame, texts, error, source, channel, dimension)
        if not types:
            raise
    frame = frame.withColumns({name: F.lit(None).cast(each) for name, each in types.items()})
    fields = [StructField(f.name, types.get(f.name, f.dataType)) for f in fields]
    return frame, fields, analyze_expressions(frame, source, channel, dimension)


def _declared_columns(source: Source, channel: Snapshot | Feed, dimension: Dimension) -> tuple[StructField, ...]:
    """Return the columns that the declaration names, as text."""
    attributes = [a.name for a in dimension.source_attributes(source.name) if a.is_delivered]
    read = [source.column(name).from_[:1] for name in (*dimension.delivered_key_names, *attributes)]
    names = [*(name for each in read for name in each), *(name.partition(".")[0] for name in channel.column_names)]
    return tuple(StructField(name, StringType()) for name in {name.casefold(): name for name in names}.values())


def _missing_columns(
    spark: SparkSession, members: Sequence[PendingDelivery], columns: ColumnMapping, source: Source
) -> _Unreadable:
    """Return the error of deliveries that lack columns, for a single one with those that are inside of others."""
    first, fields = members[0], columns.fields
    if len(members) == 1 and first.channel.is_json and first.is_read_by_path:
        with suppress(PySparkException, Py4JJavaError):  # the files have been read once; only the hint needs types
            paths, names = [str(first.delivery.path)], [field.name for field in fields]
            types = nested_columns(spark, first.channel, paths, names)
            fields = tuple(StructField(field.name, types.get(field.name, field.dataType)) for field in fields)
    file_format = first.channel.format if first.delivery.frame is None else None
    return _Unreadable(
        "COLUMN_MISSING",
        missing=", ".join(columns.missing.values()),
        existing=describe_existing_columns(columns, file_format),
        nested=nested_columns_fix(list(columns.missing), fields, source, first.channel),
    )


def _with_column_mapping(
    members: Sequence[PendingDelivery], rows: DataFrame, columns: ColumnMapping, shape: _Shape
) -> Group:
    provided: dict[str, Any] = {"columns": columns.provided, "sparse_columns": columns.sparse, "cursor": shape.cursor}
    described = [replace(d.batch, **provided) for d in members]
    deliveries = zip(members, described, strict=True)
    return Group(rows, tuple(replace(d, column_mapping=columns, batch=batch) for d, batch in deliveries), shape)


def _may_lack_columns(delivery: PendingDelivery) -> bool:
    """Return whether a delivery without rows and columns is valid: only rows name the columns in JSON.

    An empty frame is valid only for a feed: as a snapshot it would delete every entity.
    """
    if delivery.delivery.frame is not None:
        return isinstance(delivery.channel, Feed)
    return delivery.channel.is_json


def _has_no_rows(spark: SparkSession, frame: DataFrame, members: Sequence[PendingDelivery]) -> bool:
    """Return whether deliveries without columns have no rows, or only texts `null` that the channel excludes."""
    if frame.isEmpty():
        return True
    channel, paths = members[0].channel, [str(member.delivery.path) for member in members]
    return bool(channel.rows) and members[0].is_read_by_path and has_only_nulls(spark, channel, paths)


def _empty_mapping(source: Source, dimension: Dimension) -> ColumnMapping:
    """Return how a delivery is read that has no row, and whose columns only rows name: no column is missing.

    An empty feed changes nothing. An empty snapshot asserts that no entity exists, which the retire guard checks.
    """
    provided = [attribute.name for attribute in dimension.source_attributes(source.name) if attribute.is_delivered]
    return ColumnMapping((), tuple(provided), {}, ())


@contextmanager
def _translate_read_errors(code: str, path: str = "") -> Iterator[None]:
    """Turn an error of Spark or Arrow about the deliveries into a rejection with this code, which names the path.

    Errors that Spark does not name, or that are of the session, of memory or of Spark itself, are raised as they are.

    Raises:
        _Unreadable: The deliveries' schema or rows are the cause.
    """
    prefix = f"{path}: " if path else ""
    try:
        yield
    except (AnalysisException, pyarrow.ArrowException, OSError) as error:
        # Spark suggests columns of the delivery, whose names may be values.
        reason = first_line(error).partition(" Did you mean")[0]
        is_missing = isinstance(error, FileNotFoundError) or _MISSING_FILES.search(reason)
        raise _Unreadable("DELIVERY_MISSING" if is_missing else code, reason=f"{prefix}{reason}") from error
    except (PySparkException, Py4JJavaError) as error:
        # An embedded session raises some errors as those of Java, behind a preamble.
        message = error.java_exception.getMessage() if isinstance(error, Py4JJavaError) else str(error)
        named = _NAMED_ERROR.match(message or "")
        state = named["state"] if named else ""
        if state in _SERVER_STATES and not isinstance(error, IllegalArgumentException):
            raise
        if named and named["name"].startswith(_READER_ERRORS):
            raise _Unreadable(code, reason=f"{prefix}Spark's reader fails with {named['name']}") from None
        if named and state in _VALUE_STATES:
            # Spark's message repeats the value, which may be a personal one (S31).
            raise _Unreadable("EXPRESSION_FAILED", error=named["name"]) from None
        is_missing = _MISSING_FILES.search(message or "")
        reason = first_line(Exception(message))
        raise _Unreadable("DELIVERY_MISSING" if is_missing else code, reason=f"{prefix}{reason}") from error


def _shape(spark: SparkSession, delivery: PendingDelivery, dimension: Dimension, layout: CsvLayout | None) -> _Shape:
    """Return what the delivery has in common with those that one frame can read: the channel, and its columns.

    The file of a row identifies its delivery. So a file or a folder that is delivered twice is read twice, each time by
    a separate frame. A pattern is read alone: it does not name its files. So is a folder whose files have different
    columns, or that has folders.

    Raises:
        _Unreadable: The file cannot be read.
    """
    key = _key(delivery)
    path = str(delivery.delivery.path)
    alone = (str(delivery.number),) if Path(path).is_dir() or is_pattern(path) else ()
    with _translate_read_errors("UNREADABLE_DELIVERY", path):
        if layout is not None:
            if layout.problem:
                raise _Unreadable("UNREADABLE_DELIVERY", reason=layout.problem)
            return _Shape((*key, *layout.key, *alone), layout=layout)
        if delivery.channel.is_json:
            fields, unread = _json_columns(spark, delivery, path, dimension)
            return _Shape((*key, StructType(fields).json(), *unread, *alone), fields=tuple(fields), unread=unread)
        return _parquet_shape(spark, delivery, path, alone, dimension)


def _shape_of_one(spark: SparkSession, delivery: PendingDelivery, dimension: Dimension, tables: _Tables) -> _Shape:
    """Return the shape of a frame, or of a version or a partition of a table.

    Partitions of one frame are read together; all others have a shape that no other delivery has.

    Args:
        spark: The session.
        delivery: The delivery.
        dimension: The declaration.
        tables: The shapes of the Parquet tables of earlier deliveries, to which this function adds.

    Raises:
        _Unreadable: A declared column of a Parquet table cannot be read.
    """
    key, requested, channel = (*_key(delivery), str(delivery.number)), delivery.delivery, delivery.channel
    if requested.cursor is not None:
        return _cursor_shape(spark, delivery, _Shape(key), dimension)
    if requested.frame is not None and requested.partition is not None:
        return _Shape((*_key(delivery), "frame", str(id(requested.frame))))
    if requested.partition is None or channel.format != "parquet":
        return _Shape(key)
    path = str(requested.path or channel.path)
    if path not in tables:
        with _translate_read_errors("UNREADABLE_DELIVERY", path):
            tables[path] = _parquet_shape(spark, delivery, path, ("table",), dimension)
    return replace(tables[path], key=key)


def _cursor_shape(spark: SparkSession, delivery: PendingDelivery, shape: _Shape, dimension: Dimension) -> _Shape:
    """Return the shape with the rows that a cursor selects, and its state after them (S39).

    Raises:
        _Unreadable: No row is new, or the rows cannot be read.
    """
    channel, loaded, source = delivery.channel, delivery.delivery.cursor, dimension.source(delivery.batch.source)
    assert isinstance(channel, Feed)
    assert loaded is not None
    with _translate_read_errors("UNREADABLE_DELIVERY"):
        undeclared = partial(undeclared_columns, source=source, channel=channel, dimension=dimension)
        frame, reserved = _frame(spark, [delivery], shape, undeclared, dimension)
        try:
            selected = new_rows(frame, channel, loaded)
        except CursorProblem as problem:
            raise _Unreadable(problem.code, **problem.details) from None
    if selected is None:
        raise _Unreadable(_NO_NEW_ROWS)
    rows, state = selected
    return replace(shape, frame=(rows, reserved), cursor=state)


def _key(delivery: PendingDelivery) -> tuple[str, ...]:
    return (delivery.batch.source, delivery.batch.channel, str(delivery.duplicate))


def _json_columns(
    spark: SparkSession, delivery: PendingDelivery, path: str, dimension: Dimension
) -> tuple[list[StructField], tuple[str, ...]]:
    """Return the columns of JSON files, and the names of fields that are not read because they are ambiguous.

    An object or array is text, unless an expression reads it.

    Raises:
        _Unreadable: A field that the declaration uses is ambiguous.
    """
    channel, source = delivery.channel, dimension.source(delivery.batch.source)
    fields = json_fields(spark, channel, [path])
    keys = [field.name.casefold() for field in fields]
    reserved = _reserved([field.name for field in fields])
    repeated = [f.name for f, key in zip(fields, keys, strict=True) if f.is_repeated or keys.count(key) > 1]
    _check_unread("RESERVED_COLUMN", reserved, source, channel, dimension)
    _check_unread("DUPLICATE_COLUMN", repeated, source, channel, dimension)
    unread = tuple(dict.fromkeys((*reserved, *repeated)))
    readable = [field for field in fields if field.name not in unread]
    is_event = channel.format == "debezium"
    names = names_in_expressions(source, channel)
    nested = [f.name for f in readable if f.is_nested and (is_event or f.name.lower() in names)]
    types = nested_columns(spark, channel, [path], nested) if nested else {}
    return [StructField(f.name, types.get(f.name, StringType())) for f in readable], unread


def _check_unread(
    code: str, names: Sequence[str], source: Source, channel: Snapshot | Feed, dimension: Dimension
) -> None:
    """Check that the declaration does not use columns that cannot be read.

    Raises:
        _Unreadable: It does; `code` says why they cannot be read.
    """
    undeclared = undeclared_columns(names, source, channel, dimension)
    if used := [name for name in names if name not in undeclared]:
        raise _Unreadable(code, columns=join_names(used))


def _parquet_shape(
    spark: SparkSession, delivery: PendingDelivery, path: str, alone: tuple[str, ...], dimension: Dimension
) -> _Shape:
    """Return what a delivery of Parquet files, or a table of them, has in common with others.

    The cost is that of reading the metadata of each file.

    Raises:
        _Unreadable: Columns that the declaration uses cannot be read.
    """
    key, channel, source = _key(delivery), delivery.channel, dimension.source(delivery.batch.source)
    files = local_files(Path(path)) if channel.format == "parquet" else []
    columns = parquet_columns(files, partial(_reads_nanoseconds, spark))
    merged = None
    if not columns.problems:
        texts = {json.dumps([[field.name, str(field.type)] for field in schema]) for schema in columns.schemas}
        is_flat = all(file.parent in (Path(path), Path(path).parent) for file in files)
        if len(texts) == 1 and is_flat:
            return _Shape((*key, *texts))
        if not alone:
            return _Shape((*key, read_path(spark, channel, [path]).schema.json()))
        merged = merged_fields(spark, channel, path)
    # Spark reads the columns of one file if it cannot merge those of all, or must not.
    conflicting = {} if merged or channel.reader_options.get("mergeSchema") == "false" else columns.conflicting
    problems = {**conflicting, **columns.problems}
    undeclared = undeclared_columns(list(problems), source, channel, dimension)
    _check_readable({name: problem for name, problem in columns.problems.items() if name not in undeclared})
    if not undeclared:
        return _Shape((*key, *alone), fields=merged)
    fields, without_type = columns.fields(undeclared)
    _check_unread("COLUMN_TYPE", without_type, source, channel, dimension)
    unread = (*undeclared, *without_type)
    return _Shape((*key, StructType(list(fields)).json(), *unread, *alone), fields=fields, unread=unread)


def _reads_nanoseconds(spark: SparkSession) -> bool:
    """Return whether the session reads times in nanoseconds as numbers."""
    return str(spark.conf.get(_NANOSECONDS_AS_LONG, "false")).lower() == "true"


def _check_readable(problems: Mapping[str, str]) -> None:
    """Check that no column of Parquet files has a problem.

    Raises:
        _Unreadable: Some have.
    """
    by_kind = {kind: [name for name, each in problems.items() if each == kind] for kind in (NANOSECONDS, REPEATED)}
    if by_kind[NANOSECONDS]:
        raise _Unreadable("NANOSECONDS", columns=join_names(by_kind[NANOSECONDS]))
    if by_kind[REPEATED]:
        raise _Unreadable("DUPLICATE_COLUMN", columns=join_names(by_kind[REPEATED]))
    if problems:
        raise _Unreadable("COLUMN_TYPE", reason=f"Spark does not read {describe_problems(problems)}")


def _frame(
    spark: SparkSession,
    members: Sequence[PendingDelivery],
    shape: _Shape,
    undeclared: _Undeclared,
    dimension: Dimension,
) -> tuple[DataFrame, tuple[str, ...]]:
    """Return the rows of the members as delivered, and the delivered columns with reserved names, which they lack.

    `_scd_file` has the file of each row, or its partition in a frame, if there are several members.

    If the first or the last row of a position wins (S5, S38), `_scd_row_order` has the position of each row in its
    file.

    Raises:
        _Unreadable: The order of the rows is not the same at each read.
    """
    first = members[0]
    is_in_order = first.channel.has_row_order or (dimension.is_deduplicated and _has_fixed_order(first))
    if first.delivery.connection is not None and first.channel.jdbc is not None:
        try:
            return _without_reserved(read_database(spark, first.channel.jdbc, first.delivery.connection))
        except DatabaseProblem as problem:
            raise _Unreadable(problem.code, **problem.details) from None
    if first.delivery.frame is not None:
        reserved = _reserved(column_names(first.delivery.frame))
        frame, unread = _to_spark_frame(spark, first.delivery.frame, undeclared, is_in_order=is_in_order)
        if first.delivery.partition is not None:
            partition = partition_column(first.channel)
            frame = frame.where(partition.isin([delivery.delivery.partition for delivery in members]))
            frame = frame.withColumn(FILE, partition)
        return frame, (*reserved, *unread)
    if not first.is_read_by_path:
        table = read_table(spark, first.channel, first.delivery, changes_only=first.changes_only, fields=shape.fields)
        return _without_reserved(table)
    if is_in_order and Path(str(first.delivery.path)).is_dir():
        raise _Unreadable("NO_ROW_ORDER", input="a folder of files")
    paths = [str(delivery.delivery.path) for delivery in members]
    frame = read_path(spark, first.channel, paths, layout=shape.layout, fields=shape.fields)
    if is_in_order and _has_several_files(frame, paths):
        raise _Unreadable("NO_ROW_ORDER", input="a path of several files")
    if first.channel.format not in ("parquet", "delta") and FILE in frame.columns:
        reserved = reserved_columns(first.channel, shape.layout) if shape.layout is not None else ()
        return (frame if is_in_order else frame.drop(ROW_ORDER)), reserved
    frame, reserved = _without_reserved(frame)
    if len(members) == 1 and not is_in_order:
        return frame, reserved
    order = [row_order_column().alias(ROW_ORDER)] if is_in_order else []
    return frame.select("*", file_column(), *order), reserved


def _has_fixed_order(delivery: PendingDelivery) -> bool:
    """Return whether the rows have the same order at each read: those of a file, or of a frame that is not Spark's."""
    described = delivery.delivery
    if described.frame is not None:
        return described.partition is None and not hasattr(described.frame, "sparkSession")
    return delivery.is_read_by_path and Path(str(described.path)).is_file()


def _reserved(names: Sequence[str]) -> tuple[str, ...]:
    return tuple(name for name in names if name.lower() in ADDED)


def _without_reserved(frame: DataFrame) -> tuple[DataFrame, tuple[str, ...]]:
    """Return a frame without columns of reserved names, and these names; its `_metadata` is then that of Spark."""
    reserved = _reserved(frame.columns)
    return (frame.drop(*reserved) if reserved else frame), reserved


def _has_several_files(frame: DataFrame, paths: Sequence[str]) -> bool:
    """Return whether one of the paths is read from several files: a pattern, or a folder in an object store."""
    return not all(Path(path).is_file() for path in paths) and len(frame.inputFiles()) > len(set(paths))


def _to_spark_frame(
    spark: SparkSession, frame: Any, undeclared: _Undeclared, *, is_in_order: bool
) -> tuple[DataFrame, tuple[str, ...]]:
    """Return a DataFrame or a pyarrow Table as a Spark DataFrame, and its undeclared columns that cannot be read.

    Args:
        spark: The session.
        frame: The frame.
        undeclared: Returns those of some columns that the declaration does not use.
        is_in_order: Whether to add the order of its rows.

    Raises:
        _Unreadable: Spark cannot have its declared columns.
    """
    names = column_names(frame)
    folded = [name.casefold() for name in names]
    repeated = [name for name, key in zip(names, folded, strict=True) if folded.count(key) > 1]
    unread = undeclared(repeated)
    if used := [name for name in repeated if name not in unread]:
        raise _Unreadable("DUPLICATE_COLUMN", columns=join_names(used))
    if hasattr(frame, "sparkSession"):
        if is_in_order:
            raise _Unreadable("NO_ROW_ORDER", input="a Spark DataFrame")
        return _without_reserved(frame.drop(*unread) if unread else frame)[0], unread
    table, unconvertible = _to_arrow(without_columns(frame, unread) if unread else frame, undeclared)
    table = table.drop_columns([name for name in _reserved(names) if name in table.column_names])
    unsupported = unsupported_types(table)
    dropped = undeclared(list(unsupported))
    if required := {name: data_type for name, data_type in unsupported.items() if name not in dropped}:
        raise _Unreadable("COLUMN_TYPE", reason=f"Spark does not read {describe_problems(required)}")
    table = table.drop_columns(list(dropped))
    try:
        rows = _in_row_order(spark, table) if is_in_order else arrow_frame(spark, table)
    except PySparkTypeError as error:
        reason = f"Spark does not support the type of a column: {first_line(error)}"
        raise _Unreadable("COLUMN_TYPE", reason=reason) from error
    return rows, (*unread, *unconvertible, *dropped)


def _to_arrow(frame: Any, undeclared: _Undeclared) -> tuple[pyarrow.Table, tuple[str, ...]]:
    """Return a frame as an Arrow table, and the undeclared columns that cannot be in it.

    Raises:
        _Unreadable: A declared column cannot be converted. The messages of pandas and Arrow repeat values, so they are
            not shown (S31).
    """
    try:
        return to_arrow(frame), ()
    except (pyarrow.ArrowException, ArithmeticError, TypeError, ValueError) as error:
        unread = tuple(name for name in undeclared(column_names(frame)) if not is_convertible(frame, name))
        if not unread:
            named = _ARROW_COLUMN.fullmatch(str(error.args[-1])) if len(error.args) > 1 else None
            column = f"column {named['name']}" if named else "a column"
            reason = f"the values of {column} have several types ({type(error).__name__})"
            raise _Unreadable("COLUMN_TYPE", reason=reason) from None
    table, others = _to_arrow(without_columns(frame, unread), undeclared)
    return table, (*unread, *others)


def _in_row_order(spark: SparkSession, table: pyarrow.Table) -> DataFrame:
    numbers = pyarrow.array(range(table.num_rows), pyarrow.int64())
    frame = arrow_frame(spark, table.append_column(ROW_ORDER, numbers))
    block = F.lit(0).cast("bigint").alias("block")
    return frame.withColumn(ROW_ORDER, F.struct(block, F.col(ROW_ORDER).alias("row")))


def _no_rows(spark: SparkSession, dimension: Dimension) -> DataFrame:
    """Return an empty frame with the columns of `conform`."""
    types = {name: f"struct<v:{data_type.ddl()}>" for name, data_type in attribute_types(dimension).items()}
    keys = {key.name: key.type for key in dimension.business_key}
    columns = {**keys, **CHANGE_RECORD_TYPES, **types, HASH: "bigint", KEY_READABLE: "boolean", NULLED: "int"}
    columns |= {ROW_ORDER: ROW_ORDER_TYPE, TOTALS: TOTALS_TYPE}
    return empty_frame(spark, columns)
