"""Make the relative paths of a query in SQL absolute."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

_TOKEN = re.compile(
    r"""
      --(?:\\\n|[^\r\n])* | /\*                             # comments
    | [rR]'[^']*' | '(?:\\.|[^'\\])*'                       # literals
    | [rR]"[^"]*" | "(?:\\.|[^"\\])*"
    | `(?:``|[^`])*` | \w+ | \|> | \S
    """,
    re.DOTALL | re.VERBOSE,
)
_COMMENT_END = re.compile(r"/\*|\*/")
"""A comment in a comment has an end of its own."""
_FORMATS = {"DELTA", "PARQUET", "ORC", "AVRO", "CSV", "JSON", "XML", "TEXT", "BINARYFILE"}
_RELATIVE_PATH = re.compile(r"`(?!/|[a-z][a-z0-9+.-]*:)[^`]+`", re.IGNORECASE)
"""A path without a scheme that does not begin at the root."""
_BEFORE_LISTS = {"FROM", "JOIN"}
_BEFORE_RELATIONS = {*_BEFORE_LISTS, "TABLE", "DESC", "DESCRIBE", "EXTENDED", "FORMATTED", "DETAIL", "HISTORY"}
"""The words after which a name that has a dot names a relation."""
_AFTER_LISTS = {
    *("|>", "SELECT", "WHERE", "GROUP", "HAVING", "QUALIFY", "WINDOW"),
    *("ORDER", "SORT", "CLUSTER", "DISTRIBUTE", "LIMIT", "OFFSET"),
}
"""What ends a list of relations: after it, commas separate expressions."""
_FUNCTIONS_WITH_FROM = {"EXTRACT", "TRIM", "SUBSTR", "SUBSTRING", "OVERLAY"}


@dataclass
class _Scope:
    """What is between two parentheses: the word before them, and whether commas separate relations at this point."""

    name: str
    is_list: bool = False


def with_absolute_paths(text: str) -> str:
    """Return a query in which the relative paths of files that it reads as tables begin at the current folder.

    A server has another folder. Expressions, literals and comments are left as they are.
    """
    parts, end = [], 0
    for path in _relative_paths(list(_tokens(text))):
        parts += [text[end : path.start() + 1], str(Path(path[0][1:-1]).absolute()).replace("`", "``")]
        end = path.end() - 1
    return "".join([*parts, text[end:]])


def _tokens(text: str) -> Iterator[re.Match[str]]:
    """Yield the words, quoted names, literals and signs of a query without its comments."""
    depth = end = 0
    while match := (_COMMENT_END if depth else _TOKEN).search(text, end):
        end = match.end()
        depth += {"/*": 1, "*/": -1}.get(match[0], 0)
        if not match[0].startswith(("--", "/*", "*/")):
            yield match


def _relative_paths(tokens: Sequence[re.Match[str]]) -> Iterator[re.Match[str]]:
    """Yield the paths of relations such as csv.`a.csv`; csv.`a`.`b` is a table of a catalog."""
    texts = [*(token[0] for token in tokens), "", "", ""]
    for index in _relation_names(texts):
        name, dot, path, after = texts[index : index + 4]
        is_file = name.strip("`").upper() in _FORMATS and dot == "." and after != "."
        if is_file and _RELATIVE_PATH.fullmatch(path):
            yield tokens[index + 2]


def _relation_names(texts: Sequence[str]) -> Iterator[int]:
    """Yield the indexes of the tokens at which the name of a relation may begin."""
    scopes = [_Scope("")]
    before = previous = ""  # what requires that a relation follows, and the last token
    for index, token in enumerate(text.upper() for text in texts[:-3]):
        if before and token not in {",", "(", ")"}:
            scopes[-1].is_list |= before in _BEFORE_LISTS
            yield index
        if token == "(":
            scopes[-1].is_list |= before in _BEFORE_LISTS
            scopes.append(_Scope(previous))
        else:
            before = _close(scopes) if token == ")" else _relation_follows(token, previous, scopes[-1])
        previous = token


def _close(scopes: list[_Scope]) -> str:
    if len(scopes) > 1:
        scopes.pop()
    return ""


def _relation_follows(token: str, previous: str, scope: _Scope) -> str:
    """Return the token if a relation must follow it, else an empty text."""
    if token == ",":
        return token if scope.is_list else ""
    if previous in {".", "AS"}:  # it is a name
        return ""
    if token == "FROM" and (previous == "DISTINCT" or scope.name in _FUNCTIONS_WITH_FROM):
        return ""
    scope.is_list &= token not in _AFTER_LISTS
    return token if token in _BEFORE_RELATIONS else ""
