"""S38: the rows that deliveries leave, by disposition, strategy, keys, order and flag of deletes."""

from __future__ import annotations

from dataclasses import replace

import pytest

from scd_pipeline.declaration import parse_declarations
from scd_pipeline.deliveries.delivery import Delivery
from scd_pipeline.delta.warehouse import Warehouse
from scd_pipeline.load.run import load, plan
from scd_pipeline.operations.check import check_table
from scd_pipeline_tests.landing.tables import assert_stored, deliveries, landing_table, load_rows
from scd_pipeline_tests.semantics.specification import requirement, rule

DAYS = landing_table(
    """
    disposition: merge
    merge_key: {batch_day: string}
    columns: {value: string}
    """
)


@requirement("D3", "D6")
@rule("S38")
def test_a_merge_key_replaces_the_rows_of_its_values(opened: Warehouse) -> None:
    """Today's rows, loaded three times with other rows, are those of the last time."""
    load_rows(
        opened,
        DAYS,
        """
        | delivery   | batch_day | value |
        | 2024-01-01 | d1        | a     |
        | 2024-01-01 | d1        | b     |
        | 2024-01-02 | d2        | c     |
        | 2024-01-02 | d2        | c     |
        """,
    )
    assert_stored(
        opened,
        """
        | batch_day | value | scd_row_number |
        | d1        | a     | 1              |
        | d1        | b     | 1              |
        | d2        | c     | 1              |
        | d2        | c     | 2              |
        """,
    )
    load_rows(
        opened,
        DAYS,
        """
        | delivery   | batch_day | value |
        | 2024-01-03 | d1        | a2    |
        | 2024-01-04 | d2        | c     |
        | 2024-01-05 | d3        | x     |
        | 2024-01-06 | d3        | y     |
        | 2024-01-07 | d3        | z     |
        """,
    )
    assert_stored(
        opened,
        """
        | batch_day | value |
        | d1        | a2    |
        | d2        | c     |
        | d3        | z     |
        """,
    )
    assert all(result.passed for result in check_table(opened, DAYS))


ISSUES = landing_table(
    """
    disposition: merge
    primary_key: {id: int}
    hard_delete: deleted
    columns: {val: string, deleted: boolean}
    """
)


@requirement("D13", "D15", "D18")
@rule("S38")
def test_a_boolean_flag_deletes_where_it_is_true(opened: Warehouse) -> None:
    load_rows(
        opened,
        ISSUES,
        """
        | delivery   | id | val | deleted |
        | 2024-01-01 | 1  | foo | false   |
        | 2024-01-01 | 2  | foo | false   |
        | 2024-01-01 | 3  | foo | false   |
        | 2024-01-02 | 1  | bar | NULL    |
        | 2024-01-02 | 4  | foo | true    |
        """,
    )
    assert_stored(
        opened,
        """
        | id | val | deleted |
        | 1  | bar | NULL    |
        | 2  | foo | false   |
        | 3  | foo | false   |
        """,
    )
    load_rows(
        opened,
        ISSUES,
        """
        | delivery   | id | val | deleted |
        | 2024-01-03 | 1  | foo | true    |
        """,
    )
    load_rows(opened, ISSUES, "| delivery | id | deleted |\n| 2024-01-04 | 2 | true |")
    assert_stored(opened, "| id | val | deleted |\n| 3 | foo | false |")
    before = opened.table("raw").newest_version()
    unknown = load_rows(opened, ISSUES, "| delivery | id | deleted |\n| 2024-01-05 | 9 | true |")
    assert [result.outcome for result in unknown.results] == ["accepted"]
    assert opened.table("raw").newest_version() == before


@rule("S38")
def test_a_delivery_without_the_flag_deletes_no_row(opened: Warehouse) -> None:
    """As pages of JSON are, none of whose records is deleted."""
    for declared in (ISSUES, LSN, FLAGGED_DAYS):
        planned = plan(opened, declared, deliveries("| delivery | id | val | lsn |\n| 2024-01-01 | 1 | foo | 1 |"))
        assert [(each.outcome, each.new, each.deleted) for each in planned.results] == [("accepted", 1, 0)]


ORDERED = {
    order: landing_table(
        f"""
        disposition: merge
        primary_key: {{id: int}}
        dedup_sort: {{metadata_modified: {order}}}
        columns: {{metadata_modified: date, value: string}}
        """
    )
    for order in ("desc", "asc")
}
VERSIONS = """
    | delivery   | id | metadata_modified | value |
    | 2024-01-05 | 1  | 2024-01-01        | A     |
    | 2024-01-05 | 1  | 2024-01-02        | B     |
    | 2024-01-05 | 2  | 2024-01-01        | C     |
    | 2024-01-05 | 2  | 2024-01-01        | D     |
    | 2024-01-05 | 3  | NULL              | E     |
    | 2024-01-05 | 3  | 2024-01-01        | F     |
"""


@requirement("D8", "D9")
@rule("S38")
@pytest.mark.parametrize(
    ("order", "expected"),
    [
        (
            "desc",
            """
            | id | metadata_modified | value |
            | 1  | 2024-01-02        | B     |
            | 2  | 2024-01-01        | C     |
            | 3  | 2024-01-01        | F     |
            """,
        ),
        (
            "asc",
            """
            | id | metadata_modified | value |
            | 1  | 2024-01-01        | A     |
            | 2  | 2024-01-01        | C     |
            | 3  | 2024-01-01        | F     |
            """,
        ),
    ],
)
def test_an_order_chooses_one_row_of_a_key(opened: Warehouse, order: str, expected: str) -> None:
    """Of rows with one value, the first in the file remains; NULL is after all values."""
    result = load_rows(opened, ORDERED[order], VERSIONS)
    assert [(each.rows, each.filtered_rows) for each in result.results] == [(3, 3)]
    assert_stored(opened, expected)


UNORDERED = """
disposition: merge
primary_key: {id: int}
columns: {metadata_modified: date, value: string}
"""


@requirement("D7", "D42")
@rule("S38")
def test_different_rows_of_a_key_without_an_order_are_rejected_with_the_key(opened: Warehouse) -> None:
    """Identical rows are one row. The rows of a Spark DataFrame have no order."""
    rows = """
        | delivery   | id | metadata_modified | value |
        | 2024-01-05 | 1  | 2024-01-01        | A     |
        | 2024-01-05 | 1  | 2024-01-01        | A     |
        | 2024-01-06 | 2  | 2024-01-01        | C     |
        | 2024-01-06 | 2  | 2024-01-01        | D     |
    """
    for strategy in ("delete_insert", "upsert"):
        declared = landing_table(UNORDERED + f"strategy: {strategy}")
        results = plan(opened, declared, deliveries(rows)).results
        assert [(each.outcome, each.code, each.details.get("keys")) for each in results] == [
            ("accepted", "", None),
            ("rejected", "UNORDERED_CHANGES", "id=2"),
        ]
    frames = [(each, opened.spark.createDataFrame(list(each.frame))) for each in deliveries(rows)]
    unordered = [replace(each, frame=frame) for each, frame in frames]
    assert [each.code for each in plan(opened, ORDERED["desc"], unordered).results] == ["", "UNORDERED_CHANGES"]


LSN = landing_table(
    """
    disposition: merge
    primary_key: {id: int}
    dedup_sort: {lsn: desc}
    hard_delete: removed_at
    columns: {val: string, lsn: int, removed_at: string}
    """
)


@requirement("D14", "D17")
@rule("S38")
def test_any_value_of_a_flag_that_is_not_boolean_deletes(opened: Warehouse) -> None:
    """The last row of a key by `dedup_sort` decides whether it deletes."""
    load_rows(
        opened,
        LSN,
        """
        | delivery   | id | val | lsn | removed_at |
        | 2024-01-01 | 2  | old | 0   | NULL       |
        | 2024-01-01 | 3  | old | 0   | NULL       |
        | 2024-01-01 | 4  | old | 0   | NULL       |
        | 2024-01-02 | 1  | foo | 1   | NULL       |
        | 2024-01-02 | 1  | baz | 3   | NULL       |
        | 2024-01-02 | 1  | bar | 2   | x          |
        | 2024-01-02 | 2  | foo | 1   | NULL       |
        | 2024-01-02 | 2  | bar | 2   | x          |
        | 2024-01-02 | 3  | foo | 1   | ''         |
        | 2024-01-02 | 4  | foo | 1   | '0'        |
        """,
    )
    assert_stored(opened, "| id | val | lsn |\n| 1 | baz | 3 |")


FLAGGED_DAYS = landing_table(
    """
    disposition: merge
    merge_key: {id: int}
    hard_delete: deleted_at_ts
    columns: {val: string, deleted_at_ts: timestamp}
    """
)


@requirement("D16")
@rule("S38")
def test_a_flag_deletes_all_rows_of_a_merge_key(opened: Warehouse) -> None:
    load_rows(
        opened,
        FLAGGED_DAYS,
        """
        | delivery   | id | val | deleted_at_ts |
        | 2024-01-01 | 1  | foo | NULL          |
        | 2024-01-01 | 1  | bar | NULL          |
        | 2024-01-01 | 2  | bar | NULL          |
        """,
    )
    load_rows(
        opened,
        FLAGGED_DAYS,
        """
        | delivery   | id | val | deleted_at_ts       |
        | 2024-01-02 | 1  | foo | 2024-02-22 12:34:56 |
        """,
    )
    assert_stored(opened, "| id | val |\n| 2 | bar |")


PAGES = landing_table(
    """
    disposition: merge
    primary_key: {id: int}
    merge_key: {page: string}
    hard_delete: deleted
    missing: "null"
    columns: {val: string, deleted: boolean}
    """
)


@pytest.mark.slow(10)
@requirement("D13", "D18")
@rule("S14", "S38")
def test_a_flag_deletes_the_row_of_a_primary_key_and_no_other_of_its_merge_key(opened: Warehouse) -> None:
    """Also a row of another page, a row that was not stored before, and by a record with the primary key only."""
    load_rows(
        opened,
        PAGES,
        """
        | delivery   | id | page | val | deleted |
        | 2024-01-01 | 1  | p1   | a   | NULL    |
        | 2024-01-01 | 2  | p1   | b   | false   |
        | 2024-01-01 | 3  | p2   | c   | NULL    |
        | 2024-01-01 | 4  | p3   | d   | NULL    |
        """,
    )
    result = load_rows(
        opened,
        PAGES,
        """
        | delivery   | id | page | val  | deleted |
        | 2024-01-03 | 1  | p1   | NULL | true    |
        | 2024-01-03 | 3  | p9   | NULL | true    |
        | 2024-01-03 | 7  | p1   | NULL | true    |
        """,
    )
    assert [(each.rows, each.deleted) for each in result.results] == [(3, 2)]
    assert_stored(opened, "| id | page | val |\n| 2 | p1 | b |\n| 4 | p3 | d |")
    load_rows(opened, PAGES, "| delivery | id | deleted |\n| 2024-01-04 | 4 | true |")
    assert_stored(opened, "| id | page | val |\n| 2 | p1 | b |")
    load_rows(
        opened,
        PAGES,
        """
        | delivery   | id | page | val | deleted |
        | 2024-01-02 | 3  | p4   | c2  | NULL    |
        | 2024-01-02 | 4  | p4   | d2  | NULL    |
        | 2024-01-02 | 7  | p4   | g   | NULL    |
        | 2024-01-05 | 1  | p4   | a2  | NULL    |
        """,
    )
    assert_stored(opened, "| id | page | val |\n| 1 | p4 | a2 |\n| 2 | p1 | b |")
    assert all(result.passed for result in check_table(opened, PAGES))


MOVES = landing_table(
    """
    disposition: merge
    primary_key: {id: int, part: string}
    merge_key: {day: string}
    columns: {value: string}
    """,
    bad_row_limit=0.5,
)


@requirement("D3", "D5")
@rule("S38")
def test_rows_of_a_primary_key_or_a_merge_key_are_replaced(opened: Warehouse) -> None:
    """Row 2 moves to another day, and row 3 is omitted; a key with a NULL part is quarantined."""
    load_rows(
        opened,
        MOVES,
        """
        | delivery   | id | part | day | value |
        | 2024-01-01 | 1  | x    | d1  | a     |
        | 2024-01-01 | 2  | x    | d1  | b     |
        | 2024-01-01 | 2  | xx   | d1  | c     |
        | 2024-01-02 | 3  | x    | d2  | d     |
        """,
    )
    result = load_rows(
        opened,
        MOVES,
        """
        | delivery   | id | part | day | value |
        | 2024-01-03 | 2  | x    | d2  | b2    |
        | 2024-01-03 | 4  | x    | d2  | e     |
        | 2024-01-03 | 5  | NULL | d2  | f     |
        """,
    )
    assert [each.bad_rows for each in result.results] == [1]
    assert_stored(
        opened,
        """
        | id | part | day | value |
        | 1  | x    | d1  | a     |
        | 2  | x    | d2  | b2    |
        | 2  | xx   | d1  | c     |
        | 3  | x    | d2  | d     |
        | 4  | x    | d2  | e     |
        """,
    )


LINES = landing_table(
    """
    disposition: append
    columns: {line: string, n: int}
    """
)


@pytest.mark.slow(8)
@rule("S38", "S34", "S14")
def test_an_append_has_the_rows_of_every_delivery_once(opened: Warehouse) -> None:
    """Equal rows too; a retry adds nothing. A revision replaces the rows of its delivery; a withdrawal removes them."""
    rows = """
        | delivery   | line | n    |
        | 2024-01-01 | a    | 1    |
        | 2024-01-01 | a    | 1    |
        | 2024-01-02 | a    | 1    |
        | 2024-01-03 | b    | NULL |
    """
    load_rows(opened, LINES, rows)
    load_rows(opened, LINES, rows)
    assert_stored(
        opened,
        """
        | line | n    | scd_delivery        | scd_row_number |
        | a    | 1    | api/feed/2024-01-01 | 1              |
        | a    | 1    | api/feed/2024-01-01 | 2              |
        | a    | 1    | api/feed/2024-01-02 | 1              |
        | b    | NULL | api/feed/2024-01-03 | 1              |
        """,
    )
    assert opened.table("raw").read().columns[:2] == ["line", "n"], "the columns of the source are first"
    revised = deliveries("| delivery | line | n |\n| 2024-01-01 | a | 1 |\n| 2024-01-01 | c | 2 |", revision=1)
    withdrawn = Delivery("api", name="2024-01-02", revision=1, withdrawn=True)
    load(opened, LINES, [*revised, withdrawn])
    assert_stored(
        opened,
        """
        | line | n    | scd_delivery        |
        | a    | 1    | api/feed/2024-01-01 |
        | c    | 2    | api/feed/2024-01-01 |
        | b    | NULL | api/feed/2024-01-03 |
        """,
    )


COUNTRIES = landing_table(
    """
    disposition: replace
    columns: {code: string, name: string}
    """
)


@pytest.mark.slow(6)
@rule("S38", "S27")
def test_a_replace_has_the_rows_of_the_last_delivery_by_position(opened: Warehouse) -> None:
    load_rows(
        opened,
        COUNTRIES,
        """
        | delivery   | code | name   |
        | 2024-01-02 | a    | Aruba  |
        | 2024-01-02 | a    | Aruba  |
        | 2024-01-02 | b    | Benin  |
        """,
    )
    load_rows(opened, COUNTRIES, "| delivery | code | name |\n| 2024-01-01 | c | Chad |\n| 2024-01-01 | b | Benin |")
    assert_stored(opened, "| code | name |\n| a | Aruba |\n| a | Aruba |\n| b | Benin |")


USERS = landing_table(
    """
    disposition: merge
    strategy: upsert
    primary_key: {id: int}
    hard_delete: deleted
    columns: {name: string, deleted: boolean}
    """
)


@requirement("D41")
@rule("S38", "S13", "S15")
def test_an_upsert_writes_the_rows_that_change_in_one_commit(opened: Warehouse) -> None:
    load_rows(
        opened,
        USERS,
        """
        | delivery   | id | name | deleted |
        | 2024-01-01 | 1  | Ann  | NULL    |
        | 2024-01-01 | 2  | Bob  | NULL    |
        | 2024-01-01 | 3  | Cy   | NULL    |
        """,
    )
    before = opened.table("raw").newest_version()
    result = load_rows(
        opened,
        USERS,
        """
        | delivery   | id | name | deleted |
        | 2024-01-02 | 1  | Ann  | false   |
        | 2024-01-02 | 2  | NULL | true    |
        | 2024-01-02 | 4  | Di   | NULL    |
        | 2024-01-03 | 3  | Cy   | NULL    |
        """,
    )
    assert result.row_counts == {"open": 1, "overwrite": 1, "remove": 1}
    assert opened.table("raw").newest_version() == before + 1
    assert_stored(
        opened,
        """
        | id | name | deleted | last_updated |
        | 1  | Ann  | false   | 2024-01-02   |
        | 3  | Cy   | NULL    | 2024-01-01   |
        | 4  | Di   | NULL    | 2024-01-02   |
        """,
    )


MIRRORED = landing_table(
    """
    disposition: merge
    primary_key: {id: int}
    columns: mirror
    """
)


@rule("S38", "S36", "S14")
@pytest.mark.slow(7)
def test_a_mirrored_column_is_null_in_the_rows_of_a_delivery_without_it(opened: Warehouse) -> None:
    """Also if the row before it, with a value, arrives later."""
    load_rows(opened, MIRRORED, "| delivery | id | name |\n| 2024-01-02 | 1 | Ann |")
    load_rows(
        opened,
        MIRRORED,
        """
        | delivery   | id | name | town |
        | 2024-01-01 | 1  | Anne | Bonn |
        | 2024-01-01 | 2  | Bob  | Ulm  |
        """,
    )
    assert_stored(
        opened,
        """
        | id | name | town |
        | 1  | Ann  | NULL |
        | 2  | Bob  | Ulm  |
        """,
    )


@rule("S38", "S36", "S20")
@pytest.mark.slow(7)
def test_the_options_of_a_merge_find_columns_by_their_names_with_underscores(opened: Warehouse) -> None:
    declared = landing_table(
        """
        disposition: merge
        primary_key: {Order_ID: int}
        dedup_sort: {Updated_at: desc}
        hard_delete: Is_deleted
        columns: {Is_deleted: boolean}
        mirror: {}
        """
    )
    load_rows(
        opened,
        declared,
        """
        | delivery   | Order ID | Unit price ($) | Updated at | Is deleted |
        | 2024-01-01 | 1        | 5              | 2024-01-01 | false      |
        | 2024-01-01 | 2        | 6              | 2024-01-02 | false      |
        | 2024-01-01 | 2        | 7              | 2024-01-01 | false      |
        | 2024-01-02 | 1        | 5              | 2024-01-01 | true       |
        """,
    )
    assert_stored(
        opened,
        """
        | Order_ID | Unit_price_$ | Updated_at | Is_deleted |
        | 2        | 6            | 2024-01-02 | false      |
        """,
    )


@rule("S38", "S27")
def test_the_retire_guard_counts_the_rows_that_a_delivery_without_keys_loses(opened: Warehouse) -> None:
    """New values in all rows are no loss; the loss of half of the rows is."""
    lines = [f"| 2024-01-01 | {number} | old |" for number in range(20)]
    lines += [f"| 2024-01-02 | {number} | new |" for number in range(20)]
    lines += [f"| 2024-01-03 | {number} | new |" for number in range(10)]
    header = "| delivery | code | name |"
    results = plan(opened, COUNTRIES, deliveries("\n".join([header, *lines]))).results
    assert [each.code for each in results] == ["", "", "RETIRE_GUARD"]
    assert (results[2].details["omitted"], results[2].details["existing"]) == (10, 20)


FLAGS = {
    "a placeholder of NULL": (
        "deleted: date",
        'deleted: {null_values: "00000000", format: yyyyMMdd}',
        "| delivery | id | v | deleted |\n| 2024-01-02 | 1 | b | '00000000' |\n| 2024-01-02 | 2 | b | '20240102' |",
    ),
    "another name": (
        "deleted: boolean",
        "deleted: [deleted, is_removed]",
        "| delivery | id | v | is_removed |\n| 2024-01-02 | 1 | b | false |\n| 2024-01-02 | 2 | b | true |",
    ),
    "texts of a flag": (
        "deleted: boolean",
        "deleted: {true_values: J, false_values: N}",
        "| delivery | id | v | deleted |\n| 2024-01-02 | 1 | b | N |\n| 2024-01-02 | 2 | b | J |",
    ),
}


@pytest.mark.slow(6)
@rule("S38", "S26", "S30")
@pytest.mark.parametrize("case", FLAGS)
def test_a_flag_of_deletes_is_read_as_its_column_is_declared(opened: Warehouse, case: str) -> None:
    flag, column, delivered = FLAGS[case]
    (declared,) = parse_declarations(
        "landing_table: raw\ndisposition: merge\nprimary_key: {id: int}\nhard_delete: deleted\n"
        f"columns: {{v: string, {flag}}}\nsources: {{api: {{feed: {{}}, columns: {{{column}}}}}}}\n"
    ).landing_tables
    load_rows(opened, declared, "| delivery | id | v |\n| 2024-01-01 | 1 | a |\n| 2024-01-01 | 2 | a |")
    load_rows(opened, declared, delivered)
    assert_stored(opened, "| id | v |\n| 1 | b |")


@pytest.mark.slow(12)
@rule("S38")
def test_a_row_that_deletes_leaves_the_other_rows_of_a_merge_key_that_is_in_its_primary_key(opened: Warehouse) -> None:
    """It belongs to no scope of the delivery, and an earlier delivery that is late changes nothing."""
    declared = landing_table(
        "disposition: merge\nprimary_key: {day: string, id: int}\nmerge_key: day\nhard_delete: deleted\n"
        "columns: {v: string, deleted: boolean}"
    )
    load_rows(
        opened,
        declared,
        """
        | delivery   | day | id | v | deleted |
        | 2024-01-01 | d1  | 1  | a | false   |
        | 2024-01-01 | d1  | 2  | a | false   |
        | 2024-01-01 | d2  | 3  | a | false   |
        """,
    )
    load_rows(opened, declared, "| delivery | day | id | v | deleted |\n| 2024-01-03 | d1 | 1 | b | true |")
    remaining = "| day | id | v |\n| d1 | 2 | a |\n| d2 | 3 | a |"
    assert_stored(opened, remaining)
    load_rows(
        opened,
        declared,
        """
        | delivery   | day | id | v | deleted |
        | 2024-01-02 | d1  | 1  | c | false   |
        | 2024-01-02 | d1  | 2  | a | false   |
        """,
    )
    assert_stored(opened, remaining)


@pytest.mark.slow(10)
@rule("S38")
def test_a_late_delivery_with_another_column_leaves_what_the_next_one_left(opened: Warehouse) -> None:
    """The next delivery repeated the rows, and lacks the column: it leaves NULL, in any order of arrival."""
    (declared,) = parse_declarations(
        "landing_table: raw\ndisposition: merge\nprimary_key: {id: int}\nmerge_key: {day: string}\n"
        "columns: mirror\nsources: {api: {snapshot: {}}}\n"
    ).landing_tables
    load_rows(opened, declared, "| delivery | id | day | v |\n| 2024-01-01 | 1 | d1 | a |")
    load_rows(opened, declared, "| delivery | id | day | v |\n| 2024-01-03 | 1 | d1 | a |")
    load_rows(opened, declared, "| delivery | id | day | v | note |\n| 2024-01-02 | 1 | d1 | a | x |")
    assert_stored(opened, "| id | day | v | note |\n| 1 | d1 | a | NULL |")


@pytest.mark.slow(7)
@rule("S38", "S41")
def test_control_totals_count_the_rows_that_dedup_sort_excludes(opened: Warehouse) -> None:
    declared = landing_table(
        "disposition: merge\nprimary_key: {id: int}\ndedup_sort: {n: desc}\ncolumns: {n: int, v: string}"
    )
    rows = (
        "| delivery | id | n | v |\n| 2024-01-01 | 1 | 1 | a |\n| 2024-01-01 | 1 | 2 | b |\n| 2024-01-01 | 2 | 1 | c |"
    )
    (delivery,) = deliveries(rows)
    rejected = load(opened, declared, [replace(delivery, totals={"rows": 2})]).results[0]
    assert rejected.code == "CONTROL_TOTALS"
    assert "3 rows delivered, and the control total is 2" in str(rejected)
    load(opened, declared, [replace(delivery, totals={"rows": 3})]).raise_if_rejected()
    assert_stored(opened, "| id | v |\n| 1 | b |\n| 2 | c |")
