"""Faults put into functions of the running process: some text of their source is another one, no file is touched."""

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
    """In the function `module:qualified.name` the text `old`, which occurs once, becomes `new`."""

    where: str
    old: str
    new: str

    @property
    def function(self) -> FunctionType:
        """The function itself, also behind a property or a class method."""
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
        return self._compiled(source.replace(self.old, self.new))

    def _compiled(self, source: str) -> CodeType:
        tree = ast.parse(source)
        definition = tree.body[0]
        assert isinstance(definition, ast.FunctionDef)
        definition.decorator_list = []
        flags = __future__.annotations.compiler_flag
        made: dict[str, Any] = {}
        file = self.function.__code__.co_filename
        exec(compile(tree, file, "exec", flags, dont_inherit=True), self.function.__globals__ | {}, made)
        code: CodeType = made[definition.name].__code__
        return code


def _bare(found: Any) -> FunctionType:
    for kind, name in ((property, "fget"), (functools.cached_property, "func"), (staticmethod, "__func__")):
        if isinstance(found, kind):
            found = getattr(found, name)
    assert isinstance(found, FunctionType), f"{found} is no function"
    return found


@contextlib.contextmanager
def patched(*edits: Edit) -> Iterator[None]:
    """With all edits; every reference to the functions sees them, as they stay the same objects."""
    codes = [(edit.function, edit.code()) for edit in edits]
    before = [(function, function.__code__) for function, _ in codes]
    try:
        for function, code in codes:
            function.__code__ = code
        yield
    finally:
        for function, code in before:
            function.__code__ = code
