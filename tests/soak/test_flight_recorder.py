"""A long recording with `--last 50`: memory and disk stay flat, and every reader reads the run meanwhile.

LAUNCHES=1000000 sets the number of launches. On a GPU the kernels run. Without one only the first launch
runs, on the virtual GPU; the others are announced by hand, because the interpreter takes 9 ms a launch.
"""

from __future__ import annotations

import gc
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
from handmade.records import INFO
from msgspec.structs import replace
from recorded.launches import add_kernel

import tracing
from tracing import store
from tracing.analyze.nonfinite.first_nonfinite import first_nonfinite
from tracing.launch import hooks
from tracing.model import Outcome, StepSelection
from tracing.program.device import Device
from tracing.record.launches.launch_recorder import LaunchRecorder
from tracing.store.segments import occupied_bytes

LAUNCHES = int(os.environ.get("LAUNCHES", "100000"))
STEP = 20
CHECKS = 20
LAST = 50


def resident() -> int:
    """Bytes of this process in memory."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


class Announced:
    """Launches a kernel; on the virtual GPU once, and then only announces its launches."""

    def __init__(self, device: Device) -> None:
        self._runs = not device.virtual
        self._site: Any = None
        self._grid: Any = None

    def before(self, site: Any, values: Sequence[Any], stream: int, grid: Any) -> object:
        self._site, self._grid = site, grid
        return hooks.NOTHING_AFTER

    def after(self, token: object) -> None:
        """No launch is waited for."""

    def __call__(self, x: torch.Tensor, y: torch.Tensor, count: int) -> None:
        if self._runs:
            add_kernel[(1,)](x, 64, y, count)
        elif self._site is None:
            with hooks.installed(self):
                add_kernel[(1,)](x, 64, y, count)
        else:
            hooks.conclude(hooks.announce(self._site, (x, y, count), 0, self._grid))


def one_step(number: int, x: torch.Tensor, add: Announced) -> torch.Tensor:
    """Launches with a scalar that changes in each tenth step, and an operator with a number of its own."""
    for _ in range(STEP):
        y = torch.zeros(64, device=x.device)
        add(x, y, 2 + number // 10)
        x = y
    return torch.zeros(64, device=x.device).add_(x[:64], alpha=1 / (1 + number))


@pytest.mark.timeout(4 * 3600)
def test_memory_and_disk_are_flat(tmp_path: Path) -> None:
    selection = StepSelection(last=LAST)
    device = Device("sm_90", select=False)
    writer = store.create(tmp_path, replace(INFO, steps=selection))
    memory, disk, objects = list[int](), list[int](), list[int]()
    steps, add = LAUNCHES // STEP, Announced(device)
    with device.active(), LaunchRecorder(writer, steps=selection):
        x = torch.zeros(64, device="cuda" if not device.virtual else "cpu")
        for step in range(steps):
            x = one_step(step, x, add)
            tracing.step()
            if (step + 1) % max(1, steps // CHECKS) == 0:
                run = store.Run(writer.path)
                launches = [one.index for one in run.launches()]
                assert LAST * STEP <= len(launches) <= (LAST + LAST // 8 + 2) * STEP
                assert launches[-1] == (step + 1) * STEP - 1
                assert first_nonfinite(run).origin is None
                gc.collect()
                memory.append(resident())
                disk.append(occupied_bytes(writer.path) + occupied_bytes(writer.path / "blobs"))
                objects.append(len(gc.get_objects()))
                print(f"{(step + 1) * STEP:>9} launches: {memory[-1] >> 20} MiB, {objects[-1]} objects, "
                      f"{disk[-1] >> 10} KiB on disk", flush=True)  # fmt: skip
    writer.append(Outcome("ended", "exit status 0"))
    writer.close()

    settled = len(memory) // 4  # before, caches fill
    assert max(disk[settled:]) < 1.2 * disk[settled]
    assert memory[-1] - memory[settled] < 16 << 20
    assert objects[-1] - objects[settled] < 2_000
