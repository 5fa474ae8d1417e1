"""Records launches on the host: their exact accesses, and their reads of uninitialised memory."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from types import FrameType
from typing import Any

import torch

from tracing.launch import hooks
from tracing.launch.hidden_computation import HiddenComputation
from tracing.launch.memory import watching
from tracing.launch.memory.accesses import Accesses
from tracing.launch.memory.out_of_bounds import OutsideAccesses
from tracing.launch.storages import Reach
from tracing.launch.tensors import has_memory
from tracing.operators.effects import Effect
from tracing.program.gpu import gpu_available
from tracing.record.launches.launch_digests import LaunchInFlight
from tracing.record.launches.launch_template import LaunchTemplate, plain_tensor
from tracing.record.memory.exact_accesses import ExactAccesses, WatchedLaunch
from tracing.record.memory.fresh_memory import FreshMemory
from tracing.record.memory.rereads import Rereads
from tracing.record.memory.small_values import small_values
from tracing.record.memory.unwritten_values import Followed, UnwrittenValues
from tracing.record.recording import Recording
from tracing.upstream.patch import Method, replaced
from tracing.upstream.torch.dispatch_modes import dispatch_disabled
from tracing.upstream.triton.knobs import triton_interprets


def _interprets() -> bool:
    # whether launches are executed by the interpreter, or may be
    return not gpu_available() or bool(triton_interprets())


def _on_host(launch: LaunchInFlight) -> bool:
    return launch.watched is not None or launch.template.site.kind == "cpp"


class HostLaunches:
    """Tracks launches on the host, and the effects of operators on the memory that they use.

    Every call is made under the recording's lock.
    """

    def __init__(
        self, recording: Recording, *, digests: bool, operators: bool, allow_out_of_bounds: bool
    ) -> None:
        """digests   -- record the accesses of launches; False: only prevent accesses out of bounds
        operators -- operators outside of Triton are observed; False: writes between launches are unknown
        """
        self._recording = recording
        self._digests = digests
        self.interprets = _interprets()  # or launches C++
        self.follows_memory = digests and operators and self.interprets
        self._fresh = FreshMemory(recording.catalogue.not_covered)
        self._rereads = Rereads(recording.catalogue.not_covered)
        self._values = UnwrittenValues(recording, self._fresh)
        self._exact = ExactAccesses(
            recording, self._fresh, self._values, allow_out_of_bounds=allow_out_of_bounds
        )

    @property
    def outside(self) -> list[tuple[str, OutsideAccesses]]:
        """Accesses outside of arguments, as `ExactAccesses.outside`."""
        return self._exact.outside

    @contextmanager
    def installed(self) -> Iterator[None]:
        """While active, memory that is shared with code outside of torch is noticed."""
        if not self.follows_memory:
            yield
            return
        with ExitStack() as stack:
            for name in ("numpy", "__dlpack__", "__reduce_ex__", "tolist", "__repr__"):
                stack.enter_context(replaced(torch.Tensor, name, self._noticing(name)))
            yield

    def _noticing(self, name: str) -> Method:
        original: Method = getattr(torch.Tensor, name)

        @functools.wraps(original)
        def called(tensor: torch.Tensor, *args: Any, **kwargs: Any) -> Any:
            shown = hooks.shown() and (self._fresh or self._values)
            if shown and has_memory(tensor) and tensor.layout is torch.strided:
                with self._recording.lock, HiddenComputation():
                    self._leaves(name, tensor, sys._getframe(1))
            return original(tensor, *args, **kwargs)

        return called

    def _leaves(self, name: str, tensor: torch.Tensor, frame: FrameType) -> None:
        if name in ("tolist", "__repr__"):
            if name == "tolist" or not tensor.dim():  # others print a part of their elements, by `tolist`
                self._values.listed(f"Tensor.{name}", tensor, frame)
            return
        self._values.shared(f"Tensor.{name}", tensor, frame)
        self._fresh.shared(tensor)

    @property
    def follows_values(self) -> bool:
        """True if operators may read what nothing wrote."""
        return self.follows_memory and bool(self._fresh or self._values)

    def reading(
        self, effect: Effect, args: Sequence[Any], kwargs: Mapping[str, Any], frame: FrameType | None
    ) -> Followed | None:
        """An operator is about to run; the result is for `computed`."""
        with self._recording.lock, hooks.hidden():
            return self._values.before(effect, args, kwargs, frame)

    def computed(self, followed: Followed, written: Sequence[torch.Tensor]) -> None:
        """An operator that `reading` announced has written these tensors."""
        self._values.after(followed, written)

    def operator(self, effect: Effect, tensors: Sequence[torch.Tensor], held: int) -> None:
        """An operator wrote or allocated these tensors.

        held -- bytes that a resized storage had before
        """
        nothing_known = not (
            self._fresh or self._values or self._rereads or effect.allocates or effect.resizes
        )
        if nothing_known or not self.follows_memory:
            return
        on_host = [tensor for tensor in tensors if tensor.is_cpu]
        self._rereads.overwritten(on_host)
        if effect.resizes:
            for tensor in on_host:
                self._fresh.grown(tensor, held)
        elif effect.allocates:
            for tensor in on_host:
                self._fresh.allocated(tensor)
        else:
            self._fresh.wrote(on_host)
            self._values.wrote(on_host)

    def unwritten(self, tensor: torch.Tensor) -> tuple[int, int] | None:
        """The elements of a tensor without a recorded write: the first, and how many."""
        plain = tensor.is_cpu and tensor.layout is torch.strided and has_memory(tensor)
        return self._fresh.elements(tensor) if plain and self.follows_memory else None

    def pass_over(self, index: int, template: LaunchTemplate, values: Sequence[Any]) -> None:
        """A launch is about to be made that is not recorded; its effects on memory are tracked."""
        watched = self._watch(index, template, values, lambda: None)
        if watched is None:
            self._rereads.overwritten([plain_tensor(values[i]) for i in template.positions])
        else:
            ended = functools.partial(self._left_unrecorded, watched)
            watched.accesses.ended.append(ended)

    def before(self, launch: LaunchInFlight, failing: Callable[[], None]) -> None:
        """A launch is about to be made.

        failing -- called when it is about to access memory outside of every storage
        """
        template = launch.template
        launch.watched = self._watch(launch.index, template, launch.values, failing)
        if self._digests and _on_host(launch):
            known = template.signature is not None  # otherwise its reads are known after it has run
            read = launch.tensors(template.reads if known else range(len(template.positions)))
            with hooks.hidden(), dispatch_disabled():
                if self.follows_memory:
                    launch.rereads = self._rereads.read(launch.index, read)
                launch.small = small_values(launch.index, "before", read)
            if known:
                self._recording.writer.extend(launch.rereads)
                launch.rereads = ()
            if launch.watched is not None:
                launch.watched.accesses.ended.append(functools.partial(self._left, launch.watched))

    def after(self, launch: LaunchInFlight) -> None:
        """Called after the launch has run."""
        if not (self._digests and _on_host(launch)):
            return
        watched, template = launch.watched, launch.template
        if watched is not None and watched.ran:
            with hooks.hidden(), dispatch_disabled():
                self._exact.write(watched, launch.found, launch.left)
            read, written = watched.touched("load"), watched.touched("store")
        else:
            read, written = launch.tensors(template.reads), launch.tensors(template.writes)
            self._wrote([tensor for _, tensor in written])
            self._rereads.wrote(launch.index, written)
        positions = {position for position, _ in read}
        with hooks.hidden(), dispatch_disabled():
            small = small_values(launch.index, "after", written)
        before = [one for one in launch.small if one.position in positions]
        self._recording.writer.extend([one for one in launch.rereads if one.position in positions])
        self._recording.writer.extend(before + small)

    def _watch(
        self, index: int, template: LaunchTemplate, values: Sequence[Any], failing: Callable[[], None]
    ) -> WatchedLaunch | None:
        site = template.site
        tensors = {site.names[i]: plain_tensor(values[i]) for i in template.positions}
        if not all(tensor.is_cpu for tensor in tensors.values()):
            if site.kind == "interpreted":
                what = f"what {site.name} touches exactly: TRITON_INTERPRET works on copies of its tensors"
                self._recording.catalogue.not_covered(what, "tensors on the CPU")
            return None
        if site.kind == "cpp":
            self._wrote([plain_tensor(values[template.positions[i]]) for i in template.writes])
            return None
        accesses = site.accesses
        if accesses is None:
            accesses = Accesses(site.name, tensors)
            watching.watch(accesses)
        positions = dict(zip(tensors, template.positions, strict=True))
        watched = WatchedLaunch(index, accesses, tensors, positions)
        self._exact.watch(watched, self._reach(template, values), failing)
        return watched

    def _wrote(self, tensors: Sequence[torch.Tensor]) -> None:
        self._fresh.wrote(tensors)
        self._values.wrote(tensors)

    def _reach(self, template: LaunchTemplate, values: Sequence[Any]) -> Reach | None:
        catalogue, storages = self._recording.catalogue, self._recording.storages
        interpreted = template.site.kind == "interpreted"
        follows = any(map(catalogue.points, values)) if interpreted else template.addresses
        return storages.reach() if follows else None

    def _left(self, watched: WatchedLaunch) -> None:
        with self._recording.lock:
            self._lost(watched)
            self._rereads.wrote(watched.launch, watched.touched("store"))

    def _left_unrecorded(self, watched: WatchedLaunch) -> None:
        with self._recording.lock:
            self._lost(watched)
            self._rereads.overwritten([tensor for _, tensor in watched.touched("store")])

    def _lost(self, watched: WatchedLaunch) -> None:
        # it wrote outside of its arguments, or through addresses
        for block in watched.accesses.blocks:
            if not block.arguments:
                self._rereads.lost(block.start, block.stop)
        for outside in watched.accesses.outside:
            if outside.kind == "store":
                self._rereads.lost(outside.start, outside.stop)
