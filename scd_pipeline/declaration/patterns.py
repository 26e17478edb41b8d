"""Patterns by which text is read as a date or a time: Spark's, refused where they would read nothing or wrongly."""

from __future__ import annotations

import re
from collections.abc import Iterator

from scd_pipeline.declaration.names import display

_FORM = "write it as dd.MM.yyyy HH:mm:ss, with other text in single quotes and what may be left out in [ ]"
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
"""How often each letter may stand in a row, where Spark reads text; q, Q, E and F it can only write."""
ZONE_LETTERS = frozenset("VzOXxZ")
"""The letters that read a zone or an offset."""
_QUOTED = re.compile(r"('[^']*')")
# What is often meant, each in addition to those before it.
_MEANT = ({"Y": "y", "u": "y", "T": "'T'"}, {"D": "d"}, {"h": "H", "K": "H"}, {"m": "M"})


def pattern_problem(pattern: str) -> tuple[str, str] | None:
    """What is wrong with the pattern, and what would be right; None where nothing is."""
    problem = _problem(pattern)
    return None if problem is None else (f"{display(pattern)} {problem}", _suggestion(pattern))


def zone_letters(pattern: str) -> str:
    """The letters of the pattern that read a zone or an offset."""
    return "".join(letter for letter in dict.fromkeys(_plain(pattern)) if letter in ZONE_LETTERS)


def without_optional_zone(pattern: str) -> str | None:
    """Return the pattern without the optional sections that read a zone; None if it has none, or another zone too."""
    kept, depth, section = "", 0, ""
    for quoted, text in _tokens(pattern):
        depth += not quoted and text == "["
        if depth:
            section += text
        else:
            kept += text
        depth -= not quoted and text == "]"
        if section and not depth:
            kept, section = kept + ("" if zone_letters(section) else section), ""
    return None if kept == pattern or zone_letters(kept) else kept


def reads_nanoseconds(pattern: str) -> bool:
    """Return whether the pattern reads more digits of a second than microseconds have."""
    return "S" * 7 in _plain(pattern)


def _tokens(pattern: str) -> Iterator[tuple[bool, str]]:
    """Yield each quoted text of the pattern, and each character outside of quotes."""
    for at, part in enumerate(_QUOTED.split(pattern)):
        if at % 2:
            yield True, part
        else:
            yield from ((False, character) for character in part)


def _plain(pattern: str) -> str:
    """The pattern without its quoted text."""
    return _QUOTED.sub(" ", pattern)


def _problem(pattern: str) -> str | None:
    plain = _plain(pattern)
    if "'" in plain:
        return "has a quote without its other end"
    if not _is_balanced(plain):
        return "has a bracket without its other end"
    for found in re.finditer(r"([A-Za-z])\1*|[#{}%]", plain):
        run = found[0]
        if run[0] not in _COUNTS:
            return f"has {run[0]}, which cannot be used for reading"
        if len(run) not in _COUNTS[run[0]]:
            return f"has {run}, and {run[0]} comes in rows of {_lengths(run[0])}"
    return _misread(plain)


def _misread(plain: str) -> str | None:
    """What Spark would take, and then read wrongly or never."""
    there = set(plain)
    if "y" not in there:
        return "has no year, y"
    if "D" in there and there & set("MLd") and "[" not in there:
        return "has D, the day of the year, beside a month or a day"
    if "m" in there and not there & set("hHKk"):
        return "has m, the minute, without an hour"
    if there & set("hK") and "a" not in there:
        return "has an hour up to 12 without a, the half of the day"
    return None


def _is_balanced(plain: str) -> bool:
    depth = 0
    for character in plain:
        depth += (character == "[") - (character == "]")
        if depth < 0:
            return False
    return depth == 0


def _lengths(letter: str) -> str:
    counts = _COUNTS[letter]
    return f"1 to {counts[-1]}" if len(counts) > 2 else " or ".join(map(str, counts))


def _suggestion(pattern: str) -> str:
    letters: dict[str, str | int | None] = {}
    for more in _MEANT:
        letters |= more
        parts = _QUOTED.split(pattern)
        parts[::2] = [part.translate(str.maketrans(letters)) for part in parts[::2]]
        meant = "".join(parts)
        if _problem(meant) is None:
            return f"did you mean {meant}?"
    return _FORM
