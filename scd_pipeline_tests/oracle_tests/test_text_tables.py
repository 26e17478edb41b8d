from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import pytest

from scd_pipeline_tests.text_tables import OPEN, assert_same_rows, parse, plain, render, same_rows


@pytest.mark.parametrize(
    ("cell", "value"),
    [
        ("", None),
        ("NULL", None),
        ("''", ""),
        ("'NULL'", "NULL"),
        ('"1"', "1"),
        ("'a|b'", "a|b"),
        ("a b", "a b"),
        ("-12", -12),
        ("1.50", Decimal("1.50")),
        ("true", True),
        ("2024-01-01", dt.date(2024, 1, 1)),
        ("2024-01-01 10:00", dt.datetime(2024, 1, 1, 10)),
        ("2024-01-01T10:00:00.000001", dt.datetime(2024, 1, 1, 10, 0, 0, 1)),
        ("OPEN", OPEN),
        ("2024-W1", "2024-W1"),
    ],
)
def test_cells(cell: str, value: Any) -> None:
    (row,) = parse(f"| before | x | after |\n| --- | - | --- |\n| 1 | {cell} | |")
    assert row == {"before": 1, "x": value, "after": None}


def test_a_line_with_missing_cells_is_an_error() -> None:
    with pytest.raises(ValueError, match="1 cells under 2 columns"):
        parse("| a | b |\n| 1 |")


def test_rendered_rows_parse_back() -> None:
    rows = [
        {"id": 1, "text": "", "at": dt.datetime(2024, 1, 1, 1), "day": dt.date(2024, 1, 1), "flag": True},
        {"id": 2, "text": "a|b", "at": OPEN, "day": None, "flag": False},
        {"id": 3, "text": "true", "at": None, "day": None, "flag": None},
    ]
    assert parse(render(rows)) == rows
    assert len({len(line) for line in render(rows).splitlines()}) == 1


@pytest.mark.parametrize(
    ("value", "other"),
    [
        (dt.date(2024, 1, 1), dt.datetime(2024, 1, 1)),
        (dt.datetime(2024, 1, 1, 1, tzinfo=dt.timezone(dt.timedelta(hours=1))), dt.datetime(2024, 1, 1)),
        (0.1, Decimal("0.1")),
        (-0.0, 0),
        (float("nan"), float("nan")),
        ({"a": [1.0], "b": None}, {"b": None, "a": [1]}),
    ],
)
def test_equal_cells(value: Any, other: Any) -> None:
    assert plain(value) == plain(other)
    assert hash(plain(value)) == hash(plain(other))


@pytest.mark.parametrize(("value", "other"), [(True, 1), (None, ""), (None, 0), ("1", 1), ([], None)])
def test_different_cells(value: Any, other: Any) -> None:
    assert plain(value) != plain(other)


def test_rows_are_compared_in_any_order_by_the_expected_columns() -> None:
    actual = [{"id": 2, "city": "b", "more": 1}, {"id": 1, "city": "a", "more": 2}]
    assert_same_rows("| id | city |\n| 1 | a |\n| 2 | b |", actual)


def test_the_difference_shows_missing_unexpected_and_duplicate_rows() -> None:
    actual = [{"id": 1}, {"id": 1}, {"id": 3}]
    assert same_rows([{"id": 1}, {"id": 2}], actual) == "\n".join(
        ["  | id |", "  | 1  |", "+ | 1  |", "- | 2  |", "+ | 3  |"]
    )


def test_a_missing_column_is_a_difference() -> None:
    with pytest.raises(AssertionError, match="rows differ"):
        assert_same_rows("| id | city |\n| 1 | |", [{"id": 1}])


def test_no_rows_expected() -> None:
    assert_same_rows("| id |", [])
    with pytest.raises(AssertionError, match=r"\+ \| 1"):
        assert_same_rows("| id |", [{"id": 1}])
    with pytest.raises(AssertionError, match=r"\+ \| 1"):
        assert_same_rows([], [{"id": 1}])
