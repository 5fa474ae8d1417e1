"""Running the compiler pass by pass gives the artefacts of a plain compilation, and notifies observers."""

from __future__ import annotations

import linecache
import threading
from typing import Any

import pytest
import triton
from data import kernels
from recorded.case_kernels import the_assembler_did
from triton._C.libtriton import ir, passes
from triton.backends.nvidia.compiler import CUDABackend

from tracing.compiler.pipeline import observed
from tracing.compiler.steps import Pass
from tracing.model import Compilation


class Seen:
    """An observer that keeps every notification."""

    def __init__(self, compilation: Compilation) -> None:
        self.compilation = compilation
        self.steps: list[Pass] = []
        self.texts: list[str] = []
        self.artefacts: dict[str, Any] = {}
        self.end = 0

    def before(self, step: Pass, module: Any) -> None:
        self.steps.append(step)

    def after(self, step: Pass, module: Any, wall_ms: float) -> None:
        self.texts.append(module.str())

    def artefact(self, stage: str, content: object, wall_ms: float) -> None:
        self.artefacts[stage] = content if isinstance(content, (str, bytes)) else str(content)

    def ended(self) -> None:
        self.end += 1


def watch(name: str, target: str) -> tuple[Seen, dict[str, bytes | str]]:
    seen: list[Seen] = []

    def started(compilation: Compilation, source: Any) -> Seen:
        seen.append(Seen(compilation))
        return seen[-1]

    with observed(started):
        artefacts = kernels.compiled(name, target)
    (only,) = seen
    return only, artefacts


@pytest.fixture(scope="module")
def softmax() -> Seen:
    return watch("softmax", "sm_80")[0]


@pytest.mark.parametrize("target", kernels.TARGETS)
@pytest.mark.parametrize(
    "name",
    [pytest.param(one, marks=pytest.mark.soak) if one == "attention" else one for one in kernels.KERNELS],
)
def test_artefacts_are_those_of_an_untouched_compile(name: str, target: str) -> None:
    untouched = kernels.compiled(name, target)

    seen, artefacts = watch(name, target)

    cubins = untouched.pop("cubin", b""), artefacts.pop("cubin", b"")
    assert artefacts == untouched
    assert cubins[0] == cubins[1] or the_assembler_did(seen.compilation, untouched, cubins)


def test_observers_receive_a_pass_with_its_adder_arguments_pipeline_and_caller(
    softmax: Seen,
) -> None:
    step = next(step for step in softmax.steps if step.name == "convert-triton-to-tritongpu")

    file, _, line = step.caller.rpartition(":")
    assert (step.stage, step.adder) == ("ttgir", "passes.ttir.add_convert_to_ttgpuir")
    assert step.arguments[:3] == ("'cuda:80'", "4", "32")
    assert "convert-triton-to-tritongpu{" in step.pipeline and "num-warps=4" in step.pipeline
    assert "add_convert_to_ttgpuir" in linecache.getline(file, int(line))


def test_passes_are_numbered_over_all_stages_and_end_with_the_compilation(softmax: Seen) -> None:
    assert [step.index for step in softmax.steps] == list(range(len(softmax.texts)))
    assert list(dict.fromkeys(step.stage for step in softmax.steps)) == ["ttir", "ttgir", "llir"]
    assert softmax.end == 1


def test_a_compilation_names_its_kernel_and_where_its_source_begins(softmax: Seen) -> None:
    compilation = softmax.compilation

    line = kernels.softmax.fn.__code__.co_firstlineno
    assert (compilation.kernel_name, compilation.target, compilation.first) == ("softmax", "cuda:80", "ttir")
    assert compilation.file == f"{kernels.__file__}:{line}"
    assert compilation.options["num_warps"] == "4"
    assert compilation.constants == {"BLOCK": "1024"}


def test_every_stage_gives_its_artefact(softmax: Seen) -> None:
    assert list(softmax.artefacts) == ["ttir", "ttgir", "llir", "ptx", "cubin"]


@pytest.fixture
def instrumented(monkeypatch: pytest.MonkeyPatch) -> None:
    """Adds one more pass to every pass manager, from C++, so that no Python function is called."""
    add_cse = passes.common.add_cse

    class Instrumented(ir.pass_manager):  # type: ignore[misc]
        def enable_debug(self) -> Any:
            add_cse(self)
            return super().enable_debug()

    monkeypatch.setattr(ir, "pass_manager", Instrumented)


def test_passes_added_by_cpp_run_as_one_block_with_their_neighbours(instrumented: None) -> None:
    untouched = kernels.compiled("vector_add", "sm_80")

    seen, artefacts = watch("vector_add", "sm_80")

    block = seen.steps[-1]
    assert (block.stage, block.adder, artefacts["ptx"]) == ("llir", "", untouched["ptx"])
    assert block.name.startswith("cse+") and "convert-triton-gpu-to-llvm" in block.name


def test_two_observers_are_both_notified() -> None:
    told: list[str] = []
    with observed(lambda *_: told.append("outer")), observed(lambda *_: told.append("inner")):
        kernels.compiled("vector_add", "sm_80")

    assert told == ["outer", "inner"]


def test_compilations_in_threads_are_distinguished() -> None:
    seen: list[Seen] = []

    def started(compilation: Compilation, source: Any) -> Seen:
        seen.append(Seen(compilation))
        return seen[-1]

    with observed(started):
        threads = [
            threading.Thread(target=compile_plainly, args=(name,)) for name in ("vector_add", "softmax")
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    assert {one.compilation.kernel_name for one in seen} == {"vector_add", "softmax"}
    assert all([step.index for step in one.steps] == list(range(len(one.texts))) for one in seen)


def compile_plainly(name: str) -> None:
    try:
        triton.compile(kernels.source(name), target=kernels.TARGETS["sm_90"])
    except SystemError:  # CPython 3.11: `ast.parse` counts the recursion of two threads together
        triton.compile(kernels.source(name), target=kernels.TARGETS["sm_90"])


def test_every_patch_is_removed_afterwards() -> None:
    before = ir.pass_manager, passes.common.add_cse, CUDABackend.add_stages
    with pytest.raises(ZeroDivisionError), observed(lambda one, source: None):
        assert ir.pass_manager is not before[0]
        raise ZeroDivisionError

    assert (ir.pass_manager, passes.common.add_cse, CUDABackend.add_stages) == before
