"""How a Spark process is started: which Spark, and in which environment."""

from __future__ import annotations

import importlib.util
import re
import sys
from collections.abc import Mapping
from pathlib import Path

from scd_pipeline.errors import SetupError

_REDIRECTING_VARIABLES = {
    "SPARK_REMOTE",
    "SPARK_MASTER",
    "SPARK_API_MODE",
    "SPARK_CONNECT_MODE",
    "SPARK_CONNECT_MODE_ENABLED",
    "PYSPARK_SUBMIT_ARGS",
}
"""Variables that would start another Spark, connect to a remote one, or add arguments."""


def spark_home() -> Path:
    """Return the folder of the installed pyspark, which contains a complete Spark.

    Raises:
        SetupError: pyspark is not installed.
    """
    package = importlib.util.find_spec("pyspark")
    if package is None or package.origin is None:
        raise SetupError("PYSPARK_MISSING")
    return Path(package.origin).parent


def launch_environment(variables: Mapping[str, str], java_home: Path | None) -> dict[str, str]:
    """Return the environment variables of a Spark process: this Python, this Java and the Spark of pyspark.

    Args:
        variables: The environment variables of this process.
        java_home: The value of JAVA_HOME; None leaves it as it is.
    """
    launched = {name: value for name, value in variables.items() if name not in _REDIRECTING_VARIABLES}
    locale = next((launched[name] for name in ("LC_ALL", "LC_CTYPE", "LANG") if launched.get(name)), "")
    if not re.search("utf-?8", locale, re.IGNORECASE):
        # Java decodes file names by the locale, and fails on names with characters outside ASCII.
        launched.pop("LC_ALL", None)
        launched["LC_CTYPE"] = "C.UTF-8"
    launched.update(SPARK_HOME=str(spark_home()), PYSPARK_PYTHON=sys.executable)
    launched["PYSPARK_DRIVER_PYTHON"] = sys.executable
    # Otherwise Spark resolves this machine's name, which is slow and logs a warning without a network.
    launched["SPARK_LOCAL_IP"] = "127.0.0.1"
    if java_home is not None:
        launched["JAVA_HOME"] = str(java_home)
    return launched
