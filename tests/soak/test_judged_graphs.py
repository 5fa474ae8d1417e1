"""Programs of all kinds and 10,000 random graphs: no right kernel is accused, and planted faults are."""

from __future__ import annotations

import random
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pytest
import torch

sys.path.insert(0, str(Path(__file__).parents[1] / "judge"))
sys.path.insert(0, str(Path(__file__).parents[1] / "numerics"))

import graphs
from judged_programs import PROGRAMS
from planted_kernels import Program, changes, edits, judgement, launches, recorded, virtual_gpu

from tracing.analyze.judge.judgement import RunJudgement
from tracing.judge.steps.step_verdict import PARTIAL

GRAPHS = 10_000
DTYPES = (torch.float32, torch.bfloat16, torch.float16)
KINDS = ("constant", "operator", "function", "index", "mask")
SMALL = {torch.float32: 1e-4, torch.bfloat16: 0.1, torch.float16: 0.02}  # relative: rounding may explain it


def accused(said: RunJudgement) -> list[object]:
    return [one for one in said.launches if one.verdict in ("off", "inputs wrong")] + [*said.findings]


@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", [*PROGRAMS])
def test_no_launch_of_a_right_program_is_accused(name: str, tmp_path: Path) -> None:
    with virtual_gpu() as device:
        said = judgement(recorded(PROGRAMS[name], tmp_path, device))

    assert accused(said) == []
    assert said.status == 0


def program(seed: int) -> Program:
    steps = graphs.graph(seed)
    x, y = graphs.inputs(seed, DTYPES[seed % 3])
    return Program(lambda a, b: graphs.run(steps, a, b), lambda: (x.clone(), y.clone()))


def judged(seed: int, folder: Path) -> tuple[str, str]:
    """What is said of a right graph, and of one with a fault."""
    rng = random.Random(seed)
    with virtual_gpu() as device:
        right = recorded(program(seed), folder, device)
        assert accused(judgement(right)) == [], seed
        kernels = sorted({one.kernel_name for one in launches(right)})
        if not kernels:
            return "right", "no kernel"
        chosen, wanted, done = rng.choice(kernels), rng.choice(KINDS), []

        def plant(kernel: str, source: str) -> str:
            possible = dict(edits(source, rng)) if kernel == chosen else {}
            if not possible:
                return source
            done.append(wanted if wanted in possible else rng.choice([*possible]))
            return possible[done[-1]]

        wrong = recorded(program(seed), folder, device, plant)
        sizes = changes(right, wrong)
    if not done or not any(sizes.values()):
        return "right", "the fault changes no bit"
    faulty = [one.index for one in launches(wrong) if one.kernel_name == chosen and sizes[one.index]]
    return "right", said_of(judgement(wrong), sizes, faulty, SMALL[DTYPES[seed % 3]])


def said_of(said: RunJudgement, sizes: dict[int, float], faulty: Sequence[int], small: float) -> str:
    """What is said of launches that a faulty kernel changes, by `sizes` relative to their largest value."""
    one, launch = said.accused, faulty[0]
    if one is None:
        own = next(each for each in said.launches if each.launch == launch)
        together = (launch, *own.others)
        # what one leaves to the next is no value of the graph: their result is judged
        if own.why == PARTIAL:
            together = tuple(each.launch for each in said.launches if each.launch > launch)
        size = sizes[max(together)] if own.others else max(map(sizes.__getitem__, together))
        assert size < small, f"launches {together} differ by {size:.2g}, and nothing is accused"
        return "explained by rounding"
    together: Sequence[int] = (one.launch, *one.others)
    assert {*together} & {*faulty}, f"launches {faulty} have a fault, accused is {one}"
    return "accused" if {*together} <= {*faulty} else "accused, with another one"


@pytest.mark.timeout(0)
def test_a_planted_fault_is_accused_and_nothing_else(tmp_path: Path) -> None:
    seen: Counter[str] = Counter()
    for seed in range(2_000_000, 2_000_000 + GRAPHS):
        seen.update(judged(seed, tmp_path / str(seed)))
    print(*(f"{number:7d}  {name}" for name, number in sorted(seen.items())), sep="\n")
