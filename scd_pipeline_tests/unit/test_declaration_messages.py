"""The texts of the errors of declarations, in one table; all other tests assert location, field and code (S28).

Each block of the table is a code with its messages. A message is the name of a case, a colon, and the problem with its
fix, which may continue in indented lines. The cases are those of the tests that assert their codes. Of texts that
differ only in their values, the table has one.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from scd_pipeline.conditions import DECLARATION_RULES
from scd_pipeline.declaration import parse_declarations
from scd_pipeline_tests.unit import (
    test_yaml_faults_of_attributes,
    test_yaml_faults_of_databases,
    test_yaml_faults_of_dimensions,
    test_yaml_faults_of_landing_tables,
    test_yaml_faults_of_sources,
    test_yaml_faults_of_text,
)
from scd_pipeline_tests.unit.test_fact import DIMENSION, FACT
from scd_pipeline_tests.unit.test_patterns import INVALID, dimension_with_format
from scd_pipeline_tests.unit.test_spec_dimension import PYTHON_ONLY, customer
from scd_pipeline_tests.unit.test_stored_declaration import DIFFERENCES, compare
from scd_pipeline_tests.unit.test_yaml_faults import ALIAS_IN_ITSELF, WHOLE_TEXTS, cases, declaration_errors, plain
from scd_pipeline_tests.unit.test_yaml_files import FILES, read_files

MESSAGES = r"""
# ATTRIBUTE_SOURCE
owner none: has no source; write `source:` with one of crm, web
owner two: is provided by crm and web; name only one of them, in `source` of the attribute or in `attributes` of a
  source
columns other's: city belongs to source crm; move it to `sources.crm.columns`, or declare web as the source of city

# CONFLICTING_OPTIONS
grouping by the decimal separator: '.' is the decimal separator too; declare the other one, such as `decimal: ","`, or
  remove it
one text for true and false: 'X' is in `true_values` too; keep one: true or false
placeholder of both kinds: 'b' is in `not_provided_values` too; keep one: no value, or the value NULL
retired but not missing: a retired attribute is no longer read; remove either `missing` or `retired`
required and NULL where missing: a required attribute cannot become NULL; remove either `missing` or `required`
deleted_at removed: the rows of deleted entities are removed; write `deleted_rows: keep`, or remove it
archive of a history table: the history table has every closed version already; remove it, or remove `history_table`,
  which only a new table can have
column both: has both `from` and `expression`; keep one: the expression may name any column
partition and versions: excludes `partition`; keep the one that distinguishes its deliveries
effective_at with a format: has other options than `expression`; write `effective_at_format` beside it
sequence of several times: excludes `sequence` of 2 columns, which are whole numbers; remove it, or order by one column
effective_at_unit and format: excludes `effective_at_format`: a unit reads numbers, a format reads text; keep the one
  that fits the column
nulls: a feed with `updates: full` provides all attributes; write `updates: partial` too, or remove it
begin at a time and at a column: each entity has a start of its own, and there is a fixed one too; give either
  `column`, or `at`
scope of an attribute with row times: city is an attribute, which not every row of a snapshot with `effective_at`
  provides at its time; remove `effective_at`, or use columns of the business key
key of two types: id is string in `columns`, and bigint here; declare its type once
table and query: has both a table and a query; write one of `table` and `query`
neither table nor query: has neither a table nor a query; write one of `table` and `query`
path of a database: is an option of paths, and the rows are in a database; remove it, or remove `jdbc`
cursor and versions: excludes `versions`, which distinguishes deliveries already; keep the one by which the rows are
  read

# EXISTENCE_SOURCE
existence false: the only source decides whether an entity exists; remove it, or write true
existence none: none of the sources decides whether an entity exists; write `existence: true` at exactly one source
existence both: crm and web each decide whether an entity exists; write `existence: true` at exactly one source

# EXPRESSION_PLACEHOLDER
placeholder in single braces: '{load_run_id}' is not a placeholder; write {{ load_timestamp }} or {{ load_run_id }},
  without quotes

# FACT_SOURCE
fact without a channel: a fact is delivered by a feed or by snapshots; write `feed:` or `snapshot:` with its path
fact with two sources: a fact has one source; declare a fact for each

# INVALID_DEFAULT
default text: 3 does not fit type string; give text, in quotes where YAML reads it as something else
default date: 'soon' does not fit type date; give a date such as 2024-01-31

# INVALID_KIND
flag as text: 'yes' is not true or false; write true or false
missing as a flag: 'true' is not one of reject, not_provided, null; write one of reject, not_provided, null
guard text: '25%' is not a number; write a number
guard list: is a list; expected a number; write a number
attributes is list: is a list; expected a mapping; write `name: value`
attribute name list: is a list; expected a name; write `name: value`
type list: is a list; expected text, a number, or true or false; write text, a number, or true or false
former name mapping: is a mapping; expected a name or a list of names; write a name or a list of names
source as text: is one value; expected a mapping; write `name: value`
default mapping: is a mapping; expected text, a number, or true or false; write text, a number, or true or false
owner list: is a list; expected text; write text
list of names: is a list; expected a declaration; begin with `dimension: <name>`
key as a number: 5 is not a key; write a name, a list of names, or a mapping of names to types
key column as a number: 5 is not a key column; write a name, a list of names, or a mapping of names to types
attributes as a number: 5 is not a mapping; write a mapping of names to SCD types or attributes
attributes as a list: 'city' is not an attribute; write a mapping of names to SCD types or attributes
source as a name: 'crm' is not a source; give a Source or a list of them
source as a number: 5 is not a source; give a Source or a list of them
begin as a time: '2020-01-01' is not a beginning; give `at` and `for_first_changes_until`, or `column`
snapshot as a feed: Feed(path=None, format=None, options=(), partition=None, ver... is not a snapshot; give a path or
  a Snapshot
reader options as a number: 5 is not a mapping; write a mapping of options to text
reader option as a flag: option 'header' has the value True, which is not text; options are given as text, such as
  "true" or "1"
columns as a list: ['city'] is not a mapping; write a mapping of names to columns of the source
column as a number: 5 is not a column; give the column's name, or a Column
effective_at as a list: is a list; expected a column, or a mapping with an expression; write a column, or a mapping with
  an expression
sequence as a number: 7 is not a column, a mapping with an expression, or a list of them; give a column, a mapping with
  an expression, or a list of them
retire guard as text: '0.1' is not a number; give a share, such as 0.05 for 5 percent, or a RetireGuard
sign-off in Python as text: 'Ann' is not a sign-off; give a SignOff
sign-offs as text: 'Ann' is not a mapping; write a mapping of names to values
expected value as a number: 5 is not an expected value; give an ExpectedValue
expected value as a list: [] is not text, a number, or true or false; write one of them
table property with a list: 'delta.x': [] is not a name with text; write a mapping of property names to text
order by two columns: {'updated_at': 'desc', 'title': 'asc'} is not a mapping of one column to its order; write
  `{<column>: desc}` or `{<column>: asc}`
password as a list: is a list; expected the name of an environment variable, as in {env: DB_PASSWORD}; write the name
  of an environment variable, as in {env: DB_PASSWORD}
start as a list: is a list; expected a time, a number or text; write a time, a number or text

# INVALID_LINK
product card: 'wiki/customers' is not an address; write one that begins with https:// or http://

# INVALID_NAME
attribute name underscore: '_email' cannot be a name; <a name's rule>
former name bad: 'a,b' cannot be a name; <a name's rule>
table name: 'dim-customer' cannot be the name of a table; write letters, digits and `_`, beginning with a letter, and
  not ending with _changes, _audit, _keys, _history or _archive
history of a table name: 'rc-product_hist' cannot be the name of a table; write letters, digits and `_`, beginning with
  a letter, and not ending with _changes, _audit, _keys, _history or _archive
table's former name bad: 'rc-article_hist' cannot be the name of a table; write letters, digits and `_`, beginning with
  a letter, and not ending with _changes, _audit, _keys, _history or _archive
surrogate key name: '_key' cannot be a name; <a name's rule>
label as a number: 1 cannot be a label; write a text
group: 'sales team' cannot be a group; write letters, digits and `_`
record_path without a name: 'data.' is not a path; write names of objects, such as data
source name: '_iso' cannot be a name; <a name's rule>
source name with a slash: 'i/so' cannot name a source; write it without `/`, which separates the parts of a batch's id
upstream without a part: 'raw//orders' cannot be the key of an asset; write its parts with one `/` between them, such as
  raw/customers
child table with a reserved suffix: 'dim_customer__changes' cannot be the name of a table; write letters, digits and
  `_`, beginning with a letter, and not ending with _changes, _audit, _keys, _history or _archive; rename the attribute

# INVALID_PATTERN
effective_at_format with a text that is not quoted: 'yyyy-MM-ddTHH:mm:ss' has T, which cannot be used for reading; did
  you mean yyyy-MM-dd'T'HH:mm:ss?
path date with Spark's letters: 'yyyyMMdd' does not have exactly one year; did you mean %Y%m%d?
path date with a month's name: '%d%b%Y' has %b, which is not read here; write it with %Y, %y, %m, %d, such as %Y%m%d
path date with an hour: '%Y%m%dT%H' has %H, a time of day, which only {datetime} has; write it with %Y, %y, %m, %d,
  such as %Y%m%d
path time twice: '%Y%m%d%H%H' has %H twice; write it with %Y, %y, %m, %d, %H, %M, %S, such as %Y%m%dT%H%M%S
path time without a minute: '%Y%m%d%H%S' has a smaller unit of time without the larger one; write it with %Y, %y, %m,
  %d, %H, %M, %S, such as %Y%m%dT%H%M%S
pattern DD.MM.YYYY HH:mm: 'DD.MM.YYYY HH:mm' has Y, which cannot be used for reading; did you mean dd.MM.yyyy HH:mm?
pattern uuuu-MM-dd: 'uuuu-MM-dd' has u, which cannot be used for reading; did you mean yyyy-MM-dd?
pattern yyyy-MM-DD: 'yyyy-MM-DD' has D, the day of the year, together with a month or a day; did you mean yyyy-MM-dd?
pattern yyyy-mm-dd: 'yyyy-mm-dd' has m, the minute, without an hour; did you mean yyyy-MM-dd?
pattern yyyy-MM-dd hh:mm: 'yyyy-MM-dd hh:mm' has an hour up to 12 without `a`, the AM/PM marker; did you mean
  yyyy-MM-dd HH:mm?
pattern %Y-%m-%d: '%Y-%m-%d' has %, which cannot be used for reading; <a pattern's form>
pattern EEE dd MMM yyyy: 'EEE dd MMM yyyy' has E, which cannot be used for reading; <a pattern's form>
pattern YYYY-MM-DD HH24:MI:SS: 'YYYY-MM-DD HH24:MI:SS' has Y, which cannot be used for reading; <a pattern's form>
pattern {yyyy}: '{yyyy}' has {, which cannot be used for reading; <a pattern's form>
pattern ddd.MM.yyyy: 'ddd.MM.yyyy' has ddd; expected d 1 or 2 times; <a pattern's form>
pattern yyyy-MM-dd HH:mm V: 'yyyy-MM-dd HH:mm V' has V; expected V 2 times; <a pattern's form>
pattern yyyy-MM-dd HH:mm OO: 'yyyy-MM-dd HH:mm OO' has OO; expected O 1 or 4 times; <a pattern's form>
pattern yyyy-MM-dd'T: "yyyy-MM-dd'T" has an unclosed quote; <a pattern's form>
pattern yyyy[-MM: 'yyyy[-MM' has an unmatched bracket; <a pattern's form>
pattern yyyy]-[MM: 'yyyy]-[MM' has an unmatched bracket; <a pattern's form>
pattern HH:mm: 'HH:mm' has no year, y; <a pattern's form>

# INVALID_SCD_TYPE
type 4: type 4 is the layout of a table (closed versions in a table of their own), not an SCD type of an attribute;
  write 2 for an attribute that opens versions
type 5: type 5 is not supported; write 6 for an attribute with its historical and its latest value in every version
type 7: type 7 is a kind of table that is not built, not an SCD type of an attribute; write 2 or 6, and query the
  dimension as of a time
type 9: 9 is not an SCD type; write 0, 1, 2, 3 or 6

# INVALID_TEXT
surrogates: has an unpaired UTF-16 surrogate; remove it

# INVALID_TIME_ZONE
timezone: 'Europe/Olso' is not a time zone; did you mean Europe/Oslo?
timezone folder: '../UTC' is not a time zone; did you mean UTC?
timezone local: 'localtime' is not a time zone; give a zone's name, such as UTC or Europe/Oslo

# INVALID_TYPE
column type unknown: 'dat' is not a type; did you mean date? allowed: <the types>
column type of another system: 'datetime' is not a type; did you mean timestamp? allowed: <the types>
column type in a type: 'str' is not a type; did you mean string? allowed: <the types>
column type variant: type variant cannot be the type of a column here; store it as string, or as a struct of the parts
  you compare
column type interval: type interval cannot be the type of a column here; store it as a bigint of its smallest unit
column type geometry: type geometry cannot be the type of a column here; store it as string (WKT) or binary (WKB)
column type void: type void cannot be the type of a column here; give the type that the values have
column type varchar: type varchar cannot be the type of a column here; write string
column type decimal: decimal(40,2) is out of range; precision is 1 to 38, and scale is 0 to precision
column type unclosed: 'array<int' is not a type; write array<type>, such as array<string>
column type trailing: 'int not null' has text after the type; remove 'not null'
key type: type array<int> cannot be in a key; write a type without parts, such as string
begin at a text: born is of type string; declare it as date or timestamp or timestamp_ntz
scope of a nested attribute: city is of type array<string>, which has no text for a scope; use other columns
child table of a text: city is not an array of structs in type string; name an array of structs, or a field of its
  elements that is one

# LANDING_SOURCE
replace by a feed: each delivery of `replace` is complete; write `snapshot:` with its path, and no other channel
landing table with two sources: a landing table has one source; declare a table for each

# LOG_IN_USE
two timed tables with one log: the log data/.updates is that of doctors, which is declared at c.yaml:1; name another
  file for one of them, or write `log: table`

# MISSING_VALUE
scd missing: is missing; write 0, 1, 2, 3 or 6
missing without a choice: has no value; write one of reject, not_provided, null, or remove the option
former name empty: is empty; give a name or a list of names, or omit it
no dimension: is missing; give the table's name, such as dim_customer
no business key: is missing; name the columns that identify an entity
whole row without attributes: are missing: a row consists of them; declare the columns of a row, or write mirror
begin missing: is missing; write a UTC time such as 2024-01-31 or 2024-01-31 23:59:59, or give `column`
no sources: is missing; declare at least one source, with a snapshot or a feed
source without channel: has neither a snapshot nor a feed; declare how it delivers, with one or both
column empty expression: is empty; give text, or omit it
format of an archive: is missing and cannot be inferred from the suffix of 'landing/customers_{date}.csv.ZIP'; unpack or
  convert the files, as no archives or workbooks are read
format not implied: is missing and cannot be inferred from the suffix of 'landing/customers_{date}'; write one of
  parquet, csv, json, delta, debezium
null business key: has no value; add a value, or remove the option
type null: has no value; write text, a number, or true or false, or remove the option
null snapshot: has no value; write `{}` to pass frames, or remove the option
sequence without an expression: has no expression; write `expression:` with SQL over the columns
effective_at null: has no value; write a column, or a mapping with an expression, or remove the option
role without a dimension: names no dimension; write `dimension:` with its name
empty name: is missing; give the table's name, such as dim_customer
sign-off without a name: is missing; name the person or the team
sign-off without a date: is missing; write a date such as 2024-01-31
expected value without a time: is missing; write a UTC time such as 2024-01-31 or 2024-01-31 23:59:59
expected value without an expression: is missing; write an aggregate in SQL, such as count(*)
expected value without a value: is missing; write the value of the expression
merge without a key: is missing: without a key, a merge would only append; name it, or `merge_key`; or write
  `disposition: append`
landing table without columns: is missing; name the columns with their types, or write `columns: mirror` for all
  columns of the source
upsert without a primary key: is missing: an upsert finds the stored row by it; name it, or write `strategy:
  delete_insert`
variable without a name: is missing; name the environment variable
partitions without a bound: is missing; give the bound of its values
cursor without a start: is missing, and `cursor` requires it; give the value from which the first load reads, such as
  1970-01-01T00:00:00Z or 0
child table without its parent: city.b has no parent table: city is not in the list; add city

# NAMED_TWICE
former name twice: names town twice; name it once
options alike: names sep twice; name it once
attribute twice: occurs twice (line 8 has it too); remove one
table property twice: is the same property as delta.x; remove one

# NAME_IN_USE
former name is the present one: RC_PRODUCT_hist is the present name; write the one before it, or remove it
former name declared: rc_article_hist is declared at c.yaml:7; remove that declaration, or the former name
key is attribute: is in the business key too; remove it from `attributes` or from `business_key`
attribute twice by case: column city is attribute City; choose another name
technical column: column Version is reserved for a column that the package adds; choose another name
generated clash: column previous_city is attribute previous_city; choose another name
type 3 clash: column name_changed_at is attribute name_changed_at; choose another name
former name own: city is attribute city; name only columns that no longer exist
former name key: customer_id is in the business key as customer_id; name only columns that no longer exist
former name shared: Town is a former name of email too; remove it from `former_names` of one of them
former name of a generated column: attribute previous_town has the name of a column that was generated for town;
  choose another name for that attribute
surrogate key clash: column City is attribute city; choose another name
label twice: 'changed' is the label of INSERT too; choose another label
state of a version as a label: 'changed', the version state of UPDATE, is the label of INSERT; declare a label for it
business key twice: column Customer_ID is in the business key as customer_id; choose another name
business key named as a column of the audit: column Actor is one of the audit, which also has the business key; choose
  another name
business key named as the surrogate key in the audit: column customer_key_old is one of the audit, which also has the
  business key; choose another name
dimension twice: dim_customer is declared at c.yaml:1 already; choose another name
source named twice: crm is a source already; choose another name
column of the package in a landing table: column scd_row_hash is reserved for a column that the package adds; choose
  another name
child tables of one name: city__b and city.b would have the same table dim_customer__city__b; remove one of them, or
  rename the attribute
child table with two columns of one name: dim_customer__city would have two columns city_key; rename the attribute or
  the field, or remove it from the list

# NOTHING_DECLARED
empty text: nothing is declared; begin with `dimension: <name>`
folder without declarations: the folder has no declarations; put the declarations there, as <name>.yaml

# NOT_ALLOWED
reader option encoding: 'windows-1250' is not an encoding that is read here; write one of utf-8, windows-1252,
  iso-8859-1, us-ascii, utf-16, utf-16be, utf-16le, utf-32
decimal separator unknown: ';' is not a decimal separator; write "," or "."
grouping of several characters: ', ' cannot separate groups of digits; write one character in quotes, such as ".", ","
  or " "
strategy of a fact: 'partitions' is not allowed; allowed: by_size, increments, scope, whole
reader option maxColumns: 'many' is not a number of columns; write a whole number as text, such as "30000"
missing with an unknown choice: 'not_there' is not allowed; allowed: reject, not_provided, null
on_bad_value with an unknown choice: 'NULL!' is not allowed; allowed: quarantine, null
deleted rows: 'drop' is not allowed; allowed: keep, remove, new_version
unit: 'sec' is not allowed; allowed: s, ms, us
format unknown: 'excel' is not allowed; allowed: parquet, csv, json, delta, debezium
sequence type: 'int' is not allowed; did you mean bigint? allowed: bigint, timestamp
ties: 'last' is not allowed; did you mean last_row? allowed: reject, delete_wins, first_row, last_row
effective_at_unit: 'seconds' is not allowed; allowed: s, ms, us
nulls unknown choice: 'ignore' is not allowed; allowed: value, not_provided
updates: 'few' is not allowed; allowed: full, partial
unreadable keys: 'retire_all' is not allowed; did you mean retire? allowed: retire_none, retire
previous as text: 'false' is not allowed; did you mean false? allowed: true, false, version_before, last_different_value
table property of the package: cannot be declared: loads replace rows by deletion vectors; remove it
append-only dimension: cannot be declared: loads replace rows of a dimension; remove it
table property with the package's prefix: cannot be declared: the package stores its own state in properties with this
  prefix; remove it
scd2 strategy: 'scd2' is a dimension, which has the history of its rows; declare in its place: {dimension: raw_issues,
  business_key: {id: bigint}, sources: {api: {feed: 'issues_{date}.jsonl'}}, attributes: {title: {scd: 2, type:
  string}, updated_at: {scd: 2, type: timestamp}}}
option of jdbc among those of the reader: has an option of its own; declare it in `jdbc` itself
address of another kind: is not an address of JDBC; begin it with jdbc:

# NOT_APPLICABLE
strategy scope without one: no snapshot of the fact has a scope; declare the `scope` of the snapshot, or write whole
strategy whole with a scope: a snapshot of a scope replaces no other facts; write scope or increments, or remove its
  `scope`
former name of a base: rc_article is not the name of a history, which ends in _hist; remove it: the tables of a base or
  of another dimension are not copied; load the deliveries again
placeholder of a key: each row provides code, which is in the business key; remove it, or write null_values
time of day of a time: no date without a time of day is read from the path or from a partition; remove it, or write
  {date} in the path
delivery zone of versions: no time is read from the path or from a partition; remove it, or write {date} in the path
debezium as snapshots: events of Debezium are changes, not full extracts; write them under `feed`
previous: type 2 does not allow `previous`; write scd: 6, or remove it (type 3 always has its previous value)
deleted rows windows: a table with attributes of type 2 or 6 closes the version of a deleted entity; remove it: it is
  for tables with types 0, 1 and 3 only
untracked type: type 2 does not allow `untracked`; write scd: 1, or remove it
untracked without windows: a table without attributes of type 2 or 6 has no versions; remove it
single type of several: the attributes have the types 0, 1 and 2; remove it
rapid change without windows: a table without attributes of type 2 or 6 has no versions; remove it
begin without windows: without attributes of type 2 or 6 there are no windows: each row begins at 0001-01-01 already;
  remove it
skip_footer of JSON: json files have no header or footer lines; remove it
record_path of CSV: csv files have no documents with records; remove it
record_path in UTF-16: Spark alone reads this encoding; deliver the files in UTF-8
skip_lines in UTF-16: Spark alone reads this encoding; deliver the files in UTF-8
unit of a text: a unit reads a number as a time, and city is of type string; remove it, or declare city as date or
  timestamp or timestamp_ntz
round of a boolean: a value of type boolean has no digits that could be rounded; remove it, or declare a number, a
  date, a time or text
format of a text: a format reads text as a date or a time, and city is of type string; remove it, or declare city as
  date or timestamp or timestamp_ntz
format of a key that is a number: a format reads text as a date or a time, and code is of type int; remove it, or
  declare code as date or timestamp or timestamp_ntz
format with a zone for a type without one: X reads a zone, and day is of type timestamp_ntz, which has none; omit it,
  or declare day as timestamp
separators of a text: a separator is part of a number, and n is of type string; remove it, or declare n as a
  number
true values of a text: the texts mean true, and n is of type string; remove them, or declare n as boolean
versions of csv: csv has no versions; write delta, or remove `versions`
partition of csv: csv has no partitions that can be relied on; write delta or parquet, or remove `partition`
ties by deletes that are not declared: no row of this feed is a delete; name their condition in `deletes`, or remove
  `ties`
ties by deletes of a snapshot: no row of this snapshot is a delete; write reject, first_row or last_row, or
  remove `ties`
ties by the order of a table: the rows of a table have no order; name a column that orders them in `sequence`, or
  deliver files
whole row as a row version: the business key is the whole row, whose presence opens a window already; remove it
whole row of two sources: the dimension has 2 sources, of which none delivers whole rows; name the columns that identify
  an entity
whole row in parts: without all of its values, a row cannot be identified; remove it
expected values without windows: a table without attributes of type 2 or 6 has no versions; remove it
scope of an attribute that may be missing: a delivery may lack city; write `missing: reject`, or use other columns
placeholder that opens versions: each delivery would open a version, as it has another value of city; remove the
  placeholder, or declare the attribute with type 0 or 1
placeholder in the business key: each delivery has another value of customer_id, which is in the business key; use other
  columns
placeholder without a delivery time: the deliveries of a feed with `effective_at` have no time; name a column in place
  of {{ load_timestamp }}
key of an append: is an option of merge, not of append; write `disposition: merge`, or remove it
upsert with a merge key: an upsert replaces the rows of a primary key, and no others; remove it, or write `strategy:
  delete_insert`
upsert with an order: an upsert has one row of a key in a delivery; remove it, or write `strategy: delete_insert`
order by the key: id has the same value in all rows of a primary key; name another column, or remove it
flag in the key: batch_day is in the key; name another column, or remove it
landing table with row times: the rows have the time of their delivery; remove it
landing table with deletes of a feed: `hard_delete` names the column by which a row deletes; remove it
ties without a key: the rows of raw_lines have no primary key, and each remains; remove it
cursor of files: a path that is read by a cursor is a Delta table; write `format: delta`, or remove `cursor`, and let
  the path have {date}
cursor and the last row: the rows that a cursor selects have no order; name a column that orders them in `sequence`

# NO_ISO_TIME
open end: 'never' is not a time; write a UTC time such as 2024-01-31 or 2024-01-31 23:59:59
begin time: '2020-02-30' is not a time; write a UTC time such as 2024-01-31 or 2024-01-31 23:59:59
time of day: '24:00' is not a time of day; write it as "23:59" or "23:59:59"
sign-off at a time of day: '2024-01-31 12:00:00' is not a date; write a date such as 2024-01-31

# ONE_DIMENSION
two dimensions in a file: 2 dimensions are declared where one is expected; name a file that declares one dimension

# OPTION_REQUIRED
true values alone: requires `false_values`; declare `false_values` too
sequence of a snapshot: a snapshot contains each entity once unless its rows have times; name their column in
  `effective_at`, or remove `sequence`
versions without path: requires the `path` of a table; give the table's `path`
partition format without partition: requires `partition`; name the column in `partition`, or remove it
sequence type alone: requires `sequence`; name the column in `sequence`
effective_at_format alone: requires `effective_at`; name the column in `effective_at`
order without a primary key: chooses one of the rows of a primary key; declare `primary_key` too, or remove it
flag of a mirrored table: the type of deleted decides which values delete, and files of text have no types; declare
  the type of deleted in `columns` too
database without a cursor: a feed of a database requires `cursor`, by which each load reads only new rows; name a
  column that grows, or write `snapshot:`
number without a time: the values of the cursor are not times, so that nothing orders the changes; name the column of
  the rows' times
start without a cursor: requires `cursor`; name the column in `cursor`

# OUT_OF_RANGE
sequence of four columns: has 4 columns; expected at most 3; write an expression that computes one number from them
guard: -0.1 is not between 0 and 1; give a share, such as 0.05 for 5 percent
guard at least: 0 is not a whole number of at least 1; give the least number of entities, such as 20
rapid change negative: -1 is not a share; give a share, such as 0.5 for half of the entities
skip_lines: -1 is not a whole number of at least 0; give the number of lines, such as 2
overdue: 0 is not a valid number of hours; write a number above 0 and below 1000000
audit retention: 0 is not a whole number of at least 1; give the number of years, such as 7
short retention of files: 'interval 167 hours' is not a retention of 168 hours or more, which loads and readers need;
  write `interval 168 hours`, or more hours, days or weeks
short retention of the history: 'interval 29 days' is not a retention of 720 hours or more, which loads and readers
  need; write `interval 720 hours`, or more hours, days or weeks
long retention of files: 'interval 31 days' is longer than the 720 hours of `delta.logRetentionDuration`, which Delta
  rejects; declare `delta.logRetentionDuration: interval 744 hours`, or more
no partitions: 0 is not a whole number of at least 1; give the number of queries, such as 8

# PATH_PLACEHOLDER
placeholder at an address with one slash: files at this address cannot be listed, so no delivery would be found for
  {date}; give a path of this machine, or one below the name of a bucket (s3://, s3a://, gs://, abfss://), or pass
  frames
placeholder at an address: files at this address cannot be listed, so no delivery would be found for {date}; give a path
  of this machine, or one below the name of a bucket (s3://, s3a://, gs://, abfss://), or pass frames
placeholder behind credentials: files at this address cannot be listed, so no delivery would be found for {date}; give a
  path of this machine, or one below the name of a bucket (s3://, s3a://, gs://, abfss://), or pass frames
placeholder in an address without the account of Azure: files at this address cannot be listed, so no delivery would be
  found for {date}; give a path of this machine, or one below the name of a bucket (s3://, s3a://, gs://, abfss://), or
  pass frames
placeholder in the name of a bucket: files at this address cannot be listed, so no delivery would be found for {date};
  give a path of this machine, or one below the name of a bucket (s3://, s3a://, gs://, abfss://), or pass frames
path fixed: nothing in 'landing/customers.csv' distinguishes one delivery from the next; put {date} or {datetime} in
  the name, such as customers_{date}.csv
path fixed of a feed whose rows have times: nothing in 'landing/changes.json' distinguishes one delivery from the
  next; put {date} or {datetime} or {delivery} in the name, such as customers_{date}.csv
path of a snapshot without a time: {delivery} is any name, and a snapshot reads a delivery's time from its name; write
  {date} or {datetime} in its place
path of a feed without a time: {delivery} is any name, and a feed reads a delivery's time from its name where its rows
  have none; write {date} or {datetime} in its place, or name the column of the rows' times in `effective_at`
path form of any name: {delivery} is any name, so that {delivery:%Y} has no form; write {delivery}
path two: has 2 placeholders; keep one: {date} or {datetime}
path unknown placeholder: {dat} is not a placeholder; did you mean date? allowed: date, datetime
partition placeholder: `partition` distinguishes its deliveries, so {date} has no meaning; give the path of the table
  alone
delta fixed: nothing in 'a' distinguishes one delivery from the next; add `versions: true` or `partition: <column>`
landing table with deliveries of any name: {delivery} is any name, and a landing table reads a delivery's time from
  its name; write {date} or {datetime} in its place
cursor and a placeholder: the cursor distinguishes what was loaded, so a placeholder has no meaning; give the path of
  the table alone

# PERSONAL_BEGIN
begin at a personal column: born is personal, and the start of a history remains after an erasure; choose an attribute
  that is not personal

# PERSONAL_KEY
personal attribute is key: is personal and in the business key; a key remains after an erasure: choose a key that is
  not personal, or remove `personal`
whole row with a personal value: is personal, and the business key is a hash of it; a key remains after an erasure: name
  the columns that identify an entity, or remove `personal`
personal key: a business key cannot be personal; a key remains after an erasure: choose one that is not personal, and
  write only its type

# PERSONAL_SCOPE
scope of a personal attribute: city is personal, and the log stores the scope of each delivery; use other columns

# ROLE_KEY
role with fewer columns: guest.key names 1 columns; name one for each of casino, player
role with another type: guest is int here, and player of dim_player is string; declare guest as string

# SECRET_IN_DECLARATION
password in the declaration: contains a secret; write the name of an environment variable that has it, as in
  `password: {env: DB_PASSWORD}`

# SYNTAX
attribute name missing: expected <block end>, but found ':'; check the indentation, quotes and brackets on this line
  and the line before
syntax tab: found character '\t' that cannot start any token; indent with spaces
syntax braces: expected ',' or '}', but got '{'; put a text with braces in quotes
syntax quote: found unexpected end of stream; check the indentation, quotes and brackets on this line and the line
  before
syntax control: character U+0000 is not allowed; remove it
syntax alias: found undefined alias 'one'; name an anchor that is defined before it
syntax escape: the text is not YAML (OverflowError); write it as the documentation shows
nested too deep: the text is nested too deep; write it as the documentation shows

# TABLE_DIFFERS
other SCD type: the table was created with SCD type 1 and type string; the declaration has SCD type 3 and type string;
  restore the earlier declaration, or load into a new table
other previous value: the table was created with SCD type 6 and type string and `previous: "last_different_value"`; the
  declaration has SCD type 6 and type string and `previous: true`; restore the earlier declaration, or load into a new
  table
other untracked value: the table was created with SCD type 1 and type string and `untracked: at_open`; the declaration
  has SCD type 1 and type string; restore the earlier declaration, or load into a new table

# TABLE_HAS_ATTRIBUTE
undeclared attribute: the table has attribute city, which is not declared; keep it with `retired: true`, or name it in
  `former_names` of the attribute that replaces it

# TABLE_HAS_BOTH
two attributes as one: the table has both city and town, each with values of its own; name neither in `former_names`
  of the other, and keep one with `retired: true`

# TABLE_WITHOUT_WINDOWS
windows for a table without them: the table was created without windows, and type 2 needs them; declare it with type
  0, 1 or 3, or load into a new table

# TIME_ORDER
begin late: 9999-12-31 23:59:59 is not before the open end 9999-12-31 23:59:59; give an earlier time
begin order: 2019-12-31 00:00:00 is before the beginning 2020-01-01 00:00:00; give a time at or after `at`

# UNKNOWN_NAME
owner unknown: 'cmr' is not a source of this dimension; did you mean crm? allowed: crm, web
owner list unknown: 'emial' is not an attribute; did you mean email? allowed: email, city
columns unknown: 'cty' is neither an attribute nor in the business key; did you mean city? allowed: customer_id,
  birthday, email, city
columns of a channel: 't' is neither an attribute nor in the business key; move its expression to the channel:
  `effective_at: {expression: ...}`
scope: 'place' is neither in the business key nor an attribute of crm; allowed: customer_id, birthday, email, city
role of an unknown dimension: 'dim_plaier' is not a declared dimension; did you mean dim_player? allowed: dim_player;
  or put its file into the same folder, or add it to `dimensions` of the Dagster component
begin at an unknown column: 'borne' is not an attribute; did you mean born? allowed: born,
  birthday, email, city
order by an unknown column: 'update_at' is not a column; did you mean updated_at? allowed: title, updated_at
child table of an unknown attribute: 'citty' is not an attribute; did you mean city? allowed: birthday, email, city

# UNKNOWN_OPTION
optional: 'optional' is not an option here; did you mean `missing: not_provided`?
hash of the source: 'row_version_column_name' is not an option here; did you mean `attributes: {<column>: {scd: 2,
  required: true}}`?
partitioned by date: 'partition_by' is not an option here; remove it: tables are not partitioned, because partitions by
  date split a small table into many files
guard unknown option: 'shar' is not an option here; did you mean share? allowed: share, at_least
option of the source at the channel: 'retire_guard' is not an option here; `retire_guard` is an option of the source:
  move it to the level of `snapshot:` and `feed:`
unknown attribute option: 'typ' is not an option here; did you mean type? allowed: <an attribute's options>
unknown attribute option without a hint: 'colour' is not an option here; allowed: <an attribute's options>
unknown source option: 'retire_gard' is not an option here; did you mean retire_guard? allowed: <a source's options>
unknown option: 'busines_key' is not an option here; did you mean business_key? allowed: <a dimension's options>
column unknown option: 'form' is not an option here; did you mean format? allowed: from, format, unit, round, decimal,
  grouping, true_values, false_values, expression, default, not_provided_values, null_values
scope of feed: 'scope' is not an option here; allowed: <a feed's options>
variable under another name: 'envv' is not an option here; did you mean env? allowed: env

# UNQUOTED_TEXT
placeholder as a number: -1 is read as a number, not as text; put it in quotes: "-1"
column type cut off at its comma: decimal(20,12) is cut off at its comma, which ends a value in braces; quote it:
  "decimal(20,12)"
nested column type cut off at its comma: struct<a:int,b:map<int,int>> is cut off at its comma, which ends a value in
  braces; quote it: "struct<a:int,b:map<int,int>>"
history of a number: 2024 is read as a number, not as text; put it in quotes: "2024"
table name unquoted: 2024 is read as a number, not as text; put it in quotes: "2024"
attribute name boolean: no is read as true or false, not as a name; put it in quotes: "no"
attribute name number: 1 is read as a number, not as a name; put it in quotes: "1"
attribute name date: 2024-01-01 is read as a date or time, not as a name; put it in quotes: "2024-01-01"
attribute name null: null is read as nothing, not as a name; put it in quotes: "null"
type huge: '99999999999999999999999999999999999999999999999999999999999... looks like a number, but cannot be read as
  such; put it in quotes if it is text
column number: 3 is read as a number, not as a name or a list of names; put it in quotes: "3"
options boolean: true is read as true or false, not as text; put it in quotes: "true"
open end number: 9999 is read as a number, not as a time; write a UTC time such as 2024-01-31 or 2024-01-31 23:59:59
bad tagged number: 'two' looks like a number, but cannot be read as such; put it in quotes if it is text

# UNREADABLE_FILE
missing file: cannot be read (No such file or directory); name a readable file or folder
not UTF-8: is not UTF-8 text; save it as UTF-8

# UNSUPPORTED_YAML
attribute name merge: `<<` is not supported; write the options out
tag: tag '!secret' is not supported; remove the tag
tag on mapping: tag 'tag:yaml.org,2002:omap' is not supported; remove the tag
alias in itself: an alias refers to its own anchor; write the part out

# UNUSED_SOURCE
source without an attribute: provides no attribute and does not decide existence; name its `attributes`, or remove the
  source
"""

YAML_TABLES = (
    test_yaml_faults_of_attributes.TABLE,
    test_yaml_faults_of_databases.TABLE,
    test_yaml_faults_of_dimensions.TABLE,
    test_yaml_faults_of_landing_tables.TABLE,
    test_yaml_faults_of_sources.TABLE,
    test_yaml_faults_of_text.TABLE,
)
INVALID_PATTERNS = {f"pattern {pattern}": pattern for pattern in INVALID}
YAML_TEXTS: dict[str, str] = {
    **{str(case.id): case.values[0] for table in YAML_TABLES for case in cases(table)},
    **{name: text for name, (text, *_) in WHOLE_TEXTS.items()},
    "alias in itself": ALIAS_IN_ITSELF,
    "two timed tables with one log": "timed_table: doctors\nbase: data/doctors.avro\n---\n"
    "timed_table: nurses\nbase: data/nurses.avro",
    "role of an unknown dimension": DIMENSION + FACT.replace("dim_player\n", "dim_plaier\n", 1),
    "role without a dimension": DIMENSION + FACT.replace("player: dim_player", "player: {key: player}"),
    "role with fewer columns": DIMENSION + FACT.replace("key: [casino, guest]", "key: guest"),
    "role with another type": DIMENSION + FACT.replace("{play: bigint}", "{play: bigint, guest: int}"),
    "strategy of a fact": DIMENSION + FACT.replace("sources:", "strategy: partitions\nsources:"),
    "strategy scope without one": DIMENSION + FACT.replace("sources:", "strategy: scope\nsources:"),
    "strategy whole with a scope": DIMENSION
    + FACT.replace('feed: "plays_{date}.csv"', "snapshot: {scope: coins}")
    + "strategy: whole\n",
    "fact without a channel": DIMENSION + FACT.replace('{feed: "plays_{date}.csv"}', "{timezone: UTC}"),
    "fact with two sources": DIMENSION + FACT.replace("  floor:", "  other: {feed: {}}\n  floor:"),
}


def declare(name: str, folder: Path) -> object:
    """Return what the case of this name declares; its files are written into the folder."""
    if name in YAML_TEXTS:
        return parse_declarations(YAML_TEXTS[name], "c.yaml")
    if name in PYTHON_ONLY:
        return customer(**PYTHON_ONLY[name][0])
    if name in INVALID_PATTERNS:
        return dimension_with_format(INVALID_PATTERNS[name])
    if name in FILES:
        return read_files(folder, name)
    return compare(name)


def messages() -> dict[tuple[str, str], str]:
    """Return the messages of the table by code and name of the case."""
    parsed = {}
    for block in MESSAGES.strip().split("\n\n"):
        code, entries = block.removeprefix("# ").split("\n", 1)
        for entry in re.split(r"\n(?! )", entries):
            name, message = re.sub(r"\n +", " ", entry).split(": ", 1)
            parsed[code, name] = plain(message)
    return parsed


@pytest.mark.parametrize(("code", "name"), messages())
def test_the_text_of_an_error(tmp_path: Path, code: str, name: str) -> None:
    errors = declaration_errors(lambda: declare(name, tmp_path))
    assert [f"{error.problem}; {error.fix}" for error in errors if error.code == code] == [messages()[code, name]]


def test_every_rule_of_declarations_has_a_text() -> None:
    assert {code for code, _ in messages()} == DECLARATION_RULES.keys()


def test_a_name_is_that_of_one_case() -> None:
    yaml_names = [str(case.id) for table in YAML_TABLES for case in cases(table)]
    names = [*yaml_names, *WHOLE_TEXTS, *INVALID_PATTERNS, *PYTHON_ONLY, *FILES, *DIFFERENCES]
    assert sorted(set(names)) == sorted(names)
