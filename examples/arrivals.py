"""Writes the deliveries of the generated examples, on request with the faults that real deliveries have.

Deliveries arrive in two parts. Without faults the first part has all of them. With faults, some rows and some files
arrive only in the second part, and some files of the first part are wrong until the second part replaces them. Whatever
the faults, both parts together describe the same history.
"""

from __future__ import annotations

import csv
import random
import shutil
import zlib
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import date, timedelta
from pathlib import Path
from typing import TypeAlias

Value: TypeAlias = str | int | None
Row: TypeAlias = tuple[Value, ...]

FAULTS = {
    "late": "rows arrive weeks after the time of their change",
    "duplicates": "rows are repeated in their file and in the next one",
    "missing": "files are missing at first, and arrive after later ones",
    "reordered": "rows have no order, and a quarter of the files arrives last",
    "revised": "files have wrong values until they are replaced",
}
_LATE, _REPEATED, _MISSING, _REVISED, _INCORRECT = 0.03, 0.02, 0.1, 0.1, 0.2
_REPEATED_FILES = 0.15


@dataclass(frozen=True, slots=True)
class Batch:
    """The rows of one file.

    Attributes:
        folder: The folder of the source.
        day: The day in the name of the file.
        header: The names of the columns.
        rows: The rows.
        has_times: Whether each row has a time of its own, so that it may be in another file as well as in this one.
        editable: The column that is wrong in a file that is revised; empty if no revision is made.
    """

    folder: str
    day: date
    header: Sequence[str]
    rows: Iterable[Row]
    has_times: bool = True
    editable: str = ""

    @property
    def file(self) -> Path:
        """The path of its file, relative to the folder of the deliveries."""
        return Path(self.folder) / f"{self.day}.csv"


@dataclass(slots=True)
class _Stream:
    """What one source carries over to its next files."""

    number: int = 0
    late: list[Row] = field(default_factory=list)
    repeated: list[Row] = field(default_factory=list)
    last: Batch | None = None


@dataclass(frozen=True, slots=True)
class Arrivals:
    """The two parts in which deliveries arrive.

    Attributes:
        landing: The folder of the deliveries.
        second: The folder of the second part, until `receive_second_part` moves it.
        faults: The names of the faults (`FAULTS`).
        files: The number of the files of each source.
        seed: Decides which rows and files have faults.
    """

    landing: Path
    second: Path
    faults: frozenset[str]
    files: int
    seed: int

    @classmethod
    def create(cls, folder: Path, faults: Collection[str], files: int, seed: int) -> Arrivals:
        """Return the arrivals in a folder, whose earlier deliveries are removed.

        Raises:
            ValueError: A fault is unknown.
        """
        arrivals = cls(folder / "landing", folder / "second_part", known_faults(faults), files, seed)
        for part in (arrivals.landing, arrivals.second):
            shutil.rmtree(part, ignore_errors=True)
            part.mkdir(parents=True)
        return arrivals

    def write(self, batches: Iterable[Batch]) -> None:
        """Write the files of all batches, which are in the order of their days."""
        streams: dict[str, _Stream] = {}
        for batch in batches:
            self._write_batch(batch, streams.setdefault(batch.folder, _Stream()))
        for stream in streams.values():
            if stream.last is not None and (late := [*stream.late, *stream.repeated]):
                day = stream.last.day + timedelta(days=1)
                self._write_file(self.second / stream.last.folder / f"{day}.csv", stream.last.header, late)

    def receive_second_part(self) -> int:
        """Move the files of the second part to the others, over those that they replace; return their number."""
        files = sorted(self.second.rglob("*.csv"))
        for file in files:
            target = self.landing / file.relative_to(self.second)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(file, target)  # with the present as its time of change
            file.unlink()
        return len(files)

    def _write_batch(self, batch: Batch, stream: _Stream) -> None:
        rows = list(self._delivered_rows(batch, stream))
        part = self.landing
        if self._is_second(batch, stream):
            part = self.second
        elif batch.editable and self._has("revised", _REVISED, batch.file):
            incorrect = [self._with_error(batch, row) for row in rows]
            self._write_file(self.landing / batch.file, batch.header, incorrect)
            part = self.second
        self._write_file(part / batch.file, batch.header, rows)
        stream.number += 1
        stream.last = batch

    def _delivered_rows(self, batch: Batch, stream: _Stream) -> Iterator[Row]:
        """Yield the rows of a file: without late ones, and with repeated ones."""
        yield from stream.repeated
        stream.repeated = []
        repeats = batch.has_times and self._has("duplicates", _REPEATED_FILES, batch.file, "repeated")
        for row in self._in_order(batch):
            if batch.has_times and self._has("late", _LATE, batch.folder, *row):
                stream.late.append(row)
                continue
            yield row
            if self._has("duplicates", _REPEATED, batch.file, *row):
                yield row
            if repeats:
                stream.repeated.append(row)

    def _in_order(self, batch: Batch) -> Iterable[Row]:
        if "reordered" not in self.faults:
            return batch.rows
        rows = list(batch.rows)
        random.Random(f"{self.seed}/{batch.file}").shuffle(rows)
        return rows

    def _is_second(self, batch: Batch, stream: _Stream) -> bool:
        """Return whether a file arrives in the second part; the first file of a source never does."""
        if stream.number == 0:
            return False
        is_reordered = "reordered" in self.faults and self.files // 4 <= stream.number < self.files // 2
        return is_reordered or self._has("missing", _MISSING, batch.file)

    def _with_error(self, batch: Batch, row: Row) -> Row:
        column = list(batch.header).index(batch.editable)
        value = row[column]
        if value is None or not self._has("revised", _INCORRECT, batch.file, *row):
            return row
        incorrect: Value = value + 1 if isinstance(value, int) else f"{value} (?)"
        return (*row[:column], incorrect, *row[column + 1 :])

    def _has(self, fault: str, share: float, *label: object) -> bool:
        """Return whether a row or a file, by its label, has a fault."""
        return fault in self.faults and chance(self.seed, fault, *label) < share

    @staticmethod
    def _write_file(file: Path, header: Sequence[str], rows: Iterable[Row]) -> None:
        file.parent.mkdir(parents=True, exist_ok=True)
        with file.open("w", newline="", encoding="utf-8") as output:
            writer = csv.writer(output, lineterminator="\n")
            writer.writerow(header)
            writer.writerows(rows)


def known_faults(names: Collection[str]) -> frozenset[str]:
    """Return the faults of these names.

    Raises:
        ValueError: A fault is unknown.
    """
    if unknown := sorted(set(names) - set(FAULTS)):
        raise ValueError(f"unknown faults: {', '.join(unknown)}; expected: {', '.join(FAULTS)}")
    return frozenset(names)


def rows_by_file(rows: Iterable[tuple[int, Row]], files: int) -> list[list[Row]]:
    """Return the rows of each file of a source; each row comes with the number of its file."""
    by_file: list[list[Row]] = [[] for _ in range(files)]
    for number, row in rows:
        by_file[number].append(row)
    return by_file


def chance(*label: object) -> float:
    """Return a number from 0 to 1 that depends on the label alone."""
    return zlib.crc32("/".join(map(str, label)).encode()) / 2**32
