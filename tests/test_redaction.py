"""Secrets of a program that do not reach its run."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import msgspec
import pytest
from commands import ROOT
from handmade.records import INFO

from tracing import store
from tracing.errors import Problem
from tracing.model import NotCovered
from tracing.model.redaction import redacted_arguments, redacted_text, redacted_value
from tracing.program.case import load_case


@pytest.mark.parametrize(
    ("name", "value", "recorded"),
    [
        ("HF_TOKEN", "hf_abc", "REDACTED"),
        ("aws_secret_access", "12345", "REDACTED"),
        ("PASSWORD", "1", "REDACTED"),
        ("api_key", "sk-1", "REDACTED"),
        ("tokens", "128", "128"),
        ("HTTP_PROXY", "http://me:pw@proxy:80/a", "http://REDACTED@proxy:80/a"),
        ("HTTP_PROXY", "http://me:p@w@proxy:80/a@b?c=d@e", "http://REDACTED@proxy:80/a@b?c=d@e"),
        ("MODEL", "gpt2", "gpt2"),
    ],
)
def test_a_variable_is_secret_by_its_name_or_as_part_of_a_url(name: str, value: str, recorded: str) -> None:
    assert redacted_value(name, value) == recorded


def test_the_arguments_of_a_command_lose_the_values_of_secret_options() -> None:
    words = (
        "tracing",
        "run",
        "gpt.py:token=a b,size=3",
        "--api-key",
        "sk-1",
        "--seed",
        "3",
        "--passwd=x",
        "-v",
    )

    assert redacted_arguments(words) == (
        "tracing", "run", "gpt.py:token=REDACTED,size=3", "--api-key", "REDACTED", "--seed", "3",
        "--passwd=REDACTED", "-v",
    )  # fmt: skip


def test_an_option_of_a_case_that_is_no_secret_stays() -> None:
    assert redacted_text("gpt+kernel=fast,key_dim=64,mask=x") == "gpt+kernel=fast,key_dim=64,mask=x"


def test_a_run_holds_no_secret_in_its_name_or_description(tmp_path: Path) -> None:
    knobs = {"TORCH_TRACE": "s3://me:hidden@host/x"}
    info = msgspec.structs.replace(
        INFO,
        case="gpt+token=hidden",
        argv=("tracing", "run", "gpt:token=hidden"),
        environment=msgspec.structs.replace(INFO.environment, knobs=knobs),
    )

    path = store.create(tmp_path, info).path

    assert path.name.startswith("gpt+token=REDACTED-")
    assert b"hidden" not in (path / "run.json").read_bytes()


def test_a_case_is_not_run_with_what_stands_for_a_secret(tmp_path: Path) -> None:
    case = tmp_path / "case.py"
    case.write_text("def build(device, token=''): ...")

    with pytest.raises(Problem, match=r"token of .* was not recorded"):
        load_case(f"{case}:token=REDACTED")


def test_variables_are_recorded_by_name_and_not_by_prefix() -> None:
    code = "from tracing.environment import environment; print(environment('a', 'b').knobs)"
    variables = {"TRITON_PRIVATE": "mine", "TORCH_LOGS": "+inductor", "TORCH_HUB_LOGIN": "mine"}

    done = subprocess.run(
        [sys.executable, "-c", code], env=variables, cwd=ROOT, capture_output=True, text=True
    )

    assert done.stdout == "{'TORCH_LOGS': '+inductor'}\n", done.stderr


def test_only_the_user_who_recorded_a_run_may_read_it(tmp_path: Path) -> None:
    writer = store.create(tmp_path / "runs", INFO)
    writer.append(NotCovered("all"))
    writer.blob("text")
    pack = writer.pack()
    pack.add("packed")

    paths = [writer.path, *writer.path.rglob("*")]
    assert len(paths) >= 7
    for path in paths:
        assert path.stat().st_mode & 0o777 == (0o700 if path.is_dir() else 0o600), path
