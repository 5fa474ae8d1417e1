"""MLIR's values as IR in an editor: watched, pointed to, and printed, while the session stays stopped."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from debugger.conftest import gdb_that_calls
from debugger.dap import Adapter, Message
from debugger.editor import chosen, generated
from debugger.mi import Gdb, quoted
from debugger.native import WAIT, spawned

CALLED_WITH_OP = "mlir::getNumElementsPerThread"  # by a pass, whose frame has an argument `op`


def replayed(kind: str, run: Path, folder: Path) -> Message:
    """The configuration that replays a recorded pass."""
    inputs = {"run": str(run), "replay-kernel": "softmax", "replay-pass": "tritongpu-coalesce"}
    launch = generated(folder, "--debugger", kind, gdb=gdb_that_calls(kind))
    return chosen(launch, "Triton: replay pass", Path(), **inputs)


@pytest.fixture
def adapter(recorded_run: Path, tmp_path: Path) -> Iterator[Adapter]:
    """gdb's own debug adapter, which runs the pass."""
    entry = replayed("triton-gdb", recorded_run, tmp_path)
    adapter = spawned(entry)
    try:
        adapter.start(entry, {})
        yield adapter
    finally:
        adapter.close()


@pytest.fixture
def mi(recorded_run: Path, tmp_path: Path) -> Iterator[Gdb]:
    """gdb as Microsoft's extension drives it, stopped in the pass."""
    entry = replayed("cppdbg", recorded_run, tmp_path)
    gdb = Gdb(entry)
    try:
        gdb.run(f"-file-exec-and-symbols {entry['program']}")
        gdb.run(f"-exec-arguments {' '.join(map(quoted, entry['args']))}")
        gdb.run("-exec-run")
        gdb.stopped()
        yield gdb
    finally:
        gdb.close()


def said(adapter: Adapter, expression: str, context: str, frame: Message) -> str:
    asked = {"expression": expression, "context": context, "frameId": frame["id"]}
    result: str = adapter.request("evaluate", **asked)["result"]
    return result


def test_gdbs_own_adapter_shows_ir_and_stays_stopped(adapter: Adapter) -> None:
    stop = adapter.event("stopped", WAIT)
    (frame, *_) = adapter.frames(stop)
    printed = said(adapter, "print-op", "repl", frame)
    watched, hovered = (said(adapter, "$module()", context, frame) for context in ("watch", "hover"))
    said(adapter, f"break {CALLED_WITH_OP}", "repl", frame)
    events = [one["event"] for one in list(adapter.events.queue)[-3:]]
    adapter.request("continue", threadId=stop["threadId"])
    caller = adapter.frames(adapter.event("stopped", WAIT))[1]

    assert printed.startswith("module attributes {") and printed.strip() == watched == hovered
    assert "continued" not in events and "stopped" not in events  # which would drop the frame in the editor
    assert re.match(r"%\d+ = tt\.load %", said(adapter, "op", "hover", caller))


def test_a_step_stays_in_the_pass_after_its_ir_was_watched(adapter: Adapter) -> None:
    stop = adapter.event("stopped", WAIT)
    lines = []
    for _ in range(2):
        (frame, *_) = adapter.frames(stop)
        said(adapter, "$module()", "watch", frame)
        adapter.request("next", threadId=stop["threadId"])
        stop = adapter.event("stopped", WAIT)
        (frame, *_) = adapter.frames(stop)
        lines.append((frame["name"], frame["line"]))
    events = [one["event"] for one in adapter.events.queue]

    assert all("CoalescePass::runOnOperation" in name for name, _ in lines) and lines[0] != lines[1]
    assert "continued" not in events and "stopped" not in events


def test_microsofts_extension_shows_ir_and_stays_stopped(mi: Gdb) -> None:
    printed = mi.console("print-op")
    module = mi.run("-var-create - * $module()")
    records = [line for line in mi.seen if re.match(r"\*(running|stopped)", line)]
    mi.run(f"-break-insert {CALLED_WITH_OP}")
    mi.run("-exec-continue")
    mi.stopped()
    caller = mi.run("-stack-list-variables --thread 1 --frame 1 --all-values")
    operation = mi.run("-var-create --thread 1 --frame 1 - * op")

    assert "module attributes {" in printed and 'value="module attributes {' in module and records == []
    assert 'name="op"' in caller and re.search(r'value="%\d+ = tt\.load %', operation)


def test_a_step_that_starts_while_the_editor_reads_frames_ends_with_frames(adapter: Adapter) -> None:
    stop = adapter.event("stopped", WAIT)
    listed = []
    for _ in range(10):
        adapter.send("next", threadId=stop["threadId"])
        crossing = adapter.send("stackTrace", threadId=stop["threadId"], startFrame=1, levels=19)
        stop = adapter.event("stopped", WAIT)
        crossing.get(timeout=WAIT)
        listed.append(len(adapter.frames(stop, levels=1)))

    assert listed == [1] * 10
