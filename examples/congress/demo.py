"""The demo: Dagster's jobs over the example, and then queries that show what the tables contain.

`make demo` runs it on `./warehouse`, or on the warehouse and the Spark that the variables of `scd` name.
"""

from __future__ import annotations

import logging
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from scd_pipeline import queries
from scd_pipeline.cli.context import CODE_LOCATION, Settings
from scd_pipeline.cli.dev import dagster_home
from scd_pipeline.cli.render import table
from scd_pipeline.cli.rows import collect
from scd_pipeline.declaration import Declarations, Dimension, Fact, read_declarations
from scd_pipeline.declaration.tables import LOG_SUFFIX
from scd_pipeline.deliveries.discovery import discover_files
from scd_pipeline.deliveries.partitions import EVERYTHING
from scd_pipeline.environment import Environment
from scd_pipeline.errors import LoadError, ScdError

if TYPE_CHECKING:
    import dagster as dg
    from dagster._core.remote_origin import CodeLocationOrigin

    from scd_pipeline.delta.warehouse import Warehouse

Report = Callable[[str], None]

EXAMPLE = Path(__file__).parent

MEMBER = ("bioguide", "S001191")
"""Kyrsten Sinema: from the House to the Senate, from a party to none, and out."""

_VERSION_COLUMNS = ("version", "effective_from", "effective_to", "current_flag")
_INSTANCE = "demo.yaml"
_SILENT_SECONDS, _POLL_SECONDS = 10.0, 1.0


def main() -> int:
    """Run the demo and return its exit code."""
    try:
        environment = Environment.from_env({**os.environ, "SCD_SERVER": "off"})  # one process loads and shows
        run(Settings.resolve({"declarations": str(EXAMPLE)}, environment), print_line)
    except ScdError as error:
        print(f"error: {error}", file=sys.stderr)
        return error.exit_code
    return 0


def run(settings: Settings, report: Report) -> None:
    """Load the example by Dagster's jobs, and show what the tables contain.

    Args:
        settings: The warehouse and the Spark.
        report: Receives each line.
    """
    declared = read_declarations(EXAMPLE)
    home = dagster_home(settings.environment.variables, Path.cwd())
    introduce(declared, settings.warehouse_path, report)
    with progress(report) as report_step, dagster_instance(home) as instance:
        report_step("starting Dagster")
        # The resource reads the environment: an address in the configuration of a run would be stored.
        os.environ["SCD_REMOTE"] = settings.remote
        os.environ["SCD_DECLARATIONS"] = str(EXAMPLE)
        definitions = import_module(CODE_LOCATION).defs
        location = location_of(Path.cwd(), CODE_LOCATION)
        for job in jobs(declared):
            run_job(definitions, job, settings.warehouse_path, report_step, instance, location=location)
        report_step("done")
    with settings.open(quick=False) as warehouse:
        show(warehouse, declared, report)
    suggest(report)


def introduce(declared: Declarations, warehouse: str, report: Report) -> None:
    """Report what the demo is going to load."""
    (dimension,), (fact,) = declared.dimensions, declared.facts
    snapshots, seats = discover_files(dimension), discover_files(fact.as_dimension())
    report(f"{dimension.description}:")
    report(f"{len(snapshots)} snapshots from {snapshots[0].name} to {snapshots[-1].name}, and committee seats of")
    report(f"{len(seats)} days, in {EXAMPLE}.")
    report(f"Dagster's jobs now load them into the warehouse {warehouse}, in one process:")
    report("change log, dimension, audit, and facts with the key of the version in force on their day; then checks.")
    report("")


def jobs(declared: Declarations) -> list[str]:
    """Return the names of the jobs, in the order in which they run."""
    names = [*(dimension.name for dimension in declared.dimensions), *(fact.name for fact in declared.facts)]
    return [*(f"{name}_job" for name in names), *(f"check_{name}_job" for name in names), "scd_status_job"]


@contextmanager
def dagster_instance(home: Path) -> Iterator[dg.DagsterInstance]:
    """Open Dagster's instance in its home folder, so that `scd dev` shows the runs of the demo.

    It has no pools: a demo that is killed would occupy their slots, and every table detects concurrent writers itself.
    """
    import dagster as dg

    (home / _INSTANCE).write_text("telemetry:\n  enabled: false\n", encoding="utf-8")
    with dg.DagsterInstance.from_config(str(home), _INSTANCE) as instance:
        yield instance


def run_job(
    defs: dg.Definitions,
    job: str,
    warehouse: str,
    report: Report,
    instance: dg.DagsterInstance | None = None,
    *,
    location: CodeLocationOrigin | None = None,
) -> None:
    """Run a job of a code location in this process on a warehouse folder, and report the progress of its steps.

    Args:
        defs: The definitions of the code location, with a resource `warehouse`.
        job: The name of the job.
        warehouse: The folder; the server is that of the resource, as the configuration of a run is stored.
        report: Receives the progress.
        instance: Stores the run; without it the run is not stored.
        location: The code location in whose timeline the interface shows the run.

    Raises:
        ScdError: The error of a step that failed; LoadError for a failure of another kind.
    """
    import dagster as dg

    run_config = {"resources": {"warehouse": {"config": {"path": warehouse}}}, "loggers": {"console": {}}}
    with_logger = dg.Definitions.merge(defs, dg.Definitions(loggers={"console": _step_logger(report)}))
    job_definition = with_logger.resolve_job_def(job)
    with nullcontext(instance) if instance else dg.DagsterInstance.ephemeral() as storage:
        try:
            _execute(job_definition, run_config, storage, location)
        except dg.Failure as failure:
            if isinstance(failure.__cause__, ScdError):
                raise failure.__cause__ from None
            raise LoadError("STEP_FAILED", job, message=failure.description) from failure


def location_of(folder: Path, code_location: str) -> CodeLocationOrigin | None:
    """Return the code location of a module as `scd dev` serves it; None if the folder's workspace does not have it."""
    from dagster._core.workspace.load_target import ModuleTarget, WorkspaceFileTarget

    workspace = folder / "workspace.yaml"
    if not workspace.is_file():
        return ModuleTarget(code_location, None, str(folder), None).create_origins()[0]
    origins = WorkspaceFileTarget([str(workspace)]).create_origins()
    modules = {getattr(getattr(o, "loadable_target_origin", None), "module_name", None): o for o in origins}
    return modules.get(code_location)


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


def _step_logger(report: Report) -> dg.LoggerDefinition:
    """Return a console logger that reports the messages of the steps, without Dagster's own events."""
    import dagster as dg

    class StepMessages(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            metadata = getattr(record, "dagster_meta", {})
            if metadata.get("dagster_event") is None:
                report(str(metadata.get("orig_message", record.getMessage())))

    @dg.logger
    def console(_context: dg.InitLoggerContext) -> logging.Logger:
        logger = logging.Logger("scd_demo", level=logging.INFO)
        logger.addHandler(StepMessages())
        return logger

    return console


@contextmanager
def progress(report: Report, clock: Callable[[], float] = time.monotonic) -> Iterator[Report]:
    """Yield a function that reports a message with the seconds so far; a thread reports dots in silent times."""
    start, done = clock(), threading.Event()
    last = start

    def report_step(message: str) -> None:
        nonlocal last
        last = clock()
        report(f"{last - start:5.0f} s  {message}")

    def report_silence() -> None:
        while not done.wait(_POLL_SECONDS):
            if clock() - last >= _SILENT_SECONDS:
                report_step("...")

    thread = threading.Thread(target=report_silence, daemon=True)
    thread.start()
    try:
        yield report_step
    finally:
        done.set()
        thread.join()


def show(warehouse: Warehouse, declared: Declarations, report: Report) -> None:
    """Report row counts, the history of one member, the member's committee seats, and the quarantine."""
    (dimension,), (fact,) = declared.dimensions, declared.facts
    _show_rows(warehouse, dimension, fact, report)
    _show_member(warehouse, dimension, report)
    _show_facts(warehouse, fact, report)
    _show_quarantine(warehouse, dimension, report)


def _show_rows(warehouse: Warehouse, dimension: Dimension, fact: Fact, report: Report) -> None:
    log, audit = f"{dimension.name}{LOG_SUFFIX}", f"{dimension.name}_audit"
    queries.register(warehouse, [dimension.name, log, audit, fact.name])
    query = f"""
        SELECT '{dimension.name}' AS table, count(*) AS rows,
            concat('versions of ', count(DISTINCT bioguide), ' members, ', count_if(current_flag), ' current')
                AS contents
        FROM `{dimension.name}` WHERE version > 0
        UNION ALL SELECT '{log}', count(*), concat(count_if(_kind = 'batch'), ' batches, and their change records')
        FROM `{log}`
        UNION ALL SELECT '{audit}', count(*), concat(count_if(change_type = 'UPDATE'), ' updates, ',
            count_if(change_type = 'LOGICAL_DELETE'), ' deletes, ', count_if(change_type = 'REFUSED'), ' refused')
        FROM `{audit}`
        UNION ALL SELECT '{fact.name}', count(*), concat('seats on ', count(DISTINCT seat_on), ' days, ',
            count_if(legislator_key = -1), ' of members unknown on that day')
        FROM `{fact.name}`"""
    report("Rows of the tables")
    report(table(collect(warehouse.spark.sql(query)), "  "))
    report("")


def _show_member(warehouse: Warehouse, dimension: Dimension, report: Report) -> None:
    key, value = MEMBER
    rows = queries.history(warehouse, dimension)
    versions = collect(rows.where(rows[key] == value).orderBy("version"))
    attributes = {attribute.name for attribute in dimension.attributes if attribute.opens_versions}
    changed = [name for name in versions.differing() if name in attributes]
    name = versions.column("official_full")[0]
    report(f"The history of one member: {name} ({key} {value}); effective_to is exclusive")
    report(table(versions.select([*_VERSION_COLUMNS, *changed]), "  "))
    report("")


def _show_facts(warehouse: Warehouse, fact: Fact, report: Report) -> None:
    """Report seats by the party on their day, which the stored key gives."""
    from pyspark.sql import functions as F

    key, value = MEMBER
    rows = queries.with_dimensions(warehouse, fact).where(F.col(key) == value)
    seats = rows.groupBy("legislator_party", "legislator_chamber").agg(
        F.min("seat_on").alias("first list"), F.max("seat_on").alias("last list"), F.count("*").alias("seats")
    )
    report("Committee seats of the same member, by party and chamber on the day of each list")
    report(table(collect(seats.orderBy("first list")), "  "))
    report("")


def _show_quarantine(warehouse: Warehouse, dimension: Dimension, report: Report) -> None:
    from pyspark.sql import functions as F

    bad_rows = queries.quarantine(warehouse, dimension)
    counts = bad_rows.groupBy(F.to_date("at").alias("snapshot"), "reason").count().orderBy("snapshot")
    report("Bad rows in quarantine. On two days new members had no number yet. As these rows could be any member,")
    report("these two snapshots retired no member that they omit.")
    report(table(collect(counts.select("snapshot", "reason", F.col("count").alias("rows"))), "  "))
    report("")


def suggest(report: Report, program: str = ".venv/bin/scd") -> None:
    """Report what to type next."""
    key, value = MEMBER
    report("What to type next")
    for command in (
        "make demo    # again: nothing changes",
        f'{program} sql "SELECT party, count(*) AS members FROM dim_legislator WHERE current_flag GROUP BY party"',
        f"{program} history dim_legislator {key}={value}",
        f"{program} as-of dim_legislator 2016-01-01 state=VT",
        f'{program} sql "SELECT * FROM dim_legislator_batches WHERE bad_rows > 0"',
        f"{program} audit dim_legislator {key}={value}",
        f"{program} check    # every invariant of the tables",
        f"{program} status",
        "make dev    # Dagster's web interface on the same tables",
    ):
        report(f"  {command}")


def print_line(message: str) -> None:
    """Print a line at once."""
    print(message, flush=True)


if __name__ == "__main__":
    sys.exit(main())
