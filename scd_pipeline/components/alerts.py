"""Word of a run that failed, to a webhook and by mail, where the environment names them.

SCD_ALERT_WEBHOOK is an address that takes a POST of JSON; SCD_ALERT_MAIL_TO and SCD_ALERT_SMTP (host:port) are for mail
and SCD_ALERT_MAIL_FROM is its sender.
"""

from __future__ import annotations

import json
import os
import smtplib
import urllib.request
from collections.abc import Mapping
from email.message import EmailMessage

import dagster as dg

_SECONDS = 10


def tell(subject: str, text: str, facts: Mapping[str, str], environ: Mapping[str, str]) -> list[str]:
    """Send the word to whoever is named.  Out: to whom; empty where nobody is."""
    told = []
    if address := environ.get("SCD_ALERT_WEBHOOK"):
        body = json.dumps({"text": f"{subject}: {text}", **facts}).encode()
        request = urllib.request.Request(address, body, {"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=_SECONDS):
            told.append("webhook")
    if (to := environ.get("SCD_ALERT_MAIL_TO")) and (server := environ.get("SCD_ALERT_SMTP")):
        message = EmailMessage()
        message["Subject"], message["To"] = subject, to
        message["From"] = environ.get("SCD_ALERT_MAIL_FROM", "scd_pipeline@localhost")
        message.set_content("\n".join([text, "", *(f"{name}: {value}" for name, value in facts.items())]))
        host, _, port = server.partition(":")
        with smtplib.SMTP(host, int(port or 25), timeout=_SECONDS) as mail:
            mail.send_message(message)
            told.append("mail")
    return told


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
        data = [event.step_failure_data for event in failed]
        reasons = [d.user_failure_data.description for d in data if d.user_failure_data is not None]
        text = "; ".join(str(reason) for reason in reasons) or context.failure_event.message or "it failed"
        facts = {"run_id": run.run_id, "job": run.job_name, "steps": ", ".join(str(e.step_key) for e in failed)}
        told = tell(f"{run.job_name} failed", text, facts, os.environ)
        context.log.info(f"told of run {run.run_id}: {', '.join(told) or 'nobody is named'}")

    return alerts
