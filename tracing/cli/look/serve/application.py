"""The server of `tracing serve`: its pages, and the data that they ask for once a second."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

import msgspec
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import FileResponse, HTMLResponse, JSONResponse, PlainTextResponse, Response
from starlette.routing import Mount, Route
from starlette.types import ASGIApp

from tracing.cli.look.serve.case_processes import CaseProcesses
from tracing.cli.look.serve.case_request import case_request, cases_json
from tracing.cli.look.serve.request_guard import Address, RequestGuard
from tracing.cli.look.serve.run_pages import RunPages
from tracing.cli.look.serve.served_runs import ServedRuns
from tracing.errors import Problem
from tracing.report.html.chunks import Chunks
from tracing.report.html.document import document

_MOST = 12  # runs of one page


@dataclass(frozen=True, slots=True)
class Served:
    """What the server serves."""

    runs: ServedRuns
    pages: RunPages
    cases: CaseProcesses

    def close(self) -> None:
        """End what the server started, and delete its files."""
        self.cases.close()
        self.pages.close()


def application(served: Served, address: Address) -> ASGIApp:
    """The application: a request that is not of its own pages is refused."""

    routes = [
        Route("/", _answering(served, _list)),
        Route("/state", _answering(served, _state)),
        Route("/report", _answering(served, _report)),
        Route("/stamp", _answering(served, _stamp)),
        Route("/start", _answering(served, _start), methods=["POST"]),
        Route("/stop", _answering(served, _stop), methods=["POST"]),
    ]
    app = Starlette(routes=[Mount(f"/{address.token}", routes=routes)])
    return RequestGuard(app, address)


RequestHandler = Callable[[Served, Request], Awaitable[Response]]


def _answering(served: Served, answer: RequestHandler) -> Callable[[Request], Awaitable[Response]]:
    async def endpoint(request: Request) -> Response:
        try:
            return await answer(served, request)
        except Problem as problem:
            text = f"{problem.problem}\n{problem.remedy}\n" if problem.remedy else f"{problem.problem}\n"
            return PlainTextResponse(text, 404 if request.method == "GET" else 400)

    return endpoint


async def _list(served: Served, request: Request) -> Response:
    index = {"folder": str(served.runs.folder), "cases": cases_json()}
    parts = document("runs", index, Chunks(), program="runs.js", stamp="list")
    return HTMLResponse("".join(parts))


async def _state(served: Served, request: Request) -> Response:
    started = list(served.cases.listed())
    return JSONResponse({"runs": await run_in_threadpool(list, served.runs.listed()), "started": started})


async def _report(served: Served, request: Request) -> Response:
    names = _names(request)
    return FileResponse(await run_in_threadpool(served.pages.page, names), media_type="text/html")


async def _stamp(served: Served, request: Request) -> Response:
    return JSONResponse({"stamp": await run_in_threadpool(served.pages.stamp, _names(request))})


def _names(request: Request) -> list[str]:
    names = request.query_params.getlist("run")
    if not names or len(names) > _MOST:
        raise Problem(f"{len(names)} runs are named", f"a page shows 1 to {_MOST}: ?run=NAME&run=NAME")
    return names


async def _start(served: Served, request: Request) -> Response:
    one = served.cases.start(case_request(await request.body()))
    return JSONResponse({"number": one.number})


class StopRequest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Which case the page wants to end."""

    number: int


async def _stop(served: Served, request: Request) -> Response:
    try:
        wanted = msgspec.json.decode(await request.body(), type=StopRequest)
    except msgspec.MsgspecError as error:
        raise Problem(f"the request is none: {error}") from None
    served.cases.stop(wanted.number)
    return JSONResponse({})
