"""Names and texts of the package and its tests use the terms of the field, not a dialect of their own."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

import pytest

import scd_pipeline

PACKAGE = Path(scd_pipeline.__file__).parent
ROOT = PACKAGE.parent
DOCS = ROOT / "docs"
TESTS = ROOT / "scd_pipeline_tests"
# This module contains the words that it forbids.
MODULES = sorted(
    path.relative_to(ROOT)
    for folder in (PACKAGE, TESTS)
    for path in folder.rglob("*.py")
    if path.name != "test_words.py"
)

# Never a part of a name: a name says what a value is, not how it was obtained.
WORDS = frozenset(
    [
        "told",
        "tell",
        "tells",
        "telling",
        "say",
        "says",
        "said",
        "speak",
        "speaks",
        "heard",
        "take",
        "takes",
        "taken",
        "took",
        "gone",
        "alive",
        "stand",
        "stands",
        "stood",
        "standing",
        "who",
        "whom",
        "whose",
        "nobody",
        "everybody",
        "somebody",
        "rival",
        "faster",
        "anew",
        "mend",
        "aloud",
        "upkeep",
        "lie",
        "lies",
        "lying",
        "settle",
        "settles",
        "settled",
        "ask",
        "asks",
        "asked",
        "asking",
        "meant",
        "wanted",
        "wrong",
        "beside",
    ]
)
# Never a whole name, though a name may contain them, as `known_at` and `find_java` do.
NAMES = frozenset(
    ["of", "one", "ones", "found", "there", "known", "made", "make", "kept", "keep", "place", "shown", "given", "word"]
)
# Never right in a text for users.
PHRASES = re.compile(
    r"\btold\b|\btaken in\b|\bput aside\b|\bmade anew\b|\bis no (int|number|date|text|list)\b|"
    r"\blies there\b|\bnobody\b|\ba rival\b|\bwas faster\b"
)


def names(tree: ast.AST) -> Iterator[tuple[str, int]]:
    """Yield each name that a module binds, with its line."""
    for node in ast.walk(tree):
        match node:
            case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
                yield name, node.lineno
            case ast.arg(arg=name) | ast.Name(id=name, ctx=ast.Store()) | ast.Attribute(attr=name, ctx=ast.Store()):
                yield name, node.lineno


def is_of_the_field(name: str) -> bool:
    """Return whether a name has none of the words."""
    parts = re.findall(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+", name)
    return WORDS.isdisjoint(part.lower() for part in parts) and name.strip("_").lower() not in NAMES


@pytest.mark.parametrize("module", MODULES, ids=str)
def test_names_are_of_the_field(module: Path) -> None:
    text = (ROOT / module).read_text(encoding="utf-8")
    others = [f"{module}:{line}: {name}" for name, line in names(ast.parse(text)) if not is_of_the_field(name)]
    assert others == []


@pytest.mark.parametrize("module", MODULES, ids=str)
def test_texts_are_plain(module: Path) -> None:
    text = (ROOT / module).read_text(encoding="utf-8")
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    others = [
        f"{module}:{token.start[0]}: {phrase[0]}"
        for token in tokens
        if token.type in (tokenize.STRING, tokenize.COMMENT)
        for phrase in PHRASES.finditer(token.string)
    ]
    assert others == []


@pytest.mark.parametrize("page", sorted(DOCS.rglob("*.md")), ids=lambda page: str(page.relative_to(DOCS)))
def test_pages_are_plain(page: Path) -> None:
    lines = enumerate(page.read_text(encoding="utf-8").splitlines(), 1)
    assert [f"{number}: {line}" for number, line in lines if PHRASES.search(line)] == []
