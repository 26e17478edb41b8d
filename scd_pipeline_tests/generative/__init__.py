"""Random scenarios: the engine, which loads them in order of delivery, is compared with the oracle."""
