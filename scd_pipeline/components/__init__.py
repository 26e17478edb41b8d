"""Building blocks for Dagster projects: the component ScdDimension, and the resources that its assets need."""

from scd_pipeline.components.dimension import ScdDimension as ScdDimension
from scd_pipeline.components.resources import DeltaSparkResource as DeltaSparkResource
from scd_pipeline.components.resources import WarehouseResource as WarehouseResource
