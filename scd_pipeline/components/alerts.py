"""Word of a run or a check that failed, to a webhook and by mail, where the environment names them.

SCD_ALERT_WEBHOOK is an address that takes a POST of JSON; SCD_ALERT_MAIL_TO and SCD_ALERT_SMTP (host:port) are for mail
and SCD_ALERT_MAIL_FROM is its sender. With SCD_ALERT_SMTP_USER and SCD_ALERT_SMTP_PASSWORD the mail goes encrypted.
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
from collections.abc import Mapping
from email.message import EmailMessage

import dagster as dg

NOT_BY = "not by"
"""How the word of a way begins by which nothing could be sent."""
_SECONDS = 10


def tell(subject: str, text: str, facts: Mapping[str, str], environ: Mapping[str, str]) -> list[str]:
    """Send the word to whoever is named; a way that fails does not keep another from being tried.

    Out: by which ways, with the problem for one that failed; empty where nobody is named.
    """
    told = []
    for way, send in (("webhook", _post), ("mail", _mail)):
        try:
            if send(subject, text, facts, environ):
                told.append(way)
        except (OSError, ValueError, http.client.HTTPException) as error:  # of networks and mail, or a bad address
            told.append(f"{NOT_BY} {way}: {_problem(error)}")
    return told


class _BadAddress(ValueError):
    """A setting that cannot be one; its text names the setting, and does not repeat its value."""


def _problem(error: Exception) -> str:
    """Return what failed, without addresses and credentials, which messages of networks and mail repeat."""
    if isinstance(error, _BadAddress):
        return str(error)
    if isinstance(error, urllib.error.HTTPError):
        return f"the server answered with HTTP status {error.code}"
    if isinstance(error, urllib.error.URLError) and isinstance(error.reason, Exception):
        return _problem(error.reason)
    if isinstance(error, smtplib.SMTPResponseException):
        return f"{type(error).__name__}, SMTP status {error.smtp_code}"
    number = error.errno if isinstance(error, OSError) else None
    known = f": {os.strerror(number)}" if number and number > 0 else ""
    return f"{type(error).__name__}{known}"


def _post(subject: str, text: str, facts: Mapping[str, str], environ: Mapping[str, str]) -> bool:
    address = environ.get("SCD_ALERT_WEBHOOK")
    if not address:
        return False
    body = json.dumps({"text": f"{subject}: {text}", **facts}).encode()
    try:
        if not re.match(r"https?://[^/?#@\s]", address, re.IGNORECASE):
            raise ValueError
        request = urllib.request.Request(address, body, {"Content-Type": "application/json"})
        urllib.request.urlopen(request, timeout=_SECONDS).close()
    except (ValueError, http.client.InvalidURL):
        raise _BadAddress(
            "SCD_ALERT_WEBHOOK is not an address (it is not shown, as it may be a secret); expected https://host/path"
        ) from None
    return True


def _mail(subject: str, text: str, facts: Mapping[str, str], environ: Mapping[str, str]) -> bool:
    to, server = environ.get("SCD_ALERT_MAIL_TO"), environ.get("SCD_ALERT_SMTP")
    if not (to and server):
        return False
    message = EmailMessage()
    message["Subject"], message["To"] = subject, to
    message["From"] = environ.get("SCD_ALERT_MAIL_FROM", "scd_pipeline@localhost")
    message.set_content("\n".join([text, "", *(f"{name}: {value}" for name, value in facts.items())]))
    host, _, port = server.partition(":")
    if not host or not (port or "25").isdecimal():
        raise _BadAddress("SCD_ALERT_SMTP is not a mail server (it is not shown); expected host:port")
    with smtplib.SMTP(host, int(port or 25), timeout=_SECONDS) as mail:
        if user := environ.get("SCD_ALERT_SMTP_USER"):
            mail.starttls(context=ssl.create_default_context())
            mail.login(user, environ.get("SCD_ALERT_SMTP_PASSWORD", ""))
        mail.send_message(message)
    return True


def _reason(event: dg.DagsterEvent) -> str:
    """What a step said of its failure, else what the error in it says, whose causes Dagster wraps."""
    data = event.step_failure_data
    if data.user_failure_data is not None and data.user_failure_data.description:
        return data.user_failure_data.description
    error = data.error
    while error is not None and error.cause is not None:
        error = error.cause
    return error.message.strip() if error is not None else ""


def alert_sensor() -> dg.SensorDefinition:
    """Tells of every run that fails, whoever started it."""

    @dg.run_failure_sensor(
        name="alerts",
        description="Tells of runs that fail, to SCD_ALERT_WEBHOOK and SCD_ALERT_MAIL_TO.",
        default_status=dg.DefaultSensorStatus.RUNNING,
    )
    def alerts(context: dg.RunFailureSensorContext) -> None:
        run = context.dagster_run
        failed = context.get_step_failure_events()
        reasons = [reason for event in failed if (reason := _reason(event))]
        text = "; ".join(reasons) or context.failure_event.message or "it failed"
        facts = {"run_id": run.run_id, "job": run.job_name, "steps": ", ".join(str(e.step_key) for e in failed)}
        told = tell(f"{run.job_name} failed", text, facts, os.environ)
        context.log.info(f"told of run {run.run_id}: {', '.join(told) or 'nobody is named'}")
        if unsent := [way for way in told if way.startswith(NOT_BY)]:
            raise dg.Failure(f"run {run.run_id} failed, and that was told {'; '.join(unsent)}", allow_retries=False)

    return alerts
