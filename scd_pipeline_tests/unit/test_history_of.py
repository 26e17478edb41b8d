"""The history of an existing table: an ordinary dimension whose options follow from the name of the table."""

from __future__ import annotations

from dataclasses import replace

import pytest

from scd_pipeline import history_of
from scd_pipeline.declaration import Attribute, Dimension, Mirror, Snapshot, Source, describe, parse, parse_declarations
from scd_pipeline.errors import DeclarationError
from scd_pipeline.history.schema import stored_schema
from scd_pipeline_tests.semantics.specification import requirement

HISTORY = """
history_of: rc_product
business_key: rc_product_key
attributes: {name: 2, price: {scd: 2, type: "decimal(10,2)"}}
"""
PLAY = """
fact: fct_sale
grain: sale
event_time: sold_at
dimensions: {product: rc_product_hist}
sources: {shop: {feed: {}}}
"""
PRODUCT = Dimension(
    "rc_product_hist",
    "rc_product_key",
    {"name": 2, "price": Attribute(2, "decimal(10,2)")},
    Source("rc_product", Snapshot()),
    surrogate_key="rc_product_hist_key",
    profile="elevata",
)


@requirement("H1")
def test_the_name_of_a_table_gives_those_of_its_history() -> None:
    assert parse(HISTORY) == (PRODUCT,)
    assert history_of("rc_product", "rc_product_key", PRODUCT.attributes) == PRODUCT


@requirement("H2")
def test_a_history_has_all_columns_of_the_table_and_those_of_the_profile() -> None:
    assert stored_schema(PRODUCT) == [
        ("rc_product_hist_key", "bigint", False),
        ("rc_product_key", "string", True),
        ("name", "string", True),
        ("price", "decimal(10,2)", True),
        ("version_started_at", "timestamp", False),
        ("version_ended_at", "timestamp", True),
        ("version", "int", False),
        ("version_state", "string", True),
        ("change_reason", "string", True),
        ("change_source", "string", True),
        ("load_run_id", "string", True),
        ("loaded_at", "timestamp", False),
        ("row_hash", "string", True),
    ]


def test_a_history_mirrors_the_columns_of_its_table_unless_they_are_declared() -> None:
    mirrored = history_of("rc_product", "rc_product_key")
    assert mirrored.mirror == Mirror(attributes=())
    assert parse("history_of: rc_product\nbusiness_key: rc_product_key") == (mirrored,)
    technical = "history_of: rc_product\nbusiness_key: rc_product_key\nmirror: {technical: loaded_by}"
    assert parse(technical) == (history_of("rc_product", "rc_product_key", mirror=Mirror(technical="loaded_by")),)


@requirement("H24")
def test_a_history_may_have_a_former_name() -> None:
    renamed = replace(PRODUCT, former_name="rc_article_hist")
    assert parse(f"{HISTORY}former_name: rc_article_hist") == (renamed,)
    assert parse(describe(renamed)) == (renamed,)


@requirement("H2")
def test_the_technical_columns_of_a_profile_are_not_mirrored_unless_they_are_declared() -> None:
    """They have other meanings in the history; a name in another case is the same."""
    mirrored = history_of("rc_product", "rc_product_key", mirror=Mirror(technical="Loaded_By"))
    assert mirrored.technical_columns == {"loaded_by", "load_run_id", "loaded_at"}
    declared = history_of(
        "rc_product",
        "rc_product_key",
        {"loaded_at": 1},
        mirror=Mirror(),
        column_names={"last_updated": "changed_at"},
    )
    assert declared.technical_columns == {"load_run_id"}
    assert replace(declared, profile="dlt").technical_columns == set()
    assert PRODUCT.technical_columns == set()


def test_each_option_of_a_history_can_be_declared() -> None:
    text = """
        dimension: product_history_of_2024
        surrogate_key: product_sk
        profile: dlt
        sources: {lake: {snapshot: {path: lake/rc_product, versions: true}}}
    """
    source = Source("lake", Snapshot("lake/rc_product", versions=True))
    names = {"name": "product_history_of_2024", "surrogate_key": "product_sk"}
    declared = replace(PRODUCT, **names, profile="dlt", sources=source)  # type: ignore[arg-type]
    assert parse(HISTORY + "\n".join(line.strip() for line in text.splitlines())) == (declared,)
    options = {"profile": "dlt", "sources": source}
    assert history_of("rc_product", "rc_product_key", PRODUCT.attributes, **names, **options) == declared


def test_a_history_is_described_as_an_ordinary_dimension() -> None:
    assert describe(PRODUCT).startswith("dimension: rc_product_hist\n")
    assert parse(describe(PRODUCT)) == (PRODUCT,)


def test_a_fact_references_a_history_by_its_name() -> None:
    (fact,) = parse_declarations(HISTORY + "---" + PLAY).facts
    assert [(key, role.dimension) for _, key, role in fact.keyed_roles] == [("product_key", PRODUCT)]


def test_a_fact_of_an_invalid_history_is_not_reported() -> None:
    with pytest.raises(DeclarationError) as caught:
        parse_declarations(HISTORY.replace("scd: 2", "scd: 9") + "---" + PLAY)
    assert [error.field for error in caught.value.errors] == ["attributes.price.scd"]
