"""The attributes of a mirrored dimension for the columns of its deliveries (S36)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pyspark.sql import types as T

from scd_pipeline.declaration import Dimension, Feed, Snapshot, Source
from scd_pipeline.declaration.mirror import merge_types, mirrored_type
from scd_pipeline.declaration.names import readable_names
from scd_pipeline.declaration.types import INTEGERS
from scd_pipeline.deliveries.column_mapping import is_named, unused_columns
from scd_pipeline.errors import BatchRejected, DeclarationError
from scd_pipeline.frames import type_text
from scd_pipeline.texts import name_columns


def mirrored_columns(
    fields: Sequence[T.StructField], source: Source, channel: Snapshot | Feed, dimension: Dimension
) -> dict[str, str]:
    """Return the type of each delivered column that becomes an attribute, by its readable name.

    A column of no type, as all of its values are NULL or empty arrays, does not become one; nor does that of a retired
    attribute, or a column with the name of a key column or a declared attribute that is read from another column.
    """
    mirrored = {attribute.name for attribute in dimension.mirrored_attributes if not attribute.retired}
    declared = [attribute.name for attribute in dimension.attributes if attribute.name not in mirrored]
    targets = [*dimension.delivered_key_names, *declared]
    excluded = dimension.technical_columns.union(name.casefold() for name in targets)
    delivered = [field.name for field in fields]
    names, readable = unused_columns(delivered, source, channel, targets), readable_names(delivered)
    read = [field for field in fields if field.name in names and not is_named(field.name, excluded)]
    types = {readable.get(field.name, field.name): _known_type(field.dataType) for field in read}
    return {name: type_text(data_type) for name, data_type in types.items() if data_type is not None}


def _known_type(data_type: T.DataType) -> T.DataType | None:
    """Return a type with readable names, without fields whose values are all NULL; None if no value is known."""
    match data_type:
        case T.NullType():
            return None
        case T.ArrayType():
            element = _known_type(data_type.elementType)
            return None if element is None else T.ArrayType(element)
        case T.MapType():
            value = _known_type(data_type.valueType)
            return None if value is None else T.MapType(data_type.keyType, value)
        case T.StructType():
            readable = readable_names([field.name for field in data_type.fields])
            types = {readable.get(field.name, field.name): _known_type(field.dataType) for field in data_type.fields}
            fields = [T.StructField(name, each) for name, each in types.items() if each is not None]
            return T.StructType(fields) if fields else None
        case _:
            return data_type


def with_missing_whole_numbers(types: Mapping[str, str], dimension: Dimension) -> dict[str, str]:
    """Return the column types of a pandas frame, with the type of the attribute for floats that may be whole numbers.

    pandas stores a column of whole numbers with missing values as floats.
    """
    whole = {each.name.casefold(): each.type for each in dimension.mirrored_attributes if each.type in INTEGERS}
    return {
        name: whole.get(name.casefold(), data_type) if data_type == "double" else data_type
        for name, data_type in types.items()
    }


def has_key(fields: Sequence[T.StructField], source: Source, dimension: Dimension) -> bool:
    """Return whether the columns include one for each key column that is read from a column."""
    delivered = [field.name for field in fields]
    names = {name.casefold() for name in (*delivered, *readable_names(delivered).values())}
    read = [source.column(name).from_ for name in dimension.delivered_key_names]
    return all(any(name.partition(".")[0].casefold() in names for name in from_) for from_ in read if from_)


def with_delivered_columns(dimension: Dimension, delivered: Mapping[str, str], batch_id: str) -> Dimension:
    """Return the dimension with the attributes of the columns of a delivery, in addition to those that it has.

    An attribute gets the type of the delivery if that is wider.

    Args:
        dimension: The declaration, with the attributes of the columns before the delivery.
        delivered: The type of each column by its name (`mirrored_columns`).
        batch_id: The batch of the delivery.

    Raises:
        BatchRejected: The delivery has another type for an attribute, or a column that cannot be one.
    """
    if dimension.mirror is None:
        return dimension
    stored = {attribute.name: attribute.type for attribute in dimension.mirrored_attributes}
    times = {attribute.name: attribute.retired_at for attribute in dimension.mirrored_attributes}
    # Of the columns with names of one attribute, the one that is read determines its type.
    names = sorted(delivered, key=dimension.mirror.age_of_name, reverse=True)
    columns = {dimension.mirror.current_name(name): delivered[name] for name in names}
    try:
        delivered_types = {name: mirrored_type(data_type) for name, data_type in columns.items()}
        types, changed = merge_types(stored, delivered_types)
        if not changed:
            return dimension.with_mirrored(types, times)
    except DeclarationError:
        unfit = [name for name, data_type in columns.items() if not _can_be_attribute(name, data_type, dimension)]
        raise BatchRejected("COLUMN_NOT_MIRRORED", batch_id, columns=name_columns(unfit or list(columns))) from None
    texts = [f"{name_columns([name])} from {old} to {new}" for name, (old, new) in changed.items()]
    raise BatchRejected("TYPE_CHANGED", batch_id, changes=", ".join(texts))


def _can_be_attribute(name: str, data_type: str, dimension: Dimension) -> bool:
    """Return whether a column can be the only mirrored attribute."""
    try:
        dimension.with_mirrored({name: mirrored_type(data_type)})
    except DeclarationError:
        return False
    return True
