"""Map the contents of a schedule to values of its graph."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from tracing.judge.fx.fx_program import FxProgram
from tracing.judge.fx.fx_values import FxValue
from tracing.judge.fx.operators import is_custom, references
from tracing.store.graph_file import FxNode, Schedule, ScheduledBuffer


def values_of(schedule: Schedule, program: FxProgram) -> dict[str, FxValue]:
    """The value of the graph in each content of a schedule that holds exactly one.

    Inductor notes for a buffer the node whose value it holds, if there is one. For a buffer that
    is overwritten in place, Inductor notes the node of the previous content: `_moved` corrects this.
    """
    nodes = {name: _node(buffer, program) for name, buffer in schedule.buffers.items()}
    values = {name: FxValue(name, 0) for name in schedule.inputs if name in program.nodes}
    values |= {name: program.value(node) for name, node in nodes.items() if node}
    _name_outputs(schedule, program, values)
    for name, reader in given_to_operators(schedule, program).items():
        node = _only_argument(reader)
        if name not in values and node in schedule.buffers[name].origins and not program.is_view(node):
            values[name] = program.value(node)
    for name, value in _written_by_kernels(schedule, program):
        values.setdefault(name, value)
    spent: set[str] = set()
    for name, earlier in schedule.overwrites.items():
        _moved(name, earlier[0] if len(earlier) == 1 else "", schedule, program, values, spent)
    return {name: value for name, value in values.items() if name not in spent}


def given_to_operators(schedule: Schedule, program: FxProgram) -> dict[str, FxNode]:
    """Buffers that are copied for an operator of the program, in the layout that it asks for, and its node.

    Inductor notes no node for such a buffer, and as its origins those of every argument of the operator.
    """
    given: dict[str, FxNode] = {}
    for step in schedule.steps:
        if step.kind != "library" or not step.nodes:
            continue
        reader = program.nodes[max(step.nodes, key=program.order.__getitem__)]
        buffers = {name: schedule.buffers[name] for name in step.reads if name in schedule.buffers}
        if is_custom(reader) and not reader.written:
            copies = (name for name, one in buffers.items() if one.kind == "ComputedBuffer" and not one.node)
            given |= dict.fromkeys(copies, reader)
    return given


def _written_by_kernels(schedule: Schedule, program: FxProgram) -> Iterator[tuple[str, FxValue]]:
    # the buffer that a kernel of the program writes to, of which Inductor notes no node, either
    for step in schedule.steps:
        if step.code != "UserDefinedTritonKernel" or not step.nodes:
            continue
        wrapper = program.nodes[max(step.nodes, key=program.order.__getitem__)]
        buffers = [name for one in step.buffers for name in schedule.overwrites.get(one, ())]
        written = wrapper.written or ()
        if len(buffers) == len(written) == 1:  # of several, none is known to be that of a node
            yield buffers[0], program.value(written[0], program.order[wrapper.name])


def _only_argument(reader: FxNode) -> str:
    # its only tensor: "" if it has several
    arguments = {*references([reader.args, reader.kwargs])}
    return arguments.pop() if len(arguments) == 1 else ""


def _node(buffer: ScheduledBuffer, program: FxProgram) -> str:
    node = program.nodes.get(buffer.node)
    if node is None or node.op == "placeholder":
        return ""
    if not isinstance(node.value, list):
        return node.name
    wanted = buffer.parts[0] if len(buffer.parts) == 1 else None
    for other in program.graph.nodes:
        if other.target == "_operator.getitem" and list(other.args) == [{"node": node.name}, wanted]:
            return other.name
    return ""


def _name_outputs(schedule: Schedule, program: FxProgram, values: dict[str, FxValue]) -> None:
    # the mean of a Welford reduction has no node, unless it is an output
    for name, output in zip(schedule.outputs, program.outputs, strict=False):
        node = output.get("node", "") if isinstance(output, Mapping) else ""
        buffer = schedule.buffers.get(name)
        if buffer is None or name in values or not node or program.is_view(node):
            continue
        if schedule.outputs.count(name) == 1 and _made_with(buffer, node, program):
            values[name] = program.value(node)


def _made_with(buffer: ScheduledBuffer, node: str, program: FxProgram) -> bool:
    origins = {*buffer.origins}
    parents = [one.get("node") for one in program.nodes[node].args if isinstance(one, Mapping)]
    return node in origins or bool(origins & {*parents})


def _moved(
    name: str,
    earlier: str,
    schedule: Schedule,
    program: FxProgram,
    values: dict[str, FxValue],
    spent: set[str],
) -> None:
    # the content of a buffer that overwrites another one; `spent`: contents that no buffer holds any more
    buffer, held = schedule.buffers.get(name), values.get(earlier)
    values.pop(name, None)
    if buffer is None or held is None:
        return
    made = (step.nodes for step in schedule.steps if name in step.buffers)
    origins = {*(buffer.origins or next(made, ()))}  # a buffer that a user's kernel overwrites has no origins
    root = program.root(held.node)
    writers = [one for one in program.writers.get(root, ()) if one in origins]
    if writers:
        noted = schedule.buffers[earlier].node if earlier in schedule.buffers else ""
        own = root if noted in program.writers[root] else held.node  # a buffer may hold a view of the root
        values[name] = FxValue(own, program.after(writers[-1], root).writes)
        first = program.after(writers[0], root).writes
        if held.node == own and held.writes >= first:
            # an in-place operator returns the buffer, and Inductor notes the node of the last one
            values[earlier] = FxValue(own, first - 1)
    elif held.node in origins and earlier not in schedule.inputs:
        spent.add(earlier)  # a copy that is written to: its value exists after the last write
        if name == [one for one, them in schedule.overwrites.items() if earlier in them][-1]:
            values[name] = held
