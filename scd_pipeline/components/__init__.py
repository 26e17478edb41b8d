"""Building blocks for Dagster projects: the component ScdDimension, the resources of its assets, and alerts."""

from scd_pipeline.components.alerts import alert_sensor as alert_sensor
from scd_pipeline.components.resources import DeltaSparkResource as DeltaSparkResource
from scd_pipeline.components.resources import WarehouseResource as WarehouseResource
from scd_pipeline.components.scd_dimension import ScdDimension as ScdDimension
