"""Building blocks for Dagster projects: the component ScdDimension, the resources that its assets need, and alerts."""

from scd_pipeline.components.alerts import alert_sensor as alert_sensor
from scd_pipeline.components.dimension import ScdDimension as ScdDimension
from scd_pipeline.components.resources import DeltaSparkResource as DeltaSparkResource
from scd_pipeline.components.resources import WarehouseResource as WarehouseResource
