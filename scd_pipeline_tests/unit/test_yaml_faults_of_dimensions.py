"""Faults of a dimension's own options in YAML."""

from __future__ import annotations

import pytest

from scd_pipeline.declaration import parse
from scd_pipeline_tests.unit.test_yaml_faults import LocatedCode, cases, located_codes

TABLE = r"""
# no dimension
SNAPSHOT | dimension: dim_customer\n | <nothing>
1 | dimension | MISSING_VALUE

# table name
SNAPSHOT | dim_customer | dim-customer
1 | dimension | INVALID_NAME

# table name with a reserved suffix
SNAPSHOT | dim_customer | dim_customer_audit
1 | dimension | INVALID_NAME

# history of a table name
HISTORY | history_of: rc_product | history_of: rc-product
1 | history_of | INVALID_NAME

# history of a number
HISTORY | history_of: rc_product | history_of: 2024
1 | history_of | UNQUOTED_TEXT

# surrogate key name
SNAPSHOT | attributes: | surrogate_key: _key\nattributes:
6 | surrogate_key | INVALID_NAME

# surrogate key clash
SNAPSHOT | attributes: | surrogate_key: City\nattributes:
6 | surrogate_key | NAME_IN_USE

# no business key
SNAPSHOT | business_key: customer_id\n | <nothing>
1 | business_key | MISSING_VALUE

# empty business key
SNAPSHOT | customer_id | []
2 | business_key | MISSING_VALUE

# whole row as a row version
SNAPSHOT | customer_id | whole_row\nrow_version: true
3 | row_version | NOT_APPLICABLE

# whole row without attributes
HISTORY | rc_product_key\nattributes:\n  price: 2 | whole_row\nattributes: {}
3 | attributes | MISSING_VALUE

# whole row of two sources
TWO | business_key: customer_id | business_key: whole_row
2 | business_key | NOT_APPLICABLE

# whole row in parts
HISTORY | rc_product_key | whole_row\nsources: {shop: {feed: {path: "{date}.json", updates: partial}}}
3 | sources.shop.feed.updates | NOT_APPLICABLE

# whole row with a personal value
HISTORY | rc_product_key\nattributes:\n  price: 2 | whole_row\nattributes:\n  price: {scd: 2, personal: true}
4 | attributes.price | PERSONAL_KEY

# whole row with a hash that a column has
SNAPSHOT | customer_id | whole_row\ncolumn_names: {row_hash: City}
10 | attributes.city | NAME_IN_USE

# whole row with a time of its delivery
HISTORY | rc_product_key | whole_row\nsources: {shop: {feed: {}, columns: {price: {expression: "{{ load_run_id }}"}}}}
3 | sources.shop.columns.price.expression | NOT_APPLICABLE

# row version as text
SNAPSHOT | attributes: | row_version: row_hash\nattributes:
6 | row_version | INVALID_KIND

# business key twice
SNAPSHOT | customer_id | [customer_id, Customer_ID]
2 | business_key | NAME_IN_USE

# business key named as a column of the audit
SNAPSHOT | customer_id | Actor
2 | business_key | NAME_IN_USE

# business key named as the surrogate key in the audit
SNAPSHOT | customer_id | customer_key_old
2 | business_key | NAME_IN_USE

# key type
SNAPSHOT | customer_id | {customer_id: array<int>}
2 | business_key.customer_id | INVALID_TYPE

# key type unknown
SNAPSHOT | customer_id | {customer_id: bigin}
2 | business_key.customer_id | INVALID_TYPE

# personal key
SNAPSHOT | customer_id | {customer_id: {type: bigint, personal: true}}
2 | business_key.customer_id | PERSONAL_KEY

# deleted rows
FLAT | attributes: | deleted_rows: drop\nattributes:
5 | deleted_rows | NOT_ALLOWED

# deleted rows windows
SNAPSHOT | attributes: | deleted_rows: remove\nattributes:
6 | deleted_rows | NOT_APPLICABLE

# single type of several
SNAPSHOT | attributes: | single_scd_type: true\nattributes:
6 | single_scd_type | NOT_APPLICABLE

# rapid change negative
SNAPSHOT | attributes: | rapid_change_limit: -1\nattributes:
6 | rapid_change_limit | OUT_OF_RANGE

# rapid change without windows
FLAT | attributes: | rapid_change_limit: 0.5\nattributes:
5 | rapid_change_limit | NOT_APPLICABLE

# mirror of an unknown SCD type
SNAPSHOT | attributes: | mirror: {scd: 5}\nattributes:
6 | mirror.scd | INVALID_SCD_TYPE

# mirror with a technical key
SNAPSHOT | attributes: | mirror: {technical: [Customer_ID]}\nattributes:
6 | mirror.technical | NAME_IN_USE

# mirror with a technical column twice
SNAPSHOT | attributes: | mirror: {technical: [a, a]}\nattributes:
6 | mirror.technical | NAMED_TWICE

# mirror with an invalid former name
SNAPSHOT | attributes: | mirror: {former_names: {b: _a}}\nattributes:
6 | mirror.former_names.b | INVALID_NAME

# mirror with one former name for two
SNAPSHOT | attributes: | mirror: {former_names: {b: a, c: A}}\nattributes:
6 | mirror.former_names.c | NAME_IN_USE

# mirror of two sources
TWO | attributes: | mirror: {}\nattributes:
9 | mirror | NOT_APPLICABLE

# mirror with an unknown option
SNAPSHOT | attributes: | mirror: {former_name: {b: a}}\nattributes:
6 | mirror.former_name | UNKNOWN_OPTION

# partitioned by date
SNAPSHOT | attributes: | partition_by: birthday\nattributes:
6 | partition_by | UNKNOWN_OPTION

# z_order
SNAPSHOT | attributes: | z_order: sometimes\nattributes:
6 | z_order | NOT_ALLOWED

# deleted rows with versions without windows
FLAT | attributes: | deleted_rows: new_version\nattributes:
5 | deleted_rows | NOT_APPLICABLE

# a name of a column that the table lacks
SNAPSHOT | attributes: | column_names: {is_deleted: gone}\nattributes:
6 | column_names.is_deleted | NOT_APPLICABLE

# deleted_at windows
SNAPSHOT | attributes: | deleted_at: true\nattributes:
6 | deleted_at | NOT_APPLICABLE

# deleted_at removed
FLAT | attributes: | deleted_rows: remove\ndeleted_at: true\nattributes:
6 | deleted_at | CONFLICTING_OPTIONS

# open end
SNAPSHOT | attributes: | open_end: never\nattributes:
6 | open_end | NO_ISO_TIME

# open end zone
SNAPSHOT | attributes: | open_end: 9999-12-31T00:00:00+02:00\nattributes:
6 | open_end | NO_ISO_TIME

# history table without windows
FLAT | attributes: | history_table: true\nattributes:
5 | history_table | NOT_APPLICABLE

# history columns
SNAPSHOT | attributes: | history_table: true\nhistory_columns: some\nattributes:
7 | history_columns | NOT_ALLOWED

# history columns without a history table
SNAPSHOT | attributes: | history_columns: changing\nattributes:
6 | history_columns | NOT_APPLICABLE

# begin late
SNAPSHOT | attributes: | <a late beginning>\nattributes:
6 | begin.at | TIME_ORDER

# begin order
SNAPSHOT | attributes: | begin: {at: 2020-01-01, for_first_changes_until: 2019-12-31}\nattributes:
6 | begin.for_first_changes_until | TIME_ORDER

# begin without windows
FLAT | attributes: | begin: {at: 2000-01-01, for_first_changes_until: 2020-01-01}\nattributes:
5 | begin | NOT_APPLICABLE

# begin missing
SNAPSHOT | attributes: | begin: {for_first_changes_until: 2020-01-01}\nattributes:
6 | begin.at | MISSING_VALUE

# begin at a time and at a column
SNAPSHOT | attributes: | begin: {at: 2020-01-01, column: born}\nattributes:\n  born: {scd: 0, type: date}
6 | begin | CONFLICTING_OPTIONS

# begin at an unknown column
SNAPSHOT | attributes: | begin: {column: borne}\nattributes:\n  born: {scd: 0, type: date}
6 | begin.column | UNKNOWN_NAME

# begin at a text
SNAPSHOT | attributes: | begin: {column: born}\nattributes:\n  born: {scd: 0}
6 | begin.column | INVALID_TYPE

# begin at a personal column
SNAPSHOT | attributes: | begin: {column: born}\nattributes:\n  born: {scd: 0, type: date, personal: true}
6 | begin.column | PERSONAL_BEGIN

# begin time
SNAPSHOT | attributes: | begin: {at: 2020-02-30, for_first_changes_until: 2021-01-01}\nattributes:
6 | begin.at | NO_ISO_TIME

# group
SNAPSHOT | attributes: | group: sales team\nattributes:
6 | group | INVALID_NAME

# sign-off of an unknown role
SNAPSHOT | attributes: | sign_offs: {finance: {by: Ann, date: 2024-01-31}}\nattributes:
6 | sign_offs.finance | UNKNOWN_OPTION

# sign-off as text
SNAPSHOT | attributes: | sign_offs: {business: Ann}\nattributes:
6 | sign_offs.business | INVALID_KIND

# sign-off without a name
SNAPSHOT | attributes: | sign_offs: {business: {date: 2024-01-31}}\nattributes:
6 | sign_offs.business.by | MISSING_VALUE

# sign-off without a date
SNAPSHOT | attributes: | sign_offs: {business: {by: Ann}}\nattributes:
6 | sign_offs.business.date | MISSING_VALUE

# sign-off at a time of day
SNAPSHOT | attributes: | sign_offs: {business: {by: Ann, date: 2024-01-31 12:00:00}}\nattributes:
6 | sign_offs.business.date | NO_ISO_TIME

# audit retention
SNAPSHOT | attributes: | audit_retention_years: 0\nattributes:
6 | audit_retention_years | OUT_OF_RANGE

# audit retention in parts of a year
SNAPSHOT | attributes: | audit_retention_years: 7.5\nattributes:
6 | audit_retention_years | OUT_OF_RANGE

# audit retention as text
SNAPSHOT | attributes: | audit_retention_years: 7 years\nattributes:
6 | audit_retention_years | INVALID_KIND

# archive after parts of a year
SNAPSHOT | attributes: | archive_after_years: 0.5\nattributes:
6 | archive_after_years | OUT_OF_RANGE

# archive without windows
FLAT | attributes: | archive_after_years: 7\nattributes:
5 | archive_after_years | NOT_APPLICABLE

# archive of a history table
SNAPSHOT | attributes: | history_table: true\narchive_after_years: 7\nattributes:
7 | archive_after_years | CONFLICTING_OPTIONS

# table's former name bad
HISTORY | attributes: | former_name: rc-article_hist\nattributes:
3 | former_name | INVALID_NAME

# former name of a table with a reserved suffix
HISTORY | attributes: | former_name: rc_article_hist_audit\nattributes:
3 | former_name | INVALID_NAME

# former name is the present one
HISTORY | attributes: | former_name: RC_PRODUCT_hist\nattributes:
3 | former_name | NAME_IN_USE

# former name of a base
HISTORY | attributes: | former_name: rc_article\nattributes:
3 | former_name | NOT_APPLICABLE

# former name of a dimension
SNAPSHOT | attributes: | former_name: dim_client\nattributes:
6 | former_name | NOT_APPLICABLE

# history as the former name of a dimension
SNAPSHOT | attributes: | former_name: rc_client_hist\nattributes:
6 | former_name | NOT_APPLICABLE

# former names of a table
HISTORY | attributes: | former_name: [rc_article_hist, rc_item_hist]\nattributes:
3 | former_name | INVALID_KIND

# product card
SNAPSHOT | attributes: | product_card: wiki/customers\nattributes:
6 | product_card | INVALID_LINK

# expected value without a time
SNAPSHOT | attributes: | expected_values: {cities: {expression: count(*), value: 3}}\nattributes:
6 | expected_values.cities.as_of | MISSING_VALUE

# expected value at no time
SNAPSHOT | attributes: | expected_values: {cities: {as_of: soon, expression: count(*), value: 3}}\nattributes:
6 | expected_values.cities.as_of | NO_ISO_TIME

# expected value without an expression
SNAPSHOT | attributes: | expected_values: {cities: {as_of: 2024-01-31, value: 3}}\nattributes:
6 | expected_values.cities.expression | MISSING_VALUE

# expected value without a value
SNAPSHOT | attributes: | expected_values: {cities: {as_of: 2024-01-31, expression: count(*)}}\nattributes:
6 | expected_values.cities.value | MISSING_VALUE

# expected values without windows
FLAT | attributes: | expected_values: {names: {as_of: 2024-01-31, expression: count(*), value: 3}}\nattributes:
5 | expected_values | NOT_APPLICABLE

# table properties as a list
SNAPSHOT | attributes: | table_properties: [delta.enableChangeDataFeed]\nattributes:
6 | table_properties | INVALID_KIND

# table property without a value
SNAPSHOT | attributes: | table_properties: {delta.enableChangeDataFeed: null}\nattributes:
6 | table_properties.delta.enableChangeDataFeed | MISSING_VALUE

# table property of the package
SNAPSHOT | attributes: | table_properties: {delta.enableDeletionVectors: false}\nattributes:
6 | table_properties.delta.enableDeletionVectors | NOT_ALLOWED

# append-only dimension
SNAPSHOT | attributes: | table_properties: {delta.appendOnly: true}\nattributes:
6 | table_properties.delta.appendOnly | NOT_ALLOWED

# table property with the package's prefix
SNAPSHOT | attributes: | table_properties: {scd_pipeline.format: 2}\nattributes:
6 | table_properties.scd_pipeline.format | NOT_ALLOWED

# table property twice
SNAPSHOT | attributes: | table_properties: {delta.x: 1, DELTA.X: 2}\nattributes:
6 | table_properties.DELTA.X | NAMED_TWICE

# short retention of files
SNAPSHOT | attributes: | table_properties: {delta.deletedFileRetentionDuration: interval 167 hours}\nattributes:
6 | table_properties.delta.deletedFileRetentionDuration | OUT_OF_RANGE

# short retention of the history
SNAPSHOT | attributes: | table_properties: {delta.logRetentionDuration: interval 29 days}\nattributes:
6 | table_properties.delta.logRetentionDuration | OUT_OF_RANGE

# properties without a history table
SNAPSHOT | attributes: | history_table_properties: {delta.x: 1}\nattributes:
6 | history_table_properties | NOT_APPLICABLE

# property of a history table
SNAPSHOT | attributes: | history_table: true\nhistory_table_properties: {delta.appendOnly: true}\nattributes:
7 | history_table_properties.delta.appendOnly | NOT_ALLOWED

# hash of the source
SNAPSHOT | attributes: | row_version_column_name: row_hash\nattributes:
6 | row_version_column_name | UNKNOWN_OPTION

# change type
SNAPSHOT | attributes: | change_types: {DELETE: deleted}\nattributes:
6 | change_types.DELETE | UNKNOWN_OPTION

# label twice
SNAPSHOT | attributes: | change_types: {INSERT: changed, UPDATE: changed}\nattributes:
6 | change_types.UPDATE | NAME_IN_USE

# state of a version as a label
SNAPSHOT | attributes: | change_types: {INSERT: changed}\ncolumn_names: {version_state: state}\nattributes:
6 | change_types.UPDATE | NAME_IN_USE

# child table of an unknown attribute
SNAPSHOT | city: 2 | city: {scd: 2, type: "array<struct<a:int,b:array<struct<c:int>>>>"}\nchild_tables: citty
10 | child_tables | UNKNOWN_NAME

# child table of a text
SNAPSHOT | city: 2 | city: 2\nchild_tables: city
10 | child_tables | INVALID_TYPE

# child table of a field that is no array of structs
SNAPSHOT | city: 2 | city: {scd: 2, type: "array<struct<a:int,b:array<struct<c:int>>>>"}\nchild_tables: [city, city.a]
10 | child_tables | INVALID_TYPE

# child table without its parent
SNAPSHOT | city: 2 | city: {scd: 2, type: "array<struct<a:int,b:array<struct<c:int>>>>"}\nchild_tables: city.b
10 | child_tables | MISSING_VALUE

# child table twice
SNAPSHOT | city: 2 | city: {scd: 2, type: "array<struct<a:int,b:array<struct<c:int>>>>"}\nchild_tables: [city, city]
10 | child_tables | NAMED_TWICE

# child table with a reserved suffix
SNAPSHOT | city: 2 | changes: {scd: 2, type: "array<struct<a:int>>"}\nchild_tables: changes
10 | child_tables | INVALID_NAME

# child table with two columns of one name
SNAPSHOT | city: 2 | city: {scd: 2, type: "array<struct<city_key:int>>"}\nchild_tables: city
10 | child_tables | NAME_IN_USE

# child table with a column of the window
SNAPSHOT | city: 2 | city: {scd: 2, type: "array<struct<effective_to:date>>"}\nchild_tables: city
10 | child_tables | NAME_IN_USE

# long retention of files
SNAPSHOT | attributes: | table_properties: {delta.deletedFileRetentionDuration: interval 31 days}\nattributes:
6 | table_properties.delta.deletedFileRetentionDuration | OUT_OF_RANGE

# surrogates
SNAPSHOT | attributes: | description: "\\ud800"\nattributes:
6 | description | INVALID_TEXT
"""


@pytest.mark.parametrize(("text", "error"), cases(TABLE))
def test_fault(text: str, error: LocatedCode) -> None:
    assert located_codes(lambda: parse(text, "c.yaml")) == [error]
