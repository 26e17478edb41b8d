"""What is declared, stored and scheduled for a dimension; its callers collect it, and the evaluation reads no more."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from datetime import date
from typing import ClassVar, Literal

from scd_pipeline.declaration import Dimension
from scd_pipeline.operations.check import CheckResult

Outcome = Literal["passed", "failed", "not applicable"]


class NotPassed(Exception):
    """An item of the checklist does not pass; the text is the evidence."""

    outcome: ClassVar[Outcome]


class Failed(NotPassed):
    """An item fails; the evidence includes the fix."""

    outcome = "failed"


class NotApplicable(NotPassed):
    """An item does not concern the dimension."""

    outcome = "not applicable"


@dataclass(frozen=True, slots=True)
class StoredTable:
    """A table as the warehouse has it.

    Attributes:
        columns: The type of each column by its name.
        properties: The table properties.
        partition_columns: The columns by whose values the files are in folders.
        clustered_by: The columns by which the rows are clustered, or were Z-ordered by the last OPTIMIZE.
    """

    columns: Mapping[str, str]
    properties: Mapping[str, str] = field(default_factory=dict)
    partition_columns: tuple[str, ...] = ()
    clustered_by: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Schedule:
    """A schedule of a Dagster code location.

    Attributes:
        name: The name.
        cron: Its cron expression.
        gap_hours: The longest time between two runs.
        ops: The ops of its job.
        checks: The asset checks of its job, as `asset:check`.
    """

    name: str
    cron: str
    gap_hours: float
    ops: tuple[str, ...] = ()
    checks: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"schedule {self.name} ({self.cron})"


@dataclass(frozen=True, slots=True)
class CodeLocation:
    """What a Dagster code location defines.

    Attributes:
        name: The module.
        schedules: The schedules.
        sensors: The names of all sensors.
        alert_sensors: The names of the sensors that watch failed runs.
        pools: The concurrency pool of each op that has one.
        load_attempts: How often each op that loads a table by this package attempts the load.
    """

    name: str
    schedules: tuple[Schedule, ...] = ()
    sensors: tuple[str, ...] = ()
    alert_sensors: tuple[str, ...] = ()
    pools: Mapping[str, str] = field(default_factory=dict)
    load_attempts: Mapping[str, int] = field(default_factory=dict)

    def to_json(self) -> str:
        """Return the code location as JSON on one line."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> CodeLocation:
        """Return the code location that `to_json` wrote."""
        values = json.loads(text)
        names = {name: tuple(values[name]) for name in ("sensors", "alert_sensors")}
        schedules = [
            Schedule(**{**each, "ops": tuple(each["ops"]), "checks": tuple(each["checks"])})
            for each in values["schedules"]
        ]
        return cls(**{**values, **names, "schedules": tuple(schedules)})


@dataclass(frozen=True, slots=True)
class DimensionState:
    """What the checklist of a dimension is evaluated from.

    Attributes:
        dimension: The declaration.
        tables: The tables of the dimension that exist, by name.
        rows: The number of rows of the dimension.
        foreign_commits: The result of the check for foreign commits; None if the dimension was never loaded.
        last_delete: The day on which the audit last recorded that an entity was deleted; None if it never did.
        code_location: The Dagster definitions, or why they cannot be loaded.
        facts: The names of the facts that store surrogate keys of the dimension.
        alert_transports: The transports by which alerts are sent: webhook, email.
        pages: The page of the documentation for each topic that has one.
    """

    dimension: Dimension
    tables: Mapping[str, StoredTable] = field(default_factory=dict)
    rows: int = 0
    foreign_commits: CheckResult | None = None
    last_delete: date | None = None
    code_location: CodeLocation | str = ""
    facts: tuple[str, ...] = ()
    alert_transports: tuple[str, ...] = ()
    pages: Mapping[str, str] = field(default_factory=dict)

    @property
    def location(self) -> CodeLocation:
        """The Dagster definitions.

        Raises:
            Failed: They cannot be loaded.
        """
        if isinstance(self.code_location, str):
            raise Failed(f"no Dagster definitions: {self.code_location}; name their module with --code-location")
        return self.code_location

    def table(self, suffix: str = "") -> StoredTable:
        """Return the table of the dimension with this suffix.

        Raises:
            Failed: It does not exist.
        """
        table = self.tables.get(self.dimension.name + suffix)
        if table is None:
            raise self.table_missing(suffix)
        return table

    def table_missing(self, suffix: str = "") -> Failed:
        """Return the reason why an item fails whose table does not exist."""
        return Failed(f"table {self.dimension.name}{suffix} does not exist; load the dimension")

    def field(self, path: str) -> str:
        """Return the location of a field of the declaration."""
        return f"{self.dimension.origin or self.dimension.name}: {path}"

    def schedules_of_op(self, op: str) -> list[Schedule]:
        """Return the schedules that run an op."""
        return [schedule for schedule in self.location.schedules if op in schedule.ops]

    def schedules_of_check(self, check: str) -> list[Schedule]:
        """Return the schedules that run a check of the dimension's table."""
        return [each for each in self.location.schedules if f"{self.dimension.name}:{check}" in each.checks]
