"""Lint the words: names and texts of the package and its tests use the terms of the field, not a dialect of their own.

`python -m scd_pipeline_tests.words` is a part of `make lint`.
"""

from __future__ import annotations

import ast
import io
import re
import sys
import tokenize
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
# These contain the words that they forbid.
OWN_FILES = frozenset(["words.py", "test_words.py"])
MODULES = sorted(
    path
    for folder in ("scd_pipeline", "scd_pipeline_tests", "benchmarks", "examples")
    for path in (ROOT / folder).rglob("*.py")
    if path.name not in OWN_FILES
)
TEXTS = sorted(
    [
        *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "Makefile", "pyproject.toml")),
        *(ROOT / "docs").rglob("*.md"),
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


def module_problems(text: str) -> Iterator[str]:
    """Yield the line and the word of each name, string and comment of a module that is not of the field."""
    yield from (f"{line}: {name}" for name, line in names(ast.parse(text)) if not is_of_the_field(name))
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type in (tokenize.STRING, tokenize.COMMENT):
            yield from (f"{token.start[0]}: {phrase[0]}" for phrase in PHRASES.finditer(token.string))


def page_problems(text: str) -> Iterator[str]:
    """Yield the number and the text of each line of a page that is not plain."""
    yield from (f"{number}: {line}" for number, line in enumerate(text.splitlines(), 1) if PHRASES.search(line))


def main() -> int:
    """Print all problems and return the exit code."""
    problems = [
        f"{path.relative_to(ROOT)}:{problem}"
        for paths, check in ((MODULES, module_problems), (TEXTS, page_problems))
        for path in paths
        for problem in check(path.read_text(encoding="utf-8"))
    ]
    print("\n".join(problems) or f"Words of {len(MODULES)} modules and {len(TEXTS)} texts: no problems")
    return int(bool(problems))


if __name__ == "__main__":
    sys.exit(main())
