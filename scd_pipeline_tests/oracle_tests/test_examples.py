from __future__ import annotations

import datetime as dt
import random
import re
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from scd_pipeline_tests import oracle as judge
from scd_pipeline_tests.oracle import (
    RETIRE_GUARD,
    UNORDERED,
    Batch,
    Src,
    accepted,
    canon,
    oracle,
    quarantine,
    statements,
)
from scd_pipeline_tests.oracle_tests.examples import (
    EXAMPLES,
    GOLD_IN_MARCH,
    PLAYER,
    WALK,
    Example,
    dim,
    feed,
    snapshots,
    time,
)
from scd_pipeline_tests.text_tables import assert_same_rows
from scd_pipeline_tests.worlds import physical_columns, rows_as_records

every_example = pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.title)
CITY = dim(city=2)


def _shuffled(batch: Batch, rng: random.Random) -> Batch:
    return replace(batch, rows=tuple(rng.sample(batch.rows, len(batch.rows))))


@every_example
def test_example(example: Example) -> None:
    assert_same_rows(example.expected, oracle(example.dim, example.batches))


@every_example
def test_example_in_any_order(example: Example) -> None:
    rng = random.Random(1)
    for _ in range(5):
        batches = [_shuffled(batch, rng) for batch in example.batches * 2]
        assert_same_rows(example.expected, oracle(example.dim, rng.sample(batches, len(batches))))


@every_example
def test_example_can_be_delivered(example: Example) -> None:
    for batch in example.batches:
        columns = list(physical_columns(batch, example.all_types))
        records = rows_as_records(batch, example.all_types)
        assert [sorted(record) for record in records] == [sorted(columns)] * len(batch.rows)


def test_titles_are_different() -> None:
    assert len({example.title for example in EXAMPLES}) == len(EXAMPLES)


def _tier_at(when: str, *late: Batch) -> list[str]:
    rows = oracle(PLAYER, (*WALK, *late))
    return [row["tier"] for row in rows if row["effective_from"] <= time(when) < row["effective_to"]]


@pytest.mark.parametrize(
    ("when", "tier"),
    [
        ("2023-12-31", []),
        ("2024-03-05", ["Bronze"]),
        ("2024-05-31 23:59:59.999999", ["Bronze"]),
        ("2024-06-01", ["Silver"]),
        ("2024-08-01", ["Silver"]),
        ("2024-10-01", []),
        ("2024-12-01", ["Silver"]),
    ],
)
def test_as_of(when: str, tier: list[str]) -> None:
    """S2: windows are half-open; a gap means that the entity did not exist."""
    assert _tier_at(when) == tier


def test_as_of_after_a_late_change() -> None:
    """What an event finds moves with the windows."""
    assert _tier_at("2024-03-05", *GOLD_IN_MARCH) == ["Gold"]


def test_refused_batches_are_named() -> None:
    """S5: a value and NULL are different values."""
    batches = feed(
        """
        | delivery | id | time       | city |
        | 1        | 1  | 2024-01-01 | a    |
        | 2        | 1  | 2024-01-01 | b    |
        | 2        | 1  | 2024-01-01 | NULL |
        """
    )
    assert accepted(CITY, batches)[1] == {"crm/feed/2/1": UNORDERED}


def _cities(delivery: str, at: str, count: int, revision: int = 1) -> Batch:
    """A snapshot with that many entities."""
    rows = "".join(f"| {delivery} | {at} | {revision} | {i} | a |\n" for i in range(count))
    empty = f"| {delivery} | {at} | {revision} | nobody | |"
    (batch,) = snapshots("| delivery | at | revision | id | city |\n" + (rows or empty))
    return batch


@pytest.mark.parametrize(
    ("alive", "left", "rejected"),
    [(24, 18, False), (24, 17, True), (24, 0, True), (20, 15, False), (20, 14, True), (19, 0, False)],
)
def test_retire_guard(exists: int, left: int, rejected: bool) -> None:
    """S27: more than a quarter of twenty or more."""
    batches = [_cities("1", "2024-01-01", exists), _cities("2", "2024-02-01", left)]
    assert accepted(CITY, batches)[1] == ({"crm/snapshot/2/1": RETIRE_GUARD} if rejected else {})


def test_retire_guard_goes_by_position_and_the_rest_goes_on() -> None:
    """S27: what is stopped neither retires nor counts for the next."""
    batches = [_cities("3", "2024-03-01", 20), _cities("2", "2024-02-01", 3), _cities("1", "2024-01-01", 24)]
    assert accepted(CITY, batches)[1] == {"crm/snapshot/2/1": RETIRE_GUARD}
    assert sum(row["current_flag"] for row in oracle(CITY, batches)) == 20


def test_retire_guard_lets_through_what_it_is_told_to() -> None:
    batches = [_cities("1", "2024-01-01", 24), _cities("2", "2024-02-01", 3)]
    assert accepted(CITY, [*batches, replace(batches[1], allow_guard=True)])[1] == {}


def test_retire_guard_leaves_withdrawals_alone() -> None:
    """S34: a withdrawn snapshot retires nobody."""
    withdrawn = replace(_cities("2", "2024-02-01", 0), withdrawn=True)
    assert accepted(CITY, [_cities("1", "2024-01-01", 24), withdrawn])[1] == {}


def test_retire_guard_counts_bad_rows_as_present() -> None:
    """S26, S27."""
    half = _cities("2", "2024-02-01", 24)
    half = replace(half, rows=tuple(replace(row, bad="city") for row in half.rows[:20]))
    assert accepted(CITY, [_cities("1", "2024-01-01", 24), half])[1] == {}


def test_retire_guard_leaves_other_sources_alone() -> None:
    """S30: absence from a source that does not decide retires nobody."""
    sources = (replace(CITY.sources[0], decides=False), Src("erp", decides=True))
    batches = [_cities("1", "2024-01-01", 24), _cities("2", "2024-02-01", 0)]
    assert accepted(replace(CITY, sources=sources), batches)[1] == {}


def test_retire_guard_counts_the_scope_only() -> None:
    """S27: one region of a few may go, though none is left of it."""
    world = dim(city=2, key="region id")
    full = _cities("1", "2024-01-01", 40)
    rows = tuple(replace(row, key=("n" if row.key[0] < 19 else "s", row.key[0])) for row in full.rows)
    full = replace(full, rows=rows, scope_columns=("region",))
    emptied = replace(_cities("2", "2024-02-01", 0), scope_columns=("region",))
    assert accepted(world, [full, replace(emptied, scope_values=(("n",),))])[1] == {}
    assert accepted(world, [full, replace(emptied, scope_values=(("s",),))])[1] != {}


def test_a_stopped_revision_leaves_the_one_below_it() -> None:
    """S27, S34."""
    batches = [
        _cities("1", "2024-01-01", 24),
        _cities("2", "2024-02-01", 22),
        _cities("2", "2024-02-01", 1, 2),
    ]
    standing, refused = accepted(CITY, batches)
    assert [batch.id for batch in standing] == ["crm/snapshot/1/1", "crm/snapshot/2/1"]
    assert refused == {"crm/snapshot/2/2": RETIRE_GUARD}


def test_quarantine() -> None:
    """S26, S29: batch and reason of each bad row; its key where it can be read."""
    batches = feed(
        """
        | delivery | id   | time                | city | bad  |
        | 1        | NULL | 2024-01-01          | a    |      |
        | 1        | 1    | 2024-01-01          | a    | city |
        | 1        | 2    | NULL                | a    |      |
        | 1        | 3    | 1999-12-31 23:59:59 | a    |      |
        | 1        | 4    | OPEN                | a    |      |
        | 1        | 5    | 2024-01-01          | a    |      |
        """
    )
    assert quarantine(dim(city=2, begin=(time("2000-01-01"), time("2001-01-01"))), batches) == [
        ("crm/feed/1/1", None, "unreadable key"),
        ("crm/feed/1/1", (1,), "city"),
        ("crm/feed/1/1", (2,), "missing effective_at"),
        ("crm/feed/1/1", (3,), "before the beginning"),
        ("crm/feed/1/1", (4,), "at or after the open end"),
    ]


def test_statements_of_a_snapshot_with_row_times() -> None:
    """S4: the rows at their own times; at the snapshot's who is there, and who is not."""
    batches = snapshots(
        """
        | delivery | at         | id | time       | city |
        | 1        | 2024-02-01 | 1  | 2024-01-01 | a    |
        | 1        | 2024-02-01 | 2  | 2024-01-15 | b    |
        | 2        | 2024-03-01 | 1  | 2024-01-01 | a    |
        """
    )
    said = [(s.time, s.batch.delivery, s.key[0], s.kind) for s in statements(CITY, batches)]
    assert sorted(said) == [
        (dt.datetime(2024, 1, 1), "1", 1, "upsert"),
        (dt.datetime(2024, 1, 1), "2", 1, "upsert"),
        (dt.datetime(2024, 1, 15), "1", 2, "upsert"),
        (dt.datetime(2024, 2, 1), "1", 1, "presence"),
        (dt.datetime(2024, 2, 1), "1", 2, "presence"),
        (dt.datetime(2024, 3, 1), "2", 1, "presence"),
        (dt.datetime(2024, 3, 1), "2", 2, "delete"),
    ]


def test_a_bad_row_says_nothing() -> None:
    """S26: in a snapshot at its time; in a feed it is not heard of."""
    table = """
    | delivery | at         | id | city | bad  |
    | 1        | 2024-01-01 | 1  | a    | city |
    """
    assert [s.kind for s in statements(CITY, snapshots(table))] == ["no_op"]
    assert statements(CITY, feed(table)) == []


def test_two_contents_under_one_revision_are_a_fault() -> None:
    one, other = _cities("1", "2024-01-01", 2), _cities("1", "2024-01-01", 3)
    assert len(accepted(CITY, [one, one])[0]) == 1
    with pytest.raises(ValueError, match="crm/snapshot/1/1: two contents"):
        accepted(CITY, [one, other])


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (float("nan"), float("nan")),
        (0.0, -0.0),
        ({"x": 1, "y": [{"z": None, "w": 1}]}, {"y": [{"w": 1, "z": None}], "x": 1}),
        ([float("nan")], [float("nan")]),
    ],
)
def test_equal_values(one: object, other: object) -> None:
    """S8."""
    assert canon(one) == canon(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [(None, ""), (None, 0), ([], None), ([None], []), ({"a": None}, None), (["a", "b"], ["a|b"]), ({}, [])],
)
def test_different_values(one: object, other: object) -> None:
    """S8."""
    assert canon(one) != canon(other)


def test_the_oracle_knows_nothing_of_what_it_judges() -> None:
    """It imports what comes with Python alone."""
    names = re.findall(r"^(?:from|import) (\w+)", Path(str(judge.__file__)).read_text(encoding="utf-8"), re.MULTILINE)
    assert set(names) <= sys.stdlib_module_names
