"""Run Triton's compiler one pass at a time, and report each pass to observers.

Triton's backends fill a pass manager and run it as a whole. While an observer is active, each pass runs in a
pass manager of its own, in the same order and with the same arguments, and is reported before and after it
runs; the artefacts stay the same. Three objects are patched that every backend uses: the class
`libtriton.ir.pass_manager`, the `add_*` functions of libtriton that fill one, and the backends' `add_stages`,
where a compilation starts. All of them are restored when no observer is active any more.

A pass manager to which C++ has also added passes (instrumentation, plugins) runs as a whole and is reported
as one block. Meanwhile Triton's own reproducers (TRITON_REPRODUCER_PATH) hold one pass each.
"""

from __future__ import annotations

import functools
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, fields
from types import CodeType, FrameType
from typing import Any, TypeAlias

from tracing.compiler.pass_manager import stepping
from tracing.compiler.signals import handler_kept
from tracing.compiler.steps import Observer, Pass, Steps, current
from tracing.model import Compilation
from tracing.upstream.patch import patched
from tracing.upstream.triton.backends import backends, ptx_version

# Receives a compilation that starts, and the input of its first stage, a module or text; returns an observer,
# or None. The observer fills in `id` and `source` of the record.
Factory: TypeAlias = Callable[[Compilation, Any], Observer | None]

_factories: list[Factory] = []
_patches = ExitStack()
_users = 0
_lock = threading.Lock()


@contextmanager
def observed(factory: Factory) -> Iterator[None]:
    """While active, every compilation in this process is reported to an observer from `factory`.

    Several may be active; each receives every event. Compilations may run in several threads: an observer is
    called in the thread of its compilation. Cost: none when nothing is active, some 20 µs a pass otherwise.
    """
    with stepwise():
        _factories.append(factory)
        try:
            yield
        finally:
            _factories.remove(factory)


@contextmanager
def stepwise() -> Iterator[None]:
    """While active, `Steps.stage` runs stages pass by pass."""
    global _users
    with _lock:
        _users += 1
        if _users == 1:
            _patch()
    try:
        yield
    finally:
        with _lock:
            _users -= 1
            if _users == 0:
                _patches.close()


def _patch() -> None:
    _patches.enter_context(stepping())
    for backend in backends.values():
        _patches.enter_context(patched(backend.compiler, "add_stages", _starting))


def _starting(original: Callable[..., None]) -> Callable[..., None]:
    def add_stages(backend: Any, stages: dict[str, Any], options: Any, language: Any) -> None:
        original(backend, stages, options, language)
        if current() is None and _factories:
            # triton.compile has it, and passes it to no function
            source = sys._getframe(1).f_locals.get("src")
            started = _Started(backend, options, language.name.lower(), source, last=[*stages][-1])
            for name, stage in stages.items():
                stages[name] = functools.partial(started.stage, name, stage)

    return add_stages


@dataclass(frozen=True, slots=True)
class FailedStage:
    """A stage of a compilation that raised."""

    compilation: Compilation
    stage: str
    running: Pass | None  # the pass that raised; None: no pass did


def failed_stage(frame: FrameType) -> FailedStage | None:
    """The stage that a frame of a traceback ran; None: it ran none."""
    if frame.f_code is not _Started.stage.__code__:
        return None
    started, name = frame.f_locals["self"], frame.f_locals["name"]
    if started.compilation is None:
        return None
    running = started.steps.running if started.steps is not None else None
    return FailedStage(started.compilation, name, running)


class _Started:
    # a compilation without a finished stage

    def __init__(self, backend: Any, options: Any, language: str, source: Any, *, last: str) -> None:
        self.backend, self.options, self.language, self.source = backend, options, language, source
        self.last = last
        self.steps: Steps | None = None
        self.compilation: Compilation | None = None

    def stage(self, name: str, run: Callable[[Any, Any], Any], source: Any, metadata: Any) -> Any:
        if self.steps is None:
            compilation = self.compilation = self._compilation(name, source, metadata)
            observers = [factory(compilation, source) for factory in list(_factories)]
            self.steps = Steps([observer for observer in observers if observer is not None])
        last = name == self.last
        try:
            with handler_kept():
                return self.steps.stage(name, run, source, metadata)
        except BaseException:
            last = True
            raise
        finally:
            for observer in self.steps.observers if last else ():
                observer.ended()

    def _compilation(self, stage: str, module: Any, metadata: Mapping[str, Any]) -> Compilation:
        code: CodeType | None = getattr(
            getattr(getattr(self.source, "fn", None), "fn", None), "__code__", None
        )
        return Compilation(
            id=0,
            kernel_name=module.get_entry_func_name() if hasattr(module, "get_entry_func_name") else "",
            hash=metadata.get("hash", ""),
            target=f"{self.backend.target.backend}:{self.backend.target.arch}",
            options=_options(self.options) | self._ptx_version(),
            source="",
            file=f"{code.co_filename}:{code.co_firstlineno}" if code is not None else None,
            language=self.language,
            first=stage,
            constants=_constants(self.source),
        )

    def _ptx_version(self) -> dict[str, str]:
        version = ptx_version(self.options, self.backend.target)
        return {} if version is None else {"ptx_version": repr(version)}


def _constants(source: Any) -> dict[str, str]:
    # of a kernel written in Python; keys are paths, (3,), or (3, 0) inside of a tuple argument
    names: Sequence[str] = getattr(getattr(source, "fn", None), "arg_names", ())
    constants: Mapping[tuple[int, ...], Any] = getattr(source, "constants", {})
    return {".".join([names[at], *map(str, inner)]): str(value) for (at, *inner), value in constants.items()}


def _options(options: Any) -> dict[str, str]:
    # options of a backend: the Python literal of each, which `resume.options_of` reads
    return {one.name: repr(getattr(options, one.name)) for one in fields(options)}
