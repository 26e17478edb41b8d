"""Progress messages and final suggestions of the demo."""

from __future__ import annotations

import pytest

from examples.congress import demo


def test_a_silent_step_is_reported_as_still_running(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(demo, "_SILENT_SECONDS", 0)
    monkeypatch.setattr(demo, "_POLL_SECONDS", 0.01)
    output: list[str] = []
    with demo.progress(output.append, clock=lambda: 7.0) as report:
        report("working")
        while len(output) < 2:
            pass
    assert output[:2] == ["    0 s  working", "    0 s  ..."]


def test_suggested_commands_begin_with_the_program_that_was_called() -> None:
    output: list[str] = []
    demo.suggest(output.append, ".venv/bin/scd")
    assert sum(".venv/bin/scd " in line for line in output) == 7
    assert "make dev" in output[-1]
