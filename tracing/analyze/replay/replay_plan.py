"""Choose which launches to replay on which inputs, so that the results explain the difference of two runs."""

from __future__ import annotations

from collections.abc import Mapping

from tracing.model import KernelArg, Side
from tracing.store.recorded_launch import RecordedLaunch


def planned(
    launches: Mapping[Side, RecordedLaunch], given: Mapping[Side, RecordedLaunch], first: Side
) -> list[tuple[Side, Side]]:
    """Every launch on every input, as pairs (run of the launch, run of the inputs), without duplicates.

    launches -- of one run, or of two
    given    -- the runs whose inputs are used; one run if both recorded equal inputs
    first    -- the run whose launch is replayed first, on its own inputs
    """
    order: list[Side] = sorted(launches, key=lambda side: side != first)
    together = launched_alike(launches[order[0]], launches[order[-1]])
    return [
        (launched, inputs)
        for inputs in order
        if inputs in given
        for launched in (order[:1] if together else order)
        if launched == inputs or takes(launches[launched], given[inputs])
    ]


def launched_alike(a: RecordedLaunch, b: RecordedLaunch) -> bool:
    """True if two launches have the same code, grid, numbers and layout."""
    return _facts(a) == _facts(b)


def takes(launch: RecordedLaunch, given: RecordedLaunch) -> bool:
    """True if a launch can be fed the inputs of another: tensors of the same names, shapes and dtypes."""
    return _contents(launch) == _contents(given)


def other_inputs(a: RecordedLaunch, b: RecordedLaunch) -> tuple[str, ...]:
    """The arguments whose contents differ between two launches, or are unknown."""
    names = dict.fromkeys((*_read(a), *_read(b)))
    return tuple(name for name in names if not _alike(name, a, b))


def _alike(name: str, a: RecordedLaunch, b: RecordedLaunch) -> bool:
    of_a, of_b = a.tensors.get(name), b.tensors.get(name)
    if of_a is None or of_b is None or _content(of_a) != _content(of_b):
        return False
    if name in a.inputs and name in b.inputs:  # blobs are named by their content
        return a.inputs[name] == b.inputs[name]
    return of_a.before is not None and of_b.before is not None and of_a.before.bits == of_b.before.bits


def _read(recorded: RecordedLaunch) -> list[str]:
    return [name for name, arg in recorded.tensors.items() if arg.reads]


def _facts(recorded: RecordedLaunch) -> tuple[object, ...]:
    layouts = {
        name: (arg.tensor.shape, arg.tensor.stride, arg.tensor.dtype)
        for name, arg in recorded.tensors.items()
        if arg.tensor
    }
    return recorded.module, recorded.launch.grid, repr(recorded.values), layouts


def _contents(recorded: RecordedLaunch) -> dict[str, object]:
    return {name: _content(arg) for name, arg in recorded.tensors.items()}


def _content(arg: KernelArg) -> object:
    return arg.tensor and (arg.tensor.shape, arg.tensor.dtype)
