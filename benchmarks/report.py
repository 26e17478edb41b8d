"""The report of a benchmark: a table."""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.results import Result, Summary, summarize

_COLUMNS = "work,contestant,runs,result,seconds,spread,ratio,CPU s,others' CPU s,peak MiB,written MiB"
_HEADER = tuple(_COLUMNS.split(","))
_ERROR_LENGTH = 60


def table(results: Sequence[Result]) -> str:
    """Return the medians as a Markdown table; the ratio is to `scd_pipeline` in the same work item."""
    summaries = summarize(results)
    references = {_work(s): s.seconds for s in summaries if s.contestant == "scd_pipeline" and s.runs}
    rows = [_row(summary, references.get(_work(summary))) for summary in summaries]
    widths = [max(len(row[i]) for row in [_HEADER, *rows]) for i in range(len(_HEADER))]
    lines = [_HEADER, tuple("-" * width for width in widths), *rows]
    return "\n".join(
        "| " + " | ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)) + " |" for line in lines
    )


def _work(summary: Summary) -> tuple[str, int, int]:
    return summary.work, summary.size, summary.changes


def _row(summary: Summary, reference: float | None) -> tuple[str, ...]:
    name = f"{summary.work} {summary.size:,}" + (f" +{summary.changes:,}" if summary.changes else "")
    if not summary.runs:
        return (name, summary.contestant, "0", f"{summary.outcome} {summary.error[:_ERROR_LENGTH]}".strip(), *[""] * 7)
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
