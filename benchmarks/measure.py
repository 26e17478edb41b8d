"""Measures a call: time, processor time, memory and written bytes of this process, its descendants and servers."""

from __future__ import annotations

import ctypes
import os
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

_PROC = Path("/proc")
_TICKS = os.sysconf("SC_CLK_TCK")
_PAGE = os.sysconf("SC_PAGE_SIZE")
_PR_SET_CHILD_SUBREAPER = 36


@dataclass(frozen=True, slots=True)
class Measurement:
    """The cost of one call.

    Attributes:
        seconds: Wall time.
        cpu_seconds: Processor time of all processes.
        other_cpu_seconds: Processor time that processes outside of the benchmark used meanwhile.
        peak_memory: The largest sum of the resident memory of all processes, in bytes.
        written: Bytes that were written to storage.
    """

    seconds: float
    cpu_seconds: float
    other_cpu_seconds: float
    peak_memory: int
    written: int


@dataclass(frozen=True, slots=True)
class _Process:
    id: int
    parent: int
    cpu_seconds: float
    memory: int


def adopt_orphans() -> None:
    """Become the parent of descendants whose own parent ends, so that their usage remains measurable. Linux only.

    The Java process of a command outlives the command for a moment, and a Spark Connect server is started by a process
    that ends at once.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def process_ids() -> frozenset[int]:
    """Return the ids of this process and its descendants."""
    return _ids(os.getpid())


def measure(
    call: Callable[[], object], *, new_processes: bool = False, servers: Iterable[int] = (), interval: float = 0.1
) -> Measurement:
    """Run the call and return its cost. Linux only; elsewhere all figures except the time are 0.

    Args:
        call: What is measured.
        new_processes: Whether the memory of this process, and of the processes that it has already started, is ignored.
        servers: The ids of running processes that work for the call; they and their descendants are never ignored.
        interval: The seconds between two samples of the memory.
    """
    roots = (os.getpid(), *servers)
    ignored = process_ids() - _ids(*roots[1:]) if new_processes else frozenset()
    sampler = _Sampler(interval, roots, ignored)
    sampler.start()
    before, busy, start = _usage(roots), _busy_seconds(), time.perf_counter()
    try:
        call()
    finally:
        seconds = time.perf_counter() - start
        after, busy_after = _usage(roots), _busy_seconds()
        sampler.stop()
    cpu = after[0] - before[0]
    others = max(0.0, busy_after - busy - cpu)
    return Measurement(seconds, cpu, others, sampler.peak, after[1] - before[1])


class _Sampler(threading.Thread):
    """Samples the memory of some processes and their descendants until it is stopped."""

    def __init__(self, interval: float, roots: tuple[int, ...], ignored: frozenset[int]) -> None:
        super().__init__(daemon=True)
        self._roots = roots
        self._ignored = ignored
        self.peak = 0
        self._interval = interval
        self._ended = threading.Event()

    def run(self) -> None:
        while True:
            memory = sum(process.memory for process in _descendants(*self._roots) if process.id not in self._ignored)
            self.peak = max(self.peak, memory)
            if self._ended.wait(self._interval):
                return

    def stop(self) -> None:
        self._ended.set()
        self.join()


def _usage(roots: tuple[int, ...]) -> tuple[float, int]:
    """Return the processor seconds and the written bytes of some processes, their descendants, and those that ended."""
    processes = list(_descendants(*roots))
    return sum(process.cpu_seconds for process in processes), sum(_written(process.id) for process in processes)


def _ids(*roots: int) -> frozenset[int]:
    return frozenset(process.id for process in _descendants(*roots))


def _descendants(*roots: int) -> Iterator[_Process]:
    """Yield processes and their descendants, each once."""
    processes = {process.id: process for process in _processes()}
    children: dict[int, list[_Process]] = {}
    for process in processes.values():
        children.setdefault(process.parent, []).append(process)
    pending = [processes[root] for root in roots if root in processes]
    visited = set()
    while pending:
        process = pending.pop()
        if process.id in visited:
            continue
        visited.add(process.id)
        yield process
        pending += [
            # Until a child of the JVM has started its own program, it shows the memory of its parent as its own.
            replace(child, memory=0) if child.memory == process.memory else child
            for child in children.get(process.id, [])
        ]


def _processes() -> Iterator[_Process]:
    for folder in _PROC.glob("[0-9]*"):
        try:
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        cpu = sum(int(ticks) for ticks in fields[11:15]) / _TICKS
        yield _Process(int(folder.name), int(fields[1]), cpu, int(fields[21]) * _PAGE)


def _written(process: int) -> int:
    try:
        lines = (_PROC / str(process) / "io").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) for line in lines if line.startswith("write_bytes:")), 0)


def _busy_seconds() -> float:
    """Return the processor seconds that this machine has used for all of its processes."""
    try:
        user, nice, system, _, _, irq, soft_irq = (_PROC / "stat").read_text().split(None, 8)[1:8]
    except OSError:
        return 0.0
    return sum(int(ticks) for ticks in (user, nice, system, irq, soft_irq)) / _TICKS
