"""Another Dagster project: a scaffolded dimension that loads, and a fact of another component that references it."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

import dagster as dg
import pytest
from dagster._core.events import AssetMaterializationPlannedData

from scd_pipeline.components import ScdDimension, WarehouseResource
from scd_pipeline.components.scaffolder import DimensionScaffolder, SampleParams
from scd_pipeline.declaration import Declarations, Dimension, Fact, Feed, Source, read_declarations
from scd_pipeline.deliveries.partitions import EVERYTHING
from scd_pipeline.delta.warehouse import Warehouse
from scd_pipeline.errors import UsageError
from scd_pipeline_tests.unit.test_yaml_faults import located_codes

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SALES = """\
fact: fct_sale
grain: {sale: bigint}
event_time: sold_at
dimensions: {customer: {dimension: dim_customers, key: id}}
sources: {till: {feed: "sales_{date}.csv"}}
"""
SALES_DIMENSION = """\
dimension: {name}
business_key: id
sources: {{crm: {{snapshot: "{name}_{{date}}.csv"}}}}
attributes: {{city: 2}}
"""
FACT_COMPONENT = """\
type: scd_pipeline.components.ScdDimension
attributes: {declaration: fct_sale.yaml, dimensions: [../customers], fact_automation: true}
"""


def scaffold(folder: Path, *, dimension: str = "", append: bool = False, scaffold_format: str = "yaml") -> None:
    """Write the files of `dg scaffold defs scd_pipeline.components.ScdDimension`; with `append`, `folder` is a file."""
    (folder.parent if append else folder).mkdir(parents=True, exist_ok=True)
    request = dg.ScaffoldRequest(
        type_name="scd_pipeline.components.ScdDimension",
        target_path=folder,
        scaffold_format=scaffold_format,  # type: ignore[arg-type]
        project_root=None,
        params=SampleParams(dimension=dimension),
        append=append,
    )
    DimensionScaffolder().scaffold(request)


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The defs folder of a project with a scaffolded dimension, and a component with a fact."""
    root = tmp_path_factory.mktemp("project")
    defs = root / "scd_own_project" / "defs"
    scaffold(defs / "customers")
    for package in (defs, defs.parent):
        (package / "__init__.py").touch()
    sales = defs / "sales"
    sales.mkdir()
    (sales / "defs.yaml").write_text(FACT_COMPONENT, encoding="utf-8")
    (sales / "fct_sale.yaml").write_text(SALES, encoding="utf-8")
    (sales / "sales_2024-01-02.csv").write_text("sale,sold_at,id\n10,2024-01-02 09:00:00,2\n", encoding="utf-8")
    sys.path.insert(0, str(root))
    yield defs
    sys.path.remove(str(root))


@pytest.fixture
def folders_project(tmp_path: Path) -> Iterator[Path]:
    """The defs folder of a project whose components have folders of declarations, two of them in one defs.yaml."""
    defs = tmp_path / "scd_folders_project" / "defs"
    components = {"crm": ["a"], "shop/sales": ["b", "c"]}
    for component, folders in components.items():
        for folder in folders:
            (defs / component / folder).mkdir(parents=True)
            declaration = SALES_DIMENSION.format(name=f"dim_{folder}")
            (defs / component / folder / "dim.yaml").write_text(declaration, encoding="utf-8")
        documents = [f"type: scd_pipeline.components.ScdDimension\nattributes: {{declaration: {f}}}\n" for f in folders]
        (defs / component / "defs.yaml").write_text("---\n".join(documents), encoding="utf-8")
    for package in (defs, defs.parent):
        (package / "__init__.py").touch()
    sys.path.insert(0, str(tmp_path))
    yield defs
    sys.path.remove(str(tmp_path))


def definitions(defs: Path) -> dg.Definitions:
    """The project's definitions, as Dagster loads them."""
    module = import_module(f"{defs.parent.name}.defs")
    tree = dg.ComponentTree.from_module(defs_module=module, project_root=defs.parent.parent)
    return dg.Definitions.merge(tree.build_defs(), dg.Definitions(executor=dg.in_process_executor))


def test_a_fact_depends_on_the_dimension_of_another_component(project: Path) -> None:
    location = definitions(project)
    dg.Definitions.validate_loadable(location)
    edges = {
        spec.key.to_user_string(): {d.asset_key.to_user_string() for d in spec.deps}
        for spec in location.resolve_all_asset_specs()
    }
    assert edges["fct_sale"] == {"fct_sale_changes", "dim_customers"}
    assert {"dim_customers", "dim_customers_status", "fct_sale_status"} <= edges.keys()
    assert sum(name.startswith("dim_customers") for name in edges) == 4, "the dimension has its assets once"


def test_each_component_with_a_folder_of_declarations_has_its_own_status_asset(folders_project: Path) -> None:
    location = dg.Definitions.merge(
        definitions(folders_project), dg.Definitions(resources={"warehouse": WarehouseResource(path="/x")})
    )
    dg.Definitions.validate_loadable(location)
    assert {
        spec.key.to_user_string() for spec in location.resolve_all_asset_specs() if spec.group_name == "status"
    } == {
        "crm_status",
        "shop_sales_status",
        "shop_sales_1_status",
    }


@pytest.mark.slow(30)
def test_a_scaffolded_project_loads_with_the_server_of_the_environment(
    spark: SparkSession, remote: str, project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without edits: the sample, and a fact with the key of the version in force."""
    monkeypatch.setenv("SCD_REMOTE", remote)
    monkeypatch.setenv("SCD_WAREHOUSE", str(tmp_path / "warehouse"))
    location = definitions(project)
    with dg.DagsterInstance.ephemeral() as instance:
        for name in ("dim_customers", "fct_sale"):
            instance.add_dynamic_partitions(f"{name}_deliveries", [EVERYTHING])
            job = location.resolve_job_def(f"{name}_job")
            assert job.execute_in_process(instance=instance, partition_key=EVERYTHING).success
    warehouse = Warehouse(spark, tmp_path / "warehouse")
    versions = warehouse.table("dim_customers").read().where("version > 0")
    keys = {row["id"]: row["customers_key"] for row in versions.collect()}
    assert keys.keys() == {"1", "2"}
    assert [row["customer_key"] for row in warehouse.table("fct_sale").read().collect()] == [keys["2"]]


def test_a_missing_dimension_is_reported_at_its_role(project: Path) -> None:
    sales = project / "sales" / "fct_sale.yaml"
    assert located_codes(lambda: read_declarations(sales)) == [(f"{sales}:4", "dimensions.customer", "UNKNOWN_NAME")]


def test_further_declarations_are_read_for_their_dimensions_alone(project: Path) -> None:
    """Once each, though the folder contains the file itself; a second dimension of one name is an error."""
    customers, sales = project / "customers" / "dim_customers.yaml", project / "sales" / "fct_sale.yaml"
    declared = read_declarations(sales, dimension_paths=[customers.parent, customers, sales.parent])
    assert [fact.name for fact in declared.facts] == ["fct_sale"]
    assert declared.dimensions == ()
    duplicate = project.parent / "duplicate.yaml"
    duplicate.write_text(customers.read_text(encoding="utf-8"), encoding="utf-8")
    reported = located_codes(lambda: read_declarations(duplicate, dimension_paths=[customers]))
    assert reported == [(f"{duplicate}:2", "dimension", "NAME_IN_USE")]


def test_a_faulty_declaration_of_another_component_is_located(project: Path) -> None:
    faulty = project.parent / "faulty.yaml"
    faulty.write_text("dimension: dim_customers\nbusiness_key: id\n", encoding="utf-8")
    sales = project / "sales" / "fct_sale.yaml"
    reported = located_codes(lambda: read_declarations(sales, dimension_paths=[faulty]))
    assert reported == [(f"{faulty}:1", "sources", "MISSING_VALUE")], "the fact itself is valid"


def test_the_scaffolder_keeps_existing_files(tmp_path: Path) -> None:
    """A second component in one file, the project's own resource, and a declaration of that name."""
    defs = tmp_path / "shop" / "defs"
    (defs / "resources").mkdir(parents=True)
    (defs / "resources" / "mine.py").write_text(
        "from scd_pipeline.components import WarehouseResource\n", encoding="utf-8"
    )
    scaffold(defs / "crm" / "Dim-Customers")
    folder = defs / "crm" / "Dim-Customers"
    assert sorted(path.name for path in folder.rglob("*.*")) == [
        "defs.yaml",
        "dim_customers.yaml",
        "dim_customers_2024-01-01.csv",
    ]
    scaffold(folder / "defs.yaml", dimension="dim_supplier", append=True)
    text = (folder / "defs.yaml").read_text(encoding="utf-8")
    assert text.count("type: scd_pipeline.components.ScdDimension") == 2
    assert [d.name for d in read_declarations(folder).dimensions] == ["dim_customers", "dim_supplier"]
    assert not list(defs.rglob("warehouse.py"))
    with pytest.raises(UsageError) as existing:
        scaffold(folder / "defs.yaml", append=True)
    assert (existing.value.code, Path(existing.value.location).name) == (
        "DECLARATION_FILE_EXISTS",
        "dim_customers.yaml",
    )
    with pytest.raises(UsageError) as unsupported:
        scaffold(defs / "x", scaffold_format="python")
    assert unsupported.value.code == "SCAFFOLD_FORMAT"


def test_the_component_has_the_scaffolder() -> None:
    from dagster.components.scaffold.scaffold import get_scaffolder

    assert isinstance(get_scaffolder(ScdDimension), DimensionScaffolder)
    assert DimensionScaffolder.get_scaffold_params() is SampleParams


# -- automation conditions

CUSTOMER = Dimension("dim_customer", "id", {"city": 2}, Source("crm", snapshot="c_{date}.csv"))
SALE = Fact("fct_sale", {"sale": "int"}, "at", {"customer": CUSTOMER}, Source("till", feed=Feed("s_{date}.csv")))


def test_an_automation_condition_loads_a_fact_after_its_dimension() -> None:
    """Each load of the dimension starts one run, whatever the number of partitions. It replaces the sensor."""
    with_condition = ScdDimension(fact_automation=True).definitions(Declarations((CUSTOMER,), (SALE,)))
    with_sensor = ScdDimension().definitions(Declarations((CUSTOMER,), (SALE,)))
    sensors = [{sensor.name for sensor in location.sensors or ()} for location in (with_condition, with_sensor)]
    assert sensors[0] ^ sensors[1] == {"fct_sale_automation", "fct_sale_rekey"}
    assert "fct_sale_automation" in sensors[0]
    resources = {"warehouse": WarehouseResource(path="/x")}
    defs = dg.Definitions.merge(with_condition, dg.Definitions(resources=resources, executor=dg.in_process_executor))
    with dg.DagsterInstance.ephemeral() as instance:
        cursor = None

        def evaluate() -> int:
            nonlocal cursor
            result = dg.evaluate_automation_conditions(defs=defs, instance=instance, cursor=cursor)
            cursor = result.cursor
            if result.total_requested:
                partition = EVERYTHING if EVERYTHING in instance.get_dynamic_partitions("fct_sale_deliveries") else "b"
                assert result.get_requested_partitions(dg.AssetKey("fct_sale")) == {partition}
            return result.total_requested

        assert evaluate() == 0, "a fact without a partition was never loaded"
        instance.add_dynamic_partitions("dim_customer_deliveries", ["a", "b", "rejected", EVERYTHING])
        instance.add_dynamic_partitions("fct_sale_deliveries", ["a", "b"])
        for partition in ("a", "b", EVERYTHING):
            instance.report_runless_asset_event(dg.AssetMaterialization("dim_customer", partition=partition))
            assert evaluate() == 1
            assert evaluate() == 0
            instance.add_dynamic_partitions("fct_sale_deliveries", [EVERYTHING])
            assert evaluate() == 0
        repository = defs.get_repository_def()
        assert {sensor.name for sensor in repository.sensor_defs} == sensors[0]
        sensor = repository.get_sensor_def("fct_sale_automation")
        with dg.build_sensor_context(instance=instance, definitions=defs, sensor_name=sensor.name) as context:
            assert sensor.evaluate_tick(context).run_requests == [], "the sensor evaluates it as the daemon does"


def test_a_load_of_a_dimension_during_a_run_of_its_fact_starts_another_run() -> None:
    """The run of the fact may have read the dimension before. Neither run includes the checks of whole tables."""
    defs = ScdDimension(fact_automation=True).definitions(Declarations((CUSTOMER,), (SALE,)))
    defs = dg.Definitions.merge(defs, dg.Definitions(resources={"warehouse": WarehouseResource(path="/x")}))
    table, log = dg.AssetKey("fct_sale"), dg.AssetKey("fct_sale_changes")
    repository = defs.get_repository_def()
    sensor = repository.get_sensor_def("fct_sale_automation")
    with dg.DagsterInstance.ephemeral() as instance:
        for name in ("dim_customer", "fct_sale"):
            instance.add_dynamic_partitions(f"{name}_deliveries", [EVERYTHING])
        cursor = None

        def evaluate() -> list[dg.RunRequest]:
            nonlocal cursor
            with dg.build_sensor_context(
                instance=instance, definitions=defs, sensor_name=sensor.name, cursor=cursor
            ) as context:
                result = sensor.evaluate_tick(context)
            cursor = result.cursor
            return list(result.run_requests or ())

        def load_customers() -> None:
            instance.report_runless_asset_event(dg.AssetMaterialization("dim_customer", partition=EVERYTHING))

        evaluate()
        load_customers()
        (first,) = evaluate()
        job = defs.resolve_implicit_global_asset_job_def()
        run = instance.create_run_for_job(
            job,
            asset_selection=frozenset([table, log]),
            tags={"dagster/partition": EVERYTHING},
            status=dg.DagsterRunStatus.STARTED,
        )
        for key in (log, table):
            planned = AssetMaterializationPlannedData(key, partition=EVERYTHING)
            event = dg.DagsterEvent.build_asset_materialization_planned_event(job.name, "load_fct_sale", planned)
            instance.report_dagster_event(event, run.run_id)
        load_customers()
        assert not evaluate(), "the fact is being loaded"
        for key in (log, table):
            instance.report_runless_asset_event(dg.AssetMaterialization(key, partition=EVERYTHING))
        instance.report_run_canceled(run)
        (second,) = evaluate()
        assert not evaluate()
        assert repository.asset_graph.get_check_keys_for_assets({table})
        assert [first.asset_check_keys, second.asset_check_keys] == [[], []]
