"""Faults of control totals in YAML, and their round trip."""

from __future__ import annotations

import pytest

from scd_pipeline.declaration import Dimension, describe, parse
from scd_pipeline.errors import DeclarationError

DECLARED = """\
dimension: dim_account
business_key: {{id: int}}
sources:
  bank:
    {channel}
attributes:
  balance: {{scd: 2, type: "decimal(12,2)"}}
  city: 2
"""
FILES = 'path: "accounts_{date}.csv"'
FAULTS = [
    ("feed: {effective_at: at, control_totals: {}}", "", "MISSING_VALUE"),
    ("feed: {effective_at: at, control_totals: {sums: {city: total}}}", ".sums.city", "UNKNOWN_NAME"),
    ("feed: {effective_at: at, control_totals: {sum: {id: total}}}", ".sum", "UNKNOWN_OPTION"),
    ("feed: {effective_at: at, control_totals: {rows: n, path: totals_{date}.csv}}", ".path", "OPTION_REQUIRED"),
    (f"snapshot: {{{FILES}, control_totals: {{rows: n, path: totals.csv}}}}", ".path", "PATH_PLACEHOLDER"),
    (f"snapshot: {{{FILES}, control_totals: {{rows: n, path: 't_{{date}}.xml'}}}}", ".path", "NOT_ALLOWED"),
    ("snapshot: {path: accounts, versions: true, control_totals: {rows: n}}", "", "NOT_APPLICABLE"),
]


@pytest.mark.parametrize(("channel", "field", "code"), FAULTS)
def test_a_fault_of_control_totals_is_reported_with_its_field(channel: str, field: str, code: str) -> None:
    with pytest.raises(DeclarationError) as caught:
        parse(DECLARED.format(channel=channel.replace("totals_{date}", "totals_1")))
    kind = channel.partition(":")[0]
    assert [(e.field, e.code) for e in caught.value.errors] == [(f"sources.bank.{kind}.control_totals{field}", code)]


def test_control_totals_are_described_as_declared() -> None:
    totals = "control_totals: {rows: n, sums: {balance: total, id: ids}, path: 'totals_{date:%Y%m%d}.json'}"
    (declared,) = parse(DECLARED.format(channel=f"snapshot: {{{FILES}, {totals}}}"))
    assert isinstance(declared, Dimension)
    assert parse(describe(declared)) == (declared,)
