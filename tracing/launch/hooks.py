"""Intercept every kernel launch of this process.

A listener's `before` and `after` are called around each launch, however it is made:

- `CachingAutotuner.run`: Inductor's Triton kernels, above its normal, static and cached launchers;
- `CompiledKernel.launch_metadata` and the launch exit hook: every other compiled launch, `fn[grid](...)`,
  autotuned or not, with its final grid and stream;
- `InterpretedFunction.run`: `@triton.jit` under TRITON_INTERPRET=1.

If the interpreter executes a launch, under TRITON_INTERPRET=1 or on the virtual GPU, listeners that call
`watching.watch` also receive its memory accesses.

Trial launches, by which an autotuner, a multi-kernel or the compiler measures kernels, are left out. Every
patch replaces an attribute of a class while a listener is `installed`, and is undone afterwards; launch hooks
of other tools stay in effect.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from types import CodeType
from typing import Any, Protocol

from tracing import interpreter
from tracing.interpreter import trials
from tracing.launch import compiled_launches
from tracing.launch.hidden_computation import HiddenComputation, own_frames_skipped
from tracing.launch.launch_site import Grid, LaunchSite, launched_grid
from tracing.launch.memory import watching
from tracing.launch.memory.out_of_bounds import OutOfBoundsError
from tracing.launch.python_launch_sites import (
    CompiledSite,
    InductorSite,
    InterpretedSite,
    argument_names,
    bound,
)
from tracing.launch.tuple_arguments import nesting
from tracing.upstream.inductor import autotuner as inductor_autotuner
from tracing.upstream.inductor.code import launching_frame
from tracing.upstream.inductor.compiler import around_codegen
from tracing.upstream.patch import Method, patched
from tracing.upstream.torch.dispatch_modes import dispatch_disabled
from tracing.upstream.torch.dynamo import untraced
from tracing.upstream.triton import autotune as triton_autotuner
from tracing.upstream.triton import compiled_kernel
from tracing.upstream.triton import interpreter as upstream_interpreter
from tracing.upstream.triton.compiled_kernel import CompiledKernel
from tracing.upstream.triton.interpreter import InterpretedFunction, InterpreterError
from tracing.upstream.triton.knobs import LaunchExitHook

NOTHING_AFTER = object()  # a value of `Listener.before`


class Listener(Protocol):
    """Receives launch callbacks.

    The value returned by `before` is passed to `after`, which is not called if that is NOTHING_AFTER.
    """

    def before(self, site: LaunchSite, values: Sequence[Any], stream: int, grid: Grid | None) -> Any:
        """A kernel is about to be launched with values for `site.names`; grid None: call `site.grid`."""

    def after(self, token: Any) -> None:
        """Called after the kernel was submitted to the device, or executed by the interpreter."""


class _Thread(threading.local):
    hidden = 0
    caller: tuple[CodeType, int] | None = None


_thread = _Thread()
_listeners: list[Listener] = []
_patches = ExitStack()
_lock = threading.Lock()


def _hide_in_child() -> None:
    # open files of listeners belong to the parent
    if _listeners:
        _Thread.hidden = _thread.hidden = 1


os.register_at_fork(after_in_child=_hide_in_child)


@contextmanager
def installed(listener: Listener, known: object = None) -> Iterator[None]:
    """While active, `listener` receives every launch of this process.

    known -- records launches that `listener` has received before, in its stead; see `compiled_launches`

    A process that is forked meanwhile reports no launch.
    Listeners nest: the last one is called last before a launch and first after it.
    """
    with _lock:
        if not _listeners:
            with ExitStack() as stack:
                _patch(stack, compiled_launches.wrapper() if known is not None else None)
                _patches.push(stack.pop_all())
        _listeners.append(listener)
        compiled_launches.record(known if len(_listeners) == 1 else None)
    try:
        yield
    finally:
        with _lock:
            compiled_launches.record(None)
            _listeners.remove(listener)
            if not _listeners:
                _patches.close()


def _patch(stack: ExitStack, compiled: compiled_launches.CompiledMethod | None) -> None:
    stack.enter_context(own_frames_skipped())
    stack.enter_context(inductor_autotuner.around_launches(_inductor_launch(), _thread, compiled))
    stack.enter_context(compiled_kernel.around_launches(_around_compiled))
    stack.enter_context(upstream_interpreter.around_launches(_around_interpreted))
    stack.enter_context(patched(interpreter, "execute", _around_execution))
    stack.enter_context(trials_hidden())
    stack.callback(_exit_hook.leave)


@contextmanager
def trials_hidden() -> Iterator[None]:
    """While active, trial launches of autotuners and of the compiler are hidden.

    So are launches of benchmarks that are compiled and not executed.
    """
    with ExitStack() as stack:
        stack.enter_context(patched(trials, "tried", _unseen))
        stack.enter_context(triton_autotuner.around_trials(_unseen))
        stack.enter_context(inductor_autotuner.around_trials(_unseen))
        stack.enter_context(inductor_autotuner.around_multi_kernel_trials(_unseen))
        stack.enter_context(around_codegen(_unseen))  # this method tries kernels, also fused ones
        yield


def around_inductor_launches(launch: inductor_autotuner.Launch) -> AbstractContextManager[None]:
    """While active, launches of Inductor's kernels that listeners receive are made by calling `launch`."""
    return inductor_autotuner.around_launches(launch, _thread)


def shown() -> bool:
    """True if listeners receive the launches of this thread."""
    return not _thread.hidden


def thread_state() -> threading.local:
    """The state of the current thread: its launches are hidden while `hidden` is above 0."""
    return _thread


def caller() -> tuple[CodeType, int] | None:
    """The code, and the instruction in it, that launched Inductor's last kernel on this thread.

    It belongs to the launch that is being announced, if that is one of Inductor's Triton kernels.
    """
    return _thread.caller


def announce(
    site: LaunchSite, values: Sequence[Any], stream: int, grid: Grid | None
) -> list[tuple[Listener, Any]]:
    """Call `before` of every listener; pass the result to `conclude` after the launch."""
    announced = []
    with HiddenComputation():
        watching.forget()
        for listener in _listeners:
            token = listener.before(site, values, stream, grid)
            if token is not NOTHING_AFTER:
                announced.append((listener, token))
    return announced


def conclude(announced: list[tuple[Listener, Any]]) -> None:
    """Call `after` of the listeners that `announce` called, also if one of them raises."""
    if announced:
        with HiddenComputation():
            _conclude(announced)


def _conclude(announced: list[tuple[Listener, Any]]) -> None:
    while announced:
        listener, token = announced.pop()
        try:
            listener.after(token)
        except BaseException:
            _conclude(announced)
            raise


def _inductor_launch() -> inductor_autotuner.Launch:
    sites: dict[int, InductorSite] = {}

    def launch(
        original: Method, autotuner: Any, args: tuple[Any, ...], stream: int, kwargs: dict[str, Any], /
    ) -> Any:
        site = sites.get(id(autotuner))
        if site is None:
            site = sites[id(autotuner)] = InductorSite(autotuner)
        frame = launching_frame(sys._getframe(2))
        _thread.caller = frame.f_code, frame.f_lasti
        if len(args) == site.count:
            announced = announce(site, args, stream, None)
        else:  # a user's kernel: its grid follows its arguments
            announced = announce(site, args[: site.count], stream, site.trailing_grid(args))
        _thread.hidden += 1  # no context manager, because this runs for every launch
        try:
            result = original(autotuner, *args, stream=stream, **kwargs)
        finally:
            _thread.hidden -= 1
        conclude(announced)
        return result

    return launch


def _around_compiled(original: Method) -> Method:
    sites: dict[int, CompiledSite] = {}

    def launch_metadata(compiled: CompiledKernel, grid: Sequence[int], stream: int, *args: Any) -> Any:
        metadata = original(compiled, grid, stream, *args)
        if _thread.hidden:
            return metadata
        try:
            size = launched_grid(grid)
        except TypeError:  # the launcher is about to raise one
            return metadata
        site = sites.get(id(compiled))
        if len(args) != (site.count if site is not None else len(argument_names(compiled, len(args)))):
            return metadata  # the launcher is about to raise one
        if site is None:
            site = sites[id(compiled)] = CompiledSite(compiled, args)
        _exit_hook.join()
        announced = announce(site, [args[i] for i in site.positions], int(stream or 0), size)
        _started.setdefault((threading.get_ident(), id(metadata)), []).append((metadata, announced))
        return metadata

    return launch_metadata


# By thread and metadata, which is None where another tool set the enter hook to None; it holds the metadata,
# so that its id stays its own.
_started: dict[tuple[int, int], list[tuple[object, Any]]] = {}


def _finish_compiled(metadata: object) -> None:
    key = (threading.get_ident(), id(metadata))
    started = _started.get(key)
    if started:
        _, announced = started.pop()
        if not started:
            del _started[key]
        conclude(announced)


_exit_hook = LaunchExitHook(_finish_compiled)


def _around_interpreted(original: Method) -> Method:
    sites: dict[tuple[Any, ...], InterpretedSite] = {}

    def run(function: InterpretedFunction, *args: Any, grid: Any, warmup: bool, **kwargs: Any) -> Any:
        if _thread.hidden or warmup:
            return original(function, *args, grid=grid, warmup=warmup, **kwargs)
        values = bound(function, args, kwargs)
        try:
            size = launched_grid(grid(dict(values)) if callable(grid) else grid)
        except TypeError:  # the interpreter is about to raise one
            return original(function, *args, grid=grid, warmup=warmup, **kwargs)
        key = (id(function), nesting(values.values()))
        if key not in sites:
            sites[key] = InterpretedSite(function, values)
        site, given = sites[key].launched(values)
        announced = announce(site, given, 0, size)
        watching.watch(site.accesses)
        try:
            with hidden(), dispatch_disabled(), watching.executing():
                result = original(function, *args, grid=grid, warmup=warmup, **kwargs)
        except InterpreterError as error:
            if isinstance(error.__cause__, OutOfBoundsError):
                raise error.__cause__ from None
            raise
        conclude(announced)
        return result

    return untraced(run)


def _around_execution(original: Method) -> Method:
    # a launch on the virtual GPU: one of the hooks above has reported it
    def execute(*args: Any, **options: Any) -> None:
        with watching.executing():
            original(*args, **options)

    return execute


@contextmanager
def hidden() -> Iterator[None]:
    """While active, listeners receive no launch of this thread: launches of the recorder, or of a trial."""
    _thread.hidden = _thread.hidden + 1
    try:
        yield
    finally:
        _thread.hidden -= 1


def _unseen(original: Method) -> Method:
    def bench(*args: Any, **kwargs: Any) -> Any:
        with hidden():
            return original(*args, **kwargs)

    return bench
