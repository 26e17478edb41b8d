"""Examples worked out by hand from the contract: deliveries and the rows that have to come of them.

Written as data, so that any engine can be asked for them. A delivery's table has the key columns, attributes, and
of these what it needs: `op` (D: a delete), `time` and `seq` (the row's own), `reason`, `bad` (why it is bad).
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from scd_pipeline_tests.oracle import Attr, Batch, Dim, Row, Src
from scd_pipeline_tests.text_tables import header, parse, parse_cell
from scd_pipeline_tests.worlds import Types

CRM = (Src("crm", True),)
META = ("op", "time", "seq", "reason", "bad")


@dataclass(frozen=True)
class Example:
    """What is delivered (in any order) and the rows that come of it. `types`: of attributes that are no string."""

    title: str
    dim: Dim
    batches: tuple[Batch, ...]
    expected: str
    types: Mapping[str, str] = field(default_factory=dict)

    @property
    def all_types(self) -> Types:
        """The types of key and attributes, in the form of the worlds."""
        names = [name for attr in self.dim.attrs for name in (attr.name, *attr.former_names)]
        attributes = dict.fromkeys(names, "string") | dict(self.types)
        return Types({name: self.types.get(name, "int") for name in self.dim.key}, attributes)


def dim(key: str = "id", sources: tuple[Src, ...] = CRM, attrs: tuple[Attr, ...] = (), **more: Any) -> Dim:
    """A dimension; keywords that are numbers are attributes of the first source."""
    options = {name: value for name, value in more.items() if name in Dim.__dataclass_fields__}
    own = tuple(Attr(name, scd, sources[0].name) for name, scd in more.items() if name not in options)
    return Dim("dim", tuple(key.split()), (*own, *attrs), sources, **options)


def time(text: str) -> dt.datetime:
    return dt.datetime.fromisoformat(text)


def _when(value: Any) -> dt.datetime | None:
    return time(str(value)) if value is not None else None


def _row(cells: dict[str, Any], key: tuple[str, ...]) -> Row:
    values = {name: value for name, value in cells.items() if name not in (*key, *META)}
    return Row(
        tuple(cells[name] for name in key),
        values,
        "gone" if cells.get("op") == "D" else "values",
        _when(cells.get("time")),
        cells.get("seq"),
        cells.get("reason"),
        cells.get("bad"),
    )


def delivery(channel: str, name: str, at: str, table: str, key: str = "id", **more: Any) -> Batch:
    """A batch of the source crm (revision 1), unless told otherwise."""
    keys = tuple(key.split())
    rows = tuple(_row(cells, keys) for cells in parse(table))
    declared = tuple(column for column in header(table) if column not in (*keys, *META))
    fixed = {"source": "crm", "revision": 1, "declared": declared, "row_times": "time" in header(table)}
    return Batch(channel=channel, delivery=name, at=time(at), rows=rows, **{**fixed, **more})


def snapshot(name: str, at: str, table: str, **more: Any) -> Batch:
    return delivery("snapshot", name, at, table, **more)


def feed(name: str, table: str, at: str = "2024-12-31", **more: Any) -> Batch:
    return delivery("feed", name, at, table, **more)


def cell(text: str) -> Any:
    return parse_cell(text)


PLAYER = dim(tier=2, home=2, risk=2, email=1)
WALK = (
    snapshot("b1", "2024-01-01", "| id | tier | home | risk | email |\n| 1 | Bronze | North | 10 | a |"),
    snapshot("b2", "2024-06-01", "| id | tier | home | risk | email |\n| 1 | Silver | North | 10 | a |"),
    snapshot("b3", "2024-07-01", "| id | tier | home | risk | email |\n| 1 | Silver | North | 10 | b |"),
    snapshot("b4", "2024-09-01", "| id | tier | home | risk | email |"),
    snapshot("b5", "2024-11-01", "| id | tier | home | risk | email |\n| 1 | Silver | North | 10 | b |"),
)


def walk_with(*batches: Batch) -> tuple[Batch, ...]:
    return (*WALK, *batches)


COUNTRY = dim(name=1, region=1)
ACCOUNT = dim(manager=3)
PROGRAM = dim(
    attrs=(Attr("name", 1, "crm"), Attr("threshold", 6, "crm", previous=True), Attr("cap", 6, "crm"))
)
PROGRAM_DELIVERIES = (
    feed("p1", "| id | time | name | threshold | cap |\n| 1 | 2024-01-01 | n1 | 100.00 | 5000.00 |"),
    feed("p2", "| id | time | name | threshold | cap |\n| 1 | 2024-02-01 | n1 | 150.00 | 5000.00 |"),
    feed("p3", "| id | time | name | threshold | cap |\n| 1 | 2024-03-01 | n2 | 150.00 | 5000.00 |"),
    feed("p4", "| id | time | name | threshold | cap |\n| 1 | 2024-04-01 | n2 | 150.00 | 6000.00 |"),
)
MANAGERS = tuple(feed(f"m{i}", f"| id | time | manager |\n| 1 | 2024-0{i}-01 | m{i} |") for i in (1, 2, 3))
MONEY = {"threshold": "decimal(18,2)", "cap": "decimal(18,2)"}
TWO_SOURCES = dim(
    sources=(Src("crm", True), Src("erp", False, feed_states="some", feed_nulls="not_stated")),
    attrs=(Attr("city", 2, "crm"), Attr("limit", 2, "erp"), Attr("owner", 1, "erp")),
)
SCOPED = dim("region id", city=2)
IN_REGION = {"key": "region id", "scope_columns": ("region",)}
REGION = {"region": "string"}

EXAMPLES = (
    Example(
        "F17 to F20: change, overwrite, delete and return",
        PLAYER,
        WALK,
        """
        | id | tier   | email | effective_from | effective_to | current_flag | version | load_run_id       | last_updated |
        | 1  | Bronze | b     | 2024-01-01     | 2024-06-01   | false        | 1       | crm/snapshot/b1/1 | 2024-07-01   |
        | 1  | Silver | b     | 2024-06-01     | 2024-09-01   | false        | 2       | crm/snapshot/b2/1 | 2024-07-01   |
        | 1  | Silver | b     | 2024-11-01     | OPEN         | true         | 3       | crm/snapshot/b5/1 | 2024-11-01   |
        """,
        {"risk": "int"},
    ),
    Example(
        "F21, S19: a late snapshot is fitted in between its neighbours",
        PLAYER,
        walk_with(
            snapshot("l", "2024-03-01", "| id | tier | home | risk | email |\n| 1 | Gold | North | 10 | a |")
        ),
        """
        | tier   | email | effective_from | effective_to | version | load_run_id       |
        | Bronze | b     | 2024-01-01     | 2024-03-01   | 1       | crm/snapshot/b1/1 |
        | Gold   | b     | 2024-03-01     | 2024-06-01   | 2       | crm/snapshot/l/1  |
        | Silver | b     | 2024-06-01     | 2024-09-01   | 3       | crm/snapshot/b2/1 |
        | Silver | b     | 2024-11-01     | OPEN         | 4       | crm/snapshot/b5/1 |
        """,
        {"risk": "int"},
    ),
    Example(
        "F21: a late change that a later one only repeats takes the start from it",
        PLAYER,
        walk_with(
            snapshot(
                "l", "2024-05-01", "| id | tier | home | risk | email |\n| 1 | Silver | North | 10 | a |"
            )
        ),
        """
        | tier   | effective_from | effective_to | version | load_run_id       |
        | Bronze | 2024-01-01     | 2024-05-01   | 1       | crm/snapshot/b1/1 |
        | Silver | 2024-05-01     | 2024-09-01   | 2       | crm/snapshot/l/1  |
        | Silver | 2024-11-01     | OPEN         | 3       | crm/snapshot/b5/1 |
        """,
        {"risk": "int"},
    ),
    Example(
        "F12, S6: type 0 keeps the first value that is not NULL",
        dim(born=0, tier=2),
        (
            feed(
                "f1",
                "| id | time | born | tier |\n| 1 | 2024-01-01 | 1990-01-01 | a |\n| 2 | 2024-01-01 | | a |",
            ),
            feed(
                "f2",
                "| id | time | born | tier |\n| 1 | 2024-02-01 | 1991-02-02 | b |\n| 2 | 2024-02-01 | 1992-03-03 | b |",
            ),
            feed(
                "f3",
                "| id | time | born | tier |\n| 1 | 2024-03-01 | | b |\n| 2 | 2024-03-01 | 1993-04-04 | b |",
            ),
        ),
        """
        | id | born       | tier | effective_from | effective_to | last_updated |
        | 1  | 1990-01-01 | a    | 2024-01-01     | 2024-02-01   | 2024-01-01   |
        | 1  | 1990-01-01 | b    | 2024-02-01     | OPEN         | 2024-02-01   |
        | 2  | 1992-03-03 | a    | 2024-01-01     | 2024-02-01   | 2024-02-01   |
        | 2  | 1992-03-03 | b    | 2024-02-01     | OPEN         | 2024-02-01   |
        """,
        {"born": "date"},
    ),
    Example(
        "S6: first in business time, whatever came first, and of equal times the last",
        dim(born=0),
        (
            feed("2024-05-02", "| id | time | born |\n| 1 | 2024-02-01 | b |"),
            feed("2024-05-03", "| id | time | born |\n| 1 | 2024-01-01 | c |"),
            feed("2024-05-04", "| id | time | seq | born |\n| 1 | 2024-01-01 | 1 | d |"),
        ),
        """
        | id | born | last_updated |
        | 1  | d    | 2024-01-01   |
        """,
    ),
    Example(
        "F13, S33: type 1 overwrites; an unchanged entity keeps its last_updated",
        COUNTRY,
        (
            snapshot(
                "1", "2024-01-01", "| id | name | region |\n| 1 | Germany | Europe |\n| 2 | Peru | Americas |"
            ),
            snapshot(
                "2", "2024-02-01", "| id | name | region |\n| 1 | Germany | EU |\n| 2 | Peru | Americas |"
            ),
        ),
        """
        | id | name    | region   | change_reason | change_source | load_run_id      | last_updated |
        | 1  | Germany | EU       | source_load   | crm           | crm/snapshot/1/1 | 2024-02-01   |
        | 2  | Peru    | Americas | source_load   | crm           | crm/snapshot/1/1 | 2024-01-01   |
        """,
    ),
    Example(
        "F14: to NULL and from NULL are changes of types 1 and 3",
        dim(region=1, manager=3),
        (
            snapshot("1", "2024-01-01", "| id | region | manager |\n| 1 | | |\n| 2 | EU | m |"),
            snapshot("2", "2024-02-01", "| id | region | manager |\n| 1 | EU | m |\n| 2 | | |"),
        ),
        """
        | id | region | manager | previous_manager | manager_changed_at | last_updated |
        | 1  | EU     | m       | NULL             | 2024-02-01         | 2024-02-01   |
        | 2  | NULL   | NULL    | m                | 2024-02-01         | 2024-02-01   |
        """,
    ),
    Example(
        "F34, S9: type 3 at first",
        ACCOUNT,
        MANAGERS[:1],
        """
        | id | manager | previous_manager | manager_changed_at |
        | 1  | m1      | NULL             | 2024-01-01         |
        """,
    ),
    Example(
        "F34, S9: type 3 after a second value",
        ACCOUNT,
        MANAGERS[:2],
        """
        | id | manager | previous_manager | manager_changed_at |
        | 1  | m2      | m1               | 2024-02-01         |
        """,
    ),
    Example(
        "F34, F35, S9: type 3 after a third value; the first is gone from the row",
        ACCOUNT,
        MANAGERS,
        """
        | id | manager | previous_manager | manager_changed_at | load_run_id   | last_updated |
        | 1  | m3      | m2               | 2024-03-01         | crm/feed/m1/1 | 2024-03-01   |
        """,
    ),
    Example(
        "S9: type 3 goes by runs: a value stated again is no change, a late one may split a run",
        ACCOUNT,
        (
            feed(
                "1",
                "| id | time | manager |\n| 1 | 2024-01-01 | a |\n| 1 | 2024-02-01 | a |\n| 2 | 2024-01-01 | a |",
            ),
            feed("2", "| id | time | manager |\n| 2 | 2024-03-01 | a |"),
            feed("3", "| id | time | manager |\n| 2 | 2024-02-01 | b |"),
        ),
        """
        | id | manager | previous_manager | manager_changed_at |
        | 1  | a       | NULL             | 2024-01-01         |
        | 2  | a       | b                | 2024-03-01         |
        """,
    ),
    Example(
        "F40, S10: type 6 with the value of the version before",
        PROGRAM,
        PROGRAM_DELIVERIES,
        """
        | name | threshold | current_threshold | previous_threshold | cap     | current_cap | effective_from | effective_to | last_updated |
        | n2   | 100.00    | 150.00            | NULL               | 5000.00 | 6000.00     | 2024-01-01     | 2024-02-01   | 2024-04-01   |
        | n2   | 150.00    | 150.00            | 100.00             | 5000.00 | 6000.00     | 2024-02-01     | 2024-04-01   | 2024-04-01   |
        | n2   | 150.00    | 150.00            | 150.00             | 6000.00 | 6000.00     | 2024-04-01     | OPEN         | 2024-04-01   |
        """,
        MONEY,
    ),
    Example(
        "F42: one whom a snapshot leaves out is gone",
        dim(city=2),
        (
            snapshot("1", "2024-01-01", "| id | city |\n| 1 | a |\n| 2 | a |"),
            snapshot("2", "2024-02-01", "| id | city |\n| 1 | a |"),
        ),
        """
        | id | effective_from | effective_to | current_flag |
        | 1  | 2024-01-01     | OPEN         | true         |
        | 2  | 2024-01-01     | 2024-02-01   | false        |
        """,
    ),
    Example(
        "F42: one whom a feed leaves out is unchanged",
        dim(city=2),
        (
            feed("1", "| id | city |\n| 1 | a |\n| 2 | a |", at="2024-01-01"),
            feed("2", "| id | city |\n| 1 | a |", at="2024-02-01"),
        ),
        """
        | id | effective_from | effective_to | current_flag |
        | 1  | 2024-01-01     | OPEN         | true         |
        | 2  | 2024-01-01     | OPEN         | true         |
        """,
    ),
    Example(
        "F27, S5: several changes of one batch all become history",
        dim(city=2),
        (
            feed(
                "1",
                """
                | id | time       | seq | op | city |
                | 1  | 2024-03-01 |     |    | c    |
                | 1  | 2024-01-01 |     |    | a    |
                | 1  | 2024-02-01 | 1   |    | b    |
                | 1  | 2024-02-01 | 2   |    | bb   |
                | 1  | 2024-03-01 | 0   |    | d    |
                | 1  | 2024-04-01 |     | D  |      |
                """,
            ),
        ),
        """
        | city | effective_from | effective_to | version |
        | a    | 2024-01-01     | 2024-02-01   | 1       |
        | bb   | 2024-02-01     | 2024-03-01   | 2       |
        | d    | 2024-03-01     | 2024-04-01   | 3       |
        """,
    ),
    Example(
        "S5: rows that nothing orders and that agree collapse",
        dim(city=2),
        (feed("1", "| id | time | city |\n| 1 | 2024-01-01 | a |\n| 1 | 2024-01-01 | a |"),),
        """
        | city | effective_from | effective_to |
        | a    | 2024-01-01     | OPEN         |
        """,
    ),
    Example(
        "S5: rows that nothing orders and that differ refuse their batch; the others go on",
        dim(city=2),
        (
            feed("1", "| id | time | city |\n| 1 | 2024-01-01 | a |"),
            feed(
                "2",
                "| id | time | city |\n| 1 | 2024-02-01 | b |\n| 1 | 2024-02-01 | c |\n| 2 | 2024-02-01 | d |",
            ),
            feed("3", "| id | time | op | city |\n| 1 | 2024-02-01 | | d |\n| 1 | 2024-02-01 | D | |"),
        ),
        """
        | id | city | effective_from | effective_to |
        | 1  | a    | 2024-01-01     | OPEN         |
        """,
    ),
    Example(
        "S5: at equal times the later position wins for each attribute that it states; none is seen in between",
        dim(city=2, tier=2),
        (
            feed("10", "| id | time | city |\n| 1 | 2024-01-01 | ten |"),
            feed("9", "| id | time | city | tier |\n| 1 | 2024-01-01 | nine | t |"),
        ),
        """
        | city | tier | effective_from | load_run_id   |
        | ten  | t    | 2024-01-01     | crm/feed/10/1 |
        """,
    ),
    Example(
        "S5: the order of deliveries: dates, then integers, then text",
        dim(city=2),
        (
            feed("a", "| id | time | city |\n| 1 | 2024-01-01 | text |"),
            feed("99", "| id | time | city |\n| 1 | 2024-01-01 | integer |\n| 2 | 2024-01-01 | integer |"),
            feed("2024-01-09", "| id | time | city |\n| 2 | 2024-01-01 | date |\n| 3 | 2024-01-01 | ninth |"),
            feed("2024-01-10", "| id | time | city |\n| 3 | 2024-01-01 | tenth |"),
        ),
        """
        | id | city    |
        | 1  | text    |
        | 2  | integer |
        | 3  | tenth   |
        """,
    ),
    Example(
        "S5: sequence comes before delivery, and NULL first",
        dim(city=2),
        (
            feed(
                "1",
                "| id | time | seq | city |\n| 1 | 2024-01-01 | 5 | five |\n| 2 | 2024-01-01 | -1 | less |",
            ),
            feed(
                "2", "| id | time | seq | city |\n| 1 | 2024-01-01 | 4 | four |\n| 2 | 2024-01-01 | | none |"
            ),
        ),
        """
        | id | city | load_run_id  |
        | 1  | five | crm/feed/1/1 |
        | 2  | less | crm/feed/1/1 |
        """,
    ),
    Example(
        "S5: deleted and back at one time is no gap and opens nothing",
        dim(city=2),
        (
            feed("1", "| id | time | city |\n| 1 | 2024-01-01 | a |"),
            feed(
                "2",
                "| id | time | seq | op | city |\n| 1 | 2024-02-01 | 1 | D | |\n| 1 | 2024-02-01 | 2 | | a |",
            ),
        ),
        """
        | city | effective_from | effective_to | version | load_run_id  |
        | a    | 2024-01-01     | OPEN         | 1       | crm/feed/1/1 |
        """,
    ),
    Example(
        "S8: NULL is not the empty text, and no value runs over into the next",
        dim(a=2, b=2),
        (
            feed("1", "| id | time | a | b |\n| 1 | 2024-01-01 | NULL | c |\n| 2 | 2024-01-01 | 'a|b' | c |"),
            feed("2", "| id | time | a | b |\n| 1 | 2024-02-01 | '' | c |\n| 2 | 2024-02-01 | a | 'b|c' |"),
            feed("3", "| id | time | a | b |\n| 1 | 2024-03-01 | NULL | c |\n| 2 | 2024-03-01 | a | 'b|c' |"),
        ),
        """
        | id | a     | b     | effective_from | effective_to |
        | 1  | NULL  | c     | 2024-01-01     | 2024-02-01   |
        | 1  | ''    | c     | 2024-02-01     | 2024-03-01   |
        | 1  | NULL  | c     | 2024-03-01     | OPEN         |
        | 2  | 'a|b' | c     | 2024-01-01     | 2024-02-01   |
        | 2  | a     | 'b|c' | 2024-02-01     | OPEN         |
        """,
    ),
    Example(
        "S8, S13: NaN equals NaN, a decimal goes by value",
        dim(load=2, price=2),
        (
            feed("1", "| id | time | load | price |\n| 1 | 2024-01-01 | NaN | 1.50 |"),
            feed("2", "| id | time | load | price |\n| 1 | 2024-02-01 | NaN | 1.500 |"),
        ),
        """
        | load | price | effective_from | effective_to |
        | NaN  | 1.50  | 2024-01-01     | OPEN         |
        """,
        {"load": "double", "price": "decimal(10,2)"},
    ),
    Example(
        "S4: a snapshot's rows state values at their own times, and at its time who is there",
        dim(city=2),
        (
            snapshot(
                "1", "2024-03-01", "| id | time | city |\n| 1 | 2024-01-01 | a |\n| 2 | 2024-02-01 | b |"
            ),
            snapshot("2", "2024-04-01", "| id | time | city |\n| 1 | 2024-01-01 | a |"),
            snapshot(
                "3", "2024-05-01", "| id | time | city |\n| 1 | 2024-01-01 | a |\n| 2 | 2024-02-01 | b |"
            ),
        ),
        """
        | id | city | effective_from | effective_to | version | load_run_id      |
        | 1  | a    | 2024-01-01     | OPEN         | 1       | crm/snapshot/1/1 |
        | 2  | b    | 2024-02-01     | 2024-04-01   | 1       | crm/snapshot/1/1 |
        | 2  | b    | 2024-05-01     | OPEN         | 2       | crm/snapshot/3/1 |
        """,
    ),
    Example(
        "S4: one who is back at the snapshot's time has the row of the highest position",
        dim(city=2),
        (
            snapshot("1", "2024-01-01", "| id | time | city |\n| 1 | 2024-01-01 | a |"),
            snapshot("2", "2024-03-01", "| id | time | city |"),
            snapshot(
                "3", "2024-04-01", "| id | time | city |\n| 1 | 2024-02-01 | c |\n| 1 | 2024-01-15 | b |"
            ),
        ),
        """
        | city | effective_from | effective_to | version |
        | a    | 2024-01-01     | 2024-01-15   | 1       |
        | b    | 2024-01-15     | 2024-02-01   | 2       |
        | c    | 2024-02-01     | 2024-03-01   | 3       |
        | c    | 2024-04-01     | OPEN         | 4       |
        """,
    ),
    Example(
        "S7, S18: what is stated of one who is gone, or not there yet, holds",
        TWO_SOURCES,
        (
            feed(
                "e1",
                "| id | time | limit | owner |\n| 1 | 2024-01-01 | 10 | a |\n| 2 | 2024-01-01 | 5 | b |",
                source="erp",
            ),
            snapshot("c1", "2024-02-01", "| id | city |\n| 1 | x |"),
            snapshot("c2", "2024-03-01", "| id | city |"),
            feed("e2", "| id | time | limit | owner |\n| 1 | 2024-04-01 | 20 | c |", source="erp"),
            snapshot("c3", "2024-05-01", "| id | city |\n| 1 | x |"),
        ),
        """
        | id | city | limit | owner | effective_from | effective_to | change_source | last_updated |
        | 1  | x    | 10    | c     | 2024-02-01     | 2024-03-01   | crm           | 2024-04-01   |
        | 1  | x    | 20    | c     | 2024-05-01     | OPEN         | crm           | 2024-05-01   |
        """,
        {"limit": "int"},
    ),
    Example(
        "S30: a source that does not decide changes values, but not who exists",
        TWO_SOURCES,
        (
            snapshot("c1", "2024-01-01", "| id | city |\n| 1 | x |"),
            feed(
                "e1",
                "| id | time | op | limit | owner |\n| 1 | 2024-02-01 | | 10 | a |\n| 1 | 2024-03-01 | D | | |",
                source="erp",
            ),
        ),
        """
        | city | limit | owner | effective_from | effective_to | change_source |
        | x    | NULL  | a     | 2024-01-01     | 2024-02-01   | crm           |
        | x    | 10    | a     | 2024-02-01     | OPEN         | erp           |
        """,
        {"limit": "int"},
    ),
    Example(
        "S30: NULL that is declared as not stated leaves what holds; rows of one position complete each other",
        TWO_SOURCES,
        (
            snapshot("c1", "2024-01-01", "| id | city |\n| 1 | x |"),
            feed(
                "e1",
                "| id | time | limit | owner |\n| 1 | 2024-01-01 | 10 | |\n| 1 | 2024-01-01 | | a |",
                source="erp",
            ),
            feed("e2", "| id | time | limit | owner |\n| 1 | 2024-02-01 | | b |", source="erp"),
            feed("e3", "| id | time | owner |\n| 1 | 2024-03-01 | c |", source="erp"),
        ),
        """
        | city | limit | owner | effective_from | effective_to |
        | x    | 10    | c     | 2024-01-01     | OPEN         |
        """,
        {"limit": "int"},
    ),
    Example(
        "S20: a renamed attribute keeps its history, an added one was not stated before",
        dim(attrs=(Attr("city", 2, "crm", former_names=("town",)), Attr("tier", 2, "crm"))),
        (
            snapshot("1", "2024-01-01", "| id | town |\n| 1 | a |"),
            snapshot("2", "2024-02-01", "| id | city | tier |\n| 1 | a | t |"),
            snapshot("3", "2024-03-01", "| id | city |\n| 1 | b |"),
        ),
        """
        | city | tier | effective_from | effective_to |
        | a    | NULL | 2024-01-01     | 2024-02-01   |
        | a    | t    | 2024-02-01     | 2024-03-01   |
        | b    | t    | 2024-03-01     | OPEN         |
        """,
    ),
    Example(
        "S26: a quarantined row of a snapshot counts as present and says nothing",
        dim(city=2),
        (
            snapshot("1", "2024-01-01", "| id | city | bad |\n| 1 | a | |\n| 2 | a | |"),
            snapshot("2", "2024-02-01", "| id | city | bad |\n| 1 | b | |\n| 2 | b | city |"),
        ),
        """
        | id | city | effective_from | effective_to |
        | 1  | a    | 2024-01-01     | 2024-02-01   |
        | 1  | b    | 2024-02-01     | OPEN         |
        | 2  | a    | 2024-01-01     | OPEN         |
        """,
    ),
    Example(
        "S27: a snapshot with a key that cannot be read retires nobody",
        dim(city=2),
        (
            snapshot("1", "2024-01-01", "| id | city |\n| 1 | a |\n| 2 | a |"),
            snapshot("2", "2024-02-01", "| id | city |\n| 1 | b |\n| NULL | a |"),
        ),
        """
        | id | city | effective_from | effective_to |
        | 1  | a    | 2024-01-01     | 2024-02-01   |
        | 1  | b    | 2024-02-01     | OPEN         |
        | 2  | a    | 2024-01-01     | OPEN         |
        """,
    ),
    Example(
        "Scope, F42: a snapshot retires inside its scope only; a row outside is bad",
        SCOPED,
        (
            snapshot(
                "1",
                "2024-01-01",
                "| region | id | city |\n| n | 1 | a |\n| n | 2 | a |\n| s | 1 | a |",
                **IN_REGION,
            ),
            snapshot(
                "2",
                "2024-02-01",
                "| region | id | city |\n| n | 1 | a |\n| s | 1 | b |",
                **IN_REGION,
                scope_values=(("n",),),
            ),
        ),
        """
        | region | id | city | effective_from | effective_to |
        | n      | 1  | a    | 2024-01-01     | OPEN         |
        | n      | 2  | a    | 2024-01-01     | 2024-02-01   |
        | s      | 1  | a    | 2024-01-01     | OPEN         |
        """,
        REGION,
    ),
    Example(
        "Scope, D27, D28: the scope is read off the rows, or declared, and then may be empty",
        SCOPED,
        (
            snapshot(
                "1",
                "2024-01-01",
                "| region | id | city |\n| n | 1 | a |\n| n | 2 | a |\n| s | 1 | a |",
                **IN_REGION,
            ),
            snapshot("2", "2024-02-01", "| region | id | city |\n| n | 1 | a |", **IN_REGION),
            snapshot("3", "2024-03-01", "| region | id | city |", **IN_REGION),
            snapshot("4", "2024-04-01", "| region | id | city |", **IN_REGION, scope_values=(("s",),)),
        ),
        """
        | region | id | effective_from | effective_to |
        | n      | 1  | 2024-01-01     | OPEN         |
        | n      | 2  | 2024-01-01     | 2024-02-01   |
        | s      | 1  | 2024-01-01     | 2024-04-01   |
        """,
        REGION,
    ),
    Example(
        "S29: an early first change begins at the fixed time; a change before it is a bad row",
        dim(city=2, begin=(time("2000-01-01"), time("2024-01-01"))),
        (
            feed(
                "1",
                "| id | time | city |\n| 1 | 2024-01-01 | a |\n| 2 | 2024-01-02 | a |\n| 3 | 1999-12-31 | a |",
            ),
            feed("2", "| id | time | city |\n| 1 | 2024-03-01 | b |\n| 2 | 9999-12-31 23:59:59 | b |"),
        ),
        """
        | id | city | effective_from | effective_to | last_updated | load_run_id  |
        | 1  | a    | 2000-01-01     | 2024-03-01   | 2024-01-01   | crm/feed/1/1 |
        | 1  | b    | 2024-03-01     | OPEN         | 2024-03-01   | crm/feed/2/1 |
        | 2  | a    | 2024-01-02     | OPEN         | 2024-01-02   | crm/feed/1/1 |
        """,
    ),
    Example(
        "S33: without windows the row of a deleted entity stays and says since when",
        dim(name=1, deleted_at=True),
        (
            snapshot("1", "2024-01-01", "| id | name |\n| 1 | a |\n| 2 | b |\n| 3 | c |"),
            snapshot("2", "2024-02-01", "| id | name |\n| 3 | c |"),
            snapshot("3", "2024-03-01", "| id | name |\n| 2 | b |\n| 3 | d |"),
            snapshot("4", "2024-04-01", "| id | name |\n| 2 | b |"),
        ),
        """
        | id | name | deleted_at | load_run_id      | last_updated |
        | 1  | a    | 2024-02-01 | crm/snapshot/1/1 | 2024-01-01   |
        | 2  | b    | NULL       | crm/snapshot/1/1 | 2024-01-01   |
        | 3  | d    | 2024-04-01 | crm/snapshot/1/1 | 2024-03-01   |
        """,
    ),
    Example(
        "S33: by option the row of a deleted entity is removed",
        dim(name=1, deleted_rows="remove"),
        (
            snapshot("1", "2024-01-01", "| id | name |\n| 1 | a |\n| 2 | b |"),
            snapshot("2", "2024-02-01", "| id | name |\n| 2 | b |"),
        ),
        """
        | id | name |
        | 2  | b    |
        """,
    ),
    Example(
        "S34: the highest revision counts, wholly, whenever it comes",
        dim(city=2),
        (
            snapshot("1", "2024-01-01", "| id | city |\n| 1 | a |", revision=10),
            snapshot("1", "2024-01-01", "| id | city |\n| 1 | b |\n| 2 | b |", revision=9),
            snapshot("2", "2024-02-01", "| id | city |\n| 1 | a |\n| 2 | c |"),
        ),
        """
        | id | city | effective_from | load_run_id       |
        | 1  | a    | 2024-01-01     | crm/snapshot/1/10 |
        | 2  | c    | 2024-02-01     | crm/snapshot/2/1  |
        """,
    ),
    Example(
        "S34: a withdrawn batch never came; a higher revision brings it back",
        dim(city=2),
        (
            feed("1", "| id | time | city |\n| 1 | 2024-01-01 | a |\n| 2 | 2024-01-01 | a |"),
            feed("2", "| id | time | city |\n| 1 | 2024-02-01 | b |"),
            feed("2", "| id | time | city |", revision=2, withdrawn=True),
            feed("3", "| id | time | city |\n| 2 | 2024-02-01 | b |"),
            feed("3", "| id | time | city |", revision=2, withdrawn=True),
            feed("3", "| id | time | city |\n| 2 | 2024-02-01 | c |", revision=3),
        ),
        """
        | id | city | effective_from | effective_to | load_run_id  |
        | 1  | a    | 2024-01-01     | OPEN         | crm/feed/1/1 |
        | 2  | a    | 2024-01-01     | 2024-02-01   | crm/feed/1/1 |
        | 2  | c    | 2024-02-01     | OPEN         | crm/feed/3/3 |
        """,
    ),
    Example(
        "S5, S34: a refused revision leaves the one below it standing",
        dim(city=2),
        (
            snapshot("1", "2024-01-01", "| id | city |\n| 1 | a |"),
            snapshot("1", "2024-01-01", "| id | city |\n| 1 | b |\n| 1 | c |", revision=2),
        ),
        """
        | id | city | load_run_id      |
        | 1  | a    | crm/snapshot/1/1 |
        """,
    ),
    Example(
        "F25: the reason is the row's, else the batch's, else source_load",
        dim(city=2),
        (
            feed("1", "| id | time | reason | city |\n| 1 | 2024-01-01 | | a |", at="2024-01-01"),
            feed(
                "2",
                "| id | time | reason | city |\n| 1 | 2024-02-01 | | b |\n| 1 | 2024-03-01 | tier_upgrade | c |",
                reason="source_drift",
            ),
        ),
        """
        | city | change_reason | effective_from |
        | a    | source_load   | 2024-01-01     |
        | b    | source_drift  | 2024-02-01     |
        | c    | tier_upgrade  | 2024-03-01     |
        """,
    ),
    Example(
        "S14: a version is the work of the last statement of its time that changed anything",
        dim(city=2),
        (
            feed("1", "| id | time | city |\n| 1 | 2024-01-01 | a |"),
            feed("2", "| id | time | city |\n| 1 | 2024-02-01 | b |"),
            feed("3", "| id | time | city |\n| 1 | 2024-02-01 | c |"),
            feed("4", "| id | time | city |\n| 1 | 2024-02-01 | c |"),
        ),
        """
        | city | effective_from | load_run_id  |
        | a    | 2024-01-01     | crm/feed/1/1 |
        | c    | 2024-02-01     | crm/feed/3/1 |
        """,
    ),
)
