"""Faults in the YAML of landing tables, in the form of `test_yaml_faults.py` (S28, S38)."""

from __future__ import annotations

import pytest

from scd_pipeline.declaration import parse_declarations
from scd_pipeline_tests.semantics.specification import requirement, rule
from scd_pipeline_tests.unit.test_yaml_faults import LANDING_BASES, LocatedCode, cases, located_codes

TABLE = r"""
# merge without a key
MERGE | primary_key: {id: bigint}\ndedup_sort: {updated_at: desc}\n | <nothing>
1 | primary_key | MISSING_VALUE

# key of an append
APPEND | columns | primary_key: line\ncolumns
3 | primary_key | NOT_APPLICABLE

# merge key of a replace
REPLACE | columns | merge_key: code\ncolumns
3 | merge_key | NOT_APPLICABLE

# order of an append
APPEND | columns | dedup_sort: {line: asc}\ncolumns
3 | dedup_sort | NOT_APPLICABLE

# flag of a replace
REPLACE | columns | hard_delete: name\ncolumns
3 | hard_delete | NOT_APPLICABLE

# strategy of an append
APPEND | columns | strategy: upsert\ncolumns
3 | strategy | NOT_APPLICABLE

# scd2 strategy
MERGE | dedup_sort | strategy: scd2\ndedup_sort
4 | strategy | NOT_ALLOWED

# other strategy
MERGE | dedup_sort | strategy: delete-insert\ndedup_sort
4 | strategy | NOT_ALLOWED

# other disposition
APPEND | append | skip
2 | disposition | NOT_ALLOWED

# no disposition
APPEND | disposition: append\n | <nothing>
1 | disposition | MISSING_VALUE

# landing table without columns
APPEND | columns: {line: string}\n | <nothing>
1 | columns | MISSING_VALUE

# upsert without a primary key
DAYS | columns | strategy: upsert\ncolumns
1 | primary_key | MISSING_VALUE

# upsert with a merge key
MERGE | dedup_sort: {updated_at: desc} | strategy: upsert\nmerge_key: title
5 | merge_key | NOT_APPLICABLE

# upsert with an order
MERGE | dedup_sort | strategy: upsert\ndedup_sort
5 | dedup_sort | NOT_APPLICABLE

# order without a primary key
DAYS | columns | dedup_sort: {value: asc}\ncolumns
4 | dedup_sort | OPTION_REQUIRED

# order by the key
MERGE | {updated_at: desc} | {id: desc}
4 | dedup_sort | NOT_APPLICABLE

# order by an unknown column
MERGE | {updated_at: desc} | {update_at: desc}
4 | dedup_sort | UNKNOWN_NAME

# order of another direction
MERGE | desc | descending
4 | dedup_sort.updated_at | NOT_ALLOWED

# order by two columns
MERGE | {updated_at: desc} | {updated_at: desc, title: asc}
4 | dedup_sort | INVALID_KIND

# flag in the key
DAYS | columns | hard_delete: batch_day\ncolumns
4 | hard_delete | NOT_APPLICABLE

# unknown flag
MERGE | dedup_sort | hard_delete: removed\ndedup_sort
4 | hard_delete | UNKNOWN_NAME

# flag of a mirrored table
MIRROR | columns | hard_delete: deleted\ncolumns
4 | hard_delete | OPTION_REQUIRED

# key of two types
MERGE | {title: string | {id: string, title: string
3 | primary_key | CONFLICTING_OPTIONS

# replace by a feed
REPLACE | snapshot | feed
5 | sources.iso | LANDING_SOURCE

# landing table with two sources
APPEND |   api: |   web: {feed: {}}\n  api:
4 | sources | LANDING_SOURCE

# landing table with row times
APPEND | "lines_{date}.csv" | {path: "lines_{date}.csv", effective_at: at}
5 | sources.api.feed.effective_at | NOT_APPLICABLE

# landing table with deletes of a feed
APPEND | "lines_{date}.csv" | {path: "lines_{date}.csv", deletes: "line IS NULL"}
5 | sources.api.feed.deletes | NOT_APPLICABLE

# ties without a key
APPEND | "lines_{date}.csv" | {path: "lines_{date}.csv", ties: first_row}
5 | sources.api.feed.ties | NOT_APPLICABLE

# landing table with deliveries of any name
APPEND | lines_{date} | lines_{delivery}
5 | sources.api.feed.path | PATH_PLACEHOLDER

# column of the package in a landing table
APPEND | {line: | {scd_row_hash:
3 | columns.scd_row_hash | NAME_IN_USE

# type of a column of a landing table
APPEND | line: string | line: strng
3 | columns.line.type | INVALID_TYPE

# type of a primary key
MERGE | bigint | bigintt
3 | primary_key.id | INVALID_TYPE

# type of the mirrored columns of a landing table
MIRROR | columns: mirror | mirror: {scd: 1}
4 | mirror.scd | UNKNOWN_OPTION
"""


@requirement("D1", "D2", "D42")
@rule("S28", "S38")
@pytest.mark.parametrize(("text", "error"), cases(TABLE))
def test_a_fault_is_reported_with_its_line_and_field(text: str, error: LocatedCode) -> None:
    assert error in located_codes(lambda: parse_declarations(text, "c.yaml"))


@pytest.mark.parametrize("text", LANDING_BASES.values())
def test_the_bases_of_landing_tables_have_no_fault(text: str) -> None:
    assert len(parse_declarations(text).landing_tables) == 1
