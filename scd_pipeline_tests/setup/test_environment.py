"""The environment variables of the package."""

from __future__ import annotations

from pathlib import Path

import pytest

from scd_pipeline.declaration.tables import KINDS
from scd_pipeline.environment import DEFAULT_SENDER, EXAMPLE, Environment
from scd_pipeline.errors import SetupError


def test_variables_that_are_not_set_have_defaults() -> None:
    environment = Environment.from_env({})
    assert (environment.warehouse, environment.remote, environment.schema, environment.schemas) == ("", "", None, {})
    assert environment.declarations == (EXAMPLE if EXAMPLE.is_dir() else None)
    assert (environment.overdue_after_hours, environment.alert_mail_from) == (None, DEFAULT_SENDER)


@pytest.mark.parametrize(
    ("variables", "folder"),
    [
        ({"SCD_HOME": "/data/scd", "HOME": "/home/a"}, "/data/scd"),
        ({"HOME": "/home/a"}, "/home/a/.cache/scd_pipeline"),
        ({"HOME": "/home/a", "SCD_HOME": ""}, "/home/a/.cache/scd_pipeline"),
    ],
)
def test_the_cache_folder(variables: dict[str, str], folder: str) -> None:
    assert Environment.from_env(variables).cache_folder == Path(folder)


def test_each_kind_of_table_has_a_variable_for_its_schema() -> None:
    variables = {f"SCD_SCHEMA_{kind.upper()}": f"schema_{kind}" for kind in KINDS}
    environment = Environment.from_env({"SCD_SCHEMA": "mart", **variables})
    assert environment.schema == "mart"
    assert environment.schemas == {kind: f"schema_{kind}" for kind in KINDS}


def test_alerts_are_sent_by_the_configured_transports() -> None:
    """An email needs a recipient and a server."""
    webhook, recipient, server = (f"SCD_ALERT_{name}" for name in ("WEBHOOK", "MAIL_TO", "SMTP"))
    assert Environment.from_env({}).alert_transports == ()
    assert Environment.from_env({recipient: "a@x.com"}).alert_transports == ()
    everything = {webhook: "https://x", recipient: "a@x.com", server: "mail:25"}
    assert Environment.from_env(everything).alert_transports == ("webhook", "email")


def test_overdue_hours_are_a_number() -> None:
    assert Environment.from_env({"SCD_OVERDUE_HOURS": "0.5"}).overdue_after_hours == 0.5
    with pytest.raises(SetupError) as error:
        _ = Environment.from_env({"SCD_OVERDUE_HOURS": "abc"}).overdue_after_hours
    assert (error.value.code, error.value.location) == ("OVERDUE_HOURS", "SCD_OVERDUE_HOURS")


def test_secrets_are_not_shown() -> None:
    secret = ("REMOTE", "MAVEN_REPOSITORY", "ALERT_WEBHOOK", "ALERT_SMTP", "ALERT_SMTP_USER", "ALERT_SMTP_PASSWORD")
    assert "tOkEn" not in repr(Environment.from_env({f"SCD_{name}": "tOkEn" for name in secret}))
