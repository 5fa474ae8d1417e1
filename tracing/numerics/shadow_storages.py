"""Shadows of a program's storages: their elements in float64 or complex128, and what these depend on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch.multiprocessing.reductions import StorageWeakRef

from tracing.numerics.rounding import Noise, perturbed, wide
from tracing.upstream.torch.tensor_subclasses import is_zero, negated_view

BITS_AS = "a view as"  # of an origin: bits that are read as another dtype
BY_ROUNDING = ", which rounding decides"  # the end of an origin: a branch, or a number of iterations
_MOST = 256  # number of shadows beyond which those of freed storages are dropped


@dataclass(frozen=True, slots=True)
class ValueOrigin:
    """The origins that values depend on."""

    missing: frozenset[str] = frozenset()  # operators and kernels that were not followed in float64
    drawn: bool = False  # random numbers of an operator

    def __or__(self, other: ValueOrigin) -> ValueOrigin:
        return ValueOrigin(self.missing | other.missing, self.drawn or other.drawn)


@dataclass(slots=True)
class ShadowStorage:
    """The shadow of one storage of the program."""

    program: StorageWeakRef
    elements: torch.Tensor  # [n], as many as the storage has
    size: int  # bytes of one of the program's elements
    origin: ValueOrigin
    exact: bool = False  # it came from outside of the program, or was computed from that without rounding
    entered: bool = False  # it came from outside of the program, which has not written it

    @property
    def holds_integers(self) -> bool:
        """True if the elements are the program's own, bit by bit."""
        return not is_inexact(self.elements)

    def fits(self, tensor: torch.Tensor) -> bool:
        """True if the storage is a whole number of a tensor's elements."""
        return self.elements.nbytes % tensor.element_size() == 0


class ShadowStorages:
    """Shadows by storage; those of deleted storages are dropped."""

    def __init__(self, noise: Noise | None) -> None:
        """noise -- perturbs the program's inputs; None: they stay exact"""
        self._noise = noise
        self._storages: dict[int, ShadowStorage] = {}
        self._most = _MOST

    def view(self, tensor: torch.Tensor) -> torch.Tensor:
        """[*] the shadow of a tensor; writing to it writes to the shadow of its storage."""
        if is_zero(tensor):
            return torch.zeros(tensor.shape, dtype=wide(tensor.dtype), device=tensor.device)
        known = self.known(tensor)
        if known is None:
            known = self.take(tensor, ValueOrigin(), enters=True)
        if is_inexact(tensor) and known.holds_integers and known.fits(tensor):
            self._read_as_numbers(tensor, known)
        elements = known.elements
        if known.size != tensor.element_size() or elements.dtype != wide(tensor.dtype):
            elements, reread = _reinterpreted(elements, known.size, tensor)
            if reread:
                return self._reread(tensor, known)
        return _as(tensor, elements)

    def _read_as_numbers(self, tensor: torch.Tensor, known: ShadowStorage) -> None:
        # the bytes of a file: integers are exact, and so are the numbers that their bits are
        numbers = known.elements.view(tensor.dtype).to(wide(tensor.dtype))
        known.elements, known.size = self._entering(numbers, tensor), tensor.element_size()

    def _reread(self, tensor: torch.Tensor, known: ShadowStorage) -> torch.Tensor:
        # bits that the program reads as another dtype
        known.origin |= ValueOrigin(frozenset([f"{BITS_AS} {tensor.dtype}"]))
        return tensor.detach().to(wide(tensor.dtype))

    def known(self, tensor: Any) -> ShadowStorage | None:
        """The shadow of a tensor's storage; None: it has none yet, or is no dense tensor."""
        if not isinstance(tensor, torch.Tensor) or tensor.layout != torch.strided or is_zero(tensor):
            return None
        known = self._storages.get(tensor.untyped_storage().data_ptr())
        if known is None or _gone(known):
            return None
        count = tensor.untyped_storage().nbytes() // known.size
        return known if known.elements.numel() == count else None  # it was resized

    def take(self, tensor: torch.Tensor, origin: ValueOrigin, *, enters: bool = False) -> ShadowStorage:
        """Make the shadow of a tensor's storage from the program's own values.

        enters -- the values come from outside of the program, and are perturbed by noise
        """
        storage = tensor.untyped_storage()
        size = tensor.element_size()
        flat = torch.empty(0, dtype=tensor.dtype, device=tensor.device)
        flat.set_(storage, 0, (storage.nbytes() // size,))  # type: ignore[call-overload, unused-ignore]
        elements = flat.to(wide(tensor.dtype), copy=True)
        if enters:
            elements = self._entering(elements, tensor)
        return self._keep(storage, ShadowStorage(_weak(storage), elements, size, origin, enters, enters))

    def exact(self, tensor: torch.Tensor) -> bool:
        """True if no element of a tensor was rounded since it came from outside of the program."""
        known = self.known(tensor)
        return known is not None and known.exact

    def entered(self, tensor: torch.Tensor) -> bool:
        """True if the elements of a tensor came from outside of the program, which has not written them."""
        known = self.known(tensor)
        return known is not None and known.entered

    def _entering(self, elements: torch.Tensor, tensor: torch.Tensor) -> torch.Tensor:
        if self._noise is None or not is_inexact(tensor):
            return elements
        # drawn in any case: memory that nothing wrote may hold anything, and must not change later draws
        moved = perturbed(elements, torch.finfo(tensor.dtype).eps, self._noise)
        return elements if _whole(elements) else moved

    def give(
        self, tensor: torch.Tensor, exact: torch.Tensor, origin: ValueOrigin, *, is_exact: bool = False
    ) -> None:
        """Make the shadow of a tensor's new storage from its exact values.

        is_exact -- so are the program's own
        """
        storage, size = tensor.untyped_storage(), tensor.element_size()
        elements = torch.zeros(storage.nbytes() // size, dtype=wide(tensor.dtype), device=tensor.device)
        _as(tensor, elements).copy_(exact)
        self._keep(storage, ShadowStorage(_weak(storage), elements, size, origin, is_exact))

    def mark(self, tensor: torch.Tensor, origin: ValueOrigin) -> None:
        """Note further origins on which the values of a tensor depend."""
        known = self.known(tensor)
        if known is not None:
            known.origin |= origin
            known.exact = known.entered = False

    def _keep(self, storage: torch.UntypedStorage, shadow: ShadowStorage) -> ShadowStorage:
        if len(self._storages) > self._most:
            self._storages = {key: one for key, one in self._storages.items() if not _gone(one)}
            self._most = max(_MOST, 2 * len(self._storages))
        self._storages[storage.data_ptr()] = shadow
        return shadow


def is_inexact(value: Any) -> bool:
    """True for a tensor of a floating or complex dtype."""
    return isinstance(value, torch.Tensor) and (value.is_floating_point() or value.is_complex())


def _whole(elements: torch.Tensor) -> bool:
    # labels, masks and counts, which a program compares and converts to integers, are exact
    numbers = torch.view_as_real(elements) if elements.is_complex() else elements
    return bool((numbers == numbers.round()).all())


def _as(tensor: torch.Tensor, elements: torch.Tensor) -> torch.Tensor:
    # the view of the shadow of a storage that a tensor is of the storage, lazily conjugated or negated as it
    view = elements.as_strided(tensor.size(), tensor.stride(), tensor.storage_offset())
    view = view.conj() if tensor.is_conj() else view
    return negated_view(view) if tensor.is_neg() else view


def _weak(storage: torch.UntypedStorage) -> StorageWeakRef:
    return StorageWeakRef(storage)  # type: ignore[no-untyped-call, unused-ignore]


def _gone(known: ShadowStorage) -> bool:
    return bool(known.program.expired())  # type: ignore[no-untyped-call, unused-ignore]


def _reinterpreted(elements: torch.Tensor, size: int, tensor: torch.Tensor) -> tuple[torch.Tensor, bool]:
    # complex numbers as pairs, and pairs as complex numbers; for other views read the program's own bits
    if elements.is_complex() and tensor.is_floating_point() and size == 2 * tensor.element_size():
        return torch.view_as_real(elements).reshape(-1), False
    if elements.dtype == torch.float64 and tensor.is_complex() and 2 * size == tensor.element_size():
        return torch.view_as_complex(elements.reshape(-1, 2)), False
    fits = elements.nbytes % tensor.element_size() == 0
    if fits and not (is_inexact(elements) or is_inexact(tensor)):
        return elements.view(tensor.dtype), False  # integers are exact: their bits are the program's
    return elements, True
