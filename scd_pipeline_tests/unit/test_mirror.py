"""Mirrored attributes in declarations: their forms, and the attributes that follow from columns (S36)."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timezone

import pytest

from scd_pipeline.declaration import Attribute, Dimension, Feed, Mirror, Source, describe, parse
from scd_pipeline.declaration.mirror import merge_types, mirrored_type
from scd_pipeline.deliveries.mirrored import with_delivered_columns
from scd_pipeline.delta.schema import (
    as_stored,
    require_same_declaration,
    with_stored_attributes,
    with_stored_names,
)
from scd_pipeline.delta.stored_declaration import StoredDeclaration
from scd_pipeline.errors import DeclarationError
from scd_pipeline.history.batch import Batch
from scd_pipeline.load.attribute_changes import attribute_changes, with_retirement

BASE = Source("base", snapshot="x_{date}.csv")
FORMS = {
    "attributes: mirror": Dimension("dim_x", "id", "mirror", BASE),
    "mirror: {scd: 1, technical: loaded_at}": Dimension(
        "dim_x", "id", sources=BASE, mirror=Mirror(1, technical="loaded_at")
    ),
    "attributes: {price: 1, size: {scd: 2, type: string}}\nmirror: {former_names: {b: a}}": Dimension(
        "dim_x",
        "id",
        {"price": 1, "size": Attribute(2, "string")},
        BASE,
        mirror=Mirror(former_names={"b": ["a"]}),
    ),
}


@pytest.mark.parametrize("text", FORMS)
def test_each_form_in_yaml_has_an_equal_one_in_python_and_is_described(text: str) -> None:
    head = 'dimension: dim_x\nbusiness_key: id\nsources: {base: {snapshot: "x_{date}.csv"}}\n'
    (dimension,) = parse(head + text)
    assert dimension == FORMS[text]
    assert parse(describe(dimension)) == (dimension,)
    with_columns = dimension.with_mirrored({"a": "int", "price": "decimal(9,2)"})
    assert sorted(describe(with_columns).splitlines()) == sorted(describe(dimension).splitlines())


def test_a_column_becomes_an_attribute_with_the_options_that_are_declared_for_it() -> None:
    declared = {"price": Attribute(1, personal=True), "size": Attribute(2, "int")}
    dimension = Dimension("dim_x", "id", declared, BASE, mirror=Mirror(6, former_names={"b": "a"}))
    types = {"a": "int", "PRICE": "decimal(9,2)", "size": "string", "new": "date"}
    attributes = dimension.with_mirrored(types, {"a": "2024-01-31 00:00:00"}).attributes
    assert [(a.name, int(a.scd), a.type, a.missing, a.personal, a.former_names, a.retired_at) for a in attributes] == [
        ("size", 2, "int", "reject", False, (), ""),
        ("b", 6, "int", "not_provided", False, ("a",), "2024-01-31 00:00:00"),
        ("price", 1, "decimal(9,2)", "not_provided", True, (), ""),
        ("new", 6, "date", "not_provided", False, (), ""),
    ]


def test_declared_attributes_without_a_type_exist_from_the_first_delivery_with_the_column() -> None:
    dimension = Dimension("dim_x", "id", {"price": 1}, BASE, mirror=Mirror())
    without = dimension.with_mirrored({})
    assert without.attributes == ()
    assert without.has_windows
    assert [int(a.scd) for a in without.with_mirrored({"price": "int"}).attributes] == [1]


def test_a_table_has_windows_if_a_column_that_it_lacks_will_open_versions() -> None:
    dimension = Dimension("dim_x", "id", {"price": 2}, BASE, mirror=Mirror(1))
    without = dimension.with_mirrored({"a": "int"})
    assert without.has_windows
    assert StoredDeclaration.from_dimension(without).has_windows
    assert not StoredDeclaration.from_dimension(Dimension("dim_x", "id", "mirror", BASE, mirror=Mirror(1))).has_windows


def test_a_table_without_windows_gets_no_mirrored_attribute_that_needs_them() -> None:
    stored = StoredDeclaration.from_dimension(Dimension("dim_x", "id", mirror=Mirror(1), sources=BASE))
    declared = Dimension("dim_x", "id", {"price": 2}, BASE, mirror=Mirror(1))
    with pytest.raises(DeclarationError) as caught:
        require_same_declaration(with_stored_attributes(declared, stored), stored)
    assert [(error.code, error.field) for error in caught.value.errors] == [
        ("TABLE_WITHOUT_WINDOWS", "attributes.price")
    ]


def test_a_stored_declaration_completes_a_mirrored_dimension() -> None:
    """The former names that the table stores continue, although the declaration has removed them."""
    before = Dimension("dim_x", "id", "mirror", BASE, mirror=Mirror(former_names={"b": "a"}))
    loaded = before.with_mirrored({"b": "int", "c": "string"}, {"c": "2024-01-31 00:00:00"})
    stored = StoredDeclaration.from_json(StoredDeclaration.from_dimension(loaded).to_json())
    assert stored.retired_at == {"c": "2024-01-31 00:00:00"}
    declared = Dimension("dim_x", "id", "mirror", BASE)
    completed = with_stored_attributes(declared, stored)
    require_same_declaration(completed, stored)
    assert completed.attributes == loaded.attributes
    assert completed.with_mirrored({"a": "bigint"}).attribute_names == ("b",)


def test_the_latest_name_counts_if_a_delivery_has_several_names_of_a_column() -> None:
    declared = Dimension("dim_x", "id", {"C": 1}, BASE, mirror=Mirror(former_names={"c": ("b", "a")}))
    types = [
        with_delivered_columns(declared.with_mirrored({}), delivered, "x").attributes[0].type
        for delivered in ({"a": "date", "C": "int"}, {"c": "int", "b": "date"}, {"b": "int", "A": "date"})
    ]
    assert types == ["int", "int", "int"]


def test_a_column_that_is_renamed_back_has_the_other_name_as_a_former_one() -> None:
    """The table then has each name as a former name of the other; the one that is declared last is the present one."""
    before = Dimension("dim_x", "id", "mirror", BASE, mirror=Mirror(former_names={"b": "a"}))
    stored = StoredDeclaration.from_dimension(before.with_mirrored({"a": "int"}))
    declared = Dimension("dim_x", "id", "mirror", BASE, mirror=Mirror(former_names={"a": "b"}))
    completed = with_stored_attributes(declared, stored)
    require_same_declaration(completed, stored)
    assert [(each.name, each.former_names) for each in completed.attributes] == [("a", ("b",))]


def test_a_renamed_column_has_its_first_name_in_the_hash_whenever_it_is_loaded() -> None:
    """Before both renamings, between them, or after them as the first load."""
    renamed = [Mirror(), Mirror(former_names={"b": "a"}), Mirror(former_names={"c": ("b", "a")})]
    declared = [Dimension("dim_x", "id", "mirror", BASE, profile="elevata", mirror=mirror) for mirror in renamed]

    def loaded(*dimensions: Dimension) -> dict[str, str]:
        stored = None
        for dimension in dimensions:
            state = as_stored(dimension, stored)
            stored = StoredDeclaration.from_dimension(with_stored_names(state.with_mirrored({"a": "int"}), stored))
        assert stored is not None
        return dict(stored.hash_names)

    assert loaded(*declared) == loaded(*declared[1:]) == loaded(declared[2]) == {"c": "a"}


def test_a_hash_that_the_source_has_later_does_not_replace_that_of_the_table() -> None:
    """The rows have the computed hash in this column; a table whose source had the hash first has that one."""
    dimension = Dimension("dim_x", "id", "mirror", BASE, profile="elevata")
    computed, delivered = (
        StoredDeclaration.from_dimension(dimension.with_mirrored(types))
        for types in ({"a": "int"}, {"a": "int", "row_hash": "string"})
    )
    with pytest.raises(DeclarationError) as caught:
        with_stored_attributes(dimension, computed).with_mirrored({"a": "int", "row_hash": "string"})
    assert [(error.code, error.field) for error in caught.value.errors] == [("NAME_IN_USE", "column_names.row_hash")]
    completed = with_stored_attributes(dimension, delivered)
    require_same_declaration(completed, delivered)
    assert completed.attribute_names == ("a", "row_hash")


def test_a_table_with_declared_attributes_can_become_a_mirror_and_back() -> None:
    declared = Dimension("dim_x", "id", {"city": 2, "visits": Attribute(2, "int")}, BASE)
    stored = StoredDeclaration.from_dimension(declared)
    mirrored = with_stored_attributes(Dimension("dim_x", "id", "mirror", BASE), stored)
    require_same_declaration(mirrored, stored)
    require_same_declaration(declared, StoredDeclaration.from_dimension(mirrored))


def test_a_delivered_type_is_the_same_wider_narrower_or_another_one() -> None:
    stored = {"visits": "int", "rent": "decimal(9,2)", "town": "string"}
    fitting = {"Visits": "bigint", "rent": "decimal(6,2)", "new": "date"}
    assert merge_types(stored, fitting) == ({**stored, "visits": "bigint", "new": "date"}, {})
    other = {"visits": "string", "rent": "decimal(9,4)", "town": "string"}
    changed = {"visits": ("int", "string"), "rent": ("decimal(9,2)", "decimal(9,4)")}
    assert merge_types(stored, other) == (stored, changed)


def test_a_float_is_mirrored_as_a_double() -> None:
    assert [mirrored_type(text) for text in ("float", "INT", "array<float>")] == ["double", "int", "array<float>"]
    with pytest.raises(DeclarationError):
        mirrored_type("interval day to second")


def test_a_load_reports_how_the_attributes_differ_from_the_stored_ones() -> None:
    """The attributes of a new table are not reported, but which of them are retired."""
    before = Dimension("dim_x", "id", "mirror", BASE).with_mirrored(
        {"a": "int", "c": "string", "d": "date"}, {"d": "2024-01-31 00:00:00"}
    )
    after = Dimension("dim_x", "id", "mirror", BASE, mirror=Mirror(former_names={"b": "a"})).with_mirrored(
        {"a": "bigint", "c": "string", "d": "date", "e": "date"}, {"c": "2024-02-29 00:00:00"}
    )
    changes = attribute_changes(StoredDeclaration.from_dimension(before), after)
    assert list(map(str, changes)) == [
        "attribute b: renamed from a",
        "attribute b: widened from int to bigint",
        "attribute c: retired at 2024-02-29 00:00:00",
        "attribute d: provided again",
        "attribute e: added as date",
    ]
    assert list(map(str, attribute_changes(None, after))) == ["attribute c: retired at 2024-02-29 00:00:00"]


def test_the_batches_in_effect_decide_what_is_retired() -> None:
    """In order of their times, not of their arrival; without a partial feed, and without a withdrawn delivery."""

    def batch(day: int, *columns: str, channel: str = "snapshot") -> Batch:
        time = datetime(2024, 1, day, tzinfo=timezone.utc)
        return Batch("base", channel, f"2024-01-{day:02}", "1", time, columns)

    def retired_at(*batches: Batch) -> dict[str, str]:
        source = Source("base", snapshot="x_{date}.csv", feed=Feed("y_{date}.csv", updates="partial"))
        dimension = Dimension("dim_x", "id", "mirror", source).with_mirrored({"a": "int", "b": "int"})
        return {a.name: a.retired_at for a in with_retirement(dimension, batches).attributes if a.retired_at}

    life = [batch(1, "a", "b"), batch(2, "a"), batch(3, "a"), batch(4, "a", "b"), batch(5, "a")]
    assert retired_at(*life) == retired_at(*reversed(life)) == {"b": "2024-01-05 00:00:00"}
    assert retired_at(*life[:3]) == {"b": "2024-01-02 00:00:00"}
    assert retired_at(*life[:4]) == {}
    assert retired_at(*life[:4], batch(6, "a", channel="feed")) == {}
    assert retired_at(*life, replace(life[4], revision="2", withdrawn=True)) == {}
