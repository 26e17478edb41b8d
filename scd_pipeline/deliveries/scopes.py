"""The scope values that deliveries of snapshots name, as text that compares with keys."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StringType

from scd_pipeline.declaration import Dimension
from scd_pipeline.deliveries.cast_options import CastOptions
from scd_pipeline.deliveries.casts import cast
from scd_pipeline.deliveries.pending import PendingDelivery
from scd_pipeline.errors import SourceDataError
from scd_pipeline.expressions import col, key_text
from scd_pipeline.frames import local_frame


def encode_scopes(
    spark: SparkSession, dimension: Dimension, pending: Sequence[PendingDelivery]
) -> list[PendingDelivery]:
    """Write given scope values as the types of the scope columns write them, so that they compare with rows."""
    encoded = {delivery.number: delivery for delivery in pending}
    for names in sorted({d.batch.scope_columns for d in pending if d.delivery.scope is not None}):
        scoped = [d for d in pending if d.delivery.scope is not None and d.batch.scope_columns == names]
        texts = _scope_texts(spark, dimension, names, scoped)
        for delivery, values in zip(scoped, texts, strict=True):
            batch = replace(delivery.batch, scope=tuple(sorted(values)))
            encoded[delivery.number] = replace(delivery, batch=batch)
    return list(encoded.values())


def _scope_texts(
    spark: SparkSession, dimension: Dimension, names: Sequence[str], scoped: Sequence[PendingDelivery]
) -> list[set[str]]:
    """Return the scope values of each delivery as text, by one job.

    Raises:
        SourceDataError: A scope column cannot have the value.
    """
    types = {key.name: key.data_type for key in dimension.business_key}
    types |= {attribute.name: attribute.data_type for attribute in dimension.attributes}
    delivered = {name: f"_delivered_{number}" for number, name in enumerate(names)}
    rows = [
        (number, *(None if value is None else str(value) for value in values))
        for number, delivery in enumerate(scoped)
        for values in delivery.delivery.scope or ()
    ]
    frame = local_frame(spark, rows, ", ".join(["_number int", *(f"{text} string" for text in delivered.values())]))
    typed = frame.withColumns(
        {name: cast(F.col(text), StringType(), types[name], CastOptions()).value for name, text in delivered.items()}
    )
    invalid = [
        F.when(F.col(text).isNotNull() & col(name).isNull(), F.array(F.lit(name), F.col(text)))
        for name, text in delivered.items()
    ]
    scope_values: list[set[str]] = [set() for _ in scoped]
    for number, text, invalid_value in typed.select(
        "_number", key_text(list(delivered)), F.coalesce(*invalid)
    ).collect():
        if invalid_value is not None:
            name, value = invalid_value
            location = f"{dimension.name}: {scoped[number].batch.id}"
            raise SourceDataError("SCOPE_VALUE", location, value=repr(value), type=types[name].ddl(), column=name)
        scope_values[number].add(text)
    return scope_values
