"""Column types: accepted texts, their canonical form, and rejected texts (S8)."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scd_pipeline.declaration.names import FORBIDDEN_BY_DELTA
from scd_pipeline.declaration.types import (
    PRIMITIVES,
    Array,
    DataType,
    Decimal,
    Map,
    Primitive,
    Struct,
    common_type,
    is_wider,
    parse_type,
)
from scd_pipeline.errors import DeclarationError

NAMES = st.text(st.characters(exclude_characters=FORBIDDEN_BY_DELTA), min_size=1, max_size=8).filter(str.isprintable)


@pytest.mark.parametrize(
    ("text", "ddl"),
    [
        ("string", "string"),
        ("text", "string"),
        (" Integer ", "int"),
        ("LONG", "bigint"),
        ("byte", "tinyint"),
        ("bool", "boolean"),
        ("timestamp_ltz", "timestamp"),
        ("timestamp_ntz", "timestamp_ntz"),
        ("decimal", "decimal(10,0)"),
        ("numeric(5)", "decimal(5,0)"),
        ("decimal( 12 , 2 )", "decimal(12,2)"),
        ("array< integer >", "array<int>"),
        ("map<string,array<long>>", "map<string,array<bigint>>"),
        ("struct<a:int,b string>", "struct<a:int,b:string>"),
        ("array<struct<a:int,b:string>>", "array<struct<a:int,b:string>>"),
        ("struct<`a-b`:int,`c``d`:date>", "struct<`a-b`:int,`c``d`:date>"),
        ("map<struct<a:int>,map<int,int>>", "map<struct<a:int>,map<int,int>>"),
    ],
)
def test_canonical_form(text: str, ddl: str) -> None:
    assert parse_type(text).ddl() == ddl


def test_a_nested_type_is_parsed_into_a_tree() -> None:
    assert parse_type("map<string,array<struct<a:decimal(3,1)>>>") == Map(
        Primitive("string"), Array(Struct((("a", Decimal(3, 1)),)))
    )


def types() -> st.SearchStrategy[DataType]:
    decimals = st.integers(1, 38).flatmap(lambda p: st.builds(Decimal, st.just(p), st.integers(0, p)))
    leaves: st.SearchStrategy[DataType] = st.sampled_from(PRIMITIVES).map(Primitive) | decimals

    def nested(inner: st.SearchStrategy[DataType]) -> st.SearchStrategy[DataType]:
        fields = st.lists(st.tuples(NAMES, inner), min_size=1, max_size=3, unique_by=lambda f: f[0].casefold())
        return (
            st.builds(Array, inner) | st.builds(Map, leaves, inner) | st.builds(Struct, fields.map(tuple))  # type: ignore[arg-type]
        )

    return st.recursive(leaves, nested, max_leaves=5)


@given(types())
def test_the_canonical_form_parses_back_to_the_type(data_type: DataType) -> None:
    assert parse_type(data_type.ddl()) == data_type


@pytest.mark.parametrize(
    "text",
    [
        "variant",
        "array<variant>",
        "struct<a:geometry>",
        "map<string,geography>",
        "interval year to month",
        "void",
        "varchar(10)",
        "char(1)",
        "bigin",
        "",
        " ",
        "array",
        "array<",
        "array<int",
        "array<int>>",
        "map<int>",
        "map<map<int,int>,int>",
        "map<array<struct<a:map<int,int>>>,int>",
        "struct<>",
        "struct<a>",
        "struct<a:int,A:int>",
        "struct<`a:int>",
        "struct<`a\nb`:int>",
        "struct<`a b`:int>",
        "decimal(0)",
        "decimal(39,2)",
        "decimal(3,4)",
        "decimal(a,b)",
        "decimal(99999999999,0)",
        "int(4)",
        "string collate utf8_lcase",
        "array<" * 5000,
        "\ud800",
        None,
        5,
    ],
)
def test_an_unsupported_type_is_rejected(text: str) -> None:
    with pytest.raises(DeclarationError) as caught:
        parse_type(text)
    assert len(caught.value.errors) == 1


@given(st.text(alphabet="inta<>(),:`rysucpdeml 12", max_size=30))
def test_any_text_is_parsed_or_rejected(text: str) -> None:
    with contextlib.suppress(DeclarationError):
        assert parse_type(parse_type(text).ddl()) == parse_type(text)


@pytest.mark.parametrize(
    ("narrow", "wide"),
    [
        ("tinyint", "smallint"),
        ("int", "bigint"),
        ("tinyint", "bigint"),
        ("decimal(10,2)", "decimal(12,2)"),
        ("array<int>", "array<bigint>"),
        ("map<string,int>", "map<string,bigint>"),
        ("struct<a:int>", "struct<a:int,b:string>"),
        ("array<struct<a:struct<b:int>>>", "array<struct<a:struct<b:bigint,c:date>>>"),
    ],
)
def test_a_wider_type_has_the_texts_of_the_narrower_one(narrow: str, wide: str) -> None:
    assert is_wider(parse_type(wide), parse_type(narrow))
    assert not is_wider(parse_type(narrow), parse_type(wide))
    assert not is_wider(parse_type(narrow), parse_type(narrow))


@pytest.mark.parametrize(
    ("data_type", "other"),
    [
        ("float", "double"),  # 1.1 as a float is 1.100000023841858 as a double
        ("decimal(10,2)", "decimal(12,4)"),  # 1.50 and 1.5000
        ("decimal(10,2)", "decimal(12,1)"),
        ("int", "decimal(20,0)"),
        ("int", "double"),
        ("int", "string"),
        ("date", "timestamp_ntz"),
        ("array<float>", "array<double>"),
        ("map<int,string>", "map<bigint,string>"),
        ("struct<a:int>", "struct<b:string,a:int>"),  # Delta adds fields after those that it has
        ("struct<a:int,b:int>", "struct<a:int>"),
    ],
)
def test_a_type_with_other_texts_is_not_a_wider_one(data_type: str, other: str) -> None:
    assert not is_wider(parse_type(other), parse_type(data_type))


@pytest.mark.parametrize(
    ("stored", "delivered", "common"),
    [
        ("bigint", "int", "bigint"),
        ("double", "bigint", "double"),
        ("decimal(4,1)", "smallint", "decimal(6,1)"),
        ("decimal(3,2)", "decimal(3,1)", "decimal(4,2)"),
        ("decimal(4,1)", "decimal(6,1)", "decimal(6,1)"),
        ("struct<a:int,b:int>", "struct<b:bigint,c:date>", "struct<a:int,b:bigint,c:date>"),
        ("struct<Name:string>", "struct<name:string>", "struct<Name:string>"),
        ("array<struct<a:int>>", "array<struct<b:int>>", "array<struct<a:int,b:int>>"),
        ("bigint", "double", None),
        ("decimal(3,1)", "decimal(3,2)", None),
        ("decimal(38,20)", "bigint", None),
        ("struct<a:int>", "struct<a:string,b:int>", None),
        ("array<int>", "int", None),
    ],
)
def test_a_column_gets_the_type_that_has_its_stored_and_its_delivered_values(
    stored: str, delivered: str, common: str | None
) -> None:
    data_type = common_type(parse_type(stored), parse_type(delivered))
    assert (None if data_type is None else data_type.ddl()) == common
