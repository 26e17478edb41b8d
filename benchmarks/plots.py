"""Plots of a benchmark: the figures of each work item, and the growth with the size."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
from matplotlib import pyplot as plt

from benchmarks.results import Summary

_FIGURES = (
    ("seconds", "wall seconds", 1.0),
    ("cpu_seconds", "CPU seconds", 1.0),
    ("peak_memory", "peak memory, GiB", 2.0**30),
    ("written", "written, MiB", 2.0**20),
)

_LOADS_OF_A_POINT = 10


def draw_plots(summaries: Sequence[Summary], folder: Path) -> list[Path]:
    """Write one picture for each work item at each size, one of its loads if it has many, and one of the growth."""
    folder.mkdir(parents=True, exist_ok=True)
    measured = [summary for summary in summaries if summary.runs]
    groups: dict[tuple[str, int, int], list[Summary]] = {}
    for summary in measured:
        groups.setdefault((summary.work, summary.size, summary.changes), []).append(summary)
    files = [_draw_work(group, folder) for group in groups.values()]
    with_many_loads = [[s for s in group if len(s.series) >= 2 * _LOADS_OF_A_POINT] for group in groups.values()]
    files += [_draw_loads(group, folder) for group in with_many_loads if group]
    growing = _growing(measured)
    return [*files, _draw_growth(growing, folder)] if growing else files


def _draw_work(group: Sequence[Summary], folder: Path) -> Path:
    first = group[0]
    names = [summary.contestant for summary in group]
    figure, axes = plt.subplots(1, len(_FIGURES), figsize=(14, 0.8 + 0.4 * len(group)), sharey=True)
    for axis, (field, label, unit) in zip(axes, _FIGURES, strict=True):
        values = [getattr(summary, field) / unit for summary in group]
        errors = None
        if field == "seconds":
            errors = [[s.seconds - s.spread[0] for s in group], [s.spread[1] - s.seconds for s in group]]
        colors = ["tab:blue" if name.startswith("scd_pipeline") else "tab:gray" for name in names]
        axis.barh(names, values, xerr=errors, color=colors)
        axis.set_xlabel(label)
    axes[0].invert_yaxis()
    figure.suptitle(_title(first))
    return _save(figure, folder / f"{_stem(first)}.png")


def _draw_loads(group: Sequence[Summary], folder: Path) -> Path:
    """Draw how long the loads of a work item take, one after the other."""
    figure, axis = plt.subplots(figsize=(8, 5))
    for summary in group:
        starts = range(0, len(summary.series), _LOADS_OF_A_POINT)
        medians = [statistics.median(summary.series[start : start + _LOADS_OF_A_POINT]) for start in starts]
        axis.plot([start + 1 for start in starts], medians, marker="o", label=summary.contestant)
    axis.set_ylim(bottom=0)
    axis.set_xlabel(f"number of the load (the median of {_LOADS_OF_A_POINT} each)")
    axis.set_ylabel("wall seconds of a load")
    axis.legend(fontsize="small")
    axis.set_title(_title(group[0]))
    return _save(figure, folder / f"{_stem(group[0])}-loads.png")


def _title(summary: Summary) -> str:
    return f"{summary.work}, {summary.size:,}" + (f", {summary.changes:,} changes" if summary.changes else "")


def _stem(summary: Summary) -> str:
    return f"{summary.work}-{summary.size}-{summary.changes}"


def _growing(summaries: Sequence[Summary]) -> dict[tuple[str, int, str], list[Summary]]:
    """Return the contestants and work items with several sizes."""
    lines: dict[tuple[str, int, str], list[Summary]] = {}
    for summary in summaries:
        lines.setdefault((summary.work, summary.changes, summary.contestant), []).append(summary)
    return {key: sorted(line, key=lambda s: s.size) for key, line in lines.items() if len(line) > 1}


def _draw_growth(lines: dict[tuple[str, int, str], list[Summary]], folder: Path) -> Path:
    figure, axis = plt.subplots(figsize=(8, 5))
    for (work, changes, contestant), line in lines.items():
        label = f"{work}{f' +{changes:,}' if changes else ''} {contestant}"
        axis.plot([s.size for s in line], [s.seconds for s in line], marker="o", label=label)
    axis.set_xscale("log")
    axis.set_yscale("log")
    axis.set_xlabel("size")
    axis.set_ylabel("wall seconds")
    axis.legend(fontsize="small")
    return _save(figure, folder / "growth.png")


def _save(figure: plt.Figure, path: Path) -> Path:
    figure.tight_layout()
    figure.savefig(path, dpi=100)
    plt.close(figure)
    return path
