"""The texts in patterns of LIKE, by which the rows that may match are searched (S12)."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeAlias

_LONGEST = 16
"""The number of characters of an inner text that a search compares."""
_Tree: TypeAlias = dict[str, "_Tree"]


@dataclass(frozen=True, slots=True)
class LikePattern:
    """The texts in a pattern; each may be empty.

    Attributes:
        prefix: The text before the first wildcard, with which all matches begin.
        suffix: The text after the last wildcard, with which all matches end.
        inner: The begin of the longest text, which all matches contain.
    """

    prefix: str
    suffix: str
    inner: str


def is_pattern(text: str, escape: str) -> bool:
    """Return whether Spark reads a text as a pattern of LIKE."""
    escaped = re.escape(escape)
    return re.fullmatch(f"(?:{escaped}[%_{escaped}]|[^{escaped}])*", text) is not None


def parse_pattern(text: str, escape: str) -> LikePattern:
    """Return the texts in a pattern that Spark can read."""
    texts = [""]
    for escaped, character in re.findall(f"(?s){re.escape(escape)}(.)|(.)", text):
        if character in ("%", "_"):
            texts.append("")
        else:
            texts[-1] += escaped or character
    return LikePattern(texts[0], texts[-1], max(texts, key=len)[:_LONGEST])


def contains_any(texts: Iterable[str]) -> str:
    """Return the regular expression of Java that is found in a text that contains one of some texts.

    Texts with the same begin share it, so that each position of a text is compared with few characters.
    """
    tree: _Tree = {}
    for text in texts:
        node = tree
        for character in text:
            node = node.setdefault(character, {})
        node[""] = {}
    return _any_branch(tree)


def _any_branch(tree: _Tree) -> str:
    if "" in tree:
        return ""
    branches = [f"\\x{{{ord(character):x}}}{_any_branch(following)}" for character, following in tree.items()]
    return branches[0] if len(branches) == 1 else f"(?:{'|'.join(branches)})"
