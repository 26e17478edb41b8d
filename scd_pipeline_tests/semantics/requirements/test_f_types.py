"""F1 to F52: the SCD types of a casino and of federal grants, in business time and from several sources.

Some cases also show the options X6, X9 and X11.
"""

from __future__ import annotations

from scd_pipeline_tests.semantics.specification import (
    Case,
    DeliveryTable,
    case,
    declare,
    feed,
    requirement,
    snapshots,
)

PLAYER = declare(
    """
    dimension: dim_player
    business_key: player_id
    sources:
      loyalty:
        snapshot: {}
        feed: {effective_at: time, deletes: "op = 'D'"}
    attributes:
      birth_date: {scd: 0, type: date, missing: not_provided}
      email: {scd: 1, missing: not_provided}
      tier: {scd: 2, missing: not_provided}
      home_property: {scd: 2, missing: not_provided}
      risk_score: {scd: 2, type: int, missing: not_provided}
      marketing_consent: {scd: 3, missing: not_provided}
    """
)
COUNTRY = declare(
    """
    dimension: dim_country_by_code
    business_key: country_code
    sources: {iso: {snapshot: {}, bad_row_limit: 1}}
    attributes: {country_name: 1, region: 1}
    """
)
ACCOUNT = declare(
    """
    dimension: dim_managed_account
    business_key: account_id
    sources: {hosts: {feed: {effective_at: time}}}
    attributes: {account_manager: 3}
    """,
    by_increments=False,
)
PROGRAM = declare(
    """
    dimension: dim_program
    business_key: program_id
    sources: {registry: {feed: {effective_at: time}}}
    attributes:
      eligibility_threshold: {scd: 6, type: int, previous: true, missing: not_provided}
      funding_cap_usd: {scd: 6, type: int, previous: last_different_value, missing: not_provided}
      program_status: {scd: 2, missing: not_provided}
      current_program_name: 1
      current_admin_agency: {scd: 1, missing: not_provided}
    """,
    by_increments=False,
)
RECIPIENT = declare(
    """
    dimension: dim_grant_recipient
    business_key: recipient_id
    sources: {registry: {snapshot: {}, feed: {effective_at: time, reason: reason}}}
    attributes: {legal_name: 2, status: 2, risk_tier: 2}
    """,
    by_increments=False,
)
GUEST = declare(
    """
    dimension: dim_player_of_three_sources
    business_key: player_id
    sources:
      loyalty: {existence: true, feed: {effective_at: time}}
      compliance: {feed: {effective_at: time}}
      hotel: {feed: {effective_at: time}}
    attributes:
      tier: {scd: 2, source: loyalty}
      risk_score: {scd: 2, type: int, source: compliance}
      home_property: {scd: 2, source: hotel}
    """,
    by_increments=False,
)
WALK = (
    "| 1 | P1 | 2024-01-01 |   | Bronze | North | 10 | a |",
    "| 2 | P1 | 2024-06-01 |   | Silver | North | 10 | a |",
    "| 3 | P1 | 2024-07-01 |   | Silver | North | 10 | b |",
    "| 4 | P1 | 2024-09-01 | D |        |       |    |   |",
    "| 5 | P1 | 2024-11-01 |   | Silver | North | 10 | b |",
)
"""A player who rises, changes the email address, leaves, and returns with the same values."""


WALK_HEADER = "| delivery | player_id | time | op | tier | home_property | risk_score | email |"


def walk(*lines: str) -> DeliveryTable:
    """Return lines of the walk as deliveries of the loyalty feed."""
    return feed("\n".join([WALK_HEADER, *lines]), "loyalty")


@requirement("F17")
@case
def test_a_version_ends_exactly_where_the_next_one_starts() -> Case:
    return Case(
        PLAYER,
        walk(*WALK[:2]),
        becomes="""
        | tier   | email | effective_from | effective_to | current_flag | version |
        | Bronze | a     | 2024-01-01     | 2024-06-01   | false        | 1       |
        | Silver | a     | 2024-06-01     | OPEN         | true         | 2       |
        """,
    )


@requirement("F18", "X9")
@case
def test_a_new_email_address_opens_no_version_and_is_in_all_versions() -> Case:
    return Case(
        PLAYER,
        walk(*WALK[:3]),
        becomes="""
        | tier   | email | effective_from | effective_to | version |
        | Bronze | b     | 2024-01-01     | 2024-06-01   | 1       |
        | Silver | b     | 2024-06-01     | OPEN         | 2       |
        """,
    )


@requirement("F19")
@case
def test_a_delete_closes_the_version_and_leaves_the_reason_of_its_opening() -> Case:
    return Case(
        PLAYER,
        walk(*WALK[:4]),
        becomes="""
        | tier   | effective_from | effective_to | current_flag | version | change_reason |
        | Bronze | 2024-01-01     | 2024-06-01   | false        | 1       | source_load   |
        | Silver | 2024-06-01     | 2024-09-01   | false        | 2       | source_load   |
        """,
    )


@requirement("F25")
@case
def test_a_version_has_the_reason_of_its_row_or_of_its_snapshot() -> Case:
    return Case(
        RECIPIENT,
        feed(
            """
            | delivery | recipient_id | time       | reason         | legal_name | status    | risk_tier |
            | 1        | R1           | 2024-01-01 |                | A          | active    | low       |
            | 2        | R1           | 2024-02-01 | tier_upgrade   | A          | active    | high      |
            | 3        | R1           | 2024-04-01 | manual_steward | A          | suspended | high      |
            """,
            "registry",
        ),
        snapshots(
            """
            | delivery | at         | recipient_id | legal_name | status   | risk_tier |
            | 4        | 2024-03-01 | R1           | A          | debarred | high      |
            """,
            "registry",
            reason="source_drift",
        ),
        becomes="""
        | status    | risk_tier | effective_from | change_reason  | change_source |
        | active    | low       | 2024-01-01     | source_load    | registry      |
        | active    | high      | 2024-02-01     | tier_upgrade   | registry      |
        | debarred  | high      | 2024-03-01     | source_drift   | registry      |
        | suspended | high      | 2024-04-01     | manual_steward | registry      |
        """,
        together=True,
    )


@requirement("F52")
@case
def test_several_sources_have_one_change_log_and_one_history() -> Case:
    """Each provides an attribute of its own, and one load writes the versions of all."""
    return Case(
        GUEST,
        feed(
            """
            | delivery | player_id | time       | tier   |
            | 1        | P1        | 2024-01-01 | Bronze |
            """,
            "loyalty",
        ),
        feed(
            """
            | delivery | player_id | time       | risk_score |
            | 2        | P1        | 2024-02-01 | 10         |
            """,
            "compliance",
        ),
        feed(
            """
            | delivery | player_id | time       | home_property |
            | 3        | P1        | 2024-03-01 | North         |
            """,
            "hotel",
        ),
        becomes="""
        | tier   | risk_score | home_property | effective_from | effective_to | change_source | version |
        | Bronze | NULL       | NULL          | 2024-01-01     | 2024-02-01   | loyalty       | 1       |
        | Bronze | 10         | NULL          | 2024-02-01     | 2024-03-01   | compliance    | 2       |
        | Bronze | 10         | North         | 2024-03-01     | OPEN         | hotel         | 3       |
        """,
        log="""
        | batch               | player_id | kind   | time       |
        | loyalty/feed/1/1    | P1        | upsert | 2024-01-01 |
        | compliance/feed/2/1 | P1        | upsert | 2024-02-01 |
        | hotel/feed/3/1      | P1        | upsert | 2024-03-01 |
        """,
    )


@requirement("F20", "F23", "F24")
@case
def test_a_return_leaves_a_gap_and_has_the_next_version_number() -> Case:
    return Case(
        PLAYER,
        walk(*WALK),
        becomes="""
        | tier   | email | effective_from | effective_to | current_flag | version |
        | Bronze | b     | 2024-01-01     | 2024-06-01   | false        | 1       |
        | Silver | b     | 2024-06-01     | 2024-09-01   | false        | 2       |
        | Silver | b     | 2024-11-01     | OPEN         | true         | 3       |
        """,
    )


@requirement("F21")
@case
def test_a_late_change_splits_a_version() -> Case:
    return Case(
        PLAYER,
        walk(*WALK, "| 6 | P1 | 2024-03-01 | | Gold | North | 10 | a |"),
        becomes="""
        | tier   | email | effective_from | effective_to | version |
        | Bronze | b     | 2024-01-01     | 2024-03-01   | 1       |
        | Gold   | b     | 2024-03-01     | 2024-06-01   | 2       |
        | Silver | b     | 2024-06-01     | 2024-09-01   | 3       |
        | Silver | b     | 2024-11-01     | OPEN         | 4       |
        """,
    )


@requirement("F21")
@case
def test_a_late_change_to_the_next_value_moves_the_start_of_a_version() -> Case:
    return Case(
        PLAYER,
        walk(*WALK, "| 6 | P1 | 2024-05-01 | | Silver | North | 10 | a |"),
        becomes="""
        | tier   | effective_from | effective_to | version |
        | Bronze | 2024-01-01     | 2024-05-01   | 1       |
        | Silver | 2024-05-01     | 2024-09-01   | 2       |
        | Silver | 2024-11-01     | OPEN         | 3       |
        """,
    )


@requirement("F3", "F12")
@case
def test_types_0_to_3_are_in_one_row_and_a_date_of_birth_stays() -> Case:
    return Case(
        PLAYER,
        feed(
            """
            | delivery | player_id | time       | birth_date | email | tier   | marketing_consent |
            | 1        | P1        | 2024-01-01 | 1990-01-01 | a     | Bronze | yes               |
            | 2        | P1        | 2024-02-01 | 1991-02-02 | b     | Silver | no                |
            """,
            "loyalty",
        ),
        becomes="""
        | birth_date | email | tier   | marketing_consent | previous_marketing_consent | effective_from | effective_to |
        | 1990-01-01 | b     | Bronze | no                | yes                        | 2024-01-01     | 2024-02-01   |
        | 1990-01-01 | b     | Silver | no                | yes                        | 2024-02-01     | OPEN         |
        """,
    )


@requirement("F12")
@case
def test_a_date_of_birth_that_was_unknown_is_filled_once() -> Case:
    return Case(
        PLAYER,
        feed(
            """
            | delivery | player_id | time       | birth_date |
            | 1        | P1        | 2024-01-01 | NULL       |
            | 2        | P1        | 2024-02-01 | 1990-01-01 |
            | 3        | P1        | 2024-03-01 | 1991-02-02 |
            """,
            "loyalty",
        ),
        becomes="""
        | birth_date | effective_from | effective_to |
        | 1990-01-01 | 2024-01-01     | OPEN         |
        """,
    )


@requirement("F1")
@case
def test_no_country_is_without_its_code() -> Case:
    """The column is nullable for the unknown member, which is no country; a delivered country has a code."""
    return Case(
        COUNTRY,
        snapshots(
            """
            | delivery | at         | country_code | country_name | region |
            | 1        | 2024-01-01 | DE           | Germany      | Europe |
            | 1        | 2024-01-01 | NULL         | Unknown      | EU     |
            """,
            "iso",
        ),
        becomes="""
        | country_code | country_name | region |
        | DE           | Germany      | Europe |
        """,
        quarantine="""
        | batch            | key               | reason                                     |
        | iso/snapshot/1/1 | country_code=NULL | the business key is NULL or cannot be read |
        """,
    )


@requirement("F13")
@case
def test_a_corrected_region_changes_one_row_and_no_other_country() -> Case:
    return Case(
        COUNTRY,
        snapshots(
            """
            | delivery | at         | country_code | country_name | region |
            | 1        | 2024-01-01 | DE           | Germany      | Europe |
            | 1        | 2024-01-01 | FR           | France       | Europe |
            | 2        | 2024-02-01 | DE           | Germany      | EU     |
            | 2        | 2024-02-01 | FR           | France       | Europe |
            """,
            "iso",
        ),
        becomes="""
        | country_code | country_name | region | last_updated |
        | DE           | Germany      | EU     | 2024-02-01   |
        | FR           | France       | Europe | 2024-01-01   |
        """,
    )


@requirement("F14")
@case
def test_null_is_a_change_of_type_1_in_both_directions() -> Case:
    return Case(
        COUNTRY,
        snapshots(
            """
            | delivery | at         | country_code | country_name | region |
            | 1        | 2024-01-01 | DE           | Germany      | NULL   |
            | 1        | 2024-01-01 | FR           | France       | EU     |
            | 2        | 2024-02-01 | DE           | Germany      | EU     |
            | 2        | 2024-02-01 | FR           | France       | NULL   |
            """,
            "iso",
        ),
        becomes="""
        | country_code | region | last_updated |
        | DE           | EU     | 2024-02-01   |
        | FR           | NULL   | 2024-02-01   |
        """,
    )


@requirement("F14")
@case
def test_null_is_a_change_of_type_3_in_both_directions() -> Case:
    return Case(
        ACCOUNT,
        feed(
            """
            | delivery | account_id | time       | account_manager |
            | 1        | A1         | 2024-01-01 | NULL            |
            | 1        | A2         | 2024-01-01 | m1              |
            | 2        | A1         | 2024-02-01 | m1              |
            | 2        | A2         | 2024-02-01 | NULL            |
            """,
            "hosts",
        ),
        becomes="""
        | account_id | account_manager | previous_account_manager | account_manager_changed_at |
        | A1         | m1              | NULL                     | 2024-02-01                 |
        | A2         | NULL            | m1                       | 2024-02-01                 |
        """,
    )


@requirement("F4", "F34")
@case
def test_a_row_has_the_manager_and_the_one_before() -> Case:
    """Account A1 has had one manager so far, A2 two and A3 three; each has one row."""
    return Case(
        ACCOUNT,
        feed(
            """
            | delivery | account_id | time       | account_manager |
            | 1        | A1         | 2024-01-01 | m1              |
            | 1        | A2         | 2024-01-01 | m1              |
            | 1        | A3         | 2024-01-01 | m1              |
            | 2        | A2         | 2024-02-01 | m2              |
            | 2        | A3         | 2024-02-01 | m2              |
            | 3        | A3         | 2024-03-01 | m3              |
            """,
            "hosts",
        ),
        becomes="""
        | account_id | account_manager | previous_account_manager | account_manager_changed_at |
        | A1         | m1              | NULL                     | 2024-01-01                 |
        | A2         | m2              | m1                       | 2024-02-01                 |
        | A3         | m3              | m2                       | 2024-03-01                 |
        """,
    )


LIMITS = feed(
    """
    | delivery | program_id | time       | eligibility_threshold | funding_cap_usd | current_program_name |
    | 1        | PR1        | 2024-01-01 | 100                   | 5000            | n1                   |
    | 2        | PR1        | 2024-02-01 | 150                   | 5000            | n1                   |
    | 3        | PR1        | 2024-03-01 | 150                   | 5000            | n2                   |
    | 4        | PR1        | 2024-04-01 | 150                   | 6000            | n2                   |
    """,
    "registry",
)


@requirement("F40", "X6")
@case
def test_a_program_has_its_limits_then_and_before() -> Case:
    """The previous threshold is that of the version before, even if it is equal."""
    return Case(
        PROGRAM,
        LIMITS,
        becomes="""
        | eligibility_threshold | previous_eligibility_threshold | funding_cap_usd | effective_from | effective_to |
        | 100                   | NULL                           | 5000            | 2024-01-01     | 2024-02-01   |
        | 150                   | 100                            | 5000            | 2024-02-01     | 2024-04-01   |
        | 150                   | 150                            | 6000            | 2024-04-01     | OPEN         |
        """,
    )


@requirement("F40", "X5", "X6")
@case
def test_a_new_name_of_a_program_opens_no_version_and_the_last_different_cap_is_an_option() -> Case:
    return Case(
        PROGRAM,
        LIMITS,
        becomes="""
        | funding_cap_usd | previous_funding_cap_usd | current_funding_cap_usd | current_program_name | version |
        | 5000            | NULL                     | 6000                    | n2                   | 1       |
        | 5000            | NULL                     | 6000                    | n2                   | 2       |
        | 6000            | 5000                     | 6000                    | n2                   | 3       |
        """,
    )


@requirement("F7", "F40")
@case
def test_all_versions_of_a_program_have_its_latest_name_and_agency() -> Case:
    """A program is announced, active, and sunset; its status is of type 2."""
    return Case(
        PROGRAM,
        feed(
            """
            | delivery | program_id | time       | program_status | current_program_name | current_admin_agency |
            | 1        | PR1        | 2024-01-01 | pre-launch     | n1                   | a1                   |
            | 2        | PR1        | 2024-02-01 | active         | n1                   | a1                   |
            | 3        | PR1        | 2024-03-01 | active         | n2                   | a2                   |
            | 4        | PR1        | 2024-04-01 | sunset         | n2                   | a2                   |
            """,
            "registry",
        ),
        becomes="""
        | program_status | current_program_name | current_admin_agency | effective_from | effective_to | version |
        | pre-launch     | n2                   | a2                   | 2024-01-01     | 2024-02-01   | 1       |
        | active         | n2                   | a2                   | 2024-02-01     | 2024-04-01   | 2       |
        | sunset         | n2                   | a2                   | 2024-04-01     | OPEN         | 3       |
        """,
    )


@requirement("F42", "X11")
@case
def test_a_player_that_a_snapshot_omits_is_closed() -> Case:
    return Case(
        PLAYER,
        snapshots(
            """
            | delivery | at         | player_id | tier   |
            | 1        | 2024-01-01 | P1        | Bronze |
            | 1        | 2024-01-01 | P2        | Bronze |
            | 2        | 2024-02-01 | P1        | Bronze |
            """,
            "loyalty",
        ),
        becomes="""
        | player_id | effective_from | effective_to |
        | P1        | 2024-01-01     | OPEN         |
        | P2        | 2024-01-01     | 2024-02-01   |
        """,
    )


@requirement("F42", "X11")
@case
def test_a_player_that_a_feed_omits_is_not_closed() -> Case:
    return Case(
        PLAYER,
        feed(
            """
            | delivery | time       | player_id | tier   |
            | 1        | 2024-01-01 | P1        | Bronze |
            | 1        | 2024-01-01 | P2        | Bronze |
            | 2        | 2024-02-01 | P1        | Bronze |
            """,
            "loyalty",
        ),
        becomes="""
        | player_id | effective_from | effective_to |
        | P1        | 2024-01-01     | OPEN         |
        | P2        | 2024-01-01     | OPEN         |
        """,
    )


@requirement("F8")
@case
def test_a_recipient_is_debarred_from_a_day_on() -> Case:
    return Case(
        RECIPIENT,
        feed(
            """
            | delivery | recipient_id | time       | legal_name | status   | risk_tier |
            | 1        | R1           | 2023-10-02 | Harbor     | active   | low       |
            | 2        | R1           | 2024-03-01 | Harbor     | debarred | low       |
            """,
            "registry",
        ),
        becomes="""
        | status   | effective_from | effective_to |
        | active   | 2023-10-02     | 2024-03-01   |
        | debarred | 2024-03-01     | OPEN         |
        """,
    )


@requirement("F27")
@case
def test_several_changes_of_a_player_in_one_batch_are_versions() -> Case:
    return Case(
        PLAYER,
        feed(
            """
            | delivery | player_id | time       | tier   |
            | 1        | P1        | 2024-01-01 | Bronze |
            | 1        | P1        | 2024-01-02 | Silver |
            | 1        | P1        | 2024-01-03 | Gold   |
            """,
            "loyalty",
        ),
        becomes="""
        | tier   | effective_from | effective_to | version |
        | Bronze | 2024-01-01     | 2024-01-02   | 1       |
        | Silver | 2024-01-02     | 2024-01-03   | 2       |
        | Gold   | 2024-01-03     | OPEN         | 3       |
        """,
    )


@requirement("F27")
@case
def test_different_changes_of_a_player_at_one_time_are_rejected() -> Case:
    return Case(
        PLAYER,
        feed(
            """
            | delivery | player_id | time       | tier   |
            | 1        | P1        | 2024-01-01 | Bronze |
            | 2        | P1        | 2024-02-01 | Silver |
            | 2        | P1        | 2024-02-01 | Gold   |
            """,
            "loyalty",
        ),
        becomes="""
        | tier   | effective_from | effective_to |
        | Bronze | 2024-01-01     | OPEN         |
        """,
        results="""
        | arrives | batch            | outcome  | code              | keys         |
        | 1       | loyalty/feed/1/1 | accepted | ''                | ''           |
        | 2       | loyalty/feed/2/1 | rejected | UNORDERED_CHANGES | player_id=P1 |
        """,
    )
