"""Facts that store the key of the version that held at their event time."""
