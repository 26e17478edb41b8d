"""The evaluation of statements on Spark, compared with their evaluation one after the other in plain Python (S12)."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, TypeAlias

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyspark.sql import functions as F

from scd_pipeline.timed import candidates
from scd_pipeline.timed.evaluate import FROM, TO, all_rows, hits, last_rows
from scd_pipeline.timed.program import Program, applied, relevant
from scd_pipeline_tests.text_tables import parse, same_rows
from scd_pipeline_tests.timed.logs import parsed, typed

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Row: TypeAlias = dict[str, Any]
COLUMNS = {"a": "int", "b": "int", "first name": "string"}
DDL = "a int, b int, `first name` string"
BASE = """
| a    | b    | first name |
| 1    | 1    | Tom        |
| 2    | NULL | Jon        |
| 3    | 5    | NULL       |
| NULL | 2    | it's       |
| 2    | 4    | ''         |
| 5    | 0    | Zoë        |
| 0    | 1    | ë𝄞om       |
| 5    | 5    | 100%_on    |
"""


@dataclass(frozen=True)
class Expression:
    """The text of an expression, and its value for a row."""

    text: str
    value: Callable[[Row], Any]


@dataclass(frozen=True)
class Change:
    """A statement, as text and in plain Python; a DELETE has no assignments."""

    millis: int
    condition: Expression
    assignments: tuple[tuple[str, Expression], ...]

    @property
    def text(self) -> str:
        where = f"WHERE {self.condition.text}"
        values = ", ".join(f"`{name}` = {value.text}" for name, value in self.assignments)
        statement = f"UPDATE t SET {values} {where}" if self.assignments else f"DELETE FROM t {where}"
        return f"-- time={self.millis}\n{statement};"

    def apply(self, row: Row) -> Row | None:
        if self.condition.value(row) is not True:
            return row
        return {**row, **{name: each.value(row) for name, each in self.assignments}} if self.assignments else None


def combine(text: str, function: Callable[..., Any], *parts: Expression, strict: bool = True) -> Expression:
    """Return an expression of others, NULL if one of them is NULL."""

    def value(row: Row) -> Any:
        values = [part.value(row) for part in parts]
        return None if strict and None in values else function(*values)

    return Expression(text.format(*(part.text for part in parts)), value)


def either(left: bool | None, right: bool | None) -> bool | None:
    return True if True in (left, right) else None if None in (left, right) else False


def both(left: bool | None, right: bool | None) -> bool | None:
    return False if False in (left, right) else None if None in (left, right) else True


def constant(value: Any) -> Expression:
    text = "NULL" if value is None else repr(value) if isinstance(value, int) else "'" + value.replace("'", "''") + "'"
    return Expression(text, lambda row: value)


def column(name: str) -> Expression:
    return Expression(f"`{name}`", lambda row: row[name])


numbers = st.one_of(st.sampled_from([column("a"), column("b")]), st.sampled_from([None, 0, 1, 2, 5]).map(constant))
sums = st.one_of(
    numbers,
    st.builds(lambda x, y: combine("{} + {}", int.__add__, x, y), numbers, numbers),
    st.builds(
        lambda x, y: combine("coalesce({}, {})", lambda v, w: w if v is None else v, x, y, strict=False),
        numbers,
        numbers,
    ),
)
texts = st.one_of(
    st.just(column("first name")),
    st.sampled_from([None, "", "Tom", "it's", "T--x;", "Zoë", "ë𝄞", "5%"]).map(constant),
)


def like(pattern: str, escape: str = "\\") -> Callable[[str], bool]:
    """Return whether texts match a pattern of LIKE."""
    parts = re.findall(f"(?s){re.escape(escape)}(.)|(.)", pattern)
    wildcards = {"%": ".*", "_": "."}
    regex = "".join(re.escape(escaped) if escaped else wildcards.get(each, re.escape(each)) for escaped, each in parts)
    return lambda text: re.fullmatch(f"(?s){regex}", text) is not None


def likes(patterns: Sequence[str], escape: str = "\\") -> st.SearchStrategy[Expression]:
    """Return conditions with LIKE and NOT LIKE."""
    suffix = "" if escape == "\\" else f" ESCAPE '{escape}'"

    def condition(text: Expression, pattern: str, is_negated: bool) -> Expression:
        literal, matches = constant(pattern.replace("\\", "\\\\")).text, like(pattern, escape)
        operator = "NOT LIKE" if is_negated else "LIKE"
        return combine(f"{{}} {operator} {literal}{suffix}", lambda value: matches(value) != is_negated, text)

    return st.builds(condition, texts, st.sampled_from(patterns), st.booleans())


comparisons = st.one_of(
    st.builds(lambda x, y: combine("{} = {}", int.__eq__, x, y), sums, sums),
    st.builds(lambda x, y: combine("{} < {}", int.__lt__, x, y), sums, sums),
    st.builds(lambda x, y: combine("{} = {}", str.__eq__, x, y), texts, texts),
    st.builds(lambda x: combine("{} IS NULL", lambda v: v is None, x, strict=False), st.one_of(sums, texts)),
    st.builds(lambda x: combine("{} IN (1, 5)", lambda v: v in (1, 5), x), sums),
    st.builds(lambda x: combine("{} BETWEEN 1 AND 3", lambda v: 1 <= v <= 3, x), sums),
    st.builds(lambda x: combine("{} BETWEEN -1 AND 1.5", lambda v: -1 <= v <= 1.5, x), sums),
    st.builds(lambda x: combine("{} >= 2", lambda v: v >= 2, x), sums),
    st.builds(lambda x: combine("{} > 'S'", lambda v: v > "S", x), texts),
    likes(["T%", "Zoë%", "ë%", "%om", "%ë", "%𝄞om", "%o%", "%𝄞%", "_o_", "T%m", "%o_n", "%", "", "Tom"]),
    likes([r"%0\%%", r"%\_on", r"\%", r"%\\"]),
    likes(["%0!%%", "%!%!_on", "!%", "%!!"], escape="!"),
)
conditions = st.recursive(
    comparisons,
    lambda inner: st.one_of(
        st.builds(lambda x, y: combine("({} AND {})", both, x, y, strict=False), inner, inner),
        st.builds(lambda x, y: combine("({} OR {})", either, x, y, strict=False), inner, inner),
        st.builds(lambda x: combine("(NOT {})", lambda v: not v, x), inner),
    ),
    max_leaves=4,
)
assignments = st.one_of(
    st.just({}), st.fixed_dictionaries({}, optional={"a": sums, "b": sums, "first name": texts})
).map(lambda values: tuple(values.items()))
logs = st.lists(st.builds(Change, st.integers(0, 3), conditions, assignments), max_size=8)


def rows_at(changes: list[Change], millis: int, rows: list[Row]) -> list[Row]:
    """Return the rows after the statements up to a time, one statement after the other."""
    for change in sorted(changes, key=lambda each: each.millis):
        if change.millis <= millis:
            rows = [after for row in rows if (after := change.apply(row)) is not None]
    return rows


@settings(max_examples=20, deadline=None, suppress_health_check=list(HealthCheck))
@given(changes=logs, most=st.sampled_from([1, 10]))
def test_spark_evaluates_statements_as_plain_python_does(spark: SparkSession, changes: list[Change], most: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(candidates, "_MOST", most)
        compare_with_plain_python(spark, changes)


def compare_with_plain_python(spark: SparkSession, changes: list[Change]) -> None:
    base = spark.createDataFrame([tuple(row.values()) for row in parse(BASE)], DDL)
    statements = parsed("\n".join(change.text for change in changes), COLUMNS)
    program = Program(typed(COLUMNS), applied(statements, 2))
    assert same_rows(rows_at(changes, 2, parse(BASE)), collected(last_rows(base, program)), COLUMNS) == ""
    states = collected(all_rows(base, Program(typed(COLUMNS), statements)))
    for millis in (-1, 0, 1, 2, 3, 4):
        existing = [row for row in states if _millis(row[FROM], -9) <= millis < _millis(row[TO], 9)]
        assert same_rows(rows_at(changes, millis, parse(BASE)), existing, COLUMNS) == "", millis


def _millis(time: datetime | None, unlimited: int) -> float:
    return unlimited if time is None else (time - datetime(1970, 1, 1)) / timedelta(milliseconds=1)


def collected(rows: Any) -> list[Row]:
    return [row.asDict() for row in rows.collect()]


def test_each_statement_sees_the_result_of_those_before_it(spark: SparkSession) -> None:
    base = spark.createDataFrame([(2, 0), (3, 0)], "number int, age int")
    columns = {"number": "int", "age": "int"}
    log = """
    UPDATE t SET number = 12, age = number WHERE number = 2;
    DELETE FROM t WHERE number = 12 AND age = 2;
    UPDATE t SET age = age + 1;
    UPDATE t SET age = 99 WHERE NULL;
    """
    program = Program(typed(columns), parsed(log, columns))
    assert collected(last_rows(base, program)) == [{"number": 3, "age": 1}]
    assert hits(base, program) == {1: 1, 2: 1, 3: 1, 4: 0}


FAILING = """
| log                                                                                        | rows              |
| DELETE FROM t WHERE b = 0; UPDATE t SET a = 9 WHERE 10 / b = 2                             | 9 5 7             |
| DELETE FROM t WHERE b < 1; UPDATE t SET a = 9 WHERE 10 / b = 2                             | 9 5 7             |
| DELETE FROM t WHERE NOT b <> 0; UPDATE t SET a = 9 WHERE 10 / b = 2                        | 9 5 7             |
| UPDATE t SET c = '0' WHERE c = 'n/a'; UPDATE t SET a = 9 WHERE CAST(c AS int) > 5          | 1 0 0, 9 5 7      |
| UPDATE t SET a = 9 WHERE b <> 0 AND 10 / b = 2                                             | 1 0 n/a, 9 5 7    |
| DELETE FROM t WHERE c = 'n/a'; UPDATE t SET b = CAST(c AS int), c = b::string              | 2 7 5             |
| UPDATE t SET b = TRY_CAST(c AS int)                                                        | 1 None n/a, 2 7 7 |
"""
"""Conditions that would fail for the first row, `1 0 n/a`, if an earlier statement or condition did not exclude it."""


@pytest.mark.parametrize("case", parse(FAILING), ids=lambda case: case["log"])
def test_a_condition_is_not_evaluated_for_a_row_that_does_not_reach_it(
    spark: SparkSession, case: dict[str, Any]
) -> None:
    base = spark.createDataFrame([(1, 0, "n/a"), (2, 5, "7")], "a int, b int, c string")
    columns = {"a": "int", "b": "int", "c": "string"}
    program = Program(typed(columns), parsed(case["log"], columns))
    rows = sorted(" ".join(map(str, row)) for row in last_rows(base, program).collect())
    assert ", ".join(rows) == case["rows"]
    assert all_rows(base, program).where(F.isnull(TO)).count() == len(rows)


def test_statements_on_which_no_read_column_depends_are_left_out() -> None:
    log = """
    UPDATE doctors SET first_name = 'a' WHERE number = 1;
    UPDATE doctors SET last_name = first_name;
    UPDATE doctors SET extra_field = 'b', number = number + 1;
    DELETE FROM doctors WHERE extra_field = 'b';
    UPDATE doctors SET first_name = 'c' WHERE last_name = 'd';
    """
    statements = parsed(log)

    def positions(*read: str) -> list[int]:
        return [each.position for each in relevant(statements, read)]

    assert positions("extra_field") == positions() == [3, 4]
    assert positions("number") == [3, 4]
    assert positions("last_name") == [1, 2, 3, 4]
    assert positions("first_name") == [1, 2, 3, 4, 5]


CONDITIONS = """
| condition                       | may hit                                                                       |
| a = 1                           | `a` IN (1)                                                                    |
| a = -1 OR a = 2                 | ((`a` = (- 1)) OR (`a` = 2))                                                  |
| a IN (1, -2) AND b > 3          | `a` IN (1, (- 2))                                                             |
| a BETWEEN -5 AND 5.5            | (`a` >= (- 5) AND `a` <= 5.5)                                                 |
| b > a AND a < 5                 | (`a` <= 5)                                                                    |
| `first name` LIKE 'Tom%'        | (`first name` >= 'Tom' AND `first name` <= 'Ton')                             |
| `first name` LIKE '%Tom'        | substring(CAST(`first name` AS binary), -3) IN (X'546f6d')                    |
| `first name` LIKE '_!%é' ESCAPE '!' | substring(CAST(`first name` AS binary), -3) IN (X'25c3a9')                |
| `first name` LIKE 'Zoë%m'       | (`first name` >= 'Zoë' AND `first name` <= 'Zoì')                             |
| `first name` LIKE '%a_bc%'      | `first name` RLIKE '\\\\x{62}\\\\x{63}'                                       |
| `first name` NOT LIKE 'Tom%'    | (`first name` NOT LIKE 'Tom%' ESCAPE '\\\\')                                  |
| (b > a) AND (a < 5)             | (`a` <= 5)                                                                    |
"""
"""The condition on a row of the base that is tested for a statement."""


def test_a_statement_is_found_by_a_value_or_an_interval() -> None:
    def may_hit(condition: str) -> str:
        text = Program(typed(COLUMNS), parsed(f"DELETE FROM t WHERE {condition}", COLUMNS)).last_state()
        return text.removeprefix("if((CASE WHEN ").partition(" THEN TRUE")[0]

    rows = parse(CONDITIONS)
    assert {row["condition"]: may_hit(row["condition"]) for row in rows} == {
        row["condition"]: row["may hit"] for row in rows
    }


def test_intervals_are_compared_as_spark_compares_them() -> None:
    def branches(data_type: str, *bounds: str) -> int:
        log = "".join(f"UPDATE t SET b = 1 WHERE x BETWEEN {bound} AND {bound};" for bound in bounds)
        columns = {"x": data_type, "b": "int"}
        return Program(typed(columns), parsed(log, columns)).last_state().partition("aggregate")[0].count("if(`x` <")

    equal_as_doubles = ("0.1", "0.10000000000000000001")
    assert branches("decimal(38,20)", *equal_as_doubles) == 1
    assert branches("double", *equal_as_doubles) == 0
    assert branches("double", "0.1", "0.2") == 1
    assert branches("float", "1", "2") == branches("int", "1e0", "2e0") == 0


def test_overlapping_intervals_are_one_and_the_others_are_searched() -> None:
    log = "".join(f"DELETE FROM t WHERE a BETWEEN {low} AND {low + 2};" for low in (9, 1, 2, 20, 3))
    text = Program(typed(COLUMNS), parsed(log, COLUMNS)).last_state()
    search = "if(`a` < 9, (`a` >= 1 AND `a` <= 5), if(`a` < 20, (`a` >= 9 AND `a` <= 11), (`a` >= 20 AND `a` <= 22)))"
    assert f"WHEN {search} THEN TRUE" in text


CANDIDATES = """
| log                                                                               | listed with the first |
| UPDATE t SET b = 1 WHERE a = 1; UPDATE t SET b = 1 WHERE a = 2                    | 1                     |
| UPDATE t SET a = 2 WHERE a = 1; UPDATE t SET b = 1 WHERE a = 2                    | 1, 2                  |
| UPDATE t SET a = 2 WHERE a = 1; UPDATE t SET b = 1 WHERE a BETWEEN 3 AND 9        | 1                     |
| UPDATE t SET a = 2 WHERE a = 1; UPDATE t SET a = 5 WHERE a = 2; DELETE FROM t WHERE a > 4 AND a <= 5 | 1, 2, 3 |
| UPDATE t SET a = NULL WHERE a = 1; UPDATE t SET b = 1 WHERE a > 3                 | 1                     |
| UPDATE t SET a = a + 1 WHERE a = 1; UPDATE t SET b = 1 WHERE a = 7                | 1, 2                  |
| UPDATE t SET c = 'ab' WHERE a = 1; DELETE FROM t WHERE c LIKE '%b'                | 1, 2                  |
| UPDATE t SET c = 'ab' WHERE a = 1; DELETE FROM t WHERE c LIKE '%ö'                | 1                     |
| UPDATE t SET c = 'ab' WHERE a = 1; DELETE FROM t WHERE c LIKE 'a%' AND a IN (3)   | 1                     |
"""
"""The statements that are candidates for a row with `a = 1`."""


@pytest.mark.parametrize("case", parse(CANDIDATES), ids=lambda case: case["log"])
def test_a_candidate_brings_the_statements_that_depend_on_it(case: dict[str, Any]) -> None:
    columns = {"a": "int", "b": "int", "c": "string"}
    text = candidates.Candidates(parsed(case["log"], columns), "n").numbers()
    assert f"if(`a` >= 1 AND `a` <= 1, array({case['listed with the first']}), NULL)" in text


def test_a_candidate_on_which_many_depend_brings_all_later_ones() -> None:
    log = "".join(f"UPDATE t SET a = {i + 1} WHERE a = {i};" for i in range(20))
    text = candidates.Candidates(parsed(log, COLUMNS), "n").numbers()
    assert "if(`a` >= 1 AND `a` <= 1, concat(array(2), sequence(2, n)), NULL)" in text
    assert "if(`a` >= 18 AND `a` <= 18, array(19, 20), NULL)" in text


@pytest.mark.parametrize("number", [1_000, pytest.param(10_000, marks=pytest.mark.slow(10))])
def test_thousands_of_statements_are_one_expression_of_bounded_depth(number: int) -> None:
    log = "\n".join(f"UPDATE doctors SET last_name = 'name {i}' WHERE number = {i};" for i in range(number))
    text = Program(typed({"number": "int", "last_name": "string"}), parsed(log)).last_state()
    depth = deepest = 0
    for character in text:
        depth += (character == "(") - (character == ")")
        deepest = max(deepest, depth)
    assert deepest < 30
