"""Facts with the values of their event time and the current ones: Kimball's type 7, by surrogate and business key."""

from __future__ import annotations

import pytest

from scd_pipeline import queries
from scd_pipeline.delta.warehouse import Warehouse
from scd_pipeline.load.run import load
from scd_pipeline_tests.facts.players import PLAY, PLAYER, W, players
from scd_pipeline_tests.semantics.specification import requirement
from scd_pipeline_tests.text_tables import assert_same_rows

QUERY = """
SELECT play, player_tier, n.tier AS tier_now
FROM fct_play_joined LEFT JOIN dim_player_current AS n USING (player_id)
"""


@pytest.mark.slow
@requirement("X22", "F56", "F65")
def test_a_play_has_the_tier_of_its_time_and_the_current_one(played: Warehouse) -> None:
    """The play of 2019-03-05 was of the tier Bronze; the player is Diamond today, since 2024-01-01."""
    header, *_ = W.strip().splitlines()
    load(played, PLAYER, [players("2", f"{header}\n| p | 2024-01-01 | | Diamond | b | 1990 | NULL |")])
    queries.register(played, facts=[PLAY], query=QUERY)
    assert_same_rows(
        """
        | play | player_tier | tier_now |
        | 1    | Bronze      | Diamond  |
        | 2    | Bronze      | Diamond  |
        | 3    | Silver      | Diamond  |
        """,
        played.spark.sql(QUERY).toArrow().to_pylist(),
    )
