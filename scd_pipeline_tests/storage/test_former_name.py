"""A history with a former name: the next load copies its tables, and everything continues under the new name."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from scd_pipeline import queries
from scd_pipeline.declaration import Attribute, Dimension, Fact, Feed, Role, Snapshot, Source, history_of
from scd_pipeline.deliveries.delivery import Delivery
from scd_pipeline.delta.commits import PipelineCommit
from scd_pipeline.delta.table import Table
from scd_pipeline.delta.warehouse import Warehouse
from scd_pipeline.errors import DeclarationError, HighWaterMarkError
from scd_pipeline.load.run import LoadResult, load, plan
from scd_pipeline.operations.archive import archive
from scd_pipeline.operations.check import check_table
from scd_pipeline.operations.status import status
from scd_pipeline_tests.semantics.engine import records
from scd_pipeline_tests.semantics.specification import requirement
from scd_pipeline_tests.storage.two_tables import Killed, kill
from scd_pipeline_tests.text_tables import assert_same_rows

ATTRIBUTES = {"price": Attribute(2, type="int"), "title": Attribute(1, former_names=("name",))}
SOURCE = Source("rc_product", Snapshot(), bad_row_limit=0.5)
PRODUCT = history_of("rc_product", "product", ATTRIBUTES, sources=SOURCE, history_table=True)
ARTICLE = replace(PRODUCT, name="rc_article_hist", former_name="rc_product_hist")
SUFFIXES = ("_audit", "_history", "", "_changes")
"""The tables in the order in which they are copied."""
SALE, SALE_OF_ARTICLE = (
    Fact("fct_sale", {"sale": "int"}, "at", {"product": Role(each, "product")}, Source("till", feed=Feed()))
    for each in (PRODUCT, ARTICLE)
)
VERSIONS = """
| product | price | title  | version_started_at | version_ended_at |
| A       | 1     | Anise  | 2024-01-01         | 2024-02-01       |
| A       | 2     | Anise  | 2024-02-01         | NULL             |
| B       | 1     | Basil  | 2024-01-01         | NULL             |
| C       | 1     | Cumin  | 2024-01-01         | 2024-02-01       |
"""


def utc(month: int) -> datetime:
    """The first day of a month of 2024."""
    return datetime(2024, month, 1, tzinfo=timezone.utc)


def base(month: int, *rows: str, title: str = "title") -> Delivery:
    """The table on the first day of a month, with rows such as `A 1 Anise`; a bad one has another price."""
    frame = [dict(zip(("product", "price", title), row.split(), strict=True)) for row in rows]
    at = utc(month)
    return Delivery("rc_product", f"2024-{month:02}-01", at=at, frame=frame)


FIRST = base(1, "A 1 Anise", "B 1 Basil", "C 1 Cumin", "D dear Dill", title="name")
SECOND = base(2, "A 2 Anise", "B 1 Basil", "D dear Dill")
THIRD = base(3, "A 2 Anise", "B 3 Basil", "D dear Dill")
SALES = Delivery(
    "till",
    "1",
    channel="feed",
    at=utc(3),
    frame=[
        {"sale": "1", "at": "2024-01-15", "product": "A"},
        {"sale": "2", "at": "2024-02-15", "product": "A"},
        {"sale": "3", "at": "2024-02-15", "product": "C"},
    ],
)


def load_two_months(warehouse: Warehouse, dimension: Dimension) -> None:
    """Load `FIRST` and then `SECOND`, in which the name of a product is its title."""
    named = replace(dimension, attributes={"price": ATTRIBUTES["price"], "name": 1})
    load(warehouse, named, [FIRST], has_facts=True).raise_if_rejected()
    load(warehouse, dimension, [SECOND], has_facts=True).raise_if_rejected()


@pytest.fixture(scope="module")
def former_folder(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A warehouse with `VERSIONS` under the former name."""
    folder = tmp_path_factory.mktemp("former")
    load_two_months(Warehouse(spark, folder), PRODUCT)
    return folder


@pytest.fixture
def former(spark: SparkSession, former_folder: Path, tmp_path: Path) -> Warehouse:
    """A copy of `former_folder`."""
    shutil.copytree(former_folder, tmp_path / "warehouse")
    return Warehouse(spark, tmp_path / "warehouse")


@pytest.fixture
def former_with_sales(former: Warehouse) -> Warehouse:
    """The same with sales."""
    load(former, SALE, [SALES])
    return former


def contents(warehouse: Warehouse, dimension: Dimension) -> Mapping[str, Any]:
    """The rows of each table of a dimension, in any order, and what else Delta has of it."""
    return {name.removeprefix(dimension.name): table(warehouse, name, dimension) for name in dimension.table_names}


def table(warehouse: Warehouse, name: str, dimension: Dimension) -> Any:
    opened = warehouse.table(name)
    rows, details = opened.read(), opened.details()
    properties = {k: v for k, v in details["properties"].items() if not k.startswith("delta.columnMapping.")}
    columns = [(f.name, f.dataType, f.nullable, f.metadata.get("comment")) for f in rows.schema.fields]
    description = details["description"].replace(dimension.name, "") if details["description"] else None
    return sorted(map(repr, records(rows))), columns, properties, description


def table_versions(warehouse: Warehouse) -> dict[str, int]:
    return {name: warehouse.table(name).newest_version() for name in warehouse.tables()}


@contextmanager
def killed_before_writing(name: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Kill the load in the block before it writes to a table."""

    def killed(write: Callable[..., PipelineCommit]) -> Callable[..., PipelineCommit]:
        def call(table: Table, *arguments: Any, **options: Any) -> PipelineCommit:
            if table.name == name:
                kill()
            return write(table, *arguments, **options)

        return call

    with monkeypatch.context() as patched:
        for method in ("append", "replace", "merge"):
            patched.setattr(Table, method, killed(getattr(Table, method)))
        with pytest.raises(Killed):
            yield


def load_all(warehouse: Warehouse) -> LoadResult:
    return load(warehouse, ARTICLE, [FIRST, SECOND], has_facts=True)


@pytest.mark.slow
@requirement("H24")
def test_all_tables_are_copied_and_no_delivery_is_loaded_again(former: Warehouse) -> None:
    """The former tables stay as they are."""
    before, versions = contents(former, PRODUCT), table_versions(former)
    result = load_all(former)
    assert [each.outcome for each in result.results] == ["unchanged", "unchanged"]
    assert result.row_counts == {}
    assert contents(former, ARTICLE) == before
    assert {name: version for name, version in table_versions(former).items() if name in versions} == versions
    assert_same_rows(VERSIONS, records(queries.history(former, ARTICLE)))
    assert [row["key"] for row in records(queries.quarantine(former, ARTICLE))] == ["product=D", "product=D"]


@requirement("H24")
@pytest.mark.slow(40)
def test_the_former_name_is_not_needed_after_the_copies(former: Warehouse) -> None:
    """A later load continues from the copies, and the audit has the time of each change."""
    load_all(former)
    renamed = replace(ARTICLE, former_name="")
    load(former, renamed, [FIRST, SECOND, THIRD], has_facts=True).raise_if_rejected()
    assert not any(former.table(name).last_commit().lacks_creation for name in renamed.table_names)
    assert_same_rows(
        """
        | product | price | version_started_at | version_ended_at | version |
        | A       | 1     | 2024-01-01         | 2024-02-01       | 1       |
        | A       | 2     | 2024-02-01         | NULL             | 2       |
        | B       | 1     | 2024-01-01         | 2024-03-01       | 1       |
        | B       | 3     | 2024-03-01         | NULL             | 2       |
        | C       | 1     | 2024-01-01         | 2024-02-01       | 1       |
        """,
        records(queries.history(former, renamed)),
    )
    recorded = {row["source_batch_id"]: row["recorded_at"] for row in records(queries.audit(former, renamed))}
    second = recorded["rc_product/snapshot/2024-02-01"]
    known_then = records(queries.as_of(former, renamed, utc(4), known_at=second))
    assert {row["product"]: row["price"] for row in known_then} == {"A": 2, "B": 1}
    assert [str(each) for each in check_table(former, renamed) if not each.passed] == []
    (state,) = status(former, [renamed], now=utc(4)).tables
    assert (state.commits, state.lag, state.audit_lag, state.damage) == (3, 0, 0, ())


@requirement("H24")
@pytest.mark.slow
def test_a_plan_shows_the_copies_and_writes_nothing(former_with_sales: Warehouse) -> None:
    former = former_with_sales
    versions = table_versions(former)
    planned = plan(former, ARTICLE, [FIRST, SECOND, THIRD])
    assert planned.explain().splitlines()[:5] == [
        "Plan for rc_article_hist",
        *[f"  copy rc_product_hist{suffix} to rc_article_hist{suffix}" for suffix in SUFFIXES],
    ]
    assert planned.explain().endswith("rows of rc_article_hist: 1 to open, 1 to close")
    assert plan(former, SALE_OF_ARTICLE, dimensions={ARTICLE.name: planned}).row_counts == {}
    assert table_versions(former) == versions


@requirement("H24")
@pytest.mark.slow
def test_facts_keep_their_keys_under_the_new_name(former_with_sales: Warehouse) -> None:
    """Even if the fact is loaded before the dimension."""
    former = former_with_sales
    keys = records(former.table(SALE.name).read())
    assert load(former, SALE_OF_ARTICLE, [SALES]).row_counts == {}
    assert records(former.table(SALE.name).read()) == keys
    assert contents(former, ARTICLE) == contents(former, PRODUCT)
    assert [str(each) for each in check_table(former, SALE_OF_ARTICLE) if not each.passed] == []


@requirement("H24")
@pytest.mark.slow(30)
@pytest.mark.parametrize("suffix", SUFFIXES[1:])
def test_the_next_load_completes_the_copies_of_a_killed_one(
    former: Warehouse, monkeypatch: pytest.MonkeyPatch, suffix: str
) -> None:
    with killed_before_writing(ARTICLE.name + suffix, monkeypatch):
        load_all(former)
    assert load_all(former).row_counts == {}
    assert contents(former, ARTICLE) == contents(former, PRODUCT)


@pytest.mark.slow(30)
def test_a_load_under_the_former_name_that_was_killed_is_completed_under_the_new_one(
    former: Warehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its history table has a commit that the dimension does not record, and that the copy omits."""
    with killed_before_writing(PRODUCT.name, monkeypatch):
        load(former, PRODUCT, [THIRD])
    assert load(former, ARTICLE, [THIRD]).row_counts == {"open": 1, "close": 1}
    load(former, PRODUCT, [THIRD])
    for each in ("", "_history"):
        rows = [records(former.table(name + each).read().drop("loaded_at")) for name in (ARTICLE.name, PRODUCT.name)]
        assert sorted(map(repr, rows[0])) == sorted(map(repr, rows[1]))
    assert [str(each) for each in check_table(former, ARTICLE) if not each.passed] == []


@pytest.mark.slow(30)
def test_a_copy_of_an_earlier_state_is_reported_and_copied_again_when_it_is_dropped(
    former: Warehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    with killed_before_writing(ARTICLE.name + "_history", monkeypatch):
        load_all(former)
    load(former, PRODUCT, [THIRD])
    with pytest.raises(HighWaterMarkError) as caught:
        plan(former, ARTICLE)
    assert (caught.value.code, caught.value.location) == ("NOT_A_COPY", "table rc_article_hist_audit")
    assert caught.value.details == {"former": "rc_product_hist_audit", "number": 3}
    shutil.rmtree(str(former.table("rc_article_hist_audit").path))
    load_all(former)
    assert contents(former, ARTICLE) == contents(former, PRODUCT)


@pytest.mark.slow
def test_a_renamed_history_that_is_dropped_is_rebuilt_and_not_copied(former: Warehouse) -> None:
    load_all(former)
    shutil.rmtree(str(former.table(ARTICLE.name).path))
    planned = plan(former, ARTICLE)
    assert (planned.copies, planned.row_counts["open"]) == ((), 4)


@pytest.mark.slow
def test_a_surrogate_key_with_another_name_is_rejected_before_anything_is_copied(former: Warehouse) -> None:
    """A column does not get another name with the table."""
    versions = table_versions(former)
    with pytest.raises(DeclarationError) as caught:
        load(former, replace(ARTICLE, surrogate_key="rc_article_hist_key"))
    assert [(error.code, error.field) for error in caught.value.errors] == [("TABLE_DIFFERS", "surrogate_key")]
    assert table_versions(former) == versions


@pytest.mark.slow(40)
def test_an_archive_is_copied_too(spark: SparkSession, warehouse: Path) -> None:
    opened, whole = Warehouse(spark, warehouse), replace(PRODUCT, history_table=False, archive_after_years=1)
    load_two_months(opened, whole)
    assert archive(opened, whole, closed_before=utc(3), by="ann", reason="age").moved == 2
    renamed = replace(whole, name=ARTICLE.name, former_name=PRODUCT.name)
    assert load(opened, renamed).row_counts == {}
    assert contents(opened, renamed) == contents(opened, whole)
    assert_same_rows(VERSIONS, records(queries.history(opened, renamed)))
