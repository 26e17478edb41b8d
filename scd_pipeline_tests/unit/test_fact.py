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
    ("old", "new", "error"),
    [
        (
            "dim_player\n  guest",
            "dim_plaier\n  guest",
            "10: dimensions.player: 'dim_plaier' is not a declared dimension",
        ),
        ("key: [casino, guest]", "key: guest", "9: dimensions: guest.key names 1 columns; name one for each of casino"),
        (
            "{play: bigint}",
            "{casino: string}",
            "10: dimensions.player.key: casino is string here, and casino of dim",
        ),
        ("{play: bigint}", "{play: bigintt}", "7: grain.play: 'bigintt' is not a type; did you mean bigint?"),
        ("{coins: int}", "{coins: intt}", "12: measures.coins.type: 'intt' is not a type; did you mean int?"),
        ("{coins: int}", "{player: string}", "12: measures.player: is a business key of a dimension too; remove it"),
        ("{coins: int}", "{played_at: date}", "12: measures.played_at: is the event time too; remove it here"),
        (
            "{play: bigint}",
            "{Guest_Key: bigint}",
            "7: grain.Guest_Key: Guest_Key is the column of the surrogate key of role guest; give that role another",
        ),
        ("played_at\n", "guest_key\n", "8: event_time: guest_key is the column of the surrogate key of role guest"),
        ("{coins: int}", "{guest_key: int}", "12: measures.guest_key: guest_key is the column of the surrogate key of"),
        ("[casino, guest]", "[casino, player_key]", "11: dimensions.guest.key: player_key is the column of the surro"),
        ("played_at\n", "played_at\nevent_at: now\n", "9: event_at: 'now' is not allowed; write row or delivery"),
        ("{feed: ", "{snapshot: ", "14: sources.floor: facts come by a feed; write `feed:` with its path"),
        ('"plays_{date}.csv"', '{deletes: "x"}', "14: sources.floor.feed: has options for dimensions only"),
        (
            '"plays_{date}.csv"',
            "{updates: partial}",
            "14: sources.floor.feed.updates: the feed of a fact provides all columns; remove",
        ),
        ("plays_{date}", "plays_{delivery}", "14: sources.floor.feed.path: {delivery} is any name, and a fact takes a"),
        ("fct_play", "fct play", "6: fact: 'fct play' cannot be the name of a table"),
        ("fct_play", "dim_player", "6: fact: dim_player is declared at <text>:1 already; choose another name"),
        ("grain: {play: bigint}\n", "", "6: grain: is missing; write `grain:`"),
        ("event_time: played_at", "event_time: 2024-01-01", "8: event_time: 2024-01-01 is read as a"),
        ("measures", "mesures", "12: mesures: 'mesures' is not an option here; did you mean measures?"),
        ('  floor: {feed: "plays_{date}.csv"}', "  {}", "13: sources: is missing; write `sources:`"),
        (
            "  floor: {",
            "  floor: {retire_guard: 0.5, ",
            "14: sources.floor.retire_guard: is an option for the sources of",
        ),
        (
            "  floor: {",
            "  floor: {attributes: coins, ",
            "14: sources.floor.attributes: is an option for the sources of d",
        ),
        (
            "  floor: {",
            "  floor: {columns: {guest_key: GUEST}, ",
            "14: sources.floor.columns.guest_key: 'guest_key' is neither an attribute nor in the business key; did you",
        ),
        ("player: dim_player", "player:", "10: dimensions.player: has no value; write text, or remove the option"),
        ("player: dim_player", "player: {key: player}", "10: dimensions.player: names no dimension; write `dimension:"),
        ("  floor:", "  other: {feed: {}}\n  floor:", "13: sources: a fact has one source; declare a fact for each"),
    ],
)
def test_an_invalid_fact_is_rejected_with_the_location_of_its_error(old: str, new: str, error: str) -> None:
    assert old in FACT
    with pytest.raises(DeclarationError) as raised:
        fact(FACT.replace(old, new, 1))
    assert f"<text>:{error}" in str(raised.value)


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
    ("arguments", "error"),
    [
        ({"dimensions": None}, "fct_play: dimensions: None is not names with values; give a mapping"),
        (
            {"dimensions": {"player": "dim_player"}},
            "dimensions.player: 'dim_player' is not a dimension; give a Dimension,",
        ),
        ({"grain": "play"}, "fct_play: grain: 'play' is not names with values; give a mapping"),
        ({"source": None}, "fct_play: source: None is not a source; give a Source with a feed"),
    ],
)
def test_arguments_of_another_type_are_rejected_in_python_too(arguments: dict[str, object], error: str) -> None:
    (player,) = parse_declarations(DIMENSION).dimensions
    valid = {
        "grain": {"play": "bigint"},
        "dimensions": {"player": player},
        "source": Source("s", feed=Feed("{date}.csv")),
    }
    with pytest.raises(DeclarationError) as raised:
        Fact("fct_play", event_time="at", **{**valid, **arguments})  # type: ignore[arg-type]
    assert error in str(raised.value)


def test_a_role_needs_a_dimension() -> None:
    with pytest.raises(DeclarationError, match="'dim_player' is not a dimension; give a Dimension, or a Role of one"):
        Role("dim_player")  # type: ignore[arg-type]
    assert isinstance(Role(parse_declarations(DIMENSION).dimensions[0]).dimension, Dimension)
