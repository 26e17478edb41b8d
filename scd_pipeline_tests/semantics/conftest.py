"""How the cases are held against the oracle and the engine: the cases of one declaration share their loads."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from scd_pipeline.delta.warehouse import Warehouse
from scd_pipeline_tests import oracle as o
from scd_pipeline_tests.semantics.ground import Ground, OwnTables
from scd_pipeline_tests.semantics.specification import Case, Declaration, expected
from scd_pipeline_tests.text_tables import assert_same_rows, header

Check = Callable[[Case], None]
_ALL_CASES = pytest.StashKey[list[Case]]()


@pytest.fixture(scope="session")
def grounds(
    spark: SparkSession, tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> Callable[[Declaration], Ground]:
    """The ground of a declaration with its cases that this run selects, or with all if it selects none.

    Loaded at the first use.
    """
    folder: Path = tmp_path_factory.mktemp("semantics")
    made: dict[int, Ground] = {}
    asked = {id(case): case for item in request.session.items if (case := _case_of(item))}

    def ground(declaration: Declaration) -> Ground:
        if id(declaration) not in made:
            candidates = [list(asked.values()), request.config.stash[_ALL_CASES]]
            selected, every = ([case for case in cases if case.declaration is declaration] for cases in candidates)
            cases = selected or every
            warehouse = Warehouse(spark, folder / "warehouse")
            made[id(declaration)] = Ground(warehouse, declaration, cases, folder)
        return made[id(declaration)]

    return ground


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """The cases of a declaration run in one process, as they share their loads."""
    cases = {}
    for item in items:
        if item.path.is_relative_to(Path(__file__).parent) and (case := _case_of(item)):
            item.add_marker(pytest.mark.xdist_group(case.declaration.dimension.name))
            cases[id(case)] = case
    config.stash[_ALL_CASES] = list(cases.values())


def _case_of(item: pytest.Item) -> Case | None:
    """The case of a test: its own, or the one that it is parametrized with; None for a test of another folder."""
    callspec = getattr(item, "callspec", None)
    candidate = getattr(item.obj, "case", None) or (callspec.params.get("case") if callspec else None)
    return candidate if isinstance(candidate, Case) else None


@pytest.fixture
def own_tables(spark: SparkSession, warehouse: Path, tmp_path: Path) -> OwnTables:
    """An empty warehouse, and a folder for the deliveries."""
    files = tmp_path / "deliveries"
    files.mkdir()
    return OwnTables(Warehouse(spark, warehouse), files)


@pytest.fixture
def check_oracle() -> Check:
    """Compare a case with the oracle: in order of arrival and, unless that matters, shuffled with duplicates (S14)."""

    def check(case: Case) -> None:
        dim, batches = case.declaration.dim, case.oracle_batches
        assert_same_rows(expected(case.becomes), o.oracle(dim, batches), header(case.becomes))
        if not case.goes_by_arrival:
            shuffled = random.Random(14).sample(batches * 2, 2 * len(batches))
            assert_same_rows(expected(case.becomes), o.oracle(dim, shuffled), header(case.becomes))
        if case.quarantine is not None:
            found = [{"batch": batch, "key": _readable(dim, key)} for batch, key, _ in o.quarantine(dim, batches)]
            stands = [row for row in expected(case.quarantine) if row.get("state") != "superseded"]
            told = [row for row in stands if "NULL" not in row["key"]]
            assert_same_rows(told, [row for row in found if row["key"]], ("batch", "key"))
        if case.results is not None:
            rules = {row["batch"]: row["code"] for row in expected(case.results)}
            wanted = {batch: rule for batch, rule in rules.items() if rule in (o.UNORDERED, o.RETIRE_GUARD)}
            assert o.accepted(dim, batches)[1] == wanted

    return check


def _readable(dim: o.Dim, key: o.Key | None) -> str:
    return ", ".join(f"{name}={part}" for name, part in zip(dim.key, key, strict=True)) if key else ""


@pytest.fixture
def check_engine(grounds: Callable[[Declaration], Ground]) -> Check:
    """Holds a case against the engine."""

    def check(case: Case) -> None:
        ground = grounds(case.declaration)
        _same(case.becomes, ground.own("dimension", case))
        if case.quarantine is not None:
            _same(case.quarantine, ground.own("quarantine", case))
        if case.log is not None:
            _same(case.log, ground.own("log", case))
        if case.results is not None:
            _same(case.results, ground.own_results(case))

    return check


def _same(table: str, rows: list[dict[str, object]]) -> None:
    assert_same_rows(expected(table), rows, header(table))
