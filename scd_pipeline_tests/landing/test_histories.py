"""S38, S14: a landing table as the source of a dimension has one history, whatever order its deliveries arrive in."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from scd_pipeline import Delivery, Dimension, Pipeline
from scd_pipeline.declaration import LandingTable, parse_declarations
from scd_pipeline.deliveries.accept import pending_deliveries
from scd_pipeline.load.landing_deliveries import landing_deliveries
from scd_pipeline.load.log import read_log
from scd_pipeline.load.run import load
from scd_pipeline_tests.landing.tables import deliveries
from scd_pipeline_tests.semantics.specification import rule
from scd_pipeline_tests.text_tables import assert_same_rows, header

MERGED = """
landing_table: raw
disposition: merge
primary_key: {id: int}
hard_delete: deleted
columns: {name: string, deleted: boolean}
sources: {api: {feed: {}}}
"""
REPLACED = """
landing_table: raw
disposition: replace
columns: {id: int, name: string, deleted: boolean}
sources: {api: {snapshot: {}, retire_guard: 1.0}}
"""
APPENDED = """
landing_table: raw
disposition: append
columns: {id: int, name: string, deleted: boolean}
sources: {api: {feed: {}}}
"""
DIMENSION = """
---
dimension: dim_issue
business_key: {id: int}
attributes: {name: 2}
sources: {issues: {landing_table: raw}}
single_scd_type: true
"""


def declared(text: str) -> tuple[LandingTable, Dimension]:
    declarations = parse_declarations(text.lstrip() + DIMENSION.lstrip())
    return declarations.landing_tables[0], declarations.dimensions[0]


@pytest.fixture
def pipeline(spark: SparkSession, warehouse: Path) -> Pipeline:
    """The pipeline of an empty warehouse."""
    return Pipeline(warehouse, spark=spark)


def assert_history(pipeline: Pipeline, expected: str) -> None:
    rows = pipeline.history("dim_issue").select(list(header(expected))).collect()
    assert_same_rows(expected, [row.asDict() for row in rows])


ROWS = """
| delivery   | id | name | deleted |
| 2024-01-01 | 1  | a    | NULL    |
| 2024-01-01 | 2  | b    | NULL    |
| 2024-02-01 | 1  | aa   | NULL    |
| 2024-03-01 | 2  | b    | true    |
| 2024-03-01 | 3  | c    | NULL    |
"""
HISTORY = """
| id | name | effective_from      | effective_to        |
| 1  | a    | 2024-01-01 00:00:00 | 2024-02-01 00:00:00 |
| 1  | aa   | 2024-02-01 00:00:00 |                     |
| 2  | b    | 2024-01-01 00:00:00 | 2024-03-01 00:00:00 |
| 3  | c    | 2024-03-01 00:00:00 |                     |
"""


@pytest.mark.slow(30)
@rule("S38", "S14", "S34")
def test_a_merged_table_gives_the_same_history_in_any_order(pipeline: Pipeline) -> None:
    """The last delivery arrives first, then the first two; a revision and a withdrawal change the history.

    A run reads what it has landed, but nothing earlier than what the dimension has read.
    """
    raw, issue = declared(MERGED)
    first, second, third = deliveries(ROWS)
    load(pipeline.warehouse, raw, [third], run_id="A")
    pipeline.load(issue)
    load(pipeline.warehouse, raw, [second, first], run_id="B")
    names = ["2024-01-01", "2024-02-01", "2024-03-01"]
    assert {run: pending(pipeline, issue, run) for run in ("A", "B", None)} == {"A": [], "B": names, None: names}
    result = pipeline.load(issue)
    assert [each.name for each in landing_deliveries(pipeline.warehouse, issue, "A")] == names
    assert [(each.delivery, each.outcome) for each in result.results] == [
        ("2024-01-01", "accepted"),
        ("2024-02-01", "accepted"),
        ("2024-03-01", "accepted"),
    ]
    assert_history(pipeline, HISTORY)
    repeated = pipeline.load(issue)
    assert {each.outcome for each in repeated.results} == {"unchanged"}
    assert (repeated.table_version, repeated.log_version) == (result.table_version, result.log_version)
    revised = deliveries("| delivery | id | name | deleted |\n| 2024-03-01 | 2 | x | NULL |", revision=1)
    pipeline.load(raw, [*revised, Delivery("api", name="2024-02-01", revision=1, withdrawn=True)])
    assert pending(pipeline, issue) == ["2024-03-01", "2024-02-01"]
    pipeline.load(issue)
    assert_history(
        pipeline,
        """
        | id | name | effective_from      | effective_to        |
        | 1  | a    | 2024-01-01 00:00:00 |                     |
        | 2  | b    | 2024-01-01 00:00:00 | 2024-03-01 00:00:00 |
        | 2  | x    | 2024-03-01 00:00:00 |                     |
        """,
    )


def pending(pipeline: Pipeline, dimension: Dimension, run_id: str | None = None) -> list[str]:
    available = landing_deliveries(pipeline.warehouse, dimension, run_id)
    stored = read_log(pipeline.warehouse, dimension).batches()
    return [each.name for each in pending_deliveries(dimension, available, stored)]


SNAPSHOTS = """
| delivery   | id | name | deleted |
| 2024-01-01 | 1  | a    | NULL    |
| 2024-01-01 | 2  | b    | NULL    |
| 2024-02-01 | 1  | aa   | NULL    |
| 2024-02-01 | 2  | b    | NULL    |
| 2024-03-01 | 1  | aa   | NULL    |
| 2024-03-01 | 3  | c    | NULL    |
"""


@rule("S38", "S14")
@pytest.mark.parametrize("order", [(2, 0, 1), (0, 1, 2)])
@pytest.mark.slow(13)
def test_a_replaced_table_gives_the_history_of_its_snapshots(pipeline: Pipeline, order: tuple[int, ...]) -> None:
    raw, issue = declared(REPLACED)
    delivered = deliveries(SNAPSHOTS)
    for number in order:
        pipeline.load(raw, [delivered[number]])
    pipeline.load(issue)
    assert_history(pipeline, HISTORY)


TWO_ROWS = """
| delivery   | id | name | deleted |
| 2024-04-01 | 1  | x    | NULL    |
| 2024-04-01 | 1  | y    | NULL    |
"""


@rule("S38", "S5")
@pytest.mark.slow(12)
def test_the_last_appended_row_of_a_key_is_in_force(pipeline: Pipeline) -> None:
    """Two rows of one key in one delivery reject it, because nothing orders them."""
    raw, issue = declared(APPENDED)
    pipeline.load(raw, deliveries(ROWS))
    pipeline.load(issue)
    assert_history(
        pipeline,
        """
        | id | name | effective_from      | effective_to        |
        | 1  | a    | 2024-01-01 00:00:00 | 2024-02-01 00:00:00 |
        | 1  | aa   | 2024-02-01 00:00:00 |                     |
        | 2  | b    | 2024-01-01 00:00:00 |                     |
        | 3  | c    | 2024-03-01 00:00:00 |                     |
        """,
    )
    pipeline.load(
        raw,
        deliveries("| delivery | id | name | deleted |\n| 2024-04-01 | 1 | x | NULL |\n| 2024-04-01 | 1 | y | NULL |"),
    )
    rejected = pipeline.load(issue, raise_on_rejection=False).rejected
    assert [(each.delivery, each.code, each.details["keys"]) for each in rejected] == [
        ("2024-04-01", "LANDING_TABLE_KEY", "id=1")
    ]
