"""Every kernel has a referee: no right kernel is accused, and a planted fault is, with its elements."""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import msgspec
import pytest
import torch
import torch.nn.functional as F
import triton
import triton.language as tl
import typer
from judged_programs import PROGRAMS, reinplaced, values
from planted_kernels import Program, edit_code, edits, first_change, judgement, launches, recorded
from torch._inductor import config as inductor
from torch._inductor import ir
from torch._inductor.codegen.wrapper import PythonWrapperCodegen
from torch._inductor.graph import GraphLowering

from tracing import store
from tracing.analyze.judge.findings import LibraryOff, OutputOff, Overwritten, SharedResult
from tracing.analyze.judge.judgement import RunJudgement
from tracing.cli.narrow.judge import judge, judgement_of
from tracing.model import CompiledGraph, Selection, TracedGraph
from tracing.program.device import Device
from tracing.record.graphs import traced_backwards
from tracing.report.judge.judgement import judgement_text
from tracing.store.graph_file import read_graph, read_schedule

JUDGED = "every launch that was judged is right; whether eager checks the hand-written summed is not known:"
QUICK = ("mutate", "mutate views", "cat", "views", "adam")


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("runs")


def verdicts(said: RunJudgement) -> list[str]:
    return [one.verdict for one in said.launches]


@pytest.mark.parametrize("name", QUICK)
def test_every_launch_of_a_right_program_is_right(name: str, device: Device, runs: Path) -> None:
    said = judgement(recorded(PROGRAMS[name], runs, device))

    assert {*verdicts(said)} == {"right"}
    assert (said.findings, said.status) == ((), 0)


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("cat", "constant"),
        ("cat", "operator"),
        ("softer", "index"),
        ("softer", "mask"),
        ("softer", "operator"),
    ],
)
def test_a_planted_fault_is_accused_of_its_launch(name: str, kind: str, device: Device, runs: Path) -> None:
    softer = Program(
        lambda x, y: ((x * 1.7 + y).softmax(-1), x.t() @ y), lambda: (values(9, 40), values(9, 40, g=1))
    )
    program = PROGRAMS.get(name, softer)
    planted: list[str] = []

    def plant(kernel: str, source: str) -> str:
        faulty = dict(edits(source, random.Random(0))).get(kind)
        if faulty is None or planted:
            return source
        planted.append(kernel)
        return faulty

    right = recorded(program, runs, device)
    wrong = recorded(program, runs, device, plant)
    change = first_change(right, wrong)
    said = judgement(wrong)

    assert planted and change is not None
    assert said.accused is not None
    assert (said.accused.launch, said.accused.kernel, said.accused.others) == (change[0], planted[0], ())
    assert said.accused.wrong[0].count > 0
    assert said.status == 1


CALLS_WRONGLY = "calls another operator, passes wrong inputs, or overwrites the result"
UNLIKE_REPEATED = "aten::mm is off, but right if repeated"


def chained(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return ((x.sin() @ y).cos() @ y).exp()


def test_a_result_is_no_more_than_off_if_the_run_lacks_launches_of_its_call(
    device: Device, runs: Path
) -> None:
    def plant(name: str, source: str) -> str:
        return source.replace("libdevice.sin", "libdevice.cos").replace("tl_math.sin", "tl_math.cos")

    def half(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
        return (x.exp() @ w).sin()

    program = Program(half, lambda: [values(4, 4, g=0), values(4, 4, g=1)])
    run = recorded(program, runs, device, plant, Selection(kernels=("*exp*",)))
    said = judgement(run)

    assert verdicts(said) == ["right"]
    [finding] = said.findings
    assert isinstance(finding, OutputOff) and not finding.complete
    assert "✗ output 0 is off, and the run lacks launches of this call" in map(str, judgement_text(said, []))


def test_launches_after_the_one_that_is_off_have_wrong_inputs(device: Device, runs: Path) -> None:
    def plant(kernel: str, source: str) -> str:
        return source.replace("tl_math.cos", "tl_math.sin")

    run = recorded(Program(chained, lambda: (values(8, 8), values(8, 8, g=1))), runs, device, plant)
    said = judgement(run)

    assert verdicts(said) == ["right", "off", "inputs wrong"]
    assert said.accused is not None and said.accused.nodes == ("cos",)
    assert said.accused.lines[0].function == "chained" and "cos" in said.accused.lines[0].code
    worst = said.accused.wrong[0]
    held = next(one for one in launches(run) if one.index == 1)
    assert worst.name in [arg.name for arg in held.args] and len(worst.index) == 2


def test_a_result_that_a_later_launch_overwrites_is_found(device: Device, runs: Path) -> None:
    run = recorded(Program(reinplaced, lambda: (values(4, 6), values(4, 6, g=1))), runs, device)
    graph = next(iter(run.records(CompiledGraph)))
    if "copy__default" not in run.text(graph.post_grad_text):
        pytest.skip("this torch does not reinplace into an input that is overwritten: pytorch#198094")

    said = judgement(run)

    assert {*verdicts(said)} == {"right"}
    assert [type(one) for one in said.findings] == [Overwritten]
    assert isinstance(one := said.findings[0], Overwritten)
    assert (one.reader, one.node, one.by) == ("output 0", "slice_scatter", said.launches[-1].launch)
    assert one.cause == "Inductor's graph passes"


def test_a_launch_that_is_passed_another_buffer_is_found(
    device: Device, runs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    generate = PythonWrapperCodegen.generate_kernel_call

    def swapped(self: Any, kernel: str, arguments: Any, *others: Any, **options: Any) -> Any:
        first, second, *rest = arguments
        return generate(self, kernel, [second, first, *rest], *others, **options)

    monkeypatch.setattr(PythonWrapperCodegen, "generate_kernel_call", swapped)
    program = Program(lambda x, y: x / (1 + y.abs()), lambda: (values(8, 8), values(8, 8, g=1)))
    said = judgement(recorded(program, runs, device))

    findings = [one for one in said.findings if isinstance(one, Overwritten)]
    assert {(one.buffer, one.instead) for one in findings} == {("arg0_1", "arg1_1"), ("arg1_1", "arg0_1")}
    assert said.status == 1


@pytest.mark.parametrize("operators", ["writers", "none"])
def test_a_launch_that_is_passed_the_product_of_another_operator_is_found(
    operators: Literal["writers", "none"], device: Device, runs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def exchanged(code: str) -> str:
        code, count = re.subn(r"(triton_poi\w+\.run\()(\w+), (\w+), ", r"\1\3, \2, ", code)
        assert count == 1
        return code

    edit_code(exchanged, monkeypatch)
    given = values(64, 64), values(64, 64, g=1), values(64, 64, g=2)
    program = Program(lambda x, y, w: ((x @ w).sin() - (y @ w).cos() * 2) @ w, lambda: given, calls=2)

    with inductor.patch(force_disable_caches=True):
        said = judgement(recorded(program, runs, device, operators=operators))

    readers = {one.reader.partition(" ")[0] for one in said.findings if isinstance(one, Overwritten)}
    assert readers == {"launch" if operators == "writers" else "aten::mm"}
    if operators == "writers":
        pairs = {(one.buffer, one.instead) for one in said.findings if isinstance(one, Overwritten)}
        assert pairs == {("buf0", "buf1"), ("buf1", "buf0")} and len(said.findings) == 4


def layered(x: torch.Tensor, w: torch.Tensor) -> tuple[torch.Tensor, ...]:
    product = x.sin() @ w
    return (product.exp() @ w.T).abs(), x.cos() + 1


def spread(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    sine = x.sin()
    return (sine @ (sine.sum(0, keepdim=True).expand(8, 8) * w)).tanh()


def stacked(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return torch.bmm(torch.stack([x, y.sin()]), torch.stack([x, y]).mT) + 1


@pytest.fixture
def edited(device: Device, runs: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., str]:
    """The judgement on a function with an edit of its generated code."""
    compiled = GraphLowering._compile_to_module_lines

    def judged(
        pattern: str,
        replacement: str,
        operators: Literal["none", "writers"] = "none",
        function: Callable[..., object] = layered,
    ) -> str:
        def compile_edited(self: Any, code: Any) -> Any:
            text = re.sub(pattern, replacement, code.value, count=1)
            assert text != code.value
            return compiled(self, type(code)(text, code.line_map))

        monkeypatch.setattr(GraphLowering, "_compile_to_module_lines", compile_edited)
        program = Program(function, lambda: (values(8, 8), values(8, 8, g=1)))
        with torch._inductor.config.patch(force_disable_caches=True):
            run = recorded(program, runs, device, operators=operators)
        return "\n".join(map(str, judgement_text(judgement(run), [])))

    return judged


def copied(x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, ...]:
    a = x.sin()
    return a, a.clone(), x.clone(), a.T, y


def merged(graph: torch.fx.Graph) -> None:
    clone = next(one for one in graph.nodes if one.target is torch.ops.aten.clone.default)
    clone.replace_all_uses_with(clone.args[0])


@pytest.mark.parametrize(
    ("edit", "sentence"),
    [
        ((r"return \(buf0, buf\d", "return (buf0, buf0"), "output 1 shares memory with output 0"),
        (
            (r"del arg0_1\s+return \(buf0, buf1, buf2", "return (buf0, buf1, arg0_1"),
            "output 2 shares memory with input 0",
        ),
    ],
)
def test_results_that_share_memory_and_should_not_are_named(
    edit: tuple[str, str], sentence: str, edited: Callable[..., str]
) -> None:
    said = edited(*edit, function=copied)

    assert said.startswith(f"✗ {sentence}, and should not")
    assert "cause     Inductor's generated code" in said


def test_a_pass_that_makes_results_share_memory_is_the_cause(device: Device, runs: Path) -> None:
    with torch._inductor.config.patch(post_grad_custom_post_pass=merged, force_disable_caches=True):
        run = recorded(Program(copied, lambda: (values(8, 8), values(8, 8, g=1))), runs, device)
    said = judgement(run)

    assert [(one.result, one.other, one.cause) for one in said.findings if isinstance(one, SharedResult)] == [
        ("output 1", "output 0", "Inductor's graph passes")
    ]
    assert said.status == 1


def test_views_and_inputs_that_are_results_share_memory_rightly(device: Device, runs: Path) -> None:
    def views(x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, ...]:
        a = x.sin()
        y.add_(1)
        left, right = torch.cat([a, a.cos()]).split(8)
        return a, a.view(-1), left, right, left.T, x, x[0], y, a.reshape(2, -1), a.expand(2, 8, 8)

    program = Program(views, lambda: (values(8, 8), values(8, 8, g=1)))
    said = judgement(recorded(program, runs, device))

    assert (said.findings, said.status) == ((), 0)


def test_kernels_whose_functions_have_one_name_are_distinguished(device: Device, runs: Path) -> None:
    changes = {"triton.unique_kernel_names": False, "force_disable_caches": True}
    with torch._inductor.config.patch(changes):
        run = recorded(Program(layered, lambda: (values(8, 8), values(8, 8, g=1))), runs, device)

    assert len({one.kernel_name for one in run.launches()}) == 3
    assert {*verdicts(judgement(run))} == {"right"}


@pytest.mark.parametrize(
    ("edit", "sentence"),
    [
        ((r"mm\(buf0, arg1_1", "mm(arg1_1, arg1_1"), "aten::mm reads arg1_1, and should read buf0"),
        ((r"(?=extern_kernels.mm\(buf0)", "arg1_1.mul_(0.5); "), UNLIKE_REPEATED),
        ((r"mm\(buf0, arg1_1", "mm(arg1_1, buf0"), UNLIKE_REPEATED),
        (
            (r"return \((\w+), (\w+), \)", r"\2.mul_(2); return (\1, \2, )"),
            r"output 1 is not buf\d, or something overwrites it after it was computed",
        ),
        ((r"return \((\w+), (\w+), \)", r"return (\1, \1, )"), r"output 1 is buf\d, and should be buf\d"),
    ],
    ids=[
        "another input",
        "an overwritten input",
        "exchanged inputs",
        "an overwritten output",
        "another output",
    ],
)
def test_generated_code_that_hands_over_other_memory_is_blamed_not_an_operator(
    edit: tuple[str, str], sentence: str, edited: Callable[..., str]
) -> None:
    assert re.search(f"^✗ {sentence}$", edited(*edit), re.MULTILINE)


def multiplied(x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, ...]:
    return x.sin() @ y, y.cos(), y @ y


@pytest.mark.parametrize(
    ("edit", "sentence"),
    [
        ((r"mm\(buf0, arg\d_1", "mm(buf0, buf0"), r"aten::mm reads buf0, and should read arg\d_1"),
        ((r"mm\(buf0, (arg\d_1)", r"mm(\1, buf0"), UNLIKE_REPEATED),
        ((r"return \((\w+), (\w+), (\w+), \)", r"\1.mul_(2); return (\1, \2, \3, )"), UNLIKE_REPEATED),
        (
            (r"return \((\w+), (\w+), (\w+), \)", r"return (\2, \2, \3, )"),
            r"output 0 is buf\d, and should be buf\d",
        ),
    ],
    ids=["another input", "exchanged inputs", "overwritten", "another output"],
)
def test_an_operator_whose_result_no_launch_reads_is_judged(
    edit: tuple[str, str], sentence: str, edited: Callable[..., str]
) -> None:
    assert re.search(f"^✗ {sentence}$", edited(*edit, function=multiplied), re.MULTILINE)


@pytest.mark.parametrize(
    ("edit", "sentence"),
    [
        (
            (r"(?=triton_poi_fused_abs_\d.run)", "buf5.mul_(3); "),
            r"aten::mul_ overwrites buf5, which output 1 still needs",
        ),
        (
            (r"(?=return \(\w+, \w+, \))", "buf5.mul_(2); "),
            r"aten::mul_ overwrites buf5, which output 1 still needs",
        ),
    ],
    ids=["before a launch", "after all launches"],
)
def test_the_operator_that_overwrites_a_result_is_named(
    edit: tuple[str, str], sentence: str, edited: Callable[..., str]
) -> None:
    assert re.search(f"^✗ {sentence}$", edited(*edit, "writers"), re.MULTILINE)


def test_the_operator_that_overwrites_what_another_operator_wrote_is_named(
    edited: Callable[..., str],
) -> None:
    def product_twice(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        a = x.sin() @ y
        return (a.cos() @ y).exp() * a

    said = edited(r"(?=extern_kernels.mm\(buf2)", "buf1.mul_(2); ", "writers", function=product_twice)

    assert re.search(r"^✗ aten::mul_ overwrites buf1, which launch 2 \w+ still needs$", said, re.MULTILINE)


def test_an_operator_whose_result_no_node_stands_for_is_a_suspect_next_to_the_launch_that_reads_it(
    edited: Callable[..., str],
) -> None:
    def convolved(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.conv1d(x.sin(), y.unsqueeze(2), x[0]).relu()

    said = edited(r"= (?=extern_kernels.convolution\()", "= 2 * ", function=convolved)

    assert re.search(r"^✗ launch 1 \w+ is off\n    or        aten::convolution: no node", said, re.MULTILINE)


def test_the_launch_that_overwrites_what_an_operator_reads_is_named(edited: Callable[..., str]) -> None:
    early = r"buf2 = empty_strided_\w+\(\(8, 8\), \(8, 1\), torch.float32\)"

    said = edited(early, "buf2 = buf0", function=spread)

    assert re.search(r"^✗ launch 2 \w+ overwrites buf0, which aten::mm still needs$", said, re.MULTILINE)


@pytest.mark.parametrize("operators", ["writers", "none"])
def test_a_launch_that_overwrites_an_input_is_named_where_allocations_are_known(
    operators: Literal["none", "writers"], edited: Callable[..., str]
) -> None:
    early = r"buf0 = empty_strided_\w+\(\(8, 8\), \(8, 1\), torch.float32\)"

    said = edited(early, "buf0 = arg0_1", operators, function=lambda x, y: x.sin() + y)

    sentence = r"✗ launch 0 \w+ overwrites arg0_1, which the program still needs"
    assert bool(re.search(f"^{sentence}$", said, re.MULTILINE)) == (operators == "writers")


def test_of_launches_before_an_operator_the_one_that_is_right_is_not_accused(
    edited: Callable[..., str],
) -> None:
    said = edited(r"(tl.store\(out_ptr0 \+ \(x0\), tmp0)(, )", r"\1*2\2", function=stacked)

    assert re.findall(r"^✗ (.*)$", said, re.MULTILINE) == ["launch 0 triton_poi_fused_sin_stack_0 is off"]
    assert "1 off" in said


DRAWING = Program(
    lambda x: (
        torch.rand_like(x) * x,
        torch.randn_like(x),
        torch.randint(3, 90, (70,)),
        torch.randn(300, 90).sum(),
    ),
    lambda: (values(90, 80),),
    calls=2,
)


def test_what_a_kernel_draws_is_that_of_its_seed(device: Device, runs: Path) -> None:
    said = judgement(recorded(DRAWING, runs, device))

    assert {*verdicts(said)} == {"right"}
    assert (said.findings, said.status) == ((), 0)


@pytest.mark.parametrize("call", ["tl.rand(", "tl.randn(", "triton_helpers.randint64("])
def test_numbers_of_another_position_are_off(call: str, device: Device, runs: Path) -> None:
    def plant(kernel: str, source: str) -> str:
        return re.sub(rf"({re.escape(call)}tmp\d+, )", r"\g<1>4096 + ", source)

    said = judgement(recorded(DRAWING, runs, device, plant))

    assert {"right", "off"} <= {*verdicts(said)}
    assert said.status == 1


def test_numbers_of_another_generator_have_no_reference(device: Device, runs: Path) -> None:
    def plant(kernel: str, source: str) -> str:
        return source.replace("    tl.store(", "    # as by rand4x(\n    tl.store(")

    program = Program(lambda x: torch.rand_like(x) * x, lambda: (values(9, 9),))
    said = judgement(recorded(program, runs, device, plant))

    assert verdicts(said) == ["no reference"] and "random" in said.launches[0].why
    assert said.status == 2


def test_a_launch_with_a_result_without_a_reference_is_right_in_part(device: Device, runs: Path) -> None:
    def plant(kernel: str, source: str) -> str:
        return source.replace("    tl.store(", "    # as by rand4x(\n    tl.store(")

    program = Program(lambda x: (torch.rand_like(x) * x, x.sin()), lambda: (values(9, 9),))
    (launch,) = judgement(recorded(program, runs, device, plant)).launches

    assert launch.partly and len(launch.unjudged) == 1 and "random" in launch.why


@triton.jit
def twice(x, y, n, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + i, tl.load(x + i, i < n) * 2, i < n)


def with_an_own_kernel(x: torch.Tensor) -> torch.Tensor:
    z = x.sin()
    y = torch.empty_like(z)
    twice[(1,)](z, y, z.numel(), 128)
    return y.cos()


@triton.jit
def summed(x, y, n, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y, tl.load(y) + tl.sum(tl.load(x + i, i < n)))  # every program: no atomic addition


def with_a_race(x: torch.Tensor) -> torch.Tensor:
    z = x.sin()
    y = torch.zeros(1)
    summed[(4,)](z, y, z.numel(), 32)
    return y.cos()


def test_a_race_comes_before_what_was_judged(
    device: Device, runs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = recorded(Program(with_a_race, lambda: (values(100),)), runs, device)

    with pytest.raises(typer.Exit) as ended:
        judge(str(run.path), trust=True, runs=runs)

    lines = capsys.readouterr().out.splitlines()
    memory = [line for line in lines if line.startswith("memory: ")]
    assert ended.value.exit_code == 1  # nothing else checks this launch
    assert memory and all("summed: race: " in line for line in memory)
    assert lines[len(memory)].endswith("summed races")
    assert lines[len(memory) + 1] == JUDGED


def test_kernels_around_one_of_the_program_are_judged(device: Device, runs: Path) -> None:
    said = judgement(recorded(Program(with_an_own_kernel, lambda: (values(100),)), runs, device))

    assert [(one.kernel, one.verdict) for one in said.launches if one.kernel == "twice"] == [
        ("twice", "no reference")
    ]
    assert verdicts(said).count("right") == 2 and said.status == 0


def with_an_own_kernel_that_writes_to_zeros(x: torch.Tensor) -> torch.Tensor:
    z = x + 1
    y = torch.zeros_like(z)
    twice[(1,)](z, y, z.numel(), 128)
    return y * 3


@pytest.mark.parametrize("wrong", [False, True])
def test_a_kernel_that_reads_what_one_of_the_program_wrote_to_zeros_is_judged(
    wrong: bool, device: Device, runs: Path
) -> None:
    def plant(name: str, source: str) -> str:
        return source.replace("tl.full([1], 3.0, tl.float32)", "tl.full([1], 3.5, tl.float32)")

    program = Program(with_an_own_kernel_that_writes_to_zeros, lambda: (values(100),))
    said = judgement(recorded(program, runs, device, plant if wrong else None))

    assert verdicts(said) == ["right", "right", "no reference", "off" if wrong else "right"]


def that_reads_its_input_too(x: torch.Tensor) -> torch.Tensor:
    y = torch.empty_like(x)
    twice[(1,)](x, y, x.numel(), 128)
    return (x - y / 3).tanh()


def test_a_kernel_that_reads_what_one_of_the_program_read_is_judged(device: Device, runs: Path) -> None:
    said = judgement(recorded(Program(that_reads_its_input_too, lambda: (values(100),)), runs, device))

    assert [one.verdict for one in said.launches if one.kernel != "twice"] == ["right"]


def with_a_branch(x: torch.Tensor) -> torch.Tensor:
    y = torch.cond(x.sum() > 0, lambda x: x.sin() * 2, lambda x: x.cos() + 1, (x,))
    z = torch.empty_like(y)
    twice[(1,)](y, z, z.numel(), 128)
    return z.relu() + 1


def with_a_copied_input(x: torch.Tensor) -> torch.Tensor:
    y = torch.empty_like(x)
    twice[(1,)](x.t().cos(), y, x.numel(), 128)
    return y


@torch.library.custom_op("judged_kernels::normalize_", mutates_args=())
def normalized(x: torch.Tensor) -> torch.Tensor:
    """Writes its input, which it does not declare."""
    norm = x.norm()
    x.div_(norm)
    return norm.clone()


@normalized.register_fake
def _(x: torch.Tensor) -> torch.Tensor:
    return x.new_empty(())


def test_an_operator_is_off_or_one_of_the_program_that_reads_its_result(device: Device, runs: Path) -> None:
    def program(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
        product = x @ w
        return product * 2 + normalized(product)

    said = judgement(recorded(Program(program, lambda: (values(8, 8), values(8, 8, g=1))), runs, device))

    (off,) = said.findings
    assert isinstance(off, LibraryOff)
    assert (off.operator, off.readers) == ("aten::mm", ("judged_kernels::normalize_",))


@pytest.mark.parametrize("operators", ["none", "writers"])
def test_a_launch_may_reuse_memory_in_another_layout(
    operators: Literal["none", "writers"], device: Device, runs: Path
) -> None:
    def program(x: torch.Tensor, w: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return (x @ w).t() * 2, torch.rand_like(x).t() * w

    one = Program(program, lambda: [values(4, 4, g=g).requires_grad_() for g in range(2)], backward=True)
    said = judgement(recorded(one, runs, device, operators=operators))

    assert (said.status, said.findings) == (0, ())


def test_an_operator_is_off_or_one_before_it_whose_result_no_launch_reads(
    device: Device, runs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    generate, products = ir.ExternKernelOut.codegen, []

    def swapped(self: ir.ExternKernelOut, wrapper: Any) -> None:
        if not products:
            self.inputs = [*reversed(self.inputs)]
        products.append(self)
        generate(self, wrapper)

    monkeypatch.setattr(ir.ExternKernelOut, "codegen", swapped)
    matrices = tuple(values(8, 8, g=g) for g in range(3))
    program = Program(lambda x, w, v: (x @ w) @ v + 1, lambda: matrices)
    with inductor.patch(force_disable_caches=True):
        run = recorded(program, runs, device, operators="writers")
    said = judgement(run)

    (off,) = said.findings
    assert judgement_of(run, run).next[-1] == f"tracing show {run.path} --operators"
    assert isinstance(off, LibraryOff) and len(products) == 2
    assert (off.operator, off.wrong.node, off.others) == ("aten::mm", "mm_1", ("aten::mm (node mm)",))
    first, other, _, *causes = judgement_text(said, ())
    assert first == "✗ aten::mm is off, but right if repeated"
    assert other == "    or        aten::mm (node mm), whose result no launch reads"
    assert causes[:2] == [
        f"    cause     generated code: it {CALLS_WRONGLY}",
        "    or        aten::mm itself, if it is not deterministic",
    ]


def layers(x: torch.Tensor, w: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    """A product of a library is read with another shape than its own, and attention draws nothing."""
    y = F.linear(x, w).view(2, -1, 2, 8).transpose(1, 2)
    y = F.scaled_dot_product_attention(y, y, y, attn_mask=mask)
    return F.linear(y.transpose(1, 2).flatten(2), w).relu()


@pytest.mark.parametrize("dynamic", [False, True])
def test_operators_of_libraries_are_judged(dynamic: bool, device: Device, runs: Path) -> None:
    mask = values(5, 5) > 0
    program = Program(layers, lambda: (values(2, 5, 16), values(16, 16, g=1), mask), dynamic=dynamic)
    said = judgement(recorded(program, runs, device))

    assert not said.not_covered and {*verdicts(said)} == {"right"}


@pytest.mark.parametrize("dynamic", [False, True])
def test_a_kernel_whose_buffer_no_node_names_is_judged(dynamic: bool, device: Device, runs: Path) -> None:
    program = Program(with_a_copied_input, lambda: (values(10, 7),), dynamic=dynamic)

    assert verdicts(judgement(recorded(program, runs, device))) == ["right", "no reference"]


def test_kernels_around_a_branch_are_judged_and_its_own_are_not_called_hand_written(
    device: Device, runs: Path
) -> None:
    said = judgement(recorded(Program(with_a_branch, lambda: (values(100),)), runs, device))

    without = {one.kernel: one.why for one in said.launches if one.verdict == "no reference"}
    branch, own = without
    assert verdicts(said).count("right") == 2 and said.status == 0
    assert "a graph that cond executes" in without[branch] and branch.startswith("triton_poi_fused_")
    assert own == "twice" and said.hand_written == ["twice"]


def test_graphs_their_code_and_their_lines_are_recorded(device: Device, runs: Path) -> None:
    run = recorded(PROGRAMS["mutate"], runs, device)
    traced, compiled = next(iter(run.records(TracedGraph))), next(iter(run.records(CompiledGraph)))

    assert "add_" in run.text(traced.text) and traced.compile_id == compiled.compile_id
    assert "aten.copy_" in run.text(compiled.text)
    nodes = {node.name: node for node in read_graph(run, compiled.post_grad).nodes}
    assert nodes["add"].target == "aten::add.Tensor" and nodes["add"].value["shape"] == [8, 8]
    lines = read_graph(run, compiled.post_grad).lines
    assert any(line.function == "mutate" for trace in lines for line in trace)
    schedule = read_schedule(run, compiled)
    calls = [call.kernel for step in schedule.steps for call in step.calls]
    assert calls == [one.kernel_name for one in launches(run)]
    assert all(f"{kernel}.run(" in run.text(compiled.code) for kernel in calls)


def test_a_graph_from_inductors_cache_carries_what_is_known_of_it(device: Device, runs: Path) -> None:
    first, second = (recorded(PROGRAMS["int"], runs, device) for _ in range(2))

    def graphs(run: store.Run) -> list[CompiledGraph]:
        return list(run.records(CompiledGraph))

    assert graphs(first) == graphs(second) != []


def test_of_a_program_a_backward_that_autograd_did_not_execute_is_not_covered(
    device: Device, runs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = Program(torch.nn.functional.hardswish, lambda: (values(100).requires_grad_(),), backward=True)
    monkeypatch.setattr(traced_backwards, "is_compiled_backward", lambda node: False)
    of_case = recorded(program, runs, device)
    info = msgspec.structs.replace(of_case.info, kind="program")
    (of_case.path / "run.json").write_bytes(msgspec.json.encode(info))

    asked = judgement(of_case), judgement(store.Run(of_case.path))

    assert [one.status for one in asked] == [0, 0]
    assert asked[0].not_covered == ()
    (text,) = asked[1].not_covered
    assert (
        "graph 1 (backward)" in text
        and "decompositions" in text
        and "docs/bisect-case.md" in text
        and "tracing bisect" in text
    )
