"""Control totals: a delivery whose rows or sums differ from those that its source declares is rejected (S41).

`rows` is the number of delivered rows, including bad rows, without the rows that the condition `rows` of the channel
excludes. A sum is of the rows that are loaded: a bad row has no values, so that a delivery with bad rows whose values
are in the sum differs from it. All figures are observed by the query that computes the rows.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from pyspark.sql import Column
from pyspark.sql import functions as F

from scd_pipeline.declaration import Dimension
from scd_pipeline.declaration.control_totals import ROW_COUNT, summable_scales
from scd_pipeline.declaration.path_times import FORMS, read_path_time
from scd_pipeline.declaration.source import is_in_bucket, placeholders, split_placeholder
from scd_pipeline.deliveries.discovery import absolute_path, declaration_folder
from scd_pipeline.deliveries.inputs import exact_number
from scd_pipeline.deliveries.object_stores import Bucket
from scd_pipeline.deliveries.pending import PendingDelivery
from scd_pipeline.deliveries.row_columns import TOTALS
from scd_pipeline.errors import BatchRejected
from scd_pipeline.expressions import col
from scd_pipeline.texts import pluralize

_PRECISION = 38


# -- Declared


def with_control_totals(delivery: PendingDelivery, dimension: Dimension) -> PendingDelivery:
    """Return the delivery with the control totals of its argument, otherwise of the file that its channel declares."""
    totals, declared = delivery.delivery.totals, delivery.channel.control_totals
    if totals is None and declared is not None and declared.path is not None:
        row = _read_file(_file_path(declared.path, delivery.batch.delivery, dimension))
        totals = {name: row[column] for name, column in declared.columns.items() if row.get(column) is not None}
    return replace(delivery, totals={name: str(total) for name, total in (totals or {}).items()})


def _file_path(pattern: str, delivery: str, dimension: Dimension) -> str:
    """Return the path of the file for a delivery: its name, or its time in the declared form, is in the placeholder."""
    (text,) = placeholders(pattern)
    placeholder, form = split_placeholder(text)
    read = read_path_time(FORMS[placeholder], delivery) if placeholder in FORMS else None
    value = read.time.strftime(form) if read and read.time else delivery
    return absolute_path(pattern.replace("{" + text + "}", value), declaration_folder(dimension))


def _read_file(path: str) -> Mapping[str, Any]:
    """Return the one row of a file; an empty one if the file does not exist, or does not have one row."""
    try:
        if not is_in_bucket(path):
            return _row_of_text(path, Path(path).read_text(encoding="utf-8-sig"))
        with TemporaryDirectory() as folder:
            copy, bucket = Path(folder, "totals"), Bucket.of_path(path)
            (stored,) = bucket.entry(path).objects
            bucket.download(stored, copy)
            return _row_of_text(path, copy.read_text(encoding="utf-8-sig"))
    except (FileNotFoundError, ValueError):
        return {}


def _row_of_text(path: str, text: str) -> Mapping[str, Any]:
    """Return the one row of a text.

    Raises:
        ValueError: It is not one row.
    """
    rows = [json.loads(text, parse_float=Decimal)] if path.endswith(".json") else csv.DictReader(text.splitlines())
    (row,) = rows
    if not isinstance(row, Mapping):
        raise ValueError(path)
    return row


# -- Observed


def control_figures(
    deliveries: Iterable[PendingDelivery], is_of_batch: Column, is_good: Column, dimension: Dimension
) -> dict[str, Column]:
    """Return the aggregates over conformed rows that `observed_sums` and `observed_totals` read, by name."""
    deliveries = list(deliveries)
    scales: dict[str, int] = {}
    for each in deliveries:
        summable = summable_scales(dimension, each.batch.source) if total_names(each) else {}
        scales |= {name: summable[name] for name in total_names(each) if name != ROW_COUNT}
    sums = {_sum_name(name): F.try_sum(F.when(is_good, _value(name, dimension, scales[name]))) for name in scales}
    count = max((len(_delivered_names(each)) for each in deliveries), default=0)
    # Two different values are enough to reject a delivery.
    totals = {
        _total_name(index): F.slice(F.collect_set(F.when(is_of_batch, F.get(TOTALS, F.lit(index)))), 1, 2)
        for index in range(count)
    }
    return {**sums, **totals}


def observed_sums(values: Mapping[str, Any], delivery: PendingDelivery) -> dict[str, Decimal]:
    """Return the sum of each summed column of a delivery."""
    return {name: values[_sum_name(name)] or Decimal(0) for name in total_names(delivery) if name != ROW_COUNT}


def observed_totals(values: Mapping[str, Any], delivery: PendingDelivery) -> dict[str, tuple[str, ...]]:
    """Return the different texts that the rows of a delivery have of each control total, at most two."""
    return {name: tuple(values[_total_name(index)]) for index, name in enumerate(_delivered_names(delivery))}


def total_names(delivery: PendingDelivery) -> tuple[str, ...]:
    """Return the names of the control totals of a delivery: `rows`, and the summed columns.

    Those of its argument replace those that its channel declares.
    """
    declared = delivery.channel.control_totals
    if delivery.delivery.totals is not None or declared is None:
        return tuple(delivery.totals)
    return tuple(declared.columns)


def _delivered_names(delivery: PendingDelivery) -> Sequence[str]:
    declared = delivery.channel.control_totals
    return list(declared.delivered_columns) if declared else []


def _sum_name(name: str) -> str:
    return f"sum {name}"


def _total_name(index: int) -> str:
    return f"total {index}"


def _value(name: str, dimension: Dimension, scale: int) -> Column:
    value = col(name) if name in dimension.key_names else col(name)["v"]
    return value.cast(f"decimal({_PRECISION},{scale})")


# -- Compared


def control_rejection(delivery: PendingDelivery) -> BatchRejected | None:
    """Return the rejection of a delivery whose figures differ from its control totals; None if it has none."""
    if delivery.batch.withdrawn:
        return None
    differences = [text for name in total_names(delivery) if (text := _difference(name, delivery))]
    if not differences:
        return None
    return BatchRejected("CONTROL_TOTALS", delivery.batch.id, differences="; ".join(differences))


def _difference(name: str, delivery: PendingDelivery) -> str:
    """Return how a figure differs from its control total; empty if it does not."""
    content = delivery.content
    rows = content.rows
    if not delivery.channel.rows:  # `dedup_sort` alone has excluded rows (S38), which were delivered
        rows += content.filtered
    observed = Decimal(rows) if name == ROW_COUNT else content.sums.get(name, Decimal(0))
    texts = (delivery.totals[name],) if name in delivery.totals else content.totals.get(name, ())
    totals = {exact_number(text) for text in texts}
    if totals == {observed}:
        return ""
    delivered = f"{pluralize(rows, 'row')} delivered"
    bad = f", {content.bad_rows} of them bad" if content.bad_rows else ""
    figure = f"{delivered}{bad}" if name == ROW_COUNT else f"{name} is {observed} ({delivered}{bad})"
    if len(totals) != 1:
        return f"{figure}, and {'several control totals' if totals else 'no control total'}"
    (total,) = totals
    return f"{figure}, and the control total is {'not a number' if total is None else total}"
