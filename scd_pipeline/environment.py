"""Define, document and parse the environment variables of the package, `SCD_*`."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from scd_pipeline.errors import SetupError

EXAMPLE = Path(__file__).parent.parent / "examples" / "congress"
"""The folder of the example's declarations in a clone; an installed wheel does not contain it."""

DEFAULT_WAREHOUSE = "warehouse"
"""The folder of the tables if no option and no variable names one."""

_CI_VARIABLES = ("CI", "TF_BUILD", "JENKINS_URL", "TEAMCITY_VERSION", "CODEBUILD_BUILD_ID", "bamboo_buildKey")
"""The variables by which jobs of CI services are known: most set `CI`; then Azure Pipelines, Jenkins and others."""

DEFAULT_SENDER = "scd_pipeline@localhost"
"""The sender of alert mails if no variable names one."""


@dataclass(frozen=True)
class Variable:
    """An environment variable of the package.

    `unset` is the effect of a variable that is not set, for the documentation.
    """

    name: str
    meaning: str
    unset: str
    parse: Callable[[str], object] = str


def _variable(
    name: str, meaning: str, unset: str, parse: Callable[[str], object] = str, *, is_secret: bool = False
) -> Any:
    """Return a field that contains an environment variable; one that may contain a secret is in no representation."""
    return field(metadata={"variable": Variable(name, meaning, unset, parse)}, repr=not is_secret)


def _declarations(text: str) -> Path | None:
    if text:
        return Path(text).absolute()
    # In any other folder the tables of the example would be an answer about the wrong warehouse.
    return EXAMPLE if EXAMPLE.is_dir() and Path.cwd() == EXAMPLE.parent.parent else None


def _optional(text: str) -> str | None:
    return text or None


def _sender(text: str) -> str:
    return text or DEFAULT_SENDER


def _folder(text: str) -> Path | None:
    return Path(text).expanduser().absolute() if text else None


@dataclass(frozen=True)
class Environment:
    """The environment variables of a process, those of the package with their types.

    `variables` contains all of them, for the processes that the package starts and for the variables of other programs.
    """

    variables: Mapping[str, str] = field(repr=False)
    warehouse: str = _variable("SCD_WAREHOUSE", "folder or bucket URL of the tables", f"`./{DEFAULT_WAREHOUSE}`")
    declarations: Path | None = _variable(
        "SCD_DECLARATIONS",
        "file or folder of the declarations",
        "in the folder of a clone `examples/congress`",
        _declarations,
    )
    remote: str = _variable(
        "SCD_REMOTE",
        "address of a Spark Connect server, `sc://host:port`, or `background`",
        "commands use the server in the background, Python and Dagster an embedded Spark",
        is_secret=True,
    )
    server: str = _variable(
        "SCD_SERVER",
        "`off`: commands start no Spark Connect server in the background",
        "they do, except where `SPARK_REMOTE` or a variable of a CI service is set",
    )
    schema: str | None = _variable(
        "SCD_SCHEMA",
        "schema of a catalog for the tables, `mart` or `catalog.mart`",
        "the warehouse folder",
        _optional,
    )
    schema_changes: str = _variable("SCD_SCHEMA_CHANGES", "schema of the change logs", "`SCD_SCHEMA`")
    schema_audit: str = _variable("SCD_SCHEMA_AUDIT", "schema of the audit tables", "`SCD_SCHEMA`")
    schema_keys: str = _variable("SCD_SCHEMA_KEYS", "schema of the views `dim_x_keys`", "`SCD_SCHEMA`")
    schema_history: str = _variable("SCD_SCHEMA_HISTORY", "schema of the history tables", "`SCD_SCHEMA`")
    schema_archive: str = _variable("SCD_SCHEMA_ARCHIVE", "schema of the archives", "`SCD_SCHEMA`")
    time: str = _variable("SCD_TIME", "time of the rows of timed tables in `scd sql`", "now")
    home: Path | None = _variable("SCD_HOME", "folder of the jars and servers", "`~/.cache/scd_pipeline`", _folder)
    maven_repository: str = _variable(
        "SCD_MAVEN_REPOSITORY",
        "URL of the Maven repository for `scd setup`",
        "the default repository of Spark",
        is_secret=True,
    )
    load_cores_text: str = _variable(
        "SCD_LOAD_CORES",
        "cores that a load uses at most, so that queries beside it have the others",
        "all cores",
    )
    overdue_hours: str = _variable(
        "SCD_OVERDUE_HOURS",
        "hours after which a source without a new delivery, or a table without a load, is overdue",
        "never overdue",
    )
    docs_url: str = _variable(
        "SCD_DOCS_URL",
        "URL of the Markdown files of `docs`, to which checks link; for `scd checklist` also their folder",
        "no links, and `docs` of a clone",
    )
    alert_webhook: str = _variable(
        "SCD_ALERT_WEBHOOK", "URL that receives alerts as JSON by POST", "no alerts by webhook", is_secret=True
    )
    alert_mail_to: str = _variable("SCD_ALERT_MAIL_TO", "recipient of alert mails", "no alerts by mail")
    alert_mail_from: str = _variable("SCD_ALERT_MAIL_FROM", "sender of alert mails", f"`{DEFAULT_SENDER}`", _sender)
    alert_smtp: str = _variable(
        "SCD_ALERT_SMTP", "mail server for alerts, `host:port`", "no alerts by mail", is_secret=True
    )
    alert_smtp_user: str = _variable(
        "SCD_ALERT_SMTP_USER", "login at the mail server; with it STARTTLS is used", "no login", is_secret=True
    )
    alert_smtp_password: str = _variable(
        "SCD_ALERT_SMTP_PASSWORD", "password at the mail server", "empty", is_secret=True
    )

    @classmethod
    def from_env(cls, variables: Mapping[str, str] | None = None) -> Environment:
        """Return the typed variables of an environment; an empty variable counts as not set.

        Args:
            variables: The variables [those of this process].
        """
        variables = os.environ if variables is None else variables
        values: dict[str, Any] = {
            name: variable.parse(variables.get(variable.name, "")) for name, variable in cls.documented().items()
        }
        return cls(variables=variables, **values)

    @classmethod
    def documented(cls) -> dict[str, Variable]:
        """Return the variables of the package by the names of their fields."""
        return {item.name: item.metadata["variable"] for item in fields(cls) if item.metadata}

    @property
    def cache_folder(self) -> Path:
        """The folder of the downloads and of running servers."""
        return self.home or self._user_home / ".cache" / "scd_pipeline"

    @property
    def has_background_server(self) -> bool:
        """Whether commands start a server in the background, and use it, if no server is configured."""
        is_elsewhere = any(self.variables.get(name) for name in ("SPARK_REMOTE", *_CI_VARIABLES))
        return self.server.casefold() != "off" and not is_elsewhere

    @property
    def maven_local_repository(self) -> Path:
        """The folder where Maven stores what it has downloaded."""
        return self._user_home / ".m2" / "repository"

    @property
    def _user_home(self) -> Path:
        return Path(self.variables["HOME"]) if self.variables.get("HOME") else Path.home()

    @property
    def schemas(self) -> dict[str, str]:
        """The schemas of the kinds of table that have their own."""
        schemas = {
            "changes": self.schema_changes,
            "audit": self.schema_audit,
            "keys": self.schema_keys,
            "history": self.schema_history,
            "archive": self.schema_archive,
        }
        return {kind: schema for kind, schema in schemas.items() if schema}

    @property
    def alert_transports(self) -> tuple[str, ...]:
        """The transports by which alerts are sent."""
        transports = {"webhook": bool(self.alert_webhook), "email": bool(self.alert_mail_to and self.alert_smtp)}
        return tuple(name for name, is_configured in transports.items() if is_configured)

    @property
    def load_cores(self) -> int | None:
        """The cores that a load uses at most; None: all.

        Raises:
            SetupError: SCD_LOAD_CORES is not a number of cores.
        """
        if not self.load_cores_text:
            return None
        if not self.load_cores_text.isdecimal() or int(self.load_cores_text) < 1:
            raise SetupError("LOAD_CORES", "SCD_LOAD_CORES", value=repr(self.load_cores_text))
        return int(self.load_cores_text)

    @property
    def overdue_after_hours(self) -> float | None:
        """The hours after which a source or table is overdue; None: never.

        Raises:
            SetupError: SCD_OVERDUE_HOURS is not a number.
        """
        try:
            return float(self.overdue_hours) if self.overdue_hours else None
        except ValueError:
            raise SetupError("OVERDUE_HOURS", "SCD_OVERDUE_HOURS", value=self.overdue_hours) from None
