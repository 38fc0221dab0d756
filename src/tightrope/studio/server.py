"""The local web server: a socket on 127.0.0.1 and a link with a fresh token, until Ctrl-C."""

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

from tightrope.documents.numbers import UP, terminal_text
from tightrope.errors import InputError, MissingExtraError
from tightrope.release.plan_file import forecast_release, load_plan_file
from tightrope.studio.plan_editor import HostCallbacks, PlanEditor
from tightrope.studio.plan_form import WISHES, EditorState, PlanForm, ReleaseConsent

if TYPE_CHECKING:
    import uvicorn

SWITCH = 0.0005
"""Thread switch interval in seconds, so that the computing thread does not block responses."""


def serve_studio(opened: EditorState, lent: HostCallbacks, *, port: int, ready: Callable[[str], None]) -> None:
    """Serve the page until the process is asked to stop; a running release is finished first.

    ``ready`` is called with the link once the socket listens. ``port`` 0 selects a free port. Raises ``InputError`` if
    the port is taken, ``MissingExtraError`` without the extra ``studio``.
    """
    listening, token = loopback_socket(port), secrets.token_urlsafe(32)
    sys.setswitchinterval(SWITCH)
    desk = PlanEditor(opened, lent)
    with listening, ExitStack() as stack:
        stack.callback(desk.stop_worker)
        server = build_server(desk, token, listening)
        desk.look_up_figures(
            opened.form_with_likely_unit
        )  # load libraries and compute the first figures before the link is opened
        ready(studio_link(token, listening))
        server.run(sockets=[listening])


def build_server(desk: PlanEditor, token: str, listening: socket.socket) -> uvicorn.Server:
    """Return the server for an editor and a socket; raises ``MissingExtraError`` without its libraries."""
    try:
        import uvicorn
    except ImportError as error:
        raise MissingExtraError(error.name or "starlette", "studio") from None
    app = build_app(desk, token=token, port=listening.getsockname()[1])
    return uvicorn.Server(
        uvicorn.Config(
            app, proxy_headers=False, server_header=False, ws="none", lifespan="off", log_config=None, access_log=False
        )
    )


def studio_link(token: str, listening: socket.socket) -> str:
    """Return the link. The part after # stays in the browser: it is in no request, log or referrer."""
    return f"http://127.0.0.1:{listening.getsockname()[1]}/#{token}"


def loopback_socket(port: int) -> socket.socket:
    """Return a socket that listens on this machine only; raises ``InputError`` if the port is taken."""
    listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        listening.bind(("127.0.0.1", port))
        listening.listen()
    except (OSError, OverflowError):
        listening.close()
        raise InputError("port", port, "a free port on this machine", "leave --port out to take any") from None
    return listening


# Access control: only the page on this machine can send requests, and the page cannot load external content.
#
# Rejected: other machines (the socket is 127.0.0.1), DNS names that point here (Host), other sites in the same browser
# (Origin, and a token in a header, which forms and images cannot send), other users of this machine (the token, in the
# part of the link that browsers do not send), and scripts in column names (the content security policy; the page writes
# text, never HTML).

TOKEN = "x-tightrope-token"  # noqa: S105 - the header's name
HOST = "127.0.0.1"
OURS = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'"
SHUT = "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
REPORT = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; sandbox"
"""A report contains its own styles and needs no other source."""
ONCE = ("host", "origin", "content-type", "content-length", "transfer-encoding", TOKEN)
"""Headers that decide about access: duplicates are refused, because two parsers could read different ones."""
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
class RequestGuard:
    """Pass a request to the page or refuse it; refusals do not depend on the requested path."""

    app: ASGIApp
    token: str
    port: int

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one HTTP request; other protocols are ignored."""
        if scope["type"] != "http":
            return
        problem = self._refusal_reason(scope["method"], scope["path"], Headers(scope=scope))
        app = self.app if problem is None else PlainTextResponse(problem, status_code=403)

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)  # a policy that the response already has is kept
            await send(message)

        await app(scope, receive, send_with_headers)

    def _refusal_reason(self, method: str, path: str, headers: Headers) -> str | None:
        """Return the reason to refuse a request; None if it is valid."""
        if any(len(headers.getlist(name)) > 1 for name in ONCE):
            return "A header occurs twice."
        if headers.get("host") != f"{HOST}:{self.port}":
            return "This address is not the studio's."
        if method != "POST":
            return None if method in ("GET", "HEAD") and not path.startswith("/api/") else "Request not allowed."
        if headers.get("origin") != f"http://{HOST}:{self.port}":
            return "This request comes from another site."
        if headers.get("content-type") != "application/json":
            return "Request not allowed."
        said = headers.get(TOKEN, "").encode()
        return None if secrets.compare_digest(said, self.token.encode()) else "Open the link that the studio printed."


# Releases: the cost is shown first, and each confirmed ticket is released exactly once.

Json = dict[str, Any]
COUNTER_REPORT = "report.html"
MOST_TICKETS = 100


class ReleaseService:
    """Tickets and their results. A ticket belongs to one plan's text and is valid for one release."""

    def __init__(self, desk: PlanEditor) -> None:
        self._desk = desk
        self._open: dict[str, str] = {}
        self._done: dict[str, Future[Json]] = {}
        self._reports: dict[str, Path] = {}
        self._turn = threading.Lock()

    def issue_ticket(self, wishes: PlanForm) -> Json:
        """Return the cost of releasing this plan, in words, and a ticket. Saves the plan; spends no budget."""
        text = self._desk.plan_text(wishes)
        with self._desk.plan_on_disk(text) as path:
            file = load_plan_file(path)
        plan = file.make_plan()
        ticket = secrets.token_urlsafe()
        with self._turn:
            while len(self._open) >= MOST_TICKETS:
                self._open.pop(next(iter(self._open)))
            self._open[ticket] = text
        document = plan.draft.plan_document()
        epsilon, delta = terminal_text(document.epsilon, 3, UP), terminal_text(document.delta, 2, UP)
        part = (
            "the whole budget" if plan.budget_fraction == 1 else f"a fraction of {plan.budget_fraction} of the budget"
        )
        ledger = file.ledger_location
        if "://" in ledger:
            ledger = ledger.rpartition("@")[2]  # without the credentials
        spends = (
            f"This spends epsilon {epsilon} at delta {delta}, {part} of {file.dataset_name!r}, in the ledger {ledger}. "
            f"It cannot be undone, and another release is charged again."
        )
        return {
            "ticket": ticket,
            "plan": str(path),
            "spends": spends,
            "standing": forecast_release(file, plan).sentences,
        }

    def release_plan(self, agreed: ReleaseConsent) -> Json:
        """Charge, draw and write once; the same ticket again returns the first result without a new charge."""
        with self._turn:
            text = self._open.pop(agreed.ticket, None)
            if text is None and agreed.ticket not in self._done:
                raise InputError("ticket", "...", "a valid ticket", "nothing was spent: request the cost again")
            ours = text is not None
            done = self._done.setdefault(agreed.ticket, Future())
        if ours and text is not None:
            self._resolve_release(done, text)
        return done.result()

    def report_path(self, name: str) -> Path | None:
        """Return the path of a release's report by its secret name."""
        return self._reports.get(name)

    def _resolve_release(self, done: Future[Json], text: str) -> None:
        try:
            done.set_result(self._run_release(text))
        except BaseException as error:
            done.set_exception(error)

    def _run_release(self, text: str) -> Json:
        with self._desk.plan_on_disk(text) as path:
            # A new folder next to the plan.
            number = 1
            while (folder := path.with_name(f"{path.stem}-release-{number}")).exists():
                number += 1
            self._desk.lent.run_release(path, folder)
        name = secrets.token_urlsafe()
        self._reports[name] = folder / COUNTER_REPORT
        return {"folder": str(folder), "report": f"/report/{name}"}


# The routes: static files and five API calls.

Kind = TypeVar("Kind")
Handler = Callable[[Request], Awaitable[Response]]
PAGE = {"/": ("studio.html", "text/html"), "/studio.css": ("studio.css", "text/css")}
SCRIPTS = "studio", "ask", "show", "parts"
BODY_LIMIT = 64 * 1024
"""Maximum size of a request body in bytes."""


def build_app(desk: PlanEditor, *, token: str, port: int) -> RequestGuard:
    """Return the application with its access control."""
    counter = ReleaseService(desk)

    async def report_page(request: Request) -> Response:
        path = counter.report_path(request.path_params["name"])
        if path is None:
            return Response("Report not found.", status_code=404, media_type="text/plain")
        content = await run_in_threadpool(path.read_bytes)
        return Response(content, media_type="text/html", headers={"content-security-policy": REPORT})

    async def no_icon(_: Request) -> Response:
        return Response(status_code=204)

    asked: dict[str, Callable[[str], Any]] = {
        "start": lambda _: desk.initial_state(),
        "look": lambda text: desk.look_up_figures(_read_form(text, PlanForm)),
        "save": lambda text: {"saved": str(desk.save_plan(_read_form(text, PlanForm)))},
        "price": lambda text: counter.issue_ticket(_read_form(text, PlanForm)),
        "release": lambda text: counter.release_plan(_read_form(text, ReleaseConsent)),
    }
    routes = [Route(f"/api/{name}", _json_handler(act, desk), methods=["POST"]) for name, act in asked.items()]
    routes += [Route(path, _static_handler(*file)) for path, file in PAGE.items()]
    routes += [Route(f"/{name}.js", _static_handler(f"{name}.js", "text/javascript")) for name in SCRIPTS]
    routes.append(Route("/favicon.ico", no_icon))
    routes.append(Route("/report/{name}", report_page))
    return RequestGuard(Starlette(routes=routes), token, port)


def _json_handler(act: Callable[[str], Any], desk: PlanEditor) -> Handler:
    """Return a handler from JSON to JSON; errors become one line without data values."""

    async def answer_request(request: Request) -> Response:
        body = bytearray()
        async for part in request.stream():
            body += part
            if len(body) > BODY_LIMIT:
                return JSONResponse({"problem": "The request is too long."}, status_code=413)
        try:
            return JSONResponse(await run_in_threadpool(act, body.decode("utf-8", errors="replace")))
        except Exception as error:
            return JSONResponse({"problem": desk.lent.describe_error(error)}, status_code=400)

    return answer_request


def _read_form(text: str, kind: type[Kind]) -> Kind:
    return WISHES.parse_json(text, kind)


def _static_handler(name: str, kind: str) -> Handler:
    content = resources.files("tightrope.studio").joinpath("static", name).read_bytes()

    async def static_page(_: Request) -> Response:
        return Response(content, media_type=kind)

    return static_page
