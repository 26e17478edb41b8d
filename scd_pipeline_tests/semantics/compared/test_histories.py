"""The rows of this package after each history that other tools load too."""

from __future__ import annotations

import pytest

from scd_pipeline_tests.semantics.compared.histories import HISTORIES
from scd_pipeline_tests.semantics.specification import ORACLE, Case

CASES = {history.title: history.case for history in HISTORIES}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
@pytest.mark.parametrize(
    "side", [ORACLE, pytest.param("engine", marks=pytest.mark.slow(5, together="compared histories"))]
)
def test_the_rows_of_a_history(case: Case, side: str, request: pytest.FixtureRequest) -> None:
    request.getfixturevalue(f"check_{side}")(case)
