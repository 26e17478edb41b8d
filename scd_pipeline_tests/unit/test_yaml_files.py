"""YAML declares the same dimensions as Python, from texts, files and folders."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import pytest

from scd_pipeline.declaration import (
    Attribute,
    Begin,
    Column,
    Dimension,
    ExpectedValue,
    Feed,
    SignOff,
    Snapshot,
    Source,
    parse,
    read_dimension,
    read_dimensions,
)
from scd_pipeline_tests.unit.test_yaml_faults import located_codes

SHORT = """\
dimension: dim_customer
business_key: customer_id
sources:
  crm:
    snapshot: landing/customers_{date}.csv
attributes:
  birthday: {scd: 0, type: date}
  email: {scd: 1, personal: true}
  city: 2
  segment: 3
  status: {scd: 6, previous: true}
"""

LONG = """\
# Every word there is.
dimension: dim_customer
business_key: {region: string, customer_id: long}
surrogate_key: customer_sk
key_salt: "1"
open_end: 3000-01-01
begin:
  at: 2000-01-01
  for_first_changes_until: 2020-01-01 00:00:00
owner: sales@example.com
group: sales
description: |
  Who buys.
sign_offs:
  business: {by: Ann Lee, date: 2024-01-31}
  compliance: {by: Audit team, date: "2024-02-29"}
audit_retention_years: 7
archive_after_years: 10
product_card: https://wiki.example.com/customers
expected_values:
  customers_of_oslo: {as_of: 2020-06-30, expression: "count_if(city = 'OSLO')", value: 42}
table_properties:
  delta.enableChangeDataFeed: true
  delta.logRetentionDuration: interval 60 days
change_types: {INSERT: new, LOGICAL_DELETE: deleted}
sources:
  crm:
    existence: yes
    timezone: Europe/Oslo
    bad_row_limit: 0
    retire_guard: 0.5
    overdue_after_hours: 30
    snapshot:
      path: landing/{datetime}/customers.txt
      format: csv
      options: {header: "true", sep: "|"}
      scope: region
      unreadable_keys: retire
    columns:
      region: REGION
      customer_id: {from: [CUST_NO, cust no], default: -1, round: true}
      birthday: {from: BORN, format: dd.MM.yyyy, default: 1900-01-01}
      joined: {unit: ms}
      rank: [RANK, Position]
      city: {expression: "upper(city)"}
  web:
    attributes: [email, phone]
    feed:
      path: lake/changes
      versions: true
      effective_at: changed_at
      effective_at_format: yyyy-MM-dd HH:mm:ss
      sequence: lsn
      sequence_type: timestamp
      deletes: op = 'D'
      ties: delete_wins
      updates: partial
      nulls: not_provided
      reason: why
      actor: who
      correlation_id: trace
attributes:
  birthday: {scd: 0, type: date, source: crm, personal: true}
  email: {scd: 1, former_names: [mail, e_mail], description: Where to write}
  phone: {scd: 3, missing: not_provided}
  city: {scd: 6, previous: true, source: crm}
  fax: {scd: 2, retired: true}
  joined: {scd: 0, type: timestamp, source: crm, missing: null}
  rank: {scd: 1, type: int, source: crm, on_bad_value: null}
"""


def test_five_attributes_need_at_most_fifteen_lines() -> None:
    (dimension,) = parse(SHORT)
    assert len(dimension.attributes) == 5
    assert len(SHORT.splitlines()) <= 15


def test_the_short_form_equals_its_python_form() -> None:
    attributes = {
        "birthday": Attribute(0, "date"),
        "email": Attribute(1, personal=True),
        "city": 2,
        "segment": 3,
        "status": Attribute(6, previous=True),
    }
    source = Source("crm", snapshot="landing/customers_{date}.csv")
    assert parse(SHORT) == (Dimension("dim_customer", "customer_id", attributes, source),)


def long_in_python() -> Dimension:
    crm = Source(
        "crm",
        snapshot=Snapshot(
            path="landing/{datetime}/customers.txt",
            format="csv",
            options={"sep": "|", "header": "true"},
            scope=("region",),
            unreadable_keys="retire",
        ),
        existence=True,
        timezone="Europe/Oslo",
        columns={
            "region": "REGION",
            "customer_id": Column(["CUST_NO", "cust no"], default=-1, round=True),
            "birthday": Column("BORN", format="dd.MM.yyyy", default="1900-01-01"),
            "joined": Column(unit="ms"),
            "rank": ["RANK", "Position"],
            "city": Column(expression="upper(city)"),
        },
        bad_row_limit=0,
        retire_guard=0.5,
        overdue_after_hours=30,
    )
    feed = Feed(
        path="lake/changes",
        versions=True,
        effective_at="changed_at",
        effective_at_format="yyyy-MM-dd HH:mm:ss",
        sequence="lsn",
        sequence_type="timestamp",
        deletes="op = 'D'",
        ties="delete_wins",
        updates="partial",
        nulls="not_provided",
        reason="why",
        actor="who",
        correlation_id="trace",
    )
    return Dimension(
        "dim_customer",
        {"region": "string", "customer_id": "bigint"},
        {
            "birthday": Attribute(0, "date", source="crm", personal=True),
            "email": Attribute(1, former_names=["mail", "e_mail"], description="Where to write"),
            "phone": Attribute(3, missing="not_provided"),
            "city": Attribute(6, previous=True, source="crm"),
            "fax": Attribute(2, retired=True),
            "joined": Attribute(0, "timestamp", source="crm", missing="null"),
            "rank": Attribute(1, "int", source="crm", on_bad_value="null"),
        },
        [crm, Source("web", feed=feed, attributes=["email", "phone"])],
        surrogate_key="customer_sk",
        key_salt="1",
        open_end="3000-01-01 00:00:00",
        begin=Begin("2000-01-01", "2020-01-01"),
        owner="sales@example.com",
        description="Who buys.\n",
        group="sales",
        sign_offs={
            "business": SignOff("Ann Lee", date(2024, 1, 31)),
            "compliance": SignOff("Audit team", "2024-02-29"),
        },
        audit_retention_years=7,
        archive_after_years=10,
        product_card="https://wiki.example.com/customers",
        expected_values={"customers_of_oslo": ExpectedValue(date(2020, 6, 30), "count_if(city = 'OSLO')", 42)},
        table_properties={"delta.enableChangeDataFeed": True, "delta.logRetentionDuration": "interval 60 days"},
        change_types={"INSERT": "new", "LOGICAL_DELETE": "deleted"},
    )


def test_every_option_equals_its_python_form() -> None:
    (dimension,) = parse(LONG, "c.yaml")
    assert dimension == long_in_python()
    assert dimension.origin == "c.yaml:2"


def test_a_table_without_windows() -> None:
    text = "{dimension: d, business_key: [k], sources: {s: {feed: {}}}, attributes: {a: 1}, deleted_at: yes}"
    source = Source("s", feed=Feed())
    assert parse(text) == (Dimension("d", ["k"], {"a": 1}, source, deleted_at=True),)


def test_several_documents_and_empty_ones() -> None:
    second = SHORT.replace("dim_customer", "dim_client")
    dimensions = parse(f"---\n{SHORT}---\n---\n{second}...\n", "c.yaml")
    assert [(d.name, d.origin) for d in dimensions] == [
        ("dim_customer", "c.yaml:2"),
        ("dim_client", "c.yaml:15"),
    ]


def test_anchors_are_read() -> None:
    text = SHORT.replace("{scd: 0, type: date}", "&once {scd: 0, type: date}").replace("city: 2", "city: *once")
    (dimension,) = parse(text)
    assert dimension.attribute("city").type == "date"


def test_quoted_names_are_names() -> None:
    (dimension,) = parse(SHORT.replace("city:", '"no":'))
    assert "no" in dimension.attribute_names


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("snapshot: landing/customers_{date}.csv", 'feed: {path: "c_{date}.csv", deletes: op < 0, sequence: number}'),
        ("{scd: 0, type: date}", "{scd: 0, description: share < 5 percent, type: date}"),
        ("attributes:", "expected_values: {few: {as_of: 2024-12-31, expression: count(*) < 5, value: 3}}\nattributes:"),
    ],
)
def test_a_text_in_braces_may_contain_a_bracket(old: str, new: str) -> None:
    """Unlike a column type that a comma cuts off, it is followed by another option with a value."""
    assert old in SHORT
    assert parse(SHORT.replace(old, new))


def test_hidden_files_are_skipped(tmp_path: Path) -> None:
    """Emacs locks a file by a dangling link, and macOS stores attributes of files in files of their own."""
    (tmp_path / "dim_customer.yaml").write_text(SHORT, encoding="utf-8")
    (tmp_path / ".#dim_customer.yaml").symlink_to("user@host.1234")
    (tmp_path / "._dim_customer.yaml").write_bytes(b"\x00\x05\xff")
    assert [dimension.name for dimension in read_dimensions(tmp_path)] == ["dim_customer"]


def test_files_and_folders(tmp_path: Path) -> None:
    (tmp_path / "b.yml").write_text(SHORT)
    (tmp_path / "a.YAML").write_bytes(b"\xef\xbb\xbf" + LONG.replace("dim_customer", "dim_person").encode())
    (tmp_path / "notes.txt").write_text("no declaration")
    assert [d.name for d in read_dimensions(tmp_path)] == ["dim_person", "dim_customer"]
    assert read_dimension(str(tmp_path / "b.yml")).origin == f"{tmp_path / 'b.yml'}:1"


FILES: dict[str, tuple[dict[str, bytes], str, str, str, str]] = {
    # the files in a folder, the path that is read, and the location in it, the field and the code of the error
    "missing file": ({}, "c.yaml", "/c.yaml", "file", "UNREADABLE_FILE"),
    "folder without declarations": ({}, "", "", "file", "NOTHING_DECLARED"),
    "not UTF-8": ({"c.yaml": b"dimension: d\n\xff\xfe"}, "c.yaml", "/c.yaml:2", "file", "UNREADABLE_FILE"),
    "two dimensions in a file": (
        {"c.yaml": f"{SHORT}---\n{SHORT.replace('dim_customer', 'dim_client')}".encode()},
        "c.yaml",
        "/c.yaml",
        "dimension",
        "ONE_DIMENSION",
    ),
}


def read_files(folder: Path, name: str) -> Dimension:
    """Write the files of a case into the folder, and return the dimension that they declare."""
    files, path, *_ = FILES[name]
    for file, content in files.items():
        (folder / file).write_bytes(content)
    return read_dimension(folder / path)


@pytest.mark.parametrize("name", FILES)
def test_an_unreadable_file_or_folder_is_reported(tmp_path: Path, name: str) -> None:
    _, _, location, field, code = FILES[name]
    assert located_codes(lambda: read_files(tmp_path, name)) == [(f"{tmp_path}{location}", field, code)]


def test_the_faults_of_all_files_are_reported_at_once(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(SHORT.replace("city: 2", "city: 9"))
    (tmp_path / "b.yaml").write_bytes(b"\xff")
    (tmp_path / "c.yaml").write_text(SHORT.replace("dim_customer", "DIM_CLIENT"))
    (tmp_path / "d.yaml").write_text(SHORT.replace("dim_customer", "dim_client"))
    assert located_codes(lambda: read_dimension(tmp_path)) == [
        (f"{tmp_path}/a.yaml:9", "attributes.city.scd", "INVALID_SCD_TYPE"),
        (f"{tmp_path}/b.yaml:1", "file", "UNREADABLE_FILE"),
        (f"{tmp_path}/d.yaml:1", "dimension", "NAME_IN_USE"),
    ]
