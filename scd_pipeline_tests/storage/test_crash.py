"""S17: a run that is killed between its commits is continued by the next one."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pytest

from scd_pipeline.declaration import Attribute
from scd_pipeline.delta.commits import UnchangedDimension
from scd_pipeline.delta.warehouse import Warehouse
from scd_pipeline.errors import DeclarationError
from scd_pipeline.load.run import ingest_and_apply, plan
from scd_pipeline.load.schema_steps import execute
from scd_pipeline.load.state import read_state
from scd_pipeline_tests.semantics.specification import requirement
from scd_pipeline_tests.storage.customers import CUSTOMER, feed, history
from scd_pipeline_tests.text_tables import assert_same_rows

UNDISTURBED = """
| id | city | from       | to         | version |
| a  | Rome | 2024-01-01 | 2024-02-01 | 1       |
| a  | Oslo | 2024-02-01 |            | 2       |
"""
SCRIPT = """
import os, signal, sys
from scd_pipeline.spark import session
from scd_pipeline.load import run as loading
from scd_pipeline.delta.commits import UnchangedDimension
from scd_pipeline.delta.warehouse import Warehouse
from scd_pipeline_tests.storage.customers import CUSTOMER, feed

def die(*args):
    os.kill(os.getpid(), signal.SIGKILL)

spark = session.connect_spark(sys.argv[1])
setattr(loading, sys.argv[3], die)
loading.ingest_and_apply(Warehouse(spark, sys.argv[2]), CUSTOMER, [feed("one", ("a", 2, "Oslo"))])
"""


class Killed(BaseException):
    """Represents the end of the process."""


def die(*args: Any) -> None:
    raise Killed


@contextmanager
def killed_before(step: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Kill the load in the block before that step."""
    monkeypatch.setattr(f"scd_pipeline.load.run.{step}", die)
    try:
        with pytest.raises(Killed):
            yield
    finally:
        monkeypatch.undo()


@requirement("F29")
@pytest.mark.slow
@pytest.mark.parametrize("before", ["commit_log", "commit_table"])
def test_the_next_run_has_the_result_of_an_undisturbed_one(
    in_rome: Warehouse, monkeypatch: pytest.MonkeyPatch, before: str
) -> None:
    with killed_before(before, monkeypatch):
        ingest_and_apply(in_rome, CUSTOMER, [feed("one", ("a", 2, "Oslo"))])
    ingest_and_apply(in_rome, CUSTOMER, [feed("one", ("a", 2, "Oslo"))])
    assert_same_rows(UNDISTURBED, history(in_rome))


@pytest.mark.slow
def test_a_run_without_deliveries_continues_a_killed_one(in_rome: Warehouse, monkeypatch: pytest.MonkeyPatch) -> None:
    with killed_before("commit_table", monkeypatch):
        ingest_and_apply(in_rome, CUSTOMER, [feed("one", ("a", 2, "Oslo"))])
    result = ingest_and_apply(in_rome, CUSTOMER)
    assert result.row_counts == {"close": 1, "open": 1}
    assert_same_rows(UNDISTURBED, history(in_rome))


@pytest.mark.slow
@pytest.mark.rule("S17")
def test_the_next_run_stores_the_declaration_of_a_run_killed_after_its_schema_steps(in_rome: Warehouse) -> None:
    """Otherwise a declaration without the new attribute would be accepted."""
    more = replace(CUSTOMER, attributes={"email": 1, "city": 2, "tier": Attribute(2, missing="not_provided")})
    for step in plan(in_rome, more, [feed("one", ("a", 2, "Oslo"))]).schema_steps:
        execute(step, in_rome)  # killed here
    ingest_and_apply(in_rome, more, [feed("one", ("a", 2, "Oslo"))])
    with pytest.raises(DeclarationError) as error:
        plan(in_rome, CUSTOMER, [])
    assert [(e.code, e.field) for e in error.value.errors] == [("TABLE_HAS_ATTRIBUTE", "attributes.tier")]


@pytest.mark.slow
def test_a_feed_of_no_ops_is_not_read_again(in_rome: Warehouse) -> None:
    """S13, S15: the log has the batch, the dimension has no commit, and the next run has nothing to apply."""
    version = in_rome.table("dim_customer").last_commit().table_version
    ingest_and_apply(in_rome, CUSTOMER, [feed("same", ("a", 2, "Rome"))])
    log, dimension = (in_rome.table(name).last_commit() for name in ("dim_customer_changes", "dim_customer"))
    assert (log.number, dimension.table_version) == (2, version)
    assert log.unchanged == UnchangedDimension(dimension.number, 2)
    assert not read_state(in_rome, CUSTOMER).has_pending_commits


@pytest.mark.slow
@requirement("F29")
def test_the_next_run_continues_a_real_killed_process(remote: str, in_rome: Warehouse) -> None:
    if not remote:
        pytest.skip("an embedded session dies with its process; the same kill is tried above in this process")
    arguments = [sys.executable, "-c", SCRIPT, remote, in_rome.path, "commit_table"]
    ended = subprocess.run(arguments, capture_output=True, text=True, timeout=300)
    assert ended.returncode == -signal.SIGKILL, ended.stderr
    assert in_rome.table("dim_customer_changes").last_commit().number == 2
    ingest_and_apply(in_rome, CUSTOMER)
    assert_same_rows(UNDISTURBED, history(in_rome))
