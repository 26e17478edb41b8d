from __future__ import annotations

import datetime as dt
import random
from dataclasses import replace

import pytest

from scd_pipeline_tests.oracle import (
    RETIRE_GUARD,
    UNORDERED,
    Batch,
    accepted,
    canon,
    oracle,
    quarantine,
    statements,
)
from scd_pipeline_tests.oracle_tests.examples import (
    EXAMPLES,
    PLAYER,
    WALK,
    Example,
    dim,
    feed,
    snapshot,
    time,
)
from scd_pipeline_tests.text_tables import assert_same_rows
from scd_pipeline_tests.worlds import rows_as_records


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.title)
def test_example(example: Example) -> None:
    assert_same_rows(example.expected, oracle(example.dim, example.batches))


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.title)
def test_example_in_any_order(example: Example) -> None:
    rng = random.Random(1)
    for _ in range(5):
        batches = [
            replace(batch, rows=tuple(rng.sample(batch.rows, len(batch.rows)))) for batch in example.batches
        ]
        batches = rng.sample(batches * 2, 2 * len(batches))
        assert_same_rows(example.expected, oracle(example.dim, batches))


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.title)
def test_example_can_be_delivered(example: Example) -> None:
    for batch in example.batches:
        assert len(rows_as_records(batch, example.all_types)) == len(batch.rows)


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
    """F57, S2: half-open windows; a gap means that the entity did not exist."""
    assert _tier_at(when) == tier


def test_as_of_after_a_late_change() -> None:
    """F61: what an event finds moves with the windows."""
    late = snapshot("l", "2024-03-01", "| id | tier | home | risk | email |\n| 1 | Gold | North | 10 | a |")
    assert _tier_at("2024-03-05", late) == ["Gold"]


def test_refused_batches_are_named() -> None:
    batches = [
        feed("1", "| id | time | city |\n| 1 | 2024-01-01 | a |"),
        feed("2", "| id | time | city |\n| 1 | 2024-01-01 | b |\n| 1 | 2024-01-01 | |"),
    ]
    assert accepted(dim(city=2), batches)[1] == {"crm/feed/2/1": UNORDERED}


def _numbered(count: int) -> str:
    return "| id | city |\n" + "\n".join(f"| {i} | a |" for i in range(count))


@pytest.mark.parametrize(
    ("alive", "left", "stopped"),
    [(24, 18, False), (24, 17, True), (24, 0, True), (19, 0, False), (20, 15, False)],
)
def test_retire_guard(alive: int, left: int, stopped: bool) -> None:
    """S27: over a quarter of twenty or more."""
    batches = [snapshot("1", "2024-01-01", _numbered(alive)), snapshot("2", "2024-02-01", _numbered(left))]
    refused = accepted(dim(city=2), batches)[1]
    assert refused == ({"crm/snapshot/2/1": RETIRE_GUARD} if stopped else {})


def test_retire_guard_goes_by_position_and_the_rest_goes_on() -> None:
    """S27: what is stopped neither retires nor counts for the next."""
    batches = [
        snapshot("3", "2024-03-01", _numbered(20)),
        snapshot("2", "2024-02-01", _numbered(3)),
        snapshot("1", "2024-01-01", _numbered(24)),
    ]
    assert accepted(dim(city=2), batches)[1] == {"crm/snapshot/2/1": RETIRE_GUARD}
    assert sum(row["current_flag"] for row in oracle(dim(city=2), batches)) == 20


def test_retire_guard_lets_through_what_it_is_told_to() -> None:
    batches = [snapshot("1", "2024-01-01", _numbered(24)), snapshot("2", "2024-02-01", _numbered(3))]
    batches.append(replace(batches[1], allow_guard=True))
    assert accepted(dim(city=2), batches)[1] == {}


def test_a_stopped_revision_leaves_the_one_below_it() -> None:
    """S27, S34."""
    batches = [snapshot("1", "2024-01-01", _numbered(24)), snapshot("2", "2024-02-01", _numbered(22))]
    batches.append(snapshot("2", "2024-02-01", _numbered(1), revision=2))
    assert [batch.id for batch in accepted(dim(city=2), batches)[0]] == [
        "crm/snapshot/1/1",
        "crm/snapshot/2/1",
    ]


def test_quarantine() -> None:
    """S26, S29: reason and batch of each bad row; the key where it can be read."""
    table = """
    | id   | time                | city | bad  |
    | NULL | 2024-01-01          | a    |      |
    | 1    | 2024-01-01          | a    | city |
    | 2    | NULL                | a    |      |
    | 3    | 1999-12-31 23:59:59 | a    |      |
    | 4    | OPEN                | a    |      |
    | 5    | 2024-01-01          | a    |      |
    """
    world = dim(city=2, begin=(time("2000-01-01"), time("2001-01-01")))
    assert quarantine(world, [feed("1", table)]) == [
        ("crm/feed/1/1", None, "unreadable key"),
        ("crm/feed/1/1", (1,), "city"),
        ("crm/feed/1/1", (2,), "missing effective_at"),
        ("crm/feed/1/1", (3,), "before the beginning"),
        ("crm/feed/1/1", (4,), "at or after the open end"),
    ]


def test_statements_of_a_snapshot_with_row_times() -> None:
    """S4: the row at its own time, then who is there and who is not at the snapshot's."""
    batches = [
        snapshot("1", "2024-02-01", "| id | time | city |\n| 1 | 2024-01-01 | a |\n| 2 | 2024-01-15 | b |"),
        snapshot("2", "2024-03-01", "| id | time | city |\n| 1 | 2024-01-01 | a |"),
    ]
    said = [(s.batch.delivery, s.key[0], s.kind, s.time) for s in statements(dim(city=2), batches)]
    assert said == [
        ("1", 1, "values", dt.datetime(2024, 1, 1)),
        ("2", 1, "values", dt.datetime(2024, 1, 1)),
        ("1", 2, "values", dt.datetime(2024, 1, 15)),
        ("1", 1, "present", dt.datetime(2024, 2, 1)),
        ("1", 2, "present", dt.datetime(2024, 2, 1)),
        ("2", 2, "gone", dt.datetime(2024, 3, 1)),
        ("2", 1, "present", dt.datetime(2024, 3, 1)),
    ]


def test_two_contents_under_one_revision_are_a_fault() -> None:
    batches = [feed("1", "| id | time | city |\n| 1 | 2024-01-01 | a |")] * 2
    assert len(accepted(dim(city=2), batches)[0]) == 1
    batches[1] = feed("1", "| id | time | city |\n| 1 | 2024-01-01 | b |")
    with pytest.raises(ValueError, match="crm/feed/1/1: two contents"):
        accepted(dim(city=2), batches)


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
    assert canon(one) == canon(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [(None, ""), (None, 0), ([], None), ([None], []), ({"a": None}, None), (["a", "b"], ["a|b"])],
)
def test_different_values(one: object, other: object) -> None:
    """S8."""
    assert canon(one) != canon(other)
