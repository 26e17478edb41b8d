"""The demo: Dagster's job over a real example, and then what can be seen in the tables.

Dagster, Spark and the warehouse are handed in; nothing here knows how they were started.
"""

from __future__ import annotations

import logging
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

from scd_pipeline import reading
from scd_pipeline.declaration import Declarations, Dimension, Fact, load_declarations
from scd_pipeline.declaration.tables import LOG_SUFFIX
from scd_pipeline.deliveries.discovery import discover_files
from scd_pipeline.deliveries.partitions import EVERYTHING
from scd_pipeline.environment import EXAMPLE
from scd_pipeline.errors import LoadError, ScdError, SetupError
from scd_pipeline.operations.texts import collected, differing, table

if TYPE_CHECKING:
    import dagster as dg
    from dagster._core.remote_origin import CodeLocationOrigin

    from scd_pipeline.delta.warehouse import Warehouse

Say = Callable[[str], None]

MEMBER = ("bioguide", "S001191")
"""Kyrsten Sinema: from the House to the Senate, from a party to none, and out."""

_FACTS = ("version", "effective_from", "effective_to", "current_flag")
_INSTANCE = "demo.yaml"
_TICK_SECONDS, _LOOK_SECONDS = 10.0, 1.0


def example() -> Declarations:
    """The example's declarations.  Errors: SetupError where there is no clone."""
    if not EXAMPLE.is_dir():
        raise SetupError(
            "the demo's data is not part of the installed package; clone the project and run `make demo` there, or "
            "load data of your own: `scd load DECLARATION.yaml`"
        )
    return load_declarations(EXAMPLE)


def introduce(declared: Declarations, place: str, say: Say) -> None:
    """Say what is about to happen."""
    (dimension,), (fact,) = declared.dimensions, declared.facts
    found, seats = discover_files(dimension), discover_files(fact.as_dimension())
    span = f"{found[0].name} to {found[-1].name}"
    say(f"{dimension.description}:")
    say(f"{len(found)} full snapshots of {span}, and committee seats of {len(seats)} days, lie in {EXAMPLE}.")
    say(f"Dagster's jobs now take them into the warehouse at {place}, in one process:")
    say("canonical source, dimension, audit, and the facts with the key that held on their day; then the checks.")
    say("")


def jobs(declared: Declarations) -> list[str]:
    """The names of the jobs, in the order in which they are to run."""
    names = [*(of.name for of in declared.dimensions), *(of.name for of in declared.facts), "scd_status"]
    return [f"{name}_job" for name in names]


@contextmanager
def dagster_instance(home: Path) -> Iterator[dg.DagsterInstance]:
    """Dagster's instance in its home folder, so that `scd dev` shows what the demo did.

    It has no pools: a demo that is killed would leave their slots taken, and a table keeps its writers apart by itself.
    """
    import dagster as dg

    (home / _INSTANCE).write_text("telemetry:\n  enabled: false\n", encoding="utf-8")
    with dg.DagsterInstance.from_config(str(home), _INSTANCE) as instance:
        yield instance


def run_job(
    defs: dg.Definitions,
    job: str,
    warehouse: str,
    say: Say,
    instance: dg.DagsterInstance | None = None,
    *,
    location: CodeLocationOrigin | None = None,
) -> None:
    """Run a job of a code location in this process on a warehouse folder, and report the progress of its steps.

    Args:
        defs: The definitions of the code location, with a resource `warehouse`.
        job: The job's name.
        warehouse: The folder; the server is the one of the resource, as a run's configuration is stored.
        say: Reports progress.
        instance: Stores the run; without it nothing does.
        location: The code location in whose timeline the interface shows the run.

    Raises:
        ScdError: The error of a step that failed; LoadError for a failure of another kind.
    """
    import dagster as dg

    run_config = {"resources": {"warehouse": {"config": {"path": warehouse}}}, "loggers": {"console": {}}}
    with_logger = dg.Definitions.merge(defs, dg.Definitions(loggers={"console": _step_logger(say)}))
    chosen = with_logger.resolve_job_def(job)
    with nullcontext(instance) if instance else dg.DagsterInstance.ephemeral() as storage:
        try:
            _execute(chosen, run_config, storage, location)
        except dg.Failure as failure:
            if isinstance(failure.__cause__, ScdError):
                raise failure.__cause__ from None
            raise LoadError(str(failure.description)) from failure


def _execute(
    job: dg.JobDefinition,
    run_config: Mapping[str, Any],
    instance: dg.DagsterInstance,
    location: CodeLocationOrigin | None,
) -> None:
    """Execute a job as a run of its code location, which `execute_in_process` cannot name."""
    from dagster._core.definitions.job_base import InMemoryJob
    from dagster._core.definitions.repository_definition import SINGLETON_REPOSITORY_NAME
    from dagster._core.execution.api import execute_run
    from dagster._core.remote_origin import RemoteRepositoryOrigin

    tags = dict(job.run_tags)
    if partitions := getattr(job.partitions_def, "name", None):
        instance.add_dynamic_partitions(partitions, [EVERYTHING])
        tags |= job.get_tags_for_partition_key(EVERYTHING, None)
    repository = RemoteRepositoryOrigin(location, SINGLETON_REPOSITORY_NAME) if location else None
    origin = repository.get_job_origin(job.name) if repository else None
    run = instance.create_run_for_job(job, run_config=run_config, tags=tags, remote_job_origin=origin)
    execute_run(InMemoryJob(job), run, instance, raise_on_error=True)


def _step_logger(say: Say) -> dg.LoggerDefinition:
    """A console logger that tells what the steps themselves say, and nothing of Dagster's own events."""
    import dagster as dg

    class Told(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            told = getattr(record, "dagster_meta", {})
            if told.get("dagster_event") is None:
                say(str(told.get("orig_message", record.getMessage())))

    @dg.logger
    def console(_context: dg.InitLoggerContext) -> logging.Logger:
        logger = logging.Logger("scd_demo", level=logging.INFO)
        logger.addHandler(Told())
        return logger

    return console


@contextmanager
def progress(say: Say, clock: Callable[[], float] = time.monotonic) -> Iterator[Say]:
    """A way to say things with the seconds that have passed, which also says now and then that work goes on."""
    began, done = clock(), threading.Event()
    last = began

    def tell(message: str) -> None:
        nonlocal last
        last = clock()
        say(f"{last - began:5.0f} s  {message}")

    def tick() -> None:
        while not done.wait(_LOOK_SECONDS):
            if clock() - last >= _TICK_SECONDS:
                tell("...")

    ticker = threading.Thread(target=tick, daemon=True)
    ticker.start()
    try:
        yield tell
    finally:
        done.set()
        ticker.join()


def show(warehouse: Warehouse, declared: Declarations, say: Say) -> None:
    """Say what the tables hold now: rows, one member's history, their committees, and what was put aside."""
    (dimension,), (fact,) = declared.dimensions, declared.facts
    _show_rows(warehouse, dimension, fact, say)
    _show_member(warehouse, dimension, say)
    _show_facts(warehouse, fact, say)
    _show_quarantine(warehouse, dimension, say)


def _show_rows(warehouse: Warehouse, dimension: Dimension, fact: Fact, say: Say) -> None:
    log, audit = f"{dimension.name}{LOG_SUFFIX}", f"{dimension.name}_audit"
    reading.register(warehouse, [dimension.name, log, audit, fact.name])
    query = f"""
        SELECT '{dimension.name}' AS table, count(*) AS rows,
            concat('versions of ', count(DISTINCT bioguide), ' members, ', count_if(current_flag), ' current') AS what
        FROM `{dimension.name}` WHERE version > 0
        UNION ALL SELECT '{log}', count(*), concat(count_if(_kind = 'batch'), ' batches, and what they stated anew')
        FROM `{log}`
        UNION ALL SELECT '{audit}', count(*), concat(count_if(change_type = 'UPDATE'), ' updates, ',
            count_if(change_type = 'LOGICAL_DELETE'), ' who left, ', count_if(change_type = 'REFUSED'), ' refused')
        FROM `{audit}`
        UNION ALL SELECT '{fact.name}', count(*), concat('seats on ', count(DISTINCT seat_on), ' days, ',
            count_if(legislator_key = -1), ' of members unknown on that day')
        FROM `{fact.name}`"""
    say("What the tables hold")
    say(table(collected(warehouse.spark.sql(query)), "  "))
    say("")


def _show_member(warehouse: Warehouse, dimension: Dimension, say: Say) -> None:
    key, value = MEMBER
    rows = reading.history(warehouse, dimension)
    found = collected(rows.where(rows[key] == value).orderBy("version"))
    attributes = {attribute.name for attribute in dimension.attributes if attribute.opens_versions}
    changed = [name for name in differing(found) if name in attributes]
    name = found.column("official_full")[0]
    say(f"One member's history: {name} ({key} {value}); effective_to is exclusive")
    say(table(found.of([*_FACTS, *changed]), "  "))
    say("")


def _show_facts(warehouse: Warehouse, fact: Fact, say: Say) -> None:
    """Seats by the party of the day: what the stored key is for."""
    from pyspark.sql import functions as F

    key, value = MEMBER
    rows = reading.with_dimensions(warehouse, fact).where(F.col(key) == value)
    told = rows.groupBy("legislator_party", "legislator_chamber").agg(
        F.min("seat_on").alias("first list"), F.max("seat_on").alias("last list"), F.count("*").alias("seats")
    )
    say("The same member's committee seats, by what the member was on the day of each list")
    say(table(collected(told.orderBy("first list")), "  "))
    say("")


def _show_quarantine(warehouse: Warehouse, dimension: Dimension, say: Say) -> None:
    from pyspark.sql import functions as F

    bad = reading.quarantine(warehouse, dimension)
    counted = bad.groupBy(F.to_date("at").alias("snapshot"), "reason").count().orderBy("snapshot")
    say("The quarantine: rows that were put aside, not lost. New members had no number yet on two days; as one cannot")
    say("tell who they are, nobody whom those snapshots leave out was taken to be gone.")
    say(table(collected(counted.select("snapshot", "reason", F.col("count").alias("rows"))), "  "))
    say("")


def suggest(program: str, say: Say) -> None:
    """Say what to type next."""
    key, value = MEMBER
    say("What to type next")
    for command in (
        f"{program} demo    # again: nothing changes",
        f'{program} sql "SELECT party, count(*) AS members FROM dim_legislator WHERE current_flag GROUP BY party"',
        f"{program} history dim_legislator {key}={value}",
        f"{program} as-of dim_legislator 2016-01-01 state=VT",
        f'{program} sql "SELECT * FROM dim_legislator_batches WHERE bad_rows > 0"',
        f"{program} audit dim_legislator {key}={value}",
        f"{program} check    # every invariant of the tables",
        f"{program} status",
        "make dev    # Dagster's web interface on the same tables",
    ):
        say(f"  {command}")


def to_stdout(message: str) -> None:
    """Say something on the standard output, at once."""
    print(message, flush=True, file=sys.stdout)
