"""Examples worked out by hand from the contract: deliveries, and the rows that have to come of them.

Written as data, so that any engine can be asked for them. A table of deliveries has a line for each delivered
row: `delivery` and, of the batch, what is needed of `at` and `revision`; of the row, what is needed of `op`
(D: delete), `time` and `seq` (its own), `reason` and `bad` (why it is bad); then key columns and attributes.
In place of a key, `nobody` is a batch without rows, and `withdrawn` one that is withdrawn.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from scd_pipeline_tests.oracle import Attr, Batch, Dim, Row, Src
from scd_pipeline_tests.text_tables import header, parse
from scd_pipeline_tests.worlds import Types

CRM = (Src("crm", True),)
META = ("delivery", "at", "revision", "op", "time", "seq", "reason", "bad")
NO_ROW = ("nobody", "withdrawn")


@dataclass(frozen=True)
class Example:
    """What is delivered (in any order) and what comes of it. `types` has what is no string (keys: no int)."""

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


def time(text: str) -> dt.datetime:
    return dt.datetime.fromisoformat(text)


def dim(*attrs: Attr, key: str = "id", sources: tuple[Src, ...] = CRM, **more: Any) -> Dim:
    """A dimension; a keyword with a number is an attribute of that type, from the first source."""
    own = [Attr(name, scd, sources[0].name) for name, scd in more.items() if type(scd) is int]
    options = {name: value for name, value in more.items() if type(value) is not int}
    return Dim("dim", tuple(key.split()), (*own, *attrs), sources, **options)


def feed(table: str, key: str = "id", **more: Any) -> tuple[Batch, ...]:
    """The batches of a feed (of the source crm, unless told otherwise)."""
    return _batches("feed", table, key.split(), more)


def snapshots(table: str, key: str = "id", **more: Any) -> tuple[Batch, ...]:
    """The batches of a snapshot channel (of the source crm, unless told otherwise)."""
    return _batches("snapshot", table, key.split(), more)


def _batches(channel: str, table: str, key: list[str], more: Mapping[str, Any]) -> tuple[Batch, ...]:
    columns, groups = header(table), {}
    for cells in parse(table):
        groups.setdefault((str(cells["delivery"]), cells.get("revision", 1)), []).append(cells)
    declared = tuple(column for column in columns if column not in (*key, *META))
    fixed = {"source": "crm", "row_times": "time" in columns, "declared": declared, **more}
    return tuple(
        Batch(
            channel=channel,
            delivery=delivery,
            revision=revision,
            at=time(str(rows[0].get("at", "2024-12-31"))),
            rows=tuple(_rows(rows, key, declared)),
            withdrawn=rows[0][key[0]] == "withdrawn",
            **fixed,
        )
        for (delivery, revision), rows in groups.items()
    )


def _rows(table: Iterable[Mapping[str, Any]], key: list[str], declared: tuple[str, ...]) -> Iterable[Row]:
    for cells in table:
        if cells[key[0]] not in NO_ROW:
            yield Row(
                tuple(cells[name] for name in key),
                {name: cells[name] for name in declared},
                "delete" if cells.get("op") == "D" else "upsert",
                time(str(cells["time"])) if cells.get("time") else None,
                cells.get("seq"),
                cells.get("reason"),
                cells.get("bad"),
            )


PLAYER = dim(tier=2, home=2, risk=2, email=1)
WALK = snapshots(
    """
    | delivery | at         | id     | tier   | home  | risk | email |
    | b1       | 2024-01-01 | 1      | Bronze | North | 10   | a     |
    | b2       | 2024-06-01 | 1      | Silver | North | 10   | a     |
    | b3       | 2024-07-01 | 1      | Silver | North | 10   | b     |
    | b4       | 2024-09-01 | nobody |        |       |      |       |
    | b5       | 2024-11-01 | 1      | Silver | North | 10   | b     |
    """
)
GOLD_IN_MARCH = snapshots(
    """
    | delivery | at         | id | tier | home  | risk | email |
    | late     | 2024-03-01 | 1  | Gold | North | 10   | a     |
    """
)
SILVER_IN_MAY = snapshots(
    """
    | delivery | at         | id | tier   | home  | risk | email |
    | late     | 2024-05-01 | 1  | Silver | North | 10   | a     |
    """
)
MANAGERS = feed(
    """
    | delivery | id | time       | manager |
    | 1        | 1  | 2024-01-01 | m1      |
    | 2        | 1  | 2024-02-01 | m2      |
    | 3        | 1  | 2024-03-01 | m3      |
    """
)
LIMITED = dim(
    Attr("limit", 2, "erp"),
    Attr("owner", 1, "erp"),
    city=2,
    sources=(Src("crm", True), Src("erp", False, feed_updates="partial", feed_nulls="not_provided")),
)
BY_REGION = {"key": "region id", "scope_columns": ("region",)}
CITIES_BY_REGION = snapshots(
    """
    | delivery | at         | region | id | city |
    | 1        | 2024-01-01 | n      | 1  | a    |
    | 1        | 2024-01-01 | n      | 2  | a    |
    | 1        | 2024-01-01 | s      | 1  | a    |
    """,
    **BY_REGION,
)

EXAMPLES = (
    Example(
        "S7, S8, S18: change, overwrite, delete and return",
        PLAYER,
        WALK,
        """
        | id | tier   | email | effective_from | effective_to | current_flag | version | last_updated |
        | 1  | Bronze | b     | 2024-01-01     | 2024-06-01   | false        | 1       | 2024-07-01   |
        | 1  | Silver | b     | 2024-06-01     | 2024-09-01   | false        | 2       | 2024-07-01   |
        | 1  | Silver | b     | 2024-11-01     | OPEN         | true         | 3       | 2024-11-01   |
        """,
        {"risk": "int"},
    ),
    Example(
        "S19: a late snapshot is fitted in between its neighbours",
        PLAYER,
        WALK + GOLD_IN_MARCH,
        """
        | tier   | email | effective_from | effective_to | version | load_run_id       |
        | Bronze | b     | 2024-01-01     | 2024-03-01   | 1       | crm/snapshot/b1   |
        | Gold   | b     | 2024-03-01     | 2024-06-01   | 2       | crm/snapshot/late |
        | Silver | b     | 2024-06-01     | 2024-09-01   | 3       | crm/snapshot/b2   |
        | Silver | b     | 2024-11-01     | OPEN         | 4       | crm/snapshot/b5   |
        """,
        {"risk": "int"},
    ),
    Example(
        "A late change that a later one only repeats takes the start from it",
        PLAYER,
        WALK + SILVER_IN_MAY,
        """
        | tier   | effective_from | effective_to | version | load_run_id       |
        | Bronze | 2024-01-01     | 2024-05-01   | 1       | crm/snapshot/b1   |
        | Silver | 2024-05-01     | 2024-09-01   | 2       | crm/snapshot/late |
        | Silver | 2024-11-01     | OPEN         | 3       | crm/snapshot/b5   |
        """,
        {"risk": "int"},
    ),
    Example(
        "S6: type 0 keeps the first value that is not NULL",
        dim(born=0, tier=2),
        feed(
            """
            | delivery | id | time       | born       | tier |
            | 1        | 1  | 2024-01-01 | 1990-01-01 | a    |
            | 1        | 2  | 2024-01-01 | NULL       | a    |
            | 2        | 1  | 2024-02-01 | 1991-02-02 | b    |
            | 2        | 2  | 2024-02-01 | 1992-03-03 | b    |
            | 3        | 1  | 2024-03-01 | NULL       | b    |
            | 3        | 2  | 2024-03-01 | 1993-04-04 | b    |
            """
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
        "S6: first in business time, whichever came first; of equal times the last",
        dim(origin=0),
        feed(
            """
            | delivery   | id | time       | seq | origin |
            | 2024-05-02 | 1  | 2024-02-01 |     | b      |
            | 2024-05-03 | 1  | 2024-01-01 |     | c      |
            | 2024-05-04 | 1  | 2024-01-01 | 1   | d      |
            """
        ),
        """
        | id | origin | last_updated |
        | 1  | d      | 2024-01-01   |
        """,
    ),
    Example(
        "S33: type 1 overwrites; an unchanged entity keeps its last_updated",
        dim(country=1, region=1),
        snapshots(
            """
            | delivery | at         | id | country | region   |
            | 1        | 2024-01-01 | 1  | Germany | Europe   |
            | 1        | 2024-01-01 | 2  | Peru    | Americas |
            | 2        | 2024-02-01 | 1  | Germany | EU       |
            | 2        | 2024-02-01 | 2  | Peru    | Americas |
            """
        ),
        """
        | id | country | region   | change_reason | change_source | load_run_id    | last_updated |
        | 1  | Germany | EU       | source_load   | crm           | crm/snapshot/1 | 2024-02-01   |
        | 2  | Peru    | Americas | source_load   | crm           | crm/snapshot/1 | 2024-01-01   |
        """,
    ),
    Example(
        "To NULL and from NULL are changes of types 1 and 3",
        dim(region=1, manager=3),
        snapshots(
            """
            | delivery | at         | id | region | manager |
            | 1        | 2024-01-01 | 1  | NULL   | NULL    |
            | 1        | 2024-01-01 | 2  | EU     | m       |
            | 2        | 2024-02-01 | 1  | EU     | m       |
            | 2        | 2024-02-01 | 2  | NULL   | NULL    |
            """
        ),
        """
        | id | region | manager | previous_manager | manager_changed_at | last_updated |
        | 1  | EU     | m       | NULL             | 2024-02-01         | 2024-02-01   |
        | 2  | NULL   | NULL    | m                | 2024-02-01         | 2024-02-01   |
        """,
    ),
    Example(
        "S9: type 3 with one value",
        dim(manager=3),
        MANAGERS[:1],
        """
        | id | manager | previous_manager | manager_changed_at |
        | 1  | m1      | NULL             | 2024-01-01         |
        """,
    ),
    Example(
        "S9: type 3 with a second value",
        dim(manager=3),
        MANAGERS[:2],
        """
        | id | manager | previous_manager | manager_changed_at |
        | 1  | m2      | m1               | 2024-02-01         |
        """,
    ),
    Example(
        "S9: type 3 with a third value; the first is gone from the row",
        dim(manager=3),
        MANAGERS,
        """
        | id | manager | previous_manager | manager_changed_at | load_run_id | last_updated |
        | 1  | m3      | m2               | 2024-03-01         | crm/feed/1  | 2024-03-01   |
        """,
    ),
    Example(
        "S9: type 3 goes by runs: stated again is no change, a late value splits a run",
        dim(manager=3),
        feed(
            """
            | delivery | id | time       | manager |
            | 1        | 1  | 2024-01-01 | a       |
            | 1        | 1  | 2024-02-01 | a       |
            | 1        | 2  | 2024-01-01 | a       |
            | 2        | 2  | 2024-03-01 | a       |
            | 3        | 2  | 2024-02-01 | b       |
            """
        ),
        """
        | id | manager | previous_manager | manager_changed_at |
        | 1  | a       | NULL             | 2024-01-01         |
        | 2  | a       | b                | 2024-03-01         |
        """,
    ),
    Example(
        "S9: type 3 begins where it is first stated, be it as NULL",
        dim(Attr("manager", 3, "erp"), city=2, sources=(Src("crm", True), Src("erp", False))),
        snapshots(
            """
            | delivery | at         | id | city |
            | 1        | 2024-01-01 | 1  | x    |
            | 1        | 2024-01-01 | 2  | x    |
            """
        )
        + feed(
            """
            | delivery | id | time       | manager |
            | 1        | 1  | 2024-02-01 | NULL    |
            """,
            source="erp",
        ),
        """
        | id | manager | previous_manager | manager_changed_at | last_updated |
        | 1  | NULL    | NULL             | 2024-02-01         | 2024-01-01   |
        | 2  | NULL    | NULL             | NULL               | 2024-01-01   |
        """,
    ),
    Example(
        "S10: type 6 with the value of the version before",
        dim(Attr("rate", 6, "crm", previous=True), title=1, cap=6),
        feed(
            """
            | delivery | id | time       | title | rate | cap     |
            | 1        | 1  | 2024-01-01 | n1    | 100  | 5000.00 |
            | 2        | 1  | 2024-02-01 | n1    | 150  | 5000.00 |
            | 3        | 1  | 2024-03-01 | n2    | 150  | 5000.00 |
            | 4        | 1  | 2024-04-01 | n2    | 150  | 6000.00 |
            """
        ),
        """
        | title | rate | current_rate | previous_rate | cap     | current_cap | version | effective_from |
        | n2    | 100  | 150          | NULL          | 5000.00 | 6000.00     | 1       | 2024-01-01     |
        | n2    | 150  | 150          | 100           | 5000.00 | 6000.00     | 2       | 2024-02-01     |
        | n2    | 150  | 150          | 150           | 6000.00 | 6000.00     | 3       | 2024-04-01     |
        """,
        {"rate": "int", "cap": "decimal(18,2)"},
    ),
    Example(
        "S14: the latest value of type 6 stands in every version, and moves its last_updated",
        dim(tier=6, city=2),
        feed(
            """
            | delivery | id | time       | tier | city |
            | 1        | 1  | 2024-01-01 | a    | x    |
            | 2        | 1  | 2024-02-01 | b    | x    |
            | 3        | 1  | 2024-03-01 | b    | y    |
            """
        ),
        """
        | tier | current_tier | city | effective_from | last_updated |
        | a    | b            | x    | 2024-01-01     | 2024-02-01   |
        | b    | b            | x    | 2024-02-01     | 2024-02-01   |
        | b    | b            | y    | 2024-03-01     | 2024-03-01   |
        """,
    ),
    Example(
        "One whom a snapshot leaves out is gone",
        dim(city=2),
        snapshots(
            """
            | delivery | at         | id | city |
            | 1        | 2024-01-01 | 1  | a    |
            | 1        | 2024-01-01 | 2  | a    |
            | 2        | 2024-02-01 | 1  | a    |
            """
        ),
        """
        | id | effective_from | effective_to | current_flag |
        | 1  | 2024-01-01     | OPEN         | true         |
        | 2  | 2024-01-01     | 2024-02-01   | false        |
        """,
    ),
    Example(
        "One whom a feed leaves out is unchanged",
        dim(city=2),
        feed(
            """
            | delivery | at         | id | city |
            | 1        | 2024-01-01 | 1  | a    |
            | 1        | 2024-01-01 | 2  | a    |
            | 2        | 2024-02-01 | 1  | a    |
            """
        ),
        """
        | id | effective_from | effective_to | current_flag |
        | 1  | 2024-01-01     | OPEN         | true         |
        | 2  | 2024-01-01     | OPEN         | true         |
        """,
    ),
    Example(
        "S5: several changes of one batch all become history",
        dim(city=2),
        feed(
            """
            | delivery | id | time       | seq | op | city |
            | 1        | 1  | 2024-03-01 |     |    | c    |
            | 1        | 1  | 2024-01-01 |     |    | a    |
            | 1        | 1  | 2024-02-01 | 1   |    | b    |
            | 1        | 1  | 2024-02-01 | 2   |    | bb   |
            | 1        | 1  | 2024-03-01 | 0   |    | d    |
            | 1        | 1  | 2024-04-01 |     | D  |      |
            """
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
        feed(
            """
            | delivery | id | time       | city |
            | 1        | 1  | 2024-01-01 | a    |
            | 1        | 1  | 2024-01-01 | a    |
            """
        ),
        """
        | city | effective_from | effective_to |
        | a    | 2024-01-01     | OPEN         |
        """,
    ),
    Example(
        "S5: rows that nothing orders and that differ refuse their whole batch; the others go on",
        dim(city=2),
        feed(
            """
            | delivery | id | time       | op | city |
            | 1        | 1  | 2024-01-01 |    | a    |
            | 2        | 1  | 2024-02-01 |    | b    |
            | 2        | 1  | 2024-02-01 |    | c    |
            | 2        | 2  | 2024-02-01 |    | d    |
            | 3        | 1  | 2024-02-01 |    | d    |
            | 3        | 1  | 2024-02-01 | D  |      |
            """
        ),
        """
        | id | city | effective_from | effective_to |
        | 1  | a    | 2024-01-01     | OPEN         |
        """,
    ),
    Example(
        "S5: at equal times the later position wins, attribute by attribute; nothing in between is seen",
        dim(city=2, tier=2),
        feed(
            """
            | delivery | id | time       | city | tier |
            | 9        | 1  | 2024-01-01 | nine | t    |
            """
        )
        + feed(
            """
            | delivery | id | time       | city |
            | 10       | 1  | 2024-01-01 | ten  |
            """
        ),
        """
        | city | tier | effective_from | version | load_run_id |
        | ten  | t    | 2024-01-01     | 1       | crm/feed/10 |
        """,
    ),
    Example(
        "S5: the order of deliveries: dates, then integers, then text",
        dim(city=2),
        feed(
            """
            | delivery   | id | time       | city    |
            | a          | 1  | 2024-01-01 | text    |
            | 99         | 1  | 2024-01-01 | integer |
            | 99         | 2  | 2024-01-01 | integer |
            | 2024-01-09 | 2  | 2024-01-01 | date    |
            | 2024-01-09 | 3  | 2024-01-01 | ninth   |
            | 2024-01-10 | 3  | 2024-01-01 | tenth   |
            """
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
        feed(
            """
            | delivery | id | time       | seq | city |
            | 1        | 1  | 2024-01-01 | 5   | five |
            | 1        | 2  | 2024-01-01 | -1  | less |
            | 2        | 1  | 2024-01-01 | 4   | four |
            | 2        | 2  | 2024-01-01 |     | none |
            """
        ),
        """
        | id | city | load_run_id |
        | 1  | five | crm/feed/1  |
        | 2  | less | crm/feed/1  |
        """,
    ),
    Example(
        "S5, S13: deleted and back at one time is no gap and opens nothing",
        dim(city=2),
        feed(
            """
            | delivery | id | time       | seq | op | city |
            | 1        | 1  | 2024-01-01 |     |    | a    |
            | 2        | 1  | 2024-02-01 | 1   | D  |      |
            | 2        | 1  | 2024-02-01 | 2   |    | a    |
            """
        ),
        """
        | city | effective_from | effective_to | version | load_run_id |
        | a    | 2024-01-01     | OPEN         | 1       | crm/feed/1  |
        """,
    ),
    Example(
        "S8: NULL is not the empty text, and no value runs over into the next",
        dim(a=2, b=2),
        feed(
            """
            | delivery | id | time       | a     | b     |
            | 1        | 1  | 2024-01-01 | NULL  | c     |
            | 1        | 2  | 2024-01-01 | 'a|b' | c     |
            | 2        | 1  | 2024-02-01 | ''    | c     |
            | 2        | 2  | 2024-02-01 | a     | 'b|c' |
            | 3        | 1  | 2024-03-01 | NULL  | c     |
            | 3        | 2  | 2024-03-01 | a     | 'b|c' |
            """
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
        feed(
            """
            | delivery | id | time       | load | price |
            | 1        | 1  | 2024-01-01 | NaN  | 1.50  |
            | 2        | 1  | 2024-02-01 | NaN  | 1.500 |
            """
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
        snapshots(
            """
            | delivery | at         | id | time       | city |
            | 1        | 2024-03-01 | 1  | 2024-01-01 | a    |
            | 1        | 2024-03-01 | 2  | 2024-02-01 | b    |
            | 2        | 2024-04-01 | 1  | 2024-01-01 | a    |
            | 3        | 2024-05-01 | 1  | 2024-01-01 | a    |
            | 3        | 2024-05-01 | 2  | 2024-02-01 | b    |
            """
        ),
        """
        | id | city | effective_from | effective_to | version | load_run_id    |
        | 1  | a    | 2024-01-01     | OPEN         | 1       | crm/snapshot/1 |
        | 2  | b    | 2024-02-01     | 2024-04-01   | 1       | crm/snapshot/1 |
        | 2  | b    | 2024-05-01     | OPEN         | 2       | crm/snapshot/3 |
        """,
    ),
    Example(
        "S4: one who is back at the snapshot's time has its row of the highest position",
        dim(city=2),
        snapshots(
            """
            | delivery | at         | id     | time       | city |
            | 1        | 2024-01-01 | 1      | 2024-01-01 | a    |
            | 2        | 2024-03-01 | nobody |            |      |
            | 3        | 2024-04-01 | 1      | 2024-02-01 | c    |
            | 3        | 2024-04-01 | 1      | 2024-01-15 | b    |
            """
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
        "S4: a row that its source committed late is one version, though an earlier snapshot omits it",
        dim(city=2),
        snapshots(
            """
            | delivery | at         | id | time       | city |
            | 1        | 2024-02-01 | 1  | 2024-01-01 | a    |
            | 2        | 2024-03-01 | 1  | 2024-01-01 | a    |
            | 2        | 2024-03-01 | 7  | 2024-01-15 | b    |
            | 3        | 2024-04-01 | 1  | 2024-01-01 | a    |
            """
        ),
        """
        | id | city | effective_from | effective_to |
        | 1  | a    | 2024-01-01     | OPEN         |
        | 7  | b    | 2024-01-15     | 2024-04-01   |
        """,
    ),
    Example(
        "S4: a change record of the feed with an earlier time asserts that the entity exists; the snapshot deletes it",
        dim(city=2),
        snapshots(
            """
            | delivery | at         | id | time       | city |
            | 1        | 2024-02-01 | 1  | 2024-01-01 | a    |
            | 2        | 2024-03-01 | 1  | 2024-01-01 | a    |
            | 2        | 2024-03-01 | 7  | 2024-01-15 | b    |
            """
        )
        + feed(
            """
            | delivery | id | time       | city |
            | f        | 7  | 2024-01-10 | c    |
            """
        ),
        """
        | id | city | effective_from | effective_to |
        | 1  | a    | 2024-01-01     | OPEN         |
        | 7  | c    | 2024-01-10     | 2024-01-15   |
        | 7  | b    | 2024-01-15     | 2024-02-01   |
        | 7  | b    | 2024-03-01     | OPEN         |
        """,
    ),
    Example(
        "S4, S18: existence is asserted until it is asserted otherwise, so a late row of a returning entity has no gap",
        dim(city=2),
        snapshots(
            """
            | delivery | at         | id     | time       | city |
            | 1        | 2024-01-10 | 7      | 2024-01-01 | a    |
            | 2        | 2024-02-01 | nobody |            |      |
            | 3        | 2024-03-01 | nobody |            |      |
            | 4        | 2024-04-01 | 7      | 2024-02-15 | b    |
            """
        ),
        """
        | id | city | effective_from | effective_to |
        | 7  | a    | 2024-01-01     | 2024-02-01   |
        | 7  | b    | 2024-02-15     | OPEN         |
        """,
    ),
    Example(
        "S4: a feed's delete needs no assertion before it",
        dim(city=2),
        snapshots(
            """
            | delivery | at         | id | time       | city |
            | 1        | 2024-03-01 | 7  | 2024-01-01 | a    |
            """
        )
        + feed(
            """
            | delivery | id | time       | op | city |
            | f        | 7  | 2024-02-01 | D  |      |
            """
        ),
        """
        | id | city | effective_from | effective_to |
        | 7  | a    | 2024-01-01     | 2024-02-01   |
        | 7  | a    | 2024-03-01     | OPEN         |
        """,
    ),
    Example(
        "S4: at the snapshot's time nothing is stated again of one who is there",
        dim(city=2),
        snapshots(
            """
            | delivery | at         | id | time       | city |
            | 1        | 2024-03-01 | 1  | 2024-01-01 | a    |
            """
        )
        + feed(
            """
            | delivery | id | time       | city |
            | 1        | 1  | 2024-02-01 | b    |
            """
        ),
        """
        | city | effective_from | effective_to |
        | a    | 2024-01-01     | 2024-02-01   |
        | b    | 2024-02-01     | OPEN         |
        """,
    ),
    Example(
        "S4, S30: absence from a source that does not decide is nothing, so presence later is nothing new",
        dim(Attr("limit", 2, "erp"), city=2, sources=(Src("crm", True), Src("erp", False))),
        feed(
            """
            | delivery | id | time       | city |
            | 1        | 1  | 2024-01-01 | x    |
            """
        )
        + snapshots(
            """
            | delivery | at         | id     | time       | limit |
            | 1        | 2024-02-01 | 1      | 2024-01-01 | 10    |
            | 2        | 2024-04-01 | nobody |            |       |
            | 3        | 2024-05-01 | 1      | 2024-01-01 | 10    |
            """,
            source="erp",
        )
        + feed(
            """
            | delivery | id | time       | limit |
            | 1        | 1  | 2024-03-01 | 20    |
            """,
            source="erp",
        ),
        """
        | city | limit | effective_from | effective_to |
        | x    | 10    | 2024-01-01     | 2024-03-01   |
        | x    | 20    | 2024-03-01     | OPEN         |
        """,
        {"limit": "int"},
    ),
    Example(
        "S18: a delete states no values, though it carries some",
        dim(city=2, email=1),
        feed(
            """
            | delivery | id | time       | op | city | email |
            | 1        | 1  | 2024-01-01 |    | x    | a     |
            | 2        | 1  | 2024-02-01 | D  | y    | b     |
            """
        ),
        """
        | city | email | effective_from | effective_to |
        | x    | a     | 2024-01-01     | 2024-02-01   |
        """,
    ),
    Example(
        "S7, S18: what is stated of one who is gone, or not there yet, holds",
        LIMITED,
        feed(
            """
            | delivery | id | time       | limit | owner |
            | 1        | 1  | 2024-01-01 | 10    | a     |
            | 1        | 2  | 2024-01-01 | 5     | b     |
            | 2        | 1  | 2024-04-01 | 20    | c     |
            """,
            source="erp",
        )
        + snapshots(
            """
            | delivery | at         | id     | city |
            | 1        | 2024-02-01 | 1      | x    |
            | 2        | 2024-03-01 | nobody |      |
            | 3        | 2024-05-01 | 1      | x    |
            """
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
        LIMITED,
        snapshots(
            """
            | delivery | at         | id | city |
            | 1        | 2024-01-01 | 1  | x    |
            """
        )
        + feed(
            """
            | delivery | id | time       | op | limit | owner |
            | 1        | 1  | 2024-02-01 |    | 10    | a     |
            | 1        | 1  | 2024-03-01 | D  |       |       |
            """,
            source="erp",
        ),
        """
        | city | limit | owner | effective_from | effective_to | change_source |
        | x    | NULL  | a     | 2024-01-01     | 2024-02-01   | crm           |
        | x    | 10    | a     | 2024-02-01     | OPEN         | erp           |
        """,
        {"limit": "int"},
    ),
    Example(
        "S30, S5: NULL as not stated leaves what holds; rows of one position complete each other",
        LIMITED,
        snapshots(
            """
            | delivery | at         | id | city |
            | 1        | 2024-01-01 | 1  | x    |
            """
        )
        + feed(
            """
            | delivery | id | time       | limit | owner |
            | 1        | 1  | 2024-01-01 | 10    | NULL  |
            | 1        | 1  | 2024-01-01 | NULL  | a     |
            | 2        | 1  | 2024-02-01 | NULL  | b     |
            """,
            source="erp",
        )
        + feed(
            """
            | delivery | id | time       | owner |
            | 3        | 1  | 2024-03-01 | c     |
            """,
            source="erp",
        ),
        """
        | city | limit | owner | effective_from | effective_to |
        | x    | 10    | c     | 2024-01-01     | OPEN         |
        """,
        {"limit": "int"},
    ),
    Example(
        "S20: a renamed attribute keeps its history, an added one was not stated before",
        dim(Attr("city", 2, "crm", former_names=("town",)), tier=2),
        snapshots(
            """
            | delivery | at         | id | town |
            | 1        | 2024-01-01 | 1  | a    |
            """
        )
        + snapshots(
            """
            | delivery | at         | id | city | tier |
            | 2        | 2024-02-01 | 1  | a    | t    |
            """
        )
        + snapshots(
            """
            | delivery | at         | id | city |
            | 3        | 2024-03-01 | 1  | b    |
            """
        ),
        """
        | city | tier | effective_from | effective_to |
        | a    | NULL | 2024-01-01     | 2024-02-01   |
        | a    | t    | 2024-02-01     | 2024-03-01   |
        | b    | t    | 2024-03-01     | OPEN         |
        """,
    ),
    Example(
        "S20: a column that was not declared at its time is not taken",
        dim(city=2, tier=2),
        snapshots(
            """
            | delivery | at         | id | city | tier |
            | 1        | 2024-01-01 | 1  | a    | s    |
            """,
            declared=("city",),
        ),
        """
        | city | tier |
        | a    | NULL |
        """,
    ),
    Example(
        "S26: a quarantined row of a snapshot counts as present and says nothing",
        dim(risk=2),
        snapshots(
            """
            | delivery | at         | id | risk | bad  |
            | 1        | 2024-01-01 | 1  | 10   |      |
            | 1        | 2024-01-01 | 2  | 10   |      |
            | 2        | 2024-02-01 | 1  | 20   |      |
            | 2        | 2024-02-01 | 2  | x!   | risk |
            """
        ),
        """
        | id | risk | effective_from | effective_to |
        | 1  | 10   | 2024-01-01     | 2024-02-01   |
        | 1  | 20   | 2024-02-01     | OPEN         |
        | 2  | 10   | 2024-01-01     | OPEN         |
        """,
        {"risk": "int"},
    ),
    Example(
        "S27: a snapshot with a key that cannot be read retires nobody",
        dim(city=2),
        snapshots(
            """
            | delivery | at         | id   | city |
            | 1        | 2024-01-01 | 1    | a    |
            | 1        | 2024-01-01 | 2    | a    |
            | 2        | 2024-02-01 | 1    | b    |
            | 2        | 2024-02-01 | NULL | a    |
            """
        ),
        """
        | id | city | effective_from | effective_to |
        | 1  | a    | 2024-01-01     | 2024-02-01   |
        | 1  | b    | 2024-02-01     | OPEN         |
        | 2  | a    | 2024-01-01     | OPEN         |
        """,
    ),
    Example(
        "Scope: a snapshot retires inside its scope only; a row outside is bad",
        dim(city=2, key="region id"),
        CITIES_BY_REGION
        + snapshots(
            """
            | delivery | at         | region | id | city |
            | 2        | 2024-02-01 | n      | 1  | a    |
            | 2        | 2024-02-01 | s      | 1  | b    |
            """,
            **BY_REGION,
            scope_values=(("n",),),
        ),
        """
        | region | id | city | effective_from | effective_to |
        | n      | 1  | a    | 2024-01-01     | OPEN         |
        | n      | 2  | a    | 2024-01-01     | 2024-02-01   |
        | s      | 1  | a    | 2024-01-01     | OPEN         |
        """,
        {"region": "string"},
    ),
    Example(
        "The scope is read off the rows, or declared, and then the batch may be empty",
        dim(city=2, key="region id"),
        CITIES_BY_REGION
        + snapshots(
            """
            | delivery | at         | region | id | city |
            | 2        | 2024-02-01 | n      | 1  | a    |
            | 3        | 2024-03-01 | nobody |    |      |
            """,
            **BY_REGION,
        )
        + snapshots(
            """
            | delivery | at         | region | id | city |
            | 4        | 2024-04-01 | nobody |    |      |
            """,
            **BY_REGION,
            scope_values=(("s",),),
        ),
        """
        | region | id | effective_from | effective_to |
        | n      | 1  | 2024-01-01     | OPEN         |
        | n      | 2  | 2024-01-01     | 2024-02-01   |
        | s      | 1  | 2024-01-01     | 2024-04-01   |
        """,
        {"region": "string"},
    ),
    Example(
        "S29: an early first change begins at the fixed time; a change before it is a bad row",
        dim(city=2, begin=(time("2000-01-01"), time("2024-01-01"))),
        feed(
            """
            | delivery | id | time       | city |
            | 1        | 1  | 2023-06-01 | a    |
            | 1        | 2  | 2024-01-02 | a    |
            | 1        | 3  | 1999-12-31 | a    |
            | 1        | 4  | 2000-01-01 | a    |
            | 2        | 1  | 2024-01-01 | b    |
            | 2        | 2  | OPEN       | b    |
            | 2        | 5  | 2024-01-01 | b    |
            """
        ),
        """
        | id | city | effective_from | effective_to | last_updated | load_run_id |
        | 1  | a    | 2000-01-01     | 2024-01-01   | 2023-06-01   | crm/feed/1  |
        | 1  | b    | 2024-01-01     | OPEN         | 2024-01-01   | crm/feed/2  |
        | 2  | a    | 2024-01-02     | OPEN         | 2024-01-02   | crm/feed/1  |
        | 4  | a    | 2000-01-01     | OPEN         | 2000-01-01   | crm/feed/1  |
        | 5  | b    | 2000-01-01     | OPEN         | 2024-01-01   | crm/feed/2  |
        """,
    ),
    Example(
        "S33: without windows the row of a deleted entity stays and says since when",
        dim(title=1, deleted_at=True),
        snapshots(
            """
            | delivery | at         | id | title |
            | 1        | 2024-01-01 | 1  | a     |
            | 1        | 2024-01-01 | 2  | b     |
            | 1        | 2024-01-01 | 3  | c     |
            | 2        | 2024-02-01 | 3  | c     |
            | 3        | 2024-03-01 | 2  | b     |
            | 3        | 2024-03-01 | 3  | d     |
            | 4        | 2024-04-01 | 2  | b     |
            | 4        | 2024-04-01 | 4  | e     |
            | 5        | 2024-05-01 | 2  | b     |
            | 6        | 2024-06-01 | 2  | b     |
            | 6        | 2024-06-01 | 4  | e     |
            | 7        | 2024-07-01 | 2  | b     |
            """
        ),
        """
        | id | title | deleted_at | load_run_id    | last_updated |
        | 1  | a     | 2024-02-01 | crm/snapshot/1 | 2024-01-01   |
        | 2  | b     | NULL       | crm/snapshot/1 | 2024-01-01   |
        | 3  | d     | 2024-04-01 | crm/snapshot/1 | 2024-03-01   |
        | 4  | e     | 2024-07-01 | crm/snapshot/4 | 2024-04-01   |
        """,
    ),
    Example(
        "S33: by option the row of a deleted entity is removed",
        dim(title=1, deleted_rows="remove"),
        snapshots(
            """
            | delivery | at         | id | title |
            | 1        | 2024-01-01 | 1  | a     |
            | 1        | 2024-01-01 | 2  | b     |
            | 2        | 2024-02-01 | 2  | b     |
            """
        ),
        """
        | id | title |
        | 2  | b     |
        """,
    ),
    Example(
        "S34: the highest revision counts, wholly, whenever it comes",
        dim(city=2),
        snapshots(
            """
            | delivery | revision | at         | id | city |
            | 1        | 10       | 2024-01-01 | 1  | a    |
            | 1        | 9        | 2024-01-01 | 1  | b    |
            | 1        | 9        | 2024-01-01 | 2  | b    |
            | 2        | 1        | 2024-02-01 | 1  | a    |
            | 2        | 1        | 2024-02-01 | 2  | c    |
            """
        ),
        """
        | id | city | effective_from | load_run_id    |
        | 1  | a    | 2024-01-01     | crm/snapshot/1 |
        | 2  | c    | 2024-02-01     | crm/snapshot/2 |
        """,
    ),
    Example(
        "S5, S34: of one name and time the feed comes before the snapshot, whatever their revisions",
        dim(city=2),
        snapshots(
            """
            | delivery | revision | at         | id | city |
            | 1        | 1        | 2024-01-01 | 1  | Rome |
            | 2        | 5        | 2024-02-01 | 1  | Kiel |
            """
        )
        + feed(
            """
            | delivery | revision | id | time       | city |
            | 1        | 3        | 1  | 2024-01-01 | Oslo |
            | 2        | 3        | 1  | 2024-02-01 | Ulm  |
            """
        ),
        """
        | id | city | effective_from | load_run_id    |
        | 1  | Rome | 2024-01-01     | crm/snapshot/1 |
        | 1  | Kiel | 2024-02-01     | crm/snapshot/2 |
        """,
    ),
    Example(
        "S34: a withdrawn batch never came; a higher revision brings it back",
        dim(city=2),
        feed(
            """
            | delivery | revision | id        | time       | city |
            | 1        | 1        | 1         | 2024-01-01 | a    |
            | 1        | 1        | 2         | 2024-01-01 | a    |
            | 2        | 1        | 1         | 2024-02-01 | b    |
            | 2        | 2        | withdrawn |            |      |
            | 3        | 1        | 2         | 2024-02-01 | b    |
            | 3        | 2        | withdrawn |            |      |
            | 3        | 3        | 2         | 2024-02-01 | c    |
            """
        ),
        """
        | id | city | effective_from | effective_to | load_run_id |
        | 1  | a    | 2024-01-01     | OPEN         | crm/feed/1  |
        | 2  | a    | 2024-01-01     | 2024-02-01   | crm/feed/1  |
        | 2  | c    | 2024-02-01     | OPEN         | crm/feed/3  |
        """,
    ),
    Example(
        "S5, S34: a refused revision leaves the one below it standing",
        dim(city=2),
        snapshots(
            """
            | delivery | revision | at         | id | city |
            | 1        | 1        | 2024-01-01 | 1  | a    |
            | 1        | 2        | 2024-01-01 | 1  | b    |
            | 1        | 2        | 2024-01-01 | 1  | c    |
            """
        ),
        """
        | id | city | load_run_id    |
        | 1  | a    | crm/snapshot/1 |
        """,
    ),
    Example(
        "The reason is the row's, else the batch's, else source_load",
        dim(city=2),
        feed(
            """
            | delivery | id | time       | reason | city |
            | 1        | 1  | 2024-01-01 |        | a    |
            """
        )
        + feed(
            """
            | delivery | id | time       | reason       | city |
            | 2        | 1  | 2024-02-01 |              | b    |
            | 2        | 1  | 2024-03-01 | tier_upgrade | c    |
            """,
            reason="source_drift",
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
        feed(
            """
            | delivery | id | time       | city |
            | 1        | 1  | 2024-01-01 | a    |
            | 2        | 1  | 2024-02-01 | b    |
            | 3        | 1  | 2024-02-01 | c    |
            | 4        | 1  | 2024-02-01 | c    |
            """
        ),
        """
        | city | effective_from | load_run_id |
        | a    | 2024-01-01     | crm/feed/1  |
        | c    | 2024-02-01     | crm/feed/3  |
        """,
    ),
)
