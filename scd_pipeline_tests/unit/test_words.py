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
    for folder in (PACKAGE, TESTS, ROOT / "benchmarks", ROOT / "examples")
    for path in folder.rglob("*.py")
    if path.name != "test_words.py"
)

TEXTS = sorted(
    [
        *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "Makefile", "pyproject.toml")),
        *DOCS.rglob("*.md"),
        *(path for path in (ROOT / "examples").rglob("*") if path.suffix in (".md", ".yaml")),
    ]
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
        "goes",
        "comes",
        "holds",
        "marked",
    ]
)
# Never a part of a name, except in the title of a test, which is a sentence.
SENTENCE_WORDS = frozenset(["again"])
# The names with such words that the field itself uses.
TERMS = re.compile(r"high_?water_?marks?|byte_?order_?mark", flags=re.IGNORECASE)
# Never a whole name, though a name may contain them, as `known_at` and `find_java` do.
NAMES = frozenset(
    [
        "of",
        "one",
        "ones",
        "find",
        "finds",
        "found",
        "there",
        "known",
        "made",
        "make",
        "kept",
        "keep",
        "place",
        "shown",
        "given",
        "word",
        "lost",
    ]
)
# Never in a text for users.
PHRASES = re.compile(
    r"\btold\b|\btaken in\b|\bput aside\b|\bmade anew\b|\bis no (int|number|date|text|list)\b|"
    r"\blies there\b|\bnobody\b|\ba rival\b|\bwas faster\b|\banew\b|\bhand(s|ed)? over\b"
)


def names(tree: ast.AST) -> Iterator[tuple[str, int]]:
    """Yield each name that a module binds, with its line."""
    for node in ast.walk(tree):
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                yield name, node.lineno
            case ast.arg(arg=name) | ast.Name(id=name, ctx=ast.Store()) | ast.Attribute(attr=name, ctx=ast.Store()):
                yield name, node.lineno
            case ast.alias(asname=str(name)) | ast.ExceptHandler(name=str(name)):
                yield name, node.lineno
            case ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)) | ast.MatchMapping(rest=str(name)):
                yield name, node.lineno


def is_of_the_field(name: str) -> bool:
    """Return whether a name has none of the words."""
    parts = {part.lower() for part in re.findall(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+", TERMS.sub("", name))}
    forbidden = WORDS if name.startswith("test_") else WORDS | SENTENCE_WORDS
    return forbidden.isdisjoint(parts) and name.strip("_").lower() not in NAMES


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


@pytest.mark.parametrize("page", TEXTS, ids=lambda page: str(page.relative_to(ROOT)))
def test_pages_are_plain(page: Path) -> None:
    lines = enumerate(page.read_text(encoding="utf-8").splitlines(), 1)
    assert [f"{number}: {line}" for number, line in lines if PHRASES.search(line)] == []
