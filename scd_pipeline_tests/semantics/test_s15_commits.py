"""S15 and S16: the commits of a load, and the rows of each table version."""

from scd_pipeline.invariants.dimensions import violations
from scd_pipeline_tests.semantics.declarations import CUSTOMER
from scd_pipeline_tests.semantics.engine import OwnTables, records
from scd_pipeline_tests.semantics.specification import feed, requirement, rule, snapshots
from scd_pipeline_tests.text_tables import assert_same_rows

BACKFILL = snapshots(
    """
    | delivery | at         | id | city | email |
    | 1        | 2024-01-01 | 1  | Bonn | a     |
    | 1        | 2024-01-01 | 2  | Ulm  | a     |
    | 2        | 2024-02-01 | 1  | Kiel | a     |
    | 3        | 2024-03-01 | 1  | Kiel | b     |
    """
)
UNCHANGED = snapshots(
    """
    | delivery | at         | id | city | email |
    | 4        | 2024-04-01 | 1  | Kiel | b     |
    """
)
LATE = feed(
    """
    | delivery | id | time       | city |
    | 5        | 1  | 2024-01-15 | Jena |
    """
)


@requirement("F15")
@rule("S13", "S15", "S16")
def test_a_load_writes_one_commit_or_none(own_tables: OwnTables) -> None:
    """Three batches in one load make one commit, a retry or unchanged values none, and a late change one."""
    dimension = CUSTOMER.dimension
    first = own_tables.load(dimension, BACKFILL)
    repeated = own_tables.load(dimension, BACKFILL, UNCHANGED)
    late = own_tables.load(dimension, LATE)

    assert [batch.outcome for batch in repeated.results] == ["unchanged"] * 3 + ["accepted"]
    assert repeated.table_version == first.table_version
    assert late.table_version == first.table_version + 1

    commits = [row for row in own_tables.history(dimension) if "batches" in row]
    assert [sorted(commit["batches"]) for commit in commits] == [
        ["crm/snapshot/1/1", "crm/snapshot/2/1", "crm/snapshot/3/1"],
        ["crm/feed/5/1"],
    ]
    for commit in own_tables.history(dimension):
        rows = own_tables.warehouse.table(dimension.name).read(commit["version"])
        assert records(violations(rows, dimension)) == []
    assert_same_rows(
        """
        | id | city | email | effective_from | effective_to |
        | 1  | Bonn | b     | 2024-01-01     | 2024-01-15   |
        | 1  | Jena | b     | 2024-01-15     | 2024-02-01   |
        | 1  | Kiel | b     | 2024-02-01     | OPEN         |
        | 2  | Ulm  | a     | 2024-01-01     | 2024-02-01   |
        """,
        own_tables.rows(dimension),
    )
