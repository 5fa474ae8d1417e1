"""Which passes change a graph, or a result, before Inductor receives it, in runs that are built by hand."""

from __future__ import annotations

from pathlib import Path

import pytest
from test_compiler_divergence import RENAMED, A, B, a_run

from tracing.analyze.graphs.changing_passes import earlier_passes
from tracing.analyze.graphs.graph_pass_table import chain_of, graph_passes
from tracing.model import CompiledGraph

GRAPH = CompiledGraph(0, "0/0", "forward", "", "", "", "", "", "")


@pytest.mark.parametrize(
    ("texts", "passes"),
    [
        ([A, A, B, B, B, B, B, B], ()),  # AOTAutograd writes it in other operators
        ([A, A, RENAMED, A, A, A, B, B], ()),  # a post-grad pass
        ([A, B, B, A, A, A, A, A], ("a pre-grad pass without a name", "joint pass fold")),
    ],
)
def test_pre_grad_and_joint_passes_that_change_a_graph_are_named(
    texts: list[str], passes: tuple[str, ...], tmp_path: Path
) -> None:
    changing = earlier_passes(a_run(tmp_path, texts), GRAPH)

    assert changing is not None and tuple(one.name for one in changing) == passes


def test_freezing_is_named_where_it_changes_a_graph(tmp_path: Path) -> None:
    frozen = A.replace("%x = placeholder", "%p = get_attr _frozen_param0").replace("%x, 1", "%p, 1")

    run = a_run(tmp_path, [A] * 5 + [frozen] * 3)
    [one] = earlier_passes(run, GRAPH) or ()
    chain = chain_of(run, GRAPH)

    assert one.name == "freezing" and "%p = get_attr _frozen_param0" in one.after
    assert chain is not None
    listed = [(each.stage, each.name) for each in graph_passes(run, chain) if each.index == one.index]
    assert listed == [("freezing", "freezing")]


def test_a_run_without_graph_passes_does_not_know_them(tmp_path: Path) -> None:
    assert earlier_passes(a_run(tmp_path, []), GRAPH) is None


INSIDE = """%x = placeholder : f32[4]
%body = get_attr body
    %x = placeholder : f32[4]
    %sin = aten.sin.default(%x) : f32[4]
    output((%sin,))
%cond = cond(%p, %body, %body, (%x,))
output((%cond,))
"""


def test_a_pass_of_a_graph_inside_of_the_graph_changes_its_lines(tmp_path: Path) -> None:
    other = INSIDE.replace("aten.sin", "aten.cos")

    (one,) = earlier_passes(a_run(tmp_path, [INSIDE, other, *[other] * 6]), GRAPH) or ()

    assert (one.before, one.after) == (("%sin = aten.sin.default(%x)",), ("%sin = aten.cos.default(%x)",))


TRACED = """%x = placeholder : f32[4]
%y = placeholder : f32[4]
%p = _operator.mul(%x, 2) : f32[4]
%q = _operator.add(%y, 1) : f32[4]
output((%p, %q))
"""
JOINT = """%a = placeholder : f32[4]
%b = placeholder : f32[4]
%tangents_1 = placeholder : f32[4]
%mul = aten.mul.Tensor(%a, 2) : f32[4]
%add = aten.add.Tensor(%b, 1) : f32[4]
%mul_1 = aten.mul.Tensor(%tangents_1, 2) : f32[4]
output([%mul, %add, %mul_1, None])
"""
WRITES = JOINT.replace("output", "%copy_ = aten.copy_.default(%a, %b) : f32[4]\noutput")


@pytest.mark.parametrize(
    ("before", "after", "suspected"),
    [
        (JOINT, JOINT.replace("%a, 2", "%a, 3"), ["output 0"]),
        (JOINT, JOINT.replace("%a, 2", "%b, 2"), ["output 0"]),
        (JOINT, JOINT.replace("%tangents_1, 2", "%tangents_1, 3"), []),
        (JOINT, JOINT.replace("[%mul, %add", "[%add, %mul"), ["output 0", "output 1"]),
        (JOINT, WRITES, ["output 0", "output 1"]),
        (WRITES, WRITES.replace("(%b, 1)", "(%b, 3)"), ["output 1"]),
        (WRITES, WRITES.replace("(%a, %b)", "(%b, %a)"), ["output 0", "output 1"]),
        # results of the joint graph are not those of Dynamo's in their order
        (extra := JOINT.replace("[%mul", "[%b, %mul"), extra.replace("(%b, 1)", "(%b, 3)"), None),
        (other := JOINT.replace("1) : f32", "1) : f16"), other.replace("(%b, 1)", "(%b, 3)"), None),
    ],
)
def test_a_joint_pass_that_does_not_change_how_a_result_is_computed_is_cleared(
    before: str, after: str, suspected: list[str] | None, tmp_path: Path
) -> None:
    run = a_run(tmp_path, [TRACED, TRACED, before, after, after])

    for result in ("output 0", "output 1"):
        [one] = earlier_passes(run, GRAPH, result) or ()
        assert one.cleared == (suspected is not None and result not in suspected)
    [named] = earlier_passes(run, GRAPH) or ()
    assert not named.cleared and (named.before or named.after)


@pytest.mark.parametrize(
    ("after", "suspected"),
    [
        (JOINT.replace("%tangents_1, 2", "%tangents_1, 3"), True),
        (JOINT.replace("%b, 1", "%b, 3"), False),
    ],
)
def test_a_joint_pass_that_does_not_change_a_gradient_is_cleared(
    after: str, suspected: bool, tmp_path: Path
) -> None:
    run = a_run(tmp_path, [TRACED, TRACED, JOINT, after, after])

    [one] = earlier_passes(run, GRAPH, "gradient of input 0") or ()
    [afterwards] = earlier_passes(run, GRAPH, "input 0 afterwards") or ()
    assert one.cleared != suspected and not afterwards.cleared


HALF = """%x = placeholder : f16[4]
%p = torch.softmax(%x, 0) : f16[4]
output((%p,))
"""
SCATTERED = """%a = placeholder : f16[4]
%full = aten.full.default([4], 0, dtype=torch.float16) : f16[4]
%scatter = aten.scatter.value(%full, 0, 1) : f16[4]
%sub = aten.sub.Tensor(%scatter, %a) : f16[4]
output([%sub])
"""
NOOP = SCATTERED.replace("%sub = ", "%alias = aten.alias.default(%a) : f16[4]\n%sub = ")
WHERE = """%a = placeholder : f16[4]
%where = aten.where.self(%a, 1, 0) : f32[4]
%sub = aten.sub.Tensor(%where, %a) : f16[4]
output([%sub])
"""
WIDE = SCATTERED.replace("f16", "f32")
CONVERTED = WHERE.replace(
    "aten.sub.Tensor(%where, %a)", "prims.convert_element_type.default(%where, torch.float16)"
)
NARROWED = CONVERTED.replace("%where", "%a")


@pytest.mark.parametrize(
    ("steps", "cleared", "of_dtype"),
    [
        ([SCATTERED, NOOP, WHERE], [True, False], [False, True]),
        ([WIDE, SCATTERED, NOOP], [True, True], [False, False]),
        ([SCATTERED, SCATTERED.replace("0, 1)", "0, 2)"), SCATTERED], [False, False], [False, False]),
        ([NARROWED, CONVERTED, NARROWED], [False, False], [False, False]),
    ],
)
def test_the_step_that_gives_a_result_another_dtype_is_the_suspect(
    steps: list[str], cleared: list[bool], of_dtype: list[bool], tmp_path: Path
) -> None:
    texts = [HALF, HALF, *steps, A, A, A]

    passes = earlier_passes(a_run(tmp_path, texts), GRAPH, "output 0", "float32 [4], not float16 [4]") or ()

    assert [one.cleared for one in passes] == cleared
    assert [one.changes_dtype for one in passes] == of_dtype


@pytest.mark.parametrize("traced", ["f32[1, 1, 4]", "f32[s0, 1, 4]"])
def test_a_shape_that_aotautograd_traced_clears_all_later_passes(traced: str, tmp_path: Path) -> None:
    joint = TRACED.replace("%p = _operator.mul(%x, 2) : f32[4]", f"%p = aten.mul.Tensor(%x, 2) : {traced}")
    texts = [TRACED, TRACED, joint, joint.replace("%x, 2", "2, %x"), *[joint] * 4]

    passes = earlier_passes(
        a_run(tmp_path, texts), GRAPH, "output 0", "float32 [1, 1, 4], not float32 [1, 4]"
    )

    assert [one.cleared for one in passes or ()] == [True, True]
