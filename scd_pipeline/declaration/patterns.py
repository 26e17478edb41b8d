"""Checks of Spark's patterns for dates and times: those that would read nothing, or wrong values, are rejected."""

from __future__ import annotations

import re
from collections.abc import Iterator

from scd_pipeline.texts import short_repr

_FORM = "write it as dd.MM.yyyy HH:mm:ss, with other text in single quotes and optional parts in [ ]"
_COUNTS = {
    **dict.fromkeys("GMLz", (1, 2, 3, 4)),
    **dict.fromkeys("dhHKkms", (1, 2)),
    **dict.fromkeys("xXZ", (1, 2, 3, 4, 5)),
    "y": tuple(range(1, 7)),
    "S": tuple(range(1, 10)),
    "D": (1, 2, 3),
    "a": (1,),
    "V": (2,),
    "O": (1, 4),
}
"""How often each letter may be repeated in a pattern that reads text. Spark only writes by q, Q, E and F."""
ZONE_LETTERS = frozenset("VzOXxZ")
"""The letters that read a zone or an offset."""
_QUOTED = re.compile(r"('[^']*')")
# Replacements of letters that are often confused, each in addition to the previous ones.
_REPLACEMENTS = ({"Y": "y", "u": "y", "T": "'T'"}, {"D": "d"}, {"h": "H", "K": "H"}, {"m": "M"})


def pattern_problem(pattern: str) -> tuple[str, str] | None:
    """Return the problem of the pattern and its fix, None if it is valid."""
    problem = _problem(pattern)
    return None if problem is None else (f"{short_repr(pattern)} {problem}", _suggestion(pattern))


def zone_letters(pattern: str) -> str:
    """Return the letters of the pattern that read a zone or an offset."""
    return "".join(letter for letter in dict.fromkeys(_plain(pattern)) if letter in ZONE_LETTERS)


def without_optional_zone(pattern: str) -> str | None:
    """Return the pattern without the optional sections that read a zone; None if it has none, or another zone too."""
    result, depth, section = "", 0, ""
    for quoted, text in _tokens(pattern):
        depth += not quoted and text == "["
        if depth:
            section += text
        else:
            result += text
        depth -= not quoted and text == "]"
        if section and not depth:
            result, section = result + ("" if zone_letters(section) else section), ""
    return None if result == pattern or zone_letters(result) else result


def reads_nanoseconds(pattern: str) -> bool:
    """Return whether the pattern reads more digits of a second than microseconds have."""
    return "S" * 7 in _plain(pattern)


def _tokens(pattern: str) -> Iterator[tuple[bool, str]]:
    """Yield each quoted text of the pattern, and each character outside of quotes."""
    for index, text in enumerate(_QUOTED.split(pattern)):
        if index % 2:
            yield True, text
        else:
            yield from ((False, character) for character in text)


def _plain(pattern: str) -> str:
    """Return the pattern without its quoted text."""
    return _QUOTED.sub(" ", pattern)


def _problem(pattern: str) -> str | None:
    plain = _plain(pattern)
    if "'" in plain:
        return "has an unclosed quote"
    if not _is_balanced(plain):
        return "has an unmatched bracket"
    for match in re.finditer(r"([A-Za-z])\1*|[#{}%]", plain):
        run = match[0]
        if run[0] not in _COUNTS:
            return f"has {run[0]}, which cannot be used for reading"
        if len(run) not in _COUNTS[run[0]]:
            return f"has {run}; expected {run[0]} {_repetitions(run[0])}"
    return _ambiguity(plain)


def _ambiguity(plain: str) -> str | None:
    """Return the problem of a pattern that Spark accepts, but that reads wrong values or none."""
    letters = set(plain)
    if "y" not in letters:
        return "has no year, y"
    if "D" in letters and letters & set("MLd") and "[" not in letters:
        return "has D, the day of the year, together with a month or a day"
    if "m" in letters and not letters & set("hHKk"):
        return "has m, the minute, without an hour"
    if letters & set("hK") and "a" not in letters:
        return "has an hour up to 12 without `a`, the AM/PM marker"
    return None


def _is_balanced(plain: str) -> bool:
    depth = 0
    for character in plain:
        depth += (character == "[") - (character == "]")
        if depth < 0:
            return False
    return depth == 0


def _repetitions(letter: str) -> str:
    """Return how often the letter may be repeated, as text such as `1 to 4 times`."""
    counts = _COUNTS[letter]
    if counts == (1,):
        return "once"
    return f"1 to {counts[-1]} times" if len(counts) > 2 else f"{' or '.join(map(str, counts))} times"


def _suggestion(pattern: str) -> str:
    letters: dict[str, str | int | None] = {}
    for replacements in _REPLACEMENTS:
        letters |= replacements
        texts = _QUOTED.split(pattern)
        texts[::2] = [text.translate(str.maketrans(letters)) for text in texts[::2]]
        candidate = "".join(texts)
        if _problem(candidate) is None:
            return f"did you mean {candidate}?"
    return _FORM
