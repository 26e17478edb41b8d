"""The component in another project: one line of YAML, and errors when the definitions load (S28)."""

from __future__ import annotations

import traceback
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
from dagster.components.core.package_entry import discover_entry_point_package_objects
from dagster.components.core.snapshot import get_package_entry_snap
from dagster.components.testing.utils import create_defs_folder_sandbox
from dagster_shared.serdes.objects.package_entry import ComponentFeatureData, ScaffoldTargetTypeData

from scd_pipeline.components import ScdDimension, WarehouseResource
from scd_pipeline.components.assets import table_assets
from scd_pipeline.components.delivery_selection import DeliverySelection
from scd_pipeline.declaration import Attribute, Declarations, Dimension, Fact, Feed, Role, Snapshot, Source
from scd_pipeline.defs.dimensions import template_vars
from scd_pipeline.errors import ConflictError, SetupError
from scd_pipeline.load.retry import Retry
from scd_pipeline.operations.dagster_names import ATTEMPTS_TAG
from scd_pipeline_tests.orchestration.fake_loads import NoWarehouse
from scd_pipeline_tests.semantics.specification import requirement

DECLARATION = """\
dimension: dim_customer
business_key: id
sources: {crm: {snapshot: "in/customers_{date}.csv"}}
attributes: {city: %s}
"""


def keys(folder: Path, text: str, declaration: str = "customers.yaml") -> set[str]:
    """Return the asset keys of a project with one component, whose folder contains the declaration."""
    with create_defs_folder_sandbox() as sandbox:
        component_folder = sandbox.scaffold_component(
            component_cls=ScdDimension,
            defs_path=folder,
            defs_yaml_contents={
                "type": "scd_pipeline.components.ScdDimension",
                "attributes": {"declaration": declaration},
            },
        )
        (component_folder / "customers.yaml").write_text(text, encoding="utf-8")
        with sandbox.load_component_and_build_defs(defs_path=component_folder) as (_, defs):
            return {key.to_user_string() for asset in defs.assets or () for key in asset.keys}  # type: ignore[union-attr]


def test_a_declaration_in_the_component_folder_becomes_assets() -> None:
    assert keys(Path("customers"), DECLARATION % 2) == {
        "dim_customer",
        "dim_customer_changes",
        "dim_customer_audit",
        "dim_customer_status",
    }


def test_an_invalid_declaration_is_rejected_with_file_and_line() -> None:
    with pytest.raises(Exception, match="Error while building definitions") as error:
        keys(Path("customers"), DECLARATION % 5)
    message = "".join(traceback.format_exception(error.value))
    assert "customers.yaml:4: attributes.city" in message


def test_a_declaration_with_a_warning_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    keys(Path("customers"), DECLARATION % "1, name: 1")
    assert ["customers.yaml:1: attributes: all 2 attributes have SCD type 1" in text for text in caplog.messages] == [
        True
    ]


def test_no_declaration_defines_no_asset() -> None:
    assert keys(Path("customers"), "", declaration="") == set()


@pytest.mark.parametrize(
    ("owner", "is_accepted"),
    [
        ("", False),
        ("team:sales", True),
        ("team:data-eng", True),
        ("team:Data team", True),
        ("ann@x.com", True),
        ("Data team", False),
        ("o'brien@example.com", False),
        ("ann@x.technology", False),
    ],
)
def test_an_owner_that_dagster_does_not_accept_is_metadata(owner: str, is_accepted: bool) -> None:
    source = Source("s", snapshot="x_{date}.csv")
    assets = table_assets(Dimension("dim_customer", "id", {"a": Attribute(2)}, source, owner=owner))
    assert [list(spec.owners) for spec in assets.specs] == [[owner] if is_accepted else []] * 3
    assert [spec.metadata.get("owner", "") for spec in assets.specs] == ["" if is_accepted else owner] * 3


def test_dimensions_and_facts_have_groups_of_their_own() -> None:
    """A declaration can name another one."""
    source = Source("s", snapshot="x_{date}.csv")
    customer = Dimension("dim_customer", "id", {"city": 2}, source)
    sale = Fact("fct_sale", {"n": "int"}, "at", {"customer": customer}, Source("till", feed=Feed("y_{date}.csv")))
    declared = Dimension("dim_customer", "id", {"city": 2}, source, group="crm")
    for table, group in ((customer, "dimensions"), (sale, "facts"), (declared, "crm")):
        assert {spec.group_name for spec in table_assets(table).specs} == {group}


def test_the_table_lists_its_child_tables() -> None:
    source, labels = Source("crm", snapshot="{date}.json"), Attribute(2, "array<struct<name:string>>")
    assets = table_assets(Dimension("dim_customer", "id", {"labels": labels}, source, child_tables="labels"))
    assert assets.metadata_by_key[dg.AssetKey("dim_customer")]["child_tables"] == "dim_customer__labels"


def test_the_table_links_to_its_product_card() -> None:
    source, card = Source("s", snapshot="x_{date}.csv"), "https://wiki.example.com/customers"
    assets = table_assets(Dimension("dim_customer", "id", {"a": Attribute(2)}, source, product_card=card))
    metadata = assets.metadata_by_key[dg.AssetKey("dim_customer")]
    assert metadata["product_card"] == dg.MetadataValue.url(card)


def test_dagster_discovers_the_component() -> None:
    """As `dg` lists the components of installed packages, with the schema by which it checks a defs.yaml."""
    entries = {key.to_typename(): (key, point) for key, point in discover_entry_point_package_objects().items()}
    snapshot = get_package_entry_snap(*entries["scd_pipeline.components.ScdDimension"])
    (component,) = [data for data in snapshot.feature_data if isinstance(data, ComponentFeatureData)]
    assert component.schema is not None and not component.schema["additionalProperties"]
    assert {"declaration", "load_cron", "maintenance_cron", "timezone"} <= set(component.schema["properties"])
    assert any(isinstance(data, ScaffoldTargetTypeData) for data in snapshot.feature_data)


def test_overdue_sources_have_an_asset_check() -> None:
    """In addition to the freshness policy, which a run without new deliveries satisfies."""
    customer = Dimension("dim_customer", "id", {"city": 2}, Source("crm", snapshot="in/customers_{date}.csv"))
    declared = Declarations((customer,), ())
    definitions = ScdDimension(overdue_after_hours=30).definitions(declared)
    checks = {key.to_user_string() for check in definitions.asset_checks or () for key in check.check_keys}
    assert "dim_customer_changes:sources_are_on_time" in checks
    (asset,) = [a for a in definitions.assets or () if dg.AssetKey("dim_customer") in a.keys]
    assert asset.specs_by_key[dg.AssetKey("dim_customer")].freshness_policy is not None
    assert len(ScdDimension().definitions(declared).asset_checks or ()) == 1, "without a limit no source is overdue"


@requirement("F50")
def test_the_ops_of_a_component_make_its_number_of_attempts(monkeypatch: pytest.MonkeyPatch) -> None:
    """The checklist reads the number in the tags of the ops."""
    customer = Dimension("dim_customer", "id", {"city": 2}, Source("crm", snapshot=Snapshot()))
    sale = Fact("fct_sale", {"sale": "int"}, "at", {"customer": Role(customer)}, Source("shop", feed=Feed()))
    passed: list[int] = []

    def load(*_: Any, retry: Retry, **__: Any) -> None:
        passed.append(retry.attempts)
        raise ConflictError("WRITE_CONFLICT", "table dim_customer", number=7, previous=6)

    nothing = DeliverySelection({}, 0, {}, {}, (), {}, is_everything=False)
    monkeypatch.setattr("scd_pipeline.components.assets.load_table", load)
    monkeypatch.setattr("scd_pipeline.components.load_step.resolve_partitions", lambda *_, **__: nothing)
    for component, attempts in ((ScdDimension(), 5), (ScdDimension(attempts=8), 8)):
        definitions = component.definitions(Declarations((customer,), (sale,)))
        steps = [asset for asset in definitions.assets or () if isinstance(asset, dg.AssetsDefinition)]
        tags = {step.op.name: step.op.tags[ATTEMPTS_TAG] for step in steps if ATTEMPTS_TAG in step.op.tags}
        assert tags == {"load_dim_customer": str(attempts), "load_fct_sale": str(attempts)}
        assets = [step for step in steps if step.op.name in tags]
        resources = {"warehouse": NoWarehouse(path="/nowhere")}
        for name in ("dim_customer", "fct_sale"):
            selection = dg.AssetSelection.assets(name)
            assert not dg.materialize(assets, selection=selection, resources=resources, raise_on_error=False).success
    assert passed == [5, 5, 8, 8]


@requirement("F50")
@pytest.mark.parametrize("attempts", [0, -1, "many"])
def test_another_number_of_attempts_is_rejected(attempts: Any) -> None:
    with pytest.raises(ValueError, match=r"attempts\n.*(expected at least 1; change|a valid integer)"):
        ScdDimension(attempts=attempts)


@pytest.mark.parametrize("hours", [0, -1, float("nan"), float("inf"), "abc"])
def test_invalid_overdue_hours_are_rejected(hours: Any) -> None:
    with pytest.raises(ValueError, match=r"overdue_after_hours\n.*(expected at least 0.02 and|a valid number)"):
        ScdDimension(overdue_after_hours=hours)


def test_invalid_overdue_hours_in_the_environment_name_the_variable(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("SCD_OVERDUE_HOURS", "abc")
    with pytest.raises(SetupError) as error:
        template_vars.overdue_after_hours()
    assert (error.value.code, error.value.location) == ("OVERDUE_HOURS", "SCD_OVERDUE_HOURS")


def test_a_source_may_declare_its_own_overdue_hours() -> None:
    """The jobs of the checks and of the status run the check."""
    source = Source("crm", snapshot="in/customers_{date}.csv", overdue_after_hours=26)
    definitions = ScdDimension().definitions(Declarations((Dimension("dim_customer", "id", {"city": 2}, source),)))
    (key,) = [
        key for check in definitions.asset_checks or () for key in check.check_keys if key.name == "sources_are_on_time"
    ]
    specs = [spec for check in definitions.asset_checks or () for spec in check.check_specs if spec.key == key]
    assert "crm every 26 hours" in str(specs[0].description)
    resources = {"warehouse": WarehouseResource(path="nowhere")}
    location = dg.Definitions.merge(definitions, dg.Definitions(resources=resources))
    for job in ("check_dim_customer_job", "scd_status_job"):
        assert key in location.resolve_job_def(job).asset_layer.asset_graph.asset_check_keys


def test_checks_link_to_their_rules() -> None:
    """In their descriptions, if the address of the docs is configured."""
    source = Source("crm", snapshot="in/customers_{date}.csv")
    declared = Declarations((Dimension("dim_customer", "id", {"city": 2}, source),))
    for url, text in (("", "(S2)"), ("https://docs/", "([S2](https://docs/semantics.md#s2))")):
        definitions = ScdDimension(docs_url=url).definitions(declared)
        (spec,) = [
            s for c in definitions.asset_checks or () for s in c.check_specs if s.name == "windows_do_not_overlap"
        ]
        assert spec.description == f"The validity windows of one entity do not overlap {text}."


def test_the_environment_sets_the_address_of_the_docs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SCD_DOCS_URL", raising=False)
    assert template_vars.docs_url() == ""
    monkeypatch.setenv("SCD_DOCS_URL", "https://docs")
    assert template_vars.docs_url() == "https://docs"
