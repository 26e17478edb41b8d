"""Tables and queries of a real PostgreSQL, as snapshots and by a cursor."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from scd_pipeline import Attribute, BatchRejected, Dimension, Feed, Jdbc, Pipeline, SetupError, Snapshot, Source
from scd_pipeline_tests import postgresql
from scd_pipeline_tests.postgresql import PASSWORD, USER, Database
from scd_pipeline_tests.semantics.specification import requirement
from scd_pipeline_tests.text_tables import assert_same_rows

TYPES = {
    "flag": "boolean", "small": "smallint", "big": "bigint", "price": "decimal(12,2)", "exact": "decimal(38,20)",
    "ratio": "double", "day": "date", "at": "timestamp", "local": "timestamp", "name": "string",
    "tags": "array<string>", "document": "string", "uid": "string", "content": "binary",
}  # fmt: skip
VALUES = """
CREATE TABLE item (id int, flag boolean, small smallint, big bigint, price numeric(12,2), exact numeric, ratio float8,
    day date, at timestamptz, local timestamp, name text, tags text[], document jsonb, uid uuid, content bytea);
INSERT INTO item (id) VALUES (1);
INSERT INTO item VALUES (2, true, -7, 9007199254740993, 1.50, 123456789012345678.12345678901234567890, 0.1,
    '0001-01-02', '2024-03-31T02:30:00.123456+02', '2024-03-31 02:30:00', 'é''|', '{a,NULL,"b,c"}',
    '{"a": 1.50}', '00000000-0000-0000-0000-00000000000a', '\\x00ff');
CREATE TABLE event (id int, name text, created_at timestamptz);
"""


@pytest.fixture(scope="module")
def database() -> Iterator[Database]:
    """A server with a table of each type, and one of events."""
    programs = postgresql.programs()
    if programs is None or postgresql.problem():
        pytest.skip(postgresql.report())
    with postgresql.server(programs) as database:
        database.run(VALUES)
        yield database


@pytest.fixture
def pipeline(spark: SparkSession, warehouse: Path, monkeypatch: pytest.MonkeyPatch) -> Pipeline:
    monkeypatch.setenv("DB_PASSWORD", PASSWORD)
    return Pipeline(warehouse, spark=spark)


def source(database: Database, **relation: Any) -> Jdbc:
    """Return a table or a query of the database."""
    return Jdbc(url=database.url, user=USER, password={"env": "DB_PASSWORD"}, **relation)


def event(database: Database) -> Dimension:
    feed = Feed(jdbc=source(database, table="event"), cursor="created_at", start="2024-01-01")
    return Dimension("dim_event", "id", {"name": 2}, Source("shop", feed=feed))


@pytest.mark.rule("S26", "S39")
@pytest.mark.slow(6)
def test_each_type_of_postgresql_arrives_as_the_database_has_it(database: Database, pipeline: Pipeline) -> None:
    snapshot = Snapshot(jdbc=source(database, table="item"))
    attributes = {name: Attribute(2, type=data_type) for name, data_type in TYPES.items()}
    item = Dimension("dim_item", {"id": "int"}, attributes, Source("shop", snapshot=snapshot, timezone="Europe/Vienna"))
    result = pipeline.load(item, at="2024-06-01")
    assert [(batch.delivery, batch.rows, batch.bad_rows) for batch in result.results] == [
        ("2024-06-01T00:00:00.000000", 2, 0)
    ]
    columns = ["id", *(name for name in TYPES if name not in ("content", "tags")), "hex(content) AS content"]
    rows = pipeline.current(item).selectExpr(*columns, "to_json(array(tags)) AS tags").collect()
    assert_same_rows(
        """
        | id | flag | small | big              | price | exact                                   | ratio |
        | 1  |      |       |                  |       |                                         |       |
        | 2  | true | -7    | 9007199254740993 | 1.50  | 123456789012345678.12345678901234567890 | 0.1   |
        """,
        [row.asDict() for row in rows],
    )
    assert_same_rows(
        """
        | id | day        | at                         | local               | name   | content | tags                 |
        | 1  |            |                            |                     |        |         | '[null]'             |
        | 2  | 0001-01-02 | 2024-03-31 00:30:00.123456 | 2024-03-31 01:30:00 | "é'|"  | '00FF'  | [["a",null,"b,c"]]   |
        """,
        [row.asDict() for row in rows],
    )
    assert [(row["document"], row["uid"]) for row in rows if row["id"] == 2] == [
        ('{"a": 1.50}', "00000000-0000-0000-0000-00000000000a")
    ]


@requirement("D12")
@pytest.mark.slow(40)
@pytest.mark.rule("S39")
def test_a_table_of_postgresql_is_read_by_a_cursor(database: Database, pipeline: Pipeline) -> None:
    """The zone of the server is neither UTC nor that of the rows."""
    event_of_shop = event(database)
    database.run(
        """
        INSERT INTO event VALUES (1, 'a', '2023-12-31T23:59:59Z'), (2, 'b', '2024-01-02T00:00:00Z');
        INSERT INTO event VALUES (3, 'c', '2024-01-03T00:30:00+01')
        """
    )
    pipeline.load(event_of_shop)
    database.run(
        """
        INSERT INTO event VALUES (4, 'd', '2024-01-02T23:30:00Z'), (5, 'e', '2024-01-02T00:00:01Z');
        INSERT INTO event VALUES (2, 'f', '2024-01-03T00:00:00.000001Z')
        """
    )
    pipeline.load(event_of_shop)
    assert sorted((batch["delivery"], batch["rows"]) for batch in pipeline.batches(event_of_shop).collect()) == [
        ("1", 2),
        ("2", 2),
    ]
    rows = pipeline.history(event_of_shop).selectExpr("int(id) AS id", "name", "effective_from").collect()
    assert_same_rows(
        """
        | id | name | effective_from             |
        | 2  | b    | 2024-01-02 00:00:00        |
        | 2  | f    | 2024-01-03 00:00:00.000001 |
        | 3  | c    | 2024-01-02 23:30:00        |
        | 4  | d    | 2024-01-02 23:30:00        |
        """,
        [row.asDict() for row in rows],
    )


@pytest.mark.slow(60)
def test_a_query_is_read_in_ranges_of_a_column(database: Database, pipeline: Pipeline) -> None:
    """Rows beyond the bounds, and without a value, are in a range too; a snapshot without a row deletes its entity."""
    database.run("CREATE TABLE part AS SELECT id, nullif(id, 5) AS n FROM generate_series(1, 9) AS numbers(id)")
    ranges = {"column": "n", "lower": 3, "upper": 6, "number": 3}
    query = source(database, query="SELECT id, n FROM part", partitions=ranges)
    part = Dimension("dim_part", "id", {"n": 2}, Source("shop", snapshot=Snapshot(jdbc=query)))
    pipeline.load(part, at="2024-01-01")
    database.run("DELETE FROM part WHERE id = 9")
    pipeline.load(part, at="2024-01-02")
    assert sorted(row["id"] for row in pipeline.current(part).collect()) == [str(number) for number in range(1, 9)]


@pytest.mark.slow(40)
@pytest.mark.parametrize("problem", ["password", "table"])
def test_an_error_of_the_database_has_no_secret(
    database: Database, pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch, problem: str
) -> None:
    if problem == "password":
        monkeypatch.setenv("DB_PASSWORD", "hunter2")
    snapshot = Snapshot(jdbc=source(database, table="event" if problem == "password" else "missing"))
    missing = Dimension("dim_missing", "id", {"name": 2}, Source("shop", snapshot=snapshot))
    with pytest.raises(BatchRejected) as rejection:
        pipeline.load(missing, at="2024-01-01")
    assert rejection.value.code == "DATABASE_UNREADABLE"
    assert ("authentication failed" if problem == "password" else '"missing" does not exist') in str(rejection.value)
    for secret in ("hunter2", PASSWORD, database.url):
        assert secret not in str(rejection.value)


@pytest.mark.slow(40)
def test_the_password_is_stored_in_no_table(database: Database, pipeline: Pipeline) -> None:
    database.run("INSERT INTO event VALUES (9, 'i', '2024-02-01')")
    pipeline.load(event(database))
    files = [file.read_bytes() for file in Path(pipeline.warehouse.path).rglob("*") if file.is_file()]
    assert len(files) > 10
    assert not any(PASSWORD.encode() in content for content in files)


def test_a_variable_that_is_not_set_is_named(pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DB_PASSWORD")
    jdbc = Jdbc(url="jdbc:postgresql://localhost/shop", table="event", password={"env": "DB_PASSWORD"})
    table = Dimension("dim_event", "id", {"name": 2}, Source("shop", snapshot=Snapshot(jdbc=jdbc)))
    with pytest.raises(SetupError) as error:
        pipeline.load(table)
    location = "dim_event: sources.shop.snapshot.jdbc"
    assert (error.value.code, error.value.location) == ("VARIABLE_OF_SOURCE_MISSING", location)
    assert error.value.details == {"variable": "DB_PASSWORD", "option": "password"}
