"""Find the columns that an SQL expression names.

Spark's analysis returns only the type of an expression, and each analysis is a request to its server. In SQL operands
and operators alternate, so the position of a name decides: a name in place of an operator is a keyword, a type or an
alias, and one in place of an operand is a column, unless it belongs to a literal, a function or a lambda.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

_TOKEN = re.compile(
    r"""
    (?P<blank>\s+|--(?:\\\n|[^\r\n])*|/\*.*?(?:\*/|\Z))
    |(?P<text>r'[^']*'|r"[^"]*"|'(?:[^'\\]|\\.|'')*'|"(?:[^"\\]|\\.|"")*")
    |(?P<number>(?:\d+(?:\.\d*)?|\.\d+)(?:e[+-]?\d+)?(?:[lsyfd]|bd)?(?!\w))
    |(?P<quoted>`(?:[^`]|``)*`)
    |(?P<name>\w+)
    |(?P<symbol><=>|->|=>|::|.)
    """,
    re.VERBOSE | re.DOTALL | re.IGNORECASE,
)
_NAMES = ("name", "quoted")
_OPERANDS = (*_NAMES, "text", "number")
_QUERIES = ("select", "with")
_OPERATORS = frozenset(
    ("and", "or", "in", "like", "ilike", "rlike", "regexp", "between", "div", "escape", "from", "for", "placing")
) | {"when", "then", "else", "by"}
"""The names in place of an operator that an operand follows. All others are types, aliases, or such as `is null`."""
_PREFIXES = frozenset(("not", "case", "where", "both", "leading", "trailing"))
_PAIRS = frozenset(
    [("case", "when"), ("unbounded", "preceding"), ("unbounded", "following"), ("current", "row")]
    + [(side, "from") for side in ("both", "leading", "trailing")]
    + [(clause, "by") for clause in ("partition", "order", "cluster", "distribute", "sort")]
)
_CONSTANTS = frozenset(("null", "true", "false"))
_WITH_UNIT = frozenset(("timestampadd", "timestampdiff", "dateadd", "date_add", "datediff", "date_diff"))
_COMPLEX_TYPES = frozenset(("array", "map", "struct"))


class _Token(NamedTuple):
    kind: str
    text: str

    @property
    def column(self) -> str:
        """The name of the column if the token is one."""
        return self.text[1:-1].replace("``", "`") if self.kind == "quoted" else self.text


_NOTHING = _Token("", "")


def named_columns(expression: str) -> frozenset[str]:
    """Return the columns that an SQL expression names, in lower case: not the fields inside of them.

    In an expression with a subquery each name may be that of a column.
    """
    matches = ((str(match.lastgroup), match[0].lower()) for match in _TOKEN.finditer(expression))
    tokens = [_Token(kind, text) for kind, text in matches if kind != "blank"]
    if any(each.text == "(" and following.text in _QUERIES for each, following in pairwise(tokens)):
        return frozenset(token.column for token in tokens if token.kind in _NAMES)
    return frozenset(_Scan(tokens).columns)


class _Scan:
    """A scan of the tokens of an expression, which collects its columns."""

    def __init__(self, tokens: Sequence[_Token]) -> None:
        self.tokens = tokens
        self.columns: set[str] = set()
        self._variables: list[set[str]] = [set()]
        self._expects_operand = True
        end_of_type = 0
        for index, token in enumerate(self.tokens):
            if index < end_of_type:
                continue
            if token.kind == "symbol":
                self._read_symbol(index)
            elif token.kind in _NAMES and self._expects_operand:
                self._read_operand(index)
            else:
                is_word = token.kind == "name" and not self._is_field(index)
                end_of_type = self._end_of_type(index) if is_word else 0
                self._expects_operand = is_word and token.text in _OPERATORS

    def _token(self, index: int) -> _Token:
        return self.tokens[index] if 0 <= index < len(self.tokens) else _NOTHING

    def _is_field(self, index: int) -> bool:
        return self._token(index - 1).text in (".", ":")

    def _read_symbol(self, index: int) -> None:
        symbol, is_operand = self.tokens[index].text, False
        if symbol in ("(", "["):
            self._variables[-1].update(self._parameters(index))
            self._variables.append(set())
        elif symbol in (")", "]"):
            self._variables = self._variables[:-1] or [set()]
            is_operand = True
        elif symbol == ",":
            self._variables[-1].clear()
        else:  # a type or a field follows, or all columns are meant
            is_operand = symbol in ("::", ".", ":") or (symbol == "*" and self._expects_operand)
        self._expects_operand = not is_operand

    def _read_operand(self, index: int) -> None:
        token, following = self.tokens[index], self._token(index + 1)
        if following.text == "->":
            self._variables[-1].add(token.column)
        elif token.kind == "name" and self._is_prefix(index):
            return
        elif not self._is_other_name(index):
            self.columns.add(token.column)
        self._expects_operand = False

    def _is_prefix(self, index: int) -> bool:
        """Return whether an operand follows the name: it is a keyword, or the type of a literal."""
        text, following = self.tokens[index].text, self._token(index + 1)
        if text == "interval" and following.text in ("+", "-"):
            return self._token(index + 2).kind in ("number", "text") and self._token(index + 3).kind == "name"
        if text in _PREFIXES:
            return following.kind in _OPERANDS and following.text not in _OPERATORS
        return following.kind == "text" or (text == "interval" and following.kind == "number")

    def _is_other_name(self, index: int) -> bool:
        """Return whether a name in place of an operand is not that of a column."""
        token = self.tokens[index]
        if self._is_function(index) or self._token(index + 1).text == "=>":
            return True
        if any(token.column in variables for variables in self._variables):
            return True
        return token.kind == "name" and (token.text in _CONSTANTS or self._is_keyword(index))

    def _is_keyword(self, index: int) -> bool:
        """Return whether a name in place of an operand is a keyword that no operand follows, or a unit of time."""
        text, following = self.tokens[index].text, self._token(index + 1).text
        if (text, following) in _PAIRS:
            return True
        if self._token(index - 1).text != "(":
            return False
        function = self._token(index - 2).text
        has_unit = function in _WITH_UNIT and len(self._arguments(index - 1)) == 3
        return has_unit or (function == "extract" and following == "from")

    def _is_function(self, index: int) -> bool:
        """Return whether a name, or one that names a catalog and a schema too, is that of a function."""
        while self._token(index + 1).text == "." and self._token(index + 2).kind in _NAMES:
            index += 2
        return self._token(index + 1).text == "("

    def _parameters(self, index: int) -> list[str]:
        """Return the parameters of a lambda of which a bracket begins the list; none if it begins something else."""
        arguments = self._arguments(index)
        end = index + 1 + sum(len(argument) + 1 for argument in arguments)
        return [argument[0].column for argument in arguments if argument] if self._token(end).text == "->" else []

    def _arguments(self, index: int) -> list[list[_Token]]:
        """Return the tokens in a bracket, divided by its commas."""
        depth, arguments = 0, list[list[_Token]]([[]])
        for token in self.tokens[index + 1 :]:
            depth += {"(": 1, "[": 1, ")": -1, "]": -1}.get(token.text, 0)
            if depth < 0:
                break
            if token.text == "," and depth == 0:
                arguments.append([])
            else:
                arguments[-1].append(token)
        return arguments

    def _end_of_type(self, index: int) -> int:
        """Return the index after the parameters of a type in place of an operator, as of `array<date>`."""
        if self.tokens[index].text not in _COMPLEX_TYPES or self._token(index + 1).text != "<":
            return index
        depth = 0
        for end, token in enumerate(self.tokens[index + 1 :], index + 2):
            depth += {"<": 1, ">": -1}.get(token.text, 0)
            if depth == 0:
                return end
        return len(self.tokens)
