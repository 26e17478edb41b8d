"""Pure functions from frames to frames: how statements become the history of a dimension. No action, no clock."""
