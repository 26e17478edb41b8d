"""The download of Delta's jars from a Maven repository.

Jars that Maven has in its local repository are copied from there. A jar enters the cache only if its checksum is that
of the lock, so no repository need be trusted.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import zipfile
from collections.abc import Callable
from pathlib import Path
from urllib.parse import urlsplit

import requests
from requests.adapters import HTTPAdapter
from urllib3.exceptions import ReadTimeoutError
from urllib3.util import Retry

from scd_pipeline.errors import SetupError
from scd_pipeline.spark.jars import LOCK_FILE, checksum, invalid_jars, jar_folder, jar_name, jar_path, read_lock
from scd_pipeline.spark.launch import spark_home

_TIMEOUT_SECONDS = 60
_CHUNK_BYTES = 1 << 20
_NO_DATA = "no data for {} s"
# An invalid certificate is one of the other errors, which are not retried. A server may name a pause of hours.
_RETRIES = Retry(
    total=4,
    other=0,
    backoff_factor=1,
    status_forcelist=(408, 429, 500, 502, 503, 504),
    raise_on_status=False,
    respect_retry_after_header=False,
)
_BODY_RETRIES = 3
_DEFAULT_REPOSITORY_FILE = "org/apache/ivy/core/settings/repository.properties"
_DEFAULT_REPOSITORY_PROPERTY = re.compile(r"^ivy\.ibiblio\.default\.artifact\.root\s*=\s*(\S+)", re.MULTILINE)


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
    *,
    repository: str = "",
    local_repository: Path | None = None,
    certificates: str | None = None,
    lock: Path = LOCK_FILE,
    progress: Callable[[str], None] = lambda line: None,
) -> None:
    """Download the locked jars that are missing from the cache or damaged.

    Each jar is renamed into place after its checksum was verified, so that a concurrent or interrupted set-up never
    leaves a partial jar. `requests` applies HTTPS_PROXY, NO_PROXY, REQUESTS_CA_BUNDLE and .netrc of the process.

    Args:
        cache: The folder that contains the downloads.
        repository: The URL of a Maven repository [default_repository()].
        local_repository: The folder of Maven's local repository, such as `~/.m2/repository` [none].
        certificates: The file of trusted certificates; REQUESTS_CA_BUNDLE overrides it [those of `requests`].
        lock: The file of coordinates and checksums.
        progress: Receives one line for each downloaded jar.

    Raises:
        SetupError: A jar cannot be downloaded or does not have the locked checksum, or the URL is invalid.
    """
    missing = invalid_jars(cache, lock)
    if not missing:
        return
    folder = jar_folder(cache, lock)
    folder.mkdir(parents=True, exist_ok=True)
    checksums = read_lock(lock)
    if local_repository is not None:
        copied = [name for name in missing if _copy_jar(local_repository, name, checksums[name], folder)]
        progress(f"jars: copied {len(copied)} of {len(missing)} from {local_repository}")
        missing = tuple(name for name in missing if name not in copied)
    if not missing:
        return
    root = _checked_repository(repository or default_repository())
    with requests.Session() as http:
        http.verify = certificates or True
        for scheme in ("http://", "https://"):
            http.mount(scheme, HTTPAdapter(max_retries=_RETRIES))
        http.headers["Accept-Encoding"] = "identity"
        for number, coordinates in enumerate(missing, start=1):
            _download_jar(http, root, coordinates, checksums[coordinates], folder)
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


def _repository_path(coordinates: str) -> str:
    """Return the path of a jar in a Maven repository."""
    group, artifact, version = coordinates.split(":")
    return f"{group.replace('.', '/')}/{artifact}/{version}/{jar_name(coordinates)}"


def _partial_path(jar: Path) -> Path:
    return jar.with_name(f"{jar.name}.{os.getpid()}.partial")


def _copy_jar(repository: Path, coordinates: str, expected: str, folder: Path) -> bool:
    """Copy a jar from a local repository if it has the locked checksum; return whether it was copied."""
    source = repository / _repository_path(coordinates)
    if not source.is_file() or checksum(source) != expected:
        return False
    jar = jar_path(folder, coordinates)
    partial = _partial_path(jar)
    try:
        shutil.copyfile(source, partial)
        partial.replace(jar)
    finally:
        partial.unlink(missing_ok=True)
    return True


def _download_jar(http: requests.Session, root: str, coordinates: str, expected: str, folder: Path) -> None:
    url = f"{root}/{_repository_path(coordinates)}"
    jar = jar_path(folder, coordinates)
    partial = _partial_path(jar)
    try:
        actual = _download(http, url, partial)
        if actual != expected:
            raise SetupError("JAR_CHECKSUM_MISMATCH", coordinates, host=_host(url), actual=actual, expected=expected)
        partial.replace(jar)
    except OSError as error:
        # The text of the error is not shown: it may contain the login of a repository or of a proxy.
        raise SetupError("JAR_NOT_DOWNLOADED", coordinates, host=_host(url), reason=_reason(error)) from None
    finally:
        partial.unlink(missing_ok=True)


def _download(http: requests.Session, url: str, target: Path, retries: int = _BODY_RETRIES) -> str:
    """Write the content of a URL to a file and return its checksum.

    The session retries a request until a response begins; a response that ends early is requested again here.
    """
    with http.get(url, stream=True, timeout=_TIMEOUT_SECONDS) as response:
        response.raise_for_status()
        try:
            return _store(response, target)
        except (requests.exceptions.ChunkedEncodingError, requests.ConnectionError):
            if not retries:
                raise
    return _download(http, url, target, retries - 1)


def _store(response: requests.Response, target: Path) -> str:
    """Write the content of a response to a file and return its checksum."""
    digest = hashlib.sha256()
    with target.open("wb") as file:
        for chunk in response.iter_content(_CHUNK_BYTES):
            digest.update(chunk)
            file.write(chunk)
    return digest.hexdigest()


def _reason(error: OSError) -> str:
    """Return why a download failed, without any URL."""
    if isinstance(error, requests.HTTPError) and error.response is not None:
        return f"HTTP status {error.response.status_code}"
    if isinstance(getattr(next(iter(error.args), None), "reason", None), ReadTimeoutError):
        return _NO_DATA.format(_TIMEOUT_SECONDS)
    reasons = {
        requests.exceptions.SSLError: "the certificate of the server was not verified",
        requests.exceptions.ProxyError: "the proxy did not connect",
        requests.Timeout: _NO_DATA.format(_TIMEOUT_SECONDS),
        requests.ConnectionError: "no connection",
    }
    text = next((text for kind, text in reasons.items() if isinstance(error, kind)), None)
    return text or error.strerror or type(error).__name__


def _host(url: str) -> str:
    """Return the host and port of a URL, without the login and the path, which may be secret."""
    return urlsplit(url).netloc.rpartition("@")[2]
