"""A compilation resumes before any pass, and gives the artefacts of the whole compilation."""

from __future__ import annotations

import inspect
import os
from dataclasses import dataclass, field, replace
from typing import Any

import msgspec
import pytest
from data import kernels
from triton.backends.nvidia.compiler import CUDABackend

from tracing.compiler.pipeline import observed
from tracing.compiler.resume import ResumePoint, options_of, resume
from tracing.compiler.steps import Pass
from tracing.errors import Problem
from tracing.model import Compilation

PLACES = {
    "vector_add": 1,
    "softmax": 1,
    "matmul": 8,
    "attention": 16,
}  # resumes at every n-th pass: all of them take minutes


@dataclass
class Recorded:
    """A compilation with every IR that it can be resumed from, by stage and index of the next pass."""

    compilation: Compilation
    places: dict[tuple[str, int], str] = field(default_factory=dict)
    names: dict[str, int] = field(default_factory=dict)
    artefacts: dict[str, bytes | str] = field(default_factory=dict)

    def before(self, step: Pass, module: Any) -> None:
        self.places[step.stage, step.index] = module.str()
        self.names.setdefault(step.name, step.index)

    def after(self, step: Pass, module: Any, wall_ms: float) -> None:
        self.places[step.stage, step.index + 1] = module.str()

    def artefact(self, stage: str, content: object, wall_ms: float) -> None: ...

    def ended(self) -> None: ...

    def point(self, stage: str, index: int, **changes: Any) -> ResumePoint:
        entered = next((ir for (of, _), ir in self.places.items() if of == stage), None)
        point = ResumePoint(self.places.get((stage, index), ""), stage, index, entered=entered)
        return replace(point, **changes)

    def resumed(self, stage: str, index: int, text: str | None = None, **how: Any) -> dict[str, Any]:
        point = self.point(stage, index, **({"ir": text} if text else {}))
        return resume(self.compilation, point, **{"last": "ptx", **how})


def recorded(name: str, target: str = "sm_90") -> Recorded:
    compilations: list[Recorded] = []

    def started(compilation: Compilation, source: Any) -> Recorded:
        compilations.append(Recorded(compilation))
        return compilations[-1]

    with observed(started):
        artefacts = kernels.compiled(name, target)
    compilations[0].artefacts = artefacts
    return compilations[0]


@pytest.fixture(scope="module")
def add() -> Recorded:
    return recorded("vector_add")


# ---- the recorded IR ----


@pytest.mark.parametrize(
    "name",
    [pytest.param(one, marks=pytest.mark.soak) if one == "attention" else one for one in kernels.KERNELS],
)
def test_the_ir_before_and_after_a_pass_gives_the_recorded_ptx(name: str) -> None:
    compilation = recorded(name)
    places = list(compilation.places)[:: PLACES[name]] + list(compilation.places)[-1:]

    different = [
        point for point in places if compilation.resumed(*point)["ptx"] != compilation.artefacts["ptx"]
    ]

    assert different == []


def test_an_amd_kernel_is_resumed_to_its_binary() -> None:
    compilation = recorded("softmax", "gfx942")

    made = compilation.resumed("llir", compilation.names["convert-scf-to-cf"], last=None)

    assert made == {stage: compilation.artefacts[stage] for stage in ("llir", "amdgcn", "hsaco")}


def test_the_first_ir_and_the_record_compile_the_kernel_with_no_python_source(add: Recorded) -> None:
    made = add.resumed("ttir", 0)

    assert made == {stage: add.artefacts[stage] for stage in ("ttir", "ttgir", "llir", "ptx")}


# ---- edited IR and other passes ----


def test_an_edited_ir_is_compiled(add: Recorded) -> None:
    point = "ttgir", add.names["tritongpu-coalesce"]

    made = add.resumed(*point, add.places[point].replace("arith.addf", "arith.mulf"))

    assert "mul.f32" in made["ptx"] and "mul.f32" not in add.artefacts["ptx"]


def test_passes_are_left_out_and_an_observer_receives_the_others(add: Recorded) -> None:
    dropped, watch = add.names["tritongpu-coalesce"], Recorded(add.compilation)

    made = add.resumed("ttgir", dropped - 1, drop=[dropped], observer=watch, last="ttgir")

    assert [index for _, index in watch.places][:3] == [dropped - 1, dropped, dropped + 1]
    assert "tritongpu-coalesce" not in watch.names
    assert made["ttgir"] != add.artefacts["ttgir"]


# ---- refusals ----


def test_ir_that_does_not_parse_is_reported_with_file_and_line(add: Recorded) -> None:
    with pytest.raises(Problem, match=r"edited\.mlir:2:3: error: .*foo\.bar"):
        resume(add.compilation, ResumePoint("module {\n  foo.bar\n}\n", "ttir", 0, file="edited.mlir"))


def test_a_pass_that_fails_is_named_with_tritons_own_message(add: Recorded) -> None:
    first = add.names["convert-triton-to-tritongpu"]
    point = "llir", add.names["convert-triton-gpu-to-llvm"]

    with pytest.raises(Problem, match=rf"pass {point[1]}, convert-triton-gpu-to-llvm, failed:.*error:"):
        add.resumed(*point, add.places["ttgir", first])


@pytest.mark.parametrize(
    ("stage", "index", "last", "said"),
    [
        ("sass", 0, None, "no stage sass"),
        ("ttir", 0, "sass", "no stage sass"),
        ("ttgir", 0, "ttir", "stage ttir is before stage ttgir"),
        ("ttir", 900, None, "pass 900 is not in stage ttir"),
    ],
)
def test_an_invalid_resume_point_is_refused(
    add: Recorded, stage: str, index: int, last: str | None, said: str
) -> None:
    with pytest.raises(Problem, match=said):
        add.resumed(stage, index, add.places["ttir", 0], last=last)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"target": "xpu:1"}, "does not know the target xpu:1"),
        ({"options": {"num_warps": "3"}}, "does not take these options"),
        ({"options": {"num_warps": "lambda: 4"}}, "option num_warps is lambda: 4"),
        ({"options": {"warps": "4"}}, "does not take these options"),
        ({"language": "mojo"}, "does not compile the language mojo"),
    ],
)
def test_a_compilation_that_this_triton_does_not_support_is_refused(
    add: Recorded, changes: dict[str, Any], said: str
) -> None:
    with pytest.raises(Problem, match=said):
        resume(msgspec.structs.replace(add.compilation, **changes), add.point("ttir", 0))


@pytest.mark.skipif(
    "str_nodebug" not in inspect.getsource(CUDABackend.make_llir),
    reason="this Triton's backend does not look at the IR that enters a stage",
)
def test_ir_that_the_backend_reads_in_addition_to_its_passes_is_required(add: Recorded) -> None:
    with pytest.raises(Problem, match="reads the IR that enters stage llir"):
        resume(add.compilation, add.point("llir", add.names["convert-scf-to-cf"], entered=None))


def test_output_of_other_threads_to_stderr_is_not_lost(
    add: Recorded, capfd: pytest.CaptureFixture[str]
) -> None:
    class Loud(Recorded):
        def before(self, step: Pass, module: Any) -> None:
            os.write(2, b"from elsewhere\n")

    add.resumed("llir", add.names["enable-line-info"], observer=Loud(add.compilation))

    assert capfd.readouterr().err == "from elsewhere\n"


def test_libraries_that_are_not_on_this_machine_are_left_to_the_backend() -> None:
    options = options_of({"extern_libs": "(('libdevice', '/nowhere/libdevice.10.bc'),)", "num_warps": "8"})

    assert options == {"extern_libs": (), "num_warps": 8}


@pytest.mark.parametrize("words", ["-o x", "--output-file=x", "-optf x", "--options-file x", "-v /home/me/x"])
def test_recorded_options_of_ptxas_name_no_files(words: str) -> None:
    with pytest.raises(Problem, match="names a file"):
        options_of({"ptx_options": repr(words)})

    assert options_of({"ptx_options": "'--opt-level 1 -v'"})["ptx_options"] == "--opt-level 1 -v"
