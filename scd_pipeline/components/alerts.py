"""Alerts for failed runs and failed checks: a POST to a webhook, and an email.

The environment configures them: SCD_ALERT_WEBHOOK is an address that accepts a POST of JSON. SCD_ALERT_MAIL_TO is the
recipient and SCD_ALERT_SMTP (host:port) the server of emails, SCD_ALERT_MAIL_FROM their sender. The connection is
encrypted (STARTTLS) if SCD_ALERT_SMTP_USER is set.
"""

from __future__ import annotations

import http.client
import json
import os
import re
import smtplib
import ssl
import urllib.error
import urllib.request
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from email.message import EmailMessage

import dagster as dg

from scd_pipeline.environment import Environment

_TIMEOUT_SECONDS = 4
"""Dagster ends a tick after a minute. In a tick up to five alerts are sent, each by webhook and email; a server
can have two addresses."""


@dataclass(frozen=True)
class SentAlert:
    """An attempt to send an alert: by which transport, and the problem if it failed."""

    transport: str
    problem: str = ""

    def __str__(self) -> str:
        return f"{self.transport} failed: {self.problem}" if self.problem else self.transport


def send_alert(subject: str, text: str, details: Mapping[str, str], environment: Environment) -> list[SentAlert]:
    """Send an alert by each transport that the environment configures; one that fails does not stop the others.

    Args:
        subject: What has happened.
        text: The reasons.
        details: Further properties, such as the run's id.

    Returns:
        The attempts; empty if no transport is configured.
    """
    attempts = []
    for transport, send in (("webhook", _post), ("email", _send_email)):
        try:
            if send(subject, text, details, environment):
                attempts.append(SentAlert(transport))
        except (OSError, ValueError, http.client.HTTPException) as error:  # of networks and mail, or an invalid setting
            attempts.append(SentAlert(transport, _problem(error)))
    return attempts


def alert_from_run(context: dg.OpExecutionContext, subject: str, text: str) -> None:
    """Send an alert from the step of a run, and log the attempts."""
    attempts = send_alert(subject, text, {"run_id": context.run.run_id}, Environment.from_env())
    has_problem = any(attempt.problem for attempt in attempts)
    log = context.log.warning if has_problem else context.log.info
    log(f"alert ({subject}): {attempts_text(attempts)}")


def attempts_text(attempts: Sequence[SentAlert]) -> str:
    """Return the attempts to send an alert as text for a log."""
    return (
        ", ".join(map(str, attempts))
        or "no transport is configured (SCD_ALERT_WEBHOOK, or SCD_ALERT_MAIL_TO with SCD_ALERT_SMTP)"
    )


class _InvalidSetting(ValueError):
    """A setting without the expected form; the message names the setting and does not repeat its value."""


def _problem(error: Exception) -> str:
    """Return what failed, without addresses and credentials, which messages of networks and mail repeat."""
    if isinstance(error, _InvalidSetting):
        return str(error)
    if isinstance(error, urllib.error.HTTPError):
        return f"the server answered with HTTP status {error.code}"
    if isinstance(error, urllib.error.URLError) and isinstance(error.reason, Exception):
        return _problem(error.reason)
    if isinstance(error, smtplib.SMTPResponseException):
        return f"{type(error).__name__}, SMTP status {error.smtp_code}"
    number = error.errno if isinstance(error, OSError) else None
    description = f": {os.strerror(number)}" if number and number > 0 else ""
    return f"{type(error).__name__}{description}"


def _post(subject: str, text: str, details: Mapping[str, str], environment: Environment) -> bool:
    """Post an alert; return False if no webhook is configured."""
    address = environment.alert_webhook
    if not address:
        return False
    body = json.dumps({"text": f"{subject}: {text}", **details}).encode()
    try:
        if not re.match(r"https?://[^/?#@\s]", address, re.IGNORECASE):
            raise ValueError
        request = urllib.request.Request(address, body, {"Content-Type": "application/json"})
        urllib.request.urlopen(request, timeout=_TIMEOUT_SECONDS).close()
    except (ValueError, http.client.InvalidURL):
        raise _InvalidSetting(
            "SCD_ALERT_WEBHOOK is not an address (it is not shown, as it may be a secret); expected https://host/path"
        ) from None
    return True


def _send_email(subject: str, text: str, details: Mapping[str, str], environment: Environment) -> bool:
    """Send an alert by email; return False if no recipient or no server is configured."""
    recipient, server = environment.alert_mail_to, environment.alert_smtp
    if not (recipient and server):
        return False
    message = EmailMessage()
    message["Subject"], message["To"] = subject, recipient
    message["From"] = environment.alert_mail_from
    message.set_content("\n".join([text, "", *(f"{name}: {value}" for name, value in details.items())]))
    host, _, port = server.partition(":")
    if not host or not (port or "25").isdecimal():
        raise _InvalidSetting("SCD_ALERT_SMTP is not a mail server (it is not shown); expected host:port")
    with smtplib.SMTP(host, int(port or 25), timeout=_TIMEOUT_SECONDS) as mail:
        if environment.alert_smtp_user:
            mail.starttls(context=ssl.create_default_context())
            mail.login(environment.alert_smtp_user, environment.alert_smtp_password)
        mail.send_message(message)
    return True


def _failure_reason(event: dg.DagsterEvent) -> str:
    """Return the description of a step's failure, or the message of the root cause of its error."""
    data = event.step_failure_data
    if data.user_failure_data is not None and data.user_failure_data.description:
        return data.user_failure_data.description
    error = data.error
    while error is not None and error.cause is not None:
        error = error.cause
    return error.message.strip() if error is not None else ""


def alert_sensor() -> dg.SensorDefinition:
    """Return the sensor that sends an alert for every failed run.

    The tick fails if an alert could not be sent, so that Dagster shows it; the sensor continues with the next failure.
    """

    @dg.run_failure_sensor(
        name="alerts",
        description=(
            "Sends an alert for every failed run: to the webhook `SCD_ALERT_WEBHOOK`, and by email to "
            "`SCD_ALERT_MAIL_TO`. Without these environment variables it does nothing."
        ),
        default_status=dg.DefaultSensorStatus.RUNNING,
    )
    def alerts(context: dg.RunFailureSensorContext) -> None:
        run = context.dagster_run
        failures = context.get_step_failure_events()
        reasons = [reason for event in failures if (reason := _failure_reason(event))]
        text = "; ".join(reasons) or context.failure_event.message or "no reason is known"
        details = {"run_id": run.run_id, "job": run.job_name, "steps": ", ".join(str(e.step_key) for e in failures)}
        attempts = send_alert(f"{run.job_name} failed", text, details, Environment.from_env())
        context.log.info(f"alert for run {run.run_id}: {attempts_text(attempts)}")
        if unsent := [attempt for attempt in attempts if attempt.problem]:
            raise dg.Failure(
                f"run {run.run_id} failed, and its alert was not sent: {attempts_text(unsent)}", allow_retries=False
            )

    return alerts
