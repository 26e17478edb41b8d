"""The oracle where no scenario and no table of `semantics` shows it: equality, and what it may not do."""

from __future__ import annotations

import datetime as dt
import re
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from scd_pipeline_tests import oracle as o


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (float("nan"), float("nan")),
        (0.0, -0.0),
        ({"x": 1, "y": [{"z": None, "w": 1}]}, {"y": [{"w": 1, "z": None}], "x": 1}),
        ([float("nan")], [float("nan")]),
    ],
)
def test_equal_values(one: object, other: object) -> None:
    """S8."""
    assert o.canon(one) == o.canon(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [(None, ""), (None, 0), ([], None), ([None], []), ({"a": None}, None), (["a", "b"], ["a|b"]), ({}, [])],
)
def test_different_values(one: object, other: object) -> None:
    """S8."""
    assert o.canon(one) != o.canon(other)


def test_two_contents_under_one_revision_are_an_error_of_the_caller() -> None:
    dim = o.Dim("dim", ("id",), (o.Attr("city", 2, "crm"),), (o.Src("crm", True),))
    one = o.Batch("crm", "snapshot", "1", 1, dt.datetime(2024, 1, 1), (o.Row((1,), {"city": "Bonn"}),))
    other = replace(one, rows=(o.Row((1,), {"city": "Kiel"}),))
    assert len(o.accepted(dim, [one, one])[0]) == 1
    with pytest.raises(ValueError, match="crm/snapshot/1/1: two contents"):
        o.accepted(dim, [one, other])


def test_it_imports_nothing_but_the_standard_library() -> None:
    """So it shares no code with what it is compared with."""
    names = re.findall(r"^(?:from|import) (\w+)", Path(str(o.__file__)).read_text(encoding="utf-8"), re.MULTILINE)
    assert set(names) <= sys.stdlib_module_names
