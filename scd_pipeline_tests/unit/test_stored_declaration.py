"""The part of a declaration that a table stores: its JSON, and that it is read back equal."""

from __future__ import annotations

import pytest

from scd_pipeline.declaration import Attribute, Begin, Dimension, Source
from scd_pipeline.delta.stored_declaration import StoredDeclaration

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
