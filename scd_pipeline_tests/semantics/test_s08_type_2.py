"""S8: type 2, a different value opens a version; what differs, for every type of Spark."""

from __future__ import annotations

import datetime as dt
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from scd_pipeline.deliveries import Delivery
from scd_pipeline.errors import DeclarationError
from scd_pipeline.spec import Attribute, Dimension, Feed, Source
from scd_pipeline.warehouse import Warehouse
from scd_pipeline_tests import oracle as o
from scd_pipeline_tests.semantics.declarations import CUSTOMER, STORE
from scd_pipeline_tests.semantics.ground import once, records
from scd_pipeline_tests.semantics.specification import Case, case, feed, rule
from scd_pipeline_tests.text_tables import assert_same_rows, header, parse


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
def test_null_and_the_empty_text_differ() -> Case:
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
def test_a_value_back_to_what_it_was_is_a_new_version() -> Case:
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
def test_no_part_of_a_key_runs_over_into_the_next() -> Case:
    """Two entities, for keys too are compared part by part and byte by byte."""
    return Case(
        STORE,
        feed(
            """
            | delivery | region | id    | time       | city |
            | 1        | 'a|b'  | c     | 2024-01-01 | Bonn |
            | 1        | a      | 'b|c' | 2024-01-01 | Kiel |
            | 1        | A      | 'b|c' | 2024-01-01 | Ulm  |
            | 1        | a      | ''    | 2024-01-01 | Jena |
            """,
            source="pos",
        ),
        becomes="""
        | region | id    | city | version |
        | 'a|b'  | c     | Bonn | 1       |
        | a      | 'b|c' | Kiel | 1       |
        | A      | 'b|c' | Ulm  | 1       |
        | a      | ''    | Jena | 1       |
        """,
    )


EQUALITY = """
| type                                | stated                            | stated next                       | version opens |
| ----------------------------------- | --------------------------------- | --------------------------------- | ------------- |
| string                              | NULL                              | NULL                              | no            |
| string                              | NULL                              | ''                                | yes           |
| string                              | 'a'                               | 'A'                               | yes           |
| string                              | 'a'                               | 'a '                              | yes           |
| string                              | 'ä'                               | 'a\u0308'                         | yes           |
| string                              | 'NULL'                            | NULL                              | yes           |
| boolean                             | true                              | true                              | no            |
| boolean                             | false                             | NULL                              | yes           |
| tinyint                             | 1Y                                | 1Y                                | no            |
| tinyint                             | 0Y                                | NULL                              | yes           |
| smallint                            | 1S                                | 2S                                | yes           |
| int                                 | 0                                 | NULL                              | yes           |
| int                                 | 2147483647                        | -2147483648                       | yes           |
| bigint                              | 9007199254740993L                 | 9007199254740992L                 | yes           |
| float                               | float('NaN')                      | float('NaN')                      | no            |
| float                               | float('-0.0')                     | float('0.0')                      | no            |
| float                               | 0.1F                              | float('0.10000001')               | no            |
| double                              | double('NaN')                     | double('NaN')                     | no            |
| double                              | double('-0.0')                    | 0.0D                              | no            |
| double                              | double('NaN')                     | NULL                              | yes           |
| double                              | double('Infinity')                | double('-Infinity')               | yes           |
| double                              | 0.1D                              | 0.1D + 1e-17D                     | no            |
| double                              | 0.3D                              | 0.1D + 0.2D                       | yes           |
| decimal(10,2)                       | 1.50BD                            | 1.5BD                             | no            |
| decimal(10,2)                       | 0BD                               | NULL                              | yes           |
| decimal(38,18)                      | 1.000000000000000001BD            | 1.000000000000000002BD            | yes           |
| date                                | date'0001-01-01'                  | date'0001-01-01'                  | no            |
| date                                | date'2024-02-29'                  | date'2024-03-01'                  | yes           |
| timestamp                           | timestamp'2024-01-01 00:00:00Z'   | timestamp'2024-01-01 01:00:00+01' | no            |
| timestamp                           | timestamp'2024-01-01'             | timestamp'2024-01-01 00:00:00.000001' | yes       |
| timestamp_ntz                       | timestamp_ntz'2024-03-31 02:30'   | timestamp_ntz'2024-03-31 02:30'   | no            |
| timestamp_ntz                       | timestamp_ntz'2024-03-31 02:30'   | timestamp_ntz'2024-03-31 03:30'   | yes           |
| binary                              | X''                               | NULL                              | yes           |
| binary                              | X'00FF'                           | X'00FF'                           | no            |
| binary                              | X'00FF'                           | X'00'                             | yes           |
| array<string>                       | array('a','b')                    | array('a','b')                    | no            |
| array<string>                       | array('a','b')                    | array('b','a')                    | yes           |
| array<string>                       | array('a,b')                      | array('a','b')                    | yes           |
| array<string>                       | array()                           | NULL                              | yes           |
| array<string>                       | array(string(NULL))               | array()                           | yes           |
| array<string>                       | array(string(NULL))               | array('')                         | yes           |
| array<double>                       | array(double('NaN'), -0.0D)       | array(double('NaN'), 0.0D)        | no            |
| array<array<int>>                   | array(array(1,2), array(3))       | array(array(1), array(2,3))       | yes           |
| struct<a:int,b:string>              | named_struct('a',1,'b','x')       | named_struct('a',1,'b','x')       | no            |
| struct<a:int,b:string>              | named_struct('a',1,'b',NULL)      | named_struct('a',1,'b','')        | yes           |
| struct<a:int,b:string>              | named_struct('a',NULL,'b',NULL)   | NULL                              | yes           |
| struct<a:double,b:array<int>>       | named_struct('a',-0.0D,'b',array(1)) | named_struct('a',0.0D,'b',array(1)) | no       |
| map<string,int>                     | map('x',1,'y',2)                  | map('y',2,'x',1)                  | no            |
| map<string,int>                     | map('x',1)                        | map('x',2)                        | yes           |
| map<string,int>                     | map('x',NULL)                     | map()                             | yes           |
| map<string,int>                     | map()                             | NULL                              | yes           |
| map<string,int>                     | map('x',NULL)                     | map('x',NULL)                     | no            |
| array<map<string,int>>              | array(map('x',1,'y',2))           | array(map('y',2,'x',1))           | no            |
| array<map<string,int>>              | array(map('x',1), map('y',2))     | array(map('y',2), map('x',1))     | yes           |
| struct<m:map<string,int>>           | named_struct('m',map('x',1,'y',2)) | named_struct('m',map('y',2,'x',1)) | no         |
| struct<m:map<string,int>>           | named_struct('m',NULL)            | NULL                              | yes           |
| map<string,map<string,double>>      | map('a',map('x',double('NaN'),'y',-0.0D)) | map('a',map('y',0.0D,'x',double('NaN'))) | no |
| map<string,array<struct<k:map<int,string>>>> | map('a',array(named_struct('k',map(1,'p',2,'q')))) | map('a',array(named_struct('k',map(2,'q',1,'p')))) | no |
"""
