"""Dynamo's compiles of each frame: graph, bytecode, guards, graph breaks, and reasons of recompilations.

Nothing is traced a second time: `frame_compiles` reads what Dynamo itself returns and writes to its
structured log, that of TORCH_TRACE, while the program runs; `cached_compiles` reads Dynamo's caches.
"""

from __future__ import annotations

import inspect
import json
import logging
import threading
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import CodeType, FunctionType
from typing import Any, TypeAlias

import torch
from torch._C._dynamo.eval_frame import _debug_get_cache_entry_list
from torch._dynamo import convert_frame
from torch._dynamo.exc import FailOnRecompileLimitHit, SkipFrame
from torch._dynamo.output_graph import GraphCompileReason, OutputGraph

from tracing.upstream.contract import require, require_parameters
from tracing.upstream.patch import Method, patched, replaced
from tracing.upstream.torch.compiled_function import backend_name, wrapped_function

UserStack: TypeAlias = Sequence[traceback.FrameSummary]  # the innermost frame is last

_TRACE = logging.getLogger("torch.__trace")  # the log of TORCH_TRACE; Dynamo writes to it if it has a handler
_LIMIT = "recompile limit"  # of the error's text if a frame was compiled too often
_REASON, _AFTER_REASON = "Graph Break Reason: ", "\nUser code traceback:"


@dataclass(slots=True)
class Break:
    """A line at which Dynamo ended a graph, or gave up a frame."""

    reason: str  # may be empty
    stack: UserStack


@dataclass(frozen=True, slots=True)
class CheckedGuard:
    """A leaf of the tree that Dynamo walks before it calls compiled code."""

    source: str  # "L['x']"; empty: of the process
    kind: str  # "TENSOR_MATCH"
    text: str  # the condition, and a comment with the line that needs it


@dataclass(slots=True)
class DynamoCompile:
    """One compile of one frame, successful or not."""

    id: str  # Dynamo's number of the frame, and of its compile: "0/0"
    code: CodeType  # of the program
    function: str  # its name; of torch's or a builtin's function with its class: "Sequential.forward"
    backend: str = ""  # "inductor"; empty: not known
    graph: str = ""  # empty: no graph
    operators: int = 0
    bytecode: CodeType | None = None  # what replaces `code`; None: the frame stays in eager
    guards: Sequence[CheckedGuard] = ()
    breaks: list[Break] = field(default_factory=list)
    failed_guards: Sequence[str] = ()  # "0/0: L['n'] == 2": of earlier compiles, in Dynamo's words
    limit: str = ""  # torch's message that Dynamo stops compiling this frame, and the setting that limits it
    failure: str = ""  # why the frame is not compiled
    raised: bool = False  # the program received the error: the frame does not stay in eager
    error: BaseException | None = None  # while `ended` is called
    unread: str = ""  # the part of it whose form is unknown here; the program continues


class _Current(threading.local):
    compiles: tuple[DynamoCompile, ...] = ()  # a compile may run code that is compiled
    failed: list[DynamoCompile] | None = None  # in the current call of Dynamo; None: there is none


_current = _Current()


@contextmanager
def frame_compiles(ended: Callable[[DynamoCompile], None]) -> Iterator[None]:
    """While active, `ended` receives each compile of a frame, on the thread that compiles."""
    handler = _StructuredLog()
    with (
        patched(convert_frame, "_compile", lambda original: _compiling(original, ended, handler)),
        patched(OutputGraph, "call_user_compiler", lambda original: _by_backend(original, handler)),
        patched(convert_frame.CatchErrorsWrapper, "__call__", lambda original: _called(original, ended)),
        patched(GraphCompileReason, "__post_init__", _breaking),
        # torch 2.11 does not write to its log where the program has called logging.disable
        replaced(_TRACE, "isEnabledFor", lambda level: level >= _TRACE.level),
    ):
        yield


def is_compiled(function: Callable[..., Any]) -> bool:
    """True for a function that torch.compile returned."""
    return hasattr(function, "_torchdynamo_orig_callable") or hasattr(function, "_orig_mod")


def cached_compiles(function: Callable[..., Any]) -> Iterator[DynamoCompile]:
    """The cached compiles of a function and of its parts after graph breaks, without graphs and reasons.

    function -- one that torch.compile compiled, before or after it was wrapped; other callables have nothing
    """
    function = getattr(function, "_torchdynamo_orig_callable", getattr(function, "_orig_mod", function))
    if isinstance(function, torch.nn.Module):
        function = type(function).forward
    function = getattr(function, "__func__", function)
    if isinstance(function, FunctionType):
        yield from _cached(function)


def _cached(function: FunctionType) -> Iterator[DynamoCompile]:
    for entry in reversed(_debug_get_cache_entry_list(function.__code__)):  # the latest is first
        yield DynamoCompile(
            str(entry.compile_id),
            function.__code__,
            function.__code__.co_name,
            bytecode=entry.code,
            guards=tuple(_guards(entry.guard_manager)),
        )
        rest = (function.__globals__.get(name) for name in entry.code.co_names if name.startswith("__resume"))
        for one in rest:
            if isinstance(one, FunctionType):
                yield from _cached(one)


@contextmanager
def _handled(handler: logging.Handler, *, wanted: bool) -> Iterator[None]:
    # what would write to the log is not computed without a handler
    before = handler in _TRACE.handlers
    _handle(handler, wanted=wanted)
    try:
        yield
    finally:
        _handle(handler, wanted=before)


def _handle(handler: logging.Handler, *, wanted: bool) -> None:
    (_TRACE.addHandler if wanted else _TRACE.removeHandler)(handler)


def _by_backend(original: Method, handler: logging.Handler) -> Method:
    # to write its graph, AOTAutograd formats fake tensors of subclasses, which fails in torch 2.13
    def call(*args: Any, **kwargs: Any) -> Any:
        with _handled(handler, wanted=False):
            return original(*args, **kwargs)

    return call


def _compiling(original: Method, ended: Callable[[DynamoCompile], None], handler: logging.Handler) -> Method:
    signature = inspect.signature(original)

    def compile_frame(*args: Any, **kwargs: Any) -> Any:
        given = signature.bind(*args, **kwargs).arguments
        one = _begun(given)
        before = _current.compiles
        _current.compiles = (*before, one)
        try:
            with _handled(handler, wanted=True):
                result = original(*args, **kwargs)
        except BaseException as error:
            _current.compiles = before
            with _reading(one):
                _note_error(one, error)
            if _current.failed is None:
                ended(one)
            else:
                one.error = error
                _current.failed.append(one)
            raise
        _current.compiles = before
        with _reading(one):
            _note_result(one, result)
        ended(one)
        return result

    return compile_frame


def _begun(given: Mapping[str, Any]) -> DynamoCompile:
    code: CodeType = given["code"]
    one = DynamoCompile(str(given["compile_id"]), code, code.co_name)
    with _reading(one):
        one.backend = backend_name(given.get("compiler_fn"))
        wrapped = wrapped_function(code, given.get("closure"))
        one.function = getattr(wrapped, "__qualname__", code.co_name)
        one.code = getattr(wrapped, "__code__", code)
    return one


def _called(original: Method, ended: Callable[[DynamoCompile], None]) -> Method:
    # whether Dynamo leaves a frame in eager or raises is known where the call for this frame ends
    def called(*args: Any, **kwargs: Any) -> Any:
        before, failed, raised = _current.failed, list[DynamoCompile](), True
        _current.failed = failed
        try:
            result = original(*args, **kwargs)
            raised = False
            return result
        finally:
            _current.failed = before
            for one in failed:
                one.raised = raised
                ended(one)
                one.error = None  # its traceback refers to this frame

    return called


@contextmanager
def _reading(one: DynamoCompile) -> Iterator[None]:
    # the program must not fail because a recorder cannot read something
    try:
        yield
    except Exception as error:
        one.unread = f"{type(error).__name__}: {error}"


def _note_result(one: DynamoCompile, result: Any) -> None:
    guarded = result.guarded_code
    if guarded is None:
        one.failure = getattr(result, "skip_reason", None) or "there is nothing to compile in it"
    else:
        one.bytecode = guarded.code
        one.guards = tuple(_guards(guarded.guard_manager))


def _note_error(one: DynamoCompile, error: BaseException) -> None:
    if isinstance(error, FailOnRecompileLimitHit) and error.__cause__ is not None:
        error = error.__cause__  # with fullgraph=True
    if not isinstance(error, Exception):  # Ctrl-C, or a program that exits: no reason of Dynamo
        one.failure = f"its compile was interrupted by {type(error).__name__}"
        return
    text = str(error).strip() or type(error).__name__
    if _LIMIT in text.split("\n")[0]:
        one.limit = text
        return
    one.failure = text
    if not isinstance(error, SkipFrame):
        one.breaks.append(Break(text, tuple(getattr(error, "real_stack", None) or ())))


def _breaking(original: Method) -> Method:
    def post_init(self: Any) -> None:
        original(self)
        if self.graph_break and _current.compiles:
            _current.compiles[-1].breaks.append(Break(str(self.reason or ""), tuple(self.user_stack)))

    return post_init


class _StructuredLog(logging.Handler):
    """Adds what Dynamo logs of a compile to it."""

    def __init__(self) -> None:
        super().__init__()
        self._logged: dict[str, str] = {}  # by compile: why its graph broke, in the log's words

    def emit(self, record: logging.LogRecord) -> None:
        metadata = getattr(record, "metadata", {})
        if not _current.compiles or not isinstance(metadata, dict):
            return
        one = _current.compiles[-1]
        with _reading(one):
            self._read(one, metadata, record)

    def _read(self, one: DynamoCompile, metadata: Mapping[str, Any], record: logging.LogRecord) -> None:
        payload = getattr(record, "payload", None)
        artifact = metadata.get("artifact", {}).get("name")
        if "dynamo_output_graph" in metadata:
            one.graph = str(payload)
            self._name_jump(one)
        elif "compilation_metrics" in metadata:
            one.operators = metadata["compilation_metrics"].get("graph_op_count") or 0
        elif artifact == "recompile_reasons":
            one.failed_guards = _texts(str(payload))
        elif artifact == "dynamo_graph_break_reason":
            self._logged[one.id] = _logged_reason(str(payload))

    def _name_jump(self, one: DynamoCompile) -> None:
        # of a branch on a tensor, only the log has the explanation
        logged = self._logged.pop(one.id, "")
        if logged and one.breaks and one.breaks[-1].reason.startswith("generic_jump"):
            one.breaks[-1].reason = logged


def _logged_reason(payload: str) -> str:
    _, title, rest = payload.partition(_REASON)
    return rest.partition(_AFTER_REASON)[0].strip() if title else ""


def _texts(payload: str) -> tuple[str, ...]:
    # one reason is logged as it is, several as a JSON list
    try:
        several = json.loads(payload)
    except ValueError:
        return (payload,)
    return tuple(map(str, several)) if isinstance(several, list) else (payload,)


def _guards(wrapper: Any) -> Iterator[CheckedGuard]:
    root = getattr(wrapper, "root", None)
    if root is None:  # the entry was invalidated
        return
    seen: set[CheckedGuard] = set()  # a guard on several tensors is a leaf of each
    managers = [root]
    while managers:
        manager = managers.pop(0)
        managers[:0] = manager.get_child_managers()
        source = "" if manager is root else manager.get_source()
        for leaf in manager.get_leaf_guards():
            for text in leaf.verbose_code_parts():
                guard = CheckedGuard(source, type(leaf).__name__, text)
                if guard not in seen:
                    seen.add(guard)
                    yield guard
    for leaf in root.get_epilogue_lambda_guards():  # on symbolic sizes
        for text in leaf.verbose_code_parts():
            yield CheckedGuard("", "SHAPE_ENV", text)


def contract() -> None:
    """Raise Broken or another error if torch has changed what this file relies on."""
    require_parameters(convert_frame._compile, "code", "closure", "compiler_fn", "compile_id")
    compiles: list[DynamoCompile] = []

    def program(x: torch.Tensor, n: int) -> torch.Tensor:
        y = x * n
        torch._dynamo.graph_break()
        if y.sum() > 0:
            y = y + 1
        return y

    with frame_compiles(compiles.append), torch._dynamo.config.patch(recompile_limit=2):
        compiled = torch.compile(program, backend="eager", dynamic=False)
        compiled(torch.ones(2), 2)
        compiled(torch.ones(2), 3)
        compiled(torch.ones(2), 4)
    first, jump = compiles[0], compiles[1]
    require(first.graph and first.operators == 1 and first.bytecode is not None, "the graph of a frame")
    require(any(one.source == "L['n']" and one.text.startswith("L['n'] == 2") for one in first.guards),
            "guards with their sources")  # fmt: skip
    require(len(first.breaks) == 1 and first.breaks[0].stack, "a graph break with its line")
    require(jump.breaks and "branching" in jump.breaks[0].reason, "why a branch on a tensor breaks a graph")
    reasons = [text for one in compiles for text in one.failed_guards]
    require(any("L['n']" in text or "n == 2" in text for text in reasons), "the guard that failed")
    require([one for one in compiles if one.limit], "that a frame is compiled no more")
    require(not any(one.raised for one in compiles), "frames that stay in eager")
    require(is_compiled(compiled) and not is_compiled(program), "functions that torch.compile returned")
    cached = {one.id for one in cached_compiles(compiled)}
    require(cached == {one.id for one in compiles if one.bytecode}, "the caches of Dynamo")
    torch.compiler.reset()
