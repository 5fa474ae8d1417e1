"""`tracing serve`: recorded runs in a browser, while they are recorded."""

from __future__ import annotations

import json
import socket
from contextlib import suppress
from typing import Annotated

import typer

from tracing.cli.app import LOOK, RUNS, Json, Runs, app, err, out
from tracing.errors import Problem


@app.command(rich_help_panel=LOOK)
def serve(
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port of 127.0.0.1; 0: any.")] = 0,
    as_json: Json = False,
    runs: Runs = RUNS,
) -> None:
    """Show the runs of a folder in a browser, while they are recorded; start cases from the page.

    The pages are those of `tracing report`. Prints their address, which has a random token: whoever knows it
    can read the runs and start cases, as you. Ctrl-C ends the server and what it started.

    Example: tracing serve

    Exit status: 0 after Ctrl-C; 2 if the port is not free, or there is no such folder.
    """
    if runs != RUNS and not runs.is_dir():  # that of new runs may be missing: the page starts cases
        raise Problem(
            f"there is no folder {runs}", "name a folder of runs: `--runs DIR`; the default is ./runs"
        )
    listening = _bound(port)
    # imports the web server, which other commands need not wait for
    import uvicorn

    from tracing.cli.look.serve.application import Served, application
    from tracing.cli.look.serve.case_processes import CaseProcesses
    from tracing.cli.look.serve.request_guard import Address
    from tracing.cli.look.serve.run_pages import RunPages
    from tracing.cli.look.serve.served_runs import ServedRuns

    address = Address.random(listening.getsockname()[1])
    shown = ServedRuns(runs)
    served = Served(shown, RunPages(shown), CaseProcesses(shown.folder))
    config = uvicorn.Config(
        application(served, address),
        log_level="warning",
        server_header=False,
        timeout_graceful_shutdown=1,  # seconds: a page may be written just now
    )
    try:
        with suppress(KeyboardInterrupt):  # which ends it
            if as_json:
                print(json.dumps({"url": address.url, "runs": str(shown.folder)}), flush=True)
            else:
                out.print(address.url)
            err.print("open this address in a browser; Ctrl-C ends the server and what it started")
            uvicorn.Server(config).run(sockets=[listening])
    finally:
        served.close()
    raise typer.Exit(0)


def _bound(port: int) -> socket.socket:
    try:
        return socket.create_server(("127.0.0.1", port))
    except OSError as error:
        raise Problem(
            f"port {port} cannot be used: {error.strerror}", "let the system choose one: `tracing serve`"
        ) from None
