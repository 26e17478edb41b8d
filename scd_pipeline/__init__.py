"""Slowly changing dimensions on Spark, Delta Lake and Dagster.

`Pipeline` loads and queries the tables of a warehouse; `Dimension`, `Fact` and their parts declare them;
`read_declarations` reads declarations from YAML. The names that need Spark are imported at their first use, so that a
declaration can be read and checked without it.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from scd_pipeline.declaration import (
    Attribute,
    Base,
    BaseColumn,
    Begin,
    Channel,
    Column,
    ControlTotals,
    Declarations,
    Dimension,
    EnvVar,
    ExpectedValue,
    Fact,
    Feed,
    Jdbc,
    KeyColumn,
    LandingTable,
    Mirror,
    Partitions,
    RetireGuard,
    Role,
    ScdType,
    SignOff,
    Snapshot,
    Source,
    TimedTable,
    describe,
    history_of,
    read_declarations,
    read_dimension,
    read_dimensions,
)
from scd_pipeline.errors import (
    BatchRejected,
    DeclarationError,
    LoadError,
    ScdError,
    SetupError,
    SourceDataError,
    UsageError,
)

if TYPE_CHECKING:
    from scd_pipeline.deliveries.delivery import Delivery as Delivery
    from scd_pipeline.deliveries.result import BatchResult as BatchResult
    from scd_pipeline.delta.warehouse import Warehouse as Warehouse
    from scd_pipeline.load.audit import AuditResult as AuditResult
    from scd_pipeline.load.deadline import Deadline as Deadline
    from scd_pipeline.load.load_plan import LoadPlan as LoadPlan
    from scd_pipeline.load.retry import Retry as Retry
    from scd_pipeline.load.run import LoadResult as LoadResult
    from scd_pipeline.operations.check import CheckResult as CheckResult
    from scd_pipeline.operations.repair import RepairResult as RepairResult
    from scd_pipeline.operations.status import SourceStatus as SourceStatus
    from scd_pipeline.operations.status import Status as Status
    from scd_pipeline.operations.status import TableStatus as TableStatus
    from scd_pipeline.pipeline import Pipeline as Pipeline

_NEEDS_SPARK = {
    "AuditResult": "scd_pipeline.load.audit",
    "BatchResult": "scd_pipeline.deliveries.result",
    "CheckResult": "scd_pipeline.operations.check",
    "Deadline": "scd_pipeline.load.deadline",
    "Delivery": "scd_pipeline.deliveries.delivery",
    "LoadPlan": "scd_pipeline.load.load_plan",
    "LoadResult": "scd_pipeline.load",
    "Pipeline": "scd_pipeline.pipeline",
    "RepairResult": "scd_pipeline.operations.repair",
    "Retry": "scd_pipeline.load",
    "SourceStatus": "scd_pipeline.operations.status",
    "Status": "scd_pipeline.operations.status",
    "TableStatus": "scd_pipeline.operations.status",
    "Warehouse": "scd_pipeline.delta.warehouse",
}


def __getattr__(name: str) -> object:
    if name not in _NEEDS_SPARK:
        raise AttributeError(f"module {__name__} has no attribute {name}")
    return getattr(import_module(_NEEDS_SPARK[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


__all__ = [
    "Attribute",
    "AuditResult",
    "Base",
    "BaseColumn",
    "BatchRejected",
    "BatchResult",
    "Begin",
    "Channel",
    "CheckResult",
    "Column",
    "ControlTotals",
    "Deadline",
    "DeclarationError",
    "Declarations",
    "Delivery",
    "Dimension",
    "EnvVar",
    "ExpectedValue",
    "Fact",
    "Feed",
    "Jdbc",
    "KeyColumn",
    "LandingTable",
    "LoadError",
    "LoadPlan",
    "LoadResult",
    "Mirror",
    "Partitions",
    "Pipeline",
    "RepairResult",
    "RetireGuard",
    "Retry",
    "Role",
    "ScdError",
    "ScdType",
    "SetupError",
    "SignOff",
    "Snapshot",
    "Source",
    "SourceDataError",
    "SourceStatus",
    "Status",
    "TableStatus",
    "TimedTable",
    "UsageError",
    "Warehouse",
    "describe",
    "history_of",
    "read_declarations",
    "read_dimension",
    "read_dimensions",
]
