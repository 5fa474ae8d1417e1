"""What a bisection found, with its evidence: the step, what it did, and the builds with it and without it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path

from rich.text import Text

from tracing.analyze.bisect import FirstBad, Judgement, Undecided
from tracing.analyze.judge import STAGES, artefact
from tracing.analyze.layers import Mandatory
from tracing.model import PassRecord
from tracing.report.passes import Line, diff_text
from tracing.report.text import plural

DIFF_LINES = 16
_TEXTS = [stage for stage in STAGES if stage not in ("cubin", "hsaco")]


def judgement_text(found: Judgement) -> str:
    """`bad (exit status 1)`."""
    verdict = {"skip": "cannot be judged"}.get(found.verdict, found.verdict)
    return f"{verdict} ({found.detail})" if found.detail else verdict


def undecided_text(found: Undecided) -> Iterator[Line]:
    """Why a layer does not answer."""
    yield Text.assemble((found.layer, "bold"), f": cannot be decided, because {found.because}")


def first_bad_text(found: FirstBad, suspect: PassRecord | None) -> Iterator[Line]:
    """The step that turns the result bad.

    suspect -- the MLIR pass that it is, if it is one
    """
    yield Text.assemble(
        (found.layer, "bold"), ": first bad with ", (found.step.name, "bold red"), f" (#{found.step.index})"
    )
    if suspect is not None:
        yield Text(f"    arguments      {', '.join(suspect.arguments) or 'none'}")
        yield Text(f"    pipeline       {suspect.pipeline}")
        yield Text(f"    stage          {suspect.stage}, added at {suspect.caller}")
        yield Text(f"    before, after  blobs {suspect.before}, {suspect.after}")
    yield Text(f"    with it        {judgement_text(found.bad)}")
    yield Text(f"    without it     {judgement_text(found.good)}; none of the steps behind it is in either")
    if found.alone is not None:
        yield Text(f"    it alone out   {judgement_text(found.alone)}")
    yield Text(f"    search         {plural(len(found.tried), 'probe')} among {plural(found.of, 'step')}")


def difference(found: FirstBad, ir: tuple[str, str] | None) -> Iterator[Line]:
    """The beginning of what the step did.

    ir -- the IR before and after an MLIR pass; of another step the builds without and with it are compared,
          at the first stage where they differ
    """
    where, before, after = ("the pass", *ir) if ir else _built(found)
    if before == after:
        yield Text("    no difference in any text: compare the cubins of the two builds")
        return
    lines = list(diff_text(before, after, locations=False))
    yield Text(f"    what it changed in {where}:" if not ir else "    what it changed:")
    yield from (Text.assemble("      ", line) for line in islice(lines, DIFF_LINES) if isinstance(line, Text))
    if len(lines) > DIFF_LINES:
        yield Text(f"      ... {plural(len(lines) - DIFF_LINES, 'line')} more")


def left_over(mandatory: Sequence[Mandatory], stages: Sequence[str]) -> Iterator[Line]:
    """What it may be, where no layer answers.

    mandatory -- MLIR passes that cannot be left out, of no stage behind the last that was judged
    stages    -- that the judge looked at
    """
    yield Text("What leaving out steps cannot tell apart:")
    for one in mandatory:
        yield Text(f"    {one.record.stage}: {one.record.name} (#{one.record.index}), mandatory: without it")
        yield Text(f"          {one.failure.splitlines()[0]}", style="dim")
    last = max(map(STAGES.index, stages))
    if last >= STAGES.index("llir"):
        yield Text("    llir: what LLVM does not leave out (the translation to it, instruction selection)")
    if "cubin" in stages:
        yield Text("    cubin: what every ptxas does at every level")
    yield Text("    the kernel itself, as it enters the first stage, or faults in several layers at once")


def not_asked(layer: str, stages: Sequence[str]) -> Line:
    """Why a layer was not looked at."""
    return Text.assemble((layer, "bold"), f": not asked, for the command looks at {', '.join(stages)} alone")


def _built(found: FirstBad) -> tuple[str, str, str]:
    folders = [Path(found.good.where), Path(found.bad.where)]
    for stage in _TEXTS:
        paths = [artefact(folder, stage) for folder in folders]
        if all(path.exists() for path in paths):
            before, after = (path.read_text() for path in paths)
            if before != after:
                return stage, before, after
    return "", "", ""


def reproduction(commands: Mapping[str, str]) -> Iterator[Line]:
    """What to type to see it again."""
    for what, command in commands.items():
        yield Text(f"    {what:<14} {command}")
