"""Tests with the marks `rule` and `requirement`, which the generated pages list."""

from __future__ import annotations

import importlib
import importlib.util
import inspect
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from types import FunctionType, ModuleType

import pytest
from _pytest.fixtures import FixtureFunctionDefinition

from scd_pipeline_tests.semantics.specification import ORACLE, Case


@dataclass(frozen=True)
class ListedTest:
    """A test as a page lists it: its file from the folder of the pages, and the numbers in its marks.

    `is_slow`: whether it runs in `make test-all` only. A case of which only the engine side does so is slow as well:
    the oracle side shows nothing about stored data.

    `has_session`: whether it needs a Spark session, directly or by a fixture. Other tests read and write no table.
    """

    file: str
    name: str
    numbers: tuple[str, ...]
    case: Case | None
    is_slow: bool
    has_session: bool

    @property
    def title(self) -> str:
        """The name of the test in words."""
        words = self.name.removeprefix("test_").replace("_", " ")
        return words[0].upper() + words[1:]


def tests_with_mark(module: str, mark: str) -> Iterator[ListedTest]:
    """The tests of a module that have the mark, in their order."""
    imported = importlib.import_module(module)
    marks_of_module = _marks(imported)
    for name, function in vars(imported).items():
        marks = _marks(function) if isinstance(function, FunctionType) else []
        numbers = tuple(number for each in marks if each.name == mark for number in each.args)
        if name.startswith("test_") and numbers:
            file, case = f"../{module.replace('.', '/')}.py", getattr(function, "case", None)
            has_session = case is not None or not SESSIONS.isdisjoint(_fixtures_of(function, imported, marks))
            yield ListedTest(file, name, numbers, case, any(map(_is_slow, [*marks_of_module, *marks])), has_session)


def _fixtures_of(test: FunctionType, module: ModuleType, marks: Iterable[pytest.Mark]) -> set[str]:
    """The names of the fixtures that a test uses, and of those that these use."""
    fixtures = _fixtures(module)
    used = set[str]()
    names = {
        *inspect.signature(test).parameters,
        *(n for mark in marks if mark.name == "usefixtures" for n in mark.args),
    }
    while names:
        used |= names
        functions = [fixtures[name] for name in names if name in fixtures]
        names = {name for function in functions for name in inspect.signature(function).parameters} - used
    return used


def _fixtures(module: ModuleType) -> dict[str, FunctionType]:
    """The fixtures of a module and of the conftest modules of its packages; the nearest one of each name."""
    packages = module.__name__.split(".")[:-1]
    names = [".".join([*packages[:end], "conftest"]) for end in range(1, len(packages) + 1)]
    conftests = [importlib.import_module(name) for name in names if importlib.util.find_spec(name)]
    definitions = [
        (name, value)
        for each in (*conftests, module)
        for name, value in vars(each).items()
        if isinstance(value, FixtureFunctionDefinition)
    ]
    return {value.name or name: value._get_wrapped_function() for name, value in definitions}


SESSIONS = frozenset(["spark", "remote"])
"""The fixtures of a Spark session."""


def _marks(tests: ModuleType | FunctionType) -> list[pytest.Mark]:
    """The marks of a test or of all tests of a module."""
    marks = getattr(tests, "pytestmark", [])
    decorators = marks if isinstance(marks, list) else [marks]
    return [getattr(each, "mark", each) for each in decorators]


def _is_slow(mark: pytest.Mark) -> bool:
    """Return whether a test with this mark is slow: by itself, or by all its parameters except the oracle."""
    if mark.name != "parametrize":
        return mark.name == "slow"
    values = [value for value in mark.args[1] if value is not ORACLE]
    return all(any(each.name == "slow" for each in getattr(value, "marks", ())) for value in values)
