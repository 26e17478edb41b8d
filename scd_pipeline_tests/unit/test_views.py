"""Which views are created again after a load."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from scd_pipeline.queries import views
from scd_pipeline.queries.views import View

VIEWS = [
    View("dim_play_current", "SELECT 1", ("dim_play",)),
    View("dim_player_current", "SELECT 2", ("dim_player",)),
    View("dim_play_with_dim_player", "SELECT 3", ("dim_play", "dim_player")),
    View("fct_play_joined", "SELECT 4", ("fct_play", "dim_player")),
]


@pytest.mark.parametrize(
    ("loaded", "numbers"),
    [
        (["dim_play"], [0, 2]),
        (["dim_player"], [1, 2, 3]),
        (["fct_play"], [3]),
        (["dim_play", "fct_play"], [0, 2, 3]),
        (["dim_pl"], []),
        (None, [0, 1, 2, 3]),
    ],
)
def test_views_of_a_table_are_those_that_read_it(
    loaded: list[str] | None, numbers: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The name of a table may be the beginning of another one's."""
    monkeypatch.setattr(views, "_ready_views", lambda *_, **__: VIEWS)
    statements: list[str] = []
    warehouse: Any = SimpleNamespace(schema="mart", tables=list, spark=SimpleNamespace(sql=statements.append))
    expected = [VIEWS[number] for number in numbers]
    assert views.create_views(warehouse, loaded) == [view.name for view in expected]
    assert statements == [f"CREATE OR REPLACE VIEW `mart`.`{view.name}` AS {view.text}" for view in expected]
