"""The demo of the casino: load faulty deliveries, and answer what compliance officers and analysts ask.

`make demo-casino` runs it. All answers are compared with the correct ones, which are computed without Spark.
"""

from __future__ import annotations

import sys
from collections.abc import Collection
from datetime import date
from decimal import Decimal
from pathlib import Path

from examples.casino.generator import Casino, player_id
from examples.demonstration import Demonstration, Options, Question, Report, run_demo
from scd_pipeline import Pipeline

DECLARATIONS = Path(__file__).parent / "declarations"
FOLDER = Path("build/casino")
_NAMED_PLAYERS = 10
_LOADED_FIRST = ("dim_player", "dim_compliance_threshold", "dim_country", "fct_cash_transactions")
"""The tables of the reports, whose history is corrected by what arrives later."""

REPORT_OF_DAY = """
    SELECT event_id, threshold_type, player_id, CAST(cash_in_amount AS INT) AS amount,
        CAST(threshold_ctr_threshold AS INT) AS threshold
    FROM fct_cash_transactions_joined
    WHERE CAST(event_ts AS DATE) = DATE'{day}' AND cash_in_amount >= threshold_ctr_threshold
    ORDER BY event_id"""
COIN_IN_BY_TIER = """
    SELECT play.player_tier AS tier_at_play, player.tier AS tier_today, count(*) AS plays, sum(play.coin_in) AS coin_in
    FROM fct_slot_play_joined play LEFT JOIN dim_player_current player ON player.player_id = play.player_id
    GROUP BY 1, 2 ORDER BY 1, 2"""
TIERS_AT_FIRST_PLAY = """
    SELECT play.player_id, date_format(min(play.event_ts), 'yyyy-MM-dd HH:mm:ss') AS first_play,
        min_by(play.player_tier, struct(play.event_ts, play.event_id)) AS tier_at_play,
        any_value(player.tier) AS tier_today
    FROM fct_slot_play_joined play LEFT JOIN dim_player_current player ON player.player_id = play.player_id
    WHERE play.player_tier IS NOT NULL AND play.player_id < '{player_id}'
    GROUP BY play.player_id ORDER BY play.player_id"""
MANAGERS = "SELECT account_id, account_manager, previous_manager FROM dim_account ORDER BY account_id"


def run(options: Options, report: Report, *, first: Collection[str] = _LOADED_FIRST) -> int:
    """Write and load the deliveries, and report the answers; return 1 if one is not the correct one.

    `first` are the tables that are loaded before the second part of the deliveries arrives; all if it is empty.
    """
    casino = Casino.of_size(options.rows, options.seed)
    demo = Demonstration(options, report)
    report(f"A casino with {casino.players:,} players and {casino.machines:,} slot machines, over {casino.days} days.")
    arrivals, declared = demo.prepare(DECLARATIONS, casino.batches(), casino.days)
    with Pipeline(demo.warehouse, remote=options.remote) as pipeline:
        demo.load_in_two_parts(pipeline, declared, arrivals, first=first)
        demo.answer(pipeline, declared.facts, _questions(casino))
    demo.suggest(f"history dim_player player_id={player_id(1)}")
    return 1 if demo.different else 0


def _questions(casino: Casino) -> list[Question]:
    reports = [
        Question(
            f"Which cash transactions of {day} are reported? The threshold of CTR rises on 2027-01-01.",
            REPORT_OF_DAY.format(day=day),
            casino.reportable_cash(day),
            limit=14,
        )
        for day in (date(2026, 12, 31), date(2027, 1, 1))
    ]
    totals = casino.coin_in_by_tier()
    return [
        *reports,
        Question(
            "What did players of each tier play? By their tier at the play, and today.",
            COIN_IN_BY_TIER,
            [(*tiers, plays, Decimal(cents).scaleb(-2)) for tiers, (plays, cents) in totals.items()],
            limit=20,
        ),
        Question(
            f"Which tier had each of the first {_NAMED_PLAYERS} players at the first play as a member, and which one "
            "today?",
            TIERS_AT_FIRST_PLAY.format(player_id=player_id(_NAMED_PLAYERS)),
            casino.tiers_at_first_play(_NAMED_PLAYERS),
        ),
        Question(
            "Who manages each account, and who did before?",
            MANAGERS,
            [(account, *names) for account, names in casino.previous_managers().items()],
            limit=5,
        ),
    ]


if __name__ == "__main__":
    sys.exit(run_demo(str(__doc__).splitlines()[0], FOLDER, run))
