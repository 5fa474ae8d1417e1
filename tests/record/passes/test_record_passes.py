"""The compiler passes of a run, even if the process dies in one of them."""

from __future__ import annotations

import functools
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest
import torch._inductor.config as inductor
from commands import TESTS, recorded, tracing
from data import kernels
from data.worker_kernel import WorkerKernel
from handmade.records import compiled as compiled_by_hand
from handmade.records import new_run
from torch._inductor import async_compile
from triton._C.libtriton import llvm, passes

from tracing.environment import installed
from tracing.errors import Problem
from tracing.model import Compilation, Derivation, NotCovered, PassEnd, PassStart
from tracing.record.passes import derivation
from tracing.record.passes.derivation import derive
from tracing.record.passes.recorder import PassRecorder
from tracing.record.passes.workers import recorded_in_workers
from tracing.store import Run


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> tuple[Run, dict[str, bytes | str]]:
    writer = new_run(tmp_path_factory.mktemp("runs"))
    with PassRecorder(writer):
        kernels.compiled("vector_add", "sm_90")
        artefacts = kernels.compiled("softmax", "sm_90")
    derive(writer.path)
    writer.close()
    return Run(writer.path), artefacts


def test_the_beginning_of_each_compilation_is_announced_with_their_number(tmp_path: Path) -> None:
    began: list[int] = []
    with PassRecorder(new_run(tmp_path)) as recorder:
        recorder.began = began.append
        kernels.compiled("vector_add", "sm_90")
        kernels.compiled("vector_add", "sm_80")

    assert began == [1, 2]


def test_each_pass_begins_with_the_output_of_the_previous_pass(compiled: tuple[Run, object]) -> None:
    passes = [one for one in compiled[0].passes() if one.compilation.kernel_name == "softmax"]

    assert [one.index for one in passes] == list(range(len(passes)))
    assert all(one.after == then.before for one, then in pairwise(passes))
    assert 5 < sum(one.changed for one in passes) < len(passes) / 2


def test_the_ir_after_the_last_pass_of_a_stage_is_its_artefact(compiled: tuple[Run, dict[str, str]]) -> None:
    run, artefacts = compiled
    last = [one for one in run.passes() if (one.compilation.id, one.stage) == (1, "ttgir")][-1]

    assert run.text(last.after or "") == artefacts["ttgir"]


def test_every_artefact_is_kept(compiled: tuple[Run, dict[str, bytes | str]]) -> None:
    run, artefacts = compiled
    kept = {one.stage: run.bytes(one.blob) for compilation, one in run.artefacts() if compilation.id == 1}

    assert list(kept) == ["ttir", "ttgir", "llir", "ptx", "cubin"]
    assert kept["cubin"] == artefacts["cubin"]
    assert kept["ptx"].decode() == artefacts["ptx"]


def test_a_compilations_source_is_the_ir_before_its_first_pass(compiled: tuple[Run, object]) -> None:
    first, second = compiled[0].records(Compilation)
    begins = [one.before for one in compiled[0].passes() if one.index == 0]

    assert [first.source, second.source] == begins


@pytest.mark.parametrize("target", ["sm_90", "gfx942"])
def test_the_derived_ir_equals_the_recorded_ir(tmp_path: Path, target: str) -> None:
    during, after = new_run(tmp_path), new_run(tmp_path)
    with PassRecorder(during, print_ir=True), PassRecorder(after):
        kernels.compiled("matmul", target)
    assert derive(during.path) == []
    (derived,) = derive(after.path)

    printed = [(one.name, one.before, one.after) for one in Run(during.path).passes()]
    assert derived.differs == ""
    assert [(one.name, one.before, one.after) for one in Run(after.path).passes()] == printed


def test_compilations_of_other_ranks_are_not_derived(tmp_path: Path) -> None:
    writer = new_run(tmp_path)
    with PassRecorder(writer):
        kernels.compiled("vector_add", "sm_90")

    assert derive(writer.path, rank=1) == []
    assert len(Run(writer.path).underived()) == 1


def test_no_compilation_without_its_source_is_repeated(tmp_path: Path) -> None:
    writer = new_run(tmp_path)
    with PassRecorder(writer):
        kernels.compiled("vector_add", "sm_90")
    for blob in (writer.path / "blobs").iterdir():
        blob.unlink()

    with pytest.raises(Problem, match="is damaged: No such file"):
        derive(writer.path)
    assert list(Run(writer.path).records(Derivation)) == []


def test_passes_that_differ_from_the_recorded_ones_are_not_stored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer = new_run(tmp_path)
    with monkeypatch.context() as patched, PassRecorder(writer):
        patched.setattr(passes.ttir, "add_reorder_broadcast", lambda manager: None)
        kernels.compiled("vector_add", "sm_90")
    (derived,) = derive(writer.path)

    assert "reorder-broadcast" in derived.differs
    assert {one.stage for one in Run(writer.path).passes() if one.before} == {"ttir"}


def test_a_stage_with_a_different_output_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    writer = new_run(tmp_path)
    with monkeypatch.context() as patched, PassRecorder(writer):
        whole = llvm.optimize_module
        patched.setattr(
            llvm, "optimize_module", lambda module, _, **rest: whole(module, llvm.OPTIMIZE_O0, **rest)
        )
        kernels.compiled("vector_add", "sm_90")
    (derived,) = derive(writer.path)

    assert derived.differs == "llir differs from what was recorded"


def test_an_ir_is_stored_only_once(tmp_path: Path) -> None:
    writer = new_run(tmp_path)
    with PassRecorder(writer):
        ttgir = str(kernels.compiled("vector_add", "sm_90")["ttgir"])
    name = writer.blob(ttgir)

    assert not (writer.path / "blobs" / f"{name}.zst").exists()
    assert Run(writer.path).text(name) == ttgir


DIES = """
import os, sys
from pathlib import Path
from triton._C.libtriton import ir
from data import kernels
from tracing.record.passes.recorder import PassRecorder
from tracing.store import RunWriter

class Dying(ir.pass_manager):
    def run(self, module, tag):
        if "tritongpu-coalesce" in self.get_pipeline_str():
            os.abort()
        super().run(module, tag)

ir.pass_manager = Dying
with PassRecorder(RunWriter(Path(sys.argv[1]))):
    kernels.compiled("softmax", "sm_90")
"""


def test_a_pass_that_takes_the_process_down_leaves_its_name_pipeline_and_ir(tmp_path: Path) -> None:
    run = new_run(tmp_path).path
    path = f"{TESTS}:{TESTS.parent}"

    died = subprocess.run([sys.executable, "-c", DIES, run], env={"PYTHONPATH": path}, capture_output=True)

    (derived,) = derive(run)
    *_, before, last = Run(run).passes()
    assert derived.differs == ""
    assert died.returncode == -signal.SIGABRT, died.stderr
    assert (last.name, last.after, last.before) == ("tritongpu-coalesce", None, before.after)
    assert "tritongpu-coalesce" in last.pipeline
    assert "ttg.num-warps" in Run(run).text(last.before)


def test_a_derivation_that_takes_too_long_is_dropped_without_losing_recorded_passes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer = new_run(tmp_path)
    with PassRecorder(writer):
        kernels.compiled("vector_add", "sm_90")
    with monkeypatch.context() as patched:
        whole = passes.ttgpuir.add_coalesce
        patched.setattr(passes.ttgpuir, "add_coalesce", lambda manager: (time.sleep(9), whole(manager)))
        patched.setattr(derivation, "SECONDS", 1)
        (late,) = derive(writer.path)

    assert re.fullmatch(r"the IR from pass \d+ on is not known: it did not end within 1 s", late.differs)
    assert len(Run(writer.path).underived()) == 1
    assert [one.differs for one in derive(writer.path)] == [""]


def test_a_derivation_that_somebody_kills_is_not_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer = new_run(tmp_path)
    with PassRecorder(writer):
        kernels.compiled("vector_add", "sm_90")
    with monkeypatch.context() as patched:
        patched.setattr(passes.ttgpuir, "add_coalesce", lambda manager: os.kill(os.getpid(), signal.SIGKILL))
        (killed,) = derive(writer.path)

    assert "it was ended by SIGKILL" in killed.differs
    assert list(Run(writer.path).records(Derivation)) == []
    assert [one.differs for one in derive(writer.path)] == [""]


def test_a_pass_whose_ir_is_not_known_is_listed(tmp_path: Path) -> None:
    run = new_run(tmp_path)
    compiled_by_hand(run, "k", "ir", ("ttir", "cse", "ir"), ("ttir", "licm", "other"))
    run.append(PassStart(0, 2, "ttir", "inline", "", (), "any(inline)", "compiler.py:1"))
    run.append(PassEnd(0, 2, 1.0))
    run.append(Derivation(run.process, 0, "the IR from pass 2 on is not known: it was ended by SIGABRT"))
    run.close()

    *_, last = Run(run.path).passes()
    shown = tracing("passes", str(run.path), "--kernel", "k", runs=tmp_path)

    assert (last.name, last.before, last.changed) == ("inline", "", False)
    assert re.search(r"2  ttir   inline  \?        +\?      \?", shown.stdout), shown.stdout
    assert "the IR from pass 2 on is not known" in shown.stderr


LIVES = """
import sys, time
from pathlib import Path
from data import kernels
from tracing.record.passes.recorder import PassRecorder
from tracing.store import RunWriter

with PassRecorder(RunWriter(Path(sys.argv[1]))):
    kernels.compiled("vector_add", "sm_90")
    print("compiled", flush=True)
    time.sleep(100)
"""


@pytest.mark.soak
def test_reading_a_run_that_is_being_recorded_leaves_it_unchanged(tmp_path: Path) -> None:
    run, path = new_run(tmp_path, installed("triton")).path, f"{TESTS}:{TESTS.parent}"
    command = [sys.executable, "-c", LIVES, str(run)]
    with subprocess.Popen(command, env={"PYTHONPATH": path}, stdout=subprocess.PIPE, text=True) as alive:
        assert alive.stdout and alive.stdout.readline() == "compiled\n"
        before = {file.name for file in run.rglob("*")}
        shown = tracing("passes", str(run), "--kernel", "vector_add", "--changed", runs=tmp_path)
        during = {file.name for file in run.rglob("*")}
        alive.kill()
    again = tracing("passes", str(run), "--kernel", "vector_add", "--changed", runs=tmp_path)

    assert "tritongpu-coalesce" in shown.stdout, shown.stderr
    assert "is still being recorded" in shown.stderr
    assert during == before
    assert again.stdout == shown.stdout
    assert any(run.glob("derivations-*"))


def test_of_a_run_that_grows_the_compilations_that_are_complete_are_read(tmp_path: Path) -> None:
    writer = new_run(tmp_path)
    compiled_by_hand(writer, "complete", "ir", ("ttir", "cse", "ir"))
    compiled_by_hand(writer, "compiling", "ir", ("ttir", "cse", None), number=1)
    underived = compiled_by_hand(writer, "underived", "ir", number=2)
    start = PassStart(underived.id, 0, "ttir", "cse", "passes.add_cse", (), "any(cse)", "compiler.py:7")
    writer.append(start)
    run = Run(writer.path)

    with pytest.raises(Problem, match="no IR between passes yet"):
        list(run.passes())
    run.growing = True

    assert [one.compilation.kernel_name for one in run.passes()] == ["complete"]


def test_a_compilation_in_a_fork_does_not_write_to_its_parents_files(tmp_path: Path) -> None:
    writer = new_run(tmp_path)
    with PassRecorder(writer):
        child = os.fork()
        if child == 0:
            kernels.compiled("vector_add", "sm_90")
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0

    assert list(Run(writer.path).passes()) == []


@pytest.fixture(params=["subprocess", "fork"])
def pool(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[async_compile.AnyPool]:
    async_compile.AsyncCompile.process_pool.cache_clear()
    with inductor.patch(worker_start_method=request.param, compile_threads=2):
        yield async_compile.AsyncCompile.process_pool()
        async_compile.shutdown_compile_workers()


def test_compilations_of_inductors_workers_are_in_the_run_too(
    tmp_path: Path, pool: async_compile.AnyPool
) -> None:
    writer = new_run(tmp_path)
    with PassRecorder(writer), recorded_in_workers(writer):
        pool.submit(async_compile._worker_compile_triton, WorkerKernel, {}, {}).result(100)

    (compilation,) = Run(writer.path).records(Compilation)
    assert compilation.kernel_name == "vector_add"
    assert [one.differs for one in derive(writer.path)] == [""]
    assert len(list(Run(writer.path).passes())) > 50


def test_inductors_workers_are_restored_after_the_run(tmp_path: Path) -> None:
    before = async_compile._worker_compile_triton
    with recorded_in_workers(new_run(tmp_path)):
        assert isinstance(async_compile._worker_compile_triton, functools.partial)

    assert async_compile._worker_compile_triton is before


def test_a_torch_that_starts_workers_differently_is_reported_as_not_covered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(async_compile, "_worker_compile_triton")
    writer = new_run(tmp_path)
    with recorded_in_workers(writer):
        pass

    (gap,) = Run(writer.path).records(NotCovered)
    assert "workers" in gap.what and gap.setting == "TORCHINDUCTOR_COMPILE_THREADS=1"


# ---- the commands ----


@pytest.fixture(scope="module")
def silu(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return Path(recorded("silu", tmp_path_factory.mktemp("runs"), "--target", "gfx942"))


def test_a_run_has_the_passes_of_every_kernel_that_it_launched(silu: Path) -> None:
    run = Run(silu)
    launched = {launch.kernel.hash for launch in run.launches()}

    assert launched and launched <= {one.compilation.hash for one in run.passes()}
    assert not list(run.records(NotCovered))


def test_a_recorded_ir_is_resumed_to_the_recorded_artefacts(silu: Path) -> None:
    name, kernel = silu.name, next(Run(silu).records(Compilation)).hash

    resumed = tracing("resume", name, "--kernel", kernel, "--pass", "tritongpu-coalesce", runs=silu.parent)

    assert resumed.stdout.splitlines() == [
        f"{one}: identical" for one in ("ttgir", "llir", "amdgcn", "hsaco")
    ]
    assert resumed.returncode == 0


def test_an_edited_ir_gives_different_artefacts_and_exit_status_1(silu: Path, tmp_path: Path) -> None:
    run = Run(silu)
    first = next(run.passes())
    edited = tmp_path / "edited.mlir"
    edited.write_text(run.text(first.before).replace("arith.mulf", "arith.addf"))
    asked = ("--kernel", first.compilation.hash, "--pass", "0", "--ir", str(edited))

    resumed = tracing("resume", silu.name, *asked, "--to", "amdgcn", "-o", str(tmp_path), runs=silu.parent)

    assert resumed.returncode == 1, resumed.stderr
    assert "amdgcn: differs" in resumed.stdout
    assert "what the edit changes in ttir, recorded (-) and made here (+):" in resumed.stdout
    assert re.search(r"^ *\+.*arith\.addf", resumed.stdout, re.MULTILINE)
    assert "v_add_f32" in (tmp_path / f"{first.compilation.kernel_name}.amdgcn").read_text()


def test_an_unknown_pass_is_refused_with_similar_names(silu: Path) -> None:
    kernel = next(Run(silu).records(Compilation)).hash

    refused = tracing("resume", silu.name, "--kernel", kernel, "--pass", "coalesce", runs=silu.parent)

    assert refused.returncode == 2
    assert "no pass coalesce" in refused.stderr and "tritongpu-coalesce" in refused.stderr
