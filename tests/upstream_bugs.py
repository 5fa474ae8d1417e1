"""Wrong programs of upstream threads (tests/data/upstream): what is true of each, and the table of answers.

`python tests/upstream_bugs.py` runs three commands on each case and writes docs/upstream_bugs.md: 60 minutes.
`python tests/upstream_bugs.py CASE.py …` does so for some cases, and leaves the other lines of the table.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

ROOT = Path(__file__).resolve().parents[1]
CASES = ROOT / "tests/data/upstream"
PAGE = ROOT / "docs/upstream_bugs.md"


HEAD = """# Wrong programs of upstream threads

The cases in `tests/data/upstream` are written from threads of PyTorch and Triton. Each says in its docstring
what is wrong, what the upstream fix names, and where it reproduces. These are the answers with torch 2.13.0
and Triton 3.8.0 on the virtual GPU. `make soak` checks them; `python tests/upstream_bugs.py` writes this
page. A compiler that crashes is searched by `tracing bisect RUN --crash`.

| case | true | `tracing run` | `tracing run --judge` | `tracing bisect` |
|---|---|---|---|---|
"""
TAIL = """
pytorch#193061 (gradients that `codegen_mix_order_reduction` does not write) needs a GPU and is not listed.

With `--good-torch 2.15.0`, [`tracing bisect`](commands/bisect.md#with-a-good-torch) names `remove_noop_ops`
for pytorch#198131 and `pointless_cumsum_replacement` for pytorch#193876. torch 2.15.0 is wrong as well for
pytorch#198094 and pytorch#186799.

triton#9349 has no case: its thread was not available.
"""


@dataclass(frozen=True)
class Bug:
    """A case, what the upstream fix names, and words that an answer must contain."""

    case: str
    truth: str
    run: str  # in the output of `tracing run`
    judge: str = ""  # in that of `tracing run --judge`; "": it cannot name the culprit
    bisect: str = ""  # in that of `tracing bisect`, likewise
    crash: bool = False  # a pass of Triton's compiler asserts: searched by `tracing bisect RUN --crash`


BUGS = (
    Bug("pytorch_198131.py", "joint-graph pass `remove_noop_ops`; only a mutated input is wrong",
        "input 0 afterwards: compiled is off", bisect="remove_noop_ops"),
    Bug("pytorch_198094.py", "post-grad pass `reinplace_inplaceable_ops`, node `slice_scatter`",
        "storage of output: compiled has it", "overwrites", "reinplace_inplaceable_ops"),
    Bug("pytorch_175966.py", "lowering of `mul` of an `iota`: 32-bit arithmetic",
        "output: compiled is off", "triton_poi_fused_arange_mul_0 is off", "mul"),
    Bug("pytorch_186799.py", "node `eq` of the backward of `amax`: rounded against not rounded",
        "is nan", bisect="eq"),
    Bug("pytorch_198101.py", "`mark_buffer_mutated`: users of an alias are not realized before a mutation",
        "wrong elements: 11"),
    Bug("pytorch_198270.py", "scheduler: a copy is fused with a read of its target at other positions",
        "race: program"),
    Bug("pytorch_198033.py", "lowering of `_foreach_add_`: the result gets the memory of the target",
        "race: program"),
    Bug("pytorch_197434.py", "lowering of `max_pool3d_with_indices`: dimensions of the window are swapped",
        "compiled is off"),
    Bug("pytorch_197829.py", "post-grad passes `remove_noop_ops` and reinplacing together",
        "output: compiled is off", "graph passes change output 0", "reinplace_inplaceable_ops"),
    Bug("pytorch_198119.py", "lowering of `avg_pool2d_backward`",
        "grad of input 0: compiled is off", "avg_pool2d_backward", "avg_pool2d_backward"),
    Bug("pytorch_193751.py", "lowering of `argmax`: index of the memory's order",
        "output: compiled is off", "argmax", "argmax"),
    Bug("pytorch_198081.py", "lowering of `any`: bool instead of uint8",
        "compiled gives torch.int64", bisect="any_1"),
    Bug("pytorch_193876.py", "post-grad pattern `pointless_cumsum_replacement` raises",
        "pass_pattern_1 fails at FX node cumsum: TypeError", bisect="pointless_cumsum_replacement"),
    Bug("pytorch_197080.py", "post-grad pass `normalization_aten_pass` raises",
        "Split sizes add up to 12", bisect="normalization_aten_pass"),
    Bug("pytorch_192288.py", "generated code names a class that it does not import", "name 'Strides'"),
    Bug("pytorch_194490.py", "`TritonKernel.load`: a value that is loaded in a loop is used after the loop",
        "does not compile: NameError('tmp8 is not defined')", bisect="fusion"),
    Bug("triton_11631.py", "pass `tritongpu-optimize-thread-locality`",
        "tritongpu-optimize-thread-locality", bisect="tritongpu-optimize-thread-locality", crash=True),
    Bug("triton_11682.py", "pass `tritongpu-optimize-thread-locality`",
        "tritongpu-optimize-thread-locality", bisect="tritongpu-optimize-thread-locality", crash=True),
    Bug("missing_mask.py", "kernel `block_sums` of the case: a load without a mask",
        "block_sums loads x_ptr[100] of 100 elements"),
    Bug("unwritten_gradient.py", "kernel `double_backward` of the case writes whole blocks only",
        "no reference, because of double_backward"),
    Bug("dropout.py", "nothing is wrong: other random numbers", "eager's random", "right", "right in"),
    Bug("reused_output.py", "a buffer of the case that is kept from call to call", "passed"),
)  # fmt: skip


def answer(*commands: Sequence[str]) -> str:
    """What the last of some commands prints, on both streams; all of them have one folder of runs."""
    with TemporaryDirectory() as runs:
        for command in commands:
            words = [sys.executable, "-m", "tracing", *command, "--runs", runs]
            done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False)
    return done.stdout + done.stderr


def run_answer(bug: Bug) -> str:
    """What `tracing run` says."""
    return answer(["run", str(CASES / bug.case), *([] if bug.crash else ["--no-passes"])])


def judge_answer(bug: Bug) -> str:
    """What `tracing run --judge` says."""
    return answer(["run", str(CASES / bug.case), "--no-passes", "--judge"])


def bisect_answer(bug: Bug) -> str:
    """What `tracing bisect` says."""
    if bug.crash:
        return answer(["run", str(CASES / bug.case)], ["bisect", "latest", "--crash"])
    return answer(["bisect", str(CASES / bug.case)])


def line_of(text: str, starts: Sequence[str]) -> str:
    """The last line that begins so, shortened."""
    lines = [line.strip() for line in text.splitlines() if line.strip().startswith(tuple(starts))]
    text = lines[-1] if lines else "no answer"
    return text if len(text) < 140 else f"{text[:136]} ..."


def in_one_line(text: str) -> str:
    """What `tracing run` prints, with a failure in one line and without its file and line."""
    return re.sub(r"(tracing: the case failed)\n\s*\S+:\d+: error: ", r"\1: ", text)


def accusation(bisect: str) -> str:
    """The line of an answer of `tracing bisect` that names a culprit, or says that there is none."""
    dies = [line for line in bisect.splitlines() if " dies in " in line]
    return dies[0] if dies else line_of(bisect, ("accused:", "right in", "tracing:"))


def name(bug: Bug) -> str:
    """The case, as the table names it."""
    return bug.case.removesuffix(".py").replace("pytorch_", "pytorch#").replace("triton_", "triton#")


_JUDGED = ("✗", "every launch", "no launch", "nothing checks", "tracing: the case failed:")


def row(bug: Bug, run: str, judge: str, bisect: str) -> str:
    """A line of the table."""
    cells = (
        name(bug),
        bug.truth,
        line_of(in_one_line(run), ("differs:", "passed:", "tracing: the case failed:")),
        line_of(in_one_line(judge), _JUDGED),
        accusation(bisect),
    )
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def page(rows: Sequence[str]) -> str:
    """docs/upstream_bugs.md."""
    return HEAD + "".join(f"{line}\n" for line in rows) + TAIL


def kept_rows() -> dict[str, str]:
    """The lines of the table as it is, by the first column."""
    lines = PAGE.read_text().splitlines()
    return {line.split(" | ")[0]: line for line in lines if line.startswith("| ") and " | " in line}


def main() -> None:
    """Run every command on the cases that are named, or on all, and write the page after each of them."""
    rows = kept_rows()
    for bug in [one for one in BUGS if one.case in sys.argv[1:] or not sys.argv[1:]]:
        line = row(bug, run_answer(bug), judge_answer(bug), bisect_answer(bug))
        rows[line.split(" | ")[0]] = line
        cells = [f"| {name(one)}" for one in BUGS]
        PAGE.write_text(page([rows[cell] for cell in cells if cell in rows]))


if __name__ == "__main__":
    main()
