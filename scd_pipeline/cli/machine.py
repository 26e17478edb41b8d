"""The commands that set up, examine and serve: setup, doctor, dev."""

from __future__ import annotations

import contextlib

import click

from scd_pipeline.cli.console import progress, report, warn
from scd_pipeline.cli.context import CODE_LOCATION, Settings, with_settings
from scd_pipeline.exit_codes import ExitCode
from scd_pipeline.texts import pluralize


@click.command()
@click.option("--repository", metavar="URL", help="Maven repository  [env: SCD_MAVEN_REPOSITORY; default: Spark's].")
@click.option(
    "--class-archive/--no-class-archive",
    "archives",
    default=True,
    help="Archive the classes of Spark once, so that it starts faster: a minute, 200 MB  [default: --class-archive].",
)
@click.option("--s3", "with_s3", is_flag=True, help="Also download the jars by which Spark reads and writes S3: 13 MB.")
@click.option(
    "--postgresql", "with_postgresql", is_flag=True, help="Also download the JDBC driver of PostgreSQL: 1 MB."
)
@with_settings
def setup(settings: Settings, *, repository: str | None, archives: bool, with_s3: bool, with_postgresql: bool) -> None:
    """Check for Java, download the jars of Delta Lake, and archive Spark's classes; each only once."""
    from scd_pipeline.cli.class_archive import archive_classes
    from scd_pipeline.spark.installation import install
    from scd_pipeline.spark.jars import POSTGRESQL_LOCK_FILE, S3_LOCK_FILE

    with progress("setting up") as task:
        locks = [
            lock for lock, requested in ((S3_LOCK_FILE, with_s3), (POSTGRESQL_LOCK_FILE, with_postgresql)) if requested
        ]
        installation = install(settings.environment, progress=task, repository=repository, optional=locks)
        if archives and (problem := archive_classes(installation, task)):
            warn(f"no class archive, Spark starts without it: {problem}")
    print("ready")


@click.command()
@click.option(
    "--spark/--no-spark",
    "start_spark",
    default=True,
    help="Start Spark and probe how Delta can write, which takes some seconds  [default: --spark].",
)
@with_settings
def doctor(settings: Settings, *, start_spark: bool) -> int:
    """Check the installation, and show how to fix each problem."""
    from scd_pipeline.spark.doctor import diagnose, render

    with contextlib.ExitStack() as stack:
        diagnoses = diagnose(
            settings.environment,
            warehouse=settings.folder or settings.warehouse,
            capabilities=(lambda: stack.enter_context(settings.open()).capabilities) if start_spark else None,
        )
    print(render(diagnoses))
    return ExitCode.DONE if all(diagnosis.is_ok for diagnosis in diagnoses) else ExitCode.NOT_SET_UP


@click.command()
@click.argument("action", type=click.Choice(["status", "stop"]), default="status")
@with_settings
def server(settings: Settings, *, action: str) -> None:
    """Show or stop the Spark Connect server that commands start in the background."""
    from scd_pipeline.spark import background

    if action == "stop":
        print(f"stopped {pluralize(background.stop_servers(settings.environment), 'server')}")
        return
    running = background.running_servers(settings.environment)
    for each in running:
        minutes = int(each.idle_seconds / 60)
        use = f"idle for {minutes} of {background.IDLE_MINUTES} minutes" if each.idle_seconds else "in use"
        print(f"{each.server.url}: process {each.server.pid}, {use}; log: {each.server.log}")
    if not running:
        print("no server runs")


@click.command()
@click.option("--port", type=int, default=3000, show_default=True, metavar="PORT", help="Port of the web interface.")
@with_settings
def dev(settings: Settings, *, port: int) -> int:
    """Serve Dagster's web interface, with a Spark Connect server for its runs."""
    from scd_pipeline.cli import dev as interface

    return interface.run(settings, port=port, code_location=CODE_LOCATION, report=report)
