"""What the comparison with eager says of a judgement in which no launch is off."""

from __future__ import annotations

from collections.abc import Iterator

from tracing.analyze.judge.judgement import RunJudgement
from tracing.errors import page
from tracing.model.first_names import first_names
from tracing.report.hand_written import UNKNOWN_EAGER, one_by_one, reference_text

_FORMULAS = "docs/case.md#check-a-backward"


def suspects_text(judgement: RunJudgement) -> Iterator[str]:
    """The launches of which one must be wrong, as results differ from eager's."""
    suspects = judgement.suspects
    named = [f"{one.launch} {one.kernel}" for one in suspects]
    which = "launch" if len(suspects) == 1 else "one of launches"
    if judgement.forward_of_gradients:
        code = f"the backward formula of the code that makes {which} {first_names(named)}"
        yield f"✗ only gradients differ from eager's; the suspect is {code}, or what it saves for it"
    else:
        yield f"✗ the results differ from eager's; the suspect is {which} {first_names(named)}"
    own = {one.kernel for one in suspects if one.graph < 0}
    if own and not judgement.forward_of_gradients:
        them = "it" if len(own) == 1 else "them"
        yield f"    or        the program's code around {them}, where eager executes other code"
    if any(one.graph >= 0 and not one.nodes for one in suspects):  # in a graph that an operator calls
        yield "    or        the operator that executes it, or a graph pass: nothing judges its branches"
    if judgement.of_case:
        yield "    or        a step before Inductor's post-grad passes, as a decomposition: not judged"
    if len(own) > 1:
        yield f"    to know   which kernel it is: {one_by_one()}"
    if len(suspects) > 1:
        for one in filter(judgement.accesses_wrongly, suspects):
            launch = f"{one.launch} {one.kernel}"
            yield f"    most so   launch {launch}: it {judgement.wrong_accesses[launch]}"
    for one in suspects if len(suspects) > 1 or judgement.forward_of_gradients else ():
        reached = judgement.reached.get(one.launch)
        if reached is not None and reached.agreeing:
            names = first_names(reached.agreeing)
            yield f"    less so   launch {one.launch} {one.kernel}: {names} depends on it, and agrees"
    them = "it" if len(suspects) == 1 else "them"
    right = [one for one in judgement.launches if one.verdict == "right" and one not in suspects]
    others = "; every other launch is right for its inputs" if right else ""
    yield f"    why       only eager's results check {them}{others}"


def laid_out_text(judgement: RunJudgement) -> Iterator[str]:
    """The results that differ from eager's in strides or dtypes only."""
    names = first_names(judgement.laid_out)
    yield f"✗ only strides or dtypes differ from eager's, of {names}: no kernel chooses these"
    yield "    suspect   the code that allocates the result: the program's, or Inductor's"


def cleared_text(judgement: RunJudgement) -> Iterator[str]:
    """The launches without a reference that are no suspects, and why."""
    for one in judgement.cleared:
        reached = judgement.reached[one.launch]
        if reached.written:
            why = f"all that it wrote is {first_names(reached.written)}, which agrees"
        elif reached.agreeing:
            why = f"only {first_names(reached.agreeing)} depends on it, and agrees"
        else:
            why = f"only {first_names(reached.others)} may depend on it, and nothing that differs"
        yield f"    cleared   launch {one.launch} {one.kernel}: {why}"


def nothing_off_text(judgement: RunJudgement) -> Iterator[str]:
    """What is known if nothing is off, and no launch is a suspect."""
    if judgement.differs:
        why = "and no launch that was judged explains it"
        itself = "which gives another result each time itself"
        yield f"the results differ from eager, {why if judgement.eager_repeats else itself}"
    elif judgement.failed and not judgement.wrong_accesses:
        yield "no launch that was judged explains why it failed"
    judged = "every launch that was judged is right" if judgement.any_right else "no launch could be judged"
    unchecked = first_names(judgement.unchecked)
    if unchecked and judgement.of_case and not judgement.eager_known:
        yield f"{judged}; whether eager checks the hand-written {unchecked} is not known:"
        yield f"    to know   {UNKNOWN_EAGER}"
    elif unchecked:
        yield f"nothing checks the hand-written {unchecked}; {judged}"
        yield reference_text(len(judgement.unchecked), of_case=judgement.of_case)
    elif judgement.undecided:
        yield judged
        yield "the comparison with eager does not decide whether the results are right"
    elif judgement.less_precise and not judgement.differs:
        yield from _less_precise(judgement, judged)
    elif judgement.checked and not judgement.differs:
        also = f"{judged}; " if judgement.any_right else ""
        yield f"{also}eager's results agree, and check the hand-written {first_names(judgement.checked)}"
    elif judgement.confirmed and not judgement.any_right and judgement.launches:
        yield f"{judged}; eager's results agree, and check all launches together"
    elif judgement.other_numbers and not judgement.any_right:
        yield f"{judged}; with eager's random numbers another compile agrees, whose kernels draw none:"
        yield f"nothing checks those that computed {first_names(judgement.other_numbers)}"
    elif judgement.before_inductor_unknown:
        unknown = "whether a decomposition, pre-grad or joint pass is wrong"
        yield f"{judged}; {unknown} is not known for some results"
    else:
        yield judged


def unchecked_backwards_text(judgement: RunJudgement) -> Iterator[str]:
    """The backward formulas of the program, which nothing checks, and how to check them."""
    if not judgement.formulas:
        return
    one = len(judgement.formulas) == 1
    too = f", if eager executes {'it' if one else 'them'}, too" if judgement.compared else ""
    yield f"nothing checks the backward of {first_names(judgement.formulas)}{too}"
    yield f"    to check {'it' if one else 'each'}: torch.autograd.gradcheck in float64: {page(_FORMULAS)}"


def _less_precise(judgement: RunJudgement, judged: str) -> Iterator[str]:
    also = f"{judged}; " if judgement.any_right else ""
    code = f"the hand-written {first_names(judgement.checked)}" if judgement.checked else "the program's code"
    yield f"{also}eager's results agree within rounding only: {first_names(judgement.less_precise)}"
    yield f"    look at   {code}: an accumulator or intermediate of fewer bits makes results less precise,"
    yield "              and so may masked elements that enter a sum with a value other than 0"
