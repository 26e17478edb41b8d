"""The histories that dlt, dbt snapshots and this package load, and the rows that result, as text tables.

Tests load all of them with the real tools. A tool whose rows are equal to those of this package has no table; one whose
rows differ has the rule that this package follows.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from scd_pipeline.declaration import Dimension, parse_declarations
from scd_pipeline_tests.semantics.specification import Case, DeliveredBatch, DeliveryTable, declare, feed, snapshots


@dataclass(frozen=True)
class Tool:
    """Another tool with some options: a program of `programs/`, in the environment of a requirements file."""

    name: str
    program: str
    environment: str
    options: Mapping[str, Any]


def _dlt(title: str, strategy: str, **options: Any) -> Tool:
    return Tool(f"dlt {title}", "dlt_loads", "dlt", {"strategy": strategy, **options})


def _dbt(title: str, hard_deletes: str, unique_key: str | Sequence[str] = "id", **strategy: Any) -> Tool:
    options = {"unique_key": unique_key, **strategy, "hard_deletes": hard_deletes}
    return Tool(f"dbt {title}", "dbt_snapshots", "dbt", options)


_CHECK: Mapping[str, Any] = {"strategy": "check", "check_cols": ["city"]}
_TIMESTAMP = {"strategy": "timestamp", "updated_at": "updated_at"}
_FLAG = {"columns": {"deleted": {"hard_delete": True}}}
_LAST = {"columns": {"seq": {"dedup_sort": "desc"}}}

SCD2 = _dlt("`scd2`", "scd2")
SCD2_BY_KEY = _dlt("`scd2` with `merge_key`", "scd2", merge_key="id")
SCD2_BY_CURSOR = _dlt("`scd2` with `merge_key` and `incremental`", "scd2", merge_key="id", incremental="updated_at")
SCD2_BY_COLUMNS = _dlt("`scd2` with `merge_key` of two columns", "scd2", merge_key=["region", "code"])
DELETE_INSERT = _dlt("`delete-insert`", "delete-insert", primary_key="id")
DELETE_INSERT_BY_DAY = _dlt("`delete-insert` with `merge_key`", "delete-insert", merge_key="day")
DELETE_INSERT_FLAGGED = _dlt("`delete-insert` with `hard_delete`", "delete-insert", primary_key="id", **_FLAG)
DELETE_INSERT_SORTED = _dlt("`delete-insert` with `dedup_sort`", "delete-insert", primary_key="id", **_LAST)
UPSERT = _dlt("`upsert`", "upsert", primary_key="id")
UPSERT_FLAGGED = _dlt("`upsert` with `hard_delete`", "upsert", primary_key="id", **_FLAG)

CHECK = _dbt("`check`", "invalidate", **_CHECK)
CHECK_ALL = _dbt("`check` of all columns", "invalidate", strategy="check", check_cols="all")
CHECK_FEED = _dbt("`check` with `hard_deletes: ignore`", "ignore", **_CHECK)
CHECK_BY_COLUMNS = _dbt("`check` with `unique_key` of two columns", "ignore", ["region", "code"], **_CHECK)
CHECK_RECORDS = _dbt("`check` with `hard_deletes: new_record`", "new_record", **_CHECK)
TIMESTAMP = _dbt("`timestamp`", "invalidate", **_TIMESTAMP)
TIMESTAMP_FEED = _dbt("`timestamp` with `hard_deletes: ignore`", "ignore", **_TIMESTAMP)


@dataclass(frozen=True, init=False)
class Outcome:
    """The rows of some tools, if they differ from those of this package, and the rule of this package.

    `failed` are the numbers of the deliveries whose load fails.
    """

    tools: tuple[Tool, ...]
    table: str
    rule: str
    note: str
    failed: tuple[int, ...]

    def __init__(
        self, *tools: Tool, table: str = "", rule: str = "", note: str = "", failed: tuple[int, ...] = ()
    ) -> None:
        fields = {"tools": tools, "table": inspect.cleandoc(table), "rule": rule}
        for name, value in {**fields, "note": note, "failed": failed}.items():
            object.__setattr__(self, name, value)


@dataclass(frozen=True)
class History:
    """Deliveries in order of arrival with the rows of this package, and the rows of other tools."""

    title: str
    text: str
    case: Case
    outcomes: tuple[Outcome, ...]

    @property
    def deliveries(self) -> DeliveryTable:
        """The deliveries as a table."""
        (table,) = self.case.tables
        return table

    @property
    def batches(self) -> tuple[DeliveredBatch, ...]:
        """The deliveries in order of arrival."""
        return self.case.batches

    @property
    def declaration(self) -> str:
        """The declaration of the dimension in YAML."""
        return self.case.declaration.text

    @property
    def becomes(self) -> str:
        """The rows of this package."""
        return self.case.becomes


@dataclass(frozen=True, init=False)
class Merge:
    """Deliveries in order of arrival with the rows that a landing table has, and those of other tools."""

    title: str
    text: str
    declaration: str
    deliveries: DeliveryTable
    becomes: str
    outcomes: tuple[Outcome, ...]

    def __init__(
        self,
        title: str,
        text: str,
        declaration: str,
        deliveries: DeliveryTable,
        outcomes: tuple[Outcome, ...],
        *,
        becomes: str,
    ) -> None:
        fields = {"title": title, "text": text, "declaration": declaration, "deliveries": deliveries}
        for name, value in {**fields, "outcomes": outcomes, "becomes": inspect.cleandoc(becomes)}.items():
            object.__setattr__(self, name, value)

    @property
    def dimension(self) -> Dimension:
        """The landing table as a dimension of its rows."""
        (table,) = parse_declarations(inspect.cleandoc(self.declaration)).landing_tables
        return table.as_dimension()

    @property
    def batches(self) -> tuple[DeliveredBatch, ...]:
        """The deliveries in order of arrival."""
        return tuple(self.deliveries.batches(self.dimension))


PERSON = declare(
    """
    dimension: dim_person
    business_key: {id: int}
    sources:
      crm:
        snapshot: {}
        bad_row_limit: 0.5
    attributes:
      city: 2
      email: {scd: 2, missing: not_provided}
    """
)

RESIDENT = declare(
    """
    dimension: dim_resident
    business_key: {id: int}
    sources:
      crm:
        snapshot: {effective_at: updated_at}
        feed: {effective_at: updated_at}
    attributes:
      city: 2
    """
)

OFFICE = declare(
    """
    dimension: dim_office
    business_key: {region: string, code: string}
    sources:
      crm:
        feed: {effective_at: updated_at}
    attributes:
      city: 2
    """
)

TENANT = declare(
    """
    dimension: dim_tenant
    business_key: {id: int}
    sources:
      crm:
        snapshot: {}
    attributes:
      city: 2
    deleted_rows: new_version
    """
)

HISTORIES = (
    History(
        "Changes in order",
        "A change, a delete and a new row, in full extracts that arrive in order.",
        Case(
            PERSON,
            snapshots(
                """
                | delivery | at         | id | city |
                | 1        | 2024-01-01 | 1  | Bonn |
                | 1        | 2024-01-01 | 2  | Kiel |
                | 2        | 2024-02-01 | 1  | Graz |
                | 2        | 2024-02-01 | 2  | Kiel |
                | 2        | 2024-02-01 | 3  | Linz |
                | 3        | 2024-03-01 | 1  | Graz |
                | 3        | 2024-03-01 | 3  | Linz |
                """
            ),
            becomes="""
            | id | city | effective_from | effective_to |
            | 1  | Bonn | 2024-01-01     | 2024-02-01   |
            | 1  | Graz | 2024-02-01     | OPEN         |
            | 2  | Kiel | 2024-01-01     | 2024-03-01   |
            | 3  | Linz | 2024-02-01     | OPEN         |
            """,
        ),
        (Outcome(SCD2, CHECK),),
    ),
    History(
        "A delete and a return",
        "The second version of an entity that returns opens after a gap.",
        Case(
            PERSON,
            snapshots(
                """
                | delivery | at         | id | city |
                | 1        | 2024-01-01 | 1  | Bonn |
                | 1        | 2024-01-01 | 2  | Kiel |
                | 2        | 2024-02-01 | 1  | Bonn |
                | 3        | 2024-03-01 | 1  | Bonn |
                | 3        | 2024-03-01 | 2  | Kiel |
                """
            ),
            becomes="""
            | id | city | effective_from | effective_to |
            | 1  | Bonn | 2024-01-01     | OPEN         |
            | 2  | Kiel | 2024-01-01     | 2024-02-01   |
            | 2  | Kiel | 2024-03-01     | OPEN         |
            """,
        ),
        (Outcome(SCD2, CHECK),),
    ),
    History(
        "A delete as a version of its own",
        "With `deleted_rows: new_version` here and `hard_deletes: new_record` in dbt, a delete opens a version.",
        Case(
            TENANT,
            snapshots(
                """
                | delivery | at         | id | city |
                | 1        | 2024-01-01 | 1  | Bonn |
                | 1        | 2024-01-01 | 2  | Kiel |
                | 2        | 2024-02-01 | 1  | Bonn |
                | 3        | 2024-03-01 | 1  | Bonn |
                | 3        | 2024-03-01 | 2  | Kiel |
                """
            ),
            becomes="""
            | id | city | is_deleted | effective_from | effective_to |
            | 1  | Bonn | false      | 2024-01-01     | OPEN         |
            | 2  | Kiel | false      | 2024-01-01     | 2024-02-01   |
            | 2  | Kiel | true       | 2024-02-01     | 2024-03-01   |
            | 2  | Kiel | false      | 2024-03-01     | OPEN         |
            """,
        ),
        (Outcome(CHECK_RECORDS),),
    ),
    History(
        "A late snapshot",
        "The snapshot of February arrives after that of March.",
        Case(
            RESIDENT,
            snapshots(
                """
                | delivery | at         | id | city | updated_at |
                | 1        | 2024-01-01 | 1  | Bonn | 2024-01-01 |
                | 3        | 2024-03-01 | 1  | Graz | 2024-03-01 |
                | 2        | 2024-02-01 | 1  | Kiel | 2024-02-01 |
                | 2        | 2024-02-01 | 2  | Linz | 2024-02-01 |
                """
            ),
            becomes="""
            | id | city | effective_from | effective_to |
            | 1  | Bonn | 2024-01-01     | 2024-02-01   |
            | 1  | Kiel | 2024-02-01     | 2024-03-01   |
            | 1  | Graz | 2024-03-01     | OPEN         |
            | 2  | Linz | 2024-02-01     | 2024-03-01   |
            """,
        ),
        (
            Outcome(
                SCD2,
                CHECK,
                table="""
                | id | city | effective_from | effective_to |
                | 1  | Bonn | 2024-01-01     | 2024-03-01   |
                | 1  | Graz | 2024-03-01     | 2024-02-01   |
                | 1  | Kiel | 2024-02-01     | OPEN         |
                | 2  | Linz | 2024-02-01     | OPEN         |
                """,
                rule="S19",
                note="The snapshot that arrives last becomes current. The window of Graz ends before it begins.",
            ),
            Outcome(
                TIMESTAMP,
                table="""
                | id | city | effective_from | effective_to |
                | 1  | Bonn | 2024-01-01     | 2024-03-01   |
                | 1  | Graz | 2024-03-01     | OPEN         |
                | 2  | Linz | 2024-02-01     | OPEN         |
                """,
                rule="S19",
                note="The older row of an existing key is ignored. The new key of the late snapshot is current.",
            ),
        ),
    ),
    History(
        "A delivery twice",
        "The first snapshot is loaded again after the second one.",
        Case(
            RESIDENT,
            snapshots(
                """
                | delivery | at         | id | city | updated_at |
                | 1        | 2024-01-01 | 1  | Bonn | 2024-01-01 |
                | 2        | 2024-02-01 | 1  | Graz | 2024-02-01 |
                | 1        | 2024-01-01 | 1  | Bonn | 2024-01-01 |
                """
            ),
            becomes="""
            | id | city | effective_from | effective_to |
            | 1  | Bonn | 2024-01-01     | 2024-02-01   |
            | 1  | Graz | 2024-02-01     | OPEN         |
            """,
            results="""
            | arrives | batch            | outcome   | code |
            | 1       | crm/snapshot/1/1 | accepted  | ''   |
            | 2       | crm/snapshot/2/1 | accepted  | ''   |
            | 3       | crm/snapshot/1/1 | unchanged | ''   |
            """,
        ),
        (
            Outcome(
                SCD2,
                CHECK,
                table="""
                | id | city | effective_from | effective_to |
                | 1  | Bonn | 2024-01-01     | 2024-02-01   |
                | 1  | Graz | 2024-02-01     | 2024-01-01   |
                | 1  | Bonn | 2024-01-01     | OPEN         |
                """,
                rule="S34",
                note="The first state is current again. The window of Graz ends before it begins.",
            ),
            Outcome(TIMESTAMP),
        ),
    ),
    History(
        "Two changes of a key in one delivery",
        "The second snapshot has two rows of a key, with different times.",
        Case(
            RESIDENT,
            snapshots(
                """
                | delivery | at         | id | city | updated_at |
                | 1        | 2024-01-01 | 1  | Wien | 2024-01-01 |
                | 2        | 2024-04-01 | 1  | Bonn | 2024-02-01 |
                | 2        | 2024-04-01 | 1  | Graz | 2024-03-01 |
                """
            ),
            becomes="""
            | id | city | effective_from | effective_to |
            | 1  | Wien | 2024-01-01     | 2024-02-01   |
            | 1  | Bonn | 2024-02-01     | 2024-03-01   |
            | 1  | Graz | 2024-03-01     | OPEN         |
            """,
        ),
        (
            Outcome(
                SCD2,
                CHECK,
                table="""
                | id | city | effective_from | effective_to |
                | 1  | Wien | 2024-01-01     | 2024-04-01   |
                | 1  | Bonn | 2024-04-01     | OPEN         |
                | 1  | Graz | 2024-04-01     | OPEN         |
                """,
                rule="S5",
                note="Both rows are current.",
            ),
            Outcome(
                TIMESTAMP,
                table="""
                | id | city | effective_from | effective_to |
                | 1  | Wien | 2024-01-01     | 2024-03-01   |
                | 1  | Bonn | 2024-02-01     | OPEN         |
                | 1  | Graz | 2024-03-01     | OPEN         |
                """,
                rule="S5",
                note="Both rows are current, and the window of Bonn begins before that of Wien ends.",
            ),
        ),
    ),
    History(
        "Two rows of a key with one time",
        "The second snapshot has two different rows of a key, and nothing orders them. It is rejected here.",
        Case(
            RESIDENT,
            snapshots(
                """
                | delivery | at         | id | city | updated_at |
                | 1        | 2024-01-01 | 1  | Wien | 2024-01-01 |
                | 2        | 2024-02-01 | 1  | Bonn | 2024-02-01 |
                | 2        | 2024-02-01 | 1  | Graz | 2024-02-01 |
                """
            ),
            becomes="""
            | id | city | effective_from | effective_to |
            | 1  | Wien | 2024-01-01     | OPEN         |
            """,
            results="""
            | batch            | outcome  | code              | keys |
            | crm/snapshot/1/1 | accepted | ''                | ''   |
            | crm/snapshot/2/1 | rejected | UNORDERED_CHANGES | id=1 |
            """,
        ),
        (
            Outcome(
                SCD2,
                CHECK,
                TIMESTAMP,
                table="""
                | id | city | effective_from | effective_to |
                | 1  | Wien | 2024-01-01     | 2024-02-01   |
                | 1  | Bonn | 2024-02-01     | OPEN         |
                | 1  | Graz | 2024-02-01     | OPEN         |
                """,
                rule="S5",
                note="Both rows are current.",
            ),
        ),
    ),
    History(
        "Two equal rows of a key",
        "The second snapshot has a row twice. It is one change here.",
        Case(
            PERSON,
            snapshots(
                """
                | delivery | at         | id | city |
                | 1        | 2024-01-01 | 1  | Wien |
                | 2        | 2024-02-01 | 1  | Bonn |
                | 2        | 2024-02-01 | 1  | Bonn |
                """
            ),
            becomes="""
            | id | city | effective_from | effective_to |
            | 1  | Wien | 2024-01-01     | 2024-02-01   |
            | 1  | Bonn | 2024-02-01     | OPEN         |
            """,
        ),
        (
            Outcome(
                SCD2,
                CHECK,
                table="""
                | id | city | effective_from | effective_to |
                | 1  | Wien | 2024-01-01     | 2024-02-01   |
                | 1  | Bonn | 2024-02-01     | OPEN         |
                | 1  | Bonn | 2024-02-01     | OPEN         |
                """,
                rule="S5",
                note="Both rows are current.",
            ),
        ),
    ),
    History(
        "A key without a value",
        "Two snapshots have a row whose key is NULL. It is quarantined here, and the other rows are loaded.",
        Case(
            PERSON,
            snapshots(
                """
                | delivery | at         | id   | city |
                | 1        | 2024-01-01 | 1    | Bonn |
                | 2        | 2024-02-01 | 1    | Graz |
                | 2        | 2024-02-01 | NULL | Linz |
                | 3        | 2024-03-01 | 1    | Graz |
                | 3        | 2024-03-01 | NULL | Linz |
                """
            ),
            becomes="""
            | id | city | effective_from | effective_to |
            | 1  | Bonn | 2024-01-01     | 2024-02-01   |
            | 1  | Graz | 2024-02-01     | OPEN         |
            """,
            quarantine="""
            | batch            | key     | reason                                     |
            | crm/snapshot/2/1 | id=NULL | the business key is NULL or cannot be read |
            | crm/snapshot/3/1 | id=NULL | the business key is NULL or cannot be read |
            """,
        ),
        (
            Outcome(
                SCD2,
                table="""
                | id   | city | effective_from | effective_to |
                | 1    | Bonn | 2024-01-01     | 2024-02-01   |
                | 1    | Graz | 2024-02-01     | OPEN         |
                | NULL | Linz | 2024-02-01     | OPEN         |
                """,
                rule="S26",
                note="The row is stored: without a `merge_key`, no column is a key.",
            ),
            Outcome(
                SCD2_BY_KEY,
                table="""
                | id | city | effective_from | effective_to |
                | 1  | Bonn | 2024-01-01     | OPEN         |
                """,
                rule="S26",
                note="Both loads fail.",
                failed=(2, 3),
            ),
            Outcome(
                CHECK,
                table="""
                | id   | city | effective_from | effective_to |
                | 1    | Bonn | 2024-01-01     | 2024-02-01   |
                | 1    | Graz | 2024-02-01     | OPEN         |
                | NULL | Linz | 2024-02-01     | 2024-03-01   |
                | NULL | Linz | 2024-03-01     | OPEN         |
                """,
                rule="S26",
                note="The row is stored, and each run that reads it opens a version.",
            ),
        ),
    ),
    History(
        "A key of two columns",
        "An incremental extract. The texts of both keys together are equal: `abc`.",
        Case(
            OFFICE,
            feed(
                """
                | delivery | at         | region | code | city | updated_at |
                | 1        | 2024-01-01 | a      | bc   | Bonn | 2024-01-01 |
                | 2        | 2024-02-01 | ab     | c    | Kiel | 2024-02-01 |
                """
            ),
            becomes="""
            | region | code | city | effective_from | effective_to |
            | a      | bc   | Bonn | 2024-01-01     | OPEN         |
            | ab     | c    | Kiel | 2024-02-01     | OPEN         |
            """,
        ),
        (
            Outcome(
                SCD2_BY_COLUMNS,
                table="""
                | region | code | city | effective_from | effective_to |
                | a      | bc   | Bonn | 2024-01-01     | 2024-02-01   |
                | ab     | c    | Kiel | 2024-02-01     | OPEN         |
                """,
                rule="S8",
                note="The second key replaces the first one.",
            ),
            Outcome(CHECK_BY_COLUMNS),
        ),
    ),
    History(
        "A newer time without a change",
        "The second snapshot has the same values with a newer `updated_at`.",
        Case(
            RESIDENT,
            snapshots(
                """
                | delivery | at         | id | city | updated_at |
                | 1        | 2024-01-01 | 1  | Bonn | 2024-01-01 |
                | 2        | 2024-02-01 | 1  | Bonn | 2024-02-01 |
                """
            ),
            becomes="""
            | id | city | effective_from | effective_to |
            | 1  | Bonn | 2024-01-01     | OPEN         |
            """,
        ),
        (
            Outcome(
                SCD2,
                table="""
                | id | city | effective_from | effective_to |
                | 1  | Bonn | 2024-01-01     | 2024-02-01   |
                | 1  | Bonn | 2024-02-01     | OPEN         |
                """,
                rule="S13",
                note="The row with the newer time is a version.",
            ),
            Outcome(CHECK),
            Outcome(
                TIMESTAMP,
                table="""
                | id | city | effective_from | effective_to |
                | 1  | Bonn | 2024-01-01     | 2024-02-01   |
                | 1  | Bonn | 2024-02-01     | OPEN         |
                """,
                rule="S13",
                note="The row with the newer time is a version.",
            ),
        ),
    ),
    History(
        "NULL and values",
        "NULL becomes a value, and a value becomes NULL.",
        Case(
            PERSON,
            snapshots(
                """
                | delivery | at         | id | city |
                | 1        | 2024-01-01 | 1  | NULL |
                | 1        | 2024-01-01 | 2  | Kiel |
                | 2        | 2024-02-01 | 1  | Bonn |
                | 2        | 2024-02-01 | 2  | NULL |
                """
            ),
            becomes="""
            | id | city | effective_from | effective_to |
            | 1  | NULL | 2024-01-01     | 2024-02-01   |
            | 1  | Bonn | 2024-02-01     | OPEN         |
            | 2  | Kiel | 2024-01-01     | 2024-02-01   |
            | 2  | NULL | 2024-02-01     | OPEN         |
            """,
        ),
        (Outcome(SCD2, CHECK),),
    ),
    History(
        "A new column",
        "The second snapshot has a further column, which is NULL in one row.",
        Case(
            PERSON,
            snapshots(
                """
                | delivery | at         | id | city | email  |
                | 1        | 2024-01-01 | 1  | Bonn | absent |
                | 1        | 2024-01-01 | 2  | Kiel | absent |
                | 2        | 2024-02-01 | 1  | Bonn | NULL   |
                | 2        | 2024-02-01 | 2  | Kiel | b      |
                """
            ),
            becomes="""
            | id | city | email | effective_from | effective_to |
            | 1  | Bonn | NULL  | 2024-01-01     | OPEN         |
            | 2  | Kiel | NULL  | 2024-01-01     | 2024-02-01   |
            | 2  | Kiel | b     | 2024-02-01     | OPEN         |
            """,
        ),
        (
            Outcome(
                SCD2,
                CHECK_ALL,
                table="""
                | id | city | email | effective_from | effective_to |
                | 1  | Bonn | NULL  | 2024-01-01     | 2024-02-01   |
                | 1  | Bonn | NULL  | 2024-02-01     | OPEN         |
                | 2  | Kiel | NULL  | 2024-01-01     | 2024-02-01   |
                | 2  | Kiel | b     | 2024-02-01     | OPEN         |
                """,
                rule="S20",
                note="Every row gets a version, also the one in which the column is NULL.",
            ),
            Outcome(
                CHECK,
                table="""
                | id | city | email | effective_from | effective_to |
                | 1  | Bonn | NULL  | 2024-01-01     | OPEN         |
                | 2  | Kiel | NULL  | 2024-01-01     | OPEN         |
                """,
                rule="S20",
                note="The column is added. Its value is not stored, because the column is not checked.",
            ),
        ),
    ),
    History(
        "An empty snapshot",
        "An extract of 24 entities fails and is delivered without rows. The retire guard rejects it here.",
        Case(
            PERSON,
            snapshots(
                """
                | delivery | at         | id     | city |
                | 1        | 2024-01-01 | 1..24  | Bonn |
                | 2        | 2024-02-01 | no row |      |
                """
            ),
            becomes="""
            | id    | city | effective_from | effective_to |
            | 1..24 | Bonn | 2024-01-01     | OPEN         |
            """,
            results="""
            | batch            | outcome  | code         |
            | crm/snapshot/1/1 | accepted | ''           |
            | crm/snapshot/2/1 | rejected | RETIRE_GUARD |
            """,
        ),
        (
            Outcome(SCD2, note="A load without rows changes nothing."),
            Outcome(
                CHECK,
                table="""
                | id    | city | effective_from | effective_to |
                | 1..24 | Bonn | 2024-01-01     | 2024-02-01   |
                """,
                rule="S27",
                note="All entities are deleted.",
            ),
        ),
    ),
    History(
        "A truncated snapshot",
        "Half of 24 entities are missing in the second extract. The retire guard rejects it here.",
        Case(
            PERSON,
            snapshots(
                """
                | delivery | at         | id    | city |
                | 1        | 2024-01-01 | 1..24 | Bonn |
                | 2        | 2024-02-01 | 1..12 | Bonn |
                """
            ),
            becomes="""
            | id    | city | effective_from | effective_to |
            | 1..24 | Bonn | 2024-01-01     | OPEN         |
            """,
            results="""
            | batch            | outcome  | code         |
            | crm/snapshot/1/1 | accepted | ''           |
            | crm/snapshot/2/1 | rejected | RETIRE_GUARD |
            """,
        ),
        (
            Outcome(
                SCD2,
                CHECK,
                table="""
                | id     | city | effective_from | effective_to |
                | 1..12  | Bonn | 2024-01-01     | OPEN         |
                | 13..24 | Bonn | 2024-01-01     | 2024-02-01   |
                """,
                rule="S27",
                note="The missing entities are deleted.",
            ),
        ),
    ),
    History(
        "Changes out of order",
        "An incremental extract: a change of February arrives after one of March.",
        Case(
            RESIDENT,
            feed(
                """
                | delivery | at         | id | city | updated_at |
                | 1        | 2024-01-01 | 1  | Bonn | 2024-01-01 |
                | 1        | 2024-01-01 | 2  | Kiel | 2024-01-01 |
                | 2        | 2024-03-01 | 1  | Graz | 2024-03-01 |
                | 3        | 2024-04-01 | 1  | Wien | 2024-02-01 |
                """
            ),
            becomes="""
            | id | city | effective_from | effective_to |
            | 1  | Bonn | 2024-01-01     | 2024-02-01   |
            | 1  | Wien | 2024-02-01     | 2024-03-01   |
            | 1  | Graz | 2024-03-01     | OPEN         |
            | 2  | Kiel | 2024-01-01     | OPEN         |
            """,
        ),
        (
            Outcome(
                SCD2_BY_KEY,
                CHECK_FEED,
                table="""
                    | id | city | effective_from | effective_to |
                    | 1  | Bonn | 2024-01-01     | 2024-03-01   |
                    | 1  | Graz | 2024-03-01     | 2024-04-01   |
                    | 1  | Wien | 2024-04-01     | OPEN         |
                    | 2  | Kiel | 2024-01-01     | OPEN         |
                    """,
                rule="S4",
                note="The change takes effect when it arrives, and the older city is the current one.",
            ),
            Outcome(
                SCD2_BY_CURSOR,
                TIMESTAMP_FEED,
                table="""
                    | id | city | effective_from | effective_to |
                    | 1  | Bonn | 2024-01-01     | 2024-03-01   |
                    | 1  | Graz | 2024-03-01     | OPEN         |
                    | 2  | Kiel | 2024-01-01     | OPEN         |
                    """,
                rule="S4",
                note="The change is ignored: it is older than the latest one.",
            ),
        ),
    ),
)

BY_KEY = """
    landing_table: raw_person
    disposition: merge
    primary_key: {id: int}
    columns: [city]
    sources: {crm: {feed: {}}}
"""

BY_DAY = """
    landing_table: raw_day
    disposition: merge
    merge_key: day
    columns: {id: int}
    sources: {crm: {snapshot: {}}}
"""

BY_FLAG = """
    landing_table: raw_member
    disposition: merge
    primary_key: {id: int}
    hard_delete: deleted
    columns: {city: string, deleted: boolean}
    sources: {crm: {feed: {}}}
"""

BY_ORDER = """
    landing_table: raw_event
    disposition: merge
    primary_key: {id: int}
    dedup_sort: {seq: desc}
    columns: {city: string, seq: int}
    sources: {crm: {feed: {}}}
"""

MERGES = (
    Merge(
        "Rows of a primary key",
        "A row with a stored key replaces it, another one is inserted.",
        BY_KEY,
        feed(
            """
            | delivery | at         | id | city |
            | 1        | 2024-01-01 | 1  | Bonn |
            | 1        | 2024-01-01 | 2  | Kiel |
            | 2        | 2024-02-01 | 2  | Graz |
            | 2        | 2024-02-01 | 3  | Linz |
            """
        ),
        (Outcome(DELETE_INSERT, UPSERT),),
        becomes="""
        | id | city |
        | 1  | Bonn |
        | 2  | Graz |
        | 3  | Linz |
        """,
    ),
    Merge(
        "Rows of a merge key",
        "A delivery replaces the rows of its days. The third one is delivered twice.",
        BY_DAY,
        snapshots(
            """
            | delivery | at         | id | day |
            | 1        | 2024-01-01 | 1  | mon |
            | 1        | 2024-01-01 | 2  | mon |
            | 2        | 2024-01-02 | 3  | tue |
            | 3        | 2024-01-03 | 4  | mon |
            | 4        | 2024-01-03 | 4  | mon |
            """
        ),
        (Outcome(DELETE_INSERT_BY_DAY),),
        becomes="""
        | id | day |
        | 3  | tue |
        | 4  | mon |
        """,
    ),
    Merge(
        "Hard deletes",
        "The column `deleted` is the `hard_delete`. The key 9 is deleted, but was never stored.",
        BY_FLAG,
        feed(
            """
            | delivery | at         | id | city | deleted |
            | 1        | 2024-01-01 | 1  | Bonn | false   |
            | 1        | 2024-01-01 | 2  | Kiel | false   |
            | 2        | 2024-02-01 | 1  | Graz | NULL    |
            | 2        | 2024-02-01 | 2  | NULL | true    |
            | 2        | 2024-02-01 | 9  | NULL | true    |
            """
        ),
        (
            Outcome(DELETE_INSERT_FLAGGED),
            Outcome(
                UPSERT_FLAGGED,
                table="""
                | id | city | deleted |
                | 1  | Graz | NULL    |
                | 9  | NULL | true    |
                """,
                rule="S38",
                note="The delete of a key that is not stored is inserted as a row.",
            ),
        ),
        becomes="""
        | id | city | deleted |
        | 1  | Graz | NULL    |
        """,
    ),
    Merge(
        "Two rows of a new key",
        "Nothing orders the rows of key 1. Their delivery is rejected here.",
        BY_KEY,
        feed(
            """
            | delivery | at         | id | city |
            | 1        | 2024-01-01 | 2  | Kiel |
            | 2        | 2024-02-01 | 1  | Bonn |
            | 2        | 2024-02-01 | 1  | Graz |
            """
        ),
        (
            Outcome(
                DELETE_INSERT,
                table="""
                | id | city |
                | 1  | Bonn |
                | 2  | Kiel |
                """,
                rule="S5",
                note="One of the rows is stored.",
            ),
            Outcome(
                UPSERT,
                table="""
                | id | city |
                | 1  | Bonn |
                | 1  | Graz |
                | 2  | Kiel |
                """,
                rule="S5",
                note="Both rows are stored, so that the primary key is not unique.",
            ),
        ),
        becomes="""
        | id | city |
        | 2  | Kiel |
        """,
    ),
    Merge(
        "Two rows of a stored key",
        "Nothing orders the rows of the second delivery. It is rejected here.",
        BY_KEY,
        feed(
            """
            | delivery | at         | id | city |
            | 1        | 2024-01-01 | 1  | Wien |
            | 2        | 2024-02-01 | 1  | Bonn |
            | 2        | 2024-02-01 | 1  | Graz |
            """
        ),
        (
            Outcome(
                DELETE_INSERT,
                table="""
                | id | city |
                | 1  | Bonn |
                """,
                rule="S5",
                note="One of the rows is stored.",
            ),
            Outcome(UPSERT, note="The load fails.", failed=(2,)),
        ),
        becomes="""
        | id | city |
        | 1  | Wien |
        """,
    ),
    Merge(
        "Rows of a key in an order",
        "The row with the highest `seq` remains.",
        BY_ORDER,
        feed(
            """
            | delivery | at         | id | city | seq |
            | 1        | 2024-01-01 | 1  | Bonn | 1   |
            | 1        | 2024-01-01 | 1  | Wien | 3   |
            | 1        | 2024-01-01 | 1  | Graz | 2   |
            """
        ),
        (Outcome(DELETE_INSERT_SORTED),),
        becomes="""
        | id | city | seq |
        | 1  | Wien | 3   |
        """,
    ),
    Merge(
        "A late row",
        "The delivery of January arrives after that of February.",
        BY_KEY,
        feed(
            """
            | delivery | at         | id | city |
            | 2        | 2024-02-01 | 1  | Graz |
            | 1        | 2024-01-01 | 1  | Bonn |
            """
        ),
        (
            Outcome(
                DELETE_INSERT,
                UPSERT,
                table="""
                | id | city |
                | 1  | Bonn |
                """,
                rule="S14",
                note="The row that arrives last is stored.",
            ),
        ),
        becomes="""
        | id | city |
        | 1  | Graz |
        """,
    ),
)
