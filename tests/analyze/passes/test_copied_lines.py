"""Lines of functions that torch.compile copied."""

from __future__ import annotations

import shutil
from pathlib import Path

from commands import DATA, recorded, tracing

from tracing.analyze.passes.copied_lines import of_user
from tracing.analyze.passes.locations import Frame, Located
from tracing.model import CopiedFunction


def test_only_lines_of_the_copy_become_the_user_s() -> None:
    copied = CopiedFunction("/tmp/generated.py", 20, 5, "/home/kernels.py", 7)
    lines = [("/tmp/generated.py", line) for line in (19, 20, 24, 25)] + [("/lib/standard.py", 21)]
    located = [Located(1, "add", ((Frame("/lib/standard.py", 3), Frame(*line)),)) for line in lines]

    outer = [one.stacks[0][1] for one in of_user(located, [copied])]

    assert outer == [Frame(*lines[0]), Frame("/home/kernels.py", 7), Frame("/home/kernels.py", 11),
                     Frame(*lines[3]), Frame(*lines[4])]  # fmt: skip


def test_a_line_of_the_user_s_kernel_is_followed_after_inductor_s_file_is_deleted(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    shutil.copy(DATA / "compiled_helper.py", program)
    run = recorded(str(program), tmp_path)
    numbers = {text.strip(): at for at, text in enumerate(program.read_text().splitlines(), 1)}
    program.unlink()

    def asked(line: int) -> str:
        where = f"program.py:{line}"
        options = ("--kernel", "compiled_helper#2", "--stage", "ttgir")
        done = tracing("line", run, where, *options, runs=tmp_path)
        assert done.returncode == 0, done.stderr
        return done.stdout

    assert "tt.get_program_id" in asked(numbers["at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)"])
    assert "arith.mulf" in asked(numbers["return x * SCALE"])
    written = numbers["def compiled_helper(x_ptr, out_ptr, n, BLOCK: tl.constexpr):"]
    for words in (["passes", run, "--kernel", "compiled_helper#2"], ["show", run, "--launch", "0"]):
        assert (
            f"/program.py:{written}, which torch.compile copied to " in tracing(*words, runs=tmp_path).stdout
        )
