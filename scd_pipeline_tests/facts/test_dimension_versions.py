"""S24: for each load of a fact, a query shows the versions of the dimensions whose keys it has stored."""

from __future__ import annotations

import pytest

from scd_pipeline import queries
from scd_pipeline.delta.warehouse import Warehouse
from scd_pipeline.load.run import ingest_and_apply, load
from scd_pipeline_tests.facts.players import PLAY, PLAYER, players, plays
from scd_pipeline_tests.semantics.specification import requirement, rule

LATE = """
| player_id | at         | op | tier     | email | born | by   |
| p         | 2019-04-01 |    | Platinum | c     | 1990 | NULL |
"""
SECOND_PLAYS = """
| play | played_at  | player_id | partner_id | coins |
| 4    | 2019-04-20 | p         | NULL       | 4     |
"""


@pytest.mark.slow
@requirement("L15")
@rule("S24")
def test_a_query_shows_the_versions_of_dimensions_that_each_load_used(played: Warehouse) -> None:
    """The keys of a load are those that its version of the dimension gives at event time."""
    first = played.table(PLAYER.name).last_commit()
    ingest_and_apply(played, PLAYER, [players("2", LATE)])
    load(played, PLAY, [plays("2", SECOND_PLAYS, day=2)], run_id="night")
    second = played.table(PLAYER.name).last_commit()
    view = f"{PLAY.name}{queries.DIMENSION_VERSIONS_SUFFIX}"
    queries.register(played, [view], [PLAY])
    columns = ("run_id", "batches", "dimension", "dimension_version", "dimension_commit")
    rows = played.spark.table(view).orderBy("table_version").select(*columns).collect()
    assert [tuple(row) for row in rows] == [
        ("", ["floor/feed/1/1"], "dim_player", first.table_version, first.number),
        ("night", ["floor/feed/2/1"], "dim_player", second.table_version, second.number),
    ]
    used = played.table(PLAYER.name).read(second.table_version)
    (key,) = used.where("tier = 'Platinum'").select("player_key").collect()
    stored = played.table(PLAY.name).read().where("play = 4").select("player_key").collect()
    assert [tuple(row) for row in stored] == [tuple(key)]
