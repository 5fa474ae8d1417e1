"""Every launch of a run: what was launched on what, and the digests of what it found and left.

On a GPU digests are computed behind the launch on its own stream and arrive later, in batches; lines are
written in launch order all the same. Nothing waits for the device before the end.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import takewhile
from operator import and_
from typing import Any, Literal, TypeAlias

import torch

from tracing.digests import Columns, Digested, packed
from tracing.model import Digest, LaunchLine
from tracing.record import coverage, cpp, hooks
from tracing.record.catalogue import Catalogue
from tracing.record.digest import digest
from tracing.record.digest_gpu import Batch, Call, Rows, StreamDigests, calls, tables
from tracing.record.landmarks import Landmarks
from tracing.record.operators import OperatorWrites
from tracing.record.outputs import Keep, OutputKeeper
from tracing.record.plans import Digests, Place, Plan, Planner, Side, plain_tensor
from tracing.record.selection import EVERYTHING, Selection
from tracing.record.sites import Grid, Site
from tracing.record.timing import LaunchTimes
from tracing.record.user_hash import HashFn, UserHashes
from tracing.store import RunWriter

_FAILED = 1 << 16  # launches that wait for the digests of one before them: that one failed
_LINES = 256  # launches on a GPU whose lines are held back at most


@dataclass(slots=True)
class _Token:
    # a launch between its two hooks
    index: int
    plan: Plan
    values: Sequence[Any]
    addresses: tuple[int, ...]
    place: Place
    stream: int
    before: Side
    writers: dict[int, str]
    found: Mapping[int, Digest] | None = None
    batch: Batch | None = None
    slot: int = 0  # first of the launch in the batch


_Held: TypeAlias = tuple[int, Plan, int, Place, Mapping[int, str]]


class LaunchRecorder:
    """While entered, every launch in this process that can be seen is written to a run."""

    def __init__(
        self,
        writer: RunWriter,
        digests: Digests = "all",
        *,
        operators: bool = True,
        selection: Selection = EVERYTHING,
        keep: Keep | None = None,
        time: bool = False,
        hash_fn: HashFn | None = None,
    ) -> None:
        """Record into `writer`.

        digests   -- "all": every tensor argument before a launch, and what it may write after it; "declared":
                     what the kernel's IR reads before and writes after; "none": no work on the device at all
        operators -- note which operator outside of Triton wrote a buffer last; 5 to 9 µs an operator
        selection -- which launches
        keep      -- keep what each launch wrote, under a budget; None: nothing
        time      -- how long each launch takes, on the host and on a GPU
        hash_fn   -- tensor -> number, string, bool or None; called where digests are taken, or would be, and
                     recorded beside them. Should it fail, the program goes on, and `hash_failure` says so
        """
        self.count = 0  # launches seen
        self.recorded = 0  # of these
        self._writer = writer
        self._catalogue = Catalogue(writer)
        self._digests = digests
        self._operators = operators
        self._selection = selection
        self._keep = keep
        self._keeper = OutputKeeper(
            writer, self._catalogue.not_covered, memory=keep.memory, disk=keep.disk, spill=keep.spill
        ) if keep else None  # fmt: skip
        self._times = LaunchTimes(writer) if time else None
        self._hashes = UserHashes(writer, hash_fn, self._catalogue.not_covered) if hash_fn else None
        self._lock = threading.RLock()  # CUDA's backward launches from autograd's own threads
        self._planner = Planner(self._catalogue, digests)
        self._streams: dict[tuple[torch.device, int], StreamDigests] = {}
        self._held: list[_Held] = []  # launches whose lines are not written yet
        self._ready: dict[int, Digested] = {}
        self._waiting: deque[int] = deque()  # launches whose digest lines are to be written, in this order
        self._last: dict[int, str] = {}  # by storage: the operator that wrote it after any launch
        self._beside = any(part is not None for part in (self._keeper, self._times, self._hashes))
        self._exit = ExitStack()

    @property
    def hash_failure(self) -> str:
        """How and where hash_fn failed first; empty if it did not."""
        return self._hashes.failure if self._hashes is not None else ""

    def __enter__(self) -> LaunchRecorder:
        with ExitStack() as stack:
            stack.callback(self._finish)
            stack.enter_context(hooks.installed(self))
            stack.enter_context(cpp.installed(self))
            stack.enter_context(coverage.watched(self._catalogue.not_covered))
            if self._operators:
                landmarks = Landmarks(
                    self._writer, self._catalogue, lambda: self.count, self._digests != "none"
                )
                stack.enter_context(landmarks.installed())
                stack.enter_context(OperatorWrites(self._wrote, landmarks))
            self._exit = stack.pop_all()
        return self

    def __exit__(self, *exception: object) -> None:
        self._exit.close()

    def _finish(self) -> None:
        with self._lock, hooks.hidden():
            for stream in self._streams.values():
                stream.drain()
            self._held = [held for held in self._held if held[1].signature is not None]
            self._flush()
            if self._keeper is not None:
                self._keeper.close()
            for beside in (self._times, self._hashes):
                if beside is not None:
                    beside.close()
            # a launch that failed has no digests; those behind it wait for nothing more
            self._writer.extend(list(packed([self._ready[index] for index in sorted(self._ready)])))
            self._ready.clear()

    def before(self, site: Site, values: Sequence[Any], stream: int, grid: Grid | None) -> _Token | None:
        """Note a launch and take the digests of what it finds."""
        with self._lock:
            plan = self._planner.plan(site, values, grid)
            if plan.wrapped:
                addresses = tuple([plain_tensor(values[i]).data_ptr() for i in plan.positions])
            else:
                addresses = tuple([values[i].data_ptr() for i in plan.positions])
            place = plan.places.get(addresses) or self._planner.place(plan, addresses)
            index = self.count
            self.count += 1
            writers = self._writers(plan, addresses)
            if self._selection is not EVERYTHING and not self._selection.wants(index, site.name, plan.phase):
                return None
            self.recorded += 1
            if len(self._held) >= _LINES:
                self._flush()
            self._held.append((index, plan, stream, place, writers))
            if self._digests != "none":
                self._waiting.append(index)
            elif plan.device is not None and plan.signature is not None and not self._beside:
                return None
            if self._hashes is not None:
                self._hashes.before(index, plan.before.positions, values, stream)
            token = _Token(index, plan, values, addresses, place, stream, plan.before, writers)
            if (
                self._keep is not None and self._keep.inputs
            ):  # of a first launch all: what it reads is not known
                self._kept(
                    token, "before", plan.reads if plan.signature is not None else range(len(addresses))
                )
            if plan.device is None:
                self._host_before(token)
            elif self._digests != "none":
                self._gpu_before(token)
            if self._times is not None:
                self._times.start(index, plan.device, stream)
            return token

    def after(self, token: _Token | None) -> None:
        """Take the digests of what the launch left."""
        if token is None:
            return
        if self._times is not None:
            self._times.stop(token.index)
        with self._lock:
            plan = token.plan
            if plan.signature is None:  # by now an autotuner has chosen, an interpreted kernel has run
                self._planner.settle(plan, token.values)
                token.place = self._planner.place(plan, token.addresses)
                token.writers.update(self._writers(plan, token.addresses))  # the held line's own
            if self._hashes is not None:
                self._hashes.after(token.index, plan.after.positions, token.values)
            self._kept(token, "after", plan.writes)
            if plan.device is None:
                self._host_after(token)
            elif self._digests != "none":
                self._gpu_after(token)

    def _kept(self, token: _Token, side: Literal["before", "after"], chosen: Sequence[int]) -> None:
        if self._keeper is not None:
            for position in (token.plan.positions[i] for i in chosen):
                self._keeper.keep(token.index, position, side, plain_tensor(token.values[position]))

    # ---- who wrote what a launch reads

    def _wrote(self, name: str, tensors: Sequence[torch.Tensor]) -> None:
        for tensor in tensors:
            if torch._C._has_storage(tensor):  # sparse ones have none
                self._last[tensor.untyped_storage().data_ptr()] = name

    def _writers(self, plan: Plan, addresses: tuple[int, ...]) -> dict[int, str]:
        # the operators that wrote last what this launch reads; what it writes is its own from now on
        if not self._last:
            return {}
        starts = [address - offset for address, offset in zip(addresses, plan.offsets, strict=True)]
        found = {plan.positions[i]: self._last[starts[i]] for i in plan.reads if starts[i] in self._last}
        for i in plan.writes:
            self._last.pop(starts[i], None)
        return found

    # ---- lines

    def _flush(self) -> None:
        # one without a signature, whose autotuner chooses in another thread, holds back the rest; for long
        # only if it failed
        if len(self._held) >= 4 * _LINES:
            self._held = [held for held in self._held if held[1].signature is not None]
        ready = [held for held in takewhile(lambda held: held[1].signature is not None, self._held)]
        self._writer.extend([self._line(*held) for held in ready])
        del self._held[: len(ready)]

    def _line(
        self, index: int, plan: Plan, stream: int, place: Place, writers: Mapping[int, str]
    ) -> LaunchLine:
        return LaunchLine(index, plan.signature or 0, stream, place.storages, writers)

    def _done(self, launches: Sequence[Digested]) -> None:
        self._ready.update({one.launch: one for one in launches})
        failed = len(self._ready) >= _FAILED
        lines = []
        while self._waiting and (failed or self._waiting[0] in self._ready):
            index = self._waiting.popleft()
            failed = failed and index not in self._ready
            if index in self._ready:
                lines.append(self._ready.pop(index))
        self._writer.extend(list(packed(lines)))

    # ---- digests on the host: at once

    def _host_before(self, token: _Token) -> None:
        if token.plan.signature is not None:
            self._flush()  # on disk before the kernel runs
        token.found = self._on_host(token, token.before)

    def _host_after(self, token: _Token) -> None:
        self._flush()
        if self._digests != "none":
            before, after = token.found or {}, self._on_host(token, token.plan.after)
            columns = Columns.of([*before.values(), *after.values()])
            self._done([Digested(token.index, columns, 0, list(before), list(after))])

    def _on_host(self, token: _Token, side: Side) -> dict[int, Digest]:
        found = {}
        for position in side.positions if self._digests != "none" else ():
            tensor = plain_tensor(token.values[position])
            try:
                with torch._C._DisableTorchDispatch():
                    found[position] = digest(tensor)
            except (RuntimeError, NotImplementedError, TypeError) as error:
                reason = f"{type(tensor).__name__}: {str(error).splitlines()[0]}"
                self._catalogue.not_covered(f"the bits of a tensor argument ({reason})", "none")
        return found

    # ---- digests on a GPU: behind the launch

    def _gpu_before(self, token: _Token) -> None:
        if torch._C._cuda_isCurrentStreamCapturing():
            self._catalogue.not_covered("digests of launches captured into a CUDA graph", coverage.NO_GRAPHS)
            return
        plan = token.plan
        stream = plan.streams.get(token.stream) or self._stream(token)
        # the first launch of an autotuner may turn out to write less than is reserved
        token.batch, token.slot = stream.reserve(len(token.before.positions) + len(plan.after.positions))
        stream.add(token.batch, token.slot, token.place.before or self._copied(stream, token, token.before))

    def _gpu_after(self, token: _Token) -> None:
        before, after = token.before, token.plan.after
        if token.batch is None:
            self._done([Digested(token.index, Columns.of([]), 0, (), ())])
            return
        stream = token.plan.streams[token.stream]
        behind = token.slot + len(before.positions)
        stream.add(token.batch, behind, token.place.after or self._copied(stream, token, after))
        facts = (before.facts, after.facts)
        stream.ended(token.batch, Rows(token.index, token.slot, before.positions, after.positions, facts))

    def _copied(self, stream: StreamDigests, token: _Token, side: Side) -> Sequence[Call]:
        # what cannot be read where it lies is copied; freed in the order of its stream, so behind the digests
        with torch._C._DisableTorchDispatch(), stream.current():
            tensors = [plain_tensor(token.values[position]) for position in side.positions]
            misaligned = any(map(and_, [tensor.data_ptr() for tensor in tensors], side.misaligned))
            for n, position in enumerate(side.positions):
                if position in side.copied:
                    tensors[n] = (
                        tensors[n].resolve_conj().resolve_neg().clone(memory_format=torch.contiguous_format)
                    )
            made = tables(tensors) if misaligned else side.tables
            return calls(made, [tensor.data_ptr() for tensor in tensors])

    def _stream(self, token: _Token) -> StreamDigests:
        device = token.plan.device
        assert device is not None
        known = self._streams.get((device, token.stream))
        if known is None:
            with hooks.hidden(), torch._C._DisableTorchDispatch():
                known = StreamDigests(device, token.stream, self._done)
            self._streams[device, token.stream] = known
        token.plan.streams[token.stream] = known
        return known
