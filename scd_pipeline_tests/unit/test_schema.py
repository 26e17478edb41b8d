"""The JSON Schema of declarations accepts every example, rejects invalid declarations, and its file is up to date."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from scd_pipeline.declaration.schema import declaration_schema, schema_text
from scd_pipeline_tests.unit.test_yaml_documentation import blocks

ROOT = Path(__file__).parents[2]
FILE = ROOT / "docs" / "reference" / "declaration.schema.json"
EXAMPLES = [*blocks("yaml"), *(file.read_text(encoding="utf-8") for file in sorted(ROOT.glob("examples/*/*.yaml")))]
SCHEMA = declaration_schema()
TYPES: dict[str, Any] = {
    "object": dict,
    "array": list,
    "string": str,
    "boolean": bool,
    "number": (int, float),
}
VALID = {"dimension": "d", "business_key": "id", "sources": {"crm": {"snapshot": {}}}}


def is_valid(value: Any, schema: dict[str, Any]) -> bool:
    """Return whether a value matches; knows the keywords that the schema uses."""
    keywords = {"$schema", "$defs", "title", "$ref", "type", "anyOf", "enum", "items", "required"}
    assert schema.keys() <= keywords | {"properties", "additionalProperties"}
    if "$ref" in schema:
        return is_valid(value, SCHEMA["$defs"][schema["$ref"].rpartition("/")[2]])
    types = schema.get("type", [])
    if types and not any(_is(value, name) for name in ([types] if isinstance(types, str) else types)):
        return False
    if "anyOf" in schema and not any(is_valid(value, each) for each in schema["anyOf"]):
        return False
    if "enum" in schema and value not in schema["enum"]:
        return False
    if isinstance(value, list):
        return all(is_valid(item, schema.get("items", {})) for item in value)
    return not isinstance(value, dict) or _has_valid_properties(value, schema)


def _is(value: Any, name: str) -> bool:
    return isinstance(value, TYPES[name]) and (name == "boolean" or not isinstance(value, bool))


def _has_valid_properties(value: dict[str, Any], schema: dict[str, Any]) -> bool:
    properties, others = schema.get("properties", {}), schema.get("additionalProperties", {})
    if not set(schema.get("required", ())) <= value.keys():
        return False
    chosen = {name: properties.get(name, others) for name in value}
    return all(each is not False and is_valid(value[name], each) for name, each in chosen.items())


def documents(text: str) -> list[Any]:
    """The documents of a text; editors compare unquoted times as text."""
    loader = type("Loader", (yaml.SafeLoader,), {})
    loader.yaml_implicit_resolvers = {
        first: [(tag, pattern) for tag, pattern in resolvers if not tag.endswith("timestamp")]
        for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }
    return [document for document in yaml.load_all(text, loader) if document is not None]


@pytest.mark.parametrize("text", EXAMPLES)
def test_each_example_is_valid(text: str) -> None:
    assert all(is_valid(document, SCHEMA) for document in documents(text))


@pytest.mark.parametrize(
    "change",
    [
        {"dimension": 5},
        {"business_key": None},
        {"atributes": {"a": 1}},
        {"attributes": {"a": 5}},
        {"attributes": {"a": {"type": "int"}}},
        {"attributes": {"a": {"scd": 2, "missing": "maybe"}}},
        {"sources": {"crm": {"snapshot": {"pth": "a"}}}},
        {"sources": {"crm": {"snapshot": {"format": "xls"}}}},
        {"sources": {"crm": {"snapshot": {"retire_guard": 0.1}}}},
        {"sources": {"crm": {"feed": {"ties": "first_row"}}}},
        {"begin": {"for_first_changes_until": "2024-01-01"}},
    ],
)
def test_an_invalid_declaration_is_rejected(change: dict[str, Any]) -> None:
    assert is_valid(VALID, SCHEMA)
    assert not is_valid({**VALID, **change}, SCHEMA)


def test_the_file_is_up_to_date() -> None:
    assert FILE.read_text(encoding="utf-8") == schema_text(), "run `make docs`"
