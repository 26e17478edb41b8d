"""What the demo says while it works."""

from __future__ import annotations

import pytest

from examples.congress import demo


def test_it_says_now_and_then_that_work_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(demo, "_SILENT_SECONDS", 0)
    monkeypatch.setattr(demo, "_POLL_SECONDS", 0.01)
    said: list[str] = []
    with demo.progress(said.append, clock=lambda: 7.0) as tell:
        tell("working")
        while len(said) < 2:
            pass
    assert said[:2] == ["    0 s  working", "    0 s  ..."]


def test_what_to_type_next_is_named_by_the_way_it_was_called() -> None:
    said: list[str] = []
    demo.suggest(said.append, ".venv/bin/scd")
    assert sum(".venv/bin/scd " in line for line in said) == 7
    assert "make dev" in said[-1]
