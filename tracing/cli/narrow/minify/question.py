"""The options of `tracing minify`, from which a child process can repeat the trials."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import TYPE_CHECKING, Literal, TypeAlias

from tracing.cli.options.check_options import CheckOptions
from tracing.errors import Problem

if TYPE_CHECKING:
    from tracing.minify.graph_trials import GraphTrials
    from tracing.minify.predicate import GraphPredicate

TIMES = 3  # executions of the predicate `unstable`
PredicateName: TypeAlias = Literal["fails", "unstable", "kernels", "constraint"]


@dataclass(frozen=True)
class Question:
    """A case, and the kind of failure to keep."""

    case: str
    target: str
    seed: int
    predicate: PredicateName
    times: int = TIMES  # executions of the predicate `unstable`
    # settings of Inductor for the predicate `kernels`
    settings: Mapping[str, bool | int | str] = field(default_factory=dict)
    constraints: CheckOptions = field(default_factory=CheckOptions)

    def __post_init__(self) -> None:
        """Raise Problem for an option that has no effect on the predicate."""
        for predicate, option, given in (
            ("unstable", "--times", self.times != TIMES),
            ("kernels", "--setting", bool(self.settings)),
            ("constraint", "a constraint", self.constraints.given),
        ):
            if given and self.predicate != predicate:
                raise Problem(
                    f"{option} has no effect on --predicate {self.predicate}",
                    f"give it with --predicate {predicate}",
                )

    def asked(self) -> GraphPredicate:
        """The predicate; raises Problem for an invalid constraint. Imports torch."""
        from tracing.minify.predicate import Fails, OtherKernels, Unstable, Violates

        if self.predicate == "unstable":
            return Unstable(self.times)
        if self.predicate == "kernels":
            _require_settings(self.settings)
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


def _require_settings(names: Iterable[str]) -> None:
    from tracing.upstream.inductor.config import setting_names

    known = setting_names()
    for name in names:
        if name not in known:
            near = get_close_matches(name, known)
            remedy = (
                f"nearest: {', '.join(near)}"
                if near
                else "name an attribute of torch._inductor.config, as max_fusion_size=1"
            )
            raise Problem(f"torch._inductor.config has no setting {name}", remedy)


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
