"""Joins the records of one launch, or of one operator call, into one record."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Generic, TypeVar

from tracing.digest.columns import Row
from tracing.model import (
    CallSite,
    Digest,
    DigestLine,
    Kernel,
    KernelArg,
    KernelLaunch,
    LaunchLine,
    LaunchTime,
    Operator,
    OperatorCall,
    OperatorDigests,
    OperatorSignature,
    OperatorTensor,
    ProgramStep,
    Signature,
    TensorMeta,
    UserHash,
)
from tracing.store.run_files import damaged

L = TypeVar("L")
T = TypeVar("T", bound=LaunchTime | UserHash)


class LaunchJoiner:
    """Joins launches of one process with all records about them.

    Memory does not grow with the launches. Launches in launch order cost one pass over the recorded times
    and hashes; going back to an earlier launch costs another pass.
    """

    def __init__(
        self,
        path: Path,
        signatures: Mapping[int, tuple[Kernel, Signature]],
        sites: Mapping[int, CallSite],
        times: Callable[[], Iterator[LaunchTime]],
        hashes: Callable[[], Iterator[UserHash]],
        digested: bool,
        steps: Sequence[ProgramStep] = (),
    ) -> None:
        """Join launches of one process of the run at `path`.

        times, hashes -- read these records of the process from the beginning, in launch order
        digested      -- whether the run has digests: a launch that lacks them did not finish
        steps         -- the ends of steps of the program in this process, in order; not of all of them if
                         some steps are missing in the run
        """
        self._path, self._signatures, self._sites, self._digested = path, signatures, sites, digested
        self._steps = steps
        self._ends = [one.launches for one in steps]
        self._times, self._hashes = _ByLaunch(times), _ByLaunch(hashes)

    def launch(self, row: Row) -> KernelLaunch:
        """The launch of a row of the same process; raises Problem where the run is damaged."""
        line = row.line
        if line.signature not in self._signatures:
            raise damaged(self._path, f"launch {line.index} has no signature {line.signature}")
        kernel, signature = self._signatures[line.signature]
        try:
            digests = row.digests()
        except (ValueError, IndexError) as error:
            raise damaged(self._path, f"digests of launch {line.index}: {error}") from None
        return KernelLaunch(
            line.index,
            kernel,
            signature.grid,
            line.stream,
            signature.device,
            signature.phase,
            _arguments(signature, line, digests),
            digests is not None or not self._digested,
            self._times(line.index),
            self._hashes(line.index),
            self._sites.get(line.site),
            line.thread,
            self._step(line.index),
        )

    def _step(self, launch: int) -> tuple[int, int] | None:
        if not self._ends:
            return None
        ended = bisect_right(self._ends, launch)
        if not ended:
            return self._steps[0].index, launch
        last = self._steps[ended - 1]
        return last.index + 1, launch - last.launches


def _arguments(signature: Signature, line: LaunchLine, digests: DigestLine | None) -> tuple[KernelArg, ...]:
    # a tensor that has a digest from before the launch only was not changed by the launch
    storages = iter(line.storages)
    before = digests.before if digests else {}
    after = digests.after if digests else {}
    return tuple(
        KernelArg(
            argument.name,
            argument.declared,
            argument.tensor,
            next(storages, None) if argument.tensor else None,
            argument.value,
            before.get(position),
            after.get(position, before.get(position)),
            line.writers.get(position),
            argument.addresses,
            argument.descriptor,
        )
        for position, argument in enumerate(signature.args)
    )


class _ByLaunch(Generic[T]):
    # looks records up by launch, in one pass as long as the numbers of the launches grow

    def __init__(self, read: Callable[[], Iterator[T]]) -> None:
        self._read: Callable[[], Iterator[T]] = read
        self._last = -1
        self._find: Callable[[int], T | None] | None = None

    def __call__(self, launch: int) -> T | None:
        if self._find is None or launch < self._last:
            self._find = in_step(self._read(), _launch)
        self._last = launch
        return self._find(launch)


def _launch(line: LaunchTime | UserHash) -> int:
    return line.launch


def join_operator(
    signature: OperatorSignature,
    call: OperatorCall,
    digests: OperatorDigests | None,
    site: CallSite | None,
    steps: Sequence[ProgramStep],
) -> Operator:
    """One call of an operator; raises ValueError if its parts do not fit each other."""
    count = len(signature.reads)
    return Operator(
        call.index,
        call.launch,
        signature.name,
        signature.arguments_of(call),
        _tensors(signature.reads, call.storages[:count], digests.before if digests else ()),
        _tensors(signature.writes, call.storages[count:], digests.after if digests else ()),
        signature.allocates,
        signature.random,
        site,
        call.thread,
        _step_of_operator(call.index, steps),
    )


def _step_of_operator(index: int, steps: Sequence[ProgramStep]) -> int | None:
    if not steps or steps[0].operators < 0:
        return None
    ended = bisect_right(steps, index, key=lambda one: one.operators)
    return steps[ended - 1].index + 1 if ended else steps[0].index


def _tensors(
    metas: Sequence[TensorMeta], storages: Sequence[int], digests: Sequence[Digest]
) -> tuple[OperatorTensor, ...]:
    taken = [digest if digest.bits else None for digest in digests] or [None] * len(metas)
    return tuple(OperatorTensor(*facts) for facts in zip(metas, storages, taken, strict=True))


def in_step(lines: Iterator[L], of: Callable[[L], int]) -> Callable[[int], L | None]:
    """A function that returns the line of a launch or operator, or None; call it with increasing numbers.

    of -- the number of a line's launch or operator
    """
    line = next(lines, None)

    def line_of(number: int) -> L | None:
        nonlocal line
        while line is not None and of(line) < number:
            line = next(lines, None)
        return line if line is not None and of(line) == number else None

    return line_of
