"""Intercepts operators outside of Triton: ATen, collectives, custom operators.

A Triton kernel's input may come from a matrix product of a library, an all-reduce or a `copy_` of the host
program. All of them pass torch's dispatcher, including those that Inductor's code calls. Collectives are also
landmarks, at which the ranks of a job are compared.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Protocol

from tracing.launch import hooks
from tracing.launch.hidden_computation import HiddenComputation
from tracing.launch.tensors import has_memory, takes_itself_apart, tensors_in
from tracing.operators.effects import Effect, effect_of
from tracing.upstream.patch import Method, patched
from tracing.upstream.torch.dispatch_modes import OperatorMode, is_active, pushed
from tracing.upstream.torch.tensor_subclasses import FunctionalTensor


class OperatorListener(Protocol):
    """Receives operator calls. The value returned by `before` is passed to `after`."""

    def passes_over(self) -> bool:
        """True: operators are not passed on for now."""

    def looks_before(self, effect: Effect) -> bool:
        """False: `before` need not be called, and would return None."""

    def before(self, effect: Effect, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        """An operator is about to be issued."""

    def after(
        self, effect: Effect, args: Sequence[Any], kwargs: Mapping[str, Any], result: Any, before: Any
    ) -> None:
        """An operator was issued and returned `result`."""


class CollectiveRecorder(Protocol):
    """Records collectives, and the tensors that they exchange."""

    def before(self, name: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        """Called before a collective is issued; returns what `after` receives; None: it is not called."""

    def after(self, issued: Any, result: Any) -> None:
        """Called after it was issued, with what it returned."""


class Operators(OperatorMode):
    """While active, passes every operator of this thread that writes or allocates to `listener`.

    listener    -- must not keep tensors, because torch copies an output that has another reference.
                   Operators that it calls itself are not passed on
    collectives -- also receives collectives, and waits for them; None: they are treated like other operators

    failed      -- receives an error of the listener, which then receives no more; None: it is raised

    Autograd carries the mode to the threads of a backward pass, and `carried` to those that the program
    starts. torch.compile still compiles. Operators on a tensor subclass are not passed on; those on the plain
    tensors inside of it are. Operators under `hooks.hidden()`, as of an autotuner that restores what its
    trials overwrote, or under `dispatch_disabled()` are not passed on.
    Cost: 4 to 7 µs an operator, as of any dispatch mode, and 1 µs in addition to the listener's time.

    Not covered: threads that were started before, Inductor's cpp_wrapper and AOTInductor code, branches of
    control flow operators that run in eager mode, and CUDA graph replays.
    """

    def __init__(
        self,
        listener: OperatorListener,
        collectives: CollectiveRecorder | None = None,
        failed: Callable[[Exception], None] | None = None,
    ) -> None:
        super().__init__()  # type: ignore[no-untyped-call, unused-ignore]
        self._listener = listener
        self._collectives = collectives
        self._failed = failed
        self._effects: dict[Any, Effect | None] = {}
        self._closed = False
        self.teach: Callable[[Any, Effect | None, Sequence[Any], Mapping[str, Any]], None] | None = None

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        kwargs = kwargs or {}
        if types and any(map(takes_itself_apart, types)):
            if FunctionalTensor in types:  # the mode that traces with it comes next
                return func(*args, **kwargs)
            return NotImplemented  # its operators pass this mode, too
        try:
            effect = self._effects[func]
        except KeyError:
            effect = self._effects[func] = self._notified(effect_of, func)
        if self.teach is not None:
            self._notified(self.teach, func, effect, args, kwargs)
        if effect is None or self._closed or self._listener.passes_over() or not hooks.shown():
            return func(*args, **kwargs)
        before = None
        if self._listener.looks_before(effect):
            with HiddenComputation():
                before = self._notified(self._listener.before, effect, args, kwargs)
        issued, collectives = None, self._collectives if effect.collective else None
        if collectives is not None and all(map(has_memory, tensors_in(args))):
            issued = self._notified(collectives.before, effect.name, args, kwargs)
        result = func(*args, **kwargs)
        if collectives is not None and issued is not None:
            self._notified(collectives.after, issued, result)
        if not self._closed:
            with HiddenComputation():
                self._notified(self._listener.after, effect, args, kwargs, result, before)
        return result

    def _notified(self, listener: Callable[..., Any], *facts: Any) -> Any:
        try:
            return listener(*facts)
        except Exception as error:
            self.failing(error)
            return None

    def failing(self, error: Exception) -> None:
        """The listener failed with this error: it receives no more operators, or the error is raised."""
        if self._failed is None:
            raise error
        self._failed(error)
        self._closed = True

    def active(self) -> bool:
        """True if this thread is in the mode; False inside of an operator that is written in Python."""
        return is_active(self)

    @contextmanager
    def carried(self) -> Iterator[None]:
        """While active, threads that the program starts are also in this mode."""

        def starting(original: Method) -> Method:
            def start(thread: threading.Thread) -> None:
                run = thread.run

                def run_in_mode() -> None:
                    with pushed(self):
                        run()

                thread.run = run_in_mode  # type: ignore[method-assign]
                original(thread)

            return start

        with patched(threading.Thread, "start", starting):
            try:
                yield
            finally:
                self._closed = True  # a thread may outlive the recording
