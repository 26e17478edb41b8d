"""S37, S14: random deliveries of whole rows, late, repeated and withdrawn, on the oracle and the engine."""

from __future__ import annotations

import random

import pytest

from scd_pipeline_tests import oracle as o
from scd_pipeline_tests.semantics.conftest import Check
from scd_pipeline_tests.semantics.declarations import READING
from scd_pipeline_tests.semantics.specification import Case, DeliveryTable, feed, oracle_batch, rule, snapshots
from scd_pipeline_tests.text_tables import render

SEEDS = range(37, 45)
DAYS = ("2024-01-01", "2024-01-02")
ROWS = tuple((day, number, name) for day in DAYS for number in ("1", "NULL") for name in ("a", "''", "NULL"))
COLUMNS = ("day", "id", "name", "effective_from", "effective_to", "version")


def random_case(seed: int) -> Case:
    """Snapshots of one or two days and feeds, in any order of arrival; some come twice, and some are withdrawn."""
    generator = random.Random(seed)
    deliveries = [_delivery(generator, number) for number in range(1, 8)]
    number = generator.choice([n for n, each in enumerate(deliveries, 1) if each.channel == "snapshot"])
    withdrawn = snapshots(f"| delivery | revision | day |\n| {number} | 2 | withdrawn |", "erp")
    tables = (*generator.sample(deliveries, len(deliveries)), *generator.sample(deliveries, 2), withdrawn)
    dimension = READING.dimension
    batches = [oracle_batch(batch, dimension) for table in tables for batch in table.batches(dimension)]
    return Case(READING, *tables, becomes=render(o.oracle(READING.dim, batches), COLUMNS))


def _delivery(generator: random.Random, number: int) -> DeliveryTable:
    """A delivery of some rows at the time of its number."""
    rows = [generator.choice(ROWS) for _ in range(generator.randint(1, 8))]
    time = f"2024-02-{number:02}"
    if number > 1 and generator.random() < 0.3:
        lines = [
            f"| {number} | {time} | {generator.choice('UUD')} | {' | '.join(row)} |" for row in dict.fromkeys(rows)
        ]
        return feed("\n".join(["| delivery | time | op | day | id | name |", *lines]), "erp")
    lines = [f"| {number} | {time} | {' | '.join(row)} |" for row in rows]
    return snapshots("\n".join(["| delivery | at | day | id | name |", *lines]), "erp")


@rule("S37", "S14", "S19", "S34")
@pytest.mark.parametrize("case", [random_case(seed) for seed in SEEDS], ids=map(str, SEEDS))
@pytest.mark.slow(11)
def test_random_rows_agree_with_the_oracle(case: Case, check_engine: Check) -> None:
    check_engine(case)
