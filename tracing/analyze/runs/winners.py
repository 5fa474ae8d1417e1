"""Collect the winners of a run's autotuners, by kernel, tuning key and rank."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tracing.model import Winner, exact
from tracing.store import Run, rank_of
from tracing.store.winners import Join, join


@dataclass(frozen=True, slots=True)
class Choice:
    """One choice, as each rank made it."""

    by_rank: Mapping[int, tuple[Winner, ...]]  # several where a rank has several processes

    @property
    def first(self) -> Winner:
        """The winner of the lowest rank."""
        return self.by_rank[min(self.by_rank)][0]

    @property
    def agreed(self) -> bool:
        """True if all ranks that chose agree."""
        first = exact(self.first.config)
        return all(exact(one.config) == first for winners in self.by_rank.values() for one in winners)


def unlaunched_configurations(run: Run, kernels: Sequence[str]) -> list[str]:
    """The configurations of kernels that an autotuner did not choose, a sentence for each choice."""
    texts = []
    for winner in (one.first for one in choices(run) if one.agreed):
        others = [one for one in winner.candidates if exact(one) != exact(winner.config)]
        if winner.kernel in kernels and others:
            chosen = ", ".join(f"{name}={value}" for name, value in winner.config.items())
            these = "another configuration" if len(others) == 1 else f"{len(others)} other configurations"
            texts.append(f"{these} of {winner.kernel}: its autotuner chose {chosen}")
    return list(dict.fromkeys(texts))


@dataclass(frozen=True, slots=True)
class ChangedByTrials:
    """An argument that a kernel reads and writes, and that the trials of its autotuner do not restore."""

    kernel: str
    argument: str
    configurations: int  # that are tried


def changed_by_trials(run: Run) -> list[ChangedByTrials]:
    """The arguments that measuring configurations changes, as a sum to which each trial adds.

    Of `@triton.autotune` without hooks; the trials of Inductor's autotuner have copies.
    """
    changed: dict[ChangedByTrials, None] = {}
    for process in run.processes(Winner):
        tuned = {one.kernel: one for one in run.view(process, Winner, Winner) if one.tuner == "triton"}
        for kernel, signature in run.signatures(process).values() if tuned else ():
            winner = tuned.get(kernel.name)
            if winner is None or winner.restored is None or len(winner.candidates) < 2:
                continue
            for arg in signature.args:
                if arg.declared == "in_out" and arg.name not in winner.restored:
                    changed[ChangedByTrials(kernel.name, arg.name, len(winner.candidates))] = None
    return list(changed)


def choices(run: Run) -> list[Choice]:
    """Every choice of a run, in the order in which the lowest rank made them.

    If an autotuner refines its first choice, as Inductor's coordinate descent does, the last choice counts.
    """
    by_join: dict[Join, dict[int, tuple[Winner, ...]]] = defaultdict(dict)
    for process in sorted(run.processes(Winner), key=rank_of):
        last = {join(winner): winner for winner in run.view(process, Winner, Winner)}
        for key, winner in last.items():
            earlier = by_join[key].get(rank_of(process), ())
            by_join[key][rank_of(process)] = (*earlier, winner)
    return [Choice(by_rank) for by_rank in by_join.values()]
