"""The JSON Schema of declarations accepts every example, locates problems, and its file is up to date."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from scd_pipeline.declaration.schema import declaration_schema, schema_text
from scd_pipeline_tests.text_tables import parse
from scd_pipeline_tests.unit.test_yaml_documentation import blocks

ROOT = Path(__file__).parents[2]
FILE = ROOT / "docs" / "reference" / "declaration.schema.json"
EXAMPLES = [*blocks("yaml"), *(file.read_text(encoding="utf-8") for file in sorted(ROOT.glob("examples/*/*.yaml")))]
SCHEMA = declaration_schema()
TYPES: dict[str, Any] = {
    "null": type(None),
    "object": dict,
    "array": list,
    "string": str,
    "boolean": bool,
    "number": (int, float),
}
VALID: dict[str, dict[str, Any]] = {
    "dimension": {"dimension": "d", "business_key": "id", "sources": {"crm": {"snapshot": {}}}},
    "history": {"history_of": "t", "business_key": "id", "attributes": {"a": 2}},
    "fact": {"fact": "f", "grain": "id", "event_time": "at", "dimensions": {"c": "d"}, "sources": {"s": {"feed": "p"}}},
    "timed_table": {"timed_table": "t", "base": "t.avro"},
}
PROBLEMS = """
| table     | options                                               | problem                           |
| --------- | ----------------------------------------------------- | --------------------------------- |
| dimension | {dimension: 5}                                        | dimension                         |
| dimension | {business_key: null}                                  | business_key                      |
| dimension | {business_key: {id: 5}}                               | business_key.id                   |
| dimension | {business_key: [id, 5]}                               | business_key                      |
| dimension | {atributes: {a: 1}}                                   | atributes                         |
| dimension | {attributes: {a: 5}}                                  | attributes.a                      |
| dimension | {attributes: {a: text}}                               | attributes.a                      |
| dimension | {attributes: {a: {type: int}}}                        | attributes.a.scd                  |
| dimension | {attributes: {a: {scd: 2, typ: int}}}                 | attributes.a.typ                  |
| dimension | {attributes: {a: {scd: 2, missing: maybe}}}           | attributes.a.missing              |
| dimension | {sources: {crm: {snapshott: {}}}}                     | sources.crm.snapshott             |
| dimension | {sources: {crm: {snapshot: 5}}}                       | sources.crm.snapshot              |
| dimension | {sources: {crm: {snapshot: {pth: a}}}}                | sources.crm.snapshot.pth          |
| dimension | {sources: {crm: {snapshot: {format: xls}}}}           | sources.crm.snapshot.format       |
| dimension | {sources: {crm: {snapshot: {retire_guard: 0.1}}}}     | sources.crm.snapshot.retire_guard |
| dimension | {sources: {crm: {feed: {ties: any_row}}}}             | sources.crm.feed.ties             |
| dimension | {sources: {crm: {feed: {}, retire_guard: {shar: 1}}}} | sources.crm.retire_guard.shar     |
| dimension | {sources: {crm: {feed: {}, columns: {a: {form: A}}}}} | sources.crm.columns.a.form        |
| dimension | {sources: {crm: {feed: {}, columns: {a: 5}}}}         | sources.crm.columns.a             |
| dimension | {begin: {at_time: 2024-01-01}}                        | begin.at_time                     |
| dimension | {sign_offs: {finance: {}}}                            | sign_offs.finance                 |
| dimension | {sign_offs: {business: {by: Ann}}}                    | sign_offs.business.date           |
| dimension | {audit_retention_years: seven}                        | audit_retention_years             |
| dimension | {expected_values: {n: {as_of: a, value: 1}}}             | expected_values.n.expression         |
| dimension | {change_types: {DELETE: gone}}                         | change_types.DELETE               |
| dimension | {table_properties: {delta.x: []}}                     | table_properties.delta.x          |
| history   | {history_of: 5}                                       | history_of                        |
| history   | {attributes: {a: 5}}                                  | attributes.a                      |
| history   | {historyof: t}                                        | historyof                         |
| timed_table | {bse: t.avro}                                       | bse                               |
| timed_table | {base: {path: t, columns: {a: {type: int, typ: a}}}}| base.columns.a.typ                |
| timed_table | {base: {path: t, format: xls}}                      | base.format                       |
| timed_table | {log: tables}                                       | log                               |
| fact      | {event_tme: at}                                       | event_tme                         |
| fact      | {dimension: d}                                        | dimension                         |
| fact      | {dimensions: {c: {dimension: d, kye: id}}}            | dimensions.c.kye                  |
| fact      | {dimensions: {c: {key: id}}}                          | dimensions.c.dimension            |
| fact      | {measures: {amount: 5}}                               | measures.amount                   |
"""


def problems(value: Any, schema: dict[str, Any], path: str = "") -> list[str]:
    """Return the path of each problem in a value; knows the keywords that the schema uses.

    The path of a key that is missing, or not allowed, ends with this key.
    """
    keywords = {"$schema", "definitions", "title", "examples", "$ref", "type", "enum", "if", "then", "else", "items"}
    assert schema.keys() <= keywords | {"properties", "additionalProperties", "required"}
    if "$ref" in schema:
        return problems(value, SCHEMA["definitions"][schema["$ref"].rpartition("/")[2]], path)
    types = schema.get("type", [])
    has_type = not types or any(_is(value, name) for name in ([types] if isinstance(types, str) else types))
    if not has_type or value not in schema.get("enum", [value]):
        return [path]
    inside = _problems_inside(value, schema, path)
    if "if" not in schema:
        return inside
    return [*problems(value, schema["else" if problems(value, schema["if"]) else "then"], path), *inside]


def _is(value: Any, name: str) -> bool:
    return isinstance(value, TYPES[name]) and (name == "boolean" or not isinstance(value, bool))


def _problems_inside(value: Any, schema: dict[str, Any], path: str) -> list[str]:
    if isinstance(value, list):
        return [problem for item in value for problem in problems(item, schema.get("items", {}), path)]
    if not isinstance(value, dict):
        return []
    missing = [_join(path, name) for name in schema.get("required", ()) if name not in value]
    properties, others = schema.get("properties", {}), schema.get("additionalProperties", {})
    chosen = {name: properties.get(name, others) for name in value}
    unexpected = [_join(path, name) for name, each in chosen.items() if each is False]
    chosen = {name: each for name, each in chosen.items() if each is not False}
    inner = [problem for name, each in chosen.items() for problem in problems(value[name], each, _join(path, name))]
    return [*missing, *unexpected, *inner]


def _join(path: str, name: str) -> str:
    return f"{path}.{name}".strip(".")


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
    assert [problems(document, SCHEMA) for document in documents(text)] == [[] for _ in documents(text)]


@pytest.mark.parametrize("row", parse(PROBLEMS), ids=lambda row: row["options"])
def test_a_problem_is_reported_at_its_option(row: dict[str, str]) -> None:
    """An option that is misspelt, missing or has an invalid value; an editor shows the problem in its line."""
    (changes,) = documents(row["options"])
    assert problems({**VALID[row["table"]], **changes}, SCHEMA) == [row["problem"]]


@pytest.mark.parametrize("valid", VALID.values())
def test_the_declarations_without_a_problem_are_valid(valid: dict[str, Any]) -> None:
    assert problems(valid, SCHEMA) == []


def test_the_schema_has_no_alternatives() -> None:
    """For alternatives an editor reports only that none matches, without the option that has the problem."""
    assert not re.search('"(anyOf|oneOf)"', schema_text())


def test_the_file_is_up_to_date() -> None:
    assert FILE.read_text(encoding="utf-8") == schema_text(), "run `make docs`"
