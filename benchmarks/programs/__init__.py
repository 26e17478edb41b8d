"""Programs of the contestants without Spark: each runs as a process of its own, in an environment of its own."""
