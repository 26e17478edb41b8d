"""The examples of the page on declarations are valid, and its list of options is complete."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from scd_pipeline.conditions import DECLARATION_WARNINGS
from scd_pipeline.declaration import Dimension, describe, parse
from scd_pipeline.declaration.checks.dimension import AUDIT_COLUMNS, TECHNICAL_COLUMNS
from scd_pipeline.declaration.yaml import options
from scd_pipeline.errors import DeclarationError

PAGE = (Path(__file__).parents[2] / "docs" / "reference" / "declaration.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", PAGE, flags=re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("text", blocks("yaml"))
def test_yaml_examples_are_valid(text: str) -> None:
    for dimension in parse(text):
        assert parse(describe(dimension)) == (dimension,)


def test_the_page_has_examples() -> None:
    assert len(blocks("yaml")) >= 3


def test_the_python_example_is_the_first_yaml_example() -> None:
    (code,) = blocks("python")
    names: dict[str, object] = {}
    exec(code.replace("\nDimension(", "\nexample = Dimension("), names)
    assert isinstance(names["example"], Dimension)
    assert parse(blocks("yaml")[0]) == (names["example"],)


def test_the_error_example_is_the_reported_text() -> None:
    text = blocks("yaml")[0].replace("city: 2", "city: 9").replace("_{date}", "")
    with pytest.raises(DeclarationError) as caught:
        parse(text, "dim_customer.yaml")
    assert [f"{caught.value}\n"] == blocks("text")


def test_every_option_is_on_the_page() -> None:
    tables = (
        options.DIMENSION,
        options.SOURCE,
        options.SNAPSHOT,
        options.FEED,
        options.COLUMN,
        options.ATTRIBUTE,
        options.CHANGE_TYPES,
        options.BEGIN,
        options.SIGN_OFFS,
        options.SIGN_OFF,
        options.EXPECTED_VALUE,
        options.FACT,
        options.ROLE,
    )
    missing = {option for table in tables for option in table if not re.search(rf"\b{option}\b", PAGE)}
    assert not missing
    assert all(f"`{code}`" in PAGE for code in DECLARATION_WARNINGS)
    assert all(f"`{column}`" in PAGE for column in (*TECHNICAL_COLUMNS, *AUDIT_COLUMNS))
