"""The sensors that are of no single table."""

from __future__ import annotations

from scd_pipeline.components.alerts import alert_sensor

alerts = alert_sensor()
