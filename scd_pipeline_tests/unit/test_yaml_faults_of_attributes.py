"""Faults of attributes in YAML."""

from __future__ import annotations

import pytest

from scd_pipeline_tests.unit.test_yaml_faults import cases, error_text

TABLE = r"""
# key is attribute
SNAPSHOT | email: 1 | customer_id: 1
8: attributes.customer_id: is in the business key too; a business key is not an attribute: remove it here
or there

# personal attribute is key
SNAPSHOT | email: 1 | customer_id: {scd: 1, personal: true}
8: attributes.customer_id: is personal and in the business key; a key remains after an erasure: choose a key
that is not personal, or remove `personal`

# attribute name underscore
SNAPSHOT | email: | _email:
8: attributes._email: '_email' cannot be a name; <a name's rule>

# attribute name character
SNAPSHOT | email: | a;b:
8: attributes.a;b: 'a;b' cannot be a name; <a name's rule>

# attribute name with a dot
SNAPSHOT | email: | a.b:
8: attributes.a.b: 'a.b' cannot be a name; <a name's rule>

# attribute name with a space
SNAPSHOT | email: | a b:
8: attributes.a b: 'a b' cannot be a name; <a name's rule>

# attribute twice by case
SNAPSHOT | email: 1 | City: 1
9: attributes.city: column city is attribute City; choose another name

# technical column
SNAPSHOT | email: 1 | Version: 1
8: attributes.Version: column Version is a column that every dimension has; choose another name

# generated clash
SNAPSHOT | email: 1\n  city: 2 | previous_city: 1\n  city: 3
9: attributes.city: column previous_city is attribute previous_city; choose another name

# type 3 clash
FLAT | name: 1 | {name: 3, name_changed_at: 1}
6: attributes.name: column name_changed_at is attribute name_changed_at; choose another name

# type 6 clash
FLAT | name: 1 | {name: 6, current_name: 1}
6: attributes.name: column current_name is attribute current_name; choose another name

# type 6 previous clash
FLAT | name: 1 | {name: {scd: 6, previous: true}, previous_name: 1}
6: attributes.name: column previous_name is attribute previous_name; choose another name

# type 4
SNAPSHOT | city: 2 | city: 4
9: attributes.city.scd: type 4 is the layout of a table (closed versions in a table of their own), not an
SCD type of an attribute; write 2 for an attribute that opens versions

# type 5
SNAPSHOT | city: 2 | city: 5
9: attributes.city.scd: type 5 is not supported; write 6 for an attribute with its historical and its latest value
in every version

# type 7
SNAPSHOT | city: 2 | city: {scd: 7}
9: attributes.city.scd: type 7 is a query of a table as of a time, not an SCD type
of an attribute; write 2 or 6, and query the dimension as of a time

# type 9
SNAPSHOT | city: 2 | city: 9
9: attributes.city.scd: 9 is not an SCD type; write 0, 1, 2, 3 or 6

# type text
SNAPSHOT | city: 2 | city: two
9: attributes.city.scd: 'two' is not an SCD type; write 0, 1, 2, 3 or 6

# type true
SNAPSHOT | city: 2 | city: yes
9: attributes.city.scd: True is not an SCD type; write 0, 1, 2, 3 or 6

# scd missing
SNAPSHOT | city: 2 | city: {type: string}
9: attributes.city.scd: is missing; write 0, 1, 2, 3 or 6

# column type unknown
SNAPSHOT | type: date | type: dat
7: attributes.birthday.type: 'dat' is not a type; did you mean date? allowed: <the types>

# column type variant
SNAPSHOT | type: date | type: array<variant>
7: attributes.birthday.type: type variant cannot be the type of a column here; store it as string, or as a
struct of the parts you compare

# column type interval
SNAPSHOT | type: date | type: interval day
7: attributes.birthday.type: type interval cannot be the type of a column here; store it as a bigint of
its smallest unit

# column type geometry
SNAPSHOT | type: date | type: geometry(4326)
7: attributes.birthday.type: type geometry cannot be the type of a column here; store it as string (WKT)
or binary (WKB)

# column type void
SNAPSHOT | type: date | type: void
7: attributes.birthday.type: type void cannot be the type of a column here; give the type that the values
have

# column type varchar
SNAPSHOT | type: date | type: varchar(10)
7: attributes.birthday.type: type varchar cannot be the type of a column here; write string

# column type decimal
SNAPSHOT | type: date | type: 'decimal(40,2)'
7: attributes.birthday.type: decimal(40,2) is out of range; precision is 1 to 38, and scale is 0 to
precision

# column type unclosed
SNAPSHOT | type: date | type: array<int
7: attributes.birthday.type: 'array<int' is not a type; write array<type>, such as array<string>

# column type trailing
SNAPSHOT | type: date | type: int not null
7: attributes.birthday.type: 'int not null' has text after the type; remove 'not null'

# flag as text
SNAPSHOT | type: date | retired: 'yes'
7: attributes.birthday.retired: 'yes' is not true or false; write true or false

# previous
SNAPSHOT | city: 2 | city: {scd: 2, previous: true}
9: attributes.city.previous: type 2 does not allow `previous`; write scd: 6, or remove it (type 3 always has its
previous value)

# retired but not missing
SNAPSHOT | city: 2 | city: {scd: 2, retired: true, missing: not_provided}
9: attributes.city.missing: a retired attribute is no longer read; remove either `missing` or `retired`

# retired bad value
SNAPSHOT | city: 2 | city: {scd: 2, retired: true, on_bad_value: null}
9: attributes.city.on_bad_value: a retired attribute is no longer read; remove either `on_bad_value` or `retired`

# required and NULL where missing
SNAPSHOT | city: 2 | city: {scd: 2, required: true, missing: null}
9: attributes.city.missing: a required attribute cannot become NULL; remove either `missing` or `required`

# required and NULL where bad
SNAPSHOT | city: 2 | city: {scd: 2, required: true, on_bad_value: null}
9: attributes.city.on_bad_value: a required attribute cannot become NULL; remove either `on_bad_value` or `required`

# missing with an unknown choice
SNAPSHOT | city: 2 | city: {scd: 2, missing: not_there}
9: attributes.city.missing: 'not_there' is not allowed; allowed: reject, not_provided, null

# missing without a choice
SNAPSHOT | city: 2 | city: {scd: 2, missing: }
9: attributes.city.missing: has no value; write one of its choices, or remove the option

# missing as a flag
SNAPSHOT | city: 2 | city: {scd: 2, missing: true}
9: attributes.city.missing: 'true' is not one of its choices; write one of its choices

# on_bad_value with an unknown choice
SNAPSHOT | city: 2 | city: {scd: 2, on_bad_value: NULL!}
9: attributes.city.on_bad_value: 'NULL!' is not allowed; allowed: quarantine, null

# optional
SNAPSHOT | city: 2 | city: {scd: 2, optional: true}
9: attributes.city.optional: 'optional' is not an option here; did you mean `missing: not_provided`?

# former name own
SNAPSHOT | city: 2 | city: {scd: 2, former_names: city}
9: attributes.city.former_names: city is attribute city; name only columns
that no longer exist

# former name other
SNAPSHOT | city: 2 | city: {scd: 2, former_names: [town, email]}
9: attributes.city.former_names: email is attribute email; name only columns that no longer exist

# former name key
SNAPSHOT | city: 2 | city: {scd: 2, former_names: customer_id}
9: attributes.city.former_names: customer_id is in the business key as customer_id; name only
columns that no longer exist

# former name shared
SNAPSHOT | email: 1\n  city: 2 | email: {scd: 1, former_names: town}\n  city: {scd: 2, former_names: Town}
9: attributes.city.former_names: Town is a former name of email too; leave it with one of them

# former name twice
SNAPSHOT | city: 2 | city: {scd: 2, former_names: [town, town]}
9: attributes.city.former_names: names town twice; name it once

# former name bad
SNAPSHOT | city: 2 | city: {scd: 2, former_names: 'a,b'}
9: attributes.city.former_names: 'a,b' cannot be a name; <a name's rule>

# former name empty
SNAPSHOT | city: 2 | city: {scd: 2, former_names: ''}
9: attributes.city.former_names: is empty; give a name or a list of names, or omit it

# owner none
TWO | {scd: 2, source: crm} | 2
11: attributes.city: has no source; write `source:` with one of crm, web

# owner unknown
TWO | source: crm | source: cmr
11: attributes.city.source: 'cmr' is not a source of this dimension; did you mean crm? allowed: crm, web

# owner two
TWO |     feed: |     attributes: [city, email]\n    feed:
12: attributes.city: is provided by crm and web; leave it with one source
"""


@pytest.mark.parametrize(("text", "message"), cases(TABLE))
def test_fault(text: str, message: str) -> None:
    assert error_text(text) == message
