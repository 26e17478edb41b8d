"""Check that a text of SQL only reads."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from scd_pipeline.errors import UsageError
from scd_pipeline.spark.settings import temporary_settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

AS_QUERY = "DESCRIBE QUERY\n"
"""The line before a text whose grammar must be that of a query."""

_SHOW = re.compile(r"\s*(SHOW|DESCRIBE|DESC)\b", re.IGNORECASE)
"""No statement of Spark or Delta that begins with one of these words writes anything."""
_EXPLAIN = re.compile(r"\s*EXPLAIN\b(\s+(EXTENDED|CODEGEN|COST|FORMATTED)\b)?", re.IGNORECASE)
_PLANNED_ONLY = {
    # This rule computes rows of a query while it plans the query.
    "spark.sql.optimizer.excludedRules": "org.apache.spark.sql.catalyst.optimizer.ConvertToLocalRelation",
    "spark.sql.debug.maxToStringFields": "1000000",
}
_OUTSIDE_SQL = re.compile(r"\b((try_)?reflect|java_method)\(|\bScriptTransformation\b")
"""How Spark's plans show calls of Java methods and of programs."""


def require_query(spark: SparkSession, text: str) -> None:
    """Check that the text only reads, without running it.

    Spark itself parses it where its grammar allows a query and nothing else, to the end of the text.

    Raises:
        UsageError: The query calls methods of Java or a program.
        PySparkException: Spark does not parse the text as a query, or cannot resolve its names.
    """
    if _SHOW.match(text):
        return
    query = _EXPLAIN.sub("", text, count=1) if _EXPLAIN.match(text) else text
    spark.sql(AS_QUERY + query).collect()
    with temporary_settings(spark, _PLANNED_ONLY):
        plan = str(spark.sql(f"EXPLAIN EXTENDED {query}").collect()[0][0])
    if _OUTSIDE_SQL.search(plan):
        raise UsageError("QUERY_CALLS_PROGRAM", "query")
