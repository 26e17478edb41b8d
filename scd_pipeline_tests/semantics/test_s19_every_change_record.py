"""Each kind of change record, late, early and at equal time (S5, S14, S18, S19, S26).

There are two records, one in January (Bonn) and one in March. Each line adds a further *record*: an upsert (Ulm), a
delete, a no-op or a bad row. It is delivered *by* a feed or a snapshot, and it *arrives*

- late: it is true from February, and is loaded last;
- early: it is true from May, and is loaded first;
- equal, before or after: it is true from March, like the second record; the name of its delivery is before or after
  that of the second record; it is loaded last.

The months have the city of the entity at that time. Each line is tested with the first two records from a feed and from
snapshots.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby

import pytest

from scd_pipeline_tests.semantics.declarations import CUSTOMER
from scd_pipeline_tests.semantics.specification import Case, DeliveryTable, expected, feed, rule, snapshots
from scd_pipeline_tests.text_tables import render

KIEL_IN_MARCH = """
| record  | by       | arrives       | Jan  | Feb  | Mar  | Apr  | May  |
| ------- | -------- | ------------- | ---- | ---- | ---- | ---- | ---- |
| upsert  | feed     | late          | Bonn | Ulm  | Kiel | Kiel | Kiel |
| upsert  | feed     | early         | Bonn | Bonn | Kiel | Kiel | Ulm  |
| upsert  | feed     | equal, before | Bonn | Bonn | Kiel | Kiel | Kiel |
| upsert  | feed     | equal, after  | Bonn | Bonn | Ulm  | Ulm  | Ulm  |
| upsert  | snapshot | late          | Bonn | Ulm  | Kiel | Kiel | Kiel |
| upsert  | snapshot | early         | Bonn | Bonn | Kiel | Kiel | Ulm  |
| upsert  | snapshot | equal, before | Bonn | Bonn | Kiel | Kiel | Kiel |
| upsert  | snapshot | equal, after  | Bonn | Bonn | Ulm  | Ulm  | Ulm  |
| delete  | feed     | late          | Bonn |      | Kiel | Kiel | Kiel |
| delete  | feed     | early         | Bonn | Bonn | Kiel | Kiel |      |
| delete  | feed     | equal, before | Bonn | Bonn | Kiel | Kiel | Kiel |
| delete  | feed     | equal, after  | Bonn | Bonn |      |      |      |
| delete  | snapshot | late          | Bonn |      | Kiel | Kiel | Kiel |
| delete  | snapshot | early         | Bonn | Bonn | Kiel | Kiel |      |
| delete  | snapshot | equal, before | Bonn | Bonn | Kiel | Kiel | Kiel |
| delete  | snapshot | equal, after  | Bonn | Bonn |      |      |      |
| no-op   | snapshot | late          | Bonn | Bonn | Kiel | Kiel | Kiel |
| no-op   | snapshot | early         | Bonn | Bonn | Kiel | Kiel | Kiel |
| no-op   | snapshot | equal, before | Bonn | Bonn | Kiel | Kiel | Kiel |
| no-op   | snapshot | equal, after  | Bonn | Bonn | Kiel | Kiel | Kiel |
| bad row | feed     | late          | Bonn | Bonn | Kiel | Kiel | Kiel |
| bad row | feed     | early         | Bonn | Bonn | Kiel | Kiel | Kiel |
| bad row | feed     | equal, before | Bonn | Bonn | Kiel | Kiel | Kiel |
| bad row | feed     | equal, after  | Bonn | Bonn | Kiel | Kiel | Kiel |
| bad row | snapshot | late          | Bonn | Bonn | Kiel | Kiel | Kiel |
| bad row | snapshot | early         | Bonn | Bonn | Kiel | Kiel | Kiel |
| bad row | snapshot | equal, before | Bonn | Bonn | Kiel | Kiel | Kiel |
| bad row | snapshot | equal, after  | Bonn | Bonn | Kiel | Kiel | Kiel |
"""

BONN_REPEATED_IN_MARCH = """
| record  | by       | arrives       | Jan  | Feb  | Mar  | Apr  | May  |
| ------- | -------- | ------------- | ---- | ---- | ---- | ---- | ---- |
| upsert  | feed     | late          | Bonn | Ulm  | Bonn | Bonn | Bonn |
| upsert  | feed     | early         | Bonn | Bonn | Bonn | Bonn | Ulm  |
| upsert  | feed     | equal, before | Bonn | Bonn | Bonn | Bonn | Bonn |
| upsert  | feed     | equal, after  | Bonn | Bonn | Ulm  | Ulm  | Ulm  |
| upsert  | snapshot | late          | Bonn | Ulm  | Bonn | Bonn | Bonn |
| upsert  | snapshot | equal, before | Bonn | Bonn | Bonn | Bonn | Bonn |
| upsert  | snapshot | equal, after  | Bonn | Bonn | Ulm  | Ulm  | Ulm  |
| delete  | feed     | late          | Bonn |      | Bonn | Bonn | Bonn |
| delete  | feed     | equal, before | Bonn | Bonn | Bonn | Bonn | Bonn |
| delete  | feed     | equal, after  | Bonn | Bonn |      |      |      |
| delete  | snapshot | late          | Bonn |      | Bonn | Bonn | Bonn |
| delete  | snapshot | equal, before | Bonn | Bonn | Bonn | Bonn | Bonn |
| delete  | snapshot | equal, after  | Bonn | Bonn |      |      |      |
| no-op   | snapshot | late          | Bonn | Bonn | Bonn | Bonn | Bonn |
| bad row | snapshot | late          | Bonn | Bonn | Bonn | Bonn | Bonn |
"""

MONTHS = {"Jan": "2024-01-01", "Feb": "2024-02-01", "Mar": "2024-03-01", "Apr": "2024-04-01", "May": "2024-05-01"}
ARRIVALS = {
    "late": ("2", MONTHS["Feb"]),
    "early": ("5", MONTHS["May"]),
    "equal, before": ("2", MONTHS["Mar"]),
    "equal, after": ("4", MONTHS["Mar"]),
}
ROWS = {
    ("upsert", "feed"): "| {name} | {time} | 1      |      | {time} |    | Ulm  | 1  |",
    ("delete", "feed"): "| {name} | {time} | 1      |      | {time} | D  |      |    |",
    ("bad row", "feed"): "| {name} | {time} | 1      | bad_rows | {time} |    | Ulm  | x! |",
    ("upsert", "snapshot"): "| {name} | {time} | 1      |      | Ulm  | 1  |",
    ("delete", "snapshot"): "| {name} | {time} | no row |      |      |    |",
    ("no-op", "snapshot"): "| {name} | {time} | NULL   | bad_rows | Ulm  | 1  |",
    ("bad row", "snapshot"): "| {name} | {time} | 1      | bad_rows | Ulm  | x! |",
}


def _delivery(by: str, line: str) -> DeliveryTable:
    if by == "feed":
        return feed(f"| delivery | at | id | allow | time | op | city | score |\n{line}")
    return snapshots(f"| delivery | at | id | allow | city | score |\n{line}")


def _change_record(by: str, name: str, time: str, city: str) -> DeliveryTable:
    cells = ("1", "", time, "", city, "1") if by == "feed" else ("1", "", city, "1")
    return _delivery(by, f"| {name} | {time} | {' | '.join(cells)} |")


def _becomes(line: dict[str, str | None]) -> str:
    """The versions that the columns of months describe."""
    runs = [(city, [MONTHS[m] for m, _ in months]) for city, months in groupby(_months(line), lambda pair: pair[1])]
    rows = []
    for i, (city, months) in enumerate(runs):
        if city is not None:
            ends = runs[i + 1][1][0] if i + 1 < len(runs) else "OPEN"
            rows.append({"city": city, "effective_from": months[0], "effective_to": ends, "version": len(rows) + 1})
    return "\n".join(text.strip() for text in render(rows).splitlines()).replace("'", "")


def _months(line: dict[str, str | None]) -> list[tuple[str, str | None]]:
    return [(month, line[month]) for month in MONTHS]


def _cases(table: str, city: str) -> Iterator[tuple[str, Case]]:
    for line in expected(table):
        name, time = ARRIVALS[line["arrives"]]
        added = _delivery(line["by"], ROWS[line["record"], line["by"]].format(name=name, time=time))
        for base in ("feed", "snapshot"):
            base_records = [
                _change_record(base, "1", MONTHS["Jan"], "Bonn"),
                _change_record(base, "3", MONTHS["Mar"], city),
            ]
            tables = [added, *base_records] if line["arrives"] == "early" else [*base_records, added]
            title = f"{line['record']} by {line['by']}, {line['arrives']}, {city} by {base}"
            yield title, Case(CUSTOMER, *tables, becomes=_becomes(line))


CASES = dict([*_cases(KIEL_IN_MARCH, "Kiel"), *_cases(BONN_REPEATED_IN_MARCH, "Bonn")])


@rule("S5", "S14", "S18", "S19", "S26")
@pytest.mark.parametrize("side", ["oracle", "engine"])
@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_every_kind_of_change_record_arriving_late_early_or_at_equal_time(
    case: Case, side: str, request: pytest.FixtureRequest
) -> None:
    request.getfixturevalue(f"check_{side}")(case)
