"""The download of Delta's jars from a Maven repository on this machine."""

from __future__ import annotations

import socket
import ssl
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from scd_pipeline.errors import SetupError
from scd_pipeline.spark import download as downloads
from scd_pipeline.spark import jars
from scd_pipeline_tests.setup.locked_jars import COORDINATES, NAMES, store, write_lock

PATHS = (
    "/maven/io/delta/delta-storage/4.4.0/delta-storage-4.4.0.jar",
    "/maven/org/locationtech/jts/jts-core/1.20.0/jts-core-1.20.0.jar",
)
NETWORK_VARIABLES = ("http_proxy", "https_proxy", "all_proxy", "no_proxy", "requests_ca_bundle", "curl_ca_bundle")

# A self-signed certificate of 127.0.0.1 and its key, for tests only.
CERTIFICATE = """\
-----BEGIN CERTIFICATE-----
MIIBjzCCATagAwIBAgIUbcooq46eiVzdcK9/klJw01C/AJkwCgYIKoZIzj0EAwIw
FDESMBAGA1UEAwwJbG9jYWxob3N0MCAXDTI2MTEyMzA2MjYxOFoYDzIxMjYxMDMw
MDYyNjE5WjAUMRIwEAYDVQQDDAlsb2NhbGhvc3QwWTATBgcqhkjOPQIBBggqhkjO
PQMBBwNCAASX1XSun8djgL4b2PnkeJB5CMQE5vzzdpYPky2BtfiGdGCnu/46RldK
M5pCUD7dUVdsAjyEXic3T+ybsB3YZgkso2QwYjAdBgNVHQ4EFgQUaIRegiYZTZ5G
AbjvDPQM6GXeQ1gwHwYDVR0jBBgwFoAUaIRegiYZTZ5GAbjvDPQM6GXeQ1gwDwYD
VR0TAQH/BAUwAwEB/zAPBgNVHREECDAGhwR/AAABMAoGCCqGSM49BAMCA0cAMEQC
IA7bDkMi42UmYjD7edh2nAKyIjbxqg8al7JvyZEOXMQNAiAKZc3duoZXATSLtCx3
oRufpxtwDf/6axWi4sGALbaWNA==
-----END CERTIFICATE-----
"""
KEY = """\
-----BEGIN PRIVATE KEY-----
MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgD6GUZu8ar9cyS7We
DSLLP74H1NlRXX48t6pCKrt2yT2hRANCAASX1XSun8djgL4b2PnkeJB5CMQE5vzz
dpYPky2BtfiGdGCnu/46RldKM5pCUD7dUVdsAjyEXic3T+ybsB3YZgks
-----END PRIVATE KEY-----
"""


@dataclass
class Repository:
    """A Maven repository on this machine."""

    url: str
    contents: dict[str, bytes]
    failures: list[int] = field(default_factory=list)
    """HTTP statuses of the next responses; 0 ends the connection in the middle of the content."""
    requests: list[str] = field(default_factory=list)


@pytest.fixture
def lock(tmp_path: Path) -> Path:
    """A lock of two small jars."""
    return write_lock(tmp_path / "jars.lock.json")


@pytest.fixture(autouse=True)
def network(monkeypatch: pytest.MonkeyPatch) -> None:
    """A network without proxies and without pauses between retries."""
    for name in NETWORK_VARIABLES:
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    monkeypatch.setattr(downloads, "_RETRIES", downloads._RETRIES.new(total=2, backoff_factor=0))


@pytest.fixture
def repository() -> Iterator[Repository]:
    yield from serve()


@pytest.fixture
def https_repository(tmp_path: Path) -> Iterator[Repository]:
    (tmp_path / "certificate.pem").write_text(CERTIFICATE)
    (tmp_path / "key.pem").write_text(KEY)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "certificate.pem", tmp_path / "key.pem")
    yield from serve(context)


def serve(context: ssl.SSLContext | None = None) -> Iterator[Repository]:
    """Serve the locked jars, also to requests that a proxy receives."""
    contents = {path: name.encode() for path, name in zip(PATHS, NAMES, strict=True)}
    repository = Repository("", contents)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            repository.requests.append(self.path)
            failure = repository.failures.pop(0) if repository.failures else None
            content = repository.contents.get(self.path.removeprefix("http://repository.example"))
            status = failure or (404 if content is None else 200)
            body = content if status == 200 and content is not None else b""
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body[: len(body) // 2] if failure == 0 else body)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    if context is not None:
        server.socket = context.wrap_socket(server.socket, server_side=True)
    repository.url = f"{'https' if context else 'http'}://127.0.0.1:{server.server_port}/maven"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    yield repository
    server.shutdown()
    server.server_close()
    thread.join()


def download(cache: Path, lock: Path, url: str, certificates: str | None = None) -> list[str]:
    """Download the locked jars and return the progress lines."""
    lines: list[str] = []
    downloads.download_jars(cache, repository=url, certificates=certificates, lock=lock, progress=lines.append)
    return lines


def test_jars_are_downloaded_into_the_cache(tmp_path: Path, lock: Path, repository: Repository) -> None:
    lines = download(tmp_path, lock, repository.url + "/")
    assert lines == [f"jars: downloaded {name} ({number} of 2)" for number, name in enumerate(NAMES, start=1)]
    assert [jar.read_text() for jar in jars.find_jars(tmp_path, lock)] == list(NAMES)
    assert sorted(file.name for file in jars.jar_folder(tmp_path, lock).iterdir()) == sorted(NAMES)
    assert repository.requests == list(PATHS)


def test_only_missing_and_damaged_jars_are_downloaded(tmp_path: Path, lock: Path, repository: Repository) -> None:
    folder = jars.jar_folder(tmp_path, lock)
    store(folder)
    (folder / NAMES[1]).write_text("other bytes")
    download(tmp_path, lock, repository.url)
    assert repository.requests == [PATHS[1]]
    assert jars.invalid_jars(tmp_path, lock) == ()


def test_jars_of_the_local_repository_of_maven_are_copied(tmp_path: Path, lock: Path) -> None:
    """A jar with another checksum is downloaded from the repository on the network instead."""
    local = tmp_path / "m2"
    for path in PATHS:
        jar = local / path.removeprefix("/maven/")
        jar.parent.mkdir(parents=True)
        jar.write_text(jar.name)
    downloads.download_jars(tmp_path / "cache", local_repository=local, lock=lock)
    assert len(jars.find_jars(tmp_path / "cache", lock)) == 2
    (local / PATHS[0].removeprefix("/maven/")).write_bytes(b"other")
    with pytest.raises(SetupError, match="REPOSITORY_URL_INVALID"):
        downloads.download_jars(tmp_path / "other", repository="none", local_repository=local, lock=lock)


def test_a_complete_cache_needs_no_network(tmp_path: Path, lock: Path) -> None:
    store(jars.jar_folder(tmp_path, lock))
    assert download(tmp_path, lock, "http://127.0.0.1:9") == []


def test_a_jar_with_another_checksum_never_reaches_the_cache(
    tmp_path: Path, lock: Path, repository: Repository
) -> None:
    repository.contents[PATHS[1]] = b"other bytes"
    with pytest.raises(SetupError) as error:
        download(tmp_path, lock, repository.url)
    assert (error.value.code, error.value.location) == ("JAR_CHECKSUM_MISMATCH", COORDINATES[1])
    assert [file.name for file in jars.jar_folder(tmp_path, lock).iterdir()] == [NAMES[0]]


@pytest.mark.parametrize("failures", [[503, 429], [0], [0, 500]])
def test_transient_failures_are_retried(
    tmp_path: Path, lock: Path, repository: Repository, failures: list[int]
) -> None:
    repository.failures = [*failures]
    download(tmp_path, lock, repository.url)
    assert repository.requests == [PATHS[0]] * len(failures) + list(PATHS)
    assert jars.invalid_jars(tmp_path, lock) == ()


@pytest.mark.parametrize(("failures", "attempts"), [([503] * 3, 3), ([404], 1), ([401], 1)])
def test_a_failed_download_names_jar_host_and_status(
    tmp_path: Path, lock: Path, repository: Repository, failures: list[int], attempts: int
) -> None:
    host = repository.url.split("/")[2]
    repository.failures = [*failures]
    with pytest.raises(SetupError) as error:
        download(tmp_path, lock, repository.url.replace("://", "://ann:tOkEn@"))
    assert (error.value.code, error.value.location) == ("JAR_NOT_DOWNLOADED", COORDINATES[0])
    assert error.value.details == {"host": host, "reason": f"HTTP status {failures[0]}"}
    assert len(repository.requests) == attempts
    assert list(jars.jar_folder(tmp_path, lock).iterdir()) == []


def test_a_server_that_sends_nothing_is_reported(tmp_path: Path, lock: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(downloads, "_TIMEOUT_SECONDS", 0.2)
    with socket.create_server(("127.0.0.1", 0)) as silent, pytest.raises(SetupError) as error:
        download(tmp_path, lock, f"http://127.0.0.1:{silent.getsockname()[1]}/maven")
    assert error.value.details["reason"] == "no data for 0.2 s"


def test_without_network_the_download_fails_without_secrets(tmp_path: Path, lock: Path) -> None:
    with pytest.raises(SetupError) as error:
        download(tmp_path, lock, "http://ann:tOkEn@127.0.0.1:9/tOkEn")
    assert error.value.details == {"host": "127.0.0.1:9", "reason": "no connection"}
    assert error.value.__suppress_context__ and "tOkEn" not in str(error.value)


@pytest.mark.parametrize("url", ["tOkEn", "ftp://tOkEn/maven", "http://", "https://h:tOkEn/", "http://[tOkEn/"])
def test_an_invalid_url_is_rejected_but_not_shown(tmp_path: Path, lock: Path, url: str) -> None:
    with pytest.raises(SetupError) as error:
        download(tmp_path, lock, url)
    assert error.value.code == "REPOSITORY_URL_INVALID" and "tOkEn" not in str(error.value)


def test_the_proxy_of_the_environment_is_used(
    tmp_path: Path, lock: Path, repository: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTP_PROXY", repository.url.removesuffix("/maven"))
    download(tmp_path, lock, "http://repository.example/maven")
    assert repository.requests == [f"http://repository.example{path}" for path in PATHS]


def test_no_proxy_of_the_environment_is_honoured(
    tmp_path: Path, lock: Path, repository: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    download(tmp_path, lock, repository.url)
    assert repository.requests == list(PATHS)


def test_configured_certificates_are_trusted(tmp_path: Path, lock: Path, https_repository: Repository) -> None:
    download(tmp_path, lock, https_repository.url, str(tmp_path / "certificate.pem"))
    assert jars.invalid_jars(tmp_path, lock) == ()


def test_certificates_of_the_environment_override_configured_ones(
    tmp_path: Path, lock: Path, https_repository: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(tmp_path / "certificate.pem"))
    download(tmp_path, lock, https_repository.url, str(tmp_path / "none.pem"))
    assert jars.invalid_jars(tmp_path, lock) == ()


def test_an_unknown_certificate_is_not_trusted(tmp_path: Path, lock: Path, https_repository: Repository) -> None:
    with pytest.raises(SetupError) as error:
        download(tmp_path, lock, https_repository.url)
    assert error.value.details["reason"] == "the certificate of the server was not verified"
    assert https_repository.requests == []


def test_the_default_repository_is_that_of_spark() -> None:
    assert downloads.default_repository().startswith("https://")
