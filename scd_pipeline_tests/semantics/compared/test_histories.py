"""The rows of this package after each history that other tools load too."""

from __future__ import annotations

import pytest

from scd_pipeline_tests.semantics.compared.histories import HISTORIES, MERGES, Merge
from scd_pipeline_tests.semantics.engine import OwnTables
from scd_pipeline_tests.semantics.specification import ORACLE, Case
from scd_pipeline_tests.text_tables import assert_same_rows

CASES = {history.title: history.case for history in HISTORIES}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
@pytest.mark.parametrize(
    "side", [ORACLE, pytest.param("engine", marks=pytest.mark.slow(5, together="compared histories"))]
)
def test_the_rows_of_a_history(case: Case, side: str, request: pytest.FixtureRequest) -> None:
    request.getfixturevalue(f"check_{side}")(case)


@pytest.mark.slow(12)
@pytest.mark.parametrize("merge", MERGES, ids=lambda merge: merge.title)
def test_the_rows_of_a_landing_table(merge: Merge, own_tables: OwnTables) -> None:
    own_tables.load(merge.dimension, merge.deliveries)
    assert_same_rows(merge.becomes, own_tables.rows(merge.dimension))
