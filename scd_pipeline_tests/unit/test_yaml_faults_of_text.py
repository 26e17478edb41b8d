"""Faults of the text itself: syntax, options, and values of another type."""

from __future__ import annotations

import pytest

from scd_pipeline.declaration import parse
from scd_pipeline_tests.unit.test_yaml_faults import LocatedCode, cases, located_codes

TABLE = r"""
# table name unquoted
SNAPSHOT | dim_customer | 2024
1 | dimension | UNQUOTED_TEXT

# null business key
SNAPSHOT |  customer_id | <nothing>
2 | business_key | MISSING_VALUE

# key name boolean
SNAPSHOT | customer_id | [no]
2 | business_key | UNQUOTED_TEXT

# attributes null
FLAT | \n  name: 1\n | \n
5 | attributes | MISSING_VALUE

# attributes is list
FLAT | \n  name: 1\n |  [name]\n
5 | attributes | INVALID_KIND

# attribute name boolean
SNAPSHOT | email: | no:
8 | attributes.no | UNQUOTED_TEXT

# attribute name number
SNAPSHOT | email: | 1:
8 | attributes.1 | UNQUOTED_TEXT

# attribute name date
SNAPSHOT | email: | 2024-01-01:
8 | attributes.2024-01-01 | UNQUOTED_TEXT

# attribute name null
SNAPSHOT | email: | null:
8 | attributes.null | UNQUOTED_TEXT

# attribute name missing
SNAPSHOT | email: | :
8 | syntax | SYNTAX

# attribute name list
SNAPSHOT | email: | [a]:
8 | attributes | INVALID_KIND

# attribute name merge
SNAPSHOT | email: 1 | <<: {a: 1}
8 | attributes | UNSUPPORTED_YAML

# attribute twice
SNAPSHOT | email: 1 | city: 1
9 | attributes.city | NAMED_TWICE

# type huge
SNAPSHOT | city: 2 | city: <5000 digits>
9 | attributes.city | UNQUOTED_TEXT

# type null
SNAPSHOT | city: 2 | city:
9 | attributes.city | MISSING_VALUE

# type list
SNAPSHOT | city: 2 | city: [2]
9 | attributes.city | INVALID_KIND

# unknown attribute option
SNAPSHOT | scd: 0, type | scd: 0, typ
7 | attributes.birthday.typ | UNKNOWN_OPTION

# unknown attribute option without a hint
SNAPSHOT | scd: 0, type | scd: 0, colour
7 | attributes.birthday.colour | UNKNOWN_OPTION

# column type number
SNAPSHOT | type: date | type: 5
7 | attributes.birthday.type | UNQUOTED_TEXT

# former name number
SNAPSHOT | city: 2 | city: {scd: 2, former_names: [3]}
9 | attributes.city.former_names | UNQUOTED_TEXT

# former name mapping
SNAPSHOT | city: 2 | city: {scd: 2, former_names: {a: b}}
9 | attributes.city.former_names | INVALID_KIND

# source as text
FLAT | {snapshot: "landing/{date}.csv"} | landing
4 | sources.iso | INVALID_KIND

# source name number
FLAT | iso | 3166
4 | sources.3166 | UNQUOTED_TEXT

# null snapshot
SNAPSHOT |  landing/customers_{date}.csv | <nothing>
5 | sources.crm.snapshot | MISSING_VALUE

# unknown source option
SNAPSHOT |     snapshot: |     retire_gard: 0.1\n    snapshot:
5 | sources.crm.retire_gard | UNKNOWN_OPTION

# unknown option
SNAPSHOT | business_key: customer_id | busines_key: customer_id\nbusiness_key: customer_id
2 | busines_key | UNKNOWN_OPTION

# column unknown option
SNAPSHOT |     snapshot: |     columns: {birthday: {form: dd.MM.yyyy}}\n    snapshot:
5 | sources.crm.columns.birthday.form | UNKNOWN_OPTION

# column number
SNAPSHOT |     snapshot: |     columns: {city: 3}\n    snapshot:
5 | sources.crm.columns.city | UNQUOTED_TEXT

# default mapping
SNAPSHOT |     snapshot: |     columns: {city: {default: {a: b}}}\n    snapshot:
5 | sources.crm.columns.city.default | INVALID_KIND

# options boolean
SNAPSHOT | landing/customers_{date}.csv | {path: "a_{date}.csv", options: {header: true}}
5 | sources.crm.snapshot.options.header | UNQUOTED_TEXT

# options text
SNAPSHOT | landing/customers_{date}.csv | {path: "a_{date}.csv", options: header}
5 | sources.crm.snapshot.options | INVALID_KIND

# effective_at null
FEED | {delivery}.json\n      effective_at: changed_at | {date}.json\n      effective_at:
7 | sources.crm.feed.effective_at | MISSING_VALUE

# scope of feed
FEED |       effective_at |       scope: region\n      effective_at
7 | sources.crm.feed.scope | UNKNOWN_OPTION

# open end number
SNAPSHOT | attributes: | open_end: 9999\nattributes:
6 | open_end | UNQUOTED_TEXT

# begin text
SNAPSHOT | attributes: | begin: 2020-01-01\nattributes:
6 | begin | INVALID_KIND

# owner number
SNAPSHOT | attributes: | owner: 7\nattributes:
6 | owner | UNQUOTED_TEXT

# owner list
SNAPSHOT | attributes: | owner: [a, b]\nattributes:
6 | owner | INVALID_KIND

# key salt
SNAPSHOT | attributes: | key_salt: 1\nattributes:
6 | key_salt | UNQUOTED_TEXT

# tag
SNAPSHOT | customer_id | !secret customer_id
2 | business_key | UNSUPPORTED_YAML

# tag on mapping
SNAPSHOT | attributes: | attributes: !!omap
6 | attributes | UNSUPPORTED_YAML

# bad tagged number
SNAPSHOT | city: 2 | city: !!int two
9 | attributes.city | UNQUOTED_TEXT

# syntax tab
SNAPSHOT |   city: 2 | 	city: 2
9 | syntax | SYNTAX

# syntax braces
FLAT | "landing/{date}.csv" | landing/{date}.csv
4 | syntax | SYNTAX

# syntax quote
SNAPSHOT | email: 1 | email: 'one
10 | syntax | SYNTAX

# syntax control
SNAPSHOT | email: 1 | email: \0
8 | syntax | SYNTAX

# syntax alias
SNAPSHOT | email: 1 | email: *one
8 | syntax | SYNTAX

# syntax escape
SNAPSHOT | email: 1 | email: "\\UFFFFFFFF"
1 | syntax | SYNTAX
"""


@pytest.mark.parametrize(("text", "error"), cases(TABLE))
def test_fault(text: str, error: LocatedCode) -> None:
    assert located_codes(lambda: parse(text, "c.yaml")) == [error]
