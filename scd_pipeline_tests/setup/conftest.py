"""A fake Spark Connect server, which starts at once and only accepts connections."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from scd_pipeline.spark import server

SERVER = """
import pathlib, re, socket, sys, time
mode = pathlib.Path(__file__).with_name("mode")
behaviour = mode.read_text()
print("one line of the log", flush=True)
if behaviour == "fails":
    sys.exit("no such jar")
if behaviour == "port in use":
    mode.write_text("works")
    sys.exit("java.net.BindException: Address already in use")
if behaviour == "mute":
    time.sleep(60)
port = int(re.search(r"binding.port=(\\d+)", " ".join(sys.argv))[1])
if behaviour == "refuses":
    import concurrent.futures, grpc
    service = grpc.server(concurrent.futures.ThreadPoolExecutor())
    service.add_insecure_port(f"127.0.0.1:{port}")
    service.start()
    time.sleep(60)
with socket.create_server(("127.0.0.1", port)) as listener:
    listener.accept()[0].close()
    while behaviour != "deaf":
        listener.accept()[0].close()
time.sleep(60)
"""


@pytest.fixture
def mode(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file that sets how the fake server behaves."""
    home = tmp_path / "spark"
    (home / "bin").mkdir(parents=True)
    (home / "server.py").write_text(SERVER)
    submit = home / "bin" / "spark-submit"
    submit.write_text(f'#!/bin/sh\nenv > {home}/environ\nexec {sys.executable} {home}/server.py "$@"\n')
    submit.chmod(0o755)
    monkeypatch.setattr(server, "spark_home", lambda: home)
    file = home / "mode"
    file.write_text("works")
    return file
