"""Parsing of YAML text to nodes with line numbers; each syntax problem is reported with its line."""

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
class UnquotedTime:
    """The text of a date or time that is not quoted."""

    text: str


class UnreadableScalar(Exception):
    """A scalar whose text is not a value of its YAML type."""


def documents(text: str, report: Report) -> Iterator[Node]:
    """Yield the documents of the text that are not empty, and report syntax problems with their line."""
    try:
        for node in yaml.compose_all(text, Loader=yaml.SafeLoader):
            if not is_nothing(node):
                yield node
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = mark.line + 1 if mark else 1
        report(line, _on_one_line(error.problem or error.context or "the text ends too soon"), _syntax_fix(error))
    except ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        report(line, f"character U+{ord(text[error.position]):04X} is not allowed", "remove it")
    except RecursionError:
        report(1, "the text is nested too deep", "write it as the documentation shows")
    except (ValueError, OverflowError) as error:  # from numbers in escapes and directives
        report(1, f"the text is not YAML ({type(error).__name__})", "write it as the documentation shows")


def _on_one_line(problem: str) -> str:
    return " ".join(problem.split())


def _syntax_fix(error: yaml.MarkedYAMLError) -> str:
    problem = str(error.problem)
    if "got '{'" in problem:
        return "put a text with braces in quotes"
    if "\\t" in problem:
        return "indent with spaces"
    if "undefined alias" in problem:
        return "name an anchor that is defined before it"
    return "check the indentation, quotes and brackets on this line and the line before"


def is_nothing(node: Node) -> bool:
    return isinstance(node, ScalarNode) and bool(node.tag == f"{_TAG}null")


def line_number(node: Node) -> int:
    return int(node.start_mark.line) + 1


def node_kind(node: Node) -> str:
    """Return the kind of a node for a message."""
    return _COLLECTIONS.get(type(node), ("", "one value"))[1]


def foreign_tag(node: Node) -> str | None:
    """Return the tag of a node if declarations cannot have it, else None."""
    name = node.tag.removeprefix(_TAG)
    if isinstance(node, ScalarNode):
        is_supported = name in READ_AS or node.tag in TEXT_TAGS
    else:
        is_supported = name == _COLLECTIONS[type(node)][0]
    return None if is_supported else str(node.tag)


def parse_scalar(node: ScalarNode) -> Any:
    """Return the scalar as a Python value, and a date or time as an UnquotedTime.

    Raises:
        UnreadableScalar: The text is not a value of its YAML type.
    """
    name = node.tag.removeprefix(_TAG)
    if node.tag in TEXT_TAGS:
        return node.value
    if name == "timestamp":
        return UnquotedTime(node.value)
    try:
        return _READERS[name](yaml.SafeLoader(""), node)
    except (ValueError, IndexError, KeyError, OverflowError) as error:
        raise UnreadableScalar(READ_AS[name]) from error


_READERS: dict[str, Callable[[yaml.SafeLoader, ScalarNode], Any]] = {
    "bool": yaml.SafeLoader.construct_yaml_bool,
    "int": yaml.SafeLoader.construct_yaml_int,
    "float": yaml.SafeLoader.construct_yaml_float,
    "null": lambda _loader, _node: None,
}


def node_within_itself(root: Node) -> Node | None:
    """Return a node that contains itself by an anchor and an alias, None if no node does.

    The search does not recurse, because text may be nested as deep as Python's recursion limit.
    """
    open_nodes: set[int] = set()
    finished: set[int] = set()
    stack = [(root, False)]
    while stack:
        node, is_left = stack.pop()
        if is_left:
            open_nodes.discard(id(node))
            finished.add(id(node))
        elif id(node) in open_nodes:
            return node
        elif id(node) not in finished and not isinstance(node, ScalarNode):
            open_nodes.add(id(node))
            stack.append((node, True))
            stack += [(child, False) for child in _children(node)]
    return None


def _children(node: Node) -> list[Node]:
    if isinstance(node, MappingNode):
        return [child for pair in node.value for child in pair]
    return list(node.value)
