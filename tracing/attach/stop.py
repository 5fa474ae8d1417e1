"""Stop this process before a wanted pass, until a debugger is attached.

TRACING_STOP=kernel:stage:pass enables the stop in every process that the program starts. It patches one
method, `libtriton.ir.pass_manager.run`, below all other patches of Triton's pass managers; the key of a
kernel does not change. A process stops once: the attached debugger stays, and sees later kernels.

To continue as soon as a tracer is attached would be too early, because a debugger may let the process run
before it has set its breakpoints. A breakpoint is a byte written into libtriton's code, which makes that page
private to this process; the process can detect that.
"""

from __future__ import annotations

import atexit
import ctypes
import os
import re
import shutil
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from types import FrameType
from typing import Any

import msgspec

from tracing.attach import compiling, fast_imports, python_debugger, python_stack
from tracing.attach.compiling import Compiling, SeenCompilation, WantedStop
from tracing.attach.fast_compiles import UntracedCompiles
from tracing.attach.session import request
from tracing.compiler.opt.pipeline_text import passes_in
from tracing.environment.stops import StopSettings, stop_settings, stops
from tracing.errors import Problem
from tracing.upstream.triton.libtriton_import import call_before_passes

_LIBRARIES = re.compile(r"/(libtriton\.so|libMLIR[^/]*)$")  # the latter if MLIR comes from a distribution
_POLL = 0.03  # seconds
_RETRY_SECONDS = 2  # gdb may fail to attach, so the request is repeated
_ARMED_SECONDS = 30  # a debugger without a breakpoint in libtriton by then sets none
_PR_SET_PTRACER, _ANY, _NOBODY = 0x59616D61, -1, 0


_replayed: tuple[str, tuple[str, ...], str] = "", (), ""  # see `replays`


def replays(recorded: str, program: tuple[str, ...], kernel: str) -> None:
    """Let debuggers show which recorded pass this process executes, and what the program launched.

    recorded -- "pass 12 of stage ttgir in runs/a"
    program  -- lines on the recorded launch of the pass's kernel
    kernel   -- its name, which Triton does not find in IR whose functions are LLVM's
    """
    global _replayed
    _replayed = recorded, program, kernel


def switch_on() -> None:
    """Patch Triton as soon as it is imported, if the environment asks for a stop; else do nothing."""
    settings = stop_settings()
    if settings is None:
        return
    try:
        wanted = compiling.wanted_of(settings.wanted)
    except Problem as problem:
        _say(f"TRACING_STOP: {problem.problem}, so nothing stops\n  {problem.remedy}")
        return
    python_debugger.describe_only_for_logs()
    fast_imports.switch_on()
    call_before_passes(Stop(settings, wanted).reached)
    if settings.owner:
        atexit.register(_conclude, settings.folder, wanted, os.getpid())


class Stop:
    """The stop of one process and of those forked from it."""

    def __init__(self, settings: StopSettings, wanted: WantedStop) -> None:
        self.settings = settings
        self.wanted = wanted
        self.number = 0
        self.noted: set[SeenCompilation] = set()
        self.waited: int | None = None  # the process that has
        self.compiles = UntracedCompiles()
        self._unlock()
        os.register_at_fork(after_in_child=self._unlock)  # another thread may hold it when a worker is forked

    def _unlock(self) -> None:
        self.lock = threading.Lock()

    def reached(self, manager: Any, module: Any, tag: str) -> None:
        """Called before a pass manager runs; waits for a debugger if a pass of it is wanted."""
        if not stops():
            return
        with self.lock:
            now = self._now(manager, module, tag)
            names = self.wanted.passes(now.kernel, now.stage, now.passes)
            reason = self._wait(now, names[0]) if names else ""
            seen = SeenCompilation(now.kernel, now.stage, now.passes, bool(names), reason)
            if seen not in self.noted:
                self.noted.add(seen)
                compiling.note(self.settings.folder, now.pid, seen)
            compiling.write(self.settings.folder, now)

    def _now(self, manager: Any, module: Any, tag: str) -> Compiling:
        self.number += 1
        frames = _frames(sys._getframe(3))
        stack, left_out = python_stack.described(reversed(frames))
        passes = passes_in(manager.get_pipeline_str())
        recorded, program, replayed = _replayed
        return Compiling(
            pid=os.getpid(),
            kernel=module.get_entry_func_name() or replayed,
            stage=compiling.stage_of(tag),
            passes=tuple(one.name for one in passes),
            options=_options(frames, tag),
            stack=stack,
            wanted=str(self.wanted),
            number=self.number,
            recorded=recorded,
            program=program,
            left_out=left_out,
            pass_options=tuple(" ".join(f"{k}={v}" for k, v in one.options.items()) for one in passes),
        )

    def _wait(self, now: Compiling, name: str) -> str:
        # why the process did not stop here, if so
        if self.waited == now.pid or _tracer():
            return ""
        self.waited = now.pid
        self.compiles.stop()
        before = _private_code()  # before a debugger is asked for: one may be ready
        who = self.settings.tracer
        _allow(_ANY if who is None else who)
        try:
            compiling.write(self.settings.folder, msgspec.structs.replace(now, waiting=True))
            by_session = request(self.settings.session, now, name)
            by_hand = f"`tracing attach {now.pid}`"
            coming = f"the debug session that VSCode starts, or {by_hand}," if by_session else f"{by_hand},"
            until = f"{coming} for at most {self.settings.seconds:g} s"
            _say(f"process {now.pid} waits before {name} of {now.kernel} ({now.stage}) for {until}")
            reason = _awaited(self.settings.seconds, before)
        finally:
            _allow(_NOBODY)
        if reason:
            _say(f"process {now.pid}: {reason}")
        return reason


def _awaited(seconds: float, before: int) -> str:
    # counts polls, not time: this process does not run while a debugger holds it
    if not _comes(seconds):
        return (
            f"no debugger attached within {seconds:g} s: the process continues; if one was refused, "
            "`tracing attach` says why"
        )
    for _ in range(int(_ARMED_SECONDS / _POLL)):
        if _private_code() > before:
            return ""
        if not _comes(_RETRY_SECONDS):
            return "the debugger detached before it had set a breakpoint in libtriton: the process continues"
        time.sleep(_POLL)
    return f"the debugger set no breakpoint in libtriton within {_ARMED_SECONDS} s: the process continues"


def _comes(seconds: float) -> bool:
    for _ in range(int(seconds / _POLL)):
        if _tracer():
            return True
        time.sleep(_POLL)
    return False


def _tracer() -> int:
    status = Path("/proc/self/status").read_text()
    return int(status.partition("TracerPid:")[2].split(None, 1)[0])


def _private_code() -> int:
    # kB of the compiler's code that are no longer those of the file
    dirty, inside = 0, False
    with Path("/proc/self/smaps").open() as lines:
        for line in lines:
            first = line.split(None, 1)[0]
            if not first.endswith(":"):
                inside = " r-xp " in line and _LIBRARIES.search(line) is not None
            elif inside and first == "Private_Dirty:":
                dirty += int(line.split()[1])
    return dirty


def _allow(process: int) -> None:
    # needed where Yama restricts ptrace to ancestors; elsewhere the call fails, and nothing is restricted
    ctypes.CDLL(None).prctl(_PR_SET_PTRACER, ctypes.c_ulong(process % 2**64), 0, 0, 0)


def _frames(frame: FrameType | None) -> list[FrameType]:
    frames = []
    while frame is not None:
        frames.append(frame)
        frame = frame.f_back
    return frames


def _options(frames: Sequence[FrameType], tag: str) -> dict[str, str]:
    # the backends call them `opt` or `options` in the function of the stage
    stage = next((frame.f_locals for frame in frames if frame.f_code.co_name == tag), {})
    options = stage.get("opt", stage.get("options"))
    return {name: str(value) for name, value in getattr(options, "__dict__", {}).items()}


def _say(message: str) -> None:
    sys.stderr.write(f"tracing: {message}\n")
    sys.stderr.flush()


def _conclude(folder: Path, wanted: WantedStop, owner: int) -> None:
    if os.getpid() != owner:
        return  # a fork of the first process ended
    came = compiling.seen(folder)
    shutil.rmtree(folder, ignore_errors=True)
    problem = compiling.never_came(wanted, came)
    if problem is not None:
        _say(f"{problem.problem}\n  {problem.remedy}")
