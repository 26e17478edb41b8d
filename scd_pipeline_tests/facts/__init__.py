"""Facts that store the key of the version in force at their event time."""
