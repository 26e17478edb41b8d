"""The relative paths of a query begin at the current folder, and nothing else of the query changes.

In the queries of this file a path begins with `here/` where that is to become the current folder.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from scd_pipeline.cli.relative_paths import with_absolute_paths

RELATIONS = r"""
SELECT * FROM csv.`here/a.csv`
SELECT * FROM Delta.`here/../w/dim_x` VERSION AS OF 1
SELECT * FROM csv.`/a.csv`, parquet.`s3a://b/c`, orc.`here/a b`
select * from json.`here/a` x, xml.`here/b` AS y JOIN text.`here/c` ON f(x.json, json.`a`) = 1, avro.`here/d` WHERE 1=1
SELECT * FROM (csv.`here/a` JOIN csv.`here/b`) LEFT JOIN (SELECT json.`a` FROM csv . `here/c` GROUP BY a, json.`d`) z
WITH x AS (FROM csv.`here/a` SELECT b, json.`b`), y AS (TABLE csv.`here/c`) FROM csv.`here/d` |> SELECT a, json.`x`
SELECT 1 /* it's /* nested */ FROM csv.`a` */ FROM /* here */ csv.`here/a` -- FROM csv.`b`\nJOIN csv.`here/c`
SELECT * FROM `csv`.`here/a` WHERE a IN (SELECT b FROM csv.`here/b`) UNION SELECT c, json.`d` FROM csv.`here/e`
DESCRIBE DETAIL delta.`here/dim_x`
DESCRIBE HISTORY delta.`here/dim_x`
DESC TABLE EXTENDED delta.`here/dim_x`
SELECT * FROM range(1, 2), csv.`here/a` TABLESAMPLE (5 ROWS), LATERAL explode(json.`b`), csv.`here/c`
"""
OTHERS = r"""
SELECT d.`a` FROM d
select s.json.`field` from t s
select text.`my col` from v as text
SELECT a, json.`b` FROM t AS json ORDER BY json.`c`, json.`d` DESC, json.`e`
SELECT 'FROM csv.`x`', "it's FROM csv.`x`", r'\', ' FROM csv.`y`', 'it\\'s FROM csv.`z`' FROM t
SELECT extract(YEAR FROM json.`x`), trim(BOTH 'a' FROM json.`y`), a IS NOT DISTINCT FROM json.`z`, json.`u` FROM json
SELECT `FROM`, t.from, json.`a`, 1 AS from, json.`b`, coalesce(json.`c`, json.`d`) FROM t AS json
SELECT a FROM t AS json WHERE json.`b` IN (json.`c`, json.`d`) GROUP BY a, json.`e` HAVING max(json.`f`) > 1
SELECT * FROM spark.csv.`x`, csv.`a`.`b`
"""


@pytest.mark.parametrize("query", [*RELATIONS.strip().splitlines(), *OTHERS.strip().splitlines()])
def test_only_the_paths_of_relations_are_made_absolute(
    query: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    query = query.replace("\\n", "\n").replace("\\\\", "\\")
    assert with_absolute_paths(query.replace("`here/", "`")) == query.replace("`here", f"`{Path.cwd()}")
