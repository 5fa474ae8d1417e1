"""Triton's compiler, one pass at a time.

Triton's backends fill a pass manager and run it whole. While somebody observes, each pass runs in a pass
manager of its own, in the same order and with the same arguments, and is told of before and after; the
artefacts stay the same. What is patched are three places that every backend passes: the class
`libtriton.ir.pass_manager`, the `add_*` functions of libtriton that fill one, and the backends' `add_stages`,
where a compilation starts. All of them are restored when nobody observes any more.

A pass manager that also holds passes which C++ has put there (instrumentation, plugins) runs whole and is
told of as one block. Meanwhile Triton's own reproducers (TRITON_REPRODUCER_PATH) hold one pass each.
"""

from __future__ import annotations

import functools
import sys
import threading
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, fields
from types import CodeType, FrameType, ModuleType
from typing import Any, Protocol, TypeAlias

from triton._C import libtriton
from triton._C.libtriton import ir
from triton.backends import backends
from triton.backends.compiler import GPUTarget

from tracing.compiler.pipeline_text import passes_in
from tracing.model import Compilation

_BLOCK = ""  # the adder of passes that no Python function added


@dataclass(frozen=True, slots=True)
class Pass:
    """One pass about to run; the fields of `PassStart` that are known without looking at the IR."""

    index: int  # order in the compilation, over all of its stages, from 0
    stage: str  # "ttir", "ttgir", "llir"
    name: str  # "tritongpu-coalesce"
    adder: str  # "passes.ttgpuir.add_coalesce"; "" for a block of passes that C++ added
    arguments: tuple[str, ...]
    pipeline: str  # what `triton-opt --pass-pipeline` takes
    caller: str  # "path:line" in Triton's compiler.py
    manager: int  # order of its pass manager in the compilation: between two of them Python may change the IR


class Observer(Protocol):
    """Somebody who is told what happens in one compilation."""

    def before(self, step: Pass, module: Any) -> None:
        """A pass is about to run on `module`, whose text is `module.str()`."""

    def after(self, step: Pass, module: Any, wall_ms: float) -> None:
        """It ended; of a pass that raises, nothing more is told."""

    def artefact(self, stage: str, content: object, wall_ms: float) -> None:
        """A stage ended with an artefact: a module, whose text is `str(content)`, or text, or bytes."""

    def ended(self) -> None:
        """Nothing more is told: the last stage ended, or one raised."""


# Is told of a compilation that starts, and of what enters its first stage: a module, or text; gives an
# observer, or None. `id` and `source` of the record are its to fill in.
Factory: TypeAlias = Callable[[Compilation, Any], Observer | None]


@contextmanager
def observed(factory: Factory) -> Iterator[None]:
    """While active, every compilation in this process is told to an observer from `factory`.

    Several may be active; each is told. Compilations may run in several threads: an observer is called in
    the thread of its compilation. Cost: none when nothing is active, some 20 µs a pass otherwise.
    """
    with _installed():
        _factories.append(factory)
        try:
            yield
        finally:
            _factories.remove(factory)


class Steps:
    """The passes of one compilation, counted as they come."""

    def __init__(
        self, observers: Collection[Observer] = (), *, first: int = 0, drop: Collection[int] = ()
    ) -> None:
        """Run the passes from index `first` on, without those in `drop`; others are counted, and not told."""
        self.observers = observers
        self.first = first
        self.drop = drop
        self.count = 0
        self.managers = 0
        self.running: Pass | None = None  # also after it raised

    def stage(self, name: str, run: Callable[[Any, Any], Any], source: Any, metadata: Any) -> Any:
        """Run one stage of a backend, pass by pass, and give its artefact."""
        before, _thread.current = _thread.current, (self, name)
        started = time.perf_counter()
        try:
            artefact = run(source, metadata)
        finally:
            _thread.current = before
        wall_ms = (time.perf_counter() - started) * 1e3
        for observer in self.observers:
            observer.artefact(name, artefact, wall_ms)
        return artefact

    def take(self, step: Pass, module: Any, run: Callable[[], None]) -> None:
        """Run one pass, unless it is left out."""
        if step.index < self.first or step.index in self.drop:
            return
        for observer in self.observers:
            observer.before(step, module)
        started = time.perf_counter()
        self.running = step
        run()
        self.running = None
        wall_ms = (time.perf_counter() - started) * 1e3
        for observer in self.observers:
            observer.after(step, module, wall_ms)


@contextmanager
def stepwise() -> Iterator[None]:
    """While active, stages run by `Steps.stage` run pass by pass."""
    with _installed():
        yield


class _Thread(threading.local):
    current: tuple[Steps, str] | None = None  # whose stage this thread runs


_thread = _Thread()
_factories: list[Factory] = []
_patches = ExitStack()
_users = 0
_lock = threading.Lock()


@contextmanager
def _installed() -> Iterator[None]:
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
    manager = _stepping(ir.pass_manager)
    for path, module, name in _adders(libtriton, ""):
        _replace(module, name, _noting(getattr(module, name), f"{path}{name}", manager))
    _replace(ir, "pass_manager", manager)
    for backend in backends.values():
        _replace(backend.compiler, "add_stages", _starting(vars(backend.compiler)["add_stages"]))


def _replace(owner: Any, name: str, value: object) -> None:
    _patches.callback(setattr, owner, name, vars(owner)[name])
    setattr(owner, name, value)


def _adders(module: ModuleType, path: str) -> Iterator[tuple[str, ModuleType, str]]:
    for name, member in list(vars(module).items()):
        if isinstance(member, ModuleType):
            yield from _adders(member, f"{path}{name}.")
        elif name.startswith("add_") and callable(member):
            yield path, module, name


@dataclass(frozen=True, slots=True)
class _Added:
    # one call of an adder
    function: Callable[..., Any]
    path: str
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]
    caller: str


def _stepping(whole: type[Any]) -> type[Any]:
    # a class made when it is needed: another tool may have put its own in place of Triton's
    class Stepping(whole):  # type: ignore[misc, unused-ignore]
        def __init__(self, context: Any) -> None:
            super().__init__(context)
            self.context = context
            self.added: list[_Added] = []
            self.debug = False

        def enable_debug(self) -> Any:
            self.debug = True
            return super().enable_debug()

        def run(self, module: Any, tag: str) -> None:
            if _thread.current is None:
                super().run(module, tag)
                return
            steps, stage = _thread.current
            managers = [self._alone(one) for one in self.added]
            texts = [manager.get_pipeline_str() for manager in managers]
            text = super().get_pipeline_str()
            steps.managers += 1
            if _passes(text) != tuple(one for alone in texts for one in _passes(alone)):
                step = _block(steps, stage, text, sys._getframe(1))
                steps.take(step, module, lambda: whole.run(self, module, tag))
                return
            for one, manager, alone in zip(self.added, managers, texts, strict=True):
                step = _step(steps, stage, alone, one)
                steps.take(step, module, functools.partial(manager.run, module, tag))

        def _alone(self, one: _Added) -> Any:
            manager = whole(self.context)
            if self.debug:
                manager.enable_debug()
            one.function(manager, *one.args, **one.kwargs)
            return manager

    return Stepping


def _noting(original: Callable[..., Any], path: str, manager: type[Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def add(*args: Any, **kwargs: Any) -> Any:
        result = original(*args, **kwargs)
        if args and isinstance(args[0], manager):
            args[0].added.append(_Added(original, path, args[1:], kwargs, _place(sys._getframe(1))))
        return result

    return add


# the text of a pipeline is the same in every compilation for one target
_passes = functools.lru_cache(maxsize=1024)(passes_in)


def _step(steps: Steps, stage: str, pipeline: str, one: _Added) -> Pass:
    arguments = (*map(repr, one.args), *(f"{name}={value!r}" for name, value in one.kwargs.items()))
    name = _passes(pipeline)[0].name
    return Pass(_next(steps), stage, name, one.path, arguments, pipeline, one.caller, steps.managers)


def _block(steps: Steps, stage: str, pipeline: str, frame: FrameType) -> Pass:
    name = "+".join(one.name for one in _passes(pipeline))
    return Pass(_next(steps), stage, name, _BLOCK, (), pipeline, _place(frame), steps.managers)


def _next(steps: Steps) -> int:
    steps.count += 1
    return steps.count - 1


def _place(frame: FrameType) -> str:
    return f"{frame.f_code.co_filename}:{frame.f_lineno}"


def _starting(original: Callable[..., None]) -> Callable[..., None]:
    @functools.wraps(original)
    def add_stages(backend: Any, stages: dict[str, Any], options: Any, language: Any) -> None:
        original(backend, stages, options, language)
        if _thread.current is None and _factories:
            source = sys._getframe(1).f_locals.get("src")  # triton.compile has it, and hands it to nobody
            started = _Started(backend, options, language.name.lower(), source, last=[*stages][-1])
            for name, stage in stages.items():
                stages[name] = functools.partial(started.stage, name, stage)

    return add_stages


class _Started:
    # a compilation of which no stage has run yet

    def __init__(self, backend: Any, options: Any, language: str, source: Any, *, last: str) -> None:
        self.backend, self.options, self.language, self.source = backend, options, language, source
        self.last = last
        self.steps: Steps | None = None

    def stage(self, name: str, run: Callable[[Any, Any], Any], source: Any, metadata: Any) -> Any:
        if self.steps is None:
            compilation = self._compilation(name, source, metadata)
            told = [factory(compilation, source) for factory in list(_factories)]
            self.steps = Steps([observer for observer in told if observer is not None])
        last = name == self.last
        try:
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
            target=target_text(self.backend.target),
            options=options_text(self.options) | self._ptx_version(),
            source="",
            file=f"{code.co_filename}:{code.co_firstlineno}" if code is not None else None,
            language=self.language,
            first=stage,
            constants=_constants(self.source),
        )

    def _ptx_version(self) -> dict[str, str]:
        # the backend asks ptxas for it, and which ptxas there is depends on the process: torch names its own
        version = getattr(sys.modules[type(self.backend).__module__], "get_ptx_version_from_options", None)
        return {"ptx_version": repr(version(self.options, self.backend.target.arch))} if version else {}


def _constants(source: Any) -> dict[str, str]:
    # of a kernel written in Python; keys are paths, (3,), or (3, 0) inside of a tuple argument
    names: Sequence[str] = getattr(getattr(source, "fn", None), "arg_names", ())
    constants: Mapping[tuple[int, ...], Any] = getattr(source, "constants", {})
    return {".".join([names[at], *map(str, inner)]): str(value) for (at, *inner), value in constants.items()}


def target_text(target: GPUTarget) -> str:
    """`cuda:90`, `hip:gfx942`."""
    return f"{target.backend}:{target.arch}"


def options_text(options: Any) -> dict[str, str]:
    """A backend's options as `options_of` reads them: the Python literal of each."""
    return {one.name: repr(getattr(options, one.name)) for one in fields(options)}
