"""Finds a block size that was derived from the first shape and does not fit a later one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from tracing.model import Access, KernelLaunch, MemoryEvidence

_SMALLEST = 4  # block sizes below are no sizes of a tensor


@dataclass(frozen=True, slots=True)
class _First:
    # a constant of a kernel that is the size of a dimension in its first launch
    constant: str
    value: int
    launch: int


class FirstShapes:
    """Remembers, for each kernel, which constants are sizes of its first launch's arguments."""

    def __init__(self) -> None:
        self._first: dict[str, dict[tuple[int, int], list[_First]]] = {}  # by kernel; argument and dimension

    def of(self, launch: KernelLaunch, access: Access | None) -> Iterator[MemoryEvidence]:
        """The elements that one launch does not touch because a constant does not fit its arguments.

        access -- None: the accesses of the launch are unknown
        """
        constants = {name: int(text) for name, text in launch.kernel.constants.items() if text.isdecimal()}
        if launch.kernel_name not in self._first:
            self._first[launch.kernel_name] = _sizes(launch, constants, access)
            return
        known = self._first[launch.kernel_name]
        for (position, dimension), firsts in known.items() if access is not None else ():
            for first in firsts:
                if constants.get(first.constant) == first.value:
                    yield from _untouched(launch, access, position, dimension, first)


def _sizes(
    launch: KernelLaunch, constants: Mapping[str, int], access: Access | None
) -> dict[tuple[int, int], list[_First]]:
    sizes: dict[tuple[int, int], list[_First]] = {}
    for position, arg in enumerate(launch.args):
        for dimension, size in enumerate(arg.tensor.shape if arg.tensor else ()):
            fitting = [
                name for name, value in constants.items() if _SMALLEST <= value in (size, _power(size))
            ]
            whole = access is not None and not any(
                position in boxes for boxes in (access.read_boxes, access.written_boxes)
            )
            if fitting and whole:
                sizes[position, dimension] = [_First(name, constants[name], launch.index) for name in fitting]
    return sizes


def _untouched(
    launch: KernelLaunch, access: Access | None, position: int, dimension: int, first: _First
) -> Iterator[MemoryEvidence]:
    arg = launch.args[position] if position < len(launch.args) else None
    if access is None or arg is None or arg.tensor is None or dimension >= len(arg.tensor.shape):
        return
    size = arg.tensor.shape[dimension]
    if _is_asked_for(first.value, launch):
        return
    for verb, boxes in (("read", access.read_boxes), ("written", access.written_boxes)):
        box = boxes.get(position)
        if box is None or size <= first.value:
            continue
        start, stop = box[2 * dimension : 2 * dimension + 2]
        if start == 0 and stop == first.value:
            what = (
                f"{first.constant}={first.value} is the size of dimension {dimension} of {arg.name} in "
                f"launch #{first.launch}; here that is {size}, and {first.value}:{size} is not {verb}"
            )
            yield MemoryEvidence(launch.index, "first shape", (arg.name,), what)


def _is_asked_for(value: int, launch: KernelLaunch) -> bool:
    # the constant is a passed length, or the size of another argument: the kernel means to access no more
    return any(
        value in arg.tensor.shape if arg.tensor else type(arg.value) is int and arg.value == value
        for arg in launch.args
    )


def _power(size: int) -> int:
    return 1 << max(0, size - 1).bit_length()
