"""A GPU that stands in for a real one: its memory is the host's, its digest kernel a function in C.

The recorder's Python form launches the function through Triton's interface, the compiled form through that of
CUDA's driver: a library with the name of the driver's has it.
"""

from __future__ import annotations

import ctypes
import functools
import os
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from tracing.digest import gpu, kernel_launches
from tracing.digest.tables import WIDTH, Call, flat
from tracing.environment.compiled_parts import compilers
from tracing.record import operator_digests
from tracing.record.launches import digested_tensors
from tracing.record.launches.digested_tensors import DigestedTensors
from tracing.record.operator_digests import OperatorDigestQueue
from tracing.upstream.torch.dispatch_modes import dispatch_disabled

STREAM, SIDE_STREAM = 7, 7 << 40  # handles
SLOTS = 64  # of a batch: several batches come and go
_SLOTS, _SIZES = WIDTH, 3 * WIDTH  # among the kernel's arguments
_SOURCE = f"""
#include <stdint.h>
#include <stdlib.h>
int launched = 0, failing = 0;
int64_t recorded = 0;
int cuLaunchKernel(void* function, unsigned x, unsigned y, unsigned z, unsigned threads, unsigned threads_y,
                   unsigned threads_z, unsigned shared, void* stream, void** parameters, void** extra) {{
  if (failing) return failing;
  if ((uint64_t)stream != {STREAM} && (uint64_t)stream != {SIDE_STREAM}) return 400;
  launched++;
  for (int i = 0; i < {WIDTH}; i++) {{
    const unsigned char* bytes = *(unsigned char**)parameters[i];
    const int64_t count = *(int64_t*)parameters[{_SIZES} + i] > 0;
    uint64_t sum = 0;
    for (int64_t n = 0; n < count; n++) sum = (sum + bytes[n] + 1) * 0x9E3779B97F4A7C15ull;
    if (count) **(int64_t**)parameters[{_SLOTS} + i] += sum;
  }}
  return 0;
}}
int cuEventCreate(void** event, unsigned flags) {{
  *event = calloc(1, 8);
  return failing;
}}
int cuEventDestroy_v2(void* event) {{
  free(event);
  return 0;
}}
int cuEventSynchronize(void* event) {{ return failing; }}
int cuCtxGetCurrent(void** context) {{
  *context = &recorded;
  return failing;
}}
int cuEventElapsedTime(float* milliseconds, void* first, void* last) {{
  *milliseconds = *(int64_t*)last - *(int64_t*)first;
  return failing;
}}
int cuEventRecord(void* event, void* stream) {{
  *(int64_t*)event = ++recorded;
  return failing;
}}
"""


class HostGpu:
    """Counts the launches of digest kernels."""

    def __init__(self, driver: ctypes.CDLL) -> None:
        self._driver = driver
        self.by_python = 0
        self.arrives = True  # what was copied to the host
        self._copies: list[torch.Tensor] = []
        self._before = self._counted.value

    @property
    def _counted(self) -> ctypes.c_int:
        return ctypes.c_int.in_dll(self._driver, "launched")

    @property
    def by_driver(self) -> int:
        """The launches by the compiled form."""
        return self._counted.value - self._before - self.by_python

    def fail(self, status: int) -> None:
        """Let each launch return this status from now on; 0: they succeed."""
        ctypes.c_int.in_dll(self._driver, "failing").value = status

    def copied_calls(
        self, side: DigestedTensors, tensors: Sequence[torch.Tensor], device: torch.device, stream: int
    ) -> Sequence[Call]:
        """The original's, with copies that live until the launch: here no stream frees them after it."""
        read = list(tensors)
        with dispatch_disabled():
            for n, position in enumerate(side.positions):
                if position in side.copied:
                    plain = read[n].resolve_conj().resolve_neg()
                    read[n] = plain.clone(memory_format=torch.contiguous_format)
                    self._copies.append(read[n])
        return digested_tensors.copied_calls(replace(side, copied=frozenset()), read, device, stream)

    def run(self, programs: int, y: int, z: int, stream: int, *arguments: Any) -> None:
        """Launch a digest kernel as Triton's launchers do."""
        tensors, outs, *columns, _kind, _reading = arguments[5:]
        values = [ctypes.c_uint64(value) for value in flat(tensors, outs, columns)]
        parameters = (ctypes.c_void_p * len(values))(*[ctypes.addressof(value) for value in values])
        self.by_python += 1
        status = self._driver.cuLaunchKernel(
            None, programs, 1, 1, 1, 1, 1, 0, ctypes.c_void_p(stream), parameters, None
        )
        assert status == 0


def host_gpu(monkeypatch: pytest.MonkeyPatch, slots: int = SLOTS) -> HostGpu:
    """The recorder takes tensors on the host for those of a GPU until `monkeypatch` is undone.

    slots -- of a batch of digests
    """
    if torch.cuda.is_available():
        pytest.skip("there is a GPU: tests/gpu has the same with it")
    made = HostGpu(driver())
    made.fail(0)
    kernel = SimpleNamespace(metadata=SimpleNamespace(shared=0))
    compiled = kernel_launches.CompiledDigest(made.run, 1, None, kernel)
    outside = torch.inference_mode(False)(lambda make: make(torch.device("cpu")))
    event = SimpleNamespace(record=lambda stream: None, query=lambda: made.arrives, synchronize=lambda: None)
    for target, name, value in (
        (kernel_launches, "_compiled", lambda *kind: compiled),
        (operator_digests, "copied_calls", made.copied_calls),
        (gpu, "SLOTS", slots),
        (operator_digests, "SLOTS", slots),
        (gpu, "stream_of", lambda handle, device: None),
        (gpu, "current_handle", lambda index: STREAM),
        (gpu, "spare_memory", lambda device: SimpleNamespace(outside=outside)),
        (torch.cuda, "stream", lambda stream: nullcontext()),
        (torch.cuda, "Event", lambda: event),
        (OperatorDigestQueue, "device_type", "cpu"),
        (OperatorDigestQueue, "current_device", staticmethod(lambda: 0)),
        (OperatorDigestQueue, "current_stream", staticmethod(lambda index: STREAM)),
        (OperatorDigestQueue, "capturing", staticmethod(lambda: False)),
    ):
        monkeypatch.setattr(target, name, value)
    return made


@functools.cache
def driver() -> ctypes.CDLL:
    """The library in place of CUDA's driver; its events are [1] int64, the number of their last record."""
    compiler = next(filter(None, map(shutil.which, ("cc", *compilers()))))
    with tempfile.TemporaryDirectory() as folder:
        source, library = Path(folder, "driver.c"), Path(folder, "driver.so")
        source.write_text(_SOURCE)
        name = "-Wl,-soname,libcuda.so.1"
        command = [compiler, "-O1", "-shared", "-fPIC", name, "-xc", str(source), "-o", str(library)]
        subprocess.run(command, check=True)
        made = ctypes.CDLL(str(library), mode=ctypes.RTLD_GLOBAL)
    if ctypes.CDLL("libcuda.so.1", mode=os.RTLD_NOLOAD)._handle != made._handle:
        pytest.skip("CUDA's driver is loaded, so that no library can stand in for it")
    return made
