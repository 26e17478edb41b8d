"""Faults put into functions of the running process: some text of their source becomes another; no file is touched."""

from __future__ import annotations
import __future__

import ast
import contextlib
import functools
import importlib
import inspect
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from types import CodeType, FunctionType
from typing import Any


@dataclass(frozen=True)
class Edit:
    """In the function `module:qualified.name` of the package the text `old`, which occurs once, becomes `new`."""

    where: str
    old: str
    new: str

    @property
    def function(self) -> FunctionType:
        """The function itself, also behind a property."""
        module, name = self.where.split(":")
        found: Any = importlib.import_module(f"scd_pipeline.{module}")
        for part in name.split("."):
            found = inspect.getattr_static(found, part)
        return _bare(found)

    def code(self) -> CodeType:
        """The changed code, compiled.  Errors: ValueError if the function does not read as expected."""
        source = textwrap.dedent(inspect.getsource(self.function))
        if source.count(self.old) != 1:
            raise ValueError(f"{self.where}: {self.old!r} occurs {source.count(self.old)} times; expected once")
        return _compiled(source.replace(self.old, self.new), self.function)


def _bare(found: Any) -> FunctionType:
    for kind, name in ((property, "fget"), (functools.cached_property, "func"), (staticmethod, "__func__")):
        if isinstance(found, kind):
            found = getattr(found, name)
    assert isinstance(found, FunctionType), f"{found} is no function"
    return found


def _compiled(source: str, like: FunctionType) -> CodeType:
    tree = ast.parse(source)
    definition = tree.body[0]
    assert isinstance(definition, ast.FunctionDef)
    definition.decorator_list = []
    made: dict[str, Any] = {}
    flags = __future__.annotations.compiler_flag
    exec(compile(tree, like.__code__.co_filename, "exec", flags, dont_inherit=True), dict(like.__globals__), made)
    code: CodeType = made[definition.name].__code__
    return code


class Patch:
    """Edits of different functions, compiled at once, so that later changes of the files do not matter."""

    def __init__(self, *edits: Edit) -> None:
        self.codes = [(edit.function, edit.code()) for edit in edits]
        assert len({function for function, _ in self.codes}) == len(edits), "one edit for each function"

    @contextlib.contextmanager
    def applied(self) -> Iterator[None]:
        """With the edits. Whoever refers to the functions sees them, as they stay the same objects."""
        before = [(function, function.__code__) for function, _ in self.codes]
        try:
            for function, code in self.codes:
                function.__code__ = code
            yield
        finally:
            for function, code in before:
                function.__code__ = code
