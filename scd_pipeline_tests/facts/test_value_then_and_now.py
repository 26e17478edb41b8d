"""Facts with the values of their event time and the current ones: Kimball's type 7, by surrogate and business key."""

from __future__ import annotations

from scd_pipeline import reading
from scd_pipeline.delta.warehouse import Warehouse
from scd_pipeline_tests.facts.players import PLAY
from scd_pipeline_tests.semantics.specification import requirement
from scd_pipeline_tests.text_tables import assert_same_rows

QUERY = """
SELECT play, player_tier, n.tier AS tier_now
FROM fct_play_joined LEFT JOIN dim_player_current AS n USING (player_id)
"""


@requirement("X22", "F56")
def test_a_play_has_the_tier_of_its_time_and_the_current_one(played: Warehouse) -> None:
    """The play of 2019-03-05 was of the tier Bronze; the player has Gold since 2019-12-01."""
    reading.register(played, facts=[PLAY], query=QUERY)
    assert_same_rows(
        """
        | play | player_tier | tier_now |
        | 1    | Bronze      | Gold     |
        | 2    | Bronze      | Gold     |
        | 3    | Silver      | Gold     |
        """,
        played.spark.sql(QUERY).toArrow().to_pylist(),
    )
