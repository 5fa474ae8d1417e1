"""The judgement of a run: what all verdicts and findings together say of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from tracing.analyze.judge.findings import Finding, JudgedLaunch
from tracing.analyze.judge.reached_results import ReachedResults
from tracing.model import Outcome, is_gradient

BY_DYNAMO = "by Dynamo's graph"  # in `not_covered`: the reference that is missing


@dataclass(frozen=True, slots=True)
class RunJudgement:
    """The judgement of one process of a run."""

    launches: tuple[JudgedLaunch, ...]  # of Inductor's kernels, in launch order
    findings: tuple[Finding, ...]
    not_covered: tuple[str, ...]
    outcome: Outcome | None = None  # of the run: outputs compared with eager
    in_eager: tuple[str, ...] = ()  # hand-written kernels that eager launches, too
    reached: Mapping[int, ReachedResults] = field(default_factory=dict)  # by launch; empty: not known
    eager_known: bool = True  # False: the run does not say which kernels eager launches
    of_case: bool = True  # False: of a program, which is not compared with eager
    wrong_accesses: Mapping[str, str] = field(default_factory=dict)  # {"4 colsum": "races"}
    has_results: bool = False  # tensors that were compared with eager's
    other_contents: str = ""  # "launch 3 k read another x": of the new recording that stands for the run
    stopped_by: str = ""  # "SIGTERM": ended the judgement before all was judged
    formulas: tuple[str, ...] = ()  # backward formulas of the program that ran: "mylib::cube (train.py:30)"

    @property
    def accused(self) -> JudgedLaunch | None:
        """The first launch that is off."""
        return next((one for one in self.launches if one.verdict == "off"), None)

    @property
    def further(self) -> list[JudgedLaunch]:
        """The later launches that are off for their own inputs, too."""
        return [one for one in self.launches if one.verdict == "off" and one is not self.accused]

    @property
    def status(self) -> int:
        """0: all that was judged is right; 1: something is off, or suspected; 2: no answer.

        There is no answer if no launch is judged or checked, if results differ or the program failed without
        a suspect, or if all that was judged is right, and read other contents than the launches of the run
        did, or a signal ended the judgement.
        """
        if self.accused or self.findings or self.suspects or self.undeclared or self.laid_out:
            return 1
        checked = (self.checked or self.confirmed) and not self.undecided
        if self.other_contents or self.failed or self.stopped_by:
            return 2
        return 0 if (self.any_right or checked) and not self.differs else 2

    @property
    def confirmed(self) -> bool:
        """True if eager's results agree, and check the launches together.

        Not if eager launches a hand-written kernel, too, or may do so: then its fault is in both results.
        """
        return self.has_results and self._passed and not self.other_numbers and not self.unchecked

    @property
    def other_numbers(self) -> Sequence[str]:
        """The results that agree with eager's in another compile only, which draws eager's random numbers."""
        return self.outcome.other_numbers if self.outcome is not None and self._passed else ()

    @property
    def _passed(self) -> bool:
        return self.outcome is not None and self.outcome.status == "passed"

    @property
    def failed(self) -> bool:
        """True if the program raised, or if its exit status is not 0."""
        return self.outcome is not None and self.outcome.fails

    @property
    def any_right(self) -> bool:
        """True if a launch was judged and is right."""
        return any(one.verdict == "right" for one in self.launches)

    @property
    def hand_written(self) -> list[str]:
        """The kernels of the program itself that have no reference, in launch order."""
        own = (one.kernel for one in self.launches if one.graph < 0 and one.verdict == "no reference")
        return list(dict.fromkeys(own))

    @property
    def unchecked(self) -> list[str]:
        """The hand-written kernels that neither a reference nor the comparison with eager checks."""
        return [one for one in self.hand_written if one in self.in_eager or not self.compared]

    @property
    def compared(self) -> bool:
        """True if the results were compared with eager's."""
        status = self.outcome.status if self.outcome is not None else ""
        return status in ("passed", "differs", "not decided", "out of bounds")

    @property
    def before_inductor_unknown(self) -> bool:
        """True if a result or gradient could not be judged by the graph that Dynamo traced."""
        return any(BY_DYNAMO in one for one in self.not_covered)

    @property
    def less_precise(self) -> Sequence[str]:
        """The results that agree with eager's within rounding only, and how far both are from exact."""
        return self.outcome.less_precise if self.outcome is not None else ()

    @property
    def checked(self) -> list[str]:
        """The hand-written kernels that the comparison with eager checks."""
        unchecked = {*self.unchecked, *(one.partition(" ")[2] for one in self.wrong_accesses)}
        return [one for one in self.hand_written if one not in unchecked]

    @property
    def suspects(self) -> list[JudgedLaunch]:
        """The launches without a reference, if results differ from eager and all other launches are right.

        The most suspect ones are first: those that access memory wrongly, then those on which no result that
        agrees depends. A kernel that eager launches, too, does not make the results differ, nor does a launch
        that reaches none that differs. If eager gives another result each time, it accuses nothing.
        """
        own = [one for one in self._unexplained if not self._reached(one).cleared]
        if not self.eager_repeats:
            own = [one for one in own if self.accesses_wrongly(one)]
        return sorted(
            own, key=lambda one: (not self.accesses_wrongly(one), bool(self._reached(one).agreeing))
        )

    def accesses_wrongly(self, launch: JudgedLaunch) -> bool:
        """True if it races, accesses memory outside of an argument, or was compiled for other arguments."""
        return f"{launch.launch} {launch.kernel}" in self.wrong_accesses

    @property
    def cleared(self) -> list[JudgedLaunch]:
        """The launches without a reference that are no suspects, as they reach no result that differs."""
        if not self.eager_repeats:
            return []
        return [one for one in self._unexplained if self._reached(one).cleared]

    @property
    def forward_of_gradients(self) -> bool:
        """True if only gradients differ from eager's, and other results, which agree, depend on each suspect.

        Then the backward formula of the code that launches the suspects is more suspect than they are.
        """
        differing = self.outcome.differing if self.outcome is not None else ()
        if not (self.suspects and differing and all(map(is_gradient, differing))):
            return False
        agreeing = (self._reached(one).agreeing for one in self.suspects)
        return all(any(not is_gradient(name) for name in names) for names in agreeing)

    @property
    def laid_out(self) -> Sequence[str]:
        """The results that differ from eager's, if all do in strides or dtype only, unexplained."""
        if self.outcome is None or not self.differs or self.accused or self.findings or self.undeclared:
            return ()
        others = {*self.outcome.differing} - {*self.outcome.laid_out}
        return () if others else self.outcome.laid_out

    @property
    def _unexplained(self) -> list[JudgedLaunch]:
        if not self.differs or self.accused or self.findings or self.undeclared or self.laid_out:
            return []
        unjudged = (one for one in self.launches if one.unchecked)
        return [one for one in unjudged if one.kernel not in self.in_eager]

    def _reached(self, launch: JudgedLaunch) -> ReachedResults:
        return self.reached.get(launch.launch, ReachedResults())

    @property
    def undeclared(self) -> Sequence[str]:
        """What operators do against their schemas; of a case only if results differ or a value is off."""
        explains = self.differs or self.findings or not self.of_case
        return self.outcome.undeclared if self.outcome is not None and explains else ()

    @property
    def eager_repeats(self) -> bool:
        """False if eager gives another result each time."""
        return self.outcome is None or self.outcome.eager_repeats

    @property
    def undecided(self) -> bool:
        """True if exact arithmetic agrees with neither compiled nor eager, which differ from each other."""
        return self.outcome is not None and self.outcome.status == "not decided"

    @property
    def differs(self) -> bool:
        """True if the run's results differ from eager."""
        return self.outcome is not None and self.outcome.status == "differs"
