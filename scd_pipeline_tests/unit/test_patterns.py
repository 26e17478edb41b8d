"""Patterns of dates and times: which are invalid, and why (S28)."""

from __future__ import annotations

import pytest

from scd_pipeline.declaration.patterns import pattern_problem, reads_nanoseconds, without_optional_zone, zone_letters

FORM = "write it as dd.MM.yyyy HH:mm:ss, with other text in single quotes and what may be left out in [ ]"


@pytest.mark.parametrize(
    "pattern",
    [
        "yyyy-MM-dd",
        "dd/MM/yy",
        "yyyyMMdd",
        "yyyyDDD",
        "[yyyyDDD][dd.MM.yyyy]",
        "d. MMMM yyyy GGGG",
        "yyyy-MM-dd'T'HH:mm:ss[.SSSSSSSSS][XXX]",
        "dd.MM.yyyy hh:mm a VV",
        "yyyy 'o''clock [{#Y'",
    ],
)
def test_a_pattern_that_can_be_used_for_reading_is_valid(pattern: str) -> None:
    assert pattern_problem(pattern) is None


@pytest.mark.parametrize(
    ("pattern", "problem", "fix"),
    [
        ("DD.MM.YYYY HH:mm", "has Y, which cannot be used for reading", "did you mean dd.MM.yyyy HH:mm?"),
        ("uuuu-MM-dd", "has u, which cannot be used for reading", "did you mean yyyy-MM-dd?"),
        ("yyyy-MM-DD", "has D, the day of the year, together with a month or a day", "did you mean yyyy-MM-dd?"),
        ("yyyy-mm-dd", "has m, the minute, without an hour", "did you mean yyyy-MM-dd?"),
        (
            "yyyy-MM-dd hh:mm",
            "has an hour up to 12 without a, the half of the day",
            "did you mean yyyy-MM-dd HH:mm?",
        ),
        ("%Y-%m-%d", "has %, which cannot be used for reading", FORM),
        ("EEE dd MMM yyyy", "has E, which cannot be used for reading", FORM),
        ("YYYY-MM-DD HH24:MI:SS", "has Y, which cannot be used for reading", FORM),
        ("{yyyy}", "has {, which cannot be used for reading", FORM),
        ("ddd.MM.yyyy", "has ddd, and d comes in rows of 1 or 2", FORM),
        ("yyyy-MM-dd HH:mm V", "has V, and V comes in rows of 2", FORM),
        ("yyyy-MM-dd HH:mm OO", "has OO, and O comes in rows of 1 or 4", FORM),
        ("yyyy-MM-dd'T", "has a quote without its other end", FORM),
        ("yyyy[-MM", "has a bracket without its other end", FORM),
        ("yyyy]-[MM", "has a bracket without its other end", FORM),
        ("HH:mm", "has no year, y", FORM),
    ],
)
def test_an_invalid_pattern_is_reported_with_its_fix(pattern: str, problem: str, fix: str) -> None:
    assert pattern_problem(pattern) == (f"{pattern!r} {problem}", fix)


@pytest.mark.parametrize(
    ("pattern", "letters", "local"),
    [
        ("dd.MM.yyyy 'godz.' HH:mm", "", None),
        ("dd.MM.yyyy HH:mm", "", None),
        ("dd.MM.yyyy 'o''clock' HH:mm z", "z", None),
        ("yyyy-MM-dd'T'HH:mm:ss[.SSS][XXX]", "X", "yyyy-MM-dd'T'HH:mm:ss[.SSS]"),
        ("yyyy-MM-dd'['HH:mm']'[ [OOOO][VV]]", "OV", "yyyy-MM-dd'['HH:mm']'"),
        ("yyyy-MM-dd[ HH:mm 'Z']", "", None),
        ("yyyy-MM-dd HH:mm x[VV]", "xV", None),
    ],
)
def test_the_zone_of_a_pattern(pattern: str, letters: str, local: str | None) -> None:
    """Quoted letters read no zone; where the zone is optional, text without one is read by the rest of the pattern."""
    assert (zone_letters(pattern), without_optional_zone(pattern)) == (letters, local)


def test_fractions_of_a_second_finer_than_microseconds() -> None:
    assert reads_nanoseconds("yyyy-MM-dd HH:mm:ss.SSSSSSSSS")
    assert not reads_nanoseconds("yyyy-MM-dd HH:mm:ss.SSSSSS 'SSSSSSSSS'")
