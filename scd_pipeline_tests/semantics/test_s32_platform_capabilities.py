"""S32: platform capabilities are probed, not assumed."""

from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from scd_pipeline.delta import capabilities
from scd_pipeline.delta.warehouse import Warehouse
from scd_pipeline.errors import SetupError, UnsupportedDelta
from scd_pipeline_tests.semantics.declarations import CUSTOMER
from scd_pipeline_tests.semantics.engine import OwnTables
from scd_pipeline_tests.semantics.specification import feed, rule
from scd_pipeline_tests.text_tables import assert_same_rows

FIRST = feed(
    """
    | delivery | id | time       | op | city | email |
    | 1        | 1  | 2024-01-01 |    | Bonn | a     |
    | 1        | 2  | 2024-01-01 |    | Ulm  | a     |
    """
)
SECOND = feed(
    """
    | delivery | revision | id | time       | op | city | email |
    | 2        | 1        | 1  | 2024-02-01 |    | Kiel | b     |
    | 1        | 2        | 1  | 2024-01-01 |    | Bonn | a     |
    """
)
BECOMES = """
| id | city | email | effective_from | effective_to |
| 1  | Bonn | b     | 2024-01-01     | 2024-02-01   |
| 1  | Kiel | b     | 2024-02-01     | OPEN         |
"""


@rule("S32")
@pytest.mark.usefixtures("each_warehouse_probes")
def test_platform_capabilities_are_probed_once_and_stored(own_tables: OwnTables) -> None:
    probed = own_tables.warehouse.capabilities
    table = own_tables.warehouse.table(capabilities.TABLE_NAME)
    stored = [capabilities.stored_capabilities(table, probed.server, engine) for engine in ("", probed.engine, "other")]
    assert stored == [probed, probed, None]


@rule("S32")
@pytest.mark.slow
def test_merge_gives_the_same_rows_if_rows_cannot_be_replaced_by_their_key(own_tables: OwnTables) -> None:
    """Rows are opened, closed, overwritten and removed by a MERGE."""
    warehouse, dimension = own_tables.warehouse, CUSTOMER.dimension
    warehouse.__dict__["capabilities"] = capabilities.Capabilities("server", "engine", replaces=False, merges=True)
    own_tables.load(dimension, FIRST)
    result = own_tables.load(dimension, SECOND)
    assert result.row_counts == {"close": 1, "open": 1, "remove": 1}
    assert_same_rows(BECOMES, own_tables.rows(dimension))


@rule("S32")
@pytest.mark.usefixtures("each_warehouse_probes")
def test_a_warehouse_that_spark_cannot_write_is_named(tmp_path: Path, spark: SparkSession) -> None:
    file = tmp_path / "warehouse"
    file.touch()
    with pytest.raises(SetupError) as error:
        _ = Warehouse(spark, file).capabilities
    assert (error.value.code, error.value.location) == ("STORAGE_NOT_WRITABLE", f"warehouse {file}")
    assert "An error occurred while calling" not in str(error.value)


@rule("S32")
@pytest.mark.usefixtures("each_warehouse_probes")
def test_a_run_fails_before_it_writes_if_no_way_of_writing_works(
    own_tables: OwnTables, monkeypatch: pytest.MonkeyPatch
) -> None:
    unsupported = capabilities.Capabilities("server", "Delta 0", replaces=False, merges=False)
    monkeypatch.setattr(capabilities, "probe", lambda spark, server, path: replace(unsupported, server=server))
    with pytest.raises(UnsupportedDelta, match="NO_WAY_TO_WRITE"):
        own_tables.load(CUSTOMER.dimension, FIRST)
    assert not own_tables.warehouse.table(CUSTOMER.dimension.name).exists()
    assert not own_tables.warehouse.table(f"{CUSTOMER.dimension.name}_changes").exists()
