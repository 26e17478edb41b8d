"""The log of a timed table: times, the scope of each time, the order of statements, and what is rejected (S12)."""

from __future__ import annotations

from datetime import date, datetime, timedelta, timezone

import pytest

from scd_pipeline.errors import SourceDataError
from scd_pipeline.timed.times import RAW, from_millis, parse_millis, read_time
from scd_pipeline_tests.timed.logs import EVERY_TYPE, parsed

NOW = datetime(2026, 1, 2, tzinfo=timezone.utc)

TIMES = {
    "1409529600000": 1409529600000,
    "-1000": -1000,
    "0": 0,
    "2014-09-01": 1409529600000,
    "1960-01-01": -315619200000,
    "2014-09-01T00:00:00": 1409529600000,
    "2014-09-01T00:00:00Z": 1409529600000,
    "2014-09-01T00:00:00+02:00": 1409522400000,
    "2014-09-01T00:00:00-0330": 1409542200000,
}
NO_TIMES = (
    "",
    "1e3",
    "2014-9-1",
    "2014-09-31",
    "2014/09/01",
    "2014-09-01 00:00:00",
    "2014-09-01T00:00",
    "2014-09-01T24:00:00",
    "2014-09-01+02:00",
    "2014-09-01T00:00:00+25:00",
    "tomorrow",
    "253402300800000",
    "99999999999999999999",
)


@pytest.mark.parametrize(("text", "millis"), TIMES.items())
def test_a_time_is_a_number_a_date_or_a_date_and_time(text: str, millis: int) -> None:
    assert parse_millis(text, "UTC") == millis
    assert read_time(text, "UTC", NOW) == millis
    assert parsed(f"-- time={text}\nDELETE FROM doctors")[0].millis == millis


@pytest.mark.parametrize("text", NO_TIMES)
def test_another_form_of_a_time_is_rejected(text: str) -> None:
    assert parse_millis(text, "UTC") is None
    with pytest.raises(SourceDataError) as caught:
        parsed(f"DELETE FROM doctors;\n\n-- time={text}\nDELETE FROM doctors;")
    assert (caught.value.code, caught.value.location) == ("STATEMENT_TIME", ".updates:3")


def test_a_time_without_an_offset_is_in_the_declared_zone() -> None:
    log = "-- time=2014-09-01\nDELETE FROM doctors;\n-- time=2014-09-01T00:00:00Z\nDELETE FROM doctors;"
    assert [each.millis for each in parsed(log, zone="Europe/Berlin")] == [1409522400000, 1409529600000]
    assert read_time("2014-09-01", "America/New_York", NOW) == 1409544000000
    assert read_time(datetime(2014, 9, 1), "Europe/Berlin", NOW) == 1409522400000


def test_a_read_has_a_time_of_each_form() -> None:
    now = 1767312000000
    times = {None: now, "": now, " ": now, "raw": RAW, "RAW": RAW, "-1": RAW, -1: RAW, 5: 5, date(1970, 1, 2): 86400000}
    assert {value: read_time(value, "UTC", NOW) for value in times} == times
    aware = datetime(2014, 9, 1, tzinfo=timezone(timedelta(hours=2)))
    assert read_time(aware, "UTC", NOW) == 1409522400000
    assert [read_time(value, "UTC", NOW) for value in ("soon", 1.5, True, [], 253402300800000)] == [None] * 5


def test_a_time_is_written_as_a_date_where_it_is_one() -> None:
    texts = {0: "1970-01-01", 1409529600001: "2014-09-01T00:00:00.001", 3600000: "1970-01-01T01:00:00"}
    assert {millis: from_millis(millis) for millis in texts} == texts


def test_a_time_applies_to_all_statements_up_to_the_next_time() -> None:
    log = """
    DELETE FROM doctors WHERE number = 1;
    -- time=20
    DELETE FROM doctors WHERE number = 2; DELETE FROM doctors WHERE number = 3;
    -- a comment
    DELETE FROM doctors WHERE number = 4;
    --TIME = 30
    -- time=40
    DELETE FROM doctors WHERE number = 5
    -- the last semicolon may be omitted
    """
    assert [each.millis for each in parsed(log)] == [0, 20, 20, 20, 40]


def test_statements_apply_in_order_of_their_times_and_then_of_the_log() -> None:
    log = """-- time=20
    DELETE FROM doctors WHERE number = 1;
    -- time=10
    DELETE FROM doctors WHERE number = 2;
    -- time=20
    DELETE FROM doctors WHERE number = 3;
    """
    assert [(each.millis, each.line, each.position) for each in parsed(log)] == [(10, 4, 2), (20, 2, 1), (20, 6, 3)]


def test_strings_and_comments_are_not_cut() -> None:
    log = """/* -- time=5
    DELETE FROM doctors; /* nested */ */
    update DOCTORS
      SET first_name = 'a;b -- time=7', -- time in a comment

          Last_Name = 'it''s'  /* ; */
    where `NUMBER` = 2;;
    ;
    """
    (statement,) = parsed(log)
    assert statement.assignments is not None
    assert {name: value.name for name, value in statement.assignments.items()} == {
        "first_name": "a;b -- time=7",
        "last_name": "it's",
    }
    assert (statement.millis, statement.line) == (0, 3)


@pytest.mark.parametrize("log", ["", "\n\n", "-- time=5", "-- nothing yet\n;"])
def test_a_log_may_be_empty(log: str) -> None:
    assert parsed(log) == []


REJECTED = {
    # statements of another kind
    "INSERT INTO doctors VALUES (1)": "STATEMENT_KIND",
    "MERGE INTO doctors USING d ON a = b WHEN MATCHED THEN DELETE": "STATEMENT_KIND",
    "DROP TABLE doctors": "STATEMENT_KIND",
    "ALTER TABLE doctors ADD COLUMN a int": "STATEMENT_KIND",
    "CREATE TABLE doctors (a int)": "STATEMENT_KIND",
    "TRUNCATE TABLE doctors": "STATEMENT_KIND",
    "SELECT * FROM doctors": "STATEMENT_KIND",
    "WITH d AS (SELECT 1) DELETE FROM doctors": "STATEMENT_KIND",
    "GRANT ALL ON doctors TO me": "STATEMENT_KIND",
    "number = 1": "STATEMENT_KIND",
    "'UPDATE'": "STATEMENT_KIND",
    # syntax
    "UPDATE doctors": "STATEMENT_SYNTAX",
    "UPDATE doctors SET number": "STATEMENT_SYNTAX",
    "UPDATE doctors SET number = 1 number = 2": "STATEMENT_SYNTAX",
    "UPDATE doctors SET number > 1": "STATEMENT_SYNTAX",
    "UPDATE doctors SET number == 1": "STATEMENT_SYNTAX",
    "UPDATE doctors SET name = 'a', doctors.`number` /* = */ == 1": "STATEMENT_SYNTAX",
    "UPDATE doctors SET number = 1, NUMBER = 2": "STATEMENT_SYNTAX",
    "UPDATE doctors SET (number, name) = (1, 'a')": "STATEMENT_SYNTAX",
    "UPDATE doctors SET address.city = 'Rome'": "STATEMENT_SYNTAX",
    "DELETE doctors": "STATEMENT_SYNTAX",
    "DELETE FROM doctors WHERE": "STATEMENT_SYNTAX",
    "DELETE FROM doctors WHERE number = 1)": "STATEMENT_SYNTAX",
    "DELETE FROM doctors WHERE number IN ()": "STATEMENT_SYNTAX",
    "DELETE FROM doctors WHERE name LIKE 'C:\\\\Tom'": "STATEMENT_SYNTAX",
    "DELETE FROM doctors WHERE name LIKE 'Tom!' ESCAPE '!'": "STATEMENT_SYNTAX",
    "DELETE FROM (SELECT 1)": "STATEMENT_SYNTAX",
    "DELETE FROM IDENTIFIER('doctors')": "STATEMENT_SYNTAX",
    "DELETE FROM doctors WHERE name = 'open": "STATEMENT_SYNTAX",
    "/* open": "STATEMENT_SYNTAX",
    "{# DELETE FROM doctors #}": "STATEMENT_SYNTAX",
    f"DELETE FROM doctors WHERE {'(' * 999}active{')' * 999}": "STATEMENT_SYNTAX",
    # names
    "UPDATE doctors SET nummer = 1": "STATEMENT_COLUMN",
    "DELETE FROM doctors WHERE nummer = 1": "STATEMENT_COLUMN",
    "DELETE FROM doctors WHERE address.town = 'Rome'": "STATEMENT_COLUMN",
    "DELETE FROM doctors WHERE patients.number = 1": "STATEMENT_COLUMN",
    "UPDATE doctors SET number = DEFAULT": "STATEMENT_COLUMN",
    "DELETE FROM doctors; DELETE FROM patients": "STATEMENT_TABLE",
    # types
    "UPDATE doctors SET number = 'two'": "STATEMENT_TYPE",
    "UPDATE doctors SET number = 1.5": "STATEMENT_TYPE",
    "UPDATE doctors SET number = number / 2": "STATEMENT_TYPE",
    "UPDATE doctors SET number = 2147483648": "STATEMENT_TYPE",
    "UPDATE doctors SET fee = 1000": "STATEMENT_TYPE",
    "UPDATE doctors SET fee = 0.125": "STATEMENT_TYPE",
    "UPDATE doctors SET fee = weight": "STATEMENT_TYPE",
    "UPDATE doctors SET name = 5": "STATEMENT_TYPE",
    "UPDATE doctors SET born = 'yesterday'": "STATEMENT_TYPE",
    "UPDATE doctors SET born = '2014-02-30'": "STATEMENT_TYPE",
    "UPDATE doctors SET born = DATE '2014-02-30'": "STATEMENT_TYPE",
    "UPDATE doctors SET born = CAST(number AS date)": "STATEMENT_TYPE",
    "UPDATE doctors SET number = CAST(photo AS int)": "STATEMENT_TYPE",
    "UPDATE doctors SET number = CAST('2' AS string)": "STATEMENT_TYPE",
    "UPDATE doctors SET weight = 1e400": "STATEMENT_TYPE",
    "UPDATE doctors SET active = 1": "STATEMENT_TYPE",
    "UPDATE doctors SET address = 'Rome'": "STATEMENT_TYPE",
    "DELETE FROM doctors WHERE number": "STATEMENT_TYPE",
    "DELETE FROM doctors WHERE number = '2'": "STATEMENT_TYPE",
    "DELETE FROM doctors WHERE number IN (1, 'a')": "STATEMENT_TYPE",
    "DELETE FROM doctors WHERE number BETWEEN 1 AND 'a'": "STATEMENT_TYPE",
    "DELETE FROM doctors WHERE number LIKE '1%'": "STATEMENT_TYPE",
    "DELETE FROM doctors WHERE name + 1 = 2": "STATEMENT_TYPE",
    "DELETE FROM doctors WHERE NOT number": "STATEMENT_TYPE",
    "DELETE FROM doctors WHERE address = address": "STATEMENT_TYPE",
    "DELETE FROM doctors WHERE CASE WHEN active THEN 1 ELSE 'a' END = 1": "STATEMENT_TYPE",
    # what one row cannot decide, what is not the same at each read, and what is not supported
    "DELETE FROM doctors WHERE number = (SELECT max(number) FROM doctors)": "STATEMENT_EXPRESSION",
    "DELETE FROM doctors WHERE number IN (SELECT number FROM doctors)": "STATEMENT_EXPRESSION",
    "DELETE FROM doctors WHERE EXISTS (SELECT 1)": "STATEMENT_EXPRESSION",
    "DELETE FROM doctors WHERE number = max(number)": "STATEMENT_EXPRESSION",
    "UPDATE doctors SET number = row_number() OVER (ORDER BY name)": "STATEMENT_EXPRESSION",
    "UPDATE doctors SET weight = rand()": "STATEMENT_EXPRESSION",
    "DELETE FROM doctors WHERE born < current_date()": "STATEMENT_EXPRESSION",
    "DELETE FROM doctors WHERE reflect('java.lang.System', 'exit', 1) = 'a'": "STATEMENT_EXPRESSION",
    "DELETE FROM doctors WHERE name = :name": "STATEMENT_EXPRESSION",
    "DELETE FROM doctors USING patients": "STATEMENT_EXPRESSION",
    "DELETE FROM doctors LIMIT 1": "STATEMENT_EXPRESSION",
    "DELETE FROM doctors TABLESAMPLE (5 ROWS)": "STATEMENT_EXPRESSION",
    "DELETE FROM doctors VERSION AS OF 1": "STATEMENT_EXPRESSION",
    "UPDATE /*+ hint */ doctors SET number = 1": "STATEMENT_EXPRESSION",
    "UPDATE doctors SET number = 1 FROM patients": "STATEMENT_EXPRESSION",
    "DELETE FROM doctors WHERE name RLIKE 'a'": "STATEMENT_EXPRESSION",
    "DELETE FROM doctors WHERE CAST(name AS interval) IS NULL": "STATEMENT_EXPRESSION",
    "DELETE FROM doctors WHERE CAST(address AS string) IS NULL": "STATEMENT_EXPRESSION",
    # times
    "DELETE FROM doctors -- time=5": "STATEMENT_TIME_POSITION",
    "DELETE FROM doctors; -- time=5": "STATEMENT_TIME_POSITION",
    "DELETE FROM doctors\n-- time=5\nWHERE number = 1": "STATEMENT_TIME_POSITION",
}


@pytest.mark.parametrize("statement", REJECTED, ids=[f"{text[:60]}" for text in REJECTED])
def test_one_statement_that_cannot_be_applied_rejects_the_log(statement: str) -> None:
    log = f"DELETE FROM doctors WHERE number = 1;\n\n{statement};\nDELETE FROM doctors WHERE number = 2;"
    with pytest.raises(SourceDataError) as caught:
        parsed(log, EVERY_TYPE)
    line = 4 if "\n" in statement else 3
    assert (caught.value.code, caught.value.location) == (REJECTED[statement], f".updates:{line}")


def test_a_double_equals_sign_compares_and_assigns_nothing() -> None:
    parsed("UPDATE doctors SET number = 1 WHERE number == 2")
    with pytest.raises(SourceDataError) as caught:
        parsed("UPDATE doctors SET first_name = 'Ada',\n  number\n  == 2;")
    assert (caught.value.code, caught.value.location) == ("STATEMENT_SYNTAX", ".updates:2")


def test_the_error_is_at_the_line_of_the_part() -> None:
    log = "-- time=5\nUPDATE doctors\n  SET first_name = 'Ada',\n    number =\n'two';"
    with pytest.raises(SourceDataError) as caught:
        parsed(log)
    assert str(caught.value) == (
        "[STATEMENT_TYPE] .updates:4: the value of number is a text; expected a value of type int; correct the value, "
        "or convert it by CAST; no statement is applied"
    )


def test_no_message_repeats_a_value_of_a_statement() -> None:
    for text in ("first_name = 5", "SELECT 'Colin'", "number = 'Colin' 'Baker' Colin"):
        with pytest.raises(SourceDataError) as caught:
            parsed(f"DELETE FROM doctors WHERE first_name = 'Colin' AND {text}")
        assert "'Colin'" not in str(caught.value)
