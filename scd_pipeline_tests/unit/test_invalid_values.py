"""The condition of each value that is rejected before Spark is used, with its details."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from pyspark.errors import AnalysisException

from scd_pipeline import queries
from scd_pipeline.cli.context import Settings
from scd_pipeline.cli.spark_errors import query_errors
from scd_pipeline.declaration import Attribute, Dimension, Feed, Snapshot, Source
from scd_pipeline.deliveries.delivery import Delivery
from scd_pipeline.environment import Environment
from scd_pipeline.errors import ScdError, SetupError, SourceDataError, UsageError
from scd_pipeline.pipeline import _check_columns
from scd_pipeline.queries.dimension import rows_known_at
from scd_pipeline.spark.launch import spark_home

CUSTOMER = Dimension(
    "dim_customer",
    "id",
    {"city": 2, "tier": Attribute(1, source="erp")},
    [Source("crm", Snapshot(), Feed(), attributes=["city"], existence=True), Source("erp", Snapshot())],
)
DECLARATION = "dimension: {}\nbusiness_key: id\nsources: {{s: {{snapshot: 'x_{{date}}.csv'}}}}\nattributes: {{a: 2}}\n"
DELIVERIES: dict[str, tuple[dict[str, Any], dict[str, object]]] = {
    "DELIVERY_PATH": ({"path": ""}, {"value": "''"}),
    "DELIVERY_TEXT": ({"actor": 5}, {"field": "actor", "value": "5"}),
    "DELIVERY_FRAME": ({"frame": 5}, {"type": "int"}),
    "DELIVERY_SCOPE": ({"scope": ["EU"]}, {"value": "['EU']"}),
    "UNKNOWN_SOURCE": ({"source": "shop"}, {"table": "dim_customer", "sources": "crm, erp"}),
    "UNKNOWN_CHANNEL": ({}, {"requested": "the channel is missing", "channels": "snapshot or feed"}),
}


def raised(expected: type[ScdError], call: Callable[[], object]) -> tuple[str, str, dict[str, object]]:
    """Return code, location and details of the error that a call raises."""
    with pytest.raises(expected) as caught:
        call()
    return caught.value.code, caught.value.location, caught.value.details


@pytest.mark.parametrize("code", DELIVERIES)
def test_a_delivery_with_an_invalid_value_is_rejected(code: str) -> None:
    options, details = DELIVERIES[code]
    delivery: dict[str, Any] = {"source": "crm", "name": "1", "at": "2024-01-01", **options}
    location = f"delivery {delivery['source']}/1"
    assert raised(SourceDataError, lambda: Delivery(**delivery).batch(CUSTOMER)) == (code, location, details)


def test_a_query_with_a_system_time_needs_the_declaration() -> None:
    error = raised(UsageError, lambda: rows_known_at(SimpleNamespace(), "dim_customer", datetime(2024, 1, 1)))  # type: ignore[arg-type]
    assert error == ("KNOWN_AT_NEEDS_DECLARATION", "dim_customer", {})


def test_a_table_without_an_audit_is_reported() -> None:
    """As that of a fact, which has batches only."""
    tables = {"fct_sale": True, "fct_sale_audit": False}
    warehouse: Any = SimpleNamespace(location="/w", table=lambda name: SimpleNamespace(exists=lambda: tables[name]))
    details = {"table": "fct_sale_audit", "warehouse": "/w", "batches": "fct_sale_batches"}
    assert raised(SetupError, lambda: queries.audit(warehouse, "fct_sale")) == ("AUDIT_MISSING", "fct_sale", details)


def test_rows_of_a_join_have_no_surrogate_key_and_the_named_columns() -> None:
    rows: Any = SimpleNamespace(columns=["id", "Customer_Key", "t"])
    code = raised(UsageError, lambda: queries.join_as_of(SimpleNamespace(), rows, CUSTOMER, time="t"))  # type: ignore[arg-type]
    assert code == ("JOIN_COLUMN_EXISTS", "dim_customer", {"column": "customer_key"})
    missing = raised(UsageError, lambda: _check_columns(rows, ["id", "at"]))
    assert missing == ("NO_SUCH_COLUMN", "rows", {"names": "at", "columns": "id, Customer_Key, t"})


def test_spark_without_pyspark_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    assert raised(SetupError, spark_home) == ("PYSPARK_MISSING", "", {})


def test_a_command_needs_the_declaration_that_its_argument_names(tmp_path: Path) -> None:
    (tmp_path / "d.yaml").write_text("---\n".join(map(DECLARATION.format, ("dim_a", "dim_b"))), encoding="utf-8")
    environment = Environment.from_env({})
    undeclared = Settings(environment, "", "", None, "scd", None)
    declared = Settings(environment, "", "", tmp_path, "scd", None)
    assert raised(UsageError, lambda: undeclared.declared_tables("dim_a")) == ("NO_DECLARATIONS", "dim_a", {})
    code, location, details = raised(UsageError, lambda: declared.declared_tables("dim_c"))
    assert (code, location, details["declarations"]) == ("TABLE_NOT_DECLARED", "dim_c", tmp_path)
    several = ("ONE_DIMENSION_EXPECTED", str(tmp_path), {"tables": "dim_a, dim_b"})
    assert raised(UsageError, lambda: declared.declared_dimension(str(tmp_path))) == several


def test_an_error_of_spark_about_a_query_is_a_usage_error() -> None:
    def query() -> None:
        with query_errors(lambda: ["dim_customer"]):
            raise AnalysisException("[TABLE_OR_VIEW_NOT_FOUND] The table or view `dim_customers` cannot be found.")

    code, location, details = raised(UsageError, query)
    assert (code, location) == ("QUERY_FAILED", "query")
    assert "dim_customer?" in str(details["message"])
