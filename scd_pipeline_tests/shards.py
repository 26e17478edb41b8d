"""Shards of the slow tests: `make test` runs one of them, which the commit decides.

`python -m scd_pipeline_tests.shards` lists the shards with their tests and expected seconds.
"""

from __future__ import annotations

import hashlib
import heapq
import subprocess
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

import pytest

SHARDS = 20
DEFAULT_SECONDS = 8.0
"""What a slow test takes on a warm server, unless its marker has another number."""


def seconds(item: pytest.Item) -> float:
    """Return what a slow test is expected to take: the largest number of its markers, as in `slow(60)`."""
    return max((float(mark.args[0]) for mark in item.iter_markers("slow") if mark.args), default=DEFAULT_SECONDS)


def assign(weights: Mapping[str, float], shards: int = SHARDS) -> dict[str, int]:
    """Return the shard of each test: the longest tests first, each in the shard that is the shortest until then.

    Tests of equal length are in the order of the hashes of their ids, so that those of one file are in several shards.
    """
    lengths = [(0.0, shard) for shard in range(shards)]
    shard_by_id = {}
    for test_id in sorted(weights, key=lambda test_id: (-weights[test_id], _hash(test_id))):
        length, shard = heapq.heappop(lengths)
        shard_by_id[test_id] = shard
        heapq.heappush(lengths, (length + weights[test_id], shard))
    return shard_by_id


def current_shard(commit: str) -> int:
    """Return the shard of a commit; the first one outside of a repository."""
    return int(commit, 16) % SHARDS if commit else 0


def current_commit() -> str:
    """Return the id of the commit that is checked out, or an empty text outside of a repository."""
    command = ["git", "-C", str(Path(__file__).parent), "rev-parse", "HEAD"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    except OSError:
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""


def mark_shard(items: Iterable[pytest.Item], shard: int) -> None:
    """Add the marker `in_shard` to the slow tests of a shard."""
    slow = {item.nodeid: item for item in items if item.get_closest_marker("slow")}
    for test_id, own_shard in assign({test_id: seconds(item) for test_id, item in slow.items()}).items():
        if own_shard == shard:
            slow[test_id].add_marker(pytest.mark.in_shard)


def _hash(test_id: str) -> str:
    return hashlib.sha256(test_id.encode()).hexdigest()


class _Listing:
    """A plugin that prints the shards of the collected tests."""

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        weights = {item.nodeid: seconds(item) for item in session.items}
        shard_by_id = assign(weights)
        for shard in range(SHARDS):
            tests = sorted(test_id for test_id, own_shard in shard_by_id.items() if own_shard == shard)
            print(f"shard {shard}: {len(tests)} tests, {sum(map(weights.__getitem__, tests)):.0f} s")
            print("".join(f"  {test_id}\n" for test_id in tests), end="")


if __name__ == "__main__":
    options = ["-o", "addopts=", "-p", "no:terminal", "-m", "slow", "--collect-only"]
    sys.exit(pytest.main(options, plugins=[_Listing()]))
