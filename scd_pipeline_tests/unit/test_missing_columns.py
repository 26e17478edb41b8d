"""The columns that an error of a missing column lists: no name that may be a value (S31)."""

from __future__ import annotations

import pytest
from pyspark.sql.types import StringType, StructField

from scd_pipeline.deliveries.column_mapping import ColumnMapping
from scd_pipeline.deliveries.read import describe_existing_columns
from scd_pipeline.deliveries.result import BatchResult


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
    mapping = ColumnMapping(fields, (), ("email",), tuple(undeclared.split()))
    assert describe_existing_columns(mapping, "csv") == text


@pytest.mark.rule("S20")
def test_blanks_around_names_have_a_hint_at_the_options_that_trim_them() -> None:
    fields = tuple(StructField(name, StringType()) for name in ("id", " e-mail"))
    text = describe_existing_columns(ColumnMapping(fields, (), ("email",), (" e-mail",)), "csv")
    assert text.startswith("2 columns, some with blanks around their names; declare `options: {ignoreLeadingWhiteSpace")


@pytest.mark.rule("S20", "S31")
@pytest.mark.parametrize(
    ("columns", "text"),
    [
        ("next value", "next, value"),
        ("Straße(Nr.) 名前 a b c d", "Straße(Nr.), 名前, a, b, c and 1 more"),
        (
            "note ann@example.com 2024-01-31 +43-664 " + "x" * 65,
            "note and 4 whose names may be values (characters: 15, 10, 7, 65)",
        ),
        ("", "none"),
    ],
)
def test_names_of_json_and_tables_are_listed_unless_they_may_be_values(columns: str, text: str) -> None:
    fields = tuple(StructField(name, StringType()) for name in columns.split())
    assert describe_existing_columns(ColumnMapping(fields, (), (), ()), "json") == text


@pytest.mark.rule("S20", "S31")
def test_undeclared_columns_are_reported_without_names_that_may_be_values() -> None:
    result = BatchResult("a", "crm", "feed", "1", "accepted", undeclared=("note", "ann@example.com", "0664 123 456"))
    assert str(result).endswith("undeclared columns: note and 2 whose names may be values (characters: 15, 12)")
