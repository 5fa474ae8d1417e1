"""Faults planted in torch.compile by tests/data/bisected.py, and what a search has to say of each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tracing.analyze.bisect_case.case_events import CaseAnswer
from tracing.analyze.bisect_case.case_search import CaseSearch
from tracing.cli.narrow.bisect.case_builds import CaseBuilds
from tracing.compiler.child import in_child
from tracing.program.device import Device
from tracing.program.experiment import Experiment
from tracing.program.warm_compiler import warm_up
from tracing.report.bisect.bisect_case import accused

CASE = Path(__file__).parents[1] / "data" / "bisected.py"


@dataclass(frozen=True)
class CaseFault:
    """One fault."""

    name: str  # of a function in tests/data/bisected.py
    layer: str
    does: str
    accused: str  # what the search has to say
    times: int = 1  # compiles that tell how often the case goes wrong


FAULTS: Sequence[CaseFault] = (
    CaseFault("dynamo", "Dynamo", "a tanh of its graph becomes a sin", "Dynamo"),
    CaseFault(
        "partition", "AOTAutograd", "the partitioner makes a cos of the backward graph a sin",
        "AOTAutograd (functionalization, aliases, the partition into forward and backward)",
    ),
    CaseFault(
        "decomposition_of_silu", "decompositions", "silu becomes 1.01 * silu",
        "aot_eager_decomp_partition > decompositions > aten.silu.default",
    ),
    CaseFault(
        "pre_grad_pass", "pre-grad passes", "a pass makes a tanh a sin",
        "joint graph > pre-grad passes > fuse_fx",
    ),
    CaseFault(
        "joint_pass", "joint-graph passes", "a pass makes a tanh a sin",
        "joint graph > joint-graph passes > constant_fold_uniform_value",
    ),
    CaseFault(
        "joint_pattern", "joint-graph passes", "a pattern is replaced by a negation",
        "joint graph > patterns > pointless_permute_pair at permute_1",
    ),
    CaseFault(
        "post_grad_pass", "post-grad passes", "a pass makes a tanh a sin",
        "post-grad graph > post-grad passes > remove_assert_ops",
    ),
    CaseFault(
        "reinplacing", "post-grad passes", "index_put becomes index_put_ of a buffer that is read later",
        "post-grad graph > post-grad passes > reinplace_inplaceable_ops",
    ),
    CaseFault("lowering_raises", "lowerings", "one raises", "inductor > lowerings > sigmoid"),
    CaseFault("lowering_of_sigmoid", "lowerings", "one adds 1 %", "inductor > lowerings > sigmoid"),
    CaseFault(
        "lowering_of_every_sin", "lowerings", "one adds 1 %, for three nodes",
        "inductor > lowerings > sin, sin_1, sin_2",
    ),
    CaseFault(
        "lowering_now_and_then", "lowerings", "one adds 1 % in half of the compiles",
        "inductor > lowerings > sigmoid", times=8,
    ),
    CaseFault(
        "inlined_into_cat", "inlining", "a cat adds 1 % to what is computed in it",
        "inductor > inlining > exp, add",
    ),
    CaseFault(
        "code_if_fused", "fusion", "the code of exp adds 1 % in a fused kernel",
        "inductor > fusion > op0 + op1",
    ),
    CaseFault(
        "persistent_reduction", "code", "the code of a persistent sum adds 1 %",
        "inductor > settings > inductor.triton.persistent_reductions > lowerings > sum_1",
    ),
    CaseFault(
        "code_of_sin", "code", "the code of sin adds 1 %", "inductor > lowerings > sin, sin_1, sin_2"
    ),
    CaseFault(
        "in_place_of_a_live_buffer", "memory", "an output takes the memory of a buffer that is read later",
        "inductor > in-place updates > buf1 in the memory of buf0",
    ),
    CaseFault(
        "reused_output", "memory", "buffers take the memory of outputs",
        "inductor > reuse of buffers > buf2 in the memory of buf1, buf4 in the memory of buf1, "
        "buf5 in the memory of buf4",
    ),
    CaseFault(
        "second_graph", "graphs", "the code of cos adds 1 %, after a graph break",
        "inductor > graphs > graph 1 forward > lowerings > cos",
    ),
)  # fmt: skip


def search_of(fault: CaseFault, runs: Path) -> Callable[[], dict[str, Any]]:
    """What searches a case with a fault in this process, which has the fault from then on."""

    def search() -> dict[str, Any]:
        device = Device("sm_90")
        name = f"{CASE}:fault={fault.name}"
        builds = CaseBuilds(Experiment(device.load(name), device, 0), [name, "sm_90", "0"], runs, 120)
        *_, last = CaseSearch(builds, fault.times, lambda: None).events()
        said = accused(last) if isinstance(last, CaseAnswer) else "nobody"
        return {"accused": said, "built": builds.built, "known": builds.known}

    return search


def in_warm_process(call: Callable[[], Any], seconds: float) -> Any:
    """Call in a child that compiles quickly; raises AssertionError if it fails."""

    def warm() -> Any:
        warm_up(Device("sm_90"))
        return call()

    ended = in_child(warm, seconds)
    assert not ended.failure, f"{ended.failure}\n{ended.stderr}"
    return ended.result


def searched(fault: CaseFault, runs: Path, seconds: float) -> dict[str, Any]:
    """Search in a child of a warm process, so that the fault stays there; with the seconds that it took."""
    ended = in_child(search_of(fault, runs), seconds)
    assert not ended.failure, f"{fault.name}: {ended.failure}\n{ended.stderr}"
    return {**ended.result, "seconds": ended.seconds}
