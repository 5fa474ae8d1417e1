"""The stage at which two compilers diverge, in runs that are built by hand."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from handmade.records import compiled, kernel, new_run

from tracing import store
from tracing.analyze.graphs.compiler_divergence import CompilerDivergence, TwoCompilers, two_compilers
from tracing.model import GraphText, Kernel, Outcome

A = "%x = placeholder : f32[4]\n%add = aten.add.Tensor(%x, 1) : f32[4]\noutput((%add,))\n"
B = A.replace("aten.add.Tensor(%x, 1)", "aten.mul.Tensor(%x, 2)")
RENAMED = A.replace("%add", "%add_7")
PASSES = [("pre-grad", ""), ("pre-grad", "end"), ("joint", ""), ("joint", "fold"), ("joint", "end"),
          ("post-grad", ""), ("post-grad", "noop"), ("post-grad", "end")]  # fmt: skip
RIGHT = Outcome("passed", "the result agrees with eager")
WRONG = Outcome("differs", "output: compiled is off")


def a_run(
    folder: Path,
    texts: Sequence[str],
    outcome: Outcome = RIGHT,
    *,
    passes: Sequence[tuple[str, str]] = PASSES,
    kernels: Sequence[Kernel] = (),
) -> store.Run:
    writer = new_run(folder)
    for index, (text, (part, name)) in enumerate(zip(texts, passes, strict=False)):
        typed: Any = part
        writer.append(GraphText(index, "0/0", 0, typed, name, writer.blob(text)))
    writer.extend(list(kernels))
    writer.append(outcome)
    writer.close()
    return store.Run(writer.path)


def stages(answer: TwoCompilers) -> list[str]:
    return [one.stage for one in answer.divergences()]


def test_equal_graphs_under_other_names_do_not_diverge(tmp_path: Path) -> None:
    a, b = a_run(tmp_path, [A] * 8), a_run(tmp_path, [RENAMED] * 8)

    assert two_compilers(a, b).divergences() == []


@pytest.mark.parametrize(
    ("since", "stage"),
    [
        (0, "Dynamo"), (1, "pre-grad pass without a name"), (2, "AOTAutograd"), (3, "joint pass fold"),
        (5, "partitioner"), (6, "post-grad pass noop"),
    ],
)  # fmt: skip
def test_the_step_from_which_on_graphs_differ_is_named(since: int, stage: str, tmp_path: Path) -> None:
    a, b = a_run(tmp_path, [A] * 8), a_run(tmp_path, [A] * since + [B] * (8 - since))

    assert stages(two_compilers(a, b)) == [stage]


def test_graphs_that_differ_for_a_while_do_not_diverge(tmp_path: Path) -> None:
    a, b = a_run(tmp_path, [A] * 8), a_run(tmp_path, [A, A, B, B, A, A, A, A])

    (compared,) = two_compilers(a, b).compared

    assert (compared.divergence, compared.transient) == (None, "AOTAutograd")


def test_a_pass_that_only_one_compiler_has_is_named_with_its_owner(tmp_path: Path) -> None:
    passes = [*PASSES[:7], ("post-grad", "new"), PASSES[7]]
    a, b = a_run(tmp_path, [A] * 8), a_run(tmp_path, [A] * 7 + [B] * 2, passes=passes)

    (divergence,) = two_compilers(a, b).divergences()

    assert (divergence.stage, divergence.only) == ("post-grad pass new", "b")


def test_a_pass_that_raises_is_named_with_the_function_of_the_traceback(tmp_path: Path) -> None:
    trace = '  File "/torch/_inductor/fx_passes/post_grad.py", line 9, in post_grad_passes\n    x\n'
    trace += '  File "/torch/_inductor/fx_passes/post_grad.py", line 983, in no_cumsum\n    y\nTypeError\n'
    a = a_run(tmp_path, [A] * 6, Outcome("failed", "TypeError", trace, "TypeError"))
    b = a_run(tmp_path, [A] * 8)

    (divergence,) = two_compilers(a, b).divergences()

    assert divergence == CompilerDivergence(
        "stopped", "graph 0/0 forward", "post-grad pass noop, in no_cumsum (post_grad.py:983)", (A, A)
    )


def test_other_kernels_of_equal_graphs_are_a_matter_of_lowering(tmp_path: Path) -> None:
    a = a_run(tmp_path, [A] * 8, kernels=[kernel("one")])
    b = a_run(tmp_path, [A] * 8, kernels=[kernel("one"), kernel("two")])

    assert stages(two_compilers(a, b)) == ["lowering and fusion"]


def test_ir_that_differs_after_a_pass_of_triton_parts_there(tmp_path: Path) -> None:
    entry = "module {\n  tt.func public @k() {\n    tt.return\n  }\n}\n"
    other = entry.replace("tt.return", "gpu.barrier\n    tt.return")
    runs = []
    for left in (entry, other):
        writer = new_run(tmp_path)
        compiled(writer, "k", entry, ("ttir", "cse", left))
        writer.append(kernel("k"))
        writer.append(RIGHT)
        writer.close()
        runs.append(store.Run(writer.path))

    assert stages(two_compilers(*runs)) == ["ttir pass cse"]
