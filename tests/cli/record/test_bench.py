"""`tracing bench`: what is measured, rows that a failure or Ctrl-C leaves, and cases of the benchmark."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from commands import DATA
from documents.json_keys import require_documented
from typer.testing import CliRunner

from tracing.cli.app import app
from tracing.errors import Problem
from tracing.program.case import load_case

CASE = str(DATA / "broken.py") + ":times=1,names=ab"


def benched(*words: str, backends: str = "eager,aot_eager") -> tuple[int, str]:
    done = CliRunner().invoke(app, ["bench", *words, "--backends", backends, "--device", "cpu"])
    return done.exit_code, done.stdout


@pytest.fixture(scope="module")
def answer() -> dict[str, Any]:
    """Of a case with graph breaks, and of one that is interrupted."""
    interrupting = str(DATA / "interrupting.py")
    status, text = benched(CASE, interrupting, CASE, "--warmup", "0", "--runs", "3", "--json")
    printed = text[text.index("{\n") :]  # after what the case itself prints
    require_documented(printed, "## `tracing bench`")
    assert status == 2
    return json.loads(printed)


def test_ctrl_c_keeps_the_rows_that_are_finished(answer: dict[str, Any]) -> None:
    assert answer["interrupted"] and answer["status"] == 2
    assert [one["case"] for one in answer["cases"]] == ["broken+times=1,names=ab"]


def test_each_backend_has_latencies_compile_times_graphs_and_a_verdict(answer: dict[str, Any]) -> None:
    eager, compiled = answer["cases"][0]["backends"]

    assert len(eager["latencies_ms"]) == len(compiled["latencies_ms"]) == 3
    assert compiled["mean_ms"] == pytest.approx(statistics.fmean(compiled["latencies_ms"]))
    assert compiled["std_ms"] == pytest.approx(statistics.stdev(compiled["latencies_ms"]))
    assert eager["cold_s"] is None and compiled["warm_s"] > 0 and compiled["cold_s"] > 0
    assert (eager["verdict"], compiled["verdict"]) == ("reference", "pass")
    assert compiled["breaks"] == 4 and compiled["graphs"] == 5


def wrong(graph: torch.fx.GraphModule, inputs: Any) -> Any:
    return lambda *given: [one * 1.01 for one in graph(*given)]


def test_results_beyond_rounding_differ_and_the_other_cases_go_on(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    torch._dynamo.register_backend(wrong, name="wrong_by_a_hundredth")
    broken = tmp_path / "raises.py"
    broken.write_text("def build(device):\n    raise RuntimeError('no such weights')\n")

    status, text = benched(
        str(broken), "gated_mlp", "--runs", "1", "--warmup", "0", backends="eager,wrong_by_a_hundredth"
    )

    assert status == 2
    assert "not measured: RuntimeError: no such weights" in text
    assert "gated_mlp: wrong_by_a_hundredth: output differs" in text


def test_a_case_with_a_triton_kernel_of_its_own_needs_a_gpu() -> None:
    status, text = benched(str(DATA / "faults.py"), "--runs", "1", "--warmup", "0")

    assert status == 2
    assert "not measured: it launches a Triton kernel of its own, which a CPU does not execute" in text
    assert f"`tracing run {DATA / 'faults.py'}` checks it without one" in " ".join(text.split())


def test_bert_without_transformers_names_the_extra_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "transformers", None)

    with pytest.raises(Problem, match="needs the package transformers") as error:
        load_case("bert").build("cpu")
    assert error.value.remedy == "pip install transformers"


@pytest.mark.parametrize(("case", "millions"), [("bert", 177.9), ("resnet18", 11.7), ("ssm", 26.9)])
def test_a_case_has_the_size_of_its_model(case: str, millions: float) -> None:
    if case == "bert":
        pytest.importorskip("transformers", reason="`make test` installs transformers")
    with torch.device("meta"):
        model = load_case(case).build("meta").fn

    count = sum(one.numel() for one in model.parameters())  # type: ignore[attr-defined]
    assert round(count / 1e6, 1) == millions


@pytest.mark.parametrize("case", ["bert", "resnet18", "ssm"])
def test_a_small_variant_runs_with_gradients(case: str) -> None:
    if case == "bert":
        pytest.importorskip("transformers", reason="`make test` installs transformers")
    workload = load_case(f"{case}:small=true,backward=true").build("cpu")
    result = workload.fn(*workload.args, **workload.kwargs)
    tensor = result if isinstance(result, torch.Tensor) else result.last_hidden_state

    tensor.sum().backward()

    assert torch.isfinite(tensor).all()
    module: torch.nn.Module = workload.fn  # type: ignore[assignment]
    assert any(one.grad is not None and one.grad.abs().sum() > 0 for one in module.parameters())


def test_each_backend_begins_with_empty_caches_and_its_warm_compile_finds_them_filled() -> None:
    filled: dict[str, list[bool]] = {}

    def noting(name: str) -> Callable[..., Any]:
        def backend(graph: torch.fx.GraphModule, inputs: Any) -> Any:
            kept = Path(os.environ["TORCHINDUCTOR_CACHE_DIR"], str(len(graph.graph.nodes)))
            filled.setdefault(name, []).append(kept.exists())
            kept.parent.mkdir(parents=True, exist_ok=True)
            kept.touch()
            return graph.forward

        return backend

    for name in ("noting_a", "noting_b"):
        torch._dynamo.register_backend(noting(name), name=name)
    status, text = benched("silu", "--runs", "1", "--warmup", "0", backends="eager,noting_a,noting_b")

    assert status == 0, text
    # what loads the backend is compiled first; the last compile is that of the results
    assert filled == {"noting_a": [False, False, True, True], "noting_b": [False, False, True, True]}


def test_checks_of_the_mock_backend_make_no_run(tmp_path: Path) -> None:
    words = ("bench", "silu", "--runs", "1", "--warmup", "0", "--backends", "eager,mock")
    done = subprocess.run([sys.executable, "-m", "tracing", *words], cwd=tmp_path, capture_output=True)

    assert done.returncode == 0, done.stderr
    assert b"silu was measured in " in done.stderr
    assert [*tmp_path.iterdir()] == []
