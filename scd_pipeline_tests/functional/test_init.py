"""`scd init`: a declaration guessed from a sample, and a project that loads."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from scd_pipeline.cli import app as cli
from scd_pipeline.cli.fact_inference import guess_fact
from scd_pipeline.cli.inference import guess_declaration, parse_sample
from scd_pipeline.declaration import (
    Dimension,
    Fact,
    ScdType,
    parse,
    parse_declarations,
    read_declarations,
    read_dimensions,
)
from scd_pipeline.declaration.schema import declaration_schema
from scd_pipeline.delta.warehouse import Warehouse
from scd_pipeline.errors import UsageError
from scd_pipeline_tests import text_tables
from scd_pipeline_tests.semantics.specification import requirement
from scd_pipeline_tests.unit.test_schema import documents, problems
from scd_pipeline_tests.unit.test_yaml_documentation import blocks

CSV = """\
shop,number,name,opened,rent,area,Contact Email,zip,active,note
a,1,X,2020-01-01,10.50,3000000000,x@example.com,01234,TRUE,
b,2,X,2021-01-01,9.255,1,y@example.com,11234,false,
a,3,Y,2021-01-01,9,2,,01234,True,
"""


def guess(file: str, text: str) -> Dimension:
    sample = parse_sample(file, text)
    (dimension,) = parse(guess_declaration(sample, f"landing/{sample.name}_{{date}}.csv"))
    return dimension


def test_a_declaration_is_guessed_from_values_and_names() -> None:
    dimension = guess("Our Shops_2024-03-01.csv", CSV)
    assert (dimension.name, dimension.key_names) == ("dim_our_shops", ("number",))
    attributes = {a.name: (a.data_type.ddl(), a.scd, a.personal) for a in dimension.attributes}
    assert attributes == {
        "shop": ("string", ScdType.ADD_ROW, False),
        "name": ("string", ScdType.ADD_ROW, False),
        "opened": ("date", ScdType.ADD_ROW, False),
        "rent": ("decimal(18,3)", ScdType.ADD_ROW, False),
        "area": ("bigint", ScdType.ADD_ROW, False),
        "contact_email": ("string", ScdType.OVERWRITE, True),
        "zip": ("string", ScdType.ADD_ROW, False),
        "active": ("boolean", ScdType.ADD_ROW, False),
        "note": ("string", ScdType.ADD_ROW, False),
    }


TYPES = """
| values                                                       | type           |
| ------------------------------------------------------------ | -------------- |
| 1, -2, 0                                                     | int            |
| 1, 2147483648                                                | bigint         |
| 1, 12345678901234567890                                      | string         |
| 01234, 11234                                                 | string         |
| true, false                                                  | boolean        |
| TRUE, False                                                  | boolean        |
| true, true                                                   | boolean        |
| true, false, unknown                                         | string         |
| t, f                                                         | string         |
| yes, no                                                      | boolean        |
| Y, N                                                         | boolean        |
| N, N                                                         | string         |
| J, N, X                                                      | string         |
| 0, 1                                                         | int            |
| true, 1                                                      | string         |
| 10.50, -9.255, 9                                             | decimal(18,3)  |
| 0.5, 12345678901234567                                       | decimal(38,1)  |
| 123456789012.25                                              | decimal(18,2)  |
| 1234567890123.25                                             | decimal(38,2)  |
| 0.1234567890123                                              | decimal(18,13) |
| 0.12345678901234                                             | decimal(38,14) |
| 12345678901234567890.123456789012345678                      | decimal(38,18) |
| 01.10, 11.20                                                 | string         |
| 2020-01-01, 2021-01-01                                       | date           |
| 2020-01-01 12:30:00, 2021-01-01T00:00:00Z                    | timestamp      |
| 2020-01-01 12:30:00.123456, 2020-01-01 12:30:00.1000000      | timestamp      |
| 2020-01-01 12:30:00.1234567, 2020-01-01 12:30:00             | string         |
| 2020-01-01 12:30, 2021-01-01T00:00Z                          | timestamp      |
| 2024-02-29, 2023-02-29                                       | string         |
| 2024-02-29, 0000-00-00                                       | string         |
| 2024-02-29 00:00:00, 0000-00-00 00:00:00                     | string         |
"""
"""A decimal has 18 digits if at least four more digits before the point fit than the sample has."""


@pytest.mark.parametrize("row", text_tables.parse(TYPES), ids=lambda row: f"{row['type']}: {row['values']}")
def test_a_type_is_guessed_that_represents_all_values(row: dict[str, object]) -> None:
    values = str(row["values"]).split(", ")
    lines = [f"{number},{value}" for number, value in enumerate(["", *values])]
    (attribute,) = guess("a.csv", "\n".join(["id,value", *lines])).attributes
    assert attribute.data_type.ddl() == row["type"]


@pytest.mark.parametrize(
    ("file", "source", "table"),
    [
        ("no.csv", "no", "dim_no"),
        ("2024.csv", "2024", "dim_2024"),
        ("Kundenübersicht.csv", "kunden_bersicht", "dim_kunden_bersicht"),
        ("price_history.csv", "price_history", "dim_price_history_"),
        ("audit.csv", "audit", "dim_audit_"),
    ],
)
def test_a_file_of_any_name_has_a_valid_source_and_table(file: str, source: str, table: str) -> None:
    dimension = guess(file, "id,name\n1,a\n2,b\n")
    assert (dimension.sources[0].name, dimension.name) == (source, table)


@pytest.mark.parametrize(
    ("file", "date", "path"),
    [
        ("users_2024-01-31.csv", "2024-01-31", "users_{date}"),
        ("users_20240131.csv", "20240131", "users_{date:%Y%m%d}"),
        ("Users 2 31.01.2024.csv", "31.01.2024", "users_2_{date:%d.%m.%Y}"),
        ("users_01022024.csv", "", "users_01022024_{date}"),  # January or February
        ("users_4711.csv", "", "users_4711_{date}"),
    ],
)
def test_the_date_in_the_name_of_a_sample_has_its_form(file: str, date: str, path: str) -> None:
    sample = parse_sample(file, "id,name\n1,A\n")
    assert (sample.date, f"{sample.name}_{sample.placeholder}") == (date, path)


def test_a_column_with_a_reserved_name_is_renamed() -> None:
    dimension = guess("a.csv", "id,version,Last_Updated\n1,a,x\n2,a,y\n")
    assert dimension.attribute_names == ("version_", "Last_Updated_")
    assert dimension.sources[0].column("version_").from_ == ("version",)


FORMATS = """
| values                                   | type      | format              |
| ---------------------------------------- | --------- | ------------------- |
| 01.02.2024, 31.12.9999                   | date      | dd.MM.yyyy          |
| 1.2.2024, 31.12.2024                     | date      | d.M.yyyy            |
| 01.02.2024 08:30, 31.12.2024 00:00       | timestamp | dd.MM.yyyy HH:mm    |
| 01.02.2024 08:30:15, 31.12.2024 00:00:00 | timestamp | dd.MM.yyyy HH:mm:ss |
| 01/02/2024, 31/12/2024                   | date      | dd/MM/yyyy          |
| 01/02/2024, 12/31/2024                   | date      | MM/dd/yyyy          |
| 1/2/2024, 12/31/2024                     | date      | M/d/yyyy            |
| 01/02/2024, 03/04/2024                   | string    |                     |
| 31/12/2024, 12/31/2024                   | string    |                     |
| 31-12-2024                               | date      | dd-MM-yyyy          |
| 2024/12/31                               | date      | yyyy/MM/dd          |
| 2024/12/31 08:30:00                      | timestamp | yyyy/MM/dd HH:mm:ss |
| 20241231, 99991231                       | date      | yyyyMMdd            |
| 20241231, 20241232                       | int       |                     |
| 12341231, 20241231                       | int       |                     |
| 30.02.2024                               | string    |                     |
| 01.02.2024, unknown                      | string    |                     |
"""
"""In 01/02/2024 day and month could be exchanged, so that another value has to decide."""


@pytest.mark.parametrize("row", text_tables.parse(FORMATS), ids=lambda row: row["values"])
def test_a_date_in_another_form_has_its_format(row: dict[str, str]) -> None:
    lines = [f"{number},{value}" for number, value in enumerate(row["values"].split(", "))]
    dimension = guess("a.csv", "\n".join(["id,value", *lines]))
    read_as = dimension.sources[0].column("value").format
    assert (dimension.attributes[0].type, read_as) == (row["type"], row["format"])


@pytest.mark.parametrize(
    ("values", "expected"), [(("20240101", "20240102"), "int"), (("1.234", "5.678"), "string"), (("1", "2"), "int")]
)
def test_an_identifier_is_neither_a_date_nor_a_number_with_separators(values: tuple[str, str], expected: str) -> None:
    assert guess("a.csv", "\n".join(["kundennr", *values])).business_key[0].type == expected


def test_a_fact_reads_dates_and_numbers_in_their_form() -> None:
    fact = guess_fact_of_cities("visit_id;zip;visited_at;coins\n1;1;31.12.2024;1.234,50\n2;1;01.01.2025;0,00\n")
    assert (fact.event_time, fact.source.column("visited_at").format) == ("visited_at", "dd.MM.yyyy")
    assert (dict(fact.measures), fact.source.column("coins").decimal) == ({"coins": "decimal(18,2)"}, ",")


NUMBERS = """
| values            | other | type          | decimal | grouping |
| ----------------- | ----- | ------------- | ------- | -------- |
| 1,50 / -12,5      |       | decimal(18,2) | ','     | '.'      |
| 1.234,50 / 0,00   |       | decimal(18,2) | ','     | '.'      |
| 1234,50 / 0,00    |       | decimal(18,2) | ','     | ''       |
| 1 234,50 / 0,00   |       | decimal(18,2) | ','     | ' '      |
| 1,234.50 / 0.00   |       | decimal(18,2) | '.'     | ','      |
| 1'234.50 / 0.00   |       | decimal(18,2) | '.'     | "'"      |
| 0,125 / 0,250     |       | decimal(18,3) | ','     | '.'      |
| 1.234.567 / 0     |       | int           | ','     | '.'      |
| 1.234 / 5.678     |       | decimal(18,3) | '.'     | ''       |
| 1.234 / 5.678     | '0,5' | int           | ','     | '.'      |
| 1.234 / 5.678     | '0.5' | decimal(18,3) | '.'     | ''       |
| 1,234 / 5,678     |       | string        | '.'     | ''       |
| 1,234 / 5,678     | '0,5' | decimal(18,3) | ','     | '.'      |
| 1,234 / 5,678     | '0.5' | int           | '.'     | ','      |
| 1.23,50 / 1,5     |       | string        | '.'     | ''       |
| 1,234.5 / 1.234,5 |       | string        | '.'     | ''       |
| 01,50 / 11,20     |       | string        | '.'     | ''       |
| 12,50 € / 1,00 €  |       | string        | '.'     | ''       |
"""
"""1.234 may be more than a thousand: another column of the sample decides."""


@pytest.mark.parametrize("row", text_tables.parse(NUMBERS), ids=lambda row: f"{row['values']} {row['other']}")
def test_numbers_have_the_separators_of_the_sample(row: dict[str, str]) -> None:
    values = row["values"].split(" / ")
    lines = [f"{number};{value};{row['other'] or ''}" for number, value in enumerate(values)]
    dimension = guess("a.csv", "\n".join(["id;value;other", *lines]))
    column = dimension.sources[0].column("value")
    assert (dimension.attributes[0].type, column.decimal, column.grouping) == (
        row["type"],
        row["decimal"],
        row["grouping"],
    )


def test_flags_have_the_texts_of_the_sample() -> None:
    dimension = guess("a.csv", "id,aktiv,gesperrt\n1,J,ja\n2,N,NEIN\n3,j,nein\n")
    flags = [dimension.sources[0].column(name) for name in ("aktiv", "gesperrt")]
    assert [(flag.true_values, flag.false_values) for flag in flags] == [
        (("J", "j"), ("N",)),
        (("ja",), ("NEIN", "nein")),
    ]
    assert {attribute.type for attribute in dimension.attributes} == {"boolean"}


KEYS = """
| header                  | rows                                 | key                                   |
| ----------------------- | ------------------------------------ | ------------------------------------- |
| rate,name               | 1.50,a; 2.25,a                       | {rate: "decimal(18,2)"}               |
| is_main,number          | true,7; false,8                      | {number: int}                         |
| is_main,shop            | true,a; false,a; true,b              | {shop: string, is_main: boolean}      |
| name,customer_id        | a,1; b,2                             | {customer_id: int}                    |
| name,custno             | a,1; b,2                             | {custno: int}                         |
| Name,Kunden-Nr.         | a,1; b,2                             | {kunden_nr: int}                      |
| Name,Telefon            | a,1; b,2                             | {Name: string}                        |
| name,paid               | a,1; b,2                             | {name: string}                        |
| city,name,zip           | x,a,1010; x,b,1020                   | {name: string}                        |
| zip,name                | 1010,a; 1020,b                       | {zip: int}                            |
| phone_no,name           | 11,a; 12,b                           | {phone_no: int}                       |
| name,phone_no           | a,11; b,12                           | {name: string}                        |
| mandant,kundennr,name   | 1,7,a; 1,8,b; 2,7,c                  | {mandant: int, kundennr: int}         |
| mandant,kundennr,ustid  | 1,7,a; 1,8,b; 2,7,c                  | {mandant: int, kundennr: int}         |
| name,ort,mandant,kdnr   | a,x,1,7; b,y,1,8; c,x,2,7            | {mandant: int, kdnr: int}             |
| rent,day,name           | 1.50,2024-01-01,a; 2.50,2024-01-02,b | {name: string}                        |
"""


@pytest.mark.parametrize("row", text_tables.parse(KEYS), ids=lambda row: row["header"])
def test_a_business_key_has_the_columns_that_most_likely_identify_an_entity(row: dict[str, str]) -> None:
    """Columns with the name of an identifier, then leading ones; no measures or post codes if others are unique."""
    sample = parse_sample("a.csv", "\n".join([row["header"], *row["rows"].split("; "), ""]))
    assert f"\nbusiness_key: {row['key']}\n" in guess_declaration(sample, "landing/a_{date}.csv")
    assert guess("a.csv", "\n".join([row["header"], *row["rows"].split("; "), ""])).key_names


def test_the_candidates_for_the_business_key_are_listed_with_their_distinct_values() -> None:
    sample = parse_sample("a.csv", "mandant;kundennr;name;straße\n1;7;a;x\n1;8;b;y\n2;7;c;\n")
    assert guess_declaration(sample, "{date}.csv").splitlines()[2:5] == [
        "# Unique in 3 rows (with the number of distinct values of each column):",
        "#   mandant (2), kundennr (2)",
        "#   name (3)",
    ]


def test_names_with_umlauts_are_readable_in_the_declaration() -> None:
    text = guess_declaration(parse_sample("a.csv", "id;straße;Größe €;a\u2028b\n1;a;b;c\n"), "{date}.csv")
    assert '  "straße": {scd: 2}' in text and '"größe": {from: "Größe €"}' in text
    (dimension,) = parse(text)
    assert dimension.sources[0].column("a_b").from_ == ("a\u2028b",)


BLANKS = """
| rows                               | options                                                                      |
| ---------------------------------- | ---------------------------------------------------------------------------- |
| state, zip; Ohio, 80010            | ignoreLeadingWhiteSpace: "true"                                              |
| state,zip; Ohio , 80010            | ignoreLeadingWhiteSpace: "true", ignoreTrailingWhiteSpace: "true"            |
| state, "zip"; "New York", "80010" | ignoreLeadingWhiteSpace: "true"                                              |
| state,zip; New York,80010          |                                                                              |
"""


@pytest.mark.parametrize("row", text_tables.parse(BLANKS), ids=lambda row: row["rows"])
def test_blanks_around_names_and_values_are_trimmed_and_declared(row: dict[str, str]) -> None:
    text = guess_declaration(parse_sample("a.csv", row["rows"].replace("; ", "\n")), "{date}.csv")
    assert row["options"] or "options" not in text
    assert f"options: {{{row['options']}}}" in text or not row["options"]
    (dimension,) = parse(text)
    assert dimension.key_names == ("state",)
    assert [(each.name, each.data_type.ddl()) for each in dimension.attributes] == [("zip", "int")]


def test_a_line_with_the_separator_is_not_the_header() -> None:
    sample = parse_sample("a.csv", "sep=|\r\nid|city, state\r\n1|Graz\r\n")
    assert (sample.columns, sample.separator) == (("id", "city, state"), "|")


def test_two_columns_are_the_key_if_no_single_one_is_unique() -> None:
    assert guess("a.csv", "x,y,z\n1,1,1\n1,2,1\n2,1,1\n").key_names == ("x", "y")
    with pytest.raises(UsageError) as error:
        guess("a.csv", "x\n1\n1\n")
    assert error.value.code == "BUSINESS_KEY_NOT_GUESSED"


PLAYERS = "player_id,tier\n007,Gold\n008,Silver\n"
PLAYS = """\
event_ts,event_id,player_id,coin_in,coin_out,Bonus Code,jackpot
2024-03-01 10:00:00,e1,007,20.00,5.50,X,false
2024-03-01 10:05:00,e2,007,20.00,0.00,,true
2024-03-01 10:05:01,e3,009,1.00,0.00,Y,false
"""


@requirement("F11")
def test_a_fact_has_all_other_columns_of_its_sample_as_measures(tmp_path: Path) -> None:
    """A sample with the prefix of a fact: its player is found by the business key, and no column is lost."""
    for name, text in {"fct_slot_play_2024-03-01.csv": PLAYS, "player.csv": PLAYERS}.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    project = tmp_path / "project"
    files = (tmp_path / "fct_slot_play_2024-03-01.csv", tmp_path / "player.csv")
    assert cli.main(["init", str(project), *(f"--from={file}" for file in files)]) == 0
    (fact,) = read_declarations(project / "declarations").facts
    assert (fact.name, fact.event_time, fact.event_at) == ("fct_slot_play", "event_ts", "row")
    assert [(column.name, column.type) for column in fact.grain] == [("event_id", "string")]
    assert [(name, role.dimension.name, role.key) for name, role in fact.roles] == [
        ("player", "dim_player", ("player_id",))
    ]
    assert dict(fact.measures) == {
        "coin_in": "decimal(18,2)",
        "coin_out": "decimal(18,2)",
        "bonus_code": "string",
        "jackpot": "boolean",
    }
    text = (project / "declarations" / "fct_slot_play.yaml").read_text("utf-8")
    assert [problems(document, declaration_schema()) for document in documents(text)] == [[]]
    assert (project / "declarations/landing/fct_slot_play_2024-03-01.csv").read_text("utf-8") == PLAYS


def test_the_last_of_several_samples_of_a_table_is_used(tmp_path: Path) -> None:
    files = [tmp_path / "city_2024-01-01.csv", tmp_path / "city_2024-02-01.csv"]
    for file, text in zip(files, ("zip,name\n1,A\n", "zip,name,area\n1,A,2\n"), strict=True):
        file.write_text(text, encoding="utf-8")
    assert cli.main(["init", str(tmp_path / "project"), *(f"--from={file}" for file in files)]) == 0
    (city,) = read_dimensions(tmp_path / "project" / "declarations")
    assert city.attribute_names == ("name", "area")


def test_a_fact_without_a_time_has_that_of_its_delivery() -> None:
    dimensions = parse(guess_declaration(parse_sample("city.csv", "zip;name\n1;A\n2;B\n"), "landing/city_{date}.csv"))
    text = guess_fact(parse_sample("fct_visits.csv", "visit_id;zip\n1;1\n2;1\n"), "landing/{date}.csv", dimensions)
    assert "event_time: delivered_at\nevent_at: delivery" in text
    assert "measures" not in text


GRAINS = """
| header                          | rows                                                 | grain                  |
| ------------------------------- | ---------------------------------------------------- | ---------------------- |
| zip,visited_at,coins            | 1,2024-01-01,5; 1,2024-01-02,6                       | zip visited_at         |
| zip,visited_at,coins            | 1,2024-01-01,5; 1,2024-01-02,5; 2,2024-01-01,6       | zip visited_at         |
| paid,zip,visited_at             | 5,1,2024-01-01; 6,1,2024-01-02                       | zip visited_at         |
| coins,visit_no,zip,visited_at   | 5,1,1,2024-01-01; 6,2,1,2024-01-02                   | visit_no               |
| coins,visitId,zip               | 5,1,1; 6,2,1                                         | visitId                |
| note,code,zip                   | a,1,1; b,2,1                                         | code                   |
| coins,visit,zip                 | 5,a,1; 6,b,1                                         | visit                  |
| coins,line_no,zip,visited_at    | 5,1,1,2024-01-01; 6,2,1,2024-01-01; 7,1,2,2024-01-01 | zip visited_at line_no |
"""
"""A fact whose dimension has the key `zip`: a measure is never in the grain."""


@pytest.mark.parametrize("row", text_tables.parse(GRAINS), ids=lambda row: f"{row['header']}: {row['rows']}")
def test_the_grain_of_a_fact_is_an_identifier_or_its_keys_and_time(row: dict[str, str]) -> None:
    text = "\n".join([row["header"], *row["rows"].split("; "), ""])
    fact = guess_fact_of_cities(text)
    assert [column.name for column in fact.grain] == row["grain"].split()


@pytest.mark.parametrize(
    "rows",
    [
        pytest.param("zip,visited_at,coins\n1,2024-01-01,5\n1,2024-01-01,6\n", id="unique only with a measure"),
        pytest.param("zip,price\n1,1.50\n1,2.50\n", id="a unique amount"),
        pytest.param("zip,visited_at,coins\n1,2024-01-01,5\n,2024-01-02,6\n", id="an empty key"),
    ],
)
def test_a_fact_without_a_grain_is_rejected(rows: str) -> None:
    with pytest.raises(UsageError, match=r"expected columns that identify a row.*add an id column") as error:
        guess_fact_of_cities(rows)
    assert error.value.code == "GRAIN_NOT_GUESSED"


def test_a_key_of_another_type_than_that_of_the_dimension_is_rejected() -> None:
    with pytest.raises(UsageError, match=r"zip \(string\).*dim_city \(zip int\)") as error:
        guess_fact_of_cities("visit_id,zip\n1,x1\n2,x2\n")
    assert error.value.code == "DIMENSION_NOT_GUESSED"


@pytest.mark.parametrize(("values", "role"), [(("1", "2"), "city"), (("01", "02"), "area")])
def test_of_two_dimensions_with_one_key_that_with_the_type_of_the_fact_is_referenced(
    tmp_path: Path, values: tuple[str, str], role: str
) -> None:
    """A text could contain the numbers of the fact as well."""
    first, second = values
    texts = {
        "area.csv": "zip,name\n01,A\n02,B\n",
        "city.csv": "zip,name\n1,A\n2,B\n",
        "fct_visits.csv": f"visit_id,zip\n1,{first}\n2,{second}\n",
    }
    for name, text in texts.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    project = tmp_path / "project"
    assert cli.main(["init", str(project), *(f"--from={tmp_path / name}" for name in texts)]) == 0
    (fact,) = read_declarations(project / "declarations").facts
    assert [name for name, _ in fact.roles] == [role]


def guess_fact_of_cities(text: str) -> Fact:
    city = guess_declaration(parse_sample("city.csv", "zip,name\n1,A\n2,B\n"), "landing/city_{date}.csv")
    fact = guess_fact(parse_sample("fct_visits.csv", text), "landing/{date}.csv", parse(city))
    return parse_declarations("---\n".join([city, fact])).facts[0]


def test_a_fact_without_a_dimension_is_rejected(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "fct_slot_play.csv").write_text(PLAYS, encoding="utf-8")
    assert cli.main(["init", str(tmp_path / "project"), "--from", str(tmp_path / "fct_slot_play.csv")]) == 2
    assert "[DIMENSION_NOT_GUESSED]" in capsys.readouterr().err
    assert not (tmp_path / "project").exists()


@pytest.mark.parametrize("separator", [";", "\t", "|"])
def test_the_separator_of_a_sample_is_declared(separator: str) -> None:
    dimension = guess("a.csv", 'id,name\n1,"x,y"\n2,z\n'.replace(",name", f"{separator}name").replace(",", separator))
    assert (dimension.key_names, dimension.attribute_names) == (("id",), ("name",))
    assert dict(dimension.sources[0].snapshot.options) == {"sep": separator}  # type: ignore[union-attr]


@pytest.mark.parametrize("text", ["", "a,b\n", "a,a\n1,2\n", '{"a": 1}\n', '[{"a": 1}]'])
def test_a_sample_without_rows_or_names_is_rejected(text: str) -> None:
    with pytest.raises(UsageError) as error:
        parse_sample("a.csv", text)
    assert (error.value.code, error.value.location) == ("SAMPLE_NOT_READABLE", "a.csv")


def test_a_sample_in_windows_1252_is_copied_as_it_is_and_has_its_encoding(tmp_path: Path) -> None:
    content = "id;city\r\n1;Köln – „Süd“\r\n".encode("cp1252")
    (tmp_path / "customers.csv").write_bytes(content)
    assert cli.main(["init", str(tmp_path / "project"), "--from", str(tmp_path / "customers.csv")]) == 0
    (dimension,) = read_dimensions(tmp_path / "project" / "declarations")
    (_, channel), *_ = dimension.sources[0].channels
    assert channel.reader_options == {"sep": ";", "encoding": "windows-1252"}
    (copy,) = (tmp_path / "project" / "declarations" / "landing").iterdir()
    assert copy.read_bytes() == content


@pytest.mark.parametrize(
    "content",
    [
        pytest.param(b"id,city\n1,K\xf6l\x81n\n", id="a byte that windows-1252 does not define"),
        pytest.param("id,city\n1,Köln\n".encode("utf-16"), id="UTF-16"),
    ],
)
def test_a_sample_in_another_encoding_is_rejected(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], content: bytes
) -> None:
    (tmp_path / "customers.csv").write_bytes(content)
    assert cli.main(["init", str(tmp_path / "project"), "--from", str(tmp_path / "customers.csv")]) == 2
    message = capsys.readouterr().err
    assert "[SAMPLE_NOT_READABLE] customers.csv: the text is not UTF-8 (byte " in message and "convert" in message
    assert not (tmp_path / "project").exists()


def test_no_file_is_overwritten(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "README.md").write_text("mine", encoding="utf-8")
    assert cli.main(["init", str(tmp_path)]) == 2
    assert "[PROJECT_FILE_EXISTS]" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["README.md"]


def test_editors_validate_the_declarations_of_a_new_project(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    samples = {"shops_2024-03-01.csv": CSV, "flags.csv": "id;active\n1;true\n2;false\n"}
    for name, text in samples.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    project = tmp_path / "project"
    assert cli.main(["init", str(project), *(f"--from={tmp_path / name}" for name in samples)]) == 0
    declared = read_declarations(project / "declarations")
    assert [dimension.name for dimension in declared.dimensions] == ["dim_flags", "dim_shops"]
    for path in (project / "declarations").glob("*.yaml"):
        first, *_ = path.read_text(encoding="utf-8").splitlines()
        assert any(first in text.splitlines() for text in blocks("yaml"))  # the page on declarations shows it
        schema = path.parent / first.removeprefix("# yaml-language-server: $schema=")
        assert json.loads(schema.read_text(encoding="utf-8")) == declaration_schema()
        assert [problems(document, declaration_schema()) for document in documents(path.read_text("utf-8"))] == [[]]
    capsys.readouterr()
    assert cli.main(["json-schema"]) == 0
    assert capsys.readouterr().out == (project / "declarations" / "declaration.schema.json").read_text("utf-8")


@pytest.mark.slow(30)
def test_a_new_project_loads_and_passes_its_tests(
    spark: object, remote: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert spark
    sample = tmp_path / "shops_2024-03-01.csv"
    sample.write_text(CSV, encoding="utf-8")
    rentals = tmp_path / "fct_rental_2024-03-05.csv"
    rentals.write_text("rental,number,rented_at,price\n1,2,2024-03-02 10:00:00,5.00\n", encoding="utf-8")
    folder = tmp_path / "my shops"
    assert cli.main(["init", str(folder), "--from", str(rentals), "--from", str(sample)]) == 0
    assert read_dimensions(folder / "declarations")[0].name == "dim_shops"
    monkeypatch.chdir(folder)
    monkeypatch.setenv("SCD_REMOTE", remote)
    for name in ("SCD_DECLARATIONS", "SCD_WAREHOUSE"):
        monkeypatch.delenv(name, raising=False)
    assert cli.main(["load"]) == 0
    loaded = capsys.readouterr().out
    assert "dim_shops: deliveries: 1 accepted; rows: 3 opened" in loaded
    assert "fct_rental: deliveries: 1 accepted; rows: 1 opened; table" in loaded  # without unknown members
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    tests = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    done = subprocess.run(tests, cwd=folder, env=environ, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


EXPORT = """\
mandant;kundennr;name;straße;plz;seit;umsatz;limit;aktiv;order;geändert am
100;1000;Müller GmbH;Hauptstr. 1;01067;01.02.2019;1.234,50;0,00;J;5;01.02.2024 08:30:00
100;1001;Weiß „Söhne“ – Süd;Ring 2;80331;15.03.2020;12,00;1.000,00;N;6;31.01.2024 10:00:00
200;1000;Šimek €;Weg 3;10115;31.12.9999;-7,25;500,00;J;;01.02.2024 08:30:00
"""
HISTORY = """
| mandant | kundennr | name               | seit       | umsatz  | aktiv | order | effective_from | effective_to |
| ------- | -------- | ------------------ | ---------- | ------- | ----- | ----- | -------------- | ------------ |
| 100     | 1000     | Müller GmbH        | 2019-02-01 | 1234.50 | true  | 5     | 2024-01-01     | 2024-02-01   |
| 100     | 1000     | Müller GmbH        | 2019-02-01 | 2000.75 | true  | 5     | 2024-02-01     | OPEN         |
| 100     | 1001     | Weiß „Söhne“ – Süd | 2020-03-15 | 12.00   | false | 6     | 2024-01-01     | 2024-02-01   |
| 100     | 1001     | Weiß „Söhne“ – Süd | 2020-03-15 | 12.00   | true  | 7     | 2024-02-01     | OPEN         |
| 200     | 1000     | Šimek €            | 9999-12-31 | -7.25   | true  |       | 2024-01-01     | OPEN         |
"""


@pytest.mark.slow(60)
def test_a_german_export_loads_without_an_edit(
    spark: SparkSession, remote: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sample = tmp_path / "kunden_20240101.csv"
    sample.write_bytes(EXPORT.replace("\n", "\r\n").encode("cp1252"))
    folder = tmp_path / "project"
    assert cli.main(["init", str(folder), "--from", str(sample)]) == 0
    monkeypatch.chdir(folder)
    monkeypatch.setenv("SCD_REMOTE", remote)
    for name in ("SCD_DECLARATIONS", "SCD_WAREHOUSE"):
        monkeypatch.delenv(name, raising=False)
    assert cli.main(["load"]) == 0
    changed = EXPORT.replace("1.234,50", "2.000,75").replace(";N;6", ";J;7")
    (folder / "declarations/landing/kunden_20240201.csv").write_bytes(changed.replace("\n", "\r\n").encode("cp1252"))
    assert cli.main(["load"]) == 0
    table = Warehouse(spark, folder / "warehouse").table("dim_kunden").read()
    text_tables.assert_same_rows(HISTORY, [row.asDict() for row in table.collect()])


def test_a_column_with_the_name_of_the_surrogate_key_keeps_it() -> None:
    dimension = guess("dim_customer.csv", "customer_key,name,customer_sk\n1,Ann,x\n2,Bob,x\n")
    assert (dimension.key_names, dimension.surrogate_key) == (("customer_key",), "customer_sk_")
