"""Marks in JSON text for what Spark's parser would lose: numbers, explicit nulls, and halves of surrogate pairs.

Spark's parser of texts, unlike its reader of files, writes 1.50 as 1.5, and rounds a number with more digits than a
double has. It does not distinguish null from a field that an object lacks, and reads half of a surrogate pair as `?`.
So each number becomes a string that begins with the mark U+FDD0, and so does null; half of a pair becomes U+FDD1.
Unicode reserves both characters for such internal use, and a text that contains one of them is not parsed.
"""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql import types as T

_MARK, _HALF_OF_PAIR = "\ufdd0", "\ufdd1"
_NULL = f"{_MARK}null"
_ESCAPE_OF_A_MARK = r"(?i)\\ufdd[01]"
_END = r"(?=[\s,\]}]|\z)"
_NUMBER = rf"(?:-?(?:0|[1-9]\d*+)(?:\.\d++)?+(?:[eE][+-]?\d++)?+|NaN|[+-]?Infinity|[+-]?INF){_END}"
_STRINGS = r""""(?:[^"\\]++|\\.)*+"|'(?:[^'\\]++|\\.)*+'"""
# Part of a JSON text: whole strings and other text without a marked value, then such a value.
_UP_TO_A_NUMBER = rf"""(?s)\G((?:{_STRINGS}|[^"'\d+\-NI]++|(?!{_NUMBER})[^"'])*+)({_NUMBER})"""
_NUMBER_OR_NULL = rf"(?:{_NUMBER}|null{_END})"
_UP_TO_A_NUMBER_OR_NULL = rf"""(?s)\G((?:{_STRINGS}|[^"'\d+\-NIn]++|(?!{_NUMBER_OR_NULL})[^"'])*+)({_NUMBER_OR_NULL})"""
_SURROGATE = r"\\u[dD][89a-fA-F]"
_PAIR = r"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}"
_UP_TO_A_HALF = rf"(?s)\G((?:[^\\]++|{_PAIR}|\\(?!u[dD][89a-fA-F]).)*+){_SURROGATE}[0-9a-fA-F]{{2}}"


class JsonToken(T.StringType):
    """The type of a marked text: a string, a number or null with its mark, or the text of an object or array."""


def tag_numbers(text: Column) -> Column:
    """Return JSON text with marks, except for null; NULL if the text contains a mark."""
    return _with_marks(text, _UP_TO_A_NUMBER)


def tag_values(text: Column) -> Column:
    """Return JSON text with marks; NULL if the text contains a mark."""
    return _with_marks(text, _UP_TO_A_NUMBER_OR_NULL)


def _with_marks(text: Column, pattern: str) -> Column:
    tagged = F.regexp_replace(tag_halves(text), F.lit(pattern), F.lit(f'$1"{_MARK}$2"'))
    return F.when(~_has_mark(text), tagged)


def _has_mark(text: Column) -> Column:
    """Return whether a text contains a mark; few texts have an escape, and only those are matched."""
    is_escaped = F.contains(text, F.lit("\\")) & text.rlike(_ESCAPE_OF_A_MARK)
    return F.contains(text, F.lit(_MARK)) | F.contains(text, F.lit(_HALF_OF_PAIR)) | is_escaped


def tag_halves(text: Column) -> Column:
    """Return JSON text with a mark for each half of a surrogate pair."""
    tagged = F.regexp_replace(text, F.lit(_UP_TO_A_HALF), F.lit(f"$1{_HALF_OF_PAIR}"))
    has_surrogate = F.contains(text, F.lit("\\u")) & text.rlike(_SURROGATE)  # few texts have an escape
    return F.when(has_surrogate, tagged).otherwise(text)


def _with_unmarked_nulls(token: Column) -> Column:
    """Return the text of an object or array with its nulls, so that Spark parses them as values of any type."""
    return F.when(token != _NULL, F.replace(token, F.lit(f'"{_NULL}"'), F.lit("null")))


def nested_text(token: Column) -> Column:
    """Return the JSON text in a token, its numbers as marked strings; the token may be a string with such a text."""
    is_tagged = F.contains(token, F.lit(_MARK))
    return F.when(is_tagged, _with_unmarked_nulls(token)).otherwise(tag_numbers(token))


def without_marks(token: Column) -> Column:
    """Return the JSON text of an object or array, its numbers as strings."""
    return F.replace(_with_unmarked_nulls(token), F.lit(_MARK), F.lit(""))


def to_text(token: Column) -> Column:
    """Return the text of a token: that of a string or number, or JSON without spaces; half of a pair is U+FFFD."""
    text = (
        F.when(token == _NULL, F.lit(None))
        .when(token.startswith(_MARK), F.substring(token, 2, 2**31 - 1))
        .when(F.contains(token, F.lit(_MARK)), F.regexp_replace(token, f'"{_MARK}([^"]*)"', "$1"))
        .otherwise(token)
    )
    return F.replace(text, F.lit(_HALF_OF_PAIR), F.lit("\ufffd"))


def is_null(token: Column) -> Column:
    """Return whether a token is null, or missing."""
    return token.isNull() | (token == _NULL)


def is_number(token: Column) -> Column:
    """Return whether a token is a number; it may be null."""
    return token.startswith(_MARK)


def is_readable(token: Column) -> Column:
    """Return whether a token has no half of a surrogate pair, which is not a character."""
    return ~F.contains(token, F.lit(_HALF_OF_PAIR))
