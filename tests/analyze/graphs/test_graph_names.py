"""Graphs and kernels under other names."""

from __future__ import annotations

from tracing.analyze.graphs.graph_names import alike, kernel_body, same_graph

GRAPH = "%x = placeholder : f32[s77]\n%add = aten.add.Tensor(%x, 1) : f32[s77]\noutput((%add,))\n"


def test_names_of_nodes_and_symbols_make_no_difference() -> None:
    assert same_graph(GRAPH, GRAPH.replace("%add", "%add_3").replace("s77", "s0"))


def test_another_operator_or_operand_is_a_difference() -> None:
    assert not same_graph(GRAPH, GRAPH.replace("aten.add", "aten.sub"))
    assert not same_graph(GRAPH, GRAPH.replace("(%add,)", "(%x,)"))


def test_a_diff_calls_equal_nodes_alike() -> None:
    more = GRAPH.replace("%add =", "%one = aten.neg.default(%x) : f32[s77]\n%plus =").replace(
        "%add,", "%plus,"
    )

    a, b = alike(GRAPH, more)

    assert len(set(b.splitlines()) - set(a.splitlines())) == 1


def test_the_body_of_a_kernel_leaves_out_decorators_and_its_name() -> None:
    source = (
        "@triton_heuristics.pointwise(\n    hash='1'\n)\n@triton.jit\ndef triton_poi_0(x, n):\n    pass\n"
    )
    other = source.replace("'1'", "'2'").replace("triton_poi_0", "triton_poi_3")

    assert kernel_body(source) == kernel_body(other) == "def kernel(x, n):\n    pass\n"
