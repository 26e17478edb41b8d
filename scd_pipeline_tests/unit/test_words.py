"""The lint of words finds each kind of name and text."""

from __future__ import annotations

import ast

import pytest

from scd_pipeline_tests import words
from scd_pipeline_tests.words import is_of_the_field, module_problems, names, page_problems


def test_every_kind_of_binding_is_seen() -> None:
    source = """
import a as told
try:
    pass
except E as asked:
    pass
match x:
    case [said, *gone]:
        pass
    case {"k": 1, **taken}:
        pass
    case 1 as lies:
        pass
async def stands(): pass
"""
    expected = {"told", "asked", "said", "gone", "taken", "lies", "stands"}
    assert {name for name, _ in names(ast.parse(source))} == expected
    assert not any(is_of_the_field(name) for name in expected)


@pytest.mark.parametrize(
    ("name", "is_allowed"),
    [
        ("high_water_marks", True),
        ("HighWaterMark", True),
        ("_BYTE_ORDER_MARK", True),
        ("marked", False),
        ("find_java", True),
        ("find", False),
        ("test_it_is_read_again", True),
        ("load_again", False),
    ],
)
def test_terms_of_the_field_are_allowed(name: str, is_allowed: bool) -> None:
    assert is_of_the_field(name) == is_allowed


def test_names_strings_and_comments_of_a_module_are_linted() -> None:
    text = "x = 1\ngone = x  # nobody reads it\n'''A rival\nwas faster.'''\n"
    assert list(module_problems(text)) == ["2: gone", "2: nobody", "3: was faster"]


def test_lines_of_a_page_are_linted() -> None:
    assert list(page_problems("The load\nwas told twice.\n")) == ["2: was told twice."]


def test_the_lint_covers_the_package_its_tests_and_its_pages() -> None:
    linted = {str(path.relative_to(words.ROOT)) for path in [*words.MODULES, *words.TEXTS]}
    assert linted >= {"scd_pipeline/pipeline.py", "scd_pipeline_tests/oracle.py", "examples/congress/demo.py"}
    assert linted >= {"benchmarks/runner.py", "README.md", "docs/tutorial.md", "examples/congress/dim_legislator.yaml"}
