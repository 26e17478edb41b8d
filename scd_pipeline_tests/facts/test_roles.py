"""A fact with many roles: Spark Connect limits the depth of a plan."""

from __future__ import annotations

import pytest

from scd_pipeline.declaration import Fact, Role
from scd_pipeline.delta.warehouse import Warehouse
from scd_pipeline.load.run import load
from scd_pipeline.operations import check
from scd_pipeline.queries.joins import with_dimensions
from scd_pipeline_tests.facts.players import PLAY, PLAYER, players, plays

ROLES = [f"player_{number}" for number in range(8)]
FACT = Fact(
    "fct_play",
    grain={"play": "int"},
    event_time="played_at",
    dimensions={role: Role(PLAYER, f"{role}_id") for role in ROLES},
    measures={"coins": "int"},
    source=PLAY.source,
)
LATE = """
| player_id | at         | op | tier | email | born | by   |
| p         | 2019-03-03 |    | Iron | a     | 1990 | NULL |
"""


@pytest.mark.slow
def test_a_fact_with_eight_roles_is_loaded_rekeyed_checked_and_read(recorded: Warehouse) -> None:
    columns, values = " | ".join(f"{role}_id" for role in ROLES), " | ".join("p" for _ in ROLES)
    load(recorded, FACT, [plays("1", f"| play | played_at | {columns} | coins |\n| 1 | 2019-03-05 | {values} | 1 |")])
    load(recorded, PLAYER, [players("2", LATE)])
    load(recorded, FACT)
    (row,) = with_dimensions(recorded, FACT).collect()
    assert {row[f"{role}_tier"] for role in ROLES} == {"Iron"}
    assert not [result for result in check.check_table(recorded, FACT) if not result.passed]
