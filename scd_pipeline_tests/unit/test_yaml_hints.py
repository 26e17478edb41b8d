"""Hints for what people often write: types of other systems, cut types, misplaced and misspelt options."""

from __future__ import annotations

import pytest

from scd_pipeline.declaration import parse
from scd_pipeline.errors import DeclarationError

TEXT = """
dimension: dim_customer
business_key: id
sources:
  crm: {source}
attributes:
  city: {attribute}
"""
SNAPSHOT = '{snapshot: "in/{date}.csv"}'


@pytest.mark.parametrize(
    ("source", "attribute", "expected"),
    [
        (SNAPSHOT, "{scd: 2, type: datetime}", ["attributes.city.type: did you mean timestamp?"]),
        (SNAPSHOT, "{scd: 2, type: array<str>}", ["attributes.city.type: did you mean string?"]),
        (SNAPSHOT, "{scd: 2, type: decimal(20,12)}", ['attributes.city.type: quote it: "decimal(20,12)"']),
        (
            SNAPSHOT,
            "{type: struct<a:int,b:map<int,int>>, scd: 2}",
            ['attributes.city.type: quote it: "struct<a:int,b:map<int,int>>"'],
        ),
        (
            '{snapshot: {path: "in/{date}.csv", retire_guard: 0.1}}',
            "2",
            ["sources.crm.snapshot.retire_guard: `retire_guard` is an option of the source"],
        ),
        (
            "{snapshto: {path: in/all.csv, format: xls}}",
            "2",
            [
                "sources.crm.snapshto: did you mean snapshot?",
                "sources.crm.snapshot.path: put {date} or {datetime} in the name",
                "sources.crm.snapshot.format: allowed: parquet, csv",
            ],
        ),
        (
            '{snapshot: {path: "in/{date}.csv", formt: xls}, bad_row_limt: 7}',
            "{scd: 2, typ: strng, personl: maybe}",
            [
                "sources.crm.bad_row_limt: did you mean bad_row_limit?",
                "sources.crm.snapshot.formt: did you mean format?",
                "sources.crm.snapshot.format: allowed: parquet, csv",
                "sources.crm.bad_row_limit: ",
                "attributes.city.typ: did you mean type?",
                "attributes.city.personl: did you mean personal?",
                "attributes.city.personal: write true or false",
                "attributes.city.type: did you mean string?",
            ],
        ),
    ],
)
def test_an_error_has_a_hint(source: str, attribute: str, expected: list[str]) -> None:
    with pytest.raises(DeclarationError) as caught:
        parse(TEXT.replace("{source}", source).replace("{attribute}", attribute))
    hints = [f"{error.field}: {error.fix}" for error in caught.value.errors]
    assert len(hints) == len(expected), hints
    for hint, beginning in zip(hints, expected, strict=True):
        assert hint.startswith(beginning)
