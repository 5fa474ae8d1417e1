"""What the hooks cannot see: launches that no Python makes."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
import torch._inductor.config as inductor

NO_GRAPHS = "torch._inductor.config.triton.cudagraphs = False, and no torch.cuda.CUDAGraph"


@contextmanager
def watched(not_covered: Callable[[str, str], None]) -> Iterator[None]:
    """While active, `not_covered(what, setting)` is called when launches happen that the hooks do not see.

    CUDA-graph replays are seen to happen, not what they launch. Code that Inductor compiles for its C++
    wrapper launches from C++, and so do AOTInductor packages, which are not noticed.
    """
    graph = torch.cuda.CUDAGraph
    replay = graph.replay

    @functools.wraps(replay)
    def watched_replay(self: Any) -> Any:
        not_covered("launches inside of CUDA-graph replays", NO_GRAPHS)
        return replay(self)

    if inductor.cpp_wrapper:
        not_covered("launches by Inductor's C++ wrapper", "torch._inductor.config.cpp_wrapper = False")
    graph.replay = watched_replay  # type: ignore[method-assign]
    try:
        yield
    finally:
        graph.replay = replay  # type: ignore[method-assign]
