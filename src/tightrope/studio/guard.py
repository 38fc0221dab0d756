"""The door: this machine's own page alone gets in, and nothing on the page can reach out.

What it keeps out: another machine (the socket is 127.0.0.1), a name that was pointed here (Host), another site in the
same browser (Origin, and a token in a header, which no form and no image can send), another user of this machine (the
token, which travels in the part of the link that browsers keep to themselves), and scripts that somebody's column is
called like (the content security policy; the page writes text, never HTML).
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

TOKEN = "x-tightrope-token"  # noqa: S105 - the header's name
HOST = "127.0.0.1"
OURS = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'"
SHUT = "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
REPORT = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; sandbox"
"""A report holds its own style, and needs nothing else."""
ONCE = ("host", "origin", "content-type", "content-length", "transfer-encoding", TOKEN)
"""Headers that decide whether a request is let in: two of one name are refused, for two readers could take either."""
HEADERS = {
    "content-security-policy": f"{OURS}; {SHUT}",
    "cache-control": "no-store",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
}


@dataclass(frozen=True, slots=True)
class Guard:
    """Lets a request through to the page, or answers it; what it says is the same whatever was asked for."""

    app: ASGIApp
    token: str
    port: int

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request of HTTP; nothing else is spoken here."""
        if scope["type"] != "http":
            return
        problem = self._problem(scope["method"], scope["path"], Headers(scope=scope))
        app = self.app if problem is None else PlainTextResponse(problem, status_code=403)
        await app(scope, receive, _sealed(send))

    def _problem(self, method: str, path: str, headers: Headers) -> str | None:
        """Why a request is refused; None where it is the page's own."""
        if any(len(headers.getlist(name)) > 1 for name in ONCE):
            return "A header is there twice."
        if headers.get("host") != f"{HOST}:{self.port}":
            return "This address is not the studio's."
        if method != "POST":
            return None if method in ("GET", "HEAD") and not path.startswith("/api/") else "Not so."
        if headers.get("origin") != f"http://{HOST}:{self.port}":
            return "Another site asked for this."
        if headers.get("content-type") != "application/json":
            return "Not so."
        said = headers.get(TOKEN, "").encode()
        return None if secrets.compare_digest(said, self.token.encode()) else "Open the link that the studio printed."


def _sealed(send: Send) -> Send:
    """Every answer leaves with ``HEADERS``; one that states its own policy keeps that."""

    async def sealed(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            for name, value in HEADERS.items():
                headers.setdefault(name, value)
        await send(message)

    return sealed
