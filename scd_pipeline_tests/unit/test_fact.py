"""Declared facts: their columns, and the errors of invalid ones, with line and field (S23, S28)."""

from __future__ import annotations

import pytest

from scd_pipeline.declaration import Dimension, Fact, Feed, Role, Source, parse_declarations
from scd_pipeline.errors import DeclarationError

DIMENSION = """\
dimension: dim_player
business_key: {casino: int, player: string}
sources: {loyalty: {snapshot: "players_{date}.csv"}}
attributes: {tier: 2}
---
"""
FACT = """\
fact: fct_play
grain: {play: bigint}
event_time: played_at
dimensions:
  player: dim_player
  guest: {dimension: dim_player, key: [casino, guest]}
measures: {coins: int}
sources:
  floor: {feed: "plays_{date}.csv"}
"""


def fact(text: str = FACT) -> Fact:
    (parsed,) = parse_declarations(DIMENSION + text).facts
    return parsed


def test_a_fact_stores_a_key_for_each_role() -> None:
    play = fact()
    assert play.key_columns == ("player_key", "guest_key")
    assert [dimension.name for dimension in play.dimensions] == ["dim_player"]
    assert play.origin == "<text>:6"


def test_its_rows_are_entities_with_their_latest_values() -> None:
    shape = fact().as_dimension()
    assert shape.key_names == ("play",)
    assert shape.surrogate_key == "play_row"
    assert {attribute.name: attribute.type for attribute in shape.attributes} == {
        "played_at": "timestamp",
        "casino": "int",
        "player": "string",
        "guest": "string",
        "coins": "int",
        "player_key": "bigint",
        "guest_key": "bigint",
    }
    assert [attribute.name for attribute in shape.attributes if attribute.required] == ["played_at"]
    assert not shape.has_windows


def test_the_event_time_may_be_that_of_the_delivery() -> None:
    text = FACT.replace("{play: bigint}", "{play: bigint, day: timestamp}").replace(
        "played_at", "day\nevent_at: delivery"
    )
    shape = fact(text).as_dimension()
    assert shape.source("floor").column("day").expression == "_scd.at"
    assert "day" not in shape.attribute_names


@pytest.mark.parametrize(
    ("snapshot", "expected"), [("scope: played_at", "reject"), ("scope: coins, empty_scope: delete", "delete")]
)
def test_an_empty_scope_is_deleted_only_as_declared(snapshot: str, expected: str) -> None:
    text = FACT.replace('{feed: "plays_{date}.csv"}', f"{{snapshot: {{{snapshot}}}, feed: {{}}, retire_guard: 0.5}}")
    source = fact(text).as_dimension().source("floor")
    assert source.snapshot is not None and source.feed is not None
    assert (source.snapshot.empty_scope, source.retire_guard.share) == (expected, 0.5)


def test_a_snapshot_of_a_scope_does_not_replace_the_whole_table() -> None:
    scoped = FACT.replace('feed: "plays_{date}.csv"', 'snapshot: {path: "plays_{date}.csv", scope: coins}')
    with pytest.raises(DeclarationError) as raised:
        fact(f"{scoped}strategy: whole\n")
    assert [(e.location, e.field, e.code) for e in raised.value.errors] == [("<text>:15", "strategy", "NOT_APPLICABLE")]
    assert fact(f"{scoped}strategy: scope\n").strategy == "scope"


DAY = """\
dimension: dim_day
business_key: {day: date}
sources: {calendar: {snapshot: "days_{date}.csv"}}
attributes: {holiday: 1}
---
"""


@pytest.mark.parametrize(
    "text",
    [
        FACT.replace("{play: bigint}", "{play: bigint, day: date}"),
        DAY + FACT.replace("dimensions:\n", "dimensions:\n  day: {dimension: dim_day, key: day}\n"),
    ],
    ids=["in the grain", "as the key of a dimension"],
)
def test_a_date_is_that_of_the_delivery_whatever_its_time_of_day_is(text: str) -> None:
    column = fact(text.replace("played_at", "day\nevent_at: delivery")).as_dimension().source("floor").column("day")
    assert (column.expression, column.round) == ("_scd.at", True)


def test_a_role_declares_the_members_of_rows_without_a_version() -> None:
    text = """\
  player:
    dimension: dim_player
    unknown: infer
    not_applicable: coins IS NULL
    invalid: player = '?'
    unknown_limit: 0.05
"""
    (_, player), _ = fact(FACT.replace("  player: dim_player\n", text)).roles
    assert (player.unknown, player.conditions, player.unknown_limit) == (
        "infer",
        {"not_applicable": "coins IS NULL", "invalid": "player = '?'"},
        0.05,
    )


def test_members_are_inferred_for_dimensions_with_windows_only() -> None:
    text = FACT.replace("player: dim_player", "player: {dimension: dim_player, unknown: infer}")
    with pytest.raises(DeclarationError) as raised:
        parse_declarations(DIMENSION.replace("tier: 2", "tier: 1") + text)
    assert [(e.field, e.code) for e in raised.value.errors] == [("dimensions.player.unknown", "NOT_APPLICABLE")]


def test_a_role_cannot_be_a_dimension_of_whole_rows() -> None:
    with pytest.raises(DeclarationError) as caught:
        parse_declarations(DIMENSION.replace("{casino: int, player: string}", "whole_row") + FACT)
    error = caught.value.errors[0]
    assert (error.location, error.field, error.code) == ("<text>:9", "dimensions", "ROLE_KEY")
    assert error.problem == "player references dim_player, whose business key is the hash of a whole row"
    assert error.fix == "declare a business key there that the fact has, or remove the role"


@pytest.mark.parametrize(
    ("old", "new", "line", "field", "code"),
    [
        ("dim_player\n  guest", "dim_plaier\n  guest", 10, "dimensions.player", "UNKNOWN_NAME"),
        ("key: [casino, guest]", "key: guest", 9, "dimensions", "ROLE_KEY"),
        ("{play: bigint}", "{casino: string}", 10, "dimensions.player.key", "ROLE_KEY"),
        ("{play: bigint}", "{play: bigintt}", 7, "grain.play", "INVALID_TYPE"),
        ("{coins: int}", "{coins: intt}", 12, "measures.coins.type", "INVALID_TYPE"),
        ("{coins: int}", "{player: string}", 12, "measures.player", "NAME_IN_USE"),
        ("{coins: int}", "{played_at: date}", 12, "measures.played_at", "NAME_IN_USE"),
        ("{play: bigint}", "{Guest_Key: bigint}", 7, "grain.Guest_Key", "NAME_IN_USE"),
        ("played_at\n", "guest_key\n", 8, "event_time", "NAME_IN_USE"),
        ("{coins: int}", "{guest_key: int}", 12, "measures.guest_key", "NAME_IN_USE"),
        ("[casino, guest]", "[casino, player_key]", 11, "dimensions.guest.key", "NAME_IN_USE"),
        ("played_at\n", "played_at\nevent_at: now\n", 9, "event_at", "NOT_ALLOWED"),
        ("sources:", "strategy: partitions\nsources:", 13, "strategy", "NOT_ALLOWED"),
        ("sources:", "strategy: scope\nsources:", 13, "strategy", "NOT_APPLICABLE"),
        ('{feed: "plays_{date}.csv"}', "{timezone: UTC}", 14, "sources.floor", "FACT_SOURCE"),
        (
            'feed: "plays_{date}.csv"',
            'snapshot: {deletes: "x"}',
            14,
            "sources.floor.snapshot.deletes",
            "NOT_APPLICABLE",
        ),
        (
            'feed: "plays_{date}.csv"',
            "snapshot: {effective_at: at}",
            14,
            "sources.floor.snapshot.effective_at",
            "NOT_APPLICABLE",
        ),
        ('feed: "plays_{date}.csv"', "snapshot: {scope: day}", 14, "sources.floor.snapshot.scope", "UNKNOWN_NAME"),
        (
            'feed: "plays_{date}.csv"',
            "snapshot: {empty_scope: keep}",
            14,
            "sources.floor.snapshot.empty_scope",
            "NOT_ALLOWED",
        ),
        ('"plays_{date}.csv"', '{effective_at: "x"}', 14, "sources.floor.feed.effective_at", "NOT_APPLICABLE"),
        ('"plays_{date}.csv"', "{format: debezium}", 14, "sources.floor.feed.format", "NOT_APPLICABLE"),
        ('"plays_{date}.csv"', "{updates: partial}", 14, "sources.floor.feed.updates", "NOT_APPLICABLE"),
        ("plays_{date}", "plays_{delivery}", 14, "sources.floor.feed.path", "PATH_PLACEHOLDER"),
        ("fct_play", "fct play", 6, "fact", "INVALID_NAME"),
        ("fct_play", "dim_player", 6, "fact", "NAME_IN_USE"),
        ("grain: {play: bigint}\n", "", 6, "grain", "MISSING_VALUE"),
        ("event_time: played_at", "event_time: 2024-01-01", 8, "event_time", "UNQUOTED_TEXT"),
        ("measures", "mesures", 12, "mesures", "UNKNOWN_OPTION"),
        ('  floor: {feed: "plays_{date}.csv"}', "  {}", 13, "sources", "MISSING_VALUE"),
        ("  floor: {", "  floor: {retire_guard: 0.5, ", 14, "sources.floor.retire_guard", "NOT_APPLICABLE"),
        ("  floor: {", "  floor: {attributes: coins, ", 14, "sources.floor.attributes", "NOT_APPLICABLE"),
        (
            "  floor: {",
            "  floor: {columns: {played_at: {not_provided_values: none}}, ",
            14,
            "sources.floor.columns.played_at.not_provided_values",
            "NOT_APPLICABLE",
        ),
        (
            "  floor: {",
            "  floor: {columns: {guest_key: GUEST}, ",
            14,
            "sources.floor.columns.guest_key",
            "UNKNOWN_NAME",
        ),
        ("event_time: played_at", "event_time: casino", 8, "event_time", "INVALID_TYPE"),
        (
            "player: dim_player",
            "player: {dimension: dim_player, unknown: infered}",
            10,
            "dimensions.player.unknown",
            "NOT_ALLOWED",
        ),
        (
            "player: dim_player",
            "player: {dimension: dim_player, unknown_limit: 5}",
            10,
            "dimensions.player.unknown_limit",
            "OUT_OF_RANGE",
        ),
        (
            "player: dim_player",
            "player: {dimension: dim_player, invalid: true}",
            10,
            "dimensions.player.invalid",
            "UNQUOTED_TEXT",
        ),
        ("player: dim_player", "player:", 10, "dimensions.player", "MISSING_VALUE"),
        ("player: dim_player", "player: {key: player}", 10, "dimensions.player", "MISSING_VALUE"),
        ("  floor:", "  other: {feed: {}}\n  floor:", 13, "sources", "FACT_SOURCE"),
    ],
)
def test_an_invalid_fact_is_rejected_with_the_location_of_its_error(
    old: str, new: str, line: int, field: str, code: str
) -> None:
    assert old in FACT
    with pytest.raises(DeclarationError) as raised:
        fact(FACT.replace(old, new, 1))
    assert (f"<text>:{line}", field, code) in [(e.location, e.field, e.code) for e in raised.value.errors]


def test_a_column_is_not_mapped_to_an_event_time_that_is_that_of_the_delivery() -> None:
    text = FACT.replace("played_at\n", "played_at\nevent_at: delivery\n")
    with pytest.raises(DeclarationError) as raised:
        fact(text.replace("  floor: {", "  floor: {columns: {played_at: PLAYED}, "))
    assert [(e.field, e.code) for e in raised.value.errors] == [("sources.floor.columns.played_at", "NOT_APPLICABLE")]


def test_all_errors_of_a_fact_are_reported_at_once() -> None:
    text = FACT.replace("event_time", "event_tim").replace("coins: int", "coins: intt")
    with pytest.raises(DeclarationError) as raised:
        fact(text.replace("play: bigint", "play: bigintt"))
    assert [each.field for each in raised.value.errors] == [
        "grain.play",
        "event_tim",
        "measures.coins.type",
    ]


def test_an_error_of_a_dimension_is_not_reported_for_its_fact() -> None:
    with pytest.raises(DeclarationError) as raised:
        parse_declarations(DIMENSION.replace("tier: 2", "tier: 9") + FACT)
    assert [each.field for each in raised.value.errors] == ["attributes.tier.scd"]
    with pytest.raises(DeclarationError) as raised:
        parse_declarations(DIMENSION.replace("tier: 2", "tier: 9") + FACT.replace("event_time: played_at\n", ""))
    assert [each.field for each in raised.value.errors] == ["attributes.tier.scd", "event_time"]


@pytest.mark.parametrize(
    ("arguments", "field"),
    [
        ({"dimensions": None}, "dimensions"),
        ({"dimensions": {"player": "dim_player"}}, "dimensions.player"),
        ({"grain": "play"}, "grain"),
        ({"source": None}, "source"),
    ],
)
def test_arguments_of_another_type_are_rejected_in_python_too(arguments: dict[str, object], field: str) -> None:
    (player,) = parse_declarations(DIMENSION).dimensions
    valid = {
        "grain": {"play": "bigint"},
        "dimensions": {"player": player},
        "source": Source("s", feed=Feed("{date}.csv")),
    }
    with pytest.raises(DeclarationError) as raised:
        Fact("fct_play", event_time="at", **{**valid, **arguments})  # type: ignore[arg-type]
    assert [(e.location, e.field, e.code) for e in raised.value.errors] == [("fct_play", field, "INVALID_KIND")]


def test_a_role_needs_a_dimension() -> None:
    with pytest.raises(DeclarationError) as raised:
        Role("dim_player")  # type: ignore[arg-type]
    assert [(e.field, e.code) for e in raised.value.errors] == [("dimension", "INVALID_KIND")]
    assert isinstance(Role(parse_declarations(DIMENSION).dimensions[0]).dimension, Dimension)
