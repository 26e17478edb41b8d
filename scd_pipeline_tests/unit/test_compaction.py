"""When a load combines the small files of its tables, and what a failure of it does."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from scd_pipeline.delta.schema import FORMAT
from scd_pipeline.load.compaction import compact_small_files, is_compaction_due
from scd_pipeline_tests.semantics.specification import requirement


@requirement("F46")
@pytest.mark.parametrize(
    ("before", "after", "is_due"),
    [(0, 1, False), (48, 49, False), (49, 50, True), (50, 50, False), (50, 51, False), (99, 101, True)],
)
def test_every_fiftieth_commit_is_a_reason(before: int, after: int, is_due: bool) -> None:
    assert is_compaction_due(before, after) is is_due


def test_a_failure_is_reported_and_the_other_tables_are_compacted() -> None:
    """The load has committed. A table of another program, and one that does not exist, are left alone."""
    compacted: list[str] = []

    def table(name: str) -> Any:
        def combine_small_files() -> None:
            if name == "dim_a":
                raise RuntimeError("the server is unavailable\n  at a line of Java")
            compacted.append(name)

        properties = {"dim_foreign": {"delta.minReaderVersion": "3"}, "dim_missing": {}}
        return SimpleNamespace(
            properties=lambda: properties.get(name, {FORMAT: "1"}), combine_small_files=combine_small_files
        )

    messages: list[str] = []
    warehouse: Any = SimpleNamespace(table=table)
    compact_small_files(warehouse, ["dim_a", "dim_foreign", "dim_missing", "dim_b"], messages.append)
    assert compacted == ["dim_b"]
    assert messages == ["dim_a: its rows are written, but its small files are not combined: the server is unavailable"]
