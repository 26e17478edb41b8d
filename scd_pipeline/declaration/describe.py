"""Conversion of a dimension to the YAML text that declares it."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from enum import IntEnum
from typing import Any

import yaml

from scd_pipeline.declaration.attribute import Attribute
from scd_pipeline.declaration.dimension import Dimension
from scd_pipeline.declaration.frozen import FrozenMapping
from scd_pipeline.declaration.jdbc import EnvVar, Partitions
from scd_pipeline.declaration.key import WHOLE_ROW, KeyColumn
from scd_pipeline.declaration.mirror import MIRROR
from scd_pipeline.declaration.names import default_surrogate_key
from scd_pipeline.declaration.source import Channel, Column, Feed, RetireGuard, Source, format_of
from scd_pipeline.errors import UsageError
from scd_pipeline.texts import short_repr


def describe(dimension: Dimension) -> str:
    """Return the shortest YAML text that parses to an equal dimension, without options that have their default.

    Raises:
        UsageError: NOT_A_DIMENSION: The argument is not a `Dimension`.
    """
    if not isinstance(dimension, Dimension):
        raise UsageError("NOT_A_DIMENSION", "describe", value=short_repr(dimension))
    options: dict[str, Any] = {"dimension": dimension.name, "business_key": _key(dimension.business_key)}
    options["sources"] = {source.name: _source(source) for source in dimension.sources}
    options |= _attributes(dimension)
    excluded = ("name", "business_key", "sources", "attributes", "mirror", "origin")
    options |= _changed_fields(dimension, excluded=excluded)
    if dimension.surrogate_key == default_surrogate_key(dimension.name):
        del options["surrogate_key"]
    if dimension.begin is not None:
        options["begin"] = _changed_fields(dimension.begin)
    for option in ("sign_offs", "expected_values"):
        if option in options:
            options[option] = {name: dataclasses.asdict(each) for name, each in options[option].items()}
    return str(yaml.dump(options, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=1000))


class _Dumper(yaml.SafeDumper):
    """A dumper that quotes text with unprintable characters, as only that style preserves them."""

    def represent_text(self, text: str) -> yaml.ScalarNode:
        style = None if text.replace("\n", "").isprintable() else '"'
        return self.represent_scalar("tag:yaml.org,2002:str", text, style=style)

    def ignore_aliases(self, data: Any) -> bool:  # noqa: ARG002 (equal values are written in full each time)
        return True


_Dumper.add_representer(str, _Dumper.represent_text)


def _key(key: tuple[KeyColumn, ...]) -> Any:
    if any(column.derived is not None for column in key):
        return WHOLE_ROW
    if any(column.type != "string" for column in key):
        return {column.name: column.type for column in key}
    return key[0].name if len(key) == 1 else [column.name for column in key]


def _attributes(dimension: Dimension) -> dict[str, Any]:
    """Return the options that declare the attributes, without those of columns that are only mirrored."""
    if dimension.mirror is None:
        return {"attributes": {attribute.name: _attribute(attribute) for attribute in dimension.attributes}}
    declared = {attribute.name: attribute for attribute in dimension.mirror.attributes or ()}
    only_mirrored = {attribute.name for attribute in dimension.mirrored_attributes} - declared.keys()
    attributes = {
        each.name: _attribute(declared[each.name]) if each.name in declared else _typed_attribute(each)
        for each in (*dimension.attributes, *declared.values())
        if each.name not in only_mirrored
    }
    options = _changed_fields(dimension.mirror, excluded=("attributes",))
    if attributes or options:
        return {**({"attributes": attributes} if attributes else {}), "mirror": options}
    return {"attributes": MIRROR}


def _typed_attribute(attribute: Attribute) -> dict[str, Any]:
    """Return an attribute with its type, without which the source would determine it."""
    return {"scd": int(attribute.scd), "type": attribute.type, **_attribute_options(attribute)}


def _attribute(attribute: Attribute) -> Any:
    options = _attribute_options(attribute)
    return options["scd"] if len(options) == 1 else options


def _attribute_options(attribute: Attribute) -> dict[str, Any]:
    return _changed_fields(attribute, excluded=("name", "derived", "has_source_type", "retired_at", "hash_name"))


def _source(source: Source) -> dict[str, Any]:
    options = _changed_fields(source, excluded=("name", "snapshot", "feed", "columns", "timed_table", "landing_table"))
    channels: dict[str, Any] = {name: _channel(channel) for name, channel in source.channels}
    if source.stored_tables:
        channels = {option: table.name for option, table in source.stored_tables.items()}
    columns = {name: _column(column) for name, column in source.columns.items()}
    return {**channels, **options, **({"columns": columns} if columns else {})}


def _channel(channel: Channel) -> Any:
    options = _changed_fields(channel, excluded=("options", "jdbc", "control_totals"))
    if channel.jdbc is not None:
        jdbc = {option: value for option, value in _changed_fields(channel.jdbc).items() if value}
        options = {"jdbc": jdbc, **options}
    if isinstance(channel, Feed) and channel.has_time_cursor and channel.effective_at == channel.cursor:
        del options["effective_at"]
    if channel.options:
        options["options"] = channel.reader_options
    if channel.control_totals is not None:
        declared = _changed_fields(channel.control_totals)
        options["control_totals"] = {option: value for option, value in declared.items() if value}
    if channel.format == format_of(channel.path, channel.versions):
        options.pop("format", None)
    return options["path"] if list(options) == ["path"] else options


def _column(column: Column) -> Any:
    options = _changed_fields(column)
    if len(column.from_) == 1:
        options["from"] = column.from_[0]
    return options["from"] if list(options) == ["from"] else options


def _changed_fields(declared: Any, excluded: tuple[str, ...] = ()) -> dict[str, Any]:
    """Return the fields that differ from their defaults, by their YAML options, as values for YAML."""
    fields = [field for field in dataclasses.fields(declared) if field.name not in excluded]
    values = {field.name.rstrip("_"): (getattr(declared, field.name), field.default) for field in fields}
    return {option: _plain(value) for option, (value, default) in values.items() if value != default}


def _plain(value: Any) -> Any:
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    if isinstance(value, Column):
        return _column(value)
    if isinstance(value, EnvVar | Partitions):
        return dataclasses.asdict(value)
    if isinstance(value, (Mapping, FrozenMapping)):
        return dict(value)
    if isinstance(value, RetireGuard):
        return value.share if value.at_least == 1 else dataclasses.asdict(value)
    return int(value) if isinstance(value, IntEnum) else value
