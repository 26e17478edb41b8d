"""Faults of a dimension's own options in YAML."""

from __future__ import annotations

import pytest

from scd_pipeline_tests.unit.test_yaml_faults import cases, error_text

TABLE = r"""
# no dimension
SNAPSHOT | dimension: dim_customer\n | <nothing>
1: dimension: is missing; give the table's name, such as dim_customer

# table name
SNAPSHOT | dim_customer | dim-customer
1: dimension: 'dim-customer' cannot be the name of a table; write letters, digits and `_`, beginning with
a letter, and not ending with _changes, _audit or _keys

# table name with a reserved suffix
SNAPSHOT | dim_customer | dim_customer_audit
1: dimension: 'dim_customer_audit' cannot be the name of a table; write letters, digits and `_`, beginning with
a letter, and not ending with _changes, _audit or _keys

# surrogate key name
SNAPSHOT | attributes: | surrogate_key: _key\nattributes:
6: surrogate_key: '_key' cannot be a name; <a name's rule>

# surrogate key clash
SNAPSHOT | attributes: | surrogate_key: City\nattributes:
6: surrogate_key: column City is attribute city; choose another name

# no business key
SNAPSHOT | business_key: customer_id\n | <nothing>
1: business_key: is missing; name the columns that identify an entity (`whole_row`, the row itself as the
entity, is not supported yet)

# empty business key
SNAPSHOT | customer_id | []
2: business_key: is missing; name the columns that identify an entity (`whole_row`, the row itself as the
entity, is not supported yet)

# whole_row
SNAPSHOT | customer_id | whole_row
2: business_key: `whole_row`, the row itself as the entity, is not supported yet; name the columns that
identify an entity

# business key twice
SNAPSHOT | customer_id | [customer_id, Customer_ID]
2: business_key: column Customer_ID is in the business key as customer_id; choose another name

# business key named as a column of the audit
SNAPSHOT | customer_id | Actor
2: business_key: column Actor is one of the audit, which also has the business key; choose another name

# business key named as the surrogate key in the audit
SNAPSHOT | customer_id | customer_key_old
2: business_key: column customer_key_old is one of the audit, which also has the business key; choose
another name

# key type
SNAPSHOT | customer_id | {customer_id: array<int>}
2: business_key.customer_id: type array<int> cannot be in a key; write a type without parts, such as string

# key type unknown
SNAPSHOT | customer_id | {customer_id: bigin}
2: business_key.customer_id: 'bigin' is not a type; did you mean bigint? allowed: <the types>

# personal key
SNAPSHOT | customer_id | {customer_id: {type: bigint, personal: true}}
2: business_key.customer_id: a business key cannot be personal; a key remains after an erasure: choose one
that is not personal, and write only its type

# deleted rows
FLAT | attributes: | deleted_rows: drop\nattributes:
5: deleted_rows: 'drop' is not allowed; allowed: keep, remove

# deleted rows windows
SNAPSHOT | attributes: | deleted_rows: remove\nattributes:
6: deleted_rows: a table with attributes of type 2 or 6 closes the version of a deleted entity; remove it:
it is for tables with types 0, 1 and 3 only

# deleted_at windows
SNAPSHOT | attributes: | deleted_at: true\nattributes:
6: deleted_at: a table with attributes of type 2 or 6 closes the version of a deleted entity; remove it:
it is for tables with types 0, 1 and 3 only

# deleted_at removed
FLAT | attributes: | deleted_rows: remove\ndeleted_at: true\nattributes:
6: deleted_at: the rows of deleted entities are removed; write `deleted_rows: keep`, or remove it

# open end
SNAPSHOT | attributes: | open_end: never\nattributes:
6: open_end: 'never' is not a time; write a UTC time such as 2024-01-31 or 2024-01-31 23:59:59

# open end zone
SNAPSHOT | attributes: | open_end: 9999-12-31T00:00:00+02:00\nattributes:
6: open_end: '9999-12-31T00:00:00+02:00' is not a time; write a UTC time such as 2024-01-31 or 2024-01-31
23:59:59

# begin late
SNAPSHOT | attributes: | <a late beginning>\nattributes:
6: begin.at: 9999-12-31 23:59:59 is not before the open end 9999-12-31 23:59:59; give an earlier time

# begin order
SNAPSHOT | attributes: | begin: {at: 2020-01-01, for_first_changes_until: 2019-12-31}\nattributes:
6: begin.for_first_changes_until: 2019-12-31 00:00:00 is before the beginning 2020-01-01 00:00:00; give a
time at or after `at`

# begin without windows
FLAT | attributes: | begin: {at: 2000-01-01, for_first_changes_until: 2020-01-01}\nattributes:
5: begin: without attributes of type 2 or 6 there are no windows: each row begins at 0001-01-01
already; remove it

# begin missing
SNAPSHOT | attributes: | begin: {for_first_changes_until: 2020-01-01}\nattributes:
6: begin.at: is missing; write a UTC time such as 2024-01-31 or 2024-01-31 23:59:59

# begin time
SNAPSHOT | attributes: | begin: {at: 2020-02-30, for_first_changes_until: 2021-01-01}\nattributes:
6: begin.at: '2020-02-30' is not a time; write a UTC time such as 2024-01-31 or 2024-01-31 23:59:59

# group
SNAPSHOT | attributes: | group: sales team\nattributes:
6: group: 'sales team' cannot be a group; write letters, digits and `_`

# surrogates
SNAPSHOT | attributes: | description: "\\ud800"\nattributes:
6: description: has half of a surrogate pair; write whole characters
"""


@pytest.mark.parametrize(("text", "message"), cases(TABLE))
def test_fault(text: str, message: str) -> None:
    assert error_text(text) == message
