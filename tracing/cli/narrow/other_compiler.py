"""Find the first recorded pass whose result the installed compiler does not reproduce, and say what to do."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from shlex import quote

from rich.text import Text

from tracing import store
from tracing.analyze.passes.compilations import DIGITS
from tracing.analyze.passes.renaming import renamed
from tracing.analyze.passes.spelling import same
from tracing.cli.answers.recording_hints import record_command
from tracing.model import PassRecord
from tracing.report.bisect.bisect import DIFF_LINES
from tracing.report.passes.passes import diff_text
from tracing.report.text import plural

_SECONDS = 60.0  # time limit of a pass
_MLIR = "ttgir"  # what a pass with a pipeline writes, those of the stage "llir" included


@dataclass(frozen=True, slots=True)
class UnlikeResult:
    """A pass that gives other IR than was recorded, of the recorded IR before it."""

    record: PassRecord
    recorded: str
    made: str

    @property
    def sentence(self) -> str:
        """What was found."""
        which = f"pass {self.record.index}, {self.record.name}"
        return f"the installed compiler does not do what the recorded one did: {which}, gives other IR"


def unlike_result(run: store.Run, records: Iterable[PassRecord]) -> UnlikeResult | None:
    """The first of some recorded MLIR passes that gives other IR here; None: each gives what was recorded.

    Locations and names of values may differ. A pass that dies, or whose IR is not known, is left out.

    Cost: a fork and the pass, for each of them.
    """
    from tracing.compiler.one_pass import run_passes
    from tracing.compiler.opt.pipeline_text import passes_in

    for record in records:
        if not (record.before and record.after and record.pipeline):
            continue
        after = run.text(record.after)
        made = run_passes(run.text(record.before), passes_in(record.pipeline), seconds=_SECONDS).after
        if made is not None and made != after and not same(after, made, _MLIR):
            return UnlikeResult(record, after, made)
    return None


def unlike_text(unlike: UnlikeResult) -> Iterator[Text]:
    """The sentence, and the beginning of the diff from the recorded IR to that of the installed compiler."""
    yield Text(f"→ {unlike.sentence}")
    yield from recorded_and_made("its result", unlike.recorded, renamed(unlike.recorded, unlike.made))


def recorded_and_made(what: str, recorded: str, made: str) -> Iterator[Text]:
    """The beginning of the diff from a recorded text to that of the installed compiler."""
    yield Text(f"    {what}, recorded (-) and made here (+):")
    lines = list(diff_text(recorded, made, locations=False))
    shown = [line for line in lines if isinstance(line, Text) and not line.plain.startswith(("---", "+++"))]
    yield from (Text.assemble("      ", line) for line in shown[:DIFF_LINES])
    if len(shown) > DIFF_LINES:
        yield Text(f"      ... {plural(len(shown) - DIFF_LINES, 'line')} more")


def unlike_next(run: store.Run, unlike: UnlikeResult) -> list[str]:
    """The commands that show the recorded pass, and that record the program with the installed compiler."""
    of_kernel = f"--kernel {unlike.record.compilation.hash[:DIGITS]} --pass {unlike.record.index}"
    return [f"tracing passes {quote(str(run.path))} {of_kernel}", record_command(run)]
