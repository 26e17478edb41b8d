"""The demo of federal grants: load faulty deliveries, and answer what an inspector general asks.

`make demo-federal` runs it. All answers are compared with the correct ones, which are computed without Spark.
"""

from __future__ import annotations

import sys
from pathlib import Path

from examples.demonstration import Demonstration, Options, Question, Report, run_demo
from examples.federal.generator import DEBARRED, WEEKS, Grants, recipient_id
from scd_pipeline import Pipeline

DECLARATIONS = Path(__file__).parent / "declarations"
FOLDER = Path("build/federal")

AWARDS_TO_DEBARRED = """
    SELECT award_id, recipient_id, CAST(CAST(awarded_on AS DATE) AS STRING) AS awarded_on, CAST(amount_usd AS INT)
        AS amount_usd
    FROM fct_award_joined WHERE recipient_status = 'debarred'
    ORDER BY awarded_on, award_id"""
AWARDS_OVER_CAP = """
    SELECT award_id, program_id, CAST(amount_usd AS INT) AS amount_usd,
        CAST(program_funding_cap_usd AS INT) AS cap_then, CAST(program_current_funding_cap_usd AS INT) AS cap_now
    FROM fct_award_joined
    WHERE amount_usd > program_funding_cap_usd AND amount_usd <= program_current_funding_cap_usd
    ORDER BY award_id"""

AWARDS_BY_STATUS = """
    SELECT program_program_status AS status_then, CAST(count(*) AS INT) AS awards,
        CAST(sum(amount_usd) AS BIGINT) AS amount_usd
    FROM fct_award_joined GROUP BY 1 ORDER BY 1"""


def run(options: Options, report: Report) -> int:
    """Write and load the deliveries, and report the answers; return 1 if one is not the correct one."""
    grants = Grants.of_size(options.rows, options.seed)
    demo = Demonstration(options, report)
    report(f"Grants of {grants.programs:,} programs to {grants.recipients:,} recipients, over {WEEKS} weeks.")
    arrivals, declared = demo.prepare(DECLARATIONS, grants.batches(), WEEKS)
    with Pipeline(demo.warehouse, remote=options.remote) as pipeline:
        demo.load_in_two_parts(pipeline, declared, arrivals)
        demo.answer(pipeline, declared.facts, _questions(grants))
    demo.suggest(f"history dim_grant_recipient recipient_id={recipient_id(DEBARRED)}")
    return 1 if demo.different else 0


def _questions(grants: Grants) -> list[Question]:
    return [
        Question(
            "Which awards went to recipients that were debarred on that day?",
            AWARDS_TO_DEBARRED,
            grants.awards_to_debarred(),
        ),
        Question(
            "How much did programs of each status on that day award?", AWARDS_BY_STATUS, grants.awards_by_status()
        ),
        Question(
            "Which awards exceeded the cap in force, though the cap of today allows them?",
            AWARDS_OVER_CAP,
            grants.awards_over_cap(),
        ),
    ]


if __name__ == "__main__":
    sys.exit(run_demo(str(__doc__).splitlines()[0], FOLDER, run))
