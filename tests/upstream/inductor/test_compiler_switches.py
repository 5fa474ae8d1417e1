"""Settings of the compiler."""

from __future__ import annotations

from torch._inductor import config

from tracing.program.compile_steps import CompileSteps
from tracing.upstream.inductor import compiler_switches


def test_the_contract_holds_with_the_installed_versions() -> None:
    compiler_switches.contract()


def test_a_setting_that_is_left_out_has_its_least_value_inside() -> None:
    steps = CompileSteps(without={compiler_switches.SETTINGS: ["inductor.split_reductions"]})

    with compiler_switches.switches_asked([compiler_switches.OF_CODE], steps):
        inside = config.split_reductions, config.triton.persistent_reductions

    assert inside == (False, True)
    assert config.split_reductions
