"""Delta's jars: downloaded once from a Maven repository, locked by checksum, stored in a cache.

`jars.lock.json` lists the jars that Delta needs in addition to those of Spark. A jar enters the cache only if its
checksum is that of the lock, so the repository need not be trusted.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import time
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from urllib.parse import urlsplit

import requests

from scd_pipeline.errors import SetupError
from scd_pipeline.spark.launch import spark_home

LOCK_FILE = Path(__file__).with_name("jars.lock.json")

_TIMEOUT_SECONDS = 60
_RETRY_DELAYS = (1.0, 4.0, 10.0)
_CHUNK_BYTES = 1 << 20
_TRANSIENT_STATUSES = {408, 429, 500, 502, 503, 504}
_DEFAULT_REPOSITORY_FILE = "org/apache/ivy/core/settings/repository.properties"
_DEFAULT_REPOSITORY_PROPERTY = re.compile(r"^ivy\.ibiblio\.default\.artifact\.root\s*=\s*(\S+)", re.MULTILINE)


# -- the lock and the cache


def read_lock(lock: Path = LOCK_FILE) -> dict[str, str]:
    """Return the SHA-256 checksum of each locked jar by its Maven coordinates (`group:artifact:version`)."""
    checksums: dict[str, str] = json.loads(lock.read_text(encoding="utf-8"))
    return checksums


def jar_name(coordinates: str) -> str:
    """Return the file name of a jar, for example `delta-storage-4.4.0.jar`."""
    _, artifact, version = coordinates.split(":")
    return f"{artifact}-{version}.jar"


def jar_folder(cache: Path, lock: Path = LOCK_FILE) -> Path:
    """Return the folder of the locked jars. Each lock has its own folder, so that versions never mix."""
    return cache / "jars" / hashlib.sha256(lock.read_bytes()).hexdigest()[:16]


def find_jars(cache: Path, lock: Path = LOCK_FILE) -> tuple[Path, ...]:
    """Return the paths of the locked jars in the cache after verifying their checksums.

    Raises:
        SetupError: A jar is missing or damaged.
    """
    folder = jar_folder(cache, lock)
    checksums = read_lock(lock)
    if missing := [jar_name(coordinates) for coordinates in checksums if not _path(folder, coordinates).is_file()]:
        raise SetupError("JARS_MISSING", str(folder), jars=", ".join(missing))
    for coordinates, expected in checksums.items():
        jar = _path(folder, coordinates)
        if (actual := _checksum(jar)) != expected:
            raise SetupError("JAR_DAMAGED", str(jar), actual=actual, expected=expected)
    return tuple(_path(folder, coordinates) for coordinates in checksums)


def invalid_jars(cache: Path, lock: Path = LOCK_FILE) -> tuple[str, ...]:
    """Return the coordinates of the locked jars that are missing from the cache or damaged."""
    folder = jar_folder(cache, lock)
    return tuple(
        coordinates
        for coordinates, expected in read_lock(lock).items()
        if not _path(folder, coordinates).is_file() or _checksum(_path(folder, coordinates)) != expected
    )


def _path(folder: Path, coordinates: str) -> Path:
    return folder / jar_name(coordinates)


def _checksum(jar: Path) -> str:
    return hashlib.sha256(jar.read_bytes()).hexdigest()


# -- the download


def default_repository() -> str:
    """Return the URL of the Maven repository that the installed Spark uses by default."""
    (ivy,) = (spark_home() / "jars").glob("ivy-*.jar")
    with zipfile.ZipFile(ivy) as archive:
        properties = archive.read(_DEFAULT_REPOSITORY_FILE).decode("latin-1")
    root = _DEFAULT_REPOSITORY_PROPERTY.search(properties)
    assert root is not None, f"{ivy}: {_DEFAULT_REPOSITORY_FILE} has no default repository"
    return root[1]


def download_jars(
    cache: Path,
    environ: Mapping[str, str],
    *,
    repository: str | None = None,
    lock: Path = LOCK_FILE,
    progress: Callable[[str], None] = lambda line: None,
) -> None:
    """Download the locked jars that are missing from the cache or damaged.

    Each jar is renamed into place after its checksum was verified, so that a concurrent or interrupted set-up never
    leaves a partial jar. `requests` applies the proxies (HTTPS_PROXY, NO_PROXY) and the logins (.netrc) of the process.

    Args:
        cache: The folder that contains the downloads.
        environ: Environment variables; SSL_CERT_FILE names the trusted certificates if no variable of `requests` does.
        repository: The URL of a Maven repository [default_repository()].
        lock: The file of coordinates and checksums.
        progress: Receives one line for each downloaded jar.

    Raises:
        SetupError: A jar cannot be downloaded or does not have the locked checksum, or the URL is invalid.
    """
    missing = invalid_jars(cache, lock)
    if not missing:
        return
    root = _checked_repository(repository or default_repository())
    folder = jar_folder(cache, lock)
    folder.mkdir(parents=True, exist_ok=True)
    checksums = read_lock(lock)
    with requests.Session() as http:
        for number, coordinates in enumerate(missing, start=1):
            _download_jar(http, root, coordinates, checksums[coordinates], folder, _certificates(environ))
            progress(f"jars: downloaded {jar_name(coordinates)} ({number} of {len(missing)})")


def _checked_repository(url: str) -> str:
    try:
        parts = urlsplit(url)
        is_valid = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        is_valid = False
    if not is_valid:
        raise SetupError("REPOSITORY_URL_INVALID", "--repository or SCD_MAVEN_REPOSITORY")
    return url.rstrip("/")


def _certificates(environ: Mapping[str, str]) -> str | None:
    """Return the file of trusted certificates; None leaves the choice to `requests`, which ignores SSL_CERT_FILE."""
    if environ.get("REQUESTS_CA_BUNDLE") or environ.get("CURL_CA_BUNDLE"):
        return None
    return environ.get("SSL_CERT_FILE") or None


def _download_jar(
    http: requests.Session, root: str, coordinates: str, expected: str, folder: Path, certificates: str | None
) -> None:
    group, artifact, version = coordinates.split(":")
    url = f"{root}/{group.replace('.', '/')}/{artifact}/{version}/{jar_name(coordinates)}"
    partial = folder / f"{jar_name(coordinates)}.{os.getpid()}.partial"
    try:
        actual = _download_with_retries(http, url, partial, certificates)
        if actual != expected:
            raise SetupError("JAR_CHECKSUM_MISMATCH", coordinates, host=_host(url), actual=actual, expected=expected)
        partial.replace(folder / jar_name(coordinates))
    except OSError as error:
        # The text of the error is not shown: it may contain the login of a repository or of a proxy.
        raise SetupError("JAR_NOT_DOWNLOADED", coordinates, host=_host(url), reason=_reason(error)) from None
    finally:
        partial.unlink(missing_ok=True)


def _download_with_retries(http: requests.Session, url: str, target: Path, certificates: str | None) -> str:
    for delay in _RETRY_DELAYS:
        try:
            return _download(http, url, target, certificates)
        except requests.RequestException as error:
            if not _is_transient(error):
                raise
            time.sleep(delay)
    return _download(http, url, target, certificates)


def _download(http: requests.Session, url: str, target: Path, certificates: str | None) -> str:
    """Write the content of a URL to a file and return its checksum."""
    digest = hashlib.sha256()
    as_stored = {"Accept-Encoding": "identity"}
    with http.get(url, headers=as_stored, stream=True, timeout=_TIMEOUT_SECONDS, verify=certificates) as response:
        response.raise_for_status()
        with target.open("wb") as file:
            for chunk in response.iter_content(_CHUNK_BYTES):
                digest.update(chunk)
                file.write(chunk)
    return digest.hexdigest()


def _is_transient(error: requests.RequestException) -> bool:
    if isinstance(error, requests.HTTPError):
        return error.response is not None and error.response.status_code in _TRANSIENT_STATUSES
    if isinstance(error, (requests.exceptions.SSLError, requests.exceptions.ProxyError)):
        return False
    connection_errors = (requests.ConnectionError, requests.Timeout, requests.exceptions.ChunkedEncodingError)
    return isinstance(error, connection_errors)


def _reason(error: OSError) -> str:
    """Return why a download failed, without any URL."""
    if isinstance(error, requests.HTTPError) and error.response is not None:
        return f"HTTP status {error.response.status_code}"
    reasons = {
        requests.exceptions.SSLError: "the certificate of the server was not verified",
        requests.exceptions.ProxyError: "the proxy did not connect",
        requests.Timeout: f"no data for {_TIMEOUT_SECONDS} s",
        requests.ConnectionError: "no connection",
    }
    text = next((text for kind, text in reasons.items() if isinstance(error, kind)), None)
    return text or error.strerror or type(error).__name__


def _host(url: str) -> str:
    """Return the host and port of a URL, without the login and the path, which may be secret."""
    return urlsplit(url).netloc.rpartition("@")[2]
