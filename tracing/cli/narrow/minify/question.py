"""The options of `tracing minify`, from which a child process can repeat the trials."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, TypeAlias

from tracing.cli.options.check_options import CheckOptions
from tracing.errors import Problem

if TYPE_CHECKING:
    from tracing.minify.graph_trials import GraphTrials
    from tracing.minify.predicate import GraphPredicate

PredicateName: TypeAlias = Literal["fails", "unstable", "kernels", "constraint"]


@dataclass(frozen=True)
class Question:
    """A case, and the kind of failure to keep."""

    case: str
    target: str
    seed: int
    predicate: PredicateName
    times: int = 3  # executions of the predicate `unstable`
    settings: Mapping[str, bool | int | str] = field(
        default_factory=dict
    )  # settings of Inductor for the predicate `kernels`
    constraints: CheckOptions = field(default_factory=CheckOptions)

    def asked(self) -> GraphPredicate:
        """The predicate; raises Problem for an invalid constraint. Imports torch."""
        from tracing.minify.predicate import Fails, OtherKernels, Unstable, Violates

        if self.predicate == "unstable":
            return Unstable(self.times)
        if self.predicate == "kernels":
            return OtherKernels(self.settings)
        if self.predicate == "constraint":
            constraints = self.constraints.constraints()
            if not constraints:
                raise Problem("no constraint is given", "give one, such as --alignment 8")
            return Violates(constraints)
        return Fails()

    def graphs(self) -> GraphTrials:
        """The captured graphs of the case. Raises Problem if the case fails in eager."""
        from tracing.minify.graph_trials import GraphTrials
        from tracing.program.device import Device
        from tracing.program.experiment import Experiment
        from tracing.program.warm_compiler import load_and_warm_up

        predicate, device = self.asked(), Device(self.target)
        experiment = Experiment(load_and_warm_up(device, self.case), device, self.seed)
        return GraphTrials(experiment, predicate)  # trials are forks of this process


def settings(texts: list[str]) -> dict[str, bool | int | str]:
    """Settings of Inductor from KEY=VALUE; raises Problem for text without `=`."""
    known: dict[str, bool | int | str] = {}
    for text in texts:
        key, equal, value = text.partition("=")
        if not equal or not key:
            raise Problem(f"{text!r} is no setting", "give it as --setting max_fusion_size=1")
        if value.lower() in ("true", "false"):
            known[key] = value.lower() == "true"
        else:
            known[key] = int(value) if value.lstrip("-").isdecimal() else value
    return known
