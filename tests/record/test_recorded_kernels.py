"""The record of a kernel, from what its launch site knows."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

from handmade.records import INFO

from tracing import store
from tracing.launch.launch_site import KernelArtefacts
from tracing.record.recorded_kernels import RecordedKernels


def test_kernels_whose_ttir_is_not_there_are_one_gap(tmp_path: Path) -> None:
    said: list[tuple[str, str]] = []
    writer = store.create(tmp_path, INFO)
    kernels = RecordedKernels(writer, lambda *one: said.append(one))
    for name in ("softmax_kernel", "norm_kernel"):
        kernels.of(without_ttir(name))
    writer.close()

    reason = "what some kernels read and write, as softmax_kernel: no TTIR to read ('ttir')"
    assert {*said} == {(reason, "a fresh Triton cache")}


def without_ttir(name: str) -> Any:
    def declared() -> Any:
        raise KeyError("ttir")

    artefacts = KernelArtefacts(name, "cuda:90", {}, {}, {}, declared)
    return SimpleNamespace(name=name, kind="triton", binary=object(), compiled=lambda: artefacts)
