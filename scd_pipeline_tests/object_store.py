"""A server with the interface of S3, in this process, for tests of deliveries in object stores."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import datetime, timezone
from typing import Any

import pytest
from moto.core.models import DEFAULT_ACCOUNT_ID
from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
from moto.s3.models import S3Backend, s3_backends
from werkzeug.serving import WSGIRequestHandler, make_server

PRIVATE = "private"
"""The bucket to which every request is denied."""
_REGION = "us-east-1"
_DENIED = b"<Error><Code>AccessDenied</Code><Message>Access Denied</Message></Error>"


class ObjectStore:
    """The buckets of the server, and the requests that it has received.

    S3 has the time of an object in whole seconds, so tests set it.
    """

    def __init__(self, url: str) -> None:
        self.url = url
        self.requests: list[str] = []

    @property
    def _backend(self) -> S3Backend:
        return s3_backends[DEFAULT_ACCOUNT_ID]["aws"]

    def reset(self, *buckets: str) -> None:
        """Remove everything, and create empty buckets."""
        self._backend.reset()
        for bucket in buckets:
            self._backend.create_bucket(bucket, _REGION)
        self.requests.clear()

    def put(self, bucket: str, key: str, content: str | bytes, *, at: str = "2024-06-01T00:00:00") -> None:
        """Store an object that was written at this time in UTC."""
        data = content.encode() if isinstance(content, str) else content
        stored = self._backend.put_object(bucket, key, data)
        stored.last_modified = datetime.fromisoformat(at).replace(tzinfo=timezone.utc)

    def delete(self, bucket: str, key: str) -> None:
        self._backend.delete_object(bucket, key)

    def get(self, bucket: str, key: str) -> bytes:
        return bytes(self._backend.get_object(bucket, key).value)  # type: ignore[union-attr]

    def keys(self, bucket: str) -> list[str]:
        return sorted(self._backend.buckets[bucket].keys)


class _Application:
    """The application of the server: S3, which denies anonymous requests and those to the bucket `PRIVATE`."""

    def __init__(self) -> None:
        self._moto: Any = DomainDispatcherApplication(create_backend_app)
        self.requests: list[str] = []

    def __call__(self, environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        method, path = environ["REQUEST_METHOD"], environ["PATH_INFO"]
        self.requests.append(f"{method} {path}?{environ['QUERY_STRING']}")
        if "HTTP_AUTHORIZATION" not in environ or path.startswith(f"/{PRIVATE}"):
            start_response("403 Forbidden", [("Content-Type", "application/xml")])
            return [b"" if method == "HEAD" else _DENIED]
        answer: Iterable[bytes] = self._moto(environ, start_response)
        return answer


class _Silent(WSGIRequestHandler):
    def log(self, type: str, message: str, *arguments: Any) -> None:
        """Log no requests."""


@contextmanager
def serve() -> Iterator[ObjectStore]:
    """Serve an empty store, and let the libraries of this process use it, with credentials that it accepts."""
    application = _Application()
    server = make_server("127.0.0.1", 0, application, threaded=True, request_handler=_Silent)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    store = ObjectStore(f"http://127.0.0.1:{server.server_port}")
    store.requests = application.requests
    variables = {
        "AWS_ENDPOINT_URL": store.url,
        "AWS_ACCESS_KEY_ID": "test",
        "AWS_SECRET_ACCESS_KEY": "test",
        "AWS_DEFAULT_REGION": _REGION,
        "AWS_EC2_METADATA_DISABLED": "true",
        "AWS_CONFIG_FILE": "/dev/null",
        "AWS_SHARED_CREDENTIALS_FILE": "/dev/null",
    }
    with pytest.MonkeyPatch.context() as environment:
        for name, value in variables.items():
            environment.setenv(name, value)
        try:
            yield store
        finally:
            server.shutdown()
            thread.join()
            store.reset()
