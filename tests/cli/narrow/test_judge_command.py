"""`tracing judge` and `tracing run --judge` name commands that lead on, none that fails or repeats them."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import pytest
import typer
from commands import tracing
from handmade.records import arg, launch, new_run
from handmade.runs import HOST, saved
from msgspec.structs import replace

from tracing.analyze.judge.findings import JudgedLaunch
from tracing.analyze.judge.judgement import RunJudgement
from tracing.cli.answers.judge_answer import JudgedRun
from tracing.cli.answers.run_answer import RunAnswer
from tracing.cli.narrow.judge import judge
from tracing.cli.processes.new_recording import recorded_before
from tracing.errors import Problem
from tracing.model import Compilation, KeptAnswer, KeptTensor, MemoryEvidence, Outcome, Selection
from tracing.model.launches import CopiedFunction
from tracing.report.bisect.bisect_case import no_pass_text
from tracing.report.hand_written import reference_text
from tracing.report.judge.judgement import judgement_text
from tracing.store import Run

ON_VIRTUAL_GPU = replace(HOST, device="virtual GPU")


def test_a_failed_run_is_not_recorded_once_more(tmp_path: Path) -> None:
    writer = new_run(tmp_path)
    writer.append(Outcome("failed", "kernel scale: pass canonicalize (ttir) failed"))
    writer.close()

    with pytest.raises(Problem, match="pass canonicalize") as raised:
        judge(str(writer.path), trust=True, runs=tmp_path)

    assert "tracing bisect" in raised.value.remedy and "tracing run" not in raised.value.remedy


@pytest.mark.parametrize(
    ("kind", "remedy"),
    [
        ("code", "tracing.recording(graph_passes=True, keep_inputs=True, runs="),
        ("program", "tracing run --keep-inputs --runs "),
    ],
)
def test_a_failed_run_of_a_program_is_to_be_recorded_with_its_inputs(
    kind: str, remedy: str, tmp_path: Path
) -> None:
    failed = [Outcome("failed", "ValueError: worse")]
    run = saved(tmp_path, [launch(0)], failed, kind=kind, program=("train.py",), ended=False)

    with pytest.raises(Problem) as raised:
        judge(str(run.path), trust=True, runs=tmp_path)

    assert remedy in raised.value.remedy


@pytest.mark.parametrize(
    ("selection", "ended", "kept", "used"),
    [
        (Selection(), True, True, True),
        (Selection(launches=(0, 1)), True, True, False),
        (Selection(), False, True, False),
        (Selection(), True, False, False),
    ],
)
def test_an_earlier_recording_of_everything_is_used_once_more(
    tmp_path: Path, selection: Selection, ended: bool, kept: bool, used: bool
) -> None:
    run = saved(tmp_path, [launch(0)])
    tensors = [KeptTensor(0, 0, "before", "0" * 64)] if kept else []
    anew = saved(run.path / "anew", [launch(0)], tensors, ended=ended, selection=selection)

    earlier = recorded_before(run)

    assert (earlier.path if earlier else None) == (anew.path if used else None)


@pytest.mark.parametrize("kept", [True, False])
def test_a_run_without_a_graph_on_the_virtual_gpu_is_not_recorded_anew(
    kept: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    content = [KeptTensor(0, 0, "before", "0" * 32)] if kept else []
    run = saved(tmp_path, [launch(0, arg("x", "in", "x"))], content, environment=ON_VIRTUAL_GPU)

    with pytest.raises(typer.Exit) as ended:
        judge(str(run.path), trust=True, runs=tmp_path)

    printed = capsys.readouterr()
    assert (ended.value.exit_code, printed.err) == (0, "")
    assert not (run.path / "anew").exists()


def test_a_run_without_a_launch_is_said_to_have_none(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    passed = [Outcome("passed", "exit status 0")]
    run = saved(tmp_path, [], passed, kind="program", program=("train.py",), environment=ON_VIRTUAL_GPU)

    with pytest.raises(typer.Exit) as ended:
        judge(str(run.path), trust=True, runs=tmp_path)

    printed = capsys.readouterr().out
    assert ended.value.exit_code == 2
    assert "no Triton kernel: torch.compile compiled nothing\nno launch could be judged" in printed


def test_a_judgement_is_kept_in_the_run_that_was_asked_about(tmp_path: Path) -> None:
    asked = saved(
        tmp_path / "asked", [launch(0, arg("x", "in", "x")), launch(1, arg("x", "in", "x"), name="k1")]
    )
    anew = saved(tmp_path / "anew", [])
    before = {path: path.read_bytes() for path in asked.path.glob("*json*")}
    launches = tuple(JudgedLaunch(n, f"k{n}", 0, verdict) for n, verdict in enumerate(("right", "off")))

    JudgedRun(RunJudgement(launches, (), ()), ("tracing repro r",)).keep(asked, anew)

    (kept,) = asked.records(KeptAnswer)
    assert (kept.name, kept.status, kept.launch, kept.kernel) == ("judge", 1, 1, "k1")
    assert kept.lines[0] == "✗ launch 1 k1 is off" and str(anew.path) in kept.lines[-1]
    assert [row[:3] for row in kept.tables[0].rows] == [("0", "k0", "right"), ("1", "k1", "off")]
    assert {path: path.read_bytes() for path in before} == before  # nothing is rewritten


PROGRAM = """
import torch

@torch.compile
def f(x):
    return torch.SCALE(x) * 2

print(f(torch.randn(8, 64, device="cuda")).sum().item())
"""


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """A program without a seed, and a run of it."""
    path = tmp_path_factory.mktemp("judged") / "scaled.py"
    path.write_text(PROGRAM.replace("SCALE", "sin"))
    done = tracing("run", "--target", "sm_90", str(path), runs=path.parent / "runs")
    assert done.returncode == 0, done.stderr
    return path, "scaled"


def test_a_program_that_was_edited_since_is_not_judged(program: tuple[Path, str]) -> None:
    path, name = program
    written = path.read_text()
    path.write_text(written.replace("sin", "cos"))

    done = tracing("judge", name, runs=path.parent / "runs")

    path.write_text(written)
    assert done.returncode == 2 and done.stdout == ""
    assert "scaled has its newest run in" in done.stderr
    assert "cannot be judged, as its program launches other kernels now: launch 0 triton_" in done.stderr
    assert "`tracing judge" in done.stderr


def test_a_program_that_is_gone_is_named_as_such(program: tuple[Path, str], tmp_path: Path) -> None:
    path, name = program
    path.rename(moved := tmp_path / "moved.py")

    done = tracing("judge", name, runs=path.parent / "runs")

    moved.rename(path)
    assert done.returncode == 2
    assert "recording it anew failed: there is no file" in done.stderr


def test_a_new_recording_that_ends_early_is_not_called_another_program(
    program: tuple[Path, str],
) -> None:
    path, name = program
    written = path.read_text()
    path.write_text("raise KeyboardInterrupt")

    done = tracing("judge", name, runs=path.parent / "runs")

    path.write_text(written)
    assert done.returncode == 2 and done.stdout == ""
    assert "cannot be judged, as its new recording was interrupted\n" in done.stderr
    assert "--keep-inputs" in done.stderr and "other kernels" not in done.stderr


@pytest.mark.soak
def test_a_judgement_of_other_contents_is_no_answer_for_the_run(program: tuple[Path, str]) -> None:
    path, name = program

    done = tracing("judge", name, runs=path.parent / "runs")
    as_json = json.loads(tracing("judge", name, "--json", runs=path.parent / "runs").stdout)

    assert done.returncode == as_json["status"] == 2
    assert "every launch that was judged is right" in done.stdout
    assert "this is said of the new recording only, in which launch 0 triton_" in done.stdout
    assert "--keep-inputs" in done.stdout
    assert "read another in_ptr0" in as_json["other_contents"]
    repro = tracing("repro", name, "--launch", "0", runs=path.parent / "runs")
    assert "a new recording has them: `tracing repro " in repro.stderr and "/anew/" in repro.stderr


BITS = """
import torch
from tracing import Workload

def build(device):
    x = torch.rand(64, 999, device=device)
    return Workload(lambda x: x.exp().sum(-1).view(torch.int32) & 0xFF, (x,))
"""


def test_a_case_whose_results_are_not_decided_is_judged(tmp_path: Path) -> None:
    (path := tmp_path / "bits.py").write_text(BITS)
    ran = tracing("run", "--target", "sm_90", "--no-passes", str(path), runs=tmp_path)
    assert ran.returncode == 2 and "not decided" in ran.stdout + ran.stderr

    done = tracing("judge", "bits", runs=tmp_path)

    assert "the comparison with eager does not decide" in done.stdout, done.stderr


STEPS = """
import torch, tracing

torch.manual_seed(0)
scale = torch.compile(torch.nn.Sequential(torch.nn.Softsign(), torch.nn.Tanh()))
for _ in range(9):
    scale(torch.randn(8, 64, device="cuda"))
    tracing.step()
"""


def test_the_steps_that_a_run_has_are_recorded_anew_and_no_others(tmp_path: Path) -> None:
    (path := tmp_path / "steps.py").write_text(STEPS)
    ran = tracing("run", "--target", "sm_90", "--every", "4", str(path), runs=tmp_path)
    assert "9 launches seen, 3 recorded; steps 0, 4 and 8 are on disk" in ran.stderr

    done = tracing("judge", "steps", runs=tmp_path)

    assert done.returncode == 0, done.stderr
    assert "3 of 3 launches judged: 3 right" in done.stdout
    call = tracing("line", "steps", "steps.py:7", runs=tmp_path)
    assert call.returncode == 2
    assert "it calls compiled code: `tracing show" in call.stderr
    assert "files whose lines became code: only those of libraries" in call.stderr


def test_a_race_is_an_answer_where_nothing_checks_the_kernel(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    what = "program (0, 0, 0) writes o[0], and program (1, 0, 0) reads it"
    records = [MemoryEvidence(0, "race", ("o",), what), Outcome("ended", "")]
    launches = [launch(0, arg("o", "in_out", "o"), name="sum")]
    facts = {"environment": ON_VIRTUAL_GPU, "kind": "program"}
    run = saved(tmp_path, launches, records, ended=False, **facts)

    with pytest.raises(typer.Exit) as ended:
        judge(str(run.path), trust=True, runs=tmp_path)

    printed = capsys.readouterr().out
    assert ended.value.exit_code == 1
    assert "race: program (0, 0, 0) writes o[0]" in printed
    assert "✗ launch 0 sum races" in printed.splitlines()
    assert printed.splitlines()[-1] == f"    next      tracing show {run.path} --launch 0"


@pytest.mark.parametrize("judged", [True, False])
def test_a_run_that_was_judged_does_not_suggest_to_judge_it(
    judged: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    writer = new_run(tmp_path)
    writer.append(outcome := Outcome("differs", "output: compiled is off"))
    writer.close()
    judgement = JudgedRun(RunJudgement((), (), (), outcome), ("tracing bisect case.py",)) if judged else None

    assert RunAnswer(Run(writer.path), outcome, judgement).print(show=False, as_json=True) == 1

    answer = json.loads(capsys.readouterr().out)
    assert any("tracing judge" in command for command in answer["next"]) is not judged


def test_a_case_that_differs_names_the_hand_written_kernels_that_only_compiled_launches(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    outcome = Outcome("differs", "output: compiled is off")
    own = launch(1, name="softmax")
    copied = (CopiedFunction("/tmp/c.py", 5, 2, "/model/ops.py", 12),)
    launches = [launch(0), replace(own, kernel=replace(own.kernel, copied=copied))]
    run = saved(tmp_path, launches, [Compilation(0, "softmax", own.kernel.hash, "cuda:90", {}, "")])

    RunAnswer(run, outcome).print(show=False, as_json=False)

    printed = capsys.readouterr().err
    assert "only compiled launches the hand-written softmax (ops.py:12): it may be to blame" in printed


def test_a_case_that_passed_names_the_kernels_that_nothing_checks(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    outcome = Outcome("passed", "the result agrees with eager")
    in_eager = Compilation(0, "softmax", "in eager", "cuda:90", {}, "", eager=True)
    run = saved(tmp_path, [launch(0, name="softmax")], [in_eager])
    own = JudgedLaunch(0, "softmax", -1, "no reference")

    RunAnswer(run, outcome).print(show=False, as_json=False)

    unchecked = "eager launches softmax, too: nothing checks what it computes"
    passed = f"passed: {outcome.detail}; but {unchecked}"
    assert capsys.readouterr().err.splitlines()[:2] == [passed, reference_text(1)]
    RunAnswer(run, outcome).print(show=False, as_json=True)
    assert json.loads(capsys.readouterr().out)["unchecked_kernels"] == ["softmax"]
    judged = [*judgement_text(RunJudgement((own,), (), ()), ())]
    assert judged[:2] == [
        "nothing checks the hand-written softmax; no launch could be judged",
        reference_text(1),
    ]
    unknown = [*judgement_text(RunJudgement((own,), (), (), in_eager=("softmax",), eager_known=False), ())]
    assert unknown[0].endswith("whether eager checks the hand-written softmax is not known:")
    assert "without --no-passes" in unknown[1]
    of_program = [*judgement_text(RunJudgement((own,), (), (), of_case=False), ())]
    assert "to check it: write a case, which is a file with build(device), and begin" in of_program[1]


def test_a_search_of_a_case_names_it_and_not_the_latest_run() -> None:
    text = " ".join(line.plain for line in no_pass_text("wrong.py", triton=True))

    assert "`tracing run wrong.py --judge`" in text and "latest" not in text
    quoted = " ".join(line.plain for line in no_pass_text("a dir/wrong.py", ["--runs", "other"], triton=True))
    assert "`tracing run 'a dir/wrong.py' --judge --runs other`" in quoted


FOLDING = """
import torch
import torch._inductor.config as inductor

def fold(graph):
    for node in graph.nodes:
        if node.target == torch.ops.aten.div.Tensor and node.args[1] == 8.0:
            node.target, node.args = torch.ops.aten.mul.Tensor, (node.args[0], 0.25)

inductor.post_grad_custom_post_pass = fold

@torch.compile
def scaled(x):
    return torch.tanh(x / 8.0).sum(-1)

scaled(torch.randn(8, 16))
"""


def test_the_graph_pass_of_a_program_that_changes_its_result_is_named(tmp_path: Path) -> None:
    (path := tmp_path / "folding.py").write_text(FOLDING)
    options, runs = ("--keep-inputs", "--seed", "0"), tmp_path / "runs"
    tracing("run", *options, path, runs=runs)
    first = tracing("judge", "latest", runs=runs).stdout

    tracing("run", "--judge", "--seed", "0", path, runs=runs)
    second = tracing("judge", "latest", runs=runs)
    finding = json.loads(tracing("judge", "latest", "--json", runs=runs).stdout)["findings"][0]

    assert "graph passes change output 0" in first and "the run did not record them" in first
    assert re.search(r"next +tracing run --judge .*folding\.py\n", first)
    assert second.returncode == 1
    assert (
        "pass      post_grad_custom_post_pass, fold (folding.py:5), changes how div is computed"
        in second.stdout
    )
    assert "before    %div = aten.div.Tensor(%arg0_1, 8.0)" in second.stdout
    assert "after     %div = aten.mul.Tensor(%arg0_1, 0.25)" in second.stdout
    assert "tracing run" not in second.stdout
    [command] = re.findall(r"next +tracing (passes .*)", second.stdout)
    shown = tracing(*shlex.split(command), runs=runs)
    assert shown.returncode == 0 and "fold (folding.py:5)" in shown.stdout
    assert [one["name"] for one in finding["passes"]] == ["post_grad_custom_post_pass"]


def test_the_graph_that_was_called_first_is_the_first_to_look_at(tmp_path: Path) -> None:
    (path := tmp_path / "twice.py").write_text(FOLDING + "scaled(torch.randn(2, 3, 4))\n")

    said = tracing("run", "--judge", "--seed", "0", path, runs=tmp_path / "runs").stderr

    assert re.findall(r"next +tracing passes .* --graph (\d)", said) == ["0", "1"]


OVERWRITING = """
import torch
import torch._inductor.config as inductor

def overwrite(graph):
    for node in graph.nodes:
        if node.target == torch.ops.aten.index_put.default:
            node.target = torch.ops.aten.index_put_.default

inductor.post_grad_custom_post_pass = overwrite

@torch.compile
def put(x, i, v):
    h = x.exp()
    return torch.index_put(h, (i,), v).sum(1) + h.sum(1)

put(torch.randn(20, 8), torch.tensor([3, 7]), torch.zeros(2, 8))
"""


@pytest.mark.soak
def test_a_pass_that_makes_another_node_overwrite_an_input_is_among_those_that_change_the_graph(
    tmp_path: Path,
) -> None:
    (path := tmp_path / "overwriting.py").write_text(OVERWRITING)
    tracing("run", "--graph-passes", "--keep-inputs", "--seed", "0", path, runs=tmp_path / "runs")

    said = tracing("judge", "latest", runs=tmp_path / "runs").stdout

    assert "graph passes change output 0" in said
    assert (
        "post_grad_custom_post_pass, overwrite (overwriting.py:5), changes the graph" in said
        and "index_put_" in said
    )
    assert "did not record" not in said and "tracing run" not in said


MOVING = """
import torch
import torch._inductor.config as inductor

def move(graph):
    for node in list(graph.nodes):
        if node.target == torch.ops.aten.copy_.default:
            next(iter(graph.nodes)).append(node.args[1])
            node.args[1].append(node)

inductor.post_grad_custom_post_pass = move

@torch.compile
def stepped(x, y):
    sums = x.view(4, 16).cumsum(1) @ y
    x.copy_(torch.ones_like(x) * 3)
    return sums

stepped(torch.randn(64), torch.randn(16, 16))
"""


def test_a_pass_that_moves_a_write_before_a_read_is_named(tmp_path: Path) -> None:
    (path := tmp_path / "moving.py").write_text(MOVING)
    tracing("run", "--graph-passes", "--keep-inputs", "--seed", "0", path, runs=tmp_path / "runs")

    said = tracing("judge", "latest", runs=tmp_path / "runs").stdout

    assert "pass      post_grad_custom_post_pass, move (moving.py:5), changes the graph" in said
    before, after = re.findall(r"before +%copy_ =|after +%copy_ =", said)
    assert said.index("%cumsum") < said.index(before) < said.index(after) < said.rindex("%cumsum")
    assert "did not record" not in said and "tracing run" not in said


RAISING = """
import torch

@torch.library.custom_op("judge_command::check", mutates_args=())
def check(x: torch.Tensor) -> torch.Tensor:
    if x.abs().max() > 3:
        raise ValueError("too large")
    return x * 2

@check.register_fake
def _(x):
    return torch.empty_like(x)

@torch.compile
def checked(x):
    return check(x.exp()) + 1

checked(torch.zeros(6, 10))
checked(torch.ones(6, 10) * 5)
"""


@pytest.mark.soak
def test_a_kernel_of_a_call_that_raised_is_not_hand_written(tmp_path: Path) -> None:
    (path := tmp_path / "raising.py").write_text(RAISING)
    tracing("run", "--keep-inputs", path, runs=tmp_path / "runs")

    said = tracing("judge", "latest", runs=tmp_path / "runs").stdout

    assert said.startswith("the program failed: ValueError: too large (raising.py:7)\n")
    assert "its call of graph 0 did not end" in said and "hand-written" not in said
    assert re.search(r"next +tracing bisect .*raising\.py", said)


UNDECLARED = """
import torch

def clipping(name):
    @torch.library.custom_op(f"judge_command::{name}", mutates_args=())
    def clip(x: torch.Tensor) -> torch.Tensor:
        total = x.sum()
        x.clamp_(max=0.5)
        return total

    clip.register_fake(lambda x: x.new_empty(()))
    return clip

clip, eager_clip = clipping("clip"), clipping("eager_clip")

@torch.compile
def step(x):
    h = x.exp()
    total = clip(h)
    return h * 2, total

step(torch.ones(8, 8))
eager_clip(torch.ones(8))
"""


def test_an_operator_of_a_programs_graph_that_writes_undeclared_is_named(tmp_path: Path) -> None:
    (path := tmp_path / "clips.py").write_text(UNDECLARED)
    recorded = tracing("run", "--keep-inputs", path, runs=tmp_path / "runs")

    done = tracing("judge", "latest", runs=tmp_path / "runs")

    for name, line in (("clip", 19), ("eager_clip", 23)):
        effect = f"judge_command::{name} writes x, and its schema does not say so (clips.py:{line})"
        assert f"tracing: {effect}\n" in recorded.stderr
    assert done.stdout.startswith("✗ judge_command::clip writes x") and done.returncode == 1
    assert "eager_clip" not in done.stdout and "every launch" not in done.stdout
