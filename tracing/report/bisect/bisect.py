"""The answer of a bisection with its evidence: the step, its effect, and the builds with and without it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path

from rich.text import Text

from tracing.analyze.bisect.execution import Meaning
from tracing.analyze.bisect.judge import TEXTS, artefact
from tracing.analyze.bisect.layers import MLIR
from tracing.analyze.bisect.repeated_judge import Confidence
from tracing.analyze.bisect.search import Changed, FirstBad, Judgement, Step, Suspect, Undecided, detail_text
from tracing.analyze.bisect.snapshots import FirstSeen, JudgedSnapshot
from tracing.model.first_names import first_names
from tracing.report.passes.passes import diff_text
from tracing.report.text import Line, plural

DIFF_LINES = 16
SHOWN = 12  # steps of one kind that are named


def judgement_text(judgement: Judgement) -> str:
    """`bad (exit status 1)`."""
    verdict = {"skip": "cannot be judged"}.get(judgement.verdict, judgement.verdict)
    return f"{verdict}{detail_text(judgement)}"


def full_text(full: Judgement) -> Iterator[Line]:
    """The verdict on the full pipeline."""
    yield Text(f"full pipeline: {judgement_text(full)}")
    if full.verdict == "good":
        yield never_text("good", 1)


def left_out_text(names: Mapping[str, Judgement]) -> Line:
    """The number of MLIR passes that were left out, and the judgement without each.

    names -- the verdicts without all passes of a name
    """
    verdicts = [one.verdict for one in names.values()]
    good, bad, skipped = (verdicts.count(verdict) for verdict in ("good", "bad", "skip"))
    return Text(
        f"{MLIR}: {len(verdicts)} changed something; without {good} of them the result is good, "
        f"without {bad} bad, and {skipped} cannot be left out"
    )


def undecided_text(answer: Undecided) -> Iterator[Line]:
    """The reason why a layer has no answer."""
    how = "not to blame, because" if answer.ruled_out else "cannot be decided, because"
    yield Text.assemble((answer.layer, "bold"), f": {how} {answer.because}")


def first_bad_text(answer: FirstBad, facts: Mapping[str, str], *, believed: bool) -> Iterator[Line]:
    """The step that turns the result bad.

    facts    -- further facts about it, "arguments", "pipeline"
    believed -- whether it is the answer; otherwise it is only the result of leaving passes out
    """
    which = ": first bad with " if believed else ": leaving out points to "
    style = "bold red" if believed else "bold"
    yield Text.assemble((answer.layer, "bold"), which, (answer.step.name, style), _number(answer.step))
    rows = {
        **facts,
        "with it": judgement_text(answer.bad),
        "without it": f"{judgement_text(answer.good)}; both builds leave out the same later steps",
        "without any": judgement_text(answer.all_out) if answer.all_out else "",
        "bad by itself": f"{_steps(answer.alike)}, of the same name" if answer.alike else "",
        "good as well": f"without {_steps(answer.needed)}, on which it builds" if answer.needed else "",
        "after it": f"{_steps(answer.unavoidable)} cannot be left out" if answer.unavoidable else "",
    }
    yield from reproduction({name: row for name, row in rows.items() if row})


def first_seen_text(answer: FirstSeen) -> Iterator[Line]:
    """The pass between IR that is good and IR that is bad."""
    one = answer.bad.snapshot
    yield Text.assemble(
        (one.layer, "bold"), ": first bad with ", (one.step.name, "bold red"), _number(one.step)
    )
    rows = {
        "IR after it": f"{judgement_text(answer.bad.judgement)}, {one.language}",
        "IR before it": f"{judgement_text(answer.good.judgement)}, {answer.good.snapshot.language}",
        "but also bad": f"{_left_by(answer.odd)}, although later passes make good IR of it"
        if answer.odd
        else "",
    }
    yield from reproduction({name: row for name, row in rows.items() if row})


def changed_text(answer: Changed) -> Iterator[Line]:
    """A pass that changes the meaning of the executed IR."""
    yield Text.assemble(
        (answer.layer, "bold"), ": first bad with ", (answer.step.name, "bold red"), _number(answer.step)
    )
    yield from reproduction({"executed": answer.what, "without any": judgement_text(answer.all_out)})


def meaning_text(meaning: Meaning) -> Iterator[Line]:
    """The result of executing the IR between passes."""
    if meaning.steps:
        among = _steps(meaning.steps)
        which = f"with {among}" if meaning.certain else f"with one of {among}"
        yield Text(
            f"executed on generated inputs, the IR first computes other values {which}: {meaning.what}"
        )
    elif meaning.last:
        yield Text(f"{meaning.equal} up to {meaning.last}")
    elif meaning.why:
        yield Text(f"not executed on generated inputs: {meaning.why}")


def believed_text(answer: FirstBad | FirstSeen) -> Iterator[Line]:
    """The reason why the layers before the one with the answer are not searched."""
    if isinstance(answer, FirstSeen):
        yield Text("    certain if the judge is: it read the recorded IR, and no pass had to be left out")
    elif answer.layer != MLIR:
        yield Text("    certain if the judge is: the input of this layer can be compiled to a good result")


def not_asked(layer: str, stages: Sequence[str]) -> Line:
    """The reason why a layer was not searched."""
    return Text.assemble((layer, "bold"), f": not searched, because the judge reads only {', '.join(stages)}")


def difference(before: str, after: str, where: str = "") -> Iterator[Line]:
    """The beginning of the diff that shows the step's effect.

    where -- the artefact that is shown; "": the IR before and after the step
    """
    if before == after:
        yield Text("    no difference in any text: compare the cubins of the two builds")
        return
    lines = list(diff_text(before, after, locations=False))
    yield Text(f"    what it changed in {where}:" if where else "    what it changed:")
    yield from (Text.assemble("      ", line) for line in islice(lines, DIFF_LINES) if isinstance(line, Text))
    if len(lines) > DIFF_LINES:
        yield Text(f"      ... {plural(len(lines) - DIFF_LINES, 'line')} more")


def built_texts(answer: FirstBad) -> tuple[str, str, str]:
    """The first artefact in which the builds without and with a step differ, in both, and its name."""
    folders = [Path(answer.good.where), Path(answer.bad.where)]
    for stage in TEXTS:
        paths = [artefact(folder, stage) for folder in folders]
        if all(path.exists() for path in paths):
            before, after = (path.read_text() for path in paths)
            if before != after:
                return before, after, stage
    return "", "", ""


def suspects_text(suspects: Sequence[Suspect], rest: Sequence[str]) -> Iterator[Line]:
    """The suspects, if it cannot be decided.

    rest -- the parts that were not searched
    """
    yield Text("What neither leaving out passes nor reading IR distinguishes:")
    for one in suspects:
        yield Text.assemble(f"    {one.step}: ", (one.why.splitlines()[0], "dim"))
    yield from (Text(f"    {one}") for one in rest)


def looking_text() -> Line:
    """The judge that would decide between passes that cannot be left out."""
    return Text(
        "A COMMAND that reads {ir}, in the language {stage}, judges the IR after each pass, also "
        "after passes "
        "that cannot be left out."
    )


def never_text(verdict: str, asked: int) -> Line:
    """The warning that a judge gave the same answer for every build.

    asked -- builds that it has judged; of equal ones it is called for the first
    """
    other = {"good": "bad", "bad": "good"}[verdict]
    return Text(
        f"The judge never answered {other}, for {plural(asked, 'build')}; it is called once for equal ones. "
        f"To test it, run it on an artefact that is known to be {other}."
    )


def confidence_text(confidence: Confidence) -> Line:
    """The confidence of an answer, if the judge was asked several times about each build."""
    return Text(
        f"confidence in the judge {1 - confidence.wrong:.1%}: {confidence.against} of its {confidence.calls} "
        f"calls, with repetitions, contradict the majority of their build, so a call is wrong in at most "
        f"{confidence.error:.0%} of cases"
    )


def reproduction(commands: Mapping[str, str]) -> Iterator[Line]:
    """Facts, or commands that reproduce the answer, a line each."""
    for what, command in commands.items():
        yield Text(f"    {what:<14} {command}")


def _number(step: Step) -> str:
    number = f" (#{step.index})" if step.index >= 0 else ""
    return f"{number} on {step.unit}" if step.unit else number


def _steps(steps: Sequence[Step]) -> str:
    return first_names([*map(str, steps)], SHOWN)


def _left_by(seen: Sequence[JudgedSnapshot]) -> str:
    return f"what {_steps([one.snapshot.step for one in seen])} left"
