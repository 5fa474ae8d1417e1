"""Refuses requests that do not come from the page itself.

The server executes cases, so each web page that a user has open in a browser is a possible attacker. The
address has a random token. `Host` must be the server's own, or a name that an attacker resolves to 127.0.0.1
could read pages (DNS rebinding). `Origin` must be the server's own for a request that starts something
(CSRF), and whenever a browser sends it.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from dataclasses import dataclass

from starlette.datastructures import Headers
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

HEADERS = {
    "cache-control": "no-store",
    "cross-origin-resource-policy": "same-origin",
    "referrer-policy": "no-referrer",  # the address has the token
    "x-content-type-options": "nosniff",
}
_LARGEST = 64 << 10  # bytes of a request


@dataclass(frozen=True, slots=True)
class Address:
    """The address of the server: `http://127.0.0.1:8000/TOKEN/`."""

    port: int
    token: str

    @classmethod
    def random(cls, port: int) -> Address:
        """An address that nobody can guess."""
        return cls(port, secrets.token_urlsafe(24))

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/{self.token}/"

    @property
    def hosts(self) -> frozenset[str]:
        """The values of `Host` that name it; an editor that forwards the port says localhost."""
        return frozenset({f"127.0.0.1:{self.port}", f"localhost:{self.port}"})

    def refusal(self, method: str, path: str, headers: Mapping[str, str]) -> tuple[int, str] | None:
        """The status and the reason for which a request is refused; None: it is the page's own.

        path -- decoded, "/TOKEN/state"
        """
        if headers.get("host", "") not in self.hosts:
            return 421, "this server answers for 127.0.0.1 only"
        origin = headers.get("origin")
        own = origin is not None and origin == f"http://{headers['host']}"
        if not own and (origin is not None or method not in ("GET", "HEAD")):
            return 403, "the request comes from another page"
        token = path.split("/")[1] if path.startswith("/") else ""
        if not secrets.compare_digest(token.encode(), self.token.encode()):
            return 404, "there is no such page: use the address that `tracing serve` printed"
        if method == "POST":
            if headers.get("content-type", "").partition(";")[0] != "application/json":
                return 415, "JSON was expected"
            size = headers.get("content-length", "")
            if not size.isdecimal() or int(size) > _LARGEST:
                return 413, "the request is too large, or has no length"
        return None


class RequestGuard:
    """Passes a request on to the application only if the address does not refuse it."""

    def __init__(self, app: ASGIApp, address: Address) -> None:
        self._app, self._address = app, address

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":  # no web sockets
            return
        hosts = [value for name, value in scope["headers"] if name == b"host"]
        refused = self._address.refusal(scope["method"], scope["path"], Headers(scope=scope))
        if refused is None and len(hosts) > 1:
            refused = 400, "the request names two hosts"

        async def answer(message: Message) -> None:
            if message["type"] == "http.response.start":
                known = {name.lower() for name, _ in message["headers"]}
                added = [(name.encode(), value.encode()) for name, value in HEADERS.items()]
                message["headers"] = [*message["headers"], *(one for one in added if one[0] not in known)]
            await send(message)

        if refused is not None:
            await PlainTextResponse(f"{refused[1]}\n", refused[0])(scope, receive, answer)
        else:
            await self._app(scope, receive, answer)
