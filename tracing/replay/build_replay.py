"""Launches another build of a recorded kernel on the recorded inputs, and judges the results."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

import torch

from tracing.errors import Problem
from tracing.model import KernelLaunch
from tracing.replay.arguments import ReplayInputs
from tracing.replay.cuda_binary import CudaBinary
from tracing.store.recorded_launch import RecordedLaunch

OutputTensors: TypeAlias = Mapping[str, torch.Tensor]
BuildVerdict: TypeAlias = Literal["good", "bad", "skip"]

_ELSE = "give `tracing bisect` a command that judges: `-- COMMAND`"


@dataclass(frozen=True, slots=True)
class Tolerance:
    """The tolerances; both None: torch.testing.assert_close's values for the dtype."""

    atol: float | None = None
    rtol: float | None = None


def device_name() -> str:
    """The name of this machine's GPU; "": none. Children forked from this process later cannot use CUDA."""
    return torch.cuda.get_device_name() if torch.cuda.is_available() else ""


def require_launchable(launch: KernelLaunch) -> None:
    """Raise Problem, with the reason, if a given binary cannot be launched like a recorded launch."""
    why = ""
    if not launch.kernel.target.startswith("cuda:"):
        why = f"its kernel was compiled for {launch.kernel.target}, and the replay knows only CUDA"
    elif launch.kernel.num_ctas > 1:
        why = "its blocks form clusters"
    elif any(one.descriptor is not None for one in launch.args):
        why = "it passes tensor descriptors"
    if why:
        raise Problem(f"cannot be decided, because launch {launch.index} cannot be replayed: {why}", _ELSE)


def require_inputs(recorded: RecordedLaunch) -> None:
    """Raise Problem if the contents of an input were not kept."""
    if recorded.missing:
        names = ", ".join(recorded.missing)
        raise Problem(
            f"cannot be decided, because input {names} of launch {recorded.launch.index} was not kept",
            f"record it with `tracing run CASE --keep-inputs --keep-outputs`, or {_ELSE}",
        )


class BuildReplay:
    """A launch, and its expected results within a tolerance."""

    def __init__(
        self, recorded: RecordedLaunch, expected: OutputTensors, tolerance: Tolerance, device: str
    ) -> None:
        """Judge builds by one launch.

        expected -- on the CPU, the right content of each written argument
        device   -- the name of the GPU
        """
        self._recorded, self._expected = recorded, expected
        self._inputs = ReplayInputs.of(recorded)
        self._tolerance, self._device = tolerance, device

    @property
    def key(self) -> Sequence[str]:
        """The identity of this judge: the launch, the expected results, the tolerance and the GPU."""
        bits = [hashlib.blake2b(_bytes(one)).hexdigest() for one in self._expected.values()]
        return ["replay", f"launch {self._recorded.launch.index}", *bits, repr(self._tolerance), self._device]

    def judged(self, build: CudaBinary) -> tuple[BuildVerdict, str]:
        """Launch a build, and judge it; call it in a separate process, because a fault makes CUDA unusable.

        A build that faults is bad; one that the driver does not load or launch is skipped.
        """
        launch = self._recorded.launch
        tensors = self._inputs.tensors(self._inputs.memory("cuda"))
        if refused := build.launch(self._inputs.arguments(tensors), launch.grid):
            return "skip", refused
        try:
            torch.cuda.synchronize()
        except RuntimeError as error:
            return "bad", f"the kernel failed: {str(error).splitlines()[0]}"
        return self.compared({name: tensors[name].cpu() for name in self._expected})

    def compared(self, actual: OutputTensors) -> tuple[BuildVerdict, str]:
        """The judgement of outputs, on the CPU."""
        atol, rtol = self._tolerance.atol, self._tolerance.rtol
        for name, expected in self._expected.items():
            try:
                torch.testing.assert_close(actual[name], expected, equal_nan=True, atol=atol, rtol=rtol)
            except AssertionError as error:
                lines = " ".join(line.strip() for line in str(error).splitlines() if line.strip())
                return "bad", f"{name}: {lines}"
        return "good", f"{', '.join(self._expected)} as expected"


def _bytes(tensor: torch.Tensor) -> bytes:
    return bytes(tensor.contiguous().reshape(-1).view(torch.uint8).numpy())
