"""The number of attempts of a load is configurable; without Spark and without waits."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from scd_pipeline import Pipeline, pipeline
from scd_pipeline.cli import app as cli
from scd_pipeline.cli import loads
from scd_pipeline.cli.context import Settings
from scd_pipeline.declaration import Dimension, Snapshot, Source, describe
from scd_pipeline.deliveries.discovery import Discovery
from scd_pipeline.errors import ConflictError, RetriesExhausted, UsageError
from scd_pipeline.load.retry import Retry, ignore_progress, shortest_wait, with_retries
from scd_pipeline.load.run import LoadResult
from scd_pipeline_tests.semantics.specification import requirement

COUNTRY = Dimension("dim_country", "code", {"name": 1}, Source("iso", snapshot=Snapshot()))


def without_spark() -> Pipeline:
    """A pipeline whose loads are replaced."""
    opened = object.__new__(Pipeline)
    opened.warehouse = SimpleNamespace(spark=None)  # type: ignore[assignment]
    return opened


class Loads:
    """Stands in for the function that loads; `attempts` are those that each call was passed."""

    def __init__(self) -> None:
        self.attempts: list[int] = []

    def __call__(self, *_: Any, retry: Retry | None, **__: Any) -> LoadResult:
        self.attempts.append((retry or Retry()).attempts)
        return LoadResult("dim_country", (), {}, 1, 1, 0.1)


@requirement("F50")
@pytest.mark.parametrize(
    ("attempts", "waits"),
    [(1, []), (2, [1.0]), (6, [1.0, 2.1, 4.2, 8.3, 16.4]), (9, [1.0, 2.1, 4.2, 8.3, 16.4, 32.5, 60, 60])],
)
def test_a_load_is_attempted_as_often_as_declared(attempts: int, waits: list[float]) -> None:
    done: list[float] = []

    def conflict(_: int) -> None:
        raise ConflictError("WRITE_CONFLICT", "table dim_x", number=7, previous=6)

    with pytest.raises(RetriesExhausted) as raised:
        with_retries("dim_x", conflict, Retry(attempts, sleep=done.append, random=lambda: 0.0), ignore_progress)
    assert raised.value.details["attempts"] == attempts
    assert [round(wait, 3) for wait in done] == waits


@requirement("F50")
@pytest.mark.parametrize("attempts", [0, -1, True, 2.5, "5", None])
def test_another_number_of_attempts_is_rejected(attempts: Any) -> None:
    with pytest.raises(UsageError) as raised:
        Retry(attempts)
    assert (raised.value.code, raised.value.details["attempts"]) == ("TOO_FEW_ATTEMPTS", repr(attempts))


def test_the_longest_wait_is_a_minute() -> None:
    """Whatever the number of attempts, of which 2 to the power is no float from 1,024 on."""
    assert shortest_wait(1100) == 60


@requirement("F50")
def test_the_library_passes_the_attempts_to_the_load(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = Loads()
    monkeypatch.setattr(pipeline, "load", calls)
    monkeypatch.setattr(pipeline.queries, "create_views", lambda *_, **__: None)
    opened = without_spark()
    for options in ({}, {"retry": Retry(attempts=8)}):
        opened.load(COUNTRY, [{"code": "at", "name": "Austria"}], at="2024-01-01", **options)  # type: ignore[arg-type]
    assert calls.attempts == [5, 8]


@pytest.mark.parametrize("retry", [0, 3, "three"])
def test_the_library_rejects_a_number_instead_of_a_retry(retry: Any) -> None:
    with pytest.raises(UsageError, match="NOT_A_RETRY"):
        without_spark().load(COUNTRY, [{"code": "at", "name": "Austria"}], at="2024-01-01", retry=retry)


@requirement("F50")
def test_the_command_passes_the_attempts_to_the_load(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    declaration = tmp_path / "country.yaml"
    declaration.write_text(describe(COUNTRY), encoding="utf-8")

    @contextmanager
    def opened(_: Settings, **__: Any) -> Iterator[Any]:
        yield SimpleNamespace(spark=None)

    calls = Loads()
    monkeypatch.setattr(Settings, "open", opened)
    monkeypatch.setattr(loads, "_select_deliveries", lambda declared, *_: [(item, Discovery([])) for item in declared])
    monkeypatch.setattr("scd_pipeline.load.run.load", calls)
    monkeypatch.setattr("scd_pipeline.queries.create_views", lambda *_, **__: None)
    codes = [cli.main(["load", str(declaration), *options]) for options in ((), ("--attempts", "8"))]
    assert (codes, calls.attempts) == ([0, 0], [5, 8])
    capsys.readouterr()
    assert cli.main(["load", str(declaration), "--attempts", "0"]) == 2
    assert "--attempts" in capsys.readouterr().err
