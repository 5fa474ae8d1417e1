"""What is equal in all launches of one call site on tensors of one layout: computed once, then looked up.

A program repeats most of its launches thousands of times. A `LaunchTemplate` holds what does not change:
layouts, signature, arguments of the digest kernels. `DigestSlots` is a template at one set of addresses,
which an allocator reuses in every step.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

import torch

from tracing.digest.gpu import StreamDigests
from tracing.digest.tables import Call
from tracing.launch import hooks
from tracing.launch.launch_site import Grid, LaunchSite, descriptor_of, tensor_of
from tracing.launch.storages import Storages, TouchedMemory
from tracing.model import Phase, Signature, TensorMeta
from tracing.record.catalogue import Catalogue
from tracing.record.launches.digested_tensors import (
    NOTHING_DIGESTED,
    DigestedTensors,
    calls_at,
    digested_tensors,
)
from tracing.upstream.inductor.code import GENERATED
from tracing.upstream.torch.autograd import NO_BACKWARD, backward_pass

DigestedArguments: TypeAlias = Literal["all", "declared", "none"]

_REMEMBERED = 256  # sets of addresses of one template
_TEMPLATES = 1 << 15  # that are remembered, of some KB each: dynamic shapes make new ones for ever


@dataclass(slots=True)
class LaunchTemplate:
    """The common facts of all launches of one call site on tensors of one layout."""

    site: LaunchSite
    phase: Phase
    grid: Grid | None  # None: those of the site
    positions: Sequence[int]  # of the tensors among the values
    wrapped: bool  # some tensors are inside of a descriptor or a reinterpretation
    offsets: tuple[int, ...]  # bytes from the start of their storages
    device: torch.device | None  # the GPU, None on the host
    before: DigestedTensors = NOTHING_DIGESTED
    after: DigestedTensors = NOTHING_DIGESTED
    reads: Sequence[int] = ()  # indices into `positions`
    writes: Sequence[int] = ()
    metas: Sequence[TensorMeta] = ()
    addresses: bool = True  # some arguments are, or may be, used as addresses
    described: Signature | None = None  # None: unknown until an autotuner has chosen
    signature: int | None = None  # its number
    used: int = 0  # the last segment that refers to it
    looked_at: bool = False  # whether it overwrites a buffer that is read later
    slots_of: dict[TouchedMemory, DigestSlots] = field(default_factory=dict)
    streams: dict[int, StreamDigests] = field(default_factory=dict)
    shifted: dict[tuple[int, ...], LaunchTemplate] = field(default_factory=dict)  # by offsets in the storages


@dataclass(slots=True)
class DigestSlots:
    """A template at one set of addresses."""

    template: LaunchTemplate
    storages: tuple[int, ...]
    before: Sequence[Call] | None  # None: some tensors must be copied first
    after: Sequence[Call] | None
    memory: TouchedMemory
    segment: int  # that has the records of its storages and its signature


class LaunchTemplates:
    """Makes the template of each launch once, and finds it afterwards."""

    def __init__(self, catalogue: Catalogue, storages: Storages, digests: DigestedArguments) -> None:
        self._catalogue = catalogue
        self._storages = storages
        self._digests = digests
        self._templates: dict[tuple[Any, ...], LaunchTemplate] = {}
        self._segments = catalogue.segments
        if self._segments is not None:
            self._segments.deleted.append(self._forget)

    def get(self, site: LaunchSite, values: Sequence[Any], grid: Grid | None) -> LaunchTemplate:
        """The template of a launch; without a signature until an autotuner has chosen."""
        key = _key(site, values, grid)
        template = self._templates.get(key)
        if template is None:
            template = self._new_template(site, values, grid)
            if site.kind != "interpreted":
                if len(self._templates) >= _TEMPLATES:
                    self._templates.clear()
                self._templates[key] = template
        return template

    def _new_template(self, site: LaunchSite, values: Sequence[Any], grid: Grid | None) -> LaunchTemplate:
        positions = [i for i, value in enumerate(values) if tensor_of(value) is not None]
        tensors = [plain_tensor(values[i]) for i in positions]
        template = LaunchTemplate(
            site=site,
            phase="backward" if backward_pass() != NO_BACKWARD else "forward",
            grid=grid,
            positions=positions,
            wrapped=not all(isinstance(values[i], torch.Tensor) for i in positions),
            offsets=tuple(int(tensor.storage_offset()) * tensor.element_size() for tensor in tensors),
            device=_gpu(tensors),
            used=self._segment,
        )
        if site.settled:
            self.settle(template, values)
        else:
            template.before = template.after = self._side(positions, template, values)
        return template

    @property
    def _segment(self) -> int:
        return self._segments.number if self._segments is not None else 0

    def refresh(self, slots: DigestSlots, template: LaunchTemplate | None = None) -> None:
        """Write the storages and the signature of a launch, if they are not in the current segment.

        template -- the template under which the launch was looked up
        """
        segment = self._segment
        if slots.segment != segment:
            slots.segment = slots.template.used = segment
            if slots.template.described is not None:
                slots.template.signature = self._catalogue.number(slots.template.described)
            slots.storages = self._storages.numbers(slots.memory)
            if template is not None:
                template.used = segment

    def _forget(self, oldest: int) -> None:
        self._templates = {key: one for key, one in self._templates.items() if one.used >= oldest}
        for template in self._templates.values():
            template.shifted = {key: one for key, one in template.shifted.items() if one.used >= oldest}

    def settle(self, template: LaunchTemplate, values: Sequence[Any]) -> None:
        """Set the signature of a template, and which tensors are digested before and after its launches."""
        grid = template.grid or template.site.grid(values)
        positions = template.positions
        template.described = self._catalogue.signature(template.site, values, grid, template.phase)
        template.signature, args = self._catalogue.number(template.described), template.described.args
        read = [i for i in positions if args[i].reads]
        written = [i for i in positions if args[i].writes]
        template.reads, template.writes = (
            [positions.index(i) for i in read],
            [positions.index(i) for i in written],
        )
        template.metas = [meta for argument in args if (meta := argument.tensor)]
        template.addresses = any(argument.addresses for argument in args)
        before = after = positions
        storages = [plain_tensor(values[i]).untyped_storage().data_ptr() for i in positions]
        if len({*storages}) == len(positions):
            # a kernel does not change what its IR only reads, unless another argument aliases that memory
            after, whole = written, self._whole_writes(template)
            before = [i for i in positions if args[i].name not in whole]
        if self._digests == "declared":
            before = read
        template.before = self._side(before, template, values)
        template.after = self._side(after, template, values)

    def _whole_writes(self, template: LaunchTemplate) -> set[str]:
        if self._digests != "all" or template.device is None or template.described is None:
            return set()
        return self._catalogue.whole_writes(template.site, template.described)

    def _side(
        self, positions: Sequence[int], template: LaunchTemplate, values: Sequence[Any]
    ) -> DigestedTensors:
        tensors = {i: plain_tensor(values[i]) for i in positions}
        wanted = self._digests != "none"
        return digested_tensors(tensors, template.positions, template.device, wanted=wanted)

    def slots(self, template: LaunchTemplate, memory: TouchedMemory, values: Sequence[Any]) -> DigestSlots:
        """The template at these addresses; a variant of it if the offsets in the storages differ."""
        addresses = memory[::3]
        slots = DigestSlots(
            self._shifted(template, memory, values),
            self._storages.numbers(memory),
            calls_at(template.before, addresses),
            calls_at(template.after, addresses),
            memory,
            -1 if self._segments is not None else 0,
        )
        if slots.template.signature is not None:  # before that, the written arguments are unknown
            if len(template.slots_of) >= _REMEMBERED:
                template.slots_of.clear()
            template.slots_of[memory] = slots
        return slots

    def _shifted(
        self, template: LaunchTemplate, memory: TouchedMemory, values: Sequence[Any]
    ) -> LaunchTemplate:
        # generated code depends on the layouts of its inputs, but not on their offsets in their storages
        offsets = tuple(address - start for address, start in zip(memory[::3], memory[1::3], strict=True))
        if offsets == template.offsets:
            return template
        shifted = template.shifted.get(offsets)
        if shifted is None:
            shifted = self._new_template(template.site, values, template.grid)
            if template.signature is not None and shifted.signature is None:
                self.settle(shifted, values)
            template.shifted[offsets] = shifted
        return shifted


def _gpu(tensors: Sequence[torch.Tensor]) -> torch.device | None:
    return next((tensor.device for tensor in tensors if tensor.is_cuda), None)


def _key(site: LaunchSite, values: Sequence[Any], grid: Grid | None) -> tuple[Any, ...]:
    if site.scalars is not None and (launched := hooks.caller()):
        code, instruction = launched
        if code.co_name in GENERATED and site.kind == "triton":
            shape = values[0].shape if isinstance(values[0], torch.Tensor) else None
            return (id(site), id(code), instruction, grid, shape, *[values[i] for i in site.scalars])
    backward = backward_pass() != NO_BACKWARD
    return (id(site), grid, backward, *map(_layout, values))


def _layout(value: Any) -> Any:
    # True, 1 and 1.0 compare equal, so the type is part of the key
    if isinstance(value, torch.Tensor):
        return value.shape, value.stride(), value.storage_offset(), value.dtype
    tensor = tensor_of(value)
    plain = value is None or isinstance(value, (bool, int, float, str))
    if tensor is not None:
        return _layout(tensor), descriptor_of(value)
    return type(value), value if plain else repr(value)


def plain_tensor(value: Any) -> torch.Tensor:
    """The tensor that a value holds; it must hold one."""
    tensor = tensor_of(value)
    assert tensor is not None
    return tensor
