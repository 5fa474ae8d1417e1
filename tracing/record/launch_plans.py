"""Plans what to record of a launch: computed once per call site and layout, then looked up.

A launch is made thousands of times. Its layouts, its signature and the inputs of its digests on a GPU are one
plan. `DigestSlots` is that plan for one set of addresses, which an allocator reuses in every step.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from operator import and_
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt
import torch

from tracing.digest.gpu import StreamDigests
from tracing.digest.layouts import layout
from tracing.digest.tables import Call, Table, calls, facts, tables, variant
from tracing.launch import hooks
from tracing.launch.launch_site import Grid, LaunchSite, tensor_of
from tracing.launch.storages import Storages, TouchedMemory
from tracing.model import Phase, TensorMeta
from tracing.record.catalogue import Catalogue
from tracing.upstream.inductor.code import GENERATED
from tracing.upstream.torch.autograd import NO_BACKWARD, backward_pass
from tracing.upstream.torch.cuda_graphs import is_capturing

DigestedArguments: TypeAlias = Literal["all", "declared", "none"]

_REMEMBERED = 256  # of one plan that are remembered


@dataclass(slots=True)
class PlanSide:
    """The tensors that are digested before or after a launch."""

    positions: Sequence[int]
    chosen: Sequence[int]  # which of the plan's tensors these are
    tables: Sequence[Table]  # for the GPU
    facts: npt.NDArray[np.int64]  # of the tensors, likewise
    copied: frozenset[int]  # positions of those that must be copied first
    misaligned: Sequence[int]  # the bits of each address that must be zero, else it is copied, too


@dataclass(slots=True)
class LaunchPlan:
    """The known facts of the launches made at one call site on tensors of one layout."""

    site: LaunchSite
    phase: Phase
    grid: Grid | None  # None: the site knows
    positions: Sequence[int]  # of the tensors among the values
    wrapped: bool  # some of them in a descriptor or reinterpretation
    offsets: tuple[int, ...]  # bytes from the start of their storages
    device: torch.device | None  # the GPU, None on the host
    before: PlanSide
    after: PlanSide
    reads: Sequence[int] = ()  # which of the plan's tensors
    writes: Sequence[int] = ()
    metas: Sequence[TensorMeta] = ()
    addresses: bool = True  # some arguments are used as addresses, or may be
    signature: int | None = None
    slots_of: dict[TouchedMemory, DigestSlots] = field(default_factory=dict)
    streams: dict[int, StreamDigests] = field(default_factory=dict)
    shifted: dict[tuple[int, ...], LaunchPlan] = field(default_factory=dict)  # the same at other offsets


@dataclass(slots=True)
class DigestSlots:
    """A plan on certain memory."""

    plan: LaunchPlan
    storages: tuple[int, ...]
    before: Sequence[Call] | None  # None: some tensors must be copied first
    after: Sequence[Call] | None


class Planner:
    """Finds the plan of a launch."""

    def __init__(self, catalogue: Catalogue, storages: Storages, digests: DigestedArguments) -> None:
        self._catalogue = catalogue
        self._storages = storages
        self._digests = digests
        self._plans: dict[tuple[Any, ...], LaunchPlan] = {}

    def plan(self, site: LaunchSite, values: Sequence[Any], grid: Grid | None) -> LaunchPlan:
        """The plan of a launch; without a signature while an autotuner has not chosen."""
        key = _key(site, values, grid)
        plan = self._plans.get(key)
        if plan is None:
            plan = self._new_plan(site, values, grid)
            if site.settled:
                self.settle(plan, values)
            if site.kind != "interpreted" and not _capturing(plan.device):
                self._plans[key] = plan
        return plan

    def _new_plan(self, site: LaunchSite, values: Sequence[Any], grid: Grid | None) -> LaunchPlan:
        positions = [i for i, value in enumerate(values) if tensor_of(value) is not None]
        tensors = [plain_tensor(values[i]) for i in positions]
        device = next((tensor.device for tensor in tensors if tensor.is_cuda), None)
        side = self._side(positions, positions, values, device)
        return LaunchPlan(
            site=site,
            phase="backward" if backward_pass() != NO_BACKWARD else "forward",
            grid=grid,
            positions=positions,
            wrapped=not all(isinstance(values[i], torch.Tensor) for i in positions),
            offsets=tuple(int(tensor.storage_offset()) * tensor.element_size() for tensor in tensors),
            device=device,
            before=side,
            after=side,
        )

    def settle(self, plan: LaunchPlan, values: Sequence[Any]) -> None:
        """Give a plan its signature, and choose what is digested by what the kernel reads and writes."""
        grid = plan.grid or plan.site.grid(values)
        positions = plan.positions
        plan.signature, args = self._catalogue.signature(plan.site, values, grid, plan.phase)
        read = [i for i in positions if args[i].reads]
        written = [i for i in positions if args[i].writes]
        plan.reads, plan.writes = [positions.index(i) for i in read], [positions.index(i) for i in written]
        plan.metas = [meta for argument in args if (meta := argument.tensor)]
        plan.addresses = any(argument.addresses for argument in args)
        storages = {plain_tensor(values[i]).untyped_storage().data_ptr() for i in positions}
        if len(storages) == len(positions):
            # a kernel does not change what its IR only reads, unless that memory has a second name
            plan.after = self._side(written, positions, values, plan.device)
        if self._digests == "declared":
            plan.before = self._side(read, positions, values, plan.device)

    def _side(
        self,
        positions: Sequence[int],
        among: Sequence[int],
        values: Sequence[Any],
        device: torch.device | None,
    ) -> PlanSide:
        if device is not None:
            positions = sorted(positions, key=lambda i: variant(plain_tensor(values[i])))
        tensors = [plain_tensor(values[i]) for i in positions]
        digested = device is not None and self._digests != "none" and not _capturing(device)
        made = tables(tensors) if digested else ()
        layouts = [layout(tensor) for tensor in tensors]
        copied = frozenset(i for i, one in zip(positions, layouts, strict=True) if one is None)
        bits = [one.misaligned if one else 15 for one in layouts]
        return PlanSide(positions, [among.index(i) for i in positions], made, facts(tensors), copied, bits)

    def slots(self, plan: LaunchPlan, memory: TouchedMemory, values: Sequence[Any]) -> DigestSlots:
        """The plan on this memory; a variant of the plan if the offsets in the storages differ."""
        addresses = memory[::3]
        slots = DigestSlots(
            self._shifted(plan, memory, values),
            self._storages.numbers(memory),
            _calls(plan.before, addresses),
            _calls(plan.after, addresses),
        )
        if slots.plan.signature is not None:  # before that, what is written is not known
            if len(plan.slots_of) >= _REMEMBERED:
                plan.slots_of.clear()
            plan.slots_of[memory] = slots
        return slots

    def _shifted(self, plan: LaunchPlan, memory: TouchedMemory, values: Sequence[Any]) -> LaunchPlan:
        # generated code is made for the layouts of its inputs, and not for where in their storages they begin
        offsets = tuple(address - start for address, start in zip(memory[::3], memory[1::3], strict=True))
        if offsets == plan.offsets:
            return plan
        shifted = plan.shifted.get(offsets)
        if shifted is None:
            shifted = self._new_plan(plan.site, values, plan.grid)
            if plan.signature is not None:
                self.settle(shifted, values)
            if not _capturing(plan.device):
                plan.shifted[offsets] = shifted
        return shifted


def _capturing(device: torch.device | None) -> bool:
    # into a CUDA graph: nothing may be copied to the device now
    return device is not None and is_capturing()


def _key(site: LaunchSite, values: Sequence[Any], grid: Grid | None) -> tuple[Any, ...]:
    if site.scalars is not None and (launched := hooks.caller()):
        code, instruction = launched
        if code.co_name in GENERATED and site.kind == "triton":
            shape = values[0].shape if isinstance(values[0], torch.Tensor) else None
            return (id(site), id(code), instruction, shape, *[values[i] for i in site.scalars])
    backward = backward_pass() != NO_BACKWARD
    return (id(site), grid, backward, *map(_layout, values))


def _layout(value: Any) -> Any:
    # True, 1 and 1.0 are equal and are not the same
    if isinstance(value, torch.Tensor):
        return value.shape, value.stride(), value.storage_offset(), value.dtype
    tensor = tensor_of(value)
    plain = value is None or isinstance(value, (bool, int, float, str))
    return _layout(tensor) if tensor is not None else (type(value), value if plain else repr(value))


def _calls(side: PlanSide, addresses: Sequence[int]) -> Sequence[Call] | None:
    chosen = [addresses[i] for i in side.chosen]
    readable = not side.copied and not any(map(and_, chosen, side.misaligned))
    return calls(side.tables, chosen) if readable and side.tables else None


def plain_tensor(value: Any) -> torch.Tensor:
    """The tensor that a value holds; it must hold one."""
    tensor = tensor_of(value)
    assert tensor is not None
    return tensor
