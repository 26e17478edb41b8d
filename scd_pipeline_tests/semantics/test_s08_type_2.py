"""S8: type 2, a different value opens a version; equality of the values of every Spark type."""

from __future__ import annotations

import datetime as dt
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from scd_pipeline.declaration import Attribute, Dimension, Feed, Snapshot, Source
from scd_pipeline.declaration.types import PRIMITIVES
from scd_pipeline.deliveries.delivery import Delivery
from scd_pipeline.delta.warehouse import Warehouse
from scd_pipeline.errors import DeclarationError
from scd_pipeline_tests import oracle as o
from scd_pipeline_tests.semantics.declarations import CUSTOMER, STORE
from scd_pipeline_tests.semantics.engine import OwnTables, load_once, records
from scd_pipeline_tests.semantics.specification import Case, case, declare, feed, long_case, requirement, rule
from scd_pipeline_tests.text_tables import assert_same_rows


@rule("S8")
@case
def test_a_different_value_opens_a_version() -> Case:
    return Case(
        CUSTOMER,
        feed(
            """
            | delivery | id | time       | city | score |
            | 1        | 1  | 2024-01-01 | Bonn | 1     |
            | 2        | 1  | 2024-02-01 | Bonn | 2     |
            | 3        | 1  | 2024-03-01 | Kiel | 2     |
            """
        ),
        becomes="""
        | city | score | effective_from | effective_to | version |
        | Bonn | 1     | 2024-01-01     | 2024-02-01   | 1       |
        | Bonn | 2     | 2024-02-01     | 2024-03-01   | 2       |
        | Kiel | 2     | 2024-03-01     | OPEN         | 3       |
        """,
        on_page=True,
    )


@rule("S8")
@case
def test_null_differs_from_the_empty_text() -> Case:
    return Case(
        CUSTOMER,
        feed(
            """
            | delivery | id | time       | city |
            | 1        | 1  | 2024-01-01 | NULL |
            | 2        | 1  | 2024-02-01 | ''   |
            | 3        | 1  | 2024-03-01 | NULL |
            | 4        | 1  | 2024-04-01 | NULL |
            """
        ),
        becomes="""
        | city | effective_from | effective_to |
        | NULL | 2024-01-01     | 2024-02-01   |
        | ''   | 2024-02-01     | 2024-03-01   |
        | NULL | 2024-03-01     | OPEN         |
        """,
    )


@rule("S8")
@case
def test_a_value_that_changes_back_opens_a_version() -> Case:
    return Case(
        CUSTOMER,
        feed(
            """
            | delivery | id | time       | city |
            | 1        | 1  | 2024-01-01 | Bonn |
            | 2        | 1  | 2024-02-01 | Kiel |
            | 3        | 1  | 2024-03-01 | Bonn |
            """
        ),
        becomes="""
        | city | effective_from | effective_to | version |
        | Bonn | 2024-01-01     | 2024-02-01   | 1       |
        | Kiel | 2024-02-01     | 2024-03-01   | 2       |
        | Bonn | 2024-03-01     | OPEN         | 3       |
        """,
    )


@rule("S8")
@case
def test_values_are_compared_column_by_column() -> Case:
    return Case(
        CUSTOMER,
        feed(
            """
            | delivery | id | time       | city  | tier  |
            | 1        | 1  | 2024-01-01 | 'a|b' | c     |
            | 2        | 1  | 2024-02-01 | a     | 'b|c' |
            """
        ),
        becomes="""
        | city  | tier  | effective_from | effective_to |
        | 'a|b' | c     | 2024-01-01     | 2024-02-01   |
        | a     | 'b|c' | 2024-02-01     | OPEN         |
        """,
    )


@rule("S8")
@long_case
def test_keys_are_compared_column_by_column() -> Case:
    """Keys too are compared column by column and byte by byte."""
    return Case(
        STORE,
        feed(
            """
            | delivery | region | id    | time       | city |
            | 1        | 'a|b'  | c     | 2024-01-01 | Bonn |
            | 1        | a      | 'b|c' | 2024-01-01 | Kiel |
            | 1        | A      | 'b|c' | 2024-01-01 | Ulm  |
            | 1        | a      | ''    | 2024-01-01 | Jena |
            | 1        | x      | yz    | 2024-01-01 | Rom  |
            | 1        | xy     | z     | 2024-01-01 | Oslo |
            """,
            source="pos",
        ),
        becomes="""
        | region | id    | city | version |
        | 'a|b'  | c     | Bonn | 1       |
        | a      | 'b|c' | Kiel | 1       |
        | A      | 'b|c' | Ulm  | 1       |
        | a      | ''    | Jena | 1       |
        | x      | yz    | Rom  | 1       |
        | xy     | z     | Oslo | 1       |
        """,
    )


EQUALITY = """
| type                             | value                           | next value                       | opens |
| -------------------------------- | ------------------------------- | -------------------------------- | ----- |
| string                           | NULL                            | NULL                             | no    |
| string                           | NULL                            | ''                               | yes   |
| string                           | 'a'                             | 'A'                              | yes   |
| string                           | 'a'                             | 'a '                             | yes   |
| string                           | 'ä'                             | 'a\u0308'                        | yes   |
| string                           | 'NULL'                          | NULL                             | yes   |
| string collate utf8_lcase        | 'a'                             | 'A'                              | yes   |
| string collate utf8_lcase        | 'a'                             | 'a'                              | no    |
| boolean                          | true                            | true                             | no    |
| boolean                          | false                           | NULL                             | yes   |
| tinyint                          | 1Y                              | 1Y                               | no    |
| tinyint                          | 0Y                              | NULL                             | yes   |
| smallint                         | 1S                              | 2S                               | yes   |
| int                              | 0                               | NULL                             | yes   |
| int                              | 2147483647                      | -2147483648                      | yes   |
| bigint                           | 9007199254740993L               | 9007199254740992L                | yes   |
| float                            | float('NaN')                    | float('NaN')                     | no    |
| float                            | float('-0.0')                   | float('0.0')                     | no    |
| float                            | 0.1F                            | float('0.1')                     | no    |
| double                           | double('NaN')                   | double('NaN')                    | no    |
| double                           | double('-0.0')                  | 0.0D                             | no    |
| double                           | double('NaN')                   | NULL                             | yes   |
| double                           | double('Infinity')              | double('-Infinity')              | yes   |
| double                           | 0.1D                            | 0.1D + 1e-18D                    | no    |
| double                           | 0.3D                            | 0.1D + 0.2D                      | yes   |
| decimal(10,2)                    | 1.50BD                          | 1.5BD                            | no    |
| decimal(10,2)                    | 0BD                             | NULL                             | yes   |
| decimal(38,18)                   | 1.000000000000000001BD          | 1.000000000000000002BD           | yes   |
| date                             | date'0001-01-01'                | date'0001-01-01'                 | no    |
| date                             | date'2024-02-29'                | date'2024-03-01'                 | yes   |
| timestamp                        | timestamp'2024-01-01 00:00:00Z' | timestamp'2024-01-01 01:00:00+1' | no    |
| timestamp                        | timestamp_micros(1)             | timestamp_micros(2)              | yes   |
| timestamp_ntz                    | timestamp_ntz'2024-03-31 02:30' | timestamp_ntz'2024-03-31 02:30'  | no    |
| timestamp_ntz                    | timestamp_ntz'2024-03-31 02:30' | timestamp_ntz'2024-03-31 03:30'  | yes   |
| binary                           | X''                             | NULL                             | yes   |
| binary                           | X'00FF'                         | X'00FF'                          | no    |
| binary                           | X'00FF'                         | X'00'                            | yes   |
| array<string>                    | array('a','b')                  | array('a','b')                   | no    |
| array<string>                    | array('a','b')                  | array('b','a')                   | yes   |
| array<string>                    | array('a,b')                    | array('a','b')                   | yes   |
| array<string>                    | array()                         | NULL                             | yes   |
| array<string>                    | array(string(NULL))             | array()                          | yes   |
| array<string>                    | array(string(NULL))             | array('')                        | yes   |
| array<double>                    | array(double('NaN'), -0.0D)     | array(double('NaN'), 0.0D)       | no    |
| array<array<int>>                | array(array(1,2), array(3))     | array(array(1), array(2,3))      | yes   |
| struct<a:int,b:string>           | struct(1,'x')                   | struct(1,'x')                    | no    |
| struct<a:int,b:string>           | struct(1,NULL)                  | struct(1,'')                     | yes   |
| struct<a:int,b:string>           | struct(NULL,NULL)               | NULL                             | yes   |
| struct<a:double,b:array<int>>    | struct(-0.0D, array(1))         | struct(0.0D, array(1))           | no    |
| map<string,int>                  | map('x',1,'y',2)                | map('y',2,'x',1)                 | no    |
| map<string,int>                  | map('x',1)                      | map('x',2)                       | yes   |
| map<string,int>                  | map('x',NULL)                   | map()                            | yes   |
| map<string,int>                  | map()                           | NULL                             | yes   |
| map<string,int>                  | map('x',NULL)                   | map('x',NULL)                    | no    |
| array<map<string,int>>           | array(map('x',1,'y',2))         | array(map('y',2,'x',1))          | no    |
| array<map<string,int>>           | array(map('x',1), map('y',2))   | array(map('y',2), map('x',1))    | yes   |
| struct<m:map<string,int>>        | struct(map('x',1,'y',2))        | struct(map('y',2,'x',1))         | no    |
| struct<m:map<string,int>>        | struct(map('x',NULL))           | struct(NULL)                     | yes   |
| struct<m:map<string,int>>        | struct(NULL)                    | NULL                             | yes   |
| map<string,map<string,double>>   | map('a',map('x',1D,'y',-0.0D))  | map('a',map('y',0.0D,'x',1D))    | no    |
| array<struct<k:map<int,string>>> | array(struct(map(1,'p',2,'q'))) | array(struct(map(2,'q',1,'p')))  | no    |
"""


def _pairs() -> list[dict[str, str]]:
    """The lines of the table, whose cells are SQL."""
    lines = [[cell.strip() for cell in line.strip("| ").split("|")] for line in EQUALITY.strip().splitlines()]
    return [dict(zip(lines[0], line, strict=True)) for line in lines[2:]]


PAIRS = _pairs()
TYPES = {kind: f"v{i}" for i, kind in enumerate(dict.fromkeys(pair["type"] for pair in PAIRS))}
MEASURES = Dimension(
    "dim_measure",
    {"id": "int"},
    {name: Attribute(2, kind.partition(" collate")[0]) for kind, name in TYPES.items()},
    Source("lab", snapshot=Snapshot(), feed=Feed(effective_at="time")),
)


LINES = range(len(PAIRS))
EQUAL_LINES = [i for i in LINES if PAIRS[i]["opens"] == "no"]
REPEAT_OFFSET = 1000
ROWS = {
    "1": [(i, i, "value") for i in LINES],
    "2": [(i, i, "next value") for i in LINES],
    "3": [(i + REPEAT_OFFSET, i, column) for i in EQUAL_LINES for column in ("value", "next value")],
}


def _values(delivery: str, number: int, pair: dict[str, str], column: str) -> str:
    """A row: the value under its type, everything else NULL."""
    kinds = [f"CAST({pair[column]} AS {kind})" if kind == pair["type"] else "NULL" for kind in TYPES]
    return f"('{delivery}', {number}, timestamp'2024-03-01', {', '.join(kinds)})"


@pytest.fixture(scope="module")
def values(spark: SparkSession) -> DataFrame:
    """The rows of the three deliveries, from the table."""
    rows = [_values(name, number, PAIRS[i], column) for name, lines in ROWS.items() for number, i, column in lines]
    names = ", ".join(["delivery", "id", "time", *TYPES.values()])
    return spark.sql(f"SELECT * FROM VALUES {', '.join(rows)} AS t({names})").localCheckpoint()


@rule("S8")
def test_the_table_of_equality_covers_every_type() -> None:
    names = {re.split(r"[<( ]", kind)[0] for kind in TYPES}
    assert names == {*PRIMITIVES, "decimal", "array", "struct", "map"}


@rule("S8")
def test_the_oracle_agrees_on_which_values_are_equal(values: DataFrame) -> None:
    first, second = (_by_id(values, delivery) for delivery in ("1", "2"))
    results = ["yes" if o.canon(first[i]) != o.canon(second[i]) else "no" for i in LINES]
    assert_same_rows(PAIRS, [{**pair, "opens": opens} for pair, opens in zip(PAIRS, results, strict=True)])


def _by_id(values: DataFrame, delivery: str) -> dict[int, Any]:
    rows = values.where(F.col("delivery") == delivery).collect()
    return {row["id"]: row[TYPES[PAIRS[row["id"]]["type"]]] for row in rows}


@rule("S5", "S8")
def test_equal_and_different_values_of_every_type(spark: SparkSession, warehouse: Path, values: DataFrame) -> None:
    """Two snapshots provide the pairs; a feed provides the equal ones twice at one time, which is no conflict."""
    frames = {name: values.where(F.col("delivery") == name).drop("delivery") for name in ROWS}
    deliveries = [
        Delivery("lab", "1", "snapshot", dt.datetime(2024, 1, 1), frame=frames["1"]),
        Delivery("lab", "2", "snapshot", dt.datetime(2024, 1, 2), frame=frames["2"]),
        Delivery("lab", "3", "feed", frame=frames["3"]),
    ]
    store = Warehouse(spark, warehouse)
    load_once(store, MEASURES, deliveries).raise_if_rejected()
    versions = Counter(row["id"] for row in records(store.table(MEASURES.name).read().select("id")))
    results = [{**pair, "opens": "yes" if versions[i] == 2 else "no"} for i, pair in enumerate(PAIRS)]
    assert_same_rows(PAIRS, results)
    assert [versions[i + REPEAT_OFFSET] for i in EQUAL_LINES] == [1] * len(EQUAL_LINES)


@rule("S8")
@pytest.mark.parametrize("kind", ["variant", "geometry", "geography", "interval day", "interval"])
def test_a_declaration_with_a_type_without_equality_is_invalid(kind: str) -> None:
    with pytest.raises(DeclarationError) as error:
        Dimension("dim_place", "id", {"shape": Attribute(2, kind)}, Source("gis", snapshot=Snapshot()))
    assert [(e.field, e.code) for e in error.value.errors] == [("attributes.shape.type", "INVALID_TYPE")]


PRODUCT = declare(
    """
    dimension: dim_hashed_product
    business_key: id
    sources: {erp: {feed: {effective_at: time}, bad_row_limit: 1}}
    attributes:
      row_hash: {scd: 2, required: true}
      title: {scd: 1, untracked: at_open}
      price: {scd: 1, type: int, untracked: at_open}
    """
)


@requirement("X9")
@rule("S7", "S8")
@long_case
def test_a_hash_of_the_source_decides_what_opens_a_version() -> Case:
    """The title of February comes with the hash of January, and opens nothing; a late hash opens a version."""
    return Case(
        PRODUCT,
        feed(
            """
            | delivery | id | time       | row_hash | title | price |
            | 1        | 1  | 2024-01-01 | h1       | Tea   | 5     |
            | 2        | 1  | 2024-02-01 | h1       | TEA   | 5     |
            | 3        | 1  | 2024-03-01 | h2       | TEA   | 6     |
            | 4        | 1  | 2024-05-01 | h1       | Tea   | 5     |
            | 5        | 1  | 2024-03-15 | h3       | Chai  | 6     |
            """,
            "erp",
        ),
        becomes="""
        | row_hash | title | price | effective_from | effective_to | version |
        | h1       | Tea   | 5     | 2024-01-01     | 2024-03-01   | 1       |
        | h2       | TEA   | 6     | 2024-03-01     | 2024-03-15   | 2       |
        | h3       | Chai  | 6     | 2024-03-15     | 2024-05-01   | 3       |
        | h1       | Tea   | 5     | 2024-05-01     | OPEN         | 4       |
        """,
    )


@pytest.mark.slow
@requirement("X9")
@rule("S8", "S26")
def test_a_row_without_the_hash_of_the_source_is_bad_and_a_delivery_without_it_is_rejected(
    own_tables: OwnTables,
) -> None:
    result = own_tables.load(
        PRODUCT.dimension,
        feed(
            """
            | delivery | id | time       | row_hash | title | price |
            | 1        | 1  | 2024-01-01 | h1       | Tea   | 5     |
            | 1        | 2  | 2024-01-01 | NULL     | Mate  | 7     |
            """,
            "erp",
        ),
        feed(
            """
            | delivery | id | time       | title | price |
            | 2        | 1  | 2024-02-01 | Chai  | 6     |
            """,
            "erp",
        ),
    )
    outcomes = [(batch.delivery, batch.outcome, batch.bad_rows) for batch in result.results]
    assert outcomes == [("1", "accepted", 1), ("2", "rejected", 0)]
    assert [row["row_hash"] for row in own_tables.rows(PRODUCT.dimension)] == ["h1"]
