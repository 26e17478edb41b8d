"""Labels of the audit's change types: declared for each of them, or by a profile."""

from __future__ import annotations

from typing import Any

import pytest

from scd_pipeline.components.column_descriptions import audit_columns
from scd_pipeline.declaration import Attribute, Dimension, Source, describe, parse
from scd_pipeline.declaration.change_types import CHANGE_TYPES
from scd_pipeline.declaration.source import Snapshot
from scd_pipeline.errors import DeclarationError
from scd_pipeline_tests.semantics.specification import requirement

LABELS = {"INSERT": "new", "UPDATE": "changed", "LOGICAL_DELETE": "deleted"}


def customer(scd: int = 2, **options: Any) -> Dimension:
    """A dimension with one attribute."""
    return Dimension("dim_customer", "id", {"city": Attribute(scd)}, Source("crm", Snapshot()), **options)


@requirement("X16")
def test_a_change_type_has_its_name_unless_a_label_is_declared() -> None:
    assert customer().audit_labels == {}
    assert customer(change_types=LABELS).audit_labels == LABELS
    assert customer(change_types={"INSERT": "INSERT"}).audit_labels == {}


def test_a_change_type_without_a_label_is_its_own_label() -> None:
    dimension = customer(change_types=LABELS)
    assert [dimension.audit_label(name) for name in ("INSERT", "OVERWRITE")] == ["new", "OVERWRITE"]


def test_a_profile_has_labels_for_tables_with_windows_and_single_ones_can_be_changed() -> None:
    assert customer(profile="elevata").audit_labels == LABELS
    changed = customer(profile="elevata", change_types={"UPDATE": "updated"})
    assert changed.audit_labels == {**LABELS, "UPDATE": "updated"}
    assert customer(1, profile="elevata").audit_labels == {}
    assert parse(describe(changed)) == (changed,)


def test_labels_are_also_the_states_of_versions() -> None:
    assert customer().version_states == LABELS
    assert customer(change_types={"INSERT": "N"}).version_states == {**LABELS, "INSERT": "N"}


def test_two_states_of_versions_are_not_the_same() -> None:
    with pytest.raises(DeclarationError) as caught:
        customer(change_types={"INSERT": "changed"}, column_names={"version_state": "state"})
    assert [(error.field, error.code) for error in caught.value.errors] == [("change_types.UPDATE", "NAME_IN_USE")]


def test_labels_can_be_exchanged() -> None:
    assert customer(change_types={"INSERT": "UPDATE", "UPDATE": "INSERT"}).audit_labels["INSERT"] == "UPDATE"


def test_the_descriptions_of_the_columns_have_the_labels() -> None:
    assert audit_columns(customer())["change_type"] == f"Kind of the transition: {', '.join(CHANGE_TYPES)}."
    text = audit_columns(customer(change_types=LABELS))["change_type"]
    assert text == "Kind of the transition: new, changed, OVERWRITE, deleted, REFUSED, WITHDRAWN, REPAIRED."
    assert audit_columns(customer(change_types={"WITHDRAWN": "void"}))["withdraws"].startswith("For void: ")


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        ("new", {"change_types": "INVALID_KIND"}),
        ({"CREATE": "new"}, {"change_types.CREATE": "UNKNOWN_NAME"}),
        ({"INSERT": 1}, {"change_types.INSERT": "INVALID_NAME"}),
        ({"INSERT": " "}, {"change_types.INSERT": "INVALID_NAME"}),
        ({"INSERT": "new", "UPDATE": "new"}, {"change_types.UPDATE": "NAME_IN_USE"}),
        ({"INSERT": "UPDATE"}, {"change_types.UPDATE": "NAME_IN_USE"}),
    ],
)
def test_an_invalid_label_is_reported(labels: Any, expected: dict[str, str]) -> None:
    with pytest.raises(DeclarationError) as caught:
        customer(change_types=labels)
    assert {error.field: error.code for error in caught.value.errors} == expected
