"""The package as its users meet it: commands, readings, the demo on real data."""
