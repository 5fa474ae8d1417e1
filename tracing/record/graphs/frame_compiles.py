"""Records how Dynamo compiles the frames of a program, while the program runs."""

from __future__ import annotations

import dis
import re
from contextlib import AbstractContextManager
from pathlib import Path

from tracing.model import CompiledFrame, FailedGuard, FrameCompile, FrameGuard, GraphBreak, NotCovered
from tracing.model.record import with_fields
from tracing.program.user_code import is_users
from tracing.record.failures.diagnosis import failure_of
from tracing.record.failures.error_chain import ErrorChain
from tracing.store import RunWriter
from tracing.upstream.torch import frame_compiles as upstream

# torch's text of a guard: the condition, the line that needs it, and the position of that line
_OF_USER = re.compile(
    r"^(?P<code>.*?)\s*# (?P<line>\S.*?)\s+# (?P<file>\S.*?):(?P<number>\d+) in \S+", re.DOTALL
)
_OF_TORCH = re.compile(r"\s+# \S+:\d+ in \S+$")
_ID = re.compile(r"^(?P<id>\[?[\w/!]+\]?): (?P<rest>.*)$", re.DOTALL)


def described(one: upstream.DynamoCompile) -> CompiledFrame:
    """The compile of a frame as text."""
    failed = _diagnosed(one) if one.raised else None
    facts = FrameCompile(
        one.id,
        one.function,
        f"{Path(one.code.co_filename).name}:{one.code.co_firstlineno}",
        one.operators,
        guards=tuple(guard_of(each) for each in one.guards),
        breaks=tuple(dict.fromkeys([failed] if failed else [_graph_break(each) for each in one.breaks])),
        failed=tuple(_failed_guard(text) for text in one.failed_guards),
        limit=one.limit,
        eager=failed.reason if failed else one.failure,
        raised=one.raised,
        backend=one.backend,
    )
    return CompiledFrame(facts, one.graph, dis.Bytecode(one.bytecode).dis() if one.bytecode else "")


def _diagnosed(one: upstream.DynamoCompile) -> GraphBreak | None:
    # the kernel or the operator that does not compile, with its line in the program; None: not known
    if not isinstance(one.error, Exception) or any(each.stack for each in one.breaks):  # none, or Ctrl-C
        return None
    failure = failure_of(ErrorChain(one.error, Path(one.code.co_filename)))
    return GraphBreak(failure.sentence, failure.python, failure.code) if failure else None


def frame_compiles_recorded(writer: RunWriter) -> AbstractContextManager[None]:
    """While active, each compile of a frame is written to a run."""

    def ended(one: upstream.DynamoCompile) -> None:
        if one.unread:
            writer.append(NotCovered(f"the compile {one.id} of a frame: {one.unread}", ""))
            return
        frame = described(one)
        graph = writer.blob(frame.graph) if frame.graph else ""
        bytecode = writer.blob(frame.bytecode) if frame.bytecode else ""
        writer.append(with_fields(frame.facts, graph=graph, bytecode=bytecode))

    return upstream.frame_compiles(ended)


def guard_of(checked: upstream.CheckedGuard) -> FrameGuard:
    """A guard, with its origin from the comment that torch prints after it."""
    return _guard(checked.text, checked.source, checked.kind)


def _guard(text: str, source: str, kind: str) -> FrameGuard:
    match = _OF_USER.match(text)
    if match is None:
        return FrameGuard(_OF_TORCH.sub("", text).strip(), source, kind)
    python = f"{Path(match['file']).name}:{match['number']}"
    return FrameGuard(match["code"].strip(), source, kind, python, match["line"].strip())


def _failed_guard(text: str) -> FailedGuard:
    # "0/0: n == 2  # return x * n  # model.py:6 in forward", and the stack below
    match = _ID.match(text)
    compile_id, rest = (match["id"], match["rest"]) if match else ("", text)
    condition, _, _ = rest.partition("\nUser stack trace:")
    return FailedGuard(compile_id, _guard(condition, "", ""))


def _graph_break(one: upstream.Break) -> GraphBreak:
    users = [frame for frame in one.stack if is_users(frame.filename)] or list(one.stack)
    if not users:
        return GraphBreak(one.reason.strip())
    frame = users[-1]
    return GraphBreak(
        one.reason.strip(), f"{Path(frame.filename).name}:{frame.lineno}", (frame.line or "").strip()
    )
