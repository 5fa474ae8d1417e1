"""A run without a launch of a Triton kernel says why."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import msgspec
import pytest
from handmade.jobs import job
from handmade.records import compiled, kernel, launch, new_run
from handmade.runs import saved

from tracing import store
from tracing.analyze.runs.unchecked_kernels import unchecked_kernels
from tracing.analyze.runs.unlaunched import left_out, reasons_for_no_kernel, unlaunched
from tracing.analyze.runs.winners import unlaunched_configurations
from tracing.model import (
    Compilation,
    CompiledGraph,
    Failure,
    FrameCompile,
    GraphBreak,
    NotCovered,
    OperatorSignature,
    Outcome,
    Record,
    Selection,
    TracedGraph,
    Winner,
)
from tracing.model.launches import CopiedFunction
from tracing.report.run import run_text
from tracing.store.crash import crash_file
from tracing.store.graph_file import FxGraph, FxNode, Schedule, ScheduledBuffer, ScheduleStep, encoded

COMPILED = Compilation(0, "softmax", "ab", "cuda:90", {}, "")
FAILED = "backend='inductor' raised:\nRuntimeError: no formula\n\nSet TORCHDYNAMO_VERBOSE=1"
SETTING = (
    "no LSTM\n  Explanation: none.\n  Hint: Report it.\n  Hint: Set torch._dynamo.config.allow_rnn=True."
)
GRAPH = FrameCompile("0/0", "forward", "case.py:3", operators=2)


def test_a_run_with_a_launch_lacks_nothing(tmp_path: Path) -> None:
    run = saved(tmp_path, [launch(0)], [OperatorSignature(0, "aten::mm.out", "", (), ())])

    assert reasons_for_no_kernel(run) == []


@pytest.mark.parametrize(
    ("records", "expected"),
    [
        ([], ["torch.compile compiled none of its code: it is disabled there, or no tensor is computed"]),
        (
            [msgspec.structs.replace(GRAPH, backend="mock_backend"),
             OperatorSignature(0, "aten::uniform_", "", (), ())],
            ['the backend "mock_backend" executes its graphs in eager'],
        ),
        (
            [msgspec.structs.replace(GRAPH, backend="npu")] * 2,
            ['the backend "npu" does not pass its graphs to Inductor'],
        ),
        ([msgspec.structs.replace(GRAPH, backend="aot_mock_backend"), TracedGraph("0/0", "", "")], []),
        (
            [FrameCompile("0/0", "f", "case.py:3", breaks=(GraphBreak("print\nmore", "case.py:5"),) * 2)],
            ["a graph break at case.py:5: print"],
        ),
        (
            [FrameCompile("0/0", "f", "case.py:3", breaks=(GraphBreak(SETTING, "c.py:5"),), eager=SETTING)],
            ["a graph break at c.py:5: no LSTM; torch proposes: set torch._dynamo.config.allow_rnn=True"],
        ),
        (
            [FrameCompile("0/0", "f", "case.py:3", breaks=(GraphBreak(FAILED),), eager=FAILED)],
            ["f (case.py:3) stays in eager: backend='inductor' raised: RuntimeError: no formula"],
        ),
        ([FrameCompile("0/0", "f", "case.py:3", breaks=(GraphBreak("print"),))], ["a graph break: print"]),
        (
            [FrameCompile("0/0", "f", "case.py:3", breaks=(GraphBreak("print", "case.py:5"),),
                          eager="print\nmore", raised=True),
             OperatorSignature(0, "aten::ones", "", (), ())],
            ["the compile of f (case.py:3) failed at case.py:5: print"],
        ),
        (
            [GRAPH, Failure("launch", "huge", "out of resource"),
             OperatorSignature(0, "aten::ones", "", (), ())],
            ["kernel huge cannot be launched: out of resource"],
        ),
        (
            [GRAPH, NotCovered("launches of processes that the program forks", "one process")],
            ["not covered, and may have launched one: launches of processes that the program forks"],
        ),
        (
            [FrameCompile("0/0", "f", "case.py:3", breaks=(GraphBreak(FAILED),), eager=FAILED, raised=True)],
            ["the compile of f (case.py:3) failed: backend='inductor' raised: RuntimeError: no formula"],
        ),
        ([FrameCompile("0/0", "f", "case.py:3")], ["the graphs that torch.compile made compute nothing"]),
    ],
)  # fmt: skip
def test_the_reason_is_what_the_recording_saw(
    records: list[Record], expected: list[str], tmp_path: Path
) -> None:
    assert reasons_for_no_kernel(saved(tmp_path, [], records)) == expected


def test_kernels_in_cpp_are_named(tmp_path: Path) -> None:
    compiled = msgspec.structs.replace(kernel("cpp_fused_add_0"), kind="cpp")
    launched = msgspec.structs.replace(launch(0), kernel=compiled)

    assert "Inductor compiled C++, cpp_fused_add_0" in reasons_for_no_kernel(
        saved(tmp_path, [launched], [GRAPH])
    )


@pytest.mark.parametrize("records", [[], [Outcome("interrupted", "KeyboardInterrupt")]])
def test_of_a_case_that_did_not_end_nothing_is_said(records: list[Record], tmp_path: Path) -> None:
    assert reasons_for_no_kernel(saved(tmp_path, [], records, ended=False)) == []


def test_a_signal_that_ended_the_process_is_the_reason(tmp_path: Path) -> None:
    run = saved(tmp_path, [], [GRAPH], ended=False)
    crash_file(run.path, "vm-0-1").write_text('Current thread 0x1:\n  File "train.py", line 3 in step\n')

    reason = "SIGTERM ended the process; launches shortly before that are not written"
    assert reasons_for_no_kernel(run) == [reason]


def test_a_misspelt_kernel_is_answered_with_near_names(tmp_path: Path) -> None:
    left_out = msgspec.structs.replace(kernel("softmax"), id=7)
    run = saved(tmp_path, [], [COMPILED, GRAPH, left_out], selection=Selection(kernels=("sofmax",)))

    assert reasons_for_no_kernel(run) == [
        "`--kernel sofmax` matches none; the nearest compiled kernels are softmax"
    ]


def test_nothing_is_said_of_launches_that_were_left_out_by_number(tmp_path: Path) -> None:
    assert reasons_for_no_kernel(saved(tmp_path, [], [GRAPH], selection=Selection(launches=(5, 9)))) == []


def test_of_a_job_the_reasons_are_those_of_one_rank_or_of_all(tmp_path: Path) -> None:
    failure = Failure("launch", "huge", "out of resource")
    none = job(tmp_path / "none", [], [], records=[[failure], [failure]])
    one = job(tmp_path / "one", [], [launch(0)], records=[[failure], []])
    reason = "kernel huge cannot be launched: out of resource"

    assert reasons_for_no_kernel(none)[-1] == reason
    assert reasons_for_no_kernel(none).count(reason) == 1
    assert reasons_for_no_kernel(one) == reasons_for_no_kernel(one, rank=1) == []
    assert reasons_for_no_kernel(one, rank=0)[-1] == reason


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("library", "operators that are calls of a library or fall back to ATen: aten::mm"),
        ("none", "the graphs that Inductor compiled need no kernel"),
    ],
)
def test_of_operators_only_those_in_compiled_graphs_are_named(
    kind: str, expected: str, tmp_path: Path
) -> None:
    run = saved(tmp_path, [], [GRAPH, OperatorSignature(0, "aten::uniform_", "", (), ())])
    with closing(store.RunWriter(run.path, 0)) as writer:
        writer.append(_compiled_graph(writer, kind))

    assert reasons_for_no_kernel(run) == [expected]


def _compiled_graph(writer: store.RunWriter, kind: str) -> CompiledGraph:
    # a step of this kind calls aten::mm; its code prepares a view for it, and takes a result of it
    names = {"t": "aten::permute", "mm": "aten::mm", "first": "_operator.getitem"}
    nodes = writer.blob(encoded(FxGraph([FxNode(one, "call_function", names[one]) for one in names])))
    step = ScheduleStep(kind, ["buf0", "buf1"], [], ["t", "mm", "first"])
    buffers = {"buf0": ScheduledBuffer("mm", ["mm"]), "buf1": ScheduledBuffer("first", ["mm", "first"])}
    schedule = writer.blob(encoded(Schedule([], ["buf0"], [step], buffers)))
    return CompiledGraph(0, "0/0", "forward", "", nodes, "", nodes, "", schedule)


def test_of_a_program_that_compiled_nothing_no_operator_is_named(tmp_path: Path) -> None:
    library = OperatorSignature(0, "aten::uniform_", "", (), ())
    ended = saved(tmp_path / "a", [], [library], kind="program")
    failed = saved(tmp_path / "b", [], [library, Outcome("failed", "no cuda")], kind="program", ended=False)

    assert reasons_for_no_kernel(ended) == ["torch.compile compiled nothing"]
    assert reasons_for_no_kernel(failed) == ["the program failed before a kernel was launched"]


def test_a_program_that_only_compiles_a_kernel_is_said_to_launch_nothing(tmp_path: Path) -> None:
    made = compiled(new_run(tmp_path / "a"), "add", "module {}")
    run = saved(tmp_path / "b", [], [made], kind="program")

    assert reasons_for_no_kernel(run) == ["the program compiles add, and launches nothing"]


def test_a_kernel_that_eager_compiled_as_well_is_unchecked(tmp_path: Path) -> None:
    launches = [launch(0), launch(1, name="softmax")]
    records = [Compilation(n, "softmax", str(n), "cuda:90", {}, "", eager=n == 0) for n in range(2)]

    assert unchecked_kernels(saved(tmp_path / "a", launches, records)) == ["softmax"]
    assert unchecked_kernels(saved(tmp_path / "b", launches, records, kind="program")) == []
    assert unchecked_kernels(saved(tmp_path / "c", launches, records[1:])) == []


def test_a_run_without_eager_does_not_prove_that_eager_launches_other_kernels(tmp_path: Path) -> None:
    made = launch(0, name="softmax")
    by_hand = (CopiedFunction("/tmp/c.py", 5, 2, "/model/ops.py", 12),)
    launches = [msgspec.structs.replace(made, kernel=msgspec.structs.replace(made.kernel, copied=by_hand))]
    records = [Compilation(0, "softmax", "0", "cuda:90", {}, ""), Outcome("compiled", "")]

    assert unchecked_kernels(saved(tmp_path, launches, records, ended=False)) == ["softmax"]


@pytest.mark.parametrize(
    ("tuners", "reason"),
    [
        (
            [Winner("inductor", "softmax", "", (), {})],
            "for Inductor's autotuner, which chose another configuration",
        ),
        ([Winner("triton", "other", "", (), {})], "without a recorded launch"),
    ],
)
def test_the_reason_why_a_kernel_was_compiled_and_not_launched_is_printed(
    tuners: list[Record], reason: str, tmp_path: Path
) -> None:
    run = saved(tmp_path, [launch(0)], [COMPILED, *tuners])

    assert f"1 launch of 1 kernel; 1 more compiled: 1 {reason}" in map(str, run_text(run))


def test_compilations_that_no_launch_used_are_listed(tmp_path: Path) -> None:
    used = Compilation(1, "triton_poi_fused_mul_0", kernel().hash, "cuda:90", {}, "")

    assert unlaunched(saved(tmp_path, [launch(0)], [COMPILED, used])) == [COMPILED]


def test_configurations_that_no_launch_used_are_named(tmp_path: Path) -> None:
    configs = tuple({"BLOCK": size, "num_warps": 4} for size in (64, 128, 256))
    tuned = Winner("triton", "softmax", "0", (), configs[1], candidates=configs)
    single = Winner("triton", "scale", "1", (), configs[0], candidates=configs[:1])
    run = saved(tmp_path, [launch(0, name="softmax")], [tuned, single])

    said = ["2 other configurations of softmax: its autotuner chose BLOCK=128, num_warps=4"]
    assert unlaunched_configurations(run, ["softmax", "scale"]) == said
    assert unlaunched_configurations(run, ["scale"]) == []


def test_launches_that_options_left_out_are_named_by_the_options_and_the_kernels(tmp_path: Path) -> None:
    chosen = Selection(("scale*", "a b"), (0, 3), ("forward",), (1,))
    run = saved(tmp_path, [launch(0, name="scale")], [COMPILED], selection=chosen)

    assert left_out(run) == [
        "launches that `--kernel 'scale*' --kernel 'a b' --launches 0:3 --phase forward --rank 1` leaves "
        "out; compiled, and without a recorded launch: softmax"
    ]
    assert not left_out(saved(tmp_path / "all", [launch(0, name="scale")]))
    known = saved(tmp_path / "other", [launch(0, name="softmax")], [COMPILED], selection=chosen)
    assert "softmax" not in left_out(known)[0]  # another configuration of it was compiled
