"""The columns that an SQL expression names, which are those without which Spark does not resolve it (S20, S30)."""

from __future__ import annotations

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from scd_pipeline.deliveries.named_columns import named_columns
from scd_pipeline.frames import union_all

_NAMES = "date timestamp string day year end when then interval array x y op d k ts both first unit row null 2024_n a.b"
_STRUCT = "struct<name string, `from` string, `array` int, `end` string, x string>"
_TYPES = {
    **dict.fromkeys(_NAMES.split(" "), "string"),
    "data": _STRUCT,
    "items": f"array<{_STRUCT}>",
    "m": "map<string, string>",
    "n": "int",
    "at": "timestamp",
}
EXPRESSIONS = r"""
cast(ts as date) -> ts
CAST(x AS Timestamp) > timestamp '2024-01-01' -> x
try_cast(n as decimal(10, 2)) -> n
x::date -> x
ts::timestamp = date::timestamp -> ts date
cast(null as array<struct<x: date, y: decimal(9, 2)>>)[0].x = d -> d
null::map<string, array<date>>['x'] is null or y = '1' -> y
date '2024-01-01' = cast(date as date) -> date
concat(string, "date", 'op', 'it''s x', 'it\'s y', "a ""d"" b") -> string
concat(r'\', op, R"x") -> op
`null` is null or `a.b` = 'x.y' or `op` = '`d`' -> null a.b op
case when op = 'D' then true else false end -> op
case op when x then y when 'd' then k end -> op x y k
case `when` when 'x' then `then` end = `end` -> when then end
not case when not x = 'd' then 1 end = 1 -> x
upper(date (x)) -> x
left(x, 1) || right(`d`, 2) -> x d
system.builtin.upper(x) -> x
data.name -> data
data.from = data.x and data.end is not null -> data
data.array < n and x > y -> data n x y
data['x'] = m['d'] and m[op] = m.k -> data m op
transform(items, x -> x.name) -> items
transform(items, (x, y) -> concat(x.name, y, op)) -> items op
concat_ws(x, transform(items, x -> x.end), x) -> x items
filter(items, d -> exists(items, x -> x.name = d.name)) -> items
aggregate(items, '', (k, y) -> k || y.name || x, k -> k || d) -> items x d
struct(x as date, y day, date as op).day = d -> x y date d
struct(x y, op as `d`) -> x op
trim(both from x) = trim(leading y from k) -> x y k
trim(both) = trim(trailing 'x' from op) -> both op
substring(x from 1 for n) = overlay(y placing 'a' from 2) -> x n y
position(x in y) = 1 -> x y
extract(year from at) = year -> at year
dateadd(day, n, at) = at or timestampdiff(month, at, at) = 1 -> n at
date_add(date, n) = date_add(at, day) -> date n at day
at + interval 1 day - interval '1-2' year to month -> at
at - interval - 2 hours 3 minutes > timestamp_ntz '2024-01-01' -> at
interval = 'x' -> interval
x is distinct from y and x is not null or d is not true -> x y d
x not in (y, 'd') and x in (op) and n between day and year -> x y op n day year
x not like 'a!%' escape '!' and x rlike y and x ilike any ('d', 'op') -> x y
n div n + -n % ~n << 1 = 1.5e3 - 2L * .5 -> n
mask(x, lowerChar => 'd', upperChar => 'y') -> x
array = x or array(d)[0] = k -> array x d k
x -- y and op \n = d /* and k */ -> x d
X = Op -> x op
2024_n = 1 -> 2024_n
x collate utf8_lcase = y -> x y
row_number() over (partition by x, y order by op desc nulls last) = 1 -> x y op
sum(n) over (order by x, y asc rows between unbounded preceding and current row) -> n x y
max(d) filter (where op = 'x') over (partition by k) -> d op k
first(x) ignore nulls over (order by y) -> x y
parse_json(x):op.date::date = k -> x k
current_date() > at -> at
"""


def _cases() -> list[tuple[str, list[str]]]:
    pairs = [line.rpartition(" -> ") for line in EXPRESSIONS.strip().splitlines()]
    return [(text.replace(r"\n", "\n"), names.split()) for text, _, names in pairs]


def _select(spark: SparkSession, text: str, names: list[str]) -> DataFrame:
    row = T.StructType.fromDDL(", ".join(f"`{name}` {_TYPES[name]}" for name in names) or "`_` int")
    return spark.createDataFrame([], row).select(F.expr(text).isNull().alias("v"))


@pytest.mark.rule("S20", "S30")
def test_spark_resolves_each_expression_with_the_columns_that_it_names(spark: SparkSession) -> None:
    assert [(text, sorted(named_columns(text))) for text, _ in _cases()] == [
        (t, sorted(names)) for t, names in _cases()
    ]
    assert union_all([_select(spark, text, names) for text, names in _cases()]).schema


@pytest.mark.slow
@pytest.mark.rule("S20", "S30")
def test_spark_resolves_no_expression_without_a_column_that_it_names(spark: SparkSession) -> None:
    """Each attempt is a request to the server."""
    for text, names in _cases():
        for name in names:
            with pytest.raises(AnalysisException, match=r"UNRESOLVED_(COLUMN|MAP_KEY)"):
                assert not _select(spark, text, [each for each in names if each != name]).schema, (text, name)


@pytest.mark.rule("S30")
def test_a_subquery_may_name_each_of_its_names() -> None:
    """Its names may be those of columns of its own tables."""
    assert named_columns("x = 1 and exists(select d from range(3) where id = `op`)") >= {"x", "d", "id", "op"}
