"""What can be known at once is refused before torch is imported, and no run is left."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tracing.cli.options.record_options import MODES

SCRIPT = """
import sys
from tracing.cli import main
try:
    main()
finally:
    print("torch" in sys.modules)
"""
CASE = """from tracing import Workload
def build(device, size=3, *, small=False):
    return Workload(len, ([],))
"""


def refused(line: str, folder: Path) -> str:
    """The error of a command in a folder with a case `mine.py`, a program `train.py` and a run `silu-1`."""
    (folder / "mine.py").write_text(CASE)
    (folder / "train.py").write_text("print(1)\n")
    (folder / "runs").mkdir()
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, *line.split()],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (2, "False\n"), done.stderr
    assert [*(folder / "runs").iterdir()] == []
    return done.stderr


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("run silu --target sm_999", "there is no target 'sm_999'; known are sm_75"),
        ("run silu --mode fast", "torch.compile has no mode 'fast'; known are default"),
        ("run mine.py:siez=4", "has no option siez\n  its options, with their defaults: size=3, small=False"),
        ("repeat mine.py:size=big", "option size cannot be big"),
        ("run --launches 5 train.py", "'5' is not a range of launches"),
        ("run --runs train.py silu", "--runs: dir 'train.py' is a file"),
        ("report latest -o nosuch/a.html", "nosuch: there is no such folder"),
        ("check train.py", "train.py is not a case: it has no build(device)\n  record it as a program"),
        ("diff mine", "there is no case mine\n  nearest: mine.py"),
        ("diff zzzz", "there is no case zzzz\n  known are bert"),
        ("minify sliu", "there is no case sliu\n  nearest: silu"),
        ("run trian.py --lr 3", "there is no file trian.py\n  nearest: train.py"),
        ("run nosuch.py", "there is no file nosuch.py\n  give a case by name"),
        ("run slu.py", "there is no file slu.py\n  nearest: silu"),
        ("repeat --times 3 trian.py --lr=3", "there is no file trian.py\n  nearest: train.py"),
        ("guards --runs runs trian.py --seed x", "there is no file trian.py\n  nearest: train.py"),
        ("debug --pass cse trian.py --lr 3", "there is no file trian.py\n  nearest: train.py"),
        ("execute trian.py --lr 3", "there is no file trian.py\n  nearest: train.py"),
        ("guards latset --lr 3", "there is neither a case latset nor a run"),
        ("run trian", "there is no case trian\n  nearest: train.py"),
        ("run sliu --lr 3", "there is no case sliu\n  nearest: silu"),
        ("run -m trian --lr 3", "there is no module trian here or in this Python\n  nearest: train"),
        ("run mine.py --lr 3", "run has no option --lr"),
        ("run --lr 3 trian.py", "run has no option --lr"),
        ("clean silu-2", "silu-2 is no run, neither here nor below runs\n  list runs"),
        ("guards mine.py more", "mine.py is a case, and takes no further words: more"),
        (
            "debug mine.py --pass cse --ex x/3i $pc",
            "a gdb command of several words needs quotes: --ex 'x/3i $pc'",
        ),
        ("debug --ex info line 3 mine.py --pass cse", "neither a run nor a case: line 3\n  a gdb command"),
        ("debug mine.py more --pass cse", "mine.py is a case, and takes no further words: more"),
    ],
)
def test_what_can_be_known_at_once_is_refused_at_once(line: str, problem: str, tmp_path: Path) -> None:
    assert problem in refused(line, tmp_path)


@pytest.mark.parametrize("command", ["bisect", "check", "guards", "debug"])
def test_a_name_that_is_neither_a_case_nor_a_run_is_refused_with_near_names(
    command: str, tmp_path: Path
) -> None:
    said = refused(f"{command} gated_mpl", tmp_path)

    assert "there is neither a case gated_mpl nor a run of that name below runs\n  nearest: gated_mlp" in said


def test_the_known_modes_are_those_of_torch() -> None:
    from torch._inductor import list_mode_options

    assert {*list_mode_options()} <= {*MODES}
