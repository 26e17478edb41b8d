"""The part of a declaration that a table stores: its JSON, and the errors of a declaration that differs."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from scd_pipeline.declaration import Attribute, Begin, Dimension, Fact, Role, Source
from scd_pipeline.delta.schema import require_same_declaration
from scd_pipeline.delta.stored_declaration import StoredDeclaration
from scd_pipeline.errors import DeclarationError
from scd_pipeline_tests.unit.test_yaml_faults import declaration_errors, located_codes

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


def test_the_value_of_an_untracked_attribute_is_stored() -> None:
    attributes = {"city": 2, "phone": Attribute(1, untracked="latest_in_version")}
    stored = StoredDeclaration.from_dimension(Dimension("dim_x", "id", attributes, Source("crm", feed="x_{date}.csv")))
    assert stored.attributes["phone"].to_list() == [1, "string", False, {}, "latest_in_version"]
    assert StoredDeclaration.from_json(stored.to_json()) == stored


def test_the_labels_of_the_audit_are_stored_and_cannot_be_changed() -> None:
    labelled = replace(CUSTOMER, change_types={"INSERT": "new"})
    stored = StoredDeclaration.from_dimension(labelled)
    assert StoredDeclaration.from_json(stored.to_json()) == stored
    differences = located_codes(lambda: require_same_declaration(CUSTOMER, stored))
    assert differences == [("dim_customer", "change_types", "TABLE_DIFFERS")]


def test_a_table_without_the_labels_of_its_profile_can_have_its_own() -> None:
    """As one that was created before the profile had labels: the error names the option that its audit needs."""
    declared = Dimension("dim_x", "id", {"city": 2}, Source("crm", feed="x_{date}.csv"), profile="elevata")
    stored = replace(StoredDeclaration.from_dimension(declared), change_types={"INSERT": "added"})
    (error,) = declaration_errors(lambda: require_same_declaration(declared, stored))
    expected = {"INSERT": "added", "UPDATE": "UPDATE", "LOGICAL_DELETE": "LOGICAL_DELETE"}
    assert json.loads(error.fix.removeprefix("declare `change_types: ").partition("`")[0]) == expected
    require_same_declaration(replace(declared, change_types=expected), stored)


def test_the_previous_value_of_an_attribute_is_stored() -> None:
    """The value of the version before is the default."""
    source = Source("crm", feed="x_{date}.csv")
    for previous, stored in {
        True: True,
        "version_before": True,
        "last_different_value": "last_different_value",
    }.items():
        attributes = {"city": Attribute(6, previous=previous)}  # type: ignore[arg-type]
        declared = StoredDeclaration.from_dimension(Dimension("dim_x", "id", attributes, source))
        assert declared.attributes["city"].to_list() == [6, "string", stored]
        assert StoredDeclaration.from_json(declared.to_json()) == declared


@pytest.mark.parametrize("begin", [Begin("2000-01-01", "2001-01-01"), Begin(column="d"), None])
def test_a_declaration_is_read_back_equal(begin: Begin | None) -> None:
    attributes = {"c": 2, "d": Attribute(0, type="date")}
    stored = StoredDeclaration.from_dimension(
        Dimension("dim_x", ["a", "b"], attributes, Source("crm", feed="x_{date}.csv"), begin=begin)
    )
    assert StoredDeclaration.from_properties({"another": "property", **stored.to_properties()}) == stored


def test_the_attribute_with_the_begin_of_histories_can_be_renamed_and_not_replaced() -> None:
    def declared(name: str, former: str = "") -> Dimension:
        attributes = {"c": Attribute(2), name: Attribute(0, type="date", former_names=former or ())}
        source = Source("crm", feed="x_{date}.csv")
        return Dimension("dim_x", "id", attributes, source, begin=Begin(column=name))

    stored = StoredDeclaration.from_dimension(declared("created"))
    require_same_declaration(declared("born", former="created"), stored)
    without = replace(declared("created"), begin=None)
    differences = located_codes(lambda: require_same_declaration(without, stored))
    assert differences == [("dim_x", "begin", "TABLE_DIFFERS")]


def test_a_table_of_another_program_has_no_declaration() -> None:
    assert StoredDeclaration.from_properties({"delta.appendOnly": "true"}) is None


def test_an_archive_can_be_added_and_have_another_age_but_not_be_removed() -> None:
    whole = Dimension("dim_x", "id", {"city": 2}, Source("crm", feed="x_{date}.csv"))
    archived = replace(whole, archive_after_years=7)
    require_same_declaration(archived, StoredDeclaration.from_dimension(whole))
    stored = StoredDeclaration.from_json(StoredDeclaration.from_dimension(archived).to_json())
    require_same_declaration(replace(archived, archive_after_years=10), stored)
    with pytest.raises(DeclarationError) as caught:
        require_same_declaration(whole, stored)
    (error,) = caught.value.errors
    assert (error.code, error.field) == ("TABLE_DIFFERS", "archive_after_years")
    assert error.problem == "the table has the archive dim_x_archive, without which readers would lack versions"
    assert error.fix == (
        "declare it again; or drop dim_x and dim_x_archive: a load rebuilds one table with all versions"
    )


DIFFERENCES: dict[str, tuple[dict[str, Any], dict[str, Any], str, str]] = {
    # the attributes of the table, the declared attributes, and the field and the code of the error
    "undeclared attribute": ({"email": 1, "city": 2}, {"email": 1}, "attributes.city", "TABLE_HAS_ATTRIBUTE"),
    "other SCD type": ({"email": 1}, {"email": 3}, "attributes.email", "TABLE_DIFFERS"),
    "type with other texts": (
        {"email": 1, "size": Attribute(1, "float")},
        {"email": 1, "size": Attribute(1, "double")},
        "attributes.size",
        "TABLE_DIFFERS",
    ),
    "other untracked value": (
        {"email": Attribute(1, untracked="at_open"), "city": 2},
        {"email": 1, "city": 2},
        "attributes.email",
        "TABLE_DIFFERS",
    ),
    "other previous value": (
        {"city": Attribute(6, previous="last_different_value")},
        {"city": Attribute(6, previous="version_before")},
        "attributes.city",
        "TABLE_DIFFERS",
    ),
    "two attributes as one": (
        {"city": 2, "town": 2},
        {"city": Attribute(2, former_names=("town",))},
        "attributes.city",
        "TABLE_HAS_BOTH",
    ),
    "windows for a table without them": (
        {"email": 1},
        {"email": 1, "city": 2},
        "attributes.city",
        "TABLE_WITHOUT_WINDOWS",
    ),
}


def compare(name: str) -> None:
    """Compare a declaration with the declaration of a table that differs from it."""
    stored, declared, _, _ = DIFFERENCES[name]
    source = Source("crm", feed="x_{date}.csv")
    before = StoredDeclaration.from_dimension(Dimension("dim_x", "id", stored, source))
    require_same_declaration(Dimension("dim_x", "id", declared, source), before)


@pytest.mark.parametrize(
    ("before", "now", "problem"),
    [
        (
            {"business_key": "row_hash", "row_version": True},
            {"business_key": "row_hash"},
            "the table was created with `row_version: true`; the declaration has a key of entities",
        ),
        (
            {"business_key": "whole_row"},
            {"business_key": "row_hash"},
            "the table was created with whole rows as entities; the declaration has a key of entities",
        ),
    ],
    ids=["row versions", "whole rows"],
)
def test_rows_as_entities_cannot_become_entities_with_a_key(
    before: dict[str, Any], now: dict[str, Any], problem: str
) -> None:
    source = Source("crm", snapshot="x_{date}.csv")
    stored = StoredDeclaration.from_dimension(Dimension("dim_x", attributes={"city": 2}, sources=source, **before))
    stored = StoredDeclaration.from_json(stored.to_json())
    declared = Dimension("dim_x", attributes={"city": 2}, sources=source, **now)
    with pytest.raises(DeclarationError) as caught:
        require_same_declaration(declared, stored)
    assert [(error.code, error.field, error.problem) for error in caught.value.errors] == [
        ("TABLE_DIFFERS", "row_entity", problem)
    ]


def test_the_fix_for_a_removed_measure_is_one_that_a_fact_has() -> None:
    customer = Dimension("dim_customer", "id", {"city": 2}, Source("crm", feed="x_{date}.csv"))

    def fact(*measures: str) -> Dimension:
        till = Source("till", feed="y_{date}.csv")
        types = dict.fromkeys(measures, "int")
        return Fact("fct_sale", {"sale": "int"}, "at", {"customer": Role(customer)}, till, types).as_dimension()

    before = StoredDeclaration.from_dimension(fact("amount", "tax"))
    with pytest.raises(DeclarationError) as caught:
        require_same_declaration(fact("amount"), before)
    (error,) = caught.value.errors
    assert (error.code, error.field) == ("TABLE_HAS_ATTRIBUTE", "measures")
    fix = "declare the measure or the role again, or drop fct_sale and fct_sale_changes and load all deliveries"
    assert error.fix == fix


def test_the_type_of_an_attribute_can_become_wider() -> None:
    source = Source("crm", feed="x_{date}.csv")
    types = ({"size": Attribute(2, data_type)} for data_type in ("int", "bigint"))
    narrow, wide = (Dimension("dim_x", "id", attributes, source) for attributes in types)
    require_same_declaration(wide, StoredDeclaration.from_dimension(narrow))
    differences = located_codes(lambda: require_same_declaration(narrow, StoredDeclaration.from_dimension(wide)))
    assert differences == [("dim_x", "attributes.size", "TABLE_DIFFERS")]


@pytest.mark.parametrize("name", DIFFERENCES)
def test_a_difference_to_the_stored_declaration_is_reported(name: str) -> None:
    _, _, field, code = DIFFERENCES[name]
    assert located_codes(lambda: compare(name)) == [("dim_x", field, code)]
