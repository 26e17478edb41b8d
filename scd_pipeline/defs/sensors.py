"""The sensors that do not belong to a dimension or a fact."""

from __future__ import annotations

from scd_pipeline.components.alerts import alert_sensor

alerts = alert_sensor()
