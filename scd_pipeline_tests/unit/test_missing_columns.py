"""The columns that an error of a missing column lists: no name that may be a value (S31)."""

from __future__ import annotations

import pytest
from pyspark.sql.types import StringType, StructField

from scd_pipeline.deliveries.column_mapping import ColumnMapping
from scd_pipeline.deliveries.read import describe_existing_columns


@pytest.mark.rule("S20", "S31")
@pytest.mark.parametrize(
    ("columns", "undeclared", "text"),
    [
        ("id city", "", "id, city"),
        ("", "", "none"),
        ("id Ann 1990-01-01", "Ann 1990-01-01", "id and 2 more"),
        ("id E-Mail Ann", "E-Mail Ann", "id, E-Mail and 1 more"),
        ("7 Ann Graz", "7 Ann Graz", "none of the declared columns and 3 others; a CSV file needs a header"),
    ],
)
def test_columns_that_the_declaration_does_not_name_are_counted(columns: str, undeclared: str, text: str) -> None:
    """A column that differs from a missing one only in case and punctuation is named: it may be the intended one."""
    fields = tuple(StructField(name, StringType()) for name in columns.split())
    assert describe_existing_columns(ColumnMapping(fields, (), ("email",), tuple(undeclared.split()))) == text
