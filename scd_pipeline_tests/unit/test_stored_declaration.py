"""The part of a declaration that a table stores: its JSON, and the messages about a declaration that differs."""

from __future__ import annotations

import pytest

from scd_pipeline.declaration import Attribute, Begin, Dimension, Source
from scd_pipeline.delta.schema import require_same_declaration
from scd_pipeline.delta.stored_declaration import StoredDeclaration
from scd_pipeline.errors import DeclarationError

CUSTOMER = Dimension(
    "dim_customer",
    {"customer_id": "bigint"},
    {"city": Attribute(2, former_names=("town",)), "tier": Attribute(6, previous=True)},
    Source("crm", snapshot="customers_{date}.csv"),
    begin=Begin("2000-01-01"),
)
TEXT = (
    '{"attributes": {"city": [2, "string", false], "tier": [6, "string", true]}, '
    '"begin": ["2000-01-01 00:00:00", "9999-12-31 23:59:59"], "deleted_at": false, '
    '"deleted_rows": "keep", "existence_source": "crm", "former_names": {"town": "city"}, '
    '"key": [["customer_id", "bigint"]], "key_salt": "", "open_end": "9999-12-31 23:59:59", '
    '"surrogate_key": "customer_key"}'
)


def test_the_json_of_a_declaration() -> None:
    assert StoredDeclaration.from_dimension(CUSTOMER).to_json() == TEXT


@pytest.mark.parametrize("begin", [Begin("2000-01-01", "2001-01-01"), None])
def test_a_declaration_is_read_back_equal(begin: Begin | None) -> None:
    stored = StoredDeclaration.from_dimension(
        Dimension("dim_x", ["a", "b"], {"c": 2}, Source("crm", feed="x_{date}.csv"), begin=begin)
    )
    assert StoredDeclaration.from_properties({"another": "property", **stored.to_properties()}) == stored


def test_a_table_of_another_program_has_no_declaration() -> None:
    assert StoredDeclaration.from_properties({"delta.appendOnly": "true"}) is None


MESSAGES = {
    "TABLE_HAS_ATTRIBUTE": (
        {"email": 1, "city": 2},
        {"email": 1},
        "attributes.city: the table has attribute city, which is not declared; keep it with `retired: true`, or name "
        "it in `former_names` of the attribute that replaces it",
    ),
    "TABLE_DIFFERS": (
        {"email": 1},
        {"email": 3},
        "attributes.email: the table was created with SCD type 1 and type string; the declaration has SCD type 3 and "
        "type string; restore the earlier declaration, or load into a new table",
    ),
    "TABLE_HAS_BOTH": (
        {"city": 2, "town": 2},
        {"city": Attribute(2, former_names=("town",))},
        "attributes.city: the table has both city and town, each with values of its own; name neither in "
        "`former_names` of the other, and keep one with `retired: true`",
    ),
    "TABLE_WITHOUT_WINDOWS": (
        {"email": 1},
        {"email": 1, "city": 2},
        "attributes.city: the table was created without windows, and type 2 needs them; declare it with type 0, 1 or "
        "3, or load into a new table",
    ),
}


@pytest.mark.parametrize("code", MESSAGES)
def test_a_difference_to_the_stored_declaration_is_reported(code: str) -> None:
    stored, declared, message = MESSAGES[code]
    source = Source("crm", feed="x_{date}.csv")
    before = StoredDeclaration.from_dimension(Dimension("dim_x", "id", stored, source))
    with pytest.raises(DeclarationError) as error:
        require_same_declaration(Dimension("dim_x", "id", declared, source), before)
    assert [e.code for e in error.value.errors] == [code]
    assert str(error.value) == f"dim_x: {message}"
