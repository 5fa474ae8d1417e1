"""Records the calls of operators outside of Triton."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from types import FrameType
from typing import Any, Literal, NamedTuple, TypeAlias

import torch

from tracing.launch.hidden_computation import HiddenComputation
from tracing.launch.storages import TouchedMemory, memory_of
from tracing.launch.tensors import has_memory
from tracing.model import Digest, OperatorCall, TensorMeta
from tracing.operators.effects import Effect
from tracing.operators.text import arguments_text
from tracing.record.launches.cuda_graphs import RecordedCudaGraphs
from tracing.record.launches.host_launches import HostLaunches
from tracing.record.memory.unwritten_values import Followed
from tracing.record.operator_digests import Arriving, Captured, OperatorDigestQueue
from tracing.record.operator_inputs import OperatorInputs
from tracing.record.operator_signatures import KnownSignature, OperatorSignatures, call_key
from tracing.record.recording import Recording

OperatorFacts: TypeAlias = Literal["digests", "writers", "none"]
_Tensors: TypeAlias = list[torch.Tensor]
_Sides: TypeAlias = tuple[Arriving | Captured, Arriving | Captured]  # digests before and after an operator

_HELD = 1 << 15  # bytes of lines that are held back: some 300 calls


class _Before(NamedTuple):
    digests: Arriving | Captured | None = None
    followed: Followed | None = None  # what its results depend on
    meta: TensorMeta | None = None  # of what may be resized
    memory: TouchedMemory = ()
    inputs: _Tensors = []  # noqa: RUF012 -- clones of what it reads, if they are kept; never changed


class OperatorCalls:
    """Records each operator with the memory that it read and wrote; a listener of `operators.Operators`.

    Cost: 5 µs an operator of two inputs and one output. Digests add their own cost.
    """

    def __init__(
        self,
        recording: Recording,
        host: HostLaunches,
        captured: RecordedCudaGraphs,
        *,
        digests: OperatorDigestQueue | None,
        inputs: OperatorInputs | None = None,
    ) -> None:
        """host     -- receives the tensors that operators wrote
        captured -- receives operators that a CUDA graph captures
        digests  -- of an operator's inputs before it, and of its outputs after it; None: none are taken
        inputs   -- keeps the inputs of operators with digests; None: they are not kept
        """
        self.captured, self._flight = captured, recording.flight
        self.recording = recording
        self.writers = recording.writers
        self._host = host
        self.digests = digests
        self._inputs = inputs
        self._signatures = OperatorSignatures(recording.writer, recording.catalogue.meta)
        self.held = bytearray()  # lines that are not written yet; the compiled form appends to this object
        self.longest = _HELD
        self.passes_over: Callable[[], bool] = lambda: False

    @property
    def compiles(self) -> bool:
        """True if the compiled form of this class may record operators that it knows."""
        kept = self.digests is not None and self._inputs is not None
        watched = self.digests is not None and self._flight.watch is not None
        return not (kept or watched or self._host.follows_memory)

    @property
    def partial(self) -> bool:
        """True if only some steps are written."""
        return self._flight.partial

    @property
    def paused(self) -> bool:
        """True if the current step is not written."""
        return self._flight.paused

    def looks_before(self, effect: Effect) -> bool:
        """True if `before` must be called for an operator."""
        return effect.resizes or (not effect.allocates and (self._takes_digests or self._host.follows_values))

    @property
    def _takes_digests(self) -> bool:
        # a step that is not written may capture a graph which a later step replays
        return self.digests is not None and (not self._flight.paused or self.captured.open)

    def before(self, effect: Effect, args: Sequence[Any], kwargs: Mapping[str, Any]) -> _Before | None:
        """Collect the facts that are available only before an operator runs."""
        if effect.resizes:
            known = self._usable([args[0]])
            return (
                _Before(None, None, self.recording.catalogue.meta(args[0]), memory_of(known))
                if known
                else None
            )
        if effect.allocates:
            return None
        followed = None
        if self._host.follows_values:
            followed = self._host.reading(effect, args, kwargs, sys._getframe(3))
        if not self._takes_digests:
            return _Before(followed=followed) if followed is not None else None
        reads = self._usable(effect.read(args, kwargs))
        inputs = self._inputs.cloned(effect, reads, self.recording.launches) if self._inputs else []
        with self.recording.lock:
            return _Before(self._digests_of(effect, reads), followed, inputs=inputs)

    def _digests_of(self, effect: Effect, tensors: _Tensors) -> Arriving | Captured:
        assert self.digests is not None
        graph = self.captured.capturing()
        if graph is None or graph.operator_digests is None:
            return self.digests.take(effect, tensors)
        return self.digests.capture(effect, tensors, graph.operator_digests)

    def after(
        self,
        effect: Effect,
        args: Sequence[Any],
        kwargs: Mapping[str, Any],
        result: Any,
        before: _Before | None,
    ) -> None:
        """Record an operator that has run."""
        frame = sys._getframe(3)  # the caller of the operator, outside of the dispatch mode
        if effect.resizes:
            if before is not None:
                self._resized(effect, args, kwargs, before, frame)
            return
        reads, writes = effect.read(args, kwargs), effect.written(args, kwargs, result)
        if not writes:
            return
        identity = call_key(effect, args, kwargs, reads, writes)
        if identity is None:
            reads, writes = self._usable(reads), self._usable(writes)
            identity = call_key(effect, args, kwargs, reads, writes, usable=True)
            if identity is None and writes:
                self._left_out()
        if identity is None or not writes:
            return
        key, memory = identity
        with self.recording.lock:
            digests = before.digests if before is not None else None
            sides = (digests, self._digests_of(effect, writes)) if digests is not None else None
            known = self._signatures.known(key)
            if known is None:
                known = self._signatures.learn(key, effect, args, kwargs, reads, writes)
            text = known.arguments(effect, args, kwargs)
            if before is not None and before.inputs and self._inputs is not None:
                self._inputs.keep(self.recording.operators, before.inputs)
            self._append(effect, known, memory, reads, writes, frame, text=text, sides=sides)
            if before is not None and before.followed is not None:
                self._host.computed(before.followed, effect.written(args, kwargs, result))

    def executed(
        self,
        effect: Effect,
        text: str,
        reads: _Tensors,
        writes: _Tensors,
        before: Arriving | None,
        after: Arriving | None,
    ) -> tuple[KnownSignature, tuple[TensorMeta, ...]] | None:
        """Record an operator that the compiled form has run, and whose signature is new.

        before -- the digests of what it read; None: it has no digests
        after  -- those of what it wrote; None: they are not taken yet

        Returns the signature, and the layouts of what it wrote. None: later calls may have another.
        """
        frame = sys._getframe().f_back  # None on a thread of autograd
        with HiddenComputation():
            usable = self._usable(reads), self._usable(writes)
            identity = call_key(effect, (), {}, *usable, usable=True)
            if identity is None:
                self._left_out()
            if identity is None or not usable[1]:
                return None
            with self.recording.lock:
                if before is not None and after is None and self.digests is not None:
                    after = self.digests.take(effect, usable[1])
                metas = [tuple(map(self.recording.catalogue.meta, tensors)) for tensors in usable]
                known = self._signatures.of(effect, text, *metas)
                sides = (before, after) if before is not None and after is not None else None
                self._append(effect, known, identity[1], *usable, frame, sides=sides)
        return (known, metas[1]) if usable == (reads, writes) else None

    def refreshed(self, known: KnownSignature) -> int:
        """The number of a signature whose record is in the current segment of the run."""
        self._signatures.refresh(known)
        return known.number

    def flush_hidden(self) -> None:
        """Write buffered lines in the middle of a program."""
        with HiddenComputation():
            self.flush()

    def flush(self) -> None:
        """Write buffered lines."""
        if self.held:
            self.recording.writer.make_room()  # may call this method
            text = bytes(self.held)
            self.held.clear()
            self.recording.writer.append_text(OperatorCall, text)

    def close(self) -> None:
        """Wait for all digests, and write everything."""
        self.flush()
        if self.digests is not None:
            self.digests.close()

    def _expect(self, effect: Effect, sides: _Sides | None, numbers: list[int | None]) -> None:
        # numbers: by row of the graph that the operator is part of
        if sides is None or self.digests is None or self._flight.paused:
            return
        queue = self.digests
        before, after = (
            queue.replayed(side, numbers) if isinstance(side, Captured) else side for side in sides
        )
        queue.expect(self.recording.operators, before, after, self._watched(effect))

    def _watched(self, effect: Effect) -> Callable[[Sequence[Digest]], None] | None:
        # receives what the operator wrote, when that has arrived
        watch = self._flight.watch
        return partial(watch.operator, effect.name, self.recording.launches) if watch is not None else None

    def hand_over(self, *, wait: bool) -> None:
        """Let the digests so far arrive soon; wait: first wait for those of earlier calls."""
        if self.digests is not None:
            self.digests.streams.hand_over(wait=wait)

    def _append(
        self,
        effect: Effect,
        known: KnownSignature,
        memory: TouchedMemory,
        reads: _Tensors,
        writes: _Tensors,
        frame: FrameType | None,
        *,
        text: str = "",
        held: int = 0,
        sides: _Sides | None = None,
    ) -> None:
        recording = self.recording
        site, thread = recording.sites.of(frame), recording.thread.number
        call = partial(self._called, effect, known, memory, site, thread, text, sides)
        if (graph := self.captured.captures([*reads, *writes])) is not None:
            graph.events.append(call)
            return
        call([])
        self._host.operator(effect, writes, held)

    def _called(
        self,
        effect: Effect,
        known: KnownSignature,
        memory: TouchedMemory,
        site: int,
        thread: int,
        text: str,
        sides: _Sides | None,
        numbers: list[int | None],
    ) -> None:
        self._expect(effect, sides, numbers)
        recording = self.recording
        self._signatures.refresh(known)
        storages = recording.storages.numbers(memory)
        number = recording.operators
        # first: after Ctrl-C in between a number is missing, and none is there twice
        recording.operators += 1
        if not self._flight.paused:
            call = OperatorCall(number, recording.launches, known.number, storages, site, thread, text)
            self.held += recording.writer.encoded(call) + b"\n"
        if len(self.held) >= self.longest:
            self.flush()
        written = storages[len(known.signature.reads) :]
        if effect.allocates:
            self.writers.allocated(written)
        elif not effect.resizes:
            self.writers.wrote(effect.name, known.signature.writes, written)

    def _resized(
        self,
        effect: Effect,
        args: Sequence[Any],
        kwargs: Mapping[str, Any],
        before: _Before,
        frame: FrameType,
    ) -> None:
        # the old content stays; the rest of a storage that grew is uninitialised
        memory, old = memory_of(args[:1]), before.meta
        if old is not None and memory[2] > before.memory[2]:
            text = arguments_text(effect, args, kwargs)
            with self.recording.lock:
                known = self._signatures.of(effect, text, [old], [self.recording.catalogue.meta(args[0])])
                self._append(
                    effect, known, (*before.memory, *memory), [], [args[0]], frame, held=before.memory[2]
                )

    def _usable(self, tensors: _Tensors) -> _Tensors:
        with_memory = [tensor for tensor in tensors if has_memory(tensor)]
        strided = [tensor for tensor in with_memory if tensor.layout is torch.strided]
        if len(strided) < len(with_memory):
            self._left_out()
        return strided

    def _left_out(self) -> None:
        what = "tensors that are not strided, as sparse ones, where operators read and write them"
        self.recording.catalogue.not_covered(what, "dense tensors")
