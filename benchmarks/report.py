"""The report of a benchmark: a table, the ratios of the targets, JSON and plots."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, TypeAlias

from benchmarks.layouts import QUESTIONS
from benchmarks.plots import draw_plots
from benchmarks.results import Result, Summary, summarize
from benchmarks.targets import ratios, seconds

_COLUMNS = "work,contestant,runs,result,seconds,spread,ratio,CPU s,others' CPU s,peak MiB,written MiB"
_HEADER = tuple(_COLUMNS.split(","))
_ERROR_LENGTH = 60
_KEY = """\
A ratio is the median seconds of the first work item or contestant, divided by those of the second; with "CPU", it is
the ratio of their processor time. "At most" is its target. "M" is a million rows. The letters are work items:

- (a) a snapshot with 2% changed, 0.5% new and 0.5% deleted entities; (b) the same with ten times as many entities
- (c) a change feed; (d) a change feed of which 1% is three years late
- (e) 50 snapshots in one load, each with 2% changed entities
- (f) a load of facts; (g) a load of the same facts after a late change of 1% of their customers
- (h) a snapshot that repeats the last one
- (i) small change feeds, one load after another; `i-after` is one such load after 5,000 deliveries, which are prepared
  in few loads because only their number matters
- (j) a query that aggregates stored facts by attributes of their dimension, joined by the stored surrogate key or by
  business key and time

(d) is measured into one million entities only, because its target compares it with (c) at that size.

Ratios are computed only between results of one machine since its last start. A work item that was begun on one machine
and continued on another one was measured again from its first round, and the table has only those results.

The last table has medians of the runs with valid rows. The figures of a contestant with a warm Spark server, or in
`scd dev`, include these processes:

- "CPU s" is the processor time of the contestant's processes; "others' CPU s" is that of all other programs on the
  machine meanwhile. Where it is high, the seconds mean little.
- "peak MiB" is the largest resident memory. Contestants in the warm session share one Java process, which returns no
  memory: their figure is the largest so far, including that of earlier runs. The memory of a warm server includes its
  earlier runs as well.
- "written MiB" is what the processes wrote to disk, including shuffles and temporary files."""
_JSON = "report.json"
LAYOUT_JSON = "layouts.json"
_LAYOUT_KEY = """\
The rows of a dimension, three versions of each entity, are written in an order that is unrelated to the key; OPTIMIZE
arranges them for three of the layouts. Each operation is measured on all layouts in turn:

- write, arrange: an append of all rows, and OPTIMIZE
- find: all columns of the versions of 25,000 entities; entity: those of one entity
- current, as_of: an aggregate of the current versions, and of those in force at a time in the past
- replace: closing and opening a version of 25,000 entities, which leaves deletion vectors
- ..._after_5, ..._after_10: the reads after as many replacements; compact_after: OPTIMIZE after all of them"""

Environments: TypeAlias = Mapping[str, Mapping[str, str]]
"""The description of each machine by its id."""


def stored_runs(folder: Path, code: str, file: str = _JSON) -> list[Result]:
    """Return the runs of the report in a folder; none if it does not exist, or is of other code."""
    content = _stored_content(folder, code, file)
    return [Result(**run) for run in content["runs"]] if content else []


def stored_environments(folder: Path, code: str, file: str = _JSON) -> Environments:
    """Return the environments of the report in a folder; none if it does not exist, or is of other code."""
    content = _stored_content(folder, code, file)
    return dict(content["environments"]) if content else {}


def _stored_content(folder: Path, code: str, file: str) -> dict[str, Any]:
    path = folder / file
    content: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {}
    return content if content.get("code") == code else {}


def write_report(results: Sequence[Result], environments: Environments, folder: Path, code: str) -> None:
    """Write `report.md`, `report.json` and the plots into a folder; `code` is a digest of the measured code."""
    folder.mkdir(parents=True, exist_ok=True)
    summaries = summarize(results)
    content = {
        "code": code,
        "environments": environments,
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
        _machines(environments, results),
        _KEY,
        ratio_table(results),
        seconds_table(results),
        table(results),
        pictures,
    )
    (folder / "report.md").write_text("\n\n".join(parts) + "\n")


def write_layout_report(results: Sequence[Result], environments: Environments, folder: Path, code: str) -> None:
    """Write `layouts.md` and `layouts.json` into a folder; `code` is a digest of the measured code."""
    folder.mkdir(parents=True, exist_ok=True)
    content = {"code": code, "environments": environments, "runs": [asdict(result) for result in results]}
    (folder / LAYOUT_JSON).write_text(json.dumps(content, indent=1) + "\n")
    parts = (
        "# Table layouts of a dimension",
        _machines(environments, results),
        _LAYOUT_KEY,
        best_layout_table(results),
        layout_table(results),
    )
    (folder / "layouts.md").write_text("\n\n".join(parts) + "\n")


def _machines(environments: Environments, results: Sequence[Result]) -> str:
    """Return the environment of each machine with the work items that were measured on it."""
    summaries = summarize(results)
    parts = []
    for machine, environment in environments.items():
        works = dict.fromkeys(_work_name(summary) for summary in summaries if summary.machine == machine)
        lines = [f"- {name}: {value}" for name, value in environment.items()]
        if len({summary.machine for summary in summaries}) > 1:
            lines.insert(0, f"- measured here: {', '.join(works) or 'nothing'}")
        parts.append("\n".join(lines))
    return "\n\nAnother machine:\n\n".join(parts)


def table(results: Sequence[Result]) -> str:
    """Return the medians as a Markdown table; the ratio is to `scd_pipeline` in the same work item.

    The report explains the columns.
    """
    summaries = summarize(results)
    references = {_work(s): s.seconds for s in summaries if s.contestant == "scd_pipeline" and s.runs}
    return _markdown(_HEADER, [_row(summary, references.get(_work(summary))) for summary in summaries])


def ratio_table(results: Sequence[Result]) -> str:
    """Return the ratios of the targets as a Markdown table."""
    summaries = summarize(results)
    rows = [
        _compared(target.description, ratio, target.limit, on_machines=len(target.machines(summaries)))
        for target, ratio in ratios(results)
    ]
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


def best_layout_table(results: Sequence[Result]) -> str:
    """Return the layout with the lowest median seconds for each question at each size, as a Markdown table."""
    summaries = summarize(results)
    medians = {(summary.size, summary.work, summary.contestant): summary.seconds for summary in summaries}
    layouts = list(dict.fromkeys(summary.contestant for summary in summaries))
    rows = []
    for size in dict.fromkeys(summary.size for summary in summaries):
        for question, operations in QUESTIONS.items():
            keys = {layout: [(size, f"layout_{name}", layout) for name in operations] for layout in layouts}
            totals = {
                layout: sum(medians[key] for key in of_layout)
                for layout, of_layout in keys.items()
                if all(key in medians for key in of_layout)
            }
            if not totals:
                continue
            best = min(totals, key=totals.__getitem__)
            reference = f"{totals['nothing'] / totals[best]:.2f}" if "nothing" in totals else ""
            rows.append((f"{size:,}", question, best, f"{totals[best]:.2f}", reference))
    return _markdown(("rows", "question", "best layout", "seconds", "nothing / best"), rows)


def _compared(description: str, value: float | None, limit: float, *, on_machines: int = 1) -> tuple[str, ...]:
    if value is None:
        return description, f"{limit:.2f}", "on two machines" if on_machines > 1 else "not measured", ""
    return description, f"{limit:.2f}", f"{value:.2f}", "met" if value <= limit else "missed"


def _markdown(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    widths = [max(len(row[i]) for row in [header, *rows]) for i in range(len(header))]
    lines = [header, ["-" * width for width in widths], *rows]
    return "\n".join(
        "| " + " | ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)) + " |" for line in lines
    )


def _work(summary: Summary) -> tuple[str, int, int]:
    return summary.work, summary.size, summary.changes


def _work_name(summary: Summary) -> str:
    return f"{summary.work} {summary.size:,}" + (f" +{summary.changes:,}" if summary.changes else "")


def _row(summary: Summary, reference: float | None) -> tuple[str, ...]:
    name = _work_name(summary)
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
