"""The commands about the project and the program: init, json-schema, completion, version."""

from __future__ import annotations

import importlib.metadata
import shlex
from collections.abc import Sequence
from datetime import date
from pathlib import Path

import click
from click.shell_completion import get_completion_class

from scd_pipeline.cli.project_files import write_project
from scd_pipeline.declaration.schema import schema_text

_SHELLS = ("bash", "zsh", "fish")


@click.command()
@click.argument("folder", type=click.Path(file_okay=False, path_type=Path), default=".", metavar="[FOLDER]")
@click.option(
    "--from",
    "samples",
    multiple=True,
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="FILE",
    help="CSV file with sample rows, from which a declaration is guessed; repeatable  [default: a sample].",
)
def init(folder: Path, *, samples: Sequence[Path]) -> None:
    """Create a project in FOLDER: declarations, a test, a Dagster code location and a README.

    `scd load` loads the new project without edits. Check the guessed business key and SCD types before you load real
    data.
    """
    for path in write_project(folder, samples, today=date.today().isoformat()):
        print(f"created {path}")
    print(f"next: cd {shlex.quote(str(folder))} && scd load")


@click.command("json-schema")
def json_schema() -> None:
    """Print the JSON Schema of declarations, by which editors complete and validate them.

    Write it to declaration.schema.json in the folder of the declarations, and again after an upgrade.
    """
    print(schema_text(), end="")


@click.command()
@click.argument("shell", type=click.Choice(_SHELLS))
def completion(shell: str) -> None:
    """Print a completion script for a shell.

    bash: eval "$(scd completion bash)"; zsh: eval "$(scd completion zsh)"; fish: scd completion fish | source
    """
    command = click.get_current_context().find_root().command
    completer = get_completion_class(shell)
    assert completer is not None
    print(completer(command, {}, "scd", "_SCD_COMPLETE").source())


@click.command()
def version() -> None:
    """Show the versions of this package, Spark, Delta and Dagster."""
    for name in ("scd_pipeline", "pyspark", "delta-spark", "dagster"):
        print(f"{name} {importlib.metadata.version(name)}")
