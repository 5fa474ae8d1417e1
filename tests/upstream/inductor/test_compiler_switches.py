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


def test_a_partitioner_of_the_program_can_be_left_out() -> None:
    def partitioner(*args: object) -> None: ...

    steps = CompileSteps(without={compiler_switches.SETTINGS: ["inductor.custom_partitioner_fn"]})

    with (
        config.patch({"custom_partitioner_fn": partitioner}),
        compiler_switches.switches_asked([compiler_switches.OF_GRAPHS], steps),
    ):
        inside = config.custom_partitioner_fn

    (asked,) = [one for one in steps.asked[compiler_switches.SETTINGS] if "partitioner" in one.label]
    assert inside is None and asked.detail == "function; left out: None"
