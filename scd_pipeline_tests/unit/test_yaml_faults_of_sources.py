"""Faults of sources and their channels in YAML."""

from __future__ import annotations

import pytest

from scd_pipeline_tests.unit.test_yaml_faults import cases, error_text

TABLE = r"""
# no sources
FLAT | sources:\n  iso: {snapshot: "landing/{date}.csv"}\n | <nothing>
1: sources: is missing; declare at least one source, with a snapshot or a feed

# source without channel
SNAPSHOT |     snapshot: landing/customers_{date}.csv\n |     timezone: UTC\n
4: sources.crm: has neither a snapshot nor a feed; declare how it delivers, with one or both

# source name
FLAT | iso | _iso
4: sources._iso: '_iso' cannot be a name; <a name's rule>

# source name with a slash
FLAT | iso | i/so
4: sources.i/so: 'i/so' cannot name a source; write it without `/`, which separates the parts of a batch's id

# sequence of a snapshot
SNAPSHOT | landing/customers_{date}.csv | {path: "landing/customers_{date}.csv", sequence: n}
5: sources.crm.snapshot.sequence: a snapshot contains each entity once unless its rows have times;
name their column in `effective_at`, or remove `sequence`

# placeholder at an address
SNAPSHOT | landing/customers | s3://landing/customers
5: sources.crm.snapshot.path: files at an address cannot be listed, so no delivery would be found for {date};
give a path of this machine, such as one in a mounted folder, or pass frames

# timezone
SNAPSHOT |     snapshot: |     timezone: Europe/Olso\n    snapshot:
5: sources.crm.timezone: 'Europe/Olso' is not a time zone; did you mean Europe/Oslo?

# timezone folder
SNAPSHOT |     snapshot: |     timezone: ../UTC\n    snapshot:
5: sources.crm.timezone: '../UTC' is not a time zone; did you mean UTC?

# timezone local
SNAPSHOT |     snapshot: |     timezone: localtime\n    snapshot:
5: sources.crm.timezone: 'localtime' is not a time zone; give a zone's name, such as UTC or Europe/Oslo

# limit
SNAPSHOT |     snapshot: |     bad_row_limit: 5\n    snapshot:
5: sources.crm.bad_row_limit: 5 is not between 0 and 1; give a share, such as 0.05 for 5 percent

# guard
SNAPSHOT |     snapshot: |     retire_guard: -0.1\n    snapshot:
5: sources.crm.retire_guard: -0.1 is not between 0 and 1; give a share, such as 0.05 for 5 percent

# guard nan
SNAPSHOT |     snapshot: |     retire_guard: .nan\n    snapshot:
5: sources.crm.retire_guard: nan is not between 0 and 1; give a share, such as 0.05 for 5 percent

# guard text
SNAPSHOT |     snapshot: |     retire_guard: 25%\n    snapshot:
5: sources.crm.retire_guard: '25%' is not a number; write a number

# guard share
SNAPSHOT |     snapshot: |     retire_guard: {share: 1.5, at_least: 20}\n    snapshot:
5: sources.crm.retire_guard: 1.5 is not between 0 and 1; give a share, such as 0.05 for 5 percent

# guard at least
SNAPSHOT |     snapshot: |     retire_guard: {at_least: 0}\n    snapshot:
5: sources.crm.retire_guard.at_least: 0 is not a whole number from 1 on; give the least number of entities, such as 20

# guard at least half
SNAPSHOT |     snapshot: |     retire_guard: {at_least: 2.5}\n    snapshot:
5: sources.crm.retire_guard.at_least: 2.5 is not a whole number from 1 on; give the least number of entities, such as 20

# guard text at least
SNAPSHOT |     snapshot: |     retire_guard: {at_least: many}\n    snapshot:
5: sources.crm.retire_guard.at_least: 'many' is not a number; write a number

# guard unknown option
SNAPSHOT |     snapshot: |     retire_guard: {shar: 0.1}\n    snapshot:
5: sources.crm.retire_guard.shar: 'shar' is not an option here; did you mean share? allowed: share, at_least

# guard list
SNAPSHOT |     snapshot: |     retire_guard: [0.1]\n    snapshot:
5: sources.crm.retire_guard: is a list; expected a number; write a number

# overdue
SNAPSHOT |     snapshot: |     overdue_after_hours: 0\n    snapshot:
5: sources.crm.overdue_after_hours: 0 is not a waiting time; give hours, more than 0 and less than 1000000

# overdue for ever
SNAPSHOT |     snapshot: |     overdue_after_hours: .inf\n    snapshot:
5: sources.crm.overdue_after_hours: inf is not a waiting time; give hours, more than 0 and less than 1000000

# existence false
SNAPSHOT |     snapshot: |     existence: false\n    snapshot:
5: sources.crm.existence: the only source decides whether an entity exists; remove it, or write true

# existence none
TWO |     existence: true\n | <nothing>
3: sources: none of the sources decides whether an entity exists; write `existence: true` at exactly one
source

# existence both
TWO |     feed: |     existence: true\n    feed:
3: sources: crm and web each decide whether an entity exists; write `existence: true` at exactly one
source

# owner list unknown
TWO |     feed: |     attributes: emial\n    feed:
8: sources.web.attributes: 'emial' is not an attribute; did you mean email? allowed: email, city

# owner list twice
TWO |     feed: |     attributes: [email, email]\n    feed:
8: sources.web.attributes: names email twice; name it once

# source without an attribute
TWO | source: web | source: crm
7: sources.web: provides no attribute and does not decide existence; name its `attributes`, or remove the
source

# columns unknown
SNAPSHOT |     snapshot: |     columns: {cty: CITY}\n    snapshot:
5: sources.crm.columns.cty: 'cty' is neither an attribute nor in the business key; did you mean city?
allowed: customer_id, birthday, email, city

# columns other's
TWO |     feed: |     columns: {city: CITY}\n    feed:
8: sources.web.columns.city: city belongs to source crm; declare the column there, or leave the attribute
to this source

# column both
SNAPSHOT |     snapshot: |     columns: {city: {from: C, expression: upper(C)}}\n    snapshot:
5: sources.crm.columns.city: has both `from` and `expression`; keep one: the expression may name any
column

# column empty expression
SNAPSHOT |     snapshot: |     columns: {city: {expression: ' '}}\n    snapshot:
5: sources.crm.columns.city.expression: is empty; give text, or omit it

# column names twice
SNAPSHOT |     snapshot: |     columns: {city: [City, CITY]}\n    snapshot:
5: sources.crm.columns.city.from: names city twice; name it once

# unit
SNAPSHOT |     snapshot: |     columns: {birthday: {unit: sec}}\n    snapshot:
5: sources.crm.columns.birthday.unit: 'sec' is not allowed; allowed: s, ms, us

# unit and format
SNAPSHOT |     snapshot: |     columns: {birthday: {unit: s, format: yyyy}}\n    snapshot:
5: sources.crm.columns.birthday.unit: excludes `format`: a unit reads numbers, a format reads text; keep the
one that fits the column

# unit of a text
SNAPSHOT |     snapshot: |     columns: {city: {unit: s}}\n    snapshot:
5: sources.crm.columns.city.unit: a unit reads a number as a time, and city is of type string; remove it, or
declare city as date or timestamp or timestamp_ntz

# round of a text
SNAPSHOT |     snapshot: |     columns: {city: {round: true}}\n    snapshot:
5: sources.crm.columns.city.round: a value of type string has no digits that could be rounded; remove it, or
declare a number, a date or a time

# round as text
SNAPSHOT |     snapshot: |     columns: {birthday: {round: 'yes'}}\n    snapshot:
5: sources.crm.columns.birthday.round: 'yes' is not true or false; write true or false

# format of a text
SNAPSHOT |     snapshot: |     columns: {city: {format: yyyy-MM-dd}}\n    snapshot:
5: sources.crm.columns.city.format: a format reads text as a date or a time, and city is of type string;
remove it, or declare city as date or timestamp or timestamp_ntz

# format of a key that is a number
FLAT | code\nsources:\n  iso: {s | {code: int}\nsources:\n  iso: {columns: {code: {format: yyyyMMdd}}, s
4: sources.iso.columns.code.format: a format reads text as a date or a time, and code is of type int;
remove it, or declare code as date or timestamp or timestamp_ntz

# format with a zone for a type without one
FLAT | code\nsources:\n  iso: {s | {day: timestamp_ntz}\nsources:\n  iso: {columns: {day: {format: yyyy-MM-dd XXX}}, s
4: sources.iso.columns.day.format: X reads a zone, and day is of type timestamp_ntz, which has none;
omit it, or declare day as timestamp

# format with a letter that cannot be used
SNAPSHOT |     snapshot: |     columns: {birthday: {format: YYYY-MM-DD}}\n    snapshot:
5: sources.crm.columns.birthday.format: 'YYYY-MM-DD' has Y, which cannot be used for reading; did you mean
yyyy-MM-dd?

# format with the minute for the month
SNAPSHOT |     snapshot: |     columns: {birthday: {format: dd.mm.yyyy}}\n    snapshot:
5: sources.crm.columns.birthday.format: 'dd.mm.yyyy' has m, the minute, without an hour; did you mean
dd.MM.yyyy?

# default text
SNAPSHOT |     snapshot: |     columns: {city: {default: 3}}\n    snapshot:
5: sources.crm.columns.city.default: 3 does not fit type string; give text, in quotes where YAML reads it
as something else

# default date
SNAPSHOT |     snapshot: |     columns: {birthday: {default: soon}}\n    snapshot:
5: sources.crm.columns.birthday.default: 'soon' does not fit type date; give a date such as 2024-01-31

# path fixed
SNAPSHOT | customers_{date} | customers
5: sources.crm.snapshot.path: nothing in 'landing/customers.csv' distinguishes one delivery from the next; put
{date} or {datetime} in the name, such as customers_{date}.csv

# path fixed of a feed whose rows have times
FEED | {delivery} | changes
6: sources.crm.feed.path: nothing in 'landing/changes.json' distinguishes one delivery from the next; put
{date} or {datetime} or {delivery} in the name, such as customers_{date}.csv

# path of a snapshot without a time
SNAPSHOT | {date} | {delivery}
5: sources.crm.snapshot.path: {delivery} is any name, and a snapshot reads a delivery's time from its name;
write {date} or {datetime} in its place

# path of a row-timed snapshot without a time
SNAPSHOT | landing/customers_{date}.csv | {path: "a_{delivery}.csv", effective_at: at}
5: sources.crm.snapshot.path: {delivery} is any name, and a snapshot reads a delivery's time from its name;
write {date} or {datetime} in its place

# path of a feed without a time
TWO | feed: landing/{date} | feed: landing/{delivery}
8: sources.web.feed.path: {delivery} is any name, and a feed reads a delivery's time from its name where its
rows have none; write {date} or {datetime} in its place, or name the column of the rows' times in `effective_at`

# path two
SNAPSHOT | customers_{date} | {delivery}_{date}
5: sources.crm.snapshot.path: has 2 placeholders; keep one: {date} or {datetime}

# path unknown placeholder
SNAPSHOT | customers_{date} | customers_{dat}
5: sources.crm.snapshot.path: {dat} is not a placeholder; did you mean date? allowed: date, datetime

# path empty
SNAPSHOT | landing/customers_{date}.csv | ''
5: sources.crm.snapshot.path: is empty; give text, or omit it

# format unknown
SNAPSHOT | landing/customers_{date}.csv | {path: "a_{date}.csv", format: excel}
5: sources.crm.snapshot.format: 'excel' is not allowed; allowed: parquet, csv, json, delta

# format not implied
SNAPSHOT | customers_{date}.csv | customers_{date}
5: sources.crm.snapshot.format: is missing, and the ending of 'landing/customers_{date}' does not imply it;
write one of parquet, csv, json, delta

# versions of csv
SNAPSHOT | landing/customers_{date}.csv | {path: a.csv, versions: true}
5: sources.crm.snapshot.format: csv has no versions; write delta, or remove `versions`

# partition of csv
SNAPSHOT | landing/customers_{date}.csv | {path: a.csv, partition: day}
5: sources.crm.snapshot.format: csv has no partitions that can be relied on; write delta or parquet, or
remove `partition`

# partition placeholder
SNAPSHOT | landing/customers_{date}.csv | {path: "a_{date}", format: delta, partition: day}
5: sources.crm.snapshot.path: `partition` distinguishes its deliveries, so {date} has no meaning; give the
path of the table alone

# partition and versions
SNAPSHOT | landing/customers_{date}.csv | {path: a, format: delta, partition: day, versions: true}
5: sources.crm.snapshot.versions: excludes `partition`; keep the one that distinguishes its deliveries

# delta fixed
SNAPSHOT | landing/customers_{date}.csv | {path: a, format: delta}
5: sources.crm.snapshot.path: nothing in 'a' distinguishes one delivery from the next; add `versions: true` or
`partition: <column>`

# versions without path
SNAPSHOT | landing/customers_{date}.csv | {versions: true}
5: sources.crm.snapshot.versions: requires the `path` of a table; give the table's
`path`

# options alike
SNAPSHOT | landing/customers_{date}.csv | {path: "a_{date}.csv", options: {sep: "|", SEP: ";"}}
5: sources.crm.snapshot.options: names sep twice; name it once

# sequence type
FEED |       effective_at |       sequence: seq\n      sequence_type: int\n      effective_at
8: sources.crm.feed.sequence_type: 'int' is not allowed; did you mean bigint? allowed: bigint, timestamp

# sequence type alone
FEED |       effective_at |       sequence_type: timestamp\n      effective_at
7: sources.crm.feed.sequence_type: requires `sequence`; name the column in `sequence`

# ties
FEED |       effective_at |       ties: last\n      effective_at
7: sources.crm.feed.ties: 'last' is not allowed; did you mean last_row? allowed: reject, delete_wins, last_row

# ties by deletes that are not declared
FEED |       effective_at |       ties: delete_wins\n      effective_at
7: sources.crm.feed.ties: no row of this feed is a delete; name their condition in `deletes`, or remove `ties`

# ties by deletes of a snapshot
SNAPSHOT | landing/customers_{date}.csv | {path: "a_{date}.csv", ties: delete_wins}
5: sources.crm.snapshot.ties: no row of this snapshot is a delete; write reject or last_row, or remove `ties`

# ties by the order of a table
SNAPSHOT | landing/customers_{date}.csv | {path: a.delta, versions: true, ties: last_row}
5: sources.crm.snapshot.ties: the rows of a table have no order; name a column that orders them in `sequence`, or
deliver files

# ties by the order of a partition
SNAPSHOT | landing/customers_{date}.csv | {path: a.parquet, partition: day, ties: last_row}
5: sources.crm.snapshot.ties: the rows of a table have no order; name a column that orders them in `sequence`, or
deliver files

# effective_at_format alone
FEED | {delivery}.json\n      effective_at: | {date}.json\n      effective_at_format:
7: sources.crm.feed.effective_at_format: requires `effective_at`; name the column in
`effective_at`

# effective_at_format with a text that is not quoted
FEED |       effective_at |       effective_at_format: yyyy-MM-ddTHH:mm:ss\n      effective_at
7: sources.crm.feed.effective_at_format: 'yyyy-MM-ddTHH:mm:ss' has T, which cannot be used for reading; did you
mean yyyy-MM-dd'T'HH:mm:ss?

# effective_at_unit alone
FEED | {delivery}.json\n      effective_at: | {date}.json\n      effective_at_unit:
7: sources.crm.feed.effective_at_unit: requires `effective_at`; name the column in
`effective_at`

# effective_at_round alone
FEED | {delivery}.json\n      effective_at: changed_at | {date}.json\n      effective_at_round: true
7: sources.crm.feed.effective_at_round: requires `effective_at`; name the column in
`effective_at`

# effective_at_unit
FEED |       effective_at |       effective_at_unit: seconds\n      effective_at
7: sources.crm.feed.effective_at_unit: 'seconds' is not allowed; allowed: s, ms, us

# effective_at_unit and format
FEED |       effective_at |       effective_at_unit: s\n      effective_at_format: yyyy\n      effective_at
7: sources.crm.feed.effective_at_unit: excludes `effective_at_format`: a unit reads numbers, a format reads
text; keep the one that fits the column

# nulls
FEED |       effective_at |       nulls: not_provided\n      effective_at
7: sources.crm.feed.nulls: a feed with `updates: full` provides all attributes; write `updates:
partial` too, or remove it

# nulls unknown choice
FEED |       effective_at |       nulls: ignore\n      effective_at
7: sources.crm.feed.nulls: 'ignore' is not allowed; allowed: value, not_provided

# updates
FEED |       effective_at |       updates: few\n      effective_at
7: sources.crm.feed.updates: 'few' is not allowed; allowed: full, partial

# scope
SNAPSHOT | landing/customers_{date}.csv | {path: "a_{date}.csv", scope: city}
5: sources.crm.snapshot.scope: 'city' is not in the business key; allowed: customer_id

# scope twice
SNAPSHOT | landing/customers_{date}.csv | {path: "a_{date}.csv", scope: [customer_id, customer_id]}
5: sources.crm.snapshot.scope: names customer_id twice; name it once

# unreadable keys
SNAPSHOT | landing/customers_{date}.csv | {path: "a_{date}.csv", unreadable_keys: retire_all}
5: sources.crm.snapshot.unreadable_keys: 'retire_all' is not allowed; did you mean retire? allowed:
retire_nobody, retire
"""


@pytest.mark.parametrize(("text", "message"), cases(TABLE))
def test_fault(text: str, message: str) -> None:
    assert error_text(text) == message
