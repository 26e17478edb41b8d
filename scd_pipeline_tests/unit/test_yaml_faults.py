"""Faults in YAML: small valid texts, one change to each, and the whole resulting message (S28).

A case has three lines or more: its name, the change as `BASE | old text | new text`, and the message without the
name of the file, which may continue in the next lines.
"""

from __future__ import annotations

from typing import Any

import pytest

from scd_pipeline.declaration import parse
from scd_pipeline.declaration.names import COLUMN_NAME_RULE
from scd_pipeline.declaration.yaml import options
from scd_pipeline.errors import DeclarationError

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
BASES = {"SNAPSHOT": SNAPSHOT, "FEED": FEED, "TWO": TWO, "FLAT": FLAT}
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
    "<nothing>": "",
    "<5000 digits>": "9" * 5000,
    "<a late beginning>": "begin: {at: 9999-12-31 23:59:59, for_first_changes_until: 9999-12-31 23:59:59}",
}


def cases(table: str) -> list[Any]:
    """The cases of a table, as parameters `text` and `message`."""
    return [_case(*block.split("\n", 2)) for block in table.strip().split("\n\n")]


def _case(name: str, change: str, message: str) -> Any:
    base, old, new = (_plain(part) for part in change.split(" | "))
    assert BASES[base].count(old) == 1, name
    text = BASES[base].replace(old, new)
    return pytest.param(text, f"c.yaml:{_plain(' '.join(message.splitlines()))}", id=name.removeprefix("# "))


def _plain(part: str) -> str:
    for short, long in SHORT.items():
        part = part.replace(short, long)
    for escape, character in (("\\\\", "\1"), ("\\n", "\n"), ("\\0", "\0"), ("\1", "\\")):
        part = part.replace(escape, character)
    return part


def error_text(text: str) -> str:
    """Return the message of the text's faults."""
    with pytest.raises(DeclarationError) as caught:
        parse(text, "c.yaml")
    return str(caught.value)


@pytest.mark.parametrize("text", [SNAPSHOT, FEED, TWO, FLAT])
def test_the_bases_have_no_fault(text: str) -> None:
    assert len(parse(text)) == 1


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "1: syntax: nothing is declared; begin with `dimension: <name>`"),
        ("# later\n", "1: syntax: nothing is declared; begin with `dimension: <name>`"),
        (
            "- dim_customer\n",
            "1: dimension: is a list; expected a declaration; begin with `dimension: <name>`",
        ),
        ("[" * 3000, "1: syntax: the text is nested too deep; write it as the documentation shows"),
        (
            f"{SNAPSHOT}---\n{FLAT}---\n{SNAPSHOT}",
            "18: dimension: dim_customer is declared at c.yaml:1 already; choose another name",
        ),
    ],
)
def test_whole_texts(text: str, message: str) -> None:
    assert error_text(text) == f"c.yaml:{message}"


def test_an_alias_within_itself_is_a_fault() -> None:
    first = "c.yaml:8: dimension: an alias refers to its own anchor; write the part out"
    assert error_text(SNAPSHOT.replace("email: 1", "email: &one {scd: *one}")).splitlines()[0] == first


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
