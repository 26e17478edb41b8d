"""Warnings: declarations of one SCD type, and attributes that open versions of most entities."""

from __future__ import annotations

import datetime as dt
from dataclasses import replace
from typing import Any

import pytest

from scd_pipeline.cli import loads
from scd_pipeline.components.definition_metadata import dimension_table
from scd_pipeline.components.load_metadata import warnings
from scd_pipeline.declaration import Attribute, Dimension, Snapshot, Source, describe, parse
from scd_pipeline.errors import DeclarationWarning, LoadWarning
from scd_pipeline.history.batch import Batch
from scd_pipeline.load.rapid_changes import existing_entities, rapid_change_warnings
from scd_pipeline.load.run import LoadResult
from scd_pipeline_tests.semantics.specification import requirement

COUNTRY = """\
dimension: dim_country
business_key: code
sources: {iso: {snapshot: "landing/{date}.csv"}}
attributes:
  name: 1
  region: 1
"""
PLAYER = Dimension("dim_player", "id", {"tier": 2, "last_seen": 2, "email": 1}, Source("crm", snapshot=Snapshot()))
FIRST, SECOND, THIRD = (f"crm/snapshot/2024-01-0{day}" for day in (1, 2, 3))


@requirement("F69")
def test_a_declaration_with_one_type_for_all_attributes_is_reported() -> None:
    (dimension,) = parse(COUNTRY, "dim_country.yaml")
    (warning,) = dimension.warnings
    assert (warning.code, warning.location) == ("SINGLE_SCD_TYPE", "dim_country.yaml:1")
    assert "all 2 attributes have SCD type 1" in str(warning)
    assert dimension_table(dimension)["declaration_warnings"] == str(warning)


def test_plans_and_loads_print_the_warnings(capsys: pytest.CaptureFixture[str]) -> None:
    loads.print_declaration_warnings(parse(COUNTRY, "dim_country.yaml"))
    assert capsys.readouterr().err.startswith("warning: [SINGLE_SCD_TYPE] dim_country.yaml:1: attributes: all 2 ")


@requirement("F69")
@pytest.mark.parametrize(
    ("text", "other"),
    [
        ("attributes:", "single_scd_type: true\nattributes:"),
        ("region: 1", "region: 2"),
        ("  region: 1\n", ""),
        ("region: 1", "region: {scd: 1, retired: true}"),
        ("  name: 1\n  region: 1", "  name: {scd: 2, regulated: true}\n  region: {scd: 2, regulated: true}"),
    ],
)
def test_a_stated_a_necessary_or_a_deliberate_choice_of_types_is_not_reported(text: str, other: str) -> None:
    (dimension,) = parse(COUNTRY.replace(text, other))
    assert dimension.warnings == ()
    assert "declaration_warnings" not in dimension_table(dimension)
    assert parse(describe(dimension)) == (dimension,)


@requirement("F65")
def test_a_declaration_with_a_null_open_end_is_reported() -> None:
    (dimension,) = parse(
        COUNTRY.replace("region: 1", "region: 2").replace("attributes:", "open_end: null\nattributes:")
    )
    (warning,) = dimension.warnings
    assert (warning.code, warning.field) == ("NULL_OPEN_END", "open_end")
    assert "`effective_to` of a current version is NULL; expected a time, such as 9999-12-31" in warning.problem
    assert warning.fix.startswith("remove it before the first load, because `effective_to > t` is never true for NULL")


@requirement("F65")
@pytest.mark.parametrize(
    "options", [{}, {"open_end": "2999-12-31"}, {"profile": "dbt"}, {"profile": "dlt", "open_end": None}]
)
def test_an_open_end_that_is_a_time_or_that_of_a_profile_is_not_reported(options: dict[str, Any]) -> None:
    assert replace(PLAYER, **options).warnings == ()
    (warning,) = replace(PLAYER, open_end=None).warnings
    assert warning.code == "NULL_OPEN_END"


@pytest.mark.parametrize("scd", [0, 1, 2, 3, 6])
def test_the_warning_names_an_alternative_to_each_type(scd: int) -> None:
    (warning,) = replace(PLAYER, attributes={"a": Attribute(scd), "b": Attribute(scd)}).warnings
    assert f"SCD type {scd};" in warning.problem
    assert warning.fix.startswith("declare ")


def test_a_warning_has_a_code_that_exists() -> None:
    with pytest.raises(KeyError, match="NO_SUCH_ADVICE"):
        DeclarationWarning("NO_SUCH_ADVICE", "c.yaml:1", "attributes", "is unusual", "change it")
    with pytest.raises(KeyError, match="NO_SUCH_CODE"):
        LoadWarning("NO_SUCH_CODE", "dim_player", {})


@requirement("F68")
@pytest.mark.parametrize(
    ("versions", "existing", "limit", "is_reported"),
    [
        (10, 20, None, False),
        (11, 20, None, True),
        (19, 19, None, False),
        (1, 19, 0.1, False),
        (2, 19, 0.1, True),
        (20, 20, 1, False),
        (1, 0, 0, False),
    ],
)
def test_an_attribute_is_reported_above_its_limit(
    versions: int, existing: int, limit: float | None, is_reported: bool
) -> None:
    """The limit applies from 20 entities on, a declared one to any number of them."""
    dimension = replace(PLAYER, rapid_change_limit=limit)
    reported = rapid_change_warnings(dimension, {FIRST: {"last_seen": versions}}, {FIRST: existing})
    assert bool(reported) == is_reported


@requirement("F68")
def test_the_warning_of_a_load_names_attribute_share_and_alternative() -> None:
    versions = {FIRST: {"last_seen": 30, "tier": 1}, SECOND: {"last_seen": 36}}
    reported = rapid_change_warnings(PLAYER, versions, {FIRST: 40, SECOND: 40, THIRD: 40})
    assert [str(warning) for warning in reported] == [
        f"[RAPID_CHANGE] dim_player.last_seen: {SECOND}: new values opened 36 versions, 90% of the 40 entities "
        "that existed before; expected at most 50%; the load is complete; declare type 1 for the attribute, move it "
        "to a dimension of its own (a mini-dimension) or to a fact, or raise `rapid_change_limit`"
    ]
    result = LoadResult("dim_player", (), {}, 1, 1, 0.1, warnings=reported)
    assert warnings(result) == {"warnings": str(reported[0])}
    assert warnings(replace(result, warnings=())) == {}


def batch(day: int, *, revision: str = "1", **counts: object) -> Batch:
    """A snapshot of a day in January."""
    at = dt.datetime(2024, 1, day, tzinfo=dt.timezone.utc)
    return Batch("crm", "snapshot", f"2024-01-0{day}", revision, at, **counts)  # type: ignore[arg-type]


def test_entities_that_existed_before_are_counted_by_the_batches_of_the_log() -> None:
    stored = [batch(1, new=30), batch(2, new=5, deleted=2)]
    appended = [batch(4, new=1), batch(3, deleted=3)]
    counts = {f"crm/snapshot/2024-01-0{day}": existing for day, existing in ((3, 33), (4, 30))}
    assert existing_entities(stored, appended, PLAYER) == counts


def test_a_replaced_revision_does_not_count_and_one_with_equal_content_counts_once() -> None:
    stored = [batch(1, new=30), batch(2, new=5)]
    assert existing_entities(stored, [batch(1, revision="2", new=20)], PLAYER) == {FIRST: 5}
    repeated = batch(1, revision="2", content_of="crm/snapshot/2024-01-01/1")
    assert existing_entities([*stored, repeated], [batch(3)], PLAYER) == {THIRD: 35}


def test_a_table_without_windows_has_no_versions_to_count() -> None:
    flat = replace(PLAYER, attributes={"email": Attribute(1)})
    assert existing_entities([batch(1, new=30)], [batch(2)], flat) == {}
