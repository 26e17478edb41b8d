"""Stops the Connect servers that test runs left behind (those that were killed): `make clean`."""

from __future__ import annotations

import os

from scd_pipeline import session, setup

if __name__ == "__main__":
    stopped = session.stop_server(setup.cache_folder(os.environ) / "servers" / "tests")
    print(f"servers stopped: {stopped}")
