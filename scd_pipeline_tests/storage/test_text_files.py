"""Text as other tools write it: quotes, line breaks, encodings, and text after a record."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime, timezone
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from scd_pipeline.declaration import Attribute, Column, Dimension, Feed, Snapshot, Source
from scd_pipeline.deliveries.delivery import Delivery
from scd_pipeline.deliveries.discovery import discover
from scd_pipeline.deliveries.json_files import nested_columns
from scd_pipeline.deliveries.readers import read_path
from scd_pipeline.deliveries.result import BatchResult
from scd_pipeline.delta.warehouse import Warehouse
from scd_pipeline.errors import SourceDataError
from scd_pipeline.load.run import ingest_and_apply

AT = datetime(2024, 1, 1, tzinfo=timezone.utc)
NOT_UTF8 = "the line has bytes that are not UTF-8; declare the file's `encoding` in the channel's options"
QUOTES = "a quoted field of the line is not closed, or a quote in it is not doubled"
FEWER = "the line has fewer fields than the header (1, not 2)"
MORE = "the line has more fields than the header ({}, not 2)"
OBJECT = "the line is not a JSON object or an array of objects, or has text after it"

Rows = list[tuple[str | None, str | None]]
GOOD_CSV: dict[str, tuple[bytes, Rows, Rows]] = {
    # name: (content, rows in the dimension, bad rows with their reason)
    "line break": (
        b'id,city\n1,"Bad\nIschl"\n2,"Wels\r\n\r\nStadt"\n',
        [("1", "Bad\nIschl"), ("2", "Wels\r\n\r\nStadt")],
        [],
    ),
    "in the header": (b'id,"city","the\nnote"\n3,Linz,"a\nb"\n', [("3", "Linz")], []),
    "doubled quotes": (b'id,city\n4,"the ""Ring"""\n5,"""x"", y"\n', [("4", 'the "Ring"'), ("5", '"x", y')], []),
    "mark, CRLF, empty lines": (b"\xef\xbb\xbfid,city\r\n\r\n6,Graz\r\n\r\n", [("6", "Graz")], []),
    "carriage returns": (b"id,city\r7,Steyr\r", [("7", "Steyr")], []),
    "header alone": (b"id,city\n", [], []),
    "inches": (b'id,city\n8,5" pipe\n', [("8", '5" pipe')], []),
    "backslashes": (
        b'id,city\n9,"C:\\dir\\"\n10,"say \\"hi\\""\n',
        [("9", "C:\\dir\\")],
        [('10,"say \\"hi\\""', QUOTES)],
    ),
    "latin-1": ("id,city\n11,Wien\n12,Mödling\n".encode("latin-1"), [("11", "Wien")], [("12,M�dling", NOT_UTF8)]),
    "replacement characters": ("id,city\n13,M�dling\n".encode(), [("13", "M�dling")], []),
    "NUL": (b"id,city\n14,a\0b\n", [("14", "a\0b")], []),
    "wide line": (
        b"id,city\n15,Enns\n16" + b",x" * 21_000 + b"\n",
        [("15", "Enns")],
        [("16" + ",x" * 21_000, MORE.format("21001"))],
    ),
    "control characters": (b"id,city\n30,Graz\n\x01\n \t \n\x1a", [("30", "Graz")], [("\x01", FEWER), ("\x1a", FEWER)]),
    "fields": (
        b'id,city\n31,Graz\n32\n33,Linz,\n34,"a,b",",,""c"\n',
        [("31", "Graz")],
        [("32", FEWER), ("33,Linz,", MORE.format(3)), ('34,"a,b",",,""c"', MORE.format(3))],
    ),
    "plain fields": (b"id,city\n35,Graz\n36\n37,,\n", [("35", "Graz")], [("36", FEWER), ("37,,", MORE.format(3))]),
    "line break and latin-1": (
        'id,city\n38,"Bad\nIschl"\n39,M\xf6dling\r40,Linz'.encode("latin-1"),
        [("38", "Bad\nIschl"), ("40", "Linz")],
        [("39,M\ufffddling", NOT_UTF8)],
    ),
    "text after a quote": (b'id,city\n17,"a"b\n18,Melk\n', [("18", "Melk")], [('17,"a"b', QUOTES)]),
}
REJECTED_CSV = {
    "wide header": (
        b"id,city" + b",x" * 20_479 + b"\n1,Graz",
        "line 1: its header has 20,481 columns; expected at most",
    ),
    "open at the end": (b'id,city\n20,Graz\n21,"Linz\n', "line 3: a quoted field that begins here is not closed, or"),
    "open in the middle": (b'id,city\n22,Graz\n23,"Linz\n24,Wels\n', "line 3: a quoted field that begins here"),
    "open twice": (b'id,city\n25,"a\nb"\n26,"Linz\n27,Wels\n28,"Enns\n', "line 4: a quoted field that begins here"),
    "header": ("id,städt,city\n29,Graz,Graz\n".encode("latin-1"), "line 1: the header has bytes that are not UTF-8"),
}


REJECTED_JSON = {
    "doubled key": (b'{"id": "60", "city": "a"}\n{"id": "61", "city": "a", "city": "b"}\n', "same name: city;"),
    "by case": (b'{"id": "62", "city": "a"}\n{"id": "63", "City": "b"}\n', "same name: City and city;"),
}
NUMBER = "; a floating-point number has no unique text: declare a numeric type, or `round`"
GOOD_JSON: dict[str, tuple[bytes, Rows, Rows]] = {
    "after the object": (
        b'{"id": "40", "city": "Graz"}\n{"id": "41", "city": "Linz"}{"id": "42", "city": "Wels"}\n',
        [("40", "Graz")],
        [('{"id": "41", "city": "Linz"}{"id": "42", "city": "Wels"}', OBJECT)],
    ),
    "closing bracket": (
        b'{"id": "57", "city": "[a]"}\n{"id": "58", "city": "a"}] {"id": "59"}\n[{"id": "58", "city": "a"}]] [x\n',
        [("57", "[a]")],
        [(text, OBJECT) for text in ('{"id": "58", "city": "a"}] {"id": "59"}', '[{"id": "58", "city": "a"}]] [x')],
    ),
    "array": (b'[{"id": "43", "city": "Enns"}, {"id": 44, "city": 15}]\n', [("43", "Enns"), ("44", "15")], []),
    "after the array": (b'[{"id": "45", "city": "a"}] x\n', [], [('[{"id": "45", "city": "a"}] x', OBJECT)]),
    "comma": (
        b'{"id": "46", "city": "a"}, {"id": "47"}\n',
        [],
        [('{"id": "46", "city": "a"}, {"id": "47"}', OBJECT)],
    ),
    "latin-1": (
        '{"id": "48", "city": "Wien"}\n{"id": "49", "city": "Mödling"}\n'.encode("latin-1"),
        [("48", "Wien")],
        [('{"id": "49", "city": "M\ufffddling"}', NOT_UTF8)],
    ),
    "mark, CRLF, empty lines": (b'\xef\xbb\xbf{"id": "50", "city": "Steyr"}\r\n\r\n', [("50", "Steyr")], []),
    "numbers": (
        b'{"id": 52, "city": "1, 2.50"}\n{"city": 12345678901234567890, "id": -53}\n{"id": 054, "city": 1}\n',
        [("52", "1, 2.50"), ("-53", "12345678901234567890")],
        [('{"id": 054, "city": 1}', OBJECT)],
    ),
    "floating-point numbers": (
        b'{"id": 64, "city": 1.50}\n{"id": 65, "city": 1e3}\n{"id": 66, "city": "1.50"}\n{"id": 67, "city": NaN}\n',
        [("66", "1.50")],
        [
            (f'{{"city":"{text}","id":"{key}"}}', f"city: cannot cast '{text}' to string{NUMBER}")
            for key, text in (("64", "1.50"), ("65", "1e3"), ("67", "NaN"))
        ],
    ),
    "nested values": (
        b'{"id": 68, "city": {"n": 1, "b": [1.50, "1", true, null], "a": "\\u00e4\\n"}}\n{"id": 69, "city": [1]}\n'
        b'{"id": 71, "city": {}}\n{"id": 72, "city": "{\\"n\\": 1.5}"}\n',
        [
            ("68", '{"n":1,"b":[1.50,"1",true,null],"a":"ä\\n"}'),
            ("69", "[1]"),
            ("71", "{}"),
            ("72", '{"n": 1.5}'),
        ],
        [],
    ),
    "surrogates": (
        b'{"id": "73", "city": "\\ud83d\\ude00 \\\\ud800"}\n{"id": "a\\ud800", "city": "x"}\n'
        b'{"id": "74", "city": {"n": "\\udc00"}}\n{"id": "75", "city": "x", "note": "\\ud83d"}\n',
        [("73", "\U0001f600 \\ud800"), ("75", "x")],
        [
            (
                '{"city":"x","id":"a\ufffd","note":null}',
                "id: cannot cast 'a\ufffd' to string; the business key is NULL or cannot be read",
            ),
            (
                '{"city":"{\\"n\\":\\"\ufffd\\"}","id":"74","note":null}',
                'city: cannot cast \'{"n":"\ufffd"}\' to string',
            ),
        ],
    ),
    "undeclared": (
        b'{"id": "76", "city": "x", "note": 1, "Note": {"a": 1, "A": 2}, "twice": 1, "twice": [1], "_metadata": 5}\n'
        b'{"id": "77", "city": "y", "_scd_fields": 5, "_scd_file": "f"}\n',
        [("76", "x"), ("77", "y")],
        [],
    ),
    "quotes in strings": (
        b'{"id": "55", "city": "a\\" 1, 2\\\\"}\n{"id": "56", "city": "it\'s 3"}\n',
        [("55", 'a" 1, 2\\'), ("56", "it's 3")],
        [],
    ),
    "control characters": (
        b'{"id": "61", "city": "Graz"}\n\x01\n \t \r\n\x1a\n',
        [("61", "Graz")],
        [("\x01", OBJECT), ("\x1a", OBJECT)],
    ),
    "Python": (b"{'id': '51', 'city': 'NaN'}\n", [("51", "NaN")], []),
}
BINARY = pa.table({"id": [b"70", b"71", b"7\xfc"], "city": [b"Wien", b"M\xf6dling", b"Linz"]})
CASES = {
    "csv": {name: case[0] for name, case in (GOOD_CSV | REJECTED_CSV).items()},
    "json": {name: case[0] for name, case in (GOOD_JSON | REJECTED_JSON).items()},
}
EXPECTED = {"csv": GOOD_CSV, "json": GOOD_JSON}


def dimension_of(feed: Feed) -> Dimension:
    return Dimension("dim_c", "id", {"city": 2}, Source("crm", feed=feed, bad_row_limit=1.0))


def deliveries(folder: Path, files: dict[str, bytes], kind: str) -> list[Delivery]:
    """Deliveries of files with these contents, by their names."""
    for name, content in files.items():
        (folder / f"{name}.{kind}").write_bytes(content)
    return [Delivery("crm", name, at=AT, path=str(folder / f"{name}.{kind}")) for name in files]


@dataclass
class Loaded:
    """The results of one load of all files of a format."""

    results: dict[str, BatchResult]
    rows: Rows
    bad: Rows


@pytest.fixture(scope="module")
def loaded(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Loaded]:
    """The results of one load of all files, by format."""
    done = {}
    for kind, files in CASES.items():
        folder = tmp_path_factory.mktemp(kind)
        opened = Warehouse(spark, folder / "warehouse")
        all_deliveries = [
            *deliveries(folder, files, kind),
            *([Delivery("crm", "binary", at=AT, frame=BINARY)] * (kind == "json")),
        ]
        result = ingest_and_apply(opened, dimension_of(Feed(format=kind)), all_deliveries)
        rows = opened.table("dim_c").read().select("id", "city").collect()
        bad = opened.table("dim_c_changes").read().where("_kind = 'bad'").select("_bad_row", "_bad_reason").collect()
        batches = {batch.delivery: batch for batch in result.results}
        done[kind] = Loaded(batches, [tuple(row) for row in rows], [tuple(row) for row in bad])
    return done


@pytest.mark.rule("S26")
@pytest.mark.parametrize(("kind", "name"), [(kind, name) for kind, cases in EXPECTED.items() for name in cases])
def test_a_record_is_read_whole_or_is_a_bad_row(loaded: dict[str, Loaded], kind: str, name: str) -> None:
    done, (_, rows, bad) = loaded[kind], EXPECTED[kind][name]
    result = done.results[name]
    assert (result.outcome, result.rows, result.bad_rows) == ("accepted", len(rows) + len(bad), len(bad)), result
    assert set(rows) <= set(done.rows)
    assert set(bad) <= set(done.bad)


@pytest.mark.rule("S26")
def test_no_other_rows_are_loaded(loaded: dict[str, Loaded]) -> None:
    for kind, cases in EXPECTED.items():
        expected = [row for _, rows, _ in cases.values() for row in rows] + [("70", "Wien")] * (kind == "json")
        assert sorted(loaded[kind].rows) == sorted(expected)


@pytest.mark.rule("S26", "S27")
@pytest.mark.parametrize("name", REJECTED_CSV)
def test_a_file_with_ambiguous_rows_is_rejected_with_its_line(loaded: dict[str, Loaded], name: str) -> None:
    result = loaded["csv"].results[name]
    assert (result.outcome, result.code) == ("rejected", "UNREADABLE_DELIVERY")
    assert f"/{name}.csv, {REJECTED_CSV[name][1]}" in result.problem


@pytest.mark.rule("S26")
def test_binary_values_that_are_not_utf8_make_bad_rows(loaded: dict[str, Loaded]) -> None:
    """A later query of their key would end in an error. The quarantine shows them with replacement characters."""
    assert loaded["json"].results["binary"].bad_rows == 2
    reasons = [reason for _, reason in loaded["json"].bad]
    assert "city: cannot cast 'M\ufffddling' to string" in reasons
    assert any(str(reason).startswith("id: cannot cast '7\ufffd' to string; the business key") for reason in reasons)


def test_a_json_object_with_a_key_twice_is_rejected(loaded: dict[str, Loaded]) -> None:
    assert REJECTED_JSON["doubled key"][1] in loaded["json"].results["doubled key"].problem


WINDOWS = [code for code in range(0x80, 0xA0) if code not in (0x80, 0x81, 0x8D, 0x8F, 0x90, 0x9D)]
"""The bytes that are other characters in windows-1252 than in ISO-8859-1, except for that of the euro."""
OPTIONS: dict[str, tuple[dict[str, str], bytes, Rows]] = {
    "separator line.csv": ({}, b"\xef\xbb\xbfsep=;\r\nid;city\r\n1;Graz, Ost\r\n", [("1", "Graz, Ost")]),
    "separator line with tab.csv": ({}, b'"SEP=\t"\nid\tcity\n1\t"a\tb"\n', [("1", "a\tb")]),
    "declared separator line.csv": ({"sep": ";"}, b'sep=;\n"id";"ci\nty"\n1;Graz\n', [("1", "Graz")]),
    "one comment per line.csv": (
        {"comment": "#", "multiLine": "true"},
        b'# so"\n\nid,city\n# and "so\n1,"a\n#b"\n',
        [("1", "a\n#b")],
    ),
    "latin-1.csv": ({"encoding": "ISO-8859-1"}, "id,city\n1,Mödling\n".encode("latin-1"), [("1", "Mödling")]),
    "windows-1252.csv": (
        {"encoding": "windows-1252", "sep": "€"},
        "id€city\n1€".encode("cp1252") + bytes(WINDOWS) + b"\n2\x80a\x81\n3\x80\xa0\xff\n",
        [("1", bytes(WINDOWS).decode("cp1252")), (None, None), ("3", "\xa0ÿ")],
    ),
    "windows-1252 with breaks.csv": (
        {"charset": "Windows-1252"},
        'id,city\n1,"„Groß“ – \r\n5 €"\n'.encode("cp1252") + b"2,\x9d\n",
        [("1", "„Groß“ – \r\n5 €"), (None, None)],
    ),
    "utf-16.csv": ({"encoding": "UTF-16"}, "id,city\n1,Mödling\n".encode("utf-16"), [("1", "Mödling")]),
    "escape.csv": ({"escape": "\\"}, b'id,city\n1,"say \\"hi\\""\n', [("1", 'say "hi"')]),
    "escape and break.csv": ({"escape": "\\"}, b'id,city\n1,"a \\"b\nc"\n2,d\n', [("1", 'a "b\nc'), ("2", "d")]),
    "no escape.csv": ({"escape": ""}, b'id,city\n1,"Graz, Ost\\"\n', [("1", "Graz, Ost\\")]),
    "tab.csv": ({"sep": "\\t"}, b'id\tcity\n1\t"Graz\t"\n', [("1", "Graz\t")]),
    "two characters.csv": ({"delimiter": "||"}, b"id||city\n1||Graz|\n", [("1", "Graz|")]),
    "no header.csv": ({"header": "false"}, b"1,Graz\n2,Linz\n", [("1", "Graz"), ("2", "Linz")]),
    "no header but a break.csv": ({"header": "false"}, b'1,"a\nb"\n2,Linz\n', [("1", "a\nb"), ("2", "Linz")]),
    "lenient.csv": (
        {"unescapedQuoteHandling": "STOP_AT_CLOSING_QUOTE"},
        b'"id","city"\n1,"Graz"\n',
        [("1", "Graz")],
    ),
    "comment.csv": ({"comment": "#"}, b'# it is "so\nid,city\n#\n1,Graz\n', [("1", "Graz")]),
    "no quote.csv": ({"quote": ""}, b'id,city\n1,"Graz\n', [("1", '"Graz')]),
    "one line.csv": (
        {"multiLine": "false"},
        b'id,city\n1,Graz\n2,"a\nb"\n',
        [("1", "Graz"), (None, None), (None, None)],
    ),
    "dropped.csv": ({"mode": "DROPMALFORMED"}, b"id,city\n1,Graz\n2\n", [("1", "Graz")]),
    "lines.csv": ({"lineSep": ";"}, b'id,city;1,Graz;2,"a;b";', [("1", "Graz"), ("2", "a;b")]),
    "blanks.csv": ({"ignoreLeadingWhiteSpace": "true"}, b'id,city\n1, "Graz, Ost"\n', [("1", "Graz, Ost")]),
    "pretty.json": ({"multiLine": "true"}, b'{\n "id": 1,\n "city": "Graz"\n}\n', [("1", "Graz")]),
    "two pretty ones.json": ({"multiLine": "true"}, b'{"id": 1,\n"city": "Graz"}\n{"id": 2}', [()]),
    "utf-16.json": ({"encoding": "UTF-16LE"}, '{"id": 1, "city": "ö"}\n'.encode("utf-16-le"), [("1", "ö")]),
    "windows-1252.json": (
        {"encoding": "windows-1252"},
        '{"id": 1, "city": "„5 €“"}\n{"id": 2, "city": "\x81"}\n'.encode("cp1252", "replace").replace(b"?", b"\x81"),
        [("1", "„5 €“"), (None, None)],
    ),
    "latin-1.json": ({"encoding": "ISO-8859-1"}, '{"id": 1, "city": "ö"}'.encode("latin-1"), [("1", "ö")]),
}


@pytest.mark.parametrize("name", OPTIONS)
def test_the_options_of_a_channel_override_the_defaults(spark: SparkSession, tmp_path: Path, name: str) -> None:
    """No row is lost: one that does not fit the columns is a row of NULLs."""
    options, content, expected = OPTIONS[name]
    path = tmp_path / name
    path.write_bytes(content)
    rows = read_path(spark, Feed(str(path), options=options), [str(path)])
    names = [each for each in ("id", "city", "ci\nty", "_c0", "_c1") if each in rows.columns]
    assert sorted((tuple(row) for row in rows.select(*names).collect()), key=str) == sorted(expected, key=str)


@pytest.mark.rule("S26")
def test_a_header_with_bytes_that_are_not_in_the_declared_encoding_is_rejected(
    spark: SparkSession, tmp_path: Path
) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes(b"id,city\x81\n1,Graz\n")
    with pytest.raises(SourceDataError, match="line 1: the header has bytes that are not windows-1252"):
        read_path(spark, Feed(str(path), options={"encoding": "windows-1252"}), [str(path)])


def test_names_of_nested_json_fields_are_in_the_declared_encoding(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_bytes('{"preis €": {"in €": 1}}\n'.encode("cp1252"))
    channel = Feed(str(path), options={"encoding": "windows-1252"})
    (nested,) = nested_columns(spark, channel, [str(path)], ["preis €"]).values()
    assert nested.simpleString() == "struct<in €:string>"


@pytest.mark.slow(3)
@pytest.mark.rule("S26")
def test_declared_separators_are_those_of_text_but_not_of_numbers_in_json(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text(
        '{"id": "1", "n": "1.234,5", "is_on": "J"}\n{"id": "2", "n": 1.5, "is_on": "N"}\n{"id": "3", "n": "1.5"}\n'
        '{"id": "4", "is_on": "j"}\n'
    )
    columns = {"n": Column(decimal=",", grouping="."), "is_on": Column(true_values="J", false_values="N")}
    attributes = {
        "n": Attribute(2, "decimal(10,2)", missing="null"),
        "is_on": Attribute(2, "boolean", missing="null"),
    }
    source = Source("crm", feed=Feed(format="json"), columns=columns, bad_row_limit=1.0)
    warehouse = Warehouse(spark, tmp_path / "warehouse")
    ingest_and_apply(warehouse, Dimension("dim_c", "id", attributes, source), [Delivery("crm", "a", at=AT, path=path)])
    rows = warehouse.table("dim_c").read().select("id", "n", "is_on").collect()
    assert sorted(map(tuple, rows)) == [("1", Decimal("1234.50"), True), ("2", Decimal("1.50"), False)]
    bad = warehouse.table("dim_c_changes").read().where("_kind = 'bad'").select("_bad_reason").collect()
    assert sorted(row[0] for row in bad) == [
        "is_on: cannot cast 'j' to boolean, written as J or N",
        "n: cannot cast '1.5' to decimal(10,2), written as 1.234,5",
    ]


SKIPPED: dict[str, tuple[dict[str, int], bytes, Rows]] = {
    "footer": ({"skip_footer": 2}, b"id,city\n1,Graz\n2,Linz\n\n(2 rows affected)\n", [("1", "Graz"), ("2", "Linz")]),
    "footer without an end": ({"skip_footer": 1}, b"id,city\r1,Graz\r2 rows", [("1", "Graz")]),
    "title": ({"skip_lines": 2}, b'The "list\r\n\r\nid,city\r\n1,"a\rb"\r\n', [("1", "a\rb")]),
    "both": ({"skip_lines": 1, "skip_footer": 1}, b"Of 2024\n\nid,city\n1,Graz\nend,", [("1", "Graz")]),
    "separator line": ({"skip_lines": 1}, b"Of 2024\nsep=;\nid;city\n1;Graz\n", [("1", "Graz")]),
    "only a header": ({"skip_lines": 1, "skip_footer": 1}, b"Of 2024\nid,city\nend\n", []),
}


@pytest.mark.rule("S26", "S27")
@pytest.mark.parametrize("name", SKIPPED)
def test_declared_lines_before_the_header_and_at_the_end_are_not_read(
    spark: SparkSession, tmp_path: Path, name: str
) -> None:
    numbers, content, expected = SKIPPED[name]
    path = tmp_path / "c.csv"
    path.write_bytes(content)
    rows = read_path(spark, Feed(str(path), **numbers), [str(path)])
    assert [tuple(row) for row in rows.select("id", "city").orderBy("id").collect()] == expected


@pytest.mark.slow
@pytest.mark.rule("S27")
def test_a_snapshot_with_a_declared_footer_deletes_what_it_omits(spark: SparkSession, tmp_path: Path) -> None:
    """The footer would be a bad row without a key, because of which the snapshot retires no entities."""
    snapshot = Snapshot(str(tmp_path / "c_{date}.csv"), skip_footer=2)
    for day, ids in ((1, "abc"), (2, "ac")):
        rows = "".join(f"{name},Graz\n" for name in ids)
        (tmp_path / f"c_2024-01-0{day}.csv").write_text(f"id,city\n{rows}\n({len(ids)} rows affected)\n")
    dimension = Dimension("dim_c", "id", {"city": 2}, Source("crm", snapshot))
    opened = Warehouse(spark, tmp_path / "warehouse")
    done = ingest_and_apply(opened, dimension, discover(dimension, spark, base=tmp_path))
    assert [(batch.outcome, batch.bad_rows, batch.deleted) for batch in done.results] == [
        ("accepted", 0, 0),
        ("accepted", 0, 1),
    ]
    current = opened.table("dim_c").read().where("current_flag").select("id").collect()
    assert sorted(row["id"] for row in current) == ["a", "c"]


UNREADABLE: dict[str, tuple[Feed, bytes, str]] = {
    "too few lines": (
        Feed(format="csv", skip_lines=1, skip_footer=1),
        b"Of 2024\nid,city\n",
        "`skip_lines` and `skip_footer` leave no line for a header",
    ),
    "another separator": (
        Feed(format="csv", options={"sep": ","}),
        b"sep=;\nid;city\n1;Graz\n",
        "line 1: it declares the separator ';', but the channel declares ','",
    ),
    "an open quote below a title": (
        Feed(format="csv", skip_lines=2),
        b'The "list"\n\nid,city\r1,"Graz',
        "line 4: a quoted field that begins here is not closed",
    ),
}


@pytest.mark.parametrize("name", UNREADABLE)
def test_a_file_without_its_declared_lines_or_separator_is_not_read(
    spark: SparkSession, tmp_path: Path, name: str
) -> None:
    feed, content, problem = UNREADABLE[name]
    path = tmp_path / "c.csv"
    path.write_bytes(content)
    with pytest.raises(SourceDataError, match=re.escape(problem)):
        read_path(spark, feed, [str(path)])


@pytest.mark.rule("S26")
def test_files_of_one_delivery_declare_the_same_separator(spark: SparkSession, tmp_path: Path) -> None:
    """Without headers, the line `sep=` of the first file would let the first row of the second be skipped."""
    (tmp_path / "1.csv").write_text("sep=;\n1;Graz\n")
    (tmp_path / "2.csv").write_text("2;Linz\n3;Wels\n")
    feed = Feed(format="csv", options={"header": "false"})
    with pytest.raises(SourceDataError, match=r"2\.csv, line 1: its line `sep=` is not that of"):
        read_path(spark, feed, [str(tmp_path)])
