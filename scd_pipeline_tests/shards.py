"""Shards of the slow tests: `make test` runs one of them, which the commit decides.

`python -m scd_pipeline_tests.shards` lists the shards with their tests and expected seconds.
"""

from __future__ import annotations

import hashlib
import heapq
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path

import pytest

SHARDS = 600
DEFAULT_SECONDS = 16.0
"""What a slow test takes in a run of three processes, unless its marker has another number."""


def seconds(item: pytest.Item) -> float:
    """Return what a slow test is expected to take: the largest number of its markers, as in `slow(60)`."""
    return max((float(mark.args[0]) for mark in item.iter_markers("slow") if mark.args), default=DEFAULT_SECONDS)


def unit(item: pytest.Item) -> str:
    """Return what is in one shard: a test, or the tests that a marker joins since they share a slow fixture."""
    names = (mark.kwargs["together"] for mark in item.iter_markers("slow") if "together" in mark.kwargs)
    return next((f"together {name}" for name in names), item.nodeid)


def weigh(items: Iterable[pytest.Item]) -> dict[str, float]:
    """Return the seconds of each unit of tests."""
    weights = defaultdict[str, float](float)
    for item in items:
        weights[unit(item)] += seconds(item)
    return weights


def assign(weights: Mapping[str, float], shards: int = SHARDS) -> dict[str, int]:
    """Return the shard of each unit: the longest ones first, each in the shard that is the shortest until then.

    Units of equal length are in the order of the hashes of their names, so that a file's tests are in several shards.
    """
    lengths = [(0.0, shard) for shard in range(shards)]
    shard_by_unit = {}
    for name in sorted(weights, key=lambda name: (-weights[name], _hash(name))):
        length, shard = heapq.heappop(lengths)
        shard_by_unit[name] = shard
        heapq.heappush(lengths, (length + weights[name], shard))
    return shard_by_unit


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
    slow = [item for item in items if item.get_closest_marker("slow")]
    shard_by_unit = assign(weigh(slow))
    for item in slow:
        if shard_by_unit[unit(item)] == shard:
            item.add_marker(pytest.mark.in_shard)


def _hash(name: str) -> str:
    return hashlib.sha256(name.encode()).hexdigest()


class _Listing:
    """A plugin that prints the shards of the collected tests."""

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        shard_by_unit = assign(weigh(session.items))
        for shard in range(SHARDS):
            tests = [item for item in session.items if shard_by_unit[unit(item)] == shard]
            print(f"shard {shard}: {len(tests)} tests, {sum(map(seconds, tests)):.0f} s")
            print("".join(f"  {item.nodeid}\n" for item in tests), end="")


if __name__ == "__main__":
    options = ["-o", "addopts=", "-p", "no:terminal", "-m", "slow", "--collect-only"]
    sys.exit(pytest.main(options, plugins=[_Listing()]))
