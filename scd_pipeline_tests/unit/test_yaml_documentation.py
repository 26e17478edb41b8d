"""Every example of the page on declarations is what it says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from scd_pipeline.declaration import Dimension, describe, parse
from scd_pipeline.declaration.checks.dimension import AUDIT_COLUMNS, TECHNICAL_COLUMNS
from scd_pipeline.declaration.yaml import options as words
from scd_pipeline.errors import DeclarationError

PAGE = (Path(__file__).parents[2] / "docs" / "reference" / "declaration.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", PAGE, flags=re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("text", blocks("yaml"))
def test_yaml_examples_are_valid(text: str) -> None:
    for dimension in parse(text):
        assert parse(describe(dimension)) == (dimension,)


def test_there_are_examples() -> None:
    assert len(blocks("yaml")) >= 3


def test_the_python_example_is_the_first_yaml_example() -> None:
    (code,) = blocks("python")
    names: dict[str, object] = {}
    exec(code.replace("\nDimension(", "\nfound = Dimension("), names)
    assert isinstance(names["found"], Dimension)
    assert parse(blocks("yaml")[0]) == (names["found"],)


def test_the_faults_are_what_is_told() -> None:
    text = blocks("yaml")[0].replace("city: 2", "city: 9").replace("_{date}", "")
    with pytest.raises(DeclarationError) as caught:
        parse(text, "dim_customer.yaml")
    assert [f"{caught.value}\n"] == blocks("text")


def test_every_word_is_on_the_page() -> None:
    tables = (
        words.DIMENSION,
        words.SOURCE,
        words.SNAPSHOT,
        words.FEED,
        words.COLUMN,
        words.ATTRIBUTE,
        words.BEGIN,
        words.FACT,
        words.ROLE,
    )
    missing = {word for table in tables for word in table if not re.search(rf"\b{word}\b", PAGE)}
    assert not missing
    assert all(f"`{column}`" in PAGE for column in (*TECHNICAL_COLUMNS, *AUDIT_COLUMNS))
