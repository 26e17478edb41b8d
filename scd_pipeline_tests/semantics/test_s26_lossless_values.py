"""S26: a value is loaded only if its declared type can hold all of it, whatever type it is delivered in."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from scd_pipeline.declaration.types import parse_type
from scd_pipeline.deliveries.cast_options import CastOptions
from scd_pipeline.deliveries.casts import cast
from scd_pipeline_tests.semantics.specification import rule

# Text in single quotes; anything else is SQL. BAD is a bad value.
TABLE = r"""
into           | rules    | delivered                        | becomes
-------------- | -------- | -------------------------------- | -------
int            |          | ' 12 '                           | 12
int            |          | '+5'                             | 5
int            |          | '1.5'                            | BAD
int            |          | '1.0'                            | BAD
int            |          | '1e3'                            | BAD
int            |          | ''                               | BAD
int            |          | NULL                             | NULL
int            |          | CAST(NULL AS string)             | NULL
int            |          | 2147483647L                      | 2147483647
int            |          | 2147483648L                      | BAD
int            |          | 1.5D                             | BAD
int            |          | 12.0D                            | 12
int            |          | 1.5BD                            | BAD
int            |          | 12.00BD                          | 12
int            |          | double('NaN')                    | BAD
int            |          | true                             | 1
int            |          | timestamp'2024-01-01'            | BAD
int            | round    | 1.5D                             | 2
int            | round    | -1.5BD                           | -2
int            | round    | '2.5'                            | 3
int            | round    | '2147483647.5'                   | BAD
int            | round    | double('NaN')                    | BAD
bigint         |          | 1.5D                             | BAD
bigint         |          | float(2)                         | 2
bigint         |          | 9007199254740994D                | 9007199254740994
bigint         |          | double(9223372036854775807L)     | BAD
bigint         |          | 9223372036854775807BD            | 9223372036854775807
bigint         |          | '9223372036854775808'            | BAD
decimal(10,2)  |          | '1.005'                          | BAD
decimal(10,2)  |          | ' 1.500 '                        | 1.50
decimal(10,2)  |          | '1e3'                            | 1000.00
decimal(10,2)  |          | '15e-1'                          | 1.50
decimal(10,2)  |          | '15e-3'                          | BAD
decimal(10,2)  |          | '1500e-4'                        | 0.15
decimal(10,2)  |          | '1e-2000000000'                  | BAD
decimal(10,2)  |          | '0e-9'                           | 0.00
decimal(10,2)  |          | '123456789.00'                   | BAD
decimal(10,2)  |          | '1,5'                            | BAD
decimal(10,2)  |          | 'NaN'                            | BAD
decimal(10,2)  |          | 1.005D                           | BAD
decimal(10,2)  |          | 0.1D                             | 0.10
decimal(10,2)  |          | 1.005BD                          | BAD
decimal(10,2)  |          | 1.5000BD                         | 1.50
decimal(10,2)  |          | 7                                | 7.00
decimal(10,9)  |          | float(0.1)                       | 0.100000000
decimal(3,2)   |          | 9.995BD                          | BAD
decimal(38,0)  |          | '1.5'                            | BAD
decimal(38,0)  |          | '15e-1'                          | BAD
decimal(10,2)  | round    | '1.005'                          | 1.01
decimal(10,2)  | round    | 1.005D                           | 1.01
decimal(10,2)  | round    | 1.005BD                          | 1.01
decimal(3,2)   | round    | '9.995'                          | BAD
double         |          | '0.1'                            | 0.1
double         |          | '1e3'                            | 1000.0
double         |          | 'NaN'                            | NaN
double         |          | '-Infinity'                      | -Infinity
double         |          | '0.10000000000000001'            | 0.1
double         |          | '0.123456789012345678'           | BAD
double         |          | '9007199254740993'               | BAD
double         |          | '9007199254740992'               | 9.007199254740992E15
double         |          | '1e400'                          | BAD
double         |          | '1e-400'                         | BAD
double         |          | '0e-400'                         | 0.0
double         |          | '1.5d'                           | BAD
double         |          | '0x1p3'                          | BAD
double         |          | 9007199254740993L                | BAD
double         |          | 9223372036854775807L             | BAD
double         |          | 0.1BD                            | 0.1
double         |          | 0.1234567890123456789BD          | BAD
double         | round    | '0.123456789012345678'           | 0.12345678901234568
double         | round    | 0.1234567890123456789BD          | 0.12345678901234568
double         | round    | '1e400'                          | BAD
float          |          | 0.1D                             | 0.1
float          |          | 0.123456789D                     | BAD
float          |          | 1e300D                           | BAD
float          |          | 16777217                         | BAD
float          |          | '16777217'                       | BAD
float          |          | '0.1'                            | 0.1
float          | round    | 0.123456789D                     | 0.12345679
float          | round    | 1e300D                           | BAD
boolean        |          | ' YES '                          | true
boolean        |          | 'f'                              | false
boolean        |          | 'on'                             | BAD
boolean        |          | 1                                | true
boolean        |          | 2                                | BAD
boolean        |          | 0.5D                             | BAD
decimal(10,2)  | decimal=comma | '1,50'                      | 1.50
decimal(10,2)  | decimal=comma | ' -1234,5 '                 | -1234.50
decimal(10,2)  | decimal=comma | '1.50'                      | BAD
decimal(10,2)  | decimal=comma | '1,234'                     | BAD
decimal(10,2)  | decimal=comma, round | '1,235'              | 1.24
decimal(10,2)  | decimal=comma | '1,5e1'                     | 15.00
decimal(10,2)  | decimal=comma | 1.50BD                      | 1.50
decimal(10,2)  | decimal=comma | 0.1D                        | 0.10
decimal(10,2)  | decimal=comma, grouping=point | '1.234,50'  | 1234.50
decimal(10,2)  | decimal=comma, grouping=point | '1.234.567' | 1234567.00
decimal(10,2)  | decimal=comma, grouping=point | '1234,50'   | 1234.50
decimal(10,2)  | decimal=comma, grouping=point | '-,50'      | -0.50
decimal(10,2)  | decimal=comma, grouping=point | '1.5'       | BAD
decimal(10,2)  | decimal=comma, grouping=point | '0.125'     | BAD
decimal(10,2)  | decimal=comma, grouping=point | '012.345'   | BAD
decimal(10,2)  | decimal=comma, grouping=point | '1.23,50'   | BAD
decimal(10,2)  | decimal=comma, grouping=point | '1234.567,5' | BAD
decimal(10,2)  | decimal=comma, grouping=point | '.234,50'   | BAD
decimal(10,2)  | decimal=comma, grouping=point | '1,234.50'  | BAD
decimal(10,2)  | decimal=comma, grouping=point | '1,5,0'     | BAD
decimal(10,2)  | decimal=comma, grouping=point | '1,234.567' | BAD
decimal(10,2)  | decimal=comma, grouping=point | ''          | BAD
decimal(10,2)  | decimal=comma, grouping=point | '12,50 €'   | BAD
decimal(10,2)  | grouping=comma | '1,234.50'                 | 1234.50
decimal(10,2)  | grouping=comma | '1,50'                     | BAD
decimal(10,2)  | decimal=comma, grouping=blank | '1 234,50'  | 1234.50
decimal(10,2)  | decimal=comma, grouping=blank | '1 2 34'    | BAD
int            | decimal=comma, grouping=point | '1.234'     | 1234
int            | decimal=comma, grouping=point | '1.234,0'   | BAD
double         | decimal=comma, grouping=point | '1.234,5'   | 1234.5
boolean        | flags=J/N | ' J '                           | true
boolean        | flags=J/N | 'N'                             | false
boolean        | flags=J/N | 'j'                             | BAD
boolean        | flags=J/N | 'true'                          | BAD
boolean        | flags=J/N | true                            | true
date           |          | ' 2024-01-31 '                   | 2024-01-31
date           |          | '2024-1-5'                       | 2024-01-05
date           |          | '2024-01-01 junk'                | BAD
date           |          | '2024-01-01Tjunk'                | BAD
date           |          | '2024-01-01T'                    | BAD
date           |          | '2024'                           | BAD
date           |          | '2024-01'                        | BAD
date           |          | 'today'                          | BAD
date           |          | '2024-02-30'                     | BAD
date           |          | '2024-01-01 00:00:00'            | 2024-01-01
date           |          | '2024-01-01T00:00:00.000Z'       | 2024-01-01
date           |          | '2024-01-01 00:00:00+02:00'      | BAD
date           |          | '2024-01-01 12:00:00'            | BAD
date           |          | timestamp'2024-01-01 12:00:00'   | BAD
date           |          | timestamp'2024-01-01 00:00:00'   | 2024-01-01
date           |          | timestamp_ntz'2024-01-01 12:00'  | BAD
date           |          | '0000-01-01'                     | BAD
date           |          | '10000-01-01'                    | BAD
date           |          | date'0000-12-31'                 | BAD
date           |          | date'9999-12-31'                 | 9999-12-31
date           |          | date'+10000-01-01'               | BAD
date           | round    | '2024-01-01 12:00:00'            | 2024-01-01
date           | round    | timestamp'2024-01-01 12:00:00'   | 2024-01-01
date           | round    | '2024-01-01 junk'                | BAD
date           | unit=s   | 1704067200                       | 2024-01-01
date           | unit=s   | 1704067201                       | BAD
date           | pattern=dd.MM.yyyy | '31.12.2024'           | 2024-12-31
date           | pattern=dd.MM.yyyy | '31.12.2024 junk'      | BAD
date           | pattern=dd.MM.yyyyy | '31.12.10000'         | BAD
date           | pattern=yyyy | '2024'                       | 2024-01-01
date           | pattern=dd.MM.yyyy HH:mm | '31.12.2024 10:00' | BAD
date           | pattern=dd.MM.yyyy HH:mm, round | '31.12.2024 10:00' | 2024-12-31
timestamp      |          | '2024-01-01'                     | 2024-01-01 00:00:00
timestamp      |          | '2024-01-01 12:30'               | 2024-01-01 12:30:00
timestamp      |          | '2024-01-01T12:30:00.123456Z'    | 2024-01-01 12:30:00.123456
timestamp      |          | '2024-01-01 12:30:00.123456000'  | 2024-01-01 12:30:00.123456
timestamp      |          | '2024-01-01 12:30:00.1234567'    | BAD
timestamp      |          | '2024-01-01 junk'                | BAD
timestamp      |          | '2024'                           | BAD
timestamp      |          | '2024-01'                        | BAD
timestamp      |          | 'now'                            | BAD
timestamp      |          | '12:30:00'                       | BAD
timestamp      |          | '170406'                         | BAD
timestamp      |          | '1704067200'                     | BAD
timestamp      |          | 1704067200                       | BAD
timestamp      |          | 1704067200.5D                    | BAD
timestamp      |          | true                             | BAD
timestamp      |          | '0000-01-01'                     | BAD
timestamp      |          | '10000-01-01'                    | BAD
timestamp      |          | timestamp'0000-12-31'            | BAD
timestamp      |          | timestamp'+10000-01-01'          | BAD
timestamp      |          | timestamp_micros(253402300799999999) | 9999-12-31 23:59:59.999999
timestamp      | round    | '2024-01-01 12:30:00.1234567'    | 2024-01-01 12:30:00.123456
timestamp      | unit=s   | 1704067200                       | 2024-01-01 00:00:00
timestamp      | unit=s   | '1704067200'                     | 2024-01-01 00:00:00
timestamp      | unit=s   | '1704067200.25'                  | 2024-01-01 00:00:00.25
timestamp      | unit=s   | 1704067200.25D                   | 2024-01-01 00:00:00.25
timestamp      | unit=ms  | 1704067200001L                   | 2024-01-01 00:00:00.001
timestamp      | unit=us  | 1704067200000001L                | 2024-01-01 00:00:00.000001
timestamp      | unit=us  | 1.5D                             | BAD
timestamp      | unit=us, round | 1.5D                       | 1970-01-01 00:00:00.000002
timestamp      | unit=s   | '2024-01-01'                     | BAD
timestamp      | unit=s   | date'2024-01-01'                 | 2024-01-01 00:00:00
timestamp      | unit=s   | 1704067200000L                   | BAD
timestamp      | unit=s   | 9223372036854775807L             | BAD
timestamp      | pattern=yyyy-MM-dd HH:mm:ss.SSSSSSSSS | '2024-01-01 12:30:00.123456789' | BAD
timestamp      | pattern=yyyy-MM-dd HH:mm:ss.SSSSSSSSS | '2024-01-01 12:30:00.1234567' | BAD
timestamp      | pattern=yyyy-MM-dd HH:mm:ss.SSSSSSSSS | '2024-01-01 12:30:00.123456000' | 2024-01-01 12:30:00.123456
timestamp      | pattern=dd.MM.yyyy 'godz.' HH:mm, zone=Europe/Warsaw | '01.01.2024 godz. 12:00' | 2024-01-01 11:00:00
timestamp      | pattern=dd.MM.yyyy HH:mm[XXX], zone=Europe/Warsaw | '01.01.2024 12:00' | 2024-01-01 11:00:00
timestamp      | pattern=dd.MM.yyyy HH:mm[XXX], zone=Europe/Warsaw | '01.01.2024 12:00Z' | 2024-01-01 12:00:00
timestamp      | zone=Europe/Oslo | '0001-01-01'             | BAD
timestamp      | zone=Europe/Oslo, unit=s | 1704067200       | 2024-01-01 00:00:00
timestamp_ntz  |          | '2024-01-01 12:00:00'            | 2024-01-01 12:00:00
timestamp_ntz  |          | '2024-01-01 12:00:00+02:00'      | BAD
timestamp_ntz  |          | '2024-01-01 12:00:00 Europe/Oslo' | BAD
timestamp_ntz  |          | 1                                | BAD
timestamp_ntz  | unit=ms  | 1704067200001L                   | 2024-01-01 00:00:00.001
timestamp_ntz  |          | timestamp_ntz'+10000-01-01'      | BAD
string         |          | X'41C3A4'                        | Aä
string         |          | X'41FF'                          | BAD
string         |          | decode(X'C3A4', 'UTF-8')         | ä
string         |          | CAST(X'41FF' AS string)          | BAD
string         |          | named_struct('a', 1)             | {"a":1}
string         |          | array(1.0D, CAST(NULL AS double)) | [1.0,null]
string         |          | map('a', CAST(NULL AS int))      | {"a":null}
string         |          | map(date'2024-01-01', array(map(true, 1))) | {"2024-01-01":[{"true":1}]}
string         |          | array(timestamp'2024-01-01 12:30:00.123456') | ["2024-01-01T12:30:00.123456Z"]
string         |          | 1                                | 1
string         |          | 1.50BD                           | 1.50
string         |          | 1.0D                             | BAD
string         |          | float(1.5)                       | BAD
string         |          | double('NaN')                    | BAD
string         |          | CAST(NULL AS double)             | NULL
string         |          | '1.0'                            | 1.0
string         | round    | 1.0D                             | 1
string         | round    | -43664123.0D                     | -43664123
string         | round    | 12345678.9D                      | 12345678.9
string         | round    | 0.00001D                         | 0.00001
string         | round    | 100.0D                           | 100
string         | round    | 0.0D                             | 0
string         | round    | 1e300D                           | 1.0E300
string         | round    | double('NaN')                    | NaN
array<int>     |          | array(1.0D, 2.0D)                | [1, 2]
array<int>     |          | array(1.0D, 1.5D)                | BAD
array<int>     | round    | array(1.0D, 1.5D)                | [1, 2]
array<int>     |          | '[1, "1.5"]'                     | BAD
array<string>  |          | array('a', CAST(X'FF' AS string)) | BAD
array<decimal(30,20)> |   | '[0.1234567890123456789]'        | [0.12345678901234567890]
array<decimal(30,2)> |    | '[1.50, 123456789012345678.12]'  | [1.50, 123456789012345678.12]
array<string>  |          | '[1, "1.50", null, true]'        | [1, 1.50, null, true]
array<string>  |          | '[1.50]'                         | BAD
array<string>  |          | array(1.0D)                      | BAD
array<string>  | round    | '[1.50, 1e3]'                    | [1.5, 1000]
array<string>  |          | '["\\ud800"]'                    | BAD
array<string>  |          | '["\\ud83d\\ude00"]'             | [😀]
array<string>  |          | '["\\\\ud800"]'                  | [\ud800]
array<string>  |          | '["\\ufdd0"]'                    | BAD
array<int>     |          | '[1.0, 1e1]'                     | [1, 10]
array<bigint>  |          | '[9007199254740993, 9007199254740993.0]' | [9007199254740993, 9007199254740993]
array<int>     |          | '["1.0"]'                        | BAD
array<int>     |          | '[1]} junk'                      | BAD
array<int>     |          | '[1]] junk'                      | BAD
array<int>     |          | '[1], "v": [2]'                  | BAD
array<int>     |          | ' [1] '                          | [1]
array<int>     |          | 'null'                           | BAD
struct<a:int>  |          | '{"a": 1}} junk'                 | BAD
struct<a:int>  |          | '{"a": 1} {"a": 2}'              | BAD
struct<a:int>  |          | '{"a": 1}'                       | {1}
struct<a:date> |          | named_struct('a', date'0000-01-01') | BAD
struct<a:date> |          | '{"a": "2024-01-01 junk"}'       | BAD
struct<a:timestamp> | unit=ms | named_struct('a', 1704067200001L) | {2024-01-01 00:00:00.001}
map<string,decimal(3,1)> | | map('a', 1.25BD)                 | BAD
map<string,decimal(3,1)> | | map('a', 1.50BD)                 | {a -> 1.5}
"""


CASES = [
    tuple(cell.strip() for cell in line.replace("| |", "|  |").split("|")) for line in TABLE.strip().splitlines()[2:]
]


SEPARATORS = {"": "", "comma": ",", "point": ".", "blank": " "}


def _options(text: str) -> CastOptions:
    options = dict(option.strip().partition("=")[::2] for option in text.split(",") if option)
    flags = [(text,) for text in options["flags"].split("/")] if "flags" in options else [(), ()]
    return CastOptions(
        options.get("zone", "UTC"),
        options.get("pattern"),
        options.get("unit"),
        "round" in options,
        SEPARATORS[options.get("decimal", "point")],
        SEPARATORS[options.get("grouping", "")],
        *flags,
    )


@pytest.fixture(scope="module")
def results(spark: SparkSession) -> list[str]:
    """The value that each line becomes, computed by one query."""
    delivered = spark.range(1).select(*[F.expr(case[2]).alias(f"v{at}") for at, case in enumerate(CASES)])
    columns = []
    for at, (field, case) in enumerate(zip(delivered.schema.fields, CASES, strict=True)):
        result = cast(F.col(f"v{at}"), field.dataType, parse_type(case[0]), _options(case[1]))
        text = F.coalesce(result.value.cast("string"), F.lit("NULL"))
        columns.append(F.when(result.is_bad, "BAD").otherwise(text).alias(f"r{at}"))
    return list(delivered.select(*columns).collect()[0])


@rule("S26", "S1")
@pytest.mark.parametrize("at", range(len(CASES)), ids=lambda at: " ".join(CASES[at][:3]))
def test_a_value_that_its_type_cannot_hold_is_a_bad_value(results: list[str], at: int) -> None:
    assert results[at] == CASES[at][3]
