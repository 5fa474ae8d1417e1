"""Determine what the launches of a step left in the buffers that it makes."""

from __future__ import annotations

from collections.abc import Mapping

from tracing.analyze.judge.launched_steps import LaunchedStep
from tracing.judge.contents import Content
from tracing.judge.steps.graph_memory import BufferContent, GraphMemory


def step_writes(
    memory: GraphMemory, made: LaunchedStep, targets: Mapping[str, BufferContent]
) -> dict[str, tuple[str, Content]]:
    """The argument that writes each buffer, and its content after the launch, by name of the schedule.

    targets -- the buffers of the step, which are given their contents

    Of contents that overwrite each other within the step, the last one is left.
    """
    locations = {memory.schedule.location(name): name for name in targets}
    written: dict[str, tuple[str, Content]] = {}
    for call in made.calls:
        for name, position, argument in call.arguments():
            own = locations.get(name, name if name in targets else None)
            if own is None or not argument.writes or call.launch is None:
                continue
            target = targets[own]
            target.by, target.storage = call.launch, argument.storage
            content = memory.contents.argument(call.launch, position, argument, "after")
            if content is not None:
                shaped = memory.shaped(target, content)
                target.content = shaped if shaped is not None else content
                if shaped is None:
                    target.value = None
                written[own] = argument.name, target.content
    return written
