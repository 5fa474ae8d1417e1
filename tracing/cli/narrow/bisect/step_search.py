"""The search from the model down to a kernel: prints each build, and counts them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from typing import Any

from rich.text import Text

from tracing.analyze.bisect.search_events import Building
from tracing.analyze.bisect_case.case_events import (
    CaseAnswer,
    CaseEvent,
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
from tracing.analyze.bisect_case.case_search import CaseSearch
from tracing.analyze.bisect_case.evaluation import WrittenKernel
from tracing.cli.app import err, out, silent
from tracing.cli.narrow.bisect.builds import CachedBuilds
from tracing.report.bisect import bisect_case as report
from tracing.report.bisect.bisect_case_json import case_search_json
from tracing.report.text import Line

Ending = Callable[[CaseTried | CaseAnswer], Iterator[Line]]  # what else there is to say of the last event


class StepSearch:
    """One search, and how its events are printed."""

    def __init__(
        self,
        builds: CachedBuilds,
        times: int,
        ending: Ending,
        *,
        cpp: bool = False,
        eager_is_right: Callable[[int], bool] = lambda times: True,
        unchecked: bool = False,
    ) -> None:
        """The arguments are those of CaseSearch, and what is printed at the end.

        unchecked -- of a program that only its exit status judges: 0 may be that of wrong results
        """
        self._builds, self._ending = builds, ending
        self._events: list[CaseEvent] = []
        self._sources: dict[str, str] = {}
        self._search = CaseSearch(builds, times, self._show, cpp=cpp, eager_is_right=eager_is_right)
        self._trying, self._unchecked = "", unchecked
        self._status = err.status("")

    def printed(self) -> int:
        """Search, print the events, and return the exit status."""
        for event in self._search.events():
            self._events.append(event)
            with ExitStack() as stack:
                self._status.stop()
                if isinstance(event, Building):
                    self._trying = event.what
                    self._show()
                    continue
                stack.callback(self._show)
                out.print_lines(self._lines(event))
        self._status.stop()
        known = f", {self._builds.known} known from earlier searches" if self._builds.known else ""
        err.print(Text(f"{self._builds.built} built{known}", "dim"))
        last = self._events[-1]
        if isinstance(last, CaseTried):
            return 1 if last.symptom.kind == "eager is off" else 0
        return 1 if isinstance(last, CaseAnswer) and last.decided else 2

    def printed_json(self, name: str, passes: Callable[[], Any]) -> int:
        """Search, print one JSON object, and return the exit status; `passes` is called at the end."""
        with silent():
            status = self.printed()
        effort = {"built": self._builds.built, "known": self._builds.known}
        searched = case_search_json(self._events, self._sources)
        answer = {"case": name, "status": status, **searched, "passes": passes(), **effort}
        print(json.dumps(answer, indent=2))
        return status

    def _show(self) -> None:
        builds = self._builds.built + self._builds.known
        self._status.update(f"{self._trying} ({builds} builds)")
        self._status.start()

    def _lines(self, event: CaseEvent) -> Iterator[Line]:
        match event:
            case CaseTried():
                unchecked = self._unchecked and not event.bad
                yield from (report.unchecked_program_text if unchecked else report.case_tried_text)(event)
                if not event.bad:
                    yield from self._ending(event)
            case StageTried():
                yield report.stage_tried_text(event)
            case StageBlamed():
                yield from report.stage_blamed_text(event)
            case Planned():
                yield report.planned_text(event)
            case PartTried():
                yield report.part_tried_text(event)
            case Culprit():
                yield from report.culprit_text(event)
            case PartUndecided():
                yield from report.undecided_text(event)
            case TogetherBlamed():
                yield from report.together_text(event)
            case OtherCode():
                yield from report.other_code_text(event)
            case CaseAnswer():
                self._write(event.kernels)
                cpp = [one.judgement.verdict for one in self._events if isinstance(one, OtherCode)]
                yield from report.answer_text(event, self._sources, cpp=cpp[-1] if cpp else "skip")
                yield from self._ending(event)

    def _write(self, kernels: Sequence[WrittenKernel]) -> None:
        self._builds.folder.mkdir(parents=True, exist_ok=True)
        for kernel in kernels:
            path = self._builds.folder / f"{kernel.name}.py"
            path.write_text(kernel.source)
            self._sources[kernel.name] = str(path)
