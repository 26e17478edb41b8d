"""Mutations of functions of the engine: each selects one expression by the names in it; no file is changed.

A function is named by its module and its qualified name (`timeline.running_state`, `batch.Batch.covers`),
whatever package the module is in. A mutation quotes no source text of the engine. It selects an expression by its
kind (a call, a comparison, an operand ...) and by the functions, constants, columns and attributes that it mentions.
"""

from __future__ import annotations
import __future__

import ast
import builtins
import contextlib
import copy
import functools
import importlib
import inspect
import textwrap
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from types import CodeType, FunctionType, ModuleType
from typing import Any


class DoesNotApply(Exception):
    """A mutation does not fit the current function."""


@dataclass(frozen=True)
class Selection:
    """One expression of a function: the innermost one of a kind that mentions all `names`.

    `label` is the name of a called function, of an attribute or of a keyword, or the operator of a comparison; ""
    for any. With `outer` the expression is inside of one that `outer` matches.
    """

    kind: str
    label: str
    names: tuple[str, ...]
    outer: Selection | None = None

    def inside(self, outer: Selection) -> Selection:
        """Select only inside of another expression."""
        return replace(self, outer=outer)

    def select(self, definition: ast.FunctionDef) -> ast.expr:
        """Return the expression.

        Raises:
            DoesNotApply: the function has no such expression, or several.
        """
        matches = [path for path in _paths(definition) if self._matches(path)]
        enclosing = {id(node) for path in matches for node in path[:-1]}
        innermost = [path[-1] for path in matches if id(path[-1]) not in enclosing]
        if len(innermost) != 1:
            raise DoesNotApply(f"expected one {self}; the function has {len(innermost)}")
        assert isinstance(innermost[0], ast.expr)
        return innermost[0]

    def _matches(self, path: Sequence[ast.AST]) -> bool:
        parent, node = path[-2:]
        if not isinstance(node, ast.expr) or not _KINDS[self.kind](node, parent, self.label):
            return False
        mentioning = [*node.args, *node.keywords] if isinstance(node, ast.Call) and self.kind == "call" else [node]
        if not set(self.names) <= {name for inner in mentioning for name in _names(inner)}:
            return False
        return self.outer is None or any(self.outer._matches(path[:end]) for end in range(2, len(path)))

    def __str__(self) -> str:
        what = " ".join(filter(None, [self.kind, self.label]))
        mentioned = f" that mentions {', '.join(self.names)}" if self.names else ""
        return f"{what}{mentioned}{f' inside a {self.outer}' if self.outer else ''}"


def call(function: str, *names: str) -> Selection:
    """Select a call of a function or method; `names` are mentioned in its arguments."""
    return Selection("call", function, names)


def argument(function: str, *names: str) -> Selection:
    """Select a positional argument of a call."""
    return Selection("argument", function, names)


def attribute(name: str) -> Selection:
    """Select an attribute of an object."""
    return Selection("attribute", name, ())


def keyword(name: str, *names: str) -> Selection:
    """Select the value of a keyword argument."""
    return Selection("keyword", name, names)


def comparison(*names: str, operator: str = "") -> Selection:
    """Select a comparison."""
    return Selection("comparison", operator, names)


def condition(*names: str) -> Selection:
    """Select the condition of an `if` statement or of a conditional expression."""
    return Selection("condition", "", names)


def operand(*names: str) -> Selection:
    """Select an operand of `and`, `or`, `&` or `|`."""
    return Selection("operand", "", names)


def item(*names: str) -> Selection:
    """Select an item of a list, a tuple or a set."""
    return Selection("item", "", names)


def comprehension(*names: str) -> Selection:
    """Select a comprehension or a generator expression."""
    return Selection("comprehension", "", names)


def iterable(*names: str) -> Selection:
    """Select what a `for` statement iterates over."""
    return Selection("iterable", "", names)


def _called(node: ast.AST) -> str:
    function = node.func if isinstance(node, ast.Call) else None
    if isinstance(function, ast.Attribute):
        return function.attr
    return function.id if isinstance(function, ast.Name) else ""


def _is_operand(node: ast.expr, parent: ast.AST, label: str) -> bool:
    is_logical = isinstance(parent, ast.BinOp) and isinstance(parent.op, ast.BitAnd | ast.BitOr)
    return is_logical or isinstance(parent, ast.BoolOp)


def _is_comparison(node: ast.expr, parent: ast.AST, label: str) -> bool:
    if not isinstance(node, ast.Compare):
        return False
    return not label or [type(operator) for operator in node.ops] == [_OPERATORS[label]]


_OPERATORS: dict[str, type[ast.cmpop]] = {"<": ast.Lt, "<=": ast.LtE, ">": ast.Gt, ">=": ast.GtE}
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
_KINDS: dict[str, Callable[[ast.expr, ast.AST, str], bool]] = {
    "call": lambda node, parent, label: isinstance(node, ast.Call) and _called(node) == label,
    "argument": lambda node, parent, label: (
        isinstance(parent, ast.Call) and node in parent.args and _called(parent) == label
    ),
    "attribute": lambda node, parent, label: isinstance(node, ast.Attribute) and node.attr == label,
    "keyword": lambda node, parent, label: isinstance(parent, ast.keyword) and parent.arg == label,
    "comparison": _is_comparison,
    "condition": lambda node, parent, label: isinstance(parent, ast.If | ast.IfExp) and node is parent.test,
    "operand": _is_operand,
    "item": lambda node, parent, label: isinstance(parent, ast.List | ast.Tuple | ast.Set),
    "comprehension": lambda node, parent, label: isinstance(node, _COMPREHENSIONS),
    "iterable": lambda node, parent, label: isinstance(parent, ast.For) and node is parent.iter,
}


def _paths(node: ast.AST, above: tuple[ast.AST, ...] = ()) -> Iterator[tuple[ast.AST, ...]]:
    """The nodes below a node, each with those that enclose it, outermost first."""
    path = (*above, node)
    for child in ast.iter_child_nodes(node):
        yield (*path, child)
        yield from _paths(child, path)


def _names(node: ast.AST) -> Iterator[str]:
    """The identifiers, attributes, keywords and texts in an expression."""
    for inner in ast.walk(node):
        match inner:
            case ast.Name(id=name) | ast.Attribute(attr=name) | ast.keyword(arg=str(name)):
                yield name
            case ast.Constant(value=str(text)):
                yield text


@dataclass(frozen=True)
class Mutation:
    """A change of one expression of a function, or with `operation` "begin" of its first statement.

    `new` is Python that runs with the function's own names. In it `_` is the selected expression; if that is a call,
    `_receiver` is the object whose method is called, and `_0`, `_1` ... are its positional arguments.
    """

    operation: str
    selection: Selection | None = None
    new: str = ""

    def apply(self, definition: ast.FunctionDef, function: FunctionType) -> None:
        """Change the definition of a function.

        Raises:
            DoesNotApply: the function has no such expression, the new one uses a name that the function does not
                have, or the change changes nothing.
        """
        before = ast.dump(definition)
        new = ast.parse(self.new.strip()) if self.operation in _PYTHON else ast.Module([], [])
        if unknown := sorted(_free_names(new) - _available_names(function)):
            raise DoesNotApply(f"the function has no {', '.join(unknown)}")
        if self.selection is None:
            definition.body[:0] = new.body
        else:
            target = self.selection.select(definition)
            _Substitution(*_OPERATIONS[self.operation](self, target, definition)).visit(definition)
        ast.fix_missing_locations(definition)
        if ast.dump(definition) == before:
            raise DoesNotApply(f"{self} changes nothing")


def replaced(selection: Selection, new: str) -> Mutation:
    """Replace an expression; see `Mutation` for the names in `new`."""
    return Mutation("replace", selection, new)


def dropped(selection: Selection) -> Mutation:
    """Drop an item, an argument, or an operand with its operator."""
    return Mutation("drop", selection)


def unchained(selection: Selection) -> Mutation:
    """Drop the call of a method from a chain of calls."""
    return Mutation("replace", selection, "_receiver")


def renamed(selection: Selection, function: str) -> Mutation:
    """Call another function or method with the same arguments."""
    return Mutation("rename", selection, function)


def compared(selection: Selection, operator: str) -> Mutation:
    """Compare with another operator."""
    return Mutation("compare", selection, operator)


def begun(statement: str) -> Mutation:
    """Begin the function with another statement."""
    return Mutation("begin", None, statement)


def returned(value: str) -> Mutation:
    """Return a value at once."""
    return begun(f"return {value}")


_Change = tuple[ast.AST, ast.AST | None]
"""A node and its replacement; None removes it from its list."""


def _replace(mutation: Mutation, target: ast.expr, definition: ast.FunctionDef) -> _Change:
    return target, _Placeholders(target).visit(ast.parse(mutation.new.strip(), mode="eval").body)


def _drop(mutation: Mutation, target: ast.expr, definition: ast.FunctionDef) -> _Change:
    parent = next(path[-2] for path in _paths(definition) if path[-1] is target)
    if isinstance(parent, ast.BinOp):
        return parent, parent.right if parent.left is target else parent.left
    if isinstance(parent, ast.BoolOp) and len(parent.values) == 2:
        return parent, next(value for value in parent.values if value is not target)
    return target, None


def _rename(mutation: Mutation, target: ast.expr, definition: ast.FunctionDef) -> _Change:
    assert isinstance(target, ast.Call)
    changed = copy.deepcopy(target)
    if isinstance(changed.func, ast.Attribute):
        changed.func.attr = mutation.new
    else:
        changed.func = ast.Name(mutation.new, ast.Load())
    return target, changed


def _compare(mutation: Mutation, target: ast.expr, definition: ast.FunctionDef) -> _Change:
    assert isinstance(target, ast.Compare)
    return target, ast.Compare(target.left, [_OPERATORS[mutation.new]()], target.comparators)


_OPERATIONS = {"replace": _replace, "drop": _drop, "rename": _rename, "compare": _compare}
_PYTHON = ("replace", "begin")
"""Operations whose `new` is Python."""


class _Substitution(ast.NodeTransformer):
    def __init__(self, target: ast.AST, new: ast.AST | None) -> None:
        self.target, self.new = target, new

    def visit(self, node: ast.AST) -> Any:
        return self.new if node is self.target else super().visit(node)


class _Placeholders(ast.NodeTransformer):
    """Puts the selected expression and its parts into a new one."""

    def __init__(self, target: ast.expr) -> None:
        self.parts: dict[str, ast.expr] = {"_": target}
        if isinstance(target, ast.Call):
            self.parts |= {f"_{number}": value for number, value in enumerate(target.args)}
            if isinstance(target.func, ast.Attribute):
                self.parts["_receiver"] = target.func.value

    def visit_Name(self, node: ast.Name) -> ast.expr:
        if not _is_placeholder(node.id):
            return node
        if node.id not in self.parts:
            raise DoesNotApply(f"the selected expression has no part {node.id}")
        return copy.deepcopy(self.parts[node.id])


def _is_placeholder(name: str) -> bool:
    return name in ("_", "_receiver") or (name[:1] == "_" and name[1:].isdigit())


def _free_names(code: ast.AST) -> set[str]:
    nodes = list(ast.walk(code))
    bound = {node.arg for node in nodes if isinstance(node, ast.arg)}
    bound |= {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    return {node.id for node in nodes if isinstance(node, ast.Name) and not _is_placeholder(node.id)} - bound


def _available_names(function: FunctionType) -> set[str]:
    code = function.__code__
    return {*code.co_varnames, *code.co_cellvars, *function.__globals__, *dir(builtins)}


@dataclass(frozen=True)
class Mutated:
    """A function, named by its module and its qualified name, with a mutation."""

    name: str
    mutation: Mutation

    def code(self, function: FunctionType) -> CodeType:
        """Return the mutated function, compiled.

        Raises:
            DoesNotApply: the mutation does not fit the function.
        """
        tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
        definition = tree.body[0]
        assert isinstance(definition, ast.FunctionDef)
        definition.decorator_list = []
        self.mutation.apply(definition, function)
        definition.body[:0] = ast.parse(_RECORD_CALL.format(module=__name__, name=self.name)).body
        namespace: dict[str, Any] = {}
        flags = __future__.annotations.compiler_flag
        compiled = compile(tree, function.__code__.co_filename, "exec", flags, dont_inherit=True)
        exec(compiled, dict(function.__globals__), namespace)
        code: CodeType = namespace[definition.name].__code__
        return code


_CALLED: set[str] = set()
"""The mutated functions that were called since their mutations were applied last."""
_RECORD_CALL = "__import__({module!r}, fromlist=['record_call']).record_call({name!r})"
"""The first statement of each mutated function. It needs no name of the function's module."""


def record_call(name: str) -> None:
    """Record that a mutated function was called."""
    _CALLED.add(name)


class Patch:
    """Mutations of different functions, compiled at once, so that later changes of the files do not matter."""

    def __init__(self, mutated: Sequence[Mutated], modules: Sequence[str]) -> None:
        """Find the functions in some modules, and mutate them.

        Raises:
            DoesNotApply: a function does not exist, or its mutation does not fit it.
        """
        self.names = frozenset(change.name for change in mutated)
        self.codes: list[tuple[FunctionType, CodeType]] = []
        for change in mutated:
            try:
                function = find_function(change.name, modules)
                self.codes.append((function, change.code(function)))
            except DoesNotApply as error:
                raise DoesNotApply(f"{change.name}: {error}") from error
        assert len({function for function, _ in self.codes}) == len(mutated), "one mutation for each function"

    @contextlib.contextmanager
    def applied(self) -> Iterator[None]:
        """Apply the mutations. All references to the functions see them, as the functions stay the same objects."""
        before = [(function, function.__code__) for function, _ in self.codes]
        _CALLED.difference_update(self.names)
        try:
            for function, code in self.codes:
                function.__code__ = code
            yield
        finally:
            for function, code in before:
                function.__code__ = code

    def is_called(self) -> bool:
        """Return whether a mutated function was called since the mutations were applied last."""
        return bool(self.names & _CALLED)


def find_function(name: str, modules: Sequence[str]) -> FunctionType:
    """Return the function of a name such as `timeline.running_state`, also behind a property.

    Raises:
        DoesNotApply: the modules have no such function, or several.
    """
    module_name, *path = name.split(".")
    candidates = [importlib.import_module(module) for module in modules if module.rpartition(".")[2] == module_name]
    functions = [function for module in candidates if (function := _function_in(module, path)) is not None]
    if len(functions) != 1:
        raise DoesNotApply(f"{len(functions)} functions have this name; expected one")
    return functions[0]


def _function_in(module: ModuleType, path: Sequence[str]) -> FunctionType | None:
    value: Any = module
    for part in path:
        value = inspect.getattr_static(value, part, None)
    for kind, attribute in ((property, "fget"), (functools.cached_property, "func"), (staticmethod, "__func__")):
        if isinstance(value, kind):
            value = getattr(value, attribute)
    is_own = isinstance(value, FunctionType) and value.__module__ == module.__name__
    return value if is_own else None
