"""Pass managers that run their passes one at a time."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from types import FrameType, ModuleType
from typing import Any

from tracing.compiler.opt.pipeline_text import passes_in
from tracing.compiler.steps import Pass, Steps, current
from tracing.upstream.patch import Method, patched, replaced
from tracing.upstream.triton.libtriton import ir, libtriton

_BLOCK = ""  # the adder of passes that no Python function added


@contextmanager
def stepping() -> Iterator[None]:
    """While active, `Steps.stage` runs pass managers pass by pass."""
    manager = _stepping(ir.pass_manager)
    with ExitStack() as stack:
        for path, module, name in _adders(libtriton, ""):
            noting = functools.partial(_noting, f"{path}{name}", manager)
            stack.enter_context(patched(module, name, noting))
        stack.enter_context(replaced(ir, "pass_manager", manager))
        yield


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
    # the class is created on demand, because another tool may have replaced Triton's class
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
            running = current()
            if running is None:
                super().run(module, tag)
                return
            steps, stage = running
            managers = [self._single(one) for one in self.added]
            texts = [manager.get_pipeline_str() for manager in managers]
            text = super().get_pipeline_str()
            steps.managers += 1
            if _passes(text) != tuple(one for single in texts for one in _passes(single)):
                step = _block(steps, stage, text, sys._getframe(1))
                steps.take(step, module, lambda: whole.run(self, module, tag))
                return
            for one, manager, single in zip(self.added, managers, texts, strict=True):
                step = _step(steps, stage, single, one)
                steps.take(step, module, functools.partial(manager.run, module, tag))

        def _single(self, one: _Added) -> Any:
            manager = whole(self.context)
            if self.debug:
                manager.enable_debug()
            one.function(manager, *one.args, **one.kwargs)
            return manager

    return Stepping


def _noting(path: str, manager: type[Any], original: Method) -> Method:
    def add(*args: Any, **kwargs: Any) -> Any:
        result = original(*args, **kwargs)
        if args and isinstance(args[0], manager):
            args[0].added.append(_Added(original, path, args[1:], kwargs, _source_line(sys._getframe(1))))
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
    return Pass(_next(steps), stage, name, _BLOCK, (), pipeline, _source_line(frame), steps.managers)


def _next(steps: Steps) -> int:
    steps.count += 1
    return steps.count - 1


def _source_line(frame: FrameType) -> str:
    return f"{frame.f_code.co_filename}:{frame.f_lineno}"
