"""The settings of a session while loads run in it."""

from __future__ import annotations

from typing import Any, cast

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from scd_pipeline.load.session_settings import running_load, running_queries
from scd_pipeline_tests.semantics.specification import requirement

PARTITIONS, CODE = "spark.sql.shuffle.partitions", "spark.sql.codegen.wholeStage"
STATE_PARTITIONS = "spark.databricks.delta.snapshotPartitions"
INFERRED_FILTERS = "spark.sql.constraintPropagation.enabled"


class Conf(dict[str, str]):
    """The settings of a session; one that is refused cannot be set."""

    refused = ""
    is_lost = False

    def set(self, name: str, value: str) -> None:
        if self.is_lost or name == self.refused:
            raise PySparkException("[CONFIG_NOT_AVAILABLE]")
        self[name] = value

    def unset(self, name: str) -> None:
        if self.is_lost:
            raise PySparkException("[NO_ACTIVE_SESSION]")
        del self[name]


class Session:
    def __init__(self) -> None:
        self.conf = Conf({PARTITIONS: "200"})


@pytest.fixture
def session() -> Session:
    return Session()


def spark(session: Session) -> SparkSession:
    return cast(SparkSession, cast(Any, session))


def few(session: Session) -> tuple[str | None, str | None]:
    return session.conf.get(PARTITIONS), session.conf.get(CODE)


NORMAL, FEW = ("200", None), ("1", "false")


def test_a_load_of_few_records_has_its_own_settings(session: Session) -> None:
    with running_load(spark(session)) as load:
        assert few(session) == NORMAL
        load.expect_records(read=1_999, shuffled=1_999)
        assert few(session) == FEW
    assert session.conf == {PARTITIONS: "200"}


@pytest.mark.parametrize(
    ("read", "shuffled", "settings"),
    [
        (19_999, 19_999, ("1", "false")),
        (20_000, 19_999, ("1", None)),
        (None, 20_000, ("2", None)),
        (None, 199_999, ("2", None)),
        (None, 200_000, NORMAL),
        (None, None, NORMAL),
    ],
)
def test_read_records_decide_on_code_and_shuffled_ones_on_partitions(
    session: Session, read: int | None, shuffled: int | None, settings: tuple[str, str | None]
) -> None:
    with running_load(spark(session)) as load:
        load.expect_records(read=read, shuffled=shuffled)
        assert few(session) == settings
    assert session.conf == {PARTITIONS: "200"}


@pytest.mark.parametrize(("records", "settings"), [(19_999, FEW), (20_000, ("2", None)), (None, NORMAL)])
def test_queries_of_few_records_have_the_settings_of_such_a_load(
    session: Session, records: int | None, settings: tuple[str, str | None]
) -> None:
    with running_queries(spark(session), records):
        assert few(session) == settings
    assert session.conf == {PARTITIONS: "200"}


def test_every_load_reads_states_of_tables_in_few_partitions_and_infers_no_filters(session: Session) -> None:
    session.conf |= {STATE_PARTITIONS: "50", INFERRED_FILTERS: "true"}
    with running_load(spark(session)):
        assert session.conf == {PARTITIONS: "200", STATE_PARTITIONS: "2", INFERRED_FILTERS: "false"}
    assert session.conf == {PARTITIONS: "200", STATE_PARTITIONS: "50", INFERRED_FILTERS: "true"}


def test_settings_follow_what_is_known_of_the_load(session: Session) -> None:
    """The number of the records that are shuffled is known only after the log was read."""
    with running_load(spark(session)) as load:
        for shuffled, partitions in ((None, "200"), (100_000, "2"), (100, "1"), (100_000, "2"), (None, "200")):
            load.expect_records(read=None, shuffled=shuffled)
            assert session.conf[PARTITIONS] == partitions


def test_a_failed_load_restores_the_settings(session: Session) -> None:
    def fail() -> None:
        with running_load(spark(session)) as load:
            load.expect_records(read=1_999, shuffled=1_999)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert session.conf == {PARTITIONS: "200"}


def test_another_load_of_the_session_has_the_settings_of_the_session(session: Session) -> None:
    with running_load(spark(session)) as first:
        first.expect_records(read=0, shuffled=0)
        with running_load(spark(session)) as second:
            assert few(session) == NORMAL
            second.expect_records(read=1_999, shuffled=1_999)
            assert few(session) == FEW
        assert few(session) == FEW
    assert few(session) == NORMAL


def test_loads_of_other_sessions_do_not_matter(session: Session) -> None:
    with running_load(spark(session)) as load, running_load(spark(Session())):
        load.expect_records(read=1_999, shuffled=1_999)
        assert few(session) == FEW


def test_a_setting_that_the_server_refuses_is_not_changed(session: Session) -> None:
    session.conf.refused = CODE
    with running_load(spark(session)) as load:
        load.expect_records(read=1_999, shuffled=1_999)
        assert few(session) == ("1", None)
    assert session.conf == {PARTITIONS: "200"}


def test_settings_that_cannot_be_restored_are_restored_by_the_next_load(session: Session) -> None:
    with running_load(spark(session)) as load:
        load.expect_records(read=1_999, shuffled=1_999)
        session.conf.is_lost = True
    assert few(session) == FEW
    session.conf.is_lost = False
    with running_load(spark(session)):
        assert session.conf == {PARTITIONS: "200", STATE_PARTITIONS: "2", INFERRED_FILTERS: "false"}


FILES, LEAVES = "spark.sql.files.maxPartitionNum", "spark.sql.leafNodeDefaultParallelism"


@requirement("L17")
def test_a_load_with_a_number_of_cores_has_as_many_tasks_at_most(session: Session) -> None:
    """Also a load of few records, and as few as another load of the session. Afterwards the settings are as before."""
    with running_load(spark(session), 3) as load:
        assert [session.conf[name] for name in (PARTITIONS, FILES, LEAVES)] == ["3", "3", "3"]
        load.expect_records(read=1_999, shuffled=1_999)
        assert [session.conf[name] for name in (PARTITIONS, FILES, LEAVES)] == ["1", "3", "1"]
        load.expect_records(read=None, shuffled=199_999)
        with running_load(spark(session), 1) as other:
            other.expect_records(read=None, shuffled=199_999)
            assert [session.conf[name] for name in (PARTITIONS, FILES, LEAVES)] == ["1", "1", "1"]
        assert [session.conf[name] for name in (PARTITIONS, FILES, LEAVES)] == ["2", "3", "3"]
    assert session.conf == {PARTITIONS: "200"}
