"""A dimension, a fact that names it in two roles, and their deliveries as text tables."""

from __future__ import annotations

import datetime as dt
from dataclasses import replace

import pyarrow as pa

from scd_pipeline.declaration import Attribute, Dimension, Fact, Feed, Role, Source
from scd_pipeline.deliveries.delivery import Delivery
from scd_pipeline_tests.text_tables import header, parse

PLAYER = Dimension(
    "dim_player",
    {"player_id": "string"},
    {"tier": Attribute(2), "email": Attribute(1), "born": Attribute(0)},
    Source("loyalty", feed=Feed(effective_at="at", deletes="op = 'D'", actor="by")),
)
PLAY = Fact(
    "fct_play",
    grain={"play": "int"},
    event_time="played_at",
    dimensions={"player": Role(PLAYER), "partner": Role(PLAYER, "partner_id")},
    measures={"coins": "int"},
    source=Source("floor", feed=Feed(), bad_row_limit=0.5),
)
PLAYER_SINCE = replace(
    PLAYER,
    attributes={
        "level": Attribute(2, former_names="tier"),
        "email": Attribute(1),
        "born": Attribute(0),
        "phone": Attribute(2, missing="not_provided"),
    },
)
"""The player as declared since the last delivery: an attribute renamed, and a new one."""

PLAY_SINCE = Fact(
    "fct_play",
    grain={"play": "int"},
    event_time="played_at",
    dimensions={role: Role(PLAYER_SINCE, f"{role}_id") for role in ("player", "partner", "coach")},
    measures={"coins": "int", "player_level": "string"},
    source=Source("floor", feed=Feed()),
)
"""The fact likewise: a new role, and a new measure that has the name of a role's attribute."""

COUNTRY = Dimension(
    "dim_country",
    {"code": "string"},
    {"name": Attribute(1)},
    Source("iso", feed=Feed(effective_at="at", deletes="op = 'D'")),
    deleted_rows="remove",
)
VISIT = Fact(
    "fct_visit",
    grain={"visit": "int"},
    event_time="at",
    dimensions={"player": Role(PLAYER), "country": Role(COUNTRY, "country")},
    source=Source("desk", feed=Feed()),
)
W = """
| player_id | at         | op | tier   | email | born | by   |
| p         | 2019-03-01 |    | Bronze | a     | 1990 | NULL |
| p         | 2019-06-01 |    | Silver | b     | 1990 | ann  |
| p         | 2019-10-01 | D  |        |       |      | NULL |
| p         | 2019-12-01 |    | Gold   | b     | 1991 | NULL |
"""
PLAYS = """
| play | played_at  | player_id | partner_id | coins |
| 1    | 2019-03-05 | p         | NULL       | 1     |
| 2    | 2019-04-20 | p         | p          | 2     |
| 3    | 2019-07-01 | p         | NULL       | 3     |
"""


def players(name: str, table: str, revision: int = 1) -> Delivery:
    return Delivery("loyalty", name, "feed", revision=revision, frame=frame(table))


def plays(name: str, table: str, *, day: int = 1, revision: int = 1, withdrawn: bool = False) -> Delivery:
    at = dt.datetime(2020, 1, day)
    content = None if withdrawn else frame(table)
    return Delivery("floor", name, "feed", at=at, revision=revision, frame=content, withdrawn=withdrawn)


def frame(table: str) -> pa.Table:
    """The table with every column as text."""
    rows = [{name: None if value is None else str(value) for name, value in row.items()} for row in parse(table)]
    return pa.Table.from_pylist(rows, schema=pa.schema([(name, pa.string()) for name in header(table)]))
