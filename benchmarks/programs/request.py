"""What a program is to do. It needs only the standard library, because each program has other packages."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

OPEN_END = "9999-12-31 23:59:59"


@dataclass(frozen=True, slots=True)
class Snapshot:
    """One snapshot: the folder of its Parquet files, and its business time as ISO text."""

    folder: str
    at: str

    @property
    def files(self) -> str:
        """The Parquet files as a pattern."""
        return f"{self.folder}/*.parquet"


@dataclass(frozen=True, slots=True)
class Request:
    """The arguments of a program.

    Attributes:
        state: The folder that the program has for itself.
        snapshots: The snapshots to load, in order.
        export: The file for the rows; empty for a load.
        attributes: The type of each attribute by its name.
        threads: The number of threads to use.
    """

    state: Path
    snapshots: tuple[Snapshot, ...]
    export: str
    attributes: dict[str, str]
    threads: int

    @property
    def columns(self) -> list[str]:
        """The business key and the attributes."""
        return ["id", *self.attributes]

    def export_statement(self, table: str, start: str = "effective_from", end: str = "effective_to") -> str:
        """Return the SQL of DuckDB that writes the versions in a table as Parquet.

        Args:
            table: The table.
            start: The SQL expression for the start of a version.
            end: The SQL expression for its end.
        """
        columns = ", ".join(self.columns)
        versions = f"SELECT {columns}, {start} AS effective_from, {end} AS effective_to FROM {table}"
        return f"COPY ({versions}) TO '{self.export}' (FORMAT parquet)"

    def business_time(self, column: str) -> str:
        """Return an SQL expression for the business time of the load in which a column was set.

        For tools that store the time of the clock in place of the business time.
        """
        loads = [json.loads(line) for line in _loads(self.state).read_text().splitlines()]
        cases = [f"WHEN epoch({column}) >= {start} THEN TIMESTAMP '{at}'" for start, at in reversed(loads)]
        return f"CASE WHEN {column} IS NULL THEN TIMESTAMP '{OPEN_END}' {' '.join(cases)} END"


def run_program(load: Callable[[Request, Snapshot], None], export: Callable[[Request], None]) -> None:
    """Run what the first argument of the process requests, as JSON."""
    fields = json.loads(sys.argv[1])
    snapshots = tuple(Snapshot(**snapshot) for snapshot in fields["snapshots"])
    request = Request(
        Path(fields["state"]), snapshots, fields["export"], dict(fields["attributes"]), int(fields["threads"])
    )
    if request.export:
        export(request)
        return
    for snapshot in snapshots:
        with _loads(request.state).open("a") as file:
            file.write(json.dumps([time.time(), snapshot.at]) + "\n")
        load(request, snapshot)


def _loads(state: Path) -> Path:
    return state / "loads.jsonl"
