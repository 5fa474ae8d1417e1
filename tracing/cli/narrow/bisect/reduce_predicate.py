"""The predicates that `tracing reduce` keeps true while it reduces IR."""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

from tracing import store
from tracing.analyze.bisect.judge import STAGES, CommandJudge, artefact, run_command
from tracing.cli.app import err
from tracing.compiler.child import in_child
from tracing.compiler.early_end import EarlyEnd
from tracing.compiler.one_pass import PassOutput, run_passes
from tracing.compiler.opt.pipeline_text import PassText, passes_in
from tracing.compiler.resume import ResumePoint, resume, stages_of
from tracing.errors import Problem
from tracing.model import Compilation, PassRecord

_SIDES = ("{before}", "{after}")
_CANNOT_TELL = (124, 125)


def predicate(
    run: store.Run,
    chosen: Compilation,
    passes: Sequence[PassRecord],
    record: PassRecord,
    command: Sequence[str] | None,
    seconds: float,
) -> Predicate:
    """The predicate to keep true: a command's judgement, or that the pass dies as on the whole IR.

    Raises Problem for a command that uses no artefact of the pass.
    """
    if not command:
        return PassCrashes(record, seconds)
    if any(side in word for word in command for side in _SIDES):
        return OutputIsBad(record, command, seconds)
    stages = [one for one in stages_of(chosen) if one in STAGES]
    try:
        judge = CommandJudge(command, stages, seconds)
    except Problem as problem:
        sides = "{before} and {after} are the IR before and after the pass"
        raise Problem(problem.problem, "\n  ".join(filter(None, [problem.remedy, sides]))) from None
    first = next(one for one in passes if one.stage == record.stage)
    runs = [one.index for one in passes if one.name == record.name and one.index >= record.index]
    return CompiledIsBad(record, judge, run.text(first.before), runs)


class Predicate:
    """A predicate that holds for the whole IR; the results for smaller ones are cached by text."""

    def __init__(self, record: PassRecord, seconds: float) -> None:
        self.asked = 0
        self._record, self._seconds = record, seconds
        self._passes: Sequence[PassText] = passes_in(record.pipeline)
        self._known: dict[str, bool] = {}

    def __call__(self, text: str) -> bool:
        key = hashlib.blake2b(text.encode()).hexdigest()
        if key not in self._known:
            self.asked += 1
            self._known[key] = self._holds(text)
        return self._known[key]

    def require(self, text: str) -> None:
        """Raise Problem if it does not hold for the whole IR."""
        raise NotImplementedError

    def _holds(self, text: str) -> bool:
        raise NotImplementedError

    def made(self, text: str) -> PassOutput:
        """The output of the pass for a text."""
        return run_passes(text, self._passes, seconds=self._seconds)

    def generic(self, text: str) -> str:
        """A text in MLIR's generic form, without locations; raises Problem if it is no IR."""
        return self._printed(text, generic=True)

    def pretty(self, text: str) -> str:
        """A text as MLIR prints it."""
        printed = self._printed(text, generic=False)
        return printed if printed.endswith("\n") else f"{printed}\n"

    def _printed(self, text: str, *, generic: bool) -> str:
        printed = run_passes(text, (), seconds=self._seconds, generic=generic).before
        if printed is None:
            raise Problem(
                f"the IR before {self._record.name} does not parse here",
                "reduce it with the version of Triton that recorded it",
            )
        return printed


class PassCrashes(Predicate):
    """The pass crashes as it does on the whole IR."""

    first: EarlyEnd

    def require(self, text: str) -> None:
        ending = self.made(text).ending
        if ending is None:
            raise Problem(
                f"{self._record.name} does not die on its recorded input",
                "a command judges the IR that the pass makes: `-- COMMAND {before} {after}`",
            )
        self.first = ending

    def _holds(self, text: str) -> bool:
        ending = self.made(text).ending
        return ending is not None and self.first.same(ending)


class OutputIsBad(Predicate):
    """A command judges the pass's output bad, and, if it reads the input, the input good."""

    def __init__(self, record: PassRecord, command: Sequence[str], seconds: float) -> None:
        super().__init__(record, seconds)
        self._command = command
        self._was_right = True  # COMMAND judged the input of the pass as good

    def require(self, text: str) -> None:
        made = self.made(text)
        if made.before is None or made.after is None:
            raise Problem(f"{self._record.name} dies on its recorded input", "reduce it without a COMMAND")
        if not self._wrong(made.before, made.after):
            raise Problem(f"COMMAND judges the output of {self._record.name} as good")
        self._was_right = not self._wrong(made.before, made.before)
        if not self._was_right:
            err.print(
                "warning: COMMAND gives the same answer for the IR before the pass, so the search accepts "
                "any IR that the pass changes: let COMMAND read {before}, too",
            )

    def _holds(self, text: str) -> bool:
        made = self.made(text)
        if made.before is None or made.after is None:
            return False
        if not self._wrong(made.before, made.after):
            return False
        if not self._was_right:
            return made.before != made.after
        return not self._wrong(made.before, made.before)

    def _wrong(self, before: str, after: str) -> bool:
        with tempfile.TemporaryDirectory(prefix="tracing-") as folder:
            sides = dict(zip(_SIDES, (before, after), strict=True))
            paths = {side: Path(folder) / f"{side.strip('{}')}.mlir" for side in sides}
            for side, text in sides.items():
                paths[side].write_text(text)
            words = [_filled(word, paths) for word in self._command]
            status, output = run_command(words, self._seconds)
        if status is not None and status >= 128:
            raise Problem(f"COMMAND ended the search with exit status {status}: {output.strip()[-200:]}")
        return status not in (None, 0, *_CANNOT_TELL)


class CompiledIsBad(Predicate):
    """A command judges the code compiled from the IR bad, and good without the pass."""

    def __init__(self, record: PassRecord, judge: CommandJudge, entered: str, runs: Collection[int]) -> None:
        """Judge the code compiled from the IR.

        entered -- the IR that enters the stage
        runs    -- the indices of this pass, and of its later runs
        """
        super().__init__(record, judge.seconds)
        self._judge, self._entered, self._runs = judge, entered, runs
        self._is_right_without = True

    def require(self, text: str) -> None:
        verdict = self._verdict(text, ())
        if verdict != "bad":
            raise Problem(
                f"COMMAND judges what this compiler makes of the whole IR as {verdict or 'nothing'}, and "
                "reducing needs bad",
                "reduce with the compiler, the environment variables and the PYTHONPATH of the recording",
            )
        self._is_right_without = self._verdict(text, self._runs) != "bad"
        if not self._is_right_without:
            name = self._record.name
            err.print(f"warning: COMMAND answers bad without {name}, too: that pass may not be to blame")

    def _holds(self, text: str) -> bool:
        if self._verdict(text, ()) != "bad":
            return False
        return not self._is_right_without or self._verdict(text, self._runs) != "bad"

    def _verdict(self, text: str, drop: Collection[int]) -> str:
        # "" if the build fails
        record = self._record
        point = ResumePoint(text, record.stage, record.index, entered=self._entered)
        last = max(self._judge.stages, key=STAGES.index)
        ended = in_child(lambda: resume(record.compilation, point, last=last, drop=drop), self._seconds)
        if ended.failure:
            return ""
        with tempfile.TemporaryDirectory(prefix="tracing-") as folder:
            for stage, content in ended.result.items():
                data = content.encode() if isinstance(content, str) else content
                artefact(Path(folder), stage).write_bytes(data)
            return self._judge(Path(folder)).verdict


def _filled(word: str, paths: Mapping[str, Path]) -> str:
    for side, path in paths.items():
        word = word.replace(side, str(path))
    return word
