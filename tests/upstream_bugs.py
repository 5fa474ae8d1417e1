"""Wrong programs of upstream threads (tests/data/upstream): what is true of each, and the table of answers.

`python tests/upstream_bugs.py` runs three commands on each case and writes docs/upstream_bugs.md: 40 minutes.
"""

from __future__ import annotations

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

The cases in `tests/data/upstream` are written from threads of PyTorch. Each says in its docstring what is
wrong, what the upstream fix names, and where it reproduces. These are the answers with torch 2.13.0 and
Triton 3.8.0 on the virtual GPU. `make soak` checks them; `python tests/upstream_bugs.py` writes this page.

| case | true | `tracing run` | `tracing run --judge` | `tracing bisect` |
|---|---|---|---|---|
"""
TAIL = """
pytorch#193061 (gradients that `codegen_mix_order_reduction` does not write) needs a GPU and is not listed.

With `--good-torch 2.15.0`, [`tracing bisect`](commands/bisect.md#with-a-good-torch) names `remove_noop_ops`
for pytorch#198131 and `pointless_cumsum_replacement` for pytorch#193876. torch 2.15.0 is wrong as well for
pytorch#198094 and pytorch#186799.

The threads pytorch#198270, #198033, #197434 and #194490 and triton#11631, #11682 and #9349 were not available
when this page was written. They have no case; the threads above are of the same kinds.
"""


@dataclass(frozen=True)
class Bug:
    """A case, what the upstream fix names, and words that an answer must contain."""

    case: str
    truth: str
    run: str  # in the output of `tracing run`
    judge: str = ""  # in that of `tracing run --judge`; "": it cannot name the culprit
    bisect: str = ""  # in that of `tracing bisect`, likewise


BUGS = (
    Bug("pytorch_198131.py", "joint-graph pass `remove_noop_ops`; only a mutated input is wrong",
        "input 0 afterwards: compiled is off", bisect="remove_noop_ops"),
    Bug("pytorch_198094.py", "post-grad pass `reinplace_inplaceable_ops`, node `slice_scatter`",
        "storage of output: compiled has it", "overwrites", "reinplace_inplaceable_ops"),
    Bug("pytorch_175966.py", "lowering of `mul` of an `iota`: 32-bit arithmetic",
        "output: compiled is off", "triton_poi_fused_arange_mul_0 is off", "mul"),
    Bug("pytorch_186799.py", "node `eq` of the backward of `amax`: rounded against not rounded",
        "is nan", "eq", "eq"),
    Bug("pytorch_198101.py", "lowering: users of an alias are not realized before a mutation",
        "Mismatched elements: 11 / 24", bisect="inlining"),
    Bug("pytorch_197829.py", "post-grad passes `remove_noop_ops` and reinplacing together",
        "output: compiled is off", "output 0 is off", "reinplace_inplaceable_ops"),
    Bug("pytorch_198119.py", "lowering of `avg_pool2d_backward`",
        "grad of input 0: compiled is off", "avg_pool2d_backward", "avg_pool2d_backward"),
    Bug("pytorch_193751.py", "lowering of `argmax`: index of the memory's order",
        "output: compiled is off", "argmax", "argmax"),
    Bug("pytorch_198081.py", "lowering of `any`: bool instead of uint8", "attribute 'dtype'", bisect="any_1"),
    Bug("pytorch_193876.py", "post-grad pattern `pointless_cumsum_replacement` raises",
        "the case failed: InductorError: TypeError", bisect="pointless_cumsum_replacement"),
    Bug("pytorch_197080.py", "post-grad pass `normalization_aten_pass` raises",
        "Split sizes add up to 12", bisect="normalization_aten_pass"),
    Bug("pytorch_192288.py", "generated code names a class that it does not import", "name 'Strides'"),
    Bug("missing_mask.py", "kernel `block_sums` of the case: a load without a mask",
        "block_sums loads x_ptr[100] of 100 elements"),
    Bug("unwritten_gradient.py", "kernel `double_backward` of the case writes whole blocks only",
        "no reference, because of double_backward"),
    Bug("dropout.py", "nothing is wrong: other random numbers", "other random numbers", "right", "is right"),
    Bug("reused_output.py", "a buffer of the case that is kept from call to call", "passed"),
)  # fmt: skip


def answer(command: Sequence[str]) -> str:
    """What a command prints, on both streams."""
    with TemporaryDirectory() as runs:
        words = [sys.executable, "-m", "tracing", *command, "--runs", runs]
        done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False)
    return done.stdout + done.stderr


def run_answer(bug: Bug) -> str:
    """What `tracing run` says."""
    return answer(["run", str(CASES / bug.case), "--no-passes"])


def judge_answer(bug: Bug) -> str:
    """What `tracing run --judge` says."""
    return answer(["run", str(CASES / bug.case), "--no-passes", "--judge"])


def bisect_answer(bug: Bug) -> str:
    """What `tracing bisect` says."""
    return answer(["bisect", str(CASES / bug.case)])


def line_of(text: str, starts: Sequence[str]) -> str:
    """The last line that begins so, shortened."""
    lines = [line.strip() for line in text.splitlines() if line.strip().startswith(tuple(starts))]
    text = lines[-1] if lines else "no answer"
    return text if len(text) < 140 else f"{text[:136]} ..."


def row(bug: Bug, run: str, judge: str, bisect: str) -> str:
    """A line of the table."""
    cells = (
        bug.case.removesuffix(".py").replace("pytorch_", "pytorch#"),
        bug.truth,
        line_of(run, ("differs:", "passed:", "tracing: the case failed:")),
        line_of(judge, ("✗", "every launch", "no launch", "tracing: the case failed:")),
        line_of(bisect, ("accused:", "the compiled case is right", "tracing:")),
    )
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def page(rows: Sequence[str]) -> str:
    """docs/upstream_bugs.md."""
    return HEAD + "".join(f"{line}\n" for line in rows) + TAIL


def main() -> None:
    """Run every command on every case, and write the page."""
    rows = [row(bug, run_answer(bug), judge_answer(bug), bisect_answer(bug)) for bug in BUGS]
    PAGE.write_text(page(rows))


if __name__ == "__main__":
    main()
