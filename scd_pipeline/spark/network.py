"""The network as the environment describes it, for a Java, which heeds neither SSL_CERT_FILE nor https_proxy itself."""

from __future__ import annotations

import base64
import hashlib
import re
import struct
from collections.abc import Iterable, Mapping
from pathlib import Path
from urllib.parse import urlsplit

_PEM = re.compile(rb"-----BEGIN CERTIFICATE-----(.+?)-----END CERTIFICATE-----", re.DOTALL)
_PASSWORD = "changeit"


def java_options(environ: Mapping[str, str], folder: Path) -> list[str]:
    """Java's options for the proxies and the certificates that the environment names; a store is made in `folder`."""
    options = [option for scheme in ("http", "https") for option in _proxy(environ, scheme)]
    hosts = (environ.get("no_proxy") or environ.get("NO_PROXY") or "").split(",")
    without = "|".join(f"*{h}" if h.startswith(".") else h for h in (host.strip() for host in hosts) if h)
    options += [f"-Dhttp.nonProxyHosts={without}"] if options and without else []
    bundle = Path(environ.get("SSL_CERT_FILE") or "")
    if bundle.is_file():
        store = folder / "certificates.jks"
        store.write_bytes(key_store(base64.b64decode(pem) for pem in _PEM.findall(bundle.read_bytes())))
        options += [f"-Djavax.net.ssl.trustStore={store}", "-Djavax.net.ssl.trustStoreType=JKS"]
        options += [f"-Djavax.net.ssl.trustStorePassword={_PASSWORD}"]
    return options


def _proxy(environ: Mapping[str, str], scheme: str) -> list[str]:
    given = environ.get(f"{scheme}_proxy") or environ.get(f"{scheme.upper()}_PROXY") or ""
    place = urlsplit(given if "://" in given else f"http://{given}")
    if not place.hostname:
        return []
    return [f"-D{scheme}.proxyHost={place.hostname}", f"-D{scheme}.proxyPort={place.port or 80}"]


def key_store(certificates: Iterable[bytes]) -> bytes:
    """A store of trusted certificates, each in DER, as every Java reads it.

    The format is JKS, version 2, as sun.security.provider.JavaKeyStore writes it: the entries, and a digest of them.
    """
    trusted = list(certificates)
    entries = [
        struct.pack(">I", 2) + _text(f"certificate {number}") + struct.pack(">Q", 0) + _text("X.509") + _sized(der)
        for number, der in enumerate(trusted)
    ]
    store = struct.pack(">III", 0xFEEDFEED, 2, len(trusted)) + b"".join(entries)
    digest = hashlib.sha1(_PASSWORD.encode("utf-16-be") + b"Mighty Aphrodite" + store)
    return store + digest.digest()


def _text(text: str) -> bytes:
    return struct.pack(">H", len(text)) + text.encode()


def _sized(content: bytes) -> bytes:
    return struct.pack(">I", len(content)) + content
