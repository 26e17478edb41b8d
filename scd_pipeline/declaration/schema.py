"""The JSON Schema of declarations in YAML, by which editors complete and validate them.

It is generated from the tables of options: `python -m scd_pipeline.declaration.schema` prints it. Each value has one
schema that depends on its type, or on its keys, and no list of alternatives (`anyOf`): an editor reports a misspelt
option by its name, whereas for alternatives it reports only that none of them matches. Editors know draft 7.
"""

from __future__ import annotations

import json
from typing import Any, Literal, get_args, get_origin, get_type_hints

from scd_pipeline.declaration.attribute import PREVIOUS, Attribute, ScdType
from scd_pipeline.declaration.checks.source import FORMATS
from scd_pipeline.declaration.checks.timed_table import BASE_FORMATS
from scd_pipeline.declaration.dimension import Dimension
from scd_pipeline.declaration.fact import Fact, Role
from scd_pipeline.declaration.landing_rows import SORT_ORDERS
from scd_pipeline.declaration.landing_table import LandingTable
from scd_pipeline.declaration.mirror import MIRROR
from scd_pipeline.declaration.profiles import PROFILES
from scd_pipeline.declaration.source import Column, Feed, Snapshot
from scd_pipeline.declaration.timed_table import TimedTable
from scd_pipeline.declaration.yaml import options
from scd_pipeline.declaration.yaml.options import Kind, Options

Schema = dict[str, Any]

_TEXT: Schema = {"type": "string"}
_SCD_TYPE: Schema = {"enum": [int(scd) for scd in ScdType]}
_NAMES: Schema = {"type": ["string", "array"], "items": _TEXT}
_KINDS: dict[Kind, Schema] = {
    Kind.TEXT: _TEXT,
    Kind.TIME: _TEXT,
    Kind.TIME_OR_NULL: {"type": ["string", "null"]},
    Kind.NAME_OR_FALSE: {"type": ["string", "boolean"]},
    Kind.MISSING: _TEXT,
    Kind.ON_BAD_VALUE: _TEXT,
    Kind.NAMES: _NAMES,
    Kind.TEXTS: _NAMES,
    Kind.FLAG: {"type": "boolean"},
    Kind.PREVIOUS: {"type": ["boolean", "string"]},
    Kind.NUMBER: {"type": "number"},
    Kind.SCALAR: {"type": ["string", "number", "boolean"]},
    Kind.TIME_OR_NUMBER: {"type": ["string", "number"]},
    Kind.SECTION: {},
}
_EXPRESSION: Schema = {
    "properties": dict.fromkeys(options.EXPRESSION, _TEXT),
    "additionalProperties": False,
    "required": list(options.EXPRESSION),
}
_KINDS[Kind.COMPUTED] = {**_EXPRESSION, "type": ["string", "object"]}
_KINDS[Kind.SEQUENCE] = {**_EXPRESSION, "type": ["string", "object", "array"], "items": _KINDS[Kind.COMPUTED]}
_ENV_VAR: Schema = {"properties": dict.fromkeys(options.ENV_VAR, _TEXT), "additionalProperties": False}
_ENV_VAR["required"] = list(options.ENV_VAR)
_KINDS[Kind.VARIABLE] = {**_ENV_VAR, "type": "object"}
_KINDS[Kind.TEXT_OR_VARIABLE] = {**_ENV_VAR, "type": ["string", "object"]}
_TYPED_NAMES: Schema = {"type": ["string", "array", "object"], "items": _TEXT, "additionalProperties": _TEXT}


def declaration_schema() -> Schema:
    """Return the JSON Schema of one document of a file of declarations."""
    return {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": "Declaration of a dimension, a fact, a landing table or a timed table",
        "type": "object",
        "properties": {"dimension": {}, "history_of": {}, "fact": {}, "landing_table": {}, "timed_table": {}},
        "if": {"required": ["fact"]},
        "then": _reference("fact"),
        "else": {
            "if": {"required": ["timed_table"]},
            "then": _reference("timed_table"),
            "else": {
                "if": {"required": ["landing_table"]},
                "then": _reference("landing_table"),
                "else": _reference("dimension"),
            },
        },
        "definitions": {
            "dimension": _dimension(),
            "fact": _fact(),
            "landing_table": _landing_table(),
            "timed_table": _timed_table(),
            "source": _source(),
            "snapshot": _channel(options.SNAPSHOT, Snapshot),
            "feed": _channel(options.FEED, Feed),
            "attribute": _attribute(),
            "column": _or_section(_NAMES, _section(options.COLUMN, Column)),
        },
    }


def _dimension() -> Schema:
    sign_off = _section(options.SIGN_OFF, required=tuple(options.SIGN_OFF))
    expected_value = _section(options.EXPECTED_VALUE, required=tuple(options.EXPECTED_VALUE))
    properties = {"type": "object", "additionalProperties": _KINDS[Kind.SCALAR]}
    sections = {
        "business_key": _TYPED_NAMES,
        "sources": _by_name("source"),
        "attributes": {"if": {"type": "object"}, "then": _by_name("attribute"), "else": {"enum": [MIRROR]}},
        "mirror": _mirror(),
        "begin": _section(options.BEGIN),
        "column_names": _section(options.TABLE_COLUMNS),
        "change_types": _section(options.CHANGE_TYPES),
        "profile": {"enum": list(PROFILES)},
        "sign_offs": _section(options.SIGN_OFFS, sections=dict.fromkeys(options.SIGN_OFFS, sign_off)),
        "expected_values": {"type": "object", "additionalProperties": expected_value},
        "table_properties": properties,
        "history_table_properties": properties,
    }
    return {
        **_section(options.DIMENSION, Dimension, sections, required=("business_key",)),
        "if": {"required": ["history_of"]},
        "then": {},
        "else": {"required": ["dimension", "sources"]},
    }


def _mirror() -> Schema:
    former_names: Schema = {"type": "object", "additionalProperties": _NAMES}
    return _section(options.MIRROR, sections={"scd": _SCD_TYPE, "former_names": former_names})


def _fact() -> Schema:
    role = _or_section(_TEXT, _section(options.ROLE, Role, required=("dimension",)))
    sections = {
        "grain": _TYPED_NAMES,
        "dimensions": {"type": "object", "additionalProperties": role},
        "measures": _TYPED_NAMES,
        "sources": _by_name("source"),
    }
    return _section(options.FACT, Fact, sections, required=("fact", "grain", "event_time", "dimensions", "sources"))


def _landing_table() -> Schema:
    order: Schema = {"type": "object", "additionalProperties": {"enum": list(SORT_ORDERS)}}
    former_names: Schema = {"type": "object", "additionalProperties": _NAMES}
    sections = {
        "primary_key": _TYPED_NAMES,
        "merge_key": _TYPED_NAMES,
        "dedup_sort": order,
        "columns": _TYPED_NAMES,
        "mirror": _section(options.LANDING_MIRROR, sections={"former_names": former_names}),
        "sources": _by_name("source"),
    }
    required = ("landing_table", "disposition", "sources")
    return _section(options.LANDING_TABLE, LandingTable, sections, required=required)


def _timed_table() -> Schema:
    column: Schema = _or_section(_TEXT, _section(options.BASE_COLUMN, required=("type",)))
    base: dict[str, Schema] = {
        "columns": {"type": "object", "additionalProperties": column},
        "options": {"type": "object", "additionalProperties": _TEXT},
        "format": {"enum": list(BASE_FORMATS)},
    }
    sections = {"base": _or_section(_TEXT, _section(options.BASE, sections=base, required=("path",)))}
    return _section(options.TIMED_TABLE, TimedTable, sections, required=("timed_table", "base"))


def _source() -> Schema:
    guard = _or_section({"type": "number"}, _section(options.RETIRE_GUARD))
    sections = {
        "snapshot": _reference("snapshot"),
        "feed": _reference("feed"),
        "columns": _by_name("column"),
        "retire_guard": guard,
        "timed_table": _TEXT,
        "landing_table": _TEXT,
    }
    return _section(options.SOURCE, sections=sections)


def _channel(table: Options, declared: type) -> Schema:
    sections: dict[str, Schema] = {
        "options": {"type": "object", "additionalProperties": _TEXT},
        "format": {"enum": list(FORMATS)},
        "jdbc": _jdbc(),
        "control_totals": _section(
            options.CONTROL_TOTALS, sections={"sums": {"type": "object", "additionalProperties": _TEXT}}
        ),
    }
    return _or_section(_TEXT, _section(table, declared, sections))


def _jdbc() -> Schema:
    sections: dict[str, Schema] = {
        "options": {"type": "object", "additionalProperties": _TEXT},
        "partitions": _section(options.PARTITIONS, required=tuple(options.PARTITIONS)),
    }
    return _section(options.JDBC, sections=sections, required=("url",))


def _attribute() -> Schema:
    sections = {
        "scd": _SCD_TYPE,
        "previous": {"enum": [True, False, *PREVIOUS]},
        "column_names": _section(options.ATTRIBUTE_COLUMNS),
    }
    section = _section(options.ATTRIBUTE, Attribute, sections, required=("scd",))
    # Editors suggest the examples for a value that is still empty.
    return {"if": {"type": "object"}, "then": section, "else": _SCD_TYPE, "examples": _SCD_TYPE["enum"]}


def _section(
    table: Options, declared: type | None = None, sections: dict[str, Schema] | None = None, required: Any = ()
) -> Schema:
    """Return the schema of a mapping with the options of a table; their choices come from the declared class."""
    properties = {name: _KINDS[kind] for name, kind in table.items()} | _choices(table, declared) | (sections or {})
    schema: Schema = {"type": "object", "properties": properties, "additionalProperties": False}
    return {**schema, "required": list(required)} if required else schema


def _choices(table: Options, declared: type | None) -> dict[str, Schema]:
    """Return the schemas of the options whose field is a Literal."""
    hints = get_type_hints(declared) if declared else {}
    choices = {name: _literal(hints.get(name)) for name in table}
    # YAML reads an unquoted `null` as no value.
    return {
        name: {"enum": [*values, *([None] if "null" in values else [])]} for name, values in choices.items() if values
    }


def _literal(hint: Any) -> tuple[Any, ...]:
    """Return the values of a Literal, or of one that may be None; no values for any other type."""
    members = [hint, *get_args(hint)]
    return next((get_args(member) for member in members if get_origin(member) is Literal), ())


def _by_name(definition: str) -> Schema:
    return {"type": "object", "additionalProperties": _reference(definition)}


def _or_section(short: Schema, section: Schema) -> Schema:
    """Return the schema of an option whose value is a section, or a value of other types.

    The keywords of the section apply to mappings alone.
    """
    types = [short["type"]] if isinstance(short["type"], str) else short["type"]
    return {**section, **short, "type": [*types, "object"]}


def _reference(definition: str) -> Schema:
    return {"$ref": f"#/definitions/{definition}"}


def schema_text() -> str:
    """Return the JSON Schema as the text of its file."""
    return json.dumps(declaration_schema(), indent=2) + "\n"


if __name__ == "__main__":
    print(schema_text(), end="")
