"""The routes: a static page, and five questions that it may ask."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from importlib import resources
from typing import Any, TypeVar

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from tightrope.studio.counter import Counter
from tightrope.studio.desk import Desk
from tightrope.studio.guard import REPORT, Guard
from tightrope.studio.wishes import WISHES, Agreed, Wishes

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
        "look": lambda text: desk.look(_read(text, Wishes)),
        "save": lambda text: {"saved": str(desk.save(_read(text, Wishes)))},
        "price": lambda text: counter.price(_read(text, Wishes)),
        "release": lambda text: counter.release(_read(text, Agreed)),
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


def _read(text: str, kind: type[Kind]) -> Kind:
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
