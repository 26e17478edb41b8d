"""Addresses of Spark Connect servers, which may contain tokens."""

from __future__ import annotations

import re
import socket

from scd_pipeline.errors import SetupError

_DEFAULT_PORT = 15002
# PySpark repeats the parts of an address that it cannot parse, also a token. So it only gets addresses that match.
_ADDRESS = re.compile(
    r"sc://(?P<host>[A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])(:(?P<port>[0-9]{1,5}))?(/(;[^;=/?#\s]+=[^;=/?#\s]+)*)?"
)
_CONNECT_SECONDS = 10


def redacted_address(url: str) -> str:
    """Return the host and port of an address for display; the empty string for an empty address.

    No part of a malformed address is shown, as any part of it may be a token.
    """
    if not url:
        return ""
    server = _host_and_port(url)
    return "sc://{}:{}".format(*server) if server else "a malformed address (not shown, as it may contain a token)"


def require_server(url: str) -> None:
    """Verify at once that a server accepts connections; Spark itself would retry for minutes.

    Raises:
        SetupError: The address is malformed, or no server accepts connections at it.
    """
    server = _host_and_port(url)
    if server is None:
        raise SetupError("REMOTE_ADDRESS_INVALID", "--remote or SCD_REMOTE")
    try:
        socket.create_connection((server[0].strip("[]"), server[1]), timeout=_CONNECT_SECONDS).close()
    except (OSError, UnicodeError) as error:  # a host name that no DNS can have is a UnicodeError
        reason = getattr(error, "strerror", None) or str(error)
        raise SetupError("SERVER_UNREACHABLE", redacted_address(url), reason=reason) from error


def _host_and_port(url: str) -> tuple[str, int] | None:
    """Return the host and port of a Spark Connect address, or None for any other text."""
    address = _ADDRESS.fullmatch(url)
    port = int((address and address["port"]) or _DEFAULT_PORT)
    return (address["host"], port) if address and 0 < port < 65536 else None
