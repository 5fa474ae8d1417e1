"""What can be known at once is refused before torch is imported, and no run is left."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from commands import ROOT

from tracing.cli.options.record_options import MODES

# forks a child for each line, which writes what it prints and its exit status into the line's folder
SCRIPT = """
import json, os, sys
import numpy, pydantic.types, tracing.cli.answers.run_answer  # once, for all lines
from tracing.cli import main

for line, folder in json.load(sys.stdin):
    if os.fork():
        os.wait()
        continue
    os.chdir(folder)
    for name, number in (("stdout", 1), ("stderr", 2)):
        os.dup2(os.open(name, os.O_WRONLY | os.O_CREAT), number)
    sys.argv[1:] = line.split()
    try:
        main()
    except SystemExit as end:
        print(end.code, "torch" in sys.modules)
    break
"""
CASE = """from tracing import Workload
def build(device, size=3, *, small=False):
    return Workload(len, ([],))
"""
NEITHER = "there is neither a case gated_mpl nor a run of that name below runs\n  nearest: gated_mlp"
PROBLEMS = {
    "run silu --target sm_999": "--target: 'sm_999' is not one of 'sm_75'",
    "run silu --target sm90": "'gfx1201'\n  nearest: sm_90",
    "run silu --until nans": "--until: 'nans' is not one of 'nan', 'inf', 'any'\n  nearest: nan",
    "line latest silu.py:3 --stage ptxx": "'amdgcn', 'sass'\n  nearest: ptx",
    "run silu --mode fast": "torch.compile has no mode 'fast'; known are default",
    "run mine.py:size=4,size=5": "the option size of",
    "run mine.py:siez=4": "has no option siez\n  nearest: size; its options, with their defaults: size=3",
    "repeat mine.py:size=big": "option size cannot be big",
    "reduce latest --kernel k": "reduce needs --pass",
    "run --launches 5 train.py": "'5' is not a range of launches",
    "run --runs train.py silu": "--runs: dir 'train.py' is a file",
    "report latest -o nosuch/a.html": "nosuch/a.html cannot be written: there is no folder nosuch\n  create",
    "lit latest --pass cse -o nosuch/a.mlir": "nosuch/a.mlir cannot be written: there is no folder nosuch",
    "passes latest --pass cse --before -o runs": "runs is a folder\n  name a file, as runs/NAME",
    "export latest --perfetto runs": "runs is a folder\n  name a file, as runs/NAME",
    "export latest --parquet train.py/a": "train.py is a file; several files are written\n  name a folder",
    "resume latest --pass cse -o train.py": "train.py is a file; several files are written\n  name a folder",
    "check train.py": "train.py is not a case: it has no build(device)\n  record it as a program",
    "bisect silu --launch 3": "--launch is not for a case\n  leave it out",
    "bisect silu --atol 0 --good-torch 2.12": "--atol is not for a case\n  leave it out",
    "bisect latest --crash --launch 3": "--crash judges by how a compile ends\n  leave out --launch, or",
    "bisect latest --crash -- true": "--crash judges by how a compile ends\n  leave out COMMAND, or --crash",
    "bisect silu --crash --good-torch 2.12": "--crash is not for a case\n  leave it out",
    "bisect --rtol 1e-3 train.py": "--rtol is not for a program\n  leave it out",
    "bisect latest --kernel k --atol -1": "--atol needs at least 0",
    "diff silu --rank 1": "--rank needs two runs, and a case is given\n  leave it out",
    "check silu --dimension 1": "--dimension is given without --alignment\n  it restricts",
    "minify silu --alignment 8": "a constraint has no effect on --predicate fails\n  give it",
    "minify silu --predicate kernels --times 5": "--times has no effect on --predicate kernels\n  give it",
    "check silu --views": "--views is given without --layout\n  it restricts",
    "diff mine": "there is no case mine\n  nearest: mine.py",
    "diff zzzz": "there is no case zzzz\n  known are bert",
    "bench silu --runs demo-sound": "--runs: 'demo-sound' is no number of measured calls; bench records",
    "bench silu sliu": "there is no case sliu\n  nearest: silu",
    "minify sliu": "there is no case sliu\n  nearest: silu",
    "run /dev/null": "/dev/null is no file, and a program on a pipe cannot be recorded\n  write it",
    "run - --lr 3": "a program on standard input cannot be recorded\n  write it to a file",
    "run trian.py --lr 3": "there is no file trian.py\n  nearest: train.py",
    "run nosuch.py": "there is no file nosuch.py\n  give a case by name",
    "run slu.py": "there is no file slu.py\n  nearest: silu",
    "repeat --times 3 trian.py --lr=3": "there is no file trian.py\n  nearest: train.py",
    "guards --runs runs trian.py --seed x": "there is no file trian.py\n  nearest: train.py",
    "debug --pass cse trian.py --lr 3": "there is no file trian.py\n  nearest: train.py",
    "execute trian.py --lr 3": "there is no file trian.py\n  nearest: train.py",
    "guards latset --lr 3": "there is neither a case latset nor a run",
    "run trian": "there is no case trian\n  nearest: train.py",
    "run sliu --lr 3": "there is no case sliu\n  nearest: silu",
    "run -m trian --lr 3": "there is no module trian here or in this Python\n  nearest: train",
    "run mine.py --lr 3": "run has no option --lr",
    "run --lr 3 trian.py": "run has no option --lr",
    "clean silu-2": "silu-2 is no run, neither here nor below runs\n  list runs",
    "guards mine.py more": "mine.py is a case, and takes no further words: more",
    "debug mine.py --pass cse --ex x/3i $pc": "a gdb command of several words needs quotes: --ex 'x/3i $pc'",
    "debug --ex info line 3 mine.py --pass cse": "neither a run nor a case: line 3\n  a gdb command",
    "debug mine.py more --pass cse": "mine.py is a case, and takes no further words: more",
    **{f"{command} gated_mpl": NEITHER for command in ("bisect", "check", "guards", "debug")},
}


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Of each line the folder in which it was called: it has a case, a program and no run."""
    folders = {line: tmp_path_factory.mktemp("called") for line in PROBLEMS}
    for folder in folders.values():
        (folder / "mine.py").write_text(CASE)
        (folder / "train.py").write_text("print(1)\n")
        (folder / "runs").mkdir()
    calls = json.dumps([(line, str(folder)) for line, folder in folders.items()])
    variables = {**os.environ, "PYTHONPATH": str(ROOT)}
    subprocess.run([sys.executable, "-c", SCRIPT], input=calls, env=variables, text=True, check=True)
    return folders


@pytest.mark.parametrize("line", PROBLEMS)
def test_what_can_be_known_at_once_is_refused_at_once(line: str, folders: dict[str, Path]) -> None:
    folder = folders[line]

    assert (folder / "stdout").read_text() == "2 False\n"
    assert PROBLEMS[line] in (folder / "stderr").read_text()
    assert [*(folder / "runs").iterdir()] == []


def test_the_known_modes_are_those_of_torch() -> None:
    from torch._inductor import list_mode_options

    assert {*list_mode_options()} <= {*MODES}
