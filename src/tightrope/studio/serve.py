"""The page on this machine alone: a socket on 127.0.0.1, a link with a fresh token, until Ctrl-C."""

from __future__ import annotations

import secrets
import socket
import sys
from collections.abc import Callable
from contextlib import ExitStack
from typing import TYPE_CHECKING

from tightrope.errors import InputError, MissingExtraError
from tightrope.studio.desk import Desk, Lent
from tightrope.studio.opened import Opened

if TYPE_CHECKING:
    import uvicorn

SWITCH = 0.0005
"""Seconds after which the thread that computes lets the one that answers go on."""


def serve(opened: Opened, lent: Lent, *, port: int, ready: Callable[[str], None]) -> None:
    """Serve the page until the process is asked to stop; a release that runs then is finished first.

    ``ready`` is given the link once the socket listens. ``port`` 0 takes a free one. Raises ``InputError`` where the
    port is taken, ``MissingExtraError`` without the extra ``studio``.
    """
    listening, token = loopback(port), secrets.token_urlsafe(32)
    sys.setswitchinterval(SWITCH)
    desk = Desk(opened, lent)
    with listening, ExitStack() as stack:
        stack.callback(desk.end)
        server = server_of(desk, token, listening)
        desk.look(opened.likely)  # libraries load, and the first figures are computed, before somebody opens the link
        ready(link_of(token, listening))
        server.run(sockets=[listening])


def server_of(desk: Desk, token: str, listening: socket.socket) -> uvicorn.Server:
    """The server of a desk, for a socket; raises ``MissingExtraError`` without its libraries."""
    try:
        import uvicorn

        from tightrope.studio.app import studio_app
    except ImportError as error:
        raise MissingExtraError(error.name or "starlette", "studio") from None
    app = studio_app(desk, token=token, port=listening.getsockname()[1])
    return uvicorn.Server(
        uvicorn.Config(
            app, proxy_headers=False, server_header=False, ws="none", lifespan="off", log_config=None, access_log=False
        )
    )


def link_of(token: str, listening: socket.socket) -> str:
    """The link: what follows # stays in the browser, and is in no request, no log and no other page's referrer."""
    return f"http://127.0.0.1:{listening.getsockname()[1]}/#{token}"


def loopback(port: int) -> socket.socket:
    """A socket that listens to this machine alone; raises ``InputError`` where the port is taken."""
    listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        listening.bind(("127.0.0.1", port))
        listening.listen()
    except (OSError, OverflowError):
        listening.close()
        raise InputError("port", port, "a free port on this machine", "leave --port out to take any") from None
    return listening
