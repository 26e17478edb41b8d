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
| valid                       | invalid                | line | field                    | code              |
| --------------------------- | ---------------------- | ---- | ------------------------ | ----------------- |
| business_key: id            | business_key: [id, id] | 2    | business_key             | NAME_IN_USE       |
| crm: {snapshot              | crm: {snapshots        | 4    | sources.crm.snapshots    | UNKNOWN_OPTION    |
| customers_{date}.csv        | customers.csv          | 4    | sources.crm.snapshot.path | PATH_PLACEHOLDER |
| Europe/Oslo                 | Europe/Olso            | 4    | sources.crm.timezone     | INVALID_TIME_ZONE |
| existence: true             | existence: false       | 3    | sources                  | EXISTENCE_SOURCE  |
| type: date                  | type: dat              | 7    | attributes.born.type     | INVALID_TYPE      |
| scd: 2,                     | scd: 4,                | 8    | attributes.city.scd      | INVALID_SCD_TYPE  |
| source: erp                 | source: sap            | 8    | attributes.city.source   | UNKNOWN_NAME      |
| city: {scd: 2, source: erp} | city: {scd: 2}         | 8    | attributes.city          | ATTRIBUTE_SOURCE  |
| city: {scd                  | effective_to: {scd     | 8    | attributes.effective_to  | NAME_IN_USE       |
"""


@rule("S28")
@pytest.mark.parametrize("line", parse_table(ERRORS), ids=lambda line: line["invalid"])
def test_an_error_names_the_location_and_the_fix(line: dict[str, str]) -> None:
    assert line["valid"] in DECLARATION
    with pytest.raises(DeclarationError) as raised:
        parse(DECLARATION.replace(line["valid"], line["invalid"]), "d.yaml")
    error = raised.value.errors[0]
    assert (error.location, error.field, error.code) == (f"d.yaml:{line['line']}", line["field"], line["code"])
    assert error.fix


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
