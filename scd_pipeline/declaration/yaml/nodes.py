"""YAML text as nodes with their lines; whatever the text is, the result is nodes or a fault."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import yaml
from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode
from yaml.reader import ReaderError

_TAG = "tag:yaml.org,2002:"
TEXT_TAGS = {f"{_TAG}{name}" for name in ("str", "value", "merge")}
_COLLECTIONS: dict[type[Node], tuple[str, str]] = {
    MappingNode: ("map", "a mapping"),
    SequenceNode: ("seq", "a list"),
}
READ_AS = {
    "bool": "true or false",
    "int": "a number",
    "float": "a number",
    "timestamp": "a date or time",
    "null": "nothing",
}
MERGE = f"{_TAG}merge"

Report = Callable[[int, str, str], None]


@dataclass(frozen=True, slots=True)
class Stamp:
    """A date or time that stands without quotes, as it is written."""

    text: str


class Unreadable(Exception):
    """A scalar that YAML gives a meaning which its text does not have."""


def documents(text: str, report: Report) -> Iterator[Node]:
    """The documents of the text that say something; what breaks the syntax is told with its line."""
    try:
        for node in yaml.compose_all(text, Loader=yaml.SafeLoader):
            if not is_nothing(node):
                yield node
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = mark.line + 1 if mark else 1
        report(line, _plainly(error.problem or error.context or "the text ends too soon"), _fix_of_syntax(error))
    except ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        report(line, f"character U+{ord(text[error.position]):04X} is not allowed", "remove it")
    except RecursionError:
        report(1, "the text is nested too deep", "write it as the documentation shows")
    except (ValueError, OverflowError) as error:  # from numbers in escapes and directives
        report(1, f"the text is not YAML ({type(error).__name__})", "write it as the documentation shows")


def _plainly(problem: str) -> str:
    return " ".join(problem.split())


def _fix_of_syntax(error: yaml.MarkedYAMLError) -> str:
    problem = str(error.problem)
    if "got '{'" in problem:
        return "put a text with braces in quotes"
    if "\\t" in problem:
        return "indent with spaces"
    if "undefined alias" in problem:
        return "name an anchor that stands before it"
    return "see the indentation, quotes and brackets here and just before"


def is_nothing(node: Node) -> bool:
    return isinstance(node, ScalarNode) and bool(node.tag == f"{_TAG}null")


def line_number(node: Node) -> int:
    return int(node.start_mark.line) + 1


def node_kind(node: Node) -> str:
    """What stands there, in words."""
    return _COLLECTIONS.get(type(node), ("", "one value"))[1]


def foreign_tag(node: Node) -> str | None:
    """The node's tag, where it is none that a declaration may have."""
    name = node.tag.removeprefix(_TAG)
    if isinstance(node, ScalarNode):
        known = name in READ_AS or node.tag in TEXT_TAGS
    else:
        known = name == _COLLECTIONS[type(node)][0]
    return None if known else str(node.tag)


def parse_scalar(node: ScalarNode) -> Any:
    """The scalar as a Python value; a date or time as a Stamp. Errors: Unreadable."""
    name = node.tag.removeprefix(_TAG)
    if node.tag in TEXT_TAGS:
        return node.value
    if name == "timestamp":
        return Stamp(node.value)
    try:
        return _READERS[name](yaml.SafeLoader(""), node)
    except (ValueError, IndexError, KeyError, OverflowError) as error:
        raise Unreadable(READ_AS[name]) from error


_READERS: dict[str, Callable[[yaml.SafeLoader, ScalarNode], Any]] = {
    "bool": yaml.SafeLoader.construct_yaml_bool,
    "int": yaml.SafeLoader.construct_yaml_int,
    "float": yaml.SafeLoader.construct_yaml_float,
    "null": lambda _loader, _node: None,
}


def node_within_itself(root: Node) -> Node | None:
    """A node that an anchor and an alias put inside itself; None where there is none.

    Walks with a stack of its own: the text may be nested as deep as Python's allows.
    """
    open_nodes: set[int] = set()
    done: set[int] = set()
    stack = [(root, False)]
    while stack:
        node, is_left = stack.pop()
        if is_left:
            open_nodes.discard(id(node))
            done.add(id(node))
        elif id(node) in open_nodes:
            return node
        elif id(node) not in done and not isinstance(node, ScalarNode):
            open_nodes.add(id(node))
            stack.append((node, True))
            stack += [(child, False) for child in _children(node)]
    return None


def _children(node: Node) -> list[Node]:
    if isinstance(node, MappingNode):
        return [part for pair in node.value for part in pair]
    return list(node.value)
