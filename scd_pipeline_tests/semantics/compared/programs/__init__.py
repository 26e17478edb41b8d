"""Programs that run in the environments of other tools. They import neither Spark nor `scd_pipeline`."""
