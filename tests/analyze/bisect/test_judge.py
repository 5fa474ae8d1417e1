"""A command as a judge: the meaning of its exit status, and the expansion of its placeholders."""

from __future__ import annotations

import shlex
import time
from pathlib import Path

import pytest

from tracing.analyze.bisect.judge import CommandJudge
from tracing.errors import Problem

STAGES = ["ttir", "ttgir", "llir", "ptx", "cubin"]


def judge(*command: str) -> CommandJudge:
    return CommandJudge(command, STAGES, 20)


@pytest.mark.parametrize(
    ("status", "verdict"), [(0, "good"), (1, "bad"), (124, "skip"), (125, "skip"), (126, "bad"), (127, "bad")]
)
def test_the_exit_status_means_what_it_means_to_git_bisect_run(
    status: int, verdict: str, tmp_path: Path
) -> None:
    judgement = judge("sh", "-c", f"exit {status} # {{ptx}}")(tmp_path)

    assert (judgement.verdict, judgement.detail) == (verdict, f"exit status {status}")


@pytest.mark.parametrize("end", ["exit 128", "exit 255", "kill -9 $$"])
def test_a_status_of_128_or_more_ends_the_search(end: str, tmp_path: Path) -> None:
    with pytest.raises(Problem, match=r"the command ended the search with exit status (128|255|137)"):
        judge("sh", "-c", f"{end} # {{ptx}}")(tmp_path)


def test_a_command_that_takes_too_long_is_ended_with_all_that_it_started(tmp_path: Path) -> None:
    script = f"(sleep 1; touch {tmp_path}/late) & sleep 9 # {{ptx}}"

    judgement = CommandJudge(["sh", "-c", script], STAGES, 0.3)(tmp_path)
    time.sleep(1.2)

    assert (judgement.verdict, judgement.final) == ("skip", False)
    assert judgement.detail == "the command did not end within 0.3 s"
    assert not (tmp_path / "late").exists()


def test_a_command_that_reads_its_input_does_not_wait_for_it(tmp_path: Path) -> None:
    assert judge("sh", "-c", "cat # {ptx}")(tmp_path).verdict == "good"


@pytest.mark.parametrize(
    "how", ["./{}", "sh {}", "sh -c ./{}", "sh -c 'sh {} {{ptx}}'", "env X=1 sh --posix {}"]
)
def test_a_judge_has_a_new_identity_if_a_file_that_it_names_changes(
    how: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    command = [*shlex.split(how.format("check.sh")), "{ptx}"]
    keys = set()
    for content in ("exit 0", "exit 1"):
        Path("check.sh").write_text(content)
        keys.add(tuple(judge(*command).key))

    assert len(keys) == 2


def test_a_judge_has_a_new_identity_if_its_program_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    program, keys = tmp_path / "my-judge", set()
    for content in ("exit 0", "exit 1"):
        program.write_text(f"#!/bin/sh\n{content}\n")
        program.chmod(0o755)
        keys.add(tuple(judge("my-judge", "{ptx}").key))

    assert len(keys) == 2


def test_ir_between_passes_is_given_with_its_language(tmp_path: Path) -> None:
    (tmp_path / "kernel.mlir").touch()

    assert judge("check", "{ir}", "--language={stage}").words(tmp_path) == [
        "check", f"{tmp_path}/kernel.mlir", "--language=mlir",
    ]  # fmt: skip
    assert judge("check", "{ir}").stages == ["ptx"]
    assert judge("check", "{ttgir}").languages == ["ttgir"]
    assert judge("check", "{ptx}").languages == judge("check", "{ttir}", "{ttgir}").languages == []


def test_ir_cannot_be_combined_with_other_placeholders() -> None:
    with pytest.raises(Problem, match=r"\{ir\} stands for every artefact: next to it there is no \{ptx\}"):
        judge("check", "{ir}", "{ptx}")


def test_each_placeholder_becomes_the_path_of_its_artefact(tmp_path: Path) -> None:
    words = judge("cmp", "{ptx}", "-o={cubin}", "{dir}/x", "{print $1}").words(tmp_path)

    assert words == [
        "cmp",
        f"{tmp_path}/kernel.ptx",
        f"-o={tmp_path}/kernel.cubin",
        f"{tmp_path}/x",
        "{print $1}",
    ]


def test_a_judge_needs_the_artefacts_that_its_command_names() -> None:
    assert judge("cmp", "{ptx}", "{ttgir}").stages == ["ttgir", "ptx"]
    assert judge("ls", "{dir}").stages == STAGES


def test_the_last_line_that_a_command_prints_is_its_reason(tmp_path: Path) -> None:
    judgement = judge("sh", "-c", "echo first; echo row 3 differs >&2; exit 1 # {ptx}")(tmp_path)

    assert judgement.detail == "exit status 1: row 3 differs"


def test_a_command_that_names_no_artefact_is_refused_with_the_available_ones() -> None:
    with pytest.raises(Problem, match="names none of the kernel's artefacts") as refused:
        judge("python", "check.py")

    assert "{ttir}, {ttgir}, {llir}, {ptx}, {cubin}" in refused.value.remedy


def test_an_artefact_of_another_backend_is_refused() -> None:
    with pytest.raises(Problem, match="this kernel has no amdgcn"):
        judge("grep", "v_mfma", "{amdgcn}")


def test_a_command_that_does_not_exist_is_no_verdict(tmp_path: Path) -> None:
    with pytest.raises(Problem, match="cannot run no-such-program: No such file"):
        judge("no-such-program", "{ptx}")(tmp_path)
