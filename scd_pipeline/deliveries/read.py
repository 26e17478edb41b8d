"""Deliveries as rows: those of one channel with the same columns are read together, each row marked with its batch.

What cannot be read as it is declared is told by its delivery, and keeps no other one out.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

import pyarrow.parquet
from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
from pyspark.errors import AnalysisException, IllegalArgumentException, PySparkException, PySparkTypeError
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructField, StructType

from scd_pipeline.columns import CHANGE_RECORD_TYPES, attribute_types
from scd_pipeline.declaration import Dimension, Feed, Snapshot, Source
from scd_pipeline.declaration.names import listed
from scd_pipeline.deliveries.arrow import column_names, to_arrow
from scd_pipeline.deliveries.column_mapping import ColumnMapping, map_columns
from scd_pipeline.deliveries.conform import conform, with_content_hash
from scd_pipeline.deliveries.csv_files import CsvLayout, scan_csv
from scd_pipeline.deliveries.delivery import Delivery
from scd_pipeline.deliveries.expressions import analyze_expressions
from scd_pipeline.deliveries.json_files import infer_json_fields
from scd_pipeline.deliveries.paths import file_column, normalize_uri, row_order_column
from scd_pipeline.deliveries.readers import read_path, read_table, with_batch_columns
from scd_pipeline.deliveries.row_columns import FILE, HASH, KEY_READABLE, ROW_ORDER, ROW_ORDER_TYPE
from scd_pipeline.errors import BatchRejected, first_line
from scd_pipeline.frames import checkpoint, empty_frame, union_all
from scd_pipeline.history.batch import Batch

_Item = TypeVar("_Item")
_OTHER_TYPE = ("other type", "a column does not fit the declaration")
_MISSING = ("missing", "its files are gone")
_NO_VERSION = "nothing is loaded for it; keep the source's versions for longer than the time between two loads"
# How Spark and Delta name what is no longer there, as after VACUUM.
_GONE = re.compile(
    r"\[(FAILED_READ_FILE\.FILE_NOT_EXIST|PATH_NOT_FOUND|DELTA_VERSION_NOT_FOUND|DELTA_TRUNCATED_TRANSACTION_LOG"
    r"|DELTA_(LOG_)?FILE_NOT_FOUND|DELTA_UNSUPPORTED_TIME_TRAVEL_BEYOND_DELETED_FILE_RETENTION_DURATION)\b"
)
# What Spark names comes with the class of its SQLSTATE.
_NAMED = re.compile(r"\s*\[(?P<name>[A-Z0-9_.]+)\].*?SQLSTATE: (?P<state>\w\w)", re.DOTALL)
# What pyarrow adds to an error of a column of a pandas frame; before it is what it says of the value.
_OF_A_COLUMN = re.compile(r"Conversion failed for column (?P<name>.*) with type .*", re.DOTALL)
_OF_A_VALUE = ("22", "P0")
_OF_THE_SERVER = ("", "08", "53", "57", "58", "HY", "XX")


@dataclass(frozen=True, slots=True)
class BatchResult:
    """What became of one delivery: accepted, unchanged (a retry), superseded (a higher revision stands), missing (a
    version of a table whose files are gone) or stopped.

    Of an accepted one: rows read and put aside; entities new, changed and closed, and versions opened and closed, each
    as its own source had stated them just before.
    """

    batch_id: str
    source: str
    delivery: str
    outcome: str
    rows: int = 0
    bad_rows: int = 0
    new: int = 0
    changed: int = 0
    closed: int = 0
    versions_opened: int = 0
    versions_closed: int = 0
    undeclared: tuple[str, ...] = ()
    rule: str = ""
    error: str = ""
    remedy: str = ""

    def __str__(self) -> str:
        text = f"{self.batch_id}: {self.outcome}"
        if self.outcome == "accepted":
            text += f", {self.rows} rows: {self.new} new, {self.changed} changed, {self.closed} closed"
            text += f", {self.bad_rows} to the quarantine" if self.bad_rows else ""
        if self.undeclared:
            text += f"; columns that nobody declared: {', '.join(self.undeclared)}"
        return f"{text} ({self.rule}): {self.error}; {self.remedy}" if self.rule else text


@dataclass(frozen=True, slots=True)
class Entry:
    """A delivery on its way in."""

    delivery: Delivery
    batch: Batch
    channel: Snapshot | Feed
    reading: ColumnMapping | None = None
    repeated: int = 0
    bad_reason: str = ""
    time: int = 0

    @property
    def mark(self) -> str:
        """What tells its rows from those of other entries: the batch's id, unless one run is given it again."""
        return f"{self.batch.id}#{self.time}" if self.time else self.batch.id

    def result(self, outcome: str, stop: BatchRejected | None = None) -> BatchResult:
        b = self.batch
        undeclared = self.reading.undeclared if self.reading else ()
        told = BatchResult(
            b.id,
            b.source,
            b.delivery,
            outcome,
            b.rows,
            b.bad_rows,
            b.new,
            b.changed,
            b.closed,
            undeclared=undeclared,
        )
        if stop is None:
            return told
        return replace(told, rule=stop.rule, error=stop.wrong, remedy=stop.remedy)


def read_all(
    spark: SparkSession, entries: Sequence[Entry], results: dict[int, BatchResult], dimension: Dimension
) -> tuple[DataFrame, list[tuple[int, Entry]]]:
    """The conformed rows of the deliveries, read once, and the entries that could be read, with their numbers.

    Those that are withdrawn, or stand in `results` already, are left out; one that cannot be read is put there.
    """
    settled_parts = _settled(spark, _groups(spark, entries, results, dimension), results, dimension)
    frames = [rows for rows, _ in settled_parts] or [_no_rows(spark, dimension)]
    return union_all(frames), [entry for _, groups in settled_parts for group in groups for entry in group.entries]


@dataclass(frozen=True, slots=True)
class _Shape:
    """What deliveries share that one frame can read; `layout` is of CSV files, `fields` of JSON files."""

    key: tuple[str, ...]
    layout: CsvLayout | None = None
    fields: tuple[StructField, ...] | None = None


@dataclass(frozen=True, slots=True)
class _Group:
    """Deliveries of one channel with the same columns, read as one frame."""

    frame: DataFrame
    entries: list[tuple[int, Entry]]
    shape: _Shape


def _groups(
    spark: SparkSession, entries: Sequence[Entry], results: dict[int, BatchResult], dimension: Dimension
) -> list[_Group]:
    """Read the deliveries; one that lacks a column is stopped here, in `results` under its number."""
    members = [(n, e) for n, e in enumerate(entries) if not e.batch.withdrawn and n not in results]
    layout_of = _layouts(spark, members, results)
    together: dict[tuple[str, ...], tuple[_Shape, list[tuple[int, Entry]]]] = {}
    for number, entry in members:
        if number in results:
            continue
        try:
            shape = _shape(spark, number, entry, layout_of.get(number))
            together.setdefault(shape.key, (shape, []))[1].append((number, entry))
        except _Unfit as unfit:
            _stop([(number, entry)], unfit, results)
    return [group for shape, same in together.values() for group in _grouped(spark, same, shape, results, dimension)]


def _layouts(
    spark: SparkSession, members: Sequence[tuple[int, Entry]], results: dict[int, BatchResult]
) -> dict[int, CsvLayout]:
    """By their numbers the layouts of CSV deliveries; those of one channel are looked at together."""
    channels: dict[tuple[str, str], list[tuple[int, Entry]]] = {}
    for number, entry in members:
        if entry.channel.format == "csv" and _is_read_by_path(entry):
            channels.setdefault((entry.batch.source, entry.batch.channel), []).append((number, entry))
    return {n: at for same in channels.values() for n, at in _layouts_of(spark, same, results).items()}


def _layouts_of(
    spark: SparkSession, members: Sequence[tuple[int, Entry]], results: dict[int, BatchResult]
) -> dict[int, CsvLayout]:
    """Where that fails each half is looked at by itself, down to the deliveries that it fails for."""
    try:
        with _unfit("unreadable", "it cannot be read"):
            paths = sorted({str(entry.delivery.path) for _, entry in members})
            by_path = scan_csv(spark, members[0][1].channel, paths)
            return {number: by_path[str(entry.delivery.path)] for number, entry in members}
    except _Unfit as unfit:
        if len(members) == 1:
            _stop(members, unfit, results)
            return {}
        return {n: at for half in _halves(members) for n, at in _layouts_of(spark, half, results).items()}


def _grouped(
    spark: SparkSession,
    members: Sequence[tuple[int, Entry]],
    shape: _Shape,
    results: dict[int, BatchResult],
    dimension: Dimension,
) -> list[_Group]:
    """The members as one group. Where that fails each half is asked for itself; the unfit ones are stopped."""
    try:
        return [_group(spark, members, shape, dimension)]
    except _Unfit as unfit:
        if len(members) == 1:
            _stop(members, unfit, results)
            return []
        halves = _halves(members)
        return [group for half in halves for group in _grouped(spark, half, shape, results, dimension)]


def _stop(members: Sequence[tuple[int, Entry]], unfit: _Unfit, results: dict[int, BatchResult]) -> None:
    """Reject the members; a version of a table whose files are gone is missing for good, and fails no load."""
    for number, entry in members:
        is_past = unfit.rule == _MISSING[0] and entry.delivery.table_version is not None
        outcome = "missing" if is_past else "rejected"
        remedy = _NO_VERSION if is_past else ""
        results[number] = entry.result(outcome, BatchRejected(entry.batch.id, unfit.rule, str(unfit), remedy))


def _settled(
    spark: SparkSession, groups: Sequence[_Group], results: dict[int, BatchResult], dimension: Dimension
) -> list[tuple[DataFrame, list[_Group]]]:
    """The conformed rows of the groups, each read once, beside the groups that they are of.

    All are read together. Where that fails each half is asked for itself, down to the deliveries that it fails for:
    those are stopped. Spark may refuse a cast, an expression or a file only here, where its rows are asked for.
    """
    if not groups:
        return []
    try:
        with _unfit("unreadable", "its rows cannot be read"):
            return [(checkpoint(union_all([group.frame for group in groups])), list(groups))]
    except _Unfit as unfit:
        members = groups[0].entries
        if len(groups) > 1:
            halves = [list(half) for half in _halves(groups)]
        elif not _fits(groups[0], results):
            return []
        elif len(members) > 1:
            shape = groups[0].shape
            halves = [_grouped(spark, half, shape, results, dimension) for half in _halves(members)]
        else:
            _stop(members, unfit, results)
            return []
    return [part for half in halves for part in _settled(spark, half, results, dimension)]


def _halves(items: Sequence[_Item]) -> tuple[Sequence[_Item], Sequence[_Item]]:
    middle = len(items) // 2
    return items[:middle], items[middle:]


def _fits(group: _Group, results: dict[int, BatchResult]) -> bool:
    try:
        with _unfit(*_OTHER_TYPE):
            return bool(group.frame.schema)
    except _Unfit as unfit:
        _stop(group.entries, unfit, results)
        return False


class _Unfit(Exception):
    """Deliveries that cannot be read as they are declared, by which rule."""

    def __init__(self, rule: str, wrong: str) -> None:
        self.rule = rule
        super().__init__(wrong)


def _group(spark: SparkSession, members: Sequence[tuple[int, Entry]], shape: _Shape, dimension: Dimension) -> _Group:
    """Deliveries of the same columns as one frame.  Errors: _Unfit."""
    first = members[0][1]
    source = dimension.source(first.batch.source)
    with _unfit("unreadable", "it cannot be read"):
        frame = _frame(spark, first, [entry for _, entry in members], shape)
        files = [normalize_uri(uri) for uri in frame.inputFiles()] if len(members) > 1 else None
        fields = [field for field in frame.schema.fields if field.name not in (FILE, ROW_ORDER)]
        if not fields and _is_of_json(first) and frame.isEmpty():
            return _entered(members, _no_rows(spark, dimension), _of_no_rows(source, dimension), shape)
    marks = [(entry.delivery, entry.batch, entry.mark) for _, entry in members]
    with _unfit(*_OTHER_TYPE):
        frame = with_batch_columns(frame, marks, files).drop(FILE)
        expressions = analyze_expressions(frame, source, first.channel, dimension)
    read = map_columns(fields, source, first.channel, dimension, expressions)
    if read.missing:
        raise _Unfit("missing column", f"it lacks {', '.join(read.missing)}; it has {existing_columns(read)}")
    with _unfit(*_OTHER_TYPE):
        conformed = conform(with_content_hash(frame, read), read, source, first.channel, dimension)
    return _entered(members, conformed, read, shape)


def existing_columns(read: ColumnMapping) -> str:
    """Name the columns whose names the declaration has too; only count the others.

    The names of the others may be values: the first row of a file without a header (S31).
    """
    missing = {_folded(name) for name in read.missing}
    names = [field.name for field in read.fields]
    shown = [name for name in names if name not in read.undeclared or _folded(name) in missing]
    others = len(names) - len(shown)
    if not others:
        return ", ".join(names) or "none"
    if not shown:
        return f"none of the declared columns and {others} others; a file of CSV needs a header"
    return f"{', '.join(shown)} and {others} more"


def _folded(name: str) -> str:
    return re.sub(r"[\W_]", "", name).casefold()


def _entered(members: Sequence[tuple[int, Entry]], conformed: DataFrame, read: ColumnMapping, shape: _Shape) -> _Group:
    entered = [(n, replace(e, reading=read, batch=replace(e.batch, columns=read.provided))) for n, e in members]
    return _Group(conformed, entered, shape)


def _is_of_json(entry: Entry) -> bool:
    return entry.delivery.frame is None and entry.channel.format == "json"


def _of_no_rows(source: Source, dimension: Dimension) -> ColumnMapping:
    """How JSON without any row is taken: it names columns in its rows alone, so it lacks none.

    A feed says that nothing changed, a snapshot that nobody is there, for whom the retire guard looks.
    """
    provided = [attribute.name for attribute in dimension.attributes_of(source.name) if attribute.is_delivered]
    return ColumnMapping((), tuple(provided), (), ())


@contextmanager
def _unfit(rule: str, wrong: str) -> Iterator[None]:
    """What Spark or Arrow refuses as a fault of the deliveries, by their schema or by their rows.

    What Spark does not name, or lays to the session, to memory or to itself, is none of theirs, and goes on.
    """
    try:
        yield
    except (AnalysisException, pyarrow.ArrowException, OSError) as error:
        # Spark suggests columns of the delivery, whose names may be values.
        told = first_line(error).partition(" Did you mean")[0]
        if isinstance(error, FileNotFoundError) or _GONE.search(told):
            raise _Unfit(_MISSING[0], f"{_MISSING[1]}: {told}") from error
        raise _Unfit(rule, f"{wrong}: {told}") from error
    except (PySparkException, Py4JJavaError) as error:
        # An embedded session gives some errors as those of Java, behind a preamble.
        message = error.java_exception.getMessage() if isinstance(error, Py4JJavaError) else str(error)
        named_as = _NAMED.match(message or "")
        state = named_as["state"] if named_as else ""
        if state in _OF_THE_SERVER and not isinstance(error, IllegalArgumentException):
            raise
        if named_as and state in _OF_A_VALUE:
            # Without what Spark says of the value, which may be a personal one (S31).
            fails = f"an expression of the declaration fails for a row: {named_as['name']}"
            raise _Unfit("expression", fails) from None
        if _GONE.search(message or ""):
            raise _Unfit(_MISSING[0], f"{_MISSING[1]}: {first_line(Exception(message))}") from error
        raise _Unfit(rule, f"{wrong}: {first_line(Exception(message))}") from error


def _is_read_by_path(entry: Entry) -> bool:
    """Whether the delivery is files, whose format tells how they are read; no frame, and no part of a table."""
    delivery = entry.delivery
    by_table = entry.channel.format == "delta" or delivery.partition is not None
    return delivery.frame is None and delivery.path is not None and not by_table


def _shape(spark: SparkSession, number: int, entry: Entry, layout: CsvLayout | None) -> _Shape:
    """What the delivery shares with those that one frame can read: channel, and the columns of their files.

    Rows are told apart by their files. So a file that is given twice is read twice, each time by a frame of its own,
    and so is a folder.
    Errors: _Unfit.
    """
    delivery_key = (entry.batch.source, entry.batch.channel, str(entry.time))
    if not _is_read_by_path(entry):
        return _Shape((*delivery_key, str(number)))
    path = str(entry.delivery.path)
    alone = (str(number),) if Path(path).is_dir() else ()
    with _unfit("unreadable", f"{path} cannot be read"):
        if layout is not None:
            if layout.problem:
                raise _Unfit("unreadable", layout.problem)
            return _Shape((*delivery_key, layout.header, str(layout.is_multi_line), *alone), layout=layout)
        if entry.channel.format == "json":
            fields = tuple(infer_json_fields(spark, entry.channel, [path]))
            return _Shape((*delivery_key, StructType(list(fields)).json(), *alone), fields=fields)
        if alone:
            return _Shape((*delivery_key, *alone))
        if Path(path).is_file():
            schema = pyarrow.parquet.read_schema(path)
            return _Shape((*delivery_key, json.dumps([[f.name, str(f.type)] for f in schema])))
        return _Shape((*delivery_key, read_path(spark, entry.channel, [path]).schema.json()))


def _frame(spark: SparkSession, first: Entry, members: Sequence[Entry], shape: _Shape) -> DataFrame:
    """The rows of the members; a column `_scd_file` tells those of several apart.

    Where the last row decides (S5) the column `_scd_row_order` says where in its file each row is.
    Errors: _Unfit for rows whose order would not be the same at the next read.
    """
    delivery = first.delivery
    is_in_order = first.channel.ties == "last_row"
    if delivery.frame is not None:
        return _handed_in(spark, delivery.frame, is_in_order=is_in_order)
    if not _is_read_by_path(first):
        return read_table(spark, first.channel, delivery)
    if is_in_order and Path(str(delivery.path)).is_dir():
        raise _Unfit("row order", "a folder of files has no order of rows by which the last one could decide")
    paths = [str(entry.delivery.path) for entry in members]
    frame = read_path(spark, first.channel, paths, layout=shape.layout, fields=shape.fields)
    if FILE in frame.columns:
        return frame if is_in_order else frame.drop(ROW_ORDER)
    if len(members) == 1 and not is_in_order:
        return frame
    order = [row_order_column().alias(ROW_ORDER)] if is_in_order else []
    return frame.select("*", file_column(), *order)


def _handed_in(spark: SparkSession, given: Any, *, is_in_order: bool) -> DataFrame:
    """A Spark, pandas or Arrow frame as one of Spark; `is_in_order` adds the order of its rows.

    Errors: _Unfit, which does not say what pandas or Arrow say: they repeat values, maybe personal ones (S31).
    """
    names = column_names(given)
    folded = [name.casefold() for name in names]
    if repeated := [name for name, key in zip(names, folded, strict=True) if folded.count(key) > 1]:
        raise _Unfit("repeated column", f"it has {listed(repeated)}, which are one name: case does not count")
    if hasattr(given, "sparkSession"):
        if is_in_order:
            raise _Unfit("row order", "a Spark frame has no order of rows by which the last one could decide")
        return given  # type: ignore[no-any-return]
    try:
        table = to_arrow(given)
    except (pyarrow.ArrowException, ArithmeticError, TypeError, ValueError) as error:
        told = _OF_A_COLUMN.fullmatch(str(error.args[-1])) if len(error.args) > 1 else None
        where = f"column {told['name']}" if told else "a column"
        raise _Unfit(_OTHER_TYPE[0], f"the values of {where} are not of one type: {type(error).__name__}") from None
    try:
        return _in_row_order(spark, table) if is_in_order else spark.createDataFrame(table)
    except PySparkTypeError as error:
        raise _Unfit(_OTHER_TYPE[0], f"a column is of a type that Spark has not: {first_line(error)}") from error


def _in_row_order(spark: SparkSession, table: pyarrow.Table) -> DataFrame:
    numbers = pyarrow.array(range(table.num_rows), pyarrow.int64())
    frame = spark.createDataFrame(table.append_column(ROW_ORDER, numbers))
    block = F.lit(0).cast("bigint").alias("block")
    return frame.withColumn(ROW_ORDER, F.struct(block, F.col(ROW_ORDER).alias("row")))


def _no_rows(spark: SparkSession, dimension: Dimension) -> DataFrame:
    """A frame of conformed rows without any."""
    types = {name: f"struct<v:{data_type.ddl()}>" for name, data_type in attribute_types(dimension).items()}
    keys = {key.name: key.type for key in dimension.business_key}
    columns = {**keys, **CHANGE_RECORD_TYPES, **types, HASH: "bigint", KEY_READABLE: "boolean"}
    columns[ROW_ORDER] = ROW_ORDER_TYPE
    return empty_frame(spark, columns)
