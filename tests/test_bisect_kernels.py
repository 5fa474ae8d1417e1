"""Faults planted in real compilations for sm_80: the pass with one is named, or it is said why it is not."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from math import log2
from pathlib import Path

import pytest
from planted import FaultyBuilder, FaultyLlvm, Subject, needs_llvm_options, record, subject

from tracing.analyze.bisect import FirstBad, Judgement, Undecided, first_bad
from tracing.analyze.judge import CommandJudge, artefact
from tracing.analyze.layers import Bisection
from tracing.analyze.probes import Compiled, Probes
from tracing.store import Run

NO_MINIMUM = CommandJudge(["sh", "-c", "! grep -qE 'min\\.(NaN\\.)?f32' {ptx}"], ["ptx"])


class Reads:
    """A judge that reads one artefact."""

    def __init__(self, stage: str, bad: Callable[[str], bool]) -> None:
        self.stages: Sequence[str] = [stage]
        self.key: Sequence[str] = [bad.__name__]
        self._bad = bad

    def __call__(self, folder: Path) -> Judgement:
        return Judgement("bad" if self._bad(artefact(folder, self.stages[0]).read_text()) else "good")


def waits_for_nothing(ptx: str) -> bool:
    """Whether a wait leaves in flight as many copies as were ever started before it."""
    started = 0
    for line in ptx.splitlines():
        started += "cp.async.commit_group" in line
        wait = re.search(r"cp\.async\.wait_group\s+(\d+)", line)
        if wait and int(wait[1]) >= started:
            return True
    return False


def subtracts_from_the_maximum(llir: str) -> bool:
    """Whether a score is taken from the largest one, where the largest is to be taken from each."""
    largest = set(re.findall(r"(%\S+) = .*call .*@llvm\.max(?:num|imum)", llir))
    taken = re.findall(r"fsub float (%\S+), (%\S+?)(?:,|$)", llir, re.MULTILINE)
    return any(whole in largest and part not in largest for whole, part in taken)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return record(tmp_path_factory.mktemp("runs"))


def recorded(path: Path, kernel: Subject) -> Path:
    """The folder of a build without any fault: what was recorded."""
    return Probes(path, NO_MINIMUM).build(["recorded"], lambda: Compiled(kernel.recorded)).folder


def faulty(
    kernel: Subject, name: str, edit: Callable[[str], str], judge: CommandJudge | Reads, path: Path
) -> tuple[Bisection, Probes, int]:
    index = kernel.index(name)
    probes = Probes(path, judge)
    builder = FaultyBuilder(kernel, index, edit, judge.stages[-1])
    return Bisection(kernel.passes, probes, builder, [name]), probes, index


def lax(ir: str) -> str:
    return re.sub(r"(ttg\.async_wait .*?num = )(\d+)", lambda found: f"{found[1]}{int(found[2]) + 2}", ir)


def swapped(ir: str) -> str:
    return re.sub(r"arith\.subf (%\S+), (%\S+) :", r"arith.subf \2, \1 :", ir)


def minimal(ir: str) -> str:
    return ir.replace("arith.maxnumf", "arith.minnumf")


@pytest.mark.parametrize(
    ("kernel", "name", "edit", "judge"),
    [
        ("matmul", "tritongpu-pipeline", lax, Reads("ptx", waits_for_nothing)),
        ("attention", "tritongpu-reorder-instructions", swapped, Reads("llir", subtracts_from_the_maximum)),
        ("softmax", "tritongpu-coalesce", minimal, NO_MINIMUM),
    ],
    ids=["an async_wait too lax", "swapped operands of subf", "a minimum in place of a maximum"],
)
def test_a_fault_planted_in_a_pass_is_found_in_twice_the_logarithm_of_probes(
    kernel: str, name: str, edit: Callable[[str], str], judge: CommandJudge | Reads, run: Run, tmp_path: Path
) -> None:
    bisection, probes, index = faulty(subject(run, kernel), name, edit, judge, tmp_path)
    assert judge(recorded(tmp_path, subject(run, kernel))).verdict == "good"
    assert bisection.full().verdict == "bad"

    layer = bisection.mlir().layer
    found = first_bad(layer)

    assert isinstance(found, FirstBad), found
    assert (found.step.name, found.step.index) == (name, index)
    assert len(found.tried) <= 2 * log2(len(layer.steps))
    assert probes.judged <= len(found.tried) + 4  # the full pipeline, both sides again, and it alone left out
    assert found.alone is not None and found.alone.verdict == "good"


def test_a_fault_in_a_mandatory_pass_cannot_be_decided_and_the_pass_is_among_those_left(
    run: Run, tmp_path: Path
) -> None:
    name = "convert-triton-to-tritongpu"
    bisection, _, index = faulty(subject(run, "softmax"), name, minimal, NO_MINIMUM, tmp_path)

    passes = bisection.mlir()
    found = first_bad(passes.layer)

    assert isinstance(found, Undecided)
    assert found.because == "the pipeline of mandatory passes alone is bad as well (exit status 1)"
    left = {one.record.index: one for one in passes.mandatory}[index]
    assert (left.record.stage, left.record.name) == ("ttgir", name)
    assert "failed" in left.failure
    assert len(passes.mandatory) < len(bisection.changed) / 2


@needs_llvm_options
def test_a_fault_in_a_pass_of_llvm_is_found_there_and_nowhere_else(run: Run, tmp_path: Path) -> None:
    builder = FaultyLlvm(subject(run, "softmax"), "gvn")
    bisection = Bisection(builder.subject.passes, Probes(tmp_path, NO_MINIMUM), builder, ["llvm"])

    elsewhere, layer = first_bad(bisection.mlir().layer), bisection.llvm()
    found = first_bad(layer)

    assert isinstance(elsewhere, Undecided)
    assert isinstance(found, FirstBad)
    assert found.step.name == "gvn on softmax"
    assert len(found.tried) <= 2 * log2(len(layer.steps))


def test_the_level_of_ptxas_from_which_on_a_cubin_is_small_is_found(run: Run, tmp_path: Path) -> None:
    kernel = subject(run, "softmax")
    recorded = len(kernel.recorded["cubin"])
    large = CommandJudge(["sh", "-c", f"test $(wc -c < {{cubin}}) -gt {recorded + 1000}"], ["cubin"])
    builder = FaultyBuilder(kernel, 0, str, "cubin")
    variants = kernel.variants("cubin")
    builder.assembled = lambda level, assembler: Compiled(variants.assembled(level, assembler).result)

    levels = next(Bisection(kernel.passes, Probes(tmp_path, large), builder, ["ptxas"]).ptxas())
    found = first_bad(levels)

    assert isinstance(found, FirstBad)
    assert found.step.name == "-O1"
