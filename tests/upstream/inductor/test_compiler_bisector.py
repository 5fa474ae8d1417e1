"""The queries of torch's CompilerBisector, answered in memory."""

from __future__ import annotations

from torch._inductor.compiler_bisector import CompilerBisector

from tracing.program.compile_steps import CompileSteps
from tracing.upstream.inductor import compiler_bisector


def test_the_contract_holds_with_the_installed_versions() -> None:
    compiler_bisector.contract()


def test_a_subsystem_is_disabled_inside_for_the_steps_that_are_not_made() -> None:
    def disabled(name: str) -> bool:
        return CompilerBisector.disable_subsystem("inductor", "post_grad_passes", lambda: name)

    steps = CompileSteps(without={compiler_bisector.POST_GRAD: ["b"]})
    with compiler_bisector.subsystems_asked(steps):
        inside = [disabled("a"), disabled("b"), disabled("b")]

    assert inside == [False, True, False]
    assert [one.label for one in steps.asked[compiler_bisector.POST_GRAD]] == ["a", "b", "b #2"]
    assert not disabled("b")
