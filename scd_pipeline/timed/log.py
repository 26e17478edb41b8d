"""The text of a log, split into statements with their times (S12)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from sqlglot.dialects import Spark
from sqlglot.errors import TokenError
from sqlglot.tokenizer_core import Token, TokenType

from scd_pipeline.errors import SourceDataError
from scd_pipeline.timed.times import parse_millis

DIALECT = Spark()
_MARKER = re.compile(r"--\s*time\s*=(?P<value>.*)", re.IGNORECASE)
_COMMENT = re.compile(r"--[^\n]*|/\*")
_COMMENT_BRACKET = re.compile(r"/\*|\*/")
_CLOSED = re.compile(
    r"""'(?:\\.|[^'\\])*'|"(?:\\.|[^"\\])*"|`[^`]*`|--[^\n]*|/\*.*?\*/""",
    re.DOTALL,
)
_OPENING = re.compile(r"""['"`]|/\*""")
TIME_FORMS = "milliseconds since 1970, 2014-09-01, or 2014-09-01T00:00:00 with an optional offset such as +02:00"


@dataclass(frozen=True, slots=True)
class LogText:
    """The text of a log.

    Attributes:
        origin: The file or table of the log, for messages.
        text: Its text.
        millis: The time of all its statements, if it is not in the text.
        author: The author of the statements, if it is known.
        reason: Their reason.
        recorded_at: When they, or the file of the log, were last changed, in microseconds since 1970.
    """

    origin: str
    text: str
    millis: int | None = None
    author: str = ""
    reason: str = ""
    recorded_at: int = 0

    @property
    def is_open(self) -> bool:
        """Whether the last statement has no semicolon."""
        tokens = _tokens(self)
        return bool(tokens) and tokens[-1].token_type is not TokenType.SEMICOLON

    def line(self, offset: int) -> int:
        """Return the line of a character."""
        return self.text.count("\n", 0, offset) + 1

    def error(self, code: str, offset: int, **details: object) -> SourceDataError:
        """Return an error at a character; it rejects the whole log."""
        return SourceDataError(code, f"{self.origin}:{self.line(offset)}", **details)


@dataclass(frozen=True, slots=True)
class TimedTokens:
    """The tokens of one statement, and the milliseconds of its time."""

    millis: int
    tokens: tuple[Token, ...]


def split_log(log: LogText, zone: str) -> list[TimedTokens]:
    """Return the statements of a log in the order of the log.

    Args:
        log: The log.
        zone: The time zone of times without an offset.

    Raises:
        SourceDataError: A string or a comment is not closed, a time is malformed or inside of a statement, or the text
            has a time though its time is known.
    """
    statements: list[TimedTokens] = []
    tokens: list[Token] = []
    millis, end = log.millis or 0, 0
    for token in (*_tokens(log), None):
        start = len(log.text) if token is None else token.start
        for offset, value in _markers(log, end, start):
            if log.millis is not None:
                raise log.error("STATEMENT_TIME_KNOWN", offset)
            if tokens:
                raise log.error("STATEMENT_TIME_POSITION", offset, line=log.line(tokens[0].start))
            millis = _marker_time(log, offset, value, zone)
        if token is not None and token.token_type is not TokenType.SEMICOLON:
            _append(tokens, token, log.text)
        elif tokens:
            statements.append(TimedTokens(millis, tuple(tokens)))
            tokens = []
        end = start if token is None else token.end + 1
    return statements


def _append(tokens: list[Token], token: Token, text: str) -> None:
    """Append a token; in a string, Spark reads two quotes as one, and sqlglot as the border of two strings."""
    last = tokens[-1] if tokens else token
    is_string = last.token_type is token.token_type is TokenType.STRING
    if is_string and last.end + 1 == token.start and text[last.end] == text[token.start]:
        joined = last.text + text[token.start] + token.text
        tokens[-1] = Token(TokenType.STRING, joined, token.line, token.col, last.start, token.end)
    else:
        tokens.append(token)


def _tokens(log: LogText) -> Sequence[Token]:
    try:
        tokens: list[Token] = DIALECT.tokenize(log.text)
        return tokens
    except TokenError as error:
        closed = _CLOSED.sub(lambda match: " " * len(match.group()), log.text)
        opened = _OPENING.search(closed)
        reason = "a string, a quoted name or a comment is not closed"
        raise log.error("STATEMENT_SYNTAX", opened.start() if opened else 0, reason=reason) from error


def _marker_time(log: LogText, offset: int, value: str, zone: str) -> int:
    millis = parse_millis(value, zone)
    if millis is None:
        raise log.error("STATEMENT_TIME", offset, forms=TIME_FORMS)
    return millis


def _markers(log: LogText, start: int, end: int) -> Iterator[tuple[int, str]]:
    """Yield the position and the value of each time in the text between two tokens, which has only comments.

    Raises:
        SourceDataError: The text has anything else, or a time is not alone on its line.
    """
    at = start
    while comment := _COMMENT.search(log.text, at, end):
        _require_blank(log, at, comment.start())
        at = comment.end() if comment.group() != "/*" else _comment_end(log, comment.end(), end)
        marker = _MARKER.fullmatch(comment.group())
        if marker is not None:
            if log.text[log.text.rfind("\n", 0, comment.start()) + 1 : comment.start()].strip():
                raise log.error("STATEMENT_TIME_POSITION", comment.start(), line=log.line(comment.start()))
            yield comment.start(), marker["value"].strip()
    _require_blank(log, at, end)


def _comment_end(log: LogText, start: int, end: int) -> int:
    """Return the end of a comment, which may contain others."""
    depth = 1
    for bracket in _COMMENT_BRACKET.finditer(log.text, start, end):
        depth += 1 if bracket.group() == "/*" else -1
        if not depth:
            return bracket.end()
    raise log.error("STATEMENT_SYNTAX", start, reason="a comment is not closed")


def _require_blank(log: LogText, start: int, end: int) -> None:
    """Check that the text outside of tokens and comments is blank, as sqlglot skips comments of templates."""
    rest = log.text[start:end]
    if rest.strip():
        offset = start + len(rest) - len(rest.lstrip())
        raise log.error("STATEMENT_SYNTAX", offset, reason="a part of the text is neither a statement nor a comment")
