"""Deliberately change conditions that no correct program depends on, so that hidden faults show.

The run records each change, and the reason for each change that was not possible.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any, Literal, TypeAlias

import torch

from tracing.interpreter import permuted, undefined_loads
from tracing.model import Perturbed
from tracing.perturb.autotuner_times import OtherWinners
from tracing.perturb.delays import Delays
from tracing.store import RunWriter
from tracing.upstream.inductor.code import allocators_replaced
from tracing.upstream.torch.dispatch_modes import OperatorMode, dispatch_disabled

# the bytes of undefined values: zeros, NaN in every floating dtype, large numbers, small ones
PATTERNS = (0x00, 0xFF, 0x7B, 0x01)
InTurn: TypeAlias = Literal["memory", "winners", "hash seed"]
_IN_TURN: tuple[InTurn, ...] = ("memory", "winners", "hash seed")
_EMPTY = {
    torch.ops.aten.empty.memory_format,
    torch.ops.aten.empty_strided.default,
    torch.ops.aten.empty_like.default,
    torch.ops.aten.new_empty.default,
    torch.ops.aten.new_empty_strided.default,
}
_ALLOCATORS = ("empty_strided_cpu", "empty_strided_cuda", "empty_strided_xpu")


def changed_in_turn(run: int) -> InTurn | None:
    """The condition that this run of a series changes, and that the runs next to it do not; None: run 0."""
    return _IN_TURN[(run - 1) % len(_IN_TURN)] if run else None


class Perturbation:
    """A context manager for one run of a series; it returns a second one for the launches that matter.

    In each run launches are delayed and, without a GPU, the programs of a launch reordered. If run 0 used
    several streams, each later run delays another one of them. Of the other conditions, a run changes one:
    undefined values (uninitialised memory, and in the interpreter what a load without `other` gives where
    its mask is false), the winners of autotuning (the slowest or a random configuration,
    in turn), or the seed of Python's string hashes, which the process of the run has from its start. So the
    runs that differ show which of these three explains the difference.
    """

    def __init__(
        self, run: int, virtual: bool, streams: int, writer: RunWriter, hash_seed: int | None = 0
    ) -> None:
        """The changes for one run.

        run       -- the number of the run in the series; run 0 is not perturbed
        virtual   -- True on the virtual GPU, which executes launches one after another
        streams   -- the number of streams that run 0 used
        writer    -- receives a record of each change
        hash_seed -- of Python's string hashes; 0: that of run 0; None: the user fixed it
        """
        self._run, self._virtual, self._writer, self._hash_seed = run, virtual, writer, hash_seed
        turn, nth = changed_in_turn(run), max(0, run - 1) // len(_IN_TURN)
        self._held = (run - 1) % streams if run and streams > 1 else None
        self._delays = Delays(run or None, self._held)
        other = OtherWinners("random" if nth % 2 else "slowest", run)
        self._winners = other if turn == "winners" else None
        self._pattern = PATTERNS[1 + nth % 3] if turn == "memory" else PATTERNS[0]
        self._exit = contextlib.ExitStack()

    @property
    def streams(self) -> int:
        """The number of streams that the run has used."""
        return len(self._delays.streams)

    def __enter__(self) -> contextlib.AbstractContextManager[object]:
        with contextlib.ExitStack() as stack:
            if self._run:
                stack.callback(lambda: self._writer.extend(list(self._changes())))
            # before generated code is loaded: it copies the allocators into its globals
            stack.enter_context(allocators_replaced(_ALLOCATORS, lambda name: self._poisoning))
            stack.enter_context(_Poison(self._fill))
            stack.enter_context(undefined_loads(self._pattern))
            if self._run:
                stack.enter_context(permuted(self._run))
            self._exit = stack.pop_all()
        return _launching(self._delays, self._winners)

    def __exit__(self, *exception: object) -> None:
        self._exit.close()

    def _changes(self) -> Iterator[Perturbed]:
        if self._pattern != PATTERNS[0]:
            yield Perturbed("memory", f"{self._pattern:#04x}")
        if self._hash_seed is None:
            yield Perturbed("hash seed", "", "PYTHONHASHSEED is set")
        elif self._hash_seed:
            yield Perturbed("hash seed", str(self._hash_seed))
        if (winners := self._winners) is not None:
            kernels = f"{len(winners.tuned)} kernel{'' if len(winners.tuned) == 1 else 's'}"
            how = f"{winners.choice}, {kernels}" if winners.tuned else ""
            yield Perturbed("winners", how, "" if how else "no kernel was tuned")
        counts = self._delays.counts
        if self._virtual:
            yield Perturbed("programs", f"shuffled, seed {self._run}")
            yield Perturbed("late stream", "", "the virtual GPU makes one launch after the other")
        else:
            yield Perturbed("programs", "", "a GPU has its own order")
            stream = f"stream {self._held}, {counts['stream']}x" if self._held is not None else ""
            yield Perturbed("late stream", stream, "" if stream else "the case uses one stream")
        yield Perturbed("delays", str(counts["launch"]))

    def _poisoning(self, allocate: Callable[..., torch.Tensor]) -> Callable[..., torch.Tensor]:
        def poisoned(*args: Any) -> torch.Tensor:
            return self._fill(allocate(*args))

        return poisoned

    def _fill(self, tensor: torch.Tensor) -> torch.Tensor:
        # the whole storage, gaps between strides too; no operator of the program wrote this
        with dispatch_disabled():
            if tensor.device.type != "meta" and tensor.untyped_storage().nbytes():
                torch.empty(0, dtype=torch.uint8, device=tensor.device).set_(tensor.untyped_storage()).fill_(
                    self._pattern
                )
        return tensor


@contextlib.contextmanager
def _launching(delays: Delays, winners: OtherWinners | None) -> Iterator[None]:
    with winners.active() if winners else contextlib.nullcontext(), delays:
        yield


class _Poison(OperatorMode):
    def __init__(self, fill: Callable[[torch.Tensor], torch.Tensor]) -> None:
        super().__init__()  # type: ignore[no-untyped-call, unused-ignore]
        self._fill = fill

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        made = func(*args, **(kwargs or {}))
        if func in _EMPTY and type(made) is torch.Tensor:
            self._fill(made)
        return made
