"""Parts of a recorded graph are executed from given values, with operators in place and views."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
import torch
from torch.fx.experimental.proxy_tensor import make_fx

from tracing.judge.fx.float64 import right_by
from tracing.judge.fx.fx_program import FxProgram
from tracing.judge.fx.fx_values import FxValue
from tracing.judge.fx.no_reference import NoReference
from tracing.judge.fx.operators import resolved
from tracing.record.graphs.graph_nodes import graph_json
from tracing.store.graph_file import FxGraph, FxNode
from tracing.upstream.torch.fused_attention import GeneratorState

X = torch.arange(12.0).reshape(3, 4)


def program(function: Any, *arguments: Any) -> FxProgram:
    module = make_fx(function)(*arguments)
    return FxProgram(msgspec.json.decode(msgspec.json.encode(graph_json(module)), type=FxGraph))


def computed(fx: FxProgram, value: FxValue, given: dict[FxValue, Any]) -> torch.Tensor:
    return fx.run(fx.plan([value], given), given)[value]


def test_a_graph_that_was_written_down_computes_what_its_function_does() -> None:
    def function(x: torch.Tensor) -> torch.Tensor:
        y = torch.full((4,), float("inf"), dtype=torch.float64) * x.double()[:, 1:2]
        return torch.where(y > 0, x.sum(-1, keepdim=True).to(torch.bfloat16), 0.5)

    fx = program(function, X)
    output = fx.value(fx.outputs[0]["node"])

    assert torch.equal(computed(fx, output, {FxValue("x_1", 0): X}), function(X))


def test_tensors_that_a_graph_creates_are_on_the_device_of_the_given_values() -> None:
    constant = torch.tensor([1.0, 2.0, 3.0, 4.0])
    graph = program(lambda x: (x * constant, torch.arange(4) + 1, x.to("cpu").sin()), X).graph
    fx = FxProgram(graph, torch.device("meta"))
    product, numbers, copied = (fx.value(one["node"]) for one in fx.outputs)
    x = {FxValue("x_1", 0): X.to("meta")}

    devices = [
        computed(fx, value, given).device.type for value, given in ((product, x), (numbers, {}), (copied, x))
    ]

    assert devices == ["meta"] * 3


@pytest.mark.parametrize(("factor", "right"), [(2.0, True), (2.1, False)])
def test_a_value_is_judged_by_the_graph_on_another_device(factor: float, right: bool) -> None:
    graph = program(lambda x: x.sin() * 2 + torch.arange(4), X).graph
    fx = FxProgram(graph, torch.device("cpu"))
    given = {FxValue("x_1", 0): X}
    plan = fx.plan([fx.value(fx.outputs[0]["node"])], given)

    assert right_by(fx, plan, given, X.sin() * factor + torch.arange(4)) == right


def test_a_given_value_gets_the_strides_that_the_graph_expects() -> None:
    fx = program(lambda x: x.view(12) * 2, X)
    output = fx.value(fx.outputs[0]["node"])

    assert torch.equal(computed(fx, output, {FxValue("x_1", 0): X.t().contiguous().t()}), X.view(12) * 2)


def test_a_given_value_gets_the_dimensions_of_size_1_that_the_graph_expects() -> None:
    fx = program(lambda x: x.sum(1, keepdim=True).squeeze(1) * 2, X)
    [total] = [name for name in fx.order if name.startswith("sum")]
    output = fx.value(fx.outputs[0]["node"])

    assert torch.equal(computed(fx, output, {fx.value(total): X.sum(1)}), X.sum(1) * 2)


@pytest.mark.parametrize("written", [False, True])
def test_a_view_of_a_result_in_another_order_is_a_copy_unless_it_is_written_to(written: bool) -> None:
    def function(x: torch.Tensor) -> torch.Tensor:
        flat = x.sin().view(-1)
        return flat.add_(1) if written else flat + 1

    fx = program(function, X)
    for node in fx.graph.nodes:  # of dynamic shapes, which do not say how a tensor lies in memory
        if isinstance(node.value, dict):
            node.value["stride"] = ["s0", "s1"][-len(node.value["shape"]) :]
    output = fx.value(fx.outputs[0]["node"])
    transposed = {FxValue("x_1", 0): X.t().contiguous().t()}

    if written:
        with pytest.raises(RuntimeError, match="view size is not compatible"):
            computed(fx, output, transposed)
    else:
        assert torch.equal(computed(fx, output, transposed), X.sin().view(-1) + 1)


def test_only_what_a_value_needs_is_executed() -> None:
    fx = program(lambda x: (x.sin().cos(), x.exp()), X)
    plan = fx.plan([fx.value("cos")], {fx.value("sin"): X})

    assert plan.nodes == ("cos",)


def test_a_value_that_needs_an_input_which_was_not_kept_has_no_reference() -> None:
    fx = program(lambda x, y: x + y, X, X)

    with pytest.raises(NoReference, match="y_1"):
        fx.plan([fx.value("add")], {FxValue("x_1", 0): X})


def written_to(x: torch.Tensor) -> torch.Tensor:
    y = x + 1
    before = y * 1
    y[0].mul_(3)
    return before + y


def test_a_read_before_an_operator_in_place_sees_other_values_than_a_read_after_it() -> None:
    fx = program(written_to, X)
    given = {FxValue("x_1", 0): X}

    assert torch.equal(computed(fx, fx.value("mul"), given), X + 1)
    assert torch.equal(computed(fx, fx.value("add_1"), given), written_to(X))
    assert fx.writers == {"add": ["mul_"]}


def test_a_write_that_the_given_content_has_already_is_not_repeated() -> None:
    fx = program(written_to, X)
    after = X + 1
    after[0] *= 3

    plan = fx.plan([FxValue("add", 1), FxValue("select", 1)], {FxValue("add", 1): after})

    assert "mul_" not in plan.nodes
    assert torch.equal(fx.run(plan, {FxValue("add", 1): after})[FxValue("add", 1)], after)


def test_a_content_from_before_a_write_is_written_to() -> None:
    fx = program(written_to, X)
    expected = X + 1
    expected[0] *= 3

    assert torch.equal(computed(fx, FxValue("add", 1), {FxValue("add", 0): X + 1}), expected)


def test_a_content_from_after_a_write_does_not_stand_for_what_was_there_before() -> None:
    fx = program(written_to, X)

    with pytest.raises(NoReference, match="overwritten"):
        fx.plan([fx.value("mul")], {FxValue("add", 1): X})


def test_what_is_given_is_not_changed() -> None:
    fx = program(written_to, X)
    content = X.clone()
    computed(fx, FxValue("add", 1), {FxValue("add", 0): content})

    assert torch.equal(content, X)


def test_random_numbers_and_uninitialised_memory_are_known_as_such() -> None:
    fx = program(lambda x: (torch.rand_like(x) + x, torch.empty_like(x) * 0), X)
    given = {FxValue("x_1", 0): X}

    assert fx.plan([fx.value("add")], given).draws
    assert fx.plan([fx.value("mul")], given).uninitialised


@pytest.mark.parametrize("known", [False, True])
def test_a_node_of_a_checkpoint_draws_from_the_generator_that_is_an_input(known: bool) -> None:
    called = [{"other": "aten.bernoulli.p"}, {"node": "x"}, 0.5]
    keywords = {"mapping": [["rng_state", {"node": "state"}]]}
    target = "torch.ops.higher_order.graphsafe_run_with_rng_state"
    nodes = [
        FxNode("x", "placeholder", "x"),
        FxNode("state", "placeholder", "state"),
        FxNode("drawn", "call_function", target, args=called, kwargs=keywords),
    ]
    fx = FxProgram(FxGraph(nodes, []), torch.device("cuda"))
    state = {"state": GeneratorState(7, 8)} if known else {}
    given = {FxValue(name, 0): one for name, one in ({"x": X} | state).items()}

    assert fx.nodes["drawn"].target == "aten::bernoulli.p" and fx.nodes["drawn"].kwargs is None
    assert fx.plan([FxValue("drawn", 0)], given).draws != known
    assert fx.generator(fx.nodes["drawn"], state) == state.get("state")


def test_a_custom_operator_that_this_process_lacks_has_no_reference() -> None:
    fx = program(lambda x: x.sin(), X)
    nodes = [
        msgspec.structs.replace(one, target="mine::sin.default") if one.name == "sin" else one
        for one in fx.graph.nodes
    ]
    unknown = FxProgram(FxGraph(nodes))

    with pytest.raises(NoReference, match="mine::sin"):
        unknown.plan([unknown.value("sin")], {FxValue("x_1", 0): X})


@pytest.mark.parametrize(
    "target",
    ["load_library::__call__.__call__", "_operator.call", "_operator.attrgetter", "operator.methodcaller",
     "torch.load", "os.system", "builtins.exec", "aten::from_file"],
)  # fmt: skip
def test_a_graph_of_a_stranger_reaches_operators_only(target: str) -> None:
    with pytest.raises(NoReference):
        resolved(FxNode("n", "call_function", target))


@pytest.mark.parametrize("shape", [(0,), (0, 3), (2, 0)])
def test_a_tensor_without_elements_depends_on_no_unwritten_memory(shape: tuple[int, ...]) -> None:
    def function(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return x.new_empty(shape), torch.cat([x.flatten(), torch.empty(shape).flatten()])

    module = make_fx(function, tracing_mode="fake")(X)
    fx = FxProgram(msgspec.json.decode(msgspec.json.encode(graph_json(module)), type=FxGraph))
    plan = fx.plan([fx.value(one["node"]) for one in fx.outputs], {FxValue("x_1", 0): X})

    assert not plan.uninitialised


def test_a_tensor_with_elements_that_nobody_wrote_depends_on_unwritten_memory() -> None:
    fx = program(lambda x: x.new_empty(4) + 1, X)

    assert fx.plan([fx.value("add")], {FxValue("x_1", 0): X}).uninitialised


@torch.library.custom_op("judge::add_into", mutates_args=("total",))
def add_into(total: torch.Tensor, x: torch.Tensor) -> None:
    """An operator of the program: it adds in place."""
    total.add_(x)


def added(total: torch.Tensor, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    copy = total.clone()
    add_into(copy, x)
    return copy * 2, x * 3


@pytest.mark.parametrize("recorded", [True, False], ids=["recorded", "the run does not say what it writes"])
def test_what_an_unknown_operator_of_the_program_writes_has_no_reference(recorded: bool) -> None:
    fx = program(added, X, X)
    nodes = [
        msgspec.structs.replace(
            node,
            target=node.target.replace("judge::", "elsewhere::"),
            written=node.written if recorded else None,
        )
        for node in fx.graph.nodes
    ]
    unknown = FxProgram(msgspec.structs.replace(fx.graph, nodes=nodes))
    doubled, tripled = (unknown.value(one["node"]) for one in unknown.outputs)
    given = {FxValue(name, 0): X for name in unknown.inputs}
    read_before = {FxValue(name, 0): X for name in [unknown.root("clone")]}

    with pytest.raises(NoReference, match="elsewhere::add_into"):
        unknown.plan([doubled], given | read_before)
    assert [node.written for node in fx.graph.nodes if "add_into" in node.target] == [["clone"]]
    if recorded:
        assert torch.equal(computed(unknown, tripled, given), X * 3)
    else:
        with pytest.raises(NoReference, match="elsewhere::add_into"):
            unknown.plan([tripled], given)


def test_a_view_that_a_buffer_holds_is_written_to_through_views_of_it() -> None:
    def function(x: torch.Tensor) -> torch.Tensor:
        sums = x.t() + 1
        back = sums.t()
        back.as_strided((3,), (5,), 0).fill_(0.5)
        return back.sin()

    fx = program(function, X)
    written = next(name for name in fx.nodes if name.startswith("fill"))
    back = fx.tensor(next(name for name in fx.nodes if fx.is_view(name) and fx.root(name).startswith("add")))
    view = next(n.args[0]["node"] for n in fx.graph.nodes if n.target.startswith("aten::as_strided"))
    given = {FxValue(view, 0): X + 1}

    after = computed(fx, FxValue(view, fx.after(written, fx.root(view)).writes), given)

    expected = (X + 1).clone()
    expected.as_strided((3,), (5,), 0).fill_(0.5)
    assert torch.equal(after, expected) and fx.root(back) == fx.root(view)


def test_a_view_that_is_written_to_through_another_one_has_no_reference() -> None:
    def function(x: torch.Tensor) -> torch.Tensor:
        sums = x + 1
        back, rows = sums.t(), sums[1:]
        rows.mul_(2)
        return back.sin()

    fx = program(function, X)
    back = next(name for name in fx.nodes if name.startswith("t"))

    with pytest.raises(NoReference, match="written to through another view"):
        fx.plan([FxValue(back, 1)], {FxValue(back, 0): (X + 1).t()})


def test_memory_before_an_input_is_not_reached_by_as_strided() -> None:
    fx = program(lambda x: x.as_strided((3,), (2,), 1).sin(), X.flatten())
    given = {FxValue("x_1", 0): X.flatten()}

    assert fx.plan([fx.value("sin")], given).nodes == ("as_strided", "sin")
    value = fx.nodes["x_1"].value
    for key, other in (("offset", 8), ("stride", [2]), ("stride", ["s0"]), ("stride", [0])):
        before = value.get(key)
        value[key] = other
        with pytest.raises(NoReference, match="in the storage of x_1"):
            fx.plan([fx.value("sin")], given)
        value[key] = before


def test_what_a_foreach_operator_in_place_leaves_is_read_as_an_element_of_its_list() -> None:
    # as Inductor makes it of _foreach_add, whose results the graph takes from a list
    nodes = [FxNode(one, "placeholder", one) for one in ("a", "b")]
    listed = [{"node": "a"}, {"node": "b"}]
    nodes.append(FxNode("added", "call_function", "aten::_foreach_add_.Scalar", (listed, 1)))
    nodes.append(FxNode("second", "call_function", "_operator.getitem", ({"node": "added"}, 1)))
    nodes.append(FxNode("squared", "call_function", "aten::pow.Tensor_Scalar", ({"node": "second"}, 2)))
    fx = FxProgram(FxGraph((*nodes, FxNode("output", "output", "output", ([{"node": "squared"}],))), ()))

    assert fx.value("second") == FxValue("b", 1)
    before, after = ({FxValue(one, writes): X for one in "ab"} for writes in (0, 1))
    assert torch.equal(computed(fx, fx.value("squared"), before), (X + 1) ** 2)
    assert torch.equal(computed(fx, fx.value("squared"), after), X**2)
    assert torch.equal(fx.called(X.clone(), X.clone())[0], (X + 1) ** 2)
