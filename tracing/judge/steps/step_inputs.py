"""From what the launches of a step compute the buffers that it makes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tracing.judge.contents import Content
from tracing.judge.fx.fx_values import FxValue
from tracing.judge.steps.graph_memory import BufferContent, FxSources, GraphMemory
from tracing.model.first_names import first_names
from tracing.store.graph_file import ScheduleStep


@dataclass(frozen=True, slots=True)
class StepInputs:
    """What a step reads: known values, and partial results, which are judged together with its own."""

    step: ScheduleStep
    sources: FxSources
    launches: tuple[int, ...]  # that made the partial results
    operators: tuple[str, ...]  # of libraries that made some, and that of the step
    wrong: str  # "launch 3 k is off": on which they depend
    unknown: str  # why it is not known what the step read: "k was not launched"
    unseen: str  # "no launch was seen that computes sin", whose result it read

    def makes(self, value: FxValue | None, *, seen: bool) -> BufferContent:
        """What the step leaves in a buffer.

        seen -- False: the launch that makes it was not recorded
        """
        unseen = self.unseen if seen else f"no launch was seen that computes {first_names(self.step.nodes)}"
        return BufferContent(
            value, None, self.sources if seen else {}, self.launches, self.operators,
            self.step if seen else None, wrong=self.wrong, unknown=self.unknown, unseen=unseen,
        )  # fmt: skip


def step_inputs(
    memory: GraphMemory, step: ScheduleStep, read: Mapping[str, Content], unknown: str
) -> StepInputs:
    """What a step reads.

    read    -- the contents that its launches read, by name of the schedule
    unknown -- as of `StepInputs`, of the step itself; "": nothing is
    """
    sources: FxSources = memory.numbers()
    launches: dict[int, None] = {}
    wrong = unseen = ""
    for name in step.reads:
        held = memory.held.get(name)
        if held is None:
            continue
        wrong = wrong or held.wrong
        content = read.get(name) or held.content
        if content is not None and held.value is not None:
            shaped = memory.shaped(held, content)
            if shaped is not None:
                sources[held.value] = shaped
                continue
        sources |= {value: one for value, one in held.sources.items() if value not in sources}
        launches |= dict.fromkeys(held.launches)
        unseen = unseen or held.unseen
    unknown = unknown or _unknown(memory, step)
    operators = library_operators(memory, step)
    return StepInputs(step, sources, tuple(launches), operators, wrong or unknown, unknown, unseen)


def library_operators(memory: GraphMemory, step: ScheduleStep) -> tuple[str, ...]:
    """That of a step, and those whose results it reads and that are judged together with it."""
    read = [one for name in step.reads if (one := memory.held.get(name)) is not None]
    partial = [one for one in read if one.value is None or one.content is None]
    own: list[str] = []
    if step.kind == "library" and step.nodes:  # its nodes are also those that it reads, and views
        program = memory.program
        made = [node for node in step.nodes if not program.is_view(node)]
        own = [program.operator(max(made or step.nodes, key=program.order.__getitem__))]
    return tuple(dict.fromkeys((*(name for one in partial for name in one.operators), *own)))


def _unknown(memory: GraphMemory, step: ScheduleStep) -> str:
    read = (held for name in step.reads if (held := memory.held.get(name)) is not None)
    return next((one.unknown for one in read if one.unknown and one.content is None), "")
