"""Explain why deliveries have too many bad rows (S26), by what the lines of their files show together.

The files are read once more, so this happens after the load, and for few deliveries: a rejected one remains pending,
and each load rejects it again.
"""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from scd_pipeline.declaration import Dimension
from scd_pipeline.deliveries.csv_files import summarize_field_counts
from scd_pipeline.deliveries.delivery import Delivery
from scd_pipeline.deliveries.json_files import document_hint
from scd_pipeline.deliveries.result import BatchResult
from scd_pipeline.errors import BatchRejected

_EXPLANATIONS = {"csv": summarize_field_counts, "json": document_hint, "debezium": document_hint}
_MAX_EXPLAINED = 10
"""The number of deliveries of each source to explain."""


def explain_bad_rows(
    spark: SparkSession, dimension: Dimension, deliveries: Sequence[Delivery], results: Sequence[BatchResult]
) -> tuple[BatchResult, ...]:
    """Return the results. Of the last deliveries with too many bad rows, they have the reason that all lines show.

    A result remains as it is if the lines show no reason, or cannot be read any more.

    Args:
        spark: The session.
        dimension: The declaration.
        deliveries: The deliveries of a load.
        results: The result of each.
    """
    explained: list[BatchResult] = []
    counts: Counter[str] = Counter()
    for delivery, result in zip(reversed(deliveries), reversed(results), strict=True):
        has_bad_rows = result.code == "BAD_ROWS"
        counts[result.source] += has_bad_rows
        is_explained = has_bad_rows and counts[result.source] <= _MAX_EXPLAINED
        explained.append(_explained(spark, dimension, delivery, result) if is_explained else result)
    return tuple(reversed(explained))


def _explained(spark: SparkSession, dimension: Dimension, delivery: Delivery, result: BatchResult) -> BatchResult:
    channel, reason = delivery.declared_channel(dimension), ""
    explain = _EXPLANATIONS.get(str(channel.format))
    if delivery.path is None or explain is None:
        return result
    with contextlib.suppress(PySparkException, Py4JError, OSError):  # the file was moved or replaced meanwhile
        reason = explain(spark, channel, delivery.path)
    if not reason:
        return result
    rejection = BatchRejected(result.code, result.batch_id, **{**result.details, "example": reason})
    return replace(result, problem=rejection.problem, details=rejection.details)
