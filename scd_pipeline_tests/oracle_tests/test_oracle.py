"""Tests of the oracle for what no scenario and no table of `semantics` covers."""

from __future__ import annotations

import datetime as dt
import re
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from scd_pipeline_tests import oracle as o


@pytest.mark.parametrize(
    ("value", "other"),
    [
        (float("nan"), float("nan")),
        (0.0, -0.0),
        ({"x": 1, "y": [{"z": None, "w": 1}]}, {"y": [{"w": 1, "z": None}], "x": 1}),
        ([float("nan")], [float("nan")]),
    ],
)
def test_equal_values(value: object, other: object) -> None:
    """S8."""
    assert o.canon(value) == o.canon(other)


@pytest.mark.parametrize(
    ("value", "other"),
    [(None, ""), (None, 0), ([], None), ([None], []), ({"a": None}, None), (["a", "b"], ["a|b"]), ({}, [])],
)
def test_different_values(value: object, other: object) -> None:
    """S8."""
    assert o.canon(value) != o.canon(other)


def test_two_contents_under_one_revision_raise_an_error() -> None:
    dim = o.Dim("dim", ("id",), (o.Attr("city", 2, "crm"),), (o.Src("crm", True),))
    batch = o.Batch("crm", "snapshot", "1", 1, dt.datetime(2024, 1, 1), (o.Row((1,), {"city": "Bonn"}),))
    other = replace(batch, rows=(o.Row((1,), {"city": "Kiel"}),))
    assert len(o.accepted(dim, [batch, batch])[0]) == 1
    with pytest.raises(ValueError, match="crm/snapshot/1/1: two contents"):
        o.accepted(dim, [batch, other])


def test_the_oracle_imports_only_the_standard_library() -> None:
    """It shares no code with the engine, with which it is compared."""
    names = re.findall(r"^(?:from|import) (\w+)", Path(str(o.__file__)).read_text(encoding="utf-8"), re.MULTILINE)
    assert set(names) <= sys.stdlib_module_names
