"""The report of a benchmark: a table, the ratios of the targets, JSON and plots."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

from benchmarks.plots import draw_plots
from benchmarks.results import Result, Summary, summarize
from benchmarks.targets import ratios, seconds

_COLUMNS = "work,contestant,runs,result,seconds,spread,ratio,CPU s,others' CPU s,peak MiB,written MiB"
_HEADER = tuple(_COLUMNS.split(","))
_ERROR_LENGTH = 60
_KEY = """\
A ratio is the median seconds of the first work item or contestant, divided by those of the second; "at most" is its
target. "M" is a million rows. The letters are work items:

- (a) a snapshot with 2% changed, 0.5% new and 0.5% deleted entities; (b) the same with ten times as many entities
- (c) a change feed; (d) a change feed of which 1% is three years late
- (e) 50 snapshots in one load, each with 2% changed entities
- (f) a load of facts; (g) a load of the same facts after a late change of 1% of their customers
- (h) a snapshot that repeats the last one
- (i) small change feeds, one load after another"""
_JSON = "report.json"


def stored_runs(folder: Path, code: str) -> list[Result]:
    """Return the runs of the report in a folder; none if it does not exist, or is of other code of the package."""
    file = folder / _JSON
    content = json.loads(file.read_text()) if file.exists() else {}
    return [Result(**run) for run in content["runs"]] if content.get("code") == code else []


def write_report(results: Sequence[Result], environment: Mapping[str, str], folder: Path, code: str) -> None:
    """Write `report.md`, `report.json` and the plots into a folder; `code` is a digest of the package's code."""
    folder.mkdir(parents=True, exist_ok=True)
    summaries = summarize(results)
    content = {
        "code": code,
        "environment": dict(environment),
        "ratios": [
            {"target": target.description, "limit": target.limit, "ratio": ratio} for target, ratio in ratios(results)
        ],
        "seconds": [
            {"command": limit.description, "limit": limit.seconds, "seconds": value}
            for limit, value in seconds(results)
        ],
        "summaries": [asdict(summary) for summary in summaries],
        "runs": [asdict(result) for result in results],
    }
    (folder / _JSON).write_text(json.dumps(content, indent=1) + "\n")
    plots = draw_plots(summaries, folder)
    pictures = "\n".join(f"![{plot.stem}]({plot.name})" for plot in plots)
    parts = (
        "# Results of the benchmark",
        _machine(environment),
        _KEY,
        ratio_table(results),
        seconds_table(results),
        table(results),
        pictures,
    )
    (folder / "report.md").write_text("\n\n".join(parts) + "\n")


def write_layout_report(results: Sequence[Result], environment: Mapping[str, str], folder: Path) -> None:
    """Write `layouts.md` into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    parts = ("# Table layouts of a dimension", _machine(environment), layout_table(results))
    (folder / "layouts.md").write_text("\n\n".join(parts) + "\n")


def _machine(environment: Mapping[str, str]) -> str:
    return "\n".join(f"- {name}: {value}" for name, value in environment.items())


def table(results: Sequence[Result]) -> str:
    """Return the medians as a Markdown table; the ratio is to `scd_pipeline` in the same work item.

    `others' CPU s` is the processor time of programs outside of the benchmark: where it is high, seconds mean little.
    The memory of contestants with Spark is that of the session, which all of them share.
    """
    summaries = summarize(results)
    references = {_work(s): s.seconds for s in summaries if s.contestant == "scd_pipeline" and s.runs}
    return _markdown(_HEADER, [_row(summary, references.get(_work(summary))) for summary in summaries])


def ratio_table(results: Sequence[Result]) -> str:
    """Return the ratios of the targets as a Markdown table."""
    rows = [_compared(target.description, ratio, target.limit) for target, ratio in ratios(results)]
    return _markdown(("ratio of medians", "at most", "measured", ""), rows)


def seconds_table(results: Sequence[Result]) -> str:
    """Return the seconds of the commands as a Markdown table; unlike ratios they depend on the machine."""
    rows = [_compared(limit.description, value, limit.seconds) for limit, value in seconds(results)]
    return _markdown(("seconds of a command", "at most", "measured", ""), rows)


def layout_table(results: Sequence[Result]) -> str:
    """Return the median seconds of each operation on a table, with one column for each layout, as a Markdown table."""
    summaries = summarize(results)
    layouts = list(dict.fromkeys(summary.contestant for summary in summaries))
    medians = {(_work(summary), summary.contestant): f"{summary.seconds:.2f}" for summary in summaries}
    rows = [
        (f"{work[1]:,}", work[0].removeprefix("layout_"), *[medians.get((work, layout), "") for layout in layouts])
        for work in dict.fromkeys(_work(summary) for summary in summaries)
    ]
    return _markdown(("rows", "seconds", *layouts), rows)


def _compared(description: str, value: float | None, limit: float) -> tuple[str, ...]:
    if value is None:
        return description, f"{limit:.2f}", "not measured", ""
    return description, f"{limit:.2f}", f"{value:.2f}", "met" if value <= limit else "missed"


def _markdown(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    widths = [max(len(row[i]) for row in [header, *rows]) for i in range(len(header))]
    lines = [header, ["-" * width for width in widths], *rows]
    return "\n".join(
        "| " + " | ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)) + " |" for line in lines
    )


def _work(summary: Summary) -> tuple[str, int, int]:
    return summary.work, summary.size, summary.changes


def _row(summary: Summary, reference: float | None) -> tuple[str, ...]:
    name = f"{summary.work} {summary.size:,}" + (f" +{summary.changes:,}" if summary.changes else "")
    if not summary.runs:
        result = f"{summary.outcome} {summary.error[:_ERROR_LENGTH]}".strip()
        return (name, summary.contestant, "0", result, *[""] * 7)
    low, high = summary.spread
    return (
        name,
        summary.contestant,
        str(summary.runs),
        summary.outcome,
        f"{summary.seconds:.2f}",
        f"{low:.2f} to {high:.2f}",
        f"{summary.seconds / reference:.2f}" if reference else "",
        f"{summary.cpu_seconds:.1f}",
        f"{summary.other_cpu_seconds:.1f}",
        f"{summary.peak_memory / 2**20:.0f}",
        f"{summary.written / 2**20:.1f}",
    )
