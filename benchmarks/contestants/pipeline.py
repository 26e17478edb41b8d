"""The package itself."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame

from benchmarks.contestants.contestant import Contestant, Site
from benchmarks.data import ATTRIBUTES, KEY
from benchmarks.work import File, Work
from scd_pipeline import Attribute, Delivery, Dimension, Feed, Snapshot, Source, Warehouse
from scd_pipeline.load.run import ingest_and_apply, load

CUSTOMER = Dimension(
    "dim_customer",
    {KEY: "bigint"},
    {name: Attribute(2, data_type) for name, data_type in ATTRIBUTES.items()},
    Source("crm", snapshot=Snapshot(), feed=Feed(effective_at="changed_at", deletes="deleted")),
)


def warehouse(site: Site) -> Warehouse:
    """Return the warehouse in the folder of the state."""
    return Warehouse(site.spark, site.state / "warehouse")


def deliveries(site: Site, files: Sequence[File]) -> list[Delivery]:
    """Return the files as deliveries."""
    return [Delivery("crm", file.name, file.channel, file.at, path=str(site.delivery(file))) for file in files]


class Pipeline(Contestant):
    """Change log, dimension, audit, list of keys, and the checks before the commit."""

    name = "scd_pipeline"
    description = "log, dimension, audit, keys and checks"
    state_of = "scd_pipeline"

    def prepare(self, work: Work, site: Site) -> None:
        if work.base:
            load(warehouse(site), CUSTOMER, deliveries(site, work.base)).raise_if_rejected()
        # The capabilities of the server are probed once for each warehouse.
        _ = warehouse(site).capabilities

    def load(self, work: Work, site: Site) -> None:
        load(warehouse(site), CUSTOMER, deliveries(site, work.deliveries)).raise_if_rejected()

    def versions(self, work: Work, site: Site) -> DataFrame:
        return warehouse(site).table(CUSTOMER.name).read().where("version > 0")


class PipelineDimension(Pipeline):
    """Change log and dimension, without audit and keys."""

    name = "scd_pipeline_dimension"
    description = "log and dimension, without audit and keys"

    def load(self, work: Work, site: Site) -> None:
        ingest_and_apply(warehouse(site), CUSTOMER, deliveries(site, work.deliveries)).raise_if_rejected()
