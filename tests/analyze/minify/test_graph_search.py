from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest

from tracing.analyze.minify.graph_edit import GraphEdit, GraphNode, closed
from tracing.analyze.minify.graph_search import GraphSearch
from tracing.analyze.minify.minify_events import Minimal
from tracing.analyze.minify.trial import Trial, TrialInput, verdict

WRONG = Trial("differs", "output 0 is off", ("value",), ("output 0",))
RIGHT = Trial("right", "")


def chain(count: int) -> list[GraphNode]:
    """Nodes of which each reads the one before it."""
    return [GraphNode(f"n{i}", (f"n{i - 1}",) if i else ()) for i in range(count)]


def searched(
    nodes: Sequence[GraphNode], evaluate: Callable[[GraphEdit], Trial], most: int = 200, wanted: Trial = WRONG
) -> Minimal:
    whole = GraphEdit(0, tuple(node.name for node in nodes))
    *_, last = GraphSearch(evaluate, nodes, whole, wanted, most).events()
    assert isinstance(last, Minimal)
    return last


def failing_with(*needed: str) -> Callable[[GraphEdit], Trial]:
    return lambda edit: WRONG if set(needed) <= set(edit.kept) else RIGHT


@pytest.mark.parametrize(
    "needed", [("n131",), ("n0", "n199"), ("n3", "n77", "n78"), ("n7", "n90", "n140", "n198")]
)
def test_few_of_two_hundred_nodes_are_found_by_at_most_two_hundred_executions(needed: Sequence[str]) -> None:
    smallest = searched(chain(200), failing_with(*needed))

    assert smallest.edit.kept == needed
    assert smallest.executions <= 200
    assert smallest.finished


def test_no_equal_candidate_is_executed_twice() -> None:
    executed: list[GraphEdit] = []

    def evaluate(edit: GraphEdit) -> Trial:
        executed.append(edit)
        return failing_with("n3", "n17")(edit)

    searched(chain(20), evaluate)

    assert len(executed) == len(set(executed))


def test_the_search_ends_with_the_smallest_so_far_when_its_executions_are_spent() -> None:
    smallest = searched(chain(200), failing_with("n10", "n190"), most=12)

    assert smallest.executions == 12
    assert not smallest.finished
    assert {"n10", "n190"} <= set(smallest.edit.kept)


def test_a_crash_of_another_kind_is_not_the_same_failure() -> None:
    wanted = Trial("raises", "InductorError: no layout for buf12", error="InductorError")
    other = Trial("raises", "InductorError: unknown operator", error="InductorError")

    assert verdict(replace(wanted, text="InductorError: no layout for buf3"), wanted) == "fail"
    assert verdict(other, wanted) == "unresolved"
    assert verdict(Trial("dies", "SIGSEGV", error="SIGSEGV"), wanted) == "unresolved"
    assert verdict(Trial("no answer", "it fails in eager"), wanted) == "unresolved"
    assert verdict(RIGHT, wanted) == "pass"


def test_a_value_that_only_a_candidate_computes_as_infinite_makes_it_another_failure() -> None:
    wanted = replace(WRONG, nonfinite=("masked",))

    assert verdict(replace(WRONG, nonfinite=("masked",)), wanted) == "fail"
    assert verdict(replace(WRONG, nonfinite=("rsqrt",)), wanted) == "unresolved"


def test_a_node_that_no_failing_node_reads_is_another_failure() -> None:
    nodes = [GraphNode("a", ()), GraphNode("b", ("a",)), GraphNode("c", ("a",))]

    def evaluate(edit: GraphEdit) -> Trial:  # whatever is kept fails
        return replace(WRONG, failing=edit.kept[-1:])

    smallest = searched(nodes, evaluate, wanted=replace(WRONG, failing=("b",)))

    assert smallest.edit.kept in {("a",), ("b",)}


def test_an_unresolved_candidate_is_not_taken() -> None:
    def evaluate(edit: GraphEdit) -> Trial:
        crash = Trial("dies", "SIGSEGV", error="SIGSEGV")
        return failing_with("n5")(edit) if "n6" in edit.kept else crash

    assert searched(chain(10), evaluate).edit.kept == ("n5", "n6")


def test_part_of_a_value_is_left_out_with_the_value_and_an_autocast_region_ends() -> None:
    nodes = [
        GraphNode("enter", (), opaque=True),
        GraphNode("pool", ()),
        GraphNode("part", ("pool",), part_of="pool"),
        GraphNode("exit", ("enter",), nothing=True),
    ]

    assert closed(nodes, ["part"]) == ()
    assert closed(nodes, ["enter"]) == ("enter", "exit")
    assert closed(nodes, ["exit"]) == ("enter", "exit")
    assert closed(nodes, ["pool", "part"]) == ("pool", "part")


def test_inputs_get_smaller_and_simpler_as_long_as_the_graph_fails() -> None:
    def evaluate(edit: GraphEdit) -> Trial:
        size, grad = 12, True
        for one in edit.sizes:
            size = one.smaller if one.size == size else size
        grad = ("no grad", "x") not in edit.changes
        fails = size >= 3 and ("zeros", "x") not in edit.changes
        return replace(WRONG if fails else RIGHT, inputs=(TrialInput("x", "float32", (size,), (1,), grad),))

    wanted = replace(WRONG, inputs=(TrialInput("x", "float32", (12,), (1,), True),))
    smallest = searched(chain(1), evaluate, wanted=wanted)

    assert smallest.trial.inputs == (TrialInput("x", "float32", (3,), (1,), False),)
    assert ("ones", "x") in smallest.edit.changes
