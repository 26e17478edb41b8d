"""What `scd plan`, `scd load`, `scd status` and `scd check` print of a landing table and its dimension (S38)."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from scd_pipeline.cli import app as cli
from scd_pipeline_tests.semantics.specification import rule

DECLARATIONS = """\
landing_table: raw_issues
disposition: merge
primary_key: {id: int}
columns: [state]
sources: {github: {feed: "issues_{date}.csv"}}
---
dimension: dim_issue
business_key: {id: int}
attributes: {state: 2}
sources: {issues: {landing_table: raw_issues}}
single_scd_type: true
"""
PLAN = """
Plan for raw_issues
  github/feed/2024-01-01/...: unchanged
  github/feed/2024-02-01/...: accepted, 1 row: 0 new, 1 changed, 0 deleted
  rows of raw_issues: 1 to overwrite
  for example:
    _action    id  state
    ---------  --  ------
    overwrite   1  closed
Plan for dim_issue
  issues/feed/2024-01-01/1: unchanged
  rows of dim_issue: no changes
"""
STATUS = """
table       source  last delivery  age        pending  rejected  quarantined
----------  ------  -------------  ---------  -------  --------  -----------
raw_issues  github  2024-01-01     ...        1      NULL            0
dim_issue   issues  2024-01-01     ...        0         0            0
table       commits  log lag  audit lag  dimensions ahead  unknown members
----------  -------  -------  ---------  ----------------  ---------------
raw_issues        1        0          0                               NULL
dim_issue         1        0          0                               NULL
2 tables: 1 pending delivery, 0 bad rows in quarantine, 0 tables behind, 0 damaged
"""
CHECK = """
table       invariant                        result  violations
----------  -------------------------------  ------  ----------
raw_issues  surrogate_keys_are_unique        passed           0
raw_issues  surrogate_keys_are_not_reserved  passed           0
raw_issues  no_foreign_commits               passed           0
raw_issues  upstream_has_applied_commits     passed           0
raw_issues  tables_are_append_only           passed           0
raw_issues  no_unused_tables                 passed           0
raw_issues  data_files_exist                 passed           0
7 checks: 7 passed, 0 failed
"""


OTHER = (
    "---\ndimension: dim_user\nbusiness_key: id\nattributes: {name: 1}\nsources: {hr: {snapshot: 'users_{date}.csv'}}\n"
)


@pytest.fixture
def project(remote: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of declarations, deliveries and the warehouse, in which commands are run."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SCD_WAREHOUSE", str(tmp_path / "warehouse"))
    monkeypatch.setenv("SCD_REMOTE", remote)
    monkeypatch.setenv("SCD_DECLARATIONS", str(tmp_path))
    return tmp_path


@pytest.mark.slow(20)
@rule("S38")
def test_named_deliveries_are_loaded_into_the_tables_that_have_them(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The dimension reads the landing table that the same command has loaded."""
    (project / "issues.yaml").write_text(DECLARATIONS + OTHER, encoding="utf-8")
    (project / "issues_2024-01-01.csv").write_text("id,state\n1,open\n", encoding="utf-8")
    (project / "issues_2024-02-01.csv").write_text("id,state\n1,closed\n", encoding="utf-8")
    (project / "users_2024-03-01.csv").write_text("id,name\n1,Ann\n", encoding="utf-8")
    assert cli.main(["load", "--delivery", "2024-01-01", "--delivery", "2024-03-01"]) == 0
    printed = capsys.readouterr().out
    for summary in ("raw_issues: deliveries: 1", "dim_issue: deliveries: 1", "dim_user: deliveries: 1"):
        assert summary in printed
    assert cli.main(["load", "--delivery", "2024-05-01"]) == 2


@pytest.mark.slow(20)
@rule("S38")
def test_commands_show_the_deliveries_and_the_state_of_both_tables(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The dimension has a delivery for each time of the landing table, which is loaded first."""

    def scd(*arguments: str) -> str:
        """Return what a command prints, without blanks at the end of lines, ages and the times of files."""
        code = cli.main(arguments)
        printed = capsys.readouterr().out
        assert code == 0, printed
        return "\n".join(line.rstrip() for line in re.sub(r"\d+ days|(?<=/)\d{16}", "...", printed).splitlines())

    (project / "issues.yaml").write_text(DECLARATIONS, encoding="utf-8")
    (project / "issues_2024-01-01.csv").write_text("id,state\n1,open\n2,open\n", encoding="utf-8")
    scd("load")
    (project / "issues_2024-02-01.csv").write_text("id,state\n1,closed\n", encoding="utf-8")
    assert scd("plan") == PLAN.strip()
    assert scd("status") == STATUS.strip()
    assert scd("check", "raw_issues") == CHECK.strip()
