"""Each slow test is in one shard; the shards are equally long, and the commit decides which of them runs."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import cast

import pytest

from scd_pipeline_tests import shards

WEIGHTS = {f"test_{number}": 60.0 if number < 5 else 8.0 for number in range(6_000)}


def test_each_test_is_in_one_shard_and_shards_are_equally_long() -> None:
    shard_by_id = shards.assign(WEIGHTS)
    assert set(shard_by_id) == set(WEIGHTS)
    lengths = {
        shard: sum(WEIGHTS[test_id] for test_id in tests)
        for shard, tests in itertools.groupby(sorted(shard_by_id, key=shard_by_id.__getitem__), shard_by_id.__getitem__)
    }
    assert set(lengths) == set(range(shards.SHARDS))
    assert max(lengths.values()) - min(lengths.values()) <= 8.0


def test_shards_do_not_depend_on_the_order_of_the_tests() -> None:
    assert shards.assign(dict(reversed(WEIGHTS.items()))) == shards.assign(WEIGHTS)


def test_commits_choose_all_shards() -> None:
    commits = [f"{number:040x}" for number in range(shards.SHARDS)]
    assert sorted(map(shards.current_shard, commits)) == list(range(shards.SHARDS))


def test_the_first_shard_runs_outside_of_a_repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shards, "__file__", str(tmp_path / "shards.py"))
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    assert shards.current_commit() == ""
    monkeypatch.setenv("PATH", str(tmp_path))
    assert shards.current_commit() == ""
    assert shards.current_shard("") == 0


class Item:
    """A collected test with markers."""

    def __init__(self, nodeid: str, *marks: pytest.MarkDecorator) -> None:
        self.nodeid, self.marks = nodeid, list(marks)

    def iter_markers(self, name: str) -> list[pytest.Mark]:
        return [mark.mark for mark in self.marks if mark.name == name]

    def get_closest_marker(self, name: str) -> pytest.Mark | None:
        return next(iter(self.iter_markers(name)), None)

    def add_marker(self, mark: pytest.MarkDecorator) -> None:
        self.marks.append(mark)


def test_the_shards_together_have_exactly_the_slow_tests() -> None:
    slow = [Item("slow"), *(Item(f"slow {number}", pytest.mark.slow(number)) for number in range(1, 60))]
    slow[0].add_marker(pytest.mark.slow)
    joined = [Item(f"joined {number}", pytest.mark.slow(9, together="demo")) for number in range(2)]
    items = [*slow, *joined, Item("quick")]
    for shard in range(shards.SHARDS):
        shards.mark_shard(cast(list[pytest.Item], items), shard)
        assert len({len(item.iter_markers("in_shard")) for item in joined}) == 1
    assert [len(item.iter_markers("in_shard")) for item in items] == [1] * 62 + [0]
    assert [shards.seconds(cast(pytest.Item, item)) for item in slow[:3]] == [shards.DEFAULT_SECONDS, 1.0, 2.0]
