"""The statements of a log, parsed and checked against the columns of its table (S12)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from operator import attrgetter

from sqlglot import exp
from sqlglot.errors import ParseError
from sqlglot.tokenizer_core import Token, TokenType

from scd_pipeline.timed.expressions import Columns, ExpressionError, Resolve, Translator, require_only
from scd_pipeline.timed.log import DIALECT, LogText, TimedTokens, split_log

_KINDS: dict[type[exp.Expression], tuple[str, ...]] = {
    exp.Update: ("this", "expressions", "where"),
    exp.Delete: ("this", "where"),
}
"""The kinds of statements, each with the arguments that it can have."""


@dataclass(frozen=True, slots=True)
class Statement:
    """A valid statement.

    Attributes:
        millis: Its time, in milliseconds since 1970.
        position: Its position in the log, from 1.
        line: Its first line in the log.
        text: Its text.
        author: Its author, if it is known.
        reason: Its reason.
        recorded_at: When it, or the file of the log, was last changed, in microseconds since 1970.
        columns: The types of the columns of the table.
        qualifiers: The names by which it may qualify columns.
        assignments: The new values of an UPDATE by column; None for a DELETE.
        condition: Which rows it hits; None for all.
    """

    millis: int
    position: int
    line: int
    text: str
    author: str
    reason: str
    recorded_at: int
    columns: Columns
    qualifiers: tuple[str, ...]
    assignments: dict[str, exp.Expression] | None
    condition: exp.Expression | None

    def translator(self, resolve: Resolve) -> Translator:
        """Return the translator of its expressions, with references by `resolve`."""
        return Translator(self.columns, self.qualifiers, resolve)

    def references(self, *expressions: exp.Expression | None) -> set[str]:
        """Return the columns that expressions of this statement read."""
        translator = self.translator(str)
        parts = [part for each in expressions if each is not None for part in each.find_all(exp.Column)]
        return {translator.path(part)[0] for part in parts}


def parse_log(logs: Sequence[LogText], columns: Columns, zone: str) -> list[Statement]:
    """Return the statements of a log in the order in which they apply: by time, then by position.

    Args:
        logs: The texts of the log in order.
        columns: The types of the columns of the table.
        zone: The time zone of times without an offset.

    Raises:
        SourceDataError: A statement cannot be applied; the error has its file and line.
    """
    statements: list[Statement] = []
    first: tuple[str, str] | None = None
    for log in logs:
        for timed in split_log(log, zone):
            position = len(statements) + 1
            statement, table = _parse(log, timed, columns, position)
            if first is None:
                first = (table, f"{log.origin}:{statement.line}")
            elif first[0].casefold() != table.casefold():
                raise log.error(
                    "STATEMENT_TABLE", timed.tokens[0].start, table=table, first=first[0], first_line=first[1]
                )
            statements.append(statement)
    return sorted(statements, key=attrgetter("millis", "position"))


def _parse(log: LogText, timed: TimedTokens, columns: Columns, position: int) -> tuple[Statement, str]:
    """Return a statement and the name of its table."""
    start = timed.tokens[0].start
    try:
        node = _node(log, timed)
        return _statement(log, timed, node, columns, position)
    except ExpressionError as error:
        raise log.error(error.code, _offset(error.node, start), **error.details) from None
    except RecursionError:
        raise log.error("STATEMENT_SYNTAX", start, reason="it is nested too deeply") from None


def _node(log: LogText, timed: TimedTokens) -> exp.Expression:
    """Return the tree of a statement.

    The messages of sqlglot are not repeated: they may contain values of the statement (S31).
    """
    tokens = list(timed.tokens)
    if tokens[0].token_type not in (TokenType.UPDATE, TokenType.DELETE):
        kind = tokens[0].text.upper() if tokens[0].text.isalpha() else "something else"
        raise log.error("STATEMENT_KIND", tokens[0].start, kind=kind)
    try:
        trees: list[exp.Expression | None] = DIALECT.parser().parse(tokens, log.text)
    except ParseError as error:
        line = error.errors[0].get("line") if error.errors else None
        offset = next((token.start for token in tokens if token.line == line), tokens[0].start)
        raise log.error("STATEMENT_SYNTAX", offset, reason="it is not SQL that Spark reads") from None
    node = trees[0]
    if node is None or type(node) not in _KINDS or (isinstance(node, exp.Update) and not node.expressions):
        raise log.error("STATEMENT_SYNTAX", tokens[0].start, reason="it is not SQL that Spark reads")
    return node


def _statement(
    log: LogText, timed: TimedTokens, node: exp.Expression, columns: Columns, position: int
) -> tuple[Statement, str]:
    if node.args.get("tables"):
        raise ExpressionError("STATEMENT_SYNTAX", node, reason="DELETE is not followed by FROM")
    require_only(node, *_KINDS[type(node)])
    table = node.this
    if not isinstance(table, exp.Table) or not isinstance(table.this, exp.Identifier):
        raise ExpressionError("STATEMENT_SYNTAX", node, reason="it does not name a table")
    require_only(table, "this", "db", "catalog", "alias")
    name = ".".join(part.name for part in table.parts)
    qualifiers = (table.name, *([table.alias] if table.alias else []))
    where = node.args.get("where")
    translator = Translator(columns, qualifiers, str)
    condition = None if where is None else where.this
    if condition is not None:
        translator.condition(condition)
    statement = Statement(
        millis=timed.millis,
        position=position,
        line=log.line(timed.tokens[0].start),
        text=log.text[timed.tokens[0].start : timed.tokens[-1].end + 1],
        author=log.author,
        reason=log.reason,
        recorded_at=log.recorded_at,
        columns=columns,
        qualifiers=qualifiers,
        assignments=_assignments(node, translator, timed.tokens) if isinstance(node, exp.Update) else None,
        condition=condition,
    )
    return statement, name


def _assignments(node: exp.Expression, translator: Translator, tokens: Sequence[Token]) -> dict[str, exp.Expression]:
    """Return the new values of an UPDATE by column."""
    assignments: dict[str, exp.Expression] = {}
    for part in node.expressions:
        if not isinstance(part, exp.EQ) or not isinstance(part.this, exp.Column) or _is_compared(part.this, tokens):
            raise ExpressionError("STATEMENT_SYNTAX", part, reason="SET is not followed by `column = value`")
        column, fields, _ = translator.path(part.this)
        if fields:
            raise ExpressionError("STATEMENT_SYNTAX", part, reason="SET names a field of a struct, and not a column")
        if column in assignments:
            raise ExpressionError("STATEMENT_SYNTAX", part, reason=f"it sets {column} twice")
        translator.assignment(column, part.expression)
        assignments[column] = part.expression
    return assignments


def _is_compared(column: exp.Column, tokens: Sequence[Token]) -> bool:
    """Return whether `==` follows a column, which the tree does not distinguish from `=`."""
    end = max(int(name.meta["end"]) for name in column.find_all(exp.Identifier))
    return next(token.text for token in tokens if token.start > end) == "=="


def _offset(part: exp.Expression, start: int) -> int:
    """Return the position of the first name in a part of a statement, or in the smallest part around it."""
    node: exp.Expr | None = part
    while node is not None:
        names = [int(each.meta["start"]) for each in node.find_all(exp.Identifier) if "start" in each.meta]
        if names:
            return min(names)
        node = node.parent
    return start
