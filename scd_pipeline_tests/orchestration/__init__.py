"""The package inside Dagster."""
