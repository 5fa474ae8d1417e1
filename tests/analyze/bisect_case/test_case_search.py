"""The search of a case, with a compiler that is made up."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, TypeAlias

import pytest

from tracing.analyze.bisect_case.case_events import (
    CaseAnswer,
    CaseEvent,
    CaseTried,
    Culprit,
    OtherCode,
    PartTried,
    PartUndecided,
    Planned,
    StageBlamed,
    TogetherBlamed,
)
from tracing.analyze.bisect_case.case_search import CaseSearch
from tracing.analyze.bisect_case.evaluation import (
    CompileStep,
    Evaluation,
    OwnKernel,
    Variation,
    WrittenKernel,
)
from tracing.analyze.bisect_case.stages import (
    AOT,
    CPP,
    DECOMPOSED,
    EAGER,
    FUSION,
    GRAPHS,
    INDUCTOR,
    INLINING,
    JOINED,
    LOWERINGS,
    POST_GRAD,
    POST_GRAD_GRAPH,
    REUSE,
    SETTINGS,
    STAGES,
    UNCOMPILED,
)
from tracing.analyze.bisect_case.symptom import Symptom, Wrong
from tracing.errors import Problem
from tracing.report.bisect.bisect_case import accused, answer_text, no_pass_text

RIGHT = Symptom("right", "it agrees")
WRONG = Symptom("differs", "output is off", (Wrong("output", "value"),))
OTHER = Symptom("differs", "a gradient is off", (Wrong("grad of x", "value"),))
ORDER = [one.name for one in STAGES]
SOURCES = {"triton_0": "triton_0.py", "triton_1": "triton_1.py"}
Made: TypeAlias = Callable[[str, str], bool]  # whether a step of a part was made


@dataclass
class Compiler:
    """Steps by part, and a fault: what is wrong with a build, given its stage and the steps that it made."""

    fault: Callable[[str, Made], Symptom]
    parts: Mapping[str, Sequence[str]] = field(
        default_factory=lambda: {
            GRAPHS: ("graph 0 forward",),
            POST_GRAD: ("tidy", "reorder", "replace", "sort"),
            REUSE: ("buf1", "buf2"),
            SETTINGS: tuple(f"setting{n}" for n in range(20)),
            FUSION: ("op0 + op1", "op2 + op3", "op0,op1 + op4"),
            LOWERINGS: ("add", "mul", "sin", "sin_1", "exp", "sum"),
        }
    )
    calls: int = 0

    def __call__(self, variation: Variation, number: int) -> Evaluation:
        self.calls += 1
        made = {part: self._made(variation, part, labels) for part, labels in self.parts.items()}
        steps = {
            part: tuple(CompileStep(one, one.split("_")[0], nodes=(one,)) for one in labels)
            for part, labels in self.parts.items()
        }
        symptom = self.fault(variation.stage, lambda part, label: label in made[part])
        kernels = (
            WrittenKernel("triton_0", "", ("add", "mul")),
            WrittenKernel("triton_1", "", ("sin", "exp")),
        )
        return Evaluation(symptom, 1.0, steps, kernels)

    @staticmethod
    def _made(variation: Variation, part: str, labels: Sequence[str]) -> list[str]:
        first = labels[: variation.first.get(part, len(labels))]
        only = variation.only.get(part, labels)
        return [one for one in first if one in only and one not in variation.without.get(part, ())]


def wrong_if(stage: str, made: Callable[[Made], bool]) -> Callable[[str, Made], Symptom]:
    return lambda at, did: WRONG if ORDER.index(at) >= ORDER.index(stage) and made(did) else RIGHT


def searched(compiler: Callable[[Variation, int], Evaluation], times: int = 1) -> list[CaseEvent]:
    return list(CaseSearch(compiler, times, lambda: None).events())


def answer(events: list[CaseEvent]) -> CaseAnswer:
    last = events[-1]
    assert isinstance(last, CaseAnswer)
    return last


def named(events: list[CaseEvent]) -> list[tuple[str, list[str]]]:
    return [
        (one.part, [step.label for step in one.steps])
        for one in answer(events).culprits
        if isinstance(one, Culprit)
    ]


def test_a_case_that_is_right_ends_the_search() -> None:
    events = searched(Compiler(lambda stage, made: RIGHT), times=3)

    assert events[-1] == CaseTried(RIGHT, 0, 3, 1)


def test_eager_that_is_off_is_said_and_nothing_is_searched() -> None:
    off = Symptom("eager is off", "eager is off by 3")

    assert searched(Compiler(lambda stage, made: off))[-1] == CaseTried(off, 0, 1, 1)


def test_a_case_that_fails_in_eager_is_a_problem() -> None:
    with pytest.raises(Problem, match="it fails in eager") as raised:
        searched(Compiler(lambda stage, made: Symptom("no answer", "it fails in eager", remedy="mend it")))

    assert raised.value.remedy == "mend it"


@pytest.mark.parametrize("stage", ORDER)
def test_the_first_stage_that_is_wrong_is_blamed(stage: str) -> None:
    events = searched(Compiler(wrong_if(stage, lambda made: True)))

    blamed = next(one for one in events if isinstance(one, StageBlamed))
    assert blamed.stage.name == stage
    assert (blamed.after.name if blamed.after else None) == (
        None if stage == UNCOMPILED else ORDER[ORDER.index(stage) - 1]
    )
    assert answer(events).culprits == []
    assert answer(events).decided == (stage in (UNCOMPILED, EAGER, AOT))


MEAN, MAXIMUM = OwnKernel("rowmean", "case.py:9"), OwnKernel("rowmax", "case.py:19")


def with_kernels(wrong_from: str, launched: Mapping[str, Sequence[OwnKernel]]) -> CaseAnswer:
    """The answer for a case that launches hand-written kernels from some stages on; eager launches one."""
    compiler = Compiler(wrong_if(wrong_from, lambda made: True))

    def evaluate(variation: Variation, number: int) -> Evaluation:
        at = ORDER.index(variation.stage)
        own = [one for first, some in launched.items() if ORDER.index(first) <= at for one in some]
        return replace(
            compiler(variation, number), own_kernels=(MAXIMUM, *own), eager_kernels=(MAXIMUM,), kernels=()
        )

    return answer(searched(evaluate))


def test_a_hand_written_kernel_that_only_the_wrong_build_launches_is_accused() -> None:
    without_compiler = with_kernels(UNCOMPILED, {UNCOMPILED: [MEAN]})
    by_a_pass = with_kernels(POST_GRAD_GRAPH, {POST_GRAD_GRAPH: [MEAN]})

    assert without_compiler.own_kernels == by_a_pass.own_kernels == (MEAN,)
    assert without_compiler.decided and by_a_pass.decided
    assert accused(without_compiler) == "the hand-written kernel rowmean (case.py:9), or the code around it"
    assert accused(by_a_pass).startswith("the hand-written kernel rowmean (case.py:9), or ")


@pytest.mark.parametrize("how", ["layout", "value"])
def test_no_kernel_is_accused_of_strides(how: Literal["layout", "value"]) -> None:
    strides = Symptom("differs", "strides", (Wrong("output", how),))

    def evaluate(variation: Variation, number: int) -> Evaluation:
        return Evaluation(strides, 1.0, own_kernels=(MEAN,))

    ended = answer(searched(evaluate))

    allocating = "the code that launches rowmean (case.py:9), and allocates the result"
    assert accused(ended) == (
        allocating
        if how == "layout"
        else "the hand-written kernel rowmean (case.py:9), or the code around it"
    )
    said = " ".join(str(line) for line in answer_text(ended, {}))
    assert ("no kernel chooses a shape, strides or a dtype" in said) == (how == "layout")


@pytest.mark.parametrize("backward", [False, True])
def test_a_forward_kernel_is_not_accused_of_gradients(backward: bool) -> None:
    gradients = Symptom("differs", "off", (Wrong("grad of input 0", "value"),))

    def evaluate(variation: Variation, number: int) -> Evaluation:
        kernel = replace(MEAN, backward=backward)
        return Evaluation(gradients, 1.0, own_kernels=(kernel,))

    ended = answer(searched(evaluate))

    formula = "the backward formula of the code that launches rowmean (case.py:9), or what it saves for it"
    assert accused(ended) == (
        "the hand-written kernel rowmean (case.py:9), or the code around it" if backward else formula
    )
    said = " ".join(str(line) for line in answer_text(ended, {}))
    assert f"stage {UNCOMPILED} launches it, and a run without torch.compile does not" in said
    assert ("only gradients are wrong, and no backward pass launches it" in said) == (not backward)


@pytest.mark.parametrize("wrong", ORDER[1:])
def test_a_hand_written_kernel_with_which_earlier_stages_are_right_is_not_accused(wrong: str) -> None:
    ended = with_kernels(wrong, {UNCOMPILED: [MEAN]})

    assert (ended.stage.name, ended.own_kernels) == (wrong, ())


def test_a_program_that_hides_its_code_for_compilation_does_not_acquit_the_kernel() -> None:
    ended = with_kernels(EAGER, {EAGER: [MEAN]})  # `uncompiled` is right, but does not launch the kernel

    assert accused(ended) == "the hand-written kernel rowmean (case.py:9), or Dynamo"


@pytest.mark.parametrize(
    ("stage", "part", "label"),
    [
        (stage.name, part, label)
        for stage in STAGES
        for part in stage.parts
        for label in Compiler(wrong_if(EAGER, bool)).parts.get(part, ())
    ],
)
def test_the_step_that_makes_it_wrong_is_named(stage: str, part: str, label: str) -> None:
    events = searched(Compiler(wrong_if(stage, lambda made: made(part, label))))

    assert named(events) == [(part, [label])]


def test_the_kernel_that_computes_the_accused_node_is_named() -> None:
    events = searched(Compiler(wrong_if(INDUCTOR, lambda made: made(LOWERINGS, "exp"))))

    assert [one.name for one in answer(events).kernels] == ["triton_1"]


@pytest.mark.parametrize("symptom", [RIGHT, WRONG])
def test_the_other_code_generator_tells_a_lowering_from_the_code_that_is_written(symptom: Symptom) -> None:
    def fault(stage: str, made: Made) -> Symptom:
        return symptom if stage == CPP else WRONG if stage == INDUCTOR and made(LOWERINGS, "exp") else RIGHT

    events = list(CaseSearch(Compiler(fault), 1, lambda: None, cpp=True).events())

    (other,) = [one for one in events if isinstance(one, OtherCode)]
    assert other.judgement.verdict == ("good" if symptom is RIGHT else "bad")
    text = "\n".join(str(one) for one in answer_text(answer(events), SOURCES, cpp=other.judgement.verdict))
    assert ("but            Inductor's C++ code of it is right" in text) is (symptom is RIGHT)
    text = "\n".join(str(one) for one in answer_text(answer(events), SOURCES))
    assert "or             the code that Inductor generates for it" in text


@pytest.mark.parametrize("by_tolerances", [True, False])
def test_an_answer_says_that_fixed_tolerances_decide(by_tolerances: bool) -> None:
    wrong = replace(WRONG, by_tolerances=by_tolerances)
    events = searched(Compiler(lambda stage, made: wrong if stage == INDUCTOR else RIGHT))

    text = [str(one) for one in answer_text(answer(events), {})]

    assert any("fixed tolerances decide" in line for line in text) is by_tolerances


def test_graphs_with_hand_written_kernels_are_not_compiled_to_cpp() -> None:
    wrong = Compiler(wrong_if(INDUCTOR, lambda made: made(LOWERINGS, "exp")))
    stages: list[str] = []

    def with_kernel(variation: Variation, number: int) -> Evaluation:
        stages.append(variation.stage)
        return replace(wrong(variation, number), own_kernels=(OwnKernel("scale", "case.py:9"),))

    events = list(CaseSearch(with_kernel, 1, lambda: None, cpp=True).events())

    (other,) = [one for one in events if isinstance(one, OtherCode)]
    assert (other.judgement.verdict, CPP in stages) == ("skip", False)


def test_every_node_of_one_operator_is_named_if_each_makes_it_wrong() -> None:
    fault = wrong_if(INDUCTOR, lambda made: made(LOWERINGS, "sin") or made(LOWERINGS, "sin_1"))
    events = searched(Compiler(fault))

    assert named(events) == [(LOWERINGS, ["sin", "sin_1"])]


def test_of_one_operator_only_the_nodes_that_make_it_wrong_are_named() -> None:
    nodes = ("add", "sin", "sin_1", "sin_2", "sin_3", "exp")
    fault = wrong_if(INDUCTOR, lambda made: made(LOWERINGS, "sin") or made(LOWERINGS, "sin_3"))
    events = searched(Compiler(fault, {LOWERINGS: nodes}))

    assert named(events) == [(LOWERINGS, ["sin", "sin_3"])]


def test_several_steps_that_each_make_it_wrong_are_named_together() -> None:
    fault = wrong_if(INDUCTOR, lambda made: made(LOWERINGS, "add") or made(LOWERINGS, "sum"))
    events = searched(Compiler(fault))

    culprit = answer(events).culprits[0]
    assert isinstance(culprit, Culprit)
    assert culprit.several
    assert [step.label for step in culprit.steps] == ["add", "sum"]


def test_a_step_that_is_wrong_only_with_an_earlier_one_names_that_one() -> None:
    fault = wrong_if(POST_GRAD_GRAPH, lambda made: made(POST_GRAD, "tidy") and made(POST_GRAD, "replace"))
    culprit = answer(searched(Compiler(fault))).culprits[0]

    assert isinstance(culprit, Culprit)
    assert [step.label for step in culprit.steps] == ["replace"]
    assert culprit.enough.verdict == "good"
    assert [step.label for step in culprit.needed] == ["tidy"]


@pytest.mark.parametrize("guilty", [{0, 7, 39}, {3, 4}, {1, 2, 3, 4, 30}])
def test_all_steps_that_have_to_come_together_are_named(guilty: set[int]) -> None:
    passes = tuple(f"pass{n}" for n in range(40))
    fault = wrong_if(POST_GRAD_GRAPH, lambda made: all(made(POST_GRAD, passes[n]) for n in guilty))
    compiler = Compiler(fault, {POST_GRAD: passes})
    culprit = answer(searched(compiler)).culprits[0]

    assert isinstance(culprit, Culprit)
    named_steps = [step.label for step in (*culprit.needed, *culprit.steps)]
    assert named_steps == [passes[n] for n in sorted(guilty)]
    assert compiler.calls < 60


def test_parts_that_only_together_make_it_right_are_named_together() -> None:
    fault = wrong_if(INDUCTOR, lambda made: made(REUSE, "buf1") or made(FUSION, "op2 + op3"))
    compiler = Compiler(fault)
    compiler.parts = {part: steps for part, steps in compiler.parts.items() if part != LOWERINGS}
    events = searched(compiler)

    together = answer(events).culprits[0]
    assert isinstance(together, TogetherBlamed)
    assert set(together.parts) == {REUSE, FUSION}


def test_the_graph_that_is_wrong_is_named_and_the_rest_of_the_search_is_about_it() -> None:
    compiler = Compiler(
        wrong_if(INDUCTOR, lambda made: made(GRAPHS, "graph 1 forward") and made(LOWERINGS, "mul"))
    )
    compiler.parts = {**compiler.parts, GRAPHS: ("graph 0 forward", "graph 1 forward", "graph 1 backward")}

    assert named(searched(compiler)) == [(GRAPHS, ["graph 1 forward"]), (LOWERINGS, ["mul"])]


@pytest.mark.parametrize("step", ["add", "sin_1", "sum"])
def test_a_compile_that_dies_and_tells_no_steps_is_searched_from_builds_that_end(step: str) -> None:
    dead = Symptom("dies", "it was ended by SIGABRT", error="SIGABRT")
    compiler = Compiler(lambda at, made: dead if at == INDUCTOR and made(LOWERINGS, step) else RIGHT)

    def dying(variation: Variation, number: int) -> Evaluation:
        build = compiler(variation, number)
        return replace(build, steps={}) if build.symptom.kind == "dies" else build

    events = searched(dying)

    tried = {one.part: (one.count, one.judgement.verdict) for one in events if isinstance(one, PartTried)}
    assert tried[FUSION] == (0, "bad") and tried[LOWERINGS] == (6, "good")
    assert named(events) == [(LOWERINGS, [step])]
    assert not [one for one in events if isinstance(one, Planned)]


def test_a_part_that_is_not_to_blame_costs_one_build() -> None:
    compiler = Compiler(wrong_if(INDUCTOR, lambda made: made(LOWERINGS, "exp")))
    events = searched(compiler)

    tried = [(one.part, one.judgement.verdict) for one in events if isinstance(one, PartTried)]
    assert tried == [(REUSE, "bad"), (SETTINGS, "bad"), (FUSION, "bad"), (LOWERINGS, "good")]
    planned = next(one for one in events if isinstance(one, Planned))
    assert planned.builds >= len([one for one in events if isinstance(one, PartTried)]) + 6


def test_a_build_that_goes_wrong_in_another_manner_is_not_called_bad() -> None:
    def fault(stage: str, made: Made) -> Symptom:
        if stage != INDUCTOR:
            return RIGHT
        return WRONG if made(LOWERINGS, "exp") and made(REUSE, "buf2") else OTHER

    events = searched(Compiler(fault))

    first = next(one for one in events if isinstance(one, PartTried))
    assert first.judgement.verdict == "skip"
    assert not named(events)


@pytest.mark.parametrize("step", ["exp", "sin", "sin_1"])
def test_where_a_part_cannot_be_left_out_its_steps_are_left_out_one_by_one(step: str) -> None:
    def fault(stage: str, made: Made) -> Symptom:
        if stage != INDUCTOR:
            return RIGHT
        if not made(LOWERINGS, "mul"):
            return OTHER
        return WRONG if made(LOWERINGS, step) else RIGHT

    assert named(searched(Compiler(fault))) == [(LOWERINGS, [step])]


def test_a_border_between_builds_that_cannot_be_judged_is_reported_as_a_range() -> None:
    def fault(stage: str, made: Made) -> Symptom:
        if stage != INDUCTOR:
            return RIGHT
        if not made(LOWERINGS, "mul"):
            return RIGHT
        return WRONG if made(LOWERINGS, "sum") else OTHER

    culprit = answer(searched(Compiler(fault))).culprits[0]

    assert isinstance(culprit, PartUndecided)
    assert not answer(searched(Compiler(fault))).decided
    assert [step.label for step in culprit.among] == ["mul", "sin", "sin_1", "exp", "sum"]


def test_the_same_error_with_other_numbers_in_it_is_the_same() -> None:
    def fault(stage: str, made: Made) -> Symptom:
        text = f"KeyError: node {sum(made(LOWERINGS, one) for one in ('add', 'mul', 'exp'))} at 0x7f12"
        wrong = stage == INDUCTOR and made(LOWERINGS, "exp")
        return Symptom("raises", text, error="KeyError") if wrong else RIGHT

    assert named(searched(Compiler(fault))) == [(LOWERINGS, ["exp"])]


def test_a_flaky_case_is_asked_so_often_that_its_step_is_named() -> None:
    chance = random.Random(1)

    def fault(stage: str, made: Made) -> Symptom:
        wrong = stage == INDUCTOR and made(FUSION, "op2 + op3") and chance.random() < 0.4
        return WRONG if wrong else RIGHT

    events = searched(Compiler(fault), times=10)

    tried = next(one for one in events if isinstance(one, CaseTried))
    assert 0 < tried.bad < 10
    assert tried.repeats > 5
    assert named(events) == [(FUSION, ["op2 + op3"])]


def test_a_stage_between_that_cannot_be_judged_is_said() -> None:
    def fault(stage: str, made: Made) -> Symptom:
        if stage == POST_GRAD_GRAPH:
            return OTHER
        return WRONG if stage == INDUCTOR else RIGHT

    blamed = next(one for one in searched(Compiler(fault)) if isinstance(one, StageBlamed))

    assert (blamed.stage.name, blamed.after and blamed.after.name) == (INDUCTOR, JOINED)
    assert [one.name for one in blamed.unknown] == [POST_GRAD_GRAPH]


def test_the_parts_of_a_stage_that_cannot_be_judged_are_searched_in_the_next_one() -> None:
    def fault(stage: str, made: Made) -> Symptom:
        if stage == POST_GRAD_GRAPH:
            return OTHER
        return WRONG if stage == INDUCTOR and made(POST_GRAD, "replace") else RIGHT

    assert named(searched(Compiler(fault))) == [(POST_GRAD, ["replace"])]


@pytest.mark.parametrize("seed", range(60))
def test_of_random_faults_only_guilty_steps_are_accused(seed: int) -> None:
    chance = random.Random(seed)
    stage = chance.choice([AOT, DECOMPOSED, JOINED, POST_GRAD_GRAPH, INDUCTOR])
    parts = {
        part: tuple(f"{part}.{n}" for n in range(chance.randint(1, 40)))
        for part in {*STAGES[ORDER.index(stage)].parts, INLINING}
    }
    part = chance.choice([one for one in STAGES[ORDER.index(stage)].parts])
    guilty = set(chance.sample(parts[part], min(len(parts[part]), chance.randint(1, 3))))
    compiler = Compiler(wrong_if(stage, lambda made: any(made(part, one) for one in guilty)), parts)

    first = named(searched(compiler))[0]

    assert (first[0], set(first[1])) == (part, guilty)


def test_a_case_whose_kernels_are_cpp_is_not_compiled_to_cpp_once_more() -> None:
    compiler = Compiler(wrong_if(INDUCTOR, lambda did: did(LOWERINGS, "exp")))

    def without_triton(variation: Variation, number: int) -> Evaluation:
        return replace(compiler(variation, number), kernels=())

    events = list(CaseSearch(without_triton, 1, lambda: None, cpp=True).events())

    assert not any(isinstance(one, OtherCode) for one in events)
    assert not answer(events).triton
    [line] = no_pass_text("case.py", triton=answer(events).triton)
    assert line.plain.startswith("not covered: the compiler of the C++ code")
