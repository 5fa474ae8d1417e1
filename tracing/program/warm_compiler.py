"""Warm up the compiler in this process, so that its forks compile quickly."""

from __future__ import annotations

from contextlib import suppress

import torch

from tracing.model import Case
from tracing.program.device import Device
from tracing.upstream.inductor.compiler import decompositions_known, forget_decompositions
from tracing.upstream.torch.dynamo import forget_compiled


def warm_up(device: Device, *, keep_decompositions: bool = False) -> None:
    """Compile something small, so that forks find Inductor imported and its patterns registered.

    keep_decompositions -- do not make torch's table of decompositions anew: a case has changed it

    From now on torch computes with one thread in this process: GNU's OpenMP waits forever in a fork of a
    process that has had several. Cost: some 4 s; a build in a fork then takes a third of what it takes
    without.
    """
    torch.set_num_threads(1)
    with device.active(), suppress(Exception):  # what a case has changed in Inductor may be wrong
        x = torch.ones(4, 8, requires_grad=True)
        torch.compile(lambda one: torch.nn.functional.softmax(one.relu() @ one.T, 0))(x).sum().backward()  # type: ignore[no-untyped-call, unused-ignore]
    forget_compiled()
    if not keep_decompositions:
        forget_decompositions()  # a case may register some later


def load_and_warm_up(device: Device, name: str) -> Case:
    """Load a case before Inductor is imported, as when the case is recorded; then `warm_up`.

    name -- as on a command line; raises Problem if there is no such case

    On a GPU it is only loaded: no process with a GPU is forked.
    """
    if not device.virtual:
        return device.load(name)
    torch.set_num_threads(1)  # the case may compute when it is imported
    forget_decompositions()  # this process may have compiled before
    case = device.load(name)
    warm_up(device, keep_decompositions=decompositions_known())
    return case
