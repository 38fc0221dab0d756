"""The page on this machine alone: a socket on 127.0.0.1, a link with a fresh token, until Ctrl-C."""

from __future__ import annotations

import secrets
import socket
import sys
import threading
from collections.abc import Awaitable, Callable
from concurrent.futures import Future
from contextlib import ExitStack
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from tightrope.documents.numbers import UP, significant
from tightrope.errors import InputError, MissingExtraError
from tightrope.release.plan import Plan
from tightrope.release.plan_file import PlanFile, load, standing
from tightrope.studio.plan_editor import Desk, Lent
from tightrope.studio.plan_form import WISHES, Agreed, Opened, Wishes

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
        desk.look(
            opened.with_likely_unit
        )  # libraries load, and the first figures are computed, before somebody opens the link
        ready(link_of(token, listening))
        server.run(sockets=[listening])


def server_of(desk: Desk, token: str, listening: socket.socket) -> uvicorn.Server:
    """The server of a desk, for a socket; raises ``MissingExtraError`` without its libraries."""
    try:
        import uvicorn
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


# The door: this machine's own page alone gets in, and nothing on the page can reach out.
#
# What it keeps out: another machine (the socket is 127.0.0.1), a name that was pointed here (Host), another site in
# the same browser (Origin, and a token in a header, which no form and no image can send), another user of this
# machine (the token, which travels in the part of the link that browsers keep to themselves), and scripts that
# somebody's column is called like (the content security policy; the page writes text, never HTML).

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


# Where a release is paid: what it spends is said first, and what was agreed to happens once.

Json = dict[str, Any]
COUNTER_REPORT = "report.html"
MOST_TICKETS = 100


class Counter:
    """Tickets and what became of them. A ticket is one plan's text, and is good for one release."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._open: dict[str, str] = {}
        self._done: dict[str, Future[Json]] = {}
        self._reports: dict[str, Path] = {}
        self._turn = threading.Lock()

    def price(self, wishes: Wishes) -> Json:
        """What a release of this plan would spend, in words, and a ticket for it. Saves the plan; spends nothing."""
        text = self._desk.text(wishes)
        with self._desk.plan_on_disk(text) as path:
            file = load(path)
        plan = file.plan()
        ticket = secrets.token_urlsafe()
        with self._turn:
            while len(self._open) >= MOST_TICKETS:
                self._open.pop(next(iter(self._open)))
            self._open[ticket] = text
        return {"ticket": ticket, "plan": str(path), "spends": _spends(file, plan), "standing": standing(file, plan)}

    def release(self, agreed: Agreed) -> Json:
        """Charge, draw and write, once: who asks again with the same ticket is told what became of it, at no cost."""
        with self._turn:
            text = self._open.pop(agreed.ticket, None)
            if text is None and agreed.ticket not in self._done:
                raise InputError("ticket", "...", "one that is open", "nothing was spent: ask again what it spends")
            ours = text is not None
            done = self._done.setdefault(agreed.ticket, Future())
        if ours and text is not None:
            self._settle(done, text)
        return done.result()

    def report(self, name: str) -> Path | None:
        """The page of a release by its name, which only who released it was told."""
        return self._reports.get(name)

    def _settle(self, done: Future[Json], text: str) -> None:
        try:
            done.set_result(self._released(text))
        except BaseException as error:
            done.set_exception(error)

    def _released(self, text: str) -> Json:
        with self._desk.plan_on_disk(text) as path:
            # A folder beside the plan that is not there yet.
            number = 1
            while (folder := path.with_name(f"{path.stem}-release-{number}")).exists():
                number += 1
            self._desk.lent.release(path, folder)
        name = secrets.token_urlsafe()
        self._reports[name] = folder / COUNTER_REPORT
        return {"folder": str(folder), "report": f"/report/{name}"}


def _spends(file: PlanFile, plan: Plan) -> str:
    """What is spent, and where it is written down."""
    data = plan.draft.to_data()
    epsilon, delta = significant(data["epsilon"], 3, UP), significant(data["delta"], 2, UP)
    part = "the whole budget" if plan.share == 1 else f"a share of {plan.share} of the budget"
    return (
        f"This spends epsilon {epsilon} at delta {delta}, {part} of {file.dataset!r}, in the ledger {_place(file)}. "
        f"It cannot be taken back, and releasing again is charged again."
    )


def _place(file: PlanFile) -> str:
    """The ledger without what a URL may hold besides."""
    return file.ledger.rpartition("@")[2] if "://" in file.ledger else file.ledger


# The routes: a static page, and five questions that it may ask.

Kind = TypeVar("Kind")
Handler = Callable[[Request], Awaitable[Response]]
PAGE = {"/": ("studio.html", "text/html"), "/studio.css": ("studio.css", "text/css")}
SCRIPTS = "studio", "ask", "show", "parts"
BODY_LIMIT = 64 * 1024
"""Bytes of a request that are read."""


def studio_app(desk: Desk, *, token: str, port: int) -> Guard:
    """The whole application behind its door."""
    counter = Counter(desk)
    asked: dict[str, Callable[[str], Any]] = {
        "start": lambda _: desk.start(),
        "look": lambda text: desk.look(_read_form(text, Wishes)),
        "save": lambda text: {"saved": str(desk.save(_read_form(text, Wishes)))},
        "price": lambda text: counter.price(_read_form(text, Wishes)),
        "release": lambda text: counter.release(_read_form(text, Agreed)),
    }
    routes = [Route(f"/api/{name}", _answering(act, desk), methods=["POST"]) for name, act in asked.items()]
    routes += [Route(path, _static(*file)) for path, file in PAGE.items()]
    routes += [Route(f"/{name}.js", _static(f"{name}.js", "text/javascript")) for name in SCRIPTS]
    routes.append(Route("/favicon.ico", _nothing))
    routes.append(Route("/report/{name}", _report(counter)))
    return Guard(Starlette(routes=routes), token, port)


def _answering(act: Callable[[str], Any], desk: Desk) -> Handler:
    """JSON from JSON; whatever goes wrong is one line in words, without a value of the data."""

    async def answer(request: Request) -> Response:
        text = await _body(request)
        if text is None:
            return JSONResponse({"problem": "This is too long."}, status_code=413)
        try:
            return JSONResponse(await run_in_threadpool(act, text))
        except Exception as error:
            return JSONResponse({"problem": desk.lent.told(error)}, status_code=400)

    return answer


async def _body(request: Request) -> str | None:
    """The text of a request; None where it is too long or no text."""
    read = bytearray()
    async for part in request.stream():
        read += part
        if len(read) > BODY_LIMIT:
            return None
    return read.decode("utf-8", errors="replace")


def _read_form(text: str, kind: type[Kind]) -> Kind:
    return WISHES.json(text, kind)


def _static(name: str, kind: str) -> Handler:
    content = resources.files("tightrope.studio").joinpath("static", name).read_bytes()

    async def page(_: Request) -> Response:
        return Response(content, media_type=kind)

    return page


async def _nothing(_: Request) -> Response:
    return Response(status_code=204)


def _report(counter: Counter) -> Handler:
    async def page(request: Request) -> Response:
        path = counter.report(request.path_params["name"])
        if path is None:
            return Response("There is no such report.", status_code=404, media_type="text/plain")
        content = await run_in_threadpool(path.read_bytes)
        return Response(content, media_type="text/html", headers={"content-security-policy": REPORT})

    return page
