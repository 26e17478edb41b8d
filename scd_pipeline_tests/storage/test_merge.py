"""Loads by MERGE, as where Delta has no replaceUsing (S32)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from scd_pipeline.delta.warehouse import Warehouse
from scd_pipeline.load.run import ingest_and_apply
from scd_pipeline_tests.storage.customers import CUSTOMER, feed, history
from scd_pipeline_tests.text_tables import assert_same_rows


@pytest.mark.rule("S32")
def test_a_late_change_a_delete_and_a_new_entity_are_merged(in_rome: Warehouse) -> None:
    """The late change splits the version that ends at the delete; the new entity makes no other row change."""
    in_rome.capabilities = replace(in_rome.capabilities, replaces=False, merges=True)
    ingest_and_apply(in_rome, CUSTOMER, [feed("one", ("a", 3, "Paris"), ("a", 5, None), ("b", 2, "Bonn"))])
    ingest_and_apply(in_rome, CUSTOMER, [feed("two", ("a", 4, "Oslo"), ("c", 1, "Graz"))])
    assert_same_rows(
        """
        | id | city  | from       | to         | version |
        | a  | Rome  | 2024-01-01 | 2024-03-01 | 1       |
        | a  | Paris | 2024-03-01 | 2024-04-01 | 2       |
        | a  | Oslo  | 2024-04-01 | 2024-05-01 | 3       |
        | b  | Bonn  | 2024-02-01 |            | 1       |
        | c  | Graz  | 2024-01-01 |            | 1       |
        """,
        history(in_rome),
    )
    history_of_delta = f"DESCRIBE HISTORY {in_rome.table(CUSTOMER.name).identifier} LIMIT 2"
    assert [row["operation"] for row in in_rome.spark.sql(history_of_delta).collect()] == ["MERGE"] * 2
