"""Report launches that the hooks cannot see, because no Python code makes them.

Each is reported when it happens, whenever it was compiled. Not reported are calls of an innermost launcher
that the program keeps: `CompiledKernel.run`, or, with Inductor's static launcher, a `CachingAutotuner.run`
that was bound before the recording started. Nothing in torch or Triton does that.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, TypeAlias

from tracing.upstream.inductor.code import around_graphs, around_packages, has_cpp_wrapper
from tracing.upstream.patch import Method, Wrapper
from tracing.upstream.torch.spawned_processes import spawns_noted

NO_GRAPHS = "torch._inductor.config.triton.cudagraphs = False, and no torch.cuda.CUDAGraph"
EARLIER = "start the recording before the graph is captured"
WARM_UP = "call the function once before it is captured"
NO_PACKAGE = "torch.compile of the model that the package was made of"
NO_PROCESSES = "one process, as with DataLoader(num_workers=0)"
NO_SPAWNS = "one process, as with pytest -p no:xdist, or torchrun … -m tracing run …"
NO_CPP_WRAPPER = "torch._inductor.config.cpp_wrapper = False"

_NotCovered: TypeAlias = Callable[[str, str], None]

# forks, if a preexec_fn is given; the fork executes another program
_STARTS_A_PROGRAM = subprocess.Popen._execute_child.__code__  # type: ignore[attr-defined]

_watching: list[_NotCovered] = []


def _forked() -> None:
    if sys._getframe(1).f_code is _STARTS_A_PROGRAM:
        return
    for not_covered in tuple(_watching):
        not_covered("launches and operators of processes that the program forks", NO_PROCESSES)


os.register_at_fork(after_in_parent=_forked)


@contextmanager
def watched(not_covered: _NotCovered) -> Iterator[None]:
    """While active, `not_covered(what, setting)` is called for launches that the hooks do not intercept.

    Only the execution of AOTInductor packages and of code with Inductor's C++ wrapper is observed, not their
    launches.
    """

    def packaged(runner: Any) -> None:
        not_covered("launches by an AOTInductor package", NO_PACKAGE)

    def compiled(graph: Any) -> None:
        if has_cpp_wrapper(graph):
            not_covered("launches by Inductor's C++ wrapper", NO_CPP_WRAPPER)

    def spawning() -> None:
        not_covered("launches and operators of processes that the program spawns", NO_SPAWNS)

    with ExitStack() as stack:
        _watching.append(not_covered)
        stack.callback(_watching.remove, not_covered)
        stack.enter_context(around_graphs(_reporting(compiled)))
        stack.enter_context(around_packages(_reporting(packaged)))
        stack.enter_context(spawns_noted(spawning))
        yield


def _reporting(report: Callable[[Any], None]) -> Wrapper:
    def wrapper(original: Method) -> Method:
        def called(self: Any, *args: Any, **kwargs: Any) -> Any:
            report(self)
            return original(self, *args, **kwargs)

        return called

    return wrapper
