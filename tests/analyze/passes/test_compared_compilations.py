"""Compilations whose artefacts differ are not equal, whatever the IR of their passes is."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from commands import tracing
from recorded.runs import recorded_passes

from tracing import store
from tracing.analyze.passes.compared_compilations import ComparedCompilations, CompilationComparer
from tracing.analyze.passes.compilations import compilations
from tracing.model import Derivation, Kernel


@pytest.fixture
def runs(tmp_path: Path) -> tuple[store.Run, store.Run]:
    a, b = (recorded_passes(tmp_path / name, ("softmax", "sm_90")) for name in "ab")
    return a, b


def launched(run: store.Run, stage: str, old: str, new: str) -> None:
    """The kernel was launched with another text of a stage, as with TRITON_KERNEL_OVERRIDE."""
    compiled = compilations(run)[0]
    blobs = {one.stage: one.blob for _, one in run.artefacts()}
    writer = store.RunWriter(run.path)
    text = run.text(blobs[stage])
    assert old in text
    stages = blobs | {stage: writer.blob(text.replace(old, new))}
    writer.append(Kernel(0, compiled.kernel_name, compiled.hash, compiled.target, 4, 3, 1, {}, stages))
    writer.close()


def compared(runs: tuple[store.Run, store.Run]) -> ComparedCompilations:
    a, b = (store.Run(run.path) for run in runs)
    return CompilationComparer(a, b).compared(compilations(a)[0], compilations(b)[0])


def test_equal_compilations_differ_in_nothing(runs: tuple[store.Run, store.Run]) -> None:
    answer = compared(runs)

    assert (answer.differ, answer.unexplained, answer.not_repeated) == (False, [], ("", ""))


def test_a_stage_that_was_replaced_differs_although_no_pass_does(runs: tuple[store.Run, store.Run]) -> None:
    launched(runs[1], "ttgir", "math.exp ", "math.exp2 ")
    names = [str(run.path) for run in runs]

    assert not compared(runs).passes_differ and compared(runs).unexplained == ["ttgir"]
    answer = tracing("passes", *names, runs=runs[0].path.parent)
    assert answer.returncode == 1
    assert "ttgir differs, although the IR is equal after every pass" in answer.stdout
    assert "another text replaced what the passes made" in answer.stdout
    one = tracing("passes", *names, "--pass", "tritongpu-coalesce", runs=runs[0].path.parent)
    assert one.returncode == 1 and "ttgir differs" in one.stdout
    data = json.loads(tracing("passes", *names, "--json", runs=runs[0].path.parent).stdout)
    assert (data["status"], data["kernels"][0]["artefacts_equal"]["ttgir"]) == (1, False)


def test_ir_that_a_repeated_compilation_gave_is_not_called_equal(runs: tuple[store.Run, store.Run]) -> None:
    launched(runs[1], "ttgir", "math.exp ", "math.exp2 ")
    writer = store.RunWriter(runs[1].path)
    (derived,) = runs[1].records(Derivation)
    writer.append(Derivation(derived.process, derived.compilation, "llir differs from what was recorded"))
    writer.close()

    answer = tracing("passes", *(str(run.path) for run in runs), runs=runs[0].path.parent)

    assert answer.returncode == 1 and "which pass makes the difference is not known" in answer.stdout
    assert "the IR is equal" not in answer.stdout
