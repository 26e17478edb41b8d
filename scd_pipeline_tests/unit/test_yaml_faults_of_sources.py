"""Faults of sources and their channels in YAML."""

from __future__ import annotations

import pytest

from scd_pipeline.declaration import parse
from scd_pipeline_tests.unit.test_yaml_faults import LocatedCode, cases, located_codes

TABLE = r"""
# no sources
FLAT | sources:\n  iso: {snapshot: "landing/{date}.csv"}\n | <nothing>
1 | sources | MISSING_VALUE

# source without channel
SNAPSHOT |     snapshot: landing/customers_{date}.csv\n |     timezone: UTC\n
4 | sources.crm | MISSING_VALUE

# source name
FLAT | iso | _iso
4 | sources._iso | INVALID_NAME

# source name with a slash
FLAT | iso | i/so
4 | sources.i/so | INVALID_NAME

# sequence of a snapshot
SNAPSHOT | landing/customers_{date}.csv | {path: "landing/customers_{date}.csv", sequence: n}
5 | sources.crm.snapshot.sequence | OPTION_REQUIRED

# skip_lines
SNAPSHOT | landing/customers_{date}.csv | {path: "landing/customers_{date}.csv", skip_lines: -1}
5 | sources.crm.snapshot.skip_lines | OUT_OF_RANGE

# skip_footer in part
SNAPSHOT | landing/customers_{date}.csv | {path: "landing/customers_{date}.csv", skip_footer: 1.5}
5 | sources.crm.snapshot.skip_footer | OUT_OF_RANGE

# skip_footer of JSON
SNAPSHOT | landing/customers_{date}.csv | {path: "landing/customers_{date}.json", skip_footer: 1}
5 | sources.crm.snapshot.skip_footer | NOT_APPLICABLE

# skip_lines in UTF-16
SNAPSHOT | landing/customers_{date}.csv | {path: "a_{date}.csv", skip_lines: 1, options: {encoding: UTF-16}}
5 | sources.crm.snapshot.skip_lines | NOT_APPLICABLE

# record_path without a name
SNAPSHOT | landing/customers_{date}.csv | {path: "a_{date}.json", record_path: data.}
5 | sources.crm.snapshot.record_path | INVALID_NAME

# record_path of CSV
SNAPSHOT | landing/customers_{date}.csv | {path: "a_{date}.csv", record_path: data}
5 | sources.crm.snapshot.record_path | NOT_APPLICABLE

# record_path in UTF-16
SNAPSHOT | landing/customers_{date}.csv | {path: "a_{date}.json", record_path: data, options: {encoding: UTF-16}}
5 | sources.crm.snapshot.record_path | NOT_APPLICABLE

# placeholder at an address
SNAPSHOT | landing/customers | hdfs://landing/customers
5 | sources.crm.snapshot.path | PATH_PLACEHOLDER

# placeholder behind credentials
SNAPSHOT | landing/customers | s3://key:secret@landing/customers
5 | sources.crm.snapshot.path | PATH_PLACEHOLDER

# placeholder in an address without the account of Azure
SNAPSHOT | landing/customers | abfss://landing/customers
5 | sources.crm.snapshot.path | PATH_PLACEHOLDER

# placeholder in the name of a bucket
SNAPSHOT | landing/customers_{date} | s3://landing-{date}/customers
5 | sources.crm.snapshot.path | PATH_PLACEHOLDER

# timezone
SNAPSHOT |     snapshot: |     timezone: Europe/Olso\n    snapshot:
5 | sources.crm.timezone | INVALID_TIME_ZONE

# timezone folder
SNAPSHOT |     snapshot: |     timezone: ../UTC\n    snapshot:
5 | sources.crm.timezone | INVALID_TIME_ZONE

# timezone local
SNAPSHOT |     snapshot: |     timezone: localtime\n    snapshot:
5 | sources.crm.timezone | INVALID_TIME_ZONE

# limit
SNAPSHOT |     snapshot: |     bad_row_limit: 5\n    snapshot:
5 | sources.crm.bad_row_limit | OUT_OF_RANGE

# upstream without a part
SNAPSHOT |     snapshot: |     upstream: [raw/customers, raw//orders]\n    snapshot:
5 | sources.crm.upstream | INVALID_NAME

# upstream twice
SNAPSHOT |     snapshot: |     upstream: [raw/customers, raw/customers]\n    snapshot:
5 | sources.crm.upstream | NAMED_TWICE

# guard
SNAPSHOT |     snapshot: |     retire_guard: -0.1\n    snapshot:
5 | sources.crm.retire_guard | OUT_OF_RANGE

# guard nan
SNAPSHOT |     snapshot: |     retire_guard: .nan\n    snapshot:
5 | sources.crm.retire_guard | OUT_OF_RANGE

# guard text
SNAPSHOT |     snapshot: |     retire_guard: 25%\n    snapshot:
5 | sources.crm.retire_guard | INVALID_KIND

# guard share
SNAPSHOT |     snapshot: |     retire_guard: {share: 1.5, at_least: 20}\n    snapshot:
5 | sources.crm.retire_guard | OUT_OF_RANGE

# guard at least
SNAPSHOT |     snapshot: |     retire_guard: {at_least: 0}\n    snapshot:
5 | sources.crm.retire_guard.at_least | OUT_OF_RANGE

# guard at least half
SNAPSHOT |     snapshot: |     retire_guard: {at_least: 2.5}\n    snapshot:
5 | sources.crm.retire_guard.at_least | OUT_OF_RANGE

# guard text at least
SNAPSHOT |     snapshot: |     retire_guard: {at_least: many}\n    snapshot:
5 | sources.crm.retire_guard.at_least | INVALID_KIND

# guard unknown option
SNAPSHOT |     snapshot: |     retire_guard: {shar: 0.1}\n    snapshot:
5 | sources.crm.retire_guard.shar | UNKNOWN_OPTION

# guard list
SNAPSHOT |     snapshot: |     retire_guard: [0.1]\n    snapshot:
5 | sources.crm.retire_guard | INVALID_KIND

# option of the source at the channel
SNAPSHOT | landing/customers_{date}.csv | {path: "a_{date}.csv", retire_guard: 0.1}
5 | sources.crm.snapshot.retire_guard | UNKNOWN_OPTION

# overdue
SNAPSHOT |     snapshot: |     overdue_after_hours: 0\n    snapshot:
5 | sources.crm.overdue_after_hours | OUT_OF_RANGE

# overdue for ever
SNAPSHOT |     snapshot: |     overdue_after_hours: .inf\n    snapshot:
5 | sources.crm.overdue_after_hours | OUT_OF_RANGE

# existence false
SNAPSHOT |     snapshot: |     existence: false\n    snapshot:
5 | sources.crm.existence | EXISTENCE_SOURCE

# existence none
TWO |     existence: true\n | <nothing>
3 | sources | EXISTENCE_SOURCE

# existence both
TWO |     feed: |     existence: true\n    feed:
3 | sources | EXISTENCE_SOURCE

# owner list unknown
TWO |     feed: |     attributes: emial\n    feed:
8 | sources.web.attributes | UNKNOWN_NAME

# owner list twice
TWO |     feed: |     attributes: [email, email]\n    feed:
8 | sources.web.attributes | NAMED_TWICE

# source without an attribute
TWO | source: web | source: crm
7 | sources.web | UNUSED_SOURCE

# columns unknown
SNAPSHOT |     snapshot: |     columns: {cty: CITY}\n    snapshot:
5 | sources.crm.columns.cty | UNKNOWN_NAME

# columns of a channel
SNAPSHOT | landing/customers_{date}.csv | {path: "a_{date}.csv", effective_at: t}\n    columns: {t: {expression: a}}
6 | sources.crm.columns.t | UNKNOWN_NAME

# columns other's
TWO |     feed: |     columns: {city: CITY}\n    feed:
8 | sources.web.columns.city | ATTRIBUTE_SOURCE

# column both
SNAPSHOT |     snapshot: |     columns: {city: {from: C, expression: upper(C)}}\n    snapshot:
5 | sources.crm.columns.city | CONFLICTING_OPTIONS

# column empty expression
SNAPSHOT |     snapshot: |     columns: {city: {expression: ' '}}\n    snapshot:
5 | sources.crm.columns.city.expression | MISSING_VALUE

# column names twice
SNAPSHOT |     snapshot: |     columns: {city: [City, CITY]}\n    snapshot:
5 | sources.crm.columns.city.from | NAMED_TWICE

# unit
SNAPSHOT |     snapshot: |     columns: {birthday: {unit: sec}}\n    snapshot:
5 | sources.crm.columns.birthday.unit | NOT_ALLOWED

# unit and format
SNAPSHOT |     snapshot: |     columns: {birthday: {unit: s, format: yyyy}}\n    snapshot:
5 | sources.crm.columns.birthday.unit | CONFLICTING_OPTIONS

# unit of a text
SNAPSHOT |     snapshot: |     columns: {city: {unit: s}}\n    snapshot:
5 | sources.crm.columns.city.unit | NOT_APPLICABLE

# round of a boolean
FLAT | code\nsources:\n  iso: {s | {code: boolean}\nsources:\n  iso: {columns: {code: {round: true}}, s
4 | sources.iso.columns.code.round | NOT_APPLICABLE

# round as text
SNAPSHOT |     snapshot: |     columns: {birthday: {round: 'yes'}}\n    snapshot:
5 | sources.crm.columns.birthday.round | INVALID_KIND

# format of a text
SNAPSHOT |     snapshot: |     columns: {city: {format: yyyy-MM-dd}}\n    snapshot:
5 | sources.crm.columns.city.format | NOT_APPLICABLE

# format of a key that is a number
FLAT | code\nsources:\n  iso: {s | {code: int}\nsources:\n  iso: {columns: {code: {format: yyyyMMdd}}, s
4 | sources.iso.columns.code.format | NOT_APPLICABLE

# format with a zone for a type without one
FLAT | code\nsources:\n  iso: {s | {day: timestamp_ntz}\nsources:\n  iso: {columns: {day: {format: yyyy-MM-dd XXX}}, s
4 | sources.iso.columns.day.format | NOT_APPLICABLE

# format with a letter that cannot be used
SNAPSHOT |     snapshot: |     columns: {birthday: {format: YYYY-MM-DD}}\n    snapshot:
5 | sources.crm.columns.birthday.format | INVALID_PATTERN

# format with the minute for the month
SNAPSHOT |     snapshot: |     columns: {birthday: {format: dd.mm.yyyy}}\n    snapshot:
5 | sources.crm.columns.birthday.format | INVALID_PATTERN

# placeholder as a number
SNAPSHOT |     snapshot: |     columns: {city: {null_values: [-1]}}\n    snapshot:
5 | sources.crm.columns.city.null_values | UNQUOTED_TEXT

# placeholder of both kinds
SNAPSHOT |     snapshot: |     columns: {city: {null_values: [a, b], not_provided_values: b}}\n    snapshot:
5 | sources.crm.columns.city.null_values | CONFLICTING_OPTIONS

# placeholder of a key
FLAT | code\nsources:\n  iso: {s | code\nsources:\n  iso: {columns: {code: {not_provided_values: a}}, s
4 | sources.iso.columns.code.not_provided_values | NOT_APPLICABLE

# default text
SNAPSHOT |     snapshot: |     columns: {city: {default: 3}}\n    snapshot:
5 | sources.crm.columns.city.default | INVALID_DEFAULT

# default date
SNAPSHOT |     snapshot: |     columns: {birthday: {default: soon}}\n    snapshot:
5 | sources.crm.columns.birthday.default | INVALID_DEFAULT

# decimal separator unknown
SNAPSHOT | \nattributes: | \n    columns: {n: {decimal: ";"}}\nattributes:\n  n: {scd: 2, type: double}
6 | sources.crm.columns.n.decimal | NOT_ALLOWED

# grouping of several characters
SNAPSHOT | \nattributes: | \n    columns: {n: {grouping: ", "}}\nattributes:\n  n: {scd: 2, type: double}
6 | sources.crm.columns.n.grouping | NOT_ALLOWED

# grouping by a digit
SNAPSHOT | \nattributes: | \n    columns: {n: {grouping: "0"}}\nattributes:\n  n: {scd: 2, type: double}
6 | sources.crm.columns.n.grouping | NOT_ALLOWED

# grouping by the decimal separator
SNAPSHOT | \nattributes: | \n    columns: {n: {grouping: "."}}\nattributes:\n  n: {scd: 2, type: double}
6 | sources.crm.columns.n.grouping | CONFLICTING_OPTIONS

# separators of a text
SNAPSHOT | \nattributes: | \n    columns: {n: {decimal: ","}}\nattributes:\n  n: {scd: 2, type: string}
6 | sources.crm.columns.n.decimal | NOT_APPLICABLE

# true values alone
SNAPSHOT | \nattributes: | \n    columns: {n: {true_values: J}}\nattributes:\n  n: {scd: 2, type: boolean}
6 | sources.crm.columns.n.true_values | OPTION_REQUIRED

# one text for true and false
SNAPSHOT | \nattributes: | \n    columns: {n: {true_values: X, false_values: X}}\nattributes:\n  n: {scd: 2, type: bool}
6 | sources.crm.columns.n.false_values | CONFLICTING_OPTIONS

# true values of a text
SNAPSHOT | \nattributes: | \n    columns: {n: {true_values: J, false_values: N}}\nattributes:\n  n: 2
6 | sources.crm.columns.n.true_values | NOT_APPLICABLE

# reader option encoding
SNAPSHOT | landing/customers_{date}.csv | {path: "a_{date}.csv", options: {encoding: windows-1250}}
5 | sources.crm.snapshot.options.encoding | NOT_ALLOWED

# reader option maxColumns
SNAPSHOT | landing/customers_{date}.csv | {path: "a_{date}.csv", options: {maxColumns: many}}
5 | sources.crm.snapshot.options.maxColumns | NOT_ALLOWED

# placeholder at an address with one slash
SNAPSHOT | landing/customers_{date} | dbfs:/landing/customers_{date}
5 | sources.crm.snapshot.path | PATH_PLACEHOLDER

# path fixed
SNAPSHOT | customers_{date} | customers
5 | sources.crm.snapshot.path | PATH_PLACEHOLDER

# path fixed of a feed whose rows have times
FEED | {delivery} | changes
6 | sources.crm.feed.path | PATH_PLACEHOLDER

# path of a snapshot without a time
SNAPSHOT | {date} | {delivery}
5 | sources.crm.snapshot.path | PATH_PLACEHOLDER

# path of a row-timed snapshot without a time
SNAPSHOT | landing/customers_{date}.csv | {path: "a_{delivery}.csv", effective_at: at}
5 | sources.crm.snapshot.path | PATH_PLACEHOLDER

# path of a feed without a time
TWO | feed: landing/{date} | feed: landing/{delivery}
8 | sources.web.feed.path | PATH_PLACEHOLDER

# path two
SNAPSHOT | customers_{date} | {delivery}_{date}
5 | sources.crm.snapshot.path | PATH_PLACEHOLDER

# path unknown placeholder
SNAPSHOT | customers_{date} | customers_{dat}
5 | sources.crm.snapshot.path | PATH_PLACEHOLDER

# path date with Spark's letters
SNAPSHOT | customers_{date} | customers_{date:yyyyMMdd}
5 | sources.crm.snapshot.path | INVALID_PATTERN

# path date with a month's name
SNAPSHOT | customers_{date} | customers_{date:%d%b%Y}
5 | sources.crm.snapshot.path | INVALID_PATTERN

# path date with an hour
SNAPSHOT | customers_{date} | customers_{date:%Y%m%dT%H}
5 | sources.crm.snapshot.path | INVALID_PATTERN

# path date without a day
SNAPSHOT | customers_{date} | customers_{date:%Y-%m}
5 | sources.crm.snapshot.path | INVALID_PATTERN

# path date with two years
SNAPSHOT | customers_{date} | customers_{date:%Y%y%m%d}
5 | sources.crm.snapshot.path | INVALID_PATTERN

# path time twice
SNAPSHOT | customers_{date} | customers_{datetime:%Y%m%d%H%H}
5 | sources.crm.snapshot.path | INVALID_PATTERN

# path time without an hour
SNAPSHOT | customers_{date} | customers_{datetime:%Y%m%d}
5 | sources.crm.snapshot.path | INVALID_PATTERN

# path time without a minute
SNAPSHOT | customers_{date} | customers_{datetime:%Y%m%d%H%S}
5 | sources.crm.snapshot.path | INVALID_PATTERN

# path form of any name
FEED | {delivery} | {delivery:%Y}
6 | sources.crm.feed.path | PATH_PLACEHOLDER

# partition format of another pattern language
SNAPSHOT | landing/customers_{date}.csv | {path: a, format: delta, partition: day, partition_format: yyyyMMdd}
5 | sources.crm.snapshot.partition_format | INVALID_PATTERN

# partition format without partition
SNAPSHOT | landing/customers_{date}.csv | {path: "a_{date}.csv", partition_format: "%Y%m%d"}
5 | sources.crm.snapshot.partition_format | OPTION_REQUIRED

# time of day
SNAPSHOT | landing/customers_{date}.csv | {path: "a_{date}.csv", time_of_day: "24:00"}
5 | sources.crm.snapshot.time_of_day | NO_ISO_TIME

# time of day not quoted
SNAPSHOT | landing/customers_{date}.csv | {path: "a_{date}.csv", time_of_day: 23:59:59}
5 | sources.crm.snapshot.time_of_day | UNQUOTED_TEXT

# time of day of a time
SNAPSHOT | landing/customers_{date}.csv | {path: "a_{datetime}.csv", time_of_day: "23:59"}
5 | sources.crm.snapshot.time_of_day | NOT_APPLICABLE

# time of day of frames
SNAPSHOT | landing/customers_{date}.csv | {time_of_day: "23:59"}
5 | sources.crm.snapshot.time_of_day | NOT_APPLICABLE

# delivery zone
SNAPSHOT | landing/customers_{date}.csv | {path: "a_{date}.csv", delivery_timezone: Europe/Olso}
5 | sources.crm.snapshot.delivery_timezone | INVALID_TIME_ZONE

# delivery zone of versions
SNAPSHOT | landing/customers_{date}.csv | {path: a, format: delta, versions: true, delivery_timezone: Europe/Oslo}
5 | sources.crm.snapshot.delivery_timezone | NOT_APPLICABLE

# path empty
SNAPSHOT | landing/customers_{date}.csv | ''
5 | sources.crm.snapshot.path | MISSING_VALUE

# format unknown
SNAPSHOT | landing/customers_{date}.csv | {path: "a_{date}.csv", format: excel}
5 | sources.crm.snapshot.format | NOT_ALLOWED

# format not implied
SNAPSHOT | customers_{date}.csv | customers_{date}
5 | sources.crm.snapshot.format | MISSING_VALUE

# format of an archive
SNAPSHOT | landing/customers_{date}.csv | landing/customers_{date}.csv.ZIP
5 | sources.crm.snapshot.format | MISSING_VALUE

# versions of csv
SNAPSHOT | landing/customers_{date}.csv | {path: a.csv, versions: true}
5 | sources.crm.snapshot.format | NOT_APPLICABLE

# partition of csv
SNAPSHOT | landing/customers_{date}.csv | {path: a.csv, partition: day}
5 | sources.crm.snapshot.format | NOT_APPLICABLE

# partition placeholder
SNAPSHOT | landing/customers_{date}.csv | {path: "a_{date}", format: delta, partition: day}
5 | sources.crm.snapshot.path | PATH_PLACEHOLDER

# partition and versions
SNAPSHOT | landing/customers_{date}.csv | {path: a, format: delta, partition: day, versions: true}
5 | sources.crm.snapshot.versions | CONFLICTING_OPTIONS

# delta fixed
SNAPSHOT | landing/customers_{date}.csv | {path: a, format: delta}
5 | sources.crm.snapshot.path | PATH_PLACEHOLDER

# versions without path
SNAPSHOT | landing/customers_{date}.csv | {versions: true}
5 | sources.crm.snapshot.versions | OPTION_REQUIRED

# options alike
SNAPSHOT | landing/customers_{date}.csv | {path: "a_{date}.csv", options: {sep: "|", SEP: ";"}}
5 | sources.crm.snapshot.options | NAMED_TWICE

# sequence type
FEED |       effective_at |       sequence: seq\n      sequence_type: int\n      effective_at
8 | sources.crm.feed.sequence_type | NOT_ALLOWED

# sequence type alone
FEED |       effective_at |       sequence_type: timestamp\n      effective_at
7 | sources.crm.feed.sequence_type | OPTION_REQUIRED

# sequence of four columns
FEED |       effective_at |       sequence: [a, b, c, d]\n      effective_at
7 | sources.crm.feed.sequence | OUT_OF_RANGE

# sequence of several times
FEED |       effective_at |       sequence: [a, b]\n      sequence_type: timestamp\n      effective_at
8 | sources.crm.feed.sequence_type | CONFLICTING_OPTIONS

# sequence without an expression
FEED |       effective_at |       sequence: [a, {}]\n      effective_at
7 | sources.crm.feed.sequence | MISSING_VALUE

# effective_at as a list
FEED | {delivery}.json\n      effective_at: changed_at | {date}.json\n      effective_at: [a, b]
7 | sources.crm.feed.effective_at | INVALID_KIND

# effective_at with an unknown option
FEED | effective_at: changed_at | effective_at: {expression: a, forma: b}
7 | sources.crm.feed.effective_at.forma | UNKNOWN_OPTION

# debezium as snapshots
SNAPSHOT | landing/customers_{date}.csv | {path: "a_{date}.json", format: debezium}
5 | sources.crm.snapshot.format | NOT_APPLICABLE

# ties
FEED |       effective_at |       ties: last\n      effective_at
7 | sources.crm.feed.ties | NOT_ALLOWED

# ties by deletes that are not declared
FEED |       effective_at |       ties: delete_wins\n      effective_at
7 | sources.crm.feed.ties | NOT_APPLICABLE

# ties by deletes of a snapshot
SNAPSHOT | landing/customers_{date}.csv | {path: "a_{date}.csv", ties: delete_wins}
5 | sources.crm.snapshot.ties | NOT_APPLICABLE

# ties by the order of a table
SNAPSHOT | landing/customers_{date}.csv | {path: a.delta, versions: true, ties: last_row}
5 | sources.crm.snapshot.ties | NOT_APPLICABLE

# ties by the order of a partition
SNAPSHOT | landing/customers_{date}.csv | {path: a.parquet, partition: day, ties: last_row}
5 | sources.crm.snapshot.ties | NOT_APPLICABLE

# effective_at_format alone
FEED | {delivery}.json\n      effective_at: | {date}.json\n      effective_at_format:
7 | sources.crm.feed.effective_at_format | OPTION_REQUIRED

# effective_at_format with a text that is not quoted
FEED |       effective_at |       effective_at_format: yyyy-MM-ddTHH:mm:ss\n      effective_at
7 | sources.crm.feed.effective_at_format | INVALID_PATTERN

# effective_at_unit alone
FEED | {delivery}.json\n      effective_at: | {date}.json\n      effective_at_unit:
7 | sources.crm.feed.effective_at_unit | OPTION_REQUIRED

# effective_at_round alone
FEED | {delivery}.json\n      effective_at: changed_at | {date}.json\n      effective_at_round: true
7 | sources.crm.feed.effective_at_round | OPTION_REQUIRED

# effective_at_unit
FEED |       effective_at |       effective_at_unit: seconds\n      effective_at
7 | sources.crm.feed.effective_at_unit | NOT_ALLOWED

# effective_at_unit and format
FEED |       effective_at |       effective_at_unit: s\n      effective_at_format: yyyy\n      effective_at
7 | sources.crm.feed.effective_at_unit | CONFLICTING_OPTIONS

# placeholder in single braces
SNAPSHOT |     snapshot: |     columns: {email: {expression: "{load_run_id}"}}\n    snapshot:
5 | sources.crm.columns.email.expression | EXPRESSION_PLACEHOLDER

# placeholder unknown
SNAPSHOT |     snapshot: |     columns: {email: {expression: "concat(email, {{ run_id }})"}}\n    snapshot:
5 | sources.crm.columns.email.expression | EXPRESSION_PLACEHOLDER

# placeholder in quotes
SNAPSHOT |     snapshot: |     columns: {email: {expression: "'{{ load_run_id }}'"}}\n    snapshot:
5 | sources.crm.columns.email.expression | EXPRESSION_PLACEHOLDER

# placeholder not closed
FEED |       effective_at |       deletes: "until < {{ load_timestamp"\n      effective_at
7 | sources.crm.feed.deletes | EXPRESSION_PLACEHOLDER

# placeholder that opens versions
SNAPSHOT |     snapshot: |     columns: {city: {expression: "{{ load_run_id }}"}}\n    snapshot:
5 | sources.crm.columns.city.expression | NOT_APPLICABLE

# placeholder in the business key
SNAPSHOT |     snapshot: |     columns: {customer_id: {expression: "concat(id, {{load_run_id}})"}}\n    snapshot:
5 | sources.crm.columns.customer_id.expression | NOT_APPLICABLE

# placeholder without a delivery time
FEED |       effective_at |       deletes: "until < {{ load_timestamp }}"\n      effective_at
7 | sources.crm.feed.deletes | NOT_APPLICABLE

# nulls
FEED |       effective_at |       nulls: not_provided\n      effective_at
7 | sources.crm.feed.nulls | CONFLICTING_OPTIONS

# nulls unknown choice
FEED |       effective_at |       nulls: ignore\n      effective_at
7 | sources.crm.feed.nulls | NOT_ALLOWED

# updates
FEED |       effective_at |       updates: few\n      effective_at
7 | sources.crm.feed.updates | NOT_ALLOWED

# scope
SNAPSHOT | landing/customers_{date}.csv | {path: "a_{date}.csv", scope: place}
5 | sources.crm.snapshot.scope | UNKNOWN_NAME

# scope of an attribute with row times
SNAPSHOT | landing/customers_{date}.csv | {path: "a_{date}.csv", scope: city, effective_at: at}
5 | sources.crm.snapshot.scope | CONFLICTING_OPTIONS

# scope of an attribute with deletes
SNAPSHOT | landing/customers_{date}.csv | {path: "a_{date}.csv", scope: city, deletes: gone}
5 | sources.crm.snapshot.scope | CONFLICTING_OPTIONS

# scope twice
SNAPSHOT | landing/customers_{date}.csv | {path: "a_{date}.csv", scope: [customer_id, customer_id]}
5 | sources.crm.snapshot.scope | NAMED_TWICE

# unreadable keys
SNAPSHOT | landing/customers_{date}.csv | {path: "a_{date}.csv", unreadable_keys: retire_all}
5 | sources.crm.snapshot.unreadable_keys | NOT_ALLOWED
"""


@pytest.mark.parametrize(("text", "error"), cases(TABLE))
def test_fault(text: str, error: LocatedCode) -> None:
    assert located_codes(lambda: parse(text, "c.yaml")) == [error]
