"""LLVM's passes over a kernel, for the commands that show them: derived at first use, then kept."""

from __future__ import annotations

from rich.text import Text

from tracing import store
from tracing.analyze.passes.compilations import compilation, compilations, label, meant_compilations
from tracing.analyze.passes.llvm import llvm_passes
from tracing.analyze.passes.pass_table import meant_passes, no_pass, passes_of
from tracing.analyze.passes.source_map import artefacts
from tracing.cli.app import err, spinner
from tracing.cli.look.passes.question import PassQuestion
from tracing.cli.options.same_triton import require_same_triton
from tracing.errors import Problem
from tracing.model import Compilation, LlvmPasses, PassRecord

FACTOR = 12  # ratio of the time of printing every pass to LLVM's part of the recorded compilation
LONG = 3.0  # seconds; a longer derivation is announced


def derived_llvm(run: store.Run, chosen: Compilation, seconds: float) -> LlvmPasses:
    """LLVM's passes over one kernel of a run.

    seconds -- time limit

    Raises Problem if they are not derived yet and cannot be: the compilation did not reach LLVM, or
    another version of Triton is installed than recorded the run.
    """
    derived = llvm_passes(run, chosen)
    # another environment may reproduce the recorded compilation
    if derived is not None and not derived.differs:
        return derived
    require_same_triton(run, "ask", "LLVM's passes are not derived yet")
    run.require_trust("LLVM's passes on its IR")
    passes = passes_of(run, chosen)
    if not passes or passes[-1].stage != "llir" or passes[-1].after is None:
        raise Problem(
            f"the compilation of {chosen.kernel_name} did not reach LLVM",
            f"`tracing passes {run.path}` says in which pass it ended",
        )
    expected = FACTOR * _llvm_seconds(run, chosen, passes)
    if expected > LONG:
        err.print(Text(f"LLVM's passes are derived, some {expected:.0f} s; the run keeps them", "dim"))
    with spinner(f"printing LLVM's passes over {chosen.kernel_name} as they run"):
        # imports Triton, which takes seconds
        from tracing.compiler.resume import resume_point_before
        from tracing.record.passes.llvm import derive_llvm

        point = resume_point_before(passes[-1], passes, run.text)
        return derive_llvm(run, chosen, point, artefacts(run, chosen), seconds=seconds)


def require_llvm_pass(run: store.Run, asked: PassQuestion) -> None:
    """Raise Problem, with near names, where the user must choose a kernel, and no known one has the pass.

    If LLVM's passes over none of these kernels are derived yet, those over the first one are derived.
    """
    known = compilations(run)
    meant = meant_compilations(known, asked.kernel)
    if asked.which is None or asked.which.isdecimal() or len(meant) < 2 or _is_chosen(run, asked.kernel):
        return
    derived = {one.hash: one for one in meant if llvm_passes(run, one) is not None} or {
        meant[0].hash: meant[0]
    }
    passes = [one for kernel in derived.values() for one in derived_llvm(run, kernel, asked.seconds).passes]
    if not meant_passes(passes, asked.which, None):
        first, *more = derived.values()
        whose = f"{1 + len(more)} kernels" if more else label(known, first)
        problem, near = no_pass(passes, asked.which, None, f"{whose}: LLVM has")
        others = f"another of the {len(meant)} kernels: `--kernel NAME`"
        raise Problem(problem, f"{near}\n  {others}" if len(derived) < len(meant) else near)


def _is_chosen(run: store.Run, kernel: str | None) -> bool:
    try:
        return bool(compilation(run, kernel))
    except Problem:
        return False


def _llvm_seconds(run: store.Run, chosen: Compilation, passes: list[PassRecord]) -> float:
    # the time of the recorded compilation without MLIR's passes
    walls = {one.stage: one.wall_ms for whole, one in run.artefacts() if whole.hash == chosen.hash}
    mlir = sum(one.wall_ms or 0.0 for one in passes if one.stage == "llir")
    stages = sum(walls.get(stage, 0.0) for stage in ("llir", "ptx", "amdgcn"))
    return max(0.0, stages - mlir) / 1e3
