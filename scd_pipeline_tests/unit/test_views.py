"""Which views are created again after a load."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from scd_pipeline.queries import views
from scd_pipeline.queries.views import View

TABLES = ["dim_play", "dim_play_changes", "dim_player", "dim_player_changes", "fct_play", "fct_play_changes"]
PLAY: Any = SimpleNamespace(name="fct_play", dimensions=[SimpleNamespace(name="dim_player")])
VIEWS = ["dim_play_current", "dim_player_current", "dim_play_with_dim_player", "fct_play_joined"]


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
    built: list[str] = []

    def view(name: str) -> View:
        built.append(name)
        return View(name, "SELECT 1")

    for name, replacement in {
        "stored_declaration": lambda _, name: name,
        "queried_table": lambda _, name: SimpleNamespace(name=name, has_windows=True, key_names=("id",)),
        "_dimension_views": lambda _, table: [view(f"{table.name}_current")],
        "_overlap": lambda _, left, right: view(f"{left.name}_with_{right.name}"),
        "joined_query": lambda _, fact: view(f"{fact.name}_joined").text,
    }.items():
        monkeypatch.setattr(views, name, replacement)
    statements: list[str] = []
    spark = SimpleNamespace(sql=statements.append)
    warehouse: Any = SimpleNamespace(schema="mart", tables=lambda: TABLES, spark=spark)
    warehouse.table = lambda name: SimpleNamespace(identifier=f"`mart`.`{name}`")
    expected = [VIEWS[number] for number in numbers]
    assert views.create_views(warehouse, loaded, [PLAY]) == expected == built
    assert statements == [f"CREATE OR REPLACE VIEW `mart`.`{name}` AS SELECT 1" for name in expected]
