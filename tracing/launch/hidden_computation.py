"""Hide the recorder's own computations from Dynamo, modes, transforms and autograd.

A recorder runs in the middle of a program, so it inherits the program's context: Dynamo compiles frames after
a graph break, function and dispatch modes intercept every call, functorch wraps results, autograd builds
graphs. The recorder must be invisible to all of them, and needs plain results.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from torch import is_grad_enabled

from tracing.upstream.torch.autograd import set_grad_enabled
from tracing.upstream.torch.dispatch_modes import (
    dispatch_disabled,
    functions_disabled,
    functorch_disabled,
    functorch_interpreter,
)
from tracing.upstream.torch.dynamo import FramesSkipped, set_eval_frame

# The virtual GPU replaces a device: Dynamo has to see its answers.
_PACKAGES = ("launch", "digest", "operators", "program", "perturb", "debug_mode", "record", "compiler")
_DIRECTORIES = tuple(f"{Path(__file__).parents[1] / name}/" for name in _PACKAGES)


class HiddenComputation:
    """While entered, the program does not see what this thread computes. Costs 1 µs; not reentrant.

    Its methods are written out, because they run twice for every launch.
    """

    __slots__ = ("_callback", "_dispatch", "_functions", "_functorch", "_grad")
    _functions: Any
    _dispatch: Any
    _functorch: Any

    def __enter__(self) -> None:
        self._callback = set_eval_frame(None)
        self._functions = functions_disabled()  # first: modes see calls that disable gradients, too
        self._functions.__enter__()
        self._dispatch = dispatch_disabled()
        self._dispatch.__enter__()
        self._functorch = functorch_disabled() if functorch_interpreter() is not None else None
        if self._functorch is not None:
            self._functorch.__enter__()
        self._grad = is_grad_enabled()
        if self._grad:
            set_grad_enabled(False)

    def __exit__(self, *exception: object) -> None:
        if self._grad:
            set_grad_enabled(True)
        if self._functorch is not None:
            self._functorch.__exit__(None, None, None)
        self._dispatch.__exit__(None, None, None)
        self._functions.__exit__(None, None, None)
        set_eval_frame(self._callback)


def own_frames_skipped() -> FramesSkipped:
    """While entered, Dynamo neither compiles the recorder's frames nor inlines its functions."""
    return FramesSkipped(_DIRECTORIES)
