"""CachedBuilds of a program for `tracing bisect PROGRAM`: each runs and compiles in a separate process."""

from __future__ import annotations

import re
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from tracing.analyze.bisect.judge import run_command
from tracing.analyze.bisect_case.evaluation import Evaluation, Variation
from tracing.analyze.bisect_case.stages import AOT, EAGER_PROGRAM, GRAPHS, OBSERVED_PROGRAM
from tracing.analyze.bisect_case.symptom import Symptom, judged_as
from tracing.cli.narrow.bisect.builds import CachedBuilds, evaluated, nothing
from tracing.compiler.child import ChildResult, in_child
from tracing.errors import page
from tracing.program.user_program import UserProgram

if TYPE_CHECKING:
    from tracing.program.device import Device

_UNKNOWN = 125  # as for `git bisect run`
_NOT_COMPILED = (
    "the process of the program compiles no graph by Inductor",
    "a search follows the first process only, and backends of torch.compile that call Inductor; of a "
    "recorded kernel: `tracing bisect RUN --kernel K -- COMMAND`",
)
_DIES = (
    "the process of the program dies before it tells what it compiles, so no step can be left out",
    "cut the program down to the call that dies",
)
_IN_EAGER = (
    "mend the program so that it is right without torch.compile; each build executes it once more in this "
    "folder, so it must neither fail because of its own files nor depend on chance"
)
_OF_TORCHRUN = re.compile(r"\b(?:LOCAL_)?(?:RANK|WORLD_SIZE)\b|\bMASTER_(?:ADDR|PORT)\b")
_SLOW = "give it fewer steps, or a build more time"


def _unsearchable(compiled: Evaluation, uncompiled: Evaluation) -> Symptom | None:
    # the reason why torch.compile is not to blame, or not known to be
    eager = uncompiled.symptom
    if eager.kind == "no answer":
        return eager
    if eager.error == "timeout":
        return Symptom("no answer", f"without torch.compile {eager.text}", remedy=_SLOW)
    if judged_as(eager, compiled.symptom).verdict == "bad":
        text = f"without torch.compile it ends alike: {eager.text}"
        return Symptom("no answer", text, remedy=_remedy(uncompiled))
    if eager.kind != "right":
        text = f"compiled it ends with {compiled.symptom.text}; without torch.compile it fails: {eager.text}"
        return Symptom("no answer", text, remedy=_remedy(uncompiled))
    return None


def _not_compiled(*builds: Evaluation) -> Symptom | None:
    # the reason why no step of Inductor is known, if none of the builds tells a graph that it compiles
    if any(one.steps.get(GRAPHS) for one in builds):
        return None
    text, remedy = _DIES if all(one.symptom.kind == "dies" for one in builds) else _NOT_COMPILED
    return Symptom("no answer", text, remedy=remedy)


def _remedy(uncompiled: Evaluation) -> str:
    names = ", ".join(f"{one.name} ({one.python})" for one in uncompiled.own_kernels)
    if not names and (variable := _OF_TORCHRUN.search(uncompiled.symptom.text)):
        one_rank = "torchrun --nproc-per-node=1 -m tracing bisect PROGRAM"
        return f"torchrun sets {variable[0]}; to search one rank of the job, if it fails alike: `{one_rank}`"
    if not names:
        return _IN_EAGER
    how = page("docs/case.md#check-a-hand-written-kernel")
    return f"it launches hand-written kernels there, too: {names}; how to check them: {how}"


class ProgramSpec(msgspec.Struct, frozen=True):
    """What a new process needs to run the program."""

    words: tuple[str, ...]  # as after `python`
    target: str
    seed: int | None
    virtual: bool = True  # False: without a GPU there is none


class ProgramBuilds(CachedBuilds):
    """Evaluates variations of one program."""

    def __init__(
        self,
        spec: ProgramSpec,
        device: Device,
        command: Sequence[str],
        runs: Path,
        seconds: float,
        rewind: Callable[[], None],
    ) -> None:
        """Evaluate builds of a program.

        command -- judges what a build prints, the files {stdout} and {stderr}; empty: the exit status does
        seconds -- time limit of one build, and of the command
        rewind  -- is called before each build, which reads standard input from its beginning
        """
        from tracing.replay.partial_program import PartialProgram

        program = UserProgram(spec.words)
        key = [msgspec.to_builtins(spec), list(command), str(Path.cwd())]
        super().__init__(runs, program.name.replace("/", "_"), key)
        self._program, self._spec = PartialProgram(program, device, spec.seed), spec
        self._forks = device.type == "cpu"  # a fork cannot use a GPU that this process has used
        self._command, self._seconds, self._rewind = command, seconds, rewind

    def __call__(self, variation: Variation, number: int) -> Evaluation:
        """The result of one build; there is no answer if the program is wrong without torch.compile, too."""
        evaluation = super().__call__(variation, number)
        if variation != Variation() or evaluation.symptom.kind == "no answer":
            return evaluation
        eager = super().__call__(Variation(EAGER_PROGRAM), number)
        symptom = _unsearchable(evaluation, eager) or self._not_compiled(evaluation, number)
        if symptom is None and evaluation.symptom.kind != "right":
            observed = super().__call__(Variation(OBSERVED_PROGRAM), 0).symptom
            symptom = observed if observed.kind == "no answer" and observed.remedy else None
        symptom = symptom or evaluation.symptom
        return replace(evaluation, symptom=symptom, eager_kernels=eager.own_kernels)

    def eager_is_right(self, times: int) -> bool:
        """True if the program is right without torch.compile in so many builds."""
        builds = (super(ProgramBuilds, self).__call__(Variation(EAGER_PROGRAM), n) for n in range(times))
        return all(one.symptom.kind == "right" for one in builds)

    def _not_compiled(self, evaluation: Evaluation, number: int) -> Symptom | None:
        # a build that fails or dies before Inductor tells its graphs only if less is compiled
        if evaluation.steps.get(GRAPHS) or evaluation.symptom.kind == "right":
            return _not_compiled(evaluation)
        return _not_compiled(evaluation, super().__call__(Variation(AOT), number))

    def _built(self, variation: Variation) -> Evaluation:
        self._rewind()
        with tempfile.TemporaryDirectory(prefix="tracing-") as folder:
            evaluation = evaluated(self._ended(variation, folder if self._command else ""))
            if self._command and evaluation.symptom.kind == "right":
                evaluation = replace(evaluation, symptom=self._judged(Path(folder)))
        return evaluation

    def _ended(self, variation: Variation, folder: str) -> ChildResult:
        one = (variation.stage, variation.first, variation.without, variation.only, folder)
        if self._forks:
            return in_child(partial(self._program.evaluate, *one), self._seconds)
        spec = msgspec.json.encode([self._spec, *one]).decode()
        program = [sys.executable, "-m", "tracing.cli.narrow.bisect.program_child", spec]
        return in_child(nothing, self._seconds, program=program)

    def _judged(self, folder: Path) -> Symptom:
        words = [
            word.replace("{stdout}", str(folder / "stdout")).replace("{stderr}", str(folder / "stderr"))
            for word in self._command
        ]
        status, _ = run_command(words, self._seconds)
        text = f"{self._command[0]}: exit status {status}"
        if status is None:
            return Symptom("no answer", f"{self._command[0]} did not end within {self._seconds:g} s")
        if status == _UNKNOWN or status > 127:
            return Symptom("no answer", text)
        return Symptom("fails" if status else "right", text, error="judged bad" if status else "")
