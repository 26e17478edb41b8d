"""S28: an invalid declaration is an error with file, line, field and fix."""

import inspect

import pytest

from scd_pipeline.declaration import parse
from scd_pipeline.errors import DeclarationError
from scd_pipeline_tests.semantics.specification import rule
from scd_pipeline_tests.text_tables import parse as parse_table

DECLARATION = inspect.cleandoc(
    """
    dimension: dim_customer
    business_key: id
    sources:
      crm: {snapshot: "landing/customers_{date}.csv", timezone: Europe/Oslo}
      erp: {feed: {}, existence: true}
    attributes:
      born: {scd: 0, type: date, source: crm}
      city: {scd: 2, source: erp}
    """
)

ERRORS = """
| valid                       | invalid                | error in d.yaml                                           |
| --------------------------- | ---------------------- | --------------------------------------------------------- |
| business_key: id            | business_key: [id, id] | 2: business_key: column id is in the business key         |
| crm: {snapshot              | crm: {snapshots        | 4: sources.crm.snapshots: 'snapshots' is not an     |
| customers_{date}.csv        | customers.csv          | 4: sources.crm.snapshot.path: nothing in                  |
| Europe/Oslo                 | Europe/Olso            | 4: sources.crm.timezone: 'Europe/Olso' is not a time zone |
| existence: true             | existence: false       | 3: sources: none of the sources decides                   |
| type: date                  | type: dat              | 7: attributes.born.type: 'dat' is not a type              |
| scd: 2,                     | scd: 4,                | 8: attributes.city.scd: type 4 is the layout of a table   |
| source: erp                 | source: sap            | 8: attributes.city.source: 'sap'                          |
| city: {scd: 2, source: erp} | city: {scd: 2}         | 8: attributes.city                                        |
| city: {scd                  | effective_to: {scd     | 8: attributes.effective_to: column effective_to           |
"""


@rule("S28")
@pytest.mark.parametrize("line", parse_table(ERRORS), ids=lambda line: line["invalid"])
def test_an_error_names_the_location_and_the_fix(line: dict[str, str]) -> None:
    valid, invalid, error = line.values()
    assert valid in DECLARATION
    with pytest.raises(DeclarationError) as raised:
        parse(DECLARATION.replace(valid, invalid), "d.yaml")
    assert str(raised.value).startswith(f"d.yaml:{error}")


@rule("S28")
def test_all_errors_are_reported_at_once() -> None:
    text = DECLARATION.replace("scd: 0", "scd: 9").replace("scd: 2", "scd: 5").replace("Oslo", "Olso")
    with pytest.raises(DeclarationError) as raised:
        parse(text, "d.yaml")
    assert [error.location for error in raised.value.errors] == ["d.yaml:4", "d.yaml:7", "d.yaml:8"]


@rule("S28")
def test_a_valid_declaration_is_accepted() -> None:
    (dimension,) = parse(DECLARATION)
    assert dimension.existence_source.name == "erp"
