"""`scd sql` runs queries only: Spark's parser decides, not the first word."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from scd_pipeline.cli import app as cli
from scd_pipeline.cli.read_only import require_query
from scd_pipeline.errors import UsageError

QUERIES = r"""
SELECT * FROM shop
select k from shop order by k limit 1;
-- DROP TABLE shop\nSELECT 'DELETE FROM shop; it''s text' AS a, 1 AS a -- the end
/* DELETE */ WITH x AS (SELECT k FROM shop) SELECT * FROM x WHERE k IN (SELECT k FROM shop)
(SELECT 1) UNION ALL (SELECT 2)
FROM shop SELECT k
FROM shop |> WHERE k = 1
TABLE shop
VALUES (1), (2)
SELECT transform(array(1, 2), x -> x + 1)
SHOW TABLES
DESCRIBE TABLE shop
DESC EXTENDED shop
EXPLAIN SELECT * FROM shop
explain formatted SELECT * FROM shop
"""
STATEMENTS = r"""
DELETE FROM shop
DROP VIEW shop
DROP TABLE IF EXISTS {table}
INSERT INTO {table} VALUES (2)
UPDATE {table} SET k = 2
MERGE INTO {table} t USING shop s ON t.k = s.k WHEN MATCHED THEN DELETE
TRUNCATE TABLE {table}
WITH x AS (SELECT 2 AS k) INSERT INTO {table} SELECT * FROM x
WITH x AS (SELECT 2 AS k) DELETE FROM {table}
FROM shop INSERT INTO {table} SELECT k
FROM shop INSERT INTO {table} SELECT k INSERT OVERWRITE {table} SELECT k
/* SELECT */ DELETE FROM {table}
-- SELECT\nDELETE FROM {table}
SELECT 1; DELETE FROM {table}
SELECT 1) ; DELETE FROM {table}
SELECT 1) SELECT 2 --
SHOWDOWN
BEGIN DELETE FROM {table}; END
EXECUTE IMMEDIATE 'DELETE FROM {table}'
EXPLAIN DELETE FROM {table}
EXPLAIN EXTENDED INSERT INTO {table} VALUES (2)
CREATE OR REPLACE TEMPORARY VIEW shop AS SELECT 1
CREATE TABLE t USING parquet AS SELECT 1
ALTER TABLE {table} SET TBLPROPERTIES ('a' = 'b')
CACHE TABLE shop
CLEAR CACHE
RESET
SET a = b
SET TIME ZONE 'Asia/Tokyo'
USE other
ADD JAR 'x.jar'
CALL system.x()
DECLARE VARIABLE x INT
OPTIMIZE {table}
VACUUM {table}
RESTORE TABLE {table} TO VERSION AS OF 0
REORG TABLE {table} APPLY (PURGE)
COMMENT ON TABLE {table} IS 'x'
ANALYZE TABLE {table} COMPUTE STATISTICS
REFRESH TABLE shop
"""
OUTSIDE_SQL = r"""
SELECT reflect('java.lang.System', 'setProperty', 'scd_test', 'x')
SELECT java_method('java.lang.System', 'setProperty', 'scd_test', 'x') FROM VALUES (1)
SELECT * FROM (SELECT try_reflect('java.lang.System', 'setProperty', 'scd_test', 'x') FROM VALUES (1))
SELECT IDENTIFIER('ref' || 'lect')('java.lang.System', 'setProperty', 'scd_test', 'x') FROM shop
EXPLAIN SELECT reflect('java.lang.System', 'setProperty', 'scd_test', 'x') FROM VALUES (1)
SELECT TRANSFORM (k) USING 'touch here' AS (x STRING) FROM shop
WITH x AS (SELECT TRANSFORM (k) USING /* */ 'touch here' FROM shop) SELECT * FROM x
SELECT {columns}, reflect('java.lang.System', 'setProperty', 'scd_test', 'x')
"""


def lines(text: str, **names: str) -> list[str]:
    return [line.replace("\\n", "\n").format(**names) for line in text.strip().splitlines()]


@pytest.fixture
def shop(spark: SparkSession, warehouse: Path) -> str:
    """A table of one row; `shop` is a view of it."""
    path = str(warehouse / "dim_shop")
    spark.sql("SELECT 1 AS k").write.format("delta").save(path)
    spark.read.format("delta").load(path).createOrReplaceTempView("shop")
    return path


def test_only_queries_are_allowed(spark: SparkSession, shop: str) -> None:
    table = f"delta.`{shop}`"
    for query in lines(QUERIES):
        require_query(spark, query)
    for statement in lines(STATEMENTS, table=table):
        with pytest.raises(PySparkException):
            require_query(spark, statement)
    for query in lines(OUTSIDE_SQL, columns=", ".join(f"{n} AS c{n}" for n in range(60))):
        with pytest.raises(UsageError, match="QUERY_CALLS_PROGRAM"):
            require_query(spark, query)
    assert len(spark.sql(f"DESCRIBE HISTORY {table}").collect()) == 1, "nothing was written"
    assert spark.sql("SELECT * FROM shop").collect() == [(1,)]
    seen = spark.sql("SELECT reflect('java.lang.System', 'getProperty', 'scd_test')").collect()[0][0]
    assert seen in (None, "null", ""), "nothing was run"


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("DELETE FROM dim_shop", "at or near 'FROM'"),
        ("WITH x AS (SELECT 2 AS k)\nINSERT INTO dim_shop SELECT * FROM x", "(line 2, pos 0)"),
    ],
)
def test_a_statement_that_writes_exits_with_2(
    shop: str,
    query: str,
    message: str,
    remote: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("SCD_WAREHOUSE", str(Path(shop).parent))
    monkeypatch.setenv("SCD_REMOTE", remote)
    assert cli.main(["sql", query]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("error: [QUERY_EXPECTED] query: ")
    assert message in err
    assert "DESCRIBE QUERY" not in err
    assert cli.main(["sql", "SELECT * FROM dim_shop", "--format", "csv"]) == 0
    assert capsys.readouterr().out == "k\n1\n"
