"""Compare the cases with the oracle and the engine; the cases of one declaration share their loads."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from scd_pipeline.delta.warehouse import Warehouse
from scd_pipeline_tests import oracle as o
from scd_pipeline_tests.semantics.engine import OwnTables, SharedTables
from scd_pipeline_tests.semantics.specification import Case, Declaration, expected, stored_row
from scd_pipeline_tests.text_tables import assert_same_rows, header

Check = Callable[[Case], None]
_ALL_CASES = pytest.StashKey[list[Case]]()


@pytest.fixture(scope="session")
def shared_tables(
    spark: SparkSession, tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> Callable[[Declaration], SharedTables]:
    """The loaded cases of a declaration: those that this run selects, or all if it selects none.

    They are loaded at the first use.
    """
    folder: Path = tmp_path_factory.mktemp("semantics")
    loaded: dict[int, SharedTables] = {}
    selected_cases, all_cases = _cases(request.session.items), request.config.stash[_ALL_CASES]

    def load(declaration: Declaration) -> SharedTables:
        if id(declaration) not in loaded:
            selected, every = (_cases_of(declaration, cases) for cases in (selected_cases, all_cases))
            warehouse = Warehouse(spark, folder / "warehouse")
            loaded[id(declaration)] = SharedTables(warehouse, declaration, selected or every, folder)
        return loaded[id(declaration)]

    return load


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """The cases of a declaration run in one process, as they share their loads."""
    own_items = [item for item in items if item.path.is_relative_to(Path(__file__).parent)]
    for item in own_items:
        if case := _case_of(item):
            item.add_marker(pytest.mark.xdist_group(case.declaration.dimension.name))
    config.stash[_ALL_CASES] = _cases(own_items)
    _require_own_tables(config.stash[_ALL_CASES])


def _require_own_tables(cases: Iterable[Case]) -> None:
    """All declarations are loaded into one warehouse."""
    declared = {id(case.declaration): case.declaration.dimension.name for case in cases}
    repeated = sorted(name for name, count in Counter(declared.values()).items() if count > 1)
    assert not repeated, f"several declarations have the names {repeated}"


def _cases(items: Iterable[pytest.Item]) -> list[Case]:
    """The cases of these tests, each once."""
    return list({id(case): case for item in items if (case := _case_of(item))}.values())


def _cases_of(declaration: Declaration, cases: Iterable[Case]) -> list[Case]:
    return [case for case in cases if case.declaration is declaration]


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

    def rows(case: Case, batches: Iterable[o.Batch]) -> list[dict[str, Any]]:
        return [stored_row(row, case.declaration.dimension) for row in o.oracle(case.declaration.dim, list(batches))]

    def check(case: Case) -> None:
        dim, batches = case.declaration.dim, case.oracle_batches
        assert_same_rows(expected(case.becomes), rows(case, batches), header(case.becomes))
        if not case.depends_on_arrival:
            shuffled = random.Random(14).sample(batches * 2, 2 * len(batches))
            assert_same_rows(expected(case.becomes), rows(case, shuffled), header(case.becomes))
        if case.quarantine is not None:
            bad_rows = [{"batch": batch, "key": _format_key(dim, key)} for batch, key, _ in o.quarantine(dim, batches)]
            current_rows = [row for row in expected(case.quarantine) if row.get("state") != "superseded"]
            rows_with_key = [row for row in current_rows if "NULL" not in row["key"]]
            assert_same_rows(rows_with_key, [row for row in bad_rows if row["key"]], ("batch", "key"))
        if case.results is not None:
            codes = {row["batch"]: row["code"] for row in expected(case.results)}
            expected_codes = {batch: code for batch, code in codes.items() if code in (o.UNORDERED, o.RETIRE_GUARD)}
            assert o.accepted(dim, batches)[1] == expected_codes

    return check


def _format_key(dim: o.Dim, key: o.Key | None) -> str:
    return ", ".join(f"{name}={value}" for name, value in zip(dim.key, key, strict=True)) if key else ""


@pytest.fixture
def check_engine(shared_tables: Callable[[Declaration], SharedTables]) -> Check:
    """Compare a case with the engine."""

    def check(case: Case) -> None:
        tables = shared_tables(case.declaration)
        _same(case.becomes, tables.case_rows("dimension", case))
        if case.quarantine is not None:
            _same(case.quarantine, tables.case_rows("quarantine", case))
        if case.log is not None:
            _same(case.log, tables.case_rows("log", case))
        if case.results is not None:
            _same(case.results, tables.case_results(case))

    return check


def _same(table: str, rows: list[dict[str, object]]) -> None:
    assert_same_rows(expected(table), rows, header(table))
