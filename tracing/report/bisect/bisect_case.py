"""The events of the search of a case, and its answer, as text."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence

from rich.text import Text

from tracing.analyze.bisect.search import JudgeAnswer, Judgement
from tracing.analyze.bisect_case.case_events import (
    CaseAnswer,
    CaseTried,
    Culprit,
    OtherCode,
    PartTried,
    PartUndecided,
    Planned,
    StageBlamed,
    StageTried,
    TogetherBlamed,
)
from tracing.analyze.bisect_case.evaluation import CompileStep
from tracing.analyze.bisect_case.stages import BACKENDS, EAGER, INDUCTOR, LOWERINGS, UNCOMPILED, WITHOUT
from tracing.model.first_names import first_names
from tracing.report.hand_written import one_by_one, reference_text, unchecked_text
from tracing.report.text import Line, plural

_SHOWN = 6  # steps that are named
_WORDS: Mapping[str, str] = {"good": "right", "bad": "wrong", "skip": "cannot tell"}


def case_tried_text(event: CaseTried) -> Iterator[Line]:
    """How often the case goes wrong."""
    if not event.bad:
        whole = "right" if event.symptom.kind == "right" else "eager itself is off"
        right = f" in {event.of} of {event.of} compiles: {event.symptom.text}"
        names = [one.name for one in event.eager_kernels]
        own = f"; but {unchecked_text(names)}" if names else ""
        yield Text.assemble((whole, "bold"), right, own)
        if own:
            yield Text(reference_text(len(names)))
        return
    style = "bold red" if event.bad == event.of else "bold yellow"
    yield Text.assemble((f"wrong in {event.bad} of {event.of} compiles", style), f": {event.symptom.text}")
    if event.symptom.where:
        yield Text(f"    raised by {event.symptom.where}")
    if event.repeats > 1:
        yield Text(
            f"    flaky: a build counts as right after {event.repeats} right compiles, "
            "which a wrong build reaches in 1 % of cases"
        )


def stage_tried_text(event: StageTried) -> Line:
    """The result of executing the graph of a stage."""
    return _tried(event.stage.name, f"executing {event.stage.executes}", event.judgement)


def stage_blamed_text(event: StageBlamed) -> Iterator[Line]:
    """The first stage that is wrong."""
    after = f", and {event.after.name} is right" if event.after else ", and no stage before it is right"
    if event.stage.name == UNCOMPILED:
        after = ", which no compiler takes part in"
    yield Text.assemble(("first wrong: ", ""), (event.stage.name, "bold red"), after)
    if event.unknown:
        names = ", ".join(one.name for one in event.unknown)
        yield Text(f"    {names} cannot be judged, so the fault may lie there, too")
    yield Text(f"    accused: {_with_kernels(event, event.stage.blamed)}")


def planned_text(event: Planned) -> Line:
    """The cost of the rest of the search."""
    return Text(
        f"    {plural(event.builds, 'build')} to go at most for one culprit, some {event.seconds:.0f} s",
        "dim",
    )


def part_tried_text(event: PartTried) -> Line:
    """The result of a build without a part."""
    counted = f" ({plural(event.count, 'step')})" if event.count else ""
    return _tried(event.part, f"{WITHOUT[event.part]}{counted}", event.judgement)


def culprit_text(event: Culprit) -> Iterator[Line]:
    """The steps that make the case wrong, with the confidence."""
    yield Text.assemble((f"{event.part}: ", "bold"), (_labels(event.steps), "bold red"), f" of {event.of}")
    for step in event.steps[:_SHOWN]:
        if step.detail:
            yield Text(f"    {step.label:<14} {step.detail}")
    what = "it" if len(event.steps) == 1 else "them"
    yield Text(f"    {f'without {what}':<14} {_judged(event.good)}")
    yield Text(f"    {f'with only {what}':<14} {_judged(event.enough)}")
    if event.needed:
        yield Text(f"    {'needs':<14} {_labels(event.needed)}: with only these steps it is wrong, too")
    if event.several:
        yield Text("    several kinds of steps: each kind is enough to make it wrong")


def undecided_text(event: PartUndecided) -> Iterator[Line]:
    """An accused part, without an accused step."""
    yield Text.assemble((f"{event.part}: ", "bold"), f"no step can be named, because {event.because}")
    yield Text(f"    {'among':<14} {_labels(event.among)}")


def together_text(event: TogetherBlamed) -> Iterator[Line]:
    """Parts that have to be left out together."""
    yield Text.assemble(
        ("several together: ", "bold"), (", ".join(event.parts), "bold red"), ", and none of them by itself"
    )
    yield Text(f"    {'without them':<14} {_judged(event.good)}")


def other_code_text(event: OtherCode) -> Iterator[Line]:
    """The result of Inductor's other code generator on the same graphs."""
    yield _tried("C++ instead of Triton", "executing Inductor's C++ code of the same graphs", event.judgement)
    meaning = {
        "good": "Inductor's code generation for Triton is to blame, or a step for Triton only; the "
        "lowering is right",
        "bad": "the lowering or its input is to blame, or what both share: the code that calls kernels",
    }.get(event.judgement.verdict)
    if meaning:
        yield Text(f"    {meaning}")


def answer_text(
    event: CaseAnswer, sources: Mapping[str, str], *, cpp: JudgeAnswer = "skip"
) -> Iterator[Line]:
    """The answer in one line, the kernels, and the caveats.

    sources -- path of the source of each kernel, by name
    cpp     -- the verdict on C++ code of the same graphs; "skip": there is none
    """
    yield Text("")
    yield Text.assemble("accused: ", (accused(event), "bold red"))
    for kernel in event.kernels:
        yield Text(f"    {'kernel':<14} {kernel.name}: {', '.join(kernel.nodes)}")
        yield Text(f"    {'source':<14} {sources[kernel.name]}")
    if event.own_kernels:
        them = "it" if len(event.own_kernels) == 1 else "them"
        before = (
            "a run without torch.compile does not"
            if event.stage.name in (UNCOMPILED, EAGER)
            else "the stage before it does not"
        )
        yield Text(f"    {'why':<14} stage {event.stage.name} launches {them}, and {before}")
        if event.code == "backward formula":
            yield Text(f"    {'but':<14} only gradients are wrong, and no backward pass launches {them}")
        if event.code == "allocation":
            yield Text(
                f"    {'but':<14} no value is wrong, and no kernel chooses a shape, strides or a dtype"
            )
        if len(event.own_kernels) > 1:
            yield Text(f"    {'to know which':<14} {one_by_one()}")
    elif event.stage.parts and not event.culprits:
        yield Text("    none by itself: leaving out no part of this stage makes it right")
    last = event.culprits[-1] if event.culprits else None
    if isinstance(last, Culprit) and last.part == LOWERINGS:
        yield from _code_of_lowering_text(cpp)
    if event.stage.name not in (UNCOMPILED, INDUCTOR):
        yield Text("Later stages were not judged by themselves: once this is mended, search once more.")
    if event.symptom.by_tolerances:
        yield Text(
            "There is no reference in float64, so fixed tolerances decide: a step that only changes rounding "
            "is accused, too."
        )
    if event.stage.name == UNCOMPILED:
        yield Text("A suspect, not proof: any code that only a compiled program executes may be wrong.")
        return
    yield Text("A suspect, not proof: leaving out a step also hides a fault of a step that uses its result.")


def _code_of_lowering_text(cpp: JudgeAnswer) -> Iterator[Line]:
    if cpp == "skip":
        yield Text(f"    {'or':<14} the code that Inductor generates for it: a build leaves out both")
    if cpp == "good":
        yield Text(
            f"    {'but':<14} Inductor's C++ code of it is right: its Triton code is to blame, or a step for "
            "Triton only"
        )


def accused(event: CaseAnswer) -> str:
    """The accused component: "inductor > lowerings > gelu", "the hand-written kernel rowmean (case.py:9)"."""
    return _with_kernels(event, _path(event) if event.culprits else event.stage.blamed)


def _with_kernels(event: StageBlamed | CaseAnswer, component: str) -> str:
    own = event.own_kernels
    if not own:
        return component
    named = first_names([f"{one.name} ({one.python})" for one in own], _SHOWN)
    kernels = f"the hand-written kernel{'s' if len(own) > 1 else ''} {named}"
    around = f"{kernels}, or the code around {'them' if len(own) > 1 else 'it'}"
    if event.code == "backward formula":
        kernels = f"the backward formula of the code that launches {named}, or what it saves for it"
    if event.code == "allocation":
        kernels = f"the code that launches {named}, and allocates the result"
    if event.stage.name == UNCOMPILED:
        return around if event.code == "kernel" else kernels
    return f"{kernels}, or {component}"


def _path(event: CaseAnswer) -> str:
    names = [event.stage.name]
    if isinstance(first := event.culprits[0], Culprit) and first.part == BACKENDS:
        names = []  # it makes the graphs of this stage
    for one in event.culprits:
        if isinstance(one, TogetherBlamed):
            names.append(" and ".join(one.parts))
        elif isinstance(one, PartUndecided):
            names += [one.part, f"{'one of ' if len(one.among) > 1 else ''}{_labels(one.among)}"]
        else:
            names += [one.part, _labels(one.steps)]
    return " > ".join(names)


def smallest_graph_text(command: str) -> Line:
    """The command that cuts the graph down and writes it as a script."""
    return Text(f"    next      {command}  # the fewest nodes that fail, as a script")


def no_pass_text(case: str, below: Sequence[str] = (), *, triton: bool) -> Iterator[Line]:
    """The reason why no compiler pass is searched on the virtual GPU, and the alternative.

    below  -- the option for the folder of runs
    triton -- True: Inductor wrote Triton kernels; False: C++
    """
    if not triton:
        yield Text(
            "not covered: the compiler of the C++ code that Inductor wrote; no Triton kernel was written"
        )
        return
    yield Text(
        "The virtual GPU executes the source of kernels, so no pass of Triton, LLVM or ptxas can make a "
        "value wrong here: the search ends with the source."
    )
    command = shlex.join(["tracing", "run", case, "--judge", *below])
    yield Text(f"  each launch and the FX nodes that it computes: `{command}`")


def unchecked_program_text(event: CaseTried) -> Iterator[Line]:
    """That a program ended with exit status 0, which acquits only one that checks its results."""
    ended = f"{event.symptom.text} in {event.of} of {event.of} compiles"
    yield Text.assemble((ended, "bold"), ": whether the program checks what it computes is not known")
    yield Text(
        "A program is wrong if it raises, or if its exit status is not 0: let it compare its results, as "
        "by torch.testing.assert_close, or judge what it prints: "
        "`tracing bisect PROGRAM -- grep -q TEXT {stdout}`. `tracing run --judge PROGRAM` needs neither."
    )


def program_kernel_text(words: Sequence[str], kernel: str, below: str) -> Iterator[Line]:
    """How to see the accused kernel in a recording of the program; `below` is the option for the runs."""
    yield Text(f"  its launches: `tracing run --keep-inputs --kernel {kernel}{below} {shlex.join(words)}`")
    yield Text(f"  its results against its graph: `tracing judge latest{below}`")


def passes_text(kernel: str, commands: Sequence[str], accused_pass: str, because: str) -> Iterator[Line]:
    """The result of searching the passes of a kernel.

    accused_pass -- empty: none
    because      -- why there is no answer; empty: there is one
    """
    for command in commands:
        yield Text(f"    {'executed':<14} {command}")
    if accused_pass:
        yield Text.assemble(f"accused in {kernel}: ", (accused_pass, "bold red"))
    elif because:
        yield Text(f"    the passes of {kernel} cannot be searched: {because}")
    else:
        yield Text(f"    no pass of {kernel} is accused: its source computes the wrong value")


def _tried(name: str, what: str, judgement: Judgement) -> Line:
    style = {"good": "green", "bad": "red"}.get(judgement.verdict, "yellow")
    because = f": {judgement.detail}" if judgement.verdict == "skip" else ""
    return Text.assemble(f"  {name:<27} ", (f"{_WORDS[judgement.verdict]:<11}", style), f" {what}{because}")


def _judged(judgement: Judgement) -> str:
    because = f" ({judgement.detail})" if judgement.verdict == "skip" else ""
    return f"{_WORDS[judgement.verdict]}{because}"


def _labels(steps: Sequence[CompileStep]) -> str:
    return first_names([one.label for one in steps], _SHOWN)
