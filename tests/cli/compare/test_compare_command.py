"""`tracing compare`: its output and its exit status."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import msgspec
import pytest
from commands import tracing
from handmade.records import META, arg, launch
from handmade.runs import HOST, saved
from msgspec.structs import replace

from tracing import store
from tracing.analyze.compare.verdict import ComparisonVerdict
from tracing.analyze.runs.results import ResultDiffers
from tracing.cli.answers import divergence_hints
from tracing.cli.answers.divergence_answer import print_divergence
from tracing.model import Digest, NotCovered, Outcome, ReadVariable, Result, TensorValue
from tracing.report.compare.comparison import equality_text


def run(folder: Path, *results: str, case: str = "case", ended: bool = True) -> store.Run:
    """One launch for each of the given results."""
    launches = [
        launch(index, arg("in_ptr0", "in", "x"), arg("out_ptr0", "out", "old", left), name=f"k{index}")
        for index, left in enumerate(results)
    ]
    return saved(folder, launches, case=case, ended=ended)


def result(one: store.Run, digit: str) -> None:
    """Adds the results of the case."""
    record = Result("output", TensorValue(META, Digest(digit * 32)))
    (one.path / "results-h-0-1.ndjson").write_bytes(msgspec.json.encode(record) + b"\n")


def compared(a: store.Run, b: store.Run, *options: str) -> tuple[int, str]:
    done = tracing("compare", str(a.path), str(b.path), *options, runs=a.path.parent)
    assert "Traceback" not in done.stderr
    return done.returncode, done.stdout + done.stderr


def test_runs_of_two_cases_are_compared_only_with_anyway(tmp_path: Path) -> None:
    a, b = run(tmp_path / "a", "y"), run(tmp_path / "b", "y", case="other")

    status, text = compared(a, b)
    assert status == 2 and "the runs are of different cases: case and other" in text
    assert "case differs" not in text  # once is enough

    status, text = compared(a, b, "--anyway")
    assert status == 0 and "equal: 1 launch" in text


def test_a_run_that_is_compared_with_itself_is_named(tmp_path: Path) -> None:
    a, b = run(tmp_path / "a", "y"), run(tmp_path / "b", "y")
    (tmp_path / "link").symlink_to(a.path)
    sentence = f"both are the same run, {a.path}: `tracing list` lists others"

    for other in (a.path, tmp_path / "link"):
        status, text = compared(a, store.Run(other))
        assert (status, text.splitlines()[0]) == (0, sentence)
    assert sentence not in compared(a, b)[1]


@pytest.mark.parametrize("device", ["virtual GPU", "NVIDIA H100"])
def test_runs_of_two_compilers_on_a_virtual_gpu_are_referred_to_tracing_passes(
    device: str, tmp_path: Path
) -> None:
    a, b = run(tmp_path / "a", "y"), run(tmp_path / "b", "y")
    for one, triton in ((a, "3.6.0"), (b, "3.8.0")):
        environment = replace(one.info.environment, device=device, triton=triton)
        info = replace(one.info, environment=environment)
        (one.path / "run.json").write_bytes(msgspec.json.encode(info))

    status, text = compared(store.Run(a.path), store.Run(b.path), "--anyway")

    assert status == 0
    assert (f"`tracing passes {a.path} {b.path}`" in text.replace("\n", "")) == (device == "virtual GPU")


@pytest.mark.parametrize(("other", "stage"), [("tt.store", "ttir"), ("tt.load", None)])
def test_kernels_whose_code_differs_between_targets_are_named(
    other: str, stage: str | None, tmp_path: Path
) -> None:
    runs = []
    for target, text in (("cuda:90", "tt.load"), ("cuda:80", other)):
        one = launch(0, arg("in_ptr0", "in", "x"), arg("out_ptr0", "out", "old", "y"))
        blobs = store.RunWriter(saved(tmp_path / "other", []).path)
        module = f'module attributes {{ttg.target = "{target}"}} {{\n  {text}\n}}\n'
        stages = {stage: blobs.blob(module) for stage in ("ttir", "ttgir")}
        kernel = replace(one.kernel, target=target, hash=target, stages=stages)
        environment = replace(HOST, target=target)
        saved_run = saved(tmp_path / target[-2:], [replace(one, kernel=kernel)], environment=environment)
        store.RunWriter(saved_run.path).blob(module)
        runs.append(saved_run)

    status, text = compared(runs[0], runs[1], "--anyway")
    answer = json.loads(compared(runs[0], runs[1], "--anyway", "--json")[1])

    assert status == 0 and "equal: 1 launch" in text
    assert ("code differs between the targets: triton_poi_fused_mul_0 from ttir on" in text) == (
        stage is not None
    )
    assert answer["target_code"] == [{"kernel": "triton_poi_fused_mul_0", "stage": stage, "lost": None}]


def test_no_more_divergences_are_shown_than_asked_for(tmp_path: Path) -> None:
    status, text = compared(run(tmp_path / "a", *"yyy"), run(tmp_path / "b", *"zzz"), "--limit", "2")

    assert status == 1
    assert text.count("✗") == 2
    assert "1 divergence more: `--limit 3` shows them" in text


def test_an_interrupted_run_that_is_equal_so_far_gives_no_answer(tmp_path: Path) -> None:
    status, text = compared(run(tmp_path / "a", *"yy"), run(tmp_path / "b", "y", ended=False))

    assert status == 2
    assert "equal as far as both were recorded: 1 launch" in text
    assert "was interrupted" in text


def test_a_run_that_lost_its_last_launches_is_compared_up_to_the_loss(tmp_path: Path) -> None:
    a, b = run(tmp_path / "a", *"yy"), run(tmp_path / "b", *"yy")
    (file,) = b.path.glob("launches-*")
    file.write_bytes(file.read_bytes()[:-12])

    status, text = compared(a, b)

    assert status == 2
    assert str(file) in text.replace("\n", "") and "✗" not in text


def test_a_launch_that_lost_its_digests_is_not_called_equal(tmp_path: Path) -> None:
    a, b = run(tmp_path / "a", *"yy"), run(tmp_path / "b", *"yy")
    (file,) = b.path.glob("digests-*")
    file.write_bytes(file.read_bytes()[:-12])

    status, text = compared(a, b)

    assert status == 2
    assert str(file) in text.replace("\n", "") and "2 launches" not in text


def test_a_run_that_lost_its_blobs_is_still_compared(tmp_path: Path) -> None:
    runs = []
    for left in "yz":
        one = launch(0, arg("in_ptr0", "in", "x"), arg("out_ptr0", "out", "old", left))
        kernel = replace(one.kernel, stages={"ttir": "gone"})
        runs.append(saved(tmp_path / left, [replace(one, kernel=kernel)]))

    status, text = compared(*runs)

    assert status == 1
    assert "no more is known:" in text and "1 launch compared" in text


@pytest.mark.parametrize("outputs", ["yy", "yz"])
def test_a_kernel_whose_code_was_lost_is_neither_equal_nor_to_blame(outputs: str, tmp_path: Path) -> None:
    runs = []
    for name, left in zip("ab", outputs, strict=True):
        one = launch(0, arg("in_ptr0", "in", "x"), arg("out_ptr0", "out", "old", left))
        kernel = replace(one.kernel, hash=name * 64, stages={"ttir": name * 32})
        runs.append(saved(tmp_path / name, [replace(one, kernel=kernel)]))
        (runs[-1].path / "blobs" / "kept.zst").write_bytes(b"of another kernel")

    status, text = compared(*runs)

    assert status == 2
    assert "not deterministic" not in text and "not compared: the code of triton_poi_fused_mul_0:" in text
    assert ("cannot be decided: the code of triton_poi_fused_mul_0" in text) == (outputs == "yz")


@pytest.mark.parametrize("folder", ["emptied", "deleted"])
def test_equal_runs_of_which_one_lost_its_blobs_are_not_called_equal(folder: str, tmp_path: Path) -> None:
    one = launch(0, arg("in_ptr0", "in", "x"), arg("out_ptr0", "out", "old", "y"))
    ir = store.RunWriter(saved(tmp_path / "other", []).path).blob("module {}")
    kernel = replace(one.kernel, stages={"ttir": ir})
    a, b = (saved(tmp_path / name, [replace(one, kernel=kernel)]) for name in "ab")
    for path in (a.path, b.path):
        store.RunWriter(path).blob("module {}")
    assert compared(a, b)[0] == 0

    shutil.rmtree(b.path / "blobs")
    if folder == "emptied":
        (b.path / "blobs").mkdir()
    status, text = compared(a, b)

    assert status == 2
    assert f"damaged: {b.name}/blobs: it has no files: the code of all kernels is lost" in text


def failed(folder: Path, results: str, detail: str) -> store.Run:
    one = run(folder, *results, ended=False)
    line = msgspec.json.encode(Outcome("failed", detail, message=detail)) + b"\n"
    (one.path / "outcomes-h-0-1.ndjson").write_bytes(line)
    return one


def test_a_run_that_failed_differs_from_one_that_passed_and_is_compared_up_to_the_failure(
    tmp_path: Path,
) -> None:
    status, text = compared(run(tmp_path / "a", *"yy"), failed(tmp_path / "b", "y", "no memory"))

    assert status == 1
    assert "✗ outcome differs: passed | failed: no memory" in text
    assert "failed: no memory; later launches are not compared" in text
    assert "first divergence" not in text


def test_runs_that_failed_alike_are_compared_up_to_the_failure_and_not_called_equal(tmp_path: Path) -> None:
    status, text = compared(*(failed(tmp_path / name, "y", "no memory") for name in "ab"))

    assert status == 2
    assert "the case failed alike in both runs: no memory" in text
    assert "equal as far as both were recorded: 1 launch" in text


def test_results_missing_from_an_interrupted_run_do_not_differ(tmp_path: Path) -> None:
    a, b = run(tmp_path / "a", "y"), run(tmp_path / "b", "y", ended=False)
    result(a, "1")

    status, text = compared(a, b)

    assert (status, "output differs" in text) == (2, False)


def test_equal_runs_are_reported_with_what_was_not_covered(tmp_path: Path) -> None:
    a, b = run(tmp_path / "a", "y"), run(tmp_path / "b", "y")
    uncovered = NotCovered("launches inside of CUDA graphs", "cudagraphs off")
    (b.path / "uncovered-h-0-1.ndjson").write_bytes(msgspec.json.encode(uncovered) + b"\n")

    status, text = compared(a, b)

    assert status == 0
    assert "not covered: launches inside of CUDA graphs; to cover it: cudagraphs off" in text


def test_a_gap_that_no_setting_covers_is_reported_as_such(tmp_path: Path) -> None:
    a, b = run(tmp_path / "a", "y"), run(tmp_path / "b", "y")
    (b.path / "uncovered-h-0-1.ndjson").write_bytes(msgspec.json.encode(NotCovered("some bits")) + b"\n")

    _, text = compared(a, b)

    assert "not covered: some bits; no setting covers it" in text


@pytest.mark.parametrize(
    "options", ["--with source", "--each-launch", "--times 3", "--perturb", "--seed 0", "--fpsan", "--swap"]
)
def test_an_option_of_another_command_is_refused(options: str, tmp_path: Path) -> None:
    done = tracing("compare", "a", "b", *options.split(), runs=tmp_path)

    assert (done.returncode, "compare has no option" in done.stderr) == (2, True)


def test_different_results_of_equal_launches_are_attributed_outside_of_the_kernels(
    tmp_path: Path,
) -> None:
    a, b = run(tmp_path / "a", "y"), run(tmp_path / "b", "y")
    result(a, "1")
    result(b, "2")

    status, text = compared(a, b)

    assert status == 1
    assert "output differs" in text
    assert "no launch differs, yet results do" in text
    assert '    decides   tracing compare "$(tracing run /case.py --operators digests ' in text


@pytest.mark.parametrize("words", [("train.py",), ("train.py", "--fast")], ids=str)
def test_equal_commands_for_two_programs_are_printed_with_what_to_do_before_each(
    words: tuple[str, ...],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(divergence_hints, "deciding", lambda *_: "tracing run train.py; tracing compare")
    runs = []
    for name, left, program in (("a", "y", ("train.py",)), ("b", "z", words)):
        one = run(tmp_path / name, left)
        info = replace(one.info, kind="program", program=program)
        (one.path / "run.json").write_bytes(msgspec.json.encode(info))
        runs.append(store.Run(one.path))
    a, b = runs

    print_divergence(next(iter(ComparisonVerdict.of(a, b, 64))), (a, b), ("a", "b"), first=True)

    said = "before each, restore what differed" in " ".join(capsys.readouterr().out.split())
    assert said == (words == ("train.py",))


def test_of_runs_without_launches_whose_results_differ_nothing_else_was_compared(tmp_path: Path) -> None:
    a, b = (saved(tmp_path / name, []) for name in "ab")
    differing = ResultDiffers("output", "f32[1] 1", "f32[1] 2")

    (line,) = equality_text(ComparisonVerdict.of(a, b, 64).comparison, 0, [differing])

    assert line.plain == "nothing else was compared: no launch and no result"


def test_runs_that_failed_alike_before_their_first_launch_are_not_called_equal(tmp_path: Path) -> None:
    status, text = compared(*(failed(tmp_path / name, "", "no memory") for name in "ab"))

    assert status == 2
    assert "nothing was compared: no launch and no result" in text
    assert "equal" not in text


def test_runs_of_code_in_a_recording_are_compared_and_the_call_that_decides_is_named(tmp_path: Path) -> None:
    of_code = {"kind": "code", "path": "/model/train.py"}
    one = [launch(0, arg("in_ptr0", "in", "x"), arg("out_ptr0", "out", "old", "new"))]
    other = [launch(0, arg("in_ptr0", "in", "y"), arg("out_ptr0", "out", "old", "new"))]
    a, b = (saved(tmp_path / name, launches, **of_code) for name, launches in (("a", one), ("b", other)))

    assert compared(a, saved(tmp_path / "c", one, **of_code)) == (0, "equal: 1 launch, every digest\n")
    status, text = compared(a, b)

    assert status == 1 and "first divergence: launch #0" in text
    assert 'decides   tracing.recording(operators="digests", runs=' in text and " in train.py; " in text


def test_environment_variables_that_both_programs_read_are_named_if_they_differ(tmp_path: Path) -> None:
    def of(name: str, scale: str | None, *more: ReadVariable) -> store.Run:
        read = [
            ReadVariable("SCALE", scale),
            ReadVariable("SAME", "1"),
            ReadVariable("KEY", None, True),
            *more,
        ]
        return saved(tmp_path / name, [launch(0)], read)

    a, b = of("a", None), of("b", "2", ReadVariable("OTHER", "3"))

    status, text = compared(a, b)
    assert status == 0 and "environment variable, which the program reads: SCALE is not set | 2" in text
    assert text.count("environment variable") == 1
    assert '"variables": {\n    "SCALE": [\n      "not set",' in compared(a, b, "--json")[1]
    assert "SCALE is '' | 2" in compared(of("empty", ""), b)[1]
