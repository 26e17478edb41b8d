"""The demo: raw pages of JSON in a bucket, a landing table, a dimension and a fact, compared with plain Python.

`make demo-lake` runs it in the folder of the clone.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable
from pathlib import Path

from examples.lake import pages
from scd_pipeline import Declarations, Delivery, Pipeline, ScdError, read_declarations
from scd_pipeline.cli.render import table
from scd_pipeline.cli.rows import collect
from scd_pipeline.frames import checkpoint
from scd_pipeline_tests.object_store import ObjectStore, serve

Report = Callable[[str], None]

DECLARATIONS = Path(__file__).parent / "lake.yaml"
BUCKET = "lake"
_FOLDER = Path("build/lake")
_QUERIES = {
    "issues": "SELECT id, title, state FROM raw_issues ORDER BY id",
    "history": "SELECT id, state, string(effective_from), CASE WHEN NOT current_flag THEN string(effective_to) END "
    "AS effective_to FROM dim_issue WHERE id IS NOT NULL ORDER BY id, effective_from",
    "comments": "SELECT comment, state FROM fct_comment LEFT JOIN dim_issue USING (issue_key) ORDER BY comment",
}
_EXPECTED = {"issues": pages.issues, "history": pages.history, "comments": pages.comments}


def main() -> int:
    """Run the demo and return its exit code: 1 if an answer differs from that of plain Python."""
    shutil.rmtree(_FOLDER, ignore_errors=True)
    try:
        with serve() as store, Pipeline(_FOLDER / "warehouse") as pipeline:
            store.reset(BUCKET)
            return 0 if run(pipeline, store, print) else 1
    except ScdError as error:
        print(f"error: {error}", file=sys.stderr)
        return error.exit_code


def run(pipeline: Pipeline, store: ObjectStore, report: Report) -> bool:
    """Deliver and load the pages in three steps, and return whether all answers are those of plain Python."""
    declared = read_declarations(DECLARATIONS)
    store.put(BUCKET, "raw/comments_2024-03-31.jsonl", pages.as_lines(pages.COMMENTS))
    report("two pages, and the comments of three months")
    _put(store, pages.FIRST)
    are_equal = [_load_and_compare(pipeline, declared, pages.FIRST, report)]
    report("a page that repeats one, one that arrives late, and one with a hard delete")
    _put(store, pages.LATE)
    delivered = {**pages.FIRST, **pages.LATE}
    are_equal.append(_load_and_compare(pipeline, declared, delivered, report))
    report(f"the page {pages.WITHDRAWN} is withdrawn")
    withdrawal = Delivery("github", name=pages.WITHDRAWN, withdrawn=True)
    store.delete(BUCKET, f"raw/issues_{pages.WITHDRAWN}.jsonl")
    pipeline.load(declared.landing_tables[0], withdrawal)
    remaining = {time: records for time, records in delivered.items() if time != pages.WITHDRAWN}
    are_equal.append(_load_and_compare(pipeline, declared, remaining, report))
    return all(are_equal)


def _put(store: ObjectStore, delivered: pages.Pages) -> None:
    for time, records in delivered.items():
        store.put(BUCKET, f"raw/issues_{time}.jsonl", pages.as_lines(records))


def _load_and_compare(pipeline: Pipeline, declared: Declarations, current: pages.Pages, report: Report) -> bool:
    """Load all tables, show the answers, and return whether they are those of plain Python."""
    for each in declared.tables:
        result = pipeline.load(each)
        outcomes = ", ".join(f"{batch.delivery} {batch.outcome}" for batch in result.results)
        report(f"  {result.table}: {outcomes or 'no delivery'}")
    are_equal = []
    for name, query in _QUERIES.items():
        answer, expected = checkpoint(pipeline.sql(query)), _EXPECTED[name](current)
        is_equal = [tuple(row) for row in answer.collect()] == expected
        are_equal.append(is_equal)
        report(f"  {name}: {'as in plain Python' if is_equal else f'expected {expected}'}")
        report(table(collect(answer, 0)))
    return all(are_equal)


if __name__ == "__main__":
    sys.exit(main())
