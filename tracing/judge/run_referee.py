"""Judges every launch of Inductor's kernels in a run that kept their inputs and outputs."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec
import torch

from tracing.analyze.judge.findings import Finding, JudgedLaunch
from tracing.analyze.judge.judgement import RunJudgement
from tracing.analyze.runs.recorded_steps import not_covered
from tracing.errors import Problem
from tracing.judge.contents import Contents, device_of
from tracing.judge.graph_call_referee import CallJudgement, GraphCallReferee
from tracing.judge.graph_programs import GraphPrograms
from tracing.judge.own_kernels import Interpreted, judged_own
from tracing.judge.recorded_calls import RecordedCall, recorded_calls
from tracing.judge.steps.missing_launches import missing_launches
from tracing.judge.traced.backward_formulas import backward_formulas
from tracing.judge.traced.before_inductor import BeforeInductor
from tracing.model import KernelLaunch, Outcome
from tracing.store import Run


def judge_run(
    run: Run,
    process: str,
    progress: Callable[[str], None] = lambda text: None,
    interpreted: Interpreted | None = None,
    in_eager: Sequence[str] = (),
    stopped_by: Callable[[], str] = str,
) -> RunJudgement:
    """Judge the launches of one process, in launch order.

    interpreted -- the reference of kernels that the program itself launches; None: on a virtual GPU
    in_eager    -- names of such kernels that the case launches in eager, too
    stopped_by  -- asked before each call of a graph and each execution of such a kernel: the signal that ends
                   the judgement; "": none

    Cost: the FX nodes of each launch in eager and in float64, 9 times where rounding has to be measured; and
    each graph as a whole. Memory: what one graph needs in float64.
    """
    referee = _RunReferee(run, process, progress, interpreted, stopped_by)
    return dataclasses.replace(referee.judge(), in_eager=tuple(in_eager))


class _RunReferee:
    def __init__(
        self,
        run: Run,
        process: str,
        progress: Callable[[str], None],
        interpreted: Interpreted | None,
        stopped_by: Callable[[], str],
    ) -> None:
        self._run, self._process, self._progress = run, process, progress
        self._interpreted, self._stopped_by = interpreted, stopped_by
        self._contents = Contents.of(run, process, device_of(run))
        self._graphs = GraphPrograms(process, self._contents)
        self._launches: list[JudgedLaunch] = []
        self._findings: list[Finding] = []
        self._not_covered: list[str] = [
            f"{one.what} ({one.setting})" if one.setting else one.what for one in not_covered(run)
        ]

    def judge(self) -> RunJudgement:
        launches = [one for one in map(self._run.joiner(self._process).launch, self._run.rows(self._process))]
        calls = recorded_calls(self._run, self._process, launches)
        judged = self._judged_calls(calls)
        hidden = {one.call.graph for one in calls if (of := judged.get(one.call.index)) and of.explained}
        hidden |= self._judge_before_inductor(calls, judged)
        if hidden:
            earlier = f"graph passes and earlier steps of {self._graphs.named(hidden)}"
            self._not_covered.append(f"{earlier}. Judge a new run after what is wrong here is mended")
        of_calls = {one.launch for one in self._launches}
        without = [one for one in launches if one.index not in of_calls]
        for done, one in enumerate(without):
            self._progress(f"judging: launch {done + 1} of {len(without)} outside of graphs")
            self._launches.append(self._without_call(one))
        return RunJudgement(
            tuple(sorted(self._launches, key=lambda one: one.launch)),
            tuple(self._findings),
            tuple(dict.fromkeys(self._not_covered)),
            self._outcome(),
            of_case=self._of_case,
            stopped_by=self._stopped_by(),
            formulas=backward_formulas(self._run, self._process),
        )

    def _judged_calls(self, calls: Sequence[RecordedCall]) -> dict[int, CallJudgement]:
        # what was not seen may have been launched
        missing = {} if self._not_covered else missing_launches(calls, self._graphs)
        referee = GraphCallReferee(self._process, self._contents, self._graphs)
        judged: dict[int, CallJudgement] = {}
        for done, one in enumerate(calls):
            if self._stopped_by():
                break
            self._progress(f"judging: graph call {done + 1} of {len(calls)}")
            judged[one.call.index] = judgement = referee.judge(one, missing.get(one.call.graph))
            self._launches += judgement.launches
            self._findings += judgement.findings
            self._not_covered += judgement.not_covered
        return judged

    def _judge_before_inductor(
        self, calls: Sequence[RecordedCall], judged: dict[int, CallJudgement]
    ) -> set[int]:
        # the graphs of which a fault may hide another one
        outcome = self._outcome()
        if not calls or (self._of_case and outcome is not None and outcome.status == "passed"):
            return set()  # eager's results check it
        before = BeforeInductor(self._process, self._contents, self._graphs, judged, self._stopped_by)
        before.judge([one.call for one in calls], self._progress)
        self._findings += before.findings
        self._not_covered += before.not_covered
        return before.skipped

    @property
    def _of_case(self) -> bool:
        return self._run.info.kind == "case"

    def _outcome(self) -> Outcome | None:
        # torch.compile trusts the schemas of the operators in its graphs only
        outcome = next(iter(self._run.view(self._process, Outcome, Outcome)), None)
        if outcome is None or self._of_case:
            return outcome
        own = self._graphs.custom_operators
        compiled = tuple(one for one in outcome.undeclared if one.partition(" ")[0] in own)
        return msgspec.structs.replace(outcome, undeclared=compiled)

    def _without_call(self, launch: KernelLaunch) -> JudgedLaunch:
        # a launch of no call that was judged
        graph = None if launch.kernel.copied else self._graphs.of_kernels.get(launch.kernel_name)
        if signal := self._stopped_by():
            why = _ended_by(signal)
        elif graph is not None:
            why = f"its call of graph {graph} did not end, or another recording recorded the graph's code"
        else:
            texts = launch.kernel.module, launch.kernel.stages.get("ttir")
            source, ttir = (self._run.text(one) if one else "" for one in texts)
            own = self._executed if self._interpreted is not None else None
            return judged_own(launch, source, ttir, self._contents, own)
        number = -1 if graph is None else graph
        return JudgedLaunch(launch.index, launch.kernel_name, number, "no reference", why=why)

    def _executed(self, launch: KernelLaunch, /, **how: Any) -> Mapping[str, torch.Tensor]:
        if signal := self._stopped_by():
            raise Problem(_ended_by(signal))
        assert self._interpreted is not None
        return self._interpreted(launch, **how)


def _ended_by(signal: str) -> str:
    return f"{signal} ended the judgement before it"
