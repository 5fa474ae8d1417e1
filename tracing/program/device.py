"""Chooses the device of a case: the GPU of this machine, or a virtual GPU."""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Callable, Iterator

import torch

from tracing.environment import environment, fresh_caches, local_rank
from tracing.model import Case, Environment
from tracing.model.chips import DEFAULT_TARGET
from tracing.model.run_info import VIRTUAL_GPU
from tracing.program.case import load_case
from tracing.program.forks import forks_end_here
from tracing.program.gpu import described_gpu, gpu_available
from tracing.upstream.inductor.config import settings_changed
from tracing.upstream.torch.dynamo import forget_compiled
from tracing.virtual_gpu import virtual_gpu
from tracing.virtual_gpu.chips import parse_target

NO_VIRTUAL_GPU = "--no-virtual-gpu"


class Device:
    """The device of a case: `type` is the device of its tensors, `environment` describes it."""

    def __init__(
        self, target: str, *, execute: bool = True, select: bool = True, virtual: bool = True
    ) -> None:
        """Choose the GPU if there is one, else a virtual GPU that compiles for `target`.

        execute -- False: kernels are compiled for `target`, and not launched, whatever GPU there is
        select  -- make the GPU of this rank torch's current device; False: the program does so, and this
                   process does not open the GPU before it
        virtual -- False: without a GPU there is none, and Inductor writes C++ for tensors on the CPU
        """
        self.target = target
        self.execute = execute
        there = gpu_available()
        self.virtual = not execute or (virtual and not there)
        if there and execute and select:
            torch.cuda.set_device(local_rank() % torch.cuda.device_count())  # ranks may share a GPU
        self.type = "cpu" if self.virtual or not there else "cuda"
        # contexts of the work: empty caches, removed afterwards
        self.caches: Callable[[], contextlib.AbstractContextManager[object]] = fresh_caches
        wanted = parse_target(target)
        if self.virtual:
            self.name, self.compiled_for = VIRTUAL_GPU, f"{wanted.backend}:{wanted.arch}"
        elif not there:
            self.name, self.compiled_for = "CPU", "cpu"
        else:
            self.name, self.compiled_for = described_gpu(opened=select)

    def environment(self) -> Environment:
        """Versions, device and knobs of a run on this device."""
        return environment(self.name, self.compiled_for)

    @property
    def options(self) -> list[str]:
        """The options by which a command chooses this device."""
        if self.virtual:
            return [] if self.target == DEFAULT_TARGET else ["--target", self.target]
        return [NO_VIRTUAL_GPU] if self.name == "CPU" else []

    def host(self) -> Device:
        """The same without the virtual GPU: Inductor writes C++ for tensors on the CPU."""
        other = copy.copy(self)
        other.virtual, other.type, other.name, other.compiled_for = False, "cpu", "CPU", "cpu"
        return other

    def load(self, name: str) -> Case:
        """Import a case's file with this device active, because the file may query the device.

        name -- as for load_case
        """
        here = virtual_gpu(self.target, execute=self.execute) if self.virtual else contextlib.nullcontext()
        with here, forks_end_here():
            return load_case(name)

    @contextlib.contextmanager
    def active(self) -> Iterator[None]:
        """While active, torch.compile generates Triton kernels that run on this device."""
        with contextlib.ExitStack() as stack:
            stack.enter_context(self.caches())
            if self.virtual:
                stack.enter_context(virtual_gpu(self.target, execute=self.execute))
            # launches by C++ execute no Python, and so no hook; the virtual GPU has no CUDA graphs
            settings = {"cpp_wrapper": False, **({} if self.type == "cuda" else {"triton.cudagraphs": False})}
            stack.enter_context(settings_changed(settings))
            forget_compiled()  # code compiled before, without the hooks, must not be reused
            yield
