"""What is known of launches on the host alone: their exact accesses, and memory that nobody has written."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from typing import Any

import torch
import triton

from tracing.record import hooks
from tracing.record.accesses import Accesses
from tracing.record.exact_accesses import ExactAccesses, Watched
from tracing.record.fresh_memory import FreshMemory
from tracing.record.launch_digests import Launch
from tracing.record.operator_effects import Effect
from tracing.record.plans import Plan, plain_tensor
from tracing.record.recording import Recording
from tracing.record.storages import Reach
from tracing.record.tensors import has_memory

_ON_GPU = "tensors on the CPU"


def _interprets() -> bool:
    # whether launches are executed by the interpreter, or may be
    return not torch.cuda.is_available() or bool(triton.knobs.runtime.interpret)


class HostLaunches:
    """Follows launches on the host, and what operators do to the memory that they use."""

    def __init__(self, recording: Recording, *, digests: bool, allow_out_of_bounds: bool) -> None:
        """digests -- write down the digests of what is touched"""
        self._recording = recording
        self._digests = digests
        self._follows_operators = digests and _interprets()
        self._fresh = FreshMemory(recording.catalogue.not_covered)
        self._exact = ExactAccesses(recording.writer, self._fresh, allow_out_of_bounds=allow_out_of_bounds)

    @contextmanager
    def installed(self) -> Iterator[None]:
        """While active, memory that leaves torch is noticed."""
        with self._fresh.shared() if self._follows_operators else nullcontext():
            yield

    def operator(self, effect: Effect, tensors: Sequence[torch.Tensor], held: int) -> None:
        """An operator wrote or allocated these tensors.

        held -- bytes that a resized storage had before
        """
        if not self._follows_operators:
            return
        on_host = [tensor for tensor in tensors if tensor.is_cpu]
        if effect.resizes:
            for tensor in on_host:
                self._fresh.grown(tensor, held)
        elif effect.allocates:
            for tensor in on_host:
                self._fresh.allocated(tensor)
        else:
            self._fresh.wrote(on_host)

    def unwritten(self, tensor: torch.Tensor) -> tuple[int, int] | None:
        """The elements of a tensor that nobody was seen to write: the first, and how many."""
        plain = tensor.is_cpu and tensor.layout is torch.strided and has_memory(tensor)
        return self._fresh.elements(tensor) if plain and self._follows_operators else None

    def before(
        self, index: int, plan: Plan, values: Sequence[Any], failing: Callable[[], None]
    ) -> Watched | None:
        """A launch is about to be made; None: nothing is noted of it.

        failing -- called when it is about to access memory outside of every storage
        """
        site = plan.site
        tensors = {site.names[i]: plain_tensor(values[i]) for i in plan.positions}
        if not all(tensor.is_cpu for tensor in tensors.values()):
            if site.kind == "interpreted":
                what = f"what {site.name} touches exactly: TRITON_INTERPRET works on copies of its tensors"
                self._recording.catalogue.not_covered(what, _ON_GPU)
            return None
        if site.kind == "cpp":
            self._fresh.wrote([plain_tensor(values[plan.positions[i]]) for i in plan.writes])
            return None
        accesses = site.accesses
        if accesses is None:
            accesses = Accesses(site.name, tensors)
            hooks.watch(accesses)
        positions = dict(zip(tensors, plan.positions, strict=True))
        return self._exact.watch(index, accesses, tensors, positions, self._reach(plan, values), failing)

    def after(self, launch: Launch) -> None:
        """It has run."""
        watched = launch.watched
        if watched is not None and watched.ran and self._digests:
            self._exact.write(watched, launch.found, launch.left)

    def _reach(self, plan: Plan, values: Sequence[Any]) -> Reach | None:
        catalogue, storages = self._recording.catalogue, self._recording.storages
        interpreted = plan.site.kind == "interpreted"
        follows = any(map(catalogue.points, values)) if interpreted else plan.addresses
        return storages.reach() if follows else None
