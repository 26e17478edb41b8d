"""Declarations of dimensions, facts and landing tables: immutable, typed and valid; they do not need Spark."""

from scd_pipeline.declaration.attribute import Attribute, ScdType
from scd_pipeline.declaration.begin import Begin
from scd_pipeline.declaration.control_totals import ControlTotals
from scd_pipeline.declaration.declared import DeclaredTable
from scd_pipeline.declaration.describe import describe
from scd_pipeline.declaration.dimension import Dimension
from scd_pipeline.declaration.fact import Fact, Role
from scd_pipeline.declaration.governance import ExpectedValue, SignOff
from scd_pipeline.declaration.history import history_of
from scd_pipeline.declaration.jdbc import EnvVar, Jdbc, Partitions
from scd_pipeline.declaration.key import KeyColumn
from scd_pipeline.declaration.landing_table import LandingTable
from scd_pipeline.declaration.mirror import Mirror
from scd_pipeline.declaration.source import Channel, Column, Feed, RetireGuard, Snapshot, Source
from scd_pipeline.declaration.timed_table import Base, BaseColumn, TimedTable
from scd_pipeline.declaration.times import OPEN_END
from scd_pipeline.declaration.types import Array, DataType, Decimal, Map, Primitive, Struct, parse_type
from scd_pipeline.declaration.yaml.files import (
    Declarations,
    parse,
    parse_declarations,
    read_declarations,
    read_dimension,
    read_dimensions,
)

__all__ = [
    "OPEN_END",
    "Array",
    "Attribute",
    "Base",
    "BaseColumn",
    "Begin",
    "Channel",
    "Column",
    "ControlTotals",
    "DataType",
    "Decimal",
    "Declarations",
    "DeclaredTable",
    "Dimension",
    "EnvVar",
    "ExpectedValue",
    "Fact",
    "Feed",
    "Jdbc",
    "KeyColumn",
    "LandingTable",
    "Map",
    "Mirror",
    "Partitions",
    "Primitive",
    "RetireGuard",
    "Role",
    "ScdType",
    "SignOff",
    "Snapshot",
    "Source",
    "Struct",
    "TimedTable",
    "describe",
    "history_of",
    "parse",
    "parse_declarations",
    "parse_type",
    "read_declarations",
    "read_dimension",
    "read_dimensions",
]
