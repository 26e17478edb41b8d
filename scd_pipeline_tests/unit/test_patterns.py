"""Patterns of dates and times: which are invalid, and which zone and fractions they read (S28)."""

from __future__ import annotations

import pytest

from scd_pipeline.declaration import Attribute, Column, Dimension, Source
from scd_pipeline.declaration.patterns import pattern_problem, reads_nanoseconds, without_optional_zone, zone_letters
from scd_pipeline_tests.unit.test_yaml_faults import located_codes


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


INVALID = [
    "DD.MM.YYYY HH:mm",
    "uuuu-MM-dd",
    "yyyy-MM-DD",
    "yyyy-mm-dd",
    "yyyy-MM-dd hh:mm",
    "%Y-%m-%d",
    "EEE dd MMM yyyy",
    "YYYY-MM-DD HH24:MI:SS",
    "{yyyy}",
    "ddd.MM.yyyy",
    "yyyy-MM-dd HH:mm V",
    "yyyy-MM-dd HH:mm OO",
    "yyyy-MM-dd'T",
    "yyyy[-MM",
    "yyyy]-[MM",
    "HH:mm",
]


def dimension_with_format(pattern: str) -> Dimension:
    """Return a dimension whose source writes a date in this format."""
    source = Source("crm", snapshot="customers_{date}.csv", columns={"born": Column(format=pattern)})
    return Dimension("dim_customer", "id", {"born": Attribute(0, "timestamp")}, source)


@pytest.mark.parametrize("pattern", INVALID)
def test_an_invalid_pattern_is_reported(pattern: str) -> None:
    error = ("dim_customer", "sources.crm.columns.born.format", "INVALID_PATTERN")
    assert located_codes(lambda: dimension_with_format(pattern)) == [error]


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
