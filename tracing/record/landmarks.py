"""Records points at which the ranks of a job can be compared: collectives, and updates of parameters.

A collective is recorded when it starts, so that the last one is known if a job hangs. Its inputs and results
are digested when it has ended:

- in place (`c10d::allreduce_`): the recorder waits for the work handle, on a GPU on its stream only;
- functional (`_c10d_functional::all_reduce`): at `wait_tensor`, where the program waits.

An update is a step of a torch.optim optimizer in a job of several ranks: the parameters after each step, and
before the first one.

Not covered: point-to-point operations; collectives in C++ that bypass the dispatcher; optimizers that
torch.compile compiled, and manual updates. An asynchronous collective in host memory that takes longer than
PATIENCE has no digests, because it may wait for a collective of another group that this process has not
started yet.

Cost: a digest of each tensor, on the host; on a GPU the host waits for it and copies the tensor.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Literal, NamedTuple

import torch
import torch.distributed as dist
from torch.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook

from tracing.digest.host import digest
from tracing.launch.tensors import tensor_meta, tensors_in
from tracing.model import Landmark, LandmarkDigests
from tracing.model.collectives import FUNCTIONAL, TWO_SIDED
from tracing.record.parameter_names import parameter_names
from tracing.record.recording import Recording
from tracing.upstream.torch.dispatch_modes import dispatch_disabled
from tracing.upstream.torch.process_groups import group_named

PATIENCE = 30.0  # seconds

_WAIT = f"{FUNCTIONAL}wait_tensor"  # and wait_tensors, since pytorch #193892 (2.15)


class _Update(NamedTuple):
    storages: tuple[int, ...] = ()  # of the parameters
    names: tuple[str, ...] = ()
    gradients: tuple[int, ...] = ()  # their storages


class _Issued(NamedTuple):
    """A collective that is being issued."""

    name: str
    landmark: int = -1  # -1: the program waits for one that was issued before
    left: Sequence[torch.Tensor] = ()
    asynchronous: bool = False


class Landmarks:
    """Records collectives and updates, with digests."""

    def __init__(self, recording: Recording, *, digests: bool) -> None:
        """digests -- False: record them without digests"""
        self._recording, self._digests = recording, digests
        self._writer, self._catalogue = recording.writer, recording.catalogue
        self._count = 0
        self._waiting: dict[int, int] = {}  # functional collectives, by the address of a result
        self._updated: set[int] = set()  # optimizers that made a step

    def before(self, name: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> _Issued | None:
        """Record one collective, before it is issued; None: it is not recorded."""
        if name.startswith(_WAIT):
            return _Issued(name)
        if self._recording.flight.paused:
            self._count += 1
            return None
        given, left = _sides(name, args)
        landmark = self._started("collective", name, _members(args), given, left)
        self._bits(landmark, "inputs", given)
        return _Issued(name, landmark, left, _asynchronous(args, kwargs))

    def after(self, issued: _Issued, result: Any) -> None:
        """Record what it left, as soon as it has ended."""
        if issued.landmark < 0:
            for tensor in tensors_in(result):
                landmark = self._waiting.pop(tensor.untyped_storage().data_ptr(), None)
                if landmark is not None:
                    self._bits(landmark, "results", [tensor])
        elif issued.name.startswith(FUNCTIONAL):
            for tensor in tensors_in(result):
                self._waiting[tensor.untyped_storage().data_ptr()] = issued.landmark
        elif self._ended(issued, result):
            self._bits(issued.landmark, "results", issued.left)

    def _started(
        self,
        kind: Literal["collective", "update"],
        name: str,
        ranks: tuple[int, ...],
        given: Sequence[torch.Tensor],
        left: Sequence[torch.Tensor],
        update: _Update | None = None,
    ) -> int:
        index = self._count
        self._count += 1
        # sparse tensors have neither strides nor bits
        metas = [
            tuple(tensor_meta(tensor) for tensor in side if tensor.layout is torch.strided)
            for side in (given, left)
        ]
        (before, after), of_update = metas, update or _Update()
        launches, operators = self._recording.launches, self._recording.operators
        self._writer.append(
            Landmark(index, launches, kind, name, ranks, before, after, *of_update, operators)
        )
        return index

    def _ended(self, issued: _Issued, result: Any) -> bool:
        name, left = issued.name, issued.left
        try:
            work = dist.Work.unbox(result[-1] if isinstance(result, tuple) else result)
        except (RuntimeError, TypeError):  # there is none where collectives are issued together
            self._catalogue.not_covered(f"results of {name} without a work handle", "no coalescing manager")
            return False
        if work is None:  # NCCL issues a synchronous one on the current stream, and gives no handle
            return True
        if not issued.asynchronous or any(tensor.is_cuda for tensor in left):
            work.wait()
            return True
        deadline = time.monotonic() + PATIENCE
        while not work.is_completed():
            if time.monotonic() > deadline:
                self._catalogue.not_covered(
                    f"results of {name} that took longer than {PATIENCE} s", "async_op=False"
                )
                return False
            time.sleep(0.0002)
        return True

    def _bits(
        self, landmark: int, side: Literal["inputs", "results"], tensors: Sequence[torch.Tensor]
    ) -> None:
        if not self._digests:
            return
        try:
            if any(tensor.is_cuda for tensor in tensors) and torch.cuda.is_current_stream_capturing():
                raise NotImplementedError("captured into a CUDA graph")
            with dispatch_disabled():
                digests = tuple(map(digest, tensors))
        except (RuntimeError, NotImplementedError, TypeError) as error:  # sparse, or captured
            reason = str(error).splitlines()[0]
            self._catalogue.not_covered(f"the bits of a collective or of parameters ({reason})", "")
        else:
            self._writer.append(LandmarkDigests(landmark, side, digests))

    # ---- updates

    @contextmanager
    def installed(self) -> Iterator[None]:
        """While active, steps of optimizers are landmarks."""
        handles = [
            register_optimizer_step_pre_hook(self._before_step),
            register_optimizer_step_post_hook(self._after_step),
        ]
        try:
            yield
        finally:
            for handle in handles:
                handle.remove()

    def _before_step(self, optimizer: Any, args: Any, kwargs: Any) -> None:
        if self._skips() or id(optimizer) in self._updated:
            return
        self._updated.add(id(optimizer))
        self._reached(f"before {type(optimizer).__name__}.step", optimizer, named=True)

    def _after_step(self, optimizer: Any, args: Any, kwargs: Any) -> None:
        if self._skips():
            return
        self._reached(f"{type(optimizer).__name__}.step", optimizer)

    def _reached(self, name: str, optimizer: Any, *, named: bool = False) -> None:
        try:
            self._update(name, self._plain(optimizer), named=named)
        except Exception as error:
            self._recording.failsafe.end(error)

    def _update(self, name: str, parameters: Sequence[torch.Tensor], *, named: bool) -> None:
        strided = [one for one in parameters if one.layout is torch.strided]
        storages = tuple(map(self._catalogue.storage, strided))
        gradients = tuple(self._gradient(one.grad) for one in strided)
        names = parameter_names(strided) if named else ()
        landmark = self._started("update", name, (), (), parameters, _Update(storages, names, gradients))
        self._bits(landmark, "results", parameters)

    def _gradient(self, gradient: torch.Tensor | None) -> int:
        plain = type(gradient) is torch.Tensor and gradient.layout is torch.strided
        return self._catalogue.storage(gradient) if plain and gradient is not None else -1

    def _skips(self) -> bool:
        return torch.compiler.is_compiling() or not _several() or self._recording.flight.paused

    def _plain(self, optimizer: Any) -> list[torch.Tensor]:
        parameters = [one for group in optimizer.param_groups for one in group["params"]]
        plain = [one for one in parameters if type(one) in (torch.Tensor, torch.nn.Parameter)]
        if len(plain) < len(parameters):
            self._catalogue.not_covered("parameters that are a subclass of Tensor, as sharded ones are", "")
        return plain


def _several() -> bool:
    return dist.is_available() and dist.is_initialized() and dist.get_world_size() > 1


def _sides(name: str, args: Sequence[Any]) -> tuple[list[torch.Tensor], list[torch.Tensor]]:
    # inputs of a collective, and its outputs; functional collectives return theirs later
    operator = name.partition("::")[2]
    if name.startswith(FUNCTIONAL):
        return list(tensors_in(args[0])), []
    if operator.startswith(TWO_SIDED):
        return list(tensors_in(args[1])), list(tensors_in(args[0]))
    return list(tensors_in(args[0])), list(tensors_in(args[0]))


def _members(args: Sequence[Any]) -> tuple[int, ...]:
    # functional operators name their group, as the last argument, or since pytorch #172795 are given it
    boxed = [arg for arg in args if isinstance(arg, torch.ScriptObject)]  # the group, then the reduction
    groups = [dist.ProcessGroup.unbox(arg) for arg in boxed[:1]]
    groups += [arg for arg in args if isinstance(arg, dist.ProcessGroup)]
    names = [arg for arg in args if isinstance(arg, str)]
    groups += [group_named(name) for name in names[-1:]]
    return tuple(dist.get_process_group_ranks(groups[0])) if groups else ()


def _asynchronous(args: Sequence[Any], kwargs: Mapping[str, Any]) -> bool:
    # `bool async_op=True`, the only flag; before it was there, every operator was
    flags = [arg for arg in args if isinstance(arg, bool)]
    return bool(kwargs.get("async_op", flags[0] if flags else True))
