"""Faults of attributes in YAML."""

from __future__ import annotations

import pytest

from scd_pipeline.declaration import parse
from scd_pipeline_tests.unit.test_yaml_faults import LocatedCode, cases, located_codes

TABLE = r"""
# previous choice
SNAPSHOT | city: 2 | city: {scd: 6, previous: last_value}
9 | attributes.city.previous | NOT_ALLOWED

# previous as text
SNAPSHOT | city: 2 | city: {scd: 6, previous: "false"}
9 | attributes.city.previous | NOT_ALLOWED

# untracked choice
SNAPSHOT | email: 1 | email: {scd: 1, untracked: latest}
8 | attributes.email.untracked | NOT_ALLOWED

# untracked type
SNAPSHOT | city: 2 | city: {scd: 2, untracked: at_open}
9 | attributes.city.untracked | NOT_APPLICABLE

# untracked without windows
FLAT | name: 1 | name: {scd: 1, untracked: at_open}
6 | attributes.name.untracked | NOT_APPLICABLE

# key is attribute
SNAPSHOT | email: 1 | customer_id: 1
8 | attributes.customer_id | NAME_IN_USE

# personal attribute is key
SNAPSHOT | email: 1 | customer_id: {scd: 1, personal: true}
8 | attributes.customer_id | PERSONAL_KEY

# attribute name underscore
SNAPSHOT | email: | _email:
8 | attributes._email | INVALID_NAME

# attribute name character
SNAPSHOT | email: | a;b:
8 | attributes.a;b | INVALID_NAME

# attribute name with a dot
SNAPSHOT | email: | a.b:
8 | attributes.a.b | INVALID_NAME

# attribute name with a space
SNAPSHOT | email: | a b:
8 | attributes.a b | INVALID_NAME

# attribute twice by case
SNAPSHOT | email: 1 | City: 1
9 | attributes.city | NAME_IN_USE

# technical column
SNAPSHOT | email: 1 | Version: 1
8 | attributes.Version | NAME_IN_USE

# generated clash
SNAPSHOT | email: 1\n  city: 2 | previous_city: 1\n  city: 3
9 | attributes.city | NAME_IN_USE

# type 3 clash
FLAT | name: 1 | {name: 3, name_changed_at: 1}
6 | attributes.name | NAME_IN_USE

# type 6 clash
FLAT | name: 1 | {name: 6, current_name: 1}
6 | attributes.name | NAME_IN_USE

# type 6 previous clash
FLAT | name: 1 | {name: {scd: 6, previous: true}, previous_name: 1}
6 | attributes.name | NAME_IN_USE

# type 4
SNAPSHOT | city: 2 | city: 4
9 | attributes.city.scd | INVALID_SCD_TYPE

# type 5
SNAPSHOT | city: 2 | city: 5
9 | attributes.city.scd | INVALID_SCD_TYPE

# type 7
SNAPSHOT | city: 2 | city: {scd: 7}
9 | attributes.city.scd | INVALID_SCD_TYPE

# type 9
SNAPSHOT | city: 2 | city: 9
9 | attributes.city.scd | INVALID_SCD_TYPE

# type text
SNAPSHOT | city: 2 | city: two
9 | attributes.city.scd | INVALID_SCD_TYPE

# type true
SNAPSHOT | city: 2 | city: yes
9 | attributes.city.scd | INVALID_SCD_TYPE

# scd missing
SNAPSHOT | city: 2 | city: {type: string}
9 | attributes.city.scd | MISSING_VALUE

# column type unknown
SNAPSHOT | type: date | type: dat
7 | attributes.birthday.type | INVALID_TYPE

# column type of another system
SNAPSHOT | type: date | type: datetime
7 | attributes.birthday.type | INVALID_TYPE

# column type in a type
SNAPSHOT | type: date | type: array<str>
7 | attributes.birthday.type | INVALID_TYPE

# column type cut off at its comma
SNAPSHOT | type: date | type: decimal(20,12)
7 | attributes.birthday.type | UNQUOTED_TEXT

# nested column type cut off at its comma
SNAPSHOT | scd: 0, type: date | type: struct<a:int,b:map<int,int>>, scd: 0
7 | attributes.birthday.type | UNQUOTED_TEXT

# column type variant
SNAPSHOT | type: date | type: array<variant>
7 | attributes.birthday.type | INVALID_TYPE

# column type interval
SNAPSHOT | type: date | type: interval day
7 | attributes.birthday.type | INVALID_TYPE

# column type geometry
SNAPSHOT | type: date | type: geometry(4326)
7 | attributes.birthday.type | INVALID_TYPE

# column type void
SNAPSHOT | type: date | type: void
7 | attributes.birthday.type | INVALID_TYPE

# column type varchar
SNAPSHOT | type: date | type: varchar(10)
7 | attributes.birthday.type | INVALID_TYPE

# column type decimal
SNAPSHOT | type: date | type: 'decimal(40,2)'
7 | attributes.birthday.type | INVALID_TYPE

# column type unclosed
SNAPSHOT | type: date | type: array<int
7 | attributes.birthday.type | INVALID_TYPE

# column type trailing
SNAPSHOT | type: date | type: int not null
7 | attributes.birthday.type | INVALID_TYPE

# flag as text
SNAPSHOT | type: date | retired: 'yes'
7 | attributes.birthday.retired | INVALID_KIND

# previous
SNAPSHOT | city: 2 | city: {scd: 2, previous: true}
9 | attributes.city.previous | NOT_APPLICABLE

# retired but not missing
SNAPSHOT | city: 2 | city: {scd: 2, retired: true, missing: not_provided}
9 | attributes.city.missing | CONFLICTING_OPTIONS

# retired bad value
SNAPSHOT | city: 2 | city: {scd: 2, retired: true, on_bad_value: null}
9 | attributes.city.on_bad_value | CONFLICTING_OPTIONS

# required and NULL where missing
SNAPSHOT | city: 2 | city: {scd: 2, required: true, missing: null}
9 | attributes.city.missing | CONFLICTING_OPTIONS

# required and NULL where bad
SNAPSHOT | city: 2 | city: {scd: 2, required: true, on_bad_value: null}
9 | attributes.city.on_bad_value | CONFLICTING_OPTIONS

# missing with an unknown choice
SNAPSHOT | city: 2 | city: {scd: 2, missing: not_there}
9 | attributes.city.missing | NOT_ALLOWED

# missing without a choice
SNAPSHOT | city: 2 | city: {scd: 2, missing: }
9 | attributes.city.missing | MISSING_VALUE

# missing as a flag
SNAPSHOT | city: 2 | city: {scd: 2, missing: true}
9 | attributes.city.missing | INVALID_KIND

# on_bad_value with an unknown choice
SNAPSHOT | city: 2 | city: {scd: 2, on_bad_value: NULL!}
9 | attributes.city.on_bad_value | NOT_ALLOWED

# optional
SNAPSHOT | city: 2 | city: {scd: 2, optional: true}
9 | attributes.city.optional | UNKNOWN_OPTION

# former name own
SNAPSHOT | city: 2 | city: {scd: 2, former_names: city}
9 | attributes.city.former_names | NAME_IN_USE

# former name other
SNAPSHOT | city: 2 | city: {scd: 2, former_names: [town, email]}
9 | attributes.city.former_names | NAME_IN_USE

# former name key
SNAPSHOT | city: 2 | city: {scd: 2, former_names: customer_id}
9 | attributes.city.former_names | NAME_IN_USE

# former name shared
SNAPSHOT | email: 1\n  city: 2 | email: {scd: 1, former_names: town}\n  city: {scd: 2, former_names: Town}
9 | attributes.city.former_names | NAME_IN_USE

# former name of a generated column
SNAPSHOT | email: 1\n  city: 2 | previous_town: 1\n  city: {scd: 3, former_names: town}
9 | attributes.city.former_names | NAME_IN_USE

# former name twice
SNAPSHOT | city: 2 | city: {scd: 2, former_names: [town, town]}
9 | attributes.city.former_names | NAMED_TWICE

# former name bad
SNAPSHOT | city: 2 | city: {scd: 2, former_names: 'a,b'}
9 | attributes.city.former_names | INVALID_NAME

# former name empty
SNAPSHOT | city: 2 | city: {scd: 2, former_names: ''}
9 | attributes.city.former_names | MISSING_VALUE

# owner none
TWO | {scd: 2, source: crm} | 2
11 | attributes.city | ATTRIBUTE_SOURCE

# owner unknown
TWO | source: crm | source: cmr
11 | attributes.city.source | UNKNOWN_NAME

# owner two
TWO |     feed: |     attributes: [city, email]\n    feed:
12 | attributes.city | ATTRIBUTE_SOURCE
"""


@pytest.mark.parametrize(("text", "error"), cases(TABLE))
def test_fault(text: str, error: LocatedCode) -> None:
    assert located_codes(lambda: parse(text, "c.yaml")) == [error]
