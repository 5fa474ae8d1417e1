"""Find the first launch or operator that produces a NaN or an inf from finite inputs, and its readers.

Launches and operators are taken in the order in which they were made. The counts of NaN and inf in their
digests decide, and those of the elements that a launch accessed, where they are known; a tensor without a
digest is reported with the option that would record it.
"""

from __future__ import annotations

from dataclasses import replace

from tracing.analyze.nonfinite.data_events import DataEvent, Kind, data_events
from tracing.analyze.nonfinite.nonfinite_answer import DIGESTS, NonFiniteAnswer
from tracing.analyze.nonfinite.nonfinite_origin import NonFiniteOrigin
from tracing.analyze.nonfinite.process_search import ProcessSearch
from tracing.analyze.runs.outcomes import cut_off
from tracing.analyze.runs.recorded_steps import RecordedSteps, not_covered_steps
from tracing.model import KernelLaunch
from tracing.model.collectives import is_collective
from tracing.store import Run, rank_of
from tracing.store.cut_files import cut_files


def first_nonfinite(run: Run, kind: Kind = "any") -> NonFiniteAnswer:
    """Search a run; of a job, the lowest rank that has one and did not receive it from another.

    kind -- "nan": inf counts as finite; "inf": NaN counts as finite

    Cost: a pass over the launches and operators, some 10 µs each.
    """
    answer = NonFiniteAnswer(kind)
    for process in run.processes():
        search = ProcessSearch(run, process, answer)
        for event in data_events(run, process):
            search.take(event)
        origin = search.origin()
        if origin is not None and not _received(origin):
            answer.origin = origin
            break
        answer.origin = answer.origin or origin
    _unknown(run, answer)
    return answer


def _received(origin: NonFiniteOrigin) -> bool:
    # whether another rank may have sent it; if that one's is of a collective, too, the collective made it
    return origin.made and is_collective(origin.event.name)


def _lacks_earlier(run: Run, event: DataEvent) -> bool:
    # whether the run lacks steps before that of an event, or launches of a program without steps
    launch = event.source.index if isinstance(event.source, KernelLaunch) else event.source.launch
    for process in run.processes():
        if rank_of(process) == event.rank:
            steps = RecordedSteps.of(run, process)
            if not steps.has_launch(0, 0) or not all(map(steps.has, range(steps.step(launch)))):
                return True
    return False


def _unknown(run: Run, answer: NonFiniteAnswer) -> None:
    info = run.info
    if info.digests == "none":
        answer.unknown.append("the launches have no digests")
        answer.digested = False
        answer.record.append("--digests all")
    if answer.operators and info.operators != "digests" and (answer.origin is None or answer.origin.unseen):
        calls = f"{answer.operators} calls of operators outside of Triton have no digests: one of them"
        if answer.operators == 1:
            calls = "1 call of an operator outside of Triton has no digests: it"
        earlier = " earlier" if answer.origin is not None else ""
        answer.unknown.append(f"{calls} may have made a NaN or an inf{earlier}")
        answer.record.append(DIGESTS)
    complete = 1 < info.world_size <= len(run.processes())  # else other ranks may have runs of their own
    if answer.origin is not None and _received(answer.origin) and not complete:
        answer.unknown.append(f"what other ranks gave {answer.origin.event.name}: the run lacks some")
        answer.record.append("all ranks")
    if info.operators == "none":
        answer.unknown.append("operators outside of Triton were not recorded")
        answer.record.append(DIGESTS)
    if not info.selection.selects_all:
        answer.selected = True
        answer.unknown.append("only some launches were recorded")
        answer.record.append("all launches")
    answer.missing = [one.what for one in not_covered_steps(run)]
    answer.unknown += answer.missing
    if answer.origin is not None:
        # steps that were deleted had none if the recording would have ended with the first one
        lacks = not info.steps.watched(answer.kind) and _lacks_earlier(run, answer.origin.event)
        if answer.selected or lacks:
            answer.origin = replace(answer.origin, partial=True)
    damaged = [f"{cut.path.name}: {cut.how}" for cut in cut_files(run.path) if cut.damaged]
    answer.unknown += damaged
    if not run.processes():
        answer.unknown.append("the run has no launches")
    elif answer.origin is None and not damaged:
        ends = (cut_off(run, rank) for rank in sorted({rank_of(process) for process in run.processes()}))
        answer.unknown += [f"later launches: the run {end}" for end in dict.fromkeys(ends) if end]
    answer.record[:] = dict.fromkeys(answer.record)
