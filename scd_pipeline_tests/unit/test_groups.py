"""Tests that share slow fixtures run in one process, also if several processes run the tests."""

from __future__ import annotations

import pytest


def test_the_id_of_a_test_has_its_group(request: pytest.FixtureRequest) -> None:
    """Without it pytest-xdist ignores all groups, and each process creates everything."""
    if not hasattr(request.config, "workerinput"):
        pytest.skip("one process runs all tests")
    assert request.node.nodeid.endswith("@test_groups")
