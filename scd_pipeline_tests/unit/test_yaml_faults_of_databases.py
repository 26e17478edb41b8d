"""Faults of databases and cursors in YAML."""

from __future__ import annotations

import pytest

from scd_pipeline import Dimension, EnvVar, Feed, Jdbc, Partitions, Source
from scd_pipeline.declaration import describe, parse
from scd_pipeline.errors import DeclarationError
from scd_pipeline_tests.unit.test_yaml_faults import DATABASE, LocatedCode, cases, located_codes

TABLE = r"""
# password in the declaration
DATABASE | {env: SHOP_PASSWORD} | hunter2
9 | sources.shop.feed.jdbc.password | SECRET_IN_DECLARATION

# password as a number
DATABASE | {env: SHOP_PASSWORD} | 12345
9 | sources.shop.feed.jdbc.password | SECRET_IN_DECLARATION

# password as a list
DATABASE | {env: SHOP_PASSWORD} | [hunter2]
9 | sources.shop.feed.jdbc.password | INVALID_KIND

# variable under another name
DATABASE | {env: SHOP_PASSWORD} | {envv: SHOP_PASSWORD}
9 | sources.shop.feed.jdbc.password.envv | UNKNOWN_OPTION

# variable without a name
DATABASE | {env: SHOP_PASSWORD} | {env: ""}
9 | sources.shop.feed.jdbc.password.env | MISSING_VALUE

# login in an address
DATABASE | postgresql://db | postgresql://loader:hunter2@db
7 | sources.shop.feed.jdbc.url | SECRET_IN_DECLARATION

# password in an address
DATABASE | db/shop | "db/shop?sslmode=require&password=hunter2"
7 | sources.shop.feed.jdbc.url | SECRET_IN_DECLARATION

# password in an option
DATABASE | number: 8} | number: 8}\n        options: {sslpassword: hunter2}
11 | sources.shop.feed.jdbc.options.sslpassword | SECRET_IN_DECLARATION

# option of jdbc among those of the reader
DATABASE | number: 8} | number: 8}\n        options: {dbtable: x}
11 | sources.shop.feed.jdbc.options.dbtable | NOT_ALLOWED

# address of another kind
DATABASE | jdbc:postgresql | postgresql
7 | sources.shop.feed.jdbc.url | NOT_ALLOWED

# table and query
DATABASE | table: customers | table: customers\n        query: SELECT 1
6 | sources.shop.feed.jdbc | CONFLICTING_OPTIONS

# neither table nor query
DATABASE | table: customers | user: loader
6 | sources.shop.feed.jdbc | CONFLICTING_OPTIONS

# no partitions
DATABASE | number: 8 | number: 0
10 | sources.shop.feed.jdbc.partitions.number | OUT_OF_RANGE

# partitions without a bound
DATABASE | upper: 1000, | <nothing>
10 | sources.shop.feed.jdbc.partitions.upper | MISSING_VALUE

# path of a database
DATABASE |       cursor: |       path: lake/customers\n      cursor:
11 | sources.shop.feed.path | CONFLICTING_OPTIONS

# database without a cursor
DATABASE |       cursor: updated_at\n      start: 1970-01-01T00:00:00Z | <nothing>
5 | sources.shop.feed.cursor | OPTION_REQUIRED

# cursor without a start
DATABASE |       start: 1970-01-01T00:00:00Z\n | <nothing>
5 | sources.shop.feed.start | MISSING_VALUE

# start as a list
DATABASE | start: 1970-01-01T00:00:00Z | start: [0]
12 | sources.shop.feed.start | INVALID_KIND

# number without a time
DATABASE | start: 1970-01-01T00:00:00Z | start: 0
5 | sources.shop.feed.effective_at | OPTION_REQUIRED

# start without a cursor
FEED | effective_at: changed_at | effective_at: changed_at\n      start: 0
8 | sources.crm.feed.start | OPTION_REQUIRED

# cursor of files
FEED | landing/{delivery}.json | landing/changes.json\n      cursor: id\n      start: 0
7 | sources.crm.feed.cursor | NOT_APPLICABLE

# cursor and a placeholder
FEED | landing/{delivery}.json | "landing/{delivery}.delta"\n      cursor: id\n      start: 0
6 | sources.crm.feed.path | PATH_PLACEHOLDER

# cursor and versions
FEED | landing/{delivery}.json | lake/changes\n      versions: true\n      cursor: id\n      start: 0
8 | sources.crm.feed.cursor | CONFLICTING_OPTIONS

# cursor and the last row
DATABASE |       cursor: |       ties: last_row\n      cursor:
11 | sources.shop.feed.ties | NOT_APPLICABLE
"""


@pytest.mark.parametrize(("text", "error"), cases(TABLE))
def test_fault(text: str, error: LocatedCode) -> None:
    assert located_codes(lambda: parse(text, "c.yaml")) == [error]


@pytest.mark.parametrize("text", [case.values[0] for case in cases(TABLE) if "hunter2" in case.values[0]])
def test_a_secret_is_in_no_message(text: str) -> None:
    with pytest.raises(DeclarationError) as error:
        parse(text)
    assert "hunter2" not in str(error.value)


def test_a_database_is_declared_in_python_as_in_yaml() -> None:
    jdbc = Jdbc(
        url="jdbc:postgresql://db/shop",
        table="customers",
        password=EnvVar("SHOP_PASSWORD"),
        partitions=Partitions("id", 1, 1000, 8),
    )
    feed = Feed(jdbc=jdbc, cursor="updated_at", start="1970-01-01")
    assert feed.effective_at == "updated_at"
    declared = Dimension("dim_customer", "id", {"city": 2}, Source("shop", feed=feed))
    assert parse(DATABASE) == parse(describe(declared)) == (declared,)


def test_a_password_in_python_is_neither_accepted_nor_shown() -> None:
    jdbc = Jdbc(url="jdbc:postgresql://db/shop", table="customers", password="hunter2")  # type: ignore[arg-type]
    assert "hunter2" not in repr(jdbc)
    with pytest.raises(DeclarationError) as error:
        Dimension("dim_customer", "id", {"city": 2}, Source("shop", snapshot={"jdbc": jdbc}))
    assert [(each.field, each.code) for each in error.value.errors] == [
        ("sources.shop.snapshot.jdbc.password", "SECRET_IN_DECLARATION")
    ]
    assert "hunter2" not in str(error.value)


@pytest.mark.rule("S5", "S28")
@pytest.mark.parametrize("ties", ["first_row", "last_row"])
def test_the_rows_of_a_database_have_no_order(ties: str) -> None:
    channel = f"{{ties: {ties}, jdbc: {{url: 'jdbc:postgresql://db/shop', table: t}}}}"
    text = f"dimension: dim_x\nbusiness_key: id\nattributes: {{city: 2}}\nsources: {{shop: {{snapshot: {channel}}}}}\n"
    with pytest.raises(DeclarationError) as caught:
        parse(text)
    assert [(error.field, error.code) for error in caught.value.errors] == [
        ("sources.shop.snapshot.ties", "NOT_APPLICABLE")
    ]
