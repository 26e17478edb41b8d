"""Faults of the text itself: syntax, options, and values of another type."""

from __future__ import annotations

import pytest

from scd_pipeline_tests.unit.test_yaml_faults import cases, error_text

TABLE = r"""
# table name unquoted
SNAPSHOT | dim_customer | 2024
1: dimension: 2024 is read as a number, not as text; put it in quotes: "2024"

# null business key
SNAPSHOT |  customer_id | <nothing>
2: business_key: has no value; add a value, or remove the option

# key name boolean
SNAPSHOT | customer_id | [no]
2: business_key: no is read as true or false, not as text; put it in quotes: "no"

# attributes null
FLAT | \n  name: 1\n | \n
5: attributes: has no value; add a value, or remove the option

# attributes is list
FLAT | \n  name: 1\n |  [name]\n
5: attributes: is a list; expected names with values; write `name: value`

# attribute name boolean
SNAPSHOT | email: | no:
8: attributes.no: no is read as true or false, not as a name; put it in quotes: "no"

# attribute name number
SNAPSHOT | email: | 1:
8: attributes.1: 1 is read as a number, not as a name; put it in quotes: "1"

# attribute name date
SNAPSHOT | email: | 2024-01-01:
8: attributes.2024-01-01: 2024-01-01 is read as a date or time, not as a name; put it in quotes:
"2024-01-01"

# attribute name null
SNAPSHOT | email: | null:
8: attributes.null: null is read as nothing, not as a name; put it in quotes: "null"

# attribute name missing
SNAPSHOT | email: | :
8: syntax: expected <block end>, but found ':'; see the indentation, quotes and brackets here and just
before

# attribute name list
SNAPSHOT | email: | [a]:
8: attributes: is a list; expected a name; write `name: value`

# attribute name merge
SNAPSHOT | email: 1 | <<: {a: 1}
8: attributes: `<<` is not supported; write the options out

# attribute twice
SNAPSHOT | email: 1 | city: 1
9: attributes.city: occurs twice (line 8 has it too); remove one

# type huge
SNAPSHOT | city: 2 | city: <5000 digits>
9: attributes.city: '99999999999999999999999999999999999999999999999999999999999... looks like a number,
but cannot be read as such; put it in quotes if it is text

# type null
SNAPSHOT | city: 2 | city:
9: attributes.city: has no value; write text, a number, or true or false, or remove the option

# type list
SNAPSHOT | city: 2 | city: [2]
9: attributes.city: is a list; expected text, a number, or true or false; write text, a
number, or true or false

# unknown attribute option
SNAPSHOT | scd: 0, type | scd: 0, typ
7: attributes.birthday.typ: 'typ' is not an option here; did you mean type? allowed: <an
attribute's options>

# unknown attribute option without a hint
SNAPSHOT | scd: 0, type | scd: 0, colour
7: attributes.birthday.colour: 'colour' is not an option here; allowed: <an attribute's options>

# column type number
SNAPSHOT | type: date | type: 5
7: attributes.birthday.type: 5 is read as a number, not as text; put it in quotes: "5"

# former name number
SNAPSHOT | city: 2 | city: {scd: 2, former_names: [3]}
9: attributes.city.former_names: 3 is read as a number, not as text; put it in quotes: "3"

# former name mapping
SNAPSHOT | city: 2 | city: {scd: 2, former_names: {a: b}}
9: attributes.city.former_names: is a mapping; expected a name or a list of names; write a
name or a list of names

# source as text
FLAT | {snapshot: "landing/{date}.csv"} | landing
4: sources.iso: is one value; expected names with values; write `name: value`

# source name number
FLAT | iso | 3166
4: sources.3166: 3166 is read as a number, not as a name; put it in quotes: "3166"

# null snapshot
SNAPSHOT |  landing/customers_{date}.csv | <nothing>
5: sources.crm.snapshot: has no value; write `{}` to pass frames, or remove the option

# unknown source option
SNAPSHOT |     snapshot: |     retire_gard: 0.1\n    snapshot:
5: sources.crm.retire_gard: 'retire_gard' is not an option here; did you mean retire_guard?
allowed: <a source's options>

# unknown option
SNAPSHOT | business_key: customer_id | busines_key: customer_id\nbusiness_key: customer_id
2: busines_key: 'busines_key' is not an option here; did you mean business_key? allowed: <a
dimension's options>

# column unknown option
SNAPSHOT |     snapshot: |     columns: {birthday: {form: dd.MM.yyyy}}\n    snapshot:
5: sources.crm.columns.birthday.form: 'form' is not an option here; did you mean format? allowed:
from, format, unit, round, expression, default

# column number
SNAPSHOT |     snapshot: |     columns: {city: 3}\n    snapshot:
5: sources.crm.columns.city: 3 is read as a number, not as a name or a list of names; put it in quotes: "3"

# default mapping
SNAPSHOT |     snapshot: |     columns: {city: {default: {a: b}}}\n    snapshot:
5: sources.crm.columns.city.default: is a mapping; expected text, a number, or true or false;
write text, a number, or true or false

# options boolean
SNAPSHOT | landing/customers_{date}.csv | {path: "a_{date}.csv", options: {header: true}}
5: sources.crm.snapshot.options.header: true is read as true or false, not as text; put it in quotes:
"true"

# options text
SNAPSHOT | landing/customers_{date}.csv | {path: "a_{date}.csv", options: header}
5: sources.crm.snapshot.options: is one value; expected names with values; write `name:
value`

# effective_at null
FEED | {delivery}.json\n      effective_at: changed_at | {date}.json\n      effective_at:
7: sources.crm.feed.effective_at: has no value; write text, or remove the option

# scope of feed
FEED |       effective_at |       scope: region\n      effective_at
7: sources.crm.feed.scope: 'scope' is not an option here; allowed: <a feed's options>

# open end number
SNAPSHOT | attributes: | open_end: 9999\nattributes:
6: open_end: 9999 is read as a number, not as a time; write a UTC time such as 2024-01-31 or 2024-01-31
23:59:59

# begin text
SNAPSHOT | attributes: | begin: 2020-01-01\nattributes:
6: begin: is one value; expected names with values; write `name: value`

# owner number
SNAPSHOT | attributes: | owner: 7\nattributes:
6: owner: 7 is read as a number, not as text; put it in quotes: "7"

# owner list
SNAPSHOT | attributes: | owner: [a, b]\nattributes:
6: owner: is a list; expected text; write text

# key salt
SNAPSHOT | attributes: | key_salt: 1\nattributes:
6: key_salt: 1 is read as a number, not as text; put it in quotes: "1"

# tag
SNAPSHOT | customer_id | !secret customer_id
2: business_key: tag '!secret' is not supported; remove the tag

# tag on mapping
SNAPSHOT | attributes: | attributes: !!omap
6: attributes: tag 'tag:yaml.org,2002:omap' is not supported; remove the tag

# bad tagged number
SNAPSHOT | city: 2 | city: !!int two
9: attributes.city: 'two' looks like a number, but cannot be read as such; put it in quotes if it is text

# syntax tab
SNAPSHOT |   city: 2 | 	city: 2
9: syntax: found character '\t' that cannot start any token; indent with spaces

# syntax braces
FLAT | "landing/{date}.csv" | landing/{date}.csv
4: syntax: expected ',' or '}', but got '{'; put a text with braces in quotes

# syntax quote
SNAPSHOT | email: 1 | email: 'one
10: syntax: found unexpected end of stream; see the indentation, quotes and brackets here and just before

# syntax control
SNAPSHOT | email: 1 | email: \0
8: syntax: character U+0000 is not allowed; remove it

# syntax alias
SNAPSHOT | email: 1 | email: *one
8: syntax: found undefined alias 'one'; name an anchor that is defined before it

# syntax escape
SNAPSHOT | email: 1 | email: "\\UFFFFFFFF"
1: syntax: the text is not YAML (OverflowError); write it as the documentation shows
"""


@pytest.mark.parametrize(("text", "message"), cases(TABLE))
def test_fault(text: str, message: str) -> None:
    assert error_text(text) == message
