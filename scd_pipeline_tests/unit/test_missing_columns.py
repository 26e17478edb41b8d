"""The columns that an error of a missing column lists: no name that may be a value (S31)."""

from __future__ import annotations

from dataclasses import replace

import pytest
from pyspark.sql.types import ArrayType, DataType, StringType, StructField, StructType

from scd_pipeline.declaration import Feed, Source
from scd_pipeline.deliveries.column_mapping import ColumnMapping
from scd_pipeline.deliveries.missing_columns import describe_existing_columns, nested_columns_fix
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
    mapping = ColumnMapping(fields, (), {"email": "email"}, tuple(undeclared.split()))
    assert describe_existing_columns(mapping, "csv") == text
    in_frame = describe_existing_columns(mapping, None)
    assert in_frame == text.partition(";")[0], "only a CSV file has a header"


@pytest.mark.rule("S20")
def test_blanks_around_names_have_a_hint_at_the_options_that_trim_them() -> None:
    fields = tuple(StructField(name, StringType()) for name in ("id", " e-mail"))
    text = describe_existing_columns(ColumnMapping(fields, (), {"email": "email"}, (" e-mail",)), "csv")
    assert text.startswith("2 columns, some with blanks around their names; declare `options: {ignoreLeadingWhiteSpace")


@pytest.mark.rule("S20", "S31")
@pytest.mark.parametrize(
    ("header", "text"),
    [
        ("id;E-Mail;Ann", "one column, as its header has the separator ';'; declare `options: {sep: \";\"}` in"),
        ("id\temail", "one column, as its header has the separator '\\t'; declare `options: {sep: \"\\t\"}` in"),
        ("7;Ann;Graz", "none of the declared columns and 1 other; a CSV file needs a header"),
    ],
)
def test_a_header_with_another_separator_has_a_hint_at_the_option(header: str, text: str) -> None:
    mapping = ColumnMapping((StructField(header, StringType()),), (), {"email": "email"}, (header,))
    assert describe_existing_columns(mapping, "csv").startswith(text)


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
    assert describe_existing_columns(ColumnMapping(fields, (), {}, ()), "json") == text


@pytest.mark.rule("S20", "S31")
def test_undeclared_columns_are_reported_without_names_that_may_be_values() -> None:
    result = BatchResult("a", "crm", "feed", "1", "accepted", undeclared=("note", "ann@example.com", "0664 123 456"))
    undeclared = "; undeclared columns: note and 2 whose names may be values (characters: 15, 12)"
    assert str(result).endswith(undeclared)
    rejected = replace(result, outcome="rejected", code="NO_TIME", problem="it has no time", fix="name it by a date")
    assert str(rejected) == f"a: rejected [NO_TIME]: it has no time; name it by a date{undeclared}"


def struct(names: str, **inner: DataType) -> StructType:
    """Return a struct of texts, and of fields of other types."""
    types = {**{name: StringType() for name in names.split()}, **inner}
    return StructType([StructField(name, each) for name, each in types.items()])


CUSTOMER = struct("id town")
INSIDE = "as these columns are inside of others; or "
EVENTS = "declare `format: debezium` in the channel, as the rows are events of Debezium; or "


@pytest.mark.rule("S20", "S31")
@pytest.mark.parametrize(
    ("missing", "delivered", "fix"),
    [
        ("id", struct("a", customer=CUSTOMER), f"declare `columns: {{id: customer.id}}` in the source, {INSIDE}"),
        ("id", struct("Customer.ID"), f"declare `columns: {{id: Customer.ID}}` in the source, {INSIDE}"),
        (
            "id city _effective_at",
            struct("", row=struct("at", b=CUSTOMER, a=CUSTOMER)),
            "declare `columns: {id: row.a.id, city: row.a.town}` in the source and `effective_at: row.at` in the "
            f"channel, {INSIDE}",
        ),
        ("zip", struct("", a=struct("zip"), b=struct("", home=struct("zip"))), "zip: b.home.zip"),
        ("id", struct("op", before=CUSTOMER, after=CUSTOMER), EVENTS),
        (
            "id city",
            struct("next", result=struct("", value=ArrayType(CUSTOMER))),
            "declare `record_path: result.value` in the channel, as its objects are the rows; or ",
        ),
        (
            "id city",
            struct("", old=ArrayType(CUSTOMER), new=ArrayType(CUSTOMER)),
            "deliver each object of the array new and old as a row; or ",
        ),
        ("id", struct("idx", customer=struct("idx", **{"ann@example.com": CUSTOMER, "2024-01-01": CUSTOMER})), ""),
    ],
    ids=["struct", "flat", "nested twice", "path", "events", "array", "arrays", "none"],
)
def test_columns_inside_of_others_are_named_with_their_declaration(
    missing: str, delivered: StructType, fix: str
) -> None:
    """A path of which a name may be a value is not named."""
    channel = Feed(format="json", effective_at="at")
    source = Source("crm", feed=channel, columns={"city": "town", "zip": "home.zip"})
    text = nested_columns_fix(missing.split(), delivered.fields, source, channel)
    assert fix in text if fix else text == ""
