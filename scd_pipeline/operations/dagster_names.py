"""Names of Dagster objects, derived from the name of a table: components create them, the checklist looks for them."""

from __future__ import annotations

import re

RUN_KEY_TAG = "dagster/run_key"
"""The tag that Dagster gives to a run with the key of its request; retries of the run have it too."""
ATTEMPTS_TAG = "scd_pipeline/load_attempts"
"""The tag of an op that loads a table: how often it attempts the load."""


def dagster_name(table: str) -> str:
    """Return a table's name as a name for ops, jobs, schedules and sensors: letters, digits and underscores only."""
    return re.sub(r"\W", "_", table, flags=re.ASCII)


def load_op_name(table: str) -> str:
    """Return the name of the op that loads a dimension or a fact."""
    return f"load_{dagster_name(table)}"


def maintenance_op_name(table: str) -> str:
    """Return the name of the op that maintains the tables of a dimension or a fact."""
    return f"maintain_{dagster_name(table)}"


def maintenance_job_name(table: str) -> str:
    """Return the name of the job of the maintenance op."""
    return f"{maintenance_op_name(table)}_job"


def archive_op_name(table: str) -> str:
    """Return the name of the op that archives versions of a dimension."""
    return f"archive_{dagster_name(table)}"


def archive_job_name(table: str) -> str:
    """Return the name of the job of the archive op."""
    return f"{archive_op_name(table)}_job"


def check_job_name(table: str) -> str:
    """Return the name of the job that checks the stored tables of a dimension or a fact."""
    return f"check_{dagster_name(table)}_job"


def rekey_sensor_name(fact: str) -> str:
    """Return the name of the sensor that re-keys a fact after its dimensions have changed."""
    return f"{dagster_name(fact)}_rekey"


def refresh_sensor_name(table: str) -> str:
    """Return the name of the sensor that brings a table up to date after those that it reads have changed."""
    return f"{dagster_name(table)}_refresh"


def automation_sensor_name(fact: str) -> str:
    """Return the name of the sensor that evaluates the automation condition of a fact."""
    return f"{dagster_name(fact)}_automation"


def pool_name(table: str) -> str:
    """Return the concurrency pool of everything that reads or writes the tables of a dimension or a fact."""
    return f"delta/{table}"
