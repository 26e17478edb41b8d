"""Faults in YAML: small valid texts, one change to each, and where and with which code it is reported (S28).

A case has three lines: its name, the change as `BASE | old text | new text`, and the error as `line | field | code`.
The texts of the errors are in `test_declaration_messages.py`, by the names of the cases.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from scd_pipeline.declaration import parse
from scd_pipeline.declaration.names import COLUMN_NAME_RULE
from scd_pipeline.declaration.yaml import options
from scd_pipeline.errors import DeclarationError, ValidationError

LocatedCode = tuple[str, str, str]
"""The location, the field and the code of an error."""

SNAPSHOT = """\
dimension: dim_customer
business_key: customer_id
sources:
  crm:
    snapshot: landing/customers_{date}.csv
attributes:
  birthday: {scd: 0, type: date}
  email: 1
  city: 2
"""
FEED = """\
dimension: dim_customer
business_key: [region, customer_id]
sources:
  crm:
    feed:
      path: landing/{delivery}.json
      effective_at: changed_at
attributes:
  city: 6
"""
TWO = """\
dimension: dim_customer
business_key: customer_id
sources:
  crm:
    snapshot: landing/customers_{date}.csv
    existence: true
  web:
    feed: landing/{date}.json
attributes:
  email: {scd: 1, source: web}
  city: {scd: 2, source: crm}
"""
FLAT = """\
dimension: dim_country
business_key: code
sources:
  iso: {snapshot: "landing/{date}.csv"}
attributes:
  name: 1
"""
HISTORY = """\
history_of: rc_product
business_key: rc_product_key
attributes:
  price: 2
"""
DATABASE = """\
dimension: dim_customer
business_key: id
sources:
  shop:
    feed:
      jdbc:
        url: jdbc:postgresql://db/shop
        table: customers
        password: {env: SHOP_PASSWORD}
        partitions: {column: id, lower: 1, upper: 1000, number: 8}
      cursor: updated_at
      start: 1970-01-01T00:00:00Z
attributes:
  city: 2
"""
LANDING_BASES = {
    "MERGE": """\
landing_table: raw_issues
disposition: merge
primary_key: {id: bigint}
dedup_sort: {updated_at: desc}
columns: {title: string, updated_at: timestamp}
sources:
  api: {feed: "issues_{date}.jsonl"}
""",
    "DAYS": """\
landing_table: raw_days
disposition: merge
merge_key: {batch_day: date}
columns: {value: string}
sources:
  api: {snapshot: "days_{date}.csv"}
""",
    "MIRROR": """\
landing_table: raw_users
disposition: merge
primary_key: id
columns: mirror
sources:
  api: {feed: "users_{date}.jsonl"}
""",
    "REPLACE": """\
landing_table: raw_countries
disposition: replace
columns: {code: string, name: string}
sources:
  iso: {snapshot: "countries_{date}.csv"}
""",
    "APPEND": """\
landing_table: raw_lines
disposition: append
columns: {line: string}
sources:
  api: {feed: "lines_{date}.csv"}
""",
}
BASES = {
    **LANDING_BASES,
    "SNAPSHOT": SNAPSHOT,
    "FEED": FEED,
    "TWO": TWO,
    "FLAT": FLAT,
    "HISTORY": HISTORY,
    "DATABASE": DATABASE,
}
SHORT = {
    "<a name's rule>": COLUMN_NAME_RULE,
    "<the types>": (
        "string, int, bigint, smallint, tinyint, double, float, boolean, date, timestamp, timestamp_ntz, "
        "binary, decimal, array, map, struct"
    ),
    "<a dimension's options>": ", ".join(options.DIMENSION),
    "<a source's options>": ", ".join(options.SOURCE),
    "<a feed's options>": ", ".join(options.FEED),
    "<an attribute's options>": ", ".join(options.ATTRIBUTE),
    "<a pattern's form>": (
        "write it as dd.MM.yyyy HH:mm:ss, with other text in single quotes and optional parts in [ ]"
    ),
    "<nothing>": "",
    "<5000 digits>": "9" * 5000,
    "<a late beginning>": "begin: {at: 9999-12-31 23:59:59, for_first_changes_until: 9999-12-31 23:59:59}",
}


def cases(table: str) -> list[Any]:
    """Return the cases of a table, as parameters `text` and `error`."""
    return [_case(*block.split("\n")) for block in table.strip().split("\n\n")]


def _case(name: str, change: str, error: str) -> Any:
    base, old, new = (plain(part) for part in change.split(" | "))
    assert BASES[base].count(old) == 1, name
    line, field, code = error.split(" | ")
    return pytest.param(BASES[base].replace(old, new), (f"c.yaml:{line}", field, code), id=name.removeprefix("# "))


def plain(part: str) -> str:
    """Return the part of a table without abbreviations and escapes."""
    for short, long in SHORT.items():
        part = part.replace(short, long)
    for escape, character in (("\\\\", "\1"), ("\\n", "\n"), ("\\0", "\0"), ("\1", "\\")):
        part = part.replace(escape, character)
    return part


def declaration_errors(create: Callable[[], object]) -> tuple[ValidationError, ...]:
    """Return the errors of a declaration that a call creates, reads or compares."""
    with pytest.raises(DeclarationError) as caught:
        create()
    return caught.value.errors


def located_codes(create: Callable[[], object]) -> list[LocatedCode]:
    """Return the location, the field and the code of each error of a declaration."""
    return [(error.location, error.field, error.code) for error in declaration_errors(create)]


@pytest.mark.parametrize("text", [SNAPSHOT, FEED, TWO, FLAT, DATABASE])
def test_the_bases_have_no_fault(text: str) -> None:
    assert len(parse(text)) == 1


WHOLE_TEXTS = {
    "empty text": ("", 1, "syntax", "NOTHING_DECLARED"),
    "comment alone": ("# later\n", 1, "syntax", "NOTHING_DECLARED"),
    "list of names": ("- dim_customer\n", 1, "dimension", "INVALID_KIND"),
    "nested too deep": ("[" * 3000, 1, "syntax", "SYNTAX"),
    "former name declared": (
        f"{HISTORY}former_name: rc_article_hist\n---\n{HISTORY.replace('rc_product', 'rc_article')}",
        1,
        "former_name",
        "NAME_IN_USE",
    ),
    "dimension twice": (f"{SNAPSHOT}---\n{FLAT}---\n{SNAPSHOT}", 18, "dimension", "NAME_IN_USE"),
}


@pytest.mark.parametrize("name", WHOLE_TEXTS)
def test_whole_texts(name: str) -> None:
    text, line, field, code = WHOLE_TEXTS[name]
    assert located_codes(lambda: parse(text, "c.yaml")) == [(f"c.yaml:{line}", field, code)]


ALIAS_IN_ITSELF = SNAPSHOT.replace("email: 1", "email: &one {scd: *one}")


def test_an_alias_within_itself_is_a_fault() -> None:
    first = ("c.yaml:8", "dimension", "UNSUPPORTED_YAML")
    assert located_codes(lambda: parse(ALIAS_IN_ITSELF, "c.yaml"))[0] == first


@pytest.mark.parametrize(
    ("changes", "errors"),
    [
        (
            {"snapshot: landing/customers_{date}.csv": "snapshto: {path: in/all.csv, format: xls}"},
            """
            5 sources.crm.snapshto        UNKNOWN_OPTION
            5 sources.crm.snapshot.path   PATH_PLACEHOLDER
            5 sources.crm.snapshot.format NOT_ALLOWED
            """,
        ),
        (
            {
                "snapshot: landing/customers_{date}.csv": (
                    'bad_row_limt: 7\n    snapshot: {path: "in/{date}.csv", formt: xls}'
                ),
                "city: 2": "city: {scd: 2, typ: strng, personl: maybe}",
            },
            """
            5  sources.crm.bad_row_limt    UNKNOWN_OPTION
            5  sources.crm.bad_row_limit   OUT_OF_RANGE
            6  sources.crm.snapshot.formt  UNKNOWN_OPTION
            6  sources.crm.snapshot.format NOT_ALLOWED
            10 attributes.city.typ         UNKNOWN_OPTION
            10 attributes.city.personl     UNKNOWN_OPTION
            10 attributes.city.personal    INVALID_KIND
            10 attributes.city.type        INVALID_TYPE
            """,
        ),
    ],
)
def test_the_value_of_a_misspelt_option_is_checked(changes: dict[str, str], errors: str) -> None:
    text = SNAPSHOT
    for old, new in changes.items():
        text = text.replace(old, new)
    expected = [tuple(line.split()) for line in errors.strip().splitlines()]
    reported = located_codes(lambda: parse(text, "c.yaml"))
    assert [(location.removeprefix("c.yaml:"), field, code) for location, field, code in reported] == expected


def test_all_faults_are_reported_at_once_in_the_order_of_their_lines() -> None:
    text = """\
dimensoin: dim_customer
business_key: no
sources:
  crm: {snapshot: landing/customers.csv, timezone: Mars/North, retire_guard: 2}
attributes:
  birthday: {scd: 0, type: dat}
  email: 4
  city: {scd: 2, previous: true}
  city: 1
---
dimension: dim_product
sources: {erp: {feed: "a_{date}"}}
attributes: {version: 1}
"""
    with pytest.raises(DeclarationError) as caught:
        parse(text, "c.yaml")
    assert [f"{each.location} {each.field}" for each in caught.value.errors] == [
        "c.yaml:1 dimensoin",
        "c.yaml:2 business_key",
        "c.yaml:4 sources.crm.snapshot.path",
        "c.yaml:4 sources.crm.timezone",
        "c.yaml:4 sources.crm.retire_guard",
        "c.yaml:6 attributes.birthday.type",
        "c.yaml:7 attributes.email.scd",
        "c.yaml:8 attributes.city.previous",
        "c.yaml:9 attributes.city",
        "c.yaml:11 business_key",
        "c.yaml:12 sources.erp.feed.format",
        "c.yaml:13 attributes.version",
    ]
    assert len(str(caught.value).splitlines()) == len(caught.value.errors)
