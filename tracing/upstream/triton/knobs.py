"""Triton's knobs: settings that it reads from environment variables. Imports no torch."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import triton
from triton import knobs
from triton.knobs import HookChain

from tracing.upstream.contract import require
from tracing.upstream.patch import replaced
from tracing.upstream.triton.libtriton import libtriton

# name of the binary -> attribute of knobs.nvidia
_ASSEMBLERS = {"ptxas": "ptxas", "ptxas-blackwell": "ptxas_blackwell"}


def triton_interprets() -> bool:
    """True under TRITON_INTERPRET=1."""
    return bool(knobs.runtime.interpret)


def has_fpsan() -> bool:
    """True if Triton has the floating-point sanitizer; 3.8 is the first release that has it."""
    # triton 880b4e4d9 ("[FPSAN] Introducing FpSan - floating point sanitizer", #9337) added it
    return hasattr(libtriton.passes.ttgpuir, "add_fp_sanitizer")


def fpsan_enabled() -> AbstractContextManager[None]:
    """While active, kernels are compiled with the floating-point sanitizer, if Triton has it."""
    return replaced(knobs.compilation, "instrumentation_mode", "fpsan")


def assembler_tools() -> Iterator[tuple[str, str, Path]]:
    """Name, CUDA version and path of each ptxas that runs: ("ptxas-blackwell", "13.3", ...)."""
    for name, attribute in _ASSEMBLERS.items():
        try:
            tool = getattr(knobs.nvidia, attribute)
        except RuntimeError:  # raised by the knob if no such binary runs
            continue
        yield name, tool.version, Path(tool.path)


def ptxas_options() -> str:
    """The options for ptxas of PTXAS_OPTIONS."""
    return knobs.nvidia.ptxas_options or ""


@contextmanager
def assembled_by(path: Path) -> Iterator[None]:
    """While active, the NVIDIA backend assembles every architecture with this ptxas."""
    # the backend reads one of two knobs, by architecture, with a limit that depends on the release
    with knobs.nvidia.scope():
        for attribute in _ASSEMBLERS.values():
            setattr(knobs.nvidia, attribute, str(path))
        yield


class LaunchExitHook:
    """A function that Triton calls after each launch that it makes itself.

    Triton reads the exit hook at each launch, after the launch's metadata. Other tools add to its chain or,
    as they did when the hook was one function, assign a function or None over it, at any time: call `join`
    before each launch.
    """

    def __init__(self, function: Callable[[Any], None]) -> None:
        """function -- receives the launch's metadata"""
        self._function = function
        # chains that contain our function, and the hook that each of ours replaced
        self._chains: list[tuple[HookChain[Any], Any]] = []

    def join(self) -> None:
        """Add the function to the exit hook, if it is not part of it already."""
        runtime = triton.knobs.runtime
        hook = runtime.launch_exit_hook
        if self._chains and hook is self._chains[-1][0]:
            return
        chain = hook
        if not isinstance(hook, HookChain):
            chain = runtime.launch_exit_hook = HookChain(reversed=True)
            if hook is not None:
                chain.add(hook)
        chain.add(self._function)
        self._chains.append((chain, hook))

    def leave(self) -> None:
        """Remove the function everywhere, and restore the hooks that `join` replaced."""
        for chain, hook in reversed(self._chains):
            chain.remove(self._function)
            if triton.knobs.runtime.launch_exit_hook is chain:
                triton.knobs.runtime.launch_exit_hook = hook
        self._chains.clear()


def contract() -> None:
    """Raise Broken or another error if torch or Triton has changed what this file relies on."""
    runtime, ended = triton.knobs.runtime, list[object]()
    before = runtime.launch_exit_hook
    hook = LaunchExitHook(ended.append)
    hook.join()
    hook.join()
    runtime.launch_exit_hook("metadata")
    hook.leave()
    require(ended == ["metadata"], "an exit hook that calls each function of its chain once")
    require(runtime.launch_exit_hook is before, "the previous exit hook afterwards")
    with replaced(knobs.compilation, "instrumentation_mode", ""), knobs.nvidia.scope():
        knobs.nvidia.ptxas = ""
    require(isinstance(triton_interprets(), bool), "knobs.runtime.interpret")
