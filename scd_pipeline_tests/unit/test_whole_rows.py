"""Declarations of whole rows: the name and the description of their key (S37)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from scd_pipeline.components.column_descriptions import dimension_columns
from scd_pipeline.declaration import Dimension, Source, describe, parse


def whole_rows(**options: Any) -> Dimension:
    return Dimension("dim_x", "whole_row", {"city": 2}, Source("crm", snapshot="x_{date}.csv"), **options)


@pytest.mark.parametrize(
    ("options", "name"),
    [
        ({}, "row_hash"),
        ({"profile": "dlt"}, "_dlt_id"),
        ({"profile": "dlt", "column_names": {"row_hash": "hash"}}, "hash"),
    ],
    ids=["default", "profile", "declared"],
)
def test_the_key_has_the_name_of_the_hash_of_a_version_and_is_described_as_a_hash(
    options: dict[str, Any], name: str
) -> None:
    dimension = whole_rows(**options)
    assert (dimension.key_names, dimension.delivered_key_names) == ((name,), ())
    assert dimension.column_layout.name("row_hash") is None
    description = "Business key: SHA-256 hash of the attributes of a row, which is an entity."
    assert dimension_columns(dimension)[name] == description
    assert parse(describe(dimension)) == (dimension,)


def test_another_profile_renames_the_key() -> None:
    assert replace(whole_rows(profile="dlt"), profile="default").key_names == ("row_hash",)


def test_a_row_version_opens_windows_whatever_the_types_of_the_attributes_are() -> None:
    overwritten = Dimension("dim_x", "row_hash", {"city": 1}, Source("crm", snapshot="x_{date}.csv"))
    assert not overwritten.has_windows
    assert replace(overwritten, row_version=True).has_windows
