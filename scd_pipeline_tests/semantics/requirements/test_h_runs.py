"""H8 to H35: what a history of a base keeps, shows and leaves unchanged, in loads of one snapshot each."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timezone
from itertools import pairwise
from typing import Any

import polars as pl
import pytest
from pyspark.sql import SparkSession

from scd_pipeline import queries
from scd_pipeline.delta.warehouse import Warehouse
from scd_pipeline.load.run import commit_log, load, plan
from scd_pipeline.operations.check import check_table
from scd_pipeline_tests.semantics.engine import OwnTables, load_once, records
from scd_pipeline_tests.semantics.specification import DeliveryTable, by_files, declare, requirement, snapshots
from scd_pipeline_tests.text_tables import assert_same_rows

PRODUCT = by_files(
    declare(
        """
        dimension: rc_product_hist
        profile: elevata
        business_key: product
        surrogate_key: rc_product_hist_key
        single_scd_type: true
        sources: {rc_product: {snapshot: {}}}
        attributes: {price: {scd: 2, type: int}}
        """
    ).dimension
)


def base(run: int, *rows: str, day: int | None = None) -> DeliveryTable:
    """The snapshot of a run, with rows such as `A:1`, taken on the day of January with the run's number."""
    lines = [f"| {run} | 2024-01-{day or run:02} | {row[0]} | {row[2:]} |" for row in rows]
    return snapshots("\n".join(["| delivery | at | product | price |", *lines]), "rc_product")


RUNS = base(1, "A:1", "B:1", "C:1"), base(2, "A:2", "B:1", "D:1"), base(4, "A:2", "B:1", "C:1", "D:1")
AFTER_TWO_RUNS = """
| product | price | version_started_at | version_ended_at | version | load_run_id           |
| A       | 1     | 2024-01-01         | 2024-01-02       | 1       | rc_product/snapshot/1 |
| A       | 2     | 2024-01-02         | NULL             | 2       | rc_product/snapshot/2 |
| B       | 1     | 2024-01-01         | NULL             | 1       | rc_product/snapshot/1 |
| C       | 1     | 2024-01-01         | 2024-01-02       | 1       | rc_product/snapshot/1 |
| D       | 1     | 2024-01-02         | NULL             | 1       | rc_product/snapshot/2 |
"""


def utc(day: int) -> datetime:
    return datetime(2024, 1, day, tzinfo=timezone.utc)


@dataclass(frozen=True)
class Loaded:
    """A warehouse with three runs, and the newest version of the table after each of them."""

    tables: OwnTables
    versions: tuple[int, ...]

    @property
    def warehouse(self) -> Warehouse:
        return self.tables.warehouse

    def read(self, version: int) -> list[dict[str, Any]]:
        """The rows of a version of the table, without the unknown member."""
        return records(self.warehouse.table(PRODUCT.name).read(version).where("version > 0"))


@pytest.fixture(scope="module")
def loaded(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Loaded:
    tables = OwnTables(Warehouse(spark, tmp_path_factory.mktemp("products")), tmp_path_factory.mktemp("bases"))
    versions = []
    for run in RUNS:
        load(tables.warehouse, PRODUCT, tables.deliveries(PRODUCT, run))
        versions.append(tables.warehouse.table(PRODUCT.name).newest_version())
    return Loaded(tables, tuple(versions))


@requirement("H8")
def test_the_opener_and_the_closer_of_a_version_are_both_readable(loaded: Loaded) -> None:
    """The row keeps the run that opened it; the audit has the one that closed it."""
    assert_same_rows(AFTER_TWO_RUNS, loaded.read(loaded.versions[1]))
    audit = queries.audit(loaded.warehouse, PRODUCT).where("product IN ('A', 'C')")
    assert_same_rows(
        """
        | product | change_ts  | change_type | source_batch_id       |
        | A       | 2024-01-01 | new         | rc_product/snapshot/1 |
        | A       | 2024-01-02 | changed     | rc_product/snapshot/2 |
        | C       | 2024-01-01 | new         | rc_product/snapshot/1 |
        | C       | 2024-01-02 | deleted     | rc_product/snapshot/2 |
        | C       | 2024-01-04 | new         | rc_product/snapshot/4 |
        """,
        records(audit),
    )


def window(row: dict[str, Any]) -> tuple[str, datetime, datetime]:
    """The product with the limits of a window, of which an open one ends after all runs."""
    return row["product"], row["version_started_at"], row["version_ended_at"] or utc(31)


@requirement("H12")
def test_all_changes_of_a_run_are_in_one_commit_and_no_version_of_the_table_overlaps(loaded: Loaded) -> None:
    """Each run with changes is one commit, so that no reader sees a closed version without the one that follows."""
    first, second, third = loaded.versions
    assert (second, third) == (first + 1, first + 2)
    for version in loaded.versions:
        rows = loaded.read(version)
        windows = sorted(map(window, rows))
        assert all(start < end for _, start, end in windows)
        for (product, _, end), (other, start, _) in pairwise(windows):
            assert product != other or end <= start
        assert set(Counter(row["product"] for row in rows if row["version_ended_at"] is None).values()) == {1}


@requirement("H14", "H15")
def test_no_run_truncates_the_table_or_changes_a_closed_version(loaded: Loaded) -> None:
    """A key that the base lacks stays in the table, closed; later runs leave its row as it is."""
    identifier = loaded.warehouse.table(PRODUCT.name).identifier
    commits = records(loaded.warehouse.spark.sql(f"DESCRIBE HISTORY {identifier}"))
    assert not {"TRUNCATE", "DELETE"} & {commit["operation"] for commit in commits}
    closed = [closed_versions(loaded.read(version)) for version in loaded.versions]
    assert list(closed[1]) == [("A", 1), ("C", 1)]
    assert closed[1:] == [closed[1]] * 2


def closed_versions(rows: list[dict[str, Any]]) -> dict[tuple[str, int], dict[str, Any]]:
    """The closed versions by product and number."""
    closed = {(row["product"], row["version"]): row for row in rows if row["version_ended_at"] is not None}
    return dict(sorted(closed.items()))


@requirement("H35")
def test_the_state_as_of_a_time_is_known_now_and_as_it_was_known_before(loaded: Loaded) -> None:
    """On 3 January A costs 2, C is gone and D is there; before the second run, A cost 1, and C was there."""
    recorded = {row["source_batch_id"]: row["recorded_at"] for row in records(queries.audit(loaded.warehouse, PRODUCT))}
    before = recorded["rc_product/snapshot/1"]
    now = records(queries.as_of(loaded.warehouse, PRODUCT, utc(3)))
    then = records(queries.as_of(loaded.warehouse, PRODUCT, utc(3), known_at=before))
    assert prices_of(now) == {"A": 2, "B": 1, "D": 1}
    assert prices_of(then) == {"A": 1, "B": 1, "C": 1}
    assert prices_of(records(queries.as_of(loaded.warehouse, PRODUCT, utc(1)))) == prices_of(then)


def prices_of(rows: list[dict[str, Any]]) -> dict[str, int]:
    """The price of each product."""
    return {row["product"]: row["price"] for row in rows if row["product"] is not None}


@requirement("H28")
def test_another_reader_of_delta_returns_the_same_versions(loaded: Loaded) -> None:
    """Polars reads the table without Spark; no SQL is generated for other databases."""
    path = loaded.warehouse.table(PRODUCT.name).path
    assert path is not None
    columns = ["product", "price", "version_started_at", "version_ended_at", "rc_product_hist_key"]
    rows = pl.read_delta(path, columns=columns).to_dicts()
    stored = [{name: row[name] for name in columns} for row in loaded.read(loaded.versions[2])]
    assert by_key(row for row in rows if row["product"] is not None) == by_key(stored)


def by_key(rows: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    return sorted(rows, key=lambda row: row["rc_product_hist_key"])


@requirement("H31")
def test_a_plan_counts_the_rows_to_close_and_to_open_and_writes_nothing(loaded: Loaded) -> None:
    """A changes and C disappears: two versions are closed, and one is opened. The tables stay as they are."""
    names = loaded.warehouse.tables()
    before = {name: loaded.warehouse.table(name).newest_version() for name in names}
    deliveries = loaded.tables.deliveries(PRODUCT, base(5, "A:3", "B:1", "D:1"))
    explained = plan(loaded.warehouse, PRODUCT, deliveries).explain()
    assert "1 to open, 2 to close" in explained
    assert {name: loaded.warehouse.table(name).newest_version() for name in loaded.warehouse.tables()} == before


@pytest.mark.slow(5)
@requirement("H30")
def test_the_same_deliveries_have_the_same_plan_without_an_orchestrator(loaded: Loaded) -> None:
    """A process that plans a load has not imported Dagster."""
    deliveries = loaded.tables.deliveries(PRODUCT, base(6, "A:3", "B:1", "D:1"))
    first, second = (plan(loaded.warehouse, PRODUCT, deliveries) for _ in range(2))
    assert first.explain() == second.explain()
    assert by_key(records(first.changed_rows)) == by_key(records(second.changed_rows))
    command = "import sys, scd_pipeline.load.run, scd_pipeline.pipeline; sys.exit('dagster' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", command], check=False).returncode == 0


@pytest.mark.slow(12)
@requirement("H9", "H10", "H11")
def test_a_run_that_died_is_completed_and_late_and_repeated_runs_leave_no_empty_window(own_tables: OwnTables) -> None:
    """The second run dies after its log is written; the third one has a later time, and the fourth an earlier one."""
    warehouse = own_tables.warehouse
    own_tables.load(PRODUCT, base(1, "A:1", "B:1", "C:1"))
    second = own_tables.deliveries(PRODUCT, base(2, "A:2", "B:1", "D:1", day=3))
    commit_log(warehouse, plan(warehouse, PRODUCT, second))  # killed here
    own_tables.load(PRODUCT, base(3, "A:2", "B:1", "D:1", day=5))
    own_tables.load(PRODUCT, base(4, "A:7", "B:1", "D:1", day=4))
    assert_same_rows(
        """
        | product | price | version_started_at | version_ended_at | load_run_id           |
        | A       | 1     | 2024-01-01         | 2024-01-03       | rc_product/snapshot/1 |
        | A       | 2     | 2024-01-03         | 2024-01-04       | rc_product/snapshot/2 |
        | A       | 7     | 2024-01-04         | 2024-01-05       | rc_product/snapshot/4 |
        | A       | 2     | 2024-01-05         | NULL             | rc_product/snapshot/3 |
        | B       | 1     | 2024-01-01         | NULL             | rc_product/snapshot/1 |
        | C       | 1     | 2024-01-01         | 2024-01-03       | rc_product/snapshot/1 |
        | D       | 1     | 2024-01-03         | NULL             | rc_product/snapshot/2 |
        """,
        records(warehouse.table(PRODUCT.name).read().where("version > 0")),
    )
    before = {name: warehouse.table(name).newest_version() for name in warehouse.tables()}
    repeated = load_once(warehouse, PRODUCT, second)
    assert [result.outcome for result in repeated.results] == ["unchanged"]
    assert {name: warehouse.table(name).newest_version() for name in warehouse.tables()} == before


@requirement("H23", "H29")
def test_a_dropped_history_is_rebuilt_with_its_generated_columns_and_passes_all_checks(loaded: Loaded) -> None:
    """Windows, keys, hashes and runs are computed again from the log; business values are the same."""
    before = by_key(loaded.read(loaded.versions[2]))
    table = loaded.warehouse.table(PRODUCT.name)
    shutil.rmtree(str(table.path))
    load(loaded.warehouse, PRODUCT)
    rebuilt = by_key(records(table.read().where("version > 0")))
    assert [{**row, "loaded_at": None} for row in rebuilt] == [{**row, "loaded_at": None} for row in before]
    assert [str(result) for result in check_table(loaded.warehouse, PRODUCT) if not result.passed] == []
