"""S40: the elements of an array of structs are rows of a child table, which every reader sees with their version."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from scd_pipeline import Pipeline, queries
from scd_pipeline.declaration import Attribute, Dimension, Feed, Mirror, Snapshot, Source
from scd_pipeline.declaration.child_tables import child_tables
from scd_pipeline.deliveries.delivery import Delivery
from scd_pipeline.delta.child_tables import child_properties
from scd_pipeline.delta.warehouse import Warehouse
from scd_pipeline.errors import ForeignCommitError, HighWaterMarkError, SetupError
from scd_pipeline.history.child_rows import child_rows
from scd_pipeline.load.run import ingest_and_apply, load, plan
from scd_pipeline.operations.archive import archive
from scd_pipeline.operations.check import check_table
from scd_pipeline.operations.maintenance import maintain
from scd_pipeline.operations.repair import repair
from scd_pipeline_tests import text_tables
from scd_pipeline_tests.semantics.specification import requirement
from scd_pipeline_tests.storage.issues import CHILDREN, COMMENTS, ISSUE, elements, feed, snapshot
from scd_pipeline_tests.storage.two_tables import Killed, between_the_commits, kill, reader_in_a_loop
from scd_pipeline_tests.text_tables import assert_same_rows

FIRST = snapshot(1, {"a": {"hello": ["ann", "bob"], "bye": []}, "b": {"why": ["eve"]}, "c": {}, "d": None})
ELEMENTS = """
| at | text  | users   | from       | to         |
| 0  | hello | ann bob | 2024-01-01 | NULL       |
| 1  | bye   | ''      | 2024-01-01 | NULL       |
| 0  | why   | eve     | 2024-01-01 | NULL       |
"""


@pytest.fixture(scope="module")
def loaded_folder(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A warehouse with `FIRST`, and an audit, without which a check fails."""
    folder = tmp_path_factory.mktemp("loaded") / "warehouse"
    load(Warehouse(spark, folder), ISSUE, [FIRST])
    return folder


@pytest.fixture
def loaded(spark: SparkSession, loaded_folder: Path, tmp_path: Path) -> Warehouse:
    """A copy of `loaded_folder`."""
    shutil.copytree(loaded_folder, tmp_path / "warehouse")
    return Warehouse(spark, tmp_path / "warehouse")


@pytest.fixture(scope="module")
def changed(spark: SparkSession, loaded_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Warehouse:
    """A copy of `loaded_folder` with another version of an issue, which differs in a nested value; only for reading."""
    folder = tmp_path_factory.mktemp("changed") / "warehouse"
    shutil.copytree(loaded_folder, folder)
    warehouse = Warehouse(spark, folder)
    ingest_and_apply(warehouse, ISSUE, CHANGES["a nested value"][0])
    return warehouse


def elements_in_sql(warehouse: Warehouse) -> list[dict[str, Any]]:
    """The text of each comment in the array of its version, and in the child table, in a query of both."""
    queries.register(warehouse, ["dim_issue", CHILDREN[0]])
    arrays = "SELECT issue_key, posexplode(comments) AS (position, comment) FROM dim_issue"
    query = (
        f"SELECT comment.text AS element, c.text AS child FROM ({arrays}) AS v FULL JOIN {CHILDREN[0]} AS c "
        "ON c.issue_key = v.issue_key AND c.comments_position = v.position"
    )
    return [row.asDict() for row in warehouse.spark.sql(query).collect()]


def violations(warehouse: Warehouse, dimension: Dimension = ISSUE) -> list[str]:
    return [str(result) for result in check_table(warehouse, dimension) if not result.passed]


def versions_of(warehouse: Warehouse, names: Sequence[str] = CHILDREN) -> list[int]:
    """The newest versions of tables."""
    return [warehouse.table(name).newest_version() for name in names]


@requirement("D4")
@pytest.mark.rule("S40")
def test_each_element_is_a_row_with_the_keys_of_its_version_and_its_parent(loaded: Warehouse) -> None:
    """An array that is NULL or empty has no rows. The root keeps the arrays."""
    assert_same_rows(ELEMENTS, elements(loaded))
    comments, reactions = ([row.asDict() for row in loaded.table(name).read().collect()] for name in CHILDREN)
    (key,) = {row["issue_key"] for row in comments if row["text"] == "hello"}
    assert [row for row in reactions if row["user"] == "bob"] == [
        {
            "issue_key": key,
            "comments_key": f"{key}.0",
            "reactions_key": f"{key}.0.1",
            "reactions_position": 1,
            "user": "bob",
        }
    ]
    assert {row["comments_key"] for row in comments if row["issue_key"] == key} == {f"{key}.0", f"{key}.1"}


NULLABLE = "array<struct<b:array<struct<`c-d`:int>>,m:map<int,int>>>"


@pytest.mark.rule("S40")
def test_an_element_that_is_null_has_a_row_and_an_array_that_is_null_has_none(spark: SparkSession) -> None:
    """On the second level too, and whatever the names of the fields."""
    first, second = child_tables(
        replace(
            ISSUE,
            attributes={"title": 2, "comments": Attribute(2, NULLABLE)},
            child_tables=["comments", "comments.b"],
        )
    )
    rows = [
        (1, [None, {"b": None, "m": {1: 2}}, {"b": [None, {"c-d": 3}], "m": None}]),
        (2, None),
    ]
    versions = spark.createDataFrame(rows, f"issue_key bigint, comments {NULLABLE}")
    assert [tuple(row) for row in child_rows(versions, first).collect()] == [
        (1, "1.0", 0, None),
        (1, "1.1", 1, {1: 2}),
        (1, "1.2", 2, None),
    ]
    assert [tuple(row) for row in child_rows(versions, second).collect()] == [
        (1, "1.2", "1.2.0", 0, None),
        (1, "1.2", "1.2.1", 1, 3),
    ]


@requirement("D39")
@pytest.mark.rule("S40", "S8")
@pytest.mark.slow(8)
def test_a_change_of_a_nested_value_opens_a_version(changed: Warehouse) -> None:
    assert_same_rows(CHANGES["a nested value"][1], elements(changed))


@requirement("D37")
@pytest.mark.rule("S40")
def test_a_child_table_has_no_window_which_its_views_join(changed: Warehouse) -> None:
    table = changed.table(CHILDREN[1])
    assert list(table.columns()) == ["issue_key", "comments_key", "reactions_key", "reactions_position", "user"]
    keys = [row["reactions_key"] for row in table.read().collect()]
    assert len(set(keys)) == len(keys) == 5
    pipeline = Pipeline(changed.path, spark=changed.spark)
    query = "SELECT user, CAST(effective_from AS DATE) AS since, CAST(effective_to AS DATE) AS until"
    expected = """
    | user | since      | until      |
    | ann  | 2024-01-01 | 2024-02-01 |
    | bob  | 2024-01-01 | 2024-02-01 |
    | ann  | 2024-02-01 | NULL       |
    | kim  | 2024-02-01 | NULL       |
    | eve  | 2024-01-01 | NULL       |
    """
    for suffix, rows in (("versions", text_tables.parse(expected)), ("current", text_tables.parse(expected)[2:])):
        stored = pipeline.sql(f"{query} FROM {CHILDREN[1]}_{suffix}").collect()
        assert Counter(map(str, (row.asDict() for row in stored))) == Counter(map(str, rows))


CHANGES: dict[str, tuple[list[Delivery], str]] = {
    "a nested value": (
        [feed("one", "a", 2, {"hello": ["ann", "kim"], "bye": []})],
        """
        | at | text  | users   | from       | to         |
        | 0  | hello | ann bob | 2024-01-01 | 2024-02-01 |
        | 1  | bye   | ''      | 2024-01-01 | 2024-02-01 |
        | 0  | hello | ann kim | 2024-02-01 | NULL       |
        | 1  | bye   | ''      | 2024-02-01 | NULL       |
        | 0  | why   | eve     | 2024-01-01 | NULL       |
        """,
    ),
    "a late version": (
        [feed("one", "b", 3, {"now": []}), feed("late", "b", 2, {"why": ["eve"], "how": ["kim"]})],
        """
        | at | text  | users   | from       | to         |
        | 0  | hello | ann bob | 2024-01-01 | NULL       |
        | 1  | bye   | ''      | 2024-01-01 | NULL       |
        | 0  | why   | eve     | 2024-01-01 | 2024-02-01 |
        | 0  | why   | eve     | 2024-02-01 | 2024-03-01 |
        | 1  | how   | kim     | 2024-02-01 | 2024-03-01 |
        | 0  | now   | ''      | 2024-03-01 | NULL       |
        """,
    ),
    "a delivery twice": (
        [feed("one", "b", 2, {"now": ["kim"]}), feed("one", "b", 2, {"now": ["kim"]})],
        """
        | at | text  | users   | from       | to         |
        | 0  | hello | ann bob | 2024-01-01 | NULL       |
        | 1  | bye   | ''      | 2024-01-01 | NULL       |
        | 0  | why   | eve     | 2024-01-01 | 2024-02-01 |
        | 0  | now   | kim     | 2024-02-01 | NULL       |
        """,
    ),
    "a withdrawn delivery": (
        [feed("one", "b", 2, {"now": ["kim"]}), feed("one", "b", 2, None, revision=1, withdrawn=True)],
        ELEMENTS,
    ),
    "a corrected version": (
        [snapshot(1, {"a": {"hi": ["bob"]}, "b": {"why": ["eve"]}, "c": {}, "d": None}, revision=1)],
        """
        | at | text  | users   | from       | to         |
        | 0  | hi    | bob     | 2024-01-01 | NULL       |
        | 0  | why   | eve     | 2024-01-01 | NULL       |
        """,
    ),
}


@pytest.mark.slow(60)
@requirement("D39")
@pytest.mark.rule("S40", "S14")
@pytest.mark.parametrize("case", CHANGES)
def test_the_elements_follow_the_versions(loaded: Warehouse, monkeypatch: pytest.MonkeyPatch, case: str) -> None:
    """Each delivery is loaded twice: the first load is killed between its commits, and readers see what was before."""
    deliveries, expected = CHANGES[case]
    for delivery in deliveries:
        before = elements(loaded)
        with between_the_commits(kill, monkeypatch, ISSUE.name):
            try:
                ingest_and_apply(loaded, ISSUE, [delivery])
            except Killed:
                assert elements(loaded) == before
        ingest_and_apply(loaded, ISSUE, [delivery])
    assert_same_rows(expected, elements(loaded))


CORRECTED = snapshot(
    1, {"a": {"hello": ["ann", "bob"], "bye": []}, "b": {"hi": ["bob"]}, "c": {}, "d": None}, revision=1
)


@pytest.mark.slow(12)
@pytest.mark.rule("S40", "S34")
def test_a_version_that_one_load_corrects_and_ends_has_the_corrected_elements(loaded: Warehouse) -> None:
    result = ingest_and_apply(loaded, ISSUE, [CORRECTED, feed("one", "b", 2, {"now": ["kim"]})])
    assert result.row_counts == {"open": 1, "close": 1}
    expected = """
    | at | text  | users   | from       | to         |
    | 0  | hello | ann bob | 2024-01-01 | NULL       |
    | 1  | bye   | ''      | 2024-01-01 | NULL       |
    | 0  | hi    | bob     | 2024-01-01 | 2024-02-01 |
    | 0  | now   | kim     | 2024-02-01 | NULL       |
    """
    assert_same_rows(expected, elements(loaded))
    assert violations(loaded) == []


@pytest.mark.slow
@pytest.mark.rule("S40", "S15")
def test_a_load_without_changed_elements_writes_nothing_to_the_child_tables(loaded: Warehouse) -> None:
    """A delete closes the version, which keeps its elements."""
    before = versions_of(loaded)
    ingest_and_apply(loaded, ISSUE, [feed("one", "b", 2, None)])
    assert versions_of(loaded) == before
    assert_same_rows(
        ELEMENTS.replace("eve     | 2024-01-01 | NULL      ", "eve     | 2024-01-01 | 2024-02-01"), elements(loaded)
    )


@pytest.mark.slow
@requirement("D4")
@pytest.mark.rule("S40")
def test_a_reader_in_a_loop_never_sees_a_version_without_its_elements(
    loaded: Warehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nor elements without their version. The load waits between its commits until the reader has read twice."""
    before, after = (text_tables.parse(rows) for rows in (ELEMENTS, CHANGES["a nested value"][1]))
    allowed = [Counter(row["text"] for row in rows) for rows in (before, after)]
    with reader_in_a_loop(lambda: elements_in_sql(loaded)) as (seen, wait_for_reads):
        with between_the_commits(wait_for_reads, monkeypatch, ISSUE.name):
            ingest_and_apply(loaded, ISSUE, CHANGES["a nested value"][0])
        wait_for_reads()
    assert len(seen) >= 4
    for rows in seen:
        assert Counter(row["element"] for row in rows) in allowed
        assert Counter(row["child"] for row in rows) in allowed


AD = Dimension(
    "ads",
    "id",
    {"status": 1, "labels": Attribute(1, "array<struct<name:string,users:array<struct<user:string>>>>")},
    Source("facebook", Snapshot(), Feed(effective_at="at", deletes="op = 'D'")),
    deleted_rows="remove",
    child_tables=["labels", "labels.users"],
)


def ad(key: str, status: str, **more: Any) -> dict[str, Any]:
    """An ad with a label that has the name of its status, which one user gave."""
    return {"id": key, "status": status, "labels": [{"name": status, "users": [{"user": f"user of {key}"}]}], **more}


@pytest.fixture(scope="module")
def ads(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> list[list[str]]:
    """The values in the table of ads and its child tables after a snapshot, a feed, and a delete."""
    warehouse, states = Warehouse(spark, tmp_path_factory.mktemp("ads") / "warehouse"), []
    deliveries = [
        Delivery("facebook", "1", channel="snapshot", at=datetime(2024, 1, 1), frame=[ad("a", "DISAPPROVED")]),
        Delivery("facebook", "2", channel="feed", frame=[ad("b", "PAUSED", at="2024-02-01", op="U")]),
        Delivery("facebook", "3", channel="feed", frame=[ad("a", "DISAPPROVED", at="2024-03-01", op="D")]),
    ]
    for delivery in deliveries:
        ingest_and_apply(warehouse, AD, [delivery])
        values = {"ads": "status", "ads__labels": "name", "ads__labels__users": "user"}
        rows = [
            row[0] for name, value in values.items() for row in warehouse.table(name).read().select(value).collect()
        ]
        states.append(sorted(rows))
    return states


@pytest.mark.slow(8, together="ads")
@requirement("D20")
@pytest.mark.rule("S40", "S33")
def test_a_feed_after_a_snapshot_leaves_the_rows_and_children_of_both(ads: list[list[str]]) -> None:
    """The snapshot replaces the table, the feed merges into it, and each child row has the key of its root."""
    assert ads[1] == ["DISAPPROVED", "DISAPPROVED", "PAUSED", "PAUSED", "user of a", "user of b"]


@pytest.mark.slow(8, together="ads")
@requirement("D19")
@pytest.mark.rule("S40", "S33")
def test_a_delete_reaches_the_children_and_their_children(ads: list[list[str]]) -> None:
    assert ads[2] == ["PAUSED", "PAUSED", "user of b"]


LAYOUTS: dict[str, dict[str, Any]] = {"history table": {"history_table": True}, "archive": {"archive_after_years": 7}}


@pytest.mark.slow(90)
@pytest.mark.rule("S40", "S11", "S42")
@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_version_has_its_elements_whichever_table_has_it(spark: SparkSession, warehouse: Path, layout: str) -> None:
    dimension = replace(ISSUE, **LAYOUTS[layout])
    opened = Warehouse(spark, warehouse)
    load(opened, dimension, [FIRST])
    deliveries, expected = CHANGES["a late version"]
    ingest_and_apply(opened, dimension, deliveries[:1])
    if layout == "archive":
        before = versions_of(opened)
        moved = archive(opened, dimension, closed_before=datetime(2024, 4, 1), by="ann", reason="age")
        assert (moved.moved, versions_of(opened)) == (1, before)
    ingest_and_apply(opened, dimension, deliveries[1:])
    assert_same_rows(expected, elements(opened, dimension))
    assert violations(opened, dimension) == []


@pytest.mark.slow(90)
@pytest.mark.rule("S40")
def test_a_child_table_is_built_once_it_is_declared_and_can_be_dropped_once_it_is_not(loaded: Warehouse) -> None:
    """Without an array of its own, the elements keep it as a column. A load without deliveries builds the table."""
    first = replace(ISSUE, child_tables=["comments"])
    plan_text = plan(loaded, first).explain()
    assert "build dim_issue__comments from all versions" in plan_text
    ingest_and_apply(loaded, first)
    assert loaded.table(CHILDREN[0]).columns()["reactions"] == "array<struct<user:string>>"
    assert violations(loaded, first) == [
        f"dim_issue: no_unused_tables: warning (1): {CHILDREN[1]}: drop the table; no load uses it"
    ]
    with pytest.raises(SetupError) as caught:
        queries.child_table(loaded, ISSUE, "comments.reactions")
    assert (caught.value.code, caught.value.location) == ("CHILD_TABLE_NOT_RECORDED", f"table {CHILDREN[1]}")
    before = versions_of(loaded, [ISSUE.name, *CHILDREN])
    ingest_and_apply(loaded, first)
    assert versions_of(loaded, [ISSUE.name, *CHILDREN]) == before
    ingest_and_apply(loaded, ISSUE)
    assert_same_rows(ELEMENTS, elements(loaded))
    assert violations(loaded) == []


@pytest.mark.slow(60)
@pytest.mark.rule("S40", "S17")
def test_a_dropped_child_table_is_reported_and_rebuilt(loaded: Warehouse) -> None:
    shutil.rmtree(Path(loaded.path) / CHILDREN[0])
    (text,) = violations(loaded)
    assert text.startswith("dim_issue: child_tables_have_all_elements: failed (1)")
    with pytest.raises(HighWaterMarkError) as caught:
        elements(loaded)
    assert (caught.value.code, caught.value.location) == ("CHILD_TABLE_LOST", f"table {CHILDREN[0]}")
    ingest_and_apply(loaded, ISSUE)
    assert_same_rows(ELEMENTS, elements(loaded))


@pytest.mark.slow(90)
@pytest.mark.rule("S40", "S17")
def test_a_changed_child_table_is_reported_and_repaired(loaded: Warehouse) -> None:
    loaded.spark.sql(f"DELETE FROM {loaded.table(CHILDREN[0]).identifier} WHERE text = 'why'").collect()
    missing, foreign = violations(loaded)
    assert foreign.startswith("dim_issue: no_foreign_commits: failed (1)")
    assert missing.startswith("dim_issue: child_tables_have_all_elements: failed (1): dim_issue__comments ")
    with pytest.raises(ForeignCommitError) as caught:
        ingest_and_apply(loaded, ISSUE, [feed("one", "b", 2, {"now": []})])
    assert "run `scd repair dim_issue`" in str(caught.value)
    for dry_run in (True, False):
        result = repair(loaded, ISSUE, now=datetime(2024, 5, 1), actor="ann", dry_run=dry_run)
        assert (result.child_tables, result.has_differences) == ((CHILDREN[0],), False)
    assert violations(loaded) == []
    assert_same_rows(ELEMENTS, elements(loaded))
    ingest_and_apply(loaded, ISSUE, CHANGES["a nested value"][0])
    assert_same_rows(CHANGES["a nested value"][1], elements(loaded))


@pytest.mark.slow(90)
@pytest.mark.rule("S40", "S17")
@pytest.mark.parametrize("declared", [ISSUE, replace(ISSUE, child_tables=["comments"])], ids=["rows", "columns"])
def test_maintenance_rolls_back_what_a_killed_load_has_left(
    loaded: Warehouse, monkeypatch: pytest.MonkeyPatch, declared: Dimension
) -> None:
    """The killed load has written rows, or rebuilt a child table with other columns."""
    with pytest.raises(Killed), between_the_commits(kill, monkeypatch, ISSUE.name):
        ingest_and_apply(loaded, declared, CHANGES["a nested value"][0])
    maintain(loaded, ISSUE.table_names, now=datetime(2025, 5, 1, tzinfo=timezone.utc))
    commit = loaded.table(ISSUE.name).last_commit()
    marks = {name: commit.applied(name).commit for name in CHILDREN}
    assert marks == {name: loaded.table(name).last_commit().number for name in CHILDREN}
    assert_same_rows(ELEMENTS, elements(loaded))
    assert violations(loaded) == []


@pytest.mark.slow(60)
@pytest.mark.rule("S40", "S36")
def test_a_mirrored_array_has_a_child_table_once_it_is_delivered(spark: SparkSession, warehouse: Path) -> None:
    """In a table without windows, whose deleted rows are removed, as a landing table is."""
    source = Source("github", Snapshot())
    mirrored = Dimension("issue", "id", "mirror", source, mirror=Mirror(scd=1), deleted_rows="remove")
    mirrored = replace(mirrored, child_tables=["labels"])
    opened = Warehouse(spark, warehouse)
    names = {"2024-01-01": [], "2024-02-01": ["bug", "slow"], "2024-03-01": ["bug"]}
    for day, labels in names.items():
        row = {"id": "a", "title": day, **({"labels": [{"name": label} for label in labels]} if labels else {})}
        delivery = Delivery("github", day, channel="snapshot", at=datetime.fromisoformat(day), frame=[row])
        ingest_and_apply(opened, mirrored, [delivery])
        table = opened.table("issue__labels")
        stored = [row["name"] for row in table.read().orderBy("labels_position").collect()] if labels else []
        assert (stored, table.exists()) == (labels, bool(labels))
    (result,) = check_table(opened, mirrored, ["child_tables_have_all_elements"])
    assert result.passed
    opened.spark.sql(f"DELETE FROM {opened.table('issue__labels').identifier}").collect()
    (result,) = check_table(opened, mirrored, ["child_tables_have_all_elements"])
    assert result.count == 1


@pytest.mark.slow
@pytest.mark.rule("S40")
def test_another_table_with_the_name_of_a_child_table_is_not_changed(spark: SparkSession, warehouse: Path) -> None:
    opened = Warehouse(spark, warehouse)
    spark.range(1).write.format("delta").save(opened.table(CHILDREN[0]).path)
    with pytest.raises(SetupError) as caught:
        ingest_and_apply(opened, ISSUE, [FIRST])
    assert (caught.value.code, caught.value.location) == ("CHILD_NAME_IN_USE", f"table {CHILDREN[0]}")
    assert not opened.table(ISSUE.name).exists()


@pytest.mark.rule("S40")
def test_the_log_of_a_child_table_has_no_values_of_a_personal_attribute() -> None:
    personal = replace(ISSUE, attributes={"title": 2, "comments": Attribute(2, COMMENTS, personal=True)})
    assert [child_properties(child).get("delta.dataSkippingStatsColumns") for child in child_tables(personal)] == [
        "`issue_key`,`comments_key`",
        "`issue_key`,`reactions_key`",
    ]
    assert "delta.dataSkippingStatsColumns" not in child_properties(child_tables(ISSUE)[0])


@pytest.mark.slow
@pytest.mark.rule("S40")
def test_only_a_query_of_a_lost_child_table_fails(loaded: Warehouse) -> None:
    pipeline = Pipeline(loaded.path, spark=loaded.spark)
    shutil.rmtree(Path(loaded.path) / CHILDREN[1])
    assert pipeline.sql("SELECT * FROM dim_issue_current").count() == 4
    assert pipeline.sql(f"SELECT * FROM {CHILDREN[0]}_current").count() == 3
    with pytest.raises(HighWaterMarkError, match="CHILD_TABLE_LOST"):
        pipeline.sql(f"SELECT * FROM {CHILDREN[1]}_current")
